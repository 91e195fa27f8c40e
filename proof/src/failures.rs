//! Operations of the operating system that fail, the first, the second, the third and so on until none is left to fail.
//!
//! strace makes them fail: on the store's writer thread while the server works, and on all threads while it starts. After a
//! failed write or sync no write is acknowledged any more, the answers say why, reads go on, and a restart finds everything
//! that was acknowledged.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Client, WireClient};
use fastrand::Rng;

use crate::process::{Launch, Server};
use crate::recording;
use crate::verify::{self, Everybody, Feeds};
use crate::world::{CONTAINERS, World};
use crate::writer::Step;
use crate::{Outcome, Setting};

/// Steps of each writer, unless a write is refused before.
const STEPS: usize = 25;
/// How long strace may take to get hold of a thread.
const PATIENCE: Duration = Duration::from_secs(20);
/// The store's writer thread.
const WRITER: &str = "bolide-writer";

/// What fails while the server works.
struct Failure {
    call: &'static str,
    error: &'static str,
    /// On which files.
    files: Files,
    after: After,
}

/// What comes after a failure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// No write is taken any more.
    Stops,
    /// Perhaps nothing was being written: a table could not be opened to read in it.
    MayGoOn,
}

#[derive(Clone, Copy)]
enum Files {
    Journal,
    /// The writer opens, syncs and renames nothing else once there are all keyspaces.
    Marker,
}

const WHILE_WORKING: [Failure; 6] = [
    Failure { call: "fdatasync", error: "EIO", files: Files::Journal, after: After::Stops },
    Failure { call: "write", error: "ENOSPC", files: Files::Journal, after: After::Stops },
    Failure { call: "write", error: "EIO", files: Files::Journal, after: After::Stops },
    Failure { call: "openat", error: "ENOSPC", files: Files::Marker, after: After::MayGoOn },
    Failure { call: "fsync", error: "EIO", files: Files::Marker, after: After::Stops },
    Failure { call: "rename", error: "EIO", files: Files::Marker, after: After::Stops },
];

/// What fails while it starts on data that were not closed in order.
const WHILE_STARTING: [(&str, &str); 6] = [
    ("fsync", "EIO"),
    ("rename", "EIO"),
    ("ftruncate", "EIO"),
    ("unlink", "EIO"),
    ("mkdir", "ENOSPC"),
    ("copy_file_range", "ENOSPC"),
];

pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    if !recording::is_possible() {
        return Ok(Outcome::Skipped("strace is missing: apt-get install strace".to_owned()));
    }
    let most = setting.rounds(2, 8, 1000);
    let mut failures = Failures::new(setting, place)?;
    let (mut working, mut starting) = (0, 0);
    for failure in &WHILE_WORKING {
        for number in 1..=most {
            let struck = failures.while_working(failure, number).with_context(|| {
                format!(
                    "{} number {number} fails with {} while the server works",
                    failure.call, failure.error
                )
            })?;
            if !struck {
                break;
            }
            working += 1;
        }
    }
    for (call, error) in WHILE_STARTING {
        for number in 1..=most {
            let struck = failures.while_starting(call, error, number).with_context(|| {
                format!("{call} number {number} fails with {error} while the server starts")
            })?;
            if !struck {
                break;
            }
            starting += 1;
        }
    }
    Ok(Outcome::Held(format!(
        "{working} failures while the server worked, {starting} while it started, {} writes acknowledged, {} refused",
        failures.everybody.acknowledged(),
        failures.refused
    )))
}

struct Failures {
    launch: Launch,
    place: PathBuf,
    world: World,
    everybody: Everybody,
    refused: u64,
}

impl Failures {
    fn new(setting: &Setting, place: &Path) -> Result<Failures> {
        let mut random = Rng::with_seed(setting.seed);
        let launch = Launch::new(&setting.server, place);
        let world = World::default();
        let everybody = Everybody::new(2, 1, &mut random);
        let server = launch.start()?;
        let mut client = Client::connect(&server.address)?;
        world.make(&mut client, &mut WireClient::connect(&server.mongo)?)?;
        server.kill()?;
        Ok(Failures { launch, place: place.to_owned(), world, everybody, refused: 0 })
    }

    /// Whether there was an operation of that number to fail.
    fn while_working(&mut self, failure: &Failure, number: u64) -> Result<bool> {
        let server = self.launch.start()?;
        verify::everything(&self.world, &server, &mut self.everybody, Feeds::LeftAlone)?;
        let mut tracer = self.attach(&server, failure, number)?;
        let refused = self.write(&server)?;
        if let (Some(why), After::Stops) = (&refused, failure.after) {
            self.is_readable_but_not_writable(&server, why)?;
        }
        // The server ends first: a tracer that lets go might let a call through.
        server.kill()?;
        tracer.wait()?;
        self.launch.inspect()?;
        Ok(refused.is_some())
    }

    /// Lets operations of the server's writer thread fail from now on.
    fn attach(&self, server: &Server, failure: &Failure, number: u64) -> Result<Child> {
        let thread = thread_named(server.id(), WRITER)?;
        let mut command = Command::new("strace");
        command.args(["-q", "-p", &thread.to_string(), "-e", &format!("trace={}", failure.call)]);
        let (call, error) = (failure.call, failure.error);
        command.args(["-e", &format!("inject={call}:error={error}:when={number}"), "-o", "/dev/null"]);
        for file in files(&self.launch.data, failure.files)? {
            command.arg("-P").arg(file);
        }
        let child =
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start strace")?;
        let status = format!("/proc/{}/task/{thread}/status", server.id());
        let begun = Instant::now();
        while !std::fs::read_to_string(&status)?.contains(&format!("TracerPid:\t{}", child.id())) {
            ensure!(begun.elapsed() < PATIENCE, "strace does not get hold of the writer thread");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(child)
    }

    /// Everybody writes; why the first write was refused, if one was.
    fn write(&mut self, server: &Server) -> Result<Option<String>> {
        let mut client = Client::connect(&server.address)?;
        let mut wire = WireClient::connect(&server.mongo)?;
        let mut why = None;
        for step in 0..STEPS {
            // The marker is written when the clock's lease is renewed.
            if step % 5 == 4 && self.world.advance(&mut client, 10).is_err() {
                client = Client::connect(&server.address)?;
            }
            let steps = self.everybody.writers.iter_mut().map(|writer| writer.step(&self.world, &mut client));
            let mut steps: Vec<Step> = steps.collect::<Result<_>>()?;
            for writer in &mut self.everybody.wire_writers {
                steps.push(writer.step(&self.world, &mut wire)?);
            }
            for step in steps {
                match step {
                    Step::Answered => {}
                    Step::Refused(_, text) => {
                        self.refused += 1;
                        why.get_or_insert(text);
                    }
                    Step::Lost => anyhow::bail!("the server went away: {}", self.launch.last_words()),
                }
            }
        }
        Ok(why)
    }

    fn is_readable_but_not_writable(&mut self, server: &Server, why: &str) -> Result<()> {
        let mut client = Client::connect(&server.address)?;
        for name in CONTAINERS {
            let answer = client.read(name, "p0", "w0-0")?;
            ensure!(
                matches!(answer.status, 200 | 404),
                "a read is answered {}: {}",
                answer.status,
                answer.body
            );
        }
        let answer = client.upsert(CONTAINERS[0], "p", "{\"id\":\"another\",\"pk\":\"p\"}")?;
        ensure!(
            answer.status == 503,
            "a write after a failure is answered {}: {}",
            answer.status,
            answer.body
        );
        let told =
            [why, &answer.body].iter().any(|text| text.contains("no more writes") || text.contains("cannot"));
        ensure!(told, "nobody says why: {why} / {}", answer.body);
        let status = client.admin("GET", "/_bolide/status", "")?.expect(200)?;
        ensure!(status.body.contains("\"writable\":false"), "the status says nothing: {}", status.body);
        let ready = client.request("GET", "/ready", "", "")?;
        ensure!(ready.status == 503, "a server that takes no writes says that it is ready");
        ensure!(!self.launch.logged().is_empty(), "the log says nothing");
        Ok(())
    }

    /// Whether there was an operation of that number to fail: if not, the server started.
    fn while_starting(&mut self, call: &str, error: &str, number: u64) -> Result<bool> {
        // Something for recovery to do.
        let server = self.launch.start()?;
        verify::everything(&self.world, &server, &mut self.everybody, Feeds::LeftAlone)?;
        self.write(&server)?;
        server.kill()?;
        let trace = self.place.join("injected");
        let mut launch = self.launch.clone();
        let injection = format!("inject={call}:error={error}:when={number}");
        launch.wrapper = ["strace", "-D", "-f", "-q", "-e", &format!("trace={call}"), "-e", &injection, "-o"]
            .map(OsString::from)
            .to_vec();
        launch.wrapper.push(trace.clone().into());
        let started = launch.start();
        let process = started.as_ref().map(Server::id).ok();
        if let Ok(server) = started {
            server.kill()?;
        }
        if let Some(process) = process {
            recording::wait_for_end(&trace, process)?;
        }
        let struck = std::fs::read_to_string(&trace).unwrap_or_default().contains("(INJECTED)");
        ensure!(struck || process.is_some(), "the server does not start: {}", launch.last_words());
        let server = self.launch.start().context("after the failure")?;
        verify::everything(&self.world, &server, &mut self.everybody, Feeds::LeftAlone)?;
        server.kill()?;
        self.launch.inspect()?;
        Ok(struck)
    }
}

fn thread_named(process: u32, name: &str) -> Result<u32> {
    for entry in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let entry = entry?;
        if std::fs::read_to_string(entry.path().join("comm"))?.trim() == name {
            return Ok(entry.file_name().to_string_lossy().parse()?);
        }
    }
    anyhow::bail!("the server has no thread {name}")
}

fn files(data: &Path, files: Files) -> Result<Vec<PathBuf>> {
    Ok(match files {
        Files::Marker => Vec::new(),
        Files::Journal => std::fs::read_dir(data)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "jnl"))
            .collect(),
    })
}
