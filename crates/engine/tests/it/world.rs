//! A new engine with one database, a clock that only the test moves, and helpers for short tests.

use std::sync::Arc;
use std::time::Duration;

use document::{Document, PartitionKey, Value, parse_json};
use engine::{
    Api, Container, ContainerDefinition, Effect, Engine, Error, Item, ItemName, MemoryArchive, Operation,
    Options, Outcome, Owner, Patch, Precondition, QueryPage, QueryRequest, Scope,
};
use storage::{ClockOptions, CrashMode, FreeSpace, ManualClock, MemoryDisk, MemoryStore, Time};

/// The second at which every test begins.
pub(crate) const START: u64 = 1_700_000_000;

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<ManualClock>,
    /// Where containers that name an archive have it.
    pub(crate) archive: Arc<MemoryArchive>,
    disk: MemoryDisk,
}

impl World {
    pub(crate) fn new() -> World {
        World::of_partitions(1)
    }

    /// Creates a world whose new containers have this many physical partitions.
    pub(crate) fn of_partitions(partitions: u32) -> World {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
        let (disk, archive) = (MemoryDisk::new(), Arc::new(MemoryArchive::default()));
        let store =
            MemoryStore::open(disk.clone(), ClockOptions::new(clock.clone())).expect("the store opens");
        let options = Options { archive: Some(archive.clone()), partitions, ..Options::default() };
        let engine = Engine::open_with(Arc::new(store), options).expect("the engine opens");
        engine.create_database("db", None).expect("a fresh store");
        World { engine, clock, archive, disk }
    }

    /// Reopens the store, as after a crash.
    pub(crate) fn restart(&mut self) {
        // The old engine must release the disk first.
        self.engine = open(&MemoryDisk::new(), &self.clock, &self.archive);
        self.disk.clear_faults();
        self.engine = open(&self.disk, &self.clock, &self.archive);
    }

    /// Lets the next `commits` commits pass and crashes in the one after them; the next start cancels this.
    pub(crate) fn crash_after(&self, commits: u64, mode: CrashMode) {
        self.disk.crash_after(commits, mode);
    }

    /// Makes the sync of the next commit fail: no further commit is written before the next start, which replays it.
    pub(crate) fn fail_next_sync(&self) {
        self.disk.fail_sync_after(0);
    }

    /// Makes the disk so short of space that only writes that free space run, or all writes again.
    pub(crate) fn set_disk_short(&self, short: bool) {
        self.disk.set_free_space(short.then_some(FreeSpace {
            free_bytes: 1 << 20,
            reserved_bytes: 2 << 20,
            unwritten_bytes: 0,
        }));
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) fn pass_millis(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    /// Makes container `c` with partition key `/pk` and further members of the definition.
    pub(crate) fn container(&self, more: &str) -> Arc<Container> {
        let database = self.engine.database("db").expect("made at the start");
        self.engine.create_container(&database, definition("c", more), None).expect("a valid definition")
    }

    /// Returns the container as it is now.
    pub(crate) fn current(&self) -> Arc<Container> {
        let database = self.engine.database("db").expect("made at the start");
        self.engine.container(&database, "c").expect("made by the test")
    }

    pub(crate) fn owner(&self) -> Owner {
        self.engine.owner(Api::NoSql, "db", "c").expect("made by the test")
    }

    /// Sets `D`: `None` is off.
    pub(crate) fn set_default(&self, ttl: Option<i64>) {
        let more = ttl.map_or(String::new(), |ttl| format!(r#","defaultTtl":{ttl}"#));
        let container = self.current();
        let mut definition = definition("c", &more);
        definition.unique_keys.clone_from(&container.definition.unique_keys);
        self.engine.replace_container(&container, definition, &Precondition::None).expect("a valid change");
    }

    pub(crate) fn run(&self, pk: &str, operation: Operation) -> Result<Outcome, Error> {
        self.engine.write(&self.current(), Some(key(pk)), operation).wait()
    }

    pub(crate) fn create(&self, pk: &str, text: &str) -> Result<Item, Error> {
        let outcome = self.run(pk, Operation::Create { body: body(pk, text) })?;
        assert_eq!(outcome.effect, Effect::Created);
        Ok(outcome.item.expect("a created item"))
    }

    pub(crate) fn upsert(&self, pk: &str, text: &str) -> Result<Outcome, Error> {
        self.run(pk, Operation::Upsert { body: body(pk, text), precondition: Precondition::None })
    }

    pub(crate) fn replace(&self, pk: &str, id: &str, text: &str) -> Result<Item, Error> {
        let (name, body) = (ItemName::Id(id.into()), body(pk, text));
        let operation = Operation::Replace { name, body, precondition: Precondition::None };
        Ok(self.run(pk, operation)?.item.expect("a replaced item"))
    }

    pub(crate) fn patch(&self, pk: &str, id: &str, patch: &str) -> Result<Item, Error> {
        let operation = Operation::Patch {
            name: ItemName::Id(id.into()),
            patch: Patch::from_value(&value(patch)).expect("a valid patch"),
            precondition: Precondition::None,
        };
        Ok(self.run(pk, operation)?.item.expect("a patched item"))
    }

    pub(crate) fn delete(&self, pk: &str, id: &str) -> Result<Outcome, Error> {
        self.run(pk, Operation::Delete { name: ItemName::Id(id.into()), precondition: Precondition::None })
    }

    pub(crate) fn read(&self, pk: &str, id: &str) -> Result<Item, Error> {
        let name = ItemName::Id(id.into());
        let outcome = self.engine.read(&self.current(), &key(pk), &name, &Precondition::None)?;
        Ok(outcome.item.expect("a read item"))
    }

    /// Returns whether the item is living; every other error fails the test.
    pub(crate) fn is_living(&self, pk: &str, id: &str) -> bool {
        match self.read(pk, id) {
            Ok(_) => true,
            Err(Error::NotFound { .. }) => false,
            Err(other) => panic!("reading {id}: {other}"),
        }
    }

    /// Returns the ids that a query finds, in its order.
    pub(crate) fn ids(&self, query: &str) -> Vec<String> {
        ids(&self.page(Some(query), 1000, None))
    }

    /// Returns one page of a query, or of all items.
    pub(crate) fn page(
        &self,
        query: Option<&str>,
        max_items: usize,
        continuation: Option<String>,
    ) -> QueryPage {
        self.page_in(&Scope::default(), query, max_items, continuation)
    }

    /// Returns the same for a part of the container.
    pub(crate) fn page_in(
        &self,
        scope: &Scope,
        query: Option<&str>,
        max_items: usize,
        continuation: Option<String>,
    ) -> QueryPage {
        let query = query.map(parse);
        let request = QueryRequest {
            scope: scope.clone(),
            continuation,
            ..QueryRequest::new(query.as_ref(), max_items)
        };
        self.engine.query(&self.current(), &request).expect("an answer")
    }

    /// Returns all rows of a query, page by page.
    pub(crate) fn rows(&self, query: &str, max_items: usize) -> Vec<String> {
        let (mut rows, mut continuation) = (Vec::new(), None);
        loop {
            let page = self.page(Some(query), max_items, continuation);
            rows.extend(page.rows.into_iter().map(|row| String::from_utf8(row).expect("JSON is text")));
            continuation = page.continuation;
            if continuation.is_none() {
                return rows;
            }
        }
    }

    /// Takes one step of the purge.
    pub(crate) fn purge_some(&self, max_items: usize) {
        self.engine.purge_step(max_items).expect("a purge step");
    }

    /// Runs the purge until it has nothing to do.
    pub(crate) fn drain(&self) -> u64 {
        let mut purged = 0;
        loop {
            let report = self.engine.purge_step(3).expect("a purge step");
            purged += report.purged_items;
            let now = self.engine.now().expect("a running clock");
            if report.next_due.is_none_or(|due| due > now) {
                return purged;
            }
        }
    }

    /// Returns (living items, expired items that are not purged).
    pub(crate) fn counts(&self) -> (u64, u64) {
        let usage = self.engine.usage(&self.current()).expect("figures");
        (usage.living.items, usage.expired.items)
    }
}

fn open(disk: &MemoryDisk, clock: &Arc<ManualClock>, archive: &Arc<MemoryArchive>) -> Engine {
    let store = MemoryStore::open(disk.clone(), ClockOptions::new(clock.clone())).expect("the store opens");
    let options = Options { archive: Some(archive.clone()), ..Options::default() };
    Engine::open_with(Arc::new(store), options).expect("the engine opens")
}

pub(crate) fn definition(id: &str, more: &str) -> ContainerDefinition {
    let text =
        format!(r#"{{"id":"{id}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{more}}}"#);
    ContainerDefinition::from_value(&value(&text)).expect("a valid definition")
}

pub(crate) fn value(text: &str) -> Value {
    parse_json(text.as_bytes()).expect("valid JSON")
}

pub(crate) fn key(pk: &str) -> PartitionKey {
    PartitionKey::from_header(&format!("[{}]", Value::String(pk.into()).to_json())).expect("a valid key")
}

/// Returns `{"pk": pk, ...}` with the members in `text`.
pub(crate) fn body(pk: &str, text: &str) -> Document {
    Document::from_json(format!(r#"{{"pk":"{pk}",{text}}}"#).as_bytes()).expect("valid JSON")
}

/// Returns a query that must be valid.
pub(crate) fn parse(text: &str) -> query::Query {
    query::parse(text, &[], &query::Dialect::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns the ids of a page's items.
pub(crate) fn ids(page: &QueryPage) -> Vec<String> {
    let id = |row: &Vec<u8>| {
        let item = parse_json(row).expect("a row is JSON");
        item.get("id").and_then(Value::as_str).expect("a row is an item").to_owned()
    };
    page.rows.iter().map(id).collect()
}
