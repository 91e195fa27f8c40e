//! Continuation tokens through the Rust SDK, on one and on four physical partitions: an ORDER BY that the client merges
//! goes on from a saved token; a token that was cut is refused. Over all partition keys this client binds its
//! tokens to the whole query itself, so that another filter reaches the server only within one partition key. Every
//! token of the client is a JSON text in base64 with the server's tokens in it, and it is those that are changed here.

use azure_data_cosmos::feed::ContinuationToken;
use azure_data_cosmos::models::TimeToLive;
use azure_data_cosmos::options::{
    ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint, QueryOptions, QueryPlanMode,
};
use azure_data_cosmos::{ContainerClient, CosmosError, FeedScope, Query};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bolide_compat::{Server, container, database, refused};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

const ITEMS: u64 = 30;
const MOST_PAGES: usize = 100;
/// The prefix of the client's tokens.
const CLIENT_PREFIX: &str = "c1.";
const MODES: [QueryPlanMode; 2] = [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly];

async fn filled(server: &Server, name: &str) -> ContainerClient {
    let database = database(&server.client().await, name).await;
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

/// Returns one page after a token, and the next token.
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

/// The token cut, and with one character changed.
fn damaged(token: &str) -> [String; 3] {
    let middle = token.len() / 2;
    let other = if token[middle..].starts_with('A') { "B" } else { "A" };
    let changed = format!("{}{other}{}", &token[..middle], &token[middle + 1..]);
    [token[..token.len() - 8].to_owned(), token[..token.len() - 1].to_owned(), changed]
}

/// The client's token, opened.
fn opened(token: &ContinuationToken) -> Value {
    let text = token.as_str().strip_prefix(CLIENT_PREFIX).expect("the client's own form");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).expect("base64")).expect("JSON")
}

/// The server's token within one of the client for a single request.
fn of_server(token: &ContinuationToken) -> String {
    opened(token)["root"]["server_continuation"].as_str().expect("a token").to_owned()
}

/// The client's token with another of the server in it.
fn with_server(token: &ContinuationToken, inner: &str) -> ContinuationToken {
    let mut state = opened(token);
    state["root"]["server_continuation"] = json!(inner);
    let text = URL_SAFE_NO_PAD.encode(state.to_string());
    ContinuationToken::from_string(format!("{CLIENT_PREFIX}{text}"))
}

#[track_caller]
fn refuse<T>(outcome: Result<T, CosmosError>) {
    let text = refused(400, outcome);
    assert!(text.contains("Invalid Continuation Token"), "{text}");
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
    let container = filled(&server, "tokens").await;
    let ascending: Vec<Value> = (0..ITEMS).map(Value::from).collect();
    let descending: Vec<Value> = (0..ITEMS).rev().map(Value::from).collect();
    for mode in MODES {
        assert_eq!(saved(&container, mode, "SELECT VALUE c.n FROM c ORDER BY c.n").await, ascending);
        let backwards = "SELECT VALUE c.n FROM c WHERE c.n >= 0 ORDER BY c.n DESC";
        assert_eq!(saved(&container, mode, backwards).await, descending);
    }
    // For one partition key the client sends the server's own token.
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
        for changed in damaged(&of_server(&token)) {
            refuse(page(&container, query, one(), mode, Some(with_server(&token, &changed))).await);
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

/// Within one partition key the client sends the server's own token: what that is bound to.
#[tokio::test]
async fn a_token_is_of_its_query_its_key_and_its_container() {
    let server = Server::start_with(&["--partitions", "4"]);
    let (container, elsewhere) = (filled(&server, "tokens").await, filled(&server, "other").await);
    let mode = MODES[0];
    let one = || FeedScope::partition("p1");
    for (query, same, others) in [
        (
            "SELECT VALUE c.n FROM c ORDER BY c.n",
            "select value c.n\nfrom c where c.n >= 0 order by c.n asc",
            ["SELECT VALUE c.n FROM c ORDER BY c.n DESC", "SELECT VALUE c.n FROM c ORDER BY c.g"],
        ),
        (
            "SELECT VALUE c.n FROM c WHERE c.n > 0",
            "SELECT  VALUE c.n FROM c WHERE ((c.n > 0)) -- a comment",
            ["SELECT VALUE c.n FROM c WHERE c.n > 1", "SELECT VALUE c.n FROM c"],
        ),
        (
            "SELECT TOP 20 VALUE c.n FROM c ORDER BY c.n",
            "select top 20 value c.n from c order by c.n",
            [
                "SELECT TOP 20 VALUE c.n FROM c WHERE true ORDER BY c.n",
                "SELECT TOP 19 VALUE c.n FROM c ORDER BY c.n",
            ],
        ),
    ] {
        let token =
            page(&container, query, one(), mode, None).await.expect("a page").1.expect("there is more");
        let saved = || Some(ContinuationToken::from_string(token.as_str().to_owned()));
        let (expected, _) = page(&container, query, one(), mode, saved()).await.expect("a page");
        assert!(!expected.is_empty(), "{query}");
        let (rows, _) = page(&container, same, one(), mode, saved()).await.expect("a page");
        assert_eq!(rows, expected, "{same}");
        for other in others {
            refuse(page(&container, other, one(), mode, saved()).await);
        }
        refuse(page(&container, query, FeedScope::partition("p2"), mode, saved()).await);
        // The client looks for its container's id in its token, and so does the server.
        let theirs =
            page(&elsewhere, query, one(), mode, None).await.expect("a page").1.expect("there is more");
        let mixed = with_server(&theirs, &of_server(&token));
        refuse(page(&elsewhere, query, one(), mode, Some(mixed)).await);
    }
}

#[tokio::test]
async fn a_damaged_token_of_a_change_feed_is_refused() {
    let server = Server::start_with(&["--partitions", "4"]);
    let container = filled(&server, "tokens").await;
    let read = async |token: Option<ContinuationToken>| {
        let options = token.map(|token| ChangeFeedOptions::default().with_continuation_token(token));
        let (scope, start) = (FeedScope::partition("p1"), ChangeFeedStartFrom::Now);
        let mut feed = container.query_change_feed::<Value>(scope, start, options).await?;
        let page = feed.next().await.expect("the feed has no end")?.into_items();
        Ok::<_, CosmosError>((page.len(), feed.to_continuation_token().expect("a token")))
    };
    let (_, token) = read(None).await.expect("a feed");
    assert_eq!(read(Some(token.clone())).await.expect("a feed").0, 0);
    for changed in damaged(of_server(&token).trim_matches('"')) {
        refuse(read(Some(with_server(&token, &format!("\"{changed}\"")))).await);
    }
}
