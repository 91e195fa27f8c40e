//! What items belong to, whichever API it was made through: a container or a collection, and what its owner wishes for it.

use std::sync::Arc;

use crate::Engine;
use crate::catalog::change_policy;
use crate::collection::Collection;
use crate::container::{Api, Container, Partition};
use crate::error::{Error, Result};
use crate::expiry::{Change, Lifecycle};

/// A container or a collection.
#[derive(Debug, Clone)]
pub enum Holder {
    /// Of the NoSQL API.
    Container(Arc<Container>),
    /// Of the MongoDB API.
    Collection(Arc<Collection>),
}

impl Holder {
    /// Its name within its database.
    pub fn name(&self) -> &str {
        match self {
            Holder::Container(container) => container.name(),
            Holder::Collection(collection) => &collection.name,
        }
    }

    /// The name of its database.
    pub fn database(&self) -> &str {
        match self {
            Holder::Container(container) => &container.database,
            Holder::Collection(collection) => &collection.database,
        }
    }

    /// Its physical partitions.
    pub fn partitions(&self) -> &[Arc<Partition>] {
        match self {
            Holder::Container(container) => &container.partitions,
            Holder::Collection(collection) => std::slice::from_ref(&collection.partition),
        }
    }

    /// What its owner wishes.
    pub fn lifecycle(&self) -> Lifecycle {
        let first = self.partitions().first().expect("whatever holds items has a partition");
        first.policy.read().lifecycle.clone()
    }
}

impl Engine {
    /// Looks a container or collection up by its names.
    pub fn holder(&self, api: Api, database: &str, name: &str) -> Result<Holder> {
        match api {
            Api::NoSql => Ok(Holder::Container(self.container(&*self.database(database)?, name)?)),
            Api::MongoDb => self
                .collection(database, name)
                .map(Holder::Collection)
                .ok_or_else(|| Error::NotFound { what: format!("collection '{database}.{name}'") }),
        }
    }

    /// Changes what the owner wishes. Like every change of policy it costs the same however many items there are, and is in
    /// force for every request that begins after the answer.
    pub fn change_lifecycle(&self, holder: &Holder, wish: impl FnOnce(&mut Lifecycle)) -> Result<Lifecycle> {
        let _change = self.changes.lock();
        let holder = self.holder_again(holder)?;
        let mut lifecycle = holder.lifecycle();
        wish(&mut lifecycle);
        // Readers wait from before the change takes its time until it is in force: see `gate`.
        let mut locks: Vec<_> =
            holder.partitions().iter().map(|partition| partition.policy.write()).collect();
        let partitions: Vec<_> = holder.partitions().iter().map(|partition| partition.id).collect();
        let change = [Change::Lifecycle(lifecycle.clone())];
        let policies = self.change(move |tx| {
            let policies = partitions.iter().map(|partition| change_policy(tx, *partition, &change));
            policies.collect::<Result<Vec<_>>>()
        })?;
        for (lock, policy) in locks.iter_mut().zip(policies) {
            **lock = Arc::new(policy);
        }
        drop(locks);
        holder.partitions().iter().for_each(|partition| partition.next_look.at_once());
        self.alarm.ring();
        Ok(lifecycle)
    }

    /// The newest handle.
    fn holder_again(&self, holder: &Holder) -> Result<Holder> {
        match holder {
            Holder::Container(container) => Ok(Holder::Container(self.container_by_rid(container.rid)?)),
            Holder::Collection(collection) => Ok(Holder::Collection(self.current(collection)?)),
        }
    }
}
