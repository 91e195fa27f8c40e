//! What is written is read back, and no bytes make the codec panic.

use proptest::prelude::*;
use rntbd::{
    ActivityId, Answer, AnswerHead, AnswerTokens, ConsistencyLevel, ContextAnswer, ContextRequest,
    HEAD_BYTES, IndexingDirective, OperationType, Protocol, ReadFeedKeyType, Request, RequestHead,
    RequestTokens, ResourceType, payload_bytes,
};

use crate::recorded::vectors;

fn one_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

fn payload() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop::option::of(prop::collection::vec(any::<u8>(), 0..3000))
}

/// Whether each of the fields of a set is there: bits.
fn when<T>(bits: u32, number: u32, value: T) -> Option<T> {
    (bits >> number & 1 == 1).then_some(value)
}

proptest! {
    #[test]
    fn requests_come_back(
        (resource_type, operation_type) in (one_of(ResourceType::ALL), one_of(OperationType::ALL)),
        activity_id in any::<[u8; 16]>(),
        bits in any::<u32>(),
        texts in prop::array::uniform4(".{0,60}"),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        (signed, unsigned, long) in any::<(i32, u32, i64)>(),
        (level, directive, key_type) in
            (one_of(ConsistencyLevel::ALL), one_of(IndexingDirective::ALL), one_of(ReadFeedKeyType::ALL)),
        flag in any::<bool>(),
        payload in payload(),
    ) {
        let tokens = RequestTokens {
            resource_id: when(bits, 0, &bytes),
            authorization: when(bits, 1, &texts[0]),
            payload_present: Some(payload.is_some()),
            date: when(bits, 2, &texts[1]),
            page_size: when(bits, 3, signed),
            indexing_directive: when(bits, 4, directive),
            consistency_level: when(bits, 5, level),
            database_name: when(bits, 6, &texts[2]),
            partition_key: when(bits, 7, &texts[3]),
            remaining_time_ms: when(bits, 8, unsigned),
            target_lsn: when(bits, 9, long),
            transport_request_id: when(bits, 10, unsigned),
            time_to_live_seconds: when(bits, 11, signed),
            start_epk: when(bits, 12, &texts[0]),
            read_feed_key_type: when(bits, 13, key_type),
            is_batch_atomic: when(bits, 14, flag),
            correlated_activity_id: when(bits, 15, ActivityId(activity_id)),
            throughput_bucket: when(bits, 16, level.number()),
            ..RequestTokens::default()
        };
        let activity_id = ActivityId(activity_id);
        let request = Request { resource_type, operation_type, activity_id, tokens };
        let mut out = Vec::new();
        request.encode(payload.as_deref(), &mut out).expect("it fits");
        let head = RequestHead::parse(&out, 1 << 16).expect("a head").expect("whole");
        let (frame, rest) = out.split_at(head.frame_bytes);
        let again = Request {
            resource_type: head.resource_type().expect("known"),
            operation_type: head.operation_type().expect("known"),
            activity_id: head.activity_id,
            tokens: RequestTokens::decode(&frame[HEAD_BYTES..]).expect("tokens"),
        };
        prop_assert_eq!(again, request);
        let length = payload_bytes(rest, 3000).expect("within the limit");
        prop_assert_eq!(length, payload.as_ref().map(Vec::len));
        prop_assert_eq!(rest.get(4..), payload.as_deref());
        prop_assert_eq!(Protocol::of(&out), Some(Protocol::Rntbd));
    }

    #[test]
    fn answers_come_back(
        status in 100_u32..600,
        activity_id in any::<[u8; 16]>(),
        bits in any::<u32>(),
        texts in prop::array::uniform3(".{0,60}"),
        (number, lsn) in any::<(u32, i64)>(),
        charge in 0.0..1e9,
        payload in payload(),
    ) {
        let tokens = AnswerTokens {
            payload_present: Some(payload.is_some()),
            transport_request_id: when(bits, 0, number),
            last_state_change: when(bits, 1, &texts[0]),
            etag: when(bits, 2, &texts[1]),
            lsn: when(bits, 3, lsn),
            request_charge: when(bits, 4, charge),
            disable_rntbd_channel: when(bits, 5, true),
            item_local_lsn: when(bits, 6, lsn),
            session_token: when(bits, 7, &texts[2]),
            correlated_activity_id: when(bits, 8, ActivityId(activity_id)),
            ..AnswerTokens::default()
        };
        let answer = Answer { status, activity_id: ActivityId(activity_id), tokens };
        let mut out = Vec::new();
        answer.encode(payload.as_deref(), &mut out).expect("it fits");
        let head = AnswerHead::parse(&out, 1 << 16).expect("a head").expect("whole");
        let (frame, rest) = out.split_at(head.frame_bytes);
        let tokens = AnswerTokens::decode(&frame[HEAD_BYTES..]).expect("tokens");
        prop_assert_eq!(Answer { status: head.status, activity_id: head.activity_id, tokens }, answer);
        prop_assert_eq!(rest.get(4..), payload.as_deref());
    }

    #[test]
    fn no_bytes_make_it_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        vector in 0_usize..47,
        at in 0_usize..600,
    ) {
        let read = |bytes: &[u8]| {
            let _ = (RequestHead::parse(bytes, 1 << 16), AnswerHead::parse(bytes, 1 << 16), payload_bytes(bytes, 9));
            let _ = (RequestTokens::decode(bytes), AnswerTokens::decode(bytes));
            let _ = (ContextRequest::decode(bytes), ContextAnswer::decode(bytes), Protocol::of(bytes));
        };
        read(&bytes);
        // The same bytes in the middle of tokens that are in order.
        let mut tokens = vectors()[vector].bytes[HEAD_BYTES..].to_vec();
        bytes.truncate(8);
        let at = at % tokens.len();
        let end = (at + bytes.len()).min(tokens.len());
        tokens[at..end].copy_from_slice(&bytes[..end - at]);
        read(&tokens);
    }
}
