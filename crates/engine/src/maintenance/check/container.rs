//! A partition of a container under the integrity check.

use bytes::Bytes;
use document::{ItemNumber, ValueRef};
use storage::Read;

use super::partition::{CheckedPartition, Fault, ItemState, item_state};
use crate::catalog::container::Api;
use crate::definition::OwnTtl;
use crate::expiry::header::Record;
use crate::keys::{self, Generation, PartitionId};
use crate::types::error::Result;
use crate::write::container_schema::ContainerSchema;

const NO_OTHER_COPY: &str = "it cannot be derived from other data; restore it from a backup or an export";
const WHICH_IS_RIGHT: &str = "it is unknown which of the two is right";

impl CheckedPartition for ContainerSchema {
    fn id(&self) -> PartitionId {
        self.partition.id
    }

    fn api(&self) -> Api {
        Api::NoSql
    }

    fn label(&self) -> String {
        let several = self.container.partitions.len() > 1;
        let range = if several { format!(" (range {})", self.partition.index) } else { String::new() };
        format!("container '{}/{}'{range}", self.container.database, self.container.name())
    }

    fn names(&self) -> (String, String) {
        (self.container.database.clone(), self.container.name().to_owned())
    }

    fn clearing(&self) -> Vec<Vec<u8>> {
        let id = self.partition.id;
        self.maintained.clearing().map(|generation| keys::index_generation(id, generation)).collect()
    }

    fn read(&self, reader: &dyn Read, number: ItemNumber, bytes: &Bytes) -> Result<ItemState> {
        item_state(self, reader, number, bytes, |record| describe(self, record))
    }

    fn shaped(&self) -> Vec<Generation> {
        self.maintained.kept().collect()
    }

    fn is_cleared(&self, generation: Generation) -> bool {
        self.maintained.clearing().any(|cleared| cleared == generation)
    }
}

fn describe(schema: &ContainerSchema, record: &Record) -> Result<(String, Vec<Fault>)> {
    let (home, id) = (schema.home_of(record)?, record.body.get("id").and_then(ValueRef::as_str));
    let mut faults = Vec::new();
    if id.is_none() {
        faults.push(("it has no id".to_owned(), NO_OTHER_COPY));
    }
    if !schema.partition.range.contains(&home.effective) {
        let what = format!("its partition key belongs to another range than {}", schema.partition.index);
        faults.push((what, "it can be exported and imported again"));
    }
    let own = record.body.root().as_object().map(OwnTtl::of);
    if !matches!(own, Some(Ok(ttl)) if ttl == record.header.ttl) {
        faults.push(("its header has another ttl than its body".to_owned(), WHICH_IS_RIGHT));
    }
    let name = format!("item '{}' with partition key {}", id.unwrap_or_default(), home.key.to_json());
    Ok((name, faults))
}
