//! TTL through the wire. The engine's tests and the simulator prove the rules; these tests show that every write path
//! reaches them and that their answers have the right codes.

use document::Value;

use crate::client::Server;

const DOCS: &str = "/dbs/db/colls/c/docs";

/// Own ttl values that are refused, as written in JSON, and as shown in the message.
const BAD: [&str; 9] = ["0", "-10", "null", "1.5", "\"x\"", "2147483648", "true", "{}", "[]"];

#[tokio::test]
async fn bad_item_ttls_are_refused_on_every_write_path_t5() {
    for extra in ["", "\"defaultTtl\":-1", "\"defaultTtl\":10"] {
        let server = Server::with_container(extra).await;
        server.create("a", r#"{"id":"old","pk":"a","n":1}"#).await.expect_status(201);
        for ttl in BAD {
            let body = format!("{{\"id\":\"new\",\"pk\":\"a\",\"ttl\":{ttl}}}");
            let old = format!("{{\"id\":\"old\",\"pk\":\"a\",\"ttl\":{ttl}}}");
            let created = server.create("a", &body).await.expect_error(400, 0, "BadRequest");
            let expected = "Ensure to provide a nonzero positive integer less than or equal to '2147483647', \
                            or '-1' which means never expire.";
            assert!(created.message().contains(expected), "{}", created.message());
            let upsert = |body: &str| server.post(DOCS, body).key("a").upsert().send();
            upsert(&body).await.expect_error(400, 0, "BadRequest");
            upsert(&old).await.expect_error(400, 0, "BadRequest");
            let path = "/dbs/db/colls/c/docs/old";
            server.put(path, &old).key("a").send().await.expect_error(400, 0, "BadRequest");
            for op in ["add", "set"] {
                let change = format!("[{{\"op\":\"{op}\",\"path\":\"/ttl\",\"value\":{ttl}}}]");
                server.patch(path, &change).key("a").send().await.expect_error(400, 0, "BadRequest");
            }
            batch_and_bulk_refuse(&server, &body, &old, ttl).await;
            server.read("a", "new").await.expect_error(404, 0, "NotFound");
            assert_eq!(server.read("a", "old").await.member("ttl"), Value::Null);
        }
    }
}

async fn batch_and_bulk_refuse(server: &Server, body: &str, old: &str, ttl: &str) {
    let operations = [
        format!("{{\"operationType\":\"Create\",\"resourceBody\":{body},\"partitionKey\":\"[\\\"a\\\"]\"}}"),
        format!("{{\"operationType\":\"Upsert\",\"resourceBody\":{old},\"partitionKey\":\"[\\\"a\\\"]\"}}"),
        format!(
            "{{\"operationType\":\"Replace\",\"id\":\"old\",\"resourceBody\":{old},\"partitionKey\":\"[\\\"a\\\"]\"}}"
        ),
        format!(
            "{{\"operationType\":\"Patch\",\"id\":\"old\",\"partitionKey\":\"[\\\"a\\\"]\",\
             \"resourceBody\":{{\"operations\":[{{\"op\":\"set\",\"path\":\"/ttl\",\"value\":{ttl}}}]}}}}"
        ),
    ];
    let fine = r#"{"operationType":"Upsert","resourceBody":{"id":"fine","pk":"a"},"partitionKey":"[\"a\"]"}"#;
    for operation in operations {
        for atomic in ["true", "false"] {
            let request = server.post(DOCS, &format!("[{fine},{operation}]")).key("a");
            let request = request.header("x-ms-cosmos-is-batch-request", "true");
            let request = request.header("x-ms-cosmos-batch-continue-on-error", "true");
            let reply = request.header("x-ms-cosmos-batch-atomic", atomic).send().await.expect_status(207);
            let results = reply.json();
            let code = results.as_array().unwrap()[1].get("statusCode").and_then(Value::as_i64);
            assert_eq!(code, Some(400), "{operation}");
        }
        server.delete("/dbs/db/colls/c/docs/fine").key("a").send().await.expect_status(204);
    }
}

#[tokio::test]
async fn good_item_ttls_are_stored_as_sent_t3_t5() {
    let server = Server::with_container("").await;
    for (id, ttl) in [("1", "-1"), ("2", "1"), ("3", "2147483647"), ("4", "20.0")] {
        let created = server.create("a", &format!("{{\"id\":\"{id}\",\"pk\":\"a\",\"ttl\":{ttl}}}")).await;
        assert!(created.expect_status(201).text().contains(&format!("\"ttl\":{ttl}")));
    }
    server.advance(1000);
    server.read("a", "2").await.expect_status(200);
}

#[tokio::test]
async fn bad_default_ttls_are_refused_and_null_means_off_t4() {
    let server = Server::with_container("").await;
    for ttl in ["0", "-2", "1.5", "\"10\"", "2147483648", "true", "{}"] {
        server.create_container("bad", &format!("\"defaultTtl\":{ttl}")).await.expect_error(
            400,
            0,
            "BadRequest",
        );
        server.get("/dbs/db/colls/bad").send().await.expect_error(404, 0, "NotFound");
        let body =
            format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"version":2}},"defaultTtl":{ttl}}}"#);
        server.put("/dbs/db/colls/c", &body).send().await.expect_error(400, 0, "BadRequest");
    }
    let off = server.create_container("off", "\"defaultTtl\":null").await.expect_status(201);
    assert_eq!(off.member("defaultTtl"), Value::Null);
    for (id, ttl) in [("a", "-1"), ("b", "20.0"), ("d", "2147483647")] {
        server.create_container(id, &format!("\"defaultTtl\":{ttl}")).await.expect_status(201);
    }
    assert_eq!(server.get("/dbs/db/colls/b").send().await.member("defaultTtl").as_i64(), Some(20));
}

#[tokio::test]
async fn indexing_mode_none_and_ttl_exclude_each_other_t25() {
    let server = Server::with_container("\"defaultTtl\":-1").await;
    let none = r#""indexingPolicy":{"indexingMode":"none","automatic":false}"#;
    let refused = server.create_container("n", &format!("{none},\"defaultTtl\":-1")).await;
    refused.expect_error(400, 0, "BadRequest");
    server.create_container("n", none).await.expect_status(201);
    let key = r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;
    let both = |id: &str| format!("{{\"id\":\"{id}\",{key},{none},\"defaultTtl\":5}}");
    server.put("/dbs/db/colls/n", &both("n")).send().await.expect_error(400, 0, "BadRequest");
    server.put("/dbs/db/colls/c", &both("c")).send().await.expect_error(400, 0, "BadRequest");
}

#[tokio::test]
async fn an_expired_item_is_not_there_for_any_operation_t14_t15() {
    let server =
        Server::with_container(r#""defaultTtl":10,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]}"#)
            .await;
    let body = r#"{"id":"1","pk":"a","mail":"x"}"#;
    let etag = server.create("a", body).await.expect_status(201).string("_etag");
    server.advance(9);
    server.read("a", "1").await.expect_status(200);
    server.advance(1);
    let path = "/dbs/db/colls/c/docs/1";
    server.read("a", "1").await.expect_error(404, 0, "NotFound");
    let conditional = server.put(path, body).key("a").header("if-match", &etag).send().await;
    conditional.expect_error(404, 0, "NotFound");
    server.put(path, body).key("a").send().await.expect_error(404, 0, "NotFound");
    server.delete(path).key("a").send().await.expect_error(404, 0, "NotFound");
    let patched = server.patch(path, r#"[{"op":"set","path":"/x","value":1}]"#).key("a").send().await;
    patched.expect_error(404, 0, "NotFound");
    assert!(server.get(DOCS).send().await.ids("Documents").is_empty());
    assert!(server.query("SELECT * FROM c WHERE c.id = '1'").await.ids("Documents").is_empty());
    server.create("a", r#"{"id":"2","pk":"a","mail":"x"}"#).await.expect_status(201);
    server.post(DOCS, r#"{"id":"1","pk":"a"}"#).key("a").upsert().send().await.expect_status(201);
}

#[tokio::test]
async fn switching_ttl_off_and_on_revives_nothing_t12_t13() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    server.create("a", r#"{"id":"expired","pk":"a"}"#).await.expect_status(201);
    server.create("a", r#"{"id":"long","pk":"a","ttl":100}"#).await.expect_status(201);
    server.advance(10);
    let key = r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;
    let put = |extra: &str| server.put("/dbs/db/colls/c", &format!("{{\"id\":\"c\",{key}{extra}}}")).send();
    put("").await.expect_status(200);
    assert_eq!(server.get(DOCS).send().await.ids("Documents"), ["long"]);
    server.advance(1000);
    server.read("a", "long").await.expect_status(200);
    put(",\"defaultTtl\":-1").await.expect_status(200);
    server.read("a", "long").await.expect_error(404, 0, "NotFound");
    put("").await.expect_status(200);
    assert!(server.get(DOCS).send().await.ids("Documents").is_empty());
}
