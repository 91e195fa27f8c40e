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
use crate::expiry::{Cause, DateRule, Millis, Policy, from_seconds};
use crate::header::{Body, Header, Record};
use crate::write::id_of;

/// A longer `_id` is told by its hash: an `_id` may be as long as a document.
const ADDRESS_BYTES_MAX: usize = 4096;

/// The rule of items that name the instant of their death (T33).
const EXPIRE_AT_PATH: &str = r#""rule":"expireAtPath""#;

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

    /// What a rule by which items die at a date is called, as JSON members. One that is gone has no number any more.
    fn date_rule(&self, number: Option<u32>) -> String;
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

    fn date_rule(&self, _number: Option<u32>) -> String {
        EXPIRE_AT_PATH.to_owned()
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

    fn date_rule(&self, number: Option<u32>) -> String {
        if number == Some(DateRule::ABSOLUTE) {
            return EXPIRE_AT_PATH.to_owned();
        }
        // The index may be gone by now, and its rule with it.
        let index = number.and_then(|number| self.indexes.get(number));
        let name = index.map_or_else(|| "null".to_owned(), |index| json_text(index.spec.name()));
        format!(r#""rule":"dateIndex","index":{name}"#)
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

/// The rule that killed an item, as JSON members; where its ttl is not counted from `_ts`, also from when on (T33).
fn rule<K: Keeper>(keeper: &K, policy: &Policy, header: &Header, cause: Cause) -> String {
    let seconds = cause.delay / 1000;
    if header.ttl_place() != Some(cause.place) {
        let rule = keeper.date_rule(policy.rule_of(cause.place.queue).map(|rule| rule.id));
        return format!(r#"{rule},"seconds":{seconds}"#);
    }
    let rule = match header.ttl {
        OwnTtl::Seconds(seconds) => format!(r#""rule":"ttl","seconds":{seconds}"#),
        OwnTtl::Absent | OwnTtl::Never => format!(r#""rule":"defaultTtl","seconds":{seconds}"#),
    };
    match header.counts_from() {
        from if from == from_seconds(header.ts) => rule,
        from => format!(r#"{rule},"from":"{}""#, format_date(from)),
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
