//! Expiry records: which item expired, when, and by which rule. The archive (T32) and the deletion record use the
//! same JSON members, so that a line of one can be found in the other.
//!
//! ```text
//!   "id":"x","partitionKey":["a"],"_ts":1700000000,"expired":"2023-11-14T22:14:20.000Z","rule":"defaultTtl","seconds":60
//! ```
//!
//! The instant of expiry is the one that the feed of all versions reports (decision 0012), but not before the item
//! was written: a document with a date in the past expires as it is written.

use std::fmt::Write as _;
use std::sync::Arc;

use bson::{RawDocument, ValueRef, format_date};
use document::{Document, PartitionKey, Value};
use sha2::{Digest, Sha256};

use crate::catalog::collection::Collection;
use crate::catalog::collection_indexes::IndexList;
use crate::catalog::container::Container;
use crate::definition::OwnTtl;
use crate::expiry::header::{Body, Header, Record};
use crate::expiry::item::id_of;
use crate::expiry::{Cause, DateRule, Millis, Policy, from_seconds};
use crate::types::error::{Error, Result};

/// The longest `_id` that is written in full; a longer one, which may be as long as a document, is written as its
/// hash.
const ADDRESS_BYTES_MAX: usize = 4096;

/// The rule of items that name the instant of their expiry (T33).
const EXPIRE_AT_PATH: &str = r#""rule":"expireAtPath""#;

/// The owner of items, as far as evidence names it.
pub(crate) trait EvidenceSource {
    /// The form of its items.
    type Body: Body + Clone;

    /// Returns the name of its database.
    fn database(&self) -> &str;

    /// Returns its name.
    fn name(&self) -> &str;

    /// Returns the JSON members that identify an item.
    fn address(&self, record: &Record<Self::Body>) -> Result<String>;

    /// Returns what the user stored, as JSON.
    fn item_json(&self, body: &Self::Body) -> String;

    /// Returns the JSON members that identify a date rule. A rule that was dropped has no number any more.
    fn date_rule(&self, number: Option<u32>) -> String;
}

impl EvidenceSource for Container {
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
pub(crate) struct CollectionSource {
    pub(crate) collection: Arc<Collection>,
    pub(crate) indexes: Arc<IndexList>,
}

impl EvidenceSource for CollectionSource {
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
        // The index may have been dropped by now, and its rule with it.
        let index = number.and_then(|number| self.indexes.get(number));
        let name = index.map_or_else(|| "null".to_owned(), |index| json_text(index.spec.name()));
        format!(r#""rule":"dateIndex","index":{name}"#)
    }
}

/// The expiry record of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpiryRecord {
    /// JSON members, without the braces around them.
    pub(crate) members: String,
    /// The instant of its expiry.
    pub(crate) expired_at: Millis,
}

impl ExpiryRecord {
    /// Creates the record of an expired item. An item that was overdue when it was written, or held until it was
    /// overdue, expires `now`; others have expired when their time came.
    pub(crate) fn new<K: EvidenceSource>(
        source: &K,
        policy: &Policy,
        expired: &Record<K::Body>,
        now: Option<Millis>,
    ) -> Result<ExpiryRecord> {
        let cause = match now {
            Some(_) => policy.cause_in_force(&expired.header),
            None => policy.cause(&expired.header),
        };
        let Some(cause) = cause else {
            let number = expired.number.0;
            return Err(Error::Corrupt(format!(
                "item {number} is being removed as expired, but has not expired"
            )));
        };
        let expired_at = now.unwrap_or_else(|| cause.moment.time.max(from_seconds(expired.header.ts)));
        let mut members = source.address(expired)?;
        write!(members, r#","_ts":{},"expired":"{}","#, expired.header.ts, format_date(expired_at))
            .expect("text takes all that is written");
        members.push_str(&rule(source, policy, &expired.header, cause));
        Ok(ExpiryRecord { members, expired_at })
    }
}

/// Returns the rule by which an item expired, as JSON members, with the start of its countdown where that is not
/// `_ts` (T33).
fn rule<K: EvidenceSource>(source: &K, policy: &Policy, header: &Header, cause: Cause) -> String {
    let seconds = cause.delay / 1000;
    if header.ttl_position() != Some(cause.place) {
        let rule = source.date_rule(policy.rule_of(cause.place.queue).map(|rule| rule.id));
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

/// Returns text as a JSON string.
pub(crate) fn json_text(text: &str) -> String {
    Value::from(text).to_json()
}

/// Returns bytes in hexadecimal, lower case.
pub(crate) fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut out, byte| {
        write!(out, "{byte:02x}").expect("text takes all that is written");
        out
    })
}
