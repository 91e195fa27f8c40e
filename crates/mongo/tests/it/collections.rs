//! What collections require of clients: validators, collations, and names that belong to the system.

use bson::{Document, Value};

use crate::client::{Server, code, inner, json, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_document_is_named() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"create": "c", "validator": {"a": {"$gt": 0}}}"#)).await;
    let reply =
        client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2}]}"#)).await;
    let failure = |reply: &Document| {
        reply
            .get("writeErrors")
            .and_then(Value::as_array)
            .and_then(|all| all[0].as_document().cloned())
            .unwrap()
    };
    assert_eq!(failure(&reply).get("code"), Some(&Value::Int32(121)));
    assert_eq!(inner(&failure(&reply), "errInfo.failingDocumentId"), &Value::Int32(2));
    let missing =
        r#"{"operatorName": "$gt", "specifiedAs": {"a": {"$gt": 0}}, "reason": "field was missing"}"#;
    assert_eq!(inner(&failure(&reply), "errInfo.details"), &Value::Document(json(missing)));
    let update = r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 0}}}]}"#;
    let reply = client.done("db", json(update)).await;
    assert_eq!(inner(&failure(&reply), "errInfo.failingDocumentId"), &Value::Int32(1));
    assert_eq!(inner(&failure(&reply), "errInfo.details.consideredValue"), &Value::Int32(0));
    let change =
        r#"{"findAndModify": "c", "query": {"_id": 7}, "update": {"$set": {"a": 0}}, "upsert": true}"#;
    let reply = client.on("db", json(change)).await;
    assert_eq!(inner(&reply, "errInfo.failingDocumentId"), &Value::Int32(7));
}

/// A rule that asks for the time is explained with the time of the check, for updates too.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_update_is_explained_at_the_time_of_the_check() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let rule = r#"{"$or": [{"$expr": {"$gt": ["$at", "$$NOW"]}}]}"#;
    client.done("db", json(&format!(r#"{{"create": "c", "validator": {rule}}}"#))).await;
    let insert = r#"{"insert": "c", "documents": [{"_id": 1, "at": {"$date": "2999-01-01T00:00:00Z"}}]}"#;
    client.done("db", json(insert)).await;
    let update = r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"at": {"$date": "1980-01-01T00:00:00Z"}}}}]}"#;
    let reply = client.done("db", json(update)).await;
    let failures = inner(&reply, "writeErrors").as_array().unwrap();
    let details = inner(failures[0].as_document().unwrap(), "errInfo.details");
    let clauses = inner(details.as_document().unwrap(), "clausesNotSatisfied").as_array().unwrap();
    assert_eq!(clauses.len(), 1, "{details:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_collation_of_a_collection_is_that_of_its_ids_and_queries() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"create": "c", "collation": {"locale": "en", "strength": 2}}"#)).await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": "a", "x": "One"}]}"#)).await;
    let again = client.done("db", json(r#"{"insert": "c", "documents": [{"_id": "A"}]}"#)).await;
    assert!(again.contains("writeErrors"), "{again:?}");
    for query in [r#"{"_id": "A"}"#, r#"{"x": "ONE"}"#] {
        let count = client.done("db", Document::new().with("count", "c").with("query", json(query))).await;
        assert_eq!(count.get("n"), Some(&Value::Int32(1)), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_the_system_is_neither_read_nor_written() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.ok(json(r#"{"createUser": "u", "pwd": "secret", "roles": []}"#)).await;
    for (command, code) in [
        (r#"{"find": "system.users"}"#, 13),
        (r#"{"aggregate": "system.users", "pipeline": [], "cursor": {}}"#, 13),
        (
            r#"{"aggregate": "x", "pipeline": [{"$lookup": {"from": "system.users", "pipeline": [], "as": "u"}}], "cursor": {}}"#,
            13,
        ),
        (r#"{"distinct": "system.users", "key": "credentials"}"#, 13),
        (r#"{"insert": "system.users", "documents": [{"_id": 1}]}"#, 73),
        (r#"{"findAndModify": "system.users", "query": {}, "remove": true}"#, 73),
        (r#"{"renameCollection": "admin.system.users", "to": "admin.mine"}"#, 73),
        (r#"{"drop": "system.users"}"#, 73),
    ] {
        assert_eq!(client.refused(json(command)).await.0, code, "{command}");
    }
    for command in [
        r#"{"update": "system.users", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}"#,
        r#"{"delete": "system.users", "deletes": [{"q": {}, "limit": 0}]}"#,
    ] {
        let reply = client.ok(json(command)).await;
        assert!(reply.contains("writeErrors"), "{reply:?}");
    }
    client.ok(json(r#"{"create": "v", "viewOn": "system.users", "pipeline": []}"#)).await;
    assert_eq!(client.refused(json(r#"{"find": "v"}"#)).await.0, 13);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_needs_a_unique_index() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "k": 5, "v": 1}]}"#)).await;
    client.done("db", json(r#"{"insert": "to", "documents": [{"_id": 9, "k": 5}]}"#)).await;
    let merge = r#"{"aggregate": "c", "pipeline": [{"$project": {"_id": 0}}, {"$merge": {"into": "to", "on": "k"}}], "cursor": {}}"#;
    assert_eq!(client.fails("db", json(merge)).await.0, 51183);
    client
        .done(
            "db",
            json(r#"{"createIndexes": "to", "indexes": [{"key": {"k": 1}, "name": "k_1", "unique": true}]}"#),
        )
        .await;
    client.done("db", json(merge)).await;
    let found = client.done("db", json(r#"{"find": "to"}"#)).await;
    let found = inner(&found, "cursor.firstBatch").as_array().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].as_document().unwrap().get("v"), Some(&Value::Int32(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_offered_is_refused_by_name() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for command in [
        r#"{"create": "c", "capped": true, "size": 1000}"#,
        r#"{"create": "c", "timeseries": {"timeField": "t"}, "expireAfterSeconds": 5}"#,
        r#"{"find": "c", "tailable": true}"#,
        r#"{"validate": "c", "repair": true}"#,
    ] {
        assert_eq!(client.fails("db", json(command)).await.0, 115, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_by_a_schema_names_the_rules_and_the_properties() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let schema = r#"{"required": ["name", "age"], "properties": {"name": {"bsonType": "string", "description": "who"}, "age": {"bsonType": "int", "minimum": 0}, "at": {"properties": {"city": {"enum": ["X"]}}}}, "additionalProperties": true}"#;
    client.done("db", json(&format!(r#"{{"create": "c", "validator": {{"$jsonSchema": {schema}}}}}"#))).await;
    let insert = r#"{"insert": "c", "documents": [{"_id": 1, "name": 5, "at": {"city": "Y"}}]}"#;
    let reply = client.done("db", json(insert)).await;
    let error = inner(&reply, "writeErrors").as_array().unwrap()[0].as_document().unwrap().clone();
    let expected = r#"{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [
        {"operatorName": "required", "specifiedAs": {"required": ["name", "age"]}, "missingProperties": ["age"]},
        {"operatorName": "properties", "propertiesNotSatisfied": [
            {"propertyName": "name", "description": "who", "details": [
                {"operatorName": "bsonType", "specifiedAs": {"bsonType": "string"}, "reason": "type did not match", "consideredValue": 5, "consideredType": "int"}]},
            {"propertyName": "at", "details": [
                {"operatorName": "properties", "propertiesNotSatisfied": [
                    {"propertyName": "city", "details": [
                        {"operatorName": "enum", "specifiedAs": {"enum": ["X"]}, "reason": "value was not found in enum", "consideredValue": "Y", "consideredType": "string"}]}]}]}]}]}"#;
    assert_eq!(inner(&error, "errInfo.details"), &json(expected).into());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_here_is_refused_by_name() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"create": "c"}"#)).await;
    for (database, command) in [
        ("db", r#"{"mapReduce": "c"}"#),
        ("db", r#"{"createRole": "r", "privileges": [], "roles": []}"#),
        ("admin", r#"{"setDefaultRWConcern": 1}"#),
        ("admin", r#"{"setFeatureCompatibilityVersion": "8.0"}"#),
        ("db", r#"{"dbHash": 1}"#),
        ("db", r#"{"dataSize": "db.c"}"#),
        ("db", r#"{"compact": "c"}"#),
        ("db", r#"{"reIndex": "c"}"#),
        ("db", r#"{"connPoolStats": 1}"#),
        ("db", r#"{"create": "d", "capped": true, "size": 1000}"#),
        ("db", r#"{"create": "d", "timeseries": {"timeField": "t"}}"#),
        ("db", r#"{"create": "d", "clusteredIndex": {"key": {"_id": 1}, "unique": true}}"#),
        (
            "db",
            r#"{"aggregate": "c", "pipeline": [{"$project": {"k": {"$meta": "recordId"}}}], "cursor": {}}"#,
        ),
        ("db", r#"{"find": "c", "projection": {"k": {"$meta": "recordId"}}}"#),
        ("db", r#"{"find": "c", "returnKey": true}"#),
        ("db", r#"{"find": "c", "showRecordId": true}"#),
        ("db", r#"{"find": "c", "tailable": true}"#),
        ("db", r#"{"find": "c", "min": {"_id": 1}, "hint": {"_id": 1}}"#),
    ] {
        let (code, words) = client.fails(database, json(command)).await;
        assert!(matches!(code, 59 | 115), "{command}: {code} {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_are_not_here_are_refused_by_name() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"create": "c"}"#)).await;
    client.done("db", json(r#"{"create": "v", "viewOn": "c", "pipeline": []}"#)).await;
    let index = r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#;
    client.done("db", json(index)).await;
    for (command, expected, name) in [
        (r#"{"find": "c", "collectionUUID": 1}"#, 40415, "collectionUUID"),
        (r#"{"collMod": "c", "index": {"name": "a_1", "prepareUnique": true}}"#, 115, "prepareUnique"),
        (r#"{"collMod": "c", "index": {"name": "a_1", "unique": true}}"#, 115, "unique"),
        (r#"{"collMod": "v", "viewOn": "c"}"#, 72, "pipeline"),
        (r#"{"explain": {"count": "v"}}"#, 166, "view"),
        (r#"{"explain": {"distinct": "v", "key": "a"}}"#, 166, "view"),
        (r#"{"drop": "system.views"}"#, 73, "system.views"),
        (r#"{"drop": "system.js"}"#, 73, "system.js"),
        (r#"{"drop": "system.profile"}"#, 73, "system.profile"),
        (
            r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1, "$**": 1}, "name": "w"}]}"#,
            67,
            "wildcard indexes do not allow compounding",
        ),
        (
            r#"{"createIndexes": "c", "indexes": [{"key": {"b.$**": 1, "a": -1}, "name": "w"}]}"#,
            67,
            "wildcard indexes do not allow compounding",
        ),
        (r#"{"createIndexes": "c", "indexes": [{"key": {"g": "2d"}, "name": "g"}]}"#, 67, "'2d'"),
        (r#"{"aggregate": "c", "pipeline": [{"$listCatalog": {}}], "cursor": {}}"#, 115, "$listCatalog"),
        (
            r#"{"aggregate": 1, "pipeline": [{"$listLocalSessions": {"allUsers": true}}], "cursor": {}}"#,
            115,
            "'allUsers'",
        ),
        (r#"{"aggregate": 1, "pipeline": [{"$querySettings": {}}], "cursor": {}}"#, 115, "$querySettings"),
        (
            r#"{"aggregate": "c", "pipeline": [{"$changeStream": {"showExpandedEvents": true}}], "cursor": {}}"#,
            115,
            "showExpandedEvents",
        ),
    ] {
        let (code, words) = client.fails("db", json(command)).await;
        assert_eq!(code, expected, "{command}: {words}");
        assert!(words.contains(name), "{command}: {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_of_the_server_itself_are_not_listed() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"create": "c"}"#)).await;
    let list = client.ok(json(r#"{"listDatabases": 1, "nameOnly": true}"#)).await;
    assert_eq!(inner(&list, "databases"), &json(r#"{"d": [{"name": "db"}]}"#).get("d").cloned().unwrap());
    for name in ["system.views", "system.js", "system.profile"] {
        let found = client.done("db", json(&format!(r#"{{"find": "{name}"}}"#))).await;
        assert_eq!(inner(&found, "cursor.firstBatch"), &Value::Array(Vec::new()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_that_writes_tells_what_a_validator_refused() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 7, "a": "x"}]}"#)).await;
    let schema = r#"{"$jsonSchema": {"properties": {"a": {"bsonType": "int"}}}}"#;
    client.done("db", json(&format!(r#"{{"create": "strict", "validator": {schema}}}"#))).await;
    for stage in [r#"{"$merge": "strict"}"#, r#"{"$out": "strict"}"#] {
        let aggregate = format!(r#"{{"aggregate": "c", "pipeline": [{stage}], "cursor": {{}}}}"#);
        let reply = client.on("db", json(&aggregate)).await;
        assert_eq!(code(&reply), 121, "{stage}");
        assert_eq!(inner(&reply, "errInfo.failingDocumentId"), &Value::Int32(7), "{stage}");
        assert_eq!(
            text(inner(&reply, "errInfo.details").as_document().unwrap(), "operatorName"),
            "$jsonSchema"
        );
    }
    let list = client.done("db", json(r#"{"listCollections": 1, "filter": {"name": "strict"}}"#)).await;
    let options = inner(&list, "cursor.firstBatch").as_array().unwrap()[0].as_document().unwrap().clone();
    let options = inner(&options, "options").as_document().unwrap();
    assert_eq!((text(options, "validationLevel"), text(options, "validationAction")), ("strict", "error"));
}
