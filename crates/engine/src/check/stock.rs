//! What the items of one partition call for: every entry that each of them should have left, whichever API they are of.
//!
//! It is the footprint that writes and the purge go by, so a new kind of entry need not be told here.

use std::sync::Arc;

use bytes::Bytes;
use document::{Document, ItemNumber, ValueRef};
use storage::{Keyspace, Read};

use crate::catalog::load_policy;
use crate::collection::Inventory;
use crate::container::{Container, Partition};
use crate::definition::OwnTtl;
use crate::error::{Error, Result};
use crate::expiry::Policy;
use crate::footprint::{Footprint, Home};
use crate::header::{Body, Header, Record};
use crate::index::{Drafted, Mark, ShapeHash, Upkeep};
use crate::keys::{self, Generation, Key, PartitionId};
use crate::touch;

/// One entry that an item calls for.
pub(crate) struct Claim {
    pub(crate) keyspace: Keyspace,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Claimed,
}

/// What should lie there.
pub(crate) enum Claimed {
    /// These bytes.
    Exactly(Bytes),
    /// A mark that is not behind this one.
    Bounded(Mark),
}

impl Claimed {
    /// The bytes that a write would put there.
    pub(super) fn bytes(&self) -> Bytes {
        match self {
            Claimed::Exactly(bytes) => bytes.clone(),
            Claimed::Bounded(mark) => mark.encode().into(),
        }
    }

    /// Whether what lies there will do.
    pub(super) fn admits(&self, found: &[u8]) -> bool {
        match self {
            Claimed::Exactly(bytes) => bytes == found,
            Claimed::Bounded(wanted) => Mark::decode(found)
                .is_ok_and(|mark| mark.inexact == wanted.inexact && mark.places.bounds(&wanted.places)),
        }
    }
}

/// A shape that an item has: the generation, its name and its places as they are stored.
pub(crate) type ClaimedShape = (Generation, ShapeHash, Vec<u8>);

/// An item and everything that it calls for.
pub(crate) struct Claims {
    pub(crate) number: ItemNumber,
    pub(crate) header: Header,
    /// Bytes as counters count them.
    pub(crate) size: u64,
    /// The item in words.
    pub(crate) name: String,
    pub(crate) entries: Vec<Claim>,
    pub(crate) shapes: Vec<ClaimedShape>,
    /// What the item itself is wrong about, and why that cannot be mended.
    pub(crate) faults: Vec<(String, &'static str)>,
}

/// What lies under a number.
pub(crate) enum Standing {
    /// Nothing.
    Gone,
    /// Bytes that are no item.
    Damaged(Error),
    /// An item.
    There(Box<Claims>),
}

/// The items of one partition, and the rules by which they leave entries.
pub(crate) enum Stock {
    Container { container: Arc<Container>, partition: Arc<Partition>, upkeep: Box<Upkeep> },
    Collection(Inventory),
}

const NO_OTHER_COPY: &str = "nothing else tells what it was; restore it from a backup or an export";
const WHICH_IS_RIGHT: &str = "which of the two is right cannot be told";

impl Stock {
    pub(crate) fn of_container(
        reader: &dyn Read,
        container: &Arc<Container>,
        partition: &Arc<Partition>,
    ) -> Result<Stock> {
        let upkeep = Box::new(Upkeep::load(reader, partition)?);
        Ok(Stock::Container { container: Arc::clone(container), partition: Arc::clone(partition), upkeep })
    }

    /// The partition.
    pub(crate) fn partition(&self) -> PartitionId {
        match self {
            Stock::Container { partition, .. } => partition.id,
            Stock::Collection(inventory) => inventory.partition(),
        }
    }

    /// The rules in force, as the reader has them.
    pub(super) fn policy(&self, reader: &dyn Read) -> Result<Policy> {
        load_policy(reader, self.partition())
    }

    /// Whose it is, in words.
    pub(super) fn label(&self) -> String {
        match self {
            Stock::Container { container, partition, .. } => {
                let several = container.partitions.len() > 1;
                let range = if several { format!(" (range {})", partition.index) } else { String::new() };
                format!("container '{}/{}'{range}", container.database, container.name())
            }
            Stock::Collection(inventory) => inventory.label(),
        }
    }

    /// Database and name.
    pub(super) fn names(&self) -> (String, String) {
        match self {
            Stock::Container { container, .. } => (container.database.clone(), container.name().to_owned()),
            Stock::Collection(inventory) => inventory.names(),
        }
    }

    /// The generations of the index that have shapes.
    pub(super) fn shaped(&self) -> Vec<Generation> {
        match self {
            Stock::Container { upkeep, .. } => upkeep.kept().collect(),
            Stock::Collection(_) => Vec::new(),
        }
    }

    /// The beginnings of what in `Index` is being cleared away.
    pub(super) fn clearing(&self) -> Vec<Vec<u8>> {
        let partition = self.partition();
        match self {
            Stock::Container { upkeep, .. } => {
                upkeep.clearing().map(|generation| keys::index_generation(partition, generation)).collect()
            }
            Stock::Collection(inventory) => inventory.clearing(),
        }
    }

    /// Whether a generation is being cleared away.
    pub(super) fn is_cleared(&self, generation: Generation) -> bool {
        match self {
            Stock::Container { upkeep, .. } => upkeep.clearing().any(|cleared| cleared == generation),
            Stock::Collection(_) => false,
        }
    }

    /// Looks up an item and what it calls for.
    pub(super) fn standing(&self, reader: &dyn Read, number: ItemNumber) -> Result<Standing> {
        let (keyspace, key) = Key::Item(self.partition(), number).encode();
        match reader.get(keyspace, &key)? {
            None => Ok(Standing::Gone),
            Some(bytes) => self.read(reader, number, &bytes),
        }
    }

    /// Takes an item apart.
    pub(super) fn read(&self, reader: &dyn Read, number: ItemNumber, bytes: &Bytes) -> Result<Standing> {
        let claims = match self {
            Stock::Container { container, partition, upkeep } => {
                let Some(record) = decode::<Document>(reader, partition.id, number, bytes)? else {
                    return Ok(damaged::<Document>(number, bytes));
                };
                claims_of_item(container, partition, upkeep, &record)
            }
            Stock::Collection(inventory) => {
                let Some(record) = decode(reader, inventory.partition(), number, bytes)? else {
                    return Ok(damaged::<bson::RawDocument>(number, bytes));
                };
                Ok(inventory.claims(&record))
            }
        };
        Ok(claims.map_or_else(Standing::Damaged, |claims| Standing::There(Box::new(claims))))
    }
}

/// The item with its touch; none if the bytes are no item. A touch that cannot be read counts as none: it is told elsewhere.
fn decode<B: Body>(
    reader: &dyn Read,
    partition: PartitionId,
    number: ItemNumber,
    bytes: &Bytes,
) -> Result<Option<Record<B>>> {
    let Ok(mut record) = Record::decode(number, bytes) else { return Ok(None) };
    match touch::look_up(reader, partition, number, &mut record.header) {
        Ok(()) | Err(Error::Corrupt(_)) => Ok(Some(record)),
        Err(error) => Err(error),
    }
}

fn damaged<B: Body>(number: ItemNumber, bytes: &Bytes) -> Standing {
    let error = Record::<B>::decode(number, bytes).err();
    Standing::Damaged(error.unwrap_or_else(|| Error::Corrupt(format!("item {}", number.0))))
}

fn claims_of_item(
    container: &Container,
    partition: &Partition,
    upkeep: &Upkeep,
    record: &Record,
) -> Result<Claims> {
    let home = Home::of(partition.id, &container.definition, record)?;
    let footprint = Footprint::new(&home, &container.definition, upkeep, record, Drafted::default());
    let id = record.body.get("id").and_then(ValueRef::as_str);
    let mut faults = Vec::new();
    if id.is_none() {
        faults.push(("it has no id".to_owned(), NO_OTHER_COPY));
    }
    if !partition.range.contains(&home.effective) {
        let what = format!("its partition key belongs to another range than {}", partition.index);
        faults.push((what, "it can be exported and imported again"));
    }
    let own = record.body.root().as_object().map(OwnTtl::of);
    if !matches!(own, Some(Ok(ttl)) if ttl == record.header.ttl) {
        faults.push(("its header has another ttl than its body".to_owned(), WHICH_IS_RIGHT));
    }
    Ok(Claims {
        number: record.number,
        header: record.header.clone(),
        size: record.size(),
        name: format!("item '{}' with partition key {}", id.unwrap_or_default(), home.key.to_json()),
        entries: footprint.claims(),
        shapes: footprint.shapes(),
        faults,
    })
}
