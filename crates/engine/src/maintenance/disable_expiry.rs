//! Turns expiry off everywhere, for a store that was restored from a backup: items that were living when the backup was
//! taken must not be purged because time has passed since.
//!
//! It is an ordinary change of rules: items that had expired at the time of the change stay expired (T13), and an
//! item's own ttl applies again when its container gets a default again (T12).

use mql::index::{IndexSpec, TtlRule};

use crate::Engine;
use crate::catalog::container::Container;
use crate::catalog::owner::Owner;
use crate::collection::CollectionIndex;
use crate::definition::DefaultTtl;
use crate::schema::guard::Consent;
use crate::types::error::{Error, Result};
use crate::types::request::Precondition;

impl Engine {
    /// Turns off every rule by which items expire. Returns how many containers and collections had one.
    pub fn disable_expiry(&self) -> Result<u64> {
        let owners: Vec<Owner> = self.catalog().owned_partitions().map(|(owner, _)| owner).collect();
        let mut changed = 0;
        let mut last = None;
        for owner in owners {
            let name = (owner.api(), owner.database().to_owned(), owner.name().to_owned());
            // A container of several partitions is met several times.
            if last.as_ref() == Some(&name) {
                continue;
            }
            changed += u64::from(self.disable_expiry_of(&owner)?);
            last = Some(name);
        }
        Ok(changed)
    }

    fn disable_expiry_of(&self, owner: &Owner) -> Result<bool> {
        let mut had_rule = owner.default_ttl() != DefaultTtl::Off;
        if owner.lifecycle().expire_at_path.is_some() {
            had_rule = true;
            self.change_lifecycle_with(owner, Consent::Given, |settings| settings.expire_at_path = None)?;
        }
        match owner {
            Owner::Container(container) => self.turn_off(container)?,
            Owner::Collection(collection) => {
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

/// Returns the same index without its rule.
fn without_rule(index: &CollectionIndex) -> Result<IndexSpec> {
    let mut plain = bson::Document::new();
    for (name, value) in index.spec.to_stored().iter() {
        if name != "expireAfterSeconds" {
            plain.push(name, value.clone());
        }
    }
    IndexSpec::parse_stored(plain.view()).map_err(Error::Language)
}
