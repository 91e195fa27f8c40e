//! `expireAfterSeconds`: validation, and the date from which a document's time is counted.
//!
//! Two kinds of rules share the option. On a key `{_ts: 1}` it sets the time to live of the whole collection, counted from
//! the last write of each document; there -1 means "on, but without a default". On any other single field it counts from the
//! earliest date that the field holds.

use bson::{Document, DocumentRef, ValueRef};

use super::{IndexSpec, as_double, cannot_create, show};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::path::Arrays;

/// The largest number of seconds.
pub const EXPIRE_AFTER_SECONDS_MAX: i32 = i32::MAX;
/// The field whose index stands for the time of the last write.
const LAST_WRITE_FIELD: &str = "_ts";

/// The start of a TTL index's countdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TtlRule {
    /// The last write of the document: the index sets the default of the collection. -1 seconds: no default.
    Collection {
        /// Seconds from the last write, or -1.
        seconds: i32,
    },
    /// The earliest date in the indexed field.
    Field {
        /// Seconds from that date.
        seconds: i32,
    },
    /// The index carries the option but is of a kind that never expires anything.
    Ineffective,
}

impl IndexSpec {
    /// Returns the rule by which documents expire, if this is a TTL index.
    pub fn ttl_rule(&self) -> Option<TtlRule> {
        let seconds = self.expire_after_seconds?;
        Some(if is_collection_key(&self.key) {
            TtlRule::Collection { seconds }
        } else if self.single_ordinary_part().is_some() {
            TtlRule::Field { seconds }
        } else {
            TtlRule::Ineffective
        })
    }

    /// Returns `true` if this is the index that sets the collection's default: it has no keys of its own.
    pub fn is_collection_ttl(&self) -> bool {
        matches!(self.ttl_rule(), Some(TtlRule::Collection { .. }))
    }

    /// Returns the earliest date that the TTL index finds in a document, milliseconds since 1970; `None` if this is no
    /// [`TtlRule::Field`], if there is no date, or if the document is outside of the partial filter.
    pub fn earliest_date(&self, document: DocumentRef<'_>) -> Option<i64> {
        let Some(TtlRule::Field { .. }) = self.ttl_rule() else { return None };
        let part = self.single_ordinary_part()?;
        // Bounded work: one path or one filter over one document, without cancellation.
        let context = Context::at(0);
        let mut earliest: Option<i64> = None;
        let walked = part.path.any(document, Arrays::Expand, &context, &mut |leaf| {
            if let Some(ValueRef::DateTime(millis)) = leaf.value {
                earliest = Some(earliest.map_or(millis, |known| known.min(millis)));
            }
            Ok(false)
        });
        walked.ok()?;
        let earliest = earliest?;
        self.covers(document, &context).ok()?.then_some(earliest)
    }

    /// Returns the same index with another number of seconds, or with its first, as `collMod` requests.
    pub fn with_expire_after_seconds(&self, value: ValueRef<'_>) -> Result<IndexSpec> {
        let refused = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
        if !value.is_number() {
            let message = format!(
                "BSON field 'collMod.index.expireAfterSeconds' is the wrong type '{}', expected types '[long, int, \
                 decimal, double]'",
                value.kind().alias()
            );
            return Err(Error::type_mismatch(message));
        }
        if self.is_id() {
            return refused("the _id field does not support TTL indexes");
        }
        if self.parts.len() > 1 {
            return refused("TTL indexes are single-field indexes, compound indexes do not support TTL");
        }
        if self.wildcard.is_some() {
            return refused("Index type 'wildcard' does not support the 'expireAfterSeconds' option");
        }
        // A plain index on a user's field of that name stays one; only an index that already counts from the last write is
        // special.
        let seconds = if self.is_collection_ttl() {
            collection_seconds(value).map_err(|error| Error::new(Code::INVALID_OPTIONS, error.message))?
        } else if is_collection_key(&self.key) {
            return refused(
                "an index on _ts without expireAfterSeconds is on the field of that name: drop it and create it with \
                 expireAfterSeconds to set the time to live of the collection",
            );
        } else {
            field_seconds(value).map_err(|text| Error::new(Code::INVALID_OPTIONS, text))?
        };
        Ok(IndexSpec { expire_after_seconds: Some(seconds), ..self.clone() })
    }
}

/// Returns `true` if an index on this key, once it has `expireAfterSeconds`, sets the default of the collection.
pub(super) fn is_collection_key(key: &Document) -> bool {
    let mut fields = key.iter();
    match (fields.next(), fields.next()) {
        (Some((LAST_WRITE_FIELD, value)), None) => {
            as_double(value).is_some_and(|number| number.abs().total_cmp(&1.0).is_eq())
        }
        _ => false,
    }
}

/// Reads the option of a specification that is being created.
pub(super) fn parse(value: ValueRef<'_>, key: &Document, spec: DocumentRef<'_>) -> Result<i32> {
    if is_collection_key(key) {
        return collection_seconds(value);
    }
    let seconds = field_seconds(value)
        .map_err(|text| cannot_create(format!(". Index spec: {} :: caused by :: {text}", show(spec))))?;
    if key.len() > 1 {
        return Err(cannot_create(format!(
            "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: {}",
            show(spec)
        )));
    }
    if key.iter().any(|(name, _)| name == "$**" || name.ends_with(".$**")) {
        return Err(cannot_create(
            "cannot make a TTL index :: caused by :: Index type 'wildcard' does not support the 'expireAfterSeconds' option",
        ));
    }
    Ok(seconds)
}

/// Returns the seconds of a rule on a date: a fraction is cut off.
fn field_seconds(value: ValueRef<'_>) -> std::result::Result<i32, String> {
    let number = match value {
        ValueRef::Int32(number) => Some(i64::from(number)),
        ValueRef::Int64(number) => Some(number),
        ValueRef::Double(number) if number.is_nan() => None,
        ValueRef::Double(number) => Some(number as i64),
        ValueRef::Decimal128(number) if number.is_nan() => None,
        ValueRef::Decimal128(number) => {
            Some(number.to_i64().unwrap_or(if number.is_negative() { i64::MIN } else { i64::MAX }))
        }
        other => {
            // Clients know the quotation mark that does not close.
            let kind = other.kind().alias();
            return Err(format!(
                "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{kind}"
            ));
        }
    };
    let number = number.ok_or("TTL index 'expireAfterSeconds' option must not be NaN")?;
    let seconds = i32::try_from(number)
        .map_err(|_| "TTL index 'expireAfterSeconds' must be within the range of a 32-bit integer")?;
    if seconds < 0 {
        return Err("TTL index 'expireAfterSeconds' option cannot be less than 0".into());
    }
    Ok(seconds)
}

/// Returns the seconds of the rule on the last write: a whole number; zero is refused, because it would expire every
/// document at once.
fn collection_seconds(value: ValueRef<'_>) -> Result<i32> {
    let whole = match value {
        ValueRef::Int32(number) => Some(i64::from(number)),
        ValueRef::Int64(number) => Some(number),
        ValueRef::Double(number) if number.fract() == 0.0 => Some(number as i64),
        ValueRef::Decimal128(number) if number.is_whole() => number.to_i64(),
        _ => None,
    };
    match whole {
        Some(seconds @ (-1 | 1..=2_147_483_647)) => Ok(seconds as i32),
        _ => Err(cannot_create(format!(
            "The 'expireAfterSeconds' option on the '_ts' field must be a whole number from 1 to \
             {EXPIRE_AFTER_SECONDS_MAX}, or -1 for no default, but was {}",
            bson::shell_text(value)
        ))),
    }
}
