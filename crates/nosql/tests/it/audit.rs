//! The audit log: the line that each request leaves, and the texts that no line contains.

use account::{Key, Kind};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rntbd::OperationType::{Create, Read, Replace};
use telemetry::AuditEvent;

use crate::client::{KEY, Request, Server};
use crate::direct::{Fixture, expect};

/// A text in an item.
const TEXT: &str = "not-for-the-log";

const PERMISSIONS: &str = "/dbs/db/users/u/permissions";
const ITEM: &str = "/dbs/db/colls/c/docs/1";

/// The lines of a server's log that a test has not seen yet.
struct Log<'a> {
    server: &'a Server,
    seen: usize,
    /// The identities of senders, and their names in the lines of the test.
    names: Vec<(String, &'static str)>,
}

impl<'a> Log<'a> {
    /// Begins after the lines that the log already has.
    fn of(server: &'a Server, reader: &str) -> Log<'a> {
        let label =
            |kind: Kind, key: &str| format!("{} key {}", kind.name(), Key::parse(key).unwrap().fingerprint());
        let names =
            vec![(label(Kind::Primary, KEY), "PRIMARY"), (label(Kind::PrimaryReadonly, reader), "READER")];
        Log { server, seen: server.audit.events().len(), names }
    }

    /// `action who target details outcome status`, a dash for an absent part.
    fn shown(&self, event: &AuditEvent) -> String {
        let AuditEvent { who, action, target, details, outcome, status, .. } = event;
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let who = text(who);
        let who = self.names.iter().find(|(label, _)| *label == who).map_or(who.as_str(), |(_, name)| name);
        let status = status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        format!("{action} {who} {} {} {} {status}", text(target), text(details), outcome.name())
    }

    fn news(&mut self) -> Vec<String> {
        let events = self.server.audit.events();
        let news: Vec<String> = events[self.seen..].iter().map(|event| self.shown(event)).collect();
        self.seen = events.len();
        news
    }

    /// Sends a request, and checks its status and the line that it leaves, if any.
    async fn check(&mut self, request: Request, status: u16, line: &str) {
        let reply = request.send().await.expect_status(status);
        let expected: Vec<&str> = Some(line).filter(|line| !line.is_empty()).into_iter().collect();
        assert_eq!(self.news(), expected, "{}", reply.text());
    }
}

/// A server with a container, and the text of its read-only key.
async fn server() -> (Server, String) {
    let server = Server::start().await;
    let reader = reader(&server);
    (server, reader)
}

fn reader(server: &Server) -> String {
    server.keys.regenerate(Kind::PrimaryReadonly).unwrap().reveal().to_owned()
}

/// Requests of the primary key: method, path, body, status, and the line that each leaves, if any.
const REQUESTS: &[(&str, &str, &str, u16, &str)] = &[
    ("POST", "/dbs", r#"{"id":"db"}"#, 201, r#"CreateDatabase PRIMARY /dbs {"id":"db"} success 201"#),
    (
        "POST",
        "/dbs/db/colls",
        r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":60}"#,
        201,
        r#"CreateContainer PRIMARY /dbs/db/colls {"id":"c","defaultTtl":60} success 201"#,
    ),
    (
        "PUT",
        "/dbs/db/colls/c",
        r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":90}"#,
        200,
        r#"ReplaceContainer PRIMARY /dbs/db/colls/c {"id":"c","defaultTtl":90} success 200"#,
    ),
    ("GET", "/dbs/db/colls/c", "", 200, ""),
    (
        "POST",
        "/dbs/db/users",
        r#"{"id":"u"}"#,
        201,
        r#"CreateUser PRIMARY /dbs/db/users {"id":"u"} success 201"#,
    ),
    ("GET", "/dbs/db/users", "", 200, ""),
    (
        "POST",
        PERMISSIONS,
        r#"{"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"}"#,
        201,
        r#"CreatePermission PRIMARY /dbs/db/users/u/permissions {"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"} success 201"#,
    ),
    ("GET", PERMISSIONS, "", 200, "ListPermissions PRIMARY /dbs/db/users/u/permissions - success 200"),
    (
        "GET",
        "/dbs/db/users/u/permissions/p",
        "",
        200,
        "ReadPermission PRIMARY /dbs/db/users/u/permissions/p - success 200",
    ),
    (
        "POST",
        "/dbs/db/colls/c/sprocs",
        r#"{"id":"s","body":"not-for-the-log"}"#,
        201,
        r#"CreateStoredProcedure PRIMARY /dbs/db/colls/c/sprocs {"id":"s"} success 201"#,
    ),
    ("DELETE", "/dbs/none", "", 404, "DeleteDatabase PRIMARY /dbs/none - failure 404"),
];

/// The same of the admin API.
const ADMIN_REQUESTS: &[(&str, &str, &str, u16, &str)] = &[
    (
        "PUT",
        "/_bolide/container/db/d",
        r#"{"definition":{"partitionKey":{"paths":["/pk"]},"defaultTtl":30},"throughput":{"manual":400}}"#,
        200,
        r#"AdminMakeContainer PRIMARY /_bolide/container/db/d {"defaultTtl":30,"throughput":{"manual":400}} success 200"#,
    ),
    (
        "PATCH",
        "/_bolide/ttl/db/c",
        r#"{"maxPurgeDelay":60}"#,
        200,
        r#"AdminChangeTtl PRIMARY /_bolide/ttl/db/c {"maxPurgeDelay":60} success 200"#,
    ),
    (
        "PATCH",
        "/_bolide/ttl/db/c",
        r#"{"secret":"not-for-the-log"}"#,
        400,
        "AdminChangeTtl PRIMARY /_bolide/ttl/db/c - failure 400",
    ),
    (
        "POST",
        "/_bolide/purge",
        r#"{"paused":false}"#,
        200,
        r#"AdminSteerPurge PRIMARY /_bolide/purge {"paused":false} success 200"#,
    ),
    (
        "POST",
        "/_bolide/clock",
        r#"{"advanceSeconds":1}"#,
        200,
        r#"AdminMoveClock PRIMARY /_bolide/clock {"advanceSeconds":1} success 200"#,
    ),
    (
        "PUT",
        "/_bolide/hold/db/c",
        r#"{"id":"not-for-the-log","partitionKey":["a"],"reason":"a dispute"}"#,
        200,
        "AdminPlaceHold PRIMARY /_bolide/hold/db/c - success 200",
    ),
    ("GET", "/_bolide/hold/db/c", "", 200, ""),
    ("GET", "/_bolide/status", "", 200, ""),
    ("GET", "/_bolide/containers", "", 200, ""),
    ("GET", "/_bolide/keys", "", 200, "AdminListKeys PRIMARY /_bolide/keys - success 200"),
    ("GET", "/_bolide/export/db/c", "", 200, "AdminExport PRIMARY /_bolide/export/db/c - success 200"),
    (
        "POST",
        "/_bolide/import/db/c",
        r#"{"id":"2","pk":"not-for-the-log"}"#,
        200,
        "AdminImport PRIMARY /_bolide/import/db/c - success 200",
    ),
    (
        "POST",
        "/_bolide/command",
        "not-for-the-log",
        400,
        "AdminCommand PRIMARY /_bolide/command - failure 400",
    ),
    ("POST", "/_bolide/reset", "", 403, "AdminReset PRIMARY /_bolide/reset - denied 403"),
    (
        "POST",
        "/_bolide/keys",
        r#"{"regenerate":"secondary"}"#,
        200,
        r#"AdminRegenerateKey PRIMARY /_bolide/keys {"regenerate":"secondary"} success 200"#,
    ),
];

#[tokio::test]
async fn every_request_leaves_the_line_it_should() {
    let (server, reader) = server().await;
    let mut log = Log::of(&server, &reader);
    for (method, path, body, status, line) in REQUESTS {
        log.check(server.request(method, path, body), *status, line).await;
    }
    let item = format!(r#"{{"id":"{TEXT}","pk":"a"}}"#);
    log.check(server.post("/dbs/db/colls/c/docs", &item).key("a"), 201, "").await;
    for (method, path, body, status, line) in ADMIN_REQUESTS {
        log.check(server.admin(method, path, body), *status, line).await;
    }
    let query = server.post(PERMISSIONS, r#"{"query":"SELECT * FROM root r WHERE r.id='p'"}"#);
    let query = query.header("content-type", "application/query+json");
    log.check(query, 200, "QueryPermissions PRIMARY /dbs/db/users/u/permissions - success 200").await;
    let sold = server.post("/dbs", r#"{"id":"sold"}"#).header("x-ms-offer-throughput", "500");
    let line = r#"CreateDatabase PRIMARY /dbs {"id":"sold","offerThroughput":500} success 201"#;
    log.check(sold, 201, line).await;

    let offers = server.get("/offers").send().await.member("Offers");
    let offer = offers.as_array().unwrap().iter().find(|offer| offer.to_json().contains(":500")).unwrap();
    let member = |name: &str| offer.get(name).and_then(|member| member.as_str()).unwrap();
    let path = format!("/offers/{}", member("id"));
    let line = format!(
        r#"ReplaceOffer PRIMARY {path} {{"resource":"{}","offerThroughput":600}} success 200"#,
        member("resource")
    );
    log.check(server.put(&path, &offer.to_json().replace(":500", ":600")), 200, &line).await;

    let all = format!("{:?}", server.audit.events());
    let keys = server.keys.entries();
    let secrets = keys.iter().map(|entry| entry.key.reveal()).chain([KEY, TEXT, "type=resource", "sig="]);
    for secret in secrets {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}

#[tokio::test]
async fn refusals_name_the_sender_if_only_a_right_is_missing() {
    let (server, reader) = server().await;
    for (method, path, body, status, _) in REQUESTS {
        server.request(method, path, body).send().await.expect_status(*status);
    }
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    let mut log = Log::of(&server, &reader);
    let item = r#"{"id":"1","pk":"a","text":"not-for-the-log"}"#;
    let docs = || server.post("/dbs/db/colls/c/docs", item).key("a");
    log.check(docs().signed_with(&reader), 401, "CreateItem READER /dbs/db/colls/c/docs - denied 401").await;
    log.check(
        server.get(PERMISSIONS).signed_with(&reader),
        401,
        "ListPermissions READER /dbs/db/users/u/permissions - denied 401",
    )
    .await;
    log.check(docs().unsigned(), 401, "CreateItem - /dbs/db/colls/c/docs - denied 401").await;
    log.check(docs().signed_with("b3RoZXI="), 401, "CreateItem - /dbs/db/colls/c/docs - denied 401").await;
    let status = || server.get("/_bolide/status");
    log.check(status().bearer(&reader), 403, "AdminReadStatus READER /_bolide/status - denied 403").await;
    log.check(status().bearer("b3RoZXI="), 401, "AdminReadStatus - /_bolide/status - denied 401").await;

    for (resource, kind, path, body) in [
        ("docs/1", "ReplaceItem", ITEM, r#"{"id":"2","pk":"a"}"#),
        ("sprocs/s", "ReplaceStoredProcedure", "/dbs/db/colls/c/sprocs/s", r#"{"id":"t","body":"f"}"#),
    ] {
        let definition =
            format!(r#"{{"id":"one","permissionMode":"All","resource":"dbs/db/colls/c/{resource}"}}"#);
        let permission = server.post(PERMISSIONS, &definition).upsert().send().await;
        log.names.push((format!("permission {}", permission.string("_rid")), "TOKEN"));
        let token = utf8_percent_encode(&permission.string("_token"), NON_ALPHANUMERIC).to_string();
        log.news();
        let with_token = |request: Request| {
            request.unsigned().without("x-ms-date").header("authorization", &token).key("a")
        };
        log.check(with_token(docs()), 403, "CreateItem TOKEN /dbs/db/colls/c/docs - denied 403").await;
        let line = format!("{kind} TOKEN {path} - denied 403");
        log.check(with_token(server.put(path, body)), 403, &line).await;
    }
}

#[tokio::test]
async fn requests_in_direct_mode_leave_the_same_lines() {
    let fixture = Fixture::empty().await;
    let server = &fixture.server;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    server.create_container("c", "").await.expect_status(201);
    let reader = reader(server);
    let mut log = Log::of(server, &reader);
    let item = r#"{"id":"1","pk":"a","text":"not-for-the-log"}"#;
    let call = |operation, path| direct::Call::new(operation, path).key(r#"["a"]"#).payload(item);
    let (docs, one) = ("dbs/db/colls/c/docs", "dbs/db/colls/c/docs/1");

    let mut owner = fixture.connect().await;
    expect(&mut owner, &call(Create, docs), 201).await;
    assert!(log.news().is_empty());
    let mut other = fixture.connect_with(&reader).await;
    let read = direct::Call::new(Read, one).key(r#"["a"]"#);
    expect(&mut other, &read, 200).await;
    assert!(log.news().is_empty());
    expect(&mut other, &call(Replace, one), 401).await;
    assert_eq!(log.news(), ["ReplaceItem READER /dbs/db/colls/c/docs/1 - denied 401"]);
    let mut unauthenticated = fixture.connect_with("b3RoZXI=").await;
    expect(&mut unauthenticated, &read, 401).await;
    assert_eq!(log.news(), ["ReadItem - /dbs/db/colls/c/docs/1 - denied 401"]);
    assert!(server.audit.events().iter().all(|event| event.from.is_some()));
}
