//! The owner of items, of either API: a container or a collection, with its lifecycle settings.

use std::sync::Arc;

use mql::index::TtlRule;

use crate::catalog::collection::Collection;
use crate::catalog::collection_indexes::{CollectionIndex, IndexState};
use crate::catalog::container::{Api, Container, Partition};
use crate::definition::DefaultTtl;
use crate::expiry::{Lifecycle, Policy};

/// A container or a collection.
#[derive(Debug, Clone)]
pub enum Owner {
    /// A container of the NoSQL API.
    Container(Arc<Container>),
    /// A collection of the MongoDB API.
    Collection(Arc<Collection>),
}

impl Owner {
    /// Returns its name within its database.
    pub fn name(&self) -> &str {
        match self {
            Owner::Container(container) => container.name(),
            Owner::Collection(collection) => &collection.name,
        }
    }

    /// Returns the name of its database.
    pub fn database(&self) -> &str {
        match self {
            Owner::Container(container) => &container.database,
            Owner::Collection(collection) => &collection.database,
        }
    }

    /// Returns the API that it belongs to.
    pub fn api(&self) -> Api {
        match self {
            Owner::Container(_) => Api::NoSql,
            Owner::Collection(_) => Api::MongoDb,
        }
    }

    /// Returns whether it is the system's own, and not for clients.
    pub fn is_of_system(&self) -> bool {
        matches!(self, Owner::Collection(it) if Collection::is_of_system(&it.database, &it.name))
    }

    /// Returns its physical partitions.
    pub fn partitions(&self) -> &[Arc<Partition>] {
        match self {
            Owner::Container(container) => &container.partitions,
            Owner::Collection(collection) => std::slice::from_ref(&collection.partition),
        }
    }

    /// Returns its lifecycle settings.
    pub fn lifecycle(&self) -> Lifecycle {
        self.policy().lifecycle.clone()
    }

    /// Returns its default time to live.
    pub fn default_ttl(&self) -> DefaultTtl {
        self.policy().default_ttl
    }

    /// Returns its rules by date.
    pub fn date_rules(&self) -> Vec<DateRuleView> {
        let Owner::Collection(collection) = self else { return Vec::new() };
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

/// A rule by which items expire at a date that they hold (T27).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateRuleView {
    /// The name of the index that makes it.
    pub index: String,
    /// How long after its date an item expires.
    pub expire_after_seconds: i32,
    /// Whether items expire by it: not while its index is being built.
    pub in_force: bool,
}
