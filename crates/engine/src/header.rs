//! The header in front of every stored item: all that is needed to decide its death without decoding its body.
//!
//! ```text
//!  byte 0        flags: bits 0-1 own ttl (0 absent, 1 never, 2 seconds), bit 2 held, bit 3 rule bases follow
//!  bytes 1..9    sequence of the last write, big-endian
//!  bytes 9..17   _ts, seconds since 1970, big-endian
//!  4 bytes       own ttl in seconds, big-endian, if bits 0-1 say so
//!  1 + n * 10    rule bases, if bit 3: their number, then (rule u16, base i64 milliseconds), big-endian
//! ```
//!
//! Flags that this version does not write (held, rule bases) have their place already, so that holds (T31), date rules
//! (T27) and other countings (T33) need no new format: see `docs/decisions/0001`.
//! The item's size is not in the header: it is the length of the bytes after it.

use bytes::{BufMut, Bytes};
use document::{Document, ItemNumber, Sequence};

use crate::definition::OwnTtl;
use crate::error::{Error, Result};

const TTL_MASK: u8 = 0b0000_0011;
const TTL_ABSENT: u8 = 0;
const TTL_NEVER: u8 = 1;
const TTL_SECONDS: u8 = 2;
const FIXED_LENGTH: usize = 17;

/// What the gate knows of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The sequence of the item's last write.
    pub(crate) sequence: Sequence,
    /// The time of the item's last write, whole seconds since 1970.
    pub(crate) ts: u64,
    /// The item's own `ttl`.
    pub(crate) ttl: OwnTtl,
}

impl Header {
    fn encode(&self, out: &mut Vec<u8>) {
        let (flags, seconds) = match self.ttl {
            OwnTtl::Absent => (TTL_ABSENT, None),
            OwnTtl::Never => (TTL_NEVER, None),
            OwnTtl::Seconds(seconds) => (TTL_SECONDS, Some(seconds)),
        };
        out.put_u8(flags);
        out.put_u64(self.sequence.0);
        out.put_u64(self.ts);
        if let Some(seconds) = seconds {
            out.put_u32(seconds);
        }
    }

    /// Reads a header and says where the body begins.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Header, usize)> {
        let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_LENGTH>() else {
            return Err(Error::Corrupt(format!("an item header of {} bytes", bytes.len())));
        };
        let [flags, s0, s1, s2, s3, s4, s5, s6, s7, t0, t1, t2, t3, t4, t5, t6, t7] = *fixed;
        let (ttl, length) = match (flags & !TTL_MASK, flags & TTL_MASK) {
            (0, TTL_ABSENT) => (OwnTtl::Absent, FIXED_LENGTH),
            (0, TTL_NEVER) => (OwnTtl::Never, FIXED_LENGTH),
            (0, TTL_SECONDS) => {
                let Some((seconds, _)) = rest.split_first_chunk::<4>() else {
                    return Err(Error::Corrupt("an item header without its ttl".into()));
                };
                (OwnTtl::Seconds(u32::from_be_bytes(*seconds)), FIXED_LENGTH + 4)
            }
            _ => return Err(Error::Corrupt(format!("unknown item header flags {flags:#04x}"))),
        };
        let header = Header {
            sequence: Sequence(u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7])),
            ts: u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            ttl,
        };
        Ok((header, length))
    }
}

/// An item as it lies in the store. Only the gate turns one into an [`Item`](crate::Item).
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// The item's number: the sequence of the write that created it.
    pub(crate) number: ItemNumber,
    /// What the gate needs.
    pub(crate) header: Header,
    /// The body without system properties.
    pub(crate) body: Document,
}

impl Record {
    /// The stored form: header, then the body's bytes.
    pub(crate) fn encode(&self) -> Bytes {
        let body = self.body.as_bytes();
        let mut out = Vec::with_capacity(FIXED_LENGTH + 4 + body.len());
        self.header.encode(&mut out);
        out.extend_from_slice(body);
        out.into()
    }

    /// The stored form read back; the body shares the bytes.
    pub(crate) fn decode(number: ItemNumber, bytes: &Bytes) -> Result<Record> {
        let (header, length) = Header::decode(bytes)?;
        let body = Document::from_stored(bytes.slice(length..))
            .map_err(|error| Error::Corrupt(format!("item {}: {error}", number.0)))?;
        Ok(Record { number, header, body })
    }

    /// The size that quotas and charges count: the body's stored bytes.
    pub(crate) fn size(&self) -> u64 {
        self.body.as_bytes().len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_as_written() {
        for ttl in [OwnTtl::Absent, OwnTtl::Never, OwnTtl::Seconds(1), OwnTtl::Seconds(2_147_483_647)] {
            let header = Header { sequence: Sequence(u64::MAX), ts: 1_700_000_000, ttl };
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            let length = bytes.len();
            bytes.push(7);
            assert_eq!(Header::decode(&bytes).expect("decodes"), (header, length));
        }
    }

    #[test]
    fn a_damaged_header_is_an_error() {
        for bytes in [&[][..], &[0; 16], &[TTL_SECONDS; 18], &[3; 30], &[0x84; 30]] {
            assert!(matches!(Header::decode(bytes), Err(Error::Corrupt(_))), "{bytes:?}");
        }
    }
}
