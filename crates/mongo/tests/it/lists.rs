//! Commands that list what there is, with a filter of the client's: what they cost other clients.

use std::sync::Arc;
use std::time::Duration;

use bson::{Document, Value};
use tokio::net::TcpStream;
use tokio::time::timeout;
use transport::{Admission, Api, Bounds, Tenant, Work};

use crate::client::{Client, PASSWORD, Server, json, settings};
use crate::scram::{Hash, authenticate};

/// A filter that evaluates until it is stopped.
const ENDLESS: &str = r#"{"$gt": [{"$sum": {"$map": {"input": {"$range": [0, 1000000]}, "in":
    {"$sum": {"$map": {"input": {"$range": [0, 1000000]}, "in": 1}}}}}}, 0]}"#;
/// The longest time that another client may wait for a brief command.
const SOON: Duration = Duration::from_secs(30);

/// The commands of a user who may read a database with that filter.
fn lists() -> [(&'static str, String); 2] {
    [
        ("admin", format!(r#"{{"listDatabases": 1, "filter": {{"$expr": {ENDLESS}}}}}"#)),
        ("db", format!(r#"{{"listCollections": 1, "filter": {{"$expr": {ENDLESS}}}}}"#)),
    ]
}

async fn log_in(server: &Server, user: &str, password: &str) -> Client<TcpStream> {
    let mut client = server.connect().await;
    authenticate(&mut client, Hash::Sha256, "admin", user, password).await.unwrap();
    client
}

/// A server that requires authentication, with a user without a role and one who may read a database.
async fn server(load: &Arc<Admission>) -> (Server, Client<TcpStream>) {
    let authentication = mongo::Authentication::Required;
    let settings = mongo::Settings { authentication, admission: Arc::clone(load), ..settings() };
    let server = Server::with(settings).await;
    let mut owner = log_in(&server, "bolide", PASSWORD).await;
    let role = json(r#"{"role": "read", "db": "db"}"#);
    for (name, roles) in [("bare", vec![]), ("reader", vec![Value::from(role)])] {
        owner.ok(Document::new().with("createUser", name).with("pwd", "secret").with("roles", roles)).await;
    }
    owner.done("db", json(r#"{"insert": "c", "documents": [{"x": 1}]}"#)).await;
    (server, owner)
}

/// With one worker, one that evaluated its filter there would keep the server from all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_filter_of_a_list_holds_up_no_other_client_and_ends_with_its_own() {
    let load = Arc::new(Admission::default());
    let (server, mut owner) = server(&load).await;
    for (database, list) in lists() {
        let mut client = log_in(&server, "reader", "secret").await;
        let asked = tokio::spawn(async move { client.on(database, json(&list)).await });
        let works = async {
            while load.stats(Work::Query).working == 0 {
                owner.ping().await;
            }
        };
        timeout(SOON, works).await.expect("it has a permit, and others are answered");
        for _ in 0..10 {
            timeout(SOON, owner.ping()).await.expect("another client is answered");
        }
        assert!(!asked.is_finished(), "{database}");
        asked.abort();
        let stopped = async {
            while load.stats(Work::Query).working > 0 {
                owner.ping().await;
            }
        };
        timeout(SOON, stopped).await.expect("it ends with its client");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_with_filters_wait_for_permits_but_those_of_operators() {
    let bounds = Bounds { queries: 1, max_wait: Duration::from_millis(50), ..Bounds::default() };
    let load = Arc::new(Admission::new(bounds));
    let (server, mut owner) = server(&load).await;
    let taken = load.enter(Tenant::new(Api::Mongo, "other"), Work::Query).await.unwrap();
    let own = ("admin", r#"{"currentOp": 1, "$ownOps": true}"#.to_owned());
    for (user, (database, list)) in
        ["reader", "reader", "bare"].into_iter().zip(lists().into_iter().chain([own]))
    {
        let mut client = log_in(&server, user, "secret").await;
        assert_eq!(client.fails(database, json(&list)).await.0, 262, "{list}");
    }
    owner.ok(json(r#"{"currentOp": 1}"#)).await;
    drop(taken);
}
