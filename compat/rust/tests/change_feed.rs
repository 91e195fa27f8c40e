//! The change feed through the Rust SDK: latest version, and all versions and deletes (T14, T28).

use std::time::Duration;

use azure_core::time::OffsetDateTime;
use azure_data_cosmos::feed::ContinuationToken;
use azure_data_cosmos::models::{
    ChangeFeedItem, ChangeFeedOperationType, ChangeFeedPolicy, ContainerProperties, TimeToLive,
};
use azure_data_cosmos::options::{ChangeFeedMode, ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint};
use azure_data_cosmos::{ContainerClient, CosmosError, DatabaseClient, FeedScope};
use bolide_compat::{Server, database, refused};
use futures::StreamExt;
use serde_json::{Value, json};

/// After so many empty pages every range was read and had nothing.
const QUIET_PAGES: usize = 8;

async fn make(database: &DatabaseClient, id: &str) -> ContainerClient {
    let policy = ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600));
    let properties = ContainerProperties::new(id.to_owned(), "/pk".into())
        .with_default_ttl(TimeToLive::NoDefault)
        .with_change_feed_policy(policy);
    database.create_container(properties, None).await.expect("the container is created");
    database.container_client(id.to_owned(), None).await.expect("the container is found")
}

fn options(mode: ChangeFeedMode, token: Option<ContinuationToken>) -> ChangeFeedOptions {
    let page = MaxItemCountHint::Limit(3.try_into().expect("not zero"));
    let options = ChangeFeedOptions::default().with_mode(mode).with_max_item_count(page);
    match token {
        Some(token) => options.with_continuation_token(token),
        None => options,
    }
}

type Read = Result<(Vec<ChangeFeedItem<Value>>, ContinuationToken), CosmosError>;

/// Reads the whole container's feed until nothing is new; what there was, and where to go on.
async fn read(
    container: &ContainerClient,
    mode: ChangeFeedMode,
    start: ChangeFeedStartFrom,
    token: Option<ContinuationToken>,
) -> Read {
    read_in(container, FeedScope::full_container(), mode, start, token).await
}

/// As [`read`], of a part of the container.
async fn read_in(
    container: &ContainerClient,
    scope: FeedScope,
    mode: ChangeFeedMode,
    start: ChangeFeedStartFrom,
    token: Option<ContinuationToken>,
) -> Read {
    let pages = container.query_change_feed::<Value>(scope, start, Some(options(mode, token))).await;
    let mut pages = pages?;
    let (mut found, mut quiet) = (Vec::new(), 0);
    while quiet < QUIET_PAGES {
        let page = pages.next().await.expect("the feed has no end")?;
        let items = page.into_items();
        quiet = if items.is_empty() { quiet + 1 } else { 0 };
        found.extend(items);
    }
    Ok((found, pages.to_continuation_token().expect("a token")))
}

fn short(item: &ChangeFeedItem<Value>) -> (String, String) {
    let metadata = item.metadata().expect("metadata");
    let kind = match (metadata.operation_type(), metadata.time_to_live_expired()) {
        (Some(ChangeFeedOperationType::Delete), Some(true)) => "expire".to_owned(),
        (kind, _) => format!("{:?}", kind.expect("an operation")).to_lowercase(),
    };
    let named = [item.current(), item.previous()].into_iter().flatten().find_map(|item| item["id"].as_str());
    (kind, named.expect("an id").to_owned())
}

#[tokio::test]
async fn t28_all_versions_and_deletes_with_an_expiry_as_of_its_instant() {
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let client = server.client().await;
        let container = make(&database(&client, "feed").await, "c").await;
        let all = ChangeFeedMode::AllVersionsAndDeletes;
        let (nothing, token) = read(&container, all, ChangeFeedStartFrom::Now, None).await.expect("a feed");
        assert!(nothing.is_empty());
        let expiring = json!({"id": "a", "pk": "p", "ttl": 50});
        container.create_item("p", "a", expiring, None).await.expect("created");
        container.create_item("p", "b", json!({"id": "b", "pk": "p"}), None).await.expect("created");
        container
            .replace_item("p", "b", json!({"id": "b", "pk": "p", "n": 1}), None)
            .await
            .expect("replaced");
        container.delete_item("p", "b", None).await.expect("deleted");
        server.advance(70);
        container.create_item("p", "a", json!({"id": "a", "pk": "p"}), None).await.expect("created again");
        let (events, token) =
            read(&container, all, ChangeFeedStartFrom::Now, Some(token)).await.expect("a feed");
        let told: Vec<_> = events.iter().map(short).collect();
        let told: Vec<_> = told.iter().map(|(kind, id)| (kind.as_str(), id.as_str())).collect();
        assert_eq!(
            told,
            [
                ("create", "a"),
                ("create", "b"),
                ("replace", "b"),
                ("delete", "b"),
                ("expire", "a"),
                ("create", "a")
            ]
        );
        assert!(events[2].previous().is_none() && events[3].previous().is_some());
        let (created, expired) = (events[0].current().expect("an item"), &events[4]);
        assert_eq!(expired.previous(), Some(created));
        let metadata = expired.metadata().expect("metadata");
        let instant = metadata.conflict_resolution_timestamp().expect("a time").as_secs();
        assert_eq!(i64::try_from(instant).expect("a time"), created["_ts"].as_i64().expect("a time") + 50);
        assert_eq!((metadata.id(), metadata.partition_key()), (Some("a"), Some(&json!({"pk": "p"}))));
        let (nothing, token) =
            read(&container, all, ChangeFeedStartFrom::Now, Some(token)).await.expect("a feed");
        assert!(nothing.is_empty());
        server.advance(601);
        let text = refused(400, read(&container, all, ChangeFeedStartFrom::Now, Some(token)).await);
        assert!(text.contains("You must read the change feed from within the retention period."), "{text}");
        refused(400, read(&container, all, ChangeFeedStartFrom::Beginning, None).await);
    }
}

/// The previous version of a replaced item comes only where the container asks for it; that of a deleted one always comes.
#[tokio::test]
async fn t28_a_replaced_item_comes_with_what_it_was_where_that_is_asked_for() {
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let client = server.client().await;
        let container = make(&database(&client, "feed").await, "c").await;
        let all = ChangeFeedMode::AllVersionsAndDeletes;
        let (_, start) = read(&container, all, ChangeFeedStartFrom::Now, None).await.expect("a feed");
        let item = |n: u64| json!({"id": "a", "pk": "p", "n": n});
        container.create_item("p", "a", item(1), None).await.expect("created");
        container.replace_item("p", "a", item(2), None).await.expect("replaced");
        container.upsert_item("p", "a", item(3), None).await.expect("replaced");
        container.delete_item("p", "a", None).await.expect("deleted");
        let images = async |asked: bool| {
            let body = json!({"previousImages": if asked { Value::Bool(true) } else { Value::Null }});
            server.admin("PATCH", "/_bolide/ttl/feed/c", &body.to_string());
            let start = ContinuationToken::from_string(start.as_str().to_owned());
            let events =
                read(&container, all, ChangeFeedStartFrom::Now, Some(start)).await.expect("a feed").0;
            let n = |item: Option<&Value>| item.and_then(|item| item["n"].as_u64());
            events.iter().map(|event| (n(event.previous()), n(event.current()))).collect::<Vec<_>>()
        };
        let always = [(None, Some(1)), (None, Some(2)), (None, Some(3)), (Some(3), None)];
        let asked = [(None, Some(1)), (Some(1), Some(2)), (Some(2), Some(3)), (Some(3), None)];
        assert_eq!(images(false).await, always);
        assert_eq!(images(true).await, asked);
        assert_eq!(images(false).await, always);
    }
}

#[tokio::test]
async fn t14_the_latest_versions_of_the_living() {
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let client = server.client().await;
        let container = make(&database(&client, "feed").await, "c").await;
        for n in 0..9 {
            let (id, key) = (n.to_string(), format!("k{n}"));
            let ttl = if n % 3 == 0 { 50 } else { -1 };
            let item = json!({"id": id, "pk": key, "ttl": ttl});
            container.create_item(key, &id, item, None).await.expect("created");
        }
        server.advance(50);
        let latest = ChangeFeedMode::LatestVersion;
        let start = ChangeFeedStartFrom::Beginning;
        let (items, token) = read(&container, latest, start, None).await.expect("a feed");
        assert_eq!(ids(&items), ["1", "2", "4", "5", "7", "8"]);
        create(&container, "new", "k").await;
        let (items, _) =
            read(&container, latest, ChangeFeedStartFrom::Beginning, Some(token)).await.expect("a feed");
        assert_eq!(ids(&items), ["new"]);
    }
}

/// Returns the ids of live items, sorted: ranges are read in turn.
fn ids(items: &[ChangeFeedItem<Value>]) -> Vec<String> {
    let id =
        |item: &ChangeFeedItem<Value>| item.current().expect("an item")["id"].as_str().map(str::to_owned);
    let mut ids: Vec<String> = items.iter().map(|item| id(item).expect("an id")).collect();
    ids.sort();
    ids
}

async fn create(container: &ContainerClient, id: &str, key: &str) {
    let item = json!({"id": id, "pk": key});
    container.create_item(key.to_owned(), id, item, None).await.expect("created");
}

#[tokio::test]
async fn the_feed_is_read_from_now_and_from_a_time() {
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let client = server.client().await;
        let container = make(&database(&client, "feed").await, "c").await;
        let latest = ChangeFeedMode::LatestVersion;
        create(&container, "old", "k1").await;
        let between = server.now() + 50;
        server.advance(100);
        let (nothing, token) =
            read(&container, latest, ChangeFeedStartFrom::Now, None).await.expect("a feed");
        assert!(nothing.is_empty());
        for key in ["k1", "k2", "k3"] {
            create(&container, key, key).await;
        }
        let (items, _) =
            read(&container, latest, ChangeFeedStartFrom::Now, Some(token)).await.expect("a feed");
        assert_eq!(ids(&items), ["k1", "k2", "k3"]);
        let time = |seconds| {
            ChangeFeedStartFrom::PointInTime(OffsetDateTime::from_unix_timestamp(seconds).expect("a time"))
        };
        let (items, _) = read(&container, latest, time(between), None).await.expect("a feed");
        assert_eq!(ids(&items), ["k1", "k2", "k3"]);
        let (items, _) = read(&container, latest, time(between - 100), None).await.expect("a feed");
        assert_eq!(ids(&items), ["k1", "k2", "k3", "old"]);
        // The feed of all versions can only begin now.
        let all = ChangeFeedMode::AllVersionsAndDeletes;
        refused(400, read(&container, all, time(between), None).await);
    }
}

#[tokio::test]
async fn the_feed_is_read_by_key_and_by_feed_range() {
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let client = server.client().await;
        let container = make(&database(&client, "feed").await, "c").await;
        let (latest, all) = (ChangeFeedMode::LatestVersion, ChangeFeedMode::AllVersionsAndDeletes);
        let (now, beginning) = (|| ChangeFeedStartFrom::Now, || ChangeFeedStartFrom::Beginning);
        let of_key = || FeedScope::partition("k3");
        let (_, versions) = read_in(&container, of_key(), all, now(), None).await.expect("a feed");
        for number in 0..20 {
            create(&container, &format!("{number:02}"), &format!("k{}", number % 5)).await;
        }
        container.delete_item("k3", "13", None).await.expect("deleted");

        let (items, token) = read_in(&container, of_key(), latest, beginning(), None).await.expect("a feed");
        assert_eq!(ids(&items), ["03", "08", "18"]);
        create(&container, "new", "k3").await;
        create(&container, "elsewhere", "k4").await;
        let (items, _) =
            read_in(&container, of_key(), latest, beginning(), Some(token)).await.expect("a feed");
        assert_eq!(ids(&items), ["new"]);
        let (events, _) = read_in(&container, of_key(), all, now(), Some(versions)).await.expect("a feed");
        let told: Vec<_> = events.iter().map(|event| short(event).0).collect();
        assert_eq!(told, ["create", "create", "create", "create", "delete", "create"]);

        let ranges = container.read_feed_ranges(None).await.expect("ranges");
        assert_eq!(ranges.len().to_string(), partitions);
        let mut found = Vec::new();
        for range in ranges {
            let scope = FeedScope::range(range);
            let (items, _) = read_in(&container, scope, latest, beginning(), None).await.expect("a feed");
            found.extend(ids(&items));
        }
        found.sort();
        assert_eq!(found.len(), 21, "each once: {found:?}");
        found.dedup();
        assert_eq!(found.len(), 21, "each once: {found:?}");
    }
}
