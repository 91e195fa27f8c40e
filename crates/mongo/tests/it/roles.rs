//! What users may do by their roles, over the wire.

use std::collections::HashSet;

use bson::{Binary, Document, Value};
use mongo::Authentication;
use tokio::net::TcpStream;

use crate::client::{Client, PASSWORD, Server, code, inner, json, settings, text};
use crate::scram::{Hash, authenticate};

type Connected = Client<TcpStream>;

async fn server(authentication: Authentication) -> (Server, Connected) {
    let mut settings = settings();
    settings.authentication = authentication;
    let server = Server::with(settings).await;
    let mut owner = server.connect().await;
    authenticate(&mut owner, Hash::Sha1, "admin", "bolide", PASSWORD).await.unwrap();
    for database in ["shop", "other"] {
        let documents =
            r#"{"insert": "c", "documents": [{"_id": 1, "x": 1}, {"_id": 2, "x": 2}, {"_id": 3, "x": 3}]}"#;
        owner.done(database, json(documents)).await;
    }
    (server, owner)
}

async fn locked() -> (Server, Connected) {
    server(Authentication::Required).await
}

/// Makes a user of `admin` with roles given as `name@database`.
async fn make(owner: &mut Connected, name: &str, roles: &[&str]) {
    let create = json(r#"{"pwd": "secret", "mechanisms": ["SCRAM-SHA-1"]}"#);
    let mut command = Document::new().with("createUser", name).with("roles", given(roles));
    command.fields_mut().extend(create);
    owner.ok(command).await;
}

fn given(roles: &[&str]) -> Value {
    let role = |role: &&str| {
        let (name, database) = role.split_once('@').unwrap();
        Value::from(Document::new().with("role", name).with("db", database))
    };
    Value::Array(roles.iter().map(role).collect())
}

async fn log_in(server: &Server, name: &str) -> Connected {
    let mut client = server.connect().await;
    authenticate(&mut client, Hash::Sha1, "admin", name, "secret").await.unwrap();
    client
}

/// A user with these roles, connected.
async fn user(server: &Server, owner: &mut Connected, name: &str, roles: &[&str]) -> Connected {
    make(owner, name, roles).await;
    log_in(server, name).await
}

/// Whether the command was refused for lack of a role; its message must then be the known one.
async fn is_refused(client: &mut Connected, database: &str, command: &str) -> bool {
    let reply = client.on(database, json(command)).await;
    let refused = reply.get("code") == Some(&Value::Int32(13));
    if refused {
        let words = format!("not authorized on {database} to execute command {{ ");
        assert!(text(&reply, "errmsg").starts_with(&words), "{reply:?}");
        assert_eq!(text(&reply, "codeName"), "Unauthorized");
    }
    refused
}

const ROLES: [&str; 14] = [
    "read@shop",
    "readWrite@shop",
    "dbAdmin@shop",
    "userAdmin@shop",
    "dbOwner@shop",
    "enableSharding@shop",
    "readAnyDatabase@admin",
    "readWriteAnyDatabase@admin",
    "clusterMonitor@admin",
    "hostManager@admin",
    "clusterAdmin@admin",
    "backup@admin",
    "restore@admin",
    "root@admin",
];

/// A database, a command, and which of [`ROLES`] may run it, by the name alone. Destructive commands stand at the end.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("shop", r#"{"find": "c"}"#, "read readWrite dbOwner readAnyDatabase readWriteAnyDatabase backup root"),
    ("other", r#"{"find": "c"}"#, "readAnyDatabase readWriteAnyDatabase backup root"),
    ("config", r#"{"find": "c"}"#, "clusterMonitor clusterAdmin backup root"),
    ("shop", r#"{"count": "c"}"#, "read readWrite dbOwner readAnyDatabase readWriteAnyDatabase backup root"),
    (
        "shop",
        r#"{"distinct": "c", "key": "x"}"#,
        "read readWrite dbOwner readAnyDatabase readWriteAnyDatabase backup root",
    ),
    (
        "shop",
        r#"{"aggregate": "c", "pipeline": [], "cursor": {}}"#,
        "read readWrite dbOwner readAnyDatabase readWriteAnyDatabase backup root",
    ),
    (
        "shop",
        r#"{"explain": {"find": "c"}}"#,
        "read readWrite dbOwner readAnyDatabase readWriteAnyDatabase backup root",
    ),
    (
        "shop",
        r#"{"explain": {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}}"#,
        "readWrite dbOwner readWriteAnyDatabase root",
    ),
    (
        "shop",
        r#"{"insert": "c", "documents": [{"x": 9}]}"#,
        "readWrite dbOwner readWriteAnyDatabase restore root",
    ),
    ("other", r#"{"insert": "c", "documents": [{"x": 9}]}"#, "readWriteAnyDatabase restore root"),
    (
        "shop",
        r#"{"insert": "c", "documents": [{"x": 9}], "bypassDocumentValidation": true}"#,
        "dbOwner restore root",
    ),
    (
        "shop",
        r#"{"update": "c", "updates": [{"q": {"x": 9}, "u": {"$set": {"y": 1}}}]}"#,
        "readWrite dbOwner readWriteAnyDatabase root",
    ),
    (
        "shop",
        r#"{"update": "c", "updates": [{"q": {"x": 8}, "u": {"$set": {"y": 1}}, "upsert": true}]}"#,
        "readWrite dbOwner readWriteAnyDatabase root",
    ),
    (
        "shop",
        r#"{"delete": "c", "deletes": [{"q": {"x": 9}, "limit": 1}]}"#,
        "readWrite dbOwner readWriteAnyDatabase root",
    ),
    (
        "shop",
        r#"{"findAndModify": "c", "query": {"x": 9}, "update": {"$set": {"y": 1}}}"#,
        "readWrite dbOwner readWriteAnyDatabase root",
    ),
    (
        "shop",
        r#"{"findAndModify": "c", "query": {"x": 9}, "remove": true}"#,
        "readWrite dbOwner readWriteAnyDatabase root",
    ),
    (
        "admin",
        r#"{"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "shop.c"}]}"#,
        "readWrite dbOwner readWriteAnyDatabase restore root",
    ),
    (
        "admin",
        r#"{"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}, {"delete": 1, "filter": {"x": 9}}], "nsInfo": [{"ns": "shop.c"}, {"ns": "other.c"}]}"#,
        "readWriteAnyDatabase root",
    ),
    ("shop", r#"{"create": "made"}"#, "readWrite dbAdmin dbOwner readWriteAnyDatabase restore root"),
    (
        "shop",
        r#"{"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}"#,
        "readWrite dbAdmin dbOwner readWriteAnyDatabase restore root",
    ),
    (
        "shop",
        r#"{"dropIndexes": "c", "index": "x_1"}"#,
        "readWrite dbAdmin dbOwner readWriteAnyDatabase root",
    ),
    (
        "shop",
        r#"{"listIndexes": "c"}"#,
        "read readWrite dbAdmin dbOwner readAnyDatabase readWriteAnyDatabase backup root",
    ),
    (
        "shop",
        r#"{"listCollections": 1}"#,
        "read readWrite dbAdmin dbOwner readAnyDatabase readWriteAnyDatabase backup restore root",
    ),
    (
        "shop",
        r#"{"listCollections": 1, "nameOnly": true, "authorizedCollections": true}"#,
        "read readWrite dbAdmin userAdmin dbOwner readAnyDatabase readWriteAnyDatabase clusterMonitor clusterAdmin backup restore root",
    ),
    (
        "shop",
        r#"{"collStats": "c"}"#,
        "read readWrite dbAdmin dbOwner readAnyDatabase readWriteAnyDatabase clusterMonitor clusterAdmin backup root",
    ),
    (
        "shop",
        r#"{"dbStats": 1}"#,
        "read readWrite dbAdmin dbOwner readAnyDatabase readWriteAnyDatabase clusterMonitor clusterAdmin root",
    ),
    ("shop", r#"{"validate": "c"}"#, "dbAdmin dbOwner root"),
    ("shop", r#"{"collMod": "c", "validationLevel": "off"}"#, "dbAdmin dbOwner restore root"),
    ("shop", r#"{"profile": -1}"#, "dbAdmin dbOwner root"),
    (
        "shop",
        r#"{"customAction": "GetCollection", "collection": "c"}"#,
        "read readWrite dbAdmin dbOwner readAnyDatabase readWriteAnyDatabase clusterMonitor clusterAdmin backup root",
    ),
    (
        "shop",
        r#"{"customAction": "UpdateCollection", "collection": "c", "offerThroughput": 400}"#,
        "dbAdmin dbOwner restore root",
    ),
    (
        "shop",
        r#"{"customAction": "CreateCollection", "collection": "made"}"#,
        "readWrite dbAdmin dbOwner readWriteAnyDatabase restore root",
    ),
    (
        "shop",
        r#"{"createSearchIndexes": "c"}"#,
        "readWrite dbAdmin dbOwner readWriteAnyDatabase restore root",
    ),
    ("shop", r#"{"updateSearchIndex": "c"}"#, "readWrite dbAdmin dbOwner readWriteAnyDatabase restore root"),
    ("shop", r#"{"dropSearchIndex": "c"}"#, "readWrite dbAdmin dbOwner readWriteAnyDatabase root"),
    (
        "admin",
        r#"{"renameCollection": "shop.none", "to": "shop.more"}"#,
        "readWrite dbAdmin dbOwner readWriteAnyDatabase root",
    ),
    ("admin", r#"{"renameCollection": "shop.none", "to": "other.none"}"#, "readWriteAnyDatabase root"),
    (
        "admin",
        r#"{"renameCollection": "shop.none", "to": "shop.more", "dropTarget": true}"#,
        "readWrite dbAdmin dbOwner readWriteAnyDatabase root",
    ),
    ("shop", r#"{"usersInfo": 1}"#, "userAdmin dbOwner restore root"),
    ("admin", r#"{"usersInfo": {"forAllDBs": true}}"#, "root"),
    ("shop", r#"{"rolesInfo": 1}"#, "userAdmin dbOwner restore root"),
    ("shop", r#"{"createUser": "u", "pwd": "p", "roles": []}"#, "userAdmin dbOwner restore root"),
    (
        "shop",
        r#"{"createUser": "u", "pwd": "p", "roles": [{"role": "read", "db": "other"}]}"#,
        "restore root",
    ),
    ("shop", r#"{"updateUser": "u", "pwd": "q"}"#, "userAdmin dbOwner restore root"),
    ("shop", r#"{"updateUser": "u", "customData": {}}"#, "userAdmin dbOwner restore root"),
    ("shop", r#"{"updateUser": "u", "roles": []}"#, "restore root"),
    ("shop", r#"{"grantRolesToUser": "u", "roles": ["read"]}"#, "userAdmin dbOwner restore root"),
    ("shop", r#"{"grantRolesToUser": "u", "roles": [{"role": "root", "db": "admin"}]}"#, "restore root"),
    ("shop", r#"{"revokeRolesFromUser": "u", "roles": ["read"]}"#, "userAdmin dbOwner restore root"),
    ("shop", r#"{"dropUser": "u"}"#, "userAdmin dbOwner restore root"),
    ("shop", r#"{"dropAllUsersFromDatabase": 1}"#, "userAdmin dbOwner restore root"),
    (
        "admin",
        r#"{"listDatabases": 1, "authorizedDatabases": false}"#,
        "readAnyDatabase readWriteAnyDatabase clusterMonitor clusterAdmin backup root",
    ),
    ("admin", r#"{"serverStatus": 1}"#, "clusterMonitor clusterAdmin backup root"),
    ("admin", r#"{"getParameter": "*"}"#, "clusterMonitor clusterAdmin backup restore root"),
    ("admin", r#"{"setParameter": 1, "quiet": false}"#, "hostManager clusterAdmin root"),
    ("admin", r#"{"hostInfo": 1}"#, "clusterMonitor clusterAdmin root"),
    ("admin", r#"{"getLog": "*"}"#, "clusterMonitor clusterAdmin root"),
    ("admin", r#"{"getCmdLineOpts": 1}"#, "clusterMonitor clusterAdmin root"),
    ("admin", r#"{"top": 1}"#, "clusterMonitor clusterAdmin root"),
    ("admin", r#"{"currentOp": 1}"#, "clusterMonitor clusterAdmin root"),
    ("admin", r#"{"killOp": 1, "op": 999999}"#, "hostManager clusterAdmin root"),
    ("admin", r#"{"replSetGetStatus": 1}"#, "clusterMonitor clusterAdmin root"),
    ("admin", r#"{"replSetGetConfig": 1}"#, "clusterMonitor clusterAdmin root"),
    ("admin", r#"{"getDefaultRWConcern": 1}"#, "clusterMonitor clusterAdmin root"),
    ("admin", r#"{"logRotate": 1}"#, "hostManager clusterAdmin root"),
    ("admin", r#"{"fsync": 1}"#, "hostManager clusterAdmin root"),
    ("admin", r#"{"configureFailPoint": "failCommand", "mode": "off"}"#, "hostManager clusterAdmin root"),
    ("admin", r#"{"killAllSessions": [{"user": "missing", "db": "x"}]}"#, "hostManager clusterAdmin root"),
    (
        "admin",
        r#"{"killAllSessionsByPattern": [{"users": [{"user": "missing", "db": "x"}]}]}"#,
        "hostManager clusterAdmin root",
    ),
    ("shop", r#"{"drop": "made"}"#, "readWrite dbAdmin dbOwner readWriteAnyDatabase restore root"),
    ("shop", r#"{"dropDatabase": 1}"#, "dbAdmin dbOwner clusterAdmin root"),
];

/// Commands that every user may run, whatever the roles.
const FOR_EVERY_USER: &[&str] = &[
    r#"{"ping": 1}"#,
    r#"{"listDatabases": 1}"#,
    r#"{"startSession": 1}"#,
    r#"{"refreshSessions": []}"#,
    r#"{"killSessions": []}"#,
    r#"{"endSessions": []}"#,
    r#"{"getLastRequestStatistics": 1}"#,
    r#"{"getMore": {"$numberLong": "5"}, "collection": "c"}"#,
    r#"{"killCursors": "c", "cursors": [5]}"#,
    r#"{"commitTransaction": 1}"#,
    r#"{"abortTransaction": 1}"#,
    r#"{"currentOp": 1, "$ownOps": true}"#,
    r#"{"connectionStatus": 1, "showPrivileges": true}"#,
];

#[tokio::test(flavor = "multi_thread")]
async fn golden_table_of_roles_and_commands() {
    let (server, mut owner) = locked().await;
    for role in ROLES {
        let (name, _) = role.split_once('@').unwrap();
        let mut client = user(&server, &mut owner, name, &[role]).await;
        for (database, command, allowed) in COMMANDS {
            let expected = !allowed.split(' ').any(|allowed| allowed == name);
            let refused = is_refused(&mut client, database, command).await;
            assert_eq!(refused, expected, "{role}: {command} on {database}");
        }
        for command in FOR_EVERY_USER {
            assert!(!is_refused(&mut client, "admin", command).await, "{role}: {command}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_roles_and_commands_is_complete() {
    let (_server, mut owner) = locked().await;
    let name = |command: &str| json(command).iter().next().unwrap().0.to_owned();
    let tried = COMMANDS.iter().map(|(_, command, _)| name(command));
    let tried: HashSet<String> = tried.chain(FOR_EVERY_USER.iter().map(|command| name(command))).collect();
    let listed = owner.ok(json(r#"{"listCommands": 1}"#)).await;
    for (command, row) in inner(&listed, "commands").as_document().unwrap().iter() {
        let needs = row.as_document().unwrap().get("requiresAuth") == Some(&Value::Bool(true));
        assert!(!needs || tried.contains(command), "no row tries {command}");
    }
    for role in ROLES {
        let (name, _) = role.split_once('@').unwrap();
        assert!(COMMANDS.iter().any(|(.., allowed)| allowed.contains(name)) || name == "enableSharding");
    }
}

/// Pipelines on `shop.c`, and whether a user who reads and writes `shop` and has no other role may run them.
const PIPELINES: &[(&str, bool)] = &[
    (r#"{"$lookup": {"from": "d", "localField": "x", "foreignField": "x", "as": "o"}}"#, true),
    (
        r#"{"$lookup": {"from": {"db": "other", "coll": "c"}, "localField": "x", "foreignField": "x", "as": "o"}}"#,
        false,
    ),
    (
        r#"{"$lookup": {"from": "d", "pipeline": [{"$lookup": {"from": {"db": "other", "coll": "c"}, "pipeline": [], "as": "o"}}], "as": "o"}}"#,
        false,
    ),
    (
        r#"{"$lookup": {"from": "d", "let": {"y": "$x"}, "pipeline": [{"$lookup": {"from": {"db": "other", "coll": "c"}, "pipeline": [], "as": "o"}}], "as": "o"}}"#,
        false,
    ),
    (
        r#"{"$facet": {"a": [{"$lookup": {"from": {"db": "other", "coll": "c"}, "pipeline": [], "as": "o"}}]}}"#,
        false,
    ),
    (r#"{"$unionWith": "d"}"#, true),
    (
        r#"{"$unionWith": {"coll": "d", "pipeline": [{"$lookup": {"from": {"db": "other", "coll": "c"}, "pipeline": [], "as": "o"}}]}}"#,
        false,
    ),
    (
        r#"{"$graphLookup": {"from": "d", "startWith": "$x", "connectFromField": "x", "connectToField": "x", "as": "o"}}"#,
        true,
    ),
    (r#"{"$out": "made"}"#, true),
    (r#"{"$out": {"db": "other", "coll": "made"}}"#, false),
    (r#"{"$merge": {"into": "made"}}"#, true),
    (r#"{"$merge": {"into": {"db": "other", "coll": "made"}}}"#, false),
    (
        r#"{"$merge": {"into": {"db": "other", "coll": "made"}, "whenMatched": "merge", "whenNotMatched": "discard"}}"#,
        false,
    ),
    (r#"{"$collStats": {"count": {}}}"#, true),
    (r#"{"$indexStats": {}}"#, false),
    (r#"{"$unionWith": {"coll": "d", "pipeline": [{"$indexStats": {}}]}}"#, false),
    (r#"{"$lookup": {"from": "d", "pipeline": [{"$indexStats": {}}], "as": "o"}}"#, false),
    (r#"{"$facet": {"a": [{"$unionWith": {"coll": "d", "pipeline": [{"$indexStats": {}}]}}]}}"#, false),
    (r#"{"$changeStream": {}}"#, true),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_needs_what_it_looks_into_and_where_it_writes() {
    let (server, mut owner) = locked().await;
    let mut writer = user(&server, &mut owner, "writer", &["readWrite@shop"]).await;
    let mut reader = user(&server, &mut owner, "reader", &["read@shop"]).await;
    let mut root = user(&server, &mut owner, "root", &["root@admin"]).await;
    for (stage, allowed) in PIPELINES {
        let command = format!(r#"{{"aggregate": "c", "pipeline": [{stage}], "cursor": {{}}}}"#);
        assert_eq!(is_refused(&mut writer, "shop", &command).await, !allowed, "{stage}");
        let output = stage.contains("$out") || stage.contains("$merge");
        assert_eq!(is_refused(&mut reader, "shop", &command).await, !allowed || output, "{stage}");
        assert!(!is_refused(&mut root, "shop", &command).await, "{stage}");
        let explained =
            format!(r#"{{"explain": {{"aggregate": "c", "pipeline": [{stage}], "cursor": {{}}}}}}"#);
        assert_eq!(is_refused(&mut writer, "shop", &explained).await, !allowed, "explained: {stage}");
    }
    // On a whole database or all of them.
    for (database, stage, allowed) in [
        ("shop", r#"{"$changeStream": {}}"#, true),
        ("other", r#"{"$changeStream": {}}"#, false),
        ("admin", r#"{"$changeStream": {"allChangesForCluster": true}}"#, false),
        ("admin", r#"{"$currentOp": {}}"#, true),
        ("admin", r#"{"$currentOp": {"allUsers": true}}"#, false),
        ("admin", r#"{"$listLocalSessions": {}}"#, true),
        ("admin", r#"{"$documents": [{"x": 1}]}"#, true),
    ] {
        let command = format!(r#"{{"aggregate": 1, "pipeline": [{stage}], "cursor": {{}}}}"#);
        assert_eq!(is_refused(&mut writer, database, &command).await, !allowed, "{stage} on {database}");
        assert!(!is_refused(&mut root, database, &command).await, "{stage} on {database}");
    }
    let passing = r#"{"aggregate": "c", "pipeline": [{"$out": "made"}], "cursor": {}, "bypassDocumentValidation": true}"#;
    assert!(is_refused(&mut writer, "shop", passing).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_no_way_into_another_database() {
    let (server, mut owner) = locked().await;
    let mut writer = user(&server, &mut owner, "writer", &["dbOwner@shop"]).await;
    let stages = r#"[{"$lookup": {"from": {"db": "other", "coll": "c"}, "pipeline": [], "as": "o"}}]"#;
    let view = |stages: &str| format!(r#"{{"create": "v", "viewOn": "c", "pipeline": {stages}}}"#);
    assert!(is_refused(&mut writer, "shop", &view(stages)).await);
    assert!(!is_refused(&mut writer, "shop", &view("[]")).await);
    let change = format!(r#"{{"collMod": "v", "viewOn": "c", "pipeline": {stages}}}"#);
    assert!(is_refused(&mut writer, "shop", &change).await);
    writer.done("shop", json(r#"{"find": "v"}"#)).await;
}

fn cursor_of(reply: &Document) -> i64 {
    match inner(reply, "cursor.id") {
        Value::Int64(id) => *id,
        other => panic!("no cursor but {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_roles_holds_from_the_next_command_on() {
    let (server, mut owner) = locked().await;
    let mut ann = user(&server, &mut owner, "ann", &[]).await;
    let find = r#"{"find": "c", "batchSize": 1}"#;
    assert!(is_refused(&mut ann, "shop", find).await);
    let roles = |command: &str| Document::new().with(command, "ann").with("roles", given(&["read@shop"]));
    owner.ok(roles("grantRolesToUser")).await;
    let found = ann.done("shop", json(find)).await;
    let stream = json(r#"{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}"#);
    let stream = ann.done("shop", stream).await;
    owner.ok(roles("revokeRolesFromUser")).await;
    assert!(is_refused(&mut ann, "shop", find).await);
    for open in [found, stream] {
        let more = Document::new().with("getMore", cursor_of(&open)).with("collection", "c");
        assert_eq!(ann.fails("shop", more).await.0, 13, "a cursor goes with the role");
        let close = Document::new().with("killCursors", "c").with("cursors", vec![cursor_of(&open).into()]);
        let closed = ann.done("shop", close).await;
        assert_eq!(closed.get("cursorsKilled"), Some(&Value::Array(vec![cursor_of(&open).into()])));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_user_stays_refused_even_if_the_name_comes_back() {
    for authentication in [Authentication::Required, Authentication::Optional] {
        let (server, mut owner) = server(authentication).await;
        let mut ann = user(&server, &mut owner, "ann", &["root@admin"]).await;
        ann.done("shop", json(r#"{"find": "c"}"#)).await;
        owner.ok(json(r#"{"dropUser": "ann"}"#)).await;
        let gone = (13, "Command find requires authentication".to_owned());
        assert_eq!(ann.fails("shop", json(r#"{"find": "c"}"#)).await, gone);
        ann.ping().await;
        make(&mut owner, "ann", &["root@admin"]).await;
        assert_eq!(ann.fails("shop", json(r#"{"find": "c"}"#)).await, gone, "that is another user");
        authenticate(&mut ann, Hash::Sha1, "admin", "ann", "secret").await.unwrap();
        ann.done("shop", json(r#"{"find": "c"}"#)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_required_authentication_a_user_is_still_bound() {
    let (server, mut owner) = server(Authentication::Optional).await;
    let mut ann = user(&server, &mut owner, "ann", &["read@shop"]).await;
    let insert = r#"{"insert": "c", "documents": [{"x": 9}]}"#;
    assert!(is_refused(&mut ann, "shop", insert).await);
    let mut unauthenticated = server.connect().await;
    unauthenticated.done("shop", json(insert)).await;
    ann.ok(json(r#"{"logout": 1}"#)).await;
    ann.done("shop", json(insert)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_repeats_no_secret_and_not_everything() {
    let (server, mut owner) = locked().await;
    let mut ann = user(&server, &mut owner, "ann", &["read@shop"]).await;
    let create = json(r#"{"createUser": "eve", "pwd": "hush-hush", "roles": []}"#);
    let (code, words) = ann.fails("shop", create).await;
    assert_eq!(code, 13);
    assert!(words.contains(r#"createUser: "eve", pwd: "xxx""#) && !words.contains("hush"), "{words}");
    let explained = json(r#"{"explain": {"createUser": "eve", "pwd": "hush-hush", "roles": []}}"#);
    let (code, words) = ann.fails("shop", explained).await;
    assert!(code == 13 && !words.contains("hush"), "{words}");
    let field = |number: i32| (format!("field{number}"), Value::from("x".repeat(100)));
    let long = Document::new()
        .with("insert", "c")
        .with("documents", vec![(0..500).map(field).collect::<Document>().into()]);
    let (_, words) = ann.fails("shop", long).await;
    assert!(words.len() < 1200 && words.ends_with("..."), "{}", words.len());
}

fn names(reply: &Document, path: &str) -> Vec<String> {
    let list = inner(reply, path).as_array().unwrap();
    list.iter().map(|entry| text(entry.as_document().unwrap(), "name").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn users_see_the_databases_that_they_may_read() {
    let (server, mut owner) = locked().await;
    let list = || json(r#"{"listDatabases": 1, "nameOnly": true}"#);
    let mut ann = user(&server, &mut owner, "ann", &["readWrite@shop", "dbAdmin@other"]).await;
    assert_eq!(names(&ann.ok(list()).await, "databases"), ["shop"]);
    let mut bob = user(&server, &mut owner, "bob", &["userAdminAnyDatabase@admin"]).await;
    assert_eq!(names(&bob.ok(list()).await, "databases"), ["admin", "other", "shop"]);
    let own = list().with("authorizedDatabases", true);
    assert_eq!(names(&bob.ok(own).await, "databases"), Vec::<String>::new());
    let mut cid = user(&server, &mut owner, "cid", &[]).await;
    assert_eq!(names(&cid.ok(list()).await, "databases"), Vec::<String>::new());
    let own = json(r#"{"listCollections": 1, "nameOnly": true, "authorizedCollections": true}"#);
    assert_eq!(names(&ann.done("shop", own.clone()).await, "cursor.firstBatch"), ["c"]);
    assert_eq!(cid.fails("shop", own).await.0, 13);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_see_themselves_and_what_they_may() {
    let (server, mut owner) = locked().await;
    let mut ann = user(&server, &mut owner, "ann", &["read@shop"]).await;
    make(&mut owner, "bob", &[]).await;
    for (command, allowed) in [
        (r#"{"usersInfo": "ann"}"#, true),
        (r#"{"usersInfo": {"user": "ann", "db": "admin"}}"#, true),
        (r#"{"usersInfo": ["ann"], "showPrivileges": true}"#, true),
        (r#"{"usersInfo": "bob"}"#, false),
        (r#"{"usersInfo": ["ann", "bob"]}"#, false),
        (r#"{"usersInfo": {"user": "ann", "db": "shop"}}"#, false),
        (r#"{"usersInfo": 1}"#, false),
        (r#"{"rolesInfo": {"role": "read", "db": "shop"}, "showPrivileges": true}"#, true),
        (r#"{"rolesInfo": {"role": "read", "db": "other"}}"#, false),
        (r#"{"rolesInfo": 1}"#, false),
        (r#"{"updateUser": "ann", "pwd": "mine"}"#, false),
        (r#"{"grantRolesToUser": "ann", "roles": [{"role": "root", "db": "admin"}]}"#, false),
    ] {
        assert_eq!(is_refused(&mut ann, "admin", command).await, !allowed, "{command}");
    }
    let status = ann.ok(json(r#"{"connectionStatus": 1, "showPrivileges": true}"#)).await;
    let role = |entry: &str| json(entry).into();
    let roles = inner(&status, "authInfo.authenticatedUserRoles");
    assert_eq!(roles, &Value::Array(vec![role(r#"{"role": "read", "db": "shop"}"#)]));
    let privileges = inner(&status, "authInfo.authenticatedUserPrivileges").as_array().unwrap();
    let only = privileges[0].as_document().unwrap();
    assert_eq!(privileges.len(), 1);
    assert_eq!(only.get("resource"), Some(&role(r#"{"db": "shop", "collection": ""}"#)));
    assert!(inner(only, "actions").as_array().unwrap().contains(&Value::from("find")));
    let status = owner.ok(json(r#"{"connectionStatus": 1, "showPrivileges": true}"#)).await;
    let roles = inner(&status, "authInfo.authenticatedUserRoles");
    assert_eq!(roles, &Value::Array(vec![role(r#"{"role": "root", "db": "admin"}"#)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_and_commands_of_others_are_for_who_manages_the_server() {
    let (server, mut owner) = locked().await;
    let mut ann = user(&server, &mut owner, "ann", &["read@shop"]).await;
    let mut bob = user(&server, &mut owner, "bob", &["read@shop"]).await;
    let mut host = user(&server, &mut owner, "host", &["hostManager@admin"]).await;
    let open = ann.done("shop", json(r#"{"find": "c", "batchSize": 1}"#)).await;
    let id = cursor_of(&open);
    let more = || Document::new().with("getMore", id).with("collection", "c");
    assert_eq!(bob.fails("shop", more()).await.0, 13);
    let close = || Document::new().with("killCursors", "c").with("cursors", vec![id.into()]);
    let closed = |reply: Document| reply.get("cursorsKilled") == Some(&Value::Array(vec![id.into()]));
    assert!(!closed(bob.done("shop", close()).await), "another user's");
    assert!(closed(host.done("shop", close()).await));
    assert_eq!(ann.fails("shop", more()).await.0, 43);

    // A waiting stream is a running command.
    let stream = json(r#"{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}"#);
    let stream = ann.done("shop", stream).await;
    let wait =
        Document::new().with("getMore", cursor_of(&stream)).with("collection", "c").with("maxTimeMS", 60_000);
    let waiting = tokio::spawn(async move { ann.on("shop", wait).await });
    let running = || json(r#"{"currentOp": 1, "op": "getmore"}"#);
    let number = loop {
        let seen = owner.ok(running()).await;
        if let Some(one) = seen.get("inprog").and_then(Value::as_array).and_then(|list| list.first()) {
            break one.as_document().unwrap().get("opid").unwrap().clone();
        }
        tokio::task::yield_now().await;
    };
    let own = json(
        r#"{"aggregate": 1, "pipeline": [{"$currentOp": {}}, {"$match": {"op": "getmore"}}], "cursor": {}}"#,
    );
    let seen = bob.ok(own).await;
    assert_eq!(inner(&seen, "cursor.firstBatch"), &Value::Array(Vec::new()));
    let seen = bob.ok(running().with("$ownOps", true)).await;
    assert_eq!(seen.get("inprog"), Some(&Value::Array(Vec::new())));
    let kill = || Document::new().with("killOp", 1).with("op", number.clone());
    assert_eq!(bob.refused(kill()).await.0, 13);
    let mut again = log_in(&server, "ann").await;
    again.ok(kill()).await;
    assert_eq!(code(&waiting.await.unwrap()), 11601, "one's own may be stopped, from any connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_statement_is_no_part_of_a_transaction() {
    let (server, mut owner) = locked().await;
    let mut ann = user(&server, &mut owner, "ann", &["readWrite@shop"]).await;
    let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![7; 16] });
    let part = |command: &str| {
        json(command).with("lsid", lsid.clone()).with("txnNumber", 1_i64).with("autocommit", false)
    };
    let foreign = r#"{"insert": "c", "documents": [{"x": 7}]}"#;
    let started = ann.on("other", part(foreign).with("startTransaction", true)).await;
    assert_eq!(code(&started), 13);
    ann.done("shop", part(foreign).with("startTransaction", true)).await;
    assert_eq!(ann.fails("other", part(foreign)).await.0, 13);
    ann.done("admin", part(r#"{"commitTransaction": 1}"#)).await;
    let count = json(r#"{"count": "c", "query": {"x": 7}}"#);
    assert_eq!(ann.done("shop", count.clone()).await.get("n"), Some(&Value::Int32(1)));
    assert_eq!(owner.done("other", count).await.get("n"), Some(&Value::Int32(0)));
}
