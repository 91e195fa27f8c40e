//! Users that insert, read and write, look for expired items, or exceed their throughput.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::Result;
use bolide_bench::client::{Client, Server};

use crate::purge::Lines;

/// Items in one logical partition.
const PARTITION_ITEMS: u64 = 1000;
const BATCH_ITEMS: u64 = 100;
/// The number of users of each kind, and how often each acts.
const USERS: u64 = 4;
const PERIOD: Duration = Duration::from_millis(20);
/// The number of users that look for expired items.
const SEEKERS: u64 = 16;
const LIVING: u64 = 1000;

/// How many items a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    OfMany,
    OfOne,
}

/// Inserts items `0..items` over a few connections. Returns the server's CPU seconds for each.
pub fn insert(server: &Server, container: &str, items: u64, requests: Requests) -> Result<f64> {
    const WRITERS: u64 = 4;
    let cpu = server.cpu_seconds()?;
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| -> Result<()> {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    let mut client = server.client()?;
                    loop {
                        let first = next.fetch_add(BATCH_ITEMS, Ordering::Relaxed);
                        if first >= items {
                            return Ok(());
                        }
                        let pk = (first / PARTITION_ITEMS).to_string();
                        let last = (first + BATCH_ITEMS).min(items);
                        let bodies: Vec<String> = (first..last).map(|id| body(id, &pk, "")).collect();
                        match requests {
                            Requests::OfMany => client.batch(container, &pk, &bodies)?,
                            Requests::OfOne => {
                                for body in &bodies {
                                    client.upsert(container, &pk, body)?.expect(201)?;
                                }
                            }
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer ends in order"))
    })?;
    Ok((server.cpu_seconds()? - cpu) / items as f64)
}

/// Returns an item of about 400 bytes.
fn body(id: u64, pk: &str, more: &str) -> String {
    let noise = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (name, text) = (format!("{noise:016x}"), format!("{noise:032x}").repeat(8));
    format!(
        "{{\"id\":\"{id}\",\"pk\":\"{pk}\",\"name\":\"{name}\",\"n\":{},\"text\":\"{text}\"{more}}}",
        noise % 1000
    )
}

/// The operations of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

/// Latencies of one kind.
#[derive(Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    pub fn add(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    /// Returns a percentile in microseconds.
    pub fn percentile(&self, percent: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = ((sorted.len() as f64 * percent / 100.0) as usize).min(sorted.len().saturating_sub(1));
        sorted.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
    }
}

/// The figures of one phase.
#[derive(Default)]
pub struct Figures {
    reads: Latencies,
    writes: Latencies,
    /// Expired items that a user was shown.
    pub ghosts: u64,
    looks: u64,
}

impl Figures {
    /// Adds the figures of another phase.
    pub fn add(&mut self, other: Figures) {
        self.reads.0.extend(other.reads.0);
        self.writes.0.extend(other.writes.0);
        self.ghosts += other.ghosts;
        self.looks += other.looks;
    }

    pub fn of(&self, kind: Kind) -> &Latencies {
        match kind {
            Kind::Read => &self.reads,
            Kind::Write => &self.writes,
        }
    }

    pub fn show(&self, when: &str, lines: &mut Lines) {
        for kind in [Kind::Read, Kind::Write] {
            let latencies = self.of(kind);
            let [p50, p99, p999, max] =
                [50.0, 99.0, 99.9, 100.0].map(|percent| latencies.percentile(percent));
            let count = latencies.0.len();
            lines.say(format!(
                "{when}: {count} {kind:?}s, p50 {p50:.0} us, p99 {p99:.0} us, p99.9 {p999:.0} us, max {max:.0} us"
            ));
        }
        lines.say(format!("{when}: {} looks at expiring items", self.looks));
    }
}

/// Running users.
pub struct Users {
    figures: Arc<Mutex<Figures>>,
    over: Arc<AtomicBool>,
    /// Set when the expiring items have expired: one that is shown afterwards is a ghost.
    pub have_expired: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Users {
    pub fn start(server: &Server, container: &str, expiring_items: u64) -> Result<Users> {
        let mut client = server.client()?;
        for id in 0..LIVING {
            client.upsert(container, "living", &body(id, "living", ",\"ttl\":-1"))?.expect(201)?;
        }
        let mut users = Users {
            figures: Arc::default(),
            over: Arc::default(),
            have_expired: Arc::default(),
            threads: Vec::new(),
        };
        for number in 0..USERS {
            for kind in [Kind::Read, Kind::Write] {
                let (client, container) = (server.client()?, container.to_owned());
                users.spawn(move |figures, over, _| user(client, &container, kind, number, figures, over));
            }
        }
        for number in 0..SEEKERS {
            let (client, container) = (server.client()?, container.to_owned());
            users.spawn(move |figures, over, have_expired| {
                seeker(client, &container, number, expiring_items, figures, over, have_expired)
            });
        }
        Ok(users)
    }

    fn spawn<W>(&mut self, work: W)
    where
        W: FnOnce(&Mutex<Figures>, &AtomicBool, &AtomicBool) -> Result<()> + Send + 'static,
    {
        let (figures, over, have_expired) =
            (Arc::clone(&self.figures), Arc::clone(&self.over), Arc::clone(&self.have_expired));
        self.threads.push(std::thread::spawn(move || work(&figures, &over, &have_expired)));
    }

    /// Returns the figures since the last call.
    pub fn take(&self) -> Figures {
        std::mem::take(&mut *self.figures.lock().expect("no thread panics while it holds the lock"))
    }

    pub fn stop(self) {
        self.over.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().expect("a user ends in order").expect("a user is served");
        }
    }
}

/// Reads or writes a live item at regular times, whether or not the last answer was late.
fn user(
    mut client: Client,
    container: &str,
    kind: Kind,
    number: u64,
    figures: &Mutex<Figures>,
    over: &AtomicBool,
) -> Result<()> {
    let mut due = Instant::now() + PERIOD * number as u32 / USERS as u32;
    let mut id = number;
    while !over.load(Ordering::Relaxed) {
        sleep(due.saturating_duration_since(Instant::now()));
        id = (id * 7919 + 13) % LIVING;
        match kind {
            Kind::Read => client.read(container, "living", &id.to_string())?.expect(200)?,
            Kind::Write => {
                client.upsert(container, "living", &body(id, "living", ",\"ttl\":-1"))?.expect(200)?
            }
        };
        // From when it was due: a late start counts against the server, too.
        let latency = due.elapsed();
        let mut figures = figures.lock().expect("no thread panics while it holds the lock");
        match kind {
            Kind::Read => figures.reads.add(latency),
            Kind::Write => figures.writes.add(latency),
        }
        due += PERIOD;
    }
    Ok(())
}

/// Looks for items with a time to live that should be expired.
fn seeker(
    mut client: Client,
    container: &str,
    number: u64,
    expiring_items: u64,
    figures: &Mutex<Figures>,
    over: &AtomicBool,
    have_expired: &AtomicBool,
) -> Result<()> {
    let mut id = number;
    while !over.load(Ordering::Relaxed) {
        id = (id.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)) >> 1;
        let item = id % expiring_items;
        // Read before the request: an item that expires during it may be shown.
        let should_be_hidden = have_expired.load(Ordering::SeqCst);
        let answer = client.read(container, &(item / PARTITION_ITEMS).to_string(), &item.to_string())?;
        let mut figures = figures.lock().expect("no thread panics while it holds the lock");
        figures.looks += 1;
        figures.ghosts += u64::from(should_be_hidden && answer.status == 200);
        drop(figures);
        sleep(PERIOD);
    }
    Ok(())
}

/// The figures of users that exceed their throughput.
pub struct Served {
    served: u64,
    throttled: u64,
    units: f64,
    seconds: f64,
}

impl fmt::Display for Served {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Served { served, throttled, units, seconds } = self;
        write!(
            out,
            "{:.0} requests/s served with {:.0} RU/s, {:.0}/s throttled",
            *served as f64 / seconds,
            units / seconds,
            *throttled as f64 / seconds
        )
    }
}

/// Reads as fast as answers come.
pub fn saturate(server: &Server, time: Duration) -> Result<Served> {
    let began = Instant::now();
    let mut client = server.client()?;
    let (mut served, mut throttled, mut units) = (0, 0, 0.0);
    while began.elapsed() < time {
        let answer = client.read("c", "u", "living")?;
        match answer.status {
            200 => {
                served += 1;
                units += answer.charge;
            }
            429 => {
                throttled += 1;
                sleep(Duration::from_millis(1));
            }
            _ => drop(answer.expect(200)?),
        }
    }
    Ok(Served { served, throttled, units, seconds: began.elapsed().as_secs_f64() })
}
