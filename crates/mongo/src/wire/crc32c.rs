//! CRC-32C (Castagnoli), the optional checksum of a message. Bit by bit would be fast enough, as few clients send it; the
//! table costs nothing and keeps a hostile 48 MB message from costing a second.

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Returns the checksum of some bytes.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value that catalogues of checksums give, and an example of RFC 3720.
    #[test]
    fn known_values() {
        assert_eq!(checksum(b"123456789"), 0xE306_9283);
        assert_eq!(checksum(&[0; 32]), 0x8A91_36AA);
        assert_eq!(checksum(b""), 0);
    }
}
