//! kill -9 under load, again and again on the same data.
//!
//! ```text
//!   start -> compare its time with the machine's and everything with the ledger -> write and disturb -> SIGKILL
//!         -> bolide check of a copy -> start ...
//! ```
//!
//! The choices follow from the seed; the exact moment of the kill depends on the machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bolide_bench::client::{Client, WireClient};
use fastrand::Rng;

use crate::backups;
use crate::disturb::{self, Disturber, Focus, Tally};
use crate::item_client::{DirectClient, ItemClient};
use crate::process::{Launch, Server};
use crate::shown::{self, OFFSET_MOST_SECONDS};
use crate::verify::{self, Feeds, Writers};
use crate::world::{self, CONTAINERS, Lost, WITH_FEED, World};
use crate::writer::Step;
use crate::{Outcome, Setting};

const WRITERS: usize = 5;
/// The number of writers in direct mode.
const DIRECT_WRITERS: usize = 2;
const WIRE_WRITERS: usize = 2;
/// Steps of each writer before the journal loses its end.
const SABOTAGED_STEPS: usize = 30;
/// How long the work that a kill interrupts may take to begin.
const MAX_WAIT: Duration = Duration::from_secs(60);

pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let rounds = setting.rounds(8, 40, 500);
    let mut kills = Kills::new(setting, place)?;
    let begun = Instant::now();
    let mut order: Vec<Focus> = Vec::new();
    for round in 0..rounds {
        if order.is_empty() {
            order = Focus::ALL.to_vec();
            kills.random.shuffle(&mut order);
        }
        let focus = order.pop().context("just filled")?;
        kills.round(focus).with_context(|| format!("round {round}, killed during {}", focus.name()))?;
        if (round + 1) % 25 == 0 {
            println!("  {} rounds, {:.0} s, {}", round + 1, begun.elapsed().as_secs_f64(), kills.figures);
        }
    }
    // Compares after the last kill.
    kills.compare()?.stop(Duration::from_secs(30))?;
    kills.launch.inspect()?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Outcome::Held(format!("{rounds} kills in {seconds:.0} s, {}", kills.figures)))
}

/// Checks that the harness would notice a loss: the end of the journal is cut off after a kill, which takes acknowledged
/// writes with it.
pub fn sabotage(setting: &Setting, place: &Path) -> Result<Outcome> {
    let rounds = setting.rounds(2, 5, 20);
    let mut told = String::new();
    for round in 0..rounds {
        let place = place.join(round.to_string());
        std::fs::create_dir_all(&place)?;
        let mut kills = Kills::new(setting, &place)?;
        kills.write(SABOTAGED_STEPS)?;
        let bytes = kills.random.u64(20_000..60_000);
        cut_journal(&kills.launch.data, bytes)?;
        match kills.compare() {
            Ok(_) => bail!("{bytes} bytes of the journal are gone, and the comparison did not notice"),
            Err(error) => told = format!("{error:#}"),
        }
        ensure!(told.contains("is lost"), "it was noticed, but not by the comparison: {told}");
    }
    Ok(Outcome::Held(format!("noticed {rounds} times, the last time so: {told}")))
}

/// Cuts this many written bytes off the end of the newest journal file.
fn cut_journal(data: &Path, bytes: u64) -> Result<()> {
    let mut journals: Vec<PathBuf> = std::fs::read_dir(data)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "jnl"))
        .collect();
    journals.sort_by_key(|path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok());
    let newest = journals.last().context("a store has a journal")?;
    let content = std::fs::read(newest)?;
    let length = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    let file = std::fs::OpenOptions::new().write(true).open(newest)?;
    Ok(file.set_len(length.saturating_sub(bytes))?)
}

struct Kills {
    setting_server: PathBuf,
    place: PathBuf,
    launch: Launch,
    world: World,
    all_writers: Writers,
    random: Rng,
    figures: Figures,
    /// Whether a container has a promise that the next round takes back.
    promised: bool,
    /// The work of the last round, if the next start shows whether it was interrupted.
    unfinished: Option<Focus>,
}

#[derive(Default)]
struct Figures {
    acknowledged: u64,
    items: u64,
    events: u64,
    made: u64,
    not_made: u64,
    transactions: u64,
    inspections: u64,
    backups: u64,
    /// Items compared in backups.
    backup_items: u64,
    /// The largest distance of shown time from the machine's after a kill.
    offset_seconds: f64,
    /// Rounds by focus: those in which the kill interrupted the work, out of all.
    struck: BTreeMap<&'static str, (u64, u64)>,
}

impl Figures {
    fn struck(&mut self, focus: Focus, struck: bool) {
        let (cut, all) = self.struck.entry(focus.name()).or_default();
        *cut += u64::from(struck);
        *all += 1;
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let struck = self.struck.iter().map(|(name, (cut, all))| format!("{name} {cut} of {all}"));
        write!(
            formatter,
            "{} writes acknowledged and {} transactions, {} items and {} feed events compared, of the writes on their way {} \
             were made and {} not, {} inspections, {} backups restored and {} items compared in them, shown time at most \
             {:.3} s from the machine's after a kill (allowed: {OFFSET_MOST_SECONDS} s); struck during: {}",
            self.acknowledged,
            self.transactions,
            self.items,
            self.events,
            self.made,
            self.not_made,
            self.inspections,
            self.backups,
            self.backup_items,
            self.offset_seconds,
            struck.collect::<Vec<_>>().join(", ")
        )
    }
}

impl Kills {
    fn new(setting: &Setting, place: &Path) -> Result<Kills> {
        let mut random = Rng::with_seed(setting.seed);
        let launch = Launch::new(&setting.server, place);
        let world = World::default();
        let server = launch.start()?;
        let mut client = Client::connect(&server.address)?;
        world.make(&mut client, &mut WireClient::connect(&server.mongo)?)?;
        let mut all_writers = Writers::new(WRITERS, WIRE_WRITERS, &mut random);
        for (told, at) in all_writers.told.iter_mut().zip(WITH_FEED) {
            world::follow(&mut client, CONTAINERS[at], told)?;
        }
        server.kill()?;
        Ok(Kills {
            setting_server: setting.server.clone(),
            place: place.to_owned(),
            launch,
            world,
            all_writers,
            random,
            figures: Figures::default(),
            promised: false,
            unfinished: None,
        })
    }

    /// Starts the server and compares.
    fn compare(&mut self) -> Result<Server> {
        let server = self.launch.start()?;
        let mut client = Client::connect(&server.address)?;
        self.compare_time(&mut client)?;
        if let Some(focus) = self.unfinished.take() {
            let struck = left_over(focus, &mut client)?;
            self.figures.struck(focus, struck);
        }
        let compared = verify::everything(&self.world, &server, &mut self.all_writers, Feeds::Compared)?;
        self.figures.items += compared.items;
        self.figures.events += compared.events;
        self.figures.made += compared.made;
        self.figures.not_made += compared.not_made;
        Ok(server)
    }

    /// Compares the time that is shown after a kill with the machine's: crashes must not add up (T34).
    fn compare_time(&mut self, client: &mut Client) -> Result<()> {
        let ahead = shown::offset_seconds(client)?;
        ensure!(
            ahead.abs() <= OFFSET_MOST_SECONDS,
            "after a kill shown time is {ahead:+.3} s from the machine's, {OFFSET_MOST_SECONDS} s are allowed"
        );
        self.figures.offset_seconds = self.figures.offset_seconds.max(ahead.abs());
        Ok(())
    }

    fn round(&mut self, focus: Focus) -> Result<()> {
        let server = self.compare()?;
        if std::mem::take(&mut self.promised) {
            disturb::promise(&mut Client::connect(&server.address)?, None)?;
        }
        if focus == Focus::Backup {
            self.all_writers.remember();
        }
        let tally = Tally::default();
        let was_running = self.load(server, focus, &tally)?;
        self.promised = focus == Focus::Compaction;
        match focus {
            Focus::Writes => self.figures.struck(focus, self.all_writers.is_writing()),
            Focus::Policy => self.figures.struck(focus, self.world.is_changing_policy()),
            Focus::Stopping => self.figures.struck(focus, was_running),
            Focus::Backup | Focus::Compaction => {
                self.figures.struck(focus, tally.struck.load(Ordering::Relaxed));
            }
            Focus::Recovery => {
                let struck = self.strike_recovery()?;
                self.figures.struck(focus, struck);
            }
            // The rest of the work shows after the start.
            Focus::Purge | Focus::IndexBuild => self.unfinished = Some(focus),
        }
        if let Some(taken) = tally.backup.lock().as_ref() {
            let (data, launch) = (self.place.join("restored"), &self.launch);
            let items = backups::compare(taken, launch, &data, &self.world, &self.all_writers)?;
            self.figures.backups += 1;
            self.figures.backup_items += items;
        }
        self.all_writers.forget();
        // Inspects a copy, because an inspection recovers the data that it opens: that is left to the server.
        self.launch.inspect_copy(&self.place.join("inspected"))?;
        self.figures.inspections += 1;
        Ok(())
    }

    /// Every writer runs this many steps; then the server is killed.
    fn write(&mut self, steps: usize) -> Result<()> {
        let server = self.launch.start()?;
        let (mut client, mut wire) = (Client::connect(&server.address)?, WireClient::connect(&server.mongo)?);
        self.world.read_clock(&mut client)?;
        for _ in 0..steps {
            for writer in &mut self.all_writers.writers {
                ensure!(writer.step(&self.world, &mut client)? == Step::Answered, "a write is not answered");
            }
            for writer in &mut self.all_writers.wire_writers {
                ensure!(writer.step(&self.world, &mut wire)? == Step::Answered, "a write is not answered");
            }
        }
        server.kill().map(drop)
    }

    /// Writes until the server is killed; returns whether it was running until then.
    fn load(&mut self, server: Server, focus: Focus, tally: &Tally) -> Result<bool> {
        let world = &self.world;
        let before = self.all_writers.acknowledged();
        let Writers { writers, wire_writers, told } = &mut self.all_writers;
        let (crowd_writer, writers) = writers.split_last_mut().context("there are writers")?;
        let (begun, wait) = mpsc::channel();
        let (address, mongo) = (server.address.clone(), server.mongo.clone());
        let disturber = Disturber {
            world,
            client: Client::connect(&address)?,
            server: &self.setting_server,
            place: &self.place,
            address: &address,
            writer: crowd_writer,
            random: self.random.fork(),
            begun,
            tally,
        };
        let fuse = self.random.f64();
        let was_running = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (number, writer) in writers.iter_mut().enumerate() {
                let mut client = item_client(&server, number)?;
                threads.push(scope.spawn(move || drive(|| writer.step(world, &mut *client))));
            }
            for writer in wire_writers.iter_mut() {
                let mut wire = WireClient::connect(&mongo)?;
                threads.push(scope.spawn(move || drive(|| writer.step(world, &mut wire))));
            }
            let client = Client::connect(&address)?;
            threads.push(scope.spawn(move || consume(client, told)));
            threads.push(scope.spawn(move || disturber.run(focus)));
            let lit = wait.recv_timeout(MAX_WAIT);
            std::thread::sleep(focus.window().mul_f64(fuse));
            if focus == Focus::Stopping {
                Command::new("kill").args(["-TERM", &server.id().to_string()]).status()?;
                std::thread::sleep(Duration::from_millis(40).mul_f64(fuse));
            }
            let was_running = server.kill()?;
            let outcomes = threads.into_iter().map(|thread| thread.join().expect("it does not panic"));
            outcomes.collect::<Result<()>>()?;
            ensure!(lit.is_ok(), "{} did not begin", focus.name());
            Ok(was_running)
        })?;
        self.figures.acknowledged += self.all_writers.acknowledged() - before;
        self.figures.transactions = self.all_writers.transactions();
        Ok(was_running)
    }

    /// Kills the server while it starts; returns whether a kill came before it was ready.
    fn strike_recovery(&mut self) -> Result<bool> {
        let mut early = false;
        for _ in 0..self.random.u8(1..4) {
            let delay = Duration::from_micros(self.random.u64(500..60_000));
            let mut child = Command::new(&self.launch.binary)
                .args(["serve", "--test-clock", "--listen", "127.0.0.1:0", "--mongo-listen", "off", "--data"])
                .arg(&self.launch.data)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()?;
            std::thread::sleep(delay);
            child.kill()?;
            early |= child.wait_with_output()?.stdout.is_empty();
        }
        Ok(early)
    }
}

/// Returns whether some of the work is left to do.
fn left_over(focus: Focus, client: &mut Client) -> Result<bool> {
    if focus == Focus::Purge {
        return Ok(client.purge()?.1 > 0);
    }
    let path = format!("/dbs/db/colls/{}", CONTAINERS[world::BULK]);
    let header = "x-ms-documentdb-populatequotainfo: true\r\n";
    let answer = client.request("GET", &path, header, "")?.expect(200)?;
    Ok(answer.index_progress.is_some_and(|percent| percent < 100))
}

/// Connects a writer, by direct mode or by HTTP.
fn item_client(server: &Server, number: usize) -> Result<Box<dyn ItemClient + Send>> {
    Ok(if number < DIRECT_WRITERS {
        Box::new(DirectClient::connect(server)?)
    } else {
        Box::new(Client::connect(&server.address)?)
    })
}

/// Steps until the server is gone.
fn drive(mut step: impl FnMut() -> Result<Step>) -> Result<()> {
    loop {
        match step()? {
            Step::Answered => {}
            Step::Lost => return Ok(()),
            Step::Refused(status, why) => bail!("a write was refused with {status}: {why}"),
        }
    }
}

/// Follows the feeds until the server is gone.
fn consume(mut client: Client, told: &mut [world::FeedState]) -> Result<()> {
    loop {
        for (told, at) in told.iter_mut().zip(WITH_FEED) {
            match world::follow(&mut client, CONTAINERS[at], told) {
                Err(error) if error.is::<Lost>() => return Ok(()),
                other => other?,
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
