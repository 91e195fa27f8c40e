//! The server as a process: started on free ports, measured, stopped or killed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};

use super::process::{cpu_seconds_of, resident_kib_of};
use super::{Client, WireClient};

/// A running server. Dropping it kills the process, and removes its data directory if that was made for it.
pub struct Server {
    child: Child,
    /// The address of the NoSQL API.
    pub address: String,
    /// The address of the MongoDB API.
    pub mongo_address: String,
    directory: PathBuf,
    /// Whether dropping the server removes the directory.
    owns_directory: bool,
}

impl Server {
    /// Starts a server in a data directory of its own, with further arguments.
    pub fn start(binary: &Path, more: &[&str]) -> Result<Server> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bolide-bench-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let mut server = Server::start_in(binary, &directory, more)?;
        server.owns_directory = true;
        Ok(server)
    }

    /// Starts a server in the caller's data directory, which stays.
    pub fn start_in(binary: &Path, directory: &Path, more: &[&str]) -> Result<Server> {
        Server::launch(Command::new(binary), directory, more)
    }

    /// Starts a server under a command that runs the rest of its command line (`strace … bolide`): `command` ends with the
    /// binary.
    pub fn launch(mut command: Command, directory: &Path, more: &[&str]) -> Result<Server> {
        command.args(["serve", "--test-clock", "--listen", "127.0.0.1:0", "--mongo-listen", "127.0.0.1:0"]);
        command.arg("--data").arg(directory).args(more);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start the server")?;
        let mut lines = BufReader::new(child.stdout.take().context("stdout is piped")?).lines();
        let mut mongo_address = String::new();
        let address = loop {
            let Some(line) = lines.next() else {
                let status = child.wait()?;
                anyhow::bail!("the server ended before it was ready: {status}");
            };
            let line = line?;
            let host = |rest: &str| rest.split('/').next().unwrap_or_default().to_owned();
            if let Some(rest) = line.strip_prefix("mongodb://") {
                mongo_address = host(rest);
            }
            if let Some(rest) = line.strip_prefix("AccountEndpoint=http://") {
                break host(rest);
            }
        };
        // Keeps reading, or the server's next line would break its pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Server { child, address, mongo_address, directory: directory.to_owned(), owns_directory: false })
    }

    /// Stops in order and starts again on the same data.
    pub fn restart(self, binary: &Path, more: &[&str]) -> Result<Server> {
        self.restart_after(binary, more, || ())
    }

    /// Does the same, with something between the stop and the start.
    pub fn restart_after(mut self, binary: &Path, more: &[&str], between: impl FnOnce()) -> Result<Server> {
        let owns = std::mem::take(&mut self.owns_directory);
        let directory = self.directory.clone();
        self.stop()?;
        between();
        let mut server = Server::start_in(binary, &directory, more)?;
        server.owns_directory = owns;
        Ok(server)
    }

    /// Sends SIGTERM; the server must end in order.
    pub fn stop(mut self) -> Result<()> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        ensure!(self.child.wait()?.success(), "the server did not end in order");
        Ok(())
    }

    /// Sends SIGKILL, as a crash.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Returns the exit status, if it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Returns the number of the started process: after `launch`, the command's.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the data directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn client(&self) -> Result<Client> {
        Client::connect(&self.address)
    }

    pub fn wire_client(&self) -> Result<WireClient> {
        WireClient::connect(&self.mongo_address)
    }

    /// Returns the CPU seconds that the process has used.
    pub fn cpu_seconds(&self) -> Result<f64> {
        cpu_seconds_of(self.child.id())
    }

    /// Returns whether flushes or merges wait or run. A merge that waits begins after a commit, so this makes one.
    pub fn has_deferred_work(&self) -> Result<bool> {
        let mut client = self.client()?;
        let page = client.plain("GET", "/metrics", "", "")?.expect(200)?.body;
        let count = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let (flushes, merges) =
            (count("bolide_store_sealed_memtables "), count("bolide_store_pending_merges "));
        if flushes == 0 && merges > 0 {
            client.advance(0)?;
        }
        Ok(flushes + merges > 0)
    }

    /// Returns the resident memory in MiB.
    pub fn resident_mib(&self) -> Result<u64> {
        Ok(self.resident_kib()? / 1024)
    }

    /// Returns the resident memory in KiB.
    pub fn resident_kib(&self) -> Result<u64> {
        Ok(resident_kib_of(self.child.id())?.0)
    }

    /// Returns the peak of resident memory in MiB.
    pub fn peak_resident_mib(&self) -> Result<u64> {
        Ok(resident_kib_of(self.child.id())?.1 / 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.owns_directory {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}
