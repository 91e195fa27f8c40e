//! Authentication: which clients get in, and how.

use std::time::Duration;

use bson::{Document, Value};
use mongo::Authentication;
use telemetry::Page;

use crate::client::{PASSWORD, Server, code, inner, kind_0, op_msg, settings, text, texts, whole};
use crate::scram::{Exchange, Hash, authenticate, go_on, payload};

async fn locked() -> Server {
    let mut settings = settings();
    settings.authentication = Authentication::Required;
    Server::with(settings).await
}

fn command(name: &str) -> Document {
    Document::new().with(name, 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_gets_in_with_its_key_on_any_database() {
    let server = locked().await;
    for hash in [Hash::Sha1, Hash::Sha256] {
        for database in ["admin", "shop"] {
            let mut client = server.connect().await;
            assert_eq!(client.refused(command("serverStatus")).await.0, 13);
            assert_eq!(authenticate(&mut client, hash, database, "bolide", PASSWORD).await, Ok(()));
            client.ok(command("serverStatus")).await;
            let status = client.ok(command("connectionStatus")).await;
            let Value::Array(users) = inner(&status, "authInfo.authenticatedUsers") else {
                panic!("{status:?}")
            };
            assert_eq!(users[0], Document::new().with("user", "bolide").with("db", database).into());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_clients_may_only_say_hello() {
    let server = locked().await;
    let mut client = server.connect().await;
    for allowed in ["hello", "ping", "buildInfo", "connectionStatus", "whatsmyuri", "logout", "listCommands"]
    {
        client.ok(command(allowed)).await;
    }
    client.ok(Document::new().with("endSessions", Value::Array(Vec::new()))).await;
    for refused in
        ["serverStatus", "usersInfo", "getLog", "getParameter", "startSession", "configureFailPoint"]
    {
        let (code, words) = client.refused(command(refused)).await;
        assert_eq!((code, words), (13, format!("Command {refused} requires authentication")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_an_unknown_user_look_the_same() {
    let server = locked().await;
    let mut shown = Vec::new();
    for (user, password) in [("bolide", "wrong"), ("missing", "wrong"), ("missing", PASSWORD)] {
        let mut client = server.connect().await;
        let mut exchange = Exchange::new(Hash::Sha256, user, password);
        let first = client.admin(exchange.start(true)).await;
        let salt = payload(&first).split(',').nth(1).unwrap().to_owned();
        let second = client.admin(exchange.prove(&first)).await;
        assert_eq!((code(&second), text(&second, "errmsg")), (18, "Authentication failed."), "{user}");
        shown.push(salt);
        assert_eq!(client.refused(command("serverStatus")).await.0, 13);
    }
    assert_eq!(shown[1], shown[2], "the salt of a user who does not exist stays the same");
    assert_eq!(shown[0].len(), shown[1].len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authentication_may_come_with_the_greeting() {
    let server = locked().await;
    let mut client = server.connect().await;
    let mut exchange = Exchange::new(Hash::Sha256, "bolide", PASSWORD);
    let hello = command("hello")
        .with("saslSupportedMechs", "admin.bolide")
        .with("speculativeAuthenticate", exchange.start(true).with("db", "admin"));
    let reply = client.ok(hello).await;
    assert_eq!(reply.get("saslSupportedMechs"), Some(&texts(&["SCRAM-SHA-1", "SCRAM-SHA-256"])));
    let first = reply.get("speculativeAuthenticate").and_then(Value::as_document).unwrap();
    let second = client.ok(exchange.prove(first)).await;
    assert!(exchange.trusts(&second));
    client.ok(command("serverStatus")).await;
    // Conversations that cannot begin are left out, and a greeting is answered as a greeting.
    let wrong =
        exchange.start(true).with("db", "admin").into_iter().map(|(name, value)| match name.as_str() {
            "mechanism" => (name, Value::from("PLAIN")),
            _ => (name, value),
        });
    let hello = command("hello")
        .with("saslSupportedMechs", "admin.missing")
        .with("speculativeAuthenticate", wrong.collect::<Document>());
    let reply = client.ok(hello).await;
    assert!(!reply.contains("speculativeAuthenticate"));
}

/// A greeting does not tell which users there are.
#[tokio::test(flavor = "multi_thread")]
async fn a_greeting_names_the_same_mechanisms_for_an_unknown_user() {
    let server = locked().await;
    let mut client = server.connect().await;
    authenticate(&mut client, Hash::Sha256, "admin", "bolide", PASSWORD).await.unwrap();
    let create = Document::new().with("createUser", "ann").with("pwd", "secret");
    client.done("shop", create.with("roles", Value::Array(Vec::new()))).await;
    let mut client_without_password = server.connect().await;
    for user in ["admin.bolide", "shop.ann", "shop.unknown", "nowhere.ann"] {
        let (database, name) = user.split_once('.').unwrap();
        let first = Exchange::new(Hash::Sha256, name, "wrong").start(true).with("db", database);
        let hello = command("hello").with("saslSupportedMechs", user).with("speculativeAuthenticate", first);
        let reply = client_without_password.ok(hello).await;
        let mechanisms = reply.get("saslSupportedMechs");
        assert_eq!(mechanisms, Some(&texts(&["SCRAM-SHA-1", "SCRAM-SHA-256"])), "{user}");
        let first = reply.get("speculativeAuthenticate").and_then(Value::as_document).expect(user);
        assert!(first.contains("conversationId") && payload(first).contains(",s="), "{user}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_skipping_there_is_one_more_empty_step() {
    let server = locked().await;
    let mut client = server.connect().await;
    let mut exchange = Exchange::new(Hash::Sha1, "bolide", PASSWORD);
    let first = client.ok(exchange.start(false)).await;
    let second = client.ok(exchange.prove(&first)).await;
    assert_eq!(second.get("done"), Some(&Value::Bool(false)));
    assert!(exchange.trusts(&second));
    assert_eq!(client.refused(command("serverStatus")).await.0, 13, "not before the last step");
    let third = client.ok(go_on(&second, b"")).await;
    assert_eq!((third.get("done"), payload(&third)), (Some(&Value::Bool(true)), String::new()));
    client.ok(command("serverStatus")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_conversations_are_refused() {
    let server = locked().await;
    let mut client = server.connect().await;
    let exchange = Exchange::new(Hash::Sha256, "bolide", PASSWORD);
    let orphan = go_on(&Document::new().with("conversationId", 1), b"x");
    assert_eq!(client.refused(orphan.clone()).await.0, 17);
    let first = client.ok(exchange.start(true)).await;
    let other = go_on(&Document::new().with("conversationId", 2), b"x");
    assert_eq!(client.refused(other).await.0, 17);
    assert_eq!(client.refused(go_on(&first, b"x")).await.0, 17, "what failed is over");
    client.ok(exchange.start(true)).await;
    for rubbish in [&b""[..], b"c=biws,r=x,p=y", &[0xFF; 10], &vec![b'a'; 10_000]] {
        let mut client = server.connect().await;
        client.ok(exchange.start(true)).await;
        assert_eq!(client.refused(go_on(&first, rubbish)).await.0, 18);
    }
    let unknown = command("saslStart").with("mechanism", "GSSAPI").with("payload", "x");
    assert_eq!(client.refused(unknown).await.0, 334);
    let certificate = command("authenticate").with("mechanism", "MONGODB-X509");
    assert_eq!(client.refused(certificate).await.0, 334);
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_made_changed_and_dropped() {
    let server = locked().await;
    let mut client = server.connect().await;
    authenticate(&mut client, Hash::Sha256, "admin", "bolide", PASSWORD).await.unwrap();
    let create = |name: &str| {
        Document::new().with("createUser", name).with("pwd", "first").with("roles", texts(&["read"]))
    };
    assert_eq!(client.on("shop", create("ann")).await.get("ok"), Some(&Value::Double(1.0)));
    assert_eq!(code(&client.on("shop", create("ann")).await), 51003);
    assert_eq!(code(&client.on("shop", create("bolide")).await), 51003, "the account exists everywhere");
    assert_eq!(code(&client.on("shop", create("x").with("other", 1)).await), 40415);
    let wrong_role = Document::new().with("createUser", "x").with("pwd", "p").with("roles", texts(&["root"]));
    assert_eq!(code(&client.on("shop", wrong_role).await), 31);

    let mut ann = server.connect().await;
    assert_eq!(authenticate(&mut ann, Hash::Sha256, "shop", "ann", "first").await, Ok(()));
    assert_eq!(
        authenticate(&mut ann, Hash::Sha1, "shop", "ann", "first").await,
        Ok(()),
        "again on a live connection"
    );
    assert_eq!(authenticate(&mut ann, Hash::Sha256, "other", "ann", "first").await, Err(18));
    ann.ok(command("logout")).await;
    assert_eq!(ann.refused(command("serverStatus")).await.0, 13);

    let mut ann = server.connect().await;
    let update = Document::new()
        .with("updateUser", "ann")
        .with("pwd", "second")
        .with("mechanisms", texts(&["SCRAM-SHA-256"]));
    assert!(!client.on("shop", update).await.contains("code"));
    assert_eq!(authenticate(&mut ann, Hash::Sha256, "shop", "ann", "first").await, Err(18));
    assert_eq!(authenticate(&mut ann, Hash::Sha1, "shop", "ann", "second").await, Err(18));
    assert_eq!(authenticate(&mut ann, Hash::Sha256, "shop", "ann", "second").await, Ok(()));

    let grant = Document::new().with("grantRolesToUser", "ann").with("roles", texts(&["readWrite", "read"]));
    assert!(!client.on("shop", grant).await.contains("code"));
    let revoke = Document::new().with("revokeRolesFromUser", "ann").with("roles", texts(&["read"]));
    assert!(!client.on("shop", revoke).await.contains("code"));
    let info =
        client.on("shop", Document::new().with("usersInfo", "ann").with("showCredentials", true)).await;
    let Some(Value::Array(users)) = info.get("users") else { panic!("{info:?}") };
    let user = users[0].as_document().unwrap();
    assert_eq!((text(user, "_id"), text(user, "user"), text(user, "db")), ("shop.ann", "ann", "shop"));
    let role = Document::new().with("role", "readWrite").with("db", "shop");
    assert_eq!(user.get("roles"), Some(&Value::Array(vec![role.into()])));
    assert!(!format!("{user:?}").contains("second"), "no password is kept");
    let info = client.on("other", command("usersInfo")).await;
    assert_eq!(info.get("users"), Some(&Value::Array(Vec::new())));

    assert!(!client.on("shop", Document::new().with("dropUser", "ann")).await.contains("code"));
    assert_eq!(code(&client.on("shop", Document::new().with("dropUser", "ann")).await), 11);
    assert_eq!(authenticate(&mut ann, Hash::Sha256, "shop", "ann", "second").await, Err(18));
    client.on("shop", create("bob")).await;
    client.on("shop", create("cid")).await;
    let dropped = client.on("shop", command("dropAllUsersFromDatabase")).await;
    assert_eq!(dropped.get("n"), Some(&Value::Int32(2)));
}

/// The commands that answer a client that has not authenticated. One more here is a decision: see docs/security.md.
const OPEN: [&str; 11] = [
    "authenticate",
    "buildInfo",
    "connectionStatus",
    "endSessions",
    "hello",
    "listCommands",
    "logout",
    "ping",
    "saslContinue",
    "saslStart",
    "whatsmyuri",
];

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_clients_are_answered_by_these_commands_and_no_others() {
    let server = locked().await;
    let listed = server.connect().await.ok(command("listCommands")).await;
    let Some(Value::Document(commands)) = listed.get("commands") else { panic!("{listed:?}") };
    assert!(commands.iter().count() > 60, "{listed:?}");
    for (name, _) in commands.iter() {
        for database in ["admin", "test", "$external"] {
            let reply = server.connect().await.on(database, command(name)).await;
            let is_refused = reply.get("code") == Some(&Value::Int32(13));
            assert_eq!(is_refused, !OPEN.contains(&name), "{name} on {database}: {reply:?}");
        }
    }
}

/// A connection for guessing passwords ends after three of them, each answered later than the one before.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_ends_with_the_third_wrong_password() {
    let server = locked().await;
    let mut guessing = server.connect().await;
    for guess in ["a", "b", "c"] {
        assert_eq!(authenticate(&mut guessing, Hash::Sha256, "admin", "bolide", guess).await, Err(18));
    }
    assert!(guessing.is_closed().await);
    let mut page = Page::default();
    server.registry.write(&mut page);
    let page = page.finish();
    assert!(page.contains("bolide_mongo_authentication_failures_total 3"), "{page}");
    // A right one in between is no guess.
    let mut client = server.connect().await;
    for _ in 0..3 {
        assert_eq!(authenticate(&mut client, Hash::Sha256, "admin", "bolide", "a").await, Err(18));
        assert_eq!(authenticate(&mut client, Hash::Sha256, "admin", "bolide", PASSWORD).await, Ok(()));
    }
}

/// Only the answer to a wrong password waits: the right one of the same user at the same address is accepted at once.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_wait_and_right_ones_do_not() {
    let mut settings = settings();
    settings.authentication = Authentication::Required;
    settings.limits.wrong_proof_pause = Duration::from_hours(1);
    let server = Server::with(settings).await;
    let mut guessing = Vec::new();
    for _ in 0..30 {
        let mut client = server.connect().await;
        let mut exchange = Exchange::new(Hash::Sha1, "bolide", "wrong");
        let first = client.ok(exchange.start(true)).await;
        let proof = exchange.prove(&first).with("$db", "admin");
        client.send(&op_msg(9, 0, &[kind_0(&proof)])).await;
        guessing.push(client);
    }
    for _ in 0..3 {
        let mut client = server.connect().await;
        assert_eq!(authenticate(&mut client, Hash::Sha1, "admin", "bolide", PASSWORD).await, Ok(()));
        client.ping().await;
    }
    for client in &guessing {
        let read = client.stream.try_read(&mut [0; 1]);
        assert!(matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock), "{read:?}");
    }
    // A client that leaves keeps its connection slot for as long; otherwise leaving would be the way to guess more often.
    let mut account = server.connect().await;
    assert_eq!(authenticate(&mut account, Hash::Sha1, "admin", "bolide", PASSWORD).await, Ok(()));
    let guessers = guessing.len();
    drop(guessing);
    for _ in 0..5 {
        server.connect().await.ok(command("hello")).await;
    }
    // Twice: the guessing clients must not be on their way out.
    for _ in 0..2 {
        server.connect().await.ok(command("hello")).await;
        let mut open = 0;
        for _ in 0..12_000 {
            let status = account.admin(command("serverStatus")).await;
            open = whole(inner(&status, "connections.current")) as usize;
            if open <= guessers + 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(open, guessers + 1, "those that had not guessed are gone");
    }
}
