//! The TTL contract through the Rust driver: T6, T9, T13-T16, T26, T27.

use bolide_compat_mongo::{DAY, Server, code, living};
use futures::TryStreamExt;
use mongodb::bson::{Bson, DateTime, Decimal128, Document, doc};
use mongodb::error::TRANSIENT_TRANSACTION_ERROR;
use mongodb::options::IndexOptions;
use mongodb::{Client, Collection, IndexModel};

/// A collection with TTL indexes, made by the command itself: `-1` is a value that the driver's options cannot hold.
async fn collection(client: &Client, name: &str, rules: &[(&str, Bson)]) -> Collection<Document> {
    let database = client.database("ttl");
    for (field, seconds) in rules {
        let index = doc! {"key": {*field: 1}, "name": format!("{field}_1"), "expireAfterSeconds": seconds};
        database
            .run_command(doc! {"createIndexes": name, "indexes": [index]})
            .await
            .expect("the index is made");
    }
    database.collection(name)
}

async fn change(collection: &Collection<Document>, index: &str, seconds: i32) -> Document {
    let command = doc! {
        "collMod": collection.name(),
        "index": {"name": index, "expireAfterSeconds": seconds},
    };
    collection.client().database("ttl").run_command(command).await.expect("the index is changed")
}

fn number(document: &Document, name: &str) -> i64 {
    let value = document.get(name).unwrap_or(&Bson::Null);
    value
        .as_i64()
        .or_else(|| value.as_i32().map(i64::from))
        .unwrap_or_else(|| panic!("no {name} in {document}"))
}

fn at(seconds: i64) -> DateTime {
    DateTime::from_millis(seconds * 1000)
}

#[tokio::test]
async fn t6_which_ttl_counts() {
    let server = Server::start();
    let client = server.client().await;
    let decimal: Decimal128 = "20".parse().expect("a number");
    let table: [(Bson, Option<i64>); 17] = [
        (20_i32.into(), Some(20)),
        (20_i64.into(), Some(20)),
        (20.0.into(), Some(20)),
        ((-1_i32).into(), None),
        ((-1_i64).into(), None),
        ((-1.0).into(), None),
        (20.5.into(), Some(100)),
        (2_147_483_649_i64.into(), Some(100)),
        (2_147_483_648.0.into(), Some(100)),
        ("20".into(), Some(100)),
        (0.into(), Some(100)),
        ((-5).into(), Some(100)),
        (Bson::Null, Some(100)),
        (decimal.into(), Some(100)),
        (f64::NAN.into(), Some(100)),
        (true.into(), Some(100)),
        (vec![20].into(), Some(100)),
    ];
    for (number, (ttl, lives)) in table.into_iter().enumerate() {
        let collection = collection(&client, &format!("c{number}"), &[("_ts", 100.into())]).await;
        collection.insert_one(doc! {"_id": 1, "ttl": &ttl}).await.expect("inserted");
        let start = server.now();
        let Some(lives) = lives else {
            server.advance(400 * DAY);
            assert_eq!(living(&collection).await, [1], "{ttl}");
            continue;
        };
        server.move_to(start + lives - 5);
        assert_eq!(living(&collection).await, [1], "{ttl}");
        server.move_to(start + lives);
        assert_eq!(living(&collection).await, [] as [i32; 0], "{ttl}");
    }
}

#[tokio::test]
async fn t26_the_index_on_ts_is_the_default_of_the_collection() {
    let server = Server::start();
    let client = server.client().await;
    let database = client.database("ttl");
    let create = doc! {
        "createIndexes": "coll",
        "indexes": [{"key": {"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": 10}],
    };
    let reply = database.run_command(create).await.expect("made");
    assert_eq!(reply.get("createdCollectionAutomatically"), Some(&Bson::Boolean(true)));
    assert_eq!((number(&reply, "numIndexesBefore"), number(&reply, "numIndexesAfter")), (1, 2));

    let coll: Collection<Document> = database.collection("coll");
    coll.insert_many([
        doc! {"_id": 1, "ttl": 20.0},
        doc! {"_id": 2, "ttl": 20_i32},
        doc! {"_id": 3, "ttl": 20_i64},
        doc! {"_id": 4, "ttl": 20.5},
        doc! {"_id": 5, "ttl": 2_147_483_649_i64},
    ])
    .await
    .expect("inserted");
    let start = server.now();
    assert_eq!(living(&coll).await, [1, 2, 3, 4, 5]);
    server.move_to(start + 10);
    assert_eq!(living(&coll).await, [1, 2, 3]);
    server.move_to(start + 20);
    assert_eq!(living(&coll).await, [] as [i32; 0]);

    let changed = change(&coll, "_ts_1", 100).await;
    assert_eq!(number(&changed, "expireAfterSeconds_old"), 10);
    assert_eq!(number(&changed, "expireAfterSeconds_new"), 100);
    assert_eq!(living(&coll).await, [] as [i32; 0], "T13");
    coll.insert_one(doc! {"_id": 6}).await.expect("inserted");
    coll.drop_index("_ts_1").await.expect("dropped");
    server.advance(DAY);
    assert_eq!(living(&coll).await, [6], "T12");
}

#[tokio::test]
async fn t26_other_values_are_refused() {
    let server = Server::start();
    let database = server.client().await.database("ttl");
    let values: [Bson; 5] = [0.into(), (-2).into(), 1.5.into(), 2_147_483_648_i64.into(), "10".into()];
    for value in values {
        let index = doc! {"key": {"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": &value};
        let made = database.run_command(doc! {"createIndexes": "bad", "indexes": [index]}).await;
        assert_eq!(code(&made.expect_err("refused")), 67, "{value}");
    }
}

#[tokio::test]
async fn t9_a_write_restarts_the_countdown_and_t15_expired_documents_are_in_no_writers_way() {
    let server = Server::start();
    server.admin("POST", "/_bolide/purge", r#"{"paused": true}"#);
    let collection = collection(&server.client().await, "c", &[("_ts", 100.into())]).await;
    collection.insert_one(doc! {"_id": 1, "n": 0}).await.expect("inserted");
    server.advance(90);
    collection.update_one(doc! {"_id": 1}, doc! {"$inc": {"n": 1}}).await.expect("updated");
    server.advance(90);
    assert_eq!(living(&collection).await, [1]);
    server.advance(10);
    let missed = collection.update_one(doc! {"_id": 1}, doc! {"$inc": {"n": 1}}).await.expect("answered");
    assert_eq!(missed.matched_count, 0);
    assert_eq!(collection.delete_many(doc! {}).await.expect("answered").deleted_count, 0);
    assert_eq!(collection.find_one_and_delete(doc! {"_id": 1}).await.expect("answered"), None);
    collection.insert_one(doc! {"_id": 1, "n": 7}).await.expect("the _id is free");
    assert_eq!(living(&collection).await, [1]);
}

#[tokio::test]
async fn t14_t15_no_command_meets_expired_documents() {
    let server = Server::start();
    server.admin("POST", "/_bolide/purge", r#"{"paused": true}"#);
    let client = server.client().await;
    let collection = collection(&client, "c", &[("_ts", (-1).into())]).await;
    let unique = IndexOptions::builder().unique(true).build();
    let index = IndexModel::builder().keys(doc! {"key": 1}).options(unique).build();
    collection.create_index(index).await.expect("made");
    let documents = (1..=4).map(|n| doc! {"_id": n, "key": n, "ttl": if n < 3 { 50 } else { -1 }});
    collection.insert_many(documents).await.expect("inserted");
    server.advance(50);
    assert_eq!(living(&collection).await, [3, 4]);

    let database = client.database("ttl");
    let other: Collection<Document> = database.collection("other");
    other.insert_one(doc! {"_id": 1, "keys": [1, 2, 3, 4]}).await.expect("inserted");
    let join = doc! {"$lookup": {"from": "c", "localField": "keys", "foreignField": "key", "as": "found"}};
    let joined = other.aggregate([join]).await.expect("run").try_next().await.expect("read").expect("a row");
    assert_eq!(joined.get_array("found").expect("an array").len(), 2);
    let stats = database.run_command(doc! {"collStats": "c"}).await.expect("answered");
    assert_eq!(number(&stats, "count"), 2);
    let explain =
        doc! {"explain": {"find": "c", "filter": {"key": {"$gt": 0}}}, "verbosity": "executionStats"};
    let plan = database.run_command(explain).await.expect("answered");
    let figures = plan.get_document("executionStats").expect("figures");
    assert_eq!((number(figures, "nReturned"), number(figures, "totalDocsExamined")), (2, 2));

    let taken = collection.insert_one(doc! {"_id": 9, "key": 3}).await.expect_err("taken by the living");
    assert_eq!(code(&taken), 11000);
    collection.insert_one(doc! {"_id": 9, "key": 1}).await.expect("expired documents hold no key");
    let change = doc! {"$set": {"key": 2}};
    let missed = collection.find_one_and_update(doc! {"key": 2}, change.clone()).await.expect("answered");
    assert_eq!(missed, None);
    let upserted = collection.update_one(doc! {"_id": 2}, change).upsert(true).await.expect("answered");
    assert_eq!(upserted.upserted_id, Some(Bson::Int32(2)));
    assert_eq!(living(&collection).await, [2, 3, 4, 9]);
}

#[tokio::test]
async fn t27_dates_arrays_and_several_rules() {
    let server = Server::start();
    let collection = collection(&server.client().await, "c", &[("_ts", 100.into()), ("at", 0.into())]).await;
    let now = server.now();
    collection
        .insert_many([
            doc! {"_id": 1, "ttl": -1, "at": at(now + 50)},
            doc! {"_id": 2, "at": at(now + DAY)},
            doc! {"_id": 3, "ttl": -1, "at": [at(now + DAY), at(now + 300)]},
            doc! {"_id": 4, "ttl": -1, "at": "never"},
            doc! {"_id": 5, "at": at(0)},
        ])
        .await
        .expect("inserted");
    assert_eq!(living(&collection).await, [1, 2, 3, 4]);
    server.move_to(now + 50);
    assert_eq!(living(&collection).await, [2, 3, 4]);
    server.move_to(now + 200);
    assert_eq!(living(&collection).await, [3, 4]);
    change(&collection, "at_1", 100).await;
    server.move_to(now + 350);
    assert_eq!(living(&collection).await, [3, 4]);
    server.move_to(now + 400);
    assert_eq!(living(&collection).await, [4]);
    collection.drop_index("at_1").await.expect("dropped");
    assert_eq!(living(&collection).await, [4], "T13");
}

#[tokio::test]
async fn t16_cursors_and_transactions_over_an_expiry() {
    let server = Server::start();
    let client = server.client().await;
    let collection = collection(&client, "c", &[("_ts", (-1).into())]).await;
    let documents = (1..=6).map(|n| doc! {"_id": n, "ttl": if n > 4 { 50 } else { -1 }});
    collection.insert_many(documents).await.expect("inserted");
    let mut session = client.start_session().await.expect("started");
    session.start_transaction().await.expect("started");
    collection
        .update_one(doc! {"_id": 6}, doc! {"$set": {"seen": true}})
        .session(&mut session)
        .await
        .expect("updated");

    let mut cursor = collection.find(doc! {}).sort(doc! {"_id": 1}).batch_size(2).await.expect("found");
    assert!(cursor.try_next().await.expect("read").is_some());
    server.advance(50);
    let rest: Vec<Document> = cursor.try_collect().await.expect("read");
    assert_eq!(rest.iter().map(|one| number(one, "_id")).collect::<Vec<_>>(), [2, 3, 4]);

    let error = session.commit_transaction().await.expect_err("a conflict");
    assert_eq!(code(&error), 112);
    assert!(error.contains_label(TRANSIENT_TRANSACTION_ERROR));
    assert_eq!(living(&collection).await, [1, 2, 3, 4]);
}
