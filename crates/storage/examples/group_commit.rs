//! Measures how much many writers gain from sharing one synced commit: documents of 1 KB in six entries, one job each.
//! And the cost of a lease renewal for a request that has to wait for it.
//!
//! `cargo run --release -p bolide-storage --example group_commit [directory]`

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use storage::{
    BootId, ClockOptions, Durability, EmbeddedOptions, EmbeddedStore, Error, Keyspace, Lanes, ManualClock,
    Store, Time, Transaction, WallClock, transact,
};

const SECONDS: u64 = 3;
const ROUNDS: usize = 3;

fn main() -> Result<(), Error> {
    let parent = std::env::args().nth(1).unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let directory = Path::new(&parent).join(format!("bolide-group-commit-{}", std::process::id()));
    start(&directory.join("empty"))?;
    renewals(&directory.join("renewals"))?;
    println!(
        "{:>10} {:>8} {:>10} {:>9} {:>9} {:>9} {:>10}",
        "", "threads", "docs/s", "p50 us", "p99 us", "max us", "docs/group"
    );
    for round in 0..ROUNDS {
        for (durability, threads) in [
            (Durability::Sync, 1),
            (Durability::Sync, 16),
            (Durability::Sync, 64),
            (Durability::Buffered, 16),
        ] {
            let path = directory.join(format!("{round}-{durability:?}-{threads}"));
            measure(&path, durability, threads)?;
        }
    }
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
    Ok(())
}

/// Measures how long an empty store takes to open and close, and the memory of the process with it open (Linux).
fn start(path: &Path) -> Result<(), Error> {
    for what in ["a new store", "the same again"] {
        let begin = now();
        let store =
            EmbeddedStore::open(EmbeddedOptions::new(path, ClockOptions::new(Arc::new(Machine::new()))))?;
        store.now()?;
        let opened = begin.elapsed();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("VmRSS: unknown");
        let begin = now();
        store.close()?;
        println!("{what}: ready in {opened:?}, closed in {:?}, {memory}", begin.elapsed());
    }
    Ok(())
}

/// Measures how long reading the clock takes when the lease has run out, and when it has not.
fn renewals(path: &Path) -> Result<(), Error> {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(1_800_000_000)));
    let store = EmbeddedStore::open(EmbeddedOptions::new(path, ClockOptions::new(clock.clone())))?;
    for (what, passed) in [("within the lease", Duration::ZERO), ("with a renewal", Duration::from_secs(3))] {
        let mut looks: Vec<Duration> = Vec::new();
        for _ in 0..500 {
            clock.advance(passed);
            let begin = now();
            store.now()?;
            looks.push(begin.elapsed());
        }
        looks.sort_unstable();
        println!("a look {what}: p50 {:?}, p99 {:?}", looks[250], looks[495]);
    }
    store.close()
}

fn measure(path: &Path, durability: Durability, threads: u64) -> Result<(), Error> {
    let mut options = EmbeddedOptions::new(path, ClockOptions::new(Arc::new(Machine::new())));
    options.durability = durability;
    let store = EmbeddedStore::open(options)?;
    let next = AtomicU64::new(0);
    let begin = now();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let write = || {
            let mut times = Vec::new();
            while begin.elapsed() < Duration::from_secs(SECONDS) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let before = now();
                let ticket = transact(&store, Lanes::one(number), move |transaction| {
                    insert(transaction, number);
                    Ok::<_, Error>(())
                });
                ticket.wait()?;
                times.push(before.elapsed());
            }
            Ok::<_, Error>(times)
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(write)).collect();
        let times = workers.into_iter().map(|worker| worker.join().expect("no writer panics"));
        times.collect::<Result<Vec<_>, Error>>().map(|times| times.concat())
    })?;
    let elapsed = begin.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_micros();
    let stats = store.stats();
    println!(
        "{:>10} {threads:>8} {:>10.0} {:>9} {:>9} {:>9} {:>10.1}",
        format!("{durability:?}"),
        times.len() as f64 / elapsed,
        at(0.5),
        at(0.99),
        at(1.0),
        stats.jobs as f64 / stats.commits as f64
    );
    store.close()
}

/// A document and the entries around it.
fn insert(transaction: &mut Transaction<'_>, number: u64) {
    let scattered = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    let sequence = transaction.next_sequence();
    transaction.put(Keyspace::Item, number.to_be_bytes(), vec![number as u8; 1024]);
    transaction.put(
        Keyspace::Id,
        [b"partition key and id".as_slice(), &scattered].concat(),
        scattered.to_vec(),
    );
    for term in 0..2_u8 {
        transaction.put(
            Keyspace::Index,
            [&[term; 24], scattered.as_slice(), &number.to_be_bytes()].concat(),
            "",
        );
    }
    transaction.put(
        Keyspace::Queue,
        [transaction.time().seconds(), number].map(u64::to_be_bytes).concat(),
        "",
    );
    transaction.put(Keyspace::Feed, sequence.to_be_bytes(), number.to_be_bytes().to_vec());
}

/// A clock that starts at a fixed time and runs with the machine.
struct Machine(Instant);

impl Machine {
    fn new() -> Self {
        Self(now())
    }
}

impl WallClock for Machine {
    fn wall(&self) -> Time {
        Time::from_seconds(1_800_000_000).plus(self.0.elapsed())
    }

    fn boot_time(&self) -> Duration {
        self.0.elapsed()
    }

    fn boot_id(&self) -> Option<BootId> {
        None
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement measures time")]
fn now() -> Instant {
    Instant::now()
}
