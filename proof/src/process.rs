//! The server process: arguments, ports, exit, log.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How to start a server; the same again on the same data after it was killed.
#[derive(Clone)]
pub struct Launch {
    pub binary: PathBuf,
    /// The data directory.
    pub data: PathBuf,
    /// The log file, with the lines of all starts.
    pub log: PathBuf,
    /// Further options of `bolide serve`.
    pub options: Vec<String>,
    /// The command prefix, such as strace with its options.
    pub wrapper: Vec<OsString>,
}

impl Launch {
    /// Creates a server with a test clock, its data and its log within `place`.
    pub fn new(binary: &Path, place: &Path) -> Launch {
        Launch {
            binary: binary.to_owned(),
            data: place.join("data"),
            log: place.join("server.log"),
            options: Vec::new(),
            wrapper: Vec::new(),
        }
    }

    /// Starts the server and waits until it prints its addresses.
    pub fn start(&self) -> Result<Server> {
        let mut words = self.wrapper.iter();
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        };
        command.args(["serve", "--test-clock", "--listen", "127.0.0.1:0", "--mongo-listen", "127.0.0.1:0"]);
        command.arg("--data").arg(&self.data).args(&self.options);
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("cannot start the server")?;
        let mut lines = BufReader::new(child.stdout.take().context("stdout is piped")?).lines();
        let (mut address, mut mongo) = (None, None);
        while address.is_none() {
            let Some(line) = lines.next().transpose()? else {
                let status = child.wait()?;
                bail!("the server ended before it was ready ({status}): {}", self.last_words());
            };
            // Before the host there may be a user.
            let host = |rest: &str| {
                let authority = rest.split('/').next().unwrap_or_default();
                authority.rsplit('@').next().unwrap_or_default().to_owned()
            };
            mongo = mongo.or(line.strip_prefix("mongodb://").map(host));
            address = line.strip_prefix("AccountEndpoint=http://").map(host);
        }
        // Keeps reading, or the server's next line would break its pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.context("the loop ends with one")?;
        let mongo = mongo.context("no address of the MongoDB API was printed")?;
        Ok(Server { child, data: self.data.clone(), address, mongo })
    }

    /// Returns the log.
    pub fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the end of the log.
    pub fn last_words(&self) -> String {
        let log = self.logged();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }

    /// Runs `bolide check` on the data, which no server may have open; an error if it finds anything.
    pub fn inspect(&self) -> Result<()> {
        let output = Command::new(&self.binary)
            .args(["check", "--test-clock", "--data"])
            .arg(&self.data)
            .output()
            .context("cannot run bolide check")?;
        let told = String::from_utf8_lossy(&output.stdout);
        let failed = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "bolide check ended with {}: {told}{failed}", output.status);
        Ok(())
    }

    /// Runs the same on a copy, which it removes: the data stay as they were left.
    pub fn inspect_copy(&self, copy: &Path) -> Result<()> {
        let mut command = Command::new("cp");
        command.args(["--recursive", "--sparse=always"]).arg(&self.data).arg(copy);
        ensure!(command.status()?.success(), "cannot copy {}", self.data.display());
        Launch { data: copy.to_owned(), ..self.clone() }.inspect()?;
        std::fs::remove_dir_all(copy).context("cannot remove the copy")
    }

    /// Forgets what was logged so far.
    pub fn forget_log(&self) -> Result<()> {
        File::create(&self.log).map(drop).context("cannot empty the log")
    }
}

/// A running server. It is killed when dropped.
pub struct Server {
    child: Child,
    data: PathBuf,
    /// Host and port of the NoSQL API.
    pub address: String,
    /// Host and port of the MongoDB API.
    pub mongo: String,
}

impl Server {
    /// Returns the process's number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the certificate that its clients inside TLS must trust, as PEM.
    pub fn root_certificate(&self) -> Result<Vec<u8>> {
        let file = self.data.join("tls/root.pem");
        std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))
    }

    /// Sends SIGKILL; returns whether the process was still running.
    pub fn kill(mut self) -> Result<bool> {
        self.child.kill()?;
        Ok(self.child.wait()?.code().is_none())
    }

    /// Returns the exit status if it has ended by itself.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Sends SIGTERM and returns the exit status.
    pub fn stop(mut self, max_wait: Duration) -> Result<ExitStatus> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(begun.elapsed() < max_wait, "the server did not end within {max_wait:?} of SIGTERM");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
