//! The addresses that clients in direct mode request by HTTP.

use direct::{Call, TlsClient, sign_link};
use document::Value;
use nosql::Limits;
use rntbd::OperationType::Read;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::client::{DATE, KEY, Reply, Server};
use crate::direct::{Fixture, account, body, create, expect, item, read};
use crate::tls;

pub(crate) fn resolve(server: &Server, query: &str, kind: &str, link: &str) -> crate::client::Request {
    let path = format!("//addresses/?{query}&$filter=protocol%20eq%20rntbd");
    let signed = sign_link("get", kind, link, DATE, KEY);
    server.get(&path).unsigned().header("authorization", &signed)
}

pub(crate) fn addresses(reply: &Reply) -> Vec<(String, String, bool)> {
    let all = reply.member("Addresss");
    let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap().to_owned();
    let entries = all.as_array().unwrap().iter().map(|entry| {
        let is_primary = entry.get("isPrimary") == Some(&Value::Bool(true));
        (text(entry, "partitionKeyRangeId"), text(entry, "physcialUri"), is_primary)
    });
    entries.collect()
}

/// Sends the head of a request by HTTP and returns its answer.
async fn answer_to(mut stream: impl AsyncRead + AsyncWrite + Unpin, head: &str) -> Reply {
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    Reply::parse(&answer)
}

#[tokio::test]
async fn addresses_are_those_of_this_server_for_every_way_to_sign() {
    let fixture = Fixture::start().await;
    let server = &fixture.server;
    let host = server.address.to_string();
    let both = |range: &str| {
        [("1p", true), ("2s", false)].map(|(replica, primary)| {
            (range.to_owned(), format!("rntbd://{host}/{range}/{replica}/"), primary)
        })
    };
    let master = resolve(server, "$resolveFor=dbs", "dbs", "").send().await.expect_status(200);
    assert_eq!(addresses(&master), both("M"));
    let rid = server.get("/dbs/db/colls/c").send().await.string("_rid");
    let query = format!("$partitionKeyRangeIds=0,7&$resolveFor=dbs%2fx%2fcolls%2f{rid}%2fdocs");
    for link in [rid.to_lowercase(), "dbs/db/colls/c".to_owned()] {
        let found = resolve(server, &query, "docs", &link).send().await.expect_status(200);
        assert_eq!(addresses(&found), both("0"), "a range that does not exist is left out");
    }
    resolve(server, &query, "docs", "dbs/db/colls/other").send().await.expect_error(401, 0, "Unauthorized");
    let unknown = resolve(server, "$resolveFor=dbs%2fx%2fcolls%2fnone%2fdocs", "docs", "none");
    unknown.send().await.expect_error(404, 0, "NotFound");
    for (host, expected) in [
        ("db.example.org:9000", Some("db.example.org:9000")),
        ("localhost", Some("localhost:80")),
        ("[::1]:8081", None),
    ] {
        let asked = resolve(server, "$resolveFor=dbs", "dbs", "");
        let (head, _) = asked.to_bytes();
        let head = String::from_utf8(head).unwrap();
        let head = head.replace(&format!("host: {}", server.address), &format!("host: {host}"));
        let socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let reply = answer_to(socket, &head).await;
        match expected {
            Some(expected) => {
                assert!(reply.expect_status(200).text().contains(&format!("rntbd://{expected}/M/1p/")));
            }
            None => assert!(reply.expect_status(400).message().contains("IPv6")),
        }
    }
}

#[tokio::test]
async fn without_a_port_in_the_host_it_is_that_of_the_scheme() {
    let fixture = Fixture::start().await;
    let asked = resolve(&fixture.server, "$resolveFor=dbs", "dbs", "");
    let (head, _) = asked.to_bytes();
    let head = String::from_utf8(head).unwrap();
    let head = head.replace(&format!("host: {}", fixture.server.address), "host: db.example.org");
    let stream = tls::connect(&fixture.server, &fixture.connector).await;
    let addresses = addresses(&answer_to(stream, &head).await.expect_status(200));
    assert_eq!(addresses[0].1, "rntbd://db.example.org:443/M/1p/");
}

#[tokio::test]
async fn a_client_that_does_not_trust_the_certificate_is_told_so() {
    let fixture = Fixture::start().await;
    let ask = || {
        let asked = resolve(&fixture.server, "$resolveFor=dbs", "dbs", "");
        asked.header("x-ms-client-id", "client").header("x-ms-force-refresh", "True").send()
    };
    ask().await.expect_status(200);
    for _ in 0..3 {
        // The client finishes the handshake and sends nothing.
        let reached = TlsClient::reach(fixture.server.address, &fixture.connector, account()).await.unwrap();
        drop(reached);
    }
    let refused = loop {
        // The server notices the end of the connections later.
        let reply = ask().await;
        if reply.status != 200 {
            break reply;
        }
        for _ in 0..2 {
            drop(TlsClient::reach(fixture.server.address, &fixture.connector, account()).await.unwrap());
        }
    };
    assert!(refused.expect_error(400, 0, "BadRequest").message().contains("certificate"));
    let mut trusting = fixture.connect().await;
    expect(&mut trusting, &Call::new(Read, "dbs/db"), 200).await;
    ask().await.expect_status(200);
}

#[tokio::test]
async fn a_resource_token_is_good_for_addresses_and_for_its_own_items() {
    let fixture = Fixture::start().await;
    let server = &fixture.server;
    server.post("/dbs/db/users", r#"{"id":"u"}"#).send().await.expect_status(201);
    let permission = r#"{"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"}"#;
    let made = server.post("/dbs/db/users/u/permissions", permission).send().await.expect_status(201);
    let token = percent(&made.string("_token"));
    let rid = server.get("/dbs/db/colls/c").send().await.string("_rid");
    let path = format!("//addresses/?$resolveFor=dbs%2fx%2fcolls%2f{rid}%2fdocs");
    let asked = server.get(&path).unsigned().header("authorization", &token);
    assert_eq!(addresses(&asked.send().await.expect_status(200)).len(), 2);
    let mut client = fixture.connect().await;
    let body = body("1", "");
    let path = item("1");
    expect(&mut client, &create(&body).with(|tokens| tokens.authorization = Some(&token)), 403).await;
    expect(&mut client, &create(&body), 201).await;
    expect(&mut client, &read(&path).with(|tokens| tokens.authorization = Some(&token)), 200).await;
    let database = Call::new(Read, "dbs/db").with(|tokens| tokens.authorization = Some(&token));
    expect(&mut client, &database, 403).await;
}

pub(crate) fn percent(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[tokio::test]
async fn direct_mode_can_be_turned_off_and_says_what_to_do() {
    let (server, connector) = tls::server_with(Limits::default(), &[], |service| {
        service.with_direct(nosql::DirectSettings { is_off: true, public_address: None })
    })
    .await;
    let answer =
        server.get("//addresses/?$resolveFor=dbs").unsigned().send().await.expect_error(400, 0, "BadRequest");
    for part in ["ConnectionMode.Gateway", "gatewayMode()", "'direct'"] {
        assert!(answer.message().contains(part), "{}", answer.message());
    }
    assert!(TlsClient::connect(server.address, &connector, account()).await.is_err());
    let (server, _) = tls::server_with(Limits::default(), &[], |service| {
        let public_address = Some("db.example.org:443".to_owned());
        service.with_direct(nosql::DirectSettings { is_off: false, public_address })
    })
    .await;
    let found = resolve(&server, "$resolveFor=dbs", "dbs", "").send().await.expect_status(200);
    assert_eq!(addresses(&found)[0].1, "rntbd://db.example.org:443/M/1p/");
    let plain = Server::start().await;
    let refused =
        resolve(&plain, "$resolveFor=dbs", "dbs", "").send().await.expect_error(400, 0, "BadRequest");
    assert!(refused.message().contains("TLS"), "{}", refused.message());
}
