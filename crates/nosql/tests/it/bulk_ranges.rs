//! Bulk requests that name a range: operations on items of other ranges are refused with the status by which clients read their
//! list of ranges again, and nothing is done.

use direct::Call;
use hybridrow::{Operation, OperationKind, encode_operations};
use rntbd::OperationType::Batch;

use crate::client::Server;
use crate::direct::{Fixture, ITEMS};
use crate::hybrid_row::{json_of, told, told_in};
use crate::ranges::{DOCS, RANGE_ID, four_ranges_in, item};

/// The refusal: status and substatus.
const GONE: (i64, i64) = (410, 1002);

/// One operation of each kind on an item of that key, with the key beside it or in the body alone.
fn operations<'a>(key: &'a str, body: &'a str) -> Vec<Operation<'a>> {
    let with_body = |kind| Operation { resource_body: Some(body.as_bytes()), ..Operation::new(kind) };
    let keyed = |operation| Operation { partition_key: Some(key), ..operation };
    let named = |kind| keyed(Operation { id: Some("new"), ..Operation::new(kind) });
    let patch = br#"{"operations":[{"op":"set","path":"/n","value":1}]}"#;
    vec![
        keyed(with_body(OperationKind::Create)),
        with_body(OperationKind::Upsert),
        Operation { resource_body: Some(body.as_bytes()), ..named(OperationKind::Replace) },
        Operation { resource_body: Some(patch), ..named(OperationKind::Patch) },
        named(OperationKind::Read),
        named(OperationKind::Delete),
    ]
}

async fn by_http(server: &Server, range: &str, body: Vec<u8>) -> Vec<(i64, i64)> {
    let request = server.post(DOCS, "").bytes(body).header(RANGE_ID, range);
    let request = request.header("x-ms-cosmos-is-batch-request", "True");
    let request = request.header("x-ms-cosmos-batch-atomic", "False");
    let reply = request.header("x-ms-cosmos-batch-continue-on-error", "True").send().await;
    told(&reply).iter().map(|result| (result.0, result.1)).collect()
}

async fn by_direct_mode(fixture: &Fixture, range: &str, body: &[u8]) -> Vec<(i64, i64)> {
    let call = Call::new(Batch, ITEMS).payload(body).with(|tokens| {
        tokens.partition_key_range_id = Some(range);
        tokens.is_batch_atomic = Some(false);
        tokens.should_batch_continue_on_error = Some(true);
    });
    let reply = fixture.connect().await.call(&call).await.unwrap();
    told_in(reply.payload.as_deref().unwrap()).iter().map(|result| (result.0, result.1)).collect()
}

#[tokio::test]
async fn an_operation_of_another_range_is_gone_and_the_others_are_carried_out() {
    let fixture = Fixture::empty().await;
    let server = &fixture.server;
    let keys = four_ranges_in(server, "").await;
    let headers = keys.clone().map(|key| format!(r#"["{key}"]"#));
    let bodies = keys.clone().map(|key| item(&key, "new"));
    let mut mixed = operations(&headers[2], &bodies[2]);
    mixed.splice(3..3, operations(&headers[1], &bodies[1]));
    let done = [(201, 0), (200, 0), (200, 0), (200, 0), (200, 0), (204, 0)];
    let expected = [vec![GONE; 3], done.to_vec(), vec![GONE; 3]].concat();
    let json = json_of(&mixed).unwrap().into_bytes();
    for body in [encode_operations(&mixed), json] {
        assert_eq!(by_http(server, "1", body.clone()).await, expected);
        assert_eq!(by_direct_mode(&fixture, "1", &body).await, expected);
        server.read(&keys[2], "new").await.expect_status(404);
    }
}

#[tokio::test]
async fn a_refusal_for_its_range_is_a_failure_that_stops_those_behind_it() {
    let server = Server::start().await;
    let keys = four_ranges_in(&server, "").await;
    let create = |key: &str| format!(r#"{{"operationType":"Create","resourceBody":{}}}"#, item(key, "new"));
    let body = format!("[{},{},{}]", create(&keys[0]), create(&keys[3]), create(&keys[0]));
    let request = server.post(DOCS, &body).header(RANGE_ID, "0");
    let reply = request.header("x-ms-cosmos-is-batch-request", "True").send().await.expect_status(207);
    let statuses: Vec<_> = told(&reply).iter().map(|result| (result.0, result.1)).collect();
    assert_eq!(statuses, [(201, 0), GONE, (424, 0)]);
    server.read(&keys[3], "new").await.expect_status(404);
}

#[tokio::test]
async fn an_operation_without_a_whole_key_is_refused_for_that() {
    let server = Server::start().await;
    four_ranges_in(&server, "").await;
    let body = r#"[{"operationType":"Read","id":"first"},
        {"operationType":"Read","id":"first","partitionKey":"[\"a\",\"b\"]"}]"#;
    assert_eq!(
        by_http(&server, "3", body.into()).await.iter().map(|result| result.0).collect::<Vec<_>>(),
        [400; 2]
    );
}

/// Clients compute the first range for an absent key, and hash the bits of a negative zero, which arrives as zero.
#[tokio::test]
async fn an_operation_whose_key_clients_hash_otherwise_is_carried_out_in_its_own_range() {
    for (definition, key, member) in [
        (r#"{"paths":["/_partitionKey"],"kind":"Hash","systemKey":true}"#, "[]", ""),
        (r#"{"paths":["/_partitionKey"],"kind":"Hash","version":2,"systemKey":true}"#, "[]", ""),
        (r#"{"paths":["/pk"],"kind":"Hash","version":2}"#, "[0]", r#","pk":-0.0"#),
    ] {
        let server = Server::start().await;
        server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
        let container = format!(r#"{{"id":"c","partitionKey":{definition}}}"#);
        let request = server.post("/dbs/db/colls", &container).header("x-ms-offer-throughput", "20000");
        request.send().await.expect_status(201);
        for range in ["0", "1", "2", "3"] {
            let body = format!(r#"{{"id":"{range}"{member}}}"#);
            let operation =
                format!(r#"[{{"operationType":"Create","partitionKey":"{key}","resourceBody":{body}}}]"#);
            assert_eq!(by_http(&server, range, operation.into()).await, [(201, 0)], "{definition} {range}");
        }
    }
}
