//! Turning expiry off everywhere, for a store that was made of a backup: what lived when the backup was taken is not to be
//! purged because time has passed since.
//!
//! It is a change of rules like any other: what was dead at the time of the change stays dead (T13), and an item's own ttl
//! counts again when its container gets a default again (T12).

use mql::index::{IndexSpec, TtlRule};

use crate::Engine;
use crate::collection::CollectionIndex;
use crate::container::Container;
use crate::definition::DefaultTtl;
use crate::error::{Error, Result};
use crate::guard::Consent;
use crate::holder::Holder;
use crate::operation::Precondition;

impl Engine {
    /// Turns every rule off by which items expire; says in how many containers and collections there was one.
    pub fn disable_expiry(&self) -> Result<u64> {
        let holders: Vec<Holder> = self.catalog().holdings().map(|(holder, _)| holder).collect();
        let mut changed = 0;
        let mut last = None;
        for holder in holders {
            let name = (holder.api(), holder.database().to_owned(), holder.name().to_owned());
            // One of several partitions is met several times.
            if last.as_ref() == Some(&name) {
                continue;
            }
            changed += u64::from(self.disable_expiry_of(&holder)?);
            last = Some(name);
        }
        Ok(changed)
    }

    fn disable_expiry_of(&self, holder: &Holder) -> Result<bool> {
        let mut had_rule = holder.default_ttl() != DefaultTtl::Off;
        if holder.lifecycle().expire_at_path.is_some() {
            had_rule = true;
            self.change_lifecycle_with(holder, Consent::Given, |wishes| wishes.expire_at_path = None)?;
        }
        match holder {
            Holder::Container(container) => self.turn_off(container)?,
            Holder::Collection(collection) => {
                for index in collection.indexes().iter() {
                    match index.spec.ttl_rule() {
                        Some(TtlRule::Collection { .. }) => {
                            self.drop_indexes(collection, &[index.number])?;
                        }
                        Some(TtlRule::Field { .. }) => {
                            had_rule = true;
                            self.change_index(collection, index.number, without_rule(index)?)?;
                        }
                        Some(TtlRule::Ineffective) | None => {}
                    }
                }
            }
        }
        Ok(had_rule)
    }

    fn turn_off(&self, container: &Container) -> Result<()> {
        let current = self.container_by_rid(container.rid)?;
        if current.definition.default_ttl == DefaultTtl::Off {
            return Ok(());
        }
        let mut definition = current.definition.clone();
        definition.default_ttl = DefaultTtl::Off;
        self.replace_container_with(&current, definition, &Precondition::None, Consent::Given).map(drop)
    }
}

/// The same index without its rule.
fn without_rule(index: &CollectionIndex) -> Result<IndexSpec> {
    let mut plain = bson::Document::new();
    for (name, value) in index.spec.to_stored().iter() {
        if name != "expireAfterSeconds" {
            plain.push(name, value.clone());
        }
    }
    IndexSpec::parse_stored(plain.view()).map_err(Error::Language)
}
