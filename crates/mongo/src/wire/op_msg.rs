//! `OP_MSG`: the form of every message but the first hello of some drivers.

use bson::RawDocument;
use bytes::Bytes;
use mql::Code;

use super::header::word;
use super::{Compressor, Form, HEADER_BYTES, Request, Sequence, Style, WireError, crc32c};
use crate::protocol::limits::{SEQUENCE_DOCUMENTS, SEQUENCES};

const CHECKSUM_PRESENT: u32 = 1;
const MORE_TO_COME: u32 = 1 << 1;
/// Bits whose meaning a receiver must know.
const REQUIRED: u32 = 0xFFFF;

/// Reads a whole message, header included.
pub(super) fn read(id: i32, message: &Bytes, compressor: Option<Compressor>) -> Result<Request, WireError> {
    let flags =
        word(message, HEADER_BYTES).ok_or_else(|| WireError::broken("a message without flags"))? as u32;
    let form = if flags & MORE_TO_COME == 0 { Form::Message } else { Form::OneWay };
    let style = Style { form, compressor };
    let refuse =
        |code, text: &str, close| WireError::Refused { id, style, error: mql::Error::new(code, text), close };
    let unknown = flags & REQUIRED & !(CHECKSUM_PRESENT | MORE_TO_COME);
    if unknown != 0 {
        let text = format!("Message contains illegal flags value: 0b{flags:b}");
        return Err(refuse(Code::ILLEGAL_OP_MSG_FLAG, &text, true));
    }
    let mut rest = message.slice(HEADER_BYTES + 4..);
    if flags & CHECKSUM_PRESENT != 0 {
        let end = message.len().checked_sub(4).filter(|end| *end >= HEADER_BYTES + 4);
        let end = end.ok_or_else(|| WireError::broken("a message without its checksum"))?;
        if word(message, end) != Some(crc32c::checksum(&message[..end]) as i32) {
            return Err(WireError::broken("OP_MSG checksum does not match contents"));
        }
        rest.truncate(end - HEADER_BYTES - 4);
    }
    let (body, sequences) = sections(rest).map_err(|problem| match problem {
        Problem::Frame(text) => WireError::Broken(text),
        Problem::Content(error) => WireError::Refused { id, style, error, close: false },
    })?;
    Ok(Request { id, body, sequences, style })
}

/// What is wrong with the sections.
enum Problem {
    /// They do not fit the message.
    Frame(String),
    /// They do, and their content is wrong.
    Content(mql::Error),
}

impl From<bson::Error> for Problem {
    fn from(error: bson::Error) -> Problem {
        match error {
            bson::Error::TooDeep => Problem::Content(mql::Error::new(Code::OVERFLOW, error.to_string())),
            other => Problem::Frame(other.to_string()),
        }
    }
}

fn frame(text: &str) -> Problem {
    Problem::Frame(text.to_owned())
}

fn location(code: i32, text: impl Into<String>) -> Problem {
    Problem::Content(mql::Error::location(code, text))
}

fn sections(mut rest: Bytes) -> Result<(RawDocument, Vec<Sequence>), Problem> {
    let mut body = None;
    let mut sequences: Vec<Sequence> = Vec::new();
    while let Some(kind) = rest.first().copied() {
        let mut section = rest.split_off(1);
        match kind {
            0 => {
                let document = RawDocument::split_from(&mut section)?;
                if body.replace(document).is_some() {
                    return Err(location(40430, "Multiple body sections in message"));
                }
                rest = section;
            }
            1 => {
                let sequence;
                (sequence, rest) = document_sequence(section)?;
                if sequences.iter().any(|known| known.name == sequence.name) {
                    return Err(location(40431, format!("Duplicate document sequence: {}", sequence.name)));
                }
                sequences.push(sequence);
                let documents: usize = sequences.iter().map(|sequence| sequence.documents.len()).sum();
                if sequences.len() > SEQUENCES || documents > SEQUENCE_DOCUMENTS {
                    return Err(frame("more documents in sequences than any command takes"));
                }
            }
            other => return Err(location(40432, format!("Unknown section kind {other}"))),
        }
    }
    let body = body.ok_or_else(|| location(40587, "OP_MSG messages must have a body"))?;
    if let Some(twice) = sequences.iter().find(|sequence| body.get(&sequence.name).is_some()) {
        return Err(location(
            40433,
            format!("Duplicate field between body and document sequence {}", twice.name),
        ));
    }
    Ok((body, sequences))
}

/// Returns a kind 1 section and what follows it.
fn document_sequence(mut section: Bytes) -> Result<(Sequence, Bytes), Problem> {
    let size = word(&section, 0).and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| (5..=section.len()).contains(size));
    let rest = section.split_off(size.ok_or_else(|| frame("a document sequence longer than its message"))?);
    let mut section = section.slice(4..);
    let end =
        section.iter().position(|byte| *byte == 0).ok_or_else(|| frame("a sequence's name has no end"))?;
    let name = section.split_to(end + 1);
    let name =
        std::str::from_utf8(&name[..end]).map_err(|_| frame("a sequence's name is not UTF-8"))?.to_owned();
    let mut documents = Vec::new();
    while !section.is_empty() {
        if documents.len() == SEQUENCE_DOCUMENTS {
            return Err(frame("more documents in a sequence than any command takes"));
        }
        documents.push(RawDocument::split_from(&mut section)?);
    }
    Ok((Sequence { name, documents }, rest))
}

/// Returns the body of an answer: one section of kind 0, no flags.
pub(super) fn write(reply: &RawDocument) -> Vec<u8> {
    [&[0; 5], reply.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use bson::Document;

    use super::super::header::{OpCode, frame};
    use super::*;

    fn document(name: &str) -> Vec<u8> {
        RawDocument::from_document(&Document::new().with(name, 1)).as_bytes().to_vec()
    }

    fn kind_0(name: &str) -> Vec<u8> {
        [vec![0], document(name)].concat()
    }

    fn kind_1(name: &str, documents: &[Vec<u8>]) -> Vec<u8> {
        let content = [name.as_bytes(), &[0], &documents.concat()].concat();
        [&[1][..], &(content.len() as i32 + 4).to_le_bytes(), &content].concat()
    }

    fn message(flags: u32, sections: &[Vec<u8>]) -> Bytes {
        let body = [flags.to_le_bytes().to_vec(), sections.concat()].concat();
        frame(1, 0, OpCode::Message, &body).into()
    }

    fn code(outcome: Result<Request, WireError>) -> Option<i32> {
        match outcome.unwrap_err() {
            WireError::Broken(_) => None,
            WireError::Refused { error, .. } => Some(error.code.0),
        }
    }

    #[test]
    fn sections_come_in_any_order() {
        let sections =
            [kind_1("documents", &[document("a"), document("b")]), kind_0("insert"), kind_1("x", &[])];
        let request = read(1, &message(0, &sections), None).unwrap();
        assert!(request.body.get("insert").is_some());
        assert_eq!(request.sequences.len(), 2);
        assert_eq!(request.sequences[0].documents.len(), 2);
        assert_eq!(request.style.form, Form::Message);
        let request = read(1, &message(MORE_TO_COME | 1 << 16 | 1 << 30, &[kind_0("ping")]), None).unwrap();
        assert_eq!(request.style.form, Form::OneWay);
    }

    #[test]
    fn what_is_wrong_inside_a_sound_frame_is_answered() {
        let read = |flags, sections: &[Vec<u8>]| code(read(1, &message(flags, sections), None));
        assert_eq!(read(1 << 2, &[kind_0("ping")]), Some(223));
        assert_eq!(read(0, &[kind_0("a"), kind_0("b")]), Some(40430));
        assert_eq!(read(0, &[kind_0("a"), kind_1("x", &[]), kind_1("x", &[])]), Some(40431));
        assert_eq!(read(0, &[kind_0("x"), kind_1("x", &[])]), Some(40433));
        assert_eq!(read(0, &[kind_1("x", &[])]), Some(40587));
        assert_eq!(read(0, &[vec![2], document("a")]), Some(40432));
        assert_eq!(read(0, &[]), Some(40587));
    }

    #[test]
    fn what_does_not_fit_ends_the_connection() {
        let read = |sections: &[Vec<u8>]| code(read(1, &message(0, sections), None));
        for cut in 1..kind_0("ping").len() {
            assert_eq!(read(&[kind_0("ping")[..cut].to_vec()]), None, "{cut}");
        }
        let sequence = kind_1("documents", &[document("a")]);
        for cut in 1..sequence.len() {
            assert_eq!(read(&[kind_0("insert"), sequence[..cut].to_vec()]), None, "{cut}");
        }
        for size in [0, 3, 4, -1, i32::MAX, i32::MIN] {
            let mut wrong = sequence.clone();
            wrong[1..5].copy_from_slice(&size.to_le_bytes());
            assert_eq!(read(&[kind_0("insert"), wrong]), None, "{size}");
        }
        assert!(super::read(1, &Bytes::from(vec![0; 17]), None).is_err());
    }

    #[test]
    fn a_checksum_is_checked() {
        let mut bytes = message(CHECKSUM_PRESENT, &[kind_0("ping"), vec![0; 4]]).to_vec();
        assert_eq!(code(read(1, &bytes.clone().into(), None)), None);
        let end = bytes.len() - 4;
        let sum = crc32c::checksum(&bytes[..end]).to_le_bytes();
        bytes[end..].copy_from_slice(&sum);
        assert!(read(1, &bytes.into(), None).is_ok());
        assert_eq!(code(read(1, &message(CHECKSUM_PRESENT, &[vec![0; 3]]), None)), None);
    }

    #[test]
    fn deep_nesting_is_an_overflow() {
        let mut writer = bson::Writer::default();
        for _ in 0..bson::limits::DEPTH_MAX {
            writer.open_document("a");
        }
        let deep = [&[0], writer.finish().as_bytes()].concat();
        assert_eq!(code(read(1, &message(0, &[deep]), None)), Some(15));
    }
}
