//! What must hold for one input of the fuzz targets `message`, `scram` and `resume`. The targets and the tests that replay
//! their corpora share this file.
//!
//! An input of `message` is a message as a connection hands it on: header and body. It is tried as it is, and again with
//! the length that it really has, because the server never reads what follows a wrong length. An input of `scram` is the
//! two messages by which a client proves its identity, with a line between them; one of `resume` is the digits of a resume
//! token.

use bytes::Bytes;
use mongo::{is_request, read_exchange, read_resume_token};

const HEADER_BYTES: usize = 16;
const OP_QUERY: i32 = 2004;
const OP_COMPRESSED: i32 = 2012;
const OP_MSG: i32 = 2013;

/// How `OP_COMPRESSED` says that nothing was compressed.
const NO_COMPRESSOR: u8 = 0;

/// A message is read or refused, and compression does not change which of both. One byte more or less than a request has is
/// not a request.
pub(crate) fn check_message(data: &[u8]) {
    is_request(Bytes::copy_from_slice(data));
    let Some((header, body)) = data.split_at_checked(HEADER_BYTES) else { return };
    let opcode = i32::from_le_bytes(header[12..].try_into().expect("four bytes"));
    let is_read = is_request(frame(header, opcode, body));
    if !matches!(opcode, OP_QUERY | OP_MSG) {
        return;
    }
    if is_read {
        assert!(!is_request(frame(header, opcode, &body[..body.len() - 1])), "one byte less");
        assert!(!is_request(frame(header, opcode, &[body, &[0]].concat())), "one byte more");
    }
    // A checksum covers the message before compression, where it answers nothing.
    let header = &[&header[..8], &[0; 4], &header[12..]].concat();
    let is_read = is_request(frame(header, opcode, body));
    let size = i32::try_from(body.len()).expect("inputs are small");
    for (id, packed) in coats(body) {
        let packed = [&opcode.to_le_bytes()[..], &size.to_le_bytes(), &[id], &packed].concat();
        assert_eq!(is_request(frame(header, OP_COMPRESSED, &packed)), is_read, "compressor {id}");
        let short = &packed[..packed.len() - 1];
        assert!(!is_request(frame(header, OP_COMPRESSED, short)), "compressor {id}, one byte less");
    }
}

/// An exchange is refused or names a user, whose name can be written and read again, and no random proof is accepted.
pub(crate) fn check_scram(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (first, last) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    let Some((user, is_proved)) = read_exchange(first, last) else { return };
    assert!(!user.is_empty() && !is_proved);
    let name = user.replace('=', "=3D").replace(',', "=2C");
    let again = format!("n,,n={name},r=x");
    assert_eq!(read_exchange(again.as_bytes(), last), Some((user, false)));
}

/// A token is refused, or written back as it was; an earlier form is written in the present one, at the same position.
pub(crate) fn check_resume(data: &[u8]) {
    /// Digits of the time, which only the present form has, and of the position behind it.
    const TIME: usize = 18;
    const POSITION: usize = 64;
    let Ok(digits) = std::str::from_utf8(data) else { return };
    if let Some(again) = read_resume_token(digits) {
        if digits.starts_with("82") {
            assert_eq!(again, digits);
        } else {
            assert_eq!(again[TIME..TIME + POSITION], digits[..POSITION]);
            assert!([POSITION + 2, POSITION + 10].contains(&digits.len()), "{digits}");
        }
        assert_eq!(read_resume_token(&again).as_deref(), Some(again.as_str()));
    }
}

/// The message with its true length.
fn frame(header: &[u8], opcode: i32, body: &[u8]) -> Bytes {
    let length = i32::try_from(HEADER_BYTES + body.len()).expect("inputs are small");
    [&length.to_le_bytes(), &header[4..12], &opcode.to_le_bytes(), body].concat().into()
}

/// Returns a body in each way of packing it.
fn coats(body: &[u8]) -> [(u8, Vec<u8>); 4] {
    let snappy = snap::raw::Encoder::new().compress_vec(body).expect("inputs are small");
    let mut zlib = Vec::new();
    let mut encoder = flate2::read::ZlibEncoder::new(body, flate2::Compression::fast());
    std::io::Read::read_to_end(&mut encoder, &mut zlib).expect("memory can be read");
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(body, level);
    [(NO_COMPRESSOR, body.to_vec()), (1, snappy), (2, zlib), (3, zstd)]
}
