//! Listings, queries, plans and paging.

use document::Value;

use crate::client::{Reply, Server};

const DOCS: &str = "/dbs/db/colls/c/docs";
const CROSS: &str = "x-ms-documentdb-query-enablecrosspartition";

async fn filled() -> Server {
    let server = Server::with_container("").await;
    for n in 0..7 {
        let pk = if n % 2 == 0 { "even" } else { "odd" };
        server.create(pk, &format!("{{\"id\":\"{n}\",\"pk\":\"{pk}\",\"n\":{n}}}")).await.expect_status(201);
    }
    server
}

fn documents(reply: &Reply) -> Vec<String> {
    reply.ids("Documents")
}

#[tokio::test]
async fn listings_and_queries_see_the_same_items() {
    let server = filled().await;
    let all = ["0", "1", "2", "3", "4", "5", "6"];
    let list = server.get(DOCS).send().await.expect_status(200);
    assert_eq!(documents(&list), all);
    assert_eq!(list.member("_count"), Value::Int(7));
    assert_eq!(list.header("x-ms-item-count"), Some("7"));
    assert_eq!(list.header("x-ms-continuation"), None);
    for (text, expected) in [
        ("SELECT * FROM c", &all[..]),
        ("SELECT * FROM root r WHERE r.id='3'", &["3"]),
        ("select * from c where c.pk = 'odd'", &["1", "3", "5"]),
        ("SELECT * FROM c WHERE c.id IN ('1','2') AND c.pk = 'odd'", &["1"]),
        ("SELECT * FROM c WHERE c._ts > 0 AND c.n >= 5", &["5", "6"]),
        ("SELECT * FROM c WHERE c.n < 0", &[]),
    ] {
        let reply = server.query(text).await.expect_status(200);
        assert_eq!(documents(&reply), expected, "{text}");
    }
    let keyed = server.get(DOCS).key("odd").send().await;
    assert_eq!(documents(&keyed), ["1", "3", "5"]);
}

#[tokio::test]
async fn queries_come_in_every_form_that_clients_send() {
    let server = filled().await;
    let body = r#"{"query":"SELECT * FROM c WHERE c.id=@id","parameters":[{"name":"@id","value":"2"}]}"#;
    for (name, value) in [
        ("x-ms-documentdb-isquery", "True"),
        ("content-type", "application/query+json"),
        ("content-type", "application/query+json; charset=utf-8"),
    ] {
        assert_eq!(
            documents(&server.post(DOCS, body).header(name, value).header(CROSS, "true").send().await),
            ["2"]
        );
    }
    let bare = server
        .post(DOCS, "SELECT * FROM c WHERE c.id = '2'")
        .header("content-type", "application/sql")
        .header(CROSS, "true");
    assert_eq!(documents(&bare.send().await), ["2"]);
    for body in [
        r#"{"query":7}"#,
        "{}",
        r#"{"query":"SELECT * FROM c","parameters":7}"#,
        r#"{"query":"SELECT * FROM c","parameters":[{"name":"@x"}]}"#,
    ] {
        let reply = server.post(DOCS, body).header("x-ms-documentdb-isquery", "True").send().await;
        reply.expect_error(400, 0, "BadRequest");
    }
}

#[tokio::test]
async fn query_text_has_one_limit_in_every_form() {
    let server = filled().await;
    let pad = " ".repeat(256 * 1024);
    let text = format!("SELECT * FROM c{pad}");
    let bare = server.post(DOCS, &text).header("content-type", "application/sql").header(CROSS, "true");
    let condition = format!("from c where true{pad}");
    let change = r#""operations":[{"op":"set","path":"/x","value":1}]"#;
    let patch = server.patch(&format!("{DOCS}/0"), &format!("{{\"condition\":\"{condition}\",{change}}}"));
    for reply in [server.query(&text).await, bare.send().await, patch.key("even").send().await] {
        let reply = reply.expect_error(400, 0, "BadRequest");
        assert!(
            reply.message().contains("exceeded the maximum limit of 262144 characters"),
            "{}",
            reply.message()
        );
    }
    assert_eq!(server.read("even", "0").await.member("x"), Value::Null);
}

#[tokio::test]
async fn pages_follow_each_other_by_opaque_tokens() {
    let server = filled().await;
    for max in ["1", "2", "3", "6"] {
        let (mut seen, mut token) = (Vec::new(), None::<String>);
        loop {
            let mut request = server.get(DOCS).header("x-ms-max-item-count", max);
            if let Some(token) = &token {
                request = request.header("x-ms-continuation", token);
            }
            let page = request.send().await.expect_status(200);
            assert!(documents(&page).len() <= max.parse().unwrap());
            seen.extend(documents(&page));
            match page.header("x-ms-continuation") {
                Some(next) => token = Some(next.to_owned()),
                None => break,
            }
        }
        seen.sort();
        assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6"], "by {max}");
    }
    let bad = server.get(DOCS).header("x-ms-continuation", "nonsense").send().await;
    bad.expect_error(400, 0, "BadRequest");
    server.get(DOCS).header("x-ms-max-item-count", "-2").send().await.expect_error(400, 0, "BadRequest");
    for all in ["-1", "0"] {
        assert_eq!(
            documents(&server.get(DOCS).header("x-ms-max-item-count", all).send().await).len(),
            7,
            "by {all}"
        );
    }
}

#[tokio::test]
async fn ranges_and_effective_keys_bound_a_query() {
    let server = filled().await;
    let list = |pairs: &[(&str, &str)]| {
        let request =
            pairs.iter().fold(server.get(DOCS), |request, (name, value)| request.header(name, value));
        request.send()
    };
    assert_eq!(documents(&list(&[("x-ms-documentdb-partitionkeyrangeid", "0")]).await).len(), 7);
    list(&[("x-ms-documentdb-partitionkeyrangeid", "7")]).await.expect_error(410, 1002, "Gone");
    let kind = ("x-ms-read-key-type", "EffectivePartitionKeyRange");
    assert_eq!(documents(&list(&[("x-ms-start-epk", ""), ("x-ms-end-epk", "FF"), kind]).await).len(), 7);
    let low = documents(&list(&[("x-ms-start-epk", ""), ("x-ms-end-epk", "1f"), kind]).await);
    let high = documents(&list(&[("x-ms-start-epk", "1F"), ("x-ms-end-epk", "FF"), kind]).await);
    assert_eq!(low.len() + high.len(), 7);
    list(&[("x-ms-start-epk", "zz"), ("x-ms-end-epk", "FF"), kind]).await.expect_error(400, 0, "BadRequest");
    let other = ("x-ms-read-key-type", "ResourceId");
    list(&[("x-ms-start-epk", ""), ("x-ms-end-epk", "FF"), other]).await.expect_error(400, 0, "BadRequest");
}

#[tokio::test]
async fn what_the_language_lacks_is_named_with_its_place() {
    let server = filled().await;
    let text = "SELECT * FROM c WHERE udf.tax(c.x) = 1";
    let reply = server.query(text).await.expect_error(400, 0, "BadRequest");
    assert!(reply.message().contains("udf.tax"), "{}", reply.message());
    let reply = server.query("SELECT * FRM c").await.expect_error(400, 0, "BadRequest");
    assert!(reply.message().contains("SC1001") && reply.message().contains("FRM"), "{}", reply.message());
}

/// Returns the plan for a client with these features.
pub(crate) async fn plan(server: &Server, container: &str, text: &str, features: Option<&str>) -> Reply {
    let body = format!("{{\"query\":{}}}", Value::from(text).to_json());
    let mut request = server
        .post(&format!("/dbs/db/colls/{container}/docs"), &body)
        .header("x-ms-cosmos-is-query-plan-request", "True")
        .header("x-ms-documentdb-isquery", "True");
    if let Some(features) = features {
        request = request.header("x-ms-cosmos-supported-query-features", features);
    }
    request.send().await
}

fn rewritten(reply: &Reply) -> String {
    let info = reply.member("queryInfo");
    info.get("rewrittenQuery").and_then(Value::as_str).expect("a text").to_owned()
}

#[tokio::test]
async fn a_client_gets_a_plan_that_it_can_follow() {
    let server = filled().await;
    let reply = plan(&server, "c", "SELECT * FROM c", None).await.expect_status(200);
    assert_eq!(rewritten(&reply), "");
    let ranges = reply.member("queryRanges");
    assert_eq!(ranges.as_array().unwrap()[0].get("max").and_then(Value::as_str), Some("FF"));

    let ordered = "SELECT * FROM c ORDER BY c.x";
    for features in [None, Some("OrderBy, Top")] {
        let reply = plan(&server, "c", ordered, features).await.expect_status(200);
        assert!(rewritten(&reply).starts_with("SELECT c._rid, "), "{features:?}");
    }
    let reply = plan(&server, "c", ordered, Some("Top")).await.expect_status(200);
    assert_eq!(rewritten(&reply), "", "one partition answers whole for a client that cannot merge");
    plan(&server, "c", "SELECT * FRM c", None).await.expect_error(400, 0, "BadRequest");
}

#[tokio::test]
async fn over_several_partitions_a_client_is_told_what_it_lacks() {
    let server = filled().await;
    let definition = r#"{"id":"wide","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    let request = server.post("/dbs/db/colls", definition).header("x-ms-offer-throughput", "20000");
    request.send().await.expect_status(201);
    let text = "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk";
    let reply = plan(&server, "wide", text, Some("OrderBy,Top")).await.expect_error(400, 0, "BadRequest");
    assert!(reply.message().contains("GroupBy"), "{}", reply.message());
    plan(&server, "wide", text, Some("GroupBy,Aggregate,NonValueAggregate,MultipleAggregates"))
        .await
        .expect_status(200);
}

#[tokio::test]
async fn a_token_of_the_service_begins_again_and_nonsense_is_refused() {
    let server = filled().await;
    let page = |token: &str| {
        let request = server.get(DOCS).header("x-ms-continuation", token);
        request.header("x-ms-max-item-count", "2").send()
    };
    let reply = page("-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:1#TRC:2#ISV:2#IEO:65567#QCF:8").await;
    assert_eq!(documents(&reply.expect_status(200)), ["0", "1"]);
    page("-RID:~a0NPAOszCpOChB4AAAAAAA==").await.expect_error(400, 0, "BadRequest");
}

#[tokio::test]
async fn rows_are_what_the_query_selects() {
    let server = filled().await;
    for (text, expected) in [
        ("SELECT VALUE COUNT(1) FROM c", "[7]"),
        ("SELECT TOP 2 c.id, c.n FROM c ORDER BY c.n DESC", r#"[{"id":"6","n":6},{"id":"5","n":5}]"#),
        ("SELECT c.pk, SUM(c.n) AS s FROM c GROUP BY c.pk", r#"[{"pk":"even","s":12},{"pk":"odd","s":9}]"#),
        ("SELECT DISTINCT VALUE c.pk FROM c", r#"["even","odd"]"#),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 2 LIMIT 2", "[2,3]"),
        ("SELECT 1 AS one", r#"[{"one":1}]"#),
    ] {
        let reply = server.query(text).await.expect_status(200);
        assert_eq!(reply.member("Documents").to_json(), expected, "{text}");
    }
}

#[tokio::test]
async fn resources_are_queried_in_the_whole_language() {
    let server = filled().await;
    for (text, expected) in [
        ("SELECT VALUE r.id FROM root r WHERE r.id = 'db'", r#"["db"]"#),
        ("SELECT VALUE COUNT(1) FROM r", "[1]"),
        ("SELECT r.id FROM r ORDER BY r.id", r#"[{"id":"db"}]"#),
    ] {
        let body = format!("{{\"query\":\"{text}\"}}");
        let request = server.post("/dbs", &body).header("x-ms-documentdb-isquery", "True");
        let reply = request.header("content-type", "application/query+json").send().await.expect_status(200);
        assert_eq!(reply.member("Databases").to_json(), expected, "{text}");
    }
}

#[tokio::test]
async fn metrics_come_when_asked_for() {
    let server = filled().await;
    let body = r#"{"query":"SELECT * FROM c WHERE c.n = 1"}"#;
    let request = || server.post(DOCS, body).header("x-ms-documentdb-isquery", "true").header(CROSS, "true");
    assert_eq!(request().send().await.header("x-ms-documentdb-query-metrics"), None);
    let reply = request().header("x-ms-documentdb-populatequerymetrics", "True").send().await;
    let metrics = reply.header("x-ms-documentdb-query-metrics").unwrap();
    assert!(
        metrics.contains("outputDocumentCount=1;") && metrics.contains("retrievedDocumentCount=1;"),
        "{metrics}"
    );
    for name in ["x-ms-cosmos-populateindexmetrics", "x-ms-cosmos-populateindexmetrics-v2"] {
        let reply = request().header(name, "true").send().await;
        assert!(reply.header("x-ms-cosmos-index-utilization").is_some(), "{name}");
    }
}

#[tokio::test]
async fn a_query_over_all_partitions_must_be_meant() {
    let server = filled().await;
    let query = |text: &str| {
        let body = format!("{{\"query\":\"{text}\"}}");
        server.post(DOCS, &body).header("x-ms-documentdb-isquery", "true")
    };
    let refused = query("SELECT * FROM c").send().await.expect_error(400, 0, "BadRequest");
    assert!(refused.message().contains("Cross partition query is required but disabled"));
    query("SELECT * FROM c WHERE c.pk = 'odd'").send().await.expect_status(200);
    query("SELECT * FROM c").key("odd").send().await.expect_status(200);
    query("SELECT * FROM c").header(CROSS, "True").send().await.expect_status(200);
    query("SELECT * FROM c")
        .header("x-ms-documentdb-partitionkeyrangeid", "0")
        .send()
        .await
        .expect_status(200);
}
/// The server's containers `c` (default index), `wide` (two ranges), `bare` (nothing indexed), each with five items.
async fn three_containers() -> Server {
    let server = Server::with_container(r#""defaultTtl":-1"#).await;
    let key = r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;
    let wide = server.post("/dbs/db/colls", &format!(r#"{{"id":"wide",{key}}}"#));
    wide.header("x-ms-offer-throughput", "20000").send().await.expect_status(201);
    let bare = format!(r#"{{"id":"bare",{key},"indexingPolicy":{{"excludedPaths":[{{"path":"/*"}}]}}}}"#);
    server.post("/dbs/db/colls", &bare).send().await.expect_status(201);
    for container in ["c", "wide", "bare"] {
        for n in 1..=5 {
            let body = format!(r#"{{"id":"{n}","pk":"{n}","n":{n}}}"#);
            let path = format!("/dbs/db/colls/{container}/docs");
            server.post(&path, &body).key(&n.to_string()).send().await.expect_status(201);
        }
    }
    server
}

/// Returns all rows of a query, range by range, as a client requests them that knows the ranges.
async fn rows_of_ranges(server: &Server, container: &str, text: &str) -> Vec<Value> {
    let ranges = server.get(&format!("/dbs/db/colls/{container}/pkranges")).send().await;
    let body = format!("{{\"query\":{}}}", Value::String(text.to_owned()).to_json());
    let mut rows = Vec::new();
    for range in ranges.ids("PartitionKeyRanges") {
        let request = server.post(&format!("/dbs/db/colls/{container}/docs"), &body);
        let reply = request
            .header("content-type", "application/query+json")
            .header("x-ms-documentdb-isquery", "True")
            .header("x-ms-documentdb-partitionkeyrangeid", &range);
        let documents = reply.send().await.expect_status(200).member("Documents");
        rows.extend(documents.as_array().expect("rows").iter().cloned());
    }
    rows
}

#[tokio::test]
async fn a_condition_on_the_item_itself_holds_for_every_item_or_for_none() {
    let server = three_containers().await;
    for (filter, expected) in [
        ("IS_DEFINED(c)", 5),
        ("NOT IS_DEFINED(c)", 0),
        ("IS_OBJECT(c)", 5),
        ("c != null", 5),
        ("c != 5", 5),
        ("c = 5", 0),
        ("c NOT IN (1,2)", 5),
        ("c IN (1,2)", 0),
        ("NOT IS_NULL(c)", 5),
        ("NOT IS_INTEGER(c)", 5),
        ("NOT (NOT IS_DEFINED(c))", 5),
        ("IS_DEFINED(c) OR c.n = 5", 5),
        ("IS_DEFINED(c) AND c.n = 5", 1),
        ("NOT IS_DEFINED(c) OR c.n = 5", 1),
        ("c != {\"n\": 1}", 5),
        ("c = {\"n\": 1}", 0),
        ("c LIKE 'a%'", 0),
        ("ARRAY_CONTAINS(c, 1)", 0),
    ] {
        for container in ["c", "wide", "bare"] {
            let text = format!("SELECT VALUE c.n FROM c WHERE {filter}");
            let rows = rows_of_ranges(&server, container, &text).await;
            assert_eq!(rows.len(), expected, "{text} in {container}");
            let text = format!("SELECT VALUE COUNT(1) FROM c WHERE {filter}");
            let counts = rows_of_ranges(&server, container, &text).await;
            let total: i64 = counts.iter().filter_map(Value::as_i64).sum();
            assert_eq!(total, i64::try_from(expected).unwrap(), "{text} in {container}");
        }
    }
}

#[tokio::test]
async fn a_subquery_that_yields_the_item_loses_none() {
    let server = three_containers().await;
    for container in ["c", "wide", "bare"] {
        for text in [
            "SELECT VALUE s FROM c JOIN (SELECT VALUE c) s",
            "SELECT VALUE s.n FROM c JOIN (SELECT VALUE c) s WHERE IS_DEFINED(s)",
            "SELECT VALUE s FROM (SELECT VALUE c FROM c) s",
            "SELECT VALUE s FROM (SELECT VALUE c FROM c) s WHERE s != null",
        ] {
            assert_eq!(rows_of_ranges(&server, container, text).await.len(), 5, "{text} in {container}");
        }
        let text = "SELECT VALUE COUNT(1) FROM (SELECT VALUE c FROM c) s";
        let counts = rows_of_ranges(&server, container, text).await;
        assert_eq!(counts.iter().filter_map(Value::as_i64).sum::<i64>(), 5, "{text} in {container}");
    }
}

#[tokio::test]
async fn the_plan_of_an_ordered_query_of_whole_items_finds_them() {
    let server = three_containers().await;
    for container in ["c", "wide", "bare"] {
        for text in ["SELECT VALUE c FROM c ORDER BY c.n", "SELECT VALUE root FROM root ORDER BY root.n DESC"]
        {
            let reply = plan(&server, container, text, Some("OrderBy")).await.expect_status(200);
            let rewritten = rewritten(&reply).replace("{documentdb-formattableorderbyquery-filter}", "true");
            assert!(rewritten.contains("IS_DEFINED("), "{rewritten}");
            assert_eq!(
                rows_of_ranges(&server, container, &rewritten).await.len(),
                5,
                "{rewritten} in {container}"
            );
        }
    }
}

#[tokio::test]
async fn a_number_for_each_item_from_aggregates_in_nested_subqueries() {
    let server = Server::with_container("").await;
    let one = r#"{"id":"1","pk":"p","assoc":[{"nested":[{"i":1},{"i":4}]},{"nested":[{"i":3}]}]}"#;
    let two = r#"{"id":"2","pk":"p","assoc":[{"nested":[]},{"nested":[{"i":5}]}]}"#;
    for item in [one, two] {
        server.create("p", item).await.expect_status(201);
    }
    let inner = "SELECT VALUE SUM((SELECT VALUE MAX(n.i) FROM n IN a.nested)) FROM a IN c.assoc";
    let reply = server.query(&format!("SELECT VALUE ({inner}) FROM root c")).await.expect_status(200);
    assert_eq!(reply.member("Documents").to_json(), "[7,5]");
}

#[tokio::test]
async fn parts_of_a_time_with_an_offset_are_those_of_utc() {
    let server = Server::with_container("").await;
    let item = r#"{"id":"1","pk":"p","t":"1998-05-04T15:30:10.1234564+01:30"}"#;
    server.create("p", item).await.expect_status(201);
    let parts = ["yyyy", "mm", "dd", "hh", "mi", "ss", "ms", "mcs"];
    let calls: Vec<String> = parts.iter().map(|part| format!("DateTimePart('{part}', c.t)")).collect();
    let reply = server.query(&format!("SELECT VALUE [{}] FROM c", calls.join(","))).await.expect_status(200);
    assert_eq!(reply.member("Documents").to_json(), "[[1998,5,4,14,0,10,123,123456]]");
    let reply = server.query("SELECT VALUE c.id FROM c WHERE DateTimePart('ss', c.t) = 10").await;
    assert_eq!(reply.expect_status(200).member("Documents").to_json(), r#"["1"]"#);
}

/// On a plane every spatial function computes with plain numbers: constants, filters, orders, conditions of patches, and
/// the plans of clients over several ranges.
#[tokio::test]
async fn a_container_of_flat_geometry_measures_on_a_plane() {
    let server = Server::start().await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let flat = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
        "geospatialConfig":{"type":"Geometry"},"indexingPolicy":{"spatialIndexes":[{"path":"/at/*","types":["Point"],
            "boundingBox":{"xmin":-1000,"ymin":-1000,"xmax":1000,"ymax":1000}}]}}"#;
    let create = server.post("/dbs/db/colls", flat).header("x-ms-offer-throughput", "40000");
    create.send().await.expect_status(201);
    for (id, x, y) in [("a", 3, 4), ("b", 300, -400), ("c", 0, 0)] {
        let at = format!(r#"{{"type":"Point","coordinates":[{x},{y}]}}"#);
        server.create(id, &format!(r#"{{"id":"{id}","pk":"{id}","at":{at}}}"#)).await.expect_status(201);
    }
    let origin = "{'type':'Point','coordinates':[0,0]}";
    let square = "{'type':'Polygon','coordinates':[[[-10,-10],[-10,500],[500,500],[500,-10],[-10,-10]]]}";
    let rows = async |text: &str| {
        let documents = server.query(&text.replace("ORIGIN", origin).replace("SQUARE", square)).await;
        let documents = documents.expect_status(200).member("Documents");
        let mut rows: Vec<String> = documents.as_array().unwrap().iter().map(Value::to_json).collect();
        rows.sort();
        rows.join(" ")
    };
    for (query, expected) in [
        ("SELECT VALUE ST_DISTANCE(c.at, ORIGIN) FROM c", "0 5 500"),
        ("SELECT VALUE ST_DISTANCE({'type':'Point','coordinates':[3,4]}, ORIGIN) FROM c", "5 5 5"),
        ("SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, ORIGIN) < 6", r#""a" "c""#),
        ("SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.at, SQUARE)", r#""a" "c""#),
        ("SELECT VALUE c.id FROM c WHERE ST_INTERSECTS(SQUARE, c.at)", r#""a" "c""#),
        ("SELECT VALUE ST_ISVALID(c.at) FROM c", "true true true"),
        ("SELECT VALUE ST_ISVALIDDETAILED(c.at) FROM c WHERE c.id = 'b'", r#"{"valid":true}"#),
        ("SELECT VALUE ST_AREA(SQUARE) FROM c WHERE c.id = 'a'", "260100"),
        ("SELECT VALUE s FROM (SELECT VALUE ST_DISTANCE(c.at, ORIGIN) FROM c) s WHERE s > 100", "500"),
    ] {
        assert_eq!(rows(query).await, expected, "{query}");
    }
    let near = r#"{"condition":"FROM c WHERE ST_DISTANCE(c.at, {'type':'Point','coordinates':[0,0]}) = 5",
        "operations":[{"op":"set","path":"/n","value":1}]}"#;
    server.patch("/dbs/db/colls/c/docs/a", near).key("a").send().await.expect_status(200);
    server.patch("/dbs/db/colls/c/docs/b", near).key("b").send().await.expect_error(
        412,
        0,
        "PreconditionFailed",
    );
    let batch = format!(r#"[{{"operationType":"Patch","id":"a","resourceBody":{near}}}]"#);
    let batch = server.post(DOCS, &batch).key("a").header("x-ms-cosmos-is-batch-request", "True");
    batch.header("x-ms-cosmos-batch-atomic", "True").send().await.expect_status(200);
    // Another container of the same account still computes on the earth.
    server.create_container("round", "").await.expect_status(201);
    let body = r#"{"id":"a","pk":"a","at":{"type":"Point","coordinates":[3,4]}}"#;
    server.post("/dbs/db/colls/round/docs", body).key("a").send().await.expect_status(201);
    let text = format!("SELECT VALUE ST_DISTANCE(c.at, {origin}) FROM c");
    let round = server.post("/dbs/db/colls/round/docs", &format!("{{\"query\":\"{text}\"}}")).key("a");
    let round = round.header("x-ms-documentdb-isquery", "True").send().await.expect_status(200);
    let metres = round.member("Documents").as_array().unwrap()[0].as_f64().unwrap();
    assert!((metres - 554_058.9).abs() < 0.1, "{metres}");
}
