//! What evidence tells of a dead item: which it was, when it died, and by which rule. The archive (T32) and the deletion
//! record say it in the same words, so that a line of one can be found in the other.
//!
//! ```text
//!   "id":"x","partitionKey":["a"],"_ts":1700000000,"expired":"2023-11-14T22:14:20.000Z","rule":"defaultTtl","seconds":60
//! ```
//!
//! An item has died at the instant that the feed of all versions tells (decision 0012), but not before it was written: a
//! document with a date in the past dies on arrival.

use std::fmt::Write as _;

use bson::{RawDocument, ValueRef, format_date};
use document::{Document, PartitionKey, Value};
use sha2::{Digest, Sha256};

use crate::collection::{Collection, IndexList};
use crate::container::Container;
use crate::definition::OwnTtl;
use crate::error::{Error, Result};
use crate::expiry::{Cause, Millis, Policy, Queue, from_seconds};
use crate::header::{Body, Header, Record};
use crate::write::id_of;

/// A longer `_id` is told by its hash: an `_id` may be as long as a document.
const ADDRESS_BYTES_MAX: usize = 4096;

/// Whom items belong to, as far as evidence names it.
pub(crate) trait Keeper {
    /// The form of its items.
    type Body: Body + Clone;

    /// The name of its database.
    fn database(&self) -> &str;

    /// Its name.
    fn name(&self) -> &str;

    /// The JSON members that name an item.
    fn address(&self, record: &Record<Self::Body>) -> Result<String>;

    /// What the user stored, as JSON.
    fn item_json(&self, body: &Self::Body) -> String;

    /// The name of the index that a date rule belongs to.
    fn index_name(&self, number: u32) -> Option<&str>;
}

impl Keeper for Container {
    type Body = Document;

    fn database(&self) -> &str {
        &self.database
    }

    fn name(&self) -> &str {
        Container::name(self)
    }

    fn address(&self, record: &Record) -> Result<String> {
        let key = PartitionKey::extract(&self.definition.partition_key, record.body.root())
            .map_err(|error| Error::Corrupt(format!("item {}: {error}", record.number.0)))?;
        Ok(format!(r#""id":{},"partitionKey":{}"#, json_text(id_of(record)), key.to_json()))
    }

    fn item_json(&self, body: &Document) -> String {
        body.root().to_json()
    }

    fn index_name(&self, _number: u32) -> Option<&str> {
        None
    }
}

/// A collection with its indexes as they are at one instant.
pub(crate) struct CollectionKeeper<'a> {
    pub(crate) collection: &'a Collection,
    pub(crate) indexes: &'a IndexList,
}

impl Keeper for CollectionKeeper<'_> {
    type Body = RawDocument;

    fn database(&self) -> &str {
        &self.collection.database
    }

    fn name(&self) -> &str {
        &self.collection.name
    }

    fn address(&self, record: &Record<RawDocument>) -> Result<String> {
        let id = bson::to_extended_json(record.body.get("_id").unwrap_or(ValueRef::Null), false);
        if id.len() <= ADDRESS_BYTES_MAX {
            return Ok(format!(r#""_id":{id}"#));
        }
        Ok(format!(r#""_idSha256":"{}""#, hex(&Sha256::digest(id.as_bytes()).into())))
    }

    fn item_json(&self, body: &RawDocument) -> String {
        bson::to_extended_json(ValueRef::Document(body.view()), false)
    }

    fn index_name(&self, number: u32) -> Option<&str> {
        self.indexes.get(number).map(|index| index.spec.name())
    }
}

/// What is told of one dead item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obituary {
    /// JSON members, without the braces around them.
    pub(crate) members: String,
    /// The instant of its death.
    pub(crate) died: Millis,
}

impl Obituary {
    /// Of a dead item. One that was written overdue, or held until it was, dies `now`; others have died when their time came.
    pub(crate) fn new<K: Keeper>(
        keeper: &K,
        policy: &Policy,
        dead: &Record<K::Body>,
        now: Option<Millis>,
    ) -> Result<Obituary> {
        let cause = match now {
            Some(_) => policy.cause_in_force(&dead.header),
            None => policy.cause(&dead.header),
        };
        let Some(cause) = cause else {
            let number = dead.number.0;
            return Err(Error::Corrupt(format!("item {number} is removed as dead and has not died")));
        };
        let died = now.unwrap_or_else(|| cause.moment.time.max(from_seconds(dead.header.ts)));
        let mut members = keeper.address(dead)?;
        write!(members, r#","_ts":{},"expired":"{}","#, dead.header.ts, format_date(died))
            .expect("text takes all that is written");
        members.push_str(&rule(keeper, policy, &dead.header, cause));
        Ok(Obituary { members, died })
    }
}

/// The rule that killed an item, as JSON members.
fn rule<K: Keeper>(keeper: &K, policy: &Policy, header: &Header, cause: Cause) -> String {
    let seconds = cause.delay / 1000;
    match (cause.place.queue, header.ttl) {
        (Queue::Date(_), _) => {
            // The index may be gone by now, and its rule with it.
            let name = policy.rule_of(cause.place.queue).and_then(|rule| keeper.index_name(rule.id));
            let name = name.map_or_else(|| "null".to_owned(), json_text);
            format!(r#""rule":"dateIndex","index":{name},"seconds":{seconds}"#)
        }
        (_, OwnTtl::Seconds(seconds)) => format!(r#""rule":"ttl","seconds":{seconds}"#),
        _ => format!(r#""rule":"defaultTtl","seconds":{seconds}"#),
    }
}

/// Text as a JSON string.
pub(crate) fn json_text(text: &str) -> String {
    Value::from(text).to_json()
}

/// Bytes in hexadecimal, small letters.
pub(crate) fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut out, byte| {
        write!(out, "{byte:02x}").expect("text takes all that is written");
        out
    })
}
