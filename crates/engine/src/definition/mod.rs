//! The definition of a container: partition key, indexing, unique keys, time to live.
//!
//! [`ContainerDefinition::from_value`] is the only constructor. It takes the JSON that clients send and either
//! returns a complete and consistent definition, or an error that names the wrong property. Reading
//! [`ContainerDefinition::to_value`] again gives the same definition, which is also how definitions are stored.
//!
//! Clients may be newer than the server: an unknown property of the container is stored and returned. A name that differs from
//! a known one in letter case only is refused, such as `defaultTTL`, which would otherwise have no effect.

mod dialect;
mod extras;
mod index_path;
mod indexing;
pub mod patch;
mod search;
mod spatial;
mod unique;
mod unknown;

use document::{Object, PartitionKeyDefinition, Path, Value, check_resource_id};

use crate::expiry::Lifecycle;
use crate::expiry::item::SYSTEM_PROPERTIES;

pub use crate::expiry::ttl::{DefaultTtl, InvalidTtl, OwnTtl};
pub use crate::types::definition_error::DefinitionError;
pub use index_path::{IndexPath, Reach, Step};
pub use indexing::{CompositePath, IndexingMode, IndexingPolicy, Order};
pub use spatial::SpatialIndex;
pub use unique::UniqueKey;

use crate::types::definition_error::{Result, invalid, optional, quote, required, text};

/// Properties that are fields of [`ContainerDefinition`].
const OWN: [&str; 5] = ["id", "partitionKey", "indexingPolicy", "defaultTtl", "uniqueKeyPolicy"];

/// System properties, which a client may send back as it has read them; they are not part of a definition.
const DROPPED: [&str; 10] =
    ["_rid", "_self", "_etag", "_ts", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts", "statistics"];

/// Properties of the service that would be wrong to store without their effect.
const NOT_SUPPORTED: [&str; 2] = ["globalSecondaryIndexDefinition", "materializedViewDefinition"];

const CHANGE_FEED_POLICY: &str = "changeFeedPolicy";
const TTL_PROPERTY_PATH: &str = "ttlPropertyPath";

/// A complete, valid definition of a container.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerDefinition {
    /// The container's name.
    pub id: String,
    /// Where an item has its partition key.
    pub partition_key: PartitionKeyDefinition,
    /// What is indexed.
    pub indexing: IndexingPolicy,
    /// What no two living items of one partition key may share.
    pub unique_keys: Vec<UniqueKey>,
    /// When items without their own `ttl` expire.
    pub default_ttl: DefaultTtl,
    /// Properties that are stored and returned, in the order of the definition.
    pub rest: Vec<(String, Value)>,
}

impl ContainerDefinition {
    /// Reads a definition in the form that clients send; null means absent for everything optional.
    pub fn from_value(value: &Value) -> Result<Self> {
        let members = value
            .as_object()
            .ok_or_else(|| invalid(format!("A container must be a JSON object, but is {}.", quote(value))))?;
        check_names(members)?;
        let id = text(required(members, "id")?, "id")?.to_owned();
        check_resource_id(&id).map_err(|error| invalid(error.to_string()))?;
        let indexing = match optional(members, "indexingPolicy") {
            None => IndexingPolicy::default(),
            Some(policy) => IndexingPolicy::from_value(policy)?,
        };
        let default_ttl = DefaultTtl::from_member(members.get("defaultTtl"))?;
        if indexing.mode == IndexingMode::None && default_ttl != DefaultTtl::Off {
            return Err(invalid(
                "Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection",
            ));
        }
        let mut rest = Vec::new();
        for name in extras::NAMES {
            if let Some(value) = extras::read(name, optional(members, name))? {
                rest.push((name.to_owned(), value));
            }
        }
        search::check_vector_indexes(&indexing.vectors, optional(members, "vectorEmbeddingPolicy"))?;
        search::check_full_text_indexes(&indexing.full_text, optional(members, "fullTextPolicy"))?;
        rest.extend(unknown::read(members)?);
        let unique_keys = optional(members, "uniqueKeyPolicy").map_or(Ok(Vec::new()), unique::from_value)?;
        Ok(Self { id, partition_key: partition_key(members)?, indexing, unique_keys, default_ttl, rest })
    }

    /// Returns the definition in the form and order of the service, complete with its defaults.
    pub fn to_value(&self) -> Value {
        let mut value = Object::new();
        value.insert("id", self.id.as_str());
        value.insert("partitionKey", self.partition_key.to_value());
        value.insert("indexingPolicy", self.indexing.to_value());
        if let Some(ttl) = self.default_ttl.to_member() {
            value.insert("defaultTtl", ttl);
        }
        let (analytical, others) = self
            .rest
            .split_at(self.rest.iter().take_while(|(name, _)| name == "analyticalStorageTtl").count());
        for (name, kept) in analytical {
            value.insert(name.as_str(), kept.clone());
        }
        if !self.unique_keys.is_empty() {
            value.insert("uniqueKeyPolicy", unique::to_value(&self.unique_keys));
        }
        // A path that was removed is absent.
        let is_removed = |name: &str, kept: &Value| name == TTL_PROPERTY_PATH && kept.as_str() == Some("");
        for (name, kept) in others.iter().filter(|(name, kept)| !is_removed(name, kept)) {
            value.insert(name.as_str(), kept.clone());
        }
        value.into()
    }

    /// Returns for how many minutes the feed keeps all versions and deletes (T28), or `None` if it does not.
    pub fn history_minutes(&self) -> Option<u32> {
        self.rest(CHANGE_FEED_POLICY).and_then(extras::history_minutes)
    }

    /// Returns where items name the start of their countdown (T33), or `None` if that is `_ts`.
    pub fn ttl_property_path(&self) -> Option<Path> {
        self.rest(TTL_PROPERTY_PATH).and_then(Value::as_str).and_then(|text| Path::parse(text).ok())
    }

    /// Returns the lifecycle settings after `next` has replaced this definition: only what differs between the two
    /// changes a setting.
    pub(crate) fn lifecycle_after(&self, next: &ContainerDefinition, mut settings: Lifecycle) -> Lifecycle {
        if next.history_minutes() != self.history_minutes() {
            settings.history_minutes = next.history_minutes();
        }
        if next.ttl_property_path() != self.ttl_property_path() {
            settings.ttl_property_path = next.ttl_property_path();
        }
        settings
    }

    /// Takes over the feed policy and the base of countdowns where a replacement has none. Not every client can send
    /// them, and such a client must not remove them by changing something else. A retention of 0 and an empty path
    /// remove them.
    pub(crate) fn keep_what_clients_leave_out(&mut self, old: &ContainerDefinition) {
        // Two forms of the same key: the container keeps its original one.
        if self.partition_key == old.partition_key {
            self.partition_key.clone_from(&old.partition_key);
        }
        for name in [CHANGE_FEED_POLICY, TTL_PROPERTY_PATH] {
            if let (None, Some(kept)) = (self.rest(name), old.rest(name)) {
                self.rest.push((name.to_owned(), kept.clone()));
            }
        }
        // Unknown properties come last.
        let position = |name: &String| extras::NAMES.iter().position(|known| known == name);
        self.rest.sort_by_key(|(name, _)| position(name).unwrap_or(usize::MAX));
    }

    fn rest(&self, name: &str) -> Option<&Value> {
        self.rest.iter().find(|(kept, _)| kept == name).map(|(_, value)| value)
    }
}

/// Checks the rules for new containers. Stored definitions are not checked, so that older containers open.
pub fn check_new(definition: &ContainerDefinition) -> Result<()> {
    definition.partition_key.check_new_paths().map_err(|error| invalid(error.to_string()))?;
    extras::check_encryption_keys(definition.rest(extras::ENCRYPTION_POLICY))?;
    spatial::check(definition)
}

/// Refuses changes of what is fixed: the name, the partition key, the unique keys, existing vectors.
pub fn check_replacement(old: &ContainerDefinition, new: &ContainerDefinition) -> Result<()> {
    let immutable = |message: String| Err(DefinitionError::Immutable { message });
    if new.id != old.id {
        return immutable(format!("The container '{}' cannot be renamed to '{}'.", old.id, new.id));
    }
    if new.partition_key != old.partition_key {
        return immutable(format!(
            "The partition key of the container '{}' cannot be changed from {} to {}.",
            old.id,
            old.partition_key.to_value().to_json(),
            quote(&new.partition_key.to_value())
        ));
    }
    if new.unique_keys != old.unique_keys {
        return immutable(format!("The unique key policy of the container '{}' cannot be changed.", old.id));
    }
    spatial::check_change(old, new)?;
    let encryption = new.rest(extras::ENCRYPTION_POLICY);
    if encryption != old.rest(extras::ENCRYPTION_POLICY) {
        extras::check_encryption_keys(encryption)?;
    }
    let (before, after) = (Value::Array(old.indexing.vectors.clone()), &new.indexing.vectors);
    if changes_entry(Some(&before), after) {
        return immutable(
            "Paths in existing vector indexing policy cannot be modified in Collection Replace".to_owned(),
        );
    }
    let embeddings = |definition: &ContainerDefinition| -> Option<Value> {
        definition.rest("vectorEmbeddingPolicy")?.get("vectorEmbeddings").cloned()
    };
    let after =
        embeddings(new).and_then(|entries| entries.as_array().map(<[Value]>::to_vec)).unwrap_or_default();
    if changes_entry(embeddings(old).as_ref(), &after) {
        return immutable(
            "Paths in existing embedding policy cannot be modified in Collection Replace".to_owned(),
        );
    }
    Ok(())
}

/// Returns whether an entry for an existing path has changed.
fn changes_entry(before: Option<&Value>, after: &[Value]) -> bool {
    after.iter().any(|entry| {
        let old = search::path_of(entry).and_then(|path| search::entry_at(before, &path));
        old.is_some_and(|old| !document::equal(old.view(), entry.view()))
    })
}

fn check_names(members: &Object) -> Result<()> {
    match members.iter().find(|(name, value)| NOT_SUPPORTED.contains(name) && !value.is_null()) {
        Some((name, _)) => Err(DefinitionError::NotSupported { member: name.to_owned() }),
        None => Ok(()),
    }
}

fn partition_key(members: &Object) -> Result<PartitionKeyDefinition> {
    let value = required(members, "partitionKey")?;
    let definition = PartitionKeyDefinition::from_value(value).map_err(|error| match error.to_string() {
        sentence if sentence.ends_with('.') => invalid(sentence),
        reason => invalid(format!("partitionKey: {reason}.")),
    })?;
    let owned =
        |path: &&Path| path.segments().first().is_some_and(|name| SYSTEM_PROPERTIES.contains(&name.as_str()));
    match definition.paths.iter().find(owned) {
        None => Ok(definition),
        Some(path) => Err(invalid(format!("The partition key path '{path}' is a property of the system."))),
    }
}

#[cfg(test)]
mod tests;
