//! The values of recorded events.
//!
//! ```text
//!   change   kind u8 (1 create, 2 replace, 3 delete, 4 replace in parts), item number u64, length of the current image u32, the current image,
//!            the previous image to the end; an image that there is none of is empty
//!   expiry   the previous image
//! ```
//!
//! An image is an item as it is stored: header, then body.

use bytes::{BufMut, Bytes};
use document::ItemNumber;

use crate::error::{Error, Result};
use crate::header::{Body, Record};

/// What a commit did to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ChangeKind {
    Create = 1,
    Replace = 2,
    Delete = 3,
    Update = 4,
}

/// Kind, item number and the two lengths' worth of bytes before the images.
const FIXED_LENGTH: usize = 1 + 8 + 4;

/// A recorded change.
#[derive(Debug, Clone)]
pub(super) struct RecordedChange<B> {
    pub(super) kind: ChangeKind,
    pub(super) number: ItemNumber,
    pub(super) current: Option<Record<B>>,
    pub(super) previous: Option<Record<B>>,
}

/// The value of a change.
pub(super) fn encode<B: Body>(
    kind: ChangeKind,
    number: ItemNumber,
    current: Option<&Record<B>>,
    previous: Option<&Record<B>>,
) -> Bytes {
    let current = current.map(Record::encode).unwrap_or_default();
    let previous = previous.map(Record::encode).unwrap_or_default();
    let mut out = Vec::with_capacity(FIXED_LENGTH + current.len() + previous.len());
    out.put_u8(kind as u8);
    out.put_u64(number.0);
    out.put_u32(u32::try_from(current.len()).expect("an item is far smaller than 4 GiB"));
    out.extend_from_slice(&current);
    out.extend_from_slice(&previous);
    out.into()
}

/// The value of a change read back; the images share its bytes.
pub(super) fn decode<B: Body>(value: &Bytes) -> Result<RecordedChange<B>> {
    let damaged = || Error::Corrupt("a recorded change".into());
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
    Ok(RecordedChange { kind, number, current, previous })
}

#[cfg(test)]
mod tests {
    use document::{Document, Sequence};

    use super::*;
    use crate::definition::OwnTtl;
    use crate::header::Header;

    #[test]
    fn t28_a_recorded_change_reads_back_and_a_cut_one_is_damage() {
        let record = |n: u64| {
            let header = Header::new(Sequence(n), n, OwnTtl::Seconds(5));
            let body = Document::from_json(format!(r#"{{"id":"{n}"}}"#).as_bytes()).expect("valid JSON");
            Record { number: ItemNumber(3), header, body }
        };
        let (old, new) = (record(3), record(4));
        let changes = [
            (ChangeKind::Create, Some(&new), None),
            (ChangeKind::Replace, Some(&new), Some(&old)),
            (ChangeKind::Delete, None, Some(&old)),
            (ChangeKind::Update, Some(&new), Some(&old)),
        ];
        for (kind, current, previous) in changes {
            let value = encode(kind, ItemNumber(3), current, previous);
            let back = decode::<Document>(&value).expect("reads");
            assert_eq!((back.kind, back.number), (kind, ItemNumber(3)));
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
