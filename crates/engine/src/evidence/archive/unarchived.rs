//! Expired items whose id or unique value a write has claimed, in a container with an archive, or in a held one. The
//! write's own commit moves them aside, until their lines are in the archive and the hold is lifted. Only the purge reads
//! them.
//!
//! The value has the members of the item's expiry record, because the rule by which it expired may be dropped
//! before the line is written, and the item as it was stored:
//!
//! ```text
//!   length of the members u32, the members, header and body
//! ```

use bytes::{BufMut, Bytes};
use storage::{Direction, KeyRange, Keyspace, Read, Time, Transaction};

use crate::entries::counters::Tally;
use crate::entries::set_aside;
use crate::evidence::expiry_record::ExpiryRecord;
use crate::expiry::header::{Body, Record};
use crate::keys::{self, Key, PartitionId};
use crate::types::error::{Error, Result};

/// An expired item that was moved aside.
#[derive(Debug, Clone)]
pub(crate) struct Unarchived<B> {
    pub(crate) expiry_record: ExpiryRecord,
    pub(crate) record: Record<B>,
}

impl<B: Body> Unarchived<B> {
    /// Moves it aside. The caller removes the entries that lead to it.
    pub(crate) fn put(&self, tx: &mut Transaction<'_>, partition: PartitionId) -> Result<()> {
        let (members, image) = (self.expiry_record.members.as_bytes(), self.record.encode());
        let mut value = Vec::with_capacity(4 + members.len() + image.len());
        value.put_u32(u32::try_from(members.len()).expect("members are bounded"));
        value.extend_from_slice(members);
        value.extend_from_slice(&image);
        let size = Tally { items: 1, bytes: value.len() as u64 };
        store_sum(tx, partition, sum(tx, partition)?.plus(size));
        let key = Key::Unarchived {
            partition,
            expired_at: self.expiry_record.expired_at,
            number: self.record.number,
        };
        let (keyspace, key) = key.encode();
        tx.put(keyspace, key, value);
        Ok(())
    }

    /// Reads an entry back.
    pub(crate) fn decode(key: &[u8], value: &Bytes) -> Result<Unarchived<B>> {
        let (_, number) = keys::unarchived_entry(key)?;
        let (expiry_record, image) = split(key, value)?;
        Ok(Unarchived { expiry_record, record: Record::decode(number, &image)? })
    }
}

/// Splits an entry into the expiry record and the item as it was stored.
pub(crate) fn split(key: &[u8], value: &Bytes) -> Result<(ExpiryRecord, Bytes)> {
    let (expired_at, _) = keys::unarchived_entry(key)?;
    let damaged = || Error::Corrupt("an expired item that was moved aside".into());
    let (length, rest) = value.split_first_chunk::<4>().ok_or_else(damaged)?;
    let length = u32::from_be_bytes(*length) as usize;
    let members = rest.get(..length).and_then(|text| str::from_utf8(text).ok()).ok_or_else(damaged)?;
    Ok((ExpiryRecord { members: members.to_owned(), expired_at }, value.slice(4 + length..)))
}

/// Removes the entry of a key. Returns `None` if there is none.
pub(crate) fn remove(tx: &mut Transaction<'_>, partition: PartitionId, key: &[u8]) -> Result<Option<Bytes>> {
    let Some(value) = tx.get(Keyspace::History, key)? else { return Ok(None) };
    let size = Tally { items: 1, bytes: value.len() as u64 };
    store_sum(tx, partition, sum(tx, partition)?.minus(size)?);
    tx.remove(Keyspace::History, key);
    Ok(Some(value))
}

/// Returns how many items are moved aside, and their bytes.
pub(crate) fn sum(reader: &(impl Read + ?Sized), partition: PartitionId) -> Result<Tally> {
    let (keyspace, key) = Key::UnarchivedTotal(partition).encode();
    reader.get(keyspace, &key)?.map_or(Ok(Tally::default()), |value| Tally::decode(&value))
}

/// Returns the entries of the items that were moved aside, in the order of expiry.
pub(crate) fn entries(
    reader: &dyn Read,
    partition: PartitionId,
) -> impl Iterator<Item = storage::Result<(Bytes, Bytes)>> {
    reader.scan(Keyspace::History, KeyRange::prefix(keys::unarchived(partition)), Direction::Forward)
}

/// Returns the entries that the purge has not set aside.
pub(crate) fn waiting(
    reader: &dyn Read,
    partition: PartitionId,
) -> Result<impl Iterator<Item = storage::Result<(Bytes, Bytes)>>> {
    let damaged = set_aside::numbers(reader, partition)?;
    let is_damaged = move |key: &[u8]| match keys::unarchived_entry(key) {
        Ok((_, number)) => damaged.contains(&number),
        Err(_) => false,
    };
    let waits = move |entry: &storage::Result<(Bytes, Bytes)>| {
        entry.as_ref().map_or(true, |(key, _)| !is_damaged(key))
    };
    Ok(entries(reader, partition).filter(waits))
}

/// Returns when the first of the waiting items expired.
pub(crate) fn oldest(reader: &dyn Read, partition: PartitionId) -> Result<Option<Time>> {
    // Mostly there is none, and reading the sum is cheaper than searching the range.
    if sum(reader, partition)?.items == 0 {
        return Ok(None);
    }
    let Some(entry) = waiting(reader, partition)?.next() else { return Ok(None) };
    let (expired_at, _) = keys::unarchived_entry(&entry?.0)?;
    Ok(Some(Time::from_millis(expired_at.max(0).unsigned_abs())))
}

fn store_sum(tx: &mut Transaction<'_>, partition: PartitionId, sum: Tally) {
    let (keyspace, key) = Key::UnarchivedTotal(partition).encode();
    if sum == Tally::default() {
        tx.remove(keyspace, key);
    } else {
        tx.put(keyspace, key, sum.encode());
    }
}

#[cfg(test)]
mod tests {
    use document::{Document, ItemNumber, Sequence};

    use super::*;
    use crate::definition::OwnTtl;
    use crate::expiry::header::Header;

    #[test]
    fn t32_what_is_moved_aside_reads_back_and_a_cut_one_is_damage() {
        let header = Header::new(Sequence(9), 5, OwnTtl::Absent);
        let body = Document::from_json(br#"{"id":"x"}"#).unwrap();
        let record = Record { number: ItemNumber(7), header, body };
        let members = r#""id":"x""#;
        let value = [&8_u32.to_be_bytes()[..], members.as_bytes(), &record.encode()].concat();
        let key =
            Key::Unarchived { partition: PartitionId(3), expired_at: -4, number: ItemNumber(7) }.encode().1;
        let back = Unarchived::<Document>::decode(&key, &value.clone().into()).unwrap();
        assert_eq!((back.expiry_record.members.as_str(), back.expiry_record.expired_at), (members, -4));
        assert_eq!((back.record.number, back.record.encode()), (record.number, record.encode()));
        for length in 0..value.len() {
            assert!(Unarchived::<Document>::decode(&key, &value[..length].to_vec().into()).is_err());
        }
        assert!(Unarchived::<Document>::decode(&key[1..], &value.into()).is_err());
    }
}
