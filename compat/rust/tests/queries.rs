//! The table of `compat/queries.json` through the Rust SDK, on one and on four physical partitions, with the plan made
//! by the SDK itself and with the server's. Beyond one partition key the SDK runs each range's part and merges rows.
//!
//! The SDK reads no JSON text here: rows come in Cosmos binary JSON, its default.

use std::num::NonZeroU32;

use azure_data_cosmos::models::ContainerProperties;
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions, QueryPlanMode};
use azure_data_cosmos::{ContainerClient, FeedScope, Query};
use bolide_compat::{Server, database, status};
use futures::TryStreamExt;
use serde_json::{Map, Value, json};

const TABLE: &str = include_str!("../../queries.json");
const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];
const MOST_PAGES: usize = 100;

fn table() -> Value {
    serde_json::from_str(TABLE).expect("the table is JSON")
}

fn entries(table: &Value) -> &[Value] {
    table["queries"].as_array().expect("a list of queries")
}

fn named<'a>(table: &'a Value, name: &str) -> &'a Value {
    entries(table).iter().find(|entry| entry["name"] == name).expect("a query of that name")
}

/// Why this client cannot run that query, if the table knows a reason.
fn hindrance(entry: &Value, partitions: u32) -> bool {
    let without = &entry["without"];
    without.get("rust").is_some() || (partitions > 1 && without.get("rust, several partitions").is_some())
}

/// The table's container, filled. The SDK knows no computed properties: queries that need them are not run.
async fn shop(server: &Server) -> ContainerClient {
    let table = table();
    let client = server.client().await;
    let database = database(&client, "shop").await;
    let properties: ContainerProperties =
        serde_json::from_value(table["container"].clone()).expect("a definition the SDK knows");
    database.create_container(properties, None).await.expect("the container is created");
    let container = database.container_client("shop".to_owned(), None).await.expect("the container is found");
    for item in table["items"].as_array().expect("a list of items") {
        let text = |name: &str| item[name].as_str().expect("a text").to_owned();
        container.create_item(text("pk"), &text("id"), item, None).await.expect("created");
    }
    container
}

fn query(entry: &Value) -> Query {
    let text = entry["query"].as_str().expect("a text");
    let parameters = entry["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    parameters.iter().fold(Query::from(text), |query, parameter| {
        let name = parameter["name"].as_str().expect("a name");
        query.with_parameter(name, &parameter["value"]).expect("a JSON value")
    })
}

fn paged(mode: QueryPlanMode, page: Option<u32>) -> QueryOptions {
    let options = QueryOptions::default().with_query_plan_mode(mode);
    match page.and_then(NonZeroU32::new) {
        Some(rows) => options.with_max_item_count(MaxItemCountHint::Limit(rows)),
        None => options,
    }
}

async fn run(
    container: &ContainerClient,
    entry: &Value,
    scope: FeedScope,
    options: QueryOptions,
) -> Result<Vec<Value>, String> {
    let rows = container.query_items(query(entry), scope, Some(options)).await;
    rows.map_err(|error| error.to_string())?.try_collect().await.map_err(|error| error.to_string())
}

/// All rows, with a new iterator for every page.
async fn resumed(container: &ContainerClient, entry: &Value, mode: QueryPlanMode) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut options = paged(mode, Some(2));
    for _ in 0..MOST_PAGES {
        let mut pages = container
            .query_items::<Value>(query(entry), FeedScope::full_container(), Some(options))
            .await
            .expect("the query starts")
            .into_pages();
        let Some(page) = pages.try_next().await.expect("a page") else { return rows };
        rows.extend(page.into_items());
        let Ok(token) = pages.to_continuation_token() else { return rows };
        options = paged(mode, Some(2)).with_continuation_token(token);
    }
    panic!("the pages do not end");
}

/// Without system properties, and with numbers as precise as every client can sum them.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !SYSTEM_PROPERTIES.contains(&name.as_str()))
            .map(|(name, inner)| (name.clone(), plain(inner)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(elements) => elements.iter().map(plain).collect(),
        Value::Number(number) => {
            let number = number.as_f64().expect("a finite number");
            json!(format!("{number:.8e}"))
        }
        other => other.clone(),
    }
}

/// The rows as texts that compare, sorted where the query asks for no order.
fn comparable(rows: &[Value], entry: &Value) -> Vec<String> {
    let mut texts: Vec<String> = rows.iter().map(|row| plain(row).to_string()).collect();
    if entry["order"] == "any" {
        texts.sort();
    }
    texts
}

fn expected(entry: &Value) -> Vec<String> {
    comparable(entry["rows"].as_array().expect("a list of rows"), entry)
}

async fn the_table_on(partitions: u32) {
    let server = Server::start_with(&["--partitions", &partitions.to_string()]);
    let container = shop(&server).await;
    let table = table();
    let mut wrong = Vec::new();
    for entry in entries(&table).iter().filter(|entry| !hindrance(entry, partitions)) {
        for mode in [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly] {
            for page in [None, Some(2)] {
                let found = run(&container, entry, FeedScope::full_container(), paged(mode, page))
                    .await
                    .map(|rows| comparable(&rows, entry));
                if found.as_ref() != Ok(&expected(entry)) {
                    wrong.push(format!("{} ({mode:?}, pages of {page:?}): {found:?}", entry["name"]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn the_table_on_one_partition() {
    the_table_on(1).await;
}

#[tokio::test]
async fn the_table_on_four_partitions() {
    the_table_on(4).await;
}

#[tokio::test]
async fn what_the_client_cannot_merge_is_refused_by_name() {
    let server = Server::start_with(&["--partitions", "4"]);
    let container = shop(&server).await;
    let table = table();
    for (name, feature) in
        [("COUNT", "Aggregate"), ("GROUP BY", "GroupBy"), ("ORDER BY RANK", "HybridSearch")]
    {
        let options = paged(QueryPlanMode::LocalPreferred, None);
        let refused = run(&container, named(&table, name), FeedScope::full_container(), options).await;
        assert!(refused.as_ref().is_err_and(|text| text.contains(feature)), "{name}: {refused:?}");
    }
}

#[tokio::test]
async fn every_query_is_answered_within_one_partition_key() {
    let server = Server::start_with(&["--partitions", "4"]);
    let container = shop(&server).await;
    let cases = [
        ("SELECT VALUE COUNT(1) FROM c", json!([2])),
        ("SELECT VALUE SUM(c.stock) FROM c", json!([15])),
        (
            "SELECT c.kind, COUNT(1) AS n FROM c WHERE c.kind = 'nut' GROUP BY c.kind",
            json!([{"kind": "nut", "n": 1}]),
        ),
        ("SELECT DISTINCT VALUE c.pk FROM c", json!(["centre"])),
        ("SELECT VALUE c.id FROM c ORDER BY c.price DESC", json!(["12", "11"])),
        ("SELECT TOP 1 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'walnut')", json!(["11"])),
        ("SELECT TOP 1 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [0.3, 0.3, 0.3])", json!(["12"])),
    ];
    for (text, rows) in cases {
        let entry = json!({"query": text, "order": "exact", "rows": rows});
        let options = paged(QueryPlanMode::LocalPreferred, None);
        let found = run(&container, &entry, FeedScope::partition("centre"), options).await.expect("rows");
        assert_eq!(comparable(&found, &entry), expected(&entry), "{text}");
    }
}

#[tokio::test]
async fn a_new_iterator_goes_on_from_a_continuation_token() {
    let table = table();
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let container = shop(&server).await;
        for name in [
            "all items",
            "range",
            "JOIN",
            "ORDER BY",
            "ORDER BY descending",
            "ORDER BY two keys",
            "ORDER BY text",
        ] {
            for mode in [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly] {
                let entry = named(&table, name);
                let found = resumed(&container, entry, mode).await;
                assert_eq!(
                    comparable(&found, entry),
                    expected(entry),
                    "{name}, {mode:?}, {partitions} partitions"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_resumed_order_survives_deletes_of_its_own_place() {
    let server = Server::start_with(&["--partitions", "4"]);
    let container = shop(&server).await;
    let text = "SELECT VALUE c.id FROM c ORDER BY c.stock";
    let first = paged(QueryPlanMode::LocalPreferred, Some(3));
    let mut pages = container
        .query_items::<String>(Query::from(text), FeedScope::full_container(), Some(first))
        .await
        .expect("the query starts")
        .into_pages();
    let mut seen = pages.try_next().await.expect("a page").expect("the first page").into_items();
    let token = pages.to_continuation_token().expect("a token");
    let table = table();
    let last = seen.last().expect("a row").clone();
    let items = table["items"].as_array().expect("a list of items");
    let pk = items.iter().find(|item| item["id"] == last.as_str()).expect("the item")["pk"]
        .as_str()
        .expect("a key");
    container.delete_item(pk.to_owned(), &last, None).await.expect("deleted");
    let rest = paged(QueryPlanMode::LocalPreferred, Some(3)).with_continuation_token(token);
    let rest: Vec<String> = container
        .query_items(Query::from(text), FeedScope::full_container(), Some(rest))
        .await
        .expect("the query starts")
        .try_collect()
        .await
        .expect("the query ends");
    seen.extend(rest);
    let mut by_stock: Vec<&Value> = items.iter().collect();
    by_stock.sort_by_key(|item| item["stock"].as_i64());
    assert_eq!(seen, by_stock.iter().map(|item| item["id"].as_str().expect("an id")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_bad_query_is_refused_by_both_planners() {
    let server = Server::start();
    let container = shop(&server).await;
    for mode in [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly] {
        let scope = FeedScope::full_container();
        let options = Some(paged(mode, None));
        let refused =
            match container.query_items::<Value>(Query::from("SELECT * FRM c"), scope, options).await {
                Ok(rows) => rows.try_collect::<Vec<_>>().await.expect_err("refused"),
                Err(error) => error,
            };
        assert_eq!(status(&refused), 400, "{mode:?}");
    }
}
