//! Collections of the system in `admin`: no command reads them, explains a read of them, or shows their figures to any
//! user.

use std::collections::BTreeSet;

use account::{Entry, Key, KeySource, Keyring, Kind, NoKeyStore};
use bson::{Document, Value};
use mongo::Authentication;
use tokio::net::TcpStream;

use crate::client::{Client, Server, inner, json, settings};
use crate::scram::{Hash, authenticate};

const KEYS: [&str; 4] = ["cHJpbWFyeQ==", "c2Vjb25kYXJ5", "cmVhZGVy", "cmVhZGVyMg=="];

/// Commands on collections, over `NAME`. Every command of `listCommands` stands here or in [`NOT_ABOUT`].
const ABOUT: &[&str] = &[
    r#"{"find": "NAME", "filter": {"_id": "admin.victim"}}"#,
    r#"{"find": "NAME", "filter": {"credentials.SCRAM-SHA-1.salt": {"$gt": "a"}}, "sort": {"user": 1}}"#,
    r#"{"count": "NAME"}"#,
    r#"{"count": "NAME", "query": {"credentials.SCRAM-SHA-1.salt": {"$gt": "a"}}}"#,
    r#"{"distinct": "NAME", "key": "credentials"}"#,
    r#"{"aggregate": "NAME", "pipeline": [], "cursor": {}}"#,
    r#"{"aggregate": "NAME", "pipeline": [{"$count": "n"}], "cursor": {}}"#,
    r#"{"aggregate": "NAME", "pipeline": [{"$collStats": {"count": {}, "storageStats": {}}}], "cursor": {}}"#,
    r#"{"aggregate": "NAME", "pipeline": [{"$indexStats": {}}], "cursor": {}}"#,
    r#"{"aggregate": "NAME", "pipeline": [{"$changeStream": {}}], "cursor": {}}"#,
    r#"{"aggregate": "NAME", "pipeline": [{"$out": "mine"}], "cursor": {}}"#,
    r#"{"aggregate": "plain", "pipeline": [{"$lookup": {"from": "NAME", "pipeline": [], "as": "u"}}], "cursor": {}}"#,
    r#"{"aggregate": "plain", "pipeline": [{"$lookup": {"from": "NAME", "let": {"x": 1}, "pipeline": [{"$match": {"$expr": "$$x"}}], "as": "u"}}], "cursor": {}}"#,
    r#"{"aggregate": "plain", "pipeline": [{"$lookup": {"from": "NAME", "localField": "a", "foreignField": "b", "as": "u"}}], "cursor": {}}"#,
    r#"{"aggregate": "plain", "pipeline": [{"$graphLookup": {"from": "NAME", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "u"}}], "cursor": {}}"#,
    r#"{"aggregate": "plain", "pipeline": [{"$unionWith": "NAME"}], "cursor": {}}"#,
    r#"{"aggregate": "plain", "pipeline": [{"$facet": {"f": [{"$unionWith": {"coll": "NAME", "pipeline": [{"$collStats": {"count": {}}}]}}]}}], "cursor": {}}"#,
    r#"{"aggregate": "plain", "pipeline": [{"$out": "NAME"}], "cursor": {}}"#,
    r#"{"aggregate": "plain", "pipeline": [{"$merge": "NAME"}], "cursor": {}}"#,
    r#"{"aggregate": "view of NAME", "pipeline": [], "cursor": {}}"#,
    r#"{"find": "view of NAME"}"#,
    r#"{"count": "view of NAME"}"#,
    r#"{"insert": "NAME", "documents": [{"_id": 1}]}"#,
    r#"{"update": "NAME", "updates": [{"q": {"user": "victim"}, "u": {"$set": {"a": 1}}}]}"#,
    r#"{"update": "NAME", "updates": [{"q": {"user": "victim"}, "u": {"$set": {"a": 1}}, "upsert": true}]}"#,
    r#"{"delete": "NAME", "deletes": [{"q": {"user": "victim"}, "limit": 1}]}"#,
    r#"{"findAndModify": "NAME", "query": {"user": "victim"}, "update": {"$set": {"a": 1}}}"#,
    r#"{"findAndModify": "NAME", "query": {"user": "victim"}, "remove": true}"#,
    r#"{"bulkWrite": 1, "nsInfo": [{"ns": "admin.NAME"}], "ops": [{"delete": 0, "filter": {}}]}"#,
    r#"{"create": "NAME"}"#,
    r#"{"createIndexes": "NAME", "indexes": [{"key": {"a": 1}, "name": "a"}]}"#,
    r#"{"dropIndexes": "NAME", "index": "*"}"#,
    r#"{"listIndexes": "NAME"}"#,
    r#"{"collMod": "NAME", "validator": {"a": 1}}"#,
    r#"{"collStats": "NAME"}"#,
    r#"{"validate": "NAME"}"#,
    r#"{"drop": "NAME"}"#,
    r#"{"renameCollection": "admin.NAME", "to": "admin.mine"}"#,
    r#"{"renameCollection": "admin.plain", "to": "admin.NAME", "dropTarget": true}"#,
    r#"{"customAction": "GetCollection", "collection": "NAME"}"#,
    r#"{"customAction": "CreateCollection", "collection": "NAME"}"#,
    r#"{"customAction": "UpdateCollection", "collection": "NAME", "offerThroughput": 400}"#,
    r#"{"createSearchIndexes": "NAME", "indexes": []}"#,
    r#"{"updateSearchIndex": "NAME", "name": "x", "definition": {}}"#,
    r#"{"dropSearchIndex": "NAME", "name": "x"}"#,
];

/// Commands that name no collection that they read; `explain` is asked about every one of the others.
const NOT_ABOUT: &[&str] = &[
    "abortTransaction",
    "authenticate",
    "buildInfo",
    "commitTransaction",
    "configureFailPoint",
    "connectionStatus",
    "createUser",
    "currentOp",
    "dbStats",
    "dropAllUsersFromDatabase",
    "dropDatabase",
    "dropUser",
    "endSessions",
    "explain",
    "fsync",
    "getCmdLineOpts",
    "getDefaultRWConcern",
    "getLastRequestStatistics",
    "getLog",
    "getMore",
    "getParameter",
    "grantRolesToUser",
    "hello",
    "hostInfo",
    "killAllSessions",
    "killAllSessionsByPattern",
    "killCursors",
    "killOp",
    "killSessions",
    "listCollections",
    "listCommands",
    "listDatabases",
    "logRotate",
    "logout",
    "ping",
    "profile",
    "refreshSessions",
    "replSetGetConfig",
    "replSetGetStatus",
    "revokeRolesFromUser",
    "rolesInfo",
    "saslContinue",
    "saslStart",
    "serverStatus",
    "setParameter",
    "startSession",
    "top",
    "updateUser",
    "usersInfo",
    "whatsmyuri",
];

/// A server with a user whose credentials are secret, a view of their collection, and a collection beside it.
async fn server() -> (Server, Client<TcpStream>) {
    let entry = |(kind, text)| Entry { kind, key: Key::parse(text).unwrap(), source: KeySource::Generated };
    let mut settings = settings();
    settings.authentication = Authentication::Required;
    settings.account.keys = Keyring::new(Kind::ALL.into_iter().zip(KEYS).map(entry), NoKeyStore);
    let server = Server::with(settings).await;
    let mut owner = log_in(&server, "bolide", KEYS[0]).await;
    for (name, roles) in [
        ("victim", "[]"),
        ("reader", r#"[{"role": "read", "db": "admin"}]"#),
        ("writer", r#"[{"role": "readWrite", "db": "admin"}, {"role": "dbAdmin", "db": "admin"}]"#),
        ("root", r#"["root"]"#),
    ] {
        let create =
            r#"{"createUser": "NAME", "pwd": "secret", "mechanisms": ["SCRAM-SHA-1"], "roles": ROLES}"#;
        owner.ok(json(&create.replace("NAME", name).replace("ROLES", roles))).await;
    }
    owner.ok(json(r#"{"insert": "plain", "documents": [{"_id": 1, "a": 1}]}"#)).await;
    for name in ["system.users", "system.version"] {
        let view = r#"{"create": "view of NAME", "viewOn": "NAME", "pipeline": []}"#.replace("NAME", name);
        owner.ok(json(&view)).await;
    }
    (server, owner)
}

async fn log_in(server: &Server, user: &str, password: &str) -> Client<TcpStream> {
    let mut client = server.connect().await;
    authenticate(&mut client, Hash::Sha1, "admin", user, password).await.unwrap();
    client
}

/// Whether a command did nothing and revealed nothing.
fn is_refused(reply: &Document) -> bool {
    let failed = reply.get("ok") == Some(&Value::Double(0.0));
    failed || reply.contains("writeErrors") || reply.get("nErrors") == Some(&Value::Int32(1))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_and_no_explanation_reads_what_belongs_to_the_system() {
    let (server, mut owner) = server().await;
    let listed = owner.ok(json(r#"{"listCommands": 1}"#)).await;
    let listed: BTreeSet<&str> =
        inner(&listed, "commands").as_document().unwrap().iter().map(|(name, _)| name).collect();
    let first = |command: &str| json(command).iter().next().unwrap().0.to_owned();
    let about: BTreeSet<String> = ABOUT.iter().map(|command| first(command)).collect();
    let known: BTreeSet<&str> = about.iter().map(String::as_str).chain(NOT_ABOUT.iter().copied()).collect();
    assert_eq!(listed, known, "every command is about a collection or not");

    for (user, password) in [
        ("bolide", KEYS[2]),
        ("reader", "secret"),
        ("writer", "secret"),
        ("root", "secret"),
        ("bolide", KEYS[0]),
    ] {
        let mut client = log_in(&server, user, password).await;
        for name in ["system.users", "system.version"] {
            for command in ABOUT {
                let command = json(&command.replace("NAME", name));
                let reply = client.admin(command.clone()).await;
                assert!(is_refused(&reply), "{user}: {command:?}: {reply:?}");
                for verbosity in ["queryPlanner", "executionStats"] {
                    let explain =
                        Document::new().with("explain", command.clone()).with("verbosity", verbosity);
                    let reply = client.admin(explain).await;
                    assert!(is_refused(&reply), "{user}: {verbosity} of {command:?}: {reply:?}");
                }
            }
        }
        // From another database, too.
        let from = r#"{"from": {"db": "admin", "coll": "system.users"}, "pipeline": [], "as": "u"}"#;
        let lookup = format!(r#"{{"aggregate": "c", "pipeline": [{{"$lookup": {from}}}], "cursor": {{}}}}"#);
        assert!(is_refused(&client.on("shop", json(&lookup)).await), "{user}");
    }
    // User administrators and their tools still get what they need.
    let users = owner.ok(json(r#"{"usersInfo": 1}"#)).await;
    assert_eq!(inner(&users, "users").as_array().unwrap().len(), 4);
    let names = owner.ok(json(r#"{"listCollections": 1, "nameOnly": true}"#)).await;
    assert!(format!("{names:?}").contains("system.users"), "{names:?}");
}

/// The figures of the database do not reveal the number or size of users either.
#[tokio::test(flavor = "multi_thread")]
async fn figures_of_the_database_do_not_tell_of_what_belongs_to_the_system() {
    let (server, mut owner) = server().await;
    let mut reader = log_in(&server, "reader", "secret").await;
    let mut figures = Vec::new();
    for name in ["another", "one more"] {
        let stats = reader.ok(json(r#"{"dbStats": 1}"#)).await;
        let told = ["collections", "objects", "dataSize", "storageSize", "indexes", "indexSize"]
            .map(|name| stats.get(name).cloned());
        let databases = reader.ok(json(r#"{"listDatabases": 1}"#)).await;
        figures.push((told, inner(&databases, "databases").clone()));
        let create = Document::new().with("createUser", name).with("pwd", "secret");
        owner.ok(create.with("roles", Value::Array(Vec::new()))).await;
    }
    assert_eq!(figures[0], figures[1]);
    assert_eq!(figures[0].0[1], Some(Value::Int64(1)), "the collection beside it counts");
}
