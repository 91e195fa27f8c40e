//! The activity id: 16 bytes that an answer returns as its request had them.

use std::fmt;

/// The id of a request, by which clients and logs find it.
///
/// .NET writes its GUID in Microsoft's order of bytes, Java nearly so; both read back what they wrote. So the bytes are echoed
/// as they are, and the text, in Microsoft's order, is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ActivityId(pub [u8; 16]);

impl fmt::Display for ActivityId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Where the bytes of the text stand: the first three groups are little-endian integers.
        const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // Every answer has this text, so it is written as one piece.
        let mut text = [b'-'; 36];
        let mut at = 0;
        for (position, byte) in ORDER.into_iter().enumerate() {
            if matches!(position, 4 | 6 | 8 | 10) {
                at += 1;
            }
            let byte = self.0[byte];
            text[at] = DIGITS[usize::from(byte >> 4)];
            text[at + 1] = DIGITS[usize::from(byte & 0xF)];
            at += 2;
        }
        out.write_str(std::str::from_utf8(&text).expect("digits and hyphens"))
    }
}

#[cfg(test)]
mod tests {
    use super::ActivityId;

    #[test]
    fn the_text_has_the_first_three_groups_turned_round() {
        let id = ActivityId(std::array::from_fn(|number| number as u8));
        assert_eq!(id.to_string(), "03020100-0504-0706-0809-0a0b0c0d0e0f");
    }
}
