//! The lifecycle settings of a container, besides its expiry rules. Each setting is off by default.
//!
//! They are part of the policy, so that every write and every sweep sees inside its own transaction which of them are
//! in force.

use document::{Object, Path, Value};

use super::archive_directory::ArchiveDirectory;
use crate::types::error::{Error, Result};

/// How a container treats its items over their lifecycle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// How many minutes of all versions and deletes the feed keeps (T28).
    pub history_minutes: Option<u32>,
    /// Whether the feed of all versions shows the version that a replace ended; for a delete it always does.
    pub previous_images: bool,
    /// The seconds after which the bytes of an expired item must be gone from the data directory (T24).
    pub max_purge_delay: Option<u32>,
    /// The largest share of living items, in millionths, that a change of rules may expire at once without
    /// confirmation (T30).
    pub max_instant_expiry: Option<u32>,
    /// The directory where expired items are archived before their bytes are dropped (T32).
    pub archive: Option<ArchiveDirectory>,
    /// Whether a record is kept of what was purged, when, and under which rules.
    pub deletion_record: bool,
    /// Why no item may expire, be changed or deleted (T31).
    pub hold: Option<String>,
    /// Where an item names the start of its countdown, in seconds since 1970 (T33).
    pub ttl_property_path: Option<Path>,
    /// Where an item names the instant of its expiry (T33).
    pub expire_at_path: Option<Path>,
    /// Whether reading an item restarts its countdown (T33).
    pub sliding: bool,
}

const HISTORY_MINUTES: &str = "historyMinutes";
const MAX_PURGE_DELAY: &str = "maxPurgeDelay";
const MAX_INSTANT_EXPIRY: &str = "maxInstantExpiryPpm";
const ARCHIVE: &str = "archive";
const DELETION_RECORD: &str = "deletionRecord";
const HOLD: &str = "hold";
const TTL_PROPERTY_PATH: &str = "ttlPropertyPath";
const EXPIRE_AT_PATH: &str = "expireAtPath";
const SLIDING: &str = "sliding";
const PREVIOUS_IMAGES: &str = "previousImages";

impl Lifecycle {
    /// Returns whether a feed, archive or deletion record reports when each item expired, so that past rules have to
    /// be remembered.
    pub(crate) fn tells_instants(&self) -> bool {
        self.history_minutes.is_some() || self.archive.is_some() || self.deletion_record
    }

    /// Returns the stored form; a setting that is off has no member.
    pub(crate) fn to_object(&self) -> Object {
        let mut out = Object::new();
        let numbers = [
            (HISTORY_MINUTES, self.history_minutes),
            (MAX_PURGE_DELAY, self.max_purge_delay),
            (MAX_INSTANT_EXPIRY, self.max_instant_expiry),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                out.insert(name, Value::Int(number.into()));
            }
        }
        let texts = [
            (ARCHIVE, self.archive.as_ref().map(ArchiveDirectory::as_str)),
            (HOLD, self.hold.as_deref()),
            (TTL_PROPERTY_PATH, self.ttl_property_path.as_ref().map(Path::as_str)),
            (EXPIRE_AT_PATH, self.expire_at_path.as_ref().map(Path::as_str)),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                out.insert(name, text);
            }
        }
        let switches = [
            (DELETION_RECORD, self.deletion_record),
            (SLIDING, self.sliding),
            (PREVIOUS_IMAGES, self.previous_images),
        ];
        for (name, is_on) in switches {
            if is_on {
                out.insert(name, Value::Bool(true));
            }
        }
        out
    }

    /// Reads the stored form back.
    pub(crate) fn from_object(members: &Object) -> Result<Lifecycle> {
        let mut lifecycle = Lifecycle::default();
        for (name, value) in members.iter() {
            let number = || value.as_i64().and_then(|number| u32::try_from(number).ok());
            let text = || value.as_str().map(str::to_owned);
            let path = || value.as_str().and_then(|text| Path::parse(text).ok());
            let on = |slot: &mut bool| {
                *slot = true;
                *value == Value::Bool(true)
            };
            let known = match name {
                HISTORY_MINUTES => set(&mut lifecycle.history_minutes, number()),
                MAX_PURGE_DELAY => set(&mut lifecycle.max_purge_delay, number()),
                MAX_INSTANT_EXPIRY => set(&mut lifecycle.max_instant_expiry, number()),
                ARCHIVE => set(&mut lifecycle.archive, value.as_str().and_then(ArchiveDirectory::parse)),
                HOLD => set(&mut lifecycle.hold, text()),
                TTL_PROPERTY_PATH => set(&mut lifecycle.ttl_property_path, path()),
                EXPIRE_AT_PATH => set(&mut lifecycle.expire_at_path, path()),
                DELETION_RECORD => on(&mut lifecycle.deletion_record),
                SLIDING => on(&mut lifecycle.sliding),
                PREVIOUS_IMAGES => on(&mut lifecycle.previous_images),
                _ => false,
            };
            if !known {
                return Err(Error::Corrupt(format!("'{name}' of an expiry policy cannot be read")));
            }
        }
        Ok(lifecycle)
    }
}

/// Stores what was read. Returns `false` if the value could not be read.
fn set<T>(slot: &mut Option<T>, read: Option<T>) -> bool {
    *slot = read;
    slot.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_reads_back_and_damage_is_told() {
        let all = Lifecycle {
            history_minutes: Some(10),
            previous_images: true,
            max_purge_delay: Some(60),
            max_instant_expiry: Some(100_000),
            archive: ArchiveDirectory::parse("cold"),
            deletion_record: true,
            hold: Some("case 7".into()),
            ttl_property_path: Some(Path::parse("/a/b").expect("a path")),
            expire_at_path: Some(Path::parse("/c").expect("a path")),
            sliding: true,
        };
        for lifecycle in [Lifecycle::default(), all] {
            assert_eq!(Lifecycle::from_object(&lifecycle.to_object()).expect("reads"), lifecycle);
        }
        for (name, value) in [
            ("hold", Value::Int(1)),
            ("maxPurgeDelay", Value::Int(-1)),
            ("archive", "../up".into()),
            ("sliding", Value::Bool(false)),
            ("expireAtPath", Value::String("no path".into())),
            ("x", Value::Null),
        ] {
            let damaged = Object::from_iter([(name.to_owned(), value)]);
            assert!(matches!(Lifecycle::from_object(&damaged), Err(Error::Corrupt(_))), "{name}");
        }
    }
}
