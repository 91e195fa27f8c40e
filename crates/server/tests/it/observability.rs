//! Metrics and log of the running process, as an operator sees them.

use std::collections::BTreeMap;
use std::fs::{self, File};

use direct::{Account, Blocking, Call};
use document::Value;
use rntbd::OperationType;
use telemetry::ParsedFamily;

use crate::mongo_client::MongoClient;
use crate::process::{KEY, Server, command, now};

const QUERY: [(&str, &str); 3] = [
    ("x-ms-documentdb-isquery", "true"),
    ("content-type", "application/query+json"),
    ("x-ms-documentdb-query-enablecrosspartition", "true"),
];

fn metrics(server: &Server) -> Vec<ParsedFamily> {
    let (status, page) = server.admin("GET", "/metrics", "");
    assert_eq!(status, 200);
    telemetry::parse(&page).unwrap_or_else(|error| panic!("{error} in {page}"))
}

const BEGIN: &str = "<!-- the table of metrics begins -->";
const END: &str = "<!-- the table of metrics ends -->";

/// `UPDATE_DOCS=1` rewrites the table.
#[test]
fn the_documentation_has_every_metric() {
    let server = Server::start(&["--memory"]);
    let families = metrics(&server);
    let rows =
        families.iter().map(|family| format!("| `{}` | {} | {} |", family.name, family.kind, family.help));
    let rows = rows.collect::<Vec<_>>().join("\n");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/observability.md");
    let text = fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}\n\n| Metric | Kind | |\n|---|---|---|\n{rows}\n\n{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, &wanted).unwrap();
    } else {
        assert_eq!(text, wanted, "run this test with UPDATE_DOCS=1");
    }
}

#[test]
fn one_page_tells_of_both_apis_and_of_the_process() {
    let server = Server::start(&["--memory", "--slow-ms", "0"]);
    server.create_container("");
    assert_eq!((server.create("1"), server.read("1"), server.read("2")), (201, 200, 404));
    server.run_mongo(r#"{"insert": "c", "documents": [{"_id": 1}], "$db": "app"}"#);
    server.run_mongo(r#"{"find": "c", "$db": "app"}"#);
    let families: BTreeMap<String, ParsedFamily> =
        metrics(&server).into_iter().map(|family| (family.name.clone(), family)).collect();
    let figure = |name: &str, labels: &[(&str, &str)]| {
        let family = families.get(name.strip_suffix("_count").unwrap_or(name)).unwrap();
        let matches = |sample: &&telemetry::Sample| {
            sample.name == name && labels.iter().all(|(label, text)| sample.label(label) == Some(text))
        };
        family.samples.iter().find(matches).map_or(0.0, |sample| sample.value)
    };
    for (operation, outcome) in [
        ("ReadItem", "ok"),
        ("ReadItem", "not_found"),
        ("CreateItem", "ok"),
        ("insert", "ok"),
        ("find", "ok"),
    ] {
        let labels = [("operation", operation), ("outcome", outcome)];
        assert!((figure("bolide_requests_total", &labels) - 1.0).abs() < 0.5, "{operation} {outcome}");
    }
    for (api, operation, requests) in [("nosql", "ReadItem", 2.0), ("mongodb", "find", 1.0)] {
        let labels = [("api", api), ("operation", operation)];
        assert!((figure("bolide_request_duration_seconds_count", &labels) - requests).abs() < 0.5, "{api}");
        assert!(figure("bolide_request_units_total", &labels) >= 1.0, "{api}");
        assert!(figure("bolide_connections_total", &[("api", api)]) >= 2.0, "{api}");
        assert!(figure("bolide_slow_operations_total", &[("api", api)]) >= 2.0, "{api}");
    }
    assert!(figure("process_resident_memory_bytes", &[]) > 1e6);
    assert!(figure("process_start_time_seconds", &[]) > 1e9);
    assert!(figure("process_open_fds", &[]) > 2.0);
}

/// Returns the lines that a server writes to standard error during some requests.
fn log_of(arguments: &[&str], requests: impl FnOnce(&Server)) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let server = Server::start_command(
        command()
            .args(["--listen", "127.0.0.1:0", "--memory"])
            .args(arguments)
            .stderr(File::create(&path).unwrap()),
    );
    requests(&server);
    assert_eq!(server.terminate(), Some(0));
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// Sends queries by both APIs and direct mode with values that must not be logged, and a path that tries to begin a line of
/// its own.
fn secretive(server: &Server) {
    server.create_container("");
    assert_eq!(server.create("1"), 201);
    let query = r#"{"query":"SELECT * FROM c WHERE c.name = 'literal secret' AND c.n > @n","parameters":[{"name":"@n","value":"given secret"}]}"#;
    assert_eq!(server.request("POST", "/dbs/db/colls/c/docs", &QUERY, query).0, 200);
    assert_eq!(server.get("/nothing%0AERROR%20forged").0, 404);
    let (_, root) = server.open("/_explorer/emulator.pem");
    let account = Account { key: KEY.to_owned(), date: now() };
    let mut client = Blocking::connect(server.address.parse().unwrap(), root.as_bytes(), account).unwrap();
    let query = r#"{"query":"SELECT * FROM r WHERE r.id = 'direct secret'"}"#;
    assert_eq!(client.call(&Call::new(OperationType::Query, "dbs").payload(query)).unwrap().status, 200);
    server.run_mongo(r#"{"insert": "c", "documents": [{"_id": 1}], "$db": "app"}"#);
    server.run_mongo(r#"{"find": "c", "filter": {"name": "bson secret", "n": {"$gt": 7}}, "$db": "app"}"#);
    server.run_mongo(r#"{"createUser": "u", "pwd": "password secret", "roles": [], "$db": "app"}"#);
}

#[test]
fn slow_operations_are_json_lines_without_values() {
    let lines = log_of(&["--slow-ms", "0", "--log-format", "json", "--log", "debug"], secretive);
    let mut slow = BTreeMap::new();
    for line in &lines {
        let event = document::parse_json(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        for name in ["timestamp", "level", "target", "message"] {
            assert!(event.get(name).and_then(Value::as_str).is_some(), "no {name} in {line}");
        }
        for secret in
            ["literal secret", "given secret", "direct secret", "bson secret", "password secret", KEY]
        {
            assert!(!line.contains(secret), "{line}");
        }
        if event.get("target").and_then(Value::as_str) == Some("bolide::slow") {
            slow.insert(event.get("operation").and_then(Value::as_str).unwrap().to_owned(), event);
        }
    }
    let text =
        |operation: &str, field: &str| slow[operation].get(field).and_then(Value::as_str).map(str::to_owned);
    let query = text("QueryItems", "query").unwrap();
    assert_eq!(query, "SELECT * FROM c WHERE c.name = ? AND c.n > @n");
    assert!(text("QueryItems", "plan").unwrap().starts_with("index "));
    assert!(text("QueryItems", "activity").is_some());
    assert_eq!(text("QueryItems", "container").as_deref(), Some("c"));
    // A query in direct mode.
    assert_eq!(text("QueryDatabases", "query").as_deref(), Some("SELECT * FROM r WHERE r.id = ?"));
    assert_eq!(text("find", "container").as_deref(), Some("c"));
    assert_eq!(text("find", "plan").as_deref(), Some("COLLSCAN"));
    assert_eq!(text("find", "query").as_deref(), Some("filter: {name: ?, n: {$gt: ?}}"));
    assert_eq!((text("createUser", "query"), text("createUser", "container")), (None, None));
    assert_eq!(slow["CreateItem"].get("status"), Some(&Value::Int(201)));
    assert!(slow["CreateItem"].get("duration_ms").is_some());
}

/// What the log tells of a command of the MongoDB API: documents that were examined, entries of indexes, documents shown.
#[test]
fn a_slow_command_tells_what_its_own_batch_has_examined() {
    let document = |json: &str| bson::parse_extended_json(json).unwrap().as_document().unwrap().clone();
    let lines = log_of(&["--slow-ms", "0", "--log-format", "json"], |server| {
        let mut client = MongoClient::connect(server);
        let mut run = |json: &str| client.run("app", document(json));
        run(r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#);
        let documents: Vec<String> =
            (0..400).map(|id| format!(r#"{{"_id": {id}, "a": {}, "b": {}}}"#, id % 2, id % 4)).collect();
        run(&format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(", ")));
        for opening in [
            r#"{"find": "c", "batchSize": 30"#,
            r#"{"find": "c", "sort": {"_id": 1}, "batchSize": 30"#,
            r#"{"find": "c", "filter": {"a": 1}, "batchSize": 30"#,
            r#"{"aggregate": "c", "pipeline": [{"$project": {"a": 1}}], "cursor": {"batchSize": 30}"#,
        ] {
            let opened = run(&format!("{opening}}}"));
            let cursor = opened.get("cursor").and_then(|cursor| cursor.as_document()?.get("id")).unwrap();
            let bson::Value::Int64(id) = cursor else { panic!("{opened:?}") };
            run(&format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c", "batchSize": 50}}"#));
        }
        run(r#"{"find": "c", "filter": {"b": 3}, "sort": {"t": 1}, "limit": 5}"#);
        run(r#"{"count": "c", "query": {"a": 0}}"#);
        run(r#"{"find": "c", "filter": {"_id": 7}}"#);
    });
    let mut told = Vec::new();
    for line in &lines {
        let event = document::parse_json(line.as_bytes()).unwrap();
        let number = |field: &str| match event.get(field) {
            Some(Value::Int(number)) => *number,
            other => panic!("no {field} but {other:?} in {line}"),
        };
        let operation = event.get("operation").and_then(Value::as_str).unwrap_or_default().to_owned();
        if ["find", "getMore", "aggregate", "count"].contains(&operation.as_str()) {
            let figures = ["items_examined", "index_entries_examined", "items_returned"].map(number);
            told.push((operation, figures));
        }
    }
    let expected = [
        ("find", [30, 0, 30]),
        ("getMore", [50, 0, 50]),
        ("find", [30, 30, 30]),
        ("getMore", [50, 50, 50]),
        ("find", [30, 30, 30]),
        ("getMore", [50, 50, 50]),
        ("aggregate", [30, 0, 30]),
        ("getMore", [50, 0, 50]),
        ("find", [400, 0, 5]),
        ("count", [0, 200, 200]),
        ("find", [1, 0, 1]),
    ];
    assert_eq!(told, expected.map(|(operation, figures)| (operation.to_owned(), figures)));
}

#[test]
fn an_operator_may_ask_for_texts_and_for_none_at_all() {
    let lines = log_of(&["--slow-ms", "0", "--slow-log-texts"], secretive);
    let has = |text: &str| lines.iter().any(|line| line.contains(text));
    assert!(has("literal secret") && has("@n=") && has("given secret"), "{lines:?}");
    assert!(has("direct secret") && has("bson secret"), "{lines:?}");
    assert!(!has("password secret") && !has(KEY), "{lines:?}");
    assert_eq!(log_of(&["--slow-ms", "off"], secretive), Vec::<String>::new());
}

#[test]
fn no_client_can_begin_a_line_of_the_log() {
    let lines = log_of(&["--log", "debug"], secretive);
    let forged: Vec<_> = lines.iter().filter(|line| line.contains("forged")).collect();
    assert!(!forged.is_empty() && forged.iter().all(|line| line.contains("nothing")), "{lines:?}");
}
