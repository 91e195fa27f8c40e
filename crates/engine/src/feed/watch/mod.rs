//! Watches let a client follow a collection, a database or everything of the MongoDB API without its owner's
//! configuration.
//!
//! A client that begins to watch turns on the feed of all versions (T28) of every collection that the watch covers,
//! and of every collection that is created there or renamed into it later, from its first instant. While a watch is
//! in use, the *log* has the changes to collections themselves, and a dropped collection is only *retired*: it
//! cannot be reached any more, but its feed can be read up to the drop for as long as feeds are kept.
//!
//! ```text
//!   feed of c    | insert | update |                     | insert |
//!   feed of d                        | insert | expiry |            (retired at the drop)
//!   log                    | create d |                | drop d |             | rename c |
//!   ---------------------------------------------------------------------------------------> position
//! ```
//!
//! Positions of one store are ordered across all of them, so one position is all that a client has to keep. A watch
//! that was not used for as long as feeds are kept covers nothing new: no client could resume from so far back.

pub(crate) mod log;
mod page;

pub use crate::catalog::watch::Watch;
use crate::catalog::watch::{WATCH_MS, WatchState};
pub(crate) use log::{CatalogChange, LogEntry, record};
pub use page::{WatchEvent, WatchPage, Watched};

use std::collections::BTreeSet;

use document::Sequence;
use storage::{Time, Transaction};

use crate::Engine;
use crate::catalog::collection::Collection;
use crate::catalog::owner::Owner;
use crate::catalog::{put, remove};
use crate::expiry::{Lifecycle, Policy};
use crate::feed::history;
use crate::keys::Position;
use crate::keys::{Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::limits::{WATCH_MINUTES, WATCHES_MAX};

/// The precision with which the last use of a watch is stored.
const USE_GRAIN_MS: u64 = 60 * 60 * 1000;

impl Engine {
    /// Begins to watch, or continues. Returns the position from which on everything is reported.
    pub fn watch(&self, watch: &Watch) -> Result<Position> {
        let now = self.store.now()?;
        if let Some(since) = self.use_watch(watch, now)? {
            return Ok(since);
        }
        {
            let _change = self.changes.lock();
            if self.watched_since(watch, now).is_none() {
                self.make_room(now)?;
                self.put_watch(watch, WatchState { since: None, used: now })?;
            }
        }
        for collection in self.catalog().collections.values() {
            let (database, name) = (&collection.database, &collection.name);
            if watch.covers(database, name) && !keeps_feed(&collection.partition.policy.read()) {
                let edit = |lifecycle: &mut Lifecycle| {
                    lifecycle.history_minutes.get_or_insert(WATCH_MINUTES);
                };
                match self.change_lifecycle(&Owner::Collection(collection.clone()), edit) {
                    Ok(_) | Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let begun = self.barrier()?.position();
        let _change = self.changes.lock();
        let since = self.watched_since(watch, now).unwrap_or(begun);
        self.put_watch(watch, WatchState { since: Some(since), used: now })?;
        Ok(since)
    }

    /// Continues a complete watch, and stores from time to time that it is used.
    fn use_watch(&self, watch: &Watch, now: Time) -> Result<Option<Position>> {
        let Some(since) = self.watched_since(watch, now) else { return Ok(None) };
        let is_noted = |used: Time| now < used.plus_millis(USE_GRAIN_MS);
        if !self.catalog().watches.get(watch).is_some_and(|watching| is_noted(watching.used)) {
            let _change = self.changes.lock();
            self.put_watch(watch, WatchState { since: Some(since), used: now })?;
        }
        Ok(Some(since))
    }

    /// Returns since when a watch is complete, or `None` if it is not, or was not used for too long.
    fn watched_since(&self, watch: &Watch, now: Time) -> Option<Position> {
        let watching = *self.catalog().watches.get(watch)?;
        watching.since.filter(|_| watching.is_in_use(now))
    }

    /// Removes unused watches if there are many; refuses another one if all are in use.
    fn make_room(&self, now: Time) -> Result<()> {
        let catalog = self.catalog();
        if catalog.watches.len() < WATCHES_MAX {
            return Ok(());
        }
        let unused = catalog.watches.iter().filter(|(_, watching)| !watching.is_in_use(now));
        let unused: BTreeSet<Watch> = unused.map(|(watch, _)| watch.clone()).collect();
        if unused.is_empty() {
            return Err(Error::invalid(format!("there are already {WATCHES_MAX} watches")));
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

    fn put_watch(&self, watch: &Watch, watching: WatchState) -> Result<()> {
        let known = watch.clone();
        self.change(move |tx| {
            put(tx, Key::Watch(&known.encode()), watching.encode());
            Ok(())
        })?;
        self.update(|catalog| catalog.watches.insert(watch.clone(), watching));
        Ok(())
    }

    /// Returns whether a watch in use covers a collection of that name.
    pub(crate) fn is_watched(&self, database: &str, name: &str) -> Result<bool> {
        let now = self.store.now()?;
        let catalog = self.catalog();
        let mut in_use = catalog.watches.iter().filter(|(_, watching)| watching.is_in_use(now));
        Ok(in_use.any(|(watch, _)| watch.covers(database, name)))
    }

    /// Refuses to turn the feed of a collection off while a client may resume from what it keeps. Otherwise no watch
    /// in use covers the collection, so the next client starts over and turns the feed on.
    pub(crate) fn check_feed(&self, collection: &Collection, next: &Lifecycle) -> Result<()> {
        let ends = next.history_minutes.is_none() && keeps_feed(&collection.partition.policy.read());
        if ends && self.is_watched(&collection.database, &collection.name)? {
            let hours = WATCH_MINUTES / 60;
            return Err(Error::invalid(format!(
                "'{}' is watched: its feed can be turned off once no stream has read it for {hours} hours.",
                collection.namespace()
            )));
        }
        Ok(())
    }

    /// Returns whether a watch in use covers anything in a database.
    pub(crate) fn is_database_watched(&self, database: &str) -> Result<bool> {
        let now = self.store.now()?;
        let catalog = self.catalog();
        let mut in_use = catalog.watches.iter().filter(|(_, watching)| watching.is_in_use(now));
        Ok(in_use.any(|(watch, _)| watch.covers_database(database)))
    }
}

/// Returns the policy of a new collection that is watched: its feed is kept from its first instant.
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

/// Returns whether an entry is one of the log of watched collections.
pub(crate) fn is_log_entry(key: &[u8], value: bytes::Bytes) -> bool {
    log::is_entry(key, value)
}
