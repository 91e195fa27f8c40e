//! Ordered rows of elements inside of items, over several partition key ranges: clients merge them by their sort keys and
//! tell rows with equal keys apart by the `_rid` of the item.

use document::Value;

use crate::client::Server;
use crate::joined::{DOTNET, body, query, ranges, rows, rows_by_range, wide};
use crate::queries::plan;
use crate::ranges::RANGE_ID;

const FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// A container of several ranges; 12 of its items have arrays, whose elements share their keys with others.
async fn with_arrays() -> Server {
    let server = wide("").await;
    for n in 0..12 {
        let elements = format!(r#"[{{"k":{}}},{{"k":{n}}},{{"k":{}}}]"#, n % 3, n % 3);
        let item = format!(r#"{{"id":"t{n}","pk":"t{n}","b":{{"k":{}}},"t":{elements}}}"#, n % 4);
        server.create(&format!("t{n}"), &item).await.expect_status(201);
    }
    server
}

/// Returns the text for the ranges, with the placeholder for a filter.
async fn rewritten(server: &Server, text: &str) -> String {
    let info = plan(server, "c", text, Some(DOTNET)).await.expect_status(200).member("queryInfo");
    info.get("rewrittenQuery").and_then(Value::as_str).expect("a text").to_owned()
}

fn key(row: &Value) -> i64 {
    let keys = row.get("orderByItems").and_then(Value::as_array).expect("keys");
    keys[0].get("item").and_then(Value::as_i64).expect("a number")
}

fn rid(row: &Value) -> &str {
    row.get("_rid").and_then(Value::as_str).unwrap_or_else(|| panic!("no _rid: {}", row.to_json()))
}

#[tokio::test]
async fn rows_of_elements_and_values_are_merged_by_their_keys() {
    let server = with_arrays().await;
    for (text, count) in [
        ("SELECT VALUE x.k FROM x IN c.t ORDER BY x.k", 36),
        ("SELECT VALUE c.k FROM c IN c.t WHERE c.k > 0 ORDER BY c.k", 27),
        ("SELECT VALUE b.k FROM c.b ORDER BY b.k", 12),
        ("SELECT VALUE s.k FROM (SELECT c.n AS k FROM c WHERE c.n < 9) s ORDER BY s.k", 9),
        ("SELECT VALUE c.k FROM (SELECT c.n AS k FROM c WHERE c.n < 9) c ORDER BY c.k", 9),
        ("SELECT VALUE c.k FROM (SELECT t.k FROM c JOIN t IN c.t WHERE c.b.k < 9) c ORDER BY c.k", 36),
        ("SELECT VALUE y.k FROM (SELECT c.t FROM c) s JOIN y IN s.t ORDER BY y.k", 36),
    ] {
        let sent = rewritten(&server, text).await.replace(FILTER, "true");
        let mut merged = rows_by_range(&server, &sent).await.concat();
        merged.sort_by(|one, other| (key(one), rid(one)).cmp(&(key(other), rid(other))));
        let merged: Vec<String> =
            merged.iter().map(|row| row.get("payload").expect("a row").to_json()).collect();
        let whole = rows(query(&server, &body(text)).send().await);
        let whole: Vec<String> = whole.iter().map(Value::to_json).collect();
        assert_eq!(merged, whole, "{text}");
        assert_eq!(whole.len(), count, "{text}");
    }
}

/// .NET resumes with the sort keys and the `_rid` of the last row, others with a filter in the text and a token.
#[tokio::test]
async fn rows_of_elements_are_resumed_behind_any_row_of_a_range() {
    let server = with_arrays().await;
    let sent = rewritten(&server, "SELECT VALUE x.k FROM x IN c.t ORDER BY x.k").await;
    let (mut by_rid, mut by_token) = (0, 0);
    for range in ranges(&server).await {
        let ask = async |text: &str, more: &str, token: Option<&str>| {
            let text = Value::from(text).to_json();
            let request = query(&server, &format!(r#"{{"query":{text}{more}}}"#)).header(RANGE_ID, &range);
            match token {
                Some(token) => request.header("x-ms-max-item-count", "2").header("x-ms-continuation", token),
                None => request,
            }
            .send()
            .await
        };
        let plain = sent.replace(FILTER, "true");
        let whole = rows(ask(&plain, "", None).await);
        for last in &whole {
            let (value, item) = (key(last), Value::from(rid(last)).to_json());
            let more = format!(r#","resumeFilter":{{"value":[{value}],"rid":{item},"exclude":true}}"#);
            let same = |row: &&Value| (key(row), rid(row)) == (value, rid(last));
            let place = whole.iter().rposition(|row| same(&row)).expect("a row of the range");
            assert_eq!(rows(ask(&plain, &more, None).await), whole[place + 1..], "behind {value} of {item}");
            by_rid += 1;
        }
        let (mut got, mut token): (Vec<Value>, Option<String>) = (Vec::new(), Some(String::new()));
        while let Some(page) = token {
            assert!(got.len() <= whole.len(), "range {range} does not end");
            let filter = got.last().map_or("true".to_owned(), |row| format!("x.k >= {}", key(row)));
            let reply = ask(&sent.replace(FILTER, &filter), "", Some(&page)).await;
            token = reply.header("x-ms-continuation").map(str::to_owned);
            got.extend(rows(reply));
            by_token += 1;
        }
        assert_eq!(got, whole, "range {range}");
    }
    assert!(by_rid == 36 && by_token > 18, "{by_rid} and {by_token}");
}
