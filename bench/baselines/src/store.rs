//! The bare store: commits of the same entries that the server wrote, with nothing above.
//!
//! `DATA` is the directory of a server that was stopped in order after it had inserted documents. Its entries, shuffled
//! within each keyspace, are dealt out so that each commit puts as many into each keyspace as an insert does. Entries of
//! which there are fewer than documents (counters) are rewritten by every commit, as inserts do.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bolide_bench::client::cpu_seconds_of;
use bolide_bench::documents::Random;
use bytes::Bytes;
use storage::{
    ClockOptions, Direction, EmbeddedOptions, EmbeddedStore, Error, KeyRange, Keyspace, Lanes, RealClock,
    Store, transact,
};

/// Commits before the clock starts.
const WARM_UP: usize = 20;
/// The fewest commits of a run. On a slow disk it takes longer than the caller asked for, until it has these or
/// [`MAX_DURATION`] is over.
const LEAST: u64 = 5000;
const MAX_DURATION: Duration = Duration::from_secs(30);

struct Deck {
    keyspace: Keyspace,
    entries: Vec<(Bytes, Bytes)>,
    /// The number of entries in each commit.
    share: usize,
}

pub fn run(data: &Path, writers: usize, seconds: u64) -> Result<()> {
    let (decks, documents) = read(data)?;
    let place = std::env::temp_dir().join(format!("bolide-bench-store-{}", std::process::id()));
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(options(&place))?);
    let (over, next, waiting) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    // The first commits make the keyspaces, which takes many syncs.
    for turn in 0..WARM_UP {
        commit(store.as_ref(), &decks, turn)?;
    }
    let cpu = cpu_seconds_of(std::process::id())?;
    let began = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        for _ in 0..writers {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    if turn >= documents {
                        break;
                    }
                    let asked = Instant::now();
                    commit(store.as_ref(), &decks, turn as usize).expect("a commit succeeds");
                    waiting.fetch_add(asked.elapsed().as_micros() as u64, Ordering::Relaxed);
                }
            });
        }
        let enough = || {
            let done = next.load(Ordering::Relaxed);
            let elapsed = began.elapsed();
            done >= documents || elapsed > MAX_DURATION || (done >= LEAST && elapsed.as_secs() >= seconds)
        };
        while !enough() {
            std::thread::sleep(Duration::from_millis(20));
        }
        over.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    let elapsed = began.elapsed().as_secs_f64();
    let cpu = settled()? - cpu;
    let commits = next.load(Ordering::Relaxed).min(documents) as f64;
    let entries: usize = decks.iter().map(|deck| deck.share).sum();
    println!(
        "cpu_us={:.1} per_second={:.0} mean_us={:.0} entries={entries} commits={commits}",
        cpu * 1e6 / commits,
        commits / elapsed,
        waiting.load(Ordering::Relaxed) as f64 / commits
    );
    store.close()?;
    std::fs::remove_dir_all(&place)?;
    Ok(())
}

fn options(path: &Path) -> EmbeddedOptions {
    EmbeddedOptions::new(path, ClockOptions::new(Arc::new(RealClock::new())))
}

/// Returns all entries of a store by keyspace, and how many documents there are.
fn read(data: &Path) -> Result<(Vec<Deck>, u64)> {
    let store = EmbeddedStore::open(options(data)).context("cannot open what the server left")?;
    let snapshot = store.snapshot()?;
    let mut random = Random::new(3);
    let mut decks = Vec::new();
    for keyspace in Keyspace::ALL.into_iter().filter(|keyspace| *keyspace != Keyspace::Catalog) {
        let scan = snapshot.scan(keyspace, KeyRange::all(), Direction::Forward);
        let mut entries = scan.collect::<std::result::Result<Vec<_>, _>>()?;
        for at in (1..entries.len()).rev() {
            entries.swap(at, random.below(at as u64 + 1) as usize);
        }
        if !entries.is_empty() {
            decks.push(Deck { keyspace, entries, share: 0 });
        }
    }
    let items = decks.iter().find(|deck| deck.keyspace == Keyspace::Item).context("no items")?.entries.len();
    ensure!(items > 0, "no items");
    for deck in &mut decks {
        deck.share = (deck.entries.len() as f64 / items as f64).round().max(1.0) as usize;
    }
    drop(snapshot);
    store.close()?;
    Ok((decks, items as u64))
}

fn commit(store: &dyn Store, decks: &[Deck], turn: usize) -> Result<()> {
    let mut changes: Vec<(Keyspace, Bytes, Bytes)> = Vec::with_capacity(32);
    for deck in decks {
        for at in turn * deck.share..(turn + 1) * deck.share {
            let (key, value) = &deck.entries[at % deck.entries.len()];
            changes.push((deck.keyspace, key.clone(), value.clone()));
        }
    }
    let ticket = transact(store, Lanes::one(turn as u64), move |transaction| {
        transaction.next_sequence();
        for (keyspace, key, value) in changes {
            transaction.put(keyspace, key, value);
        }
        Ok::<(), Error>(())
    });
    Ok(ticket.wait()?)
}

/// Returns the CPU seconds of this process once flushes and compactions are done.
fn settled() -> Result<f64> {
    let (mut last, mut calm) = (cpu_seconds_of(std::process::id())?, 0);
    for _ in 0..60 {
        std::thread::sleep(Duration::from_millis(50));
        let now = cpu_seconds_of(std::process::id())?;
        calm = if now - last < 0.011 { calm + 1 } else { 0 };
        last = now;
        if calm == 3 {
            break;
        }
    }
    Ok(last)
}
