//! The values of recorded events.
//!
//! ```text
//!   change   kind u8 (1 create, 2 replace, 3 delete, 4 replace in parts), item number u64, length of the current image u32,
//!            the current image, the previous image to the end; a missing image is empty
//!   delete   kind u8 (5), item number u64, number of the commit less LSN (see `header`), the previous image: where the two
//!            differ. Other changes have their LSN in the header of the current image
//!   expiry   the previous image
//! ```
//!
//! An image is an item as it is stored: header, then body.

use bytes::{BufMut, Bytes};
use document::ItemNumber;

use crate::expiry::header::{Body, Header, Record, read_varint, write_varint};
use crate::keys;
use crate::types::error::{Error, Result};
use crate::types::events;
use crate::types::lsn::WriteNumber;

/// What a commit did to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ChangeKind {
    Create = 1,
    Replace = 2,
    Delete = 3,
    Update = 4,
}

/// A delete whose LSN differs from the number of its commit.
const COUNTED_DELETE: u8 = 5;

/// Kind, item number and the two lengths' worth of bytes before the images.
const FIXED_LENGTH: usize = 1 + 8 + 4;

/// A recorded change.
#[derive(Debug, Clone)]
pub(super) struct RecordedChange<B> {
    pub(super) kind: ChangeKind,
    pub(super) number: ItemNumber,
    /// The number of its commit less its LSN.
    pub(super) behind: u64,
    pub(super) current: Option<Record<B>>,
    pub(super) previous: Option<Record<B>>,
}

/// Encodes a change that made a version.
pub(super) fn encode<B: Body>(kind: ChangeKind, current: &Record<B>, previous: Option<&Record<B>>) -> Bytes {
    let previous = previous.map(Record::encode).unwrap_or_default();
    encode_images(kind, current.number, &current.encode(), &previous)
}

/// Encodes a delete.
pub(super) fn encode_delete<B: Body>(write: WriteNumber, previous: &Record<B>) -> Bytes {
    let image = previous.encode();
    if write.behind() == 0 {
        return encode_images(ChangeKind::Delete, previous.number, &[], &image);
    }
    let mut out = Vec::with_capacity(FIXED_LENGTH + image.len());
    out.put_u8(COUNTED_DELETE);
    out.put_u64(previous.number.0);
    write_varint(write.behind(), &mut out);
    out.extend_from_slice(&image);
    out.into()
}

fn encode_images(kind: ChangeKind, number: ItemNumber, current: &[u8], previous: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(FIXED_LENGTH + current.len() + previous.len());
    out.put_u8(kind as u8);
    out.put_u64(number.0);
    out.put_u32(u32::try_from(current.len()).expect("an item is far smaller than 4 GiB"));
    out.extend_from_slice(current);
    out.extend_from_slice(previous);
    out.into()
}

/// Reads a change back; the images share its bytes.
pub(super) fn decode<B: Body>(value: &Bytes) -> Result<RecordedChange<B>> {
    let damaged = || Error::Corrupt("a recorded change".into());
    if value.first() == Some(&COUNTED_DELETE) {
        return decode_counted_delete(value).ok_or_else(damaged)?;
    }
    let (fixed, _) = value.split_first_chunk::<FIXED_LENGTH>().ok_or_else(damaged)?;
    let [kind, n0, n1, n2, n3, n4, n5, n6, n7, l0, l1, l2, l3] = *fixed;
    let number = ItemNumber(u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]));
    let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    let middle = FIXED_LENGTH.checked_add(length).filter(|middle| *middle <= value.len());
    let middle = middle.ok_or_else(damaged)?;
    let image = |bytes: Bytes| {
        let is_there = !bytes.is_empty();
        is_there.then(|| Record::decode(number, &bytes)).transpose()
    };
    let current = image(value.slice(FIXED_LENGTH..middle))?;
    let previous = image(value.slice(middle..))?;
    let kind = match (kind, current.is_some(), previous.is_some()) {
        (1, true, false) => ChangeKind::Create,
        (2, true, true) => ChangeKind::Replace,
        (3, false, true) => ChangeKind::Delete,
        (4, true, true) => ChangeKind::Update,
        _ => return Err(damaged()),
    };
    let behind = current.as_ref().map_or(0, |record: &Record<B>| record.header.number().behind());
    Ok(RecordedChange { kind, number, behind, current, previous })
}

fn decode_counted_delete<B: Body>(value: &Bytes) -> Option<Result<RecordedChange<B>>> {
    let (number, rest) = value.get(1..)?.split_first_chunk()?;
    let (behind, image) = read_varint(rest).filter(|(_, image)| !image.is_empty())?;
    let number = ItemNumber(u64::from_be_bytes(*number));
    let previous = Record::decode(number, &value.slice_ref(image));
    Some(previous.map(|previous| {
        let (kind, previous) = (ChangeKind::Delete, Some(previous));
        RecordedChange { kind, number, behind, current: None, previous }
    }))
}

/// Returns the LSN of a recorded change. Only the header of the current image is decoded for it.
pub(super) fn lsn_of_change(key: &[u8], value: &[u8]) -> Result<u64> {
    let commit = events::commit_of(keys::history_position(key)?.order);
    let damaged = || Error::Corrupt("a recorded change".into());
    let behind = match value.first() {
        Some(&COUNTED_DELETE) => value.get(9..).and_then(read_varint).ok_or_else(damaged)?.0,
        Some(kind) if *kind == ChangeKind::Delete as u8 => 0,
        _ => Header::decode(value.get(FIXED_LENGTH..).ok_or_else(damaged)?)?.0.number().behind(),
    };
    commit.checked_sub(behind).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use document::{Document, Sequence};
    use storage::Time;

    use super::*;
    use crate::definition::OwnTtl;
    use crate::keys::Position;
    use crate::keys::{Key, PartitionId};

    #[test]
    fn t28_a_recorded_change_reads_back_and_a_cut_one_is_damage() {
        let record = |n: u64| {
            let header = Header::new(Sequence(n), n, OwnTtl::Seconds(5));
            let body = Document::from_json(format!(r#"{{"id":"{n}"}}"#).as_bytes()).expect("valid JSON");
            Record { number: ItemNumber(3), header, body }
        };
        let (old, new) = (record(3), record(4));
        let (commit, behind) = (1_000, 300);
        let sequence = Sequence(commit << 7);
        let write = WriteNumber { sequence, lsn: commit - behind };
        let counted = Record { header: Header::numbered(write, 9, OwnTtl::Absent), ..record(4) };
        let changes = [
            (ChangeKind::Create, encode(ChangeKind::Create, &new, None), Some(&new), None, 0),
            (ChangeKind::Replace, encode(ChangeKind::Replace, &new, Some(&old)), Some(&new), Some(&old), 0),
            (
                ChangeKind::Update,
                encode(ChangeKind::Update, &counted, Some(&old)),
                Some(&counted),
                Some(&old),
                behind,
            ),
            (ChangeKind::Delete, encode_delete(WriteNumber::uncounted(sequence), &old), None, Some(&old), 0),
            (ChangeKind::Delete, encode_delete(write, &old), None, Some(&old), behind),
        ];
        for (kind, value, current, previous, behind) in changes {
            let back = decode::<Document>(&value).expect("reads");
            assert_eq!((back.kind, back.number, back.behind), (kind, ItemNumber(3), behind));
            let position = Position::of_change(Time::from_seconds(1), sequence);
            let (_, key) = Key::HistoryChange(PartitionId(1), position).encode();
            assert_eq!(lsn_of_change(&key, &value), Ok(commit - behind));
            let image = |record: Option<&Record>| record.map(Record::encode);
            assert_eq!(image(back.current.as_ref()), image(current));
            assert_eq!(image(back.previous.as_ref()), image(previous));
            for length in 0..value.len() {
                assert!(decode::<Document>(&value.slice(..length)).is_err(), "{kind:?} cut at {length}");
            }
        }
        assert!(decode::<Document>(&Bytes::from_static(&[9; 40])).is_err());
    }
}
