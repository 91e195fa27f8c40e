//! Hierarchical partition keys whose items lack levels, through the Rust SDK, which computes the ranges of keys itself.

use azure_data_cosmos::models::{ContainerProperties, PartitionKeyValue, PatchInstructions, PatchOperation};
use azure_data_cosmos::options::ChangeFeedStartFrom;
use azure_data_cosmos::{ContainerClient, FeedScope, PartitionKey, Query, TransactionalBatch};
use bolide_compat::{Server, database, status};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

const UNDEFINED: PartitionKeyValue = PartitionKey::UNDEFINED;

/// The partition key that a JSON array writes; `{}` is a missing level.
fn key(levels: &Value) -> PartitionKey {
    let level = |level: &Value| match level {
        Value::Object(_) => UNDEFINED,
        Value::Null => PartitionKeyValue::from(None::<String>),
        other => PartitionKeyValue::from(other.as_str().expect("a text").to_owned()),
    };
    let levels: Vec<_> = levels.as_array().expect("levels").iter().map(level).collect();
    PartitionKey::try_from(levels).expect("at most three levels")
}

/// Key, item.
fn items() -> Vec<(Value, Value)> {
    vec![
        (json!(["x", {}]), json!({"id": "first", "a": "x"})),
        (json!(["x", null]), json!({"id": "null", "a": "x", "b": null})),
        (json!(["x", "y"]), json!({"id": "both", "a": "x", "b": "y"})),
        (json!([{}, "y"]), json!({"id": "second", "b": "y"})),
        (json!([{}, {}]), json!({"id": "neither"})),
    ]
}

fn id(item: &Value) -> &str {
    item["id"].as_str().expect("an id")
}

async fn make(server: &Server, paths: &Value, items: &[(Value, Value)]) -> ContainerClient {
    let client = server.client().await;
    let database = database(&client, "levels").await;
    let definition = json!({"id": "c", "partitionKey": {"paths": paths, "kind": "MultiHash", "version": 2}});
    let properties: ContainerProperties = serde_json::from_value(definition).expect("a definition");
    database.create_container(properties, None).await.expect("the container is created");
    let container = database.container_client("c".to_owned(), None).await.expect("the container is found");
    for (levels, item) in items {
        container.create_item(key(levels), id(item), item, None).await.expect("created");
    }
    container
}

async fn ids(container: &ContainerClient, scope: FeedScope) -> Vec<String> {
    let query = Query::from("SELECT VALUE c.id FROM c");
    let rows = container.query_items::<String>(query, scope, None).await.expect("the query starts");
    let mut rows: Vec<String> = rows.try_collect().await.expect("rows");
    rows.sort();
    rows
}

/// Upserts, replaces, patches and batches meet the items that are there, and the feed of each key shows what they wrote.
async fn write_again(container: &ContainerClient, items: &[(Value, Value)]) {
    for (levels, item) in items {
        let with = |n: u64| {
            let mut item = item.clone();
            item["n"] = json!(n);
            item
        };
        let upserted = container.upsert_item(key(levels), id(item), with(1), None).await.expect("upserted");
        assert_eq!(u16::from(upserted.status().status_code()), 200, "{levels}: there was one");
        container.replace_item(key(levels), id(item), with(2), None).await.expect("replaced");
        let patch = PatchInstructions::new().with_operation(PatchOperation::set("/n", json!(3)));
        container.patch_item(key(levels), id(item), patch, None).await.expect("patched");
        let batch = TransactionalBatch::new(key(levels))
            .upsert_item(with(4), None)
            .expect("an item")
            .read_item(id(item).to_owned(), None);
        let answer = container.execute_transactional_batch(batch, None).await.expect("a batch");
        let answer = answer.into_model().expect("results");
        let statuses: Vec<_> = answer.results().iter().map(|result| result.status_code()).collect();
        assert_eq!(statuses, [200, 200], "{levels}");
        let read: Value = answer.results()[1].into_model().expect("JSON").expect("an item");
        assert_eq!(read["n"], 4, "{levels}");
        let scope = FeedScope::partition(key(levels));
        let start = ChangeFeedStartFrom::Beginning;
        let mut feed =
            container.query_change_feed::<Value>(scope, start, None).await.expect("the feed starts");
        let page = feed.next().await.expect("the feed has no end").expect("a page").into_items();
        let changed: Vec<_> = page.iter().filter_map(|change| change.current()).map(id).collect();
        assert_eq!(changed, [id(item)], "the feed of {levels}");
    }
}

#[tokio::test]
async fn items_without_levels_are_found_by_key_prefix_and_feed_range() {
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let items = items();
        let container = make(&server, &json!(["/a", "/b"]), &items).await;
        for (own, item) in &items {
            for (levels, _) in &items {
                match container.read_item(key(levels), id(item), None).await {
                    Ok(_) => assert_eq!(levels, own, "{item}"),
                    Err(error) => {
                        assert!(levels != own && status(&error) == 404, "{item} under {levels}: {error}")
                    }
                }
            }
        }
        let keys = items.iter().map(|(levels, _)| levels.clone());
        for levels in [json!(["x"]), json!([{}])].into_iter().chain(keys) {
            let prefix = levels.as_array().expect("levels");
            let below = items.iter().filter(|(own, _)| own.as_array().expect("levels").starts_with(prefix));
            let mut below: Vec<String> = below.map(|(_, item)| id(item).to_owned()).collect();
            below.sort();
            assert_eq!(ids(&container, FeedScope::partition(key(&levels))).await, below, "{levels}");
            let ranges = container.feed_range_from_partition_key(key(&levels), None).await.expect("ranges");
            let mut found = Vec::new();
            for range in ranges {
                found.extend(ids(&container, FeedScope::range(range)).await);
            }
            // The SDK names the whole ranges in which it looks for the key.
            assert!(below.iter().all(|id| found.contains(id)), "{levels} by range: {found:?}, not {below:?}");
        }
        write_again(&container, &items).await;
        for (own, item) in &items {
            container.delete_item(key(own), id(item), None).await.expect("deleted");
        }
        assert!(ids(&container, FeedScope::full_container()).await.is_empty());
    }
}

/// `MultiHash` with one path, which no item has: the definition that Entity Framework creates for every entity.
#[tokio::test]
async fn one_level_may_be_missing_in_every_item() {
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let items: Vec<_> = ["1", "2", "3"].map(|id| (json!([{}]), json!({"id": id}))).into();
        let container = make(&server, &json!(["/__partitionKey"]), &items).await;
        container.read_item(UNDEFINED, "2", None).await.expect("found");
        assert_eq!(ids(&container, FeedScope::partition(UNDEFINED)).await, ["1", "2", "3"]);
        let ranges = container.feed_range_from_partition_key(UNDEFINED, None).await.expect("ranges");
        assert_eq!(ranges.len(), 1);
        for range in ranges {
            assert_eq!(ids(&container, FeedScope::range(range)).await, ["1", "2", "3"]);
        }
    }
}
