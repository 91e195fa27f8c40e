//! Ids as clients put them into a path: escaped, half escaped, or not at all; but always signed unescaped.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::client::{DATE, KEY, Reply, Request, Server, sign_link};

/// Only the characters that a request line cannot carry.
const LEAST: &AsciiSet = &CONTROLS.add(b' ').add(b'#').add(b'<').add(b'>').add(b'`');

/// Ids that the service accepts.
const IDS: [&str; 23] = [
    "plain",
    "Disallowed?Chars",
    "?",
    "?leading",
    "trailing?",
    "two?question?marks=&x",
    "Disallowed#Chars",
    "50%",
    "percent%20encoded",
    "WithPercentEncodedSpecialChar%E9%B1%80",
    "%3F",
    "with spaces in it",
    " leading",
    "trailing ",
    "a+b",
    "a&b=c;d",
    "'single' \"double\"",
    "größe 鱀 🚀",
    "WithAllowedSpecial,=.:~+-@()^${}[]!_Chars",
    "..",
    "tab\tand\rline\nfeed",
    "<tag>|`",
    "docs",
];

fn link(id: &str) -> String {
    format!("dbs/db/colls/c/docs/{id}")
}

/// A request about an item, its id escaped in this way, signed as clients do.
fn about(server: &Server, method: &str, id: &str, escape: &'static AsciiSet, body: &str) -> Request {
    let path = format!("/dbs/db/colls/c/docs/{}", utf8_percent_encode(id, escape));
    let signature = sign_link(method, "docs", &link(id), DATE, KEY);
    server.request(method, &path, body).unsigned().header("authorization", &signature).key("p")
}

fn json(id: &str) -> String {
    document::Value::String(id.to_owned()).to_json()
}

#[track_caller]
fn assert_id(reply: &Reply, id: &str) {
    assert_eq!(reply.string("id"), id);
}

#[tokio::test]
async fn every_id_that_the_service_takes_works_however_it_is_escaped() {
    let server = Server::with_container("").await;
    let long = "x".repeat(255);
    for id in IDS.into_iter().chain([long.as_str()]) {
        for escape in [NON_ALPHANUMERIC, LEAST] {
            let body = format!(r#"{{"id":{},"pk":"p"}}"#, json(id));
            assert_id(&server.create("p", &body).await.expect_status(201), id);
            assert_id(&about(&server, "GET", id, escape, "").send().await.expect_status(200), id);
            let changed = format!(r#"{{"id":{},"pk":"p","n":1}}"#, json(id));
            about(&server, "PUT", id, escape, &changed).send().await.expect_status(200);
            let patch = r#"{"operations":[{"op":"incr","path":"/n","value":1}]}"#;
            let patched = about(&server, "PATCH", id, escape, patch).send().await.expect_status(200);
            assert_eq!(patched.member("n").to_json(), "2");
            let found = server.query(&format!("SELECT * FROM c WHERE c.id = {}", json(id))).await;
            assert_eq!(found.expect_status(200).ids("Documents"), [id]);
            about(&server, "DELETE", id, escape, "").send().await.expect_status(204);
            about(&server, "GET", id, escape, "").send().await.expect_status(404);
        }
    }
}

/// However an address may be read, it names the item that was signed, and no other.
#[tokio::test]
async fn the_signature_tells_which_id_is_meant() {
    let server = Server::with_container("").await;
    for id in ["a", "a?b", "a?", "a b", "a%20b"] {
        server.create("p", &format!(r#"{{"id":{},"pk":"p"}}"#, json(id))).await.expect_status(201);
    }
    let read = |raw: &str, signed: &str| {
        let signature = sign_link("GET", "docs", &link(signed), DATE, KEY);
        let request = server.get(&format!("/dbs/db/colls/c/docs/{raw}")).unsigned();
        request.header("authorization", &signature).key("p").send()
    };
    for (raw, signed) in [
        ("a?b", "a?b"),
        ("a?b", "a"),
        ("a", "a?"),
        ("a?", "a?"),
        ("a%3Fb", "a?b"),
        ("a%20b", "a b"),
        ("a%20b", "a%20b"),
        ("a%2520b", "a%20b"),
    ] {
        assert_id(&read(raw, signed).await.expect_status(200), signed);
    }
    for (raw, signed) in [("a", "a?b"), ("a?b", "b"), ("a%20b", "a"), ("a%3Fb", "a")] {
        read(raw, signed).await.expect_status(401);
    }
}

/// JavaScript's address of the item `?` is that of the list, with a slash after it; the signature names the item.
#[tokio::test]
async fn a_question_mark_alone_that_a_client_drops_names_its_item_and_not_the_list() {
    let server = Server::with_container("").await;
    for id in ["?", "a"] {
        server.create("p", &format!(r#"{{"id":"{id}","pk":"p"}}"#)).await.expect_status(201);
    }
    let about = |method: &str, body: &str| {
        let signature = sign_link(method, "docs", &link("?"), DATE, KEY);
        let request = server.request(method, "/dbs/db/colls/c/docs/", body).unsigned();
        request.header("authorization", &signature).key("p")
    };
    assert_id(&about("GET", "").send().await.expect_status(200), "?");
    let replaced = about("PUT", r#"{"id":"?","pk":"p","n":1}"#).send().await.expect_status(200);
    assert_id(&replaced, "?");
    let patch = r#"{"operations":[{"op":"incr","path":"/n","value":1}]}"#;
    assert_eq!(about("PATCH", patch).send().await.expect_status(200).member("n").to_json(), "2");
    // A signature for the item neither creates nor reads a list of changes.
    about("POST", r#"{"id":"b","pk":"p"}"#).send().await.expect_status(405);
    about("GET", "").header("a-im", "Incremental Feed").send().await.expect_status(405);
    about("DELETE", "").send().await.expect_status(204);
    about("GET", "").send().await.expect_status(404);
    // The list itself has the same address.
    let list = server.get("/dbs/db/colls/c/docs/").send().await.expect_status(200);
    assert_eq!(list.ids("Documents"), ["a"]);
    server.put("/dbs/db/colls/c/docs/", "{}").send().await.expect_status(405);
    server.put("/dbs/db/colls/c/docs/", "{}").unsigned().send().await.expect_status(401);
}

#[tokio::test]
async fn what_no_path_can_name_is_refused_at_creation() {
    let server = Server::with_container("").await;
    for id in ["a/b", "a\\b", "/", "\\", ""] {
        let body = format!(r#"{{"id":{},"pk":"p"}}"#, json(id));
        for request in [
            server.post("/dbs/db/colls/c/docs", &body).key("p"),
            server.post("/dbs/db/colls/c/docs", &body).key("p").upsert(),
        ] {
            let refused = request.send().await.expect_error(400, 0, "BadRequest");
            assert!(refused.message().contains("the id"), "{}", refused.message());
        }
    }
    assert!(server.get("/dbs/db/colls/c/docs").send().await.ids("Documents").is_empty());
}
