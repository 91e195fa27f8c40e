//! Activity ids: a name for each request that client and log share.
//!
//! A client's own id is echoed if it is short printable text; otherwise one in GUID form is generated. Ids must be
//! unique within and across processes, but need not be secret, so no random source is used after the start.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::HeaderMap;

use crate::protocol::headers;
use crate::protocol::limits::ACTIVITY_BYTES;

/// Returns the id for a request with these headers.
pub(crate) fn of(request: &HeaderMap) -> String {
    let given = request.get(&headers::ACTIVITY_ID).and_then(|value| value.to_str().ok());
    match given {
        Some(id) if !id.is_empty() && id.len() <= ACTIVITY_BYTES => id.to_owned(),
        _ => fresh(),
    }
}

/// Returns numbers that differ from call to call and from process to process.
pub(crate) fn numbers() -> (u64, u64) {
    static START: OnceLock<[u64; 2]> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let start = START.get_or_init(|| [RandomState::new().hash_one(0_u8), RandomState::new().hash_one(1_u8)]);
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    (mix(start[0] ^ count), mix(start[1].wrapping_add(count)))
}

fn fresh() -> String {
    let (high, low) = numbers();
    guid(u128::from(high) << 64 | u128::from(low))
}

/// Formats a number as a GUID of version 4, whose bits of version and variant replace those of the number. By hand: most
/// requests need one, and the formatting machinery takes several times as long.
fn guid(number: u128) -> String {
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0b11 << 62;
    let number = number & !(VERSION | VARIANT) | 0x4 << 76 | 0b10 << 62;
    let mut text = String::with_capacity(36);
    for (at, byte) in number.to_be_bytes().into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text
}

/// Mixes the bits of a number, as splitmix64 does: neighbours give unlike results.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn fresh_ids_have_guid_form_and_differ() {
        let ids: HashSet<String> = (0..1000).map(|_| fresh()).collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            let lengths: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
        }
    }

    #[test]
    fn a_guid_has_version_and_variant_in_place_of_its_number_s_bits() {
        assert_eq!(guid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(guid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let number = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;
        assert_eq!(guid(number), "01234567-89ab-4def-bedc-ba9876543210");
    }

    #[test]
    fn the_clients_id_is_echoed_unless_it_is_unfit() {
        let mut map = HeaderMap::new();
        map.insert(&headers::ACTIVITY_ID, "abc".parse().unwrap());
        assert_eq!(of(&map), "abc");
        map.insert(&headers::ACTIVITY_ID, "x".repeat(65).parse().unwrap());
        assert_ne!(of(&map), "x".repeat(65));
    }
}
