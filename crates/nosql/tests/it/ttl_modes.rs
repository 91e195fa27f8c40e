//! TTL modes (T33) through the wire: headers, the definition, the admin API. The engine's tests have the rules.

use document::Value;

use crate::client::{Reply, Server};

const ITEM: &str = "/dbs/db/colls/c/docs/x";
const DOCS: &str = "/dbs/db/colls/c/docs";
const KEEP: &str = "x-bolide-keep-expiry";

fn left(reply: &Reply) -> Option<&str> {
    reply.header("x-bolide-ttl-remaining")
}

#[tokio::test]
async fn answers_tell_the_seconds_left_t33() {
    let server = Server::with_container(r#""defaultTtl":10"#).await;
    let made = server.create("a", r#"{"id":"x","pk":"a"}"#).await.expect_status(201);
    assert_eq!(left(&made), Some("10"));
    server.advance(3);
    let read = server.read("a", "x").await.expect_status(200);
    assert_eq!(left(&read), Some("7"));
    let etag = read.string("_etag");
    let unchanged = server.get(ITEM).key("a").header("if-none-match", &etag).send().await.expect_status(304);
    assert_eq!(left(&unchanged), Some("7"));
    let replaced =
        server.put(ITEM, r#"{"id":"x","pk":"a","ttl":-1}"#).key("a").send().await.expect_status(200);
    assert_eq!(left(&replaced), None);
    assert_eq!(left(&server.read("a", "x").await), None);
}

#[tokio::test]
async fn a_header_keeps_the_countdown_on_every_write_path_t33() {
    let server = Server::with_container(r#""defaultTtl":100"#).await;
    server.create("a", r#"{"id":"x","pk":"a"}"#).await.expect_status(201);
    let body = r#"{"id":"x","pk":"a","n":1}"#;
    let operations = format!(
        "[{{\"operationType\":\"Upsert\",\"resourceBody\":{body},\"partitionKey\":\"[\\\"a\\\"]\"}}]"
    );
    let batch = |atomic: &str| {
        let request = server.post(DOCS, &operations).key("a").header("x-ms-cosmos-is-batch-request", "true");
        request
            .header("x-ms-cosmos-batch-continue-on-error", "true")
            .header("x-ms-cosmos-batch-atomic", atomic)
    };
    let writes = [
        server.put(ITEM, body).key("a"),
        server.post(DOCS, body).key("a").upsert(),
        server.patch(ITEM, r#"[{"op":"incr","path":"/n","value":1}]"#).key("a"),
        batch("true"),
        batch("false"),
    ];
    let mut expected = 100;
    for write in writes {
        server.advance(7);
        expected -= 7;
        let reply = write.header(KEEP, "True").send().await;
        assert!((200..300).contains(&reply.status), "{}", reply.text());
        assert_eq!(left(&server.read("a", "x").await), Some(expected.to_string().as_str()));
    }
    let refused = server.put(ITEM, body).key("a").header(KEEP, "maybe").send().await;
    refused.expect_error(400, 0, "BadRequest");
    server.put(ITEM, body).key("a").header(KEEP, "false").send().await.expect_status(200);
    assert_eq!(left(&server.read("a", "x").await), Some("100"));
}

#[tokio::test]
async fn the_definition_has_the_base_property_t33() {
    let server = Server::with_container(r#""defaultTtl":100,"ttlPropertyPath":"/at""#).await;
    let path = "/dbs/db/colls/c";
    assert_eq!(server.get(path).send().await.string("ttlPropertyPath"), "/at");
    let created = format!(r#"{{"id":"x","pk":"a","at":{}}}"#, crate::client::START - 40);
    assert_eq!(left(&server.create("a", &created).await), Some("60"));
    let key = r#""id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;
    let replace = |more: &str| server.put(path, &format!("{{{key}{more}}}")).send();
    let kept = replace(r#","defaultTtl":50"#).await.expect_status(200);
    assert_eq!(kept.string("ttlPropertyPath"), "/at");
    assert_eq!(left(&server.read("a", "x").await), Some("10"));
    replace(r#","ttlPropertyPath":"at""#).await.expect_error(400, 0, "BadRequest");
    let given_up = replace(r#","defaultTtl":50,"ttlPropertyPath":"""#).await.expect_status(200);
    assert_eq!(given_up.member("ttlPropertyPath"), Value::Null);
    let refused = server.admin("PATCH", "/_bolide/ttl/db/c", r#"{"ttlPropertyPath":"/b"}"#).send().await;
    assert!(refused.expect_error(400, 0, "BadRequest").message().contains("definition"));
}

#[tokio::test]
async fn absolute_expiry_is_set_by_lifecycle_settings_t33() {
    let server = Server::with_container("").await;
    let set_lifecycle = |body: &str| server.admin("PATCH", "/_bolide/ttl/db/c", body).send();
    set_lifecycle(r#"{"expireAtPath":"no path"}"#).await.expect_error(400, 0, "BadRequest");
    let changed = set_lifecycle(r#"{"expireAtPath":"/gone"}"#).await.expect_status(200);
    assert_eq!(changed.member("lifecycle").get("expireAtPath"), Some(&Value::String("/gone".into())));
    let made = server.create("a", r#"{"id":"x","pk":"a","gone":"2023-11-14T22:13:25Z"}"#).await;
    assert_eq!((made.status, left(&made)), (201, Some("5")));
    server.advance(5);
    server.read("a", "x").await.expect_error(404, 0, "NotFound");
    let off = set_lifecycle(r#"{"expireAtPath":null}"#).await.expect_status(200);
    assert_eq!(off.member("lifecycle").get("expireAtPath"), Some(&Value::Null));
    server.read("a", "x").await.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn reads_restart_a_sliding_countdown_t33() {
    let server = Server::with_container(r#""defaultTtl":10"#).await;
    let answer = server.admin("PATCH", "/_bolide/ttl/db/c", r#"{"sliding":true}"#).send().await;
    assert_eq!(answer.expect_status(200).member("lifecycle").get("sliding"), Some(&Value::Bool(true)));
    let made = server.create("a", r#"{"id":"x","pk":"a"}"#).await.expect_status(201);
    server.create("a", r#"{"id":"y","pk":"a"}"#).await.expect_status(201);
    for _ in 0..4 {
        server.advance(6);
        let read = server.read("a", "x").await.expect_status(200);
        assert_eq!((left(&read), read.string("_etag")), (Some("10"), made.string("_etag")));
        server.query("SELECT * FROM c").await.expect_status(200);
        server.get(DOCS).send().await.expect_status(200);
    }
    server.read("a", "y").await.expect_error(404, 0, "NotFound");
    server.advance(6);
    server.query("SELECT * FROM c WHERE c.id IN ('x', 'y')").await.expect_status(200);
    server.advance(6);
    assert_eq!(left(&server.read("a", "x").await), Some("10"));
    server.advance(10);
    server.read("a", "x").await.expect_error(404, 0, "NotFound");
}
