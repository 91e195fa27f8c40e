//! The sixteen bytes before every message.

use bytes::Bytes;

use super::WireError;
use crate::protocol::limits::MESSAGE_BYTES;

/// How long a header is.
pub(crate) const HEADER_BYTES: usize = 16;

/// A header of a known kind of message, of a size within the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The whole message, header included.
    pub(crate) length: usize,
    pub(crate) request_id: i32,
    pub(crate) opcode: OpCode,
}

/// What kind of message follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpCode {
    Reply = 1,
    Query = 2004,
    Compressed = 2012,
    Message = 2013,
}

impl OpCode {
    pub(super) fn parse(code: i32) -> Result<OpCode, WireError> {
        match code {
            1 => Ok(OpCode::Reply),
            2004 => Ok(OpCode::Query),
            2012 => Ok(OpCode::Compressed),
            2013 => Ok(OpCode::Message),
            other => Err(WireError::broken(format!("unknown opcode {other}"))),
        }
    }
}

impl Header {
    /// Reads the header at the beginning of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Header, WireError> {
        let words = (word(bytes, 0), word(bytes, 4), word(bytes, 12));
        let (Some(length), Some(request_id), Some(opcode)) = words else {
            return Err(WireError::broken("a header has 16 bytes"));
        };
        let length = usize::try_from(length).unwrap_or(0);
        if !(HEADER_BYTES..=MESSAGE_BYTES).contains(&length) {
            return Err(WireError::broken(format!("a message of {length} bytes")));
        }
        Ok(Header { length, request_id, opcode: OpCode::parse(opcode)? })
    }

    /// Returns the message with this header as it was before compression.
    pub(super) fn before(self, opcode: OpCode, body: &[u8]) -> Bytes {
        frame(self.request_id, 0, opcode, body).into()
    }
}

/// Returns a whole message.
pub(super) fn frame(id: i32, response_to: i32, opcode: OpCode, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    for word in [(HEADER_BYTES + body.len()) as i32, id, response_to, opcode as i32] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(body);
    bytes
}

/// Returns the little-endian number at a place, if it is there.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sensible_headers_are_read() {
        let header = |length: i32, opcode: i32| {
            let words = [length, 7, 0, opcode];
            Header::parse(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
        };
        let good = header(16, 2013).unwrap();
        assert_eq!((good.length, good.request_id, good.opcode), (16, 7, OpCode::Message));
        assert!(header(MESSAGE_BYTES as i32, 2012).is_ok());
        for (length, opcode) in [
            (15, 2013),
            (0, 2013),
            (-1, 2013),
            (i32::MIN, 2013),
            (MESSAGE_BYTES as i32 + 1, 2013),
            (16, 2002),
        ] {
            assert!(header(length, opcode).is_err(), "{length} {opcode}");
        }
        assert!(Header::parse(&[0; 15]).is_err());
    }
}
