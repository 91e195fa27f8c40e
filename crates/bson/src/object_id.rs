//! The twelve bytes that most documents have as `_id`.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Seconds since 1970, a random part, and a counter, all big-endian: ids made by one process sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 12]);

impl ObjectId {
    /// Puts an id together. Only the low 24 bits of `counter` count.
    pub fn from_parts(seconds: u32, random: [u8; 5], counter: u32) -> ObjectId {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..9].copy_from_slice(&random);
        bytes[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
        ObjectId(bytes)
    }

    /// When it was made, seconds since 1970.
    pub fn seconds(self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl FromStr for ObjectId {
    type Err = Error;

    fn from_str(text: &str) -> Result<ObjectId, Error> {
        let wrong = || Error::Text(format!("'{text}' is not an ObjectId: 24 hexadecimal digits are needed"));
        let digits: Vec<u8> = text
            .chars()
            .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
        if digits.len() != 24 {
            return Err(wrong());
        }
        Ok(ObjectId(bytes.try_into().map_err(|_| wrong())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let id = ObjectId::from_parts(0x6654_3210, [1, 2, 3, 4, 5], 0xFF_00_00_07);
        assert_eq!(id.to_string(), "665432100102030405000007");
        assert_eq!("665432100102030405000007".parse(), Ok(id));
        assert_eq!(id.seconds(), 0x6654_3210);
        for wrong in [
            "",
            "66543210010203040500000",
            "6654321001020304050000070",
            "66543210010203040500000g",
            "é65432100102030405000007",
        ] {
            assert!(wrong.parse::<ObjectId>().is_err(), "{wrong}");
        }
    }
}
