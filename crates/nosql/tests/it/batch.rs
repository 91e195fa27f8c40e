//! Transactional batch and bulk.

use document::Value;

use crate::client::{Reply, Server};

async fn batch(server: &Server, pk: &str, body: &str) -> Reply {
    let request = server.post("/dbs/db/colls/c/docs", body).key(pk);
    let request =
        request.header("x-ms-cosmos-is-batch-request", "True").header("x-ms-cosmos-batch-atomic", "True");
    request.header("x-ms-cosmos-batch-continue-on-error", "False").send().await
}

async fn bulk(server: &Server, go_on: &str, body: &str) -> Reply {
    let request = server.post("/dbs/db/colls/c/docs", body);
    let request =
        request.header("x-ms-cosmos-is-batch-request", "true").header("x-ms-cosmos-batch-atomic", "false");
    let request = request.header("x-ms-documentdb-partitionkeyrangeid", "0");
    request.header("x-ms-cosmos-batch-continue-on-error", go_on).send().await
}

fn codes(reply: &Reply) -> Vec<i64> {
    let list = reply.json();
    let code = |result: &Value| result.get("statusCode").and_then(Value::as_i64).unwrap();
    list.as_array().unwrap_or_else(|| panic!("{}", reply.text())).iter().map(code).collect()
}

#[tokio::test]
async fn a_batch_succeeds_as_a_whole() {
    let server = Server::with_container("").await;
    server.create("a", r#"{"id":"old","pk":"a"}"#).await.expect_status(201);
    server.create("a", r#"{"id":"gone","pk":"a"}"#).await.expect_status(201);
    let body = r#"[
        {"operationType":"Create","resourceBody":{"id":"1","pk":"a"}},
        {"operationType":"Upsert","resourceBody":{"id":"old","pk":"a","n":1}},
        {"operationType":"Upsert","resourceBody":{"id":"new","pk":"a"}},
        {"operationType":"Replace","id":"1","resourceBody":{"id":"1","pk":"a","n":2}},
        {"operationType":"Patch","id":"1","resourceBody":{"operations":[{"op":"incr","path":"/n","value":1}]}},
        {"operationType":"Read","id":"1"},
        {"operationType":"Delete","id":"gone"}]"#;
    let reply = batch(&server, "a", body).await.expect_status(200);
    assert_eq!(codes(&reply), [201, 200, 201, 200, 200, 200, 204]);
    let results = reply.json();
    let read = results.as_array().unwrap()[5].get("resourceBody").unwrap().clone();
    assert_eq!(read.get("n"), Some(&Value::Int(3)), "a read sees what its neighbours wrote");
    assert!(results.as_array().unwrap()[0].get("eTag").is_some());
    assert!(reply.header("x-ms-session-token").is_some());
    assert!(reply.header("x-ms-request-charge").unwrap().parse::<f64>().unwrap() > 10.0);
    server.read("a", "gone").await.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn a_batch_fails_as_a_whole() {
    let server = Server::with_container("").await;
    for (bad, status) in [
        (r#"{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}}"#, 409),
        (r#"{"operationType":"Replace","id":"none","resourceBody":{"id":"none","pk":"a"}}"#, 404),
        (r#"{"operationType":"Delete","id":"none"}"#, 404),
        (r#"{"operationType":"Create","resourceBody":{"id":"2","pk":"b"}}"#, 400),
        (r#"{"operationType":"Create","resourceBody":{"id":"2"}}"#, 400),
        (r#"{"operationType":"Replace","id":"1","resourceBody":{"id":"1","pk":"a"},"ifMatch":"x"}"#, 412),
        (
            r#"{"operationType":"Patch","id":"1","resourceBody":{"condition":"from c where c.n = 9","operations":[{"op":"set","path":"/x","value":1}]}}"#,
            412,
        ),
        (r#"{"operationType":"Fly","id":"1"}"#, 400),
    ] {
        let body = format!(
            r#"[{{"operationType":"Create","resourceBody":{{"id":"1","pk":"a"}}}},{bad},{{"operationType":"Read","id":"1"}}]"#
        );
        let reply = batch(&server, "a", &body).await.expect_status(207);
        assert_eq!(codes(&reply), [424, status, 424], "{bad}");
        server.read("a", "1").await.expect_error(404, 0, "NotFound");
    }
}

#[tokio::test]
async fn a_batch_is_refused_for_its_size_or_key() {
    let server = Server::with_container("").await;
    let reply = batch(&server, "a", "[]").await.expect_error(400, 0, "BadRequest");
    assert!(reply.message().contains("Batch request has no operations."));
    let one = r#"{"operationType":"Read","id":"1"}"#;
    let reply = batch(&server, "a", &format!("[{}]", vec![one; 101].join(","))).await;
    let reply = reply.expect_error(400, 0, "BadRequest");
    assert!(reply.message().contains("Batch request has more operations than what is supported."));
    let request = server.post("/dbs/db/colls/c/docs", &format!("[{one}]"));
    let request =
        request.header("x-ms-cosmos-is-batch-request", "True").header("x-ms-cosmos-batch-atomic", "True");
    request.send().await.expect_error(400, 0, "BadRequest");
}

#[tokio::test]
async fn minimal_batches_keep_reads() {
    let server = Server::with_container("").await;
    let body = r#"[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}},{"operationType":"Read","id":"1"}]"#;
    let request = server.post("/dbs/db/colls/c/docs", body).key("a").header("prefer", "return=minimal");
    let request =
        request.header("x-ms-cosmos-is-batch-request", "True").header("x-ms-cosmos-batch-atomic", "True");
    let results = request.send().await.expect_status(200).json();
    let has_body = |index: usize| results.as_array().unwrap()[index].get("resourceBody").is_some();
    assert_eq!((has_body(0), has_body(1)), (false, true));
}

#[tokio::test]
async fn bulk_operations_stand_alone() {
    let server = Server::with_container("").await;
    let body = r#"[
        {"operationType":"Create","resourceBody":{"id":"1","pk":"a"},"partitionKey":"[\"a\"]"},
        {"operationType":"Create","resourceBody":{"id":"1","pk":"b"},"partitionKey":"[\"b\"]"},
        {"operationType":"Create","resourceBody":{"id":"1","pk":"a"},"partitionKey":"[\"a\"]"},
        {"operationType":"Create","resourceBody":{"id":"2","pk":"a","ttl":-10},"partitionKey":"[\"a\"]"},
        {"operationType":"Read","id":"1","partitionKey":"[\"b\"]"},
        {"operationType":"Delete","id":"none","partitionKey":"[\"a\"]"},
        {"operationType":"Patch","id":"1","partitionKey":"[\"a\"]","resourceBody":[{"op":"set","path":"/x","value":1}]}]"#;
    let reply = bulk(&server, "true", body).await.expect_status(207);
    assert_eq!(codes(&reply), [201, 201, 409, 400, 200, 404, 200]);
    server.read("a", "1").await.expect_status(200);
    server.read("b", "1").await.expect_status(200);
    let all_good = r#"[{"operationType":"Read","id":"1","partitionKey":"[\"a\"]"}]"#;
    bulk(&server, "true", all_good).await.expect_status(200);
}

#[tokio::test]
async fn bulk_stops_at_a_failure_if_told_so() {
    let server = Server::with_container("").await;
    let create = |id: &str| {
        format!(
            r#"{{"operationType":"Create","resourceBody":{{"id":"{id}","pk":"a"}},"partitionKey":"[\"a\"]"}}"#
        )
    };
    let body = format!("[{},{},{}]", create("1"), create("1"), create("2"));
    let reply = bulk(&server, "false", &body).await.expect_status(207);
    assert_eq!(codes(&reply), [201, 409, 424]);
    server.read("a", "1").await.expect_status(200);
    server.read("a", "2").await.expect_error(404, 0, "NotFound");
    let request = server.post("/dbs/db/colls/c/docs", &body).header("x-ms-cosmos-is-batch-request", "true");
    request.header("x-ms-documentdb-partitionkeyrangeid", "9").send().await.expect_error(410, 1002, "Gone");
}

#[tokio::test]
async fn the_answer_to_a_bulk_request_is_bounded() {
    let server = Server::with_container("").await;
    let item = format!("{{\"id\":\"1\",\"pk\":\"a\",\"x\":\"{}\"}}", "x".repeat(1_500_000));
    server.create("a", &item).await.expect_status(201);
    let read = r#"{"operationType":"Read","id":"1","partitionKey":"[\"a\"]"}"#;
    let patch = r#"{"operationType":"Patch","id":"1","partitionKey":"[\"a\"]","resourceBody":[{"op":"incr","path":"/n","value":1}]}"#;
    let create = r#"{"operationType":"Create","resourceBody":{"id":"2","pk":"a"},"partitionKey":"[\"a\"]"}"#;
    for go_on in ["true", "false"] {
        let body = format!("[{create},{},{read}]", vec![patch; 40].join(","));
        let reply = bulk(&server, go_on, &body).await.expect_status(207);
        assert!(reply.body.len() < 4 * 1024 * 1024 + 100_000, "{} bytes", reply.body.len());
        let results = reply.json();
        let results = results.as_array().unwrap();
        let has_body = |index: usize| results[index].get("resourceBody").is_some();
        assert_eq!(codes(&reply)[..4], [201, 200, 200, 200], "writes keep their status");
        assert_eq!(codes(&reply)[41], 413);
        assert_eq!(results[41].get("subStatusCode"), Some(&Value::Int(3402)));
        assert_eq!([has_body(0), has_body(1), has_body(2), has_body(3)], [true, true, true, false]);
        let delete = server.delete("/dbs/db/colls/c/docs/2").key("a");
        delete.send().await.expect_status(204);
    }
    assert_eq!(server.read("a", "1").await.member("n"), Value::Int(80), "every patch happened");
    let reads = format!("[{}]", vec![read; 100].join(","));
    let reply = bulk(&server, "true", &reads).await.expect_status(207);
    assert_eq!(codes(&reply), [vec![200; 2], vec![413; 98]].concat());
    let reply = bulk(&server, "false", &reads).await.expect_status(207);
    assert_eq!(codes(&reply), [vec![200; 2], vec![413], vec![424; 97]].concat());
}
