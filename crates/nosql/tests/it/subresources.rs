//! Users and scripts: stored and returned, never run.

use crate::client::Server;

#[tokio::test]
async fn definitions_are_kept_replaced_queried_and_deleted() {
    let server = Server::with_container("").await;
    for (path, envelope, extra) in [
        ("/dbs/db/users", "Users", ""),
        ("/dbs/db/colls/c/sprocs", "StoredProcedures", r#","body":"function () {}","later":{"a":[1]}"#),
        ("/dbs/db/colls/c/udfs", "UserDefinedFunctions", r#","body":"function () {}""#),
        (
            "/dbs/db/colls/c/triggers",
            "Triggers",
            r#","body":"f","triggerType":"Pre","triggerOperation":"All""#,
        ),
    ] {
        let body = |id: &str| format!("{{\"id\":\"{id}\"{extra}}}");
        let created = server.post(path, &body("one")).send().await.expect_status(201);
        assert!(
            created.string("_self").ends_with(&format!("{}/", created.string("_rid"))),
            "{}",
            created.text()
        );
        server.post(path, &body("one")).send().await.expect_error(409, 0, "Conflict");
        server.post(path, &body("one")).upsert().send().await.expect_status(200);
        server.post(path, &body("two")).upsert().send().await.expect_status(201);
        assert_eq!(server.get(path).send().await.ids(envelope), ["one", "two"]);
        let query = server.post(path, r#"{"query":"SELECT * FROM root r WHERE r.id='two'"}"#);
        let found = query.header("content-type", "application/query+json").send().await;
        assert_eq!(found.expect_status(200).ids(envelope), ["two"]);
        let one = format!("{path}/one");
        // Scripts belong to the container's session, as its items do.
        for reply in [&created, &server.get(&one).send().await] {
            let token = reply.header("x-ms-session-token");
            assert_eq!(
                token.is_some_and(|token| token.starts_with("0:-1#")),
                envelope != "Users",
                "{reply:?}"
            );
        }
        let renamed = server.put(&one, &body("three")).send().await.expect_status(200);
        assert_eq!(renamed.string("id"), "three");
        let is_kept = renamed.member("later").to_json() == r#"{"a":[1]}"#;
        assert_eq!(is_kept, envelope == "StoredProcedures", "what is not known is kept: {renamed:?}");
        server.get(&one).send().await.expect_error(404, 0, "NotFound");
        server.get(&format!("{path}/three")).send().await.expect_status(200);
        server.delete(&format!("{path}/three")).send().await.expect_status(204);
        server.delete(&format!("{path}/three")).send().await.expect_error(404, 0, "NotFound");
        server.post(path, "{}").send().await.expect_error(400, 0, "BadRequest");
    }
    server.get("/dbs/none/users").send().await.expect_error(404, 1003, "NotFound");
    server.get("/dbs/db/colls/none/sprocs").send().await.expect_error(404, 1003, "NotFound");
}

#[tokio::test]
async fn nothing_is_run() {
    let server = Server::with_container("").await;
    server.post("/dbs/db/colls/c/sprocs", r#"{"id":"p","body":"f"}"#).send().await.expect_status(201);
    let run = server.post("/dbs/db/colls/c/sprocs/p", "[]").key("a").send().await;
    assert!(run.expect_error(400, 0, "NotSupported").message().contains("stored procedures"));
    server.post("/dbs/db/colls/c/sprocs/none", "[]").key("a").send().await.expect_error(404, 0, "NotFound");
    let item = server.post("/dbs/db/colls/c/docs", r#"{"id":"1","pk":"a"}"#).key("a");
    let item = item.header("x-ms-documentdb-pre-trigger-include", "t").send().await;
    assert!(item.expect_error(400, 0, "NotSupported").message().contains("server-side JavaScript"));
    let batch = r#"[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}}]"#;
    let batch =
        server.post("/dbs/db/colls/c/docs", batch).key("a").header("x-ms-cosmos-is-batch-request", "true");
    let batch =
        batch.header("x-ms-cosmos-batch-atomic", "true").header("x-ms-documentdb-post-trigger-include", "t");
    batch.send().await.expect_error(400, 0, "NotSupported");
    server.read("a", "1").await.expect_error(404, 0, "NotFound");
}
