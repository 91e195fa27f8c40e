//! Frames: their heads, their lengths, and what follows them.

use crate::ActivityId;
use crate::error::{Broken, Refusal, TooLong};
use crate::kinds::{OperationType, ResourceType};
use crate::set::TokenSet;
use crate::token::fitting;

/// The bytes of a frame before its tokens.
pub const HEAD_BYTES: usize = 24;
/// The bytes of a payload's length, which stands before it.
pub const PAYLOAD_LENGTH_BYTES: usize = 4;

/// What a client speaks on a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP, whichever version.
    Http,
    /// RNTBD.
    Rntbd,
}

impl Protocol {
    /// Returns what the first bytes of a connection begin, or `None` if there are too few of them.
    ///
    /// HTTP begins with the letters of a method; RNTBD with a length below 65,536, whose third and fourth byte are 0.
    pub fn of(first: &[u8]) -> Option<Self> {
        match first {
            [_, _, 0, 0, ..] => Some(Self::Rntbd),
            [_, _, 0] | [] | [_] | [_, _] => None,
            _ => Some(Self::Http),
        }
    }
}

/// The head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead {
    /// The length of the whole frame, without a payload.
    pub frame_bytes: usize,
    /// The number of the resource type.
    pub resource_number: u16,
    /// The number of the operation type.
    pub operation_number: u16,
    /// The id that the answer echoes.
    pub activity_id: ActivityId,
}

impl RequestHead {
    /// Reads the head of the frame that begins here, or returns `None` if more bytes are needed.
    ///
    /// The length is refused as soon as its four bytes are there, if it is above `limit`.
    pub fn parse(bytes: &[u8], limit: usize) -> Result<Option<Self>, Broken> {
        let Some((frame_bytes, kind, activity_id)) = parse_head(bytes, limit)? else { return Ok(None) };
        let [low, high, operation_low, operation_high] = kind;
        Ok(Some(Self {
            frame_bytes,
            resource_number: u16::from_le_bytes([low, high]),
            operation_number: u16::from_le_bytes([operation_low, operation_high]),
            activity_id,
        }))
    }

    /// Returns whether the frame is a context request.
    pub fn is_context(&self) -> bool {
        (self.resource_number, self.operation_number) == (0, 0)
    }

    /// Returns the resource type.
    pub fn resource_type(&self) -> Result<ResourceType, Refusal> {
        let number = self.resource_number;
        ResourceType::from_number(number).ok_or(Refusal::UnknownResourceType { number })
    }

    /// Returns the operation type.
    pub fn operation_type(&self) -> Result<OperationType, Refusal> {
        let number = self.operation_number;
        OperationType::from_number(number).ok_or(Refusal::UnknownOperationType { number })
    }
}

/// The head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerHead {
    /// The length of the whole frame, without a payload.
    pub frame_bytes: usize,
    /// The HTTP status.
    pub status: u32,
    /// The id of the request.
    pub activity_id: ActivityId,
}

impl AnswerHead {
    /// Reads the head of the frame that begins here, or returns `None` if more bytes are needed.
    pub fn parse(bytes: &[u8], limit: usize) -> Result<Option<Self>, Broken> {
        let Some((frame_bytes, status, activity_id)) = parse_head(bytes, limit)? else { return Ok(None) };
        Ok(Some(Self { frame_bytes, status: u32::from_le_bytes(status), activity_id }))
    }
}

type Head = (usize, [u8; 4], ActivityId);

fn parse_head(bytes: &[u8], limit: usize) -> Result<Option<Head>, Broken> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length);
    let frame_bytes = bounded(length, limit).ok_or(Broken::FrameTooLong { bytes: length, limit })?;
    if frame_bytes < HEAD_BYTES {
        return Err(Broken::FrameTooShort { bytes: length });
    }
    let Some((kind, rest)) = rest.split_first_chunk() else { return Ok(None) };
    let Some(activity_id) = rest.first_chunk() else { return Ok(None) };
    Ok(Some((frame_bytes, *kind, ActivityId(*activity_id))))
}

/// Reads the length of the payload that begins here, or returns `None` if more bytes are needed.
pub fn payload_bytes(bytes: &[u8], limit: usize) -> Result<Option<usize>, Broken> {
    let Some(length) = bytes.first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length);
    bounded(length, limit).map(Some).ok_or(Broken::PayloadTooLong { bytes: length, limit })
}

fn bounded(length: u32, limit: usize) -> Option<usize> {
    usize::try_from(length).ok().filter(|length| *length <= limit)
}

/// Appends a frame, and the length of its payload if it has one. On an error nothing is appended.
pub(crate) fn write<'a>(
    kind: [u8; 4],
    activity_id: ActivityId,
    tokens: &impl TokenSet<'a>,
    payload_bytes: Option<usize>,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let start = out.len();
    let written = write_unchecked(kind, activity_id, tokens, payload_bytes, out);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

fn write_unchecked<'a>(
    kind: [u8; 4],
    activity_id: ActivityId,
    tokens: &impl TokenSet<'a>,
    payload_bytes: Option<usize>,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&kind);
    out.extend_from_slice(&activity_id.0);
    tokens.write(out)?;
    let length: u32 = fitting("the frame", out.len() - start)?;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    if let Some(bytes) = payload_bytes {
        out.extend_from_slice(&fitting::<u32>("the payload", bytes)?.to_le_bytes());
    }
    Ok(())
}
