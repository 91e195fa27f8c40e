//! The direct-mode form of a request's head.

use std::time::Duration;

use rntbd::{
    ConsistencyLevel, IndexingDirective, ReadFeedKeyType, RequestHead, RequestTokens, ReturnPreference,
};

use crate::direct::target::Target;
use crate::message::options::{Flag, TextOption, TypedOptions};
use crate::message::request::{Channel, Head, Verb};
use crate::protocol::error::Error;

/// The bits of the serialization formats that exist. A newer client may support others as well.
const FORMAT_BITS: u8 = 0b111;

/// Reads the head of a request on a connection whose context request named this version of the API.
pub(crate) fn head(
    frame: &RequestHead,
    tokens: &RequestTokens<'_>,
    version: Option<&str>,
    channel: Channel,
) -> Result<Head, Error> {
    let refused = |refusal: rntbd::Refusal| Error::BadRequest(refusal.to_string());
    let resource = frame.resource_type().map_err(refused)?;
    let operation = frame.operation_type().map_err(refused)?;
    if let Some(seconds) = tokens.time_to_live_seconds {
        return Err(Error::BadRequest(format!(
            "the token 0059 (timeToLiveInSeconds) is not supported, it is {seconds}; set 'ttl' in the item"
        )));
    }
    if let Some(bits) = tokens.supported_serialization_formats
        && bits != 0
        && bits & FORMAT_BITS == 0
    {
        return Err(Error::BadRequest(format!(
            "the token 00c4 (supportedSerializationFormats) names no format that exists, it is {bits}"
        )));
    }
    let Target { method, verb, path } = Target::of(resource, operation, tokens)?;
    let remaining = tokens.remaining_time_ms.map(|ms| Duration::from_millis(ms.into()));
    let range = range_of_address(tokens).and_then(|range| range.parse().ok());
    Ok(Head::of_direct((method, verb), path, options(verb, tokens, version), channel, remaining, range))
}

/// Returns the options that the tokens stand for. These tokens are accepted and have no effect in a single store that
/// answers with JSON text: enableScanInQuery, isBatchOrdered, priorityLevel, optimisticDirectExecute, throughputBucket,
/// targetLsn, targetGlobalCommittedLsn, contentSerializationFormat.
fn options(verb: Verb, tokens: &RequestTokens<'_>, version: Option<&str>) -> TypedOptions {
    let mut options = TypedOptions::default();
    let page_size = tokens.page_size.map(|size| size.to_string());
    let continuation_limit = tokens.continuation_limit_kib.map(|limit| limit.to_string());
    let own_version = tokens.client_version.filter(|version| !version.is_empty());
    let is_read = matches!(verb, Verb::Get | Verb::ChangeFeed);
    let match_option = if is_read { TextOption::IfNoneMatch } else { TextOption::IfMatch };
    let minimal = tokens.return_preference == Some(ReturnPreference::Minimal);
    for (option, text) in [
        (TextOption::Authorization, tokens.authorization),
        (TextOption::MsDate, tokens.date),
        (TextOption::ApiVersion, own_version.or(version)),
        (TextOption::PartitionKey, tokens.partition_key),
        (TextOption::SessionToken, tokens.session_token),
        (TextOption::IntendedRid, tokens.intended_collection_rid.or(tokens.collection_rid)),
        (TextOption::RangeId, tokens.partition_key_range_id.or_else(|| range_of_feed(verb, tokens))),
        (match_option, tokens.match_etag),
        (TextOption::Continuation, tokens.continuation),
        (TextOption::ContinuationLimit, continuation_limit.as_deref()),
        (TextOption::MaxItemCount, page_size.as_deref()),
        (TextOption::AIm, tokens.a_im),
        (TextOption::IfModifiedSince, tokens.if_modified_since),
        (TextOption::StartEpk, tokens.start_epk),
        (TextOption::EndEpk, tokens.end_epk),
        (TextOption::ReadKeyType, tokens.read_feed_key_type.map(ReadFeedKeyType::name)),
        (TextOption::Consistency, tokens.consistency_level.map(ConsistencyLevel::name)),
        (TextOption::IndexingDirective, tokens.indexing_directive.map(IndexingDirective::name)),
        (TextOption::PreTrigger, tokens.pre_trigger_include),
        (TextOption::PostTrigger, tokens.post_trigger_include),
        (TextOption::ChangeFeedWireFormat, tokens.change_feed_wire_format_version),
        (TextOption::Prefer, minimal.then_some("return=minimal")),
    ] {
        options.text(option, text);
    }
    for (flag, value) in [
        // A client in direct mode plans its queries itself, and names the range of each request.
        (Flag::CrossPartition, Some(verb == Verb::Query)),
        (Flag::BatchAtomic, tokens.is_batch_atomic),
        (Flag::BatchContinue, tokens.should_batch_continue_on_error),
        (Flag::QueryMetrics, tokens.populate_query_metrics),
        (Flag::IndexMetrics, tokens.populate_index_metrics),
        (Flag::IndexMetricsV2, tokens.populate_index_metrics_v2),
    ] {
        options.flag(flag, value);
    }
    options
}

/// Returns the range whose address a feed or a query was sent to, unless its partition key determines the range. Java reads
/// the change feed of a range in this way, with no other token that names it.
fn range_of_feed<'a>(verb: Verb, tokens: &RequestTokens<'a>) -> Option<&'a str> {
    let is_feed =
        matches!(verb, Verb::Get | Verb::ChangeFeed | Verb::Query) && tokens.document_name.is_none();
    range_of_address(tokens).filter(|_| is_feed && tokens.partition_key.is_none())
}

/// Returns the range in the path of an address; that of databases and containers has none.
fn range_of_address<'a>(tokens: &RequestTokens<'a>) -> Option<&'a str> {
    let range = tokens.replica_path?.trim_start_matches('/').split('/').next()?;
    Some(range).filter(|range| !range.is_empty() && range.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use engine::Precondition;
    use rntbd::{ActivityId, OperationType, ResourceType};

    use super::*;

    fn read(
        resource: ResourceType,
        operation: OperationType,
        tokens: &RequestTokens<'_>,
    ) -> Result<Head, Error> {
        let frame = RequestHead {
            frame_bytes: 24,
            resource_number: resource.number(),
            operation_number: operation.number(),
            activity_id: ActivityId::default(),
        };
        let names = RequestTokens {
            database_name: Some("d"),
            collection_name: Some("c"),
            document_name: Some("i"),
            ..*tokens
        };
        head(&frame, &names, Some("2020-07-15"), Channel { peer: ([127, 0, 0, 1], 1).into(), secure: true })
    }

    fn of_item(operation: OperationType, tokens: &RequestTokens<'_>) -> Head {
        read(ResourceType::Document, operation, tokens).unwrap()
    }

    #[test]
    fn an_etag_means_the_opposite_for_reads_and_writes() {
        let tokens = RequestTokens { match_etag: Some("\"e\""), ..RequestTokens::default() };
        let none_match = Precondition::IfNoneMatch("\"e\"".to_owned());
        let if_match = Precondition::IfMatch("\"e\"".to_owned());
        for (operation, expected) in [
            (OperationType::Read, &none_match),
            (OperationType::ReadFeed, &none_match),
            (OperationType::Replace, &if_match),
            (OperationType::Upsert, &if_match),
            (OperationType::Patch, &if_match),
            (OperationType::Delete, &if_match),
        ] {
            assert_eq!(&of_item(operation, &tokens).precondition(), expected, "{operation}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_read_as_the_headers_they_stand_for() {
        let tokens = RequestTokens {
            partition_key: Some("[\"k\"]"),
            page_size: Some(-1),
            collection_rid: Some("AAAAAYAAAAE="),
            partition_key_range_id: Some("3"),
            consistency_level: Some(ConsistencyLevel::Eventual),
            session_token: Some("0:-1#9"),
            end_epk: Some("3F"),
            read_feed_key_type: Some(ReadFeedKeyType::EffectivePartitionKeyRange),
            return_preference: Some(ReturnPreference::Minimal),
            is_batch_atomic: Some(true),
            remaining_time_ms: Some(1500),
            ..RequestTokens::default()
        };
        let head = of_item(OperationType::Query, &tokens);
        assert_eq!(head.partition_key().unwrap().unwrap().to_json(), "[\"k\"]");
        assert!(head.page().is_ok() && head.check_hints().is_ok());
        assert_eq!((head.intended_rid(), head.range_id()), (Some("AAAAAYAAAAE="), Some("3")));
        assert!(head.session(None).unwrap().is_none(), "an eventual read has no session");
        assert!(head.effective_range().unwrap().is_some() && head.wants_minimal());
        assert!(head.flag(Flag::BatchAtomic).unwrap() && head.flag(Flag::CrossPartition).unwrap());
        assert_eq!(head.remaining(), Some(Duration::from_millis(1500)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(head.remaining(), Some(Duration::from_millis(500)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(head.remaining(), Some(Duration::ZERO));
    }

    #[test]
    fn a_feed_without_a_range_is_that_of_the_address_it_was_sent_to() {
        let feed = RequestTokens { replica_path: Some("/3/1p"), ..RequestTokens::default() };
        let of = |operation, tokens: &RequestTokens<'static>| {
            let frame = RequestHead {
                frame_bytes: 24,
                resource_number: ResourceType::Document.number(),
                operation_number: OperationType::number(operation),
                activity_id: ActivityId::default(),
            };
            let names = RequestTokens { database_name: Some("d"), collection_name: Some("c"), ..*tokens };
            let channel = Channel { peer: ([127, 0, 0, 1], 1).into(), secure: true };
            head(&frame, &names, None, channel).unwrap().range_id().map(str::to_owned)
        };
        assert_eq!(of(OperationType::ReadFeed, &feed).as_deref(), Some("3"));
        assert_eq!(of(OperationType::Query, &feed).as_deref(), Some("3"));
        let named = RequestTokens { partition_key_range_id: Some("1"), ..feed };
        assert_eq!(of(OperationType::Query, &named).as_deref(), Some("1"));
        let keyed = RequestTokens { partition_key: Some("[1]"), ..feed };
        assert_eq!(of(OperationType::Query, &keyed), None);
        assert_eq!(of(OperationType::Create, &feed), None);
        for path in ["M/1p", "/apps/x/services/y", ""] {
            assert_eq!(
                of(OperationType::Query, &RequestTokens { replica_path: Some(path), ..feed }),
                None,
                "{path}"
            );
        }
    }

    #[test]
    fn a_form_that_does_not_exist_is_refused_by_name() {
        let check = |tokens: &RequestTokens<'_>| {
            let head = read(ResourceType::Document, OperationType::Read, tokens)?;
            head.check_form()
        };
        let good = RequestTokens {
            client_version: Some("2018-09-17"),
            continuation_limit_kib: Some(1),
            supported_serialization_formats: Some(FORMAT_BITS),
            ..RequestTokens::default()
        };
        let newer = RequestTokens { supported_serialization_formats: Some(9), ..good };
        for tokens in [good, newer, RequestTokens { client_version: Some(""), ..good }] {
            check(&tokens).unwrap();
        }
        for (tokens, part) in [
            (RequestTokens { client_version: Some("1"), ..good }, "'x-ms-version'"),
            (RequestTokens { continuation_limit_kib: Some(0), ..good }, "continuationtokenlimitinkb'"),
            (RequestTokens { supported_serialization_formats: Some(8), ..good }, "00c4"),
        ] {
            let error = check(&tokens).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_token_that_would_change_an_items_life_is_not_ignored() {
        let tokens = RequestTokens { time_to_live_seconds: Some(5), ..RequestTokens::default() };
        let error = read(ResourceType::Document, OperationType::Create, &tokens).unwrap_err();
        assert!(error.to_string().contains("timeToLiveInSeconds"), "{error}");
    }
}
