//! Export, import and the catalog through the admin API.

use document::Value;

use crate::client::{Reply, Server};

async fn import(server: &Server, parameters: &str, body: &str) -> Reply {
    server.admin("POST", &format!("/_bolide/import/db/c{parameters}"), body).send().await
}

fn figures(report: &Reply) -> (i64, i64, i64) {
    let figure = |name: &str| report.member(name).as_i64().unwrap();
    (figure("lines"), figure("created"), figure("replaced"))
}

#[tokio::test]
async fn what_was_imported_is_exported_to_the_byte() {
    let server = Server::with_container("").await;
    let lines = [
        r#"{"id":"1","pk":"a","big":9223372036854775807,"small":-0.0,"exp":1e+300,"z":1,"a":2}"#,
        r#"{"pk":"é\u0000","id":"2","nested":[{},[],null,true,"\"\\"]}"#,
    ];
    let report = import(&server, "", &format!("{}\n\n{}\n", lines[0], lines[1])).await.expect_status(200);
    assert_eq!(figures(&report), (4, 2, 0));
    let page = server.admin("GET", "/_bolide/export/db/c", "").send().await.expect_status(200);
    assert_eq!(page.text(), format!("{}\n{}\n", lines[0], lines[1]));
    assert_eq!(
        (page.header("x-bolide-export-count"), page.header("x-bolide-export-next")),
        (Some("2"), None)
    );
    let page = server.admin("GET", "/_bolide/export/db/c?system=true&maxBytes=1", "").send().await;
    let item = document::parse_json(page.body.trim_ascii()).unwrap();
    let read = server.read("a", "1").await.expect_status(200).json();
    assert_eq!(item, read, "with the system's properties it is what clients see");
    let next = page.header("x-bolide-export-next").unwrap().to_owned();
    let rest = server.admin("GET", &format!("/_bolide/export/db/c?after={next}"), "").send().await;
    assert_eq!(rest.text(), format!("{}\n", lines[1]));
    let again = import(&server, "", &item.to_json()).await.expect_status(200);
    assert_eq!(figures(&again), (1, 0, 1), "the system's properties are dropped");
}

#[tokio::test]
async fn refused_lines_are_named_and_stop_no_others() {
    let server = Server::with_container(r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]}"#).await;
    let body = [
        r#"{"id":"1","pk":"a","mail":"x"}"#,
        "{\"id\":\"2\"",
        "[1]",
        r#"{"id":"3","pk":"a","ttl":0}"#,
        r#"{"id":"4","pk":"a","mail":"x"}"#,
        r#"{"pk":"a"}"#,
        r#"{"id":"5","pk":"a"}"#,
    ];
    let report = import(&server, "", &body.join("\n")).await.expect_status(200);
    assert_eq!(figures(&report), (7, 2, 0));
    let failed = report.member("failed");
    let failed = failed.as_array().unwrap().iter().map(|failure| {
        let number = |name| failure.get(name).and_then(Value::as_i64).unwrap();
        (number("line"), number("status"), failure.get("error").and_then(Value::as_str).unwrap().to_owned())
    });
    let failed: Vec<_> = failed.collect();
    let at: Vec<_> = failed.iter().map(|(line, status, _)| (*line, *status)).collect();
    assert_eq!(at, [(2, 400), (3, 400), (4, 400), (5, 409), (6, 400)], "{failed:?}");
    assert!(failed[2].2.contains("ttl") && failed[4].2.contains("id"), "{failed:?}");
    let insert = import(&server, "?mode=insert", body[0]).await.expect_status(200);
    assert_eq!(figures(&insert), (1, 0, 0));
    assert!(insert.text().contains("409"), "{}", insert.text());
    import(&server, "?mode=replace", "").await.expect_error(400, 0, "BadRequest");
    let nowhere = server.admin("POST", "/_bolide/import/db/other", "").send().await;
    nowhere.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn a_page_may_be_larger_than_a_request_of_a_client() {
    let server = Server::with_container("").await;
    let line = |n: usize| format!("{{\"id\":\"{n}\",\"pk\":\"a\",\"text\":\"{}\"}}", "x".repeat(900_000));
    let body = (0..4).map(line).collect::<Vec<_>>().join("\n");
    assert_eq!(figures(&import(&server, "", &body).await.expect_status(200)), (4, 4, 0));
    server.post("/dbs/db/colls/c/docs", &body).key("a").send().await.expect_status(413);
    import(&server, "", &" ".repeat(21 * 1024 * 1024)).await.expect_status(413);
}

#[tokio::test]
async fn the_export_is_asked_for_in_words_that_are_checked() {
    let server = Server::with_container("").await;
    for parameters in
        ["?maxBytes=0", "?maxBytes=x", "?maxBytes=99999999", "?after=x", "?system=1", "?api=sql"]
    {
        let refused = server.admin("GET", &format!("/_bolide/export/db/c{parameters}"), "").send().await;
        refused.expect_error(400, 0, "BadRequest");
    }
    server.get("/_bolide/export/db/c").send().await.expect_error(401, 0, "Unauthorized");
    let command = server.admin("POST", "/_bolide/command", "").send().await;
    assert!(command.expect_status(400).message().contains("MongoDB API is off"));
}

#[tokio::test]
async fn a_container_is_made_again_from_its_description() {
    let server = Server::with_container(
        r#""defaultTtl":60,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]},"indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}"#,
    )
    .await;
    let described = server.admin("GET", "/_bolide/container/db/c", "").send().await.expect_status(200);
    let make = |path: &str| server.admin("PUT", path, &described.text()).send();
    let answer = make("/_bolide/container/other/d").await.expect_status(200);
    assert_eq!(answer.member("created"), Value::Bool(true));
    let again = server.admin("GET", "/_bolide/container/other/d", "").send().await;
    assert_eq!(again.text().replace("\"id\":\"d\"", "\"id\":\"c\""), described.text());
    assert_eq!(make("/_bolide/container/other/d").await.member("created"), Value::Bool(false));
    let listed = server.admin("GET", "/_bolide/containers", "").send().await.expect_status(200);
    let listed = listed.member("containers");
    let names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry.get("database").cloned(), entry.get("defaultTtl").and_then(Value::as_i64)))
        .collect();
    let text = |text: &str| Some(Value::String(text.to_owned()));
    assert_eq!(names, [(text("db"), Some(60)), (text("other"), Some(60))]);
    for body in
        ["{}", r#"{"definition":1}"#, r#"{"definition":{"partitionKey":{"paths":["/a"]}},"throughput":1}"#]
    {
        let refused = server.admin("PUT", "/_bolide/container/other/e", body).send().await;
        refused.expect_error(400, 0, "BadRequest");
    }
}
