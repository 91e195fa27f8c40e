//! The headers of answers: session tokens and LSNs, which each range counts for itself (decision 0027), and how
//! long the server took.

use azure_data_cosmos::models::{ItemResponse, ResponseHeaders, TimeToLive};
use azure_data_cosmos::options::{
    ChangeFeedStartFrom, ItemReadOptions, ItemWriteOptions, Precondition, QueryOptions,
};
use azure_data_cosmos::{ContainerClient, CosmosError, FeedScope, Query, TransactionalBatch};
use bolide_compat::{Server, container, database, refused, status};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

/// How many more writes each of the four ranges gets.
const COUNTS: [u64; 4] = [1, 5, 20, 60];

/// The range and the LSN that an answer shows, equal in all headers.
#[track_caller]
fn shown(headers: &ResponseHeaders) -> (usize, u64) {
    let token = headers.session_token().expect("a token").as_str().to_owned();
    let (range, lsn) = token.split_once(":-1#").expect("the form that clients read");
    let (range, lsn) = (range.parse().expect("a number"), lsn.parse().expect("a number"));
    assert_eq!((headers.lsn(), headers.local_lsn()), (Some(lsn), Some(lsn)));
    assert_eq!(headers.global_committed_lsn(), i64::try_from(lsn).ok());
    (range, lsn)
}

#[track_caller]
fn item_lsn(headers: &ResponseHeaders) -> u64 {
    assert_eq!(headers.item_lsn(), headers.item_local_lsn());
    headers.item_lsn().expect("an item")
}

async fn upsert(container: &ContainerClient, key: &str, id: &str) -> ItemResponse {
    let item = json!({"id": id, "pk": key});
    container.upsert_item(key.to_owned(), id, item, None).await.expect("written")
}

async fn read(container: &ContainerClient, key: &str, id: &str) -> ItemResponse {
    container.read_item(key.to_owned(), id, None).await.expect("found")
}

/// A partition key of each of the four ranges, with an item `first`.
async fn keys_of_ranges(container: &ContainerClient) -> [String; 4] {
    let mut keys: [Option<String>; 4] = Default::default();
    for n in 0..200 {
        let key = format!("k{n}");
        let (range, _) = shown(upsert(container, &key, "first").await.headers());
        keys[range].get_or_insert(key);
        if keys.iter().all(Option::is_some) {
            break;
        }
    }
    keys.map(|key| key.expect("a key of each range"))
}

#[tokio::test]
async fn a_session_over_four_ranges_reads_what_it_wrote_and_every_token_is_accepted() {
    let server = Server::start_with(&["--partitions", "4"]);
    let database = database(&server.client().await, "sessions").await;
    let mine = container(&database, "mine", TimeToLive::NoDefault).await;
    let other = container(&database, "other", TimeToLive::NoDefault).await;
    let keys = keys_of_ranges(&mine).await;
    let mut tokens = Vec::new();
    for (range, (key, count)) in keys.iter().zip(COUNTS).enumerate() {
        let (_, begun) = shown(read(&mine, key, "first").await.headers());
        for n in 1..=count {
            upsert(&other, "x", "x").await;
            let written = upsert(&mine, key, &n.to_string()).await;
            assert_eq!(shown(written.headers()), (range, begun + n), "own and foreign writes in turn");
        }
        tokens.push(format!("{range}:-1#{}", begun + count));
    }
    for (key, count) in keys.iter().zip(COUNTS) {
        read(&mine, key, &count.to_string()).await;
        refused(404, mine.read_item(key.clone(), "none", None).await);
        for token in tokens.iter().chain([&tokens.join(",")]) {
            let options = ItemReadOptions::default().with_session_token(token.clone());
            mine.read_item(key.clone(), "first", Some(options))
                .await
                .unwrap_or_else(|error| panic!("{token}: {error}"));
            let options = QueryOptions::default().with_session_token(token.clone());
            let query = Query::from("SELECT VALUE c.id FROM c WHERE c.id != 'first'");
            let rows =
                mine.query_items::<String>(query, FeedScope::partition(key.clone()), Some(options)).await;
            let rows: Vec<String> = rows.expect("the query starts").try_collect().await.expect("rows");
            assert_eq!(rows.len() as u64, count, "{token}");
        }
    }
    // The same number is in the future of a range with fewer writes.
    let (_, most) = tokens[3].split_once('#').expect("an LSN");
    let options = ItemReadOptions::default().with_session_token(format!("0:-1#{most}"));
    let error = mine.read_item(keys[0].clone(), "first", Some(options)).await.expect_err("of the future");
    // The client's error for 404 with sub-status 1002 after its own retry.
    assert!(error.to_string().contains("ClientReadSessionNotAvailable"), "{error}");
}

#[tokio::test]
async fn a_point_read_shows_the_lsn_of_the_items_last_write_and_those_of_its_range() {
    let server = Server::start_with(&["--partitions", "4"]);
    let database = database(&server.client().await, "sessions").await;
    let mine = container(&database, "mine", TimeToLive::NoDefault).await;
    let other = container(&database, "other", TimeToLive::NoDefault).await;
    let key = &keys_of_ranges(&mine).await[1];
    let made = upsert(&mine, key, "early").await;
    let (range, written) = shown(made.headers());
    assert_eq!(item_lsn(made.headers()), written);
    for n in 0..5 {
        upsert(&mine, key, &n.to_string()).await;
        upsert(&other, key, &n.to_string()).await;
    }
    for (id, lsn) in [("early", written), ("4", written + 5)] {
        let found = read(&mine, key, id).await;
        assert_eq!(shown(found.headers()), (range, written + 5), "of the range alone");
        assert_eq!(item_lsn(found.headers()), lsn, "{id}");
    }
    upsert(&mine, key, "early").await;
    let found = read(&mine, key, "early").await;
    assert_eq!((shown(found.headers()), item_lsn(found.headers())), ((range, written + 6), written + 6));
}

#[tokio::test]
async fn every_answer_says_how_long_it_took() {
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let database = database(&server.client().await, "durations").await;
        let container = container(&database, "c", TimeToLive::NoDefault).await;
        let mut seen = Vec::new();
        let mut note =
            |what: &'static str, headers: &ResponseHeaders| seen.push((what, headers.server_duration()));
        let item = json!({"id": "1", "pk": "p"});
        note("create", container.create_item("p", "1", &item, None).await.expect("created").headers());
        note("read", container.read_item("p", "1", None).await.expect("found").headers());
        note("upsert", container.upsert_item("p", "1", &item, None).await.expect("written").headers());
        note("replace", container.replace_item("p", "1", &item, None).await.expect("written").headers());
        let batch = TransactionalBatch::new("p").read_item("1", None);
        note("batch", container.execute_transactional_batch(batch, None).await.expect("a batch").headers());
        for (what, scope) in
            [("query", FeedScope::partition("p")), ("query of all", FeedScope::full_container())]
        {
            let rows = container.query_items::<Value>(Query::from("SELECT * FROM c"), scope, None).await;
            let mut pages = rows.expect("the query starts").into_pages();
            note(what, pages.try_next().await.expect("a page").expect("a page").headers());
        }
        let start = ChangeFeedStartFrom::Beginning;
        let feed = container.query_change_feed::<Value>(FeedScope::full_container(), start, None).await;
        let page = feed.expect("the feed starts").next().await.expect("a page").expect("a page");
        note("feed", page.headers());
        note("container", container.read(None).await.expect("found").headers());
        note("delete", container.delete_item("p", "1", None).await.expect("deleted").headers());
        assert!(seen.iter().all(|(_, duration)| duration.is_some()), "{seen:?}");
    }
}

#[tokio::test]
async fn every_error_says_how_long_it_took() {
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let database = database(&server.client().await, "durations").await;
        let container = container(&database, "c", TimeToLive::NoDefault).await;
        let item = json!({"id": "1", "pk": "p"});
        container.create_item("p", "1", &item, None).await.expect("created");
        let stale = ItemWriteOptions::default().with_precondition(Precondition::IfMatch("\"stale\"".into()));
        let took = |expected: u16, outcome: Result<ItemResponse, CosmosError>| {
            let error = outcome.expect_err("refused");
            assert_eq!(status(&error), expected, "{error}");
            let response = error.response().expect("the server's answer");
            assert!(response.headers().server_duration_ms.is_some(), "{error}");
        };
        took(400, container.create_item("p", "2", json!({"id": "2", "pk": "p", "ttl": 0}), None).await);
        took(404, container.read_item("p", "none", None).await);
        took(409, container.create_item("p", "1", &item, None).await);
        took(412, container.replace_item("p", "1", &item, Some(stale)).await);
    }
}
