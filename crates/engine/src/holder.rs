//! What items belong to, whichever API it was made through: a container or a collection, and what its owner wishes for it.

use std::sync::Arc;

use mql::index::TtlRule;

use crate::Engine;
use crate::collection::{Collection, CollectionIndex, IndexState};
use crate::container::{Api, Container, Partition};
use crate::definition::DefaultTtl;
use crate::deletions;
use crate::error::{Error, Result};
use crate::expiry::{Change, Lifecycle, Policy};
use crate::gate::{Usage, View};
use crate::guard::{Consent, change_policies};

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

    /// The API that it was made through.
    pub fn api(&self) -> Api {
        match self {
            Holder::Container(_) => Api::NoSql,
            Holder::Collection(_) => Api::MongoDb,
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
        self.policy().lifecycle.clone()
    }

    /// Its default time to live.
    pub fn default_ttl(&self) -> DefaultTtl {
        self.policy().default_ttl
    }

    /// Its rules by date.
    pub fn date_rules(&self) -> Vec<DateRuleView> {
        let Holder::Collection(collection) = self else { return Vec::new() };
        let rules = collection.indexes();
        let view = |index: &CollectionIndex| match index.spec.ttl_rule() {
            Some(TtlRule::Field { seconds }) => Some(DateRuleView {
                index: index.spec.name().to_owned(),
                expire_after_seconds: seconds,
                in_force: index.state == IndexState::Ready,
            }),
            Some(TtlRule::Collection { .. } | TtlRule::Ineffective) | None => None,
        };
        rules.iter().filter_map(view).collect()
    }

    fn policy(&self) -> Arc<Policy> {
        let first = self.partitions().first().expect("whatever holds items has a partition");
        Arc::clone(&first.policy.read())
    }
}

/// A rule by which items die at a date in them (T27).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateRuleView {
    /// The name of the index that makes it.
    pub index: String,
    /// How long after its date an item dies.
    pub expire_after_seconds: i32,
    /// Whether it kills: not while its index is being built.
    pub in_force: bool,
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

    /// Exact figures of a container or collection (T18).
    pub fn usage_of(&self, holder: &Holder) -> Result<Usage> {
        View::usage_of_all(&*self.store, holder.partitions())
    }

    /// As [`change_lifecycle_with`](Engine::change_lifecycle_with), without consent.
    pub fn change_lifecycle(&self, holder: &Holder, wish: impl FnOnce(&mut Lifecycle)) -> Result<Lifecycle> {
        self.change_lifecycle_with(holder, Consent::NotGiven, wish)
    }

    /// Changes what the owner wishes. Like every change of policy it costs the same however many items there are, and is in
    /// force for every request that begins after the answer.
    pub fn change_lifecycle_with(
        &self,
        holder: &Holder,
        consent: Consent,
        wish: impl FnOnce(&mut Lifecycle),
    ) -> Result<Lifecycle> {
        let _change = self.changes.lock();
        let holder = self.holder_again(holder)?;
        let before = holder.lifecycle();
        let mut lifecycle = before.clone();
        wish(&mut lifecycle);
        self.check_wishes(&holder, &before, &lifecycle)?;
        self.change_rules(&holder, Change::Lifecycle(lifecycle.clone()), consent)?;
        Ok(lifecycle)
    }

    /// Lets countdowns begin elsewhere than at `_ts` (T33).
    pub(crate) fn open_countings(&self, holder: &Holder) -> Result<()> {
        let _change = self.changes.lock();
        self.change_rules(&self.holder_again(holder)?, Change::OpenCountings, Consent::NotGiven)
    }

    fn change_rules(&self, holder: &Holder, change: Change, consent: Consent) -> Result<()> {
        let begins = matches!(&change, Change::Lifecycle(next) if next.deletion_record)
            && !holder.lifecycle().deletion_record;
        // Readers wait from before the change takes its time until it is in force: see `gate`.
        let mut locks: Vec<_> =
            holder.partitions().iter().map(|partition| partition.policy.write()).collect();
        let partitions: Vec<_> = holder.partitions().iter().map(|partition| partition.id).collect();
        let named = holder.clone();
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
        holder.partitions().iter().for_each(|partition| partition.next_look.at_once());
        self.alarm.ring();
        Ok(())
    }

    /// The newest handle.
    fn holder_again(&self, holder: &Holder) -> Result<Holder> {
        match holder {
            Holder::Container(container) => Ok(Holder::Container(self.container_by_rid(container.rid)?)),
            Holder::Collection(collection) => Ok(Holder::Collection(self.current(collection)?)),
        }
    }

    /// Refuses wishes that are asked for elsewhere, or that cannot be granted.
    fn check_wishes(&self, holder: &Holder, before: &Lifecycle, wishes: &Lifecycle) -> Result<()> {
        let is_new = wishes.archive.is_some() && wishes.archive != before.archive;
        if is_new && self.options.archive.is_none() {
            return Err(Error::invalid(
                "This server was started without an archive: 'archive-root' names the directory for it.",
            ));
        }
        match holder {
            Holder::Container(_) if wishes.ttl_property_path != before.ttl_property_path => {
                Err(Error::invalid("'ttlPropertyPath' of a container is part of its definition."))
            }
            Holder::Collection(_) if wishes.sliding => {
                Err(Error::invalid("'sliding' is not supported for collections of the MongoDB API."))
            }
            Holder::Container(_) => Ok(()),
            Holder::Collection(collection) => self.check_feed(collection, wishes),
        }
    }
}
