//! What a watch covers, and its record.

use std::collections::BTreeMap;

use storage::{Direction, KeyRange, Keyspace, Read, Time};

use crate::keys;
use crate::keys::Position;
use crate::types::error::{Error, Result};
use crate::types::limits::WATCH_MINUTES;

/// How long feeds of watched collections are kept.
pub(crate) const WATCH_MS: u64 = WATCH_MINUTES as u64 * 60_000;

/// What clients watch, of the MongoDB API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watch {
    /// Everything except the system's own databases.
    Deployment,
    /// One database.
    Database(String),
    /// The collection of that name, whether or not it exists.
    Collection {
        /// The name of its database.
        database: String,
        /// Its name.
        name: String,
    },
}

/// The state of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchState {
    /// Everything from here on is reported; `None` while feeds are being turned on.
    pub(crate) since: Option<Position>,
    /// When it was last used, approximately.
    pub(crate) used: Time,
}

impl Watch {
    /// Returns whether it reports changes of a collection of that name.
    pub(crate) fn covers(&self, database: &str, name: &str) -> bool {
        let is_of_users = !matches!(database, "admin" | "config" | "local") && !name.starts_with("system.");
        match self {
            Watch::Deployment => is_of_users,
            Watch::Database(watched) => watched == database && is_of_users,
            Watch::Collection { database: of, name: watched } => of == database && watched == name,
        }
    }

    /// Returns whether it reports the drop of a database.
    pub(crate) fn tells_end_of(&self, database: &str) -> bool {
        match self {
            Watch::Deployment => true,
            Watch::Database(watched) => watched == database,
            Watch::Collection { .. } => false,
        }
    }

    /// Returns whether it covers anything in a database.
    pub(crate) fn covers_database(&self, database: &str) -> bool {
        match self {
            Watch::Deployment => true,
            Watch::Database(watched) | Watch::Collection { database: watched, .. } => watched == database,
        }
    }

    /// Returns the bytes behind the tag of its key: no database has a zero byte in its name.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Watch::Deployment => Vec::new(),
            Watch::Database(database) => database.as_bytes().to_vec(),
            Watch::Collection { database, name } => [database.as_bytes(), &[0], name.as_bytes()].concat(),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Watch> {
        let text = std::str::from_utf8(bytes).ok()?;
        Some(match text.split_once('\0') {
            Some((database, name)) => Watch::Collection { database: database.into(), name: name.into() },
            None if text.is_empty() => Watch::Deployment,
            None => Watch::Database(text.into()),
        })
    }
}

impl WatchState {
    /// Returns whether a client could still resume from its last read.
    pub(crate) fn is_in_use(&self, now: Time) -> bool {
        now < self.used.plus_millis(WATCH_MS)
    }

    /// Encodes when it was last used, u64; then the position, if there is one.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let since = self.since.map(Position::to_bytes);
        [&self.used.millis().to_be_bytes()[..], since.as_ref().map_or(&[], |bytes| &bytes[..])].concat()
    }

    fn decode(bytes: &[u8]) -> Option<WatchState> {
        let (used, since) = bytes.split_first_chunk()?;
        let since = match since {
            [] => None,
            since => Some(Position::from_bytes(since.try_into().ok()?)),
        };
        Some(WatchState { since, used: Time::from_millis(u64::from_be_bytes(*used)) })
    }
}

/// Returns whether an entry is the record of a watch.
pub(crate) fn is_watch(key: &[u8], value: &[u8]) -> bool {
    key.get(1..).and_then(Watch::decode).is_some() && WatchState::decode(value).is_some()
}

/// Reads every stored watch.
pub(crate) fn load(reader: &dyn Read) -> Result<BTreeMap<Watch, WatchState>> {
    let mut watches = BTreeMap::new();
    for entry in reader.scan(Keyspace::Catalog, KeyRange::prefix(keys::WATCHES), Direction::Forward) {
        let (key, value) = entry?;
        let parsed = Watch::decode(&key[1..]).zip(WatchState::decode(&value));
        let (watch, watching) = parsed.ok_or_else(|| Error::Corrupt("the record of a watch".into()))?;
        watches.insert(watch, watching);
    }
    Ok(watches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_and_its_record_read_back() {
        let collection = Watch::Collection { database: "db".into(), name: "a.b".into() };
        for watch in [Watch::Deployment, Watch::Database("db".into()), collection] {
            assert_eq!(Watch::decode(&watch.encode()), Some(watch));
        }
        assert_eq!(Watch::decode(&[0xFF]), None);
        for since in [None, Some(Position::before(7))] {
            let watching = WatchState { since, used: Time::from_millis(9) };
            let bytes = watching.encode();
            assert_eq!(WatchState::decode(&bytes), Some(watching));
            assert_eq!(WatchState::decode(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn what_belongs_to_the_system_is_not_told_with_the_rest() {
        assert!(Watch::Deployment.covers("db", "c") && !Watch::Deployment.covers("admin", "system.users"));
        let database = Watch::Database("db".into());
        assert!(database.covers("db", "c") && !database.covers("other", "c"));
        assert!(!database.covers("db", "system.views"));
    }
}
