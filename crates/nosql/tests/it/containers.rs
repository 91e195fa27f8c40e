//! Databases, containers and their ranges.

use document::Value;

use crate::client::Server;

#[tokio::test]
async fn databases_are_created_read_listed_queried_and_deleted() {
    let server = Server::start().await;
    let created = server.post("/dbs", r#"{"id":"one"}"#).send().await.expect_status(201);
    assert_eq!(created.header("etag").map(str::to_owned), Some(created.string("_etag")));
    assert_eq!(created.string("_self"), format!("dbs/{}/", created.string("_rid")));
    assert_eq!(
        (created.string("_colls"), created.string("_users")),
        ("colls/".to_owned(), "users/".to_owned())
    );
    server.post("/dbs", r#"{"id":"one"}"#).send().await.expect_error(409, 0, "Conflict");
    server.post("/dbs", r#"{"id":"two"}"#).send().await.expect_status(201);
    let list = server.get("/dbs/").send().await.expect_status(200);
    assert_eq!(list.ids("Databases"), ["one", "two"]);
    assert_eq!(list.member("_count"), Value::Int(2));
    assert_eq!(list.header("x-ms-item-count"), Some("2"));
    let body =
        r#"{"query":"SELECT * FROM root r WHERE r.id=@id","parameters":[{"name":"@id","value":"two"}]}"#;
    let found = server.post("/dbs", body).header("content-type", "application/query+json").send().await;
    assert_eq!(found.expect_status(200).ids("Databases"), ["two"]);
    server.delete("/dbs/one").send().await.expect_status(204);
    server.get("/dbs/one").send().await.expect_error(404, 0, "NotFound");
    server.delete("/dbs/one").send().await.expect_error(404, 0, "NotFound");
    for id in ["", "a/b", "a\\\\b", "a#b", "a?b", "x ", &"x".repeat(256)] {
        let reply = server.post("/dbs", &format!("{{\"id\":\"{id}\"}}")).send().await;
        reply.expect_error(400, 0, "BadRequest");
    }
    server.post("/dbs", "{\"id\":7}").send().await.expect_error(400, 0, "BadRequest");
}

#[tokio::test]
async fn small_feeds_are_paged_by_opaque_tokens() {
    let server = Server::start().await;
    for n in 0..5 {
        server.post("/dbs", &format!("{{\"id\":\"d{n}\"}}")).send().await.expect_status(201);
    }
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let request = server.get("/dbs").header("x-ms-max-item-count", "2");
        let request = if token.is_empty() { request } else { request.header("x-ms-continuation", &token) };
        let page = request.send().await.expect_status(200);
        seen.extend(page.ids("Databases"));
        match page.header("x-ms-continuation") {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["d0", "d1", "d2", "d3", "d4"]);
    for own_choice in ["-1", "0"] {
        let all = server.get("/dbs").header("x-ms-max-item-count", own_choice).send().await;
        assert_eq!(all.ids("Databases").len(), 5);
    }
    for (name, value) in
        [("x-ms-continuation", "!!"), ("x-ms-max-item-count", "-2"), ("x-ms-max-item-count", "x")]
    {
        server.get("/dbs").header(name, value).send().await.expect_error(400, 0, "BadRequest");
    }
}

#[tokio::test]
async fn containers_echo_their_definition_and_the_defaults() {
    let server = Server::with_container("").await;
    let read = server.get("/dbs/db/colls/c").send().await.expect_status(200);
    let policy = read.member("indexingPolicy");
    let first =
        |name: &str| policy.get(name).and_then(Value::as_array).map(|paths| paths[0].get("path").cloned());
    assert_eq!(first("includedPaths"), Some(Some(Value::String("/*".to_owned()))));
    assert_eq!(first("excludedPaths"), Some(Some(Value::String("/\"_etag\"/?".to_owned()))));
    assert_eq!(read.header("x-ms-alt-content-path"), Some("dbs/db"));
    assert_eq!(read.header("x-ms-session-token"), None, "containers take no part in sessions");
    assert!(read.string("_self").ends_with(&format!("colls/{}/", read.string("_rid"))));
    assert_eq!(read.string("_docs"), "docs/");
    let list = server.get("/dbs/db/colls").send().await.expect_status(200);
    assert_eq!(list.ids("DocumentCollections"), ["c"]);
    server.get("/dbs/none/colls").send().await.expect_error(404, 1003, "NotFound");
    server.get("/dbs/none/colls/c").send().await.expect_error(404, 1003, "NotFound");
    server.get("/dbs/db/colls/none").send().await.expect_error(404, 0, "NotFound");
    server.get("/dbs/db/colls/none/docs").send().await.expect_error(404, 1003, "NotFound");
    server.create_container("c", "").await.expect_error(409, 0, "Conflict");
    server.delete("/dbs/db/colls/c").send().await.expect_status(204);
    server.get("/dbs/db/colls/c").send().await.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn replacing_resets_what_is_left_out_and_keeps_the_key() {
    let server = Server::with_container("\"defaultTtl\":100").await;
    let path = "/dbs/db/colls/c";
    assert_eq!(server.get(path).send().await.member("defaultTtl"), Value::Int(100));
    let key = r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;
    let put = |body: String| server.put(path, &body).send();
    let replaced = put(format!("{{\"id\":\"c\",{key}}}")).await.expect_status(200);
    assert_eq!(replaced.member("defaultTtl"), Value::Null);
    let other = r#"{"id":"c","partitionKey":{"paths":["/other"],"kind":"Hash","version":2}}"#;
    assert!([400, 403].contains(&put(other.to_owned()).await.status));
    put(format!("{{\"id\":\"d\",{key}}}")).await.expect_error(400, 0, "BadRequest");
}

#[tokio::test]
async fn ranges_have_an_etag_and_answer_304_to_it() {
    let server = Server::with_container("").await;
    let path = "/dbs/db/colls/c/pkranges";
    let first = server.get(path).send().await.expect_status(200);
    let etag = first.header("etag").unwrap().to_owned();
    let ranges = first.member("PartitionKeyRanges");
    let range = &ranges.as_array().unwrap()[0];
    let text = |name: &str| range.get(name).and_then(Value::as_str).unwrap().to_owned();
    assert_eq!(
        (text("id"), text("minInclusive"), text("maxExclusive")),
        ("0".into(), String::new(), "FF".into())
    );
    let again = |etag: &str| {
        let request = server.get(path).header("a-im", "Incremental Feed").header("x-ms-max-item-count", "-1");
        request.header("if-none-match", etag).send()
    };
    let unchanged = again(&etag).await.expect_status(304);
    assert_eq!(unchanged.header("x-ms-item-count"), Some("0"));
    assert_eq!(unchanged.header("etag"), Some(etag.as_str()));
    assert!(unchanged.body.is_empty());
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    again(&etag).await.expect_status(304);
    again("\"other\"").await.expect_status(200);
}

#[tokio::test]
async fn quota_and_statistics_are_exact_and_leave_out_expired_items_t18() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    for n in 0..3 {
        server.create("a", &format!("{{\"id\":\"{n}\",\"pk\":\"a\"}}")).await.expect_status(201);
    }
    server.advance(5);
    server.create("a", r#"{"id":"late","pk":"a"}"#).await.expect_status(201);
    let usage = || async {
        let request = server.get("/dbs/db/colls/c").header("x-ms-documentdb-populatequotainfo", "True");
        let reply = request.header("x-ms-documentdb-populatepartitionstatistics", "True").send().await;
        let statistics = reply.member("statistics").as_array().unwrap()[0].clone();
        (reply.header("x-ms-resource-usage").unwrap().to_owned(), statistics)
    };
    let (text, statistics) = usage().await;
    assert!(text.contains("documentsCount=4;"), "{text}");
    assert_eq!(statistics.get("documentCount"), Some(&Value::Int(4)));
    server.advance(5);
    assert!(usage().await.0.contains("documentsCount=1;"));
    server.advance(5);
    assert!(usage().await.0.contains("documentsCount=0;"));
}

#[tokio::test]
async fn quota_usage_and_index_progress_are_in_answers_to_requests_for_them() {
    const NAMES: [&str; 3] = [
        "x-ms-resource-quota",
        "x-ms-resource-usage",
        "x-ms-documentdb-collection-index-transformation-progress",
    ];
    let server = Server::with_container("").await;
    let (container, docs) = ("/dbs/db/colls/c", "/dbs/db/colls/c/docs");
    let (item, script) = (r#"{"id":"1","pk":"a"}"#, r#"{"id":"s","body":"f"}"#);
    let key = r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;
    let definition = |id: &str| format!(r#"{{"id":"{id}",{key}}}"#);
    let requests = || {
        [
            (server.post("/dbs/db/colls", &definition("d")), true),
            (server.get(container), true),
            (server.put(container, &definition("c")), true),
            (server.post(docs, item).key("a"), false),
            (server.get(&format!("{docs}/1")).key("a"), false),
            (server.put(&format!("{docs}/1"), item).key("a"), false),
            (server.delete(&format!("{docs}/1")).key("a"), false),
            (server.post(&format!("{container}/sprocs"), script), false),
            (server.get(&format!("{container}/sprocs/s")), false),
            (server.put(&format!("{container}/sprocs/s"), script), false),
            (server.delete(&format!("{container}/sprocs/s")), false),
            (server.delete("/dbs/db/colls/d"), false),
        ]
    };
    for (request, _) in requests() {
        let reply = request.send().await;
        assert!(reply.status < 300 && NAMES.iter().all(|name| reply.header(name).is_none()), "{reply:?}");
    }
    for (number, (request, is_container)) in requests().into_iter().enumerate().take(11) {
        let reply = request.header("x-ms-documentdb-populatequotainfo", "True").send().await;
        assert!(reply.status < 300, "{reply:?}");
        assert_eq!(NAMES.map(|name| reply.header(name).is_some()), [true, true, is_container], "{number}");
    }
}

#[tokio::test]
async fn a_recreated_container_is_not_the_one_the_client_means() {
    let server = Server::with_container("").await;
    let rid = server.get("/dbs/db/colls/c").send().await.string("_rid");
    let read = |rid: &str| {
        server.get("/dbs/db/colls/c/docs").header("x-ms-cosmos-intended-collection-rid", rid).send()
    };
    read(&rid).await.expect_status(200);
    server.delete("/dbs/db/colls/c").send().await.expect_status(204);
    server.create_container("c", "").await.expect_status(201);
    read(&rid).await.expect_error(400, 1024, "BadRequest");
}

#[tokio::test]
async fn a_definition_comes_back_with_what_it_says_and_no_version_that_it_does_not() {
    let server = Server::start().await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    for (id, version, shown) in
        [("none", "", None), ("one", r#","version":1"#, Some(1)), ("two", r#","version":2"#, Some(2))]
    {
        let key = format!(r#""partitionKey":{{"paths":["/pk"],"kind":"Hash"{version}}}"#);
        let body = format!(r#"{{"id":"{id}",{key},"indexingPolicy":{{"indexingMode":"consistent"}}}}"#);
        let created = server.post("/dbs/db/colls", &body).send().await.expect_status(201);
        let path = format!("/dbs/db/colls/{id}");
        let replaced = server.put(&path, &body).send().await.expect_status(200);
        let read = server.get(&path).send().await.expect_status(200);
        for answer in [&created, &replaced, &read] {
            let key = answer.member("partitionKey");
            assert_eq!(key.get("version").and_then(Value::as_i64), shown, "{id}");
            assert_eq!(answer.member("indexingPolicy").get("automatic"), Some(&Value::Bool(true)));
        }
    }
    // The same key, written differently, is no change, and does not change the definition shown.
    let spelled = r#"{"id":"none","partitionKey":{"paths":["/pk"],"kind":"Hash","version":1}}"#;
    let replaced = server.put("/dbs/db/colls/none", spelled).send().await.expect_status(200);
    assert_eq!(replaced.member("partitionKey").get("version"), None);
    let other = r#"{"id":"none","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    assert_eq!(server.put("/dbs/db/colls/none", other).send().await.status, 400);
}

#[tokio::test]
async fn what_a_new_container_cannot_have_is_refused_in_the_words_of_the_service() {
    let server = Server::with_container("").await;
    let create = |definition: String| server.post("/dbs/db/colls", &definition).send();
    for (path, position) in [("/id ds", 4), ("pk", 0), ("//pk", 1), ("/a/", 3), ("/a/*", 3), ("/a.b", 2)] {
        let refused = create(format!(r#"{{"id":"x","partitionKey":{{"paths":["{path}"]}}}}"#)).await;
        let message = refused.expect_error(400, 0, "BadRequest").message();
        let words = format!(
            "The partition key component definition path '{path}' could not be accepted, failed near position \
             '{position}'. Partition key paths must contain only valid characters and not contain a trailing slash or \
             wildcard character."
        );
        assert!(message.contains(&words), "{path}: {message}");
    }
    create(r#"{"id":"quoted","partitionKey":{"paths":["/\"id ds\""],"version":2}}"#.to_owned())
        .await
        .expect_status(201);
    let language =
        |tag: &str| format!(r#""fullTextPolicy":{{"defaultLanguage":"{tag}","fullTextPaths":[]}}"#);
    let made = server.create_container("lcid", &language("1033")).await.expect_status(201);
    assert_eq!(made.member("fullTextPolicy").get("defaultLanguage").and_then(Value::as_str), Some("1033"));
    let refused = server.create_container("x", &language("1049")).await.expect_error(400, 0, "BadRequest");
    assert!(refused.message().contains("unsupported language 1049. Supported languages are:"));
    for (surface, index) in [
        ("Geometry", r#""types":["Point"]"#),
        ("Geography", r#""types":["Point"],"boundingBox":{"xmin":0,"ymin":0,"xmax":1,"ymax":1}"#),
        ("Geometry", r#""types":["Point"],"boundingBox":{"xmin":1,"ymin":0,"xmax":1,"ymax":1}"#),
        ("Geography", r#""types":[]"#),
        ("Geography", r#""boundingBox":null"#),
    ] {
        let members = format!(
            r#""geospatialConfig":{{"type":"{surface}"}},"indexingPolicy":{{"spatialIndexes":[{{"path":"/loc/*",{index}}}]}}"#
        );
        server.create_container("x", &members).await.expect_error(400, 0, "BadRequest");
    }
}

#[tokio::test]
async fn properties_that_are_not_known_come_back_and_misspelled_ones_are_named() {
    let server = Server::with_container(r#""schemaPolicy":{"version":1},"next":[true]"#).await;
    let path = "/dbs/db/colls/c";
    let read = server.get(path).send().await.expect_status(200);
    assert_eq!(read.member("schemaPolicy").to_json(), r#"{"version":1}"#);
    assert_eq!(read.member("next").to_json(), "[true]");
    // A client writes back what it has read.
    let changed = read.text().replace("[true]", "[false]");
    let replaced = server.put(path, &changed).send().await.expect_status(200);
    assert_eq!(
        (replaced.member("next").to_json(), replaced.member("schemaPolicy")),
        ("[false]".to_owned(), read.member("schemaPolicy"))
    );
    let refused = server.create_container("x", r#""defaultTTL":5"#).await.expect_error(400, 0, "BadRequest");
    assert!(refused.message().contains("the property 'defaultTtl' is spelled so"), "{}", refused.message());
    let policy = r#""clientEncryptionPolicy":{"policyFormatVersion":1,"includedPaths":[{"path":"/p","clientEncryptionKeyId":"k"}]}"#;
    let refused = server.create_container("x", policy).await.expect_error(400, 0, "BadRequest");
    assert!(refused.message().contains("client encryption key"), "{}", refused.message());
}

#[tokio::test]
async fn a_property_to_count_from_needs_a_default_ttl() {
    let server = Server::with_container("").await;
    let refused = server.create_container("x", r#""ttlPropertyPath":"/at""#).await;
    let message = refused.expect_error(400, 0, "BadRequest").message();
    assert!(message.contains("'ttlPropertyPath' requires 'defaultTtl'"), "{message}");
    server.create_container("x", r#""ttlPropertyPath":"/at","defaultTtl":-1"#).await.expect_status(201);
    // There, too, expiry can be turned off (T12).
    let off = r#"{"id":"x","partitionKey":{"paths":["/pk"],"version":2},"ttlPropertyPath":"/at"}"#;
    let off = server.put("/dbs/db/colls/x", off).send().await.expect_status(200);
    assert_eq!((off.member("defaultTtl"), off.string("ttlPropertyPath")), (Value::Null, "/at".to_owned()));
}

#[tokio::test]
async fn a_client_of_before_partition_keys_creates_and_uses_a_container_without_one() {
    let server = Server::start().await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let (path, docs) = ("/dbs/db/colls/c", "/dbs/db/colls/c/docs");
    server.post("/dbs/db/colls", r#"{"id":"c"}"#).send().await.expect_error(400, 0, "BadRequest");
    let old = |request: crate::client::Request| request.header("x-ms-version", "2018-09-17");
    let new = |request: crate::client::Request| request.header("x-ms-version", "2018-12-31");
    new(server.post("/dbs/db/colls", r#"{"id":"c"}"#)).send().await.expect_error(400, 0, "BadRequest");
    let created = old(server.post("/dbs/db/colls", r#"{"id":"c"}"#)).send().await.expect_status(201);
    assert_eq!(
        created.member("partitionKey").to_json(),
        r#"{"paths":["/_partitionKey"],"kind":"Hash","systemKey":true}"#
    );
    // Without a key, as clients of that version send it, and with the key "none" of later ones.
    let item = r#"{"id":"1"}"#;
    old(server.post(docs, item)).send().await.expect_status(201);
    let none = |request: crate::client::Request| request.header("x-ms-documentdb-partitionkey", "[]");
    none(server.get(&format!("{docs}/1"))).send().await.expect_status(200);
    old(server.get(&format!("{docs}/1"))).send().await.expect_status(200);
    let operations = r#"[{"op":"set","path":"/n","value":1}]"#;
    old(server.patch(&format!("{docs}/1"), operations)).send().await.expect_status(200);
    // A later client may add items with a key: they are different items.
    let keyed = r#"{"id":"1","_partitionKey":"a"}"#;
    server.post(docs, keyed).key("a").send().await.expect_status(201);
    let listed = none(server.get(docs)).send().await.expect_status(200);
    assert_eq!(listed.member("_count"), Value::Int(1));
    let query = server.post(docs, r#"{"query":"SELECT VALUE c.n FROM c WHERE c.id = '1'"}"#);
    let found = old(query.header("content-type", "application/query+json")).send().await.expect_status(200);
    assert_eq!(found.member("Documents").to_json(), "[1]");
    let replaced = old(server.put(path, r#"{"id":"c","defaultTtl":5}"#)).send().await.expect_status(200);
    assert_eq!(replaced.member("defaultTtl"), Value::Int(5));
    old(server.delete(&format!("{docs}/1"))).send().await.expect_status(204);
    server.get(&format!("{docs}/1")).key("a").send().await.expect_status(200);
}
