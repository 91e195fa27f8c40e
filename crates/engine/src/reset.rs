//! Emptying the store: every database of both APIs goes in one commit, or none does.
//!
//! Nothing else is special about it. Holds are heard (T31), archives get what they are owed (T32), watchers are told, deletion
//! records stay, and bytes are cleared away in the background, as when each database is dropped by itself. Numbers and
//! sequences go on from where they are, so that nothing of before is taken for something of after.

use crate::Engine;
use crate::catalog::drop_database;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::holder::Holder;

impl Engine {
    /// Removes all databases; how many there were. Refused if anything is held.
    pub fn reset(&self) -> Result<usize> {
        for holder in self.holders() {
            self.settle(&holder)?;
        }
        let _change = self.changes.lock();
        let databases: Vec<_> =
            self.databases().into_iter().map(|it| (it.rid, self.containers(&it))).collect();
        let doomed = self.collection_databases().into_iter().map(|database| self.doomed(database));
        let doomed = doomed.collect::<Result<Vec<_>>>()?;
        let count = databases.len() + doomed.len();
        let retired = self.change(move |tx| {
            let (mut events, mut retired) = (Events::default(), Vec::new());
            for (rid, containers) in &databases {
                drop_database(tx, *rid, containers)?;
            }
            for database in &doomed {
                retired.extend(database.drop(tx, &mut events)?);
            }
            tx.next_sequence();
            Ok(retired)
        });
        let retired = retired.map_err(|error| self.name_what_is_held(error))?;
        self.update(|catalog| {
            catalog.clear();
            catalog.retire(retired);
        });
        self.alarm.ring();
        Ok(count)
    }

    /// Every container and collection.
    fn holders(&self) -> Vec<Holder> {
        let containers = self.databases().into_iter().flat_map(|database| self.containers(&database));
        let collections = self.collection_databases().into_iter();
        let collections = collections.flat_map(|database| self.collections(&database.name));
        containers.map(Holder::Container).chain(collections.map(Holder::Collection)).collect()
    }

    /// Who asked for everything must be told where the hold is that forbids it.
    fn name_what_is_held(&self, error: Error) -> Error {
        let Error::Held { what, reason } = error else { return error };
        let is_held = |holder: &&Holder| {
            holder.lifecycle().hold.is_some()
                || self.held_items(holder, None).is_ok_and(|items| !items.is_empty())
        };
        let holders = self.holders();
        let place = holders.iter().find(is_held);
        let place = place.map(|holder| format!("; '{}/{}'", holder.database(), holder.name()));
        Error::Held { what, reason: reason + &place.unwrap_or_default() }
    }
}
