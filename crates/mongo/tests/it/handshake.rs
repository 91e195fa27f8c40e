//! How clients find out about the server.

use bson::{Document, RawDocument, Value};
use mongo::Profile;

use crate::client::{
    Server, code, frame, inner, json, kind_0, op_msg, op_query, ping_message, reply, settings, text, texts,
};

fn hello(name: &str) -> Document {
    Document::new().with(name, 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_set_says_where_it_is_found() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let me = server.address.to_string();
    for (name, primary) in
        [("hello", "isWritablePrimary"), ("isMaster", "ismaster"), ("ismaster", "ismaster")]
    {
        let reply = client.ok(hello(name)).await;
        assert_eq!(reply.get(primary), Some(&Value::Bool(true)), "{name}");
        assert_eq!(text(&reply, "setName"), "globaldb");
        assert_eq!(reply.get("hosts"), Some(&texts(&[&me])));
        assert_eq!((text(&reply, "me"), text(&reply, "primary")), (me.as_str(), me.as_str()));
        assert_eq!(reply.get("maxBsonObjectSize"), Some(&Value::Int32(16_777_216)));
        assert_eq!(reply.get("maxMessageSizeBytes"), Some(&Value::Int32(48_000_000)));
        assert_eq!(reply.get("maxWriteBatchSize"), Some(&Value::Int32(100_000)));
        assert_eq!(reply.get("logicalSessionTimeoutMinutes"), Some(&Value::Int32(30)));
        assert_eq!(reply.get("minWireVersion"), Some(&Value::Int32(0)));
        assert_eq!(reply.get("maxWireVersion"), Some(&Value::Int32(25)));
        assert!(reply.get("topologyVersion").is_none(), "clients poll");
        assert!(reply.get("helloOk").is_none() && reply.get("compression").is_none());
    }
    let reply = client.ok(hello("isMaster").with("helloOk", true)).await;
    assert_eq!(reply.get("helloOk"), Some(&Value::Bool(true)));
    assert_eq!(text(&client.ok(hello("buildinfo")).await, "version"), "8.0.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_advertised_name_wins() {
    let mut settings = settings();
    settings.advertise = Some("db.example.org:10255".to_owned());
    let server = Server::with(settings).await;
    let reply = server.connect().await.ok(hello("hello")).await;
    assert_eq!(reply.get("hosts"), Some(&texts(&["db.example.org:10255"])));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_profile_is_recognized() {
    for (profile, cluster_time) in [(Profile::Standalone, false), (Profile::Sharded, true)] {
        let mut settings = settings();
        settings.profile = profile.clone();
        let server = Server::with(settings).await;
        let mut client = server.connect().await;
        let reply = client.ok(hello("hello")).await;
        assert!(reply.get("setName").is_none() && reply.get("hosts").is_none());
        let message = reply.get("msg").and_then(Value::as_str);
        assert_eq!(message, (profile == Profile::Sharded).then_some("isdbgrid"));
        for command in ["hello", "nosuch"] {
            let reply = client.admin(hello(command)).await;
            assert_eq!(reply.get("operationTime").is_some(), cluster_time, "{profile:?} {command}");
            assert_eq!(reply.get("$clusterTime").is_some(), cluster_time, "{profile:?} {command}");
        }
        let status = client.admin(hello("replSetGetStatus")).await;
        assert_eq!(code(&status), 76);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_greeting_is_answered_in_its_own_form() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.send(&op_query(5, "admin.$cmd", &hello("ismaster").with("helloOk", true))).await;
    let message = client.read().await.unwrap();
    assert_eq!((message.response_to, message.opcode), (5, 1));
    assert_eq!(message.body[..20], [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    let reply = RawDocument::parse(message.body.slice(20..)).unwrap().to_document();
    assert_eq!(reply.get("ismaster"), Some(&Value::Bool(true)));
    for (collection, command) in [("admin.$cmd", "ping"), ("test.things", "find")] {
        client.send(&op_query(6, collection, &hello(command))).await;
        let message = client.read().await.unwrap();
        let reply = RawDocument::parse(message.body.slice(20..)).unwrap().to_document();
        assert_eq!((message.opcode, code(&reply)), (1, 352), "{command}");
    }
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_compressed_as_the_request_was() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let offered = texts(&["lzma", "zstd", "snappy", "zlib"]);
    let reply = client.ok(hello("hello").with("compression", offered)).await;
    assert_eq!(reply.get("compression"), Some(&texts(&["zstd", "snappy", "zlib"])));
    let ping = ping_message(1).split_off(16);
    let packed = snap::raw::Encoder::new().compress_vec(&ping).unwrap();
    let head = [2013, ping.len() as i32].map(i32::to_le_bytes).concat();
    client.send(&frame(1, 2012, &[&head[..], &[1], &packed].concat())).await;
    let message = client.read().await.unwrap();
    assert_eq!(message.opcode, 2012);
    assert_eq!(message.body[..4], 2013_i32.to_le_bytes());
    assert_eq!(message.body[8], 1);
    let body = snap::raw::Decoder::new().decompress_vec(&message.body[9..]).unwrap();
    let answer = RawDocument::parse(body[5..].to_vec().into()).unwrap();
    assert_eq!(answer.to_document().get("ok"), Some(&Value::Double(1.0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_wants_no_answer_gets_none() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for command in ["ping", "nosuch"] {
        client.send(&op_msg(1, 2, &[kind_0(&hello(command).with("$db", "admin"))])).await;
    }
    client.send(&ping_message(9)).await;
    let message = client.read().await.unwrap();
    assert_eq!(message.response_to, 9, "the only answer is the one to the last message");
    assert_eq!(reply(&message).get("ok"), Some(&Value::Double(1.0)));
}

/// Code and words of what the dispatcher refuses, as clients see them.
#[tokio::test(flavor = "multi_thread")]
async fn golden_table_of_refusals() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let rows: [(Document, &str, i32, &str); 13] = [
        (hello("nosuch"), "admin", 59, "no such command: 'nosuch'"),
        (hello("atlasVersion"), "admin", 59, "no such command: 'atlasVersion'"),
        (hello("Ping"), "admin", 59, "no such command: 'Ping'"),
        (Document::new(), "admin", 59, "no such command: '$db'"),
        (hello("ping"), "a b", 73, "Invalid database name: 'a b'"),
        (hello("getLog"), "test", 13, "getLog may only be run against the admin database."),
        (hello("ping").with("maxTimeMS", -1), "admin", 2, "-1 value for maxTimeMS is out of range"),
        (
            hello("ping").with("maxTimeMS", "x"),
            "admin",
            14,
            "BSON field 'ping.maxTimeMS' is the wrong type 'string', expected types '[long, int, decimal, double]'",
        ),
        (hello("ping").with("apiVersion", "2"), "admin", 322, "API version must be \"1\""),
        (
            hello("buildInfo").with("apiVersion", "1").with("apiStrict", true),
            "admin",
            323,
            "Provided apiStrict:true, but the command buildInfo is not in API Version 1",
        ),
        (
            json(r#"{"distinct": "c", "key": "a", "apiVersion": "1", "apiStrict": true}"#),
            "db",
            323,
            "Provided apiStrict:true, but the command distinct is not in API Version 1",
        ),
        (
            json(
                r#"{"aggregate": "c", "pipeline": [{"$collStats": {"latencyStats": {}}}], "cursor": {}, "apiVersion": "1", "apiStrict": true}"#,
            ),
            "db",
            323,
            "Provided apiStrict:true, but $collStats is not in API Version 1",
        ),
        (
            json(
                r#"{"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], "cursor": {}, "apiVersion": "1", "apiStrict": true}"#,
            ),
            "db",
            323,
            "Provided apiStrict:true, but $listLocalSessions is not in API Version 1",
        ),
    ];
    for (command, database, expected, words) in rows {
        let reply = client.on(database, command).await;
        assert_eq!((code(&reply), text(&reply, "errmsg")), (expected, words));
        assert!(!text(&reply, "codeName").is_empty());
    }
    client.send(&op_msg(1, 0, &[kind_0(&hello("ping"))])).await;
    assert_eq!(code(&reply(&client.read().await.unwrap())), 40571, "no $db");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_on_replies_grows_with_writes_and_is_believed_within_reason() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let first = client.ok(hello("ping")).await;
    let write =
        |name: &str| Document::new().with("createUser", name).with("pwd", "x").with("roles", texts(&[]));
    let (one, two) = (client.ok(write("a")).await, client.ok(write("b")).await);
    let time = |reply: &Document| match reply.get("operationTime") {
        Some(Value::Timestamp(time)) => *time,
        other => panic!("{other:?}"),
    };
    assert!(time(&first) < time(&one) && time(&one) < time(&two));
    let seen = |seconds| Document::new().with("clusterTime", bson::Timestamp { seconds, increment: 5 });
    let far = client.ok(hello("ping").with("$clusterTime", seen(u32::MAX))).await;
    assert_eq!(time(&far).seconds, time(&two).seconds, "no client can use up the clock");
    let near = client.ok(hello("ping").with("$clusterTime", seen(time(&two).seconds + 60))).await;
    let Value::Timestamp(cluster) = inner(&near, "$clusterTime.clusterTime") else { panic!("{near:?}") };
    assert_eq!(cluster.seconds, time(&two).seconds + 60);
    assert_eq!(time(&near), time(&far), "events happen at the store's time, whatever a client has seen");
    let after = Document::new().with("afterClusterTime", bson::Timestamp { seconds: u32::MAX, increment: 1 });
    assert_eq!(client.refused(hello("ping").with("readConcern", after)).await.0, 72);
    assert!(
        matches!(inner(&near, "$clusterTime.signature.hash"), Value::Binary(hash) if hash.bytes == [0; 20])
    );
}

/// The description of a client is kept as long as its connection, so it has the bounds that drivers keep to.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_describes_itself_briefly() {
    let server = Server::start().await;
    let described = |name: usize, platform: usize| {
        let application = Document::new().with("name", "a".repeat(name));
        let client = Document::new().with("application", application).with("platform", "p".repeat(platform));
        hello("hello").with("client", client)
    };
    let fixed = |name| match described(name, 0).get("client") {
        Some(Value::Document(client)) => RawDocument::from_document(client).as_bytes().len(),
        other => panic!("{other:?}"),
    };
    let mut client = server.connect().await;
    client.ok(described(128, 512 - fixed(128))).await;
    for (command, expected, name) in [
        (described(129, 0), 184, "ClientMetadataAppNameTooLarge"),
        (described(128, 513 - fixed(128)), 185, "ClientMetadataDocumentTooLarge"),
        (described(12_000, 0), 185, "ClientMetadataDocumentTooLarge"),
    ] {
        let refused = server.connect().await.admin(command).await;
        assert_eq!((code(&refused), text(&refused, "codeName")), (expected, name));
    }
}
