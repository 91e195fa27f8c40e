//! Queries over several partition key ranges, by a client that joins the rows itself: first the plan, then the rewritten
//! text at every range, then the partial results combined.

use document::Value;

use crate::client::{Reply, Request, Server};
use crate::queries::plan;
use crate::ranges::RANGE_ID;

const DOCS: &str = "/dbs/db/colls/c/docs";

/// The features that the .NET client announces.
pub(crate) const DOTNET: &str = "Aggregate, Distinct, GroupBy, MultipleAggregates, MultipleOrderBy, OffsetAndLimit, OrderBy, Top, \
                      NonValueAggregate, DCount, NonStreamingOrderBy, CountIf, HybridSearch, WeightedRankFusion, \
                      HybridSearchSkipOrderByRewrite";

/// A container of several ranges with items 0 to 39, each under a key of its own.
pub(crate) async fn wide(extra: &str) -> Server {
    let server = Server::start().await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let key = r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;
    let definition = format!(r#"{{"id":"c",{key}{extra}}}"#);
    let request = server.post("/dbs/db/colls", &definition).header("x-ms-offer-throughput", "40000");
    request.send().await.expect_status(201);
    for n in 0..40 {
        let odd = n % 2 == 1;
        let item = format!(r#"{{"id":"{n}","pk":"k{n}","n":{n},"odd":{odd},"t":[{n}]}}"#);
        server.create(&format!("k{n}"), &item).await.expect_status(201);
    }
    server
}

pub(crate) async fn ranges(server: &Server) -> Vec<String> {
    let list = server.get("/dbs/db/colls/c/pkranges").send().await.expect_status(200);
    list.ids("PartitionKeyRanges")
}

pub(crate) fn query(server: &Server, body: &str) -> Request {
    let request = server.post(DOCS, body).header("x-ms-documentdb-isquery", "True");
    request.header("x-ms-documentdb-query-enablecrosspartition", "True")
}

pub(crate) fn body(text: &str) -> String {
    format!("{{\"query\":{}}}", Value::from(text).to_json())
}

pub(crate) fn rows(reply: Reply) -> Vec<Value> {
    reply.expect_status(200).member("Documents").as_array().expect("a feed").to_vec()
}

/// Returns the rows of each range for a text.
pub(crate) async fn rows_by_range(server: &Server, text: &str) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for range in ranges(server).await {
        all.push(rows(query(server, &body(text)).header(RANGE_ID, &range).send().await));
    }
    all
}

/// Returns the result that a client computes for a `SELECT VALUE` of one aggregate, from its plan and every range.
async fn joined(server: &Server, text: &str, features: &str) -> String {
    let plan = plan(server, "c", text, Some(features)).await.expect_status(200).member("queryInfo");
    let kinds = plan.get("aggregates").and_then(Value::as_array).expect("aggregates").to_vec();
    let kind = kinds.first().and_then(Value::as_str).expect("an aggregate");
    let rewritten = plan.get("rewrittenQuery").and_then(Value::as_str).expect("a text");
    let by_range = rows_by_range(server, rewritten).await;
    assert!(by_range.len() > 1, "one range has nothing to join");
    let partial = |rows: &Vec<Value>| {
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows[0].as_array().expect("an array of one")[0].clone()
    };
    let partials: Vec<Value> = by_range.iter().map(partial).collect();
    let number = |value: Option<&Value>| value.and_then(Value::as_f64).expect("a number");
    let extreme = |name: &str, pick: fn(f64, f64) -> f64| {
        let pairs = partials.iter().map(|partial| partial.get("item2").expect("a pair"));
        let counted = pairs.filter(|pair| number(pair.get("count")) > 0.0);
        let value = |pair: &Value| match pair.get(name) {
            Some(Value::Bool(truth)) => f64::from(u8::from(*truth)),
            other => number(other),
        };
        counted.map(value).reduce(pick).expect("a row").to_string()
    };
    let items = || partials.iter().map(|partial| partial.get("item").expect("an item"));
    match kind {
        "Count" | "Sum" => items().map(|item| number(Some(item))).sum::<f64>().to_string(),
        "Average" => {
            let sum: f64 = items().map(|item| number(item.get("sum"))).sum();
            let count: f64 = items().map(|item| number(item.get("count"))).sum();
            (sum / count).to_string()
        }
        "Min" => extreme("min", f64::min),
        "Max" => extreme("max", f64::max),
        "MakeList" => {
            let all = items().flat_map(|item| item.as_array().expect("a list").iter());
            let mut all: Vec<String> = all.map(Value::to_json).collect();
            all.sort();
            format!("[{}]", all.join(","))
        }
        other => panic!("no client joins {other}"),
    }
}

#[tokio::test]
async fn averages_and_extremes_need_no_more_than_aggregates() {
    let server = wide("").await;
    for (text, expected) in [
        ("SELECT VALUE AVG(c.n) FROM c", "19.5"),
        ("SELECT VALUE MIN(c.n) FROM c WHERE c.n > 6", "7"),
        ("SELECT VALUE MAX(c.n) FROM c", "39"),
        ("SELECT VALUE SUM(c.n) FROM c", "780"),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.odd", "20"),
    ] {
        assert_eq!(joined(&server, text, "Aggregate").await, expected, "{text}");
        let whole = server.query(text).await.expect_status(200).member("Documents").to_json();
        assert_eq!(whole, format!("[{expected}]"), "{text}");
    }
}

#[tokio::test]
async fn what_no_client_joins_is_refused_by_name_and_a_range_answers_for_itself_alone() {
    let server = wide("").await;
    for (text, feature) in [
        ("SELECT VALUE MAKELIST(c.n) FROM c", "ListAndSetAggregate"),
        ("SELECT MAKESET(c.odd) AS s FROM c", "ListAndSetAggregate"),
        ("SELECT c.odd, COUNT(1) AS k FROM c GROUP BY c.odd ORDER BY c.odd", "OrderedGroups"),
        ("SELECT VALUE COUNT(1) FROM (SELECT TOP 3 * FROM c) s", "NestedRows"),
    ] {
        let refused = plan(&server, "c", text, Some(DOTNET)).await.expect_error(400, 0, "BadRequest");
        assert!(
            refused.message().contains(&format!("does not support: {feature}. ")),
            "{}",
            refused.message()
        );
        // The server answers a request without a range over all of them.
        assert!(!rows(query(&server, &body(text)).send().await).is_empty(), "{text}");
    }
    let by_range = rows_by_range(&server, "SELECT VALUE MAKELIST(c.n) FROM c").await;
    let mut all: Vec<Value> =
        by_range.iter().flat_map(|rows| rows[0].as_array().expect("a list").to_vec()).collect();
    assert!(by_range.iter().all(|rows| rows[0].as_array().expect("a list").len() < 40));
    all.sort_by_key(Value::as_i64);
    assert_eq!(all, (0..40).map(Value::Int).collect::<Vec<_>>(), "each item in its own range, once");
}

#[tokio::test]
async fn a_request_that_names_a_partition_key_needs_no_join() {
    let server = wide("").await;
    let text = "SELECT VALUE MAKELIST(c.n) FROM c";
    let request = server.post(DOCS, &body(text)).header("x-ms-cosmos-is-query-plan-request", "True");
    let request = request.header("x-ms-cosmos-supported-query-features", DOTNET).key("k3");
    let info = request.send().await.expect_status(200).member("queryInfo");
    assert_eq!(info.get("rewrittenQuery").and_then(Value::as_str), Some(""), "the text as it was");
    assert_eq!(rows(query(&server, &body(text)).key("k3").send().await)[0].to_json(), "[3]");
}

#[tokio::test]
async fn a_resume_value_that_is_a_hash_or_no_value_at_all_is_refused() {
    let server = Server::with_container("").await;
    for (id, f) in [("a", "[1]"), ("b", "[2]"), ("c", "{\"x\":1}"), ("d", "7")] {
        server.create("p", &format!(r#"{{"id":"{id}","pk":"p","f":{f}}}"#)).await.expect_status(201);
    }
    let ask = async |direction: &str, value: &str| {
        let text = format!("SELECT VALUE c.id FROM c ORDER BY c.f {direction}");
        let text = Value::from(text.as_str()).to_json();
        let filter = format!(r#"{{"value":[{value}],"exclude":true}}"#);
        query(&server, &format!(r#"{{"query":{text},"resumeFilter":{filter}}}"#)).send().await
    };
    for direction in ["ASC", "DESC"] {
        for kind in ["array", "object"] {
            let hash =
                format!(r#"{{"type":"{kind}","low":-6706074647855398782,"high":9031114912533472255}}"#);
            let refused = ask(direction, &hash).await.expect_error(400, 0, "BadRequest");
            let expected = "ORDER BY over arrays or objects cannot be resumed across ranges";
            assert!(refused.message().contains(expected), "{}", refused.message());
        }
        for value in [r#"{"x":1}"#, "{}", "[1]", "[[]]"] {
            let refused = ask(direction, value).await.expect_error(400, 0, "BadRequest");
            let message = refused.message().replace('\\', "");
            assert!(message.contains(&format!("The value {value} in the 'resumeFilter'")), "{message}");
        }
    }
    let ids = |rows: Vec<Value>| rows.iter().map(Value::to_json).collect::<String>();
    assert_eq!(ids(rows(ask("ASC", "7").await)), r#""a""b""c""#, "arrays, then objects");
    assert_eq!(ids(rows(ask("DESC", "7").await)), "");
    assert_eq!(ids(rows(ask("ASC", "[]").await)), r#""d""a""b""c""#, "all that is not undefined");
}

#[tokio::test]
async fn a_question_about_the_container_needs_no_from_outside_t14() {
    let server = Server::with_container("\"defaultTtl\":-1").await;
    for n in 0..4 {
        let item = format!(r#"{{"id":"{n}","pk":"p{n}","n":{n},"ttl":{}}}"#, 10 * (n + 1));
        server.create(&format!("p{n}"), &item).await.expect_status(201);
    }
    let ask = async |text: &str| {
        let request = query(&server, &body(text)).send().await.expect_status(200);
        request.member("Documents").to_json()
    };
    let exists = "SELECT VALUE EXISTS(SELECT 1 FROM root c WHERE c.n = 0)";
    let list = "SELECT VALUE ARRAY(SELECT VALUE c.n FROM c)";
    let count = "SELECT VALUE (SELECT COUNT(1) AS n FROM c)";
    let texts = [exists, list, count];
    for (seconds, expected) in [
        (0, ["[true]", "[[0,1,2,3]]", "[{\"n\":4}]"]),
        (10, ["[false]", "[[1,2,3]]", "[{\"n\":3}]"]),
        (30, ["[false]", "[[]]", "[{\"n\":0}]"]),
    ] {
        server.advance(seconds);
        for (text, expected) in texts.iter().zip(expected) {
            assert_eq!(ask(text).await, expected, "{text} after {seconds} s more");
        }
    }
    // Without the header for all partitions, such a query needs it like any other.
    let narrow = server.post(DOCS, &body(exists)).header("x-ms-documentdb-isquery", "True");
    narrow.send().await.expect_error(400, 0, "BadRequest");
    let narrow = server.post(DOCS, &body(exists)).header("x-ms-documentdb-isquery", "True").key("p0");
    assert_eq!(rows(narrow.send().await), [Value::Bool(false)]);
    let unknown = server.query("SELECT VALUE EXISTS(SELECT 1 FROM d) FROM c").await;
    let message = unknown.expect_error(400, 0, "BadRequest").message();
    assert!(message.contains("Identifier 'd' could not be resolved"), "{message}");
}

#[tokio::test]
async fn a_question_about_the_container_is_joined_from_all_ranges_t14() {
    let server = wide(r#","defaultTtl":-1"#).await;
    server.create("short", r#"{"id":"short","pk":"short","n":100,"ttl":10}"#).await.expect_status(201);
    let hundred = "SELECT VALUE EXISTS(SELECT 1 FROM root c WHERE c.n = 100)";
    let truth = |joined: String| joined == "1";
    assert!(truth(joined(&server, hundred, DOTNET).await));
    server.advance(10);
    assert!(!truth(joined(&server, hundred, DOTNET).await), "what has expired is not there");
    let all: Vec<String> = {
        let mut all: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        all.sort();
        all
    };
    for (text, expected) in [
        ("SELECT VALUE EXISTS(SELECT 1 FROM root c WHERE c.n = 17)", "1".to_owned()),
        ("SELECT VALUE EXISTS(SELECT 1 FROM root c WHERE c.n = 40)", "0".to_owned()),
        ("SELECT VALUE NOT EXISTS(SELECT 1 FROM root c WHERE c.n = 17)", "0".to_owned()),
        ("SELECT VALUE NOT EXISTS(SELECT 1 FROM root c WHERE c.n = 40)", "1".to_owned()),
        ("SELECT VALUE ALL(SELECT VALUE c.n < 40 FROM c)", "1".to_owned()),
        ("SELECT VALUE ALL(SELECT VALUE c.n < 39 FROM c)", "0".to_owned()),
        ("SELECT VALUE (SELECT VALUE COUNT(1) FROM c)", "40".to_owned()),
        ("SELECT VALUE (SELECT VALUE AVG(c.n) FROM c)", "19.5".to_owned()),
        ("SELECT VALUE ARRAY(SELECT VALUE c.n FROM c)", format!("[{}]", all.join(","))),
        ("SELECT VALUE ARRAY(SELECT * FROM c.n)", format!("[{}]", all.join(","))),
        ("SELECT VALUE ARRAY(SELECT * FROM c.t[0])", format!("[{}]", all.join(","))),
    ] {
        let features = format!("{DOTNET}, ListAndSetAggregate");
        assert_eq!(joined(&server, text, &features).await, expected, "{text}");
        let whole = rows(query(&server, &body(text)).send().await);
        let whole = match &whole[0] {
            Value::Bool(truth) => u8::from(*truth).to_string(),
            Value::Array(list) => {
                let mut list: Vec<String> = list.iter().map(Value::to_json).collect();
                list.sort();
                format!("[{}]", list.join(","))
            }
            other => other.to_json(),
        };
        assert_eq!(whole, expected, "{text} as one request");
    }
    for (text, feature) in [
        ("SELECT VALUE ARRAY(SELECT VALUE c.n FROM c)", "ListAndSetAggregate"),
        ("SELECT VALUE ARRAY(SELECT VALUE c.n FROM c ORDER BY c.n)", "NestedRows"),
        ("SELECT VALUE (SELECT VALUE c.n FROM c WHERE c.id = '3')", "NestedRows"),
    ] {
        let refused = plan(&server, "c", text, Some(DOTNET)).await.expect_error(400, 0, "BadRequest");
        assert!(refused.message().contains(feature), "{}", refused.message());
    }
}

#[tokio::test]
async fn a_row_without_a_distance_is_last_however_ranges_are_joined() {
    for (function, best) in [("euclidean", "Ascending"), ("cosine", "Descending")] {
        let embedding =
            format!(r#"{{"path":"/v","dataType":"float32","distanceFunction":"{function}","dimensions":2}}"#);
        let server = wide(&format!(r#","vectorEmbeddingPolicy":{{"vectorEmbeddings":[{embedding}]}}"#)).await;
        for n in 0..12 {
            let item = format!(r#"{{"id":"v{n}","pk":"v{n}","v":[1,{}]}}"#, f64::from(n) / 8.0);
            server.create(&format!("v{n}"), &item).await.expect_status(201);
        }
        for text in [
            "SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0])",
            "SELECT TOP 30 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0])",
        ] {
            let info = plan(&server, "c", text, Some(DOTNET)).await.expect_status(200).member("queryInfo");
            let order = info.get("orderBy").and_then(Value::as_array).expect("orders")[0].clone();
            assert_eq!(order.as_str(), Some(best));
            let rewritten = info.get("rewrittenQuery").and_then(Value::as_str).expect("a text");
            let rewritten = rewritten.replace("{documentdb-formattableorderbyquery-filter}", "true");
            let mut joined: Vec<(f64, String, String)> = Vec::new();
            for row in rows_by_range(&server, &rewritten).await.into_iter().flatten() {
                let keys = row.get("orderByItems").and_then(Value::as_array).expect("keys").to_vec();
                let key = keys[0].get("item").and_then(Value::as_f64).expect("a number for every row");
                let key = if best == "Ascending" { key } else { -key };
                let member = |name| row.get(name).and_then(Value::as_str).expect("a text").to_owned();
                joined.push((key, member("_rid"), member("payload")));
            }
            joined.sort_by(|one, other| one.partial_cmp(other).expect("no NaN"));
            let whole = rows(query(&server, &body(text)).send().await);
            let near: Vec<String> = (0..12).map(|n| format!("v{n}")).collect();
            let joined: Vec<String> = joined.into_iter().map(|(_, _, id)| id).collect();
            assert_eq!(joined[..12], near, "{function}: {text} joined by the client");
            let whole: Vec<&str> = whole.iter().filter_map(Value::as_str).collect();
            assert_eq!(whole[..12], near, "{function}: {text} from the server");
            assert!(whole[12..].iter().all(|id| !id.starts_with('v')));
            assert!(joined[12..].iter().all(|id| !id.starts_with('v')));
        }
    }
}

#[tokio::test]
async fn no_count_of_a_plan_exceeds_32_bits_with_a_sign() {
    let server = wide("").await;
    for text in [
        "SELECT * FROM c ORDER BY RANK FullTextScore(c.t, 'x') OFFSET 1 LIMIT 2147483647",
        "SELECT TOP 4294967295 * FROM c ORDER BY RANK FullTextScore(c.t, 'x')",
        "SELECT * FROM c ORDER BY c.n OFFSET 2147483648 LIMIT 2147483647",
        "SELECT TOP 4294967295 * FROM c",
    ] {
        let reply = plan(&server, "c", text, None).await.expect_status(200);
        let mut open = vec![reply.json()];
        let mut counts = 0;
        while let Some(value) = open.pop() {
            match value {
                Value::Int(count) => {
                    assert!(count <= i64::from(i32::MAX), "{text}: {count}");
                    counts += 1;
                }
                Value::Array(items) => open.extend(items),
                Value::Object(members) => open.extend(members.iter().map(|(_, member)| member.clone())),
                _ => {}
            }
        }
        assert!(counts > 1, "{text}: the plan has counts");
        let rewritten = reply.text();
        for word in rewritten.split(|c: char| !c.is_ascii_digit()).filter(|word| word.len() == 10) {
            assert!(word.parse::<u64>().unwrap() <= 2_147_483_647, "{text}: {word} in {rewritten}");
        }
    }
}
