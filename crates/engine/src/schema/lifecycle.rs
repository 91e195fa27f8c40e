//! Looks up a container or collection by its names, and changes its lifecycle settings.

use std::sync::Arc;

use super::guard::{Consent, change_policies};
use crate::Engine;
use crate::access::gate::{Usage, View};
use crate::catalog::container::Api;
use crate::catalog::owner::Owner;
use crate::evidence::deletions;
use crate::expiry::{Change, Lifecycle};
use crate::types::error::{Error, Result};

impl Engine {
    /// Looks a container or collection up by its names. The system's own collections are not found: a caller that has an
    /// [`Owner`] may show and change all of it.
    pub fn owner(&self, api: Api, database: &str, name: &str) -> Result<Owner> {
        match api {
            Api::NoSql => Ok(Owner::Container(self.container(&*self.database(database)?, name)?)),
            Api::MongoDb => self
                .collection(database, name)
                .map(Owner::Collection)
                .filter(|owner| !owner.is_of_system())
                .ok_or_else(|| Error::NotFound { what: format!("collection '{database}.{name}'") }),
        }
    }

    /// Returns exact figures of a container or collection (T18).
    pub fn usage_of(&self, owner: &Owner) -> Result<Usage> {
        View::usage_of_all(&*self.store, owner.partitions())
    }

    /// Does what [`change_lifecycle_with`](Engine::change_lifecycle_with) does, without consent.
    pub fn change_lifecycle(&self, owner: &Owner, edit: impl FnOnce(&mut Lifecycle)) -> Result<Lifecycle> {
        self.change_lifecycle_with(owner, Consent::NotGiven, edit)
    }

    /// Changes the lifecycle settings. As with every change of policy, the cost does not depend on the number of
    /// items, and the change is in force for every request that begins after the answer.
    pub fn change_lifecycle_with(
        &self,
        owner: &Owner,
        consent: Consent,
        edit: impl FnOnce(&mut Lifecycle),
    ) -> Result<Lifecycle> {
        let _change = self.changes.lock();
        let owner = self.newest_handle(owner)?;
        let before = owner.lifecycle();
        let mut lifecycle = before.clone();
        edit(&mut lifecycle);
        self.check_settings(&owner, &before, &lifecycle)?;
        self.change_rules(&owner, Change::Lifecycle(lifecycle.clone()), consent)?;
        Ok(lifecycle)
    }

    /// Allows countdowns to start elsewhere than at `_ts` (T33).
    pub(crate) fn enable_ttl_modes(&self, owner: &Owner) -> Result<()> {
        let _change = self.changes.lock();
        self.change_rules(&self.newest_handle(owner)?, Change::EnableTtlModes, Consent::NotGiven)
    }

    fn change_rules(&self, owner: &Owner, change: Change, consent: Consent) -> Result<()> {
        let begins = matches!(&change, Change::Lifecycle(next) if next.deletion_record)
            && !owner.lifecycle().deletion_record;
        // Readers wait from before the change takes its time until it is in force; see `gate`.
        let mut locks: Vec<_> = owner.partitions().iter().map(|partition| partition.policy.write()).collect();
        let partitions: Vec<_> = owner.partitions().iter().map(|partition| partition.id).collect();
        let named = owner.clone();
        let policies = self.change(move |tx| {
            let policies = change_policies(tx, &partitions, &[change], consent)?;
            for (position, policy) in policies.iter().enumerate().filter(|_| begins) {
                deletions::opened(tx, &named, position, policy)?;
            }
            Ok(policies)
        })?;
        for (lock, policy) in locks.iter_mut().zip(policies) {
            **lock = Arc::new(policy);
        }
        drop(locks);
        owner.partitions().iter().for_each(|partition| partition.next_due.at_once());
        self.alarm.ring();
        Ok(())
    }

    /// Returns the newest handle.
    fn newest_handle(&self, owner: &Owner) -> Result<Owner> {
        match owner {
            Owner::Container(container) => Ok(Owner::Container(self.container_by_rid(container.rid)?)),
            Owner::Collection(collection) => Ok(Owner::Collection(self.current(collection)?)),
        }
    }

    /// Refuses settings that are changed by another call, and settings that this server cannot honour.
    fn check_settings(&self, owner: &Owner, before: &Lifecycle, settings: &Lifecycle) -> Result<()> {
        let is_new = settings.archive.is_some() && settings.archive != before.archive;
        if is_new && self.options.archive.is_none() {
            return Err(Error::invalid(
                "This server was started without an archive: 'archive-root' names the directory for it.",
            ));
        }
        match owner {
            Owner::Container(_) if settings.ttl_property_path != before.ttl_property_path => {
                Err(Error::invalid("'ttlPropertyPath' of a container is part of its definition."))
            }
            Owner::Collection(_) if settings.sliding => {
                Err(Error::invalid("'sliding' is not supported for collections of the MongoDB API."))
            }
            Owner::Container(_) => Ok(()),
            Owner::Collection(collection) => self.check_feed(collection, settings),
        }
    }
}
