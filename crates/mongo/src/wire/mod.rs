//! Messages on the wire: bytes to a [`Request`] and a reply back to bytes. No sockets and no commands here.
//!
//! ```text
//! header      i32 length (all of it), i32 request id, i32 response to, i32 opcode
//! OP_MSG      u32 flags, sections, [u32 CRC-32C]     kind 0: one document; kind 1: i32 size, name, documents
//! OP_QUERY    the first hello of some drivers; answered by OP_REPLY
//! OP_COMPRESSED   i32 opcode, i32 size, u8 compressor, one of the above without its header
//! ```
//!
//! Every length is compared with the bytes that are there, and with the limit, before memory is allocated for it. A message
//! that breaks these rules ends the connection, because it is unknown where the next message begins; the exception is a
//! message whose frame is sound and whose content is not: the server answers it with an error.

mod compress;
mod crc32c;
mod header;
mod op_msg;
mod op_query;

use bson::RawDocument;
use bytes::Bytes;

pub(crate) use compress::Compressor;
use header::{HEADER_BYTES, Header, OpCode};

/// A command as it came in.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: i32,
    /// The command document, whose first field names the command.
    pub(crate) body: RawDocument,
    pub(crate) sequences: Vec<Sequence>,
    pub(crate) style: Style,
}

/// The form of a request, which its answer has too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) form: Form,
    pub(crate) compressor: Option<Compressor>,
}

/// The kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `OP_MSG`.
    Message,
    /// `OP_MSG` whose sender wants no answer, not even an error.
    OneWay,
    /// `OP_QUERY`.
    Query,
}

/// A kind 1 section: an array of the command that travels beside it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sequence {
    pub(crate) name: String,
    pub(crate) documents: Vec<RawDocument>,
}

/// Why a message is not a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The connection cannot go on.
    #[error("{0}")]
    Broken(String),
    /// The message is answered with this error and, if it must be, is the last one.
    #[error("{}", error.message)]
    Refused {
        /// The request to answer.
        id: i32,
        /// How it was sent.
        style: Style,
        /// What is wrong.
        error: mql::Error,
        /// Whether the connection ends after the answer.
        close: bool,
    },
}

impl WireError {
    pub(crate) fn broken(what: impl Into<String>) -> WireError {
        WireError::Broken(what.into())
    }
}

/// The size of a message, as its first bytes announce it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageSize {
    /// On the wire, header included.
    pub(crate) length: usize,
    /// Unpacked; zero if it is not compressed.
    pub(crate) unpacked: usize,
}

impl MessageSize {
    /// Returns the size of the message that begins with these bytes; none while they are too few.
    pub(crate) fn announced(bytes: &[u8]) -> Result<Option<MessageSize>, WireError> {
        if bytes.len() < HEADER_BYTES {
            return Ok(None);
        }
        let Header { length, opcode, .. } = Header::parse(bytes)?;
        if opcode != OpCode::Compressed {
            return Ok(Some(MessageSize { length, unpacked: 0 }));
        }
        if length < HEADER_BYTES + compress::HEAD_BYTES {
            return Err(WireError::broken("a compressed message that is too short"));
        }
        match bytes.get(HEADER_BYTES..HEADER_BYTES + compress::HEAD_BYTES) {
            Some(head) => Ok(Some(MessageSize { length, unpacked: compress::unpacked_bytes(head)? })),
            None => Ok(None),
        }
    }

    /// Packed and unpacked together.
    pub(crate) fn whole(self) -> usize {
        self.length + self.unpacked
    }

    /// Returns the larger of both.
    pub(crate) fn largest(self) -> usize {
        self.length.max(self.unpacked)
    }
}

/// Reads one whole message; `message` is exactly its bytes.
pub(crate) fn read(message: Bytes) -> Result<Request, WireError> {
    let header = Header::parse(&message)?;
    let (opcode, body, compressor) = match header.opcode {
        OpCode::Compressed => {
            let (opcode, body, compressor) = compress::unpack(&message[HEADER_BYTES..])?;
            (opcode, body, Some(compressor))
        }
        opcode => (opcode, message.slice(HEADER_BYTES..), None),
    };
    match opcode {
        OpCode::Message => {
            // The checksum covers the bytes as they were before compression, header included.
            let whole = if compressor.is_some() { header.before(opcode, &body) } else { message };
            op_msg::read(header.request_id, &whole, compressor)
        }
        OpCode::Query => op_query::read(header.request_id, body, compressor),
        OpCode::Compressed | OpCode::Reply => Err(WireError::broken("this opcode is not for requests")),
    }
}

/// Returns the bytes of an answer.
pub(crate) fn write(reply: &RawDocument, request: i32, id: i32, style: Style) -> Vec<u8> {
    let (opcode, body) = match style.form {
        Form::Message | Form::OneWay => (OpCode::Message, op_msg::write(reply)),
        Form::Query => (OpCode::Reply, op_query::write(reply)),
    };
    let (opcode, body) = match style.compressor {
        Some(compressor) => (OpCode::Compressed, compress::pack(opcode, &body, compressor)),
        None => (opcode, body),
    };
    header::frame(id, request, opcode, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_announces_how_much_it_takes() {
        let packed = compress::pack(OpCode::Message, &vec![7; 300_000], Compressor::Zlib);
        let message = header::frame(1, 0, OpCode::Compressed, &packed);
        for few in 0..HEADER_BYTES + compress::HEAD_BYTES {
            assert_eq!(MessageSize::announced(&message[..few]).unwrap(), None, "{few}");
        }
        let extent = MessageSize::announced(&message[..25]).unwrap().unwrap();
        assert_eq!(extent, MessageSize { length: message.len(), unpacked: 300_000 });
        assert_eq!((extent.largest(), extent.whole()), (300_000, 300_000 + message.len()));
        let plain = header::frame(1, 0, OpCode::Message, &[0; 30]);
        let extent = MessageSize::announced(&plain[..16]).unwrap().unwrap();
        assert_eq!(extent, MessageSize { length: 46, unpacked: 0 });
        assert!(MessageSize::announced(&header::frame(1, 0, OpCode::Compressed, &[0; 8])).is_err());
        let enormous = [0, i32::MAX].map(i32::to_le_bytes).concat();
        let enormous = header::frame(1, 0, OpCode::Compressed, &[&enormous[..], &[0]].concat());
        assert!(MessageSize::announced(&enormous).is_err());
    }
}
