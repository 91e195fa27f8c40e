//! `MurmurHash3`, seed 0, in the two shapes that partition keys are hashed with. Not for anything secret.

/// Returns the 32-bit shape for 32-bit machines (version 1 keys).
pub(crate) fn hash32(bytes: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let mix = |k: u32| k.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let mut h = 0_u32;
    let (blocks, tail) = bytes.as_chunks::<4>();
    for block in blocks {
        h ^= mix(u32::from_le_bytes(*block));
        h = h.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    h ^= mix(u32::from_le_bytes(last));
    h ^= bytes.len() as u32;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// Returns the 128-bit shape for 64-bit machines (version 2 keys): the two halves, low one first.
pub(crate) fn hash128(bytes: &[u8]) -> (u64, u64) {
    let (mut h1, mut h2) = (0_u64, 0_u64);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = halves(block);
        h1 ^= mix1(k1);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix2(k2);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // A missing tail mixes in as zero, which changes nothing.
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (k1, k2) = halves(&last);
    h1 ^= mix1(k1);
    h2 ^= mix2(k2);

    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2)
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

fn mix1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn halves(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    (both as u64, (both >> 64) as u64)
}

fn finish(mut k: u64) -> u64 {
    k = (k ^ (k >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ (k >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_inputs_have_their_recorded_hashes() {
        for line in include_str!("../tests/vectors/hashes.txt").lines().filter(|line| !line.starts_with('#'))
        {
            let [width, input, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let mut bytes = Vec::new();
            for piece in input.split(' ') {
                let (digits, times) = piece.split_once('*').unwrap_or((piece, "1"));
                for _ in 0..times.parse().unwrap() {
                    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
                    bytes.extend(pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()));
                }
            }
            let hash = match width {
                "32" => format!("{:08X}", hash32(&bytes)),
                _ => format!("{:016X}{:016X}", hash128(&bytes).1, hash128(&bytes).0),
            };
            assert_eq!(hash, expected, "{line}");
        }
    }
}
