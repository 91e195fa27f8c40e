//! Measures the cost of indexing a write: CPU time per insert and per replace, with no index and with every path indexed.
//!
//! Items have ten leaf properties besides `id` and the partition key and about 1 KB. Commits are buffered and pipelined, so
//! that the figures show what the entries cost, not the disk's sync; the CPU time is the whole process's, flushes and
//! compactions included. Rounds are interleaved; the median of three is printed.
//!
//! `cargo run --release -p bolide-engine --example write_cost [directory [items]]`; with few items it is what `valgrind` counts the
//! instructions of (`instructions.md` beside this file).

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use document::{Document, parse_json};
use engine::{Container, ContainerDefinition, Engine, Operation, Precondition};
use storage::{ClockOptions, Durability, EmbeddedOptions, EmbeddedStore, ManualClock, Time};

/// The default number of items inserted; half as many are replaced.
const ITEMS: u64 = 60_000;
const ROUNDS: usize = 3;
/// Writes in flight at the same time.
const WINDOW: usize = 256;

const POLICIES: [(&str, &str); 2] =
    [("none", r#"{"indexingMode":"none","automatic":false}"#), ("every path", "{}")];
const ROWS: [&str; 3] = ["insert", "replace, no property changed", "replace, 1 of 10 changed"];

fn main() {
    let parent = std::env::args().nth(1).unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let items = std::env::args().nth(2).map_or(ITEMS, |items| items.parse().expect("a number of items"));
    let directory = Path::new(&parent).join(format!("bolide-write-cost-{}", std::process::id()));
    let mut rounds = [[[0.0; ROWS.len()]; POLICIES.len()]; ROUNDS];
    for (number, round) in rounds.iter_mut().enumerate() {
        for (figures, (name, policy)) in round.iter_mut().zip(POLICIES) {
            *figures = measure(&directory.join(format!("{name}-{number}")), policy, items);
            eprintln!("round {number} {name}: {figures:.1?}");
        }
    }
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
    println!("{:<32} {:>10} {:>10} {:>8}", "CPU us, median", POLICIES[0].0, POLICIES[1].0, "ratio");
    for (row, name) in ROWS.into_iter().enumerate() {
        let median = |policy: usize| {
            let mut figures = rounds.map(|round| round[policy][row]);
            figures.sort_by(f64::total_cmp);
            figures[ROUNDS / 2]
        };
        println!("{name:<32} {:>10.1} {:>10.1} {:>8.2}", median(0), median(1), median(1) / median(0));
    }
}

fn measure(path: &Path, indexing: &str, items: u64) -> [f64; ROWS.len()] {
    let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1_800_000_000))));
    let mut options = EmbeddedOptions::new(path, clock);
    options.durability = Durability::Buffered;
    let store = EmbeddedStore::open(options).expect("the store opens");
    let engine = Engine::open(Arc::new(store)).expect("the engine opens");
    let database = engine.create_database("db", None).expect("a database");
    let text = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}},"indexingPolicy":{indexing}}}"#);
    let definition = parse_json(text.as_bytes()).expect("valid JSON");
    let definition = ContainerDefinition::from_value(&definition).expect("a valid definition");
    let container = engine.create_container(&database, definition, None).expect("a container");
    let create = |item: u64| Operation::Create { body: body(item, 0) };
    let upsert = |item: u64, version: u64| Operation::Upsert {
        body: body(item, version),
        precondition: Precondition::None,
    };
    let mut random = fastrand::Rng::with_seed(7);
    let replaces = items / 2;
    let mut some = || (0..replaces).map(|_| random.u64(..items)).collect::<Vec<_>>().into_iter();
    let inserted = write_all(&engine, &container, (0..items).map(create));
    let unchanged = write_all(&engine, &container, some().map(|item| upsert(item, 0)));
    let changed = write_all(&engine, &container, some().map(|item| upsert(item, 1)));
    engine.close().expect("closes");
    [inserted / items as f64, unchanged / replaces as f64, changed / replaces as f64]
}

fn body(item: u64, version: u64) -> Document {
    let text = format!(
        r#"{{"id":"item-{item:08}","pk":"key-{}","name":"name {item}","kind":"kind {}","price":{}.5,"stock":{},
            "active":{},"created":"2026-01-{:02}T00:00:00Z","owner":{{"city":"city {}","zip":{}}},
            "version":{version},"note":"{}"}}"#,
        item % 5000,
        item % 7,
        item % 1000,
        item % 300,
        item.is_multiple_of(2),
        item % 28 + 1,
        item % 100,
        item % 10_000,
        format!("{} ", item.wrapping_mul(0x9E37_79B9_7F4A_7C15)).repeat(34),
    );
    Document::from_json(text.as_bytes()).expect("valid JSON")
}

/// Microseconds of CPU time for all of the operations.
fn write_all(
    engine: &Engine,
    container: &Arc<Container>,
    operations: impl Iterator<Item = Operation>,
) -> f64 {
    let before = cpu_seconds();
    let mut tickets = VecDeque::with_capacity(WINDOW);
    for operation in operations {
        if tickets.len() == WINDOW {
            let oldest: storage::Ticket<engine::Result<engine::Outcome>> =
                tickets.pop_front().expect("the window is full");
            oldest.wait().expect("written");
        }
        tickets.push_back(engine.write(container, None, operation));
    }
    for ticket in tickets {
        ticket.wait().expect("written");
    }
    (cpu_seconds() - before) * 1e6
}

/// Returns the CPU time of this process so far (Linux).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a process has a name").1.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}
