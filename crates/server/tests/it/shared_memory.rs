//! Both APIs receive large requests into the same memory: clients of one leave some for those of the other.

use std::io::Write;
use std::net::TcpStream;

use bson::Document;

use crate::mongo_client::{MongoClient, is_ok};
use crate::process::Server;

/// Half of it is for requests that are being received.
const REQUEST_MEMORY: usize = 64 << 20;
/// The bytes that each of the clients announces,
const EACH: usize = 1_900_000;
/// and the number of clients: together they want more than there is.
const COUNT: usize = 20;
/// A request of a client of the other API.
const OTHER: usize = 500_000;
/// How often a test checks for something that the server does in the background.
const TRIES: u32 = 30_000;

fn held_bytes(server: &Server) -> usize {
    let (_, page) = server.admin("GET", "/metrics", "");
    let line = page.lines().find_map(|line| line.strip_prefix("bolide_held_bytes ")).expect("the metric");
    line.trim().parse().expect("a number")
}

#[track_caller]
fn until_held(server: &Server, is_wanted: impl Fn(usize) -> bool) {
    assert!((0..TRIES).any(|_| is_wanted(held_bytes(server))), "{} bytes are held", held_bytes(server));
}

/// Sends a message of the MongoDB API without its end.
fn unfinished_message(server: &Server) -> TcpStream {
    let address = server.mongo.as_ref().unwrap().strip_prefix("mongodb://").unwrap();
    let mut stream = TcpStream::connect(address.split('/').next().unwrap()).unwrap();
    let header = [EACH as i32, 1, 0, 2013].map(i32::to_le_bytes).concat();
    let _ = stream.write_all(&[header, vec![0; EACH - 17]].concat());
    stream
}

/// Sends the body of a request of the NoSQL API without its end.
fn unfinished_body(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = server.signed_head("POST", "/dbs/db/colls/c/docs", EACH);
    let _ = stream.write_all(&[head.into_bytes(), vec![b' '; EACH - 1]].concat());
    stream
}

/// Lets clients hold all memory that they get, and runs another client meanwhile.
fn beside(server: &Server, begin: fn(&Server) -> TcpStream, other: impl Fn()) {
    std::thread::scope(|scope| {
        // Without free memory a client waits to be read.
        let clients: Vec<_> = (0..COUNT).map(|_| scope.spawn(|| begin(server))).collect();
        until_held(server, |bytes| bytes >= REQUEST_MEMORY / 2 / 2);
        other();
        assert!(held_bytes(server) >= REQUEST_MEMORY / 2 / 2, "they still hold it");
        drop(clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>());
    });
    until_held(server, |bytes| bytes == 0);
}

#[test]
fn requests_that_do_not_end_leave_room_to_those_of_the_other_api() {
    let server = Server::start(&["--memory", "--request-memory", &REQUEST_MEMORY.to_string()]);
    server.create_container("");
    let text = "x".repeat(OTHER);
    beside(&server, unfinished_message, || {
        let body = format!(r#"{{"id":"1","pk":"a","text":"{text}"}}"#);
        let key = [("x-ms-documentdb-partitionkey", r#"["a"]"#)];
        let (status, answer) = server.request("POST", "/dbs/db/colls/c/docs", &key, &body);
        assert_eq!(status, 201, "{answer}");
    });
    beside(&server, unfinished_body, || {
        let document = Document::new().with("text", text.as_str());
        let insert = Document::new().with("insert", "c").with("documents", vec![document.into()]);
        let answer = MongoClient::connect(&server).run("test", insert);
        assert!(is_ok(&answer), "{answer:?}");
    });
    assert_eq!(server.terminate(), Some(0));
}
