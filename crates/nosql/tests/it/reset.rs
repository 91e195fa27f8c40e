//! `POST /_bolide/reset`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use document::Value;
use nosql::{AdminHooks, CreatedData, InitialData, Reset};

use crate::client::Server;

struct Promise(Result<usize, &'static str>);

impl InitialData for Promise {
    fn make(&self) -> Pin<Box<dyn Future<Output = Result<CreatedData, String>> + Send + '_>> {
        let made = |items| CreatedData { names: vec!["database 'a'".to_owned()], items };
        Box::pin(async move { self.0.map(made).map_err(str::to_owned) })
    }
}

async fn server(initial_data: Option<Result<usize, &'static str>>) -> Server {
    let initial_data = initial_data.map(|outcome| Arc::new(Promise(outcome)) as Arc<dyn InitialData>);
    let server = Server::with_admin_hooks(AdminHooks {
        reset: Reset::Allowed { initial_data },
        ..AdminHooks::default()
    })
    .await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    server.create_container("c", "").await.expect_status(201);
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    server
}

#[tokio::test]
async fn it_needs_leave_and_says_of_whom() {
    let server = Server::with_container("").await;
    let refused = server.admin("POST", "/_bolide/reset", "").send().await.expect_error(403, 0, "Forbidden");
    assert!(refused.message().contains("--allow-reset"), "{}", refused.message());
    server.get("/dbs/db").send().await.expect_status(200);
    server.post("/_bolide/reset", "").send().await.expect_error(401, 0, "Unauthorized");
    server.admin("GET", "/_bolide/reset", "").send().await.expect_error(405, 0, "MethodNotAllowed");
}

#[tokio::test]
async fn everything_is_gone_and_the_server_goes_on() {
    let server = server(None).await;
    server.admin("POST", "/_bolide/reset", "{\"now\":true}").send().await.expect_error(400, 0, "BadRequest");
    let reset = server.admin("POST", "/_bolide/reset", " {} ").send().await.expect_status(200);
    assert_eq!((reset.member("databases"), reset.member("seed")), (Value::Int(1), Value::Null));
    server.get("/dbs/db").send().await.expect_error(404, 0, "NotFound");
    server.read("a", "1").await.expect_error(404, 1003, "NotFound");
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    server.create_container("c", "").await.expect_status(201);
    server.read("a", "1").await.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn t31_it_is_refused_while_anything_is_held() {
    let server = server(None).await;
    let hold = r#"{"id":"1","partitionKey":["a"],"reason":"case 7"}"#;
    server.admin("PUT", "/_bolide/hold/db/c", hold).send().await.expect_status(200);
    let refused =
        server.admin("POST", "/_bolide/reset", "").send().await.expect_error(403, 9031, "Forbidden");
    assert!(refused.message().contains("case 7; 'db/c'"), "{}", refused.message());
    server.read("a", "1").await.expect_status(200);
}

#[tokio::test]
async fn what_the_server_starts_with_is_made_again() {
    let reset = server(Some(Ok(3))).await.admin("POST", "/_bolide/reset", "").send().await.expect_status(200);
    assert_eq!(reset.member("seed").to_json(), r#"{"made":["database 'a'"],"items":3}"#);
    let failing = server(Some(Err("no room"))).await;
    let failed = failing.admin("POST", "/_bolide/reset", "").send().await;
    let failed = failed.expect_error(503, 0, "ServiceUnavailable");
    assert!(failed.message().contains("was emptied") && failed.message().contains("no room"));
    failing.get("/dbs/db").send().await.expect_error(404, 0, "NotFound");
}
