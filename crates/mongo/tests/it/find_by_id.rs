//! `find` by `_id` alone takes a short path; it must have the results of the long one.

use std::time::Duration;

use bson::{Document, Value};

use crate::client::{Client, Server, inner, json};

/// The stored `_id`s, by type. Numbers that are equal are one `_id`, whatever their type.
const IDS: &[&str] = &[
    r#""a""#,
    r#""""#,
    r"1",
    r#"{"$numberLong": "4294967296"}"#,
    r"2.5",
    r"null",
    r"true",
    r#"{"$oid": "0123456789abcdef01234567"}"#,
    r#"{"$binary": {"base64": "AAECAwQFBgcICQoLDA0ODw==", "subType": "04"}}"#,
    r#"{"$date": {"$numberLong": "1700000000000"}}"#,
    r#"{"x": 1}"#,
];

/// Ids to ask for that are absent under this type or altogether.
const ASKED: &[&str] =
    &[r#""b""#, r#"{"$numberLong": "1"}"#, "1.0", "3", r#"{"$numberLong": "3"}"#, r#"{"$symbol": "a"}"#];

async fn filled(server: &Server) -> Client<tokio::net::TcpStream> {
    let mut client = server.connect().await;
    let documents: Vec<String> = IDS.iter().map(|id| format!(r#"{{"_id": {id}, "of": {id}}}"#)).collect();
    for command in [
        format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(", ")),
        r#"{"create": "folded", "collation": {"locale": "en", "strength": 2}}"#.to_owned(),
        r#"{"insert": "folded", "documents": [{"_id": "A"}]}"#.to_owned(),
        r#"{"create": "view", "viewOn": "c", "pipeline": [{"$match": {"_id": {"$ne": "a"}}}]}"#.to_owned(),
    ] {
        client.done("db", json(&command)).await;
    }
    client
}

fn batch(reply: &Document) -> &[Value] {
    inner(reply, "cursor.firstBatch").as_array().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_short_way_leads_where_the_long_one_leads() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let mut found = 0;
    for collection in ["c", "folded", "view", "none"] {
        for id in IDS.iter().chain(ASKED) {
            for options in
                ["", r#", "limit": 1, "singleBatch": true"#, r#", "batchSize": 1"#, r#", "limit": 0"#]
            {
                let short = format!(r#"{{"find": "{collection}", "filter": {{"_id": {id}}}{options}}}"#);
                let long =
                    format!(r#"{{"find": "{collection}", "filter": {{"_id": {id}}}, "skip": 0{options}}}"#);
                let short = client.done("db", json(&short)).await;
                let long = client.done("db", json(&long)).await;
                assert_eq!(batch(&short), batch(&long), "{collection} {id} {options}");
                assert_eq!(inner(&short, "cursor.ns"), inner(&long, "cursor.ns"));
                found += batch(&short).len();
            }
        }
    }
    // In c all of them, 1 by two other types, "a" by another one; in the view the same without "a"; in the folded one "a" twice.
    assert_eq!(found, (14 + 12 + 2) * 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_told_on_the_short_way_too() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    for (command, code) in [
        (r#"{"find": "c", "filter": {"_id": 1}, "limit": -1}"#, 51024),
        (r#"{"find": "c", "filter": {"_id": 1}, "limit": "1"}"#, 14),
        (r#"{"find": "c", "filter": {"_id": 1}, "singleBatch": "yes"}"#, 14),
        (r#"{"find": "c", "filter": {"_id": 1}, "batchSize": -1}"#, 51024),
        (r#"{"find": "c", "filter": {"_id": 1}, "other": 1}"#, 40415),
        (r#"{"find": "a$b", "filter": {"_id": 1}}"#, 73),
    ] {
        assert_eq!(client.fails("db", json(command)).await.0, code, "{command}");
    }
    let secret = json(r#"{"find": "system.users", "filter": {"_id": "x"}}"#);
    assert_eq!(client.fails("admin", secret).await.0, 13);
    let first = client.done("db", json(r#"{"find": "c", "filter": {"_id": 1}, "batchSize": 0}"#)).await;
    assert_eq!(batch(&first), [], "it waits in a cursor");
    assert_ne!(inner(&first, "cursor.id"), &Value::Int64(0));
}

/// T1, T14: an expired document is not found, before the purge has run.
#[tokio::test(flavor = "multi_thread")]
async fn expired_documents_are_not_found_on_the_short_path() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for command in [
        r#"{"insert": "c", "documents": [{"_id": 1}]}"#,
        r#"{"createIndexes": "c", "indexes": [{"key": {"_ts": 1}, "name": "t", "expireAfterSeconds": 5}]}"#,
    ] {
        client.done("db", json(command)).await;
    }
    for (seconds, living) in [(0, 1), (4, 1), (1, 0)] {
        server.clock.advance(Duration::from_secs(seconds));
        let reply = client.done("db", json(r#"{"find": "c", "filter": {"_id": 1}}"#)).await;
        assert_eq!(batch(&reply).len(), living, "{seconds}");
    }
}
