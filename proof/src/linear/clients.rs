//! Item operations of both APIs: their requests, and the meaning of their answers.

use anyhow::{Context, Result, bail};
use bolide_bench::client::{self, Bson, Value, WireClient, message};

use super::items::{Answer, Call, LIFE_SECONDS, STEP_SECONDS, Tag};
use crate::item_client::{Act, DirectClient, ItemClient, ItemRequest};
use crate::process::Server;

/// One client over one connection.
pub(super) trait Client: Sized {
    /// Makes the container of the items.
    fn prepare(server: &Server) -> Result<()>;

    /// Returns the client of a number, whose items are those of one round.
    fn connect(server: &Server, round: u64, number: usize) -> Result<Self>;

    fn perform(&mut self, call: &Call) -> Result<Answer>;
}

/// A client of the NoSQL API, some by HTTP and some in direct mode. Etags tell versions apart.
pub(super) struct Nosql {
    client: Box<dyn ItemClient>,
    /// Moves the clock.
    operator: client::Client,
    round: u64,
}

const CONTAINER: &str = "linear";

impl Nosql {
    fn ask(&mut self, act: Act, key: usize, if_match: Option<&Tag>, body: &str) -> Result<client::Answer> {
        let (id, if_match) = (format!("{}-{key}", self.round), if_match.map(String::as_str));
        self.client.item(&ItemRequest { act, container: CONTAINER, pk: "p", id: &id, if_match, body })
    }

    fn write(&mut self, act: Act, key: usize, value: u64, if_match: Option<&Tag>) -> Result<client::Answer> {
        let body = format!("{{\"id\":\"{}-{key}\",\"pk\":\"p\",\"v\":{value}}}", self.round);
        self.ask(act, key, if_match, &body)
    }
}

impl Client for Nosql {
    fn prepare(server: &Server) -> Result<()> {
        let mut client = client::Client::connect(&server.address)?;
        client.database("db")?;
        client.container(CONTAINER, &format!(",\"defaultTtl\":{LIFE_SECONDS}"), "")
    }

    fn connect(server: &Server, round: u64, number: usize) -> Result<Nosql> {
        let client: Box<dyn ItemClient> = if number.is_multiple_of(2) {
            Box::new(client::Client::connect(&server.address)?)
        } else {
            Box::new(DirectClient::connect(server)?)
        };
        Ok(Nosql { client, operator: client::Client::connect(&server.address)?, round })
    }

    fn perform(&mut self, call: &Call) -> Result<Answer> {
        let answer = match call {
            Call::Create { key, value } => self.write(Act::Create, *key, *value, None)?,
            Call::Put { key, value } => self.write(Act::Upsert, *key, *value, None)?,
            Call::Replace { key, value, at } => self.write(Act::Replace, *key, *value, at.as_ref())?,
            Call::Delete { key, at } => self.ask(Act::Delete, *key, at.as_ref(), "")?,
            Call::Read { key } => self.ask(Act::Read, *key, None, "")?,
            Call::Add { key } => {
                let body = "{\"operations\":[{\"op\":\"incr\",\"path\":\"/v\",\"value\":1}]}";
                self.ask(Act::Patch, *key, None, body)?
            }
            Call::MoveClock => {
                self.operator.advance(STEP_SECONDS)?;
                return Ok(Answer::Done);
            }
        };
        let tag = answer.etag.clone();
        Ok(match (call, answer.status) {
            (Call::Create { .. }, 201) => Answer::Written { tag, is_new: None },
            (Call::Put { .. }, 201) => Answer::Written { tag, is_new: Some(true) },
            (Call::Put { .. }, 200) => Answer::Written { tag, is_new: Some(false) },
            (Call::Replace { .. }, 200) => Answer::Written { tag, is_new: None },
            (Call::Read { .. } | Call::Add { .. }, 200) => {
                Answer::Value { value: answer.number("v").context("an item without its value")?, tag }
            }
            (Call::Delete { .. }, 204) => Answer::Done,
            (Call::Create { .. }, 409) => Answer::Exists,
            (Call::Replace { .. } | Call::Delete { .. } | Call::Read { .. } | Call::Add { .. }, 404) => {
                Answer::Missing
            }
            (Call::Replace { .. } | Call::Delete { .. }, 412) => Answer::Stale,
            (_, status) => bail!("{status}: {}", answer.body),
        })
    }
}

/// A client of the MongoDB API. There are no etags: conditions are on the value, and a filter that finds nothing gives no
/// reason.
pub(super) struct Wire {
    client: WireClient,
    /// Moves the clock.
    operator: client::Client,
    round: u64,
}

const DATABASE: &str = "linear";
const COLLECTION: &str = "items";
const DUPLICATE_KEY: f64 = 11_000.0;

impl Wire {
    fn filter(&self, key: usize, at: Option<&Tag>) -> Result<Bson> {
        let filter = Bson::new().text("_id", &format!("{}-{key}", self.round));
        Ok(match at {
            Some(value) => filter.long("v", value.parse()?),
            None => filter,
        })
    }

    /// Returns whether an update changed something, and whether it made the document.
    fn update(&mut self, filter: Bson, value: u64, upsert: bool) -> Result<(bool, bool)> {
        let update = Bson::new()
            .document("q", filter)
            .document("u", Bson::new().document("$set", Bson::new().long("v", value as i64)))
            .bool("upsert", upsert)
            .finish();
        let answer = self
            .client
            .command(DATABASE, Bson::new().text("update", COLLECTION).array("updates", [update]))?;
        let is_new = Value::field(answer, "upserted")?.is_some();
        Ok((count(answer)? > 0.0, is_new))
    }

    fn insert(&mut self, key: usize, value: u64) -> Result<Answer> {
        let document = self.filter(key, None)?.long("v", value as i64).finish();
        let command = Bson::new().text("insert", COLLECTION).array("documents", [document]);
        let answer = self.client.exchange(&message(DATABASE, command))?;
        let Some(errors) = Value::field(answer, "writeErrors")? else {
            self.client.checked()?;
            return Ok(Answer::Written { tag: value.to_string(), is_new: None });
        };
        let first = Value::field(errors.bytes().context("an array")?, "0")?.and_then(|error| error.bytes());
        let code = Value::field(first.context("an error")?, "code")?.and_then(|code| code.number());
        anyhow::ensure!(code == Some(DUPLICATE_KEY), "a write error {code:?}");
        Ok(Answer::Exists)
    }

    fn find(&mut self, key: usize) -> Result<Answer> {
        let command = Bson::new().text("find", COLLECTION).document("filter", self.filter(key, None)?);
        let answer = self.client.command(DATABASE, command)?;
        let cursor = Value::field(answer, "cursor")?.and_then(|cursor| cursor.bytes()).context("a cursor")?;
        let batch = Value::field(cursor, "firstBatch")?.and_then(|batch| batch.bytes()).context("a batch")?;
        match Value::field(batch, "0")? {
            Some(document) => value_of(document),
            None => Ok(Answer::Missing),
        }
    }

    fn add(&mut self, key: usize) -> Result<Answer> {
        let command = Bson::new()
            .text("findAndModify", COLLECTION)
            .document("query", self.filter(key, None)?)
            .document("update", Bson::new().document("$inc", Bson::new().long("v", 1)))
            .bool("new", true);
        let answer = self.client.command(DATABASE, command)?;
        match Value::field(answer, "value")? {
            Some(document @ Value::Document(_)) => value_of(document),
            _ => Ok(Answer::Missing),
        }
    }
}

fn count(answer: &[u8]) -> Result<f64> {
    Value::field(answer, "n")?.and_then(|n| n.number()).context("an answer without its count")
}

fn value_of(document: Value<'_>) -> Result<Answer> {
    let value = Value::field(document.bytes().context("a document")?, "v")?.and_then(|value| value.number());
    let value = value.context("a document without its value")? as u64;
    Ok(Answer::Value { value, tag: value.to_string() })
}

impl Client for Wire {
    /// Makes documents expire by the time of their last write.
    fn prepare(server: &Server) -> Result<()> {
        let index = Bson::new()
            .document("key", Bson::new().int("_ts", 1))
            .text("name", "life")
            .int("expireAfterSeconds", LIFE_SECONDS as i32)
            .finish();
        let command = Bson::new().text("createIndexes", COLLECTION).array("indexes", [index]);
        WireClient::connect(&server.mongo)?.command(DATABASE, command).map(drop)
    }

    fn connect(server: &Server, round: u64, _: usize) -> Result<Wire> {
        let (client, operator) =
            (WireClient::connect(&server.mongo)?, client::Client::connect(&server.address)?);
        Ok(Wire { client, operator, round })
    }

    fn perform(&mut self, call: &Call) -> Result<Answer> {
        let written = |value: &u64, is_new| Answer::Written { tag: value.to_string(), is_new };
        Ok(match call {
            Call::Create { key, value } => self.insert(*key, *value)?,
            Call::Put { key, value } => {
                let (_, is_new) = self.update(self.filter(*key, None)?, *value, true)?;
                written(value, Some(is_new))
            }
            Call::Replace { key, value, at } => {
                let (is_done, _) = self.update(self.filter(*key, at.as_ref())?, *value, false)?;
                if is_done { written(value, None) } else { Answer::Refused }
            }
            Call::Delete { key, at } => {
                let delete =
                    Bson::new().document("q", self.filter(*key, at.as_ref())?).int("limit", 1).finish();
                let command = Bson::new().text("delete", COLLECTION).array("deletes", [delete]);
                let is_done = count(self.client.command(DATABASE, command)?)? > 0.0;
                if is_done { Answer::Done } else { Answer::Refused }
            }
            Call::Read { key } => self.find(*key)?,
            Call::Add { key } => self.add(*key)?,
            Call::MoveClock => {
                self.operator.advance(STEP_SECONDS)?;
                Answer::Done
            }
        })
    }
}
