//! Measures three values of an index entry about its item's expiry, on the embedded store (decision 0004).
//!
//! - `exact`: sequence, time and ttl of the item's last write (16 bytes). The entry alone decides; every write of the
//!   item rewrites all its entries.
//! - `bound`: time and ttl of the write that made the entry (8 bytes). It says "not expired before"; after that the
//!   item's header is read. A write rewrites only entries whose term changed.
//! - `none`: nothing. The item's header is always read.
//!
//! Commits are buffered and pipelined, so that the figures show what the entries cost, not the disk's sync. CPU time
//! is the whole process's, flushes and compactions included, some of which spill into the next phase. Counts are the
//! best of five on a store that was reopened: a warm cache.
//!
//! `cargo run --release -p bolide-storage --example index_entry [directory]`

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use storage::{
    ClockOptions, Direction, Durability, EmbeddedOptions, EmbeddedStore, Error, KeyRange, Keyspace, Lanes,
    ManualClock, Store, Time, Transaction, transact,
};

const ITEMS: u64 = 200_000;
const REPLACES: u64 = 50_000;
const TERMS: u16 = 10;
const BODY_BYTES: usize = 1024;
/// The share of one term's entries that a count reads.
const COUNTED: u64 = ITEMS / 10;
const ROUNDS: usize = 3;
const COUNTS: usize = 5;
/// Jobs in flight at the same time.
const WINDOW: usize = 256;

const WRITTEN: u32 = 1_000_000;
const REPLACED: u32 = WRITTEN + 50;
const ALL_LIVE: u32 = REPLACED + 10;
/// Odd items expire after this time, even ones practically never.
const SHORT_TTL: u32 = 100;
const LONG_TTL: u32 = 1_000_000;
const HALF_EXPIRED: u32 = WRITTEN + 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Exact,
    Bound,
    None,
}

const ENTRIES: [Entry; 3] = [Entry::Exact, Entry::Bound, Entry::None];

const ROWS: [&str; 8] = [
    "insert, CPU us",
    "replace 0 of 10, CPU us",
    "replace 1 of 10, CPU us",
    "count, all live, us/entry",
    "count, all live, bounds passed",
    "count, half expired, us/entry",
    "insert+replace, wall us/doc",
    "tables on disk, MB",
];

fn main() -> Result<(), Error> {
    let parent = std::env::args().nth(1).unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let directory = Path::new(&parent).join(format!("bolide-index-entry-{}", std::process::id()));
    let mut results = ENTRIES.map(|_| [[0.0; ROWS.len()]; ROUNDS]);
    for round in 0..ROUNDS {
        for (results, entry) in results.iter_mut().zip(ENTRIES) {
            let path = directory.join(format!("{entry:?}-{round}"));
            results[round] = measure(&path, entry)?;
            eprintln!("round {round} {entry:?}: {:.2?}", results[round]);
            std::fs::remove_dir_all(&path).expect("the directory is ours");
        }
    }
    println!(
        "{:<32} {:>16} {:>16} {:>16}   ratios to exact",
        "median of 3 (range)", "exact", "bound", "none"
    );
    for (row, name) in ROWS.into_iter().enumerate() {
        let figures = results.map(|rounds| {
            let mut figures = rounds.map(|figures| figures[row]);
            figures.sort_by(f64::total_cmp);
            figures
        });
        let text = figures.map(|[low, median, high]| format!("{median:.2} ({low:.2}-{high:.2})"));
        let [exact, bound, none] = figures.map(|figures| figures[1]);
        println!(
            "{name:<32} {:>16} {:>16} {:>16}   1 : {:.2} : {:.2}",
            text[0],
            text[1],
            text[2],
            bound / exact,
            none / exact
        );
    }
    Ok(())
}

fn measure(path: &Path, entry: Entry) -> Result<[f64; ROWS.len()], Error> {
    let store = open(path)?;
    let begin = now();
    let inserted = cpu(|| {
        write_all(&store, 0..ITEMS, move |tx, item| {
            insert(tx, entry, item);
            Ok(())
        })
    })?;
    let mut random = fastrand::Rng::with_seed(7);
    let mut some = || (0..REPLACES).map(|_| random.u64(..ITEMS)).collect::<Vec<_>>().into_iter();
    let replaced = cpu(|| write_all(&store, some(), move |tx, item| replace(tx, entry, item, false)))?;
    let changed = cpu(|| write_all(&store, some(), move |tx, item| replace(tx, entry, item, true)))?;
    let wall = begin.elapsed().as_secs_f64() * 1e6 / (ITEMS + 2 * REPLACES) as f64;
    store.close()?;
    // Twice, so that everything the first start found to compact is compacted.
    open(path)?.close()?;
    let store = open(path)?;
    let live = best_count(&store, entry, ALL_LIVE, false, COUNTED)?;
    let passed = best_count(&store, entry, ALL_LIVE, true, COUNTED)?;
    let half = best_count(&store, entry, HALF_EXPIRED, false, COUNTED / 2)?;
    store.close()?;
    let megabytes = table_bytes(&path.join("keyspaces")) as f64 / 1e6;
    let each = |total: f64, count: u64| total * 1e6 / count as f64;
    Ok([
        each(inserted, ITEMS),
        each(replaced, REPLACES),
        each(changed, REPLACES),
        live,
        passed,
        half,
        wall,
        megabytes,
    ])
}

fn open(path: &Path) -> Result<EmbeddedStore, Error> {
    let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1_800_000_000))));
    let mut options = EmbeddedOptions::new(path, clock);
    options.durability = Durability::Buffered;
    EmbeddedStore::open(options)
}

/// One job per item, some in flight at the same time.
fn write_all(
    store: &dyn Store,
    items: impl Iterator<Item = u64>,
    write: impl Fn(&mut Transaction<'_>, u64) -> Result<(), Error> + Copy + Send + 'static,
) -> Result<(), Error> {
    let mut tickets = VecDeque::with_capacity(WINDOW);
    for item in items {
        if tickets.len() == WINDOW {
            tickets.pop_front().map_or(Ok(()), storage::Ticket::wait)?;
        }
        tickets.push_back(transact(store, Lanes::one(item), move |transaction| write(transaction, item)));
    }
    tickets.into_iter().try_for_each(storage::Ticket::wait)
}

fn insert(transaction: &mut Transaction<'_>, entry: Entry, item: u64) {
    let header = header(transaction.next_sequence(), WRITTEN, item);
    transaction.put(Keyspace::Item, item_key(item), body(&header, item, 0));
    for term in 0..TERMS {
        transaction.put(Keyspace::Index, index_key(term, item, 0), entry.value(&header));
    }
}

/// A replace reads the old item, as it must to know the old terms, and changes one term or none.
fn replace(transaction: &mut Transaction<'_>, entry: Entry, item: u64, change: bool) -> Result<(), Error> {
    let old = storage::Read::get(transaction, Keyspace::Item, &item_key(item))?.expect("the item is there");
    let version = old[16];
    let header = header(transaction.next_sequence(), REPLACED, item);
    let new_version = if change { version.wrapping_add(1) } else { version };
    transaction.put(Keyspace::Item, item_key(item), body(&header, item, new_version));
    if change {
        // The term that changes is the last; the count reads the first.
        transaction.remove(Keyspace::Index, index_key(TERMS - 1, item, version));
        transaction.put(Keyspace::Index, index_key(TERMS - 1, item, new_version), entry.value(&header));
    }
    if entry == Entry::Exact {
        for term in 0..TERMS - u16::from(change) {
            let version = if term == TERMS - 1 { version } else { 0 };
            transaction.put(Keyspace::Index, index_key(term, item, version), entry.value(&header));
        }
    }
    Ok(())
}

/// Returns the best of several counts.
fn best_count(store: &dyn Store, entry: Entry, time: u32, passed: bool, expected: u64) -> Result<f64, Error> {
    let mut best = f64::INFINITY;
    for _ in 0..COUNTS {
        best = best.min(count(store, entry, time, passed, expected)?);
    }
    Ok(best)
}

/// Counts the live items in a tenth of one term's entries; returns microseconds per entry read.
fn count(store: &dyn Store, entry: Entry, time: u32, passed: bool, expected: u64) -> Result<f64, Error> {
    let snapshot = store.snapshot()?;
    let begin = now();
    let range = KeyRange::between(index_prefix(0, 0), index_prefix(0, u64::MAX / 10));
    let (mut looked, mut living) = (0_u64, 0_u64);
    for found in snapshot.scan(Keyspace::Index, range, Direction::Forward) {
        let (key, value) = found?;
        looked += 1;
        let settled = match entry {
            Entry::Exact => Some(is_living(&value[8..], time)),
            Entry::Bound => (!passed && is_living(&value, time)).then_some(true),
            Entry::None => None,
        };
        let is_living = if let Some(is_living) = settled {
            is_living
        } else {
            let key = [&key[..4], &key[key.len() - 8..]].concat();
            is_living(&snapshot.get(Keyspace::Item, &key)?.expect("the item is there")[8..16], time)
        };
        living += u64::from(is_living);
    }
    let micros = begin.elapsed().as_secs_f64() * 1e6 / looked as f64;
    let off = living.abs_diff(expected) as f64 / expected as f64;
    assert!(off < 0.05, "{living} living of {looked}, about {expected} expected");
    Ok(micros)
}

impl Entry {
    fn value(self, header: &[u8; 16]) -> Vec<u8> {
        match self {
            Self::Exact => header.to_vec(),
            Self::Bound => header[8..].to_vec(),
            Self::None => Vec::new(),
        }
    }
}

/// Sequence, time and ttl.
fn header(sequence: u64, time: u32, item: u64) -> [u8; 16] {
    let ttl = if item % 2 == 1 { SHORT_TTL } else { LONG_TTL };
    let mut header = [0; 16];
    header[..8].copy_from_slice(&sequence.to_be_bytes());
    header[8..12].copy_from_slice(&time.to_be_bytes());
    header[12..].copy_from_slice(&ttl.to_be_bytes());
    header
}

fn is_living(time_and_ttl: &[u8], now: u32) -> bool {
    let number = |at: usize| u32::from_be_bytes(time_and_ttl[at..at + 4].try_into().expect("four bytes"));
    number(0) + number(4) > now
}

/// Returns the header, the version of the last term, and a body that compresses to about half.
fn body(header: &[u8; 16], item: u64, version: u8) -> Vec<u8> {
    let mut body = Vec::with_capacity(header.len() + 1 + BODY_BYTES);
    body.extend(header);
    body.push(version);
    let mut random = fastrand::Rng::with_seed(item ^ u64::from(version));
    body.extend((0..BODY_BYTES / 2).map(|_| random.u8(..)));
    body.resize(header.len() + 1 + BODY_BYTES, b'a');
    body
}

fn item_key(item: u64) -> Vec<u8> {
    [7_u32.to_be_bytes().as_slice(), &item.to_be_bytes()].concat()
}

fn index_prefix(term: u16, value: u64) -> Vec<u8> {
    [7_u32.to_be_bytes().as_slice(), &term.to_be_bytes(), &value.to_be_bytes()].concat()
}

/// Partition, a term of about 20 bytes in an order of its own, item.
fn index_key(term: u16, item: u64, version: u8) -> Vec<u8> {
    let value = (item + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(u32::from(term));
    [index_prefix(term, value).as_slice(), b"some text", &[version], &item.to_be_bytes()].concat()
}

fn table_bytes(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).expect("the directory is ours");
    entries
        .map(|entry| {
            let entry = entry.expect("the directory is ours");
            let metadata = entry.metadata().expect("the file is ours");
            if metadata.is_dir() { table_bytes(&entry.path()) } else { metadata.len() }
        })
        .sum()
}

/// Seconds of CPU time that this process spends in `work` (Linux).
fn cpu(work: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    let before = cpu_seconds();
    work()?;
    Ok(cpu_seconds() - before)
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a process has a name").1.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

#[expect(clippy::disallowed_methods, reason = "a measurement measures time")]
fn now() -> Instant {
    Instant::now()
}
