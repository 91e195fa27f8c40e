//! Power loss: the server's writes and syncs are recorded while it works, then the disk is rebuilt as a power loss after
//! any sync may leave it, and the real binary must recover from it what was acknowledged until then.
//!
//! A write counts as acknowledged if its answer came before the end of the next sync: no client can have been waiting for
//! that one.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Client, WireClient};
use fastrand::Rng;

use crate::disk::{Disk, Loss};
use crate::disturb;
use crate::ledger::wall_clock;
use crate::process::{Launch, Server};
use crate::recording::{self, Act, Event, Recorder};
use crate::times::Ttl;
use crate::verify::{self, Feeds, Writers};
use crate::world::{CONTAINERS, World};
use crate::writer::Step;
use crate::{Effort, Outcome, Setting};

/// No default expires items while the disks are checked.
const RULES: [Ttl; CONTAINERS.len()] = [Ttl::Infinite; CONTAINERS.len()];
const WRITERS: usize = 3;
const WIRE_WRITERS: usize = 1;
/// How many failed states end the check.
const FAILURES_MAX: u64 = 20;
/// How long a traced server may take to stop.
const MAX_WAIT: Duration = Duration::from_secs(60);

pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    if !recording::is_possible() {
        return Ok(Outcome::Skipped("strace is missing: apt-get install strace".to_owned()));
    }
    let mut random = Rng::with_seed(setting.seed);
    let recorded = record(setting, place, &mut random)?;
    let events = &recorded.events;
    let syncs: Vec<usize> = (0..events.len()).filter(|at| is_sync(&events[*at])).collect();
    let states = setting.rounds(12, 200, 4 * syncs.len() as u64);
    let mut chosen: Vec<(usize, Loss)> =
        (0..syncs.len()).flat_map(|at| Loss::ALL.map(|loss| (at, loss))).collect();
    random.shuffle(&mut chosen);
    chosen.truncate(states as usize);
    chosen.sort_by_key(|(at, _)| *at);
    let begun = Instant::now();
    let mut disk = Disk::default();
    let mut happened = 0;
    let (mut compared, mut failed) = (0, 0);
    for (done, (at, loss)) in chosen.iter().enumerate() {
        while happened <= syncs[*at] {
            disk.happen(happened, &events[happened]);
            happened += 1;
        }
        let next = syncs.get(at + 1).copied().unwrap_or(events.len());
        let to = place.join("lost");
        std::fs::create_dir_all(&to)?;
        disk.lose_power(
            *loss,
            &events[happened..next],
            happened,
            &recorded.root,
            &to.join("data"),
            &mut random,
        )?;
        let until = events.get(next).map_or(f64::INFINITY, |event| event.at);
        let number = *at + 1;
        match reopen(setting, &to, &recorded, until) {
            Ok(items) => {
                compared += items;
                std::fs::remove_dir_all(&to)?;
            }
            // Keeps the failure and checks the other cases too: what they have in common shows the cause.
            Err(error) => {
                println!("  after sync {number} of {}, loss {loss:?}: {error:#}", syncs.len());
                std::fs::rename(&to, place.join(format!("lost-{number}-{loss:?}")))?;
                failed += 1;
            }
        }
        ensure!(failed < FAILURES_MAX, "{failed} states do not hold, no more are looked at");
        if (done + 1) % 50 == 0 {
            println!("  {} states, {:.0} s", done + 1, begun.elapsed().as_secs_f64());
        }
    }
    ensure!(failed == 0, "{failed} of {} states do not hold", chosen.len());
    Ok(Outcome::Held(format!(
        "{} states at {} syncs, {} events recorded, {} writes acknowledged while recording, {compared} items compared",
        chosen.len(),
        syncs.len(),
        events.len(),
        recorded.all_writers.acknowledged()
    )))
}

fn is_sync(event: &Event) -> bool {
    matches!(event.act, Act::SyncFile(_) | Act::SyncDirectory(_))
}

/// The recording of a server, and the acknowledged state at each moment.
struct Recorded {
    events: Vec<Event>,
    all_writers: Writers,
    /// The data directory.
    root: PathBuf,
    /// When the containers were made.
    made: f64,
}

/// Runs a traced server: from an empty directory, over an orderly stop and a kill, to rewritten tables.
fn record(setting: &Setting, place: &Path, random: &mut Rng) -> Result<Recorded> {
    let mut launch = Launch::new(&setting.server, place);
    let mut recorder = Recorder::new(&launch.data);
    let world = World::with_rules(RULES);
    let mut all_writers = Writers::new(WRITERS, WIRE_WRITERS, random);
    all_writers.remember();
    let mut made = 0.0;
    let steps = if setting.effort == Effort::Quick { 15 } else { 60 };
    for life in RecordedRun::ALL {
        let file = place.join(format!("{life:?}.strace"));
        launch.wrapper = recording::wrapper(&file);
        let server = launch.start()?;
        let mut client = Client::connect(&server.address)?;
        world.read_clock(&mut client)?;
        if life == RecordedRun::First {
            world.make(&mut client, &mut WireClient::connect(&server.mongo)?)?;
            made = wall_clock();
        } else {
            verify::everything(&world, &server, &mut all_writers, Feeds::LeftAlone)?;
        }
        write(&world, &server, &mut all_writers, steps)?;
        if life == RecordedRun::Rewriting && setting.effort != Effort::Quick {
            rewrite(&world, &mut client, &mut all_writers)?;
            write(&world, &server, &mut all_writers, steps)?;
        }
        let process = server.id();
        if life == RecordedRun::Killed {
            server.kill()?;
        } else {
            let status = server.stop(MAX_WAIT)?;
            ensure!(status.success(), "the traced server ended with {status}: {}", launch.last_words());
        }
        recorder.add(&recording::wait_for_end(&file, process)?)?;
        std::fs::remove_file(&file)?;
    }
    Ok(Recorded { events: recorder.events, all_writers, root: launch.data, made })
}

/// The content of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordedRun {
    First,
    Killed,
    Rewriting,
    Last,
}

impl RecordedRun {
    const ALL: [RecordedRun; 4] =
        [RecordedRun::First, RecordedRun::Killed, RecordedRun::Rewriting, RecordedRun::Last];
}

/// Every writer runs this many steps concurrently.
fn write(world: &World, server: &Server, all_writers: &mut Writers, steps: usize) -> Result<()> {
    let Writers { writers, wire_writers, .. } = all_writers;
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for writer in writers {
            let mut client = Client::connect(&server.address)?;
            threads.push(
                scope.spawn(move || (0..steps).try_for_each(|_| answered(&writer.step(world, &mut client)?))),
            );
        }
        for writer in wire_writers {
            let mut wire = WireClient::connect(&server.mongo)?;
            threads.push(
                scope.spawn(move || (0..steps).try_for_each(|_| answered(&writer.step(world, &mut wire)?))),
            );
        }
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })
}

fn answered(step: &Step) -> Result<()> {
    ensure!(*step == Step::Answered, "a write was not answered: {step:?}");
    Ok(())
}

/// Makes the store end its journal and rewrite its tables, and waits until it has.
fn rewrite(world: &World, client: &mut Client, all_writers: &mut Writers) -> Result<()> {
    let crowd_writer = all_writers.writers.last_mut().context("there are writers")?;
    answered(&crowd_writer.crowd(world, client, 2)?)?;
    disturb::promise(client, Some(2))?;
    let begun = Instant::now();
    while disturb::scrubs(client)? == 0 {
        ensure!(begun.elapsed() < MAX_WAIT, "tables are not rewritten");
        std::thread::sleep(Duration::from_millis(50));
    }
    disturb::promise(client, None)
}

/// Opens the remaining files and compares them with the acknowledged state; returns the number of items.
fn reopen(setting: &Setting, to: &Path, recorded: &Recorded, until: f64) -> Result<u64> {
    let launch = Launch::new(&setting.server, to);
    let server = launch.start()?;
    let mut items = 0;
    if until > recorded.made {
        let world = World::with_rules(RULES);
        let mut then = recorded.all_writers.as_of(until);
        items = verify::everything(&world, &server, &mut then, Feeds::LeftAlone)?.items;
    }
    server.kill()?;
    launch.inspect()?;
    Ok(items)
}
