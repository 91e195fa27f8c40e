//! Measures the cost of purging an item beside users: CPU time per item by the size of a step, while others insert.
//!
//! Items are those of `bolide-bench … steady`: about 900 bytes, every path indexed. A round inserts items that are never due, removes
//! expired ones in steps of one size, and subtracts the cost of the inserts; the CPU time is the whole process's, flushes and
//! compactions included. The median of three rounds is printed, for removals that a watermark stands for and for those that are made
//! entry by entry, because an item that never expires was written before.
//!
//! `cargo run --release -p bolide-engine --example purge_cost [directory]`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use document::{Document, parse_json};
use engine::{Container, ContainerDefinition, Engine, Operation};
use storage::{ClockOptions, Durability, EmbeddedOptions, EmbeddedStore, ManualClock, Time};

const ITEMS: u64 = 20_000;
const ROUNDS: usize = 3;
/// Items of a step.
const STEPS: [usize; 3] = [8, 32, 512];
/// How removals are made.
const WAYS: [(&str, Removals); 2] =
    [("by a watermark", Removals::ByWatermark), ("entry by entry", Removals::EntryByEntry)];
const FIGURES: usize = STEPS.len() * WAYS.len();

#[derive(Clone, Copy, PartialEq, Eq)]
enum Removals {
    ByWatermark,
    EntryByEntry,
}

fn main() {
    let parent = std::env::args().nth(1).unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let directory = Path::new(&parent).join(format!("bolide-purge-cost-{}", std::process::id()));
    let mut rounds = [[0.0; FIGURES]; ROUNDS];
    let mut inserts = [0.0; ROUNDS];
    let kinds = || STEPS.into_iter().flat_map(|step| WAYS.map(|(name, removals)| (step, name, removals)));
    for (number, round) in rounds.iter_mut().enumerate() {
        inserts[number] = measure(&directory.join(format!("{number}-none")), None);
        for (at, (figure, (step, _, removals))) in round.iter_mut().zip(kinds()).enumerate() {
            let both = measure(&directory.join(format!("{number}-{at}")), Some((step, removals)));
            *figure = both - inserts[number];
        }
        eprintln!("round {number}: insert {:.1} purge {round:.1?}", inserts[number]);
    }
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
    println!("{:<40} {:>10.1}", "CPU us of an insert", median(inserts));
    for (at, (step, name, _)) in kinds().enumerate() {
        let figure = median(rounds.map(|round| round[at]));
        println!("{:<40} {figure:>10.1}", format!("purged, steps of {step}, {name}"));
    }
}

fn median(mut figures: [f64; ROUNDS]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[ROUNDS / 2]
}

/// Microseconds of CPU for each insert, with the purge of as many items in steps of a size, or without.
fn measure(path: &Path, purge: Option<(usize, Removals)>) -> f64 {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(1_800_000_000)));
    let mut options = EmbeddedOptions::new(path, ClockOptions::new(clock.clone()));
    options.durability = Durability::Buffered;
    let store = EmbeddedStore::open(options).expect("the store opens");
    let engine = Engine::open(Arc::new(store)).expect("the engine opens");
    let database = engine.create_database("db", None).expect("a database");
    let text = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":20}"#;
    let definition = parse_json(text.as_bytes()).expect("valid JSON");
    let definition = ContainerDefinition::from_value(&definition).expect("a valid definition");
    let container = engine.create_container(&database, definition, None).expect("a container");
    if purge.is_some_and(|(_, removals)| removals == Removals::EntryByEntry) {
        let body = Document::from_json(br#"{"id":"for ever","pk":"0","ttl":-1}"#).expect("valid JSON");
        engine.write(&container, None, Operation::Create { body }).wait().expect("created");
    }
    (0..ITEMS).for_each(|item| insert(&engine, &container, item));
    clock.advance(Duration::from_secs(20));
    let before = cpu_seconds();
    let mut purged = 0;
    for item in ITEMS..2 * ITEMS {
        insert(&engine, &container, item);
        if let Some((step, _)) = purge
            && item - ITEMS >= purged
        {
            purged += engine.purge_step(step).expect("a step").purged_items;
        }
    }
    let spent = cpu_seconds() - before;
    engine.close().expect("closes");
    spent * 1e6 / ITEMS as f64
}

fn insert(engine: &Engine, container: &Arc<Container>, item: u64) {
    engine.write(container, None, Operation::Create { body: body(item) }).wait().expect("created");
}

fn body(item: u64) -> Document {
    let noise = item.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text = format!("{noise:032x}").repeat(24);
    let body = format!(
        "{{\"id\":\"{item}\",\"pk\":\"{}\",\"name\":\"{noise:016x}\",\"n\":{},\"text\":\"{text}\"}}",
        item / 1000,
        noise % 1000
    );
    Document::from_json(body.as_bytes()).expect("valid JSON")
}

/// Returns the CPU time of this process so far (Linux).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a process has a name").1.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}
