//! `OP_COMPRESSED`: a compressed message.
//!
//! The unpacked size is bounded by what the message announces, and that by the largest message; one byte more or less is an
//! error. So a small message cannot unfold into a large one that was not announced.

use std::io::{Cursor, Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::WireError;
use super::header::{HEADER_BYTES, OpCode, word};
use crate::protocol::limits::{MESSAGE_BYTES, ZSTD_WINDOW_BYTES};

/// How a message was compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compressor {
    None = 0,
    Snappy = 1,
    Zlib = 2,
    Zstd = 3,
}

impl Compressor {
    /// Returns the compressor of that name in `hello`. The one that does nothing has no name there.
    pub(crate) fn from_name(name: &str) -> Option<Compressor> {
        match name {
            "snappy" => Some(Compressor::Snappy),
            "zlib" => Some(Compressor::Zlib),
            "zstd" => Some(Compressor::Zstd),
            _ => None,
        }
    }

    fn from_id(id: u8) -> Option<Compressor> {
        [Compressor::None, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd]
            .into_iter()
            .find(|compressor| *compressor as u8 == id)
    }
}

/// The bytes before the packed ones: the opcode of the message, its size, and how it was packed.
pub(super) const HEAD_BYTES: usize = 9;

/// Returns the size that such a message says it will have.
pub(super) fn unpacked_bytes(head: &[u8]) -> Result<usize, WireError> {
    let size = word(head, 4).and_then(|size| usize::try_from(size).ok());
    match size.filter(|size| *size <= MESSAGE_BYTES - HEADER_BYTES) {
        Some(size) => Ok(size),
        None => Err(WireError::broken("a compressed message of a size that no message has")),
    }
}

/// Unpacks the body of such a message: returns the opcode of the message in it, and its body.
pub(super) fn unpack(body: &[u8]) -> Result<(OpCode, Bytes, Compressor), WireError> {
    let broken = || WireError::broken("a compressed message that cannot be unpacked");
    let (Some(opcode), Some(id)) = (word(body, 0), body.get(HEAD_BYTES - 1)) else { return Err(broken()) };
    let opcode = OpCode::parse(opcode)?;
    let compressor = Compressor::from_id(*id).ok_or_else(broken)?;
    let unpacked = decompress(compressor, &body[HEAD_BYTES..], unpacked_bytes(body)?).ok_or_else(broken)?;
    Ok((opcode, unpacked.into(), compressor))
}

/// Returns exactly `size` bytes, or none.
fn decompress(compressor: Compressor, packed: &[u8], size: usize) -> Option<Vec<u8>> {
    let unpacked = match compressor {
        Compressor::None => (packed.len() == size).then(|| packed.to_vec())?,
        Compressor::Snappy => {
            if snap::raw::decompress_len(packed).ok()? != size {
                return None;
            }
            snap::raw::Decoder::new().decompress_vec(packed).ok()?
        }
        Compressor::Zlib => at_most(ZlibDecoder::new(packed), size)?,
        Compressor::Zstd => {
            if zstd_window(packed)? > ZSTD_WINDOW_BYTES.max(size as u64) {
                return None;
            }
            at_most(StreamingDecoder::new(packed).ok()?, size)?
        }
    };
    (unpacked.len() == size).then_some(unpacked)
}

/// Reads up to one byte more than allowed, in a buffer that grows with the bytes unpacked.
fn at_most(reader: impl Read, size: usize) -> Option<Vec<u8>> {
    let mut unpacked = Vec::new();
    reader.take(size as u64 + 1).read_to_end(&mut unpacked).ok()?;
    Some(unpacked)
}

/// Returns the memory that a frame asks its reader to keep (RFC 8878, 3.1.1.1), which the decoder would allocate at once.
fn zstd_window(packed: &[u8]) -> Option<u64> {
    let (magic, rest) = packed.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*magic) != 0xFD2F_B528 {
        return None;
    }
    let (descriptor, rest) = rest.split_first()?;
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let window = rest.first()?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // Without a window, the content's own size is the window.
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let length = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let bytes = rest.get(dictionary..dictionary + length)?;
    let size = bytes.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    Some(if length == 2 { size + 256 } else { size })
}

/// Packs the body of a message; returns it as it is if it cannot be packed.
pub(super) fn pack(opcode: OpCode, body: &[u8], compressor: Compressor) -> Vec<u8> {
    let (compressor, packed) = match compress(compressor, body) {
        Some(packed) => (compressor, packed),
        None => (Compressor::None, body.to_vec()),
    };
    let mut bytes = Vec::with_capacity(HEAD_BYTES + packed.len());
    bytes.extend_from_slice(&(opcode as i32).to_le_bytes());
    bytes.extend_from_slice(&(body.len() as i32).to_le_bytes());
    bytes.push(compressor as u8);
    bytes.extend_from_slice(&packed);
    bytes
}

fn compress(compressor: Compressor, body: &[u8]) -> Option<Vec<u8>> {
    match compressor {
        Compressor::None => None,
        Compressor::Snappy => snap::raw::Encoder::new().compress_vec(body).ok(),
        Compressor::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(body).ok()?;
            encoder.finish().ok()
        }
        Compressor::Zstd => Some(compress_to_vec(Cursor::new(body), CompressionLevel::Fastest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Compressor; 4] = [Compressor::None, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];

    #[test]
    fn what_is_packed_comes_out_again() {
        for body in [&b""[..], b"a", &b"abcabcabc".repeat(100), &vec![7; 300_000]] {
            for compressor in ALL {
                let packed = pack(OpCode::Message, body, compressor);
                let (opcode, unpacked, _) = unpack(&packed).unwrap();
                assert_eq!((opcode, &unpacked[..]), (OpCode::Message, body), "{compressor:?} {}", body.len());
            }
        }
    }

    #[test]
    fn a_size_that_is_not_true_is_refused() {
        for compressor in ALL {
            let packed = pack(OpCode::Message, &b"some text some text".repeat(50), compressor);
            for size in [0, 1, 949, 951, 100_000, MESSAGE_BYTES as i32, i32::MAX, -1, i32::MIN] {
                let mut wrong = packed.clone();
                wrong[4..8].copy_from_slice(&size.to_le_bytes());
                assert!(unpack(&wrong).is_err(), "{compressor:?} {size}");
            }
        }
    }

    #[test]
    fn rubbish_is_refused_and_never_panics() {
        for compressor in ALL {
            let packed = pack(OpCode::Message, &b"some text some text".repeat(50), compressor);
            for end in 0..packed.len() {
                assert!(unpack(&packed[..end]).is_err(), "{compressor:?} {end}");
            }
            for at in 0..packed.len() {
                for byte in [0, 1, 0x7F, 0xFF] {
                    let mut wrong = packed.clone();
                    wrong[at] = byte;
                    let _ = unpack(&wrong);
                }
            }
        }
        let mut unknown = pack(OpCode::Message, b"x", Compressor::None);
        unknown[8] = 9;
        assert!(unpack(&unknown).is_err());
    }

    #[test]
    fn a_zstd_frame_that_wants_much_memory_is_refused() {
        let greedy = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xF8, 0x01, 0x00, 0x00];
        assert!(zstd_window(&greedy).unwrap() > 1 << 40);
        assert!(decompress(Compressor::Zstd, &greedy, 0).is_none());
    }
}
