//! Sorts and groups that exceed their memory: the same rows from disk as from memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bson::{Document, RawDocument, Value};
use mql::pipeline::{DiskUse, Pipeline, Row, Settings};
use mql::{Code, Context, Error, Result, Scratch, ScratchFile};
use proptest::prelude::*;

use crate::pipeline::{LEADING, Memory, settings};

/// Files in memory, with a bound on all of them together.
#[derive(Debug)]
struct Files {
    bytes_max: usize,
    bytes: Arc<AtomicUsize>,
    /// How many there are now.
    open: Arc<AtomicUsize>,
    made: AtomicUsize,
}

impl Files {
    fn new(bytes_max: usize) -> Arc<Files> {
        Arc::new(Files { bytes_max, bytes: Arc::default(), open: Arc::default(), made: AtomicUsize::new(0) })
    }
}

struct File {
    content: Vec<u8>,
    bytes_max: usize,
    bytes: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl Scratch for Files {
    fn create(&self) -> Result<Box<dyn ScratchFile>> {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        let (bytes, open) = (Arc::clone(&self.bytes), Arc::clone(&self.open));
        Ok(Box::new(File { content: Vec::new(), bytes_max: self.bytes_max, bytes, open }))
    }
}

impl ScratchFile for File {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.bytes.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len() > self.bytes_max {
            self.bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
            return Err(Error::new(Code::OUT_OF_DISK_SPACE, "the scratch files are full"));
        }
        self.content.extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let begin = usize::try_from(offset).expect("small");
        buffer.copy_from_slice(&self.content[begin..begin + buffer.len()]);
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.content.len(), Ordering::Relaxed);
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Some sixty rows: thousands of rows make more runs than are open at once.
const STAGE_BYTES: usize = 16 * 1024;

fn documents(count: i32, seed: i32) -> Vec<RawDocument> {
    let document = |number: i32| {
        let mixed = number.wrapping_mul(2_654_435_761_u32 as i32).wrapping_add(seed);
        let word = ["a", "B", "b", "å", "", "10", "9"][mixed.rem_euclid(7) as usize];
        Document::new()
            .with("_id", number)
            .with("k", (mixed >> 8).rem_euclid(200))
            .with("w", word)
            .with("pad", "x".repeat((mixed >> 4).rem_euclid(90) as usize))
    };
    (0..count).map(|number| RawDocument::from_document(&document(number))).collect()
}

fn collection(documents: Vec<RawDocument>) -> Memory {
    let mut memory = Memory::default();
    memory.collections.insert(LEADING.to_owned(), documents);
    memory
}

fn stages(json: &str) -> Vec<Document> {
    let value = bson::parse_extended_json(&format!(r#"{{"s": {json}}}"#)).expect(json);
    let Some(Value::Array(stages)) = value.as_document().and_then(|all| all.get("s")) else {
        panic!("{json}")
    };
    stages.iter().map(|stage| stage.as_document().expect("a stage").clone()).collect()
}

fn outcome(
    json: &str,
    settings: &Settings,
    documents: &[RawDocument],
    context: &Context,
) -> Result<Vec<Row>> {
    let (stages, mut source) = (stages(json), collection(documents.to_vec()));
    let views: Vec<_> = stages.iter().map(Document::view).collect();
    let mut running = Pipeline::parse(&views, settings)?.start();
    let mut rows = Vec::new();
    while let Some(row) = running.next(&mut source, context)? {
        rows.push(row);
    }
    Ok(rows)
}

fn shown(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| format!("{:?} {:?}", row.origin, row.view().to_document())).collect()
}

/// Returns a context in which a stage keeps so much in memory, and the rest in scratch files.
fn spilling(stage_bytes: usize, scratch: Option<Arc<dyn Scratch>>) -> Context {
    let mut context = Context::at(0).with_stage_bytes_max(stage_bytes);
    context.set_scratch(scratch);
    context
}

/// Runs stages in memory and with the disk, and returns both outcomes.
fn both(json: &str, settings: &Settings, documents: &[RawDocument]) -> (Vec<String>, Vec<String>) {
    let in_memory = outcome(json, settings, documents, &Context::at(0)).expect(json);
    let files = Files::new(usize::MAX);
    let scratch: Arc<dyn Scratch> = files.clone();
    let context = spilling(STAGE_BYTES, Some(scratch));
    let on_disk = outcome(json, settings, documents, &context).expect(json);
    assert!(files.made.load(Ordering::Relaxed) > 0, "{json} used the disk");
    assert_eq!(files.bytes.load(Ordering::Relaxed), 0, "{json} left nothing behind");
    (shown(&in_memory), shown(&on_disk))
}

#[test]
fn a_sort_on_disk_is_the_sort_in_memory() {
    let collation = Document::new().with("locale", "sv").with("strength", 2);
    let swedish = bson::Collation::parse(collation.view()).expect("a collation");
    for documents in [documents(1_000, 1), documents(6_000, 2)] {
        for json in [
            r#"[{"$sort": {"k": 1}}]"#,
            r#"[{"$sort": {"w": -1, "k": 1}}]"#,
            r#"[{"$sort": {"w": 1}}, {"$skip": 3}]"#,
            r#"[{"$sort": {"k": -1}}, {"$limit": 700}]"#,
            r#"[{"$addFields": {"made": {"$add": ["$k", 1]}}}, {"$sort": {"made": 1, "w": 1}}]"#,
        ] {
            for settings in [settings(), Settings { collation: swedish.clone(), ..settings() }] {
                let (in_memory, on_disk) = both(json, &settings, &documents);
                assert_eq!(in_memory, on_disk, "{json}");
            }
        }
    }
}

#[test]
fn groups_on_disk_are_the_groups_in_memory() {
    for json in [
        r#"[{"$group": {"_id": "$_id", "n": {"$sum": 1}}}]"#,
        r#"[{"$group": {"_id": {"k": "$k", "w": "$w"}, "first": {"$first": "$_id"}, "last": {"$last": "$_id"}, "all": {"$push": "$_id"},
            "set": {"$addToSet": "$w"}, "most": {"$max": "$pad"}, "mean": {"$avg": "$k"}, "dev": {"$stdDevPop": "$_id"},
            "top": {"$topN": {"n": 2, "sortBy": {"_id": -1}, "output": "$_id"}}}}]"#,
        r#"[{"$group": {"_id": "$k", "rows": {"$push": "$$ROOT"}}}, {"$unwind": "$rows"}]"#,
        r#"[{"$group": {"_id": "$pad", "n": {"$count": {}}}}, {"$sort": {"n": -1, "_id": 1}}, {"$limit": 5}]"#,
    ] {
        let (mut in_memory, mut on_disk) = both(json, &settings(), &documents(3_000, 3));
        in_memory.sort();
        on_disk.sort();
        assert_eq!(in_memory, on_disk, "{json}");
    }
}

#[test]
fn a_group_that_is_made_by_chance_stays_what_it_was() {
    let json = r#"[{"$group": {"_id": {"r": {"$lt": [{"$rand": {}}, 0.5]}, "k": "$k"}, "n": {"$sum": 1}}}]"#;
    let scratch: Arc<dyn Scratch> = Files::new(usize::MAX);
    let context = spilling(STAGE_BYTES, Some(scratch));
    let rows = outcome(json, &settings(), &documents(5_000, 4), &context).expect("groups");
    let mut ids: Vec<String> = rows.iter().map(|row| format!("{:?}", row.view().get("_id"))).collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "no group comes twice");
    let counted = |row: &Row| match row.view().get("n") {
        Some(bson::ValueRef::Int32(count)) => count,
        other => panic!("{other:?}"),
    };
    assert_eq!(rows.iter().map(counted).sum::<i32>(), 5_000);
}

/// A merge holds a row and a buffer of every run: with large rows only a few runs are merged at a time.
#[test]
fn a_merge_keeps_within_the_memory_of_the_stage() {
    const ROW_BYTES: usize = 16 * 1024;
    const STAGE_BYTES: usize = 256 * 1024;
    let document = |number: i32| {
        let k = number.wrapping_mul(2_654_435_761_u32 as i32);
        Document::new().with("_id", number).with("k", k).with("pad", "x".repeat(ROW_BYTES))
    };
    let documents: Vec<RawDocument> =
        (0..1_000).map(|number| RawDocument::from_document(&document(number))).collect();
    let files = Files::new(usize::MAX);
    let scratch: Arc<dyn Scratch> = files.clone();
    let context = spilling(STAGE_BYTES, Some(scratch));
    let (stages, mut source) = (stages(r#"[{"$sort": {"k": 1}}]"#), collection(documents));
    let views: Vec<_> = stages.iter().map(Document::view).collect();
    let mut running = Pipeline::parse(&views, &settings()).expect("a pipeline").start();
    let (mut before, mut count) = (i32::MIN, 0);
    while let Some(row) = running.next(&mut source, &context).expect("a row") {
        let Some(bson::ValueRef::Int32(k)) = row.view().get("k") else { panic!("{row:?}") };
        assert!(before <= k);
        (before, count) = (k, count + 1);
        let merged = files.open.load(Ordering::Relaxed);
        assert!(merged * 2 * ROW_BYTES <= STAGE_BYTES, "{merged} runs are merged at a time");
    }
    assert_eq!(count, 1_000);
    assert!(files.made.load(Ordering::Relaxed) > 64, "there were more runs than are open at once");
}

#[test]
fn what_may_not_use_the_disk_is_refused() {
    let documents = documents(1_000, 5);
    let declined = Settings { disk_use: DiskUse::Declined, ..settings() };
    for json in [r#"[{"$sort": {"k": 1}}]"#, r#"[{"$group": {"_id": "$_id"}}]"#] {
        let scratch = || -> Arc<dyn Scratch> { Files::new(usize::MAX) };
        let error =
            outcome(json, &declined, &documents, &spilling(STAGE_BYTES, Some(scratch()))).expect_err(json);
        assert_eq!(error.code, Code::QUERY_EXCEEDED_MEMORY_LIMIT);
        assert!(error.message.contains("allowDiskUse:true"), "{}", error.message);
        let error = outcome(json, &settings(), &documents, &spilling(STAGE_BYTES, None)).expect_err(json);
        assert_eq!(error.code, Code::QUERY_EXCEEDED_MEMORY_LIMIT);
        let full: Arc<dyn Scratch> = Files::new(20_000);
        let error =
            outcome(json, &settings(), &documents, &spilling(STAGE_BYTES, Some(full))).expect_err(json);
        assert_eq!(error.code, Code::OUT_OF_DISK_SPACE);
    }
    let large = r#"[{"$group": {"_id": null, "all": {"$push": "$$ROOT"}}}]"#;
    let scratch: Arc<dyn Scratch> = Files::new(usize::MAX);
    let error = outcome(large, &settings(), &documents, &spilling(STAGE_BYTES, Some(scratch)))
        .expect_err("one group");
    assert_eq!(error.code, Code::QUERY_EXCEEDED_MEMORY_LIMIT, "one group has to fit");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn any_number_of_rows_and_any_limit_agree(count in 400..3_000, seed in any::<i32>(), limit in 1..2_500) {
        let documents = documents(count, seed);
        let (in_memory, on_disk) = both(r#"[{"$sort": {"k": 1, "w": -1}}]"#, &settings(), &documents);
        prop_assert_eq!(&in_memory, &on_disk);
        let json = format!(r#"[{{"$sort": {{"k": 1, "w": -1}}}}, {{"$limit": {limit}}}]"#);
        let scratch: Arc<dyn Scratch> = Files::new(usize::MAX);
        let context = spilling(STAGE_BYTES, Some(scratch));
        let cut = outcome(&json, &settings(), &documents, &context).expect("rows");
        prop_assert_eq!(&shown(&cut)[..], &in_memory[..in_memory.len().min(limit as usize)]);
    }
}
