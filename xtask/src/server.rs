//! The server under test: built once, started on a free port, awaited, stopped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use crate::paths;
use crate::process;
use crate::report::{Outcome, Part};

const BUILD_TIMEOUT: Duration = Duration::from_mins(45);
const START_TIMEOUT: Duration = Duration::from_mins(1);
const STOP_TIMEOUT: Duration = Duration::from_mins(1);

/// A port chosen by the system; the MongoDB API then has one, too.
const FREE_PORT: [&str; 2] = ["--listen", "127.0.0.1:0"];

/// How a program is built, by the name of cargo's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// Optimised crate by crate.
    Tested,
    /// As users have it.
    Release,
}

impl Build {
    pub(crate) fn profile(self) -> &'static str {
        match self {
            Self::Tested => "tested",
            Self::Release => "release",
        }
    }

    /// Returns the path of a program of ours once it is built.
    pub(crate) fn program(self, name: &str) -> PathBuf {
        paths::target().join(self.profile()).join(name)
    }
}

/// Builds the server and returns its path. `BOLIDE_BIN` names another one to test instead.
pub(crate) fn build(build: Build) -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("BOLIDE_BIN") {
        println!("testing the given binary, not this source tree: {}", given.display());
        return Ok(PathBuf::from(given));
    }
    // Built together with the simulator, so that common crates are compiled once; without other programs, each of which
    // would be optimised as a whole.
    let mut command = Command::new("cargo");
    command
        .args(["build", "--locked", "--profile", build.profile()])
        .args(["--package", "bolide-server", "--package", "bolide-simulator"])
        .args(["--bin", "bolide", "--bin", "bolide-simulator"])
        .current_dir(paths::root());
    ensure!(process::run(&mut command, BUILD_TIMEOUT)?.success, "the server does not build");
    let binary = build.program("bolide");
    ensure!(binary.is_file(), "{} is missing after the build", binary.display());
    Ok(binary)
}

/// The server that all parts of a test run share: the first part that needs it builds it, the others wait.
pub(crate) struct Tested {
    build: Build,
    binary: OnceLock<Result<PathBuf, String>>,
}

impl Tested {
    pub(crate) fn new(build: Build) -> Tested {
        Tested { build, binary: OnceLock::new() }
    }

    pub(crate) fn binary(&self) -> Result<PathBuf> {
        let built = self.binary.get_or_init(|| build(self.build).map_err(|error| format!("{error:#}")));
        built.clone().map_err(|error| anyhow!("there is no server: {error}"))
    }

    /// Returns the build as a part of its own, with the size of the server.
    pub(crate) fn part(&self) -> Part<'_> {
        let size = || {
            let mebibytes = std::fs::metadata(self.binary()?)?.len() as f64 / f64::from(1 << 20);
            Ok(Outcome::Passed(format!("{mebibytes:.1} MiB")))
        };
        Part { name: "server, build", run: Box::new(size) }
    }
}

/// Removes the settings that a caller has for other servers from a command's environment.
pub(crate) fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BOLIDE_")) {
        command.env_remove(name);
    }
}

/// A running server; killed when dropped without `stop`.
pub(crate) struct Server {
    child: Child,
    announced: Announcement,
}

/// The start message of a server: the loopback ports of its two APIs, 0 without one, and the whole text.
#[derive(Default)]
struct Announcement {
    port: u16,
    mongo_port: u16,
    text: String,
}

impl Server {
    /// Starts `bolide serve --memory --test-clock` on a port chosen by the system.
    pub(crate) fn start(binary: &PathBuf) -> Result<Server> {
        Server::start_with(binary, &[])
    }

    /// Starts the same, with more arguments.
    pub(crate) fn start_with(binary: &PathBuf, arguments: &[&str]) -> Result<Server> {
        let mut command = Command::new(binary);
        Server::launch(command.args(["serve", "--memory", "--test-clock"]).args(FREE_PORT).args(arguments))
    }

    /// Starts the same without the MongoDB API, on a port that is known before, which the arguments may contain.
    pub(crate) fn start_knowing_its_port(
        binary: &PathBuf,
        arguments: impl FnOnce(u16) -> Vec<String>,
    ) -> Result<Server> {
        // Linux chooses ports at random, so that another program hardly gets this one in between.
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = Command::new(binary);
        command.args(["serve", "--memory", "--test-clock", "--mongo-listen", "off"]);
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        Server::launch(command.args(arguments(port)))
    }

    /// Starts `bolide serve` with these arguments, in that folder.
    pub(crate) fn start_in(binary: &PathBuf, folder: &Path, arguments: &[&str]) -> Result<Server> {
        let mut command = Command::new(binary);
        Server::launch(command.arg("serve").args(arguments).args(FREE_PORT).current_dir(folder))
    }

    /// Starts `bolide serve` with a configuration file, and no other settings.
    pub(crate) fn start_configured(binary: &Path, configuration: &Path) -> Result<Server> {
        Server::launch(Command::new(binary).args(["serve", "--config"]).arg(configuration))
    }

    fn launch(command: &mut Command) -> Result<Server> {
        without_settings(command);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start the server")?;
        let announced = announcement(child.stdout.take().expect("stdout is piped"));
        let announced = announced.recv_timeout(START_TIMEOUT).unwrap_or_default();
        let server = Server { child, announced };
        ensure!(server.announced.port != 0, "the server announced no address");
        ensure!(process::wait_until(START_TIMEOUT, || server.ready()), "the server did not become ready");
        Ok(server)
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.announced.port)
    }

    /// Returns the port of the MongoDB API; 0 without one.
    pub(crate) fn mongo_port(&self) -> u16 {
        self.announced.mongo_port
    }

    /// Returns the text that it has printed up to its connection string.
    pub(crate) fn announcement(&self) -> &str {
        &self.announced.text
    }

    fn ready(&self) -> bool {
        let ask = || -> std::io::Result<bool> {
            let mut socket = TcpStream::connect(self.address())?;
            socket.set_read_timeout(Some(START_TIMEOUT))?;
            write!(socket, "GET /ready HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address())?;
            let mut answer = String::new();
            socket.read_to_string(&mut answer)?;
            Ok(answer.starts_with("HTTP/1.1 200"))
        };
        ask().unwrap_or(false)
    }

    /// Sends SIGTERM; the server must drain and exit with status 0.
    pub(crate) fn stop(mut self) -> Result<()> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        let mut status = None;
        process::wait_until(STOP_TIMEOUT, || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        });
        let status =
            status.ok_or_else(|| anyhow!("the server did not stop within {} s", STOP_TIMEOUT.as_secs()))?;
        ensure!(status.success(), "the server ended with {status} after SIGTERM");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the pipe to its end, so that the server never blocks on it. The connection string is in the last line with an
/// address.
fn announcement(pipe: impl Read + Send + 'static) -> mpsc::Receiver<Announcement> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut announced = Announcement::default();
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            announced.text.push_str(&line);
            announced.text.push('\n');
            if let Some(port) = port_in(&line, "mongodb") {
                announced.mongo_port = port;
            }
            if let Some(port) = port_in(&line, "AccountEndpoint=http") {
                announced.port = port;
                let _ = sender.send(std::mem::take(&mut announced));
            }
        }
    });
    receiver
}

fn port_in(line: &str, scheme: &str) -> Option<u16> {
    let (_, rest) = line.split_once(&format!("{scheme}://127.0.0.1:"))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_found_in_the_line_the_server_prints() {
        let line = "AccountEndpoint=http://127.0.0.1:40123/;AccountKey=abc==";
        assert_eq!(port_in(line, "AccountEndpoint=http"), Some(40123));
        assert_eq!(port_in("Explorer: http://127.0.0.1:40123/", "AccountEndpoint=http"), None);
        assert_eq!(port_in("mongodb://127.0.0.1:10255/?replicaSet=globaldb", "mongodb"), Some(10255));
        assert_eq!(port_in("http://127.0.0.1:/", "http"), None);
    }
}
