//! The MongoDB API of the real process.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::process::{Server, command};

/// `{ping: 1, $db: "admin"}` as a message.
const PING: &[u8] = b"\x33\0\0\0\x01\0\0\0\0\0\0\0\xDD\x07\0\0\0\0\0\0\0\x1E\0\0\0\x10ping\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0";

fn address(connection_string: &str) -> &str {
    let rest = connection_string.strip_prefix("mongodb://").unwrap();
    let rest = rest.split('/').next().unwrap();
    rest.rsplit('@').next().unwrap()
}

/// Returns the answer to a ping; nothing if the connection ends.
fn ping(stream: &mut TcpStream) -> Vec<u8> {
    stream.write_all(PING).unwrap();
    let mut length = [0; 4];
    if stream.read_exact(&mut length).is_err() {
        return Vec::new();
    }
    let mut rest = vec![0; i32::from_le_bytes(length) as usize - 4];
    stream.read_exact(&mut rest).unwrap();
    rest
}

fn is_ok(answer: &[u8]) -> bool {
    answer.windows(12).any(|bytes| bytes == b"\x01ok\0\0\0\0\0\0\0\xF0\x3F")
}

#[test]
fn it_is_found_at_the_printed_address_and_drains_at_the_end() {
    let mut server = Server::start(&["--memory"]);
    let printed = server.mongo.clone().unwrap();
    assert!(printed.ends_with("/?replicaSet=globaldb") && !printed.contains('@'), "{printed}");
    let mut client = TcpStream::connect(address(&printed)).unwrap();
    assert!(is_ok(&ping(&mut client)));
    server.signal("TERM");
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "an idle connection is closed");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn with_a_key_of_ones_own_it_names_the_user_and_not_the_key() {
    let arguments =
        ["--memory", "--key", "c29tZSBrZXk=", "--mongo-user", "shop", "--mongo-profile", "sharded"];
    let server = Server::start(&arguments);
    let printed = server.mongo.clone().unwrap();
    assert!(printed.starts_with("mongodb://shop@127.0.0.1:") && printed.ends_with('/'), "{printed}");
    assert!(!printed.contains("c29t"));
}

#[test]
fn it_can_be_off_and_a_taken_port_is_named() {
    let server = Server::start(&["--memory", "--mongo-listen", "off"]);
    assert!(server.mongo.is_none());
    let server = Server::start(&["--memory"]);
    let taken = server.mongo.clone().unwrap();
    let arguments = ["--memory", "--listen", "127.0.0.1:0", "--mongo-listen", address(&taken)];
    let second = command().args(arguments).output().unwrap();
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1));
    assert!(message.contains("mongo-listen") && message.contains(address(&taken)), "{message}");
}

#[test]
fn a_certificate_is_made_and_kept_with_the_data() {
    let directory = tempfile::tempdir().unwrap();
    let read = || std::fs::read(directory.path().join("tls/certificate.pem")).unwrap();
    let server = Server::in_directory(directory.path(), &[]);
    let made = read();
    assert!(made.starts_with(b"-----BEGIN CERTIFICATE-----"));
    assert_eq!(server.terminate(), Some(0));
    let server = Server::in_directory(directory.path(), &[]);
    assert_eq!(read(), made);
    assert_eq!(server.terminate(), Some(0));
}
