//! The account document, the probes, routing and the headers that every answer has.

use document::Value;
use nosql::{AccountSettings, Consistency};

use crate::client::Server;

#[tokio::test]
async fn the_account_echoes_the_host_that_the_client_used() {
    let server = Server::start().await;
    let reply = server.get("/").send().await.expect_status(200);
    let endpoint = format!("http://{}/", server.address);
    for name in ["writableLocations", "readableLocations"] {
        let locations = reply.member(name);
        let location = &locations.as_array().unwrap()[0];
        assert_eq!(location.get("databaseAccountEndpoint").and_then(Value::as_str), Some(endpoint.as_str()));
    }
    assert_eq!(reply.string("id"), "bolide", "an account called localhost slows JavaScript down");
    assert_eq!(reply.string("_self"), "");
    assert!(!reply.text().contains("thinClient"), "this would switch Rust to another protocol");
    let consistency = reply.member("userConsistencyPolicy");
    assert_eq!(consistency.get("defaultConsistencyLevel").and_then(Value::as_str), Some("Session"));
    assert!(document::parse_json(reply.string("queryEngineConfiguration").as_bytes()).is_ok());
}

#[tokio::test]
async fn the_account_names_the_public_address_and_level_that_the_operator_sets() {
    let settings = AccountSettings {
        public_address: Some("db.example.org:443".to_owned()),
        default_consistency: Some(Consistency::BoundedStaleness),
        ..Default::default()
    };
    let server = Server::with_account(settings).await;
    let reply = server.get("/").send().await.expect_status(200);
    assert_eq!(reply.text().matches(r#""databaseAccountEndpoint":"http://db.example.org:443/""#).count(), 2);
    let consistency = reply.member("userConsistencyPolicy");
    assert_eq!(consistency.get("defaultConsistencyLevel").and_then(Value::as_str), Some("BoundedStaleness"));
}

/// A client may relax the account's level for a request, and not strengthen it.
#[tokio::test]
async fn a_level_stronger_than_the_one_of_the_account_is_refused() {
    const LEVELS: [&str; 5] = ["Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"];
    for (given, refused) in [
        (Some(Consistency::Strong), 0),
        (Some(Consistency::Session), 2),
        (Some(Consistency::Eventual), 4),
        (None, 0),
    ] {
        let server =
            Server::with_account(AccountSettings { default_consistency: given, ..Default::default() }).await;
        server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
        server.create_container("c", "").await.expect_status(201);
        server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
        for (at, level) in LEVELS.into_iter().enumerate() {
            let item = server.get("/dbs/db/colls/c/docs/1").key("a");
            let database = server.get("/dbs/db").header("x-ms-consistency-level", level).send().await;
            database.expect_status(200);
            let reply = item.header("x-ms-consistency-level", level).send().await;
            if at < refused {
                let reply = reply.expect_error(400, 0, "BadRequest");
                let part = format!("ConsistencyLevel {level} specified in the request is invalid");
                assert!(reply.message().contains(&part), "{}", reply.message());
            } else {
                reply.expect_status(200);
            }
        }
    }
}

#[tokio::test]
async fn a_mapped_host_is_echoed_and_a_broken_one_is_refused() {
    let server = Server::start().await;
    let ask = |host: &str| {
        let (head, _) = server.get("/").to_bytes();
        let head = String::from_utf8(head).unwrap();
        head.replacen(&format!("host: {}", server.address), &format!("host: {host}"), 1)
    };
    for (host, status) in [("db.example:9000", 200), ("user@host", 400), ("a b", 400)] {
        let reply = crate::hostile::exchange(server.address, ask(host).as_bytes()).await;
        let reply = crate::client::Reply::parse(&reply);
        assert_eq!(reply.status, status, "{host}");
        if status == 200 {
            assert!(reply.text().contains("http://db.example:9000/"), "{}", reply.text());
        }
    }
}

#[tokio::test]
async fn probes_are_open() {
    let server = Server::start().await;
    for path in ["/alive", "/ready", "/ready/"] {
        server.get(path).unsigned().send().await.expect_status(200);
    }
}

#[tokio::test]
async fn unknown_paths_and_wrong_verbs_have_json_errors() {
    let server = Server::with_container("").await;
    for path in ["/nothing", "/dbs/db/nothing", "/dbs/db/colls/c/docs/x/y/z", "/favicon.ico"] {
        server.get(path).send().await.expect_error(404, 0, "NotFound");
    }
    for (method, path) in [
        ("PUT", "/dbs"),
        ("PATCH", "/dbs/db"),
        ("POST", "/dbs/db/colls/c/docs/x"),
        ("DELETE", "/offers"),
        ("OPTIONS", "/dbs"),
        ("BREW", "/dbs"),
    ] {
        server.request(method, path, "").send().await.expect_error(405, 0, "MethodNotAllowed");
    }
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let server = Server::with_container("").await;
    for (path, name) in [
        ("/dbs/db/clientencryptionkeys", "client encryption keys"),
        ("/dbs/db/colls/c/docs/x/attachments", "attachments"),
    ] {
        let reply = server.get(path).send().await.expect_error(400, 0, "NotSupported");
        assert!(reply.message().contains(&format!("{name} are not supported yet")), "{}", reply.message());
    }
    let conflicts = server.get("/dbs/db/colls/c/conflicts").send().await.expect_status(200);
    assert!(conflicts.ids("Conflicts").is_empty());
    server.get("/dbs/db/colls/c/conflicts/x").send().await.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn activity_ids_are_echoed_or_made() {
    let server = Server::start().await;
    let reply = server.get("/dbs").header("x-ms-activity-id", "my-id").send().await;
    assert_eq!(reply.header("x-ms-activity-id"), Some("my-id"));
    let reply = server.get("/nothing").header("x-ms-activity-id", "my-id").send().await;
    assert!(reply.message().contains("ActivityId: my-id"));
    let reply = server.get("/dbs").send().await;
    assert_eq!(reply.header("x-ms-activity-id").map(str::len), Some(36));
}

#[tokio::test]
async fn header_booleans_are_read_in_any_case_and_nonsense_is_refused() {
    let server = Server::with_container("").await;
    for text in ["True", "true", "TRUE"] {
        let request = server.post("/dbs/db/colls/c/docs", r#"{"id":"1","pk":"a"}"#).key("a");
        let status = request.header("x-ms-documentdb-is-upsert", text).send().await.status;
        assert!(status < 300, "{text}: {status}");
    }
    let request = server.post("/dbs/db/colls/c/docs", r#"{"id":"1","pk":"a"}"#).key("a");
    request.header("x-ms-documentdb-is-upsert", "perhaps").send().await.expect_error(400, 0, "BadRequest");
    let request = server.post("/dbs/db/colls/c/docs", r#"{"id":"1","pk":"a"}"#).key("a");
    request.header("x-ms-documentdb-is-upsert", "False").send().await.expect_error(409, 0, "Conflict");
}
