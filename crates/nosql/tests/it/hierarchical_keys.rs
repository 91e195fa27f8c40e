//! Hierarchical partition keys whose items lack levels, as clients address them: `{}` in the header is a missing level.

use document::Value;

use crate::client::{Reply, Request, Server};

const DOCS: &str = "/dbs/db/colls/c/docs";

async fn server(paths: &str, throughput: &str) -> Server {
    let server = Server::start().await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let definition = format!(
        r#"{{"id":"c","partitionKey":{{"paths":{paths},"kind":"MultiHash","version":2}},"defaultTtl":-1}}"#
    );
    let create = server.post("/dbs/db/colls", &definition).header("x-ms-offer-throughput", throughput);
    create.send().await.expect_status(201);
    server
}

fn at(request: Request, key: &str) -> Request {
    request.header("x-ms-documentdb-partitionkey", key)
}

async fn list(server: &Server, key: &str) -> Vec<String> {
    at(server.get(DOCS), key).send().await.expect_status(200).ids("Documents")
}

async fn query(server: &Server, key: &str, text: &str) -> Vec<String> {
    let request = server.post(DOCS, &format!("{{\"query\":\"{text}\"}}"));
    let request = request.header("x-ms-documentdb-isquery", "True");
    at(request, key).send().await.expect_status(200).ids("Documents")
}

async fn feed(server: &Server, key: &str) -> Vec<String> {
    let request = at(server.get(DOCS).header("a-im", "Incremental Feed"), key);
    request.send().await.expect_status(200).ids("Documents")
}

fn codes(reply: &Reply) -> Vec<i64> {
    let code = |result: &Value| result.get("statusCode").and_then(Value::as_i64).unwrap();
    reply.json().as_array().unwrap_or_else(|| panic!("{}", reply.text())).iter().map(code).collect()
}

/// Key, body.
const ITEMS: [(&str, &str); 6] = [
    (r#"["x",{}]"#, r#"{"id":"1","a":"x"}"#),
    (r#"["x",null]"#, r#"{"id":"2","a":"x","b":null}"#),
    (r#"["x","y"]"#, r#"{"id":"3","a":"x","b":"y"}"#),
    (r#"[{},"y"]"#, r#"{"id":"4","b":"y"}"#),
    ("[{},{}]", r#"{"id":"5"}"#),
    ("[null,null]", r#"{"id":"6","a":null,"b":null}"#),
];

#[tokio::test]
async fn missing_levels_are_undefined_and_found_again() {
    for throughput in ["400", "40000"] {
        let server = server(r#"["/a","/b"]"#, throughput).await;
        for (key, body) in ITEMS {
            at(server.post(DOCS, body), key).send().await.expect_status(201);
            at(server.post(DOCS, body).upsert(), key).send().await.expect_status(200);
            server.post(DOCS, body).upsert().send().await.expect_status(200);
            let wrong = if key == "[{},{}]" { "[null,null]" } else { "[{},{}]" };
            at(server.post(DOCS, body).upsert(), wrong).send().await.expect_error(400, 1001, "BadRequest");
        }
        for (n, (key, body)) in ITEMS.into_iter().enumerate() {
            let item = format!("{DOCS}/{}", n + 1);
            for (other, _) in ITEMS {
                let read = at(server.get(&item), other).send().await;
                assert_eq!(read.status, if other == key { 200 } else { 404 }, "{item} under {other}");
            }
            at(server.put(&item, body), key).send().await.expect_status(200);
            let patch = r#"[{"op":"set","path":"/n","value":1}]"#;
            at(server.patch(&item, patch), key).send().await.expect_status(200);
        }
        at(server.get(&format!("{DOCS}/1")), r#"["x"]"#).send().await.expect_error(400, 1001, "BadRequest");
        for (key, expected) in [
            (r#"["x"]"#, &["1", "2", "3"][..]),
            ("[{}]", &["4", "5"]),
            ("[null]", &["6"]),
            (r#"["x",{}]"#, &["1"]),
            (r#"[{},"y"]"#, &["4"]),
            ("[{},{}]", &["5"]),
        ] {
            assert_eq!(list(&server, key).await, expected, "{key}");
            assert_eq!(query(&server, key, "SELECT * FROM c WHERE c.n = 1").await, expected, "{key}");
            assert_eq!(
                query(&server, key, "SELECT * FROM c WHERE IS_DEFINED(c.id)").await,
                expected,
                "{key}"
            );
            assert_eq!(feed(&server, key).await, expected, "{key}");
        }
        let cross = server.query("SELECT * FROM c WHERE NOT IS_DEFINED(c.b)").await;
        assert_eq!(cross.expect_status(200).ids("Documents"), ["1", "5"]);
        at(server.delete(&format!("{DOCS}/5")), "[{},{}]").send().await.expect_status(204);
        let path = "/dbs/db/colls/c/operations/partitionkeydelete";
        at(server.post(path, ""), r#"["x",{}]"#).send().await.expect_status(200);
        assert_eq!(list(&server, r#"["x"]"#).await, ["2", "3"]);
        assert_eq!(list(&server, "[{}]").await, ["4"]);
    }
}

#[tokio::test]
async fn batches_and_bulk_take_missing_levels() {
    let server = server(r#"["/a","/b"]"#, "400").await;
    let batch = |key: &'static str, atomic: &str, body: &str| {
        let request = server.post(DOCS, body).header("x-ms-cosmos-is-batch-request", "True");
        let request = request.header("x-ms-cosmos-batch-atomic", atomic);
        if atomic == "True" {
            at(request, key)
        } else {
            request.header("x-ms-documentdb-partitionkeyrangeid", "0")
        }
    };
    let body = r#"[
        {"operationType":"Create","resourceBody":{"id":"1","a":"x"}},
        {"operationType":"Upsert","resourceBody":{"id":"1","a":"x","n":1}},
        {"operationType":"Read","id":"1"}]"#;
    let reply = batch(r#"["x",{}]"#, "True", body).send().await.expect_status(200);
    assert_eq!(codes(&reply), [201, 200, 200]);
    let foreign = r#"[{"operationType":"Create","resourceBody":{"id":"2","a":"x","b":null}}]"#;
    let reply = batch(r#"["x",{}]"#, "True", foreign).send().await.expect_status(207);
    assert_eq!(codes(&reply), [400]);
    let body = r#"[
        {"operationType":"Create","partitionKey":"[{},{}]","resourceBody":{"id":"5"}},
        {"operationType":"Create","partitionKey":"[{},\"y\"]","resourceBody":{"id":"4","b":"y"}},
        {"operationType":"Create","partitionKey":"[null,\"y\"]","resourceBody":{"id":"7","b":"y"}},
        {"operationType":"Patch","id":"5","partitionKey":"[{},{}]",
            "resourceBody":{"operations":[{"op":"set","path":"/n","value":1}]}},
        {"operationType":"Read","id":"4","partitionKey":"[{},\"y\"]"}]"#;
    let bulk = batch("", "False", body).header("x-ms-cosmos-batch-continue-on-error", "True").send().await;
    assert_eq!(codes(&bulk), [201, 201, 400, 200, 200]);
    assert_eq!(list(&server, "[{}]").await, ["4", "5"]);
}

/// The requests of Entity Framework for an entity without a partition key.
#[tokio::test]
async fn a_container_of_one_missing_level_serves_entity_framework() {
    for throughput in ["400", "40000"] {
        let server = server(r#"["/__partitionKey"]"#, throughput).await;
        for id in ["1", "2", "3"] {
            let body = format!(r#"{{"id":"{id}","n":{id}}}"#);
            at(server.post(DOCS, &body), "[{}]").send().await.expect_status(201);
        }
        at(server.get(&format!("{DOCS}/2")), "[{}]").send().await.expect_status(200);
        at(server.get(&format!("{DOCS}/2")), "[null]").send().await.expect_error(404, 0, "NotFound");
        assert_eq!(list(&server, "[{}]").await, ["1", "2", "3"]);
        assert_eq!(query(&server, "[{}]", "SELECT * FROM c WHERE c.n > 1").await, ["2", "3"]);
        assert_eq!(feed(&server, "[{}]").await, ["1", "2", "3"]);
        let plan = server.post(DOCS, r#"{"query":"SELECT * FROM c WHERE NOT IS_DEFINED(c.__partitionKey)"}"#);
        let plan = plan.header("x-ms-cosmos-is-query-plan-request", "True").send().await.expect_status(200);
        let ranges = plan.member("queryRanges");
        let bound =
            |name| ranges.as_array().unwrap()[0].get(name).and_then(Value::as_str).unwrap().to_owned();
        let undefined = "11622DAA78F835834610ABE56EFF5CB5";
        assert_eq!((bound("min").as_str(), bound("max").as_str()), (undefined, undefined));
        let range = server.get(DOCS).header("x-ms-start-epk", undefined);
        let range = range.header("x-ms-end-epk", &format!("{undefined}FF"));
        let range = range.header("x-ms-read-key-type", "EffectivePartitionKeyRange").send().await;
        assert_eq!(range.expect_status(200).ids("Documents"), ["1", "2", "3"]);
        let emptied = server.post("/dbs/db/colls/c/operations/partitionkeydelete", "");
        at(emptied, "[{}]").send().await.expect_status(200);
        assert!(list(&server, "[{}]").await.is_empty());
    }
}

#[tokio::test]
async fn t15_an_expired_item_without_levels_makes_way_for_another() {
    let server = server(r#"["/a","/b"]"#, "400").await;
    let create = || at(server.post(DOCS, r#"{"id":"1","a":"x","ttl":5}"#), r#"["x",{}]"#).send();
    create().await.expect_status(201);
    create().await.expect_error(409, 0, "Conflict");
    server.advance(5);
    let read = at(server.get(&format!("{DOCS}/1")), r#"["x",{}]"#).send().await;
    read.expect_error(404, 0, "NotFound");
    create().await.expect_status(201);
    assert_eq!(list(&server, r#"["x"]"#).await, ["1"]);
}

#[tokio::test]
async fn export_and_import_keep_missing_levels() {
    let from = server(r#"["/a","/b"]"#, "400").await;
    for (key, body) in ITEMS {
        at(from.post(DOCS, body), key).send().await.expect_status(201);
    }
    let lines = from.admin("GET", "/_bolide/export/db/c", "").send().await.expect_status(200).text();
    let to = server(r#"["/a","/b"]"#, "40000").await;
    let report = to.admin("POST", "/_bolide/import/db/c", &lines).send().await.expect_status(200);
    assert_eq!(report.member("created"), Value::Int(6), "{}", report.text());
    for (n, (key, _)) in ITEMS.into_iter().enumerate() {
        at(to.get(&format!("{DOCS}/{}", n + 1)), key).send().await.expect_status(200);
    }
}
