//! Checks for one input of the fuzz targets `store` and `token`. The targets and the tests that replay their corpora
//! share this file.
//!
//! | target | an input is |
//! |---|---|
//! | `store` | damage to a store that has something of everything: six bytes each, see [`Damage`] |
//! | `token` | which listing, query or feed continues, and the bytes of its token |

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bson::RawDocument;
use bytes::Bytes;
use document::{Document, PartitionKey};
use engine::check::{check, repair};
use engine::collection::Collection;
use engine::{
    CollectionDefinition, Container, ContainerDefinition, Engine, Error, FeedStart, HistoryFrom,
    HistoryStart, Interval, ItemAddress, ItemName, Operation, Owner, Precondition, QueryRequest, Result,
    Scope, Watch,
};
use mql::index::IndexSpec;
use storage::{
    ClockOptions, Direction, KeyRange, Keyspace, Lanes, ManualClock, MemoryStore, Store, Time, transact,
};

const START: Time = Time::from_seconds(1_700_000_000);

/// Damages of one input.
const DAMAGES_MAX: usize = 16;

/// Pages after which a reading of a dozen items counts as endless.
const PAGES_MAX: usize = 200;

/// Queries that an input of `token` may continue; the feeds follow them.
const QUERIES: [&str; 6] = [
    "SELECT * FROM c",
    "SELECT * FROM c WHERE c.n > 1",
    "SELECT * FROM c ORDER BY c.n DESC",
    "SELECT * FROM c ORDER BY c._ts",
    "SELECT VALUE t FROM c JOIN t IN c.list WHERE c.mail >= 'b' OR c.n < 3",
    "SELECT DISTINCT VALUE c.n FROM c",
];

type Entries = Vec<(Keyspace, Bytes, Bytes)>;

/// Checks that a damaged store is opened or refused, that every request to it has an answer or an error, and that repairs last.
pub(crate) fn check_store(data: &[u8]) {
    let store = damaged(data);
    let Ok(report) = check(&*store, &mut |_| ()) else { return };
    if let Ok(engine) = Engine::open(Arc::clone(&store)) {
        for error in use_everything(&engine) {
            assert!(!error.to_string().contains("a panic"), "{error}");
        }
    } else {
        assert!(!report.is_sound(), "what cannot be opened is not sound");
    }
    let store = damaged(data);
    let Ok(first) = repair(&*store, &mut |_| ()) else { return };
    let second = repair(&*store, &mut |_| ()).expect("it could be read before");
    assert_eq!(second.repaired, 0, "{:?}\n{:?}", first.after.told, second.before.told);
}

/// Checks that a reading ends whatever its token is, and returns only existing items.
pub(crate) fn check_token(data: &[u8]) {
    static SCENE: OnceLock<(Engine, Arc<Container>)> = OnceLock::new();
    let (engine, container) = SCENE.get_or_init(|| {
        let engine = Engine::open(filled(scene())).expect("a whole store");
        let container = container(&engine).expect("it was made");
        (engine, container)
    });
    let Some((which, token)) = data.split_first() else { return };
    match QUERIES.get(usize::from(*which)) {
        Some(text) => check_query_token(engine, container, text, token),
        None if which % 2 == 0 => {
            let mut token = URL_SAFE_NO_PAD.encode([&[0x46, 1], token].concat());
            check_end(|| {
                let start = FeedStart::After(token.clone());
                let page = answered(engine.changes(container, &Scope::default(), &start, 2))?;
                assert!(page.items.iter().all(|item| !item.id().is_empty()));
                token = page.continuation;
                page.more.then_some(())
            });
        }
        None => {
            let mut token = URL_SAFE_NO_PAD.encode([&[0x48, 1], token].concat());
            check_end(|| {
                let from = HistoryFrom::After(token.clone());
                let page = answered(engine.history(container, &Scope::default(), &from, 2))?;
                token = page.continuation;
                page.more.then_some(())
            });
        }
    }
}

/// Continues a query from a token of its own, with the position of the input.
fn check_query_token(engine: &Engine, container: &Container, text: &str, place: &[u8]) {
    let query = query::parse(text, &[], &query::Dialect::default()).expect("a query");
    let page = |continuation| {
        let request = QueryRequest { continuation, ..QueryRequest::new(Some(&query), 1) };
        engine.query(container, &request)
    };
    let first = page(None).expect("the first page").continuation.expect("there is more than one row");
    let first = engine::decode_token(&first).expect("a token that was given out");
    // Kind, version and query are of the token, and its checksum is right; the rest is the input's.
    let mut token = Some(engine::encode_token([&first[..10], place].concat()));
    check_end(|| {
        let page = answered(page(token.take()))?;
        assert!(page.rows.iter().all(|row| document::parse_json(row).is_ok()));
        token = page.continuation;
        token.is_some().then_some(())
    });
}

/// Returns a page, unless its token was refused; a token is no reason to report a damaged store.
fn answered<T>(page: Result<T>) -> Option<T> {
    if let Err(error @ (Error::Corrupt(_) | Error::Unavailable(_))) = &page {
        panic!("{error}");
    }
    page.ok()
}

/// Takes pages until there are no more.
fn check_end(mut next: impl FnMut() -> Option<()>) {
    let pages = std::iter::from_fn(&mut next).take(PAGES_MAX).count();
    assert!(pages < PAGES_MAX, "it has no end");
}

/// The damage of an input to one entry.
struct Damage {
    kind: u8,
    /// The entry, counted round.
    entry: usize,
    /// The byte of it, counted round; another entry for those that copy.
    at: usize,
    byte: u8,
}

impl Damage {
    fn read([kind, e0, e1, a0, a1, byte]: [u8; 6]) -> Damage {
        let number = |low: u8, high: u8| usize::from(u16::from_le_bytes([low, high]));
        Damage { kind, entry: number(e0, e1), at: number(a0, a1), byte }
    }

    fn inflict(&self, entries: &mut Entries) {
        if entries.is_empty() {
            return;
        }
        let entry = self.entry % entries.len();
        let other = entries[self.at % entries.len()].clone();
        let (_, key, value) = &mut entries[entry];
        match self.kind % 9 {
            0 => set(value, self.at, |byte| *byte = self.byte),
            1 => set(value, self.at, |byte| *byte ^= self.byte),
            2 => value.truncate(self.at % (value.len() + 1)),
            3 => *value = [&value[..], &[self.byte]].concat().into(),
            4 => *value = other.2,
            5 => set(key, self.at, |byte| *byte = self.byte),
            6 => *key = [&key[..], &[self.byte]].concat().into(),
            7 => key.truncate(1 + self.at % key.len()),
            _ => drop(entries.remove(entry)),
        }
    }
}

fn set(bytes: &mut Bytes, at: usize, change: impl FnOnce(&mut u8)) {
    let mut changed = bytes.to_vec();
    if !changed.is_empty() {
        let at = at % changed.len();
        change(&mut changed[at]);
    }
    *bytes = changed.into();
}

/// Returns the scene, as an input leaves it.
fn damaged(data: &[u8]) -> Arc<dyn Store> {
    let mut entries = scene().clone();
    for damage in data.as_chunks().0.iter().take(DAMAGES_MAX) {
        Damage::read(*damage).inflict(&mut entries);
    }
    filled(&entries)
}

/// Returns a store with these entries; of two with one key the later counts.
fn filled(entries: &Entries) -> Arc<dyn Store> {
    let clock = Arc::new(ManualClock::new(START.plus_millis(120_000)));
    let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).expect("a new store"));
    let entries = entries.clone();
    let put = transact(&*store, Lanes::all(), move |tx| {
        while tx.next_sequence() < SEQUENCES {}
        for (keyspace, key, value) in entries {
            tx.put(keyspace, key, value);
        }
        Ok::<_, storage::Error>(())
    });
    put.wait().expect("memory can be written");
    store
}

/// Makes every kind of request to a store, those that change it last.
fn use_everything(engine: &Engine) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut note = |error: Option<Error>| errors.extend(error);
    let collection = engine.collection("shop", "carts");
    for owner in [container(engine).map(Owner::Container), collection.clone().map(Owner::Collection)]
        .into_iter()
        .flatten()
    {
        note(engine.forecast(&owner, Interval::Minute, 5).err());
        note(engine.browse(&owner, None, 100).err());
        note(engine.export_page(&owner, None, 1 << 20).err());
        note(engine.held_items(&owner, None).err());
        note(engine.deletion_logs_of(&owner).err());
    }
    if let Some(container) = container(engine) {
        use_container(engine, &container, &mut note);
    }
    if let Some(collection) = collection {
        use_collection(engine, &collection, &mut note);
    }
    note(engine.deletion_gaps().err());
    let _ = engine.purge_status();
    for _ in 0..4 {
        note(engine.purge_step(100).err());
    }
    note(engine.retention_step().err());
    errors
}

fn use_container(engine: &Engine, container: &Arc<Container>, note: &mut impl FnMut(Option<Error>)) {
    for id in ["a", "b", "h", "z"] {
        let name = ItemName::Id(id.to_owned());
        note(engine.read(container, &key(), &name, &Precondition::None).err());
    }
    for text in QUERIES {
        let query = query::parse(text, &[], &query::Dialect::default()).expect("a query");
        note(engine.query(container, &QueryRequest::new(Some(&query), 100)).err());
    }
    note(engine.usage(container).err());
    note(engine.changes(container, &Scope::default(), &FeedStart::Beginning, 100).err());
    let history = engine.barrier().and_then(|barrier| {
        let (partition, start) = (&container.partitions[0], HistoryStart::Oldest);
        engine.container_history(container, partition, &Scope::default(), &barrier, start, 100)
    });
    note(history.err());
    for id in ["a", "z"] {
        note(
            engine
                .write(
                    container,
                    Some(key()),
                    Operation::Upsert { body: item(id), precondition: Precondition::None },
                )
                .wait()
                .err(),
        );
    }
    let name = ItemName::Id("d".to_owned());
    note(
        engine
            .write(container, Some(key()), Operation::Delete { name, precondition: Precondition::None })
            .wait()
            .err(),
    );
}

fn use_collection(engine: &Engine, collection: &Arc<Collection>, note: &mut impl FnMut(Option<Error>)) {
    let walked = engine.reading(&[collection]).and_then(|reading| {
        reading.usage(collection)?;
        reading.changes(collection, document::Sequence(0), 100, 1 << 20)?;
        for index in reading.indexes(collection)?.iter() {
            reading.index(collection, index.number, (&[], &[]), None, Direction::Forward, 100)?;
        }
        reading.natural(collection, None, Direction::Backward, 100, 1 << 20)
    });
    note(walked.err());
    let watch = Watch::Collection { database: "shop".to_owned(), name: "carts".to_owned() };
    note(engine.watch(&watch).err());
    for id in [1, 9] {
        let inserted = engine.insert(collection, vec![cart(id)], true, None).wait();
        note(inserted.and_then(|answers| answers.into_iter().collect::<Result<Vec<_>>>()).err());
    }
}

/// Returns all entries of a store with something of everything.
fn scene() -> &'static Entries {
    static SCENE: OnceLock<Entries> = OnceLock::new();
    SCENE.get_or_init(|| {
        let clock = Arc::new(ManualClock::new(START));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock.clone())).expect("a new store"));
        let engine = Engine::open(store.clone()).expect("a new engine");
        fill(&engine, &clock).expect("a whole store");
        assert!(store.last_sequence() < SEQUENCES, "{}", store.last_sequence());
        let snapshot = store.snapshot().expect("a snapshot");
        let entries = Keyspace::ALL.into_iter().flat_map(|keyspace| {
            let scan = snapshot.scan(keyspace, KeyRange::all(), Direction::Forward);
            scan.map(move |entry| entry.map(|(key, value)| (keyspace, key, value)).expect("it can be read"))
        });
        entries.collect()
    })
}

/// More than the scene takes.
const SEQUENCES: u64 = 100;

fn fill(engine: &Engine, clock: &ManualClock) -> Result<()> {
    let database = engine.create_database("db", None)?;
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":1000,
        "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]}}"#;
    let definition = document::parse_json(definition.as_bytes())?;
    let container =
        engine.create_container(&database, ContainerDefinition::from_value(&definition)?, None)?;
    let owner = Owner::Container(Arc::clone(&container));
    engine.change_lifecycle(&owner, |settings| {
        settings.history_minutes = Some(60);
        settings.deletion_record = true;
        settings.sliding = true;
    })?;
    for id in ["a", "b", "c", "d", "h"] {
        engine.write(&container, Some(key()), Operation::Create { body: item(id) }).wait()?;
    }
    engine.hold_item(&owner, &ItemAddress::Id(key(), "h".to_owned()), "a trial")?;
    clock.advance(Duration::from_secs(20));
    let name = ItemName::Id("d".to_owned());
    let renewal =
        engine.read(&container, &key(), &name, &Precondition::None)?.renewal.expect("reads restart it");
    engine.renew(&renewal).expect("not yet renewed").wait()?;
    clock.advance(Duration::from_secs(40));
    while engine.purge_step(10)?.purged_items > 0 {}
    let collection = engine.create_collection("shop", "carts", CollectionDefinition::default(), None)?;
    let specs = [
        r#"{"key":{"mail":1},"name":"mail","unique":true}"#,
        r#"{"key":{"at":1},"name":"at","expireAfterSeconds":100}"#,
    ];
    let specs = specs.map(|spec| IndexSpec::parse(raw(spec).view()).expect("a specification"));
    engine.create_indexes(&collection, specs.to_vec())?;
    for id in 1..=3 {
        let answers = engine.insert(&collection, vec![cart(id)], true, None).wait()?;
        answers.into_iter().collect::<Result<Vec<_>>>()?;
    }
    Ok(())
}

/// Returns the container of the scene, if it is still known.
fn container(engine: &Engine) -> Option<Arc<Container>> {
    let database = engine.databases().into_iter().next()?;
    engine.containers(&database).into_iter().next()
}

fn key() -> PartitionKey {
    PartitionKey::from_header("[\"p\"]").expect("a key")
}

/// Returns an item; one named `b` lives for fifty seconds.
fn item(id: &str) -> Document {
    let ttl = if id == "b" { ",\"ttl\":50" } else { "" };
    let n = u32::from(id.as_bytes()[0] % 5);
    let text = format!(r#"{{"id":"{id}","pk":"p","mail":"{id}@x","n":{n},"list":[1,"x",{n}]{ttl}}}"#);
    Document::from_json(text.as_bytes()).expect("a document")
}

fn cart(id: u32) -> RawDocument {
    raw(&format!(r#"{{"_id":{id},"mail":"{id}@x","at":{{"$date":"2023-11-14T22:14:20.5Z"}}}}"#))
}

fn raw(text: &str) -> RawDocument {
    let value = bson::parse_extended_json(text).expect("Extended JSON");
    RawDocument::from_view(value.view().as_document().expect("a document"))
}
