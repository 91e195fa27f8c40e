//! Random bytes from the operating system, for everything that must not be guessed.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Random bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}

/// Returns a random number.
pub(crate) fn number() -> u64 {
    u64::from_le_bytes(bytes())
}

/// Returns a seed for what only looks random: `$rand` and `$sample`. The process asks the operating system once for all of
/// them.
pub(crate) fn seed() -> u64 {
    static FIRST: LazyLock<u64> = LazyLock::new(number);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    /// Multiples of it, an odd number near the golden section of 2^64, lie evenly.
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let place = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(STEP);
    let mixed = FIRST.wrapping_add(place);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Returns a random UUID (version 4).
pub(crate) fn uuid() -> [u8; 16] {
    let mut bytes: [u8; 16] = bytes();
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ() {
        let seeds: std::collections::HashSet<u64> = (0..10_000).map(|_| seed()).collect();
        assert_eq!(seeds.len(), 10_000);
        let bits: u32 = seeds.iter().map(|seed| seed.count_ones()).sum();
        assert!((310_000..330_000).contains(&bits), "about half of all bits are set, not {bits}");
    }
}
