//! Start, readiness, shutdown, and the data that survives.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::process::{KEY, Server, command, read_answer};

#[test]
fn it_is_ready_when_it_prints_its_connection_string() {
    let server = Server::start(&["--memory"]);
    assert_eq!(server.get("/ready").0, 200);
    assert_eq!(server.get("/alive").0, 200);
    assert_eq!(
        server.connection_string,
        format!("AccountEndpoint=http://{}/;AccountKey={KEY};", server.address)
    );
    let (status, account) = server.get("/");
    assert_eq!(status, 200);
    assert!(account.contains(&format!("http://{}/", server.address)), "{account}");
}

#[test]
fn sigterm_and_sigint_end_it_with_success() {
    for signal in ["TERM", "INT"] {
        let directory = tempfile::tempdir().unwrap();
        let mut server = Server::in_directory(directory.path(), &[]);
        server.create_container("");
        server.signal(signal);
        assert_eq!(server.child.wait().unwrap().code(), Some(0), "SIG{signal}");
    }
}

#[test]
fn a_request_in_flight_is_finished_before_the_end() {
    let mut server = Server::start(&["--memory"]);
    let body = r#"{"id":"late"}"#;
    let mut busy = TcpStream::connect(&server.address).unwrap();
    busy.write_all(server.signed_head("POST", "/dbs", body.len()).as_bytes()).unwrap();
    busy.write_all(&body.as_bytes()[..5]).unwrap();
    let mut idle = TcpStream::connect(&server.address).unwrap();
    idle.write_all(b"GET /alive HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut byte = [0];
    idle.read_exact(&mut byte).unwrap();
    server.signal("TERM");
    // The idle connection is closed once the shutdown begins; the busy one is still served.
    idle.read_to_end(&mut Vec::new()).unwrap();
    busy.write_all(&body.as_bytes()[5..]).unwrap();
    assert_eq!(read_answer(&mut busy).0, 201);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn data_survives_a_clean_end_and_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::in_directory(directory.path(), &[]);
    server.create_container("");
    assert_eq!(server.create("before-end"), 201);
    assert_eq!(server.terminate(), Some(0));
    let server = Server::in_directory(directory.path(), &[]);
    assert_eq!(server.read("before-end"), 200);
    for n in 0..20 {
        assert_eq!(server.create(&format!("before-kill-{n}")), 201);
    }
    server.kill();
    let server = Server::in_directory(directory.path(), &[]);
    for n in 0..20 {
        assert_eq!(server.read(&format!("before-kill-{n}")), 200, "an acknowledged write is lost");
    }
    assert_eq!(server.read("before-end"), 200);
    assert_eq!(server.create("before-end"), 409);
}

#[test]
fn a_directory_serves_one_process_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::in_directory(directory.path(), &[]);
    let data = directory.path().to_str().unwrap();
    let second = command().args(["--data", data, "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(!second.status.success());
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(message.contains(data) && message.contains("in use"), "{message}");
    assert_eq!(server.get("/ready").0, 200);
}

#[test]
fn a_taken_port_is_named() {
    let server = Server::start(&["--memory"]);
    let second = command().args(["--memory", "--listen", &server.address]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains(&server.address));
}
