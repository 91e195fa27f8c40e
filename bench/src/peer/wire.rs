//! Bolide over the MongoDB wire protocol.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use super::{About, Connection, Measured, Peer};
use crate::client::{Bson, Server, Value, WireClient, message};
use crate::documents::{DataSet, Fields, Shape, TTL_SECONDS};
use crate::workload::{Kind, Operation};

const DATABASE: &str = "db";

pub struct BolideWire {
    server: Arc<Server>,
    about: About,
}

impl BolideWire {
    pub fn new(server: Arc<Server>, binary: &Path) -> Result<BolideWire> {
        let about = About {
            version: super::rest::version(binary)?,
            settings: "default settings; indexes on _id, group, (pk, n), TTL on expires".to_owned(),
            durability: "synced to disk, in group commits".to_owned(),
        };
        Ok(BolideWire { server, about })
    }
}

impl Peer for BolideWire {
    fn name(&self) -> &str {
        "bolide wire"
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn supports(&self, _: Kind) -> bool {
        true
    }

    fn prepare(&self, set: &DataSet) -> Result<()> {
        let index = |name: &str, key: Bson| Bson::new().document("key", key).text("name", name);
        let indexes = [
            index("group", Bson::new().int("group", 1)),
            index("place", Bson::new().int("pk", 1).int("n", 1)),
            index("expires", Bson::new().int("expires", 1)).int("expireAfterSeconds", TTL_SECONDS as i32),
        ];
        let command = Bson::new().text("createIndexes", &set.name);
        let command = command.array("indexes", indexes.map(Bson::finish));
        self.server.wire_client()?.command(DATABASE, command).map(drop)
    }

    fn connect(&self, set: &DataSet) -> Result<Box<dyn Connection>> {
        Ok(Box::new(WireConnection::connect(&self.server.mongo_address, set)?))
    }

    fn measured(&self) -> &dyn Measured {
        &*self.server
    }
}

pub(super) struct WireConnection {
    client: WireClient,
    collection: String,
    shape: Shape,
    last: Operation,
    /// The cursor of the change stream, once it is open.
    cursor: Option<i64>,
    /// The documents of all batches of the last scan.
    found: usize,
}

impl WireConnection {
    pub(super) fn connect(address: &str, set: &DataSet) -> Result<WireConnection> {
        let mut client = WireClient::connect(address)?;
        client.command("admin", Bson::new().int("hello", 1))?;
        Ok(WireConnection {
            client,
            collection: set.name.clone(),
            shape: set.shape,
            last: Operation::Tail,
            cursor: None,
            found: 0,
        })
    }

    fn insert(&self, id: u64, expires: bool) -> Bson {
        let mut fields = Fields::new(id, 0, self.shape);
        fields.expires = expires;
        let document = fields.bson(now_ms()).finish();
        Bson::new().text("insert", &self.collection).array("documents", [document])
    }

    fn update(&self, id: u64, change: Bson, upsert: bool) -> Bson {
        let filter = Bson::new().text("_id", &id.to_string());
        let update = Bson::new().document("q", filter).document("u", change);
        let update = if upsert { update.bool("upsert", true) } else { update };
        Bson::new().text("update", &self.collection).array("updates", [update.finish()])
    }

    fn find(&self, filter: Bson) -> Bson {
        Bson::new().text("find", &self.collection).document("filter", filter)
    }

    fn command(&self, operation: Operation) -> Bson {
        match operation {
            Operation::Insert(id) => self.insert(id, false),
            Operation::InsertExpiring(id) => self.insert(id, true),
            Operation::Read(id) => {
                let filter = Bson::new().text("_id", &id.to_string());
                self.find(filter).int("limit", 1).bool("singleBatch", true)
            }
            Operation::Replace(id, version) => {
                self.update(id, Fields::new(id, version, self.shape).bson(0), false)
            }
            Operation::Upsert(id, version) => {
                self.update(id, Fields::new(id, version, self.shape).bson(0), true)
            }
            Operation::Patch(id, version) => {
                let set = Bson::new().int("price", version as i32);
                self.update(id, Bson::new().document("$set", set), false)
            }
            Operation::Query(group) => self.find(Bson::new().text("group", &format!("g{group}"))),
            Operation::Scoped(group) => {
                let pk = self.shape.partition_of_group(group);
                self.find(Bson::new().text("pk", &pk.to_string()).text("group", &format!("g{group}")))
            }
            Operation::Top(pk) => self
                .find(Bson::new().text("pk", &pk.to_string()))
                .document("sort", Bson::new().int("n", -1))
                .int("limit", 10),
            Operation::Count(pk) => {
                let below = Bson::new().int("$lt", self.shape.middle() as i32);
                let query = Bson::new().text("pk", &pk.to_string()).document("n", below);
                Bson::new().text("count", &self.collection).document("query", query)
            }
            Operation::Contains => {
                let pattern = Bson::new().text("$regex", "x");
                self.find(Bson::new().document("name", pattern)).int("batchSize", 1000)
            }
            Operation::Tail => self.tail(),
        }
    }

    /// Returns the command for the new events of the change stream; the first call opens it.
    fn tail(&self) -> Bson {
        match self.cursor {
            None => {
                let stage = Bson::new().document("$changeStream", Bson::new()).finish();
                Bson::new()
                    .text("aggregate", &self.collection)
                    .array("pipeline", [stage])
                    .document("cursor", Bson::new())
            }
            Some(cursor) => Bson::new()
                .long("getMore", cursor)
                .text("collection", &self.collection)
                .int("maxTimeMS", 1000),
        }
    }

    /// Counts the documents of the last answer, and gets all further batches.
    fn rest_of_scan(&mut self) -> Result<()> {
        self.found = self.batch("firstBatch")?;
        loop {
            let cursor = self.opened()?;
            if cursor == 0 {
                return Ok(());
            }
            let more = Bson::new().long("getMore", cursor).text("collection", &self.collection);
            self.client.exchange(&message(DATABASE, more))?;
            self.found += self.batch("nextBatch")?;
        }
    }

    /// Returns the number of documents in the last answer.
    fn batch(&self, name: &str) -> Result<usize> {
        let cursor = Value::field(self.client.checked()?, "cursor")?.context("no cursor")?;
        let batch = Value::field(cursor.bytes().context("no document")?, name)?.context("no batch")?;
        Ok(crate::client::Fields::of(batch.bytes().context("no array")?)?.count())
    }

    fn opened(&self) -> Result<i64> {
        let cursor = Value::field(self.client.checked()?, "cursor")?.context("no cursor")?;
        match Value::field(cursor.bytes().context("no document")?, "id")? {
            Some(Value::Long(id)) => Ok(id),
            other => anyhow::bail!("a cursor named {other:?}"),
        }
    }

    fn number(&self, name: &str) -> Result<usize> {
        let value = Value::field(self.client.checked()?, name)?.and_then(|value| value.number());
        Ok(value.context("no such number")? as usize)
    }
}

impl Connection for WireConnection {
    fn run(&mut self, operation: Operation) -> Result<()> {
        self.last = operation;
        let message = message(DATABASE, self.command(operation));
        self.client.exchange(&message)?;
        let answer = self.client.checked()?;
        if operation == Operation::Tail {
            self.cursor = Some(self.opened()?);
            return Ok(());
        }
        if operation == Operation::Contains {
            return self.rest_of_scan();
        }
        let changed = matches!(
            operation,
            Operation::Insert(_)
                | Operation::InsertExpiring(_)
                | Operation::Replace(..)
                | Operation::Patch(..)
        );
        if changed {
            let count = Value::field(answer, "n")?.and_then(|count| count.number());
            ensure!(count == Some(1.0), "{count:?} documents for {operation:?}");
        }
        Ok(())
    }

    fn rows(&self) -> Result<usize> {
        match self.last {
            Operation::Read(_) | Operation::Query(_) | Operation::Scoped(_) | Operation::Top(_) => {
                self.batch("firstBatch")
            }
            Operation::Contains => Ok(self.found),
            Operation::Count(_) => self.number("n"),
            _ => Ok(1),
        }
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
