//! Continuation tokens through the Rust SDK, on one and on four physical partitions: an ORDER BY that the client merges
//! goes on from a saved token; a token that was cut is refused. Over all partition keys this client binds its
//! tokens to the whole query itself, so that another filter reaches the server only within one partition key.

use azure_data_cosmos::feed::ContinuationToken;
use azure_data_cosmos::models::TimeToLive;
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions, QueryPlanMode};
use azure_data_cosmos::{ContainerClient, CosmosError, FeedScope, Query};
use bolide_compat::{Server, container, database, status};
use futures::TryStreamExt;
use serde_json::{Value, json};

const ITEMS: u64 = 30;
const MOST_PAGES: usize = 100;
const MODES: [QueryPlanMode; 2] = [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly];

async fn filled(server: &Server) -> ContainerClient {
    let database = database(&server.client().await, "tokens").await;
    let container = container(&database, "c", TimeToLive::NoDefault).await;
    for n in 0..ITEMS {
        let (id, pk) = (n.to_string(), format!("p{}", n % 5));
        let mut item = json!({"id": id, "pk": pk, "n": n, "g": n % 3});
        if n % 5 == 4 {
            item["ttl"] = json!(100);
        }
        container.create_item(pk, &id, &item, None).await.expect("created");
    }
    container
}

/// One page behind a token, and the token behind it.
async fn page(
    container: &ContainerClient,
    query: &str,
    scope: FeedScope,
    mode: QueryPlanMode,
    token: Option<ContinuationToken>,
) -> Result<(Vec<Value>, Option<ContinuationToken>), CosmosError> {
    let rows = MaxItemCountHint::Limit(4.try_into().expect("not zero"));
    let mut options = QueryOptions::default().with_query_plan_mode(mode).with_max_item_count(rows);
    if let Some(token) = token {
        options = options.with_continuation_token(token);
    }
    let query = Query::from(query.to_owned());
    let mut pages = container.query_items::<Value>(query, scope, Some(options)).await?.into_pages();
    let Some(page) = pages.try_next().await? else { return Ok((Vec::new(), None)) };
    Ok((page.into_items(), pages.to_continuation_token().ok()))
}

/// All rows, each page from the saved token of the one before.
async fn saved(container: &ContainerClient, mode: QueryPlanMode, query: &str) -> Vec<Value> {
    let (mut rows, mut token) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let kept =
            token.map(|token: ContinuationToken| ContinuationToken::from_string(token.as_str().to_owned()));
        let (found, next) = page(container, query, FeedScope::full_container(), mode, kept)
            .await
            .unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.extend(found);
        token = next;
        if token.is_none() {
            return rows;
        }
    }
    panic!("the pages do not end");
}

async fn on(partitions: u32) {
    let server = Server::start_with(&["--partitions", &partitions.to_string()]);
    let container = filled(&server).await;
    let ascending: Vec<Value> = (0..ITEMS).map(Value::from).collect();
    let descending: Vec<Value> = (0..ITEMS).rev().map(Value::from).collect();
    for mode in MODES {
        assert_eq!(saved(&container, mode, "SELECT VALUE c.n FROM c ORDER BY c.n").await, ascending);
        let backwards = "SELECT VALUE c.n FROM c WHERE c.n >= 0 ORDER BY c.n DESC";
        assert_eq!(saved(&container, mode, backwards).await, descending);
    }
    // Of one partition key the client sends the server's own token.
    let one = || FeedScope::partition("p1");
    let query = "SELECT VALUE c.n FROM c ORDER BY c.n";
    for mode in MODES {
        let (_, token) = page(&container, query, one(), mode, None).await.expect("a page");
        let token = token.expect("there is more");
        let (rest, _) = page(
            &container,
            "SELECT VALUE c.n FROM c WHERE c.n > 2 ORDER BY c.n",
            one(),
            mode,
            Some(token.clone()),
        )
        .await
        .expect("a page");
        assert_eq!(rest, [json!(21), json!(26)]);
        let text = token.as_str();
        for damaged in [&text[..text.len() - 8], &text[..text.len() - 1]] {
            let damaged = ContinuationToken::from_string(damaged.to_owned());
            let refused = page(&container, query, one(), mode, Some(damaged)).await.expect_err("refused");
            assert_eq!(status(&refused), 400, "{refused}");
        }
    }
    // T14, T16: what expires between two pages is not sent.
    let (mut rows, mut token) =
        page(&container, query, FeedScope::full_container(), MODES[0], None).await.expect("a page");
    server.advance(100);
    while let Some(next) = token {
        let answer = page(&container, query, FeedScope::full_container(), MODES[0], Some(next)).await;
        let (found, behind) = answer.expect("a page");
        rows.extend(found);
        token = behind;
    }
    let expected: Vec<Value> = (0..ITEMS).filter(|n| n % 5 != 4).map(Value::from).collect();
    assert_eq!(rows, expected);
}

#[tokio::test]
async fn a_saved_token_goes_on_in_its_order_t14_t16() {
    on(1).await;
}

#[tokio::test]
async fn a_saved_token_goes_on_in_its_order_over_several_ranges_t14_t16() {
    on(4).await;
}
