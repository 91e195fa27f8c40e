//! A load balancer asks `/ready` whether a server does its work.

use std::io::Write;
use std::net::TcpStream;

use crate::process::{KEY, Server, now, read_answer, sign};

const DOCS: &str = "/dbs/db/colls/c/docs";
/// How often a client asks at most; a refusal takes a second.
const TRIES: u32 = 120;

/// Sends a query, whose answer is the caller's to read.
fn ask(server: &Server, key: &str, text: &str) -> TcpStream {
    let (date, body) = (now(), format!("{{\"query\":\"{text}\"}}"));
    let token = sign("POST", DOCS, &date, key);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let request = format!(
        "POST {DOCS} HTTP/1.1\r\nhost: {}\r\nx-ms-date: {date}\r\nauthorization: {token}\r\n\
         x-ms-documentdb-isquery: True\r\nx-ms-documentdb-query-enablecrosspartition: True\r\n\
         content-type: application/query+json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        server.address,
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Asks the same cheap query until `holds` of the status of an answer.
fn ask_until(server: &Server, key: &str, holds: impl Fn(u16) -> bool) {
    let answered = (0..TRIES).any(|_| {
        let (status, body) = read_answer(&mut ask(server, key, "SELECT VALUE c.id FROM c"));
        assert!(matches!(status, 200 | 429), "{status}: {body}");
        holds(status)
    });
    assert!(answered, "it did not come to that");
}

#[test]
fn a_server_whose_only_permit_is_taken_is_not_ready_until_it_is_free() {
    let server = Server::start(&["--memory", "--max-queries", "1", "--max-queue-wait", "1"]);
    server.create_container("");
    let numbers: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let body = format!(r#"{{"id":"1","pk":"a","n":[{}]}}"#, numbers.join(","));
    let partition = [("x-ms-documentdb-partitionkey", r#"["a"]"#)];
    assert_eq!(server.request("POST", DOCS, &partition, &body).0, 201);
    let (status, answer) = server.admin("POST", "/_bolide/keys", r#"{"regenerate":"primaryReadonly"}"#);
    assert_eq!(status, 200, "{answer}");
    let (_, rest) = answer.split_once("\"key\":\"").unwrap();
    let reader = rest.split('"').next().unwrap();

    let joins = ["a", "b", "d", "e", "f"].map(|name| format!("JOIN {name} IN c.n")).join(" ");
    let endless = ask(&server, KEY, &format!("SELECT VALUE COUNT(1) FROM c {joins}"));
    assert_eq!(server.open("/ready").0, 200);
    ask_until(&server, reader, |status| status == 429 && server.open("/ready").0 == 503);
    let (_, told) = server.open("/ready");
    assert!(told.contains("clients that hold nothing have been refused"), "{told}");

    drop(endless);
    ask_until(&server, reader, |status| status == 200);
    assert_eq!(server.open("/ready").0, 200);
    assert_eq!(server.terminate(), Some(0));
}
