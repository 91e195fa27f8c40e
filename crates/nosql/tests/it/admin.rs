//! The admin API.

use document::Value;
use engine::{PaceStatus, PurgeNews};
use storage::{Read, Time};

use crate::client::{KEY, START, Server};
use crate::direct::Fixture;

#[tokio::test]
async fn the_admin_api_is_never_open() {
    let server = Server::start().await;
    for path in ["/_bolide/status", "/_bolide/clock", "/_bolide/nothing"] {
        server.get(path).unsigned().send().await.expect_error(401, 0, "Unauthorized");
        server.get(path).send().await.expect_error(401, 0, "Unauthorized");
        let wrong = server.get(path).unsigned().header("authorization", "Bearer b3RoZXI=");
        wrong.send().await.expect_error(401, 0, "Unauthorized");
    }
    server.admin("GET", "/_bolide/nothing", "").send().await.expect_error(404, 0, "NotFound");
    server.admin("DELETE", "/_bolide/clock", "").send().await.expect_error(405, 0, "MethodNotAllowed");
    let with_key = server.get("/dbs").unsigned().header("authorization", &format!("Bearer {KEY}"));
    with_key.send().await.expect_error(401, 0, "Unauthorized");
}

#[tokio::test]
async fn the_test_clock_moves_forward_and_expiry_follows_at_once_t29() {
    let server = Server::with_container("\"defaultTtl\":31536000").await;
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    let clock = server.admin("GET", "/_bolide/clock", "").send().await.expect_status(200);
    assert_eq!(clock.member("now"), Value::Int(START as i64));
    assert_eq!(clock.member("testClock"), Value::Bool(true));
    let moved = server.admin("POST", "/_bolide/clock", r#"{"advanceSeconds":31536000}"#).send().await;
    assert_eq!(moved.expect_status(200).member("now"), Value::Int(START as i64 + 31_536_000));
    server.read("a", "1").await.expect_error(404, 0, "NotFound");
    let created = server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    assert_eq!(created.member("_ts"), Value::Int(START as i64 + 31_536_000));
    for body in [
        r#"{"advanceSeconds":-1}"#,
        r#"{"advanceSeconds":"x"}"#,
        r#"{"advanceSeconds":1.5}"#,
        r#"{"advanceSeconds":1,"reject":true}"#,
        r#"{"accept":true,"comment":"x"}"#,
        r#"{"accept":false}"#,
        r#"{"fly":true}"#,
        "{}",
        "[]",
        "",
    ] {
        server.admin("POST", "/_bolide/clock", body).send().await.expect_error(400, 0, "BadRequest");
    }
    server.admin("POST", "/_bolide/clock", r#"{"accept":true}"#).send().await.expect_status(200);
    server.admin("POST", "/_bolide/clock", r#"{"reject":true}"#).send().await.expect_status(200);
}

#[tokio::test]
async fn a_purge_on_demand_is_refused_while_the_clock_is_suspect_t34() {
    let server = Server::with_guarded_clock().await;
    server.clock.set_wall(Time::from_seconds(START + 2 * 60 * 60));
    let clock = server.admin("GET", "/_bolide/clock", "").send().await.expect_status(200);
    assert!(!clock.member("suspect").is_null(), "{}", clock.text());
    let purge = || server.admin("POST", "/_bolide/purge", r#"{"now":true}"#).send();
    let refused = purge().await.expect_error(409, 0, "Conflict");
    assert!(refused.message().contains("the clock is suspect"), "{}", refused.message());
    server.admin("POST", "/_bolide/clock", r#"{"reject":true}"#).send().await.expect_status(200);
    purge().await.expect_status(200);
}

#[tokio::test]
async fn the_purge_is_steered_and_seen_t23() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    for n in 0..3 {
        server.create("a", &format!("{{\"id\":\"{n}\",\"pk\":\"a\"}}")).await.expect_status(201);
    }
    server.advance(10);
    let figures = || async {
        let ttl = server.admin("GET", "/_bolide/ttl/db/c", "").send().await.expect_status(200);
        let items = |name: &str| ttl.member(name).get("items").and_then(Value::as_i64).unwrap();
        assert_eq!(ttl.member("defaultTtl"), Value::Int(10));
        (items("living"), items("backlog"))
    };
    assert_eq!(figures().await, (0, 3));
    let purge = |body: &str| server.admin("POST", "/_bolide/purge", body).send();
    assert_eq!(purge(r#"{"paused":true}"#).await.expect_status(200).member("paused"), Value::Bool(true));
    let refused = purge(r#"{"now":true}"#).await.expect_error(409, 0, "Conflict");
    assert!(refused.message().contains("it is paused"), "{}", refused.message());
    assert_eq!(figures().await, (0, 3), "a paused purge removes nothing");
    purge(r#"{"paused":false}"#).await.expect_status(200);
    let report = purge(r#"{"now":true}"#).await.expect_status(200);
    assert_eq!(report.member("purgedItems"), Value::Int(3));
    assert_eq!(figures().await, (0, 0));
    for body in ["{}", r#"{"paused":true,"now":true}"#, r#"{"now":false}"#, r#"{"now":true,"x":1}"#] {
        purge(body).await.expect_error(400, 0, "BadRequest");
    }
    let status = server.admin("GET", "/_bolide/status", "").send().await.expect_status(200);
    assert_eq!(status.member("containers"), Value::Int(1));
    assert!(
        status.member("clock").get("now").is_some() && status.member("purge").get("purgedItems").is_some()
    );
    server.admin("GET", "/_bolide/ttl/db/none", "").send().await.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn lifecycle_settings_are_shown_changed_by_name_and_refused_whole() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    let patch = |body: &str| server.admin("PATCH", "/_bolide/ttl/db/c", body).send();
    let shown = patch(r#"{"maxInstantExpiry":0.25}"#).await.expect_status(200);
    assert_eq!(shown.member("defaultTtl"), Value::Int(10));
    assert_eq!(shown.member("lifecycle").get("maxInstantExpiry"), Some(&Value::Double(0.25)));
    for (body, names) in [
        (r#"{"maxInstantExpiry":2}"#, "maxInstantExpiry"),
        (r#"{"maxInstantExpiry":0.5,"immortality":true}"#, "immortality"),
        (r#"{"maxInstantExpiry":0.5,"historyMinutes":null}"#, "changeFeedPolicy"),
        ("[]", "object"),
    ] {
        let refused = patch(body).await.expect_error(400, 0, "BadRequest");
        assert!(refused.message().contains(names), "{}", refused.message());
    }
    let shown = server.admin("GET", "/_bolide/ttl/db/c", "").send().await.expect_status(200);
    assert_eq!(
        shown.member("lifecycle").get("maxInstantExpiry"),
        Some(&Value::Double(0.25)),
        "nothing changed"
    );
    let shown = patch(r#"{"maxInstantExpiry":null}"#).await.expect_status(200);
    assert_eq!(shown.member("lifecycle").get("maxInstantExpiry"), Some(&Value::Null));
    assert_eq!(shown.member("wishes"), shown.member("lifecycle"), "the former name");
    for (path, status, code) in [
        ("/_bolide/ttl/db/none", 404, "NotFound"),
        ("/_bolide/ttl/db/c?api=mongodb", 404, "NotFound"),
        ("/_bolide/ttl/db/c?api=sql", 400, "BadRequest"),
    ] {
        server.admin("PATCH", path, "{}").send().await.expect_error(status, 0, code);
    }
}

#[tokio::test]
async fn the_collections_of_the_system_are_nobodys() {
    let server = Server::start().await;
    for (database, name) in [("admin", "system.users"), ("admin", "users")] {
        let definition = engine::CollectionDefinition::default();
        server.engine.create_collection(database, name, definition, None).unwrap();
    }
    for (method, what, body) in [
        ("GET", "ttl", ""),
        ("PATCH", "ttl", r#"{"maxInstantExpiry":0.5}"#),
        ("GET", "hold", ""),
        ("GET", "export", ""),
    ] {
        let path = |name: &str| format!("/_bolide/{what}/admin/{name}?api=mongodb");
        let answer = server.admin(method, &path("users"), body).send().await;
        assert!(answer.status < 300, "{method} {what}: {}", answer.text());
        let refused = server.admin(method, &path("system.users"), body).send().await;
        refused.expect_error(404, 0, "NotFound");
    }
    let listed = server.admin("GET", "/_bolide/containers", "").send().await.expect_status(200);
    assert!(listed.text().contains("\"users\"") && !listed.text().contains("system."), "{}", listed.text());
}

#[tokio::test]
async fn t30_a_guarded_change_wants_the_header() {
    let server = Server::with_container("").await;
    server.create("a", "{\"id\":\"x\",\"pk\":\"a\"}").await.expect_status(201);
    let guard = r#"{"maxInstantExpiry":0.5}"#;
    server.admin("PATCH", "/_bolide/ttl/db/c", guard).send().await.expect_status(200);
    server.advance(60);
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":60}"#;
    let refused = server.put("/dbs/db/colls/c", body).send().await.expect_error(403, 9030, "Forbidden");
    assert!(refused.message().contains("1 of 1 living items"), "{}", refused.message());
    assert!(refused.message().contains("x-bolide-confirm-expiry"), "{}", refused.message());
    server.read("a", "x").await.expect_status(200);
    let confirmed = server.put("/dbs/db/colls/c", body).header("x-bolide-confirm-expiry", "true");
    confirmed.send().await.expect_status(200);
    server.read("a", "x").await.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn t30_forecast_and_dry_run_are_told() {
    let server = Server::with_container("\"defaultTtl\":100").await;
    for (id, ttl) in [("a", ""), ("b", ",\"ttl\":30"), ("c", ",\"ttl\":-1"), ("d", ",\"ttl\":5000")] {
        server.create("p", &format!("{{\"id\":\"{id}\",\"pk\":\"p\"{ttl}}}")).await.expect_status(201);
    }
    let show = |query: &str| server.admin("GET", &format!("/_bolide/ttl/db/c?{query}"), "").send();
    let items = |value: &Value| value.get("items").and_then(Value::as_i64).unwrap();
    let forecast = show("forecast=minute&count=2").await.expect_status(200).member("forecast");
    let Some(Value::Array(intervals)) = forecast.get("intervals") else { panic!("{forecast:?}") };
    assert_eq!(intervals.iter().map(items).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(["overdue", "later", "never"].map(|name| items(forecast.get(name).unwrap())), [0, 1, 1]);
    assert_eq!(forecast.get("exact"), Some(&Value::Bool(true)));

    server.advance(20);
    for (word, expiring, living) in [("20", 1, 3), ("21", 0, 4), ("-1", 0, 4), ("off", 0, 4)] {
        let dry_run = show(&format!("defaultTtl={word}")).await.expect_status(200).member("dryRun");
        let figures = ["expiringAtOnce", "livingThen"].map(|name| items(dry_run.get(name).unwrap()));
        assert_eq!(dry_run.get("dyingAtOnce"), dry_run.get("expiringAtOnce"), "the former name");
        assert_eq!(figures, [expiring, living], "{word}");
    }
    for query in [
        "forecast=week",
        "forecast=day&count=x",
        "forecast=day&count=0",
        "forecast=day&count=9999",
        "defaultTtl=0",
        "defaultTtl=x",
    ] {
        show(query).await.expect_error(400, 0, "BadRequest");
    }
}

/// T23: figures for Prometheus; names of containers only with the key.
#[tokio::test]
async fn the_metrics_tell_of_the_purge_and_name_containers_to_operators_only_t23() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    for id in ["1", "2"] {
        server.create("a", &format!(r#"{{"id":"{id}","pk":"a"}}"#)).await.expect_status(201);
    }
    server.admin("POST", "/_bolide/clock", r#"{"advanceSeconds":15}"#).send().await.expect_status(200);
    let open = server.get("/metrics").unsigned().send().await.expect_status(200);
    let text = open.text();
    for line in [
        "bolide_purge_backlog_items 2",
        "bolide_purge_oldest_age_seconds 5.000",
        "bolide_purged_items_total 0",
        "bolide_clock_suspect 0",
        "bolide_requests_total{api=\"nosql\",operation=\"CreateItem\",outcome=\"ok\"} 2",
        "# TYPE bolide_purged_items_total counter",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line:?} in {text}");
    }
    assert!(!text.contains("container=\""), "{text}");
    let named = server.admin("GET", "/metrics", "").send().await.expect_status(200);
    let line = "bolide_container_purge_backlog_items{api=\"nosql\",database=\"db\",container=\"c\"} 2";
    assert!(named.text().contains(line), "{}", named.text());
}

/// T23: how fast items expire and are purged, and whether that is enough, as the loop around the purge has measured it.
#[tokio::test]
async fn the_pace_of_the_purge_is_told_by_status_and_metrics_t23() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    let quiet = PaceStatus { drained_in_seconds: Some(0), ..PaceStatus::default() };
    let draining = PaceStatus {
        expiring_per_second: 20,
        purging_per_second: 520,
        drained_in_seconds: Some(7),
        is_capacity_short: false,
    };
    let short = PaceStatus {
        expiring_per_second: 4400,
        purging_per_second: 1200,
        drained_in_seconds: None,
        is_capacity_short: true,
    };
    for pace in [quiet, draining, short] {
        server.engine.note_purge_pace(pace);
        let shown = server.admin("GET", "/_bolide/purge", "").send().await.expect_status(200).member("pace");
        let status = server.admin("GET", "/_bolide/status", "").send().await.expect_status(200);
        assert_eq!(status.member("purge").get("pace"), Some(&shown));
        let drained = pace.drained_in_seconds.map_or("null".to_owned(), |seconds| seconds.to_string());
        let PaceStatus { expiring_per_second, purging_per_second, is_capacity_short, .. } = pace;
        let expected = format!(
            r#"{{"expiringPerSecond":{expiring_per_second},"purgingPerSecond":{purging_per_second},"drainedInSeconds":{drained},"capacityIsShort":{is_capacity_short}}}"#
        );
        assert_eq!(shown.to_json(), expected);
        let page = server.get("/metrics").unsigned().send().await.expect_status(200).text();
        for line in [
            format!("bolide_purge_expiring_per_second {expiring_per_second}"),
            format!("bolide_purge_purging_per_second {purging_per_second}"),
            format!("bolide_purge_capacity_short {}", u8::from(is_capacity_short)),
        ] {
            assert!(page.lines().any(|found| found == line), "no {line:?} in {page}");
        }
    }
}

/// T22: bytes of one item are damaged in the store; the purge removes the others and reports the damage.
#[tokio::test]
async fn a_damaged_item_is_told_by_status_and_metrics_t22() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    for id in ["1", "2", "3"] {
        server.create("a", &format!(r#"{{"id":"{id}","pk":"a"}}"#)).await.expect_status(201);
    }
    cut_second_item(&server);
    server.advance(15);
    let after = server.admin("POST", "/_bolide/purge", r#"{"now":true}"#).send().await.expect_status(200);
    assert_eq!((after.member("setAside"), after.member("purgedItems")), (Value::Int(1), Value::Int(2)));
    let shown = server.admin("GET", "/_bolide/purge", "").send().await.expect_status(200);
    let Value::Array(containers) = shown.member("containers") else { panic!("{}", shown.text()) };
    assert_eq!(containers[0].get("purge").and_then(|of| of.get("setAside")), Some(&Value::Int(1)));
    let page = server.get("/metrics").unsigned().send().await.expect_status(200).text();
    assert!(page.lines().any(|line| line == "bolide_purge_set_aside_items 1"), "{page}");
    let news = server.engine.take_purge_news();
    assert!(matches!(&news[..], [PurgeNews::SetAside { container, .. }] if container == "db/c"), "{news:?}");
}

/// Cuts some of the last bytes off the second item.
fn cut_second_item(server: &Server) {
    let damage = storage::transact(&*server.store, storage::Lanes::all(), |tx| {
        let all = storage::KeyRange::all();
        let (key, value) =
            tx.scan(storage::Keyspace::Item, all, storage::Direction::Forward).nth(1).expect("an item")?;
        tx.put(storage::Keyspace::Item, key.to_vec(), value.slice(..value.len() - 4));
        Ok::<_, storage::Error>(())
    });
    damage.wait().unwrap();
}

/// T15: an expired item that cannot be read does not exist; a live one is an error that says what to do.
#[tokio::test]
async fn t15_the_id_of_a_damaged_item_that_has_expired_is_free() {
    let more = r#""defaultTtl":10,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/n"]}]}"#;
    let server = Server::with_container(more).await;
    let item = |id: &str| format!(r#"{{"id":"{id}","pk":"a","n":"{id}"}}"#);
    for id in ["1", "2", "3"] {
        server.create("a", &item(id)).await.expect_status(201);
    }
    cut_second_item(&server);
    let living = server.read("a", "2").await.expect_error(500, 0, "InternalServerError");
    assert!(living.message().contains("bolide check --repair"), "{}", living.message());
    server.advance(10);
    server.read("a", "2").await.expect_error(404, 0, "NotFound");
    let replace = server.put("/dbs/db/colls/c/docs/2", &item("2")).key("a");
    replace.send().await.expect_error(404, 0, "NotFound");
    server.delete("/dbs/db/colls/c/docs/2").key("a").send().await.expect_error(404, 0, "NotFound");
    server.create("a", &item("2")).await.expect_status(201);
    server.read("a", "2").await.expect_status(200);
    let found = server.query("SELECT VALUE c.id FROM c WHERE c.n = '2'").await.expect_status(200);
    assert_eq!(found.member("Documents").to_json(), r#"["2"]"#);
    let purged = server.admin("POST", "/_bolide/purge", r#"{"now":true}"#).send().await.expect_status(200);
    assert_eq!((purged.member("setAside"), purged.member("purgedItems")), (Value::Int(1), Value::Int(2)));
    server.read("a", "2").await.expect_status(200);
}

/// Every operation is counted under its own name, with any result; and the whole page is in Prometheus' format, whatever
/// the names of containers.
#[tokio::test]
async fn the_metrics_page_is_well_formed_and_counts_by_operation() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    let odd = r#"{"id":"a\"} 1","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":1}"#;
    server.post("/dbs/db/colls", odd).send().await.expect_status(201);
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(409);
    server.get("/dbs/db/colls/c/docs/2").key("a").send().await.expect_status(404);
    server.get("/nothing").send().await.expect_status(404);
    server.get("/dbs").unsigned().send().await.expect_status(401);
    server.admin("GET", "/_bolide/clock", "").send().await.expect_status(200);
    let page = server.admin("GET", "/metrics", "").send().await.expect_status(200).text();
    let families = telemetry::parse(&page).unwrap();
    let requests = families.iter().find(|family| family.name == "bolide_requests_total").unwrap();
    let count = |operation: &str, outcome: &str| {
        let matches = |sample: &&telemetry::Sample| {
            (sample.label("operation"), sample.label("outcome")) == (Some(operation), Some(outcome))
        };
        requests.samples.iter().find(matches).map_or(0, |sample| sample.value as u64)
    };
    for (operation, outcome, expected) in [
        ("CreateDatabase", "ok", 1),
        ("CreateContainer", "ok", 2),
        ("CreateItem", "ok", 1),
        ("CreateItem", "conflict", 1),
        ("ReadItem", "not_found", 1),
        ("ListDatabases", "unauthorized", 1),
        ("unknown", "not_found", 1),
        ("AdminReadClock", "ok", 1),
    ] {
        assert_eq!(count(operation, outcome), expected, "{operation} {outcome} in {page}");
    }
    let units = "bolide_request_units_total{api=\"nosql\",operation=\"ReadItem\"} 1.00";
    assert!(page.lines().any(|line| line == units), "{page}");
    let admin = "bolide_request_units_total{api=\"nosql\",operation=\"AdminReadClock\"} 0.00";
    assert!(page.lines().any(|line| line == admin), "{page}");
    for figure in ["bolide_received_bytes_total", "bolide_sent_bytes_total", "bolide_connections_total"] {
        let family = families.iter().find(|family| family.name == figure).unwrap();
        assert!(family.samples[0].value >= 9.0, "{figure} in {page}");
    }
}

/// T23: one container is purged on demand; backlog, age and results are shown for each.
#[tokio::test]
async fn one_container_is_purged_on_demand_t23() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    server.admin("POST", "/_bolide/clock", r#"{"advanceSeconds":12}"#).send().await.expect_status(200);
    let ttl = server.admin("GET", "/_bolide/ttl/db/c", "").send().await.expect_status(200);
    assert_eq!(ttl.member("purge").get("oldestAgeSeconds"), Some(&Value::Int(2)));
    let steer = |body: &str| server.admin("POST", "/_bolide/purge", body).send();
    steer(r#"{"now":true,"database":"db","container":"none"}"#).await.expect_error(404, 0, "NotFound");
    for body in [
        r#"{"now":true,"database":"db"}"#,
        r#"{"now":true,"paused":false}"#,
        r#"{"database":"db","container":"c"}"#,
        r#"{"now":true,"database":"db","container":"c","api":"sql"}"#,
    ] {
        steer(body).await.expect_error(400, 0, "BadRequest");
    }
    let done = steer(r#"{"container":"c","database":"db","now":true}"#).await.expect_status(200);
    assert_eq!((done.member("purgedItems"), done.member("oldestAgeSeconds")), (Value::Int(1), Value::Null));
    let shown = server.admin("GET", "/_bolide/purge", "").send().await.expect_status(200);
    let containers = shown.member("containers");
    let one = containers.as_array().and_then(|all| all.first()).expect("the container is told of");
    assert_eq!(one.get("container"), Some(&Value::String("c".into())));
    let purged = one.get("purge").and_then(|purge| purge.get("purged")).and_then(|tally| tally.get("items"));
    assert_eq!(purged, Some(&Value::Int(1)));
}

#[tokio::test]
async fn t31_items_and_containers_are_held_and_freed() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    for id in ["x", "y"] {
        server.create("a", &format!("{{\"id\":\"{id}\",\"pk\":\"a\"}}")).await.expect_status(201);
    }
    let hold = |method: &str, body: &str| server.admin(method, "/_bolide/hold/db/c", body).send();
    let x = r#"{"id":"x","partitionKey":["a"]}"#;
    hold("PUT", r#"{"id":"x","partitionKey":"a","reason":"case 7"}"#).await.expect_status(200);
    server.advance(60);
    server.read("a", "x").await.expect_status(200);
    hold("PUT", r#"{"id":"y","partitionKey":["a"]}"#).await.expect_error(404, 0, "NotFound");
    let refused = server.delete("/dbs/db/colls/c/docs/x").key("a").send().await;
    let refused = refused.expect_error(403, 9031, "Forbidden");
    assert!(refused.message().contains("case 7"), "{}", refused.message());
    server.delete("/dbs/db/colls/c").send().await.expect_error(403, 9031, "Forbidden");
    server.delete("/dbs/db").send().await.expect_error(403, 9031, "Forbidden");

    let listed = hold("GET", "").await.expect_status(200).member("held");
    let Value::Array(listed) = listed else { panic!("{listed:?}") };
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].get("id").and_then(Value::as_str), Some("x"));
    assert_eq!(listed[0].get("partitionKey").map(Value::to_json).as_deref(), Some(r#"["a"]"#));
    hold("DELETE", x).await.expect_status(200);
    server.read("a", "x").await.expect_error(404, 0, "NotFound");
    hold("DELETE", x).await.expect_error(404, 0, "NotFound");
    for body in ["{}", r#"{"id":"x"}"#, r#"{"_id":1}"#, r#"{"id":"x","partitionKey":["a"],"n":1}"#] {
        hold("PUT", body).await.expect_error(400, 0, "BadRequest");
    }

    server.create("a", r#"{"id":"z","pk":"a"}"#).await.expect_status(201);
    let set_lifecycle = |body: &str| server.admin("PATCH", "/_bolide/ttl/db/c", body).send();
    let shown = set_lifecycle(r#"{"hold":{"reason":"case 8"}}"#).await.expect_status(200);
    assert_eq!(
        shown.member("lifecycle").get("hold").map(Value::to_json).as_deref(),
        Some(r#"{"reason":"case 8"}"#)
    );
    server.advance(60);
    server.read("a", "z").await.expect_status(200);
    server.delete("/dbs/db/colls/c/docs/z").key("a").send().await.expect_error(403, 9031, "Forbidden");
    server.create("a", r#"{"id":"new","pk":"a"}"#).await.expect_status(201);
    set_lifecycle(r#"{"hold":null}"#).await.expect_status(200);
    server.read("a", "z").await.expect_error(404, 0, "NotFound");
    server.read("a", "new").await.expect_status(200);
}

#[tokio::test]
async fn status_has_the_open_connections_by_protocol() {
    let fixture = Fixture::empty().await;
    let open = async || {
        let status = fixture.server.admin("GET", "/_bolide/status", "").send().await.expect_status(200);
        let connections = status.member("connections");
        ["http", "direct", "mongodb"].map(|name| connections.get(name).and_then(Value::as_i64).unwrap())
    };
    // The connection of this request is among them. Earlier ones end later.
    while open().await != [1, 0, 0] {}
    let (one, two) = (fixture.connect().await, fixture.connect().await);
    while open().await != [1, 2, 0] {}
    drop((one, two));
    while open().await != [1, 0, 0] {}
}
