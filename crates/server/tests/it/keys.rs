//! Keys of the real process: replaced without a restart, kept across one, and never in the log.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use percent_encoding::percent_decode_str;
use sha2::Sha256;

use crate::process::{KEY, Server, command, now, run, sign};

const DOCS: &str = "/dbs/db/colls/c/docs";
const ITEM: &str = "/dbs/db/colls/c/docs/1";
const PARTITION: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"a\"]");

/// The text of a member, which holds no quotes.
fn member(json: &str, name: &str) -> String {
    let (_, rest) = json.split_once(&format!("\"{name}\":\"")).unwrap_or_else(|| panic!("{name} in {json}"));
    rest.split('"').next().unwrap().to_owned()
}

fn regenerate(server: &Server, with: &str, kind: &str) -> String {
    let body = format!("{{\"regenerate\":\"{kind}\"}}");
    let (status, text) = server.admin_with(with, "POST", "/_bolide/keys", &body);
    assert_eq!(status, 200, "{text}");
    member(&text, "key")
}

fn reads(server: &Server, key: &str) -> u16 {
    server.request_with(key, "GET", "/dbs/db/colls/c", &[], "").0
}

#[test]
fn keys_are_replaced_without_a_restart_and_survive_kill_9() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::in_directory(data.path(), &[]);
    server.create_container("");
    let second = regenerate(&server, KEY, "secondary");
    let primary = regenerate(&server, &second, "primary");
    assert_eq!([KEY, &primary, &second].map(|key| reads(&server, key)), [401, 200, 200]);
    server.kill();
    let server = Server::in_directory(data.path(), &[]);
    assert!(!server.connection_string.contains("AccountKey"), "what is secret now is not shown");
    assert_eq!([KEY, &primary, &second].map(|key| reads(&server, key)), [401, 200, 200]);
    let newer = regenerate(&server, &primary, "secondary");
    assert_eq!([&primary, &second, &newer].map(|key| reads(&server, key)), [200, 401, 200]);
    assert_eq!(server.terminate(), Some(0));
    let server = Server::in_directory(data.path(), &["--key", "Z2l2ZW4="]);
    let (status, text) =
        server.admin_with("Z2l2ZW4=", "POST", "/_bolide/keys", r#"{"regenerate":"primary"}"#);
    assert!(status == 409 && text.contains("'key'"), "{text}");
    assert_eq!([&primary, &newer, "Z2l2ZW4="].map(|key| reads(&server, key)), [401, 200, 200]);
}

#[test]
fn the_tool_lists_keys_and_has_new_ones_made() {
    let server = Server::start(&["--memory"]);
    let url = format!("http://{}", server.address);
    let keys = |more: &[&str]| run(&[&["keys", "--url", &url], more].concat());
    let made = keys(&["--regenerate", "secondary"]);
    assert!(made.status.success(), "{made:?}");
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    assert_eq!(server.admin_with(&key, "GET", "/_bolide/status", "").0, 200);
    let listed = String::from_utf8(keys(&["--key", &key]).stdout).unwrap();
    assert!(listed.contains("everybody knows it") && listed.contains("made by the server"), "{listed}");
    assert!(!listed.contains(&key));
    assert_eq!(keys(&["--regenerate", "tertiary"]).status.code(), Some(2));
    let refused = keys(&["--key", "d3Jvbmc="]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(!String::from_utf8_lossy(&refused.stderr).contains("d3Jvbmc="), "{refused:?}");
}

/// A resource token of a key, for the permission of that resource id.
fn token(key: &str, permission: &str, expires_seconds: u64) -> String {
    let mac = |key: &[u8], text: &[u8]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(text);
        mac.finalize().into_bytes()
    };
    let payload = format!("{permission} {expires_seconds}");
    let derived = mac(&STANDARD.decode(key).unwrap(), b"bolide resource token 1");
    let signature = STANDARD.encode(mac(&derived, payload.as_bytes()));
    format!("type=resource&ver=1.0&sig={signature};{};", STANDARD.encode(payload))
}

/// A document of texts and bytes, and the first number.
fn bson(command: &str, number: i32, texts: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut body = [b"\x10", command.as_bytes(), b"\0", &number.to_le_bytes()].concat();
    for (name, text) in texts {
        body.extend([b"\x02", name.as_bytes(), b"\0", &(text.len() as i32 + 1).to_le_bytes()].concat());
        body.extend([text.as_bytes(), b"\0"].concat());
    }
    body.extend([b"\x05payload\0".as_slice(), &(payload.len() as i32).to_le_bytes(), b"\0"].concat());
    body.extend([payload.as_bytes(), b"\0"].concat());
    [&(body.len() as i32 + 4).to_le_bytes(), body.as_slice()].concat()
}

fn exchange(stream: &mut TcpStream, document: &[u8]) -> Vec<u8> {
    let length = (16 + 5 + document.len()) as i32;
    let header = [length, 1, 0, 2013, 0].map(i32::to_le_bytes).concat();
    stream.write_all(&[header.as_slice(), b"\0", document].concat()).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut rest = vec![0; i32::from_le_bytes(length) as usize - 4];
    stream.read_exact(&mut rest).unwrap();
    rest
}

/// Begins to authenticate as the account and ends with a proof that is none; what was sent and what came.
fn wrong_scram(server: &Server) -> Vec<String> {
    let printed = server.mongo.clone().unwrap();
    let address = printed.split('@').next_back().unwrap().split('/').next().unwrap().to_owned();
    let mut stream = TcpStream::connect(address.trim_start_matches("mongodb://")).unwrap();
    let first = "n,,n=bolide,r=a-nonce-that-nobody-should-log";
    let texts = [("mechanism", "SCRAM-SHA-256"), ("$db", "admin")];
    let answer = exchange(&mut stream, &bson("saslStart", 1, &texts, first));
    let text = String::from_utf8_lossy(&answer).into_owned();
    let begin = text.find("r=a-nonce").unwrap_or_else(|| panic!("{text}"));
    let challenge: String = text[begin..].chars().take_while(|c| *c != '\0').collect();
    let nonce = challenge.split(',').next().unwrap();
    let last = format!("c=biws,{nonce},p={}", STANDARD.encode([7; 32]));
    // Conversations count from 1.
    let mut document = bson("saslContinue", 1, &[("$db", "admin")], &last);
    let number = [b"\x10conversationId\0".as_slice(), &1_i32.to_le_bytes()].concat();
    document.splice(document.len() - 1..document.len() - 1, number);
    let length = (document.len() as i32).to_le_bytes();
    document[..4].copy_from_slice(&length);
    let refused = exchange(&mut stream, &document);
    assert!(String::from_utf8_lossy(&refused).contains("AuthenticationFailed"), "{refused:?}");
    vec![first.to_owned(), challenge.clone(), last.clone(), STANDARD.encode(first), STANDARD.encode(last)]
}

/// A server that logs everything into a file.
fn logging(data: &Path, log: &Path, key: &str) -> Server {
    let mut command = command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--key", key, "--data", data.to_str().unwrap()]);
    Server::start_command(command.env("BOLIDE_LOG", "trace").stderr(File::create(log).unwrap()))
}

#[test]
fn whoever_is_refused_is_logged_and_no_secret_is() {
    let (directory, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let key = STANDARD.encode("the key of this test");
    let server = logging(directory.path(), log.path(), &key);
    let wrong = STANDARD.encode("some other key");
    let mut secrets = vec![key.clone(), wrong.clone()];
    let ask = |key: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        server.request_with(key, method, path, headers, body)
    };
    for (path, body) in [
        ("/dbs", r#"{"id":"db"}"#),
        ("/dbs/db/colls", r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#),
        ("/dbs/db/users", r#"{"id":"u"}"#),
    ] {
        assert_eq!(ask(&key, "POST", path, &[], body).0, 201);
    }
    assert_eq!(ask(&key, "POST", DOCS, &[PARTITION], r#"{"id":"1","pk":"a"}"#).0, 201);
    let permission = r#"{"id":"p","permissionMode":"All","resource":"dbs/db/colls/c"}"#;
    let (status, permission) = ask(&key, "POST", "/dbs/db/users/u/permissions", &[], permission);
    assert_eq!(status, 201);
    let good = member(&permission, "_token");

    // Wrong key, as a signature and as it is.
    let date = now();
    let signed = sign("GET", ITEM, &date, &wrong);
    let headers = [("x-ms-date", date.as_str()), ("authorization", signed.as_str()), PARTITION];
    assert_eq!(server.exchange("GET", ITEM, &headers, "").0, 401);
    assert_eq!(server.admin_with(&wrong, "GET", "/_bolide/status", "").0, 401);
    secrets.push(signed.clone());
    let decoded = percent_decode_str(&signed).decode_utf8().unwrap().into_owned();
    secrets.push(decoded.rsplit_once("sig=").unwrap().1.to_owned());
    // Read-only key writing, and a revoked one.
    let reader = regenerate(&server, &key, "primaryReadonly");
    assert_eq!(ask(&reader, "GET", ITEM, &[PARTITION], "").0, 200);
    let (status, text) = ask(&reader, "DELETE", ITEM, &[PARTITION], "");
    assert!(status == 401 && text.contains("read-only key"), "{text}");
    let newer = regenerate(&server, &key, "primaryReadonly");
    assert_eq!(ask(&reader, "GET", ITEM, &[PARTITION], "").0, 401);
    secrets.extend([reader, newer]);
    // A resource token that was good, one that has expired, one that nobody signed.
    let rid = member(&permission, "_rid");
    let with = |token: &str| server.exchange("GET", ITEM, &[("authorization", token), PARTITION], "");
    assert_eq!(with(&good).0, 200);
    let expired = token(&key, &rid, 1_600_000_000);
    let (status, text) = with(&expired);
    assert!(status == 403 && text.contains("Token expiry time"), "{text}");
    let forged = token(&wrong, &rid, 4_000_000_000);
    assert_eq!(with(&forged).0, 401);
    for token in [good, expired, forged] {
        secrets.push(token.split("sig=").nth(1).unwrap().split(';').next().unwrap().to_owned());
    }
    secrets.extend(wrong_scram(&server));
    assert_eq!(server.terminate(), Some(0));

    let log = std::fs::read_to_string(log.path()).unwrap();
    for part in [
        "refused GET \"dbs/db/colls/c/docs/1\" with 401",
        "with 403",
        "read-only key",
        "primaryReadonly key of the account was replaced",
        "authentication failed",
    ] {
        assert!(log.contains(part), "{part} in {log}");
    }
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret} is in the log");
    }
}
