//! Frames that no client should send: each is refused with its own message, and the limits hold before anything is read.

use rntbd::{
    ActivityId, Answer, AnswerTokens, Broken, ContextAnswer, ContextRequest, Error, HEAD_BYTES,
    OperationType, Refusal, Refused, Request, RequestHead, RequestTokens, ResourceType, TooLong,
    payload_bytes,
};

use crate::recorded::vectors;

/// The token that says that no payload follows.
const NO_PAYLOAD: &[u8] = &[2, 0, 0, 0];
const NUMBER_7: &[u8] = &[0x4d, 0, 2, 7, 0, 0, 0];

/// Returns the reason of a refusal, and checks that the answer has what it needs.
fn refusal(tokens: &[&[u8]]) -> String {
    match RequestTokens::decode(&[NO_PAYLOAD, &tokens.concat(), NUMBER_7].concat()) {
        Err(Error::Refused(Refused { refusal, transport_request_id: Some(7), has_payload: false })) => {
            refusal.to_string()
        }
        other => panic!("{tokens:?}: {other:?}"),
    }
}

#[test]
fn a_token_that_cannot_be_used_refuses_the_request_by_name() {
    let table: [(&[&[u8]], &str); 6] = [
        (&[&[4, 0, 8, 1, 0, b'x']], "the token 0004 (pageSize) has the type String, where ULong is expected"),
        (
            &[&[0x59, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0]],
            "the token 0059 (timeToLiveInSeconds) has the type LongLong, where ULong is expected",
        ),
        (
            &[&[1, 0, 8, 1, 0, b'x'], &[1, 0, 8, 1, 0, b'x']],
            "the token 0001 (authorizationToken) is given twice",
        ),
        (&[&[0x15, 0, 8, 2, 0, 0xc3, 0x28]], "the token 0015 (databaseName) is not UTF-8"),
        (&[&[0x10, 0, 0, 5]], "the token 0010 (consistencyLevel) has the unknown value 5"),
        (&[&[0x10, 0, 0, 6], &[4, 0, 0xff]], "the token 0010 (consistencyLevel) has the unknown value 6"),
    ];
    for (tokens, expected) in table {
        assert_eq!(refusal(tokens), expected);
    }
}

#[test]
fn a_frame_that_does_not_say_what_follows_breaks_the_connection() {
    let table: [(&[u8], &str); 8] = [
        (&[], "the frame does not say whether a payload follows"),
        (NUMBER_7, "the frame does not say whether a payload follows"),
        (&[2, 0, 2, 1, 0, 0, 0], "the frame does not say whether a payload follows"),
        (&[2, 0, 0, 1, 2, 0, 0, 0], "the frame does not say whether a payload follows"),
        (&[4, 0, 0xff, 2, 0, 0, 1, 2, 0, 0, 0], "the frame does not say whether a payload follows"),
        (&[2, 0, 0, 1, 2], "the frame ends inside of the token that begins at byte 4 of its tokens"),
        (
            &[2, 0, 0, 1, 3, 0, 7, 200, b'x'],
            "the frame ends inside of the token that begins at byte 4 of its tokens",
        ),
        (
            &[2, 0, 0, 1, 0x34, 0x12, 0x0f],
            "the token 1234 at byte 4 of the frame's tokens has the unknown type 0f",
        ),
    ];
    for (tokens, expected) in table {
        let error = RequestTokens::decode(tokens).expect_err("broken");
        assert!(matches!(error, Error::Broken(_)), "{tokens:?}: {error:?}");
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(AnswerTokens::decode(&[]), Err(Error::Broken(Broken::PayloadUnknown)));
}

#[test]
fn a_refused_request_still_says_that_a_payload_follows() {
    let tokens = [&[2, 0, 0, 1, 4, 0, 0xff], NUMBER_7].concat();
    let Err(Error::Refused(refused)) = RequestTokens::decode(&tokens) else { panic!("refused") };
    assert!(refused.has_payload);
    let context = ContextRequest::decode(&[1, 0, 8, 0, 0]).expect_err("refused");
    assert_eq!(
        context.to_string(),
        "the token 0001 (clientVersion) has the type String, where SmallString is expected"
    );
}

#[test]
fn unknown_tokens_of_every_type_are_skipped() {
    let lengths: [(u8, &[u8]); 16] = [
        (0x00, &[9]),
        (0x01, &[9; 2]),
        (0x02, &[9; 4]),
        (0x03, &[9; 4]),
        (0x04, &[9; 8]),
        (0x05, &[9; 8]),
        (0x06, &[9; 16]),
        (0x07, &[1, 0xff]),
        (0x08, &[1, 0, 0xff]),
        (0x09, &[1, 0, 0, 0, 0xff]),
        (0x0a, &[0]),
        (0x0b, &[0, 0]),
        (0x0c, &[0, 0, 0, 0]),
        (0x0d, &[9; 4]),
        (0x0e, &[9; 8]),
        (0xff, &[]),
    ];
    for (kind, value) in lengths {
        let unknown = [&[0xfe, 0xca, kind], value].concat();
        // An unknown token may be given twice: what it means is unknown.
        let tokens = [NO_PAYLOAD, &unknown, &unknown, NUMBER_7].concat();
        let tokens = RequestTokens::decode(&tokens).expect("skipped");
        assert_eq!(tokens.transport_request_id, Some(7), "{kind:02x}");
    }
}

#[test]
fn lengths_are_refused_as_soon_as_they_are_there() {
    let parse = |bytes: &[u8]| RequestHead::parse(bytes, 64);
    assert_eq!(parse(&[65, 0, 0, 0]), Err(Broken::FrameTooLong { bytes: 65, limit: 64 }));
    assert_eq!(parse(&[23, 0, 0, 0]), Err(Broken::FrameTooShort { bytes: 23 }));
    assert_eq!(parse(&[0xff; 4]), Err(Broken::FrameTooLong { bytes: u32::MAX, limit: 64 }));
    assert_eq!(parse(&[64, 0, 0]), Ok(None));
    assert_eq!(parse(&[64, 0, 0, 0]), Ok(None));
    assert_eq!(parse(&[&[64, 0, 0, 0], [0; 19].as_slice()].concat()), Ok(None));
    let head = parse(&[&[64, 0, 0, 0], [0; 20].as_slice()].concat()).expect("a head").expect("whole");
    assert_eq!((head.frame_bytes, head.is_context()), (64, true));
    assert_eq!(payload_bytes(&[5, 0, 0], 5), Ok(None));
    assert_eq!(payload_bytes(&[5, 0, 0, 0], 5), Ok(Some(5)));
    assert_eq!(payload_bytes(&[6, 0, 0, 0, 1], 5), Err(Broken::PayloadTooLong { bytes: 6, limit: 5 }));
}

#[test]
fn unknown_types_are_refused_by_number_and_leave_the_head_readable() {
    let mut bytes = vec![HEAD_BYTES as u8, 0, 0, 0, 0x99, 0x01, 0x98, 0x02];
    bytes.extend([1; 16]);
    let head = RequestHead::parse(&bytes, 24).expect("a head").expect("whole");
    assert_eq!(head.resource_type(), Err(Refusal::UnknownResourceType { number: 0x0199 }));
    let refusal = head.operation_type().expect_err("unknown");
    assert_eq!(refusal.to_string(), "the operation type 0298 is not supported");
    assert!(!head.is_context());
}

#[test]
fn a_value_that_does_not_fit_its_type_is_not_written() {
    let long = "x".repeat(65_536);
    let mut out = vec![1];
    let tokens = RequestTokens { date: Some(&long[..256]), ..RequestTokens::default() };
    let (resource_type, operation_type) = (ResourceType::Document, OperationType::Read);
    let request = Request { resource_type, operation_type, activity_id: ActivityId::default(), tokens };
    let expected = TooLong { name: "date", bytes: 256, limit: 255 };
    assert_eq!(request.encode(Some(b"x"), &mut out), Err(expected));
    let tokens = AnswerTokens { query_metrics: Some(&long), ..AnswerTokens::default() };
    let answer = Answer { status: 200, activity_id: ActivityId::default(), tokens };
    let refused = answer.encode(None, &mut out).expect_err("too long");
    assert_eq!(refused.to_string(), "queryMetrics has 65536 bytes, and at most 65535 can be sent");
    assert_eq!(out, [1]);
    let tokens = AnswerTokens { query_metrics: Some(&long[1..]), ..AnswerTokens::default() };
    assert_eq!(Answer { tokens, ..answer }.encode(None, &mut out), Ok(()));
}

#[test]
fn a_refused_context_has_its_error_behind_the_frame() {
    let mut out = Vec::new();
    let tokens = ContextAnswer { server_agent: Some("a"), ..ContextAnswer::default() };
    tokens.encode_refusal(400, ActivityId([7; 16]), b"{}", &mut out).expect("written");
    let mut expected = vec![29, 0, 0, 0, 0x90, 1, 0, 0];
    expected.extend([7; 16]);
    expected.extend([2, 0, 7, 1, b'a', 2, 0, 0, 0, b'{', b'}']);
    // The length counts the token, not the payload.
    assert_eq!(out, expected);
}

#[test]
fn every_cut_of_recorded_tokens_is_broken_or_has_fewer_tokens() {
    for vector in vectors() {
        for end in HEAD_BYTES..vector.bytes.len() {
            let cut = &vector.bytes[HEAD_BYTES..end];
            let _ = (RequestTokens::decode(cut), AnswerTokens::decode(cut));
            let _ = (ContextRequest::decode(cut), ContextAnswer::decode(cut));
        }
        for end in 0..HEAD_BYTES {
            assert_eq!(RequestHead::parse(&vector.bytes[..end], 4096), Ok(None), "{}", vector.name);
        }
    }
}
