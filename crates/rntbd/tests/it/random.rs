//! A million random token streams: each is read, refused or broken, and none makes the codec panic.
//!
//! The generator is a cheap one of our own, so that the number fits into every test run. The property tests shrink what they
//! find; here the seed and the number of a stream find it again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rntbd::{
    ActivityId, AnswerTokens, ContextAnswer, ContextRequest, Error, HEAD_BYTES, Kind, OperationType, Request,
    RequestHead, RequestTokens, ResourceType,
};

const STREAMS: u64 = 1_000_000;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Beyond the ids of all tokens that are known.
const IDS: u64 = 0xE0;

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn bytes(&mut self, count: usize, out: &mut Vec<u8>) {
        // Letters, for the most part: a text of any bytes is seldom UTF-8.
        let (keep, set) =
            if self.below(8) > 0 { (0x0f0f_0f0f_0f0f_0f0f, 0x6060_6060_6060_6060) } else { (u64::MAX, 0) };
        let end = out.len() + count;
        while out.len() < end {
            out.extend_from_slice(&(self.next() & keep | set).to_le_bytes());
        }
        out.truncate(end);
    }

    /// Appends a token, its id and its type mostly among those that there are.
    fn token(&mut self, out: &mut Vec<u8>) {
        let id = if self.below(8) > 0 { self.below(IDS) } else { self.next() } as u16;
        let kind = if self.below(2) > 0 {
            Kind::String
        } else {
            Kind::ALL[self.below(Kind::ALL.len() as u64) as usize]
        };
        out.extend_from_slice(&id.to_le_bytes());
        out.push(if self.below(64) > 0 { kind.number() } else { self.next() as u8 });
        let length = self.below(12) as usize;
        match kind {
            Kind::Byte => self.bytes(1, out),
            Kind::UShort => self.bytes(2, out),
            Kind::ULong | Kind::Long | Kind::Float => self.bytes(4, out),
            Kind::ULongLong | Kind::LongLong | Kind::Double => self.bytes(8, out),
            Kind::Guid => self.bytes(16, out),
            Kind::Invalid => {}
            Kind::SmallString | Kind::SmallBytes => {
                out.push(length as u8);
                self.bytes(length, out);
            }
            Kind::String | Kind::Bytes => {
                out.extend_from_slice(&(length as u16).to_le_bytes());
                self.bytes(length, out);
            }
            Kind::ULongString | Kind::ULongBytes => {
                out.extend_from_slice(&(length as u32).to_le_bytes());
                self.bytes(length, out);
            }
        }
    }

    /// Makes a stream: tokens behind the one that most requests begin with, some of them cut or changed.
    fn stream(&mut self, out: &mut Vec<u8>) {
        out.clear();
        if self.below(8) > 0 {
            out.extend_from_slice(&[2, 0, 0, self.below(2) as u8]);
        }
        for _ in 0..self.below(5) {
            self.token(out);
        }
        if !out.is_empty() && self.below(8) == 0 {
            out.truncate(self.below(out.len() as u64) as usize);
        }
        if !out.is_empty() && self.below(8) == 0 {
            let at = self.below(out.len() as u64) as usize;
            out[at] = self.next() as u8;
        }
    }
}

/// Reads a stream as the tokens of a request, which are written and read again in every fourth, and as those of something else.
fn read(stream: &[u8], number: u64, again: &mut Vec<u8>) -> Result<(), Error> {
    let _ = match number % 4 {
        0 => AnswerTokens::decode(stream).map(drop),
        1 => ContextRequest::decode(stream).map(drop),
        2 => ContextAnswer::decode(stream).map(drop),
        _ => Ok(()),
    };
    let tokens = RequestTokens::decode(stream)?;
    if number % 4 < 3 {
        return Ok(());
    }
    again.clear();
    let (resource_type, operation_type) = (ResourceType::Document, OperationType::Read);
    let request = Request { resource_type, operation_type, activity_id: ActivityId::default(), tokens };
    request.encode(tokens.has_payload().then_some(b"x"), again).expect("it fits, as it did");
    let head = RequestHead::parse(again, 1 << 16).expect("a head").expect("whole");
    assert_eq!(RequestTokens::decode(&again[HEAD_BYTES..head.frame_bytes]), Ok(tokens));
    Ok(())
}

#[test]
fn a_million_random_token_streams_are_read_refused_or_broken() {
    let mut random = Random(SEED);
    let (mut stream, mut again) = (Vec::new(), Vec::new());
    let (mut read_whole, mut refused, mut broken) = (0_u64, 0_u64, 0_u64);
    for number in 0..STREAMS {
        random.stream(&mut stream);
        let outcome = catch_unwind(AssertUnwindSafe(|| read(&stream, number, &mut again)));
        match outcome.unwrap_or_else(|_| panic!("stream {number} of the seed {SEED:x}: {stream:02x?}")) {
            Ok(()) => read_whole += 1,
            Err(Error::Refused(_)) => refused += 1,
            Err(Error::Broken(_)) => broken += 1,
        }
    }
    let least = [read_whole, refused, broken].into_iter().min();
    assert!(least > Some(STREAMS / 20), "{read_whole} are read, {refused} refused, {broken} broken");
}
