//! What MongoDB refuses is refused, with its codes.

use bson::{Binary, Document, Value};
use tokio::net::TcpStream;

use crate::client::{Client, Server, code, json};

const FILL: &str = r#"{"insert": "c", "documents": [{"_id": 1, "a": 1, "p": [1, 1]}, {"_id": 2, "a": 2}]}"#;

async fn filled(server: &Server) -> Client<TcpStream> {
    let mut client = server.connect().await;
    client.done("db", json(FILL)).await;
    client
}

/// Runs commands that must fail, each with its code.
async fn refuse(client: &mut Client<TcpStream>, cases: &[(&str, i32)]) {
    for (command, expected) in cases {
        let reply = client.on("db", json(command)).await;
        let failed = match reply.get("writeErrors").and_then(Value::as_array) {
            Some(errors) => errors[0].as_document().unwrap().get("code").cloned(),
            None => reply.get("code").cloned(),
        };
        assert_eq!(failed, Some(Value::Int32(*expected)), "{command}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_not_renamed_and_has_one_collation() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    client.done("db", json(r#"{"create": "plain", "viewOn": "c", "pipeline": []}"#)).await;
    let swedish =
        r#"{"create": "sv", "viewOn": "c", "pipeline": [], "collation": {"locale": "en", "strength": 2}}"#;
    client.done("db", json(swedish)).await;
    let rename = json(r#"{"renameCollection": "db.plain", "to": "db.other"}"#);
    assert_eq!(client.refused(rename).await.0, 166);
    let cases = [
        (r#"{"find": "plain", "collation": {"locale": "en", "strength": 2}}"#, 167),
        (r#"{"aggregate": "plain", "pipeline": [], "cursor": {}, "collation": {"locale": "fr"}}"#, 167),
        (r#"{"distinct": "plain", "key": "a", "collation": {"locale": "fr"}}"#, 167),
        (r#"{"count": "plain", "collation": {"locale": "fr"}}"#, 167),
        (r#"{"find": "sv", "collation": {"locale": "simple"}}"#, 167),
    ];
    refuse(&mut client, &cases).await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 3, "t": "WORD"}]}"#)).await;
    for (view, collation, found) in [
        ("plain", r#", "collation": {"locale": "simple"}"#, 0),
        ("plain", "", 0),
        ("sv", r#", "collation": {"locale": "en", "strength": 2}"#, 1),
        // Its own, not that of the collection behind it.
        ("sv", "", 1),
    ] {
        let count = format!(r#"{{"count": "{view}", "query": {{"t": "word"}}{collation}}}"#);
        let reply = client.done("db", json(&count)).await;
        assert_eq!(reply.get("n"), Some(&Value::Int32(found)), "{count}");
    }
}

fn in_transaction(command: &str, number: i64, starts: bool) -> Document {
    let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![1; 16] });
    let command = json(command).with("lsid", lsid).with("txnNumber", number).with("autocommit", false);
    if starts { command.with("startTransaction", true) } else { command }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_part_of_a_transaction_is_refused_there() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let indexes = |name: &str| {
        format!(r#"{{"createIndexes": "{name}", "indexes": [{{"key": {{"a": 1}}, "name": "a_1"}}]}}"#)
    };
    let mut number = 0;
    for (first, then, expected) in [
        (indexes("c").as_str(), None, 263),
        (r#"{"killCursors": "c", "cursors": [{"$numberLong": "5"}]}"#, None, 263),
        (r#"{"aggregate": "c", "pipeline": [{"$indexStats": {}}], "cursor": {}}"#, None, 263),
        (r#"{"aggregate": "c", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}}"#, None, 263),
        (r#"{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}"#, None, 263),
        (r#"{"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], "cursor": {}}"#, None, 263),
        (r#"{"find": "c"}"#, Some(r#"{"find": "c", "readConcern": {"level": "snapshot"}}"#), 72),
        (r#"{"insert": "made", "documents": [{"_id": 1}]}"#, Some(indexes("made").as_str()), 263),
    ] {
        number += 1;
        let mut reply = client.on("db", in_transaction(first, number, true)).await;
        if let Some(then) = then {
            assert_eq!(reply.get("ok"), Some(&Value::Double(1.0)), "{reply:?}");
            reply = client.on("db", in_transaction(then, number, false)).await;
        }
        assert_eq!(code(&reply), expected, "{first} {then:?}");
    }
    let current = r#"{"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}}"#;
    assert_eq!(code(&client.admin(in_transaction(current, 20, true)).await), 263);
    // Allowed: cursors of the transaction itself, indexes of the collections that it makes, and indexes that exist.
    client.done("db", in_transaction(r#"{"find": "c", "batchSize": 1}"#, 30, true)).await;
    let kill = r#"{"killCursors": "c", "cursors": [{"$numberLong": "5"}]}"#;
    client.done("db", in_transaction(kill, 30, false)).await;
    client.done("db", in_transaction(&indexes("new"), 30, false)).await;
    client.done("db", json(&indexes("c"))).await;
    client.done("db", in_transaction(&indexes("c"), 31, true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nearest_on_the_globe_need_an_index() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let near = r#"{"find": "c", "filter": {"p": {"$near": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}}}"#;
    let sphere = r#"{"find": "c", "filter": {"p": {"$nearSphere": [0, 0]}}}"#;
    let stage = r#"{"aggregate": "c", "pipeline": [{"$geoNear": {"near": {"type": "Point", "coordinates": [0, 0]},
        "key": "p", "distanceField": "d"}}], "cursor": {}}"#;
    let delete = r#"{"delete": "c", "deletes": [{"q": {"p": {"$nearSphere": [0, 0]}}, "limit": 1}]}"#;
    refuse(&mut client, &[(near, 291), (sphere, 291), (stage, 291), (delete, 291)]).await;
    // A query on the plane needs no index: there is none for it.
    client.done("db", json(r#"{"find": "c", "filter": {"p": {"$near": [0, 0]}}}"#)).await;
    let index = r#"{"createIndexes": "c", "indexes": [{"key": {"p": "2dsphere"}, "name": "p"}]}"#;
    client.done("db", json(index)).await;
    for command in [near, sphere, stage] {
        client.done("db", json(command)).await;
    }
    // The point may come from the values of the request, whole or in part.
    for (place, values) in [
        (r#""$$v""#, r#"{"v": {"type": "Point", "coordinates": [1, 1]}}"#),
        (r#"{"type": "Point", "coordinates": "$$c"}"#, r#"{"c": [1, 1]}"#),
        (r#"["$$x", 1]"#, r#"{"x": 1}"#),
    ] {
        let command = format!(
            r#"{{"aggregate": "c", "pipeline": [{{"$geoNear": {{"near": {place}, "key": "p", "spherical": true, "distanceField": "d"}}}}],
            "cursor": {{}}, "let": {values}}}"#
        );
        let reply = client.done("db", json(&command)).await;
        let found = crate::client::inner(&reply, "cursor.firstBatch").as_array().unwrap();
        let distance = found[0].as_document().unwrap().get("d");
        assert!(
            matches!(distance, Some(Value::Double(distance)) if distance.abs() < 1e-6),
            "{place}: {found:?}"
        );
    }
    // Or from the row that a $lookup is about; then it is known at run time.
    let lookup = |value: &str| {
        format!(
            r#"{{"aggregate": 1, "pipeline": [{{"$documents": [{{"at": {value}}}]}}, {{"$lookup": {{"from": "c", "let": {{"at": "$at"}},
            "pipeline": [{{"$geoNear": {{"near": "$$at", "key": "p", "spherical": true, "distanceField": "d"}}}}], "as": "n"}}}}],
            "cursor": {{}}}}"#
        )
    };
    let reply = client.done("db", json(&lookup(r#"{"type": "Point", "coordinates": [1, 1]}"#))).await;
    let found = crate::client::inner(&reply, "cursor.firstBatch").as_array().unwrap();
    let nearest = crate::client::inner(found[0].as_document().unwrap(), "n").as_array().unwrap();
    let distance = nearest[0].as_document().unwrap().get("d");
    assert!(matches!(distance, Some(Value::Double(distance)) if distance.abs() < 1e-6), "{found:?}");
    assert_eq!(client.fails("db", json(&lookup("7"))).await.0, 5_860_401);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_told_with_the_code_of_mongodb() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let polygon = |points: &str| {
        format!(
            r#"{{"find": "c", "filter": {{"p": {{"$geoWithin": {{"$geometry": {{"type": "Polygon", "coordinates": [{points}]}}}}}}}}}}"#
        )
    };
    let bucket = r#"{"aggregate": "c", "pipeline": [{"$bucketAuto": {"groupBy": "$a", "buckets": 2,
        "output": {"m": {"$minN": {"input": "$a", "n": "$a"}}}}}], "cursor": {}}"#;
    let date = |operator: &str| {
        format!(
            r#"{{"aggregate": "c", "pipeline": [{{"$project": {{"x": {{"{operator}": {{"date": "$$NOW", "startDate": "$$NOW", "endDate": "$$NOW", "unit": "age"}}}}}}}}], "cursor": {{}}}}"#
        )
    };
    let trunc = date("$dateTrunc").replace(r#""startDate": "$$NOW", "endDate": "$$NOW", "#, "");
    let diff = date("$dateDiff").replace(r#""date": "$$NOW", "#, "");
    let locale = |name: &str| format!(r#"{{"find": "c", "collation": {{"locale": "{name}"}}}}"#);
    let cases = [
        (locale("xx"), 2),
        (locale("bo"), 2),
        (locale("en_"), 2),
        (bucket.replace("$minN", "$maxN"), 4_544_714),
        (polygon("[[0, 0], [5, 0], [5, 5], [0, 0], [-5, -5], [0, 0]]"), 2),
        (polygon("[[-180, 90], [180, 90], [180, -90], [-180, -90], [-180, 90]]"), 2),
        (bucket.to_owned(), 4_544_714),
        (trunc, 9),
        (diff, 9),
        (r#"{"find": "c", "projection": {"x": {"$unknown": 1}}}"#.to_owned(), 31325),
        (
            r#"{"aggregate": "c", "pipeline": [{"$project": {"x": {"$unknown": 1}}}], "cursor": {}}"#
                .to_owned(),
            31325,
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$addFields": {"x": {"$unknown": 1}}}], "cursor": {}}"#
                .to_owned(),
            168,
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$changeStream": {}}, {"$unknown": 1}], "cursor": {}}"#
                .to_owned(),
            40324,
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$changeStream": {}}, {"$sort": {"a": 1}}], "cursor": {}}"#
                .to_owned(),
            20,
        ),
    ];
    let cases: Vec<(&str, i32)> = cases.iter().map(|(command, code)| (command.as_str(), *code)).collect();
    refuse(&mut client, &cases).await;
    let indexes = (0..64).map(|number| format!(r#"{{"key": {{"f{number}": 1}}, "name": "f{number}"}}"#));
    let index = |locale: &str| {
        json(&format!(
            r#"{{"createIndexes": "c", "indexes": [{{"key": {{"a": 1}}, "name": "a", "collation": {{"locale": "{locale}"}}}}]}}"#
        ))
    };
    assert_eq!(client.fails("db", index("xx")).await.0, 2);
    let create = json(r#"{"create": "d", "collation": {"locale": "xx"}}"#);
    assert_eq!(client.fails("db", create).await.0, 2);
    let many =
        format!(r#"{{"createIndexes": "c", "indexes": [{}]}}"#, indexes.collect::<Vec<_>>().join(", "));
    assert_eq!(client.fails("db", json(&many)).await.0, 67);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_client_gets_no_unstable_fields() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let strict = |command: &str| json(command).with("apiVersion", "1").with("apiStrict", true);
    for command in [
        r#"{"find": "c", "noCursorTimeout": false}"#,
        r#"{"find": "c", "min": {"a": 1}}"#,
        r#"{"aggregate": "c", "pipeline": [], "explain": true}"#,
        r#"{"findAndModify": "c", "query": {}, "remove": true, "runtimeConstants": {}}"#,
        r#"{"findAndModify": "c", "query": {}, "remove": true, "sampleId": 1}"#,
        r#"{"createIndexes": "c", "indexes": [{"key": {"a": "text"}, "name": "t"}]}"#,
    ] {
        assert_eq!(client.fails("db", strict(command)).await.0, 323, "{command}");
    }
    let aggregate = |stages: &str| format!(r#"{{"aggregate": "c", "pipeline": [{stages}], "cursor": {{}}}}"#);
    for other in [
        r#"{"$currentOp": {}}"#,
        r#"{"$indexStats": {}}"#,
        r#"{"$listCatalog": {}}"#,
        r#"{"$listLocalSessions": {}}"#,
        r#"{"$listSampledQueries": {}}"#,
        r#"{"$listSearchIndexes": {}}"#,
        r#"{"$listSessions": {}}"#,
        r#"{"$planCacheStats": {}}"#,
        r#"{"$querySettings": {}}"#,
        r#"{"$queryStats": {}}"#,
        r#"{"$search": {}}"#,
        r#"{"$searchMeta": {}}"#,
        r#"{"$shardedDataDistribution": {}}"#,
        r#"{"$vectorSearch": {}}"#,
        r#"{"$collStats": {"latencyStats": {}}}"#,
        r#"{"$collStats": {"count": {}, "storageStats": {}}}"#,
    ] {
        let union =
            format!(r#"{{"$unionWith": {{"coll": "c", "pipeline": [{{"$match": {{}}}}, {other}]}}}}"#);
        for stages in [
            other.to_owned(),
            union.clone(),
            format!(r#"{{"$lookup": {{"from": "c", "pipeline": [{other}], "as": "d"}}}}"#),
            format!(r#"{{"$facet": {{"one": [], "two": [{other}]}}}}"#),
            format!(
                r#"{{"$match": {{}}}}, {{"$lookup": {{"from": "c", "pipeline": [{union}], "as": "d"}}}}"#
            ),
        ] {
            let (code, words) = client.fails("db", strict(&aggregate(&stages))).await;
            assert_eq!(code, 323, "{stages}: {words}");
        }
    }
    let view = r#"{"create": "v", "viewOn": "c", "pipeline": [{"$facet": {"f": [{"$indexStats": {}}]}}]}"#;
    assert_eq!(client.fails("db", strict(view)).await.0, 323);
    let counted = r#"{"$unionWith": {"coll": "c", "pipeline": [{"$collStats": {"count": {}}}]}}, {"$facet": {"f": [{"$limit": 1}]}}"#;
    client.done("db", strict(&aggregate(counted))).await;
    let modify = r#"{"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 5}}, "fields": {"a": 1}, "hint": "_id_"}"#;
    client.done("db", strict(modify)).await;
    client.done("db", strict(r#"{"find": "c", "limit": 1, "hint": "_id_"}"#)).await;
}
