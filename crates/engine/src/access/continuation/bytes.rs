//! Writes and reads the parts of a token.

/// The length field is large enough: only keys of a store are written this way, and those are bounded far below it.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(bytes.len()).expect("a key of the store is at most 64 KiB long");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

pub(super) fn take_bytes(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::from(u16::from_be_bytes(*take(bytes)?));
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken.to_vec())
}

pub(super) fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*take(bytes)?))
}

pub(super) fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(head)
}
