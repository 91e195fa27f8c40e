//! The header in front of every stored item: all that is needed to decide whether it has expired, without decoding
//! its body.
//!
//! ```text
//!  byte 0        flags: bits 0-1 own ttl (0 absent, 1 never, 2 seconds), bit 2 held, bit 3 rule bases follow,
//!                bit 4 the body is BSON, bit 5 the countdown does not start at _ts, bit 6 reads restart it,
//!                bit 7 the LSN differs from the number of the commit
//!  bytes 1..9    sequence of the last write, big-endian
//!  bytes 9..17   _ts, seconds since 1970, big-endian
//!  4 bytes       own ttl in seconds, big-endian, if bits 0-1 say so
//!  10 bytes      queue u16 and start of the countdown i64 milliseconds, big-endian, if bit 5; bit 6 only with it
//!  1 + n * 10    rule bases, if bit 3: their number, then (queue u16, base i64 milliseconds), big-endian
//!  1 to 10 bytes number of the commit less LSN, if bit 7: seven bits a byte, the lowest first, bit 7 where more follow
//! ```
//!
//! A rule base is the item's position in a date queue (T27, T33). Where reads restart the countdown, a sliding
//! renewal record beside the item may tell when a read did ([`renewal`](crate::access::renewal)). A held item (T31) has
//! no position in any queue by which it could expire. The item's size is not in the header: it is the length of the
//! bytes after it.

use bson::RawDocument;
use bytes::{BufMut, Bytes};
use document::{Document, ItemNumber, Path, Sequence};

use crate::expiry::ttl::OwnTtl;
use crate::expiry::{self, CountdownBase, Millis, Queue, QueuePosition};
use crate::types::error::{Error, Result};
use crate::types::events;
use crate::types::lsn::WriteNumber;

const TTL_MASK: u8 = 0b0000_0011;
const TTL_ABSENT: u8 = 0;
const TTL_NEVER: u8 = 1;
const TTL_SECONDS: u8 = 2;
const HELD: u8 = 0b0000_0100;
const BASES: u8 = 0b0000_1000;
const BSON: u8 = 0b0001_0000;
const COUNTED: u8 = 0b0010_0000;
const SLIDES: u8 = 0b0100_0000;
const LSN: u8 = 0b1000_0000;
const FIXED_LENGTH: usize = 17;
const BASE_LENGTH: usize = 10;

/// The header of an item: the gate needs nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The sequence of the item's last write.
    pub(crate) sequence: Sequence,
    /// The time of the item's last write, whole seconds since 1970.
    pub(crate) ts: u64,
    /// The item's own `ttl`.
    pub(crate) ttl: OwnTtl,
    /// The item's positions in date queues, one for each date rule that it has a date for.
    pub(crate) bases: Vec<QueuePosition>,
    /// Whether the item is held: it may not expire, and may not be changed or deleted.
    pub(crate) held: bool,
    /// Where the countdown of ttl starts, if not at `ts` (T33).
    pub(crate) counted: Option<CountdownBase>,
    /// The LSN of the commit that wrote the item; where no LSNs are counted, the number of the commit.
    pub(crate) lsn: u64,
    /// When a read last restarted the countdown. Not part of the header's bytes: it is set once the renewal record
    /// was read.
    pub(crate) renewed_at: Option<Millis>,
}

impl Header {
    /// Returns the header of a version whose countdown starts at its own time and that has no dates.
    #[cfg(test)]
    pub(crate) fn new(sequence: Sequence, ts: u64, ttl: OwnTtl) -> Header {
        Header::numbered(WriteNumber::uncounted(sequence), ts, ttl)
    }

    /// Creates the same header where LSNs are counted.
    pub(crate) fn numbered(number: WriteNumber, ts: u64, ttl: OwnTtl) -> Header {
        let WriteNumber { sequence, lsn } = number;
        Header { sequence, ts, ttl, bases: Vec::new(), held: false, counted: None, lsn, renewed_at: None }
    }

    /// Returns the sequence and LSN of its write.
    pub(crate) fn number(&self) -> WriteNumber {
        WriteNumber { sequence: self.sequence, lsn: self.lsn }
    }

    /// Returns whether reads may have restarted the countdown.
    pub(crate) fn slides(&self) -> bool {
        self.counted.is_some_and(|counted| counted.slides)
    }

    /// Writes the header of an item; `form` is the flag of its body's form.
    fn encode(&self, form: u8, out: &mut Vec<u8>) {
        let (flags, seconds) = match self.ttl {
            OwnTtl::Absent => (TTL_ABSENT, None),
            OwnTtl::Never => (TTL_NEVER, None),
            OwnTtl::Seconds(seconds) => (TTL_SECONDS, Some(seconds)),
        };
        let bases = if self.bases.is_empty() { 0 } else { BASES };
        let held = if self.held { HELD } else { 0 };
        let counted = match self.counted {
            None => 0,
            Some(CountdownBase { slides: false, .. }) => COUNTED,
            Some(CountdownBase { slides: true, .. }) => COUNTED | SLIDES,
        };
        let behind = self.number().behind();
        let lsn = if behind == 0 { 0 } else { LSN };
        out.put_u8(flags | held | bases | form | counted | lsn);
        out.put_u64(self.sequence.0);
        out.put_u64(self.ts);
        if let Some(seconds) = seconds {
            out.put_u32(seconds);
        }
        if let Some(counted) = self.counted {
            out.put_u16(counted.queue.number());
            out.put_i64(counted.from);
        }
        if !self.bases.is_empty() {
            out.put_u8(u8::try_from(self.bases.len()).expect("the number of date rules is bounded"));
            for QueuePosition { queue, base } in &self.bases {
                out.put_u16(queue.number());
                out.put_i64(*base);
            }
        }
        if behind > 0 {
            write_varint(behind, out);
        }
    }

    /// Reads a header. Returns it with the offset at which the body begins.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Header, usize)> {
        let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_LENGTH>() else {
            return Err(Error::Corrupt(format!("an item header of {} bytes", bytes.len())));
        };
        let [flags, s0, s1, s2, s3, s4, s5, s6, s7, t0, t1, t2, t3, t4, t5, t6, t7] = *fixed;
        let (ttl, rest) = match flags & TTL_MASK {
            TTL_ABSENT => (OwnTtl::Absent, rest),
            TTL_NEVER => (OwnTtl::Never, rest),
            TTL_SECONDS => {
                let Some((seconds, rest)) = rest.split_first_chunk::<4>() else {
                    return Err(Error::Corrupt("an item header without its ttl".into()));
                };
                (OwnTtl::Seconds(u32::from_be_bytes(*seconds)), rest)
            }
            _ => return Err(Error::Corrupt(format!("unknown item header flags {flags:#04x}"))),
        };
        let (counted, rest) = match (flags & COUNTED != 0, flags & SLIDES != 0) {
            (false, false) => (None, rest),
            (true, slides) => decode_counted(rest, slides)
                .ok_or_else(|| Error::Corrupt("an item header without its countdown".into()))?,
            (false, true) => return Err(Error::Corrupt(format!("unknown item header flags {flags:#04x}"))),
        };
        let (bases, rest) = match flags & BASES {
            0 => (Vec::new(), rest),
            _ => decode_bases(rest)
                .ok_or_else(|| Error::Corrupt("an item header without its rule bases".into()))?,
        };
        let sequence = Sequence(u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]));
        let commit = events::commit_of(sequence);
        let (lsn, rest) = match flags & LSN {
            0 => (commit, rest),
            _ => read_varint(rest)
                .and_then(|(behind, rest)| Some((commit.checked_sub(behind)?, rest)))
                .ok_or_else(|| Error::Corrupt("an item header without its LSN".into()))?,
        };
        let header = Header {
            sequence,
            ts: u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            ttl,
            bases,
            held: flags & HELD != 0,
            counted,
            lsn,
            renewed_at: None,
        };
        Ok((header, bytes.len() - rest.len()))
    }
}

/// Writes a number, seven bits a byte, the lowest first; bit 7 says that more bytes follow.
pub(crate) fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.put_u8(number as u8 | 0x80);
        number >>= 7;
    }
    out.put_u8(number as u8);
}

/// Reads a number that [`write_varint`] wrote and that is not 0, and returns it with the bytes behind it. Returns
/// `None` if the bytes are not in that form.
pub(crate) fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7F);
        number |= part.checked_shl(7 * at as u32).filter(|shifted| shifted >> (7 * at) == part)?;
        if byte & 0x80 == 0 {
            return (part != 0).then_some((number, &bytes[at + 1..]));
        }
    }
    None
}

/// Reads the start of the countdown, and returns it with the bytes behind it.
fn decode_counted(bytes: &[u8], slides: bool) -> Option<(Option<CountdownBase>, &[u8])> {
    let (counted, rest) = bytes.split_at_checked(BASE_LENGTH)?;
    let QueuePosition { queue, base: from } = decode_base(counted)?;
    Some((Some(CountdownBase { queue, from, slides }), rest))
}

/// Reads the rule bases, and returns them with the bytes behind them.
fn decode_bases(bytes: &[u8]) -> Option<(Vec<QueuePosition>, &[u8])> {
    let (count, bytes) = bytes.split_first()?;
    let (bases, rest) = bytes.split_at_checked(usize::from(*count) * BASE_LENGTH)?;
    let bases = bases.chunks_exact(BASE_LENGTH).map(decode_base).collect::<Option<Vec<_>>>()?;
    (!bases.is_empty()).then_some((bases, rest))
}

fn decode_base(bytes: &[u8]) -> Option<QueuePosition> {
    let (queue, base) = bytes.split_first_chunk()?;
    let queue = Queue::date(u16::from_be_bytes(*queue))?;
    Some(QueuePosition { queue, base: Millis::from_be_bytes(base.try_into().ok()?) })
}

/// A body in the form of the API that its container belongs to (decision 0008).
pub(crate) trait Body: Sized {
    /// The header flag of this form.
    const FORM: u8;

    /// Returns the stored bytes.
    fn as_bytes(&self) -> &[u8];

    /// Reads the stored bytes back. The error text says what is wrong with them.
    fn from_stored(bytes: Bytes) -> std::result::Result<Self, String>;

    /// Returns the number of seconds since 1970 at a path, or `None` if there is no number (T33).
    fn seconds_at(&self, path: &Path) -> Option<Millis>;

    /// Returns the instant at a path, which may be a number of seconds since 1970 or a date (T33).
    fn instant_at(&self, path: &Path) -> Option<Millis>;
}

/// A body of the NoSQL API.
impl Body for Document {
    const FORM: u8 = 0;

    fn as_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn from_stored(bytes: Bytes) -> std::result::Result<Document, String> {
        let body = Document::from_stored(bytes).map_err(|error| error.to_string())?;
        if body.root().as_object().is_none() {
            return Err("a body that is no object".to_owned());
        }
        Ok(body)
    }

    fn seconds_at(&self, path: &Path) -> Option<Millis> {
        path.read(self.root()).and_then(expiry::seconds_of)
    }

    fn instant_at(&self, path: &Path) -> Option<Millis> {
        path.read(self.root()).and_then(expiry::instant_of)
    }
}

/// A body of the MongoDB API.
impl Body for RawDocument {
    const FORM: u8 = BSON;

    fn as_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn from_stored(bytes: Bytes) -> std::result::Result<RawDocument, String> {
        RawDocument::from_stored(bytes).map_err(|error| error.to_string())
    }

    fn seconds_at(&self, path: &Path) -> Option<Millis> {
        expiry::bson_at(self, path).and_then(expiry::seconds_of_bson)
    }

    fn instant_at(&self, path: &Path) -> Option<Millis> {
        expiry::bson_at(self, path).and_then(expiry::instant_of_bson)
    }
}

/// An item as it is stored. Only the gate turns one into an [`Item`](crate::Item).
#[derive(Debug, Clone)]
pub(crate) struct Record<B = Document> {
    /// The item's number: the sequence of the write that created it.
    pub(crate) number: ItemNumber,
    /// What the gate needs to judge it.
    pub(crate) header: Header,
    /// The body without system properties.
    pub(crate) body: B,
}

impl<B: Body> Record<B> {
    /// Returns the stored form: header, then the body's bytes.
    pub(crate) fn encode(&self) -> Bytes {
        let body = self.body.as_bytes();
        let bases = 1 + self.header.bases.len() * BASE_LENGTH;
        let mut out = Vec::with_capacity(FIXED_LENGTH + 4 + BASE_LENGTH + bases + body.len());
        self.header.encode(B::FORM, &mut out);
        out.extend_from_slice(body);
        out.into()
    }

    /// Reads the stored form back; the body shares the bytes.
    pub(crate) fn decode(number: ItemNumber, bytes: &Bytes) -> Result<Record<B>> {
        let (header, length) = decode_header(number, bytes)?;
        let body = Record::decode_body(number, bytes, length)?;
        Ok(Record { number, header, body })
    }

    /// Reads the body behind a header of that length. The caller has decided from the header whether the item has
    /// expired.
    pub(crate) fn decode_body(number: ItemNumber, bytes: &Bytes, header_length: usize) -> Result<B> {
        if bytes.first().is_some_and(|flags| flags & BSON != B::FORM) {
            return Err(Error::Corrupt(format!("item {} belongs to the other API", number.0)));
        }
        B::from_stored(bytes.slice(header_length..))
            .map_err(|error| Error::Corrupt(format!("item {}: {error}", number.0)))
    }

    /// Returns the size that quotas and charges count: the length of the body's stored bytes.
    pub(crate) fn size(&self) -> u64 {
        self.body.as_bytes().len() as u64
    }
}

/// Reads the header of an item, and returns it with its length. An error names the damaged item.
pub(crate) fn decode_header(number: ItemNumber, bytes: &Bytes) -> Result<(Header, usize)> {
    if number > ItemNumber::LAST {
        return Err(Error::Corrupt(format!("item {}: the number is out of range", number.0)));
    }
    Header::decode(bytes).map_err(|error| match error {
        Error::Corrupt(why) => Error::Corrupt(format!("item {}: {why}", number.0)),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_as_written() {
        for ttl in [OwnTtl::Absent, OwnTtl::Never, OwnTtl::Seconds(1), OwnTtl::Seconds(2_147_483_647)] {
            for dates in [&[][..], &[(16, -1)], &[(u16::MAX, Millis::MAX), (17, Millis::MIN)]] {
                let place =
                    |(queue, base): &(u16, Millis)| QueuePosition { queue: Queue::Date(*queue), base: *base };
                let bases = dates.iter().map(place).collect();
                let held = dates.len() == 1;
                let counted = [
                    None,
                    Some(CountdownBase { queue: Queue::Date(16), from: -5, slides: false }),
                    Some(CountdownBase { queue: Queue::Date(u16::MAX), from: Millis::MAX, slides: true }),
                ][dates.len()];
                let plain = Header::new(Sequence(u64::MAX), 1_700_000_000, ttl);
                let lsn = plain.lsn - [0, 1, 300][dates.len()];
                let header = Header { bases, held, counted, lsn, ..plain };
                let mut bytes = Vec::new();
                header.encode(0, &mut bytes);
                let length = bytes.len();
                for cut in 0..length {
                    assert!(Header::decode(&bytes[..cut]).is_err());
                }
                bytes.push(7);
                assert_eq!(Header::decode(&bytes).expect("decodes"), (header, length));
            }
        }
    }

    /// Items without dates are stored as they were before there were date rules.
    #[test]
    fn a_header_without_dates_has_no_byte_for_them() {
        let header = Header::new(Sequence(1), 2, OwnTtl::Seconds(3));
        let mut bytes = Vec::new();
        header.encode(0, &mut bytes);
        assert_eq!(bytes, [2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3]);
    }

    #[test]
    fn an_lsn_takes_a_byte_for_each_seven_bits_of_its_distance() {
        for (behind, length) in [(0, 0), (1, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (1 << 21, 4)] {
            let sequence = Sequence((1 << 30) << 7 | 5);
            let number = WriteNumber { sequence, lsn: (1 << 30) - behind };
            let (mut bytes, mut plain) = (Vec::new(), Vec::new());
            Header::numbered(number, 2, OwnTtl::Absent).encode(0, &mut bytes);
            Header::new(sequence, 2, OwnTtl::Absent).encode(0, &mut plain);
            assert_eq!(bytes.len() - plain.len(), length, "{behind}");
            assert_eq!(Header::decode(&bytes).expect("decodes").0.lsn, (1 << 30) - behind);
        }
    }

    #[test]
    fn a_body_is_read_in_its_own_form_only() {
        let header = Header::new(Sequence(1), 2, OwnTtl::Never);
        let body = RawDocument::from_document(&bson::Document::new().with("_id", 1));
        let stored = Record { number: ItemNumber(1), header: header.clone(), body: body.clone() }.encode();
        let back = Record::<RawDocument>::decode(ItemNumber(1), &stored).expect("decodes");
        assert_eq!((back.header, back.body), (header, body));
        assert!(matches!(Record::<Document>::decode(ItemNumber(1), &stored), Err(Error::Corrupt(_))));
    }

    #[test]
    fn a_damaged_header_is_an_error() {
        let no_bases = [&[BASES][..], &[0; 17]].concat();
        let no_date_queue = [&[BASES][..], &[0; 16], &[1, 0, 15], &[0; 8]].concat();
        let no_countdown = [&[COUNTED][..], &[0; 16], &[0, 16], &[0; 7]].concat();
        let slides_from_nowhere = [&[SLIDES][..], &[0; 40]].concat();
        let no_lsn = [&[LSN][..], &[0; 16]].concat();
        let lsn_of_no_gap = [&[LSN][..], &[1; 16], &[0x80, 0]].concat();
        let lsn_before_all = [&[LSN][..], &[0; 7], &[0x80], &[0; 8], &[2]].concat();
        let endless_lsn = [&[LSN][..], &[0xFF; 30]].concat();
        let damaged = [
            &no_bases,
            &no_date_queue,
            &no_countdown,
            &slides_from_nowhere,
            &no_lsn,
            &lsn_of_no_gap,
            &lsn_before_all,
            &endless_lsn,
        ];
        let damaged = damaged.map(Vec::as_slice);
        for bytes in damaged.into_iter().chain([&[][..], &[0; 16], &[TTL_SECONDS; 18], &[3; 30], &[0x84; 30]])
        {
            assert!(matches!(Header::decode(bytes), Err(Error::Corrupt(_))), "{bytes:?}");
        }
    }
}
