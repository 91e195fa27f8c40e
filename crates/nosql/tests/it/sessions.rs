//! Session tokens in requests.

use nosql::{AccountSettings, Consistency};

use crate::client::Server;

#[tokio::test]
async fn a_token_from_the_future_is_not_available_and_nonsense_is_refused() {
    let server = Server::with_container("").await;
    let created = server.create("a", r#"{"id":"1","pk":"a"}"#).await;
    let token = created.header("x-ms-session-token").unwrap().to_owned();
    let lsn: u64 = token.rsplit('#').next().unwrap().parse().unwrap();
    let read = |token: &str| {
        let request = server.get("/dbs/db/colls/c/docs/1").key("a");
        request.header("x-ms-session-token", token).send()
    };
    read(&token).await.expect_status(200);
    read(&format!("0:-1#{}", lsn + 1)).await.expect_error(404, 1002, "NotFound");
    read(&format!("7:-1#{},0:-1#{lsn}", lsn + 1)).await.expect_status(200);
    for nonsense in ["x", "0:x", "0:-1#-1", "0"] {
        read(nonsense).await.expect_error(400, 0, "BadRequest");
    }
    let list = server.get("/dbs/db/colls/c/docs").header("x-ms-session-token", &format!("0:-1#{}", lsn + 9));
    list.send().await.expect_error(404, 1002, "NotFound");
    let weak = server.get("/dbs/db/colls/c/docs/1").key("a").header("x-ms-consistency-level", "Eventual");
    weak.header("x-ms-session-token", &format!("0:-1#{}", lsn + 9)).send().await.expect_status(200);
    let write = server.post("/dbs/db/colls/c/docs", r#"{"id":"2","pk":"a"}"#).key("a");
    write.header("x-ms-session-token", &format!("0:-1#{}", lsn + 9)).send().await.expect_status(201);
}

#[tokio::test]
async fn sessions_bind_no_reads_in_an_account_of_a_weaker_level() {
    for (level, status) in [(Consistency::Session, 404), (Consistency::Eventual, 200)] {
        let settings = AccountSettings { default_consistency: Some(level), ..Default::default() };
        let server = Server::with_account(settings).await;
        server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
        server.create_container("c", "").await.expect_status(201);
        server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
        let read = server.get("/dbs/db/colls/c/docs/1").key("a");
        read.header("x-ms-session-token", "0:-1#1000").send().await.expect_status(status);
    }
}

#[tokio::test]
async fn tokens_grow_with_writes_and_stay_with_reads() {
    let server = Server::with_container("").await;
    let lsn = |reply: &crate::client::Reply| reply.header("lsn").unwrap().parse::<u64>().unwrap();
    let first = lsn(&server.create("a", r#"{"id":"1","pk":"a"}"#).await);
    assert_eq!(lsn(&server.read("a", "1").await), first);
    assert_eq!(lsn(&server.read("a", "none").await), first);
    assert!(lsn(&server.create("a", r#"{"id":"2","pk":"a"}"#).await) > first);
}
