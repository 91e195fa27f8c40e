//! Watches: what lets a client follow a collection, a database or everything of the MongoDB API without asking its owner.
//!
//! Whoever begins to watch turns on the feed of all versions (T28) of every collection that the watch covers, and of every one
//! that is made or renamed into it later, from its first instant. While a watch is in use, the *log* tells what happened to
//! collections themselves, and a collection that is dropped is only *retired*: nobody reaches it any more, but its feed can
//! be read up to the drop for as long as feeds are kept.
//!
//! ```text
//!   feed of c    | insert | update |                     | insert |
//!   feed of d                        | insert | expiry |            (retired at the drop)
//!   log                    | create d |                | drop d |             | rename c |
//!   ---------------------------------------------------------------------------------------> position
//! ```
//!
//! Positions of one store are ordered across all of them, so one position is all that a watcher keeps. A watch that nobody
//! has used for as long as feeds are kept covers nothing new: no watcher could go on from so far back.

mod log;
mod page;
mod retired;
mod scope;

pub(crate) use log::{CatalogChange, LogEntry, record};
pub use page::{WatchEvent, WatchPage, Watched};
pub(crate) use retired::{Retired, retire};
pub use scope::Watch;
pub(crate) use scope::Watching;

use std::collections::BTreeSet;

use document::Sequence;
use storage::{Read, Time, Transaction};

use crate::Engine;
use crate::catalog::{put, remove};
use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::expiry::{Lifecycle, Policy};
use crate::history::{self, Position};
use crate::holder::Holder;
use crate::keys::{Key, PartitionId};
use crate::limits::{WATCH_MINUTES, WATCHES_MAX};

/// Feeds of watched collections are kept so long.
pub(crate) const WATCH_MS: u64 = WATCH_MINUTES as u64 * 60_000;
/// How exactly it is known when a watch was last used.
const USE_GRAIN_MS: u64 = 60 * 60 * 1000;

impl Engine {
    /// Begins to watch, or goes on; the position from which on everything is told.
    pub fn watch(&self, watch: &Watch) -> Result<Position> {
        let now = self.store.now()?;
        if let Some(since) = self.use_watch(watch, now)? {
            return Ok(since);
        }
        {
            let _change = self.changes.lock();
            if self.watched_since(watch, now).is_none() {
                self.make_room(now)?;
                self.put_watch(watch, Watching { since: None, used: now })?;
            }
        }
        for collection in self.catalog().collections.values() {
            let (database, name) = (&collection.database, &collection.name);
            if watch.covers(database, name) && !keeps_feed(&collection.partition.policy.read()) {
                let wish = |lifecycle: &mut Lifecycle| {
                    lifecycle.history_minutes.get_or_insert(WATCH_MINUTES);
                };
                match self.change_lifecycle(&Holder::Collection(collection.clone()), wish) {
                    Ok(_) | Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let begun = self.barrier()?.position();
        let _change = self.changes.lock();
        let since = self.watched_since(watch, now).unwrap_or(begun);
        self.put_watch(watch, Watching { since: Some(since), used: now })?;
        Ok(since)
    }

    /// Goes on with a watch that is whole, and notes now and then that it is used.
    fn use_watch(&self, watch: &Watch, now: Time) -> Result<Option<Position>> {
        let Some(since) = self.watched_since(watch, now) else { return Ok(None) };
        let is_noted = |used: Time| now < used.plus_millis(USE_GRAIN_MS);
        if !self.catalog().watches.get(watch).is_some_and(|watching| is_noted(watching.used)) {
            let _change = self.changes.lock();
            self.put_watch(watch, Watching { since: Some(since), used: now })?;
        }
        Ok(Some(since))
    }

    /// Since when a watch is whole; none if it is not, or nobody has used it for too long.
    fn watched_since(&self, watch: &Watch, now: Time) -> Option<Position> {
        let watching = *self.catalog().watches.get(watch)?;
        watching.since.filter(|_| watching.is_in_use(now))
    }

    /// Forgets watches that nobody uses, if there are many; refuses another one if all are in use.
    fn make_room(&self, now: Time) -> Result<()> {
        let catalog = self.catalog();
        if catalog.watches.len() < WATCHES_MAX {
            return Ok(());
        }
        let unused = catalog.watches.iter().filter(|(_, watching)| !watching.is_in_use(now));
        let unused: BTreeSet<Watch> = unused.map(|(watch, _)| watch.clone()).collect();
        if unused.is_empty() {
            return Err(Error::invalid(format!("{WATCHES_MAX} names are watched already")));
        }
        let doomed = unused.clone();
        self.change(move |tx| {
            for watch in doomed {
                remove(tx, Key::Watch(&watch.encode()));
            }
            Ok(())
        })?;
        self.update(|catalog| catalog.watches.retain(|watch, _| !unused.contains(watch)));
        Ok(())
    }

    fn put_watch(&self, watch: &Watch, watching: Watching) -> Result<()> {
        let known = watch.clone();
        self.change(move |tx| {
            put(tx, Key::Watch(&known.encode()), watching.encode());
            Ok(())
        })?;
        self.update(|catalog| catalog.watches.insert(watch.clone(), watching));
        Ok(())
    }

    /// Whether a watch that is in use covers a collection of that name.
    pub(crate) fn is_watched(&self, database: &str, name: &str) -> Result<bool> {
        let now = self.store.now()?;
        let catalog = self.catalog();
        let mut in_use = catalog.watches.iter().filter(|(_, watching)| watching.is_in_use(now));
        Ok(in_use.any(|(watch, _)| watch.covers(database, name)))
    }

    /// Refuses to turn the feed of a collection off while somebody may go on from what it keeps. Once nobody does, no watch
    /// that covers it is in use, so whoever comes next begins anew, and turns it on.
    pub(crate) fn check_feed(&self, collection: &Collection, next: &Lifecycle) -> Result<()> {
        let ends = next.history_minutes.is_none() && keeps_feed(&collection.partition.policy.read());
        if ends && self.is_watched(&collection.database, &collection.name)? {
            let hours = WATCH_MINUTES / 60;
            return Err(Error::invalid(format!(
                "'{}' is watched: its feed can be turned off when no stream has looked at it for {hours} hours.",
                collection.namespace()
            )));
        }
        Ok(())
    }

    /// Whether a watch that is in use has to do with a database.
    pub(crate) fn is_database_watched(&self, database: &str) -> Result<bool> {
        let now = self.store.now()?;
        let catalog = self.catalog();
        let mut in_use = catalog.watches.iter().filter(|(_, watching)| watching.is_in_use(now));
        Ok(in_use.any(|(watch, _)| watch.touches(database)))
    }
}

/// The policy of a new collection that is watched: its feed is kept from its first instant.
pub(crate) fn born_watched(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    policy: &mut Policy,
    sequence: Sequence,
) -> Result<()> {
    let before = policy.clone();
    policy.lifecycle.history_minutes = Some(WATCH_MINUTES);
    history::follow(tx, partition, &before, policy, sequence)
}

pub(crate) fn keeps_feed(policy: &Policy) -> bool {
    policy.lifecycle.history_minutes.is_some()
}

/// Whether an entry is the record of a watch.
pub(crate) fn is_watch(key: &[u8], value: &[u8]) -> bool {
    scope::is_watch(key, value)
}

/// Whether an entry is one of the log of watched collections.
pub(crate) fn is_log_entry(key: &[u8], value: bytes::Bytes) -> bool {
    log::is_entry(key, value)
}

/// The name of a retired collection; none if its record cannot be read.
pub(crate) fn retired_name(partition: PartitionId, value: bytes::Bytes) -> Option<String> {
    retired::name(partition, value)
}

/// Every watch that was ever begun.
pub(crate) fn load(reader: &dyn Read) -> Result<std::collections::BTreeMap<Watch, Watching>> {
    scope::load(reader)
}

pub(crate) fn load_retired(
    reader: &dyn Read,
) -> Result<std::collections::BTreeMap<PartitionId, std::sync::Arc<Retired>>> {
    retired::load(reader)
}
