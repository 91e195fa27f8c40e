//! The account's keys as passwords: what each allows, and what happens to a key that changes.

use account::{Entry, Key, KeySource, Keyring, Kind, NoKeyStore};
use bson::{Document, Value};
use mongo::Authentication;
use tokio::net::TcpStream;

use crate::client::{Client, Server, inner, json, settings};
use crate::scram::{Exchange, Hash, authenticate, payload};

const TEXTS: [&str; 4] = ["cHJpbWFyeQ==", "c2Vjb25kYXJ5", "cmVhZGVy", "cmVhZGVyMg=="];
const FIND: &str = r#"{"find": "c", "batchSize": 1}"#;
const INSERT: &str = r#"{"insert": "c", "documents": [{"x": 1}, {"x": 2}, {"x": 3}]}"#;

async fn server(authentication: Authentication) -> (Server, Keyring) {
    let entry = |(kind, text)| Entry { kind, key: Key::parse(text).unwrap(), source: KeySource::Generated };
    let keys = Keyring::new(Kind::ALL.into_iter().zip(TEXTS).map(entry), NoKeyStore);
    let mut settings = settings();
    settings.authentication = authentication;
    settings.account.keys = keys.clone();
    (Server::with(settings).await, keys)
}

async fn log_in(server: &Server, key: &str) -> Result<Client<TcpStream>, i32> {
    let mut client = server.connect().await;
    authenticate(&mut client, Hash::Sha1, "admin", "bolide", key).await.map(|()| client)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_opens_and_a_read_only_key_reads() {
    let (server, _) = server(Authentication::Required).await;
    for (text, hash) in TEXTS.iter().zip([Hash::Sha1, Hash::Sha256, Hash::Sha1, Hash::Sha256]) {
        let mut client = server.connect().await;
        assert_eq!(authenticate(&mut client, hash, "shop", "bolide", text).await, Ok(()), "{text}");
        let reads_only = text.starts_with("cmVhZGVy");
        for (database, command, allowed) in [
            ("shop", INSERT, !reads_only),
            ("config", INSERT, !reads_only),
            ("shop", FIND, true),
            ("config", FIND, true),
            ("shop", r#"{"customAction": "GetCollection", "collection": "c"}"#, true),
            (
                "shop",
                r#"{"customAction": "UpdateCollection", "collection": "c", "offerThroughput": 400}"#,
                !reads_only,
            ),
            ("shop", r#"{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}"#, true),
            ("admin", r#"{"listDatabases": 1}"#, true),
            ("shop", r#"{"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}}"#, !reads_only),
            ("shop", r#"{"create": "made"}"#, !reads_only),
            ("admin", r#"{"usersInfo": 1}"#, !reads_only),
            ("admin", r#"{"createUser": "u", "pwd": "p", "roles": ["root"]}"#, !reads_only),
            ("admin", r#"{"dropUser": "u"}"#, !reads_only),
            ("admin", r#"{"setParameter": 1, "quiet": false}"#, !reads_only),
        ] {
            let reply = client.on(database, json(command)).await;
            let refused = reply.get("code") == Some(&Value::Int32(13));
            assert_eq!(refused, !allowed, "{text}: {command} on {database}: {reply:?}");
        }
        let status = client.ok(json(r#"{"connectionStatus": 1}"#)).await;
        let roles = inner(&status, "authInfo.authenticatedUserRoles").as_array().unwrap();
        let first = if reads_only { "readAnyDatabase" } else { "root" };
        assert_eq!(roles[0], Document::new().with("role", first).with("db", "admin").into());
    }
    assert_eq!(log_in(&server, "b3RoZXI=").await.err(), Some(18));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_changed_is_good_for_nothing_from_the_next_command_on() {
    let (server, keys) = server(Authentication::Required).await;
    for (kind, old) in Kind::ALL.into_iter().zip(TEXTS) {
        let mut writer = log_in(&server, keys.entries()[0].key.reveal()).await.unwrap();
        writer.done("shop", json(INSERT)).await;
        let mut client = log_in(&server, old).await.unwrap();
        let found = client.done("shop", json(FIND)).await;
        let mut half_way = server.connect().await;
        let mut exchange = Exchange::new(Hash::Sha256, "bolide", old);
        let first = half_way.ok(exchange.start(true)).await;

        let new = keys.regenerate(kind).unwrap();
        let (code, words) = client.fails("shop", json(FIND)).await;
        assert_eq!((code, words.as_str()), (13, "Command find requires authentication"), "{}", kind.name());
        let more =
            Document::new().with("getMore", inner(&found, "cursor.id").clone()).with("collection", "c");
        assert_eq!(client.fails("shop", more).await.0, 13);
        assert_eq!(half_way.refused(exchange.prove(&first)).await.0, 18, "an authentication under way");
        assert_eq!(log_in(&server, old).await.err(), Some(18));
        let mut client = log_in(&server, new.reveal()).await.unwrap();
        client.done("shop", json(FIND)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn salts_tell_neither_keys_nor_names() {
    let (server, keys) = server(Authentication::Required).await;
    let mut client = server.connect().await;
    let mut before = Vec::new();
    for round in 0..2 {
        for user in ["bolide", "missing"] {
            let exchange = Exchange::new(Hash::Sha256, user, "x");
            let first = client.ok(exchange.start(true)).await;
            let salt = payload(&first).split(',').nth(1).unwrap().to_owned();
            if round == 0 { before.push(salt) } else { assert_eq!(before.remove(0), salt, "{user}") }
        }
        keys.regenerate(Kind::Primary).unwrap();
    }
}

/// Where unauthenticated clients may do everything because the key is public, a new key ends that.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_primary_key_shuts_a_door_that_was_open() {
    let (server, keys) = server(Authentication::Optional).await;
    let mut unauthenticated = server.connect().await;
    unauthenticated.done("shop", json(INSERT)).await;
    keys.regenerate(Kind::Secondary).unwrap();
    unauthenticated.done("shop", json(FIND)).await;
    let new = keys.regenerate(Kind::Primary).unwrap();
    assert_eq!(unauthenticated.fails("shop", json(FIND)).await.0, 13);
    unauthenticated.ping().await;
    log_in(&server, new.reveal()).await.unwrap().done("shop", json(FIND)).await;
}
