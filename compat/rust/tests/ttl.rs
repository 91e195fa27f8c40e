//! The TTL contract through the Rust SDK: T2 (all nine cells), T4, T5, T9-T16.

use std::num::NonZeroU32;

use azure_data_cosmos::models::{
    ContainerProperties, PatchInstructions, PatchOperation, TimeToLive, UniqueKey, UniqueKeyPolicy,
};
use azure_data_cosmos::options::{
    ItemWriteOptions, MaxItemCountHint, PatchItemOptions, Precondition, QueryOptions,
};
use azure_data_cosmos::{ContainerClient, FeedScope, Query, TransactionalBatch};
use bolide_compat::{Server, container, database, status};
use futures::TryStreamExt;
use serde_json::{Value, json};

const DAY: i64 = 24 * 3600;

fn item(id: &str, ttl: Option<&Value>) -> Value {
    let mut body = json!({"id": id, "pk": "p", "n": 1});
    if let Some(ttl) = ttl {
        body["ttl"] = ttl.clone();
    }
    body
}

async fn create(container: &ContainerClient, id: &str, ttl: Option<Value>) -> i64 {
    container.create_item("p", id, item(id, ttl.as_ref()), None).await.expect("created");
    read(container, id).await.expect("alive")["_ts"].as_i64().expect("_ts is a number")
}

async fn read(container: &ContainerClient, id: &str) -> Result<Value, u16> {
    match container.read_item("p", id, None).await {
        Ok(response) => Ok(response.into_model().expect("a JSON body")),
        Err(error) => Err(status(&error)),
    }
}

async fn query(container: &ContainerClient, scope: FeedScope) -> Vec<String> {
    let found: Vec<Value> = container
        .query_items(Query::from("SELECT * FROM c"), scope, None)
        .await
        .expect("the query starts")
        .try_collect()
        .await
        .expect("the query ends");
    found.iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
}

/// Whether an item is live; every way of reading must agree (T14).
async fn alive(container: &ContainerClient, id: &str) -> bool {
    let by_read = read(container, id).await;
    assert!(matches!(by_read, Ok(_) | Err(404)), "{by_read:?}");
    for scope in [FeedScope::partition("p"), FeedScope::full_container()] {
        assert_eq!(query(container, scope).await.iter().any(|found| found == id), by_read.is_ok());
    }
    by_read.is_ok()
}

/// The statuses in the answer to a batch, or its own if it was refused as a whole.
async fn results_of(container: &ContainerClient, batch: TransactionalBatch) -> Vec<u16> {
    match container.execute_transactional_batch(batch, None).await {
        Ok(response) => {
            let answer = response.into_model().expect("results");
            answer.results().iter().map(|result| result.status_code()).collect()
        }
        Err(error) => vec![status(&error)],
    }
}

async fn set_default(container: &ContainerClient, id: &str, default_ttl: TimeToLive) {
    let properties = ContainerProperties::new(id.to_owned(), "/pk".into()).with_default_ttl(default_ttl);
    container.replace(properties, None).await.expect("the container is replaced");
}

#[tokio::test]
async fn t2_all_nine_cells() {
    let server = Server::start();
    let client = server.client().await;
    let database = database(&client, "cells").await;
    let defaults = [TimeToLive::Forever, TimeToLive::NoDefault, TimeToLive::Seconds(200)];
    for (row, own) in [None, Some(-1), Some(100)].into_iter().enumerate() {
        for (column, default) in defaults.iter().enumerate() {
            let lives = match (own, default) {
                (_, TimeToLive::Forever) | (Some(-1), _) | (None, TimeToLive::NoDefault) => None,
                (Some(own), _) => Some(own),
                (None, _) => Some(200),
            };
            let name = format!("cell-{row}-{column}");
            let container = container(&database, &name, default.clone()).await;
            let ts = create(&container, "x", own.map(|own| json!(own))).await;
            let Some(lives) = lives else {
                server.advance(400 * DAY);
                assert!(alive(&container, "x").await, "{name}");
                continue;
            };
            server.move_to(ts + lives - 10);
            assert!(alive(&container, "x").await, "{name}");
            server.move_to(ts + lives);
            assert!(!alive(&container, "x").await, "{name}");
        }
    }
}

#[tokio::test]
async fn t4_and_t5_bad_values_are_refused_and_nothing_is_stored() {
    let server = Server::start();
    let client = server.client().await;
    let database = database(&client, "bad").await;
    for default in [0, 2_147_483_648] {
        let bad = ContainerProperties::new("bad", "/pk".into()).with_default_ttl(default);
        let error = database.create_container(bad, None).await.expect_err("refused");
        assert_eq!(status(&error), 400, "default {default}");
    }

    let container = container(&database, "c", TimeToLive::NoDefault).await;
    let values = [
        json!(0),
        json!(-10),
        json!(null),
        json!(1.5),
        json!("x"),
        json!(2_147_483_648_i64),
        json!(true),
        json!(u64::MAX),
        json!({}),
        json!([]),
    ];
    for value in &values {
        let bad = item("bad", Some(value));
        for error in [
            container.create_item("p", "bad", &bad, None).await.expect_err("refused"),
            container.upsert_item("p", "bad", &bad, None).await.expect_err("refused"),
        ] {
            assert_eq!(status(&error), 400, "ttl {value}");
        }
        let batch = TransactionalBatch::new("p")
            .create_item(item("good", None))
            .expect("serializes")
            .create_item(&bad)
            .expect("serializes");
        let results = results_of(&container, batch).await;
        assert!(results.contains(&400), "ttl {value}: {results:?}");
        assert!(query(&container, FeedScope::full_container()).await.is_empty());
    }

    create(&container, "kept", Some(json!(500))).await;
    let before = read(&container, "kept").await;
    for value in &values {
        let error =
            container.replace_item("p", "kept", item("kept", Some(value)), None).await.expect_err("refused");
        assert_eq!(status(&error), 400, "ttl {value}");
        let patch = PatchInstructions::new().with_operation(PatchOperation::set("/ttl", value.clone()));
        let error = container.patch_item("p", "kept", patch, None).await.expect_err("refused");
        assert_eq!(status(&error), 400, "ttl {value}");
    }
    assert_eq!(read(&container, "kept").await, before);
}

#[tokio::test]
async fn t9_and_t10_writes_restart_the_countdown_and_ttl_follows_updates() {
    let server = Server::start();
    let client = server.client().await;
    let database = database(&client, "writes").await;
    let container = container(&database, "c", TimeToLive::Seconds(1000)).await;
    let ts_of = async || read(&container, "x").await.expect("alive")["_ts"].as_i64().expect("a number");

    let mut ts = create(&container, "x", Some(json!(100))).await;
    server.move_to(ts + 90);
    container.replace_item("p", "x", item("x", Some(&json!(300))), None).await.expect("replaced");
    ts = ts_of().await;
    server.move_to(ts + 290);
    container.upsert_item("p", "x", item("x", None), None).await.expect("upserted");
    ts = ts_of().await;
    server.move_to(ts + 990);
    let stop = PatchInstructions::new().with_operation(PatchOperation::set("/ttl", json!(-1)));
    container.patch_item("p", "x", stop, None).await.expect("patched");
    server.advance(400 * DAY);
    assert!(alive(&container, "x").await);
    let resume = PatchInstructions::new().with_operation(PatchOperation::remove("/ttl"));
    container.patch_item("p", "x", resume, None).await.expect("patched");
    ts = ts_of().await;
    server.move_to(ts + 1000);
    assert!(!alive(&container, "x").await);
}

#[tokio::test]
async fn t11_to_t13_changes_of_the_default_re_date_at_once_and_revive_nothing() {
    let server = Server::start();
    let client = server.client().await;
    let database = database(&client, "changes").await;
    let container = container(&database, "c", TimeToLive::Seconds(100)).await;
    let expired = create(&container, "expired", None).await;
    server.move_to(expired + 50);
    let young = create(&container, "young", None).await;
    server.move_to(expired + 100);
    for default in [
        TimeToLive::Seconds(10_000),
        TimeToLive::Forever,
        TimeToLive::NoDefault,
        TimeToLive::Seconds(1_000_000),
    ] {
        set_default(&container, "c", default).await;
        assert!(!alive(&container, "expired").await);
        assert!(alive(&container, "young").await);
    }
    server.move_to(young + 500);
    set_default(&container, "c", TimeToLive::Seconds(400)).await;
    assert!(!alive(&container, "young").await, "lowered below its age");
    set_default(&container, "c", TimeToLive::Forever).await;
    assert!(!alive(&container, "young").await);
    create(&container, "off", Some(json!(5))).await;
    server.advance(DAY);
    assert!(alive(&container, "off").await, "ttl has no effect while the default is off");
    set_default(&container, "c", TimeToLive::NoDefault).await;
    assert!(!alive(&container, "off").await, "restored, it counts from the last write again");
}

#[tokio::test]
async fn t15_writes_treat_expired_items_as_not_there() {
    let server = Server::start();
    let client = server.client().await;
    let database = database(&client, "expired").await;
    let container = container(&database, "c", TimeToLive::Seconds(100)).await;
    server.pause_purge();
    let ts = create(&container, "x", None).await;
    let etag = read(&container, "x").await.expect("alive")["_etag"].as_str().expect("an etag").to_owned();
    server.move_to(ts + 100);
    assert!(!alive(&container, "x").await);

    let precondition = || Precondition::if_match(etag.clone());
    let if_match = || ItemWriteOptions::default().with_precondition(precondition());
    for options in [None, Some(if_match())] {
        let error =
            container.replace_item("p", "x", item("x", None), options.clone()).await.expect_err("refused");
        assert_eq!(status(&error), 404);
        let patch = PatchInstructions::new().with_operation(PatchOperation::set("/n", json!(2)));
        let if_match =
            options.as_ref().map(|_| PatchItemOptions::default().with_precondition(precondition()));
        let error = container.patch_item("p", "x", patch, if_match).await.expect_err("refused");
        assert_eq!(status(&error), 404);
        let error = container.delete_item("p", "x", options).await.expect_err("refused");
        assert_eq!(status(&error), 404);
    }
    let batch = TransactionalBatch::new("p").read_item("x", None);
    assert_eq!(results_of(&container, batch).await, [404]);

    let created = container.create_item("p", "x", item("x", None), None).await.expect("created");
    assert_eq!(u16::from(created.status().status_code()), 201);
    server.advance(100);
    let upserted = container.upsert_item("p", "x", item("x", None), None).await.expect("created");
    assert_eq!(u16::from(upserted.status().status_code()), 201);
}

#[tokio::test]
async fn t15_unique_values_of_expired_items_are_free_at_once() {
    let server = Server::start();
    let client = server.client().await;
    let database = database(&client, "unique").await;
    let policy = UniqueKeyPolicy::default().with_unique_key(UniqueKey::default().with_path("/n"));
    let properties =
        ContainerProperties::new("c", "/pk".into()).with_default_ttl(100).with_unique_key_policy(policy);
    database.create_container(properties, None).await.expect("created");
    let container = database.container_client("c", None).await.expect("found");
    let ts = create(&container, "first", None).await;
    let error = container.create_item("p", "second", item("second", None), None).await.expect_err("taken");
    assert_eq!(status(&error), 409);
    server.move_to(ts + 100);
    create(&container, "second", None).await;
    let error = container.create_item("p", "third", item("third", None), None).await.expect_err("taken");
    assert_eq!(status(&error), 409);
}

#[tokio::test]
async fn t16_a_page_fetched_after_a_deadline_does_not_bring_expired_items() {
    let server = Server::start();
    let client = server.client().await;
    let database = database(&client, "pages").await;
    let container = container(&database, "c", TimeToLive::NoDefault).await;
    let mut last = 0;
    for (index, id) in ["0", "1", "2", "3", "4", "5"].into_iter().enumerate() {
        last = create(&container, id, Some(json!(if index % 2 == 0 { -1 } else { 100 }))).await;
    }
    let two = NonZeroU32::new(2).expect("two is not zero");
    let options = QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(two));
    let mut pages = container
        .query_items::<Value>(Query::from("SELECT * FROM c"), FeedScope::partition("p"), Some(options))
        .await
        .expect("the query starts")
        .into_pages();
    let ids = |items: &[Value]| items.iter().map(|item| item["id"].clone()).collect::<Vec<_>>();
    let first = pages.try_next().await.expect("a page").expect("the first page");
    let seen = ids(first.items());
    assert_eq!(seen.len(), 2);
    server.move_to(last + 100);
    let mut rest = Vec::new();
    while let Some(page) = pages.try_next().await.expect("a page") {
        rest.extend(ids(page.items()));
    }
    let expected: Vec<Value> =
        ["0", "2", "4"].map(|id| json!(id)).into_iter().filter(|id| !seen.contains(id)).collect();
    assert_eq!(rest, expected);
}
