//! The recorded frames of the .NET client, in their order: that which opens the connection as it is, requests with the ids,
//! tokens and etags of this server and otherwise unchanged. Each answer has everything that the recorded one had, which the
//! client accepted, and the same rows and results.

use std::collections::BTreeMap;

use direct::{Call, TlsClient};
use document::{Value, parse_json};
use hybridrow::{decode_operations, decode_results, is_hybrid_row};
use rntbd::{
    AnswerHead, AnswerTokens, ContextAnswer, HEAD_BYTES, PAYLOAD_LENGTH_BYTES, RequestHead, RequestTokens,
};

use crate::client::Server;
use crate::direct::{Fixture, account, base64};

/// A recorded request, and the answer to it.
struct Exchange {
    name: &'static str,
    request: Vec<u8>,
    /// The answer to the bulk request was not recorded.
    answer: Option<Vec<u8>>,
}

/// A line of the recording: name, direction, bytes.
type Row = (&'static str, &'static str, Vec<u8>);

fn recording() -> Vec<Row> {
    let lines = include_str!("../../../rntbd/tests/vectors/dotnet.txt").lines();
    let rows = lines.filter(|line| !line.starts_with('#')).map(|line| {
        let mut parts = line.split('\t');
        let mut next = || parts.next().unwrap();
        (next(), next(), bytes(next()))
    });
    rows.collect()
}

/// Returns the recorded bytes of that name and direction.
fn recorded(name: &str, direction: &str) -> Option<Vec<u8>> {
    recording().into_iter().find(|row| (row.0, row.1) == (name, direction)).map(|row| row.2)
}

/// The requests. They are recorded by kind of operation; the client deleted last what it had queried before.
fn exchanges() -> Vec<Exchange> {
    let requests = recording().into_iter().filter(|(_, direction, _)| *direction == "request");
    let mut exchanges: Vec<_> = requests
        .map(|(name, _, request)| Exchange { name, request, answer: recorded(name, "answer") })
        .collect();
    let at = |name| exchanges.iter().position(|exchange: &Exchange| exchange.name == name).unwrap();
    let (from, to) = (at("delete"), at("batch-bulk"));
    let delete = exchanges.remove(from);
    exchanges.insert(to, delete);
    exchanges
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
    let Some(answer) = &exchange.answer else { return judge_bulk(exchange, ours) };
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
    let recorded = &rest[PAYLOAD_LENGTH_BYTES..];
    assert_eq!(is_hybrid_row(payload), is_hybrid_row(recorded), "{name}");
    if is_hybrid_row(payload) {
        return assert_eq!(results(payload), results(recorded), "{name}");
    }
    let [mut ours, mut recorded] = [payload, recorded].map(|json| content(&parse_json(json).unwrap()));
    if name == "query-databases" {
        // The recorded server had more databases, with other names.
        for answer in [&mut ours, &mut recorded] {
            let Content::Object(members) = answer else { panic!("{name}: {answer:?}") };
            members.remove("_count");
            let Some(Content::Rows(rows)) = members.get_mut("Databases") else { panic!("{name}") };
            rows.truncate(1);
            let Content::Object(database) = &mut rows[0] else { panic!("{name}") };
            database.insert("id".to_owned(), Content::OfType("string"));
        }
    }
    assert_eq!(ours, recorded, "{name}");
}

/// What clients read of a JSON value: members in any order, rows in any order, and of what differs from server to server
/// the type.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Object(BTreeMap<String, Content>),
    Rows(Vec<Content>),
    Json(String),
    OfType(&'static str),
}

/// The members whose values are of one server, one run or one wording.
const OF_SERVER: [&str; 6] = ["_rid", "_self", "_etag", "_ts", "_lsn", "message"];

fn content(value: &Value) -> Content {
    match value {
        Value::Object(object) => {
            let member = |(name, value): (&str, &Value)| {
                let content = if OF_SERVER.contains(&name) {
                    Content::OfType(value.type_name())
                } else {
                    content(value)
                };
                (name.to_owned(), content)
            };
            Content::Object(object.iter().map(member).collect())
        }
        Value::Array(list) => {
            let mut rows: Vec<_> = list.iter().map(content).collect();
            rows.sort();
            Content::Rows(rows)
        }
        value => Content::Json(value.to_json()),
    }
}

/// Returns the results of a batch, in their order: status, substatus, whether they have an etag and a charge, and the item.
fn results(rows: &[u8]) -> Vec<(i32, i32, bool, bool, Option<Content>)> {
    let decoded = decode_results(rows).unwrap();
    let result = |result: &hybridrow::OperationResult<'_>| {
        let item = result.resource_body.map(|body| content(&parse_json(body).unwrap()));
        let substatus = result.substatus.unwrap_or_default();
        (result.status, substatus, result.etag.is_some(), result.charge.is_some(), item)
    };
    decoded.iter().map(result).collect()
}

/// Opens a connection by the recorded frame. The client fails without the server's name and version.
async fn connect(fixture: &Fixture) -> TlsClient {
    let mut client = TlsClient::reach(fixture.server.address, &fixture.connector, account()).await.unwrap();
    let request = recorded("context", "context-request").unwrap();
    client.sender.write(&request).await.unwrap();
    let greeting = client.receiver.greeting().await.unwrap();
    let answer = recorded("context-answer", "context-answer").unwrap();
    let head = AnswerHead::parse(&answer, 1 << 16).unwrap().unwrap();
    let accepted = ContextAnswer::decode(&answer[HEAD_BYTES..]).unwrap();
    assert!(accepted.server_agent.is_some() && accepted.server_version.is_some());
    assert_eq!((greeting.status, greeting.activity_id), (head.status, head.activity_id));
    for told in [greeting.server_agent, greeting.server_version] {
        assert!(told.is_some_and(|text| !text.is_empty()));
    }
    client
}

/// Checks the answer to the bulk request, of which only the request was recorded: it created items.
fn judge_bulk(exchange: &Exchange, ours: &direct::Reply) {
    let head = RequestHead::parse(&exchange.request, 1 << 16).unwrap().unwrap();
    let operations = decode_operations(&exchange.request[head.frame_bytes + PAYLOAD_LENGTH_BYTES..]).unwrap();
    assert!(operations.len() > 10);
    let results = results(ours.payload.as_deref().unwrap());
    let statuses: Vec<_> = results.iter().map(|result| (result.0, result.1)).collect();
    assert_eq!((ours.status, statuses), (200, vec![(201, 0); operations.len()]));
}

#[tokio::test]
async fn every_recorded_request_of_dotnet_is_answered_as_its_client_needs() {
    let (fixture, mut client, mut said) = (Fixture::empty().await, None, Said::default());
    let (mut rid, mut replayed) = (String::new(), 0);
    for exchange in exchanges() {
        let client = match &mut client {
            Some(client) => client,
            none => none.insert(connect(&fixture).await),
        };
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
