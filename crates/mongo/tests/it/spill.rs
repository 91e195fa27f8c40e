//! Idle cursors with rows in scratch files.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bson::{Document, Value};
use engine::Owner;
use mongo::Limits;
use mongo::scratch::{Result, Scratch, ScratchFile};
use storage::Time;

use crate::client::{START, Server, code, inner, json, settings, text};

/// Scratch files in memory, and how many bytes all of them have.
#[derive(Debug, Default)]
struct Files {
    bytes: Arc<AtomicUsize>,
}

struct File {
    content: Vec<u8>,
    bytes: Arc<AtomicUsize>,
}

impl Scratch for Files {
    fn create(&self) -> Result<Box<dyn ScratchFile>> {
        Ok(Box::new(File { content: Vec::new(), bytes: Arc::clone(&self.bytes) }))
    }
}

impl ScratchFile for File {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        self.content.extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let begin = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self.content[begin..begin + buffer.len()]);
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.content.len(), Ordering::Relaxed);
    }
}

/// A server whose sorts have so little memory that they use scratch files.
async fn server() -> (Server, Arc<AtomicUsize>) {
    let files = Files::default();
    let bytes = Arc::clone(&files.bytes);
    let limits = Limits { stage_bytes: 16 * 1024, ..Limits::default() };
    let server = Server::with(mongo::Settings { limits, scratch: Some(Arc::new(files)), ..settings() }).await;
    (server, bytes)
}

fn insert(collection: &str) -> Document {
    let document = |number: i32| {
        Value::Document(Document::new().with("_id", number).with("k", -number).with("pad", "x".repeat(200)))
    };
    let documents: Vec<Value> = (0..500).map(document).collect();
    Document::new().with("insert", collection).with("documents", documents)
}

/// A sorted `find` that is never closed for being idle.
fn sorted(collection: &str) -> Document {
    json(r#"{"sort": {"k": 1}, "batchSize": 1, "noCursorTimeout": true}"#)
        .into_iter()
        .fold(Document::new().with("find", collection), |find, (name, value)| find.with(&name, value))
}

fn more(first: &Document, collection: &str, size: i32) -> Document {
    let id = inner(first, "cursor.id").clone();
    Document::new().with("getMore", id).with("collection", collection).with("batchSize", size)
}

fn promise(server: &Server, name: &str) {
    let owner = Owner::Collection(server.engine.collection("db", name).unwrap());
    server.engine.change_lifecycle(&owner, |lifecycle| lifecycle.max_purge_delay = Some(60)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn t24_scratch_files_of_a_resting_cursor_are_removed_within_the_bound() {
    let (server, bytes) = server().await;
    let mut client = server.connect().await;
    for collection in ["promised", "other"] {
        client.done("db", insert(collection)).await;
    }
    promise(&server, "promised");
    let rings = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&rings);
    server.engine.on_purge_due(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let other = client.done("db", sorted("other")).await;
    let of_other = bytes.load(Ordering::Relaxed);
    assert!(of_other > 0, "the sort uses scratch files");
    assert_eq!(rings.load(Ordering::Relaxed), 0, "nothing was promised");
    let first = client.done("db", sorted("promised")).await;
    assert!(rings.load(Ordering::Relaxed) > 0, "the loop that looks after promises is woken");
    let both = bytes.load(Ordering::Relaxed);
    assert!(both > of_other);

    server.clock.advance(Duration::from_secs(44));
    let due = server.engine.retention_step().unwrap().next_due;
    assert_eq!(due, Some(Time::from_seconds(START + 45)), "three quarters of the bound");
    assert_eq!(bytes.load(Ordering::Relaxed), both);
    client.done("db", more(&first, "promised", 1)).await;

    server.clock.advance(Duration::from_secs(1));
    let step = server.engine.retention_step().unwrap();
    assert!(step.missed.is_empty(), "{:?}", step.missed);
    assert_eq!(bytes.load(Ordering::Relaxed), of_other, "the other cursor rests on");
    client.done("db", more(&other, "other", 1)).await;
    let reply = client.on("db", more(&first, "promised", 1000)).await;
    assert_eq!(code(&reply), 175);
    assert!(text(&reply, "errmsg").contains("maxPurgeDelay"), "{reply:?}");
    assert_eq!(code(&client.on("db", more(&first, "promised", 1)).await), 43, "the cursor is closed");
}

/// If the check of promises came too late, the copy outlived the scrub: the missed bound is reported.
#[tokio::test(flavor = "multi_thread")]
async fn t24_scratch_files_that_outlive_the_bound_are_told_as_missed() {
    let (server, bytes) = server().await;
    let mut client = server.connect().await;
    client.done("db", insert("c")).await;
    let ttl = r#"{"createIndexes": "c", "indexes": [{"key": {"_ts": 1}, "name": "ttl", "expireAfterSeconds": 10}]}"#;
    client.done("db", json(ttl)).await;
    promise(&server, "c");
    server.engine.retention_step().unwrap();
    client.done("db", sorted("c")).await;
    assert!(bytes.load(Ordering::Relaxed) > 0);
    server.clock.advance(Duration::from_secs(10));
    assert_eq!(server.engine.purge_step(10_000).unwrap().purged_items, 500);
    server.clock.advance(Duration::from_secs(31));
    let step = server.engine.retention_step().unwrap();
    assert_eq!((step.scrubbed, step.missed.len()), (Some(engine::Scrubbed::Done), 0));
    assert!(bytes.load(Ordering::Relaxed) > 0, "not due yet");
    server.clock.advance(Duration::from_secs(30));
    let step = server.engine.retention_step().unwrap();
    assert_eq!(step.missed, ["db/c"]);
    assert_eq!(server.engine.retention_status().missed, 1);
    assert_eq!(bytes.load(Ordering::Relaxed), 0);
    assert!(server.engine.retention_step().unwrap().missed.is_empty(), "told once");
}
