//! Both APIs receive large requests into the same memory: clients of one leave some for those of the other, whether they do
//! not end their requests or let them wait for a transaction.

use std::io::Write;
use std::net::TcpStream;

use bson::{Binary, Document};

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

fn part(command: Document) -> Document {
    let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![1; 16] });
    command.with("lsid", lsid).with("txnNumber", 1_i64).with("autocommit", false)
}

/// Sets the only document of a collection to a text of so many bytes.
fn update(bytes: usize) -> Document {
    let text = Document::new().with("text", "x".repeat(bytes));
    let update = Document::new().with("q", Document::new()).with("u", Document::new().with("$set", text));
    Document::new().with("update", "c").with("updates", vec![update.into()])
}

#[test]
fn writes_that_wait_for_a_transaction_leave_room_to_the_other_api() {
    let server = Server::start(&["--memory", "--request-memory", &REQUEST_MEMORY.to_string()]);
    server.create_container("");
    let mut transaction = MongoClient::connect(&server);
    let insert = Document::new().with("insert", "c").with("documents", vec![Document::new().into()]);
    assert!(is_ok(&transaction.run("test", insert)));
    assert!(is_ok(&transaction.run("test", part(update(1)).with("startTransaction", true))));
    std::thread::scope(|scope| {
        let write = || assert!(is_ok(&MongoClient::connect(&server).run("test", update(EACH))));
        let writes: Vec<_> = (0..COUNT).map(|_| scope.spawn(write)).collect();
        until_held(&server, |bytes| bytes >= REQUEST_MEMORY / 2 / 2);
        for (id, bytes) in [10, OTHER, EACH, 10, OTHER].into_iter().enumerate() {
            let body = format!(r#"{{"id":"{id}","pk":"a","text":"{}"}}"#, "x".repeat(bytes));
            let key = [("x-ms-documentdb-partitionkey", r#"["a"]"#)];
            let (status, answer) = server.request("POST", "/dbs/db/colls/c/docs", &key, &body);
            assert_eq!(status, 201, "{answer}");
        }
        assert!(writes.iter().all(|write| !write.is_finished()), "they still wait");
        assert!(is_ok(&transaction.run("admin", part(Document::new().with("abortTransaction", 1)))));
    });
    until_held(&server, |bytes| bytes == 0);
    assert_eq!(server.terminate(), Some(0));
}
