//! The recorded requests of the .NET client, in their order, with the ids, tokens and etags of this server and otherwise
//! unchanged. Each answer has everything that the recorded one had, which the client accepted.

use direct::{Call, TlsClient};
use document::{Value, parse_json};
use rntbd::{AnswerHead, AnswerTokens, HEAD_BYTES, PAYLOAD_LENGTH_BYTES, RequestHead, RequestTokens};

use crate::client::Server;
use crate::direct::{Fixture, base64};

/// A recorded request, and the answer to it.
struct Exchange {
    name: &'static str,
    request: Vec<u8>,
    /// The answer to the bulk request was not recorded.
    answer: Option<Vec<u8>>,
}

fn exchanges() -> Vec<Exchange> {
    let lines = include_str!("../../../rntbd/tests/vectors/dotnet.txt").lines();
    let rows = lines.filter(|line| !line.starts_with('#')).map(|line| {
        let mut parts = line.split('\t');
        let mut next = || parts.next().unwrap();
        (next(), next(), bytes(next()))
    });
    let rows: Vec<_> = rows.filter(|(name, ..)| !name.starts_with("context")).collect();
    let answer =
        |name: &str| rows.iter().find(|row| (row.0, row.1) == (name, "answer")).map(|row| row.2.clone());
    let requests = rows.iter().filter(|(_, direction, _)| *direction == "request");
    requests
        .map(|(name, _, request)| Exchange { name, request: request.clone(), answer: answer(name) })
        .collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().map(|digit| (digit as char).to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The answers of this server that later requests repeat.
#[derive(Default)]
struct Said {
    session_token: Option<String>,
    etag: Option<String>,
    continuation: Option<String>,
}

/// Sends a recorded request with this server's names and ids.
async fn replay(client: &mut TlsClient, exchange: &Exchange, rid: &str, said: &Said) -> direct::Reply {
    let head = RequestHead::parse(&exchange.request, 1 << 16).unwrap().unwrap();
    let (frame, rest) = exchange.request.split_at(head.frame_bytes);
    let recorded = RequestTokens::decode(&frame[HEAD_BYTES..]).unwrap();
    let resource_id = base64(rid);
    let session_token = said.session_token.as_ref().map(|token| format!("0:{token}"));
    let tokens = RequestTokens {
        authorization: None,
        date: None,
        database_name: recorded.database_name.map(|_| "db"),
        resource_id: recorded.resource_id.map(|_| resource_id.as_slice()),
        collection_rid: recorded.collection_rid.map(|_| rid),
        session_token: recorded.session_token.and(session_token.as_deref()),
        match_etag: recorded.match_etag.and(said.etag.as_deref()),
        continuation: recorded.continuation.and(said.continuation.as_deref()),
        // A year before the requests, as recorded.
        if_modified_since: recorded.if_modified_since.map(|_| "Mon, 14 Nov 2022 22:13:20 GMT"),
        // The test's own client numbers its requests.
        transport_request_id: None,
        payload_present: None,
        ..recorded
    };
    let payload = recorded.has_payload().then(|| &rest[PAYLOAD_LENGTH_BYTES..]);
    let (resource_type, operation_type) = (head.resource_type().unwrap(), head.operation_type().unwrap());
    client.call(&Call { resource_type, operation_type, tokens, payload }).await.unwrap()
}

/// Checks that an answer has everything that the recorded one has: status, tokens, and the members of its body.
fn judge(exchange: &Exchange, ours: &direct::Reply) {
    let name = exchange.name;
    let Some(answer) = &exchange.answer else { return assert_eq!(ours.status, 200, "{name}") };
    let head = AnswerHead::parse(answer, 1 << 16).unwrap().unwrap();
    let (frame, rest) = answer.split_at(head.frame_bytes);
    let recorded = AnswerTokens::decode(&frame[HEAD_BYTES..]).unwrap();
    assert_eq!(ours.status, head.status, "{name}: {}", ours.text());
    let found = ours.tokens();
    // Databases and definitions are in no range, scripts in none here. The recorded answers name range 0 nevertheless, which the client does not need.
    let is_in_range = !["database", "barrier", "stored-procedure"].iter().any(|part| name.contains(part));
    for (token, recorded, found) in [
        ("sessionToken", is_in_range && recorded.session_token.is_some(), found.session_token.is_some()),
        ("eTag", recorded.etag.is_some(), found.etag.is_some()),
        ("continuationToken", recorded.continuation.is_some(), found.continuation.is_some()),
        ("ownerFullName", recorded.owner_full_name.is_some(), found.owner_full_name.is_some()),
        ("ownerId", recorded.owner_id.is_some(), found.owner_id.is_some()),
        (
            "partitionKeyRangeId",
            is_in_range && recorded.partition_key_range_id.is_some(),
            found.partition_key_range_id.is_some(),
        ),
        ("queryMetrics", recorded.query_metrics.is_some(), found.query_metrics.is_some()),
        ("indexUtilization", recorded.index_utilization.is_some(), found.index_utilization.is_some()),
        ("requestCharge", true, found.request_charge.is_some()),
        ("LSN", true, found.lsn.is_some()),
        ("localLSN", true, found.local_lsn.is_some()),
        ("quorumAckedLocalLSN", true, found.quorum_acked_local_lsn == found.local_lsn),
        ("currentReplicaSetSize", true, found.current_replica_set_size == Some(1)),
    ] {
        assert!(found || !recorded, "{name}: no {token}");
    }
    // The recorded server had more databases.
    let least = if is_in_range { recorded.item_count } else { recorded.item_count.map(|_| 1) };
    assert!(found.item_count >= least, "{name}: {:?}", found.item_count);
    assert_eq!(found.substatus.unwrap_or_default(), recorded.substatus.unwrap_or_default(), "{name}");
    assert_eq!(ours.payload.is_some(), recorded.has_payload(), "{name}");
    let Some(payload) = &ours.payload else { return };
    match (members(payload), members(&rest[PAYLOAD_LENGTH_BYTES..])) {
        (Some(ours), Some(recorded)) => {
            let missing: Vec<_> = recorded.iter().filter(|member| !ours.contains(member)).collect();
            assert!(missing.is_empty(), "{name}: {missing:?}");
        }
        // Results of a batch, as rows.
        (ours, recorded) => assert_eq!(ours, recorded, "{name}"),
    }
}

fn members(json: &[u8]) -> Option<Vec<String>> {
    match parse_json(json).ok()? {
        Value::Object(object) => Some(object.iter().map(|(name, _)| name.to_owned()).collect()),
        _ => None,
    }
}

#[tokio::test]
async fn every_recorded_request_of_dotnet_is_answered_as_its_client_needs() {
    let (fixture, mut client, mut said) = (Fixture::empty().await, None, Said::default());
    let (mut rid, mut replayed) = (String::new(), 0);
    for exchange in exchanges() {
        let client = match &mut client {
            Some(client) => client,
            none => none.insert(fixture.connect().await),
        };
        if exchange.name == "query-order-by-page-1" {
            // The recorded container had one item more, whose creation was not recorded.
            fixture.server.create("q", r#"{"id":"9","pk":"q","n":1}"#).await.expect_status(201);
        }
        let ours = replay(client, &exchange, &rid, &said).await;
        judge(&exchange, &ours);
        replayed += 1;
        let tokens = ours.tokens();
        let known = |new: Option<&str>, old: Option<String>| new.map(str::to_owned).or(old);
        said.session_token = known(tokens.session_token, said.session_token);
        said.continuation = known(tokens.continuation, said.continuation);
        // The next read repeats the etag of an item, the next feed that of a change feed.
        if ["create", "change-feed"].contains(&exchange.name) {
            said.etag = tokens.etag.map(str::to_owned);
        }
        if exchange.name == "read-database-404" {
            rid = make(&fixture.server).await;
        }
    }
    assert_eq!(replayed, 23);
}

/// Creates the resources that the client created by HTTP, and returns the resource id of the container.
async fn make(server: &Server) -> String {
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let container = server.create_container("c", "").await.expect_status(201);
    let script = r#"{"id":"sp","body":"function () {}"}"#;
    server.post("/dbs/db/colls/c/sprocs", script).send().await.expect_status(201);
    container.string("_rid")
}
