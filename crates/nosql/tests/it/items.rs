//! Items: every operation, its status codes, headers and conditions.

use document::Value;

use crate::client::Server;

const DOCS: &str = "/dbs/db/colls/c/docs";

#[tokio::test]
async fn an_item_lives_through_create_read_replace_upsert_patch_delete() {
    let server = Server::with_container("").await;
    let created = server.create("a", r#"{"id":"1","pk":"a","n":1,"d":1.0}"#).await.expect_status(201);
    assert!(created.text().starts_with(r#"{"id":"1","pk":"a","n":1,"d":1.0,"_rid":"#), "{}", created.text());
    assert_eq!(created.header("etag").map(str::to_owned), Some(created.string("_etag")));
    assert_eq!(created.string("_attachments"), "attachments/");
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_error(409, 0, "Conflict");
    server.create("b", r#"{"id":"1","pk":"b"}"#).await.expect_status(201);
    let read = server.read("a", "1").await.expect_status(200);
    assert_eq!(read.body, created.body);
    let replaced = server.put("/dbs/db/colls/c/docs/1", r#"{"id":"1","pk":"a","n":2}"#).key("a").send().await;
    assert_eq!(replaced.expect_status(200).member("n"), Value::Int(2));
    let upserted = server.post(DOCS, r#"{"id":"1","pk":"a","n":3}"#).key("a").upsert().send().await;
    assert_eq!(upserted.expect_status(200).member("n"), Value::Int(3));
    server.post(DOCS, r#"{"id":"2","pk":"a"}"#).key("a").upsert().send().await.expect_status(201);
    let patch =
        r#"{"operations":[{"op":"incr","path":"/n","value":4},{"op":"add","path":"/x","value":[1]}]}"#;
    let patched = server.patch("/dbs/db/colls/c/docs/1", patch).key("a").send().await.expect_status(200);
    assert_eq!(patched.member("n"), Value::Int(7));
    let shorthand = r#"[{"op":"set","path":"/n","value":0}]"#;
    let patched = server.patch("/dbs/db/colls/c/docs/1", shorthand).key("a").send().await.expect_status(200);
    assert_eq!(patched.member("n"), Value::Int(0));
    let deleted = server.delete("/dbs/db/colls/c/docs/1").key("a").send().await.expect_status(204);
    assert!(deleted.body.is_empty());
    let missing = server.read("a", "1").await.expect_error(404, 0, "NotFound");
    assert!(missing.message().contains("Entity with the specified id does not exist in the system."));
    assert!(missing.header("x-ms-session-token").is_some(), "errors carry the session on");
    server.delete("/dbs/db/colls/c/docs/1").key("a").send().await.expect_error(404, 0, "NotFound");
    let replace = server.put("/dbs/db/colls/c/docs/1", r#"{"id":"1","pk":"a"}"#).key("a").send().await;
    replace.expect_error(404, 0, "NotFound");
    server.patch("/dbs/db/colls/c/docs/1", shorthand).key("a").send().await.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn answers_about_items_carry_what_sdks_track() {
    let server = Server::with_container("").await;
    let rid = server.get("/dbs/db/colls/c").send().await.string("_rid");
    let created = server.create("a", r#"{"id":"1","pk":"a"}"#).await;
    let read = server.read("a", "1").await;
    for reply in [&created, &read] {
        assert_eq!(reply.header("x-ms-alt-content-path"), Some("dbs/db/colls/c"));
        assert_eq!(reply.header("x-ms-content-path"), Some(rid.as_str()));
        assert_eq!(reply.header("x-ms-documentdb-partitionkeyrangeid"), Some("0"));
        let token = reply.header("x-ms-session-token").unwrap();
        let lsn: u64 = token.strip_prefix("0:-1#").unwrap().parse().unwrap();
        assert_eq!(reply.header("lsn"), Some(lsn.to_string().as_str()));
        assert!(reply.header("x-ms-request-charge").unwrap().parse::<f64>().unwrap() > 0.0);
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
    assert_eq!(created.header("x-ms-session-token"), read.header("x-ms-session-token"));
}

#[tokio::test]
async fn conditions_are_kept() {
    let server = Server::with_container("").await;
    let path = "/dbs/db/colls/c/docs/1";
    let body = r#"{"id":"1","pk":"a"}"#;
    let old = server.create("a", body).await.string("_etag");
    server.put(path, body).key("a").header("if-match", "\"other\"").send().await.expect_error(
        412,
        0,
        "PreconditionFailed",
    );
    let new = server
        .put(path, body)
        .key("a")
        .header("if-match", &old)
        .send()
        .await
        .expect_status(200)
        .string("_etag");
    assert_ne!(old, new);
    let stale = |method: &str, body: &str| {
        server.request(method, path, body).key("a").header("if-match", &old).send()
    };
    stale("PUT", body).await.expect_error(412, 0, "PreconditionFailed");
    stale("DELETE", "").await.expect_error(412, 0, "PreconditionFailed");
    stale("PATCH", r#"[{"op":"set","path":"/x","value":1}]"#).await.expect_error(
        412,
        0,
        "PreconditionFailed",
    );
    let upsert = server.post(DOCS, body).key("a").upsert().header("if-match", &old).send().await;
    upsert.expect_error(412, 0, "PreconditionFailed");
    let unchanged = server.get(path).key("a").header("if-none-match", &new).send().await.expect_status(304);
    assert!(unchanged.body.is_empty());
    server.get(path).key("a").header("if-none-match", &old).send().await.expect_status(200);
    let missing = server.put("/dbs/db/colls/c/docs/2", r#"{"id":"2","pk":"a"}"#).key("a");
    missing.header("if-match", &old).send().await.expect_error(404, 0, "NotFound");
    // An upsert creates a missing item, and has no version to compare with.
    let first = server.post(DOCS, r#"{"id":"2","pk":"a"}"#).key("a").upsert();
    first.header("if-match", &old).send().await.expect_status(201);
    let second = server.post(DOCS, r#"{"id":"2","pk":"a"}"#).key("a").upsert();
    second.header("if-match", &old).send().await.expect_error(412, 0, "PreconditionFailed");
    let condition = |filter: &str| {
        let body =
            format!(r#"{{"condition":"{filter}","operations":[{{"op":"set","path":"/x","value":1}}]}}"#);
        server.patch(path, &body).key("a").send()
    };
    condition("from c where c.pk = 'b'").await.expect_error(412, 0, "PreconditionFailed");
    condition("from c where c.pk = 'a'").await.expect_status(200);
}

#[tokio::test]
async fn minimal_answers_leave_the_item_out_of_writes_only() {
    let server = Server::with_container("").await;
    let created =
        server.post(DOCS, r#"{"id":"1","pk":"a"}"#).key("a").header("prefer", "return=minimal").send().await;
    let created = created.expect_status(201);
    assert!(created.body.is_empty());
    assert!(created.header("etag").is_some());
    let read = server.get("/dbs/db/colls/c/docs/1").key("a").header("prefer", "return=minimal").send().await;
    assert_eq!(read.expect_status(200).string("id"), "1");
    let put = server.put("/dbs/db/colls/c/docs/1", r#"{"id":"1","pk":"a"}"#).key("a");
    let put =
        put.header("x-ms-cosmos-populate-content-response-on-write", "False").send().await.expect_status(200);
    assert!(put.body.is_empty());
}

#[tokio::test]
async fn links_are_left_out_where_the_client_wants_none() {
    let server = Server::with_container("").await;
    let item = "/dbs/db/colls/c/docs/1";
    let body = r#"{"id":"1","pk":"a"}"#;
    let without = |request: crate::client::Request| {
        request.key("a").header("x-ms-exclude-system-properties", "True").send()
    };
    without(server.post(DOCS, body).header("prefer", "return=minimal")).await.expect_status(201);
    for reply in [without(server.put(item, body)).await, without(server.get(item)).await] {
        let shown = reply.expect_status(200).json();
        let members: Vec<&str> = shown.as_object().unwrap().iter().map(|(name, _)| name).collect();
        assert_eq!(members, ["id", "pk", "_rid", "_etag", "_ts"]);
    }
    let refused = server.delete(item).key("a").header("x-ms-exclude-system-properties", "maybe").send().await;
    refused.expect_error(400, 0, "BadRequest");
    server.read("a", "1").await.expect_status(200);
}

#[tokio::test]
async fn control_characters_in_strings_are_escaped_or_refused() {
    let server = Server::with_container("").await;
    for (raw, escaped) in [("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")] {
        let body = |text: &str| format!(r#"{{"id":"1","pk":"a","text":"x{text}y"}}"#);
        let refused = server.create("a", &body(raw)).await.expect_error(400, 0, "BadRequest");
        assert!(refused.message().contains("control character"), "{}", refused.message());
        let kept = server.post(DOCS, &body(escaped)).key("a").upsert().send().await;
        assert_eq!(kept.string("text"), format!("x{raw}y"));
    }
}

#[tokio::test]
async fn partition_keys_must_fit() {
    let server = Server::with_container("").await;
    let body = r#"{"id":"1","pk":"a"}"#;
    let wrong = server.create("b", body).await.expect_error(400, 1001, "BadRequest");
    assert!(wrong.message().contains("Partition key provided either doesn't correspond to definition"));
    server.post(DOCS, body).send().await.expect_status(201);
    // The existence of the item is checked first: under the key of the request there may be none to replace.
    let put = |key: &str| server.put("/dbs/db/colls/c/docs/1", r#"{"id":"1","pk":"b"}"#).key(key).send();
    put("a").await.expect_error(400, 1001, "BadRequest");
    put("none").await.expect_error(404, 0, "NotFound");
    server.get("/dbs/db/colls/c/docs/1").send().await.expect_error(400, 0, "BadRequest");
    server.delete("/dbs/db/colls/c/docs/1").send().await.expect_error(400, 0, "BadRequest");
    let two = server.get("/dbs/db/colls/c/docs/1").header("x-ms-documentdb-partitionkey", r#"["a","b"]"#);
    assert_eq!(two.send().await.status, 400);
    for nonsense in ["a", "{}", "[[1]]", "[{\"x\":1}]", "\"a\"", ""] {
        let request = server.get("/dbs/db/colls/c/docs/1").header("x-ms-documentdb-partitionkey", nonsense);
        assert_eq!(request.send().await.status, 400, "{nonsense}");
    }
    for (key, member) in
        [("[5]", ",\"pk\":5.0"), ("[null]", ",\"pk\":null"), ("[true]", ",\"pk\":true"), ("[{}]", "")]
    {
        let body = format!("{{\"id\":\"k\"{member}}}");
        let create = server.post(DOCS, &body).header("x-ms-documentdb-partitionkey", key).send().await;
        create.expect_status(201);
        let read =
            server.get("/dbs/db/colls/c/docs/k").header("x-ms-documentdb-partitionkey", key).send().await;
        read.expect_status(200);
    }
}

#[tokio::test]
async fn hierarchical_keys_need_all_their_levels() {
    let server = Server::start().await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let definition = r#"{"id":"c","partitionKey":{"paths":["/x","/y"],"kind":"MultiHash","version":2}}"#;
    server.post("/dbs/db/colls", definition).send().await.expect_status(201);
    let create = |key: &str| {
        let request = server.post(DOCS, r#"{"id":"1","x":"a","y":"b"}"#);
        request.header("x-ms-documentdb-partitionkey", key).send()
    };
    create(r#"["a"]"#).await.expect_error(400, 1001, "BadRequest");
    create(r#"["a","c"]"#).await.expect_error(400, 1001, "BadRequest");
    create(r#"["a","b"]"#).await.expect_status(201);
    let list = |key: &str| server.get(DOCS).header("x-ms-documentdb-partitionkey", key).send();
    assert_eq!(list(r#"["a"]"#).await.expect_status(200).ids("Documents"), ["1"]);
    assert!(list(r#"["b"]"#).await.expect_status(200).ids("Documents").is_empty());
}

#[tokio::test]
async fn ids_are_checked_and_may_hold_almost_anything() {
    let server = Server::with_container("").await;
    for body in [r#"{"pk":"a"}"#, r#"{"id":7,"pk":"a"}"#, r#"{"id":"","pk":"a"}"#, r#"{"id":"a/b","pk":"a"}"#]
    {
        server.create("a", body).await.expect_error(400, 0, "BadRequest");
    }
    let long = format!("{{\"id\":\"{}\",\"pk\":\"a\"}}", "x".repeat(1024));
    server.create("a", &long).await.expect_error(400, 0, "BadRequest");
    for (id, encoded) in [("ü ∆", "%C3%BC%20%E2%88%86"), ("a%2fb", "a%252fb"), ("q?", "q%3F"), ("'", "'")]
    {
        let body = format!("{{\"id\":\"{id}\",\"pk\":\"a\"}}");
        server.create("a", &body).await.expect_status(201);
        assert_eq!(server.read("a", encoded).await.expect_status(200).string("id"), id);
    }
}

#[tokio::test]
async fn binary_bodies_are_items_too() {
    let server = Server::with_container("").await;
    // {"id":"1","pk":"a","n":7} as the Rust SDK encodes it.
    let body = b"\x80\xed\x0d\x03\x82id\x811\x82pk\x81a\x81n\x07".to_vec();
    let created = server.post(DOCS, "").key("a").bytes(body).send().await.expect_status(201);
    assert_eq!(created.member("n"), Value::Int(7));
    assert_eq!(server.read("a", "1").await.expect_status(200).member("n"), Value::Int(7));
    // [{"op":"set","path":"/n","value":8}]
    let patch = b"\x80\xe1\xea\x16\x82op\x83set\x84path\x82/n\x85value\x08".to_vec();
    let patched = server.patch(&format!("{DOCS}/1"), "").key("a").bytes(patch).send().await;
    assert_eq!(patched.expect_status(200).member("n"), Value::Int(8));
    // {"query":"SELECT * FROM c"}
    let query = b"\x80\xe9\x85query\x8fSELECT * FROM c".to_vec();
    let query = server.post(DOCS, "").key("a").bytes(query).header("x-ms-documentdb-isquery", "true");
    assert_eq!(query.send().await.expect_status(200).ids("Documents"), ["1"]);
}

#[tokio::test]
async fn a_partition_can_be_deleted_whole() {
    let server = Server::with_container("").await;
    for (pk, id) in [("a", "1"), ("a", "2"), ("b", "1")] {
        server.create(pk, &format!("{{\"id\":\"{id}\",\"pk\":\"{pk}\"}}")).await.expect_status(201);
    }
    let path = "/dbs/db/colls/c/operations/partitionkeydelete";
    server.post(path, "").send().await.expect_error(400, 0, "BadRequest");
    server.post(path, "").key("a").send().await.expect_status(200);
    assert_eq!(server.get(DOCS).send().await.ids("Documents"), ["1"]);
    server.read("b", "1").await.expect_status(200);
}

#[tokio::test]
async fn hints_are_accepted_and_nonsense_is_refused() {
    let server = Server::with_container("").await;
    let create = |name: &str, value: &str| {
        let request = server.post(DOCS, r#"{"id":"1","pk":"a"}"#).key("a").upsert();
        request.header(name, value).send()
    };
    for (name, value) in [
        ("x-ms-indexing-directive", "Exclude"),
        ("x-ms-consistency-level", "Session"),
        ("x-ms-consistency-level", "eventual"),
        ("x-ms-cosmos-priority-level", "Low"),
        ("x-ms-some-future-header", "x"),
    ] {
        assert!(create(name, value).await.status < 300, "{name}: {value}");
    }
    create("x-ms-indexing-directive", "Perhaps").await.expect_error(400, 0, "BadRequest");
    create("x-ms-consistency-level", "Perhaps").await.expect_error(400, 0, "BadRequest");
}

#[tokio::test]
async fn unique_keys_are_kept() {
    let server = Server::with_container(r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]}"#).await;
    server.create("a", r#"{"id":"1","pk":"a","mail":"x"}"#).await.expect_status(201);
    let taken =
        server.create("a", r#"{"id":"2","pk":"a","mail":"x"}"#).await.expect_error(409, 0, "Conflict");
    assert!(taken.message().contains("Unique index constraint violation."));
    server.create("b", r#"{"id":"2","pk":"b","mail":"x"}"#).await.expect_status(201);
}
