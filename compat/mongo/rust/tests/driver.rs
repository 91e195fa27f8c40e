//! What applications do with the Rust driver: typed documents, cursors, transactions, retries, connections.

use bolide_compat_mongo::{EMULATOR_KEY, Server, code, connect};
use futures::TryStreamExt;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Decimal128, Document, Timestamp, doc};
use mongodb::change_stream::event::ResumeToken;
use mongodb::error::TRANSIENT_TRANSACTION_ERROR;
use mongodb::options::{IndexOptions, ReturnDocument};
use mongodb::{Client, Collection, IndexModel};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Beer {
    #[serde(rename = "_id")]
    id: i32,
    name: String,
    tags: Vec<String>,
    stock: Stock,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Stock {
    left: i64,
    price: f64,
}

fn beer(id: i32, name: &str) -> Beer {
    Beer { id, name: name.to_owned(), tags: vec!["pale".to_owned()], stock: Stock { left: 5, price: 2.5 } }
}

#[tokio::test]
async fn typed_documents_are_inserted_found_changed_and_deleted() {
    let server = Server::start();
    let beers: Collection<Beer> = server.client().await.database("shop").collection("beers");
    beers.insert_one(beer(1, "Pils")).await.expect("inserted");
    beers.insert_many([beer(2, "Lager"), beer(3, "Stout")]).await.expect("inserted");
    assert_eq!(beers.find_one(doc! {"name": "Pils"}).await.expect("found"), Some(beer(1, "Pils")));
    let changed = beers
        .update_many(doc! {"_id": {"$gte": 2}}, doc! {"$inc": {"stock.left": -1}, "$push": {"tags": "old"}})
        .await
        .expect("updated");
    assert_eq!((changed.matched_count, changed.modified_count), (2, 2));
    let stout = beers
        .find_one_and_update(doc! {"_id": 3}, doc! {"$set": {"stock.price": 3.0}})
        .return_document(ReturnDocument::After)
        .await
        .expect("updated")
        .expect("there");
    assert_eq!((stout.stock.left, stout.stock.price, stout.tags.len()), (4, 3.0, 2));
    let made = beers.replace_one(doc! {"_id": 4}, beer(4, "Ale")).upsert(true).await.expect("replaced");
    assert_eq!(made.upserted_id, Some(Bson::Int32(4)));
    assert_eq!(beers.find_one_and_delete(doc! {"_id": 4}).await.expect("deleted"), Some(beer(4, "Ale")));
    assert_eq!(beers.delete_many(doc! {}).await.expect("deleted").deleted_count, 3);
}

#[tokio::test]
async fn every_type_comes_back_as_it_was_sent() {
    let server = Server::start();
    let collection = server.client().await.database("types").collection("c");
    let document = doc! {
        "_id": ObjectId::new(),
        "double": 1.0,
        "int": 1_i32,
        "long": i64::MAX,
        "decimal": "1.10".parse::<Decimal128>().expect("a number"),
        "date": DateTime::from_millis(-1),
        "timestamp": Timestamp { time: 3, increment: 4 },
        "binary": Bson::Binary(mongodb::bson::Binary { subtype: 5.into(), bytes: vec![0, 255] }),
        "nothing": Bson::Null,
        "least": Bson::MinKey,
        "most": Bson::MaxKey,
        "nested": {"list": [1, "two", {"three": [[]]}], "empty": {}},
        "text": "a\0b ü 🍺",
    };
    collection.insert_one(&document).await.expect("inserted");
    assert_eq!(collection.find_one(doc! {}).await.expect("found"), Some(document));
}

#[tokio::test]
async fn cursors_come_in_batches_and_pipelines_join() {
    let server = Server::start();
    let database = server.client().await.database("pages");
    let numbers: Collection<Document> = database.collection("numbers");
    let all: Vec<Document> = (0..500).map(|n| doc! {"_id": n, "group": n % 7}).collect();
    numbers.insert_many(&all).await.expect("inserted");
    let read: Vec<Document> =
        numbers.find(doc! {}).batch_size(33).await.expect("found").try_collect().await.expect("read");
    assert_eq!(read, all);
    numbers
        .create_index(IndexModel::builder().keys(doc! {"group": 1, "_id": -1}).build())
        .await
        .expect("made");
    let some: Vec<Document> = numbers
        .find(doc! {"group": 3})
        .sort(doc! {"_id": -1})
        .skip(1)
        .limit(2)
        .projection(doc! {"group": 0})
        .await
        .expect("found")
        .try_collect()
        .await
        .expect("read");
    assert_eq!(some, [doc! {"_id": 486}, doc! {"_id": 479}]);
    database.collection("names").insert_one(doc! {"_id": 1, "name": "one"}).await.expect("inserted");
    let joined: Vec<Document> = numbers
        .aggregate([
            doc! {"$match": {"_id": {"$lt": 14}}},
            doc! {"$group": {"_id": "$group", "sum": {"$sum": "$_id"}}},
            doc! {"$lookup": {"from": "names", "localField": "_id", "foreignField": "_id", "as": "name"}},
            doc! {"$unwind": "$name"},
            doc! {"$project": {"_id": 0, "sum": 1, "name": "$name.name"}},
        ])
        .await
        .expect("run")
        .try_collect()
        .await
        .expect("read");
    assert_eq!(joined, [doc! {"sum": 9, "name": "one"}]);
    let names = database.list_collection_names().await.expect("listed");
    assert!(names.contains(&"names".to_owned()) && names.contains(&"numbers".to_owned()));
}

/// Bytes that have crossed the wire, as the server counts them.
async fn bytes_on_the_wire(client: &Client) -> i64 {
    let status = client.database("admin").run_command(doc! {"serverStatus": 1}).await.expect("answered");
    let network = status.get_document("network").expect("figures");
    network.get_i64("bytesIn").expect("a number") + network.get_i64("bytesOut").expect("a number")
}

#[tokio::test]
async fn all_compressors_are_understood_and_used() {
    let server = Server::start();
    let all: Vec<Document> = (0..200).map(|n| doc! {"_id": n, "text": "repeat ".repeat(1000)}).collect();
    for compressor in ["snappy", "zlib", "zstd"] {
        let client = server.client_with(&format!("&compressors={compressor}")).await;
        let before = bytes_on_the_wire(&client).await;
        let collection: Collection<Document> = client.database("compressed").collection(compressor);
        collection.insert_many(&all).await.expect("inserted");
        let read: Vec<Document> =
            collection.find(doc! {}).batch_size(50).await.expect("found").try_collect().await.expect("read");
        assert_eq!(read, all, "{compressor}");
        // 1.4 MB there and as much back, without compression.
        let crossed = bytes_on_the_wire(&client).await - before;
        assert!(crossed < 700_000, "{compressor}: {crossed} bytes");
    }
}

#[tokio::test]
async fn duplicates_are_told() {
    let server = Server::start();
    let collection: Collection<Document> = server.client().await.database("d").collection("c");
    let unique = IndexOptions::builder().unique(true).build();
    let index = IndexModel::builder().keys(doc! {"mail": 1}).options(unique).build();
    collection.create_index(index).await.expect("made");
    collection.insert_one(doc! {"_id": 1, "mail": "a@b"}).await.expect("inserted");
    let error = collection.insert_one(doc! {"_id": 2, "mail": "a@b"}).await.expect_err("refused");
    assert_eq!(code(&error), 11000);
    assert!(error.to_string().contains("E11000 duplicate key error collection: d.c index: mail_1 dup key"));
    let many = [doc! {"_id": 1}, doc! {"_id": 3, "mail": "c"}];
    let error = collection.insert_many(many).ordered(false).await.expect_err("refused");
    assert_eq!(code(&error), 11000);
    assert_eq!(collection.count_documents(doc! {}).await.expect("counted"), 2);
}

#[tokio::test]
async fn a_transaction_is_seen_whole_and_a_conflict_is_told() {
    let server = Server::start();
    let client = server.client().await;
    let accounts: Collection<Document> = client.database("bank").collection("accounts");
    accounts.insert_many([doc! {"_id": 1, "sum": 10}, doc! {"_id": 2, "sum": 0}]).await.expect("inserted");
    let mut session = client.start_session().await.expect("started");
    session.start_transaction().await.expect("started");
    for (id, sum) in [(1, -4), (2, 4)] {
        let update = doc! {"$inc": {"sum": sum}};
        accounts.update_one(doc! {"_id": id}, update).session(&mut session).await.expect("updated");
    }
    let inside =
        accounts.find_one(doc! {"_id": 2}).session(&mut session).await.expect("found").expect("there");
    assert_eq!(inside, doc! {"_id": 2, "sum": 4});
    let outside = accounts.find_one(doc! {"_id": 2}).await.expect("found").expect("there");
    assert_eq!(outside, doc! {"_id": 2, "sum": 0});
    session.commit_transaction().await.expect("committed");
    let outside = accounts.find_one(doc! {"_id": 2}).await.expect("found").expect("there");
    assert_eq!(outside, inside);

    let mut late = client.start_session().await.expect("started");
    late.start_transaction().await.expect("started");
    accounts.find_one(doc! {"_id": 1}).session(&mut late).await.expect("found");
    accounts.update_one(doc! {"_id": 1}, doc! {"$inc": {"sum": 1}}).await.expect("updated");
    let update = accounts.update_one(doc! {"_id": 1}, doc! {"$inc": {"sum": 1}}).session(&mut late).await;
    let error = match update {
        Err(error) => error,
        Ok(_) => late.commit_transaction().await.expect_err("a conflict"),
    };
    assert_eq!(code(&error), 112);
    assert!(error.contains_label(TRANSIENT_TRANSACTION_ERROR));
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_done_once() {
    let server = Server::start_with(&["--mongo-test-commands"]);
    let client = server.client().await;
    let collection: Collection<Document> = client.database("d").collection("c");
    collection.insert_one(doc! {"_id": 1, "n": 0}).await.expect("inserted");
    let fail = doc! {
        "configureFailPoint": "failCommand",
        "mode": {"times": 1},
        "data": {"failCommands": ["update"], "closeConnection": true},
    };
    client.database("admin").run_command(fail).await.expect("set");
    let done = collection.update_one(doc! {"_id": 1}, doc! {"$inc": {"n": 1}}).await.expect("retried");
    assert_eq!(done.modified_count, 1);
    assert_eq!(collection.find_one(doc! {}).await.expect("found"), Some(doc! {"_id": 1, "n": 1}));
}

/// As Cosmos DB's portal prints the connection string, over TLS; the certificate of a store in memory is unknown.
#[tokio::test]
async fn the_connection_string_of_cosmos_db_over_tls() {
    let server = Server::start_with(&["--mongo-auth"]);
    let key = EMULATOR_KEY.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let uri = |key: &str, secure: &str| {
        let options = "replicaSet=globaldb&retrywrites=false&maxIdleTimeMS=120000&appName=%40bolide%40";
        format!("mongodb://bolide:{key}@{}/?{secure}{options}", server.mongo_address())
    };
    for secure in ["ssl=true&tlsAllowInvalidCertificates=true&", ""] {
        let client = connect(&uri(&key, secure)).await;
        let collection: Collection<Document> = client.database("d").collection("c");
        collection.insert_one(doc! {"a": 1}).await.expect("inserted");
        assert!(client.list_database_names().await.expect("listed").contains(&"d".to_owned()));
    }
    let unauthenticated = connect(&uri("wrong", "")).await;
    unauthenticated.list_database_names().await.expect_err("refused");
}

#[tokio::test]
async fn a_cut_or_changed_resume_token_is_refused() {
    let server = Server::start();
    let collection: Collection<Document> = server.client().await.database("shop").collection("beers");
    let mut stream = collection.watch().await.expect("a stream");
    collection.insert_one(doc! {"_id": 1}).await.expect("inserted");
    let event = stream.try_next().await.expect("a stream").expect("an event");
    let token = mongodb::bson::serialize_to_document(&event.id).expect("a token");
    let text = token.get_str("_data").expect("a text");
    let middle = text.len() / 2;
    let other = if text[middle..].starts_with('0') { "1" } else { "0" };
    let changed = format!("{}{other}{}", &text[..middle], &text[middle + 1..]);
    for damaged in [&text[..text.len() - 8], &text[..text.len() - 2], &text[..text.len() - 1], &changed] {
        let token: ResumeToken =
            mongodb::bson::deserialize_from_document(doc! {"_data": damaged}).expect("a token");
        let refused = collection.watch().resume_after(token).await.map(|_| ()).expect_err("refused");
        assert_eq!(code(&refused), 260, "{refused}");
    }
}
