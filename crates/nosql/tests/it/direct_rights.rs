//! Direct mode: the rights of keys and resource tokens, checked for each request.

use std::sync::atomic::Ordering;

use account::Kind;
use direct::{Call, sign_link};
use document::Value;
use nosql::tenant;
use rntbd::OperationType::{Create, Delete, Query, Read, ReadFeed, Replace};
use transport::Bounds;

use crate::client::{DATE, KEY, Request, START};
use crate::direct::{Fixture, body, create, expect, item, json, read};
use crate::direct_addresses::{addresses, percent};

const PERMISSIONS: &str = "dbs/db/users/u/permissions";
const PERMISSION: &str = "dbs/db/users/u/permissions/p";

fn made_key(fixture: &Fixture, kind: Kind) -> String {
    fixture.server.keys.regenerate(kind).unwrap().reveal().to_owned()
}

#[tokio::test]
async fn two_keys_on_one_connection_have_each_their_own_rights_and_shares() {
    let (fixture, load) = Fixture::bounded(Bounds { held_bytes: 1 << 20, ..Bounds::default() }).await;
    let reader = made_key(&fixture, Kind::PrimaryReadonly);
    let mut client = fixture.connect().await;
    let path = item("1");
    let large = body("1", &format!(r#","x":"{}""#, "x".repeat(100_000)));
    expect(&mut client, &create(&large), 201).await;
    let may_read = sign_link("get", "docs", &path, DATE, &reader);
    let may_write = sign_link("post", "docs", "dbs/db/colls/c", DATE, &reader);
    let by_reader = read(&path).with(|tokens| tokens.authorization = Some(&may_read));
    let other = body("2", "");
    expect(&mut client, &by_reader, 200).await;
    let refused = create(&other).with(|tokens| tokens.authorization = Some(&may_write));
    expect(&mut client, &refused, 401).await;
    expect(&mut client, &create(&other), 201).await;
    // The tenant of the read-only key holds its whole share.
    let mut held = Vec::new();
    while let Ok(bytes) = load.hold(tenant(Kind::PrimaryReadonly), 1 << 14) {
        held.push(bytes);
    }
    for _ in 0..3 {
        expect(&mut client, &by_reader, 429).await;
        expect(&mut client, &read(&path), 200).await;
    }
    drop(held);
    expect(&mut client, &by_reader, 200).await;
}

/// Returns a request for the addresses of the container.
fn of_container(fixture: &Fixture, rid: &str, authorization: &str) -> Request {
    let path = format!("//addresses/?$resolveFor=dbs%2fx%2fcolls%2f{rid}%2fdocs");
    fixture.server.get(&path).unsigned().header("authorization", authorization)
}

#[tokio::test]
async fn any_valid_key_or_token_is_good_for_addresses_and_no_other() {
    let fixture = Fixture::start().await;
    let server = &fixture.server;
    let rid = server.get("/dbs/db/colls/c").send().await.string("_rid");
    let reader = made_key(&fixture, Kind::PrimaryReadonly);
    for (key, status) in [(KEY, 200), (&reader, 200), ("d3Jvbmc=", 401)] {
        let signed = sign_link("get", "docs", &rid.to_lowercase(), DATE, key);
        of_container(&fixture, &rid, &signed).send().await.expect_status(status);
        let signed = sign_link("get", "dbs", "", DATE, key);
        let master = server.get("//addresses/?$resolveFor=dbs").unsigned();
        master.header("authorization", &signed).send().await.expect_status(status);
    }
    server.post("/dbs/db/users", r#"{"id":"u"}"#).send().await.expect_status(201);
    let permission = r#"{"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"}"#;
    let made = server.post("/dbs/db/users/u/permissions", permission).send().await.expect_status(201);
    let token = percent(&made.string("_token"));
    let ask = || of_container(&fixture, &rid, &token).send();
    assert_eq!(addresses(&ask().await.expect_status(200)).len(), 2);
    server.real_seconds.store(START + 3600, Ordering::Relaxed);
    let expired = ask().await.expect_error(403, 0, "Forbidden");
    assert!(expired.message().contains("not valid at the current time"), "{}", expired.message());
    let forged = token.replace("sig%3D", "sig%3DA");
    assert_ne!(forged, token);
    of_container(&fixture, &rid, &forged).send().await.expect_error(401, 0, "Unauthorized");
}

#[tokio::test]
async fn users_and_permissions_are_made_read_changed_and_deleted_and_their_tokens_open_items() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    let path = item("1");
    expect(&mut client, &create(&body("1", "")), 201).await;
    expect(&mut client, &Call::new(Create, "dbs/db/users").payload(r#"{"id":"u"}"#), 201).await;
    let permission =
        |mode: &str| format!(r#"{{"id":"p","permissionMode":"{mode}","resource":"dbs/db/colls/c"}}"#);
    let (of_reading, of_all) = (permission("Read"), permission("All"));
    let made = expect(&mut client, &Call::new(Create, PERMISSIONS).payload(&of_reading), 201).await;
    let text =
        |reply: &direct::Reply, name: &str| json(reply).get(name).and_then(Value::as_str).unwrap().to_owned();
    let token = percent(&text(&made, "_token"));
    let by_token = read(&path).with(|tokens| tokens.authorization = Some(&token));
    expect(&mut client, &by_token, 200).await;
    let second = body("2", "");
    let written = create(&second).with(|tokens| tokens.authorization = Some(&token));
    expect(&mut client, &written, 403).await;
    expect(&mut client, &Call::new(Replace, PERMISSION).payload(&of_all), 200).await;
    expect(&mut client, &written, 201).await;

    let found = expect(&mut client, &Call::new(Read, PERMISSION), 200).await;
    assert_eq!(text(&found, "permissionMode"), "All");
    let feed = expect(&mut client, &Call::new(ReadFeed, PERMISSIONS), 200).await;
    let query = r#"{"query":"SELECT * FROM root r WHERE r.id = 'p'"}"#;
    let asked = expect(&mut client, &Call::new(Query, PERMISSIONS).payload(query), 200).await;
    for page in [feed, asked] {
        assert_eq!(page.tokens().item_count, Some(1));
        assert!(page.text().contains(r#""permissionMode":"All""#), "{}", page.text());
    }
    let key = made_key(&fixture, Kind::SecondaryReadonly);
    let reader = sign_link("get", "permissions", PERMISSION, DATE, &key);
    let by_reader = Call::new(Read, PERMISSION).with(|tokens| tokens.authorization = Some(&reader));
    expect(&mut client, &by_reader, 401).await;
    expect(&mut client, &Call::new(Delete, PERMISSION), 204).await;
    expect(&mut client, &by_token, 403).await;
    expect(&mut client, &read(&path), 200).await;
}
