//! Tests of a store inside this process, as the README of the library describes it.

use bolide::{Container, Error, Options};
use serde_json::{Value, json};

const DAY: u64 = 24 * 3600;

fn sessions(store: &bolide::Bolide) -> Container {
    let partition_key = json!({"paths": ["/user"], "kind": "Hash"});
    store
        .container("app", &json!({"id": "sessions", "partitionKey": partition_key, "defaultTtl": DAY}))
        .expect("the definition is good")
}

fn ids(container: &Container) -> Vec<String> {
    container.query("SELECT VALUE c.id FROM c ORDER BY c.id", &[]).expect("the query is good")
}

#[test]
fn what_was_written_is_there_after_a_restart_and_what_expired_is_not_t13() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Options::in_directory(folder.path()).test_clock(true).open().unwrap();
    let store = open();
    let container = sessions(&store);
    container.create(&json!({"id": "short", "user": "ann", "ttl": 60})).unwrap();
    container.create(&json!({"id": "usual", "user": "ann"})).unwrap();
    container.create(&json!({"id": "kept", "user": "bob", "ttl": -1})).unwrap();
    store.advance_clock(60).unwrap();
    assert_eq!(ids(&container), ["kept", "usual"]);
    store.close().unwrap();

    let store = open();
    assert_eq!(ids(&sessions(&store)), ["kept", "usual"]);
    store.advance_clock(DAY).unwrap();
    drop(store);
    assert_eq!(ids(&sessions(&open())), ["kept"]);
}

#[test]
fn items_are_read_replaced_and_removed() {
    let store = Options::in_memory().open().unwrap();
    let container = sessions(&store);
    container.upsert(&json!({"id": "web", "user": "ann", "n": 1})).unwrap();
    container.upsert(&json!({"id": "web", "user": "ann", "n": 2})).unwrap();
    assert_eq!(container.read::<Value>("ann", "web").unwrap().unwrap()["n"], 2);
    assert!(container.read::<Value>("bob", "web").unwrap().is_none());
    let parameters = [("@n", json!(2))];
    let found: Vec<Value> = container.query("SELECT c.id FROM c WHERE c.n = @n", &parameters).unwrap();
    assert_eq!(found, [json!({"id": "web"})]);
    assert!(container.delete("ann", "web").unwrap());
    assert!(!container.delete("ann", "web").unwrap());
}

#[test]
fn what_is_refused_says_why() {
    let store = Options::in_memory().open().unwrap();
    let container = sessions(&store);
    container.create(&json!({"id": "web", "user": "ann"})).unwrap();
    let twice = container.create(&json!({"id": "web", "user": "ann"})).unwrap_err();
    assert!(matches!(twice, Error::Engine(engine::Error::Exists { .. })), "{twice}");
    let bad = container.create(&json!({"id": "x", "user": "ann", "ttl": 0})).unwrap_err();
    assert!(bad.to_string().contains("ttl"), "{bad}");
    assert!(matches!(container.query::<Value>("SELEC", &[]).unwrap_err(), Error::Query(_)));
    assert!(store.advance_clock(1).is_err(), "there is no test clock");
}

/// No sleep: the test polls the thread, as long as that takes.
#[test]
fn expired_items_are_purged_in_the_background_t19() {
    let store = Options::in_memory().stopped_clock().open().unwrap();
    let container = sessions(&store);
    for n in 0..100 {
        container.create(&json!({"id": n.to_string(), "user": "ann"})).unwrap();
    }
    store.advance_clock(DAY).unwrap();
    assert_eq!(ids(&container), [""; 0]);
    while store.engine().purge_status().purged_items < 100 {
        std::thread::yield_now();
    }
}
