//! The frames of a real client are read, and written again byte by byte.

use std::sync::LazyLock;

use rntbd::{
    ActivityId, Answer, AnswerHead, AnswerTokens, ConsistencyLevel, ContextAnswer, ContextRequest,
    HEAD_BYTES, PAYLOAD_LENGTH_BYTES, Protocol, Request, RequestHead, RequestTokens, ResourceType,
    ReturnPreference, payload_bytes,
};

/// A frame with what follows it.
pub(crate) struct Vector {
    pub(crate) name: &'static str,
    pub(crate) direction: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// The recorded frames.
pub(crate) fn vectors() -> &'static [Vector] {
    static VECTORS: LazyLock<Vec<Vector>> = LazyLock::new(|| {
        let lines = include_str!("../vectors/dotnet.txt").lines().filter(|line| !line.starts_with('#'));
        let vector = |line: &'static str| {
            let mut parts = line.split('\t');
            let mut next = || parts.next().expect("three parts");
            Vector { name: next(), direction: next(), bytes: bytes(next()) }
        };
        lines.map(vector).collect()
    });
    &VECTORS
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().map(|digit| (digit as char).to_digit(16).expect("hex") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The bytes of a recorded frame.
fn named(name: &str, direction: &str) -> &'static [u8] {
    let found = vectors().iter().find(|vector| vector.name == name && vector.direction == direction);
    &found.expect("recorded").bytes
}

/// Returns the payload behind a frame, and checks that nothing else follows.
fn payload(follows: bool, rest: &[u8]) -> Option<&[u8]> {
    if !follows {
        assert!(rest.is_empty(), "{rest:?}");
        return None;
    }
    let length = payload_bytes(rest, 4096).expect("within the limit").expect("four bytes");
    let payload = &rest[PAYLOAD_LENGTH_BYTES..];
    assert_eq!(payload.len(), length);
    Some(payload)
}

/// Reads a frame and writes it again.
fn again(vector: &Vector) -> Vec<u8> {
    let (bytes, name) = (&vector.bytes, vector.name);
    let mut out = Vec::new();
    if vector.direction.ends_with("request") {
        let head = RequestHead::parse(bytes, 512).expect(name).expect("a whole head");
        let (frame, rest) = bytes.split_at(head.frame_bytes);
        assert_eq!(head.is_context(), name == "context");
        if head.is_context() {
            let tokens = ContextRequest::decode(&frame[HEAD_BYTES..]).expect(name);
            tokens.encode(head.activity_id, &mut out).expect(name);
        } else {
            let tokens = RequestTokens::decode(&frame[HEAD_BYTES..]).expect(name);
            let request = Request {
                resource_type: head.resource_type().expect(name),
                operation_type: head.operation_type().expect(name),
                activity_id: head.activity_id,
                tokens,
            };
            request.encode(payload(tokens.has_payload(), rest), &mut out).expect(name);
        }
    } else {
        let head = AnswerHead::parse(bytes, 1024).expect(name).expect("a whole head");
        let (frame, rest) = bytes.split_at(head.frame_bytes);
        if vector.direction == "context-answer" {
            let tokens = ContextAnswer::decode(&frame[HEAD_BYTES..]).expect(name);
            tokens.encode(head.activity_id, &mut out).expect(name);
        } else {
            let tokens = AnswerTokens::decode(&frame[HEAD_BYTES..]).expect(name);
            let answer = Answer { status: head.status, activity_id: head.activity_id, tokens };
            answer.encode(payload(tokens.has_payload(), rest), &mut out).expect(name);
        }
    }
    out
}

#[test]
fn recorded_frames_are_read_and_written_again_byte_by_byte() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 47);
    for vector in vectors {
        assert_eq!(again(vector), vector.bytes, "{} {}", vector.name, vector.direction);
    }
}

#[test]
fn a_recorded_request_has_the_fields_that_the_client_gave_it() {
    let bytes = named("query-one-partition-key", "request");
    let head = RequestHead::parse(bytes, 512).expect("a head").expect("whole");
    assert_eq!(head.resource_type(), Ok(ResourceType::Document));
    let tokens = RequestTokens::decode(&bytes[HEAD_BYTES..head.frame_bytes]).expect("tokens");
    assert_eq!(tokens.resource_id, Some([0, 0, 0, 0x24, 0x80, 0, 0, 0x25].as_slice()));
    assert_eq!(tokens.database_name, Some("mini6cbd3"));
    assert_eq!(tokens.collection_name, Some("c"));
    assert_eq!(tokens.document_name, None);
    assert_eq!(tokens.partition_key, Some(r#"["q"]"#));
    assert_eq!(tokens.page_size, Some(1000));
    assert_eq!(tokens.session_token, Some("0:-1#496"));
    assert_eq!(tokens.collection_rid, Some("AAAAJIAAACU="));
    assert_eq!(tokens.remaining_time_ms, Some(30_000));
    assert_eq!(tokens.transport_request_id, Some(13));
    assert_eq!(tokens.sdk_supported_capabilities, Some(9));
    assert_eq!(tokens.supported_serialization_formats, Some(3));
    assert_eq!(tokens.optimistic_direct_execute, Some(false));
    let bytes = named("upsert-minimal", "request");
    let head = RequestHead::parse(bytes, 512).expect("a head").expect("whole");
    let tokens = RequestTokens::decode(&bytes[HEAD_BYTES..head.frame_bytes]).expect("tokens");
    assert_eq!(tokens.return_preference, Some(ReturnPreference::Minimal));
    let bytes = named("read-database-404", "request");
    let head = RequestHead::parse(bytes, 512).expect("a head").expect("whole");
    let tokens = RequestTokens::decode(&bytes[HEAD_BYTES..head.frame_bytes]).expect("tokens");
    assert_eq!(tokens.consistency_level, Some(ConsistencyLevel::Strong));
}

#[test]
fn the_first_bytes_tell_the_protocols_apart() {
    for vector in vectors().iter().filter(|vector| vector.direction.ends_with("request")) {
        assert_eq!(Protocol::of(&vector.bytes), Some(Protocol::Rntbd), "{}", vector.name);
        assert_eq!(Protocol::of(&vector.bytes[..3]), None);
    }
    for http in ["GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n", "PUT", "\r\nGET", "\0\0\0\x01"] {
        assert_eq!(Protocol::of(http.as_bytes()), Some(Protocol::Http), "{http:?}");
    }
    assert_eq!(Protocol::of(b"GE"), None);
    assert_eq!(Protocol::of(b""), None);
}

#[test]
fn an_answer_echoes_the_bytes_of_the_activity_id() {
    for vector in vectors().iter().filter(|vector| vector.direction == "answer") {
        let request = named(vector.name, "request");
        assert_eq!(request[8..HEAD_BYTES], vector.bytes[8..HEAD_BYTES], "{}", vector.name);
    }
    let head = AnswerHead::parse(named("read-404", "answer"), 512).expect("a head").expect("whole");
    assert_eq!(head.activity_id.to_string(), "baa9b70b-ccae-45e9-8eb4-67c2a2b16f1e");
    assert_ne!(head.activity_id, ActivityId::default());
    assert_eq!(head.status, 404);
}
