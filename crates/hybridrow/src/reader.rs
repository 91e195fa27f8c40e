//! A cursor over bytes that never reads past their end.

use crate::Error;

/// The bytes that are left.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.offset == self.bytes.len()
    }

    /// How many bytes have been read.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Takes the next `length` bytes.
    pub(crate) fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], Error> {
        let left = &self.bytes[self.offset..];
        let taken = left.get(..length).ok_or(Error::Truncated { what, offset: self.bytes.len() })?;
        self.offset += length;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(crate) fn byte(&mut self, what: &'static str) -> Result<u8, Error> {
        self.array(what).map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, Error> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// Takes an integer of seven bits a byte, lowest first.
    pub(crate) fn varuint(&mut self, what: &'static str) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::Field { field: what, reason: "has a length above 64 bits" })
    }
}

/// Appends an integer of seven bits a byte, lowest first.
pub(crate) fn put_varuint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::{Reader, put_varuint};

    #[test]
    fn integers_of_seven_bits_a_byte_come_back_and_longer_ones_are_refused() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_varuint(&mut bytes, value);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.varuint("length"), Ok(value));
            assert!(reader.is_empty());
        }
        assert!(Reader::new(&[0xff; 11]).varuint("length").is_err());
        assert!(
            Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02])
                .varuint("length")
                .is_err()
        );
        assert!(Reader::new(&[0x80]).varuint("length").is_err());
    }
}
