//! The direct-mode form of an answer.
//!
//! Answers have numbers that those of HTTP lack: clients read at a quorum of replicas and compare their numbers. Both
//! replicas that they know are this server, so every number comes from its one store, and every answer has it.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use rntbd::{ActivityId, Answer, AnswerTokens};

use crate::message::fields::{Field, FieldValue, Fields};
use crate::message::reply::Reply;

/// Clients write to both replicas,
const WRITE_QUORUM: u32 = 2;
/// and read at one of them: more would make the primary ask them for a second one.
const REPLICAS: u32 = 1;

/// The substatus of a gateway for a container that was created again, and that of a replica.
const RECREATED_BY_GATEWAY: u64 = 1024;
const RECREATED: u32 = 1000;

/// Payloads up to this size are copied behind their frame, so that both are sent as one piece.
const COPIED_BYTES: usize = 4096;

/// The parts of a request that its answer repeats.
#[derive(Debug, Clone)]
pub(crate) struct Echo {
    pub(crate) activity_id: ActivityId,
    pub(crate) transport_request_id: Option<u32>,
    /// The id of the client's operation that the request belongs to.
    pub(crate) correlated_activity_id: Option<ActivityId>,
    /// The method, which decides whether the answer has a payload.
    pub(crate) method: Option<Method>,
}

/// The bytes of an answer: the frame, and a payload that was not copied.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) frame: Bytes,
    pub(crate) payload: Bytes,
}

/// Writes an answer. `master_lsn` is the number for resources outside of ranges: the store's. Refusals of unauthenticated
/// requests have it as well: numbers of ranges would reveal which containers exist.
pub(crate) fn encode(reply: Reply, echo: &Echo, master_lsn: u64, duration: Duration) -> Encoded {
    let charge = reply.charge();
    let (status, fields, body) = reply.into_parts();
    let payload = if echo.method == Some(Method::HEAD) { Bytes::new() } else { body.into_bytes() };
    let owner = text(&fields, Field::OwnerPath).map(|path| percent_decode_str(path).decode_utf8_lossy());
    let mut tokens = tokens(&fields, owner.as_ref(), master_lsn);
    tokens.transport_request_id = echo.transport_request_id;
    tokens.correlated_activity_id = echo.correlated_activity_id;
    tokens.request_charge = Some(charge.0 as f64 / 100.0);
    tokens.request_duration_ms = Some(duration.as_secs_f64() * 1000.0);
    let status = match tokens.substatus.map(u64::from) {
        Some(RECREATED_BY_GATEWAY) => {
            tokens.substatus = Some(RECREATED);
            StatusCode::GONE
        }
        _ => status,
    };
    write(status, echo.activity_id, &tokens, payload)
}

fn write(status: StatusCode, activity_id: ActivityId, tokens: &AnswerTokens<'_>, payload: Bytes) -> Encoded {
    let mut frame = Vec::with_capacity(512 + if payload.len() > COPIED_BYTES { 0 } else { payload.len() });
    let payload_bytes = Some(payload.len()).filter(|bytes| *bytes > 0);
    let whole = Answer { status: status.as_u16().into(), activity_id, tokens: *tokens };
    if let Err(too_long) = whole.encode_head(payload_bytes, &mut frame) {
        return too_long_answer(&whole, &too_long);
    }
    if payload.len() > COPIED_BYTES {
        return Encoded { frame: frame.into(), payload };
    }
    frame.extend_from_slice(&payload);
    Encoded { frame: frame.into(), payload: Bytes::new() }
}

/// Returns the answer that replaces one with a text too long for a token, such as a continuation of more than 64 KiB.
fn too_long_answer(answer: &Answer<'_>, too_long: &rntbd::TooLong) -> Encoded {
    tracing::error!("an answer does not fit into a frame: {too_long}");
    let tokens = numbers(&answer.tokens);
    let body = format!(r#"{{"code":"InternalServerError","message":"{too_long}"}}"#);
    let mut frame = Vec::new();
    let fitting = Answer { status: 500, activity_id: answer.activity_id, tokens };
    fitting.encode(Some(body.as_bytes()), &mut frame).expect("all of it is short");
    Encoded { frame: frame.into(), payload: Bytes::new() }
}

/// Returns the tokens that every answer has, all of which fit.
fn numbers(tokens: &AnswerTokens<'_>) -> AnswerTokens<'static> {
    AnswerTokens {
        transport_request_id: tokens.transport_request_id,
        lsn: tokens.lsn,
        local_lsn: tokens.local_lsn,
        quorum_acked_lsn: tokens.quorum_acked_lsn,
        quorum_acked_local_lsn: tokens.quorum_acked_local_lsn,
        global_committed_lsn: tokens.global_committed_lsn,
        number_of_read_regions: tokens.number_of_read_regions,
        current_write_quorum: tokens.current_write_quorum,
        current_replica_set_size: tokens.current_replica_set_size,
        request_charge: tokens.request_charge,
        request_duration_ms: tokens.request_duration_ms,
        correlated_activity_id: tokens.correlated_activity_id,
        ..AnswerTokens::default()
    }
}

/// Returns the tokens of an answer's fields.
fn tokens<'a>(fields: &'a Fields, owner: Option<&'a Cow<'a, str>>, master_lsn: u64) -> AnswerTokens<'a> {
    let mut tokens = AnswerTokens { owner_full_name: owner.map(|path| &**path), ..AnswerTokens::default() };
    let mut lsn = master_lsn;
    for (field, value) in fields.iter() {
        match field {
            Field::Etag => tokens.etag = value.as_text(),
            Field::Substatus => tokens.substatus = small(value),
            Field::RetryAfterMs => tokens.retry_after_ms = small(value),
            Field::ItemCount => tokens.item_count = small(value),
            Field::Continuation => tokens.continuation = value.as_text(),
            Field::QueryMetrics => tokens.query_metrics = value.as_text(),
            Field::IndexUtilization => tokens.index_utilization = value.as_text(),
            Field::SessionToken => tokens.session_token = value.as_text().map(without_range),
            Field::RangeId => tokens.partition_key_range_id = value.as_text(),
            Field::OwnerRid => tokens.owner_id = value.as_text(),
            Field::Lsn => lsn = value.as_number().unwrap_or(lsn),
            Field::ItemLsn => {
                tokens.item_lsn = value.as_number().map(|lsn| lsn as i64);
                tokens.item_local_lsn = tokens.item_lsn;
            }
            Field::IndexProgress => tokens.collection_update_progress = small(value),
            Field::ResourceQuota => tokens.resource_quota = value.as_text(),
            Field::ResourceUsage => tokens.resource_usage = value.as_text(),
            // Direct mode has no token for these, and clients of the service know none of the last.
            Field::ContentType
            | Field::OwnerPath
            | Field::MinThroughput
            | Field::ShareThroughput
            | Field::ReplacePending
            | Field::TtlRemaining
            | Field::BackupSequence
            | Field::BackupTime
            | Field::ExportCount
            | Field::ExportNext
            | Field::Log
            | Field::LogCount
            | Field::LogHead
            | Field::LogLast
            | Field::CacheControl => {}
        }
    }
    // Everything is acknowledged, or clients would ask until it is.
    let lsn = Some(lsn as i64);
    AnswerTokens {
        lsn,
        local_lsn: lsn,
        quorum_acked_lsn: lsn,
        quorum_acked_local_lsn: lsn,
        global_committed_lsn: lsn,
        number_of_read_regions: Some(0),
        current_write_quorum: Some(WRITE_QUORUM),
        current_replica_set_size: Some(REPLICAS),
        ..tokens
    }
}

/// Clients put the range before the session token of an answer; Java does so even if it is there.
fn without_range(session_token: &str) -> &str {
    session_token.split_once(':').map_or(session_token, |(_, of_range)| of_range)
}

fn small(value: &FieldValue) -> Option<u32> {
    value.as_number().map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn text(fields: &Fields, field: Field) -> Option<&str> {
    fields.iter().find(|(present, _)| *present == field).and_then(|(_, value)| value.as_text())
}

#[cfg(test)]
mod tests {
    use engine::Charge;
    use rntbd::HEAD_BYTES;

    use super::*;

    #[test]
    fn an_answer_in_place_of_one_that_fits_into_no_frame_has_all_numbers() {
        let echo = Echo {
            activity_id: ActivityId([7; 16]),
            transport_request_id: Some(9),
            correlated_activity_id: Some(ActivityId([8; 16])),
            method: Some(Method::POST),
        };
        let reply = |continuation: String| {
            let reply = Reply::json(StatusCode::OK, "{}").charged(Charge(250)).number(Field::Lsn, 5);
            encode(reply.with(Field::Continuation, continuation), &echo, 8, Duration::from_millis(3))
        };
        let (fitting, too_long) = (reply("x".repeat(65_535)), reply("x".repeat(65_536)));
        let [fitting, too_long] = [&fitting, &too_long].map(|encoded| {
            let head = rntbd::AnswerHead::parse(&encoded.frame, 1 << 20).unwrap().unwrap();
            let tokens = AnswerTokens::decode(&encoded.frame[HEAD_BYTES..head.frame_bytes]).unwrap();
            (head.status, tokens)
        });
        assert_eq!((fitting.0, too_long.0), (200, 500));
        let expected = AnswerTokens { continuation: None, ..fitting.1 };
        assert_eq!(too_long.1, expected);
        assert_eq!((expected.request_charge, expected.lsn), (Some(2.5), Some(5)));
        let all = [expected.current_write_quorum, expected.current_replica_set_size];
        assert_eq!((all, expected.number_of_read_regions), ([Some(2), Some(1)], Some(0)));
    }
}
