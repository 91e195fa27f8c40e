//! Measures the cost of queries: CPU time of the first page of each, over items of about 1 KB in an embedded store.
//!
//! `cargo run --release -p bolide-engine --example query_cost [directory [items]]`; with few items it is what `valgrind` counts the
//! instructions of (`instructions.md` beside this file).

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use document::{Document, parse_json};
use engine::{ContainerDefinition, Engine, Operation, QueryRequest};
use storage::{ClockOptions, Durability, EmbeddedOptions, EmbeddedStore, ManualClock, Time};

/// The default number of items.
const ITEMS: u64 = 100_000;
/// Writes in flight at the same time.
const WINDOW: usize = 256;

const POLICY: &str = r#"{"compositeIndexes":[[{"path":"/group"},{"path":"/number","order":"descending"}]]}"#;

const QUERIES: &[&str] = &[
    "SELECT * FROM c",
    "SELECT * FROM c WHERE c.number = 777",
    "SELECT * FROM c WHERE c.group = 7",
    "SELECT * FROM c WHERE c.group = 7 AND c.half = 1",
    "SELECT * FROM c WHERE c.number > 50000",
    "SELECT * FROM c WHERE c.number > 50000 AND c.number < 50010",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE COUNT(1) FROM c WHERE c.half = 1",
    "SELECT VALUE COUNT(1) FROM c WHERE c.half = 1 AND c.group = 7",
    "SELECT VALUE COUNT(1) FROM c WHERE c.half = 1 AND c.number > 50000",
    "SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.word, '77')",
    "SELECT VALUE SUM(c.number) FROM c",
    "SELECT VALUE MAX(c._ts) FROM c",
    "SELECT DISTINCT VALUE c.group FROM c",
    "SELECT c.group, COUNT(1) AS n FROM c GROUP BY c.group",
    "SELECT * FROM c ORDER BY c.word",
    "SELECT * FROM c WHERE c.half = 1 ORDER BY c.word DESC",
    "SELECT * FROM c WHERE c.group = 7 ORDER BY c.number DESC",
    "SELECT * FROM c WHERE c.group = 7 ORDER BY c.word",
    "SELECT * FROM c ORDER BY c._ts DESC",
    "SELECT * FROM c ORDER BY c.half, c.word",
    "SELECT * FROM c WHERE LOWER(c.word) = 'word77777'",
];

fn main() {
    let parent = std::env::args().nth(1).unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let directory = Path::new(&parent).join(format!("bolide-query-cost-{}", std::process::id()));
    let items = std::env::args().nth(2).map_or(ITEMS, |items| items.parse().expect("a number of items"));
    let engine = fill(&directory, items);
    let database = engine.database("db").expect("made");
    let container = engine.container(&database, "c").expect("made");
    println!("{:>10} {:>8} {:>8} {:>6}  query", "CPU ms", "entries", "loaded", "rows");
    for text in QUERIES {
        let query = query::parse(text, &[], &query::Dialect::default()).expect("a query");
        let mut best = f64::MAX;
        let mut figures = None;
        for _ in 0..3 {
            let start = cpu_seconds();
            let page = engine.query(&container, &QueryRequest::new(Some(&query), 100)).expect("a page");
            best = best.min(cpu_seconds() - start);
            figures = Some(page.metrics);
        }
        let metrics = figures.expect("measured");
        let (entries, loaded, rows) = (metrics.index_entries, metrics.loaded_items, metrics.output_items);
        println!("{:>10.2} {entries:>8} {loaded:>8} {rows:>6}  {text}", best * 1000.0);
    }
    engine.close().expect("closed");
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
}

fn fill(directory: &Path, items: u64) -> Engine {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
    let mut options = EmbeddedOptions::new(directory, ClockOptions::new(clock));
    options.durability = Durability::Buffered;
    let store = EmbeddedStore::open(options).expect("a store");
    let engine = Engine::open(Arc::new(store)).expect("an engine");
    let database = engine.create_database("db", None).expect("a database");
    let text = format!(
        r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},"defaultTtl":1000000,"indexingPolicy":{POLICY}}}"#
    );
    let definition = parse_json(text.as_bytes()).expect("valid JSON");
    let definition = ContainerDefinition::from_value(&definition).expect("a valid definition");
    let container = engine.create_container(&database, definition, None).expect("a container");
    let mut waiting = VecDeque::new();
    for n in 0..items {
        let shuffled = n * 7919 % items;
        let text = format!(
            r#"{{"id":"{n}","pk":"p{}","number":{shuffled},"group":{},"half":{},"word":"word{shuffled:06}","a":1,"b":{n},"filler":"{}"}}"#,
            n % 100,
            n % 100,
            n % 2,
            "x".repeat(800)
        );
        let body = Document::from_json(text.as_bytes()).expect("valid JSON");
        waiting.push_back(engine.write(&container, None, Operation::Create { body }));
        if waiting.len() > WINDOW {
            waiting.pop_front().expect("not empty").wait().expect("created");
        }
    }
    for ticket in waiting {
        ticket.wait().expect("created");
    }
    engine
}

/// Returns the CPU time of this thread so far (Linux).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = stat.split(' ').next().expect("three numbers");
    nanoseconds.parse::<f64>().expect("a number") / 1e9
}
