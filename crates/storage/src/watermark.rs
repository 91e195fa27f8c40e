//! Watermarks: one number that stands for many removals.
//!
//! Entries of some keyspaces end with a number, those of [`covers`]. When a job has removed all of them below a number under a
//! prefix, it [sets a watermark](crate::Transaction::set_watermark) there. A store may then leave out the single removals: an entry
//! below the watermark of its prefix does not exist, even if its bytes are still stored. A watermark never falls.
//!
//! ```text
//!   prefix  ...  number          watermark of the prefix: 9
//!   ------------------------
//!   P       /a   3               removed; a merge of tables drops its bytes
//!   P       /a   12              exists
//!   P       /b   8               removed
//!   Q       /a   3               exists: another prefix
//! ```
//!
//! A store relies on two properties:
//!
//! - Every key under a prefix with a watermark has a number, in all keyspaces of [`covers`].
//! - A number is made of a sequence, which its transaction or an earlier one has taken, and of [`SLOT_BITS`] more bits. So the entries
//!   of a commit have no number above [`last_number`] of the last sequence taken until then.
//!
//! Watermarks are ordinary entries of the catalog, so a snapshot has those of its commit.

use crate::{Error, Keyspace, Read, Result};

/// The bytes at the beginning of a key that a watermark applies to.
pub(crate) type Prefix = [u8; 4];

/// The first byte of a watermark's key in the catalog; its prefix follows.
pub const WATERMARK: u8 = 0xC0;

const NUMBER_BYTES: usize = 8;

/// The number of low bits by which the numbers of one transaction differ. The other bits are a sequence.
pub const SLOT_BITS: u32 = 7;

/// The keyspaces to which watermarks apply.
pub(crate) const COVERED: [Keyspace; 4] = [Keyspace::Item, Keyspace::Index, Keyspace::Queue, Keyspace::Feed];

/// The covered keyspaces whose keys are a prefix and a number and nothing else, so that entries below a watermark are a range.
pub(crate) const RANGES: [Keyspace; 2] = [Keyspace::Item, Keyspace::Feed];

/// Returns whether watermarks apply to a keyspace.
pub(crate) fn covers(keyspace: Keyspace) -> bool {
    COVERED.contains(&keyspace)
}

/// Returns prefix and number of a key in a covered keyspace; `None` for a key that is too short to have both.
pub(crate) fn place(key: &[u8]) -> Option<(Prefix, u64)> {
    let (prefix, rest) = key.split_first_chunk()?;
    Some((*prefix, u64::from_be_bytes(*rest.last_chunk::<NUMBER_BYTES>()?)))
}

/// Returns the highest number that can be made of a sequence, or of an earlier one.
pub(crate) fn last_number(sequence: u64) -> u64 {
    sequence
        .checked_add(1)
        .and_then(|next| next.checked_mul(1 << SLOT_BITS))
        .map_or(u64::MAX, |next| next - 1)
}

/// Returns the sequence that a number is made of.
pub(crate) fn sequence_of(number: u64) -> u64 {
    number >> SLOT_BITS
}

/// Returns the key of a prefix's watermark in the catalog.
pub(crate) fn key(prefix: Prefix) -> Vec<u8> {
    [&[WATERMARK][..], &prefix].concat()
}

/// Returns the prefix that a key in the catalog has the watermark of.
pub(crate) fn prefix_of(key: &[u8]) -> Option<Prefix> {
    let (tag, prefix) = key.split_first()?;
    if *tag == WATERMARK { prefix.try_into().ok() } else { None }
}

/// Returns the range of keys below a watermark in the keyspaces of [`RANGES`].
pub(crate) fn range(prefix: Prefix, below: u64) -> std::ops::Range<Vec<u8>> {
    prefix.to_vec()..[&prefix[..], &below.to_be_bytes()].concat()
}

/// Reads a watermark from its value.
pub(crate) fn decode(value: &[u8]) -> Result<u64> {
    let bytes =
        value.try_into().map_err(|_| Error::Corrupt { what: "a watermark of wrong length".to_owned() })?;
    Ok(u64::from_be_bytes(bytes))
}

/// Returns the watermark of a prefix; 0 if there is none.
pub fn watermark(reader: &(impl Read + ?Sized), prefix: Prefix) -> Result<u64> {
    reader.get(Keyspace::Catalog, &key(prefix))?.map_or(Ok(0), |value| decode(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_place_if_it_is_long_enough_for_prefix_and_number() {
        assert_eq!(place(&[1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5]), Some(([1, 2, 3, 4], 5)));
        assert_eq!(place(&[1, 2, 3, 4, 9, 0, 0, 0, 0, 0, 0, 1, 5]), Some(([1, 2, 3, 4], 0x105)));
        assert_eq!(place(&[1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 5]), None);
        assert_eq!(prefix_of(&key([1, 2, 3, 4])), Some([1, 2, 3, 4]));
        assert_eq!(prefix_of(&[0x40, 1, 2, 3, 4]), None);
    }

    #[test]
    fn the_last_number_of_a_sequence_comes_before_the_first_of_the_next() {
        for sequence in [0, 1, 4711, u64::MAX >> SLOT_BITS] {
            assert_eq!(sequence_of(last_number(sequence)), sequence);
        }
        assert_eq!(sequence_of(last_number(7) + 1), 8);
        assert_eq!(last_number((u64::MAX >> SLOT_BITS) + 1), u64::MAX);
    }
}
