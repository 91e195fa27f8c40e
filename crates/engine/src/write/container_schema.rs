//! How a container stores its JSON items: ids and unique values within a logical partition, entries in the generations of
//! the path index.

use std::borrow::Cow;
use std::sync::Arc;

use document::{Document, ItemNumber, ValueRef};
use storage::{Keyspace, Read, Transaction};

use super::context::{ValueClaim, WriteContext};
use super::schema::{ItemSchema, NewVersion};
use crate::access::gate::Gate;
use crate::catalog::container::{Container, Partition};
use crate::entries::traces::{Home, Traces};
use crate::expiry::header::Record;
use crate::index::footprint::Footprint;
use crate::index::{ExtractedTerms, IndexFootprint, MaintainedIndexes};
use crate::keys;
use crate::types::error::{Error, Result};
use crate::types::limits::UNIQUE_VALUES_BYTES_MAX;

/// A partition of a container with the generations of its index.
#[derive(Debug)]
pub(crate) struct ContainerSchema {
    pub(crate) container: Arc<Container>,
    pub(crate) partition: Arc<Partition>,
    pub(crate) maintained: MaintainedIndexes,
    /// The logical partition of all items in question; `None` if it is read from each item.
    home: Option<Arc<Home>>,
}

/// A write context of a container.
pub(crate) type ContainerContext = WriteContext<ContainerSchema>;

impl ContainerSchema {
    /// Opens a partition for a reader.
    pub(crate) fn open(
        reader: &dyn Read,
        container: &Arc<Container>,
        partition: &Arc<Partition>,
    ) -> Result<ContainerSchema> {
        let maintained = partition.maintained_indexes(reader)?;
        let (container, partition) = (Arc::clone(container), Arc::clone(partition));
        Ok(ContainerSchema { container, partition, maintained, home: None })
    }

    /// Returns the logical partition of an item.
    pub(crate) fn home_of(&self, record: &Record) -> Result<Cow<'_, Home>> {
        match &self.home {
            Some(home) => Ok(Cow::Borrowed(home)),
            None => Home::of(self.partition.id, &self.container.definition, record).map(Cow::Owned),
        }
    }

    fn home_of_body(&self, body: &Document) -> Result<Cow<'_, Home>> {
        match &self.home {
            Some(home) => Ok(Cow::Borrowed(home)),
            None => Ok(Cow::Owned(Home::of_body(self.partition.id, &self.container.definition, body)?)),
        }
    }
}

impl ContainerContext {
    /// Opens a logical partition inside a transaction.
    pub(crate) fn open(
        tx: &Transaction<'_>,
        container: &Arc<Container>,
        partition: &Arc<Partition>,
        home: &Arc<Home>,
    ) -> Result<ContainerContext> {
        let gate = Gate::for_write(tx, partition.id)?;
        let schema = ContainerSchema::open(tx, container, partition)?;
        Ok(WriteContext::new(gate, ContainerSchema { home: Some(Arc::clone(home)), ..schema }))
    }
}

impl ItemSchema for ContainerSchema {
    type Body = Document;
    type Source = Container;
    type Extracted = ExtractedTerms;

    fn partition(&self) -> &Arc<Partition> {
        &self.partition
    }

    fn source(&self) -> &Container {
        &self.container
    }

    fn id_key(&self, body: &Document) -> Result<Vec<u8>> {
        Ok(self.home_of_body(body)?.id_key(id_of(body)))
    }

    fn item_name(&self, body: &Document) -> String {
        format!("item '{}'", id_of(body))
    }

    fn id_taken(&self, body: &Document) -> Error {
        Error::Exists { what: self.item_name(body) }
    }

    fn changes_id(&self, old: &Document, new: &Document) -> Result<bool> {
        Ok(id_of(old) != id_of(new))
    }

    fn claim_unique_values(
        &self,
        context: &WriteContext<Self>,
        tx: &mut Transaction<'_>,
        (body, _): NewVersion<'_, Self>,
        old: Option<(ItemNumber, &ExtractedTerms)>,
    ) -> Result<()> {
        let definition = &self.container.definition;
        if definition.unique_keys.is_empty() {
            return Ok(());
        }
        let (home, own) = (self.home_of_body(body)?, old.map(|(number, _)| number));
        for (index, unique) in definition.unique_keys.iter().enumerate() {
            let key = home.unique_key(index, &unique.paths, body);
            let paths = || unique.paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            if key.len() > UNIQUE_VALUES_BYTES_MAX {
                return Err(Error::invalid(format!(
                    "The values at the unique key {} are too long: {} bytes with the partition key, the limit is \
                     {UNIQUE_VALUES_BYTES_MAX}.",
                    paths(),
                    key.len()
                )));
            }
            let Some(value) = tx.get(Keyspace::Unique, &key)? else { continue };
            let claim =
                keys::number_from_value(&value).and_then(|holder| context.claim_value(tx, holder, own));
            let place = |error: Error| error.at_item(format_args!("the item at the unique key {}", paths()));
            match claim.map_err(place)? {
                ValueClaim::Taken => return Err(Error::UniqueKeyTaken { paths: paths() }),
                ValueClaim::Granted | ValueClaim::HolderMissing => {}
            }
        }
        Ok(())
    }

    fn footprint(
        &self,
        mut traces: Traces,
        record: &Record,
        extracted: &mut ExtractedTerms,
    ) -> Result<Footprint> {
        let home = self.home_of(record)?;
        traces.lead(Keyspace::Id, home.id_key(id_of(&record.body)));
        for (index, unique) in self.container.definition.unique_keys.iter().enumerate() {
            traces.lead(Keyspace::Unique, home.unique_key(index, &unique.paths, &record.body));
        }
        Ok(Footprint { traces, index: IndexFootprint::of_item(&self.maintained, record, extracted) })
    }
}

fn id_of(body: &Document) -> &str {
    body.get("id").and_then(ValueRef::as_str).unwrap_or_default()
}
