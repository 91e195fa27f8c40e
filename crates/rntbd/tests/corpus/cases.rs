//! Checks for one input of the fuzz target `rntbd`. The target shares this file with the test that replays its corpus.
//!
//! An input is the bytes of a connection, read as a server reads them and as a client does, and as tokens without a frame.

use rntbd::{
    ActivityId, Answer, AnswerHead, AnswerTokens, ContextAnswer, ContextRequest, Error, HEAD_BYTES,
    OperationType, PAYLOAD_LENGTH_BYTES, Protocol, Request, RequestHead, RequestTokens, ResourceType,
    payload_bytes,
};

/// Longest frame.
const FRAME_BYTES: usize = 1 << 16;
/// Longest payload.
const PAYLOAD_BYTES: usize = 1 << 20;

/// Reads an input in every way in which bytes come from a connection.
pub(crate) fn check_rntbd(data: &[u8]) {
    if let Ok(Some(head)) = RequestHead::parse(data, FRAME_BYTES) {
        assert_eq!(Protocol::of(data), Some(Protocol::Rntbd), "{head:?}");
    }
    let mut rest = data;
    while let Some(next) = request(rest) {
        rest = next;
    }
    let mut rest = data;
    while let Some(next) = answer(rest) {
        rest = next;
    }
    check_request_tokens(data);
    check_answer_tokens(data);
    check_context(data);
}

/// Reads a request and returns what is behind it, or nothing if a server would close the connection or wait for more.
fn request(bytes: &[u8]) -> Option<&[u8]> {
    let head = RequestHead::parse(bytes, FRAME_BYTES).ok()??;
    assert!(head.resource_type().map_or(true, |known| known.number() == head.resource_number));
    assert!(head.operation_type().map_or(true, |known| known.number() == head.operation_number));
    let (frame, rest) = bytes.split_at_checked(head.frame_bytes)?;
    let tokens = &frame[HEAD_BYTES..];
    if head.is_context() {
        check_context(tokens);
        return Some(rest);
    }
    check_request_tokens(tokens);
    match RequestTokens::decode(tokens) {
        Ok(tokens) => behind(tokens.has_payload(), rest),
        Err(Error::Refused(refused)) => behind(refused.has_payload, rest),
        Err(Error::Broken(_)) => None,
    }
}

fn answer(bytes: &[u8]) -> Option<&[u8]> {
    let head = AnswerHead::parse(bytes, FRAME_BYTES).ok()??;
    let (frame, rest) = bytes.split_at_checked(head.frame_bytes)?;
    check_answer_tokens(&frame[HEAD_BYTES..]);
    behind(AnswerTokens::decode(&frame[HEAD_BYTES..]).ok()?.has_payload(), rest)
}

fn behind(has_payload: bool, rest: &[u8]) -> Option<&[u8]> {
    if !has_payload {
        return Some(rest);
    }
    let length = payload_bytes(rest, PAYLOAD_BYTES).ok()??;
    rest[PAYLOAD_LENGTH_BYTES..].get(length..)
}

/// Checks that tokens which are accepted are written, and read again as the same.
fn check_request_tokens(bytes: &[u8]) {
    let Ok(tokens) = RequestTokens::decode(bytes) else { return };
    let (resource_type, operation_type) = (ResourceType::Document, OperationType::Read);
    let request = Request { resource_type, operation_type, activity_id: ActivityId::default(), tokens };
    let payload = tokens.has_payload().then_some([].as_slice());
    let mut written = Vec::new();
    request.encode(payload, &mut written).expect("what was read fits");
    let head = RequestHead::parse(&written, usize::MAX).expect("a head").expect("whole");
    // Unknown tokens are left out, and nothing is added but a Long that is written as ULong.
    assert!(head.frame_bytes <= HEAD_BYTES + bytes.len());
    assert_eq!(RequestTokens::decode(&written[HEAD_BYTES..head.frame_bytes]), Ok(tokens));
}

/// As [`check_request_tokens`], but by the bytes: a charge may be no number, which is not equal to itself.
fn check_answer_tokens(bytes: &[u8]) {
    let Ok(tokens) = AnswerTokens::decode(bytes) else { return };
    let write = |tokens: AnswerTokens<'_>| {
        let mut out = Vec::new();
        let payload = tokens.has_payload().then_some([].as_slice());
        let answer = Answer { status: 200, activity_id: ActivityId::default(), tokens };
        answer.encode(payload, &mut out).expect("what was read fits");
        out
    };
    let written = write(tokens);
    let head = AnswerHead::parse(&written, usize::MAX).expect("a head").expect("whole");
    assert!(head.frame_bytes <= HEAD_BYTES + bytes.len());
    let again = AnswerTokens::decode(&written[HEAD_BYTES..head.frame_bytes]).expect("it was just written");
    assert_eq!(write(again), written);
}

fn check_context(bytes: &[u8]) {
    let activity_id = ActivityId::default();
    if let Ok(tokens) = ContextRequest::decode(bytes) {
        let mut out = Vec::new();
        tokens.encode(activity_id, &mut out).expect("what was read fits");
        assert_eq!(ContextRequest::decode(&out[HEAD_BYTES..]), Ok(tokens));
    }
    if let Ok(tokens) = ContextAnswer::decode(bytes) {
        let mut out = Vec::new();
        tokens.encode(activity_id, &mut out).expect("what was read fits");
        assert_eq!(ContextAnswer::decode(&out[HEAD_BYTES..]), Ok(tokens));
    }
}
