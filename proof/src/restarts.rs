//! Stops in order under load in direct mode: SIGTERM, and started again on the same data.
//!
//! Sixteen writers make items, each with several frames in flight. The vendor's client reports a 503 when a connection ends
//! before its answer, and repeats no write; so a server that stops must answer everything that it has done. Every item has
//! an id of its own, and at the end exactly those exist whose creation was answered: none whose frame was refused (with 410
//! by a server that stops), and none whose frame was not answered.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bolide_bench::client::Client;
use direct::{Blocking, Call};
use fastrand::Rng;
use parking_lot::Mutex;
use rntbd::OperationType;

use crate::item_client::account;
use crate::items::{self, Wanted};
use crate::process::{Launch, Server};
use crate::writer::GONE;
use crate::{Outcome, Setting, world};

const WRITERS: usize = 16;
/// Frames of a writer without an answer so far.
const IN_FLIGHT: usize = 8;
const CONTAINER: &str = "restarts";
const ITEMS: &str = "dbs/db/colls/restarts/docs";
/// How long a stop may take on a busy machine.
const STOP_MOST: Duration = Duration::from_secs(60);
/// The log line for connections that are left when the limit for draining is over: the server closes them whatever they
/// wait for.
const NOT_DRAINED: &str = "connections were still busy";
/// How many frames a writer still sends after it was told of the stop, so that frames meet connections that are being
/// closed.
const LATE_FRAMES: u32 = 3;
const LATE_PAUSE_MS: u64 = 700;

pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let restarts = setting.rounds(4, 12, 50);
    let launch = Launch::new(&setting.server, place);
    let server = launch.start()?;
    let mut client = Client::connect(&server.address)?;
    client.database("db")?;
    client.container(CONTAINER, "", "")?;
    let target = Mutex::new(Target::of(&server)?);
    let mut random = Rng::with_seed(setting.seed);
    let over = AtomicBool::new(false);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|number| Writer::new(number, random.fork())).collect();
    let (server, stop) = std::thread::scope(|scope| {
        let threads: Vec<_> =
            writers.iter_mut().map(|writer| scope.spawn(|| writer.write(&target, &over))).collect();
        let restarted = restart(&launch, server, &target, restarts, &mut random);
        // The server runs until now, or has failed: writers end in both cases.
        over.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().expect("it does not panic")?;
        }
        restarted
    })?;
    let figures = compare(&server, &writers)?;
    ensure!(server.stop(STOP_MOST)?.success(), "the server did not end in order");
    launch.inspect()?;
    let stop = stop.as_secs_f64();
    Ok(Outcome::Held(format!("{restarts} restarts, {figures}; the longest stop took {stop:.1} s")))
}

/// Stops the server and starts it again, so many times; returns the last one, and how long the longest stop took.
fn restart(
    launch: &Launch,
    mut server: Server,
    target: &Mutex<Target>,
    restarts: u64,
    random: &mut Rng,
) -> Result<(Server, Duration)> {
    let mut longest = Duration::ZERO;
    for round in 0..restarts {
        std::thread::sleep(Duration::from_millis(random.u64(150..500)));
        let began = Instant::now();
        let status = server.stop(STOP_MOST).with_context(|| format!("stop {round}"))?;
        ensure!(status.success(), "stop {round}: the server ended with {status}");
        ensure!(!launch.logged().contains(NOT_DRAINED), "stop {round}: {}", launch.last_words());
        longest = longest.max(began.elapsed());
        server = launch.start()?;
        *target.lock() = Target::of(&server)?;
    }
    std::thread::sleep(Duration::from_millis(200));
    Ok((server, longest))
}

/// The address of the server, or of its predecessor during a restart.
#[derive(Clone)]
struct Target {
    address: String,
    root: Vec<u8>,
}

impl Target {
    fn of(server: &Server) -> Result<Target> {
        Ok(Target { address: server.address.clone(), root: server.root_certificate()? })
    }
}

/// A writer, and the answers that its client got.
struct Writer {
    number: usize,
    random: Rng,
    frames: u64,
    made: Vec<String>,
    /// Items whose creation was refused, by status.
    refused: Vec<(u32, String)>,
    unanswered: Vec<String>,
    /// Connections that were not made, or not opened.
    no_connection: u64,
}

impl Writer {
    fn new(number: usize, random: Rng) -> Writer {
        let (made, refused, unanswered) = (Vec::new(), Vec::new(), Vec::new());
        Writer { number, random, frames: 0, made, refused, unanswered, no_connection: 0 }
    }

    /// Writes until it is over, by one connection after the other.
    fn write(&mut self, target: &Mutex<Target>, over: &AtomicBool) -> Result<()> {
        while !over.load(Ordering::Relaxed) {
            let Target { address, root } = target.lock().clone();
            match Blocking::connect(address.parse()?, &root, account()) {
                Ok(mut connection) => self.talk(&mut connection, over)?,
                Err(_) => {
                    self.no_connection += 1;
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        Ok(())
    }

    /// Writes until the connection ends.
    fn talk(&mut self, connection: &mut Blocking, over: &AtomicBool) -> Result<()> {
        let mut waiting = HashMap::new();
        let mut late = None;
        while self.exchange(connection, over, &mut waiting, &mut late)? {}
        // A connection to which nothing more can be sent may still have answers.
        while !waiting.is_empty() && self.receive(connection, &mut waiting, &mut late)? {}
        self.unanswered.extend(waiting.into_values());
        Ok(())
    }

    /// Sends the next frame if allowed and takes an answer; returns whether the connection goes on. `late` counts the
    /// frames sent since one was answered with 410.
    fn exchange(
        &mut self,
        connection: &mut Blocking,
        over: &AtomicBool,
        waiting: &mut HashMap<u32, String>,
        late: &mut Option<u32>,
    ) -> Result<bool> {
        let is_over = over.load(Ordering::Relaxed);
        while late.is_none() && !is_over && waiting.len() < IN_FLIGHT {
            if !self.send(connection, waiting) {
                return Ok(false);
            }
        }
        if waiting.is_empty() {
            match late {
                // Writers that send nothing more see the connection end.
                Some(sent) if *sent < LATE_FRAMES && self.number.is_multiple_of(2) && !is_over => {
                    *sent += 1;
                    std::thread::sleep(Duration::from_millis(self.random.u64(..LATE_PAUSE_MS)));
                    if !self.send(connection, waiting) {
                        return Ok(false);
                    }
                }
                Some(_) => {}
                None => return Ok(false),
            }
        }
        self.receive(connection, waiting, late)
    }

    /// Takes an answer; returns whether there was one.
    fn receive(
        &mut self,
        connection: &mut Blocking,
        waiting: &mut HashMap<u32, String>,
        late: &mut Option<u32>,
    ) -> Result<bool> {
        let Ok(Some(reply)) = connection.reply() else { return Ok(false) };
        let id = reply.number.and_then(|number| waiting.remove(&number));
        let id = id.context("an answer to no request")?;
        match reply.status {
            201 => self.made.push(id),
            status => {
                if status == u32::from(GONE) {
                    late.get_or_insert(0);
                }
                self.refused.push((status, id));
            }
        }
        Ok(true)
    }

    /// Sends a frame that makes an item; returns whether it could be sent.
    fn send(&mut self, connection: &mut Blocking, waiting: &mut HashMap<u32, String>) -> bool {
        self.frames += 1;
        let (id, pk) = (format!("w{}-{}", self.number, self.frames), format!("p{}", self.number));
        let body = items::body(&id, &pk, self.frames, self.random.usize(20..4000), Wanted::Inherited);
        let key = format!("[\"{pk}\"]");
        let call = Call::new(OperationType::Create, ITEMS).key(&key).payload(&body);
        match connection.send(&call) {
            Ok(number) => {
                waiting.insert(number, id);
                true
            }
            // A part of it may have been sent, or all of it.
            Err(_) => {
                self.unanswered.push(id);
                false
            }
        }
    }
}

/// Compares the stored items with the writers' answers; returns the figures.
fn compare(server: &Server, writers: &[Writer]) -> Result<String> {
    let mut client = Client::connect(&server.address)?;
    let mut found: HashSet<String> = world::living(&mut client, CONTAINER, i64::MIN)?.into_keys().collect();
    for id in writers.iter().flat_map(|writer| &writer.made) {
        ensure!(found.remove(id), "item {id} was made, as was answered, and is not there");
    }
    for (status, id) in writers.iter().flat_map(|writer| &writer.refused) {
        ensure!(!found.contains(id), "the frame that makes {id} was answered with {status}, and carried out");
        ensure!([u32::from(GONE), 429].contains(status), "{status} for the frame that makes {id}");
    }
    for id in writers.iter().flat_map(|writer| &writer.unanswered) {
        ensure!(!found.contains(id), "the frame that makes {id} was not answered, and carried out");
    }
    if let Some(id) = found.iter().next() {
        bail!("no writer made item {id}");
    }
    let count = |of: fn(&Writer) -> usize| writers.iter().map(of).sum::<usize>();
    let with = |wanted: u32| {
        writers.iter().flat_map(|writer| &writer.refused).filter(|(status, _)| *status == wanted).count()
    };
    let (made, gone) = (count(|writer| writer.made.len()), with(GONE.into()));
    ensure!(made > 0 && gone > 0, "{made} frames were carried out and {gone} were answered with 410");
    Ok(format!(
        "{made} frames of {WRITERS} writers carried out and answered; not carried out were the {gone} answered with 410, \
         the {} answered with 429 and the {} not answered; {} connections were not made",
        with(429),
        count(|writer| writer.unanswered.len()),
        writers.iter().map(|writer| writer.no_connection).sum::<u64>(),
    ))
}
