//! Batches and bulk requests as `HybridRow`, the form of the .NET client: the same requests in JSON have the same results.

use document::Value;
use hybridrow::{Operation, OperationKind, OperationResult, decode_results, encode_operations};

use crate::client::{Reply, Server};

const PATH: &str = "/dbs/db/colls/c/docs";

/// Sends a batch of the key "a" if it is atomic, otherwise a bulk request.
async fn send(server: &Server, atomic: bool, body: Vec<u8>) -> Reply {
    let request = server.post(PATH, "").bytes(body).header("x-ms-cosmos-is-batch-request", "True");
    let request = request.header("x-ms-cosmos-batch-atomic", if atomic { "True" } else { "False" });
    let request =
        request.header("x-ms-cosmos-batch-continue-on-error", if atomic { "False" } else { "True" });
    let request = if atomic { request.key("a") } else { request };
    request.send().await
}

async fn rows(server: &Server, atomic: bool, operations: &[Operation<'_>]) -> Reply {
    send(server, atomic, encode_operations(operations)).await
}

fn results(reply: &Reply) -> Vec<OperationResult<'_>> {
    decode_results(&reply.body).unwrap_or_else(|error| panic!("{error}: {}", reply.text()))
}

fn statuses(reply: &Reply) -> Vec<i32> {
    results(reply).iter().map(|result| result.status).collect()
}

/// The results of both forms for an operation: status, substatus, charge, whether it has an etag and a body.
pub(crate) type Told = (i64, i64, f64, bool, bool);

pub(crate) fn told(reply: &Reply) -> Vec<Told> {
    told_in(&reply.body)
}

/// Reads the results in the body of an answer, in either form.
pub(crate) fn told_in(body: &[u8]) -> Vec<Told> {
    if hybridrow::is_hybrid_row(body) {
        let of = |result: OperationResult<'_>| {
            let charge = result.charge.expect("a charge");
            let substatus = i64::from(result.substatus.expect("a substatus"));
            (
                i64::from(result.status),
                substatus,
                charge,
                result.etag.is_some(),
                result.resource_body.is_some(),
            )
        };
        return decode_results(body).expect("results").into_iter().map(of).collect();
    }
    let of = |result: &Value| {
        let number = |name: &str| result.get(name).and_then(Value::as_f64);
        let has = |name: &str| result.get(name).is_some();
        let status = number("statusCode").expect("a status") as i64;
        let substatus = number("subStatusCode").unwrap_or_default() as i64;
        (status, substatus, number("requestCharge").expect("a charge"), has("eTag"), has("resourceBody"))
    };
    let results = document::parse_json(body).expect("JSON");
    results.as_array().expect("results").iter().map(of).collect()
}

#[tokio::test]
async fn both_forms_of_a_request_are_answered_alike() {
    use OperationKind::{Create, Delete, Patch, Read, Replace, Upsert};
    let add = r#"{"operations":[{"op":"incr","path":"/n","value":1}]}"#;
    let failing =
        r#"{"condition":"from c where c.n = 9","operations":[{"op":"incr","path":"/n","value":1}]}"#;
    let one = r#"{"id":"1","pk":"a","n":1}"#;
    let operation = |kind, id: &'static str, text: &'static str| Operation {
        id: (!id.is_empty()).then_some(id),
        resource_body: (!text.is_empty()).then_some(text.as_bytes()),
        ..Operation::new(kind)
    };
    let create = || operation(Create, "", one);
    let requests: Vec<(Vec<Operation<'_>>, u16)> = vec![
        (vec![create(), operation(Upsert, "", r#"{"id":"2","pk":"a"}"#), operation(Read, "1", "")], 200),
        (
            vec![
                create(),
                operation(Patch, "1", add),
                operation(Replace, "1", one),
                operation(Delete, "1", ""),
            ],
            200,
        ),
        (vec![create(), create(), operation(Read, "1", "")], 207),
        (vec![create(), operation(Patch, "1", failing)], 207),
        (vec![operation(Read, "none", "")], 207),
        (vec![create(), Operation { if_none_match: Some("*"), ..operation(Read, "1", "") }], 207),
        (vec![create(), Operation { if_match: Some("*"), ..operation(Read, "1", "") }], 207),
        (vec![create(), Operation { if_match: Some("\"x\""), ..operation(Delete, "1", "") }], 207),
        (vec![Operation { minimal_return: Some(true), ..create() }, operation(Read, "1", "")], 200),
        (vec![operation(Replace, "1", "")], 207),
        (vec![operation(Create, "", "nonsense")], 207),
    ];
    for atomic in [true, false] {
        for (operations, status) in &requests {
            let (by_rows, by_json) = (Server::with_container("").await, Server::with_container("").await);
            let keyed: Vec<Operation<'_>> =
                operations.iter().map(|operation| with_key(operation, atomic)).collect();
            let answer = rows(&by_rows, atomic, &keyed).await.expect_status(*status);
            let json = json_of(&keyed);
            if let Some(json) = json {
                let same = send(&by_json, atomic, json.into_bytes()).await.expect_status(*status);
                assert_eq!(told(&answer), told(&same), "atomic {atomic}: {operations:?}");
            }
            assert_eq!(statuses(&answer).len(), operations.len());
        }
    }
}

fn with_key<'a>(operation: &Operation<'a>, atomic: bool) -> Operation<'a> {
    Operation { partition_key: (!atomic).then_some(r#"["a"]"#), ..operation.clone() }
}

/// The same operations in JSON; none if a body is not JSON.
pub(crate) fn json_of(operations: &[Operation<'_>]) -> Option<String> {
    let one = |operation: &Operation<'_>| {
        let mut text = format!(r#"{{"operationType":"{}""#, operation.kind);
        let mut member = |name: &str, value: Option<String>| {
            text.extend(value.map(|value| format!(r#","{name}":{value}"#)));
        };
        let quoted = |value: Option<&str>| value.map(|value| Value::String(value.to_owned()).to_json());
        let body = operation.resource_body.map(|body| String::from_utf8_lossy(body).into_owned());
        if body.as_ref().is_some_and(|body| document::parse_json(body.as_bytes()).is_err()) {
            return None;
        }
        member("id", quoted(operation.id));
        member("partitionKey", quoted(operation.partition_key));
        member("ifMatch", quoted(operation.if_match));
        member("ifNoneMatch", quoted(operation.if_none_match));
        member("minimalReturnPreference", operation.minimal_return.map(|minimal| minimal.to_string()));
        member("resourceBody", body);
        Some(text + "}")
    };
    let operations: Option<Vec<String>> = operations.iter().map(one).collect();
    operations.map(|operations| format!("[{}]", operations.join(",")))
}

#[tokio::test]
async fn a_batch_whose_results_exceed_the_limit_names_the_operation_that_does() {
    let text = format!(r#"{{"id":"1","pk":"a","x":"{}"}}"#, "x".repeat(1_500_000));
    let create = Operation { resource_body: Some(text.as_bytes()), ..Operation::new(OperationKind::Create) };
    let read = Operation { id: Some("1"), ..Operation::new(OperationKind::Read) };
    let operations = [create, read.clone(), read.clone(), read.clone()];
    let json = json_of(&operations).unwrap();
    for body in [encode_operations(&operations), json.into_bytes()] {
        let server = Server::with_container("").await;
        let refused = send(&server, true, body).await.expect_status(207);
        let statuses: Vec<_> = told(&refused).iter().map(|told| (told.0, told.1)).collect();
        assert_eq!(statuses, [(424, 0), (424, 0), (413, 0), (424, 0)]);
        server.read("a", "1").await.expect_status(404);
    }
}

#[tokio::test]
async fn an_item_expires_that_a_batch_has_written() {
    // T9 and T15: the ttl counts from the batch's own time, and the id is free afterwards.
    let server = Server::with_container(r#""defaultTtl":-1"#).await;
    let create = Operation {
        resource_body: Some(br#"{"id":"1","pk":"a","ttl":10}"#),
        ..Operation::new(OperationKind::Create)
    };
    let read = Operation { id: Some("1"), ..Operation::new(OperationKind::Read) };
    assert_eq!(statuses(&rows(&server, true, std::slice::from_ref(&create)).await), [201]);
    server.clock.advance(std::time::Duration::from_secs(9));
    assert_eq!(statuses(&rows(&server, true, std::slice::from_ref(&read)).await), [200]);
    server.clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(statuses(&rows(&server, true, std::slice::from_ref(&read)).await), [404]);
    assert_eq!(statuses(&rows(&server, true, &[create]).await), [201]);
}

#[tokio::test]
async fn a_body_that_is_no_stream_of_operations_is_refused_by_name() {
    let server = Server::with_container("").await;
    let read = || Operation { id: Some("1"), ..Operation::new(OperationKind::Read) };
    let refusals = [
        (b"\x81".to_vec(), "ends at byte 1, inside of a row's schema"),
        (encode_operations(&[]), "Batch request has no operations."),
        (encode_operations(&vec![read(); 101]), "It has 101, the limit is 100."),
    ];
    for (body, part) in refusals {
        let reply = send(&server, true, body).await.expect_error(400, 0, "BadRequest");
        assert!(reply.message().contains(part), "{}", reply.message());
    }
    let alone = [
        Operation { binary_id: Some(b"x"), ..read() },
        Operation { effective_partition_key: Some(b"x"), ..read() },
        Operation { time_to_live_seconds: Some(5), ..read() },
        Operation { indexing_directive: Some("Perhaps"), ..read() },
    ];
    for operation in alone {
        assert_eq!(statuses(&rows(&server, true, &[operation]).await.expect_status(207)), [400]);
    }
}

/// The largest body of a bulk request, which the .NET client fills.
pub(crate) const BULK_BYTES: usize = 2_202_010;

/// A bulk body of at most so many bytes, and hardly fewer: two upserts of one item under the key "a".
pub(crate) fn bulk_of(bytes: usize) -> Vec<u8> {
    let text = format!(r#"{{"id":"1","pk":"a","x":"{}"}}"#, "x".repeat(1_000_000));
    let operation = Operation {
        partition_key: Some(r#"["a"]"#),
        resource_body: Some(text.as_bytes()),
        ..Operation::new(OperationKind::Upsert)
    };
    let two = encode_operations(&[operation.clone(), operation.clone()]);
    let mut filled = text.clone();
    filled.insert_str(1, &" ".repeat(bytes - two.len() - 1));
    let filled = Operation { resource_body: Some(filled.as_bytes()), ..operation.clone() };
    let body = encode_operations(&[filled, operation]);
    assert!((bytes - 1000..=bytes).contains(&body.len()), "{}", body.len());
    body
}

#[tokio::test]
async fn a_bulk_body_may_have_what_the_client_fills_it_with() {
    let server = Server::with_container("").await;
    let full = bulk_of(BULK_BYTES);
    assert_eq!(statuses(&send(&server, false, full).await.expect_status(200)), [201, 200]);
    let more = bulk_of(BULK_BYTES + 2000);
    send(&server, false, more).await.expect_error(413, 0, "RequestEntityTooLarge");
}

#[tokio::test]
async fn a_batch_of_writes_does_not_wait_for_what_the_client_has_seen() {
    let server = Server::with_container("").await;
    let upsert =
        Operation { resource_body: Some(br#"{"id":"1","pk":"a"}"#), ..Operation::new(OperationKind::Upsert) };
    let read = Operation { id: Some("1"), ..Operation::new(OperationKind::Read) };
    for (operations, status) in [(vec![upsert.clone()], 200), (vec![upsert, read], 404)] {
        let request = server.post(PATH, "").bytes(encode_operations(&operations)).key("a");
        let request = request.header("x-ms-cosmos-is-batch-request", "True");
        let request =
            request.header("x-ms-cosmos-batch-atomic", "True").header("x-ms-session-token", "0:-1#999999");
        request.send().await.expect_status(status);
    }
}
