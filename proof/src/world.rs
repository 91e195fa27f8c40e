//! The containers and the collection under test, and the shared state of the writers.
//!
//! | name | what it is for |
//! |---|---|
//! | `versions` | a feed of all versions; items with a `ttl` of their own |
//! | `policy` | a feed, and a `defaultTtl` that changes under the items |
//! | `bulk` | larger items in batches, index builds, mass expiry, rewriting of tables |
//! | collection `c` | the MongoDB API; documents expire by a TTL index on a date |

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Bson, Client, Fields, Value as BsonValue, WireClient};
use parking_lot::Mutex;
use serde_json::Value;

use crate::items;
use crate::ledger::{Event, Version};
use crate::times::{Clock, Rules, Span, Ttl};

/// The containers, by position.
pub const CONTAINERS: [&str; 3] = ["versions", "policy", "bulk"];
pub const VERSIONS: usize = 0;
pub const POLICY: usize = 1;
pub const BULK: usize = 2;
/// The containers whose feed of all versions is compared.
pub const WITH_FEED: [usize; 2] = [VERSIONS, POLICY];
/// The database of the MongoDB API.
pub const DATABASE: &str = "wire";
/// Minutes for which feeds are kept: more than all the clock is moved in a round.
const RETENTION_MINUTES: u32 = 1440;
/// Items of a page.
const PAGE: u32 = 1000;

/// The server cannot be reached: there is nothing to compare.
#[derive(Debug)]
pub struct Lost;

impl std::fmt::Display for Lost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the connection is gone")
    }
}

impl std::error::Error for Lost {}

/// What all writers share.
pub struct World {
    pub clock: Mutex<Clock>,
    /// The latest time that the server ever returned.
    shown: AtomicI64,
    pub rules: [Mutex<Rules>; CONTAINERS.len()],
    /// Of the collection: dates always count.
    pub date_rules: Rules,
    /// A `defaultTtl` of container `policy` whose change is in flight.
    changing: Mutex<Option<Ttl>>,
    numbers: AtomicU64,
}

/// The position of a feed's consumer, and the events that are not compared yet.
#[derive(Default)]
pub struct FeedState {
    pub position: String,
    pub events: HashMap<String, Vec<Event>>,
}

impl Default for World {
    fn default() -> World {
        World::with_rules([Ttl::Infinite, Ttl::Seconds(60), Ttl::Infinite])
    }
}

impl World {
    /// Returns a world in which the containers have these rules from the beginning.
    pub fn with_rules(rules: [Ttl; CONTAINERS.len()]) -> World {
        World {
            clock: Mutex::default(),
            shown: AtomicI64::new(0),
            changing: Mutex::default(),
            rules: rules.map(|ttl| Mutex::new(Rules::new(ttl))),
            date_rules: Rules::new(Ttl::Infinite),
            numbers: AtomicU64::new(1),
        }
    }

    /// Returns the same rules on another server, whose time is its own.
    pub fn elsewhere(&self) -> World {
        let rules = std::array::from_fn(|at| Mutex::new(self.rules[at].lock().clone()));
        World { rules, ..World::default() }
    }

    /// Returns an unused number for a version or a group of writes.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub fn now(&self) -> Span {
        self.clock.lock().now()
    }

    /// Asks the server for its time. The bounds are close, since nothing is written meanwhile.
    pub fn read_clock(&self, client: &mut Client) -> Result<i64> {
        let begun = self.clock.lock().begin();
        let answer = client.admin("GET", "/_bolide/clock", "")?.expect(200)?;
        let now = answer.number("now").context("a clock without a time")? as i64;
        self.clock.lock().read(begun, now);
        let before = self.shown.fetch_max(now, Ordering::Relaxed);
        ensure!(now >= before, "time went back from {before} to {now}");
        Ok(now)
    }

    /// Changes the `defaultTtl` of container `policy`.
    pub fn change_policy(&self, client: &mut Client, ttl: Ttl) -> Result<()> {
        let rules = &self.rules[POLICY];
        rules.lock().changing(ttl, self.now());
        *self.changing.lock() = Some(ttl);
        let path = format!("/dbs/db/colls/{}", CONTAINERS[POLICY]);
        let body = definition(CONTAINERS[POLICY], ttl, Indexed::Everything);
        client.request("PUT", &path, "", &body).map_err(|_| Lost)?.expect(200)?;
        rules.lock().changed(self.now());
        *self.changing.lock() = None;
        Ok(())
    }

    /// Returns `true` if a change of container `policy` is in flight.
    pub fn is_changing_policy(&self) -> bool {
        self.changing.lock().is_some()
    }

    /// Determines after a restart whether the change that was in flight was made.
    pub fn settle_policy(&self, client: &mut Client) -> Result<()> {
        let path = format!("/dbs/db/colls/{}", CONTAINERS[POLICY]);
        let answer = client.request("GET", &path, "", "")?.expect(200)?;
        let found: Value = serde_json::from_str(&answer.body)?;
        let found = match found["defaultTtl"].as_i64() {
            None => Ttl::Off,
            Some(-1) => Ttl::Infinite,
            Some(seconds) => Ttl::Seconds(seconds),
        };
        let mut rules = self.rules[POLICY].lock();
        let changing = self.changing.lock().take();
        if changing.is_some_and(|changing| changing != found) {
            rules.unchanged();
        }
        ensure!(rules.last() == found, "defaultTtl is {found:?}, acknowledged was {:?}", rules.last());
        if changing == Some(found) {
            rules.changed(self.now());
        }
        Ok(())
    }

    /// Moves the server's clock.
    pub fn advance(&self, client: &mut Client, seconds: u64) -> Result<()> {
        self.clock.lock().advancing(seconds);
        client.advance(seconds)?;
        self.clock.lock().advanced(seconds);
        Ok(())
    }

    /// Makes the containers and the collection of a new store.
    pub fn make(&self, client: &mut Client, wire: &mut WireClient) -> Result<()> {
        client.database("db")?;
        for (at, name) in CONTAINERS.iter().enumerate() {
            let ttl = self.rules[at].lock().last();
            client
                .request("POST", "/dbs/db/colls", "", &definition(name, ttl, Indexed::Everything))?
                .expect(201)?;
            if WITH_FEED.contains(&at) {
                let settings = "{\"previousImages\":true}";
                client.admin("PATCH", &format!("/_bolide/ttl/db/{name}"), settings)?.expect(200)?;
            }
        }
        let index = Bson::new()
            .document("key", Bson::new().int("at", 1))
            .text("name", "at_1")
            .int("expireAfterSeconds", 0);
        let command = Bson::new().text("createIndexes", "c").array("indexes", [index.finish()]);
        wire.command(DATABASE, command).map(drop)
    }
}

/// What an indexing policy covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexed {
    Everything,
    /// All but the texts, and a composite index.
    Numbers,
}

/// Returns a container's definition.
pub fn definition(name: &str, ttl: Ttl, indexed: Indexed) -> String {
    let ttl = match ttl {
        Ttl::Off => String::new(),
        Ttl::Infinite => ",\"defaultTtl\":-1".to_owned(),
        Ttl::Seconds(seconds) => format!(",\"defaultTtl\":{seconds}"),
    };
    let feed = match WITH_FEED.iter().any(|at| CONTAINERS[*at] == name) {
        true => format!(",\"changeFeedPolicy\":{{\"retentionDuration\":{RETENTION_MINUTES}}}"),
        false => String::new(),
    };
    let indexing = match indexed {
        Indexed::Everything => "",
        Indexed::Numbers => {
            ",\"indexingPolicy\":{\"indexingMode\":\"consistent\",\"includedPaths\":[{\"path\":\"/*\"}],\
             \"excludedPaths\":[{\"path\":\"/fill/?\"}],\"compositeIndexes\":[[{\"path\":\"/group\",\
             \"order\":\"ascending\"},{\"path\":\"/rev\",\"order\":\"descending\"}]]}"
        }
    };
    format!(
        "{{\"id\":\"{name}\",\"partitionKey\":{{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}\
         {ttl}{feed}{indexing}}}"
    )
}

/// Returns everything that is live in a container, by id, each with its version.
pub fn living(client: &mut Client, container: &str, alive: i64) -> Result<HashMap<String, Version>> {
    let mut found = HashMap::new();
    let mut position = String::new();
    while let Some(page) = feed_page(client, container, "Incremental Feed", &mut position)? {
        for item in page {
            let id = item["id"].as_str().context("an item without an id")?.to_owned();
            let version =
                items::version(&item, alive).with_context(|| format!("item {id} in {container}"))?;
            ensure!(
                found.insert(id.clone(), version).is_none(),
                "{id} comes twice in the feed of {container}"
            );
        }
    }
    Ok(found)
}

/// Reads a feed of all versions to its end; the position moves with every page that was understood.
pub fn follow(client: &mut Client, container: &str, told: &mut FeedState) -> Result<()> {
    if told.position.is_empty() {
        "*".clone_into(&mut told.position);
    }
    let mut position = told.position.clone();
    while let Some(page) = feed_page(client, container, "Full-Fidelity Feed", &mut position)? {
        for envelope in page {
            let (id, event) = items::event(&envelope)?;
            told.events.entry(id).or_default().push(event);
        }
        told.position.clone_from(&position);
    }
    told.position = position;
    Ok(())
}

/// Returns one page, none at the end.
fn feed_page(
    client: &mut Client,
    container: &str,
    kind: &str,
    position: &mut String,
) -> Result<Option<Vec<Value>>> {
    let from = match position.as_str() {
        "" => String::new(),
        position => format!("if-none-match: {position}\r\n"),
    };
    let headers = format!(
        "a-im: {kind}\r\nx-ms-max-item-count: {PAGE}\r\n\
         x-ms-cosmos-changefeed-wire-format-version: 2021-09-15\r\n{from}"
    );
    let path = format!("/dbs/db/colls/{container}/docs");
    let answer = client.request("GET", &path, &headers, "").map_err(|_| Lost)?;
    position.clone_from(&answer.etag);
    if answer.status == 304 {
        return Ok(None);
    }
    let answer = answer.expect(200)?;
    let mut page: Value = serde_json::from_str(&answer.body)?;
    let Value::Array(mut page) = page["Documents"].take() else { anyhow::bail!("a page without items") };
    if kind == "Incremental Feed" {
        page.iter_mut().for_each(|envelope| *envelope = envelope["current"].take());
    }
    Ok(Some(page))
}

/// Returns everything that is live in the collection.
pub fn living_documents(wire: &mut WireClient, alive: i64) -> Result<HashMap<String, Version>> {
    let mut found = HashMap::new();
    let find = Bson::new().text("find", "c").document("filter", Bson::new()).int("batchSize", 100_000);
    let answer = wire.command(DATABASE, find)?;
    let cursor =
        BsonValue::field(answer, "cursor")?.and_then(|cursor| cursor.bytes()).context("no cursor")?;
    let more = BsonValue::field(cursor, "id")?.and_then(|id| id.number());
    ensure!(more == Some(0.0), "the collection does not fit a page");
    let batch =
        BsonValue::field(cursor, "firstBatch")?.and_then(|batch| batch.bytes()).context("no batch")?;
    for field in Fields::of(batch)? {
        let document = field?.1.bytes().context("no document")?;
        let (id, version) = items::document_version(document, alive)?;
        ensure!(found.insert(id.clone(), version).is_none(), "{id} comes twice");
    }
    Ok(found)
}
