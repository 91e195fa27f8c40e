//! Keys of the real process: replaced without a restart, kept across one, and never in the log.

use std::fs::{self, File};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::{Document, Value};
use hmac::{Hmac, Mac};
use percent_encoding::percent_decode_str;
use sha2::Sha256;

use crate::mongo_client::{MongoClient, is_ok, scram_opening};
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

/// Creates container `c` of database `db`, and a user with a permission for all of it; returns the permission.
fn container_and_permission(server: &Server, key: &str) -> String {
    let mut answer = String::new();
    for (path, body) in [
        ("/dbs", r#"{"id":"db"}"#),
        ("/dbs/db/colls", r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#),
        ("/dbs/db/users", r#"{"id":"u"}"#),
        ("/dbs/db/users/u/permissions", r#"{"id":"p","permissionMode":"All","resource":"dbs/db/colls/c"}"#),
    ] {
        let (status, text) = server.request_with(key, "POST", path, &[], body);
        assert_eq!(status, 201, "{text}");
        answer = text;
    }
    answer
}

/// Replaces the key as an operator does: a new file, then a signal.
#[test]
fn a_key_in_a_file_is_replaced_without_a_restart() {
    let (folder, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let [old, new] = ["the key of before", "the key of now"].map(|text| STANDARD.encode(text));
    let file = folder.path().join("key");
    fs::write(&file, &old).unwrap();
    let mut command = command();
    command.args(["serve", "--memory", "--listen", "127.0.0.1:0", "--key-file", file.to_str().unwrap()]);
    let server = Server::start_command(command.stderr(File::create(log.path()).unwrap()));
    let token = member(&container_and_permission(&server, &old), "_token");
    let with_token = || server.exchange("GET", ITEM, &[("authorization", &token), PARTITION], "").0;
    assert_eq!(with_token(), 404, "the token is good, and there is no item");
    let mut before = MongoClient::connect(&server);
    assert!(before.authenticate("bolide", &old) && before.may_list_databases());

    // A text that is not a key changes nothing, whatever is wrong with it. The test waits for its log line.
    let logged = |part: &str| {
        (0..5000).any(|_| {
            assert_eq!([&old, &new].map(|key| reads(&server, key)), [200, 401]);
            fs::read_to_string(log.path()).unwrap().contains(part)
        })
    };
    fs::write(&file, "no key, but secret").unwrap();
    server.signal("HUP");
    assert!(
        logged("contains no key: the account key must be base64"),
        "{:?}",
        fs::read_to_string(log.path())
    );
    fs::remove_file(&file).unwrap();
    server.signal("HUP");
    assert!(logged("cannot read the key file"), "{:?}", fs::read_to_string(log.path()));

    fs::write(&file, format!("{new}\n")).unwrap();
    server.signal("HUP");
    assert!((0..1000).any(|_| reads(&server, &new) == 200), "the new key counts");
    assert_eq!(reads(&server, &old), 401);
    assert_eq!(with_token(), 401, "what the old key has signed is good for nothing");
    assert!(!before.may_list_databases(), "a connection that came with the old key");
    assert!(!MongoClient::connect(&server).authenticate("bolide", &old));
    let mut after = MongoClient::connect(&server);
    assert!(after.authenticate("bolide", &new) && after.may_list_databases());
    assert_eq!(server.terminate(), Some(0));
    let log = fs::read_to_string(log.path()).unwrap();
    assert!(
        log.contains("replaced the account's primary key by the one in")
            && log.contains(file.to_str().unwrap()),
        "{log}"
    );
    for secret in [&old, &new, "no key, but secret"] {
        assert!(!log.contains(secret), "{log}");
    }
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
    assert!(listed.contains("public") && listed.contains("generated"), "{listed}");
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

/// Begins to authenticate as the account and ends with a wrong proof; returns everything sent and received.
fn wrong_scram(server: &Server) -> Vec<String> {
    let mut client = MongoClient::connect(server);
    let (challenge, conversation) = client.begin_scram("bolide");
    let nonce = challenge.split(',').next().unwrap();
    let last = format!("c=biws,{nonce},p={}", STANDARD.encode([7; 32]));
    let refused = client.end_scram(&last, conversation);
    assert!(format!("{refused:?}").contains("AuthenticationFailed"), "{refused:?}");
    let first = scram_opening("bolide");
    vec![STANDARD.encode(&first), first, challenge, STANDARD.encode(&last), last]
}

/// Creates a user without roles, who then tries to write; returns the password.
fn user_without_a_role(server: &Server, key: &str) -> String {
    let password = "the-password-of-no-user-special";
    let mut account = MongoClient::connect(server);
    assert!(account.authenticate("bolide", key));
    let user = Document::new().with("createUser", "no-user-special").with("pwd", password);
    let made = account.run("admin", user.with("roles", Vec::<Value>::new()));
    assert!(is_ok(&made), "{made:?}");
    let mut user = MongoClient::connect(server);
    assert!(user.authenticate("no-user-special", password));
    let documents = vec![Value::from(Document::new().with("_id", 1))];
    let refused = user.run("shop", Document::new().with("insert", "carts").with("documents", documents));
    assert_eq!(refused.get("codeName"), Some(&Value::from("Unauthorized")), "{refused:?}");
    password.to_owned()
}

/// Tries to sign in to the explorer with a wrong key; returns it.
fn wrong_sign_in(server: &Server) -> String {
    let (form, typed) = ([("content-type", "application/x-www-form-urlencoded")], "a-key-that-a-user-typed");
    let (status, page) = server.exchange("POST", "/_explorer/sign-in", &form, &format!("key={typed}"));
    assert!(status != 303 && !page.contains(typed), "{status}: {page}");
    typed.to_owned()
}

/// A server that logs everything into a file.
fn logging(data: &Path, log: &Path, key: &str) -> Server {
    let mut command = command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--key", key, "--data", data.to_str().unwrap()]);
    Server::start_command(command.env("BOLIDE_LOG", "trace").stderr(File::create(log).unwrap()))
}

#[test]
fn refusals_are_logged_without_secrets() {
    let (directory, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let key = STANDARD.encode("the key of this test");
    let server = logging(directory.path(), log.path(), &key);
    let wrong = STANDARD.encode("some other key");
    let mut secrets = vec![key.clone(), wrong.clone()];
    let ask = |key: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        server.request_with(key, method, path, headers, body)
    };
    let permission = container_and_permission(&server, &key);
    assert_eq!(ask(&key, "POST", DOCS, &[PARTITION], r#"{"id":"1","pk":"a"}"#).0, 201);
    let good = member(&permission, "_token");

    // A wrong key, in a signature and as a bearer token.
    let date = now();
    let signed = sign("GET", ITEM, &date, &wrong);
    let headers = [("x-ms-date", date.as_str()), ("authorization", signed.as_str()), PARTITION];
    assert_eq!(server.exchange("GET", ITEM, &headers, "").0, 401);
    assert_eq!(server.admin_with(&wrong, "GET", "/_bolide/status", "").0, 401);
    secrets.push(signed.clone());
    let decoded = percent_decode_str(&signed).decode_utf8().unwrap().into_owned();
    secrets.push(decoded.rsplit_once("sig=").unwrap().1.to_owned());
    // A read-only key that writes, and a revoked key.
    let reader = regenerate(&server, &key, "primaryReadonly");
    assert_eq!(ask(&reader, "GET", ITEM, &[PARTITION], "").0, 200);
    let (status, text) = ask(&reader, "DELETE", ITEM, &[PARTITION], "");
    assert!(status == 401 && text.contains("read-only key"), "{text}");
    let newer = regenerate(&server, &key, "primaryReadonly");
    assert_eq!(ask(&reader, "GET", ITEM, &[PARTITION], "").0, 401);
    secrets.extend([reader, newer]);
    // A valid resource token that was revoked, an expired one, an unsigned one.
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
    secrets.push(user_without_a_role(&server, &key));
    secrets.push(wrong_sign_in(&server));
    assert_eq!(server.terminate(), Some(0));

    let log = std::fs::read_to_string(log.path()).unwrap();
    for part in [
        "refused GET \"dbs/db/colls/c/docs/1\" with 401",
        "with 403",
        "read-only key",
        "primaryReadonly key of the account was replaced",
        "authentication failed",
        "refused: no role allows it",
        "user=\"no-user-special\"",
        "command=\"insert\"",
        "a sign-in to the explorer was refused",
    ] {
        assert!(log.contains(part), "{part} in {log}");
    }
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret} is in the log");
    }
}
