//! Empties the store: all databases of both APIs are dropped in one commit, or none is.
//!
//! Otherwise it is like dropping each database by itself. Holds are respected (T31), expired items are archived
//! (T32), watches report it, deletion records stay, and bytes are removed in the background. Numbers and sequences
//! continue, so that nothing from before is mistaken for something from after.

use crate::Engine;
use crate::catalog::owner::Owner;
use crate::schema::containers::drop_database;
use crate::types::error::{Error, Result};
use crate::types::events::Events;

impl Engine {
    /// Drops all databases and returns how many there were. Refused if anything is held.
    pub fn reset(&self) -> Result<usize> {
        for owner in self.owners() {
            self.settle(&owner)?;
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

    /// Returns every container and collection.
    fn owners(&self) -> Vec<Owner> {
        let containers = self.databases().into_iter().flat_map(|database| self.containers(&database));
        let collections = self.collection_databases().into_iter();
        let collections = collections.flat_map(|database| self.collections(&database.name));
        containers.map(Owner::Container).chain(collections.map(Owner::Collection)).collect()
    }

    /// Adds the name of the held container or collection to an error: the caller asked for everything and has to find
    /// it.
    fn name_what_is_held(&self, error: Error) -> Error {
        let Error::Held { what, reason } = error else { return error };
        let is_held = |owner: &&Owner| {
            owner.lifecycle().hold.is_some()
                || self.held_items(owner, None).is_ok_and(|items| !items.is_empty())
        };
        let owners = self.owners();
        let place = owners.iter().find(is_held);
        let place = place.map(|owner| format!("; '{}/{}'", owner.database(), owner.name()));
        Error::Held { what, reason: reason + &place.unwrap_or_default() }
    }
}
