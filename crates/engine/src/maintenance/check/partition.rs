//! The expected entries of the items of one partition, for both APIs.
//!
//! They are the footprints that writes and the purge use, so a new kind of entry need not be added here.

use bytes::Bytes;
use document::ItemNumber;
use storage::Read;

use crate::catalog::container::Api;
use crate::catalog::load_policy;
use crate::entries::expected::ExpectedEntry;
use crate::entries::renewals;
use crate::expiry::Policy;
use crate::expiry::header::{Header, Record};
use crate::index::ExpectedShape;
use crate::keys::{Generation, Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::write::schema::ItemSchema;

/// The state of the item of a number.
pub(super) enum ItemState {
    /// Nothing.
    Absent,
    /// Bytes that are not an item.
    Damaged(Error),
    /// An item.
    Present(Box<ExpectedItem>),
}

/// An item and its expected entries.
pub(super) struct ExpectedItem {
    pub(super) number: ItemNumber,
    pub(super) header: Header,
    /// Bytes as counters count them.
    pub(super) size: u64,
    /// A text that identifies the item.
    pub(super) name: String,
    pub(super) entries: Vec<ExpectedEntry>,
    pub(super) shapes: Vec<ExpectedShape>,
    pub(super) faults: Vec<Fault>,
}

/// The problems of an item itself, and why they cannot be repaired.
pub(super) type Fault = (String, &'static str);

/// Two living items with one key of a unique index.
pub(super) struct DuplicateKey {
    pub(super) index: String,
    pub(super) numbers: (ItemNumber, ItemNumber),
}

/// One partition, and the rules by which its items leave entries.
pub(super) trait CheckedPartition {
    /// Returns the partition.
    fn id(&self) -> PartitionId;

    /// Returns the API that its items belong to.
    fn api(&self) -> Api;

    /// Describes its owner, for reports.
    fn label(&self) -> String;

    /// Returns the database and name of its owner.
    fn names(&self) -> (String, String);

    /// Returns the prefixes of `Index` that are being cleared.
    fn clearing(&self) -> Vec<Vec<u8>>;

    /// Reads an item.
    fn read(&self, reader: &dyn Read, number: ItemNumber, bytes: &Bytes) -> Result<ItemState>;

    /// Returns the generations of the index that have shapes.
    fn shaped(&self) -> Vec<Generation> {
        Vec::new()
    }

    /// Returns whether a generation is being cleared away.
    fn is_cleared(&self, _generation: Generation) -> bool {
        false
    }

    /// Reports neighbours in a unique index that have the same key and are both living.
    fn duplicate_keys(
        &self,
        _reader: &dyn Read,
        _is_living: &dyn Fn(ItemNumber) -> Result<bool>,
        _tell: &mut dyn FnMut(DuplicateKey),
    ) -> Result<()> {
        Ok(())
    }

    /// Returns the rules in force, as the reader has them.
    fn policy(&self, reader: &dyn Read) -> Result<Policy> {
        load_policy(reader, self.id())
    }

    /// Looks up an item and its expected entries.
    fn look_up(&self, reader: &dyn Read, number: ItemNumber) -> Result<ItemState> {
        let (keyspace, key) = Key::Item(self.id(), number).encode();
        match reader.get(keyspace, &key)? {
            None => Ok(ItemState::Absent),
            Some(bytes) => self.read(reader, number, &bytes),
        }
    }
}

/// Returns the item that bytes are, by its owner's schema; `describe` gives its name and what is wrong with it.
pub(super) fn item_state<S: ItemSchema>(
    schema: &S,
    reader: &dyn Read,
    number: ItemNumber,
    bytes: &Bytes,
    describe: impl FnOnce(&Record<S::Body>) -> Result<(String, Vec<Fault>)>,
) -> Result<ItemState> {
    let mut record = match Record::decode(number, bytes) {
        Ok(record) => record,
        Err(error) => return Ok(ItemState::Damaged(error)),
    };
    // An unreadable record of a renewal counts as none: it is reported elsewhere.
    match renewals::look_up(reader, schema.partition().id, number, &mut record.header) {
        Ok(()) | Err(Error::Corrupt(_)) => {}
        Err(error) => return Err(error),
    }
    let described =
        schema.stored_footprint(&record).and_then(|footprint| Ok((footprint, describe(&record)?)));
    Ok(match described {
        Ok((footprint, (name, faults))) => ItemState::Present(Box::new(ExpectedItem {
            number,
            size: record.size(),
            header: record.header,
            name,
            entries: footprint.expected(),
            shapes: footprint.index.shapes(),
            faults,
        })),
        Err(error) => ItemState::Damaged(error),
    })
}
