//! Writes that wait for an open transaction keep the memory of their messages: what a user with many of them leaves to others.

use std::sync::Arc;
use std::time::Duration;

use bson::{Binary, Document, Value};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use transport::{Admission, Api, Bounds, Tenant, Work};

use crate::client::{Client, Server, code, inner, json, settings};
use crate::scram::{Hash, authenticate};

/// Half of it is for messages that are being received or worked on.
const REQUEST_MEMORY: usize = 16 << 20;
/// A large message, and how many of them an attacker sends: more than it may hold.
const LARGE: usize = 300_000;
const COUNT: usize = 40;
/// Writes of one user that wait at once, without others.
const WAITING: usize = 24;
/// The longest time that an honest request may take here; the attack lasts until the test ends it.
const SOON: Duration = Duration::from_secs(30);

struct World {
    server: Server,
    load: Arc<Admission>,
    watch: Client<TcpStream>,
}

impl World {
    /// A server with two users, who may both write, and one document of each.
    async fn new() -> World {
        let bounds = Bounds { held_bytes: REQUEST_MEMORY, max_wait: SOON, ..Bounds::default() };
        let load = Arc::new(Admission::new(bounds));
        let server = Server::with(mongo::Settings { admission: Arc::clone(&load), ..settings() }).await;
        let mut watch = server.connect().await;
        for name in ["greedy", "honest"] {
            let create = Document::new().with("createUser", name).with("pwd", "secret");
            let role = json(r#"{"role": "readWrite", "db": "db"}"#);
            watch.ok(create.with("roles", vec![Value::from(role)])).await;
            watch.done("db", insert(name, 0)).await;
        }
        World { server, load, watch }
    }

    async fn log_in(&self, user: &str) -> Client<TcpStream> {
        let mut client = self.server.connect().await;
        authenticate(&mut client, Hash::Sha256, "admin", user, "secret").await.unwrap();
        client
    }

    /// Lets a user write its document in a transaction that stays open.
    async fn begin(&self, user: &str) -> Client<TcpStream> {
        let mut client = self.log_in(user).await;
        client.done("db", part(update(user, 0)).with("startTransaction", true)).await;
        client
    }

    /// Lets a user write its document outside of a transaction.
    async fn write(&self, user: &str, bytes: usize) -> JoinHandle<Document> {
        let (mut client, update) = (self.log_in(user).await, update(user, bytes));
        tokio::spawn(async move { client.on("db", update).await })
    }

    /// The updates that run.
    async fn updates(&mut self) -> usize {
        let found = self.watch.ok(json(r#"{"currentOp": 1, "op": "update"}"#)).await;
        inner(&found, "inprog").as_array().unwrap().len()
    }

    /// Returns once so many updates run and none of them has a permit: they wait for transactions.
    async fn until_waiting(&mut self, count: usize) {
        let waiting = async {
            while self.updates().await != count || self.load.stats(Work::Statement).working > 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, waiting).await.expect("the writes wait");
    }
}

fn part(command: Document) -> Document {
    let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![1; 16] });
    command.with("lsid", lsid).with("txnNumber", 1_i64).with("autocommit", false)
}

/// Inserts a document into the collection of that name.
fn insert(collection: &str, bytes: usize) -> Document {
    let document = Document::new().with("pad", "x".repeat(bytes));
    Document::new().with("insert", collection).with("documents", vec![Value::from(document)])
}

/// Updates a document of the collection of that name.
fn update(collection: &str, bytes: usize) -> Document {
    let fields = Document::new().with("written", 1).with("pad", "x".repeat(bytes));
    let update = Document::new().with("q", Document::new()).with("u", Document::new().with("$set", fields));
    Document::new().with("update", collection).with("updates", vec![Value::from(update)])
}

/// A user holds its share of the memory with writes that wait for a transaction of its own. Others send messages of every
/// size meanwhile: those that fit at once, and none is held up by one that does not fit.
#[tokio::test(flavor = "multi_thread")]
async fn large_writes_that_wait_for_a_transaction_leave_memory_to_others() {
    let mut world = World::new().await;
    let mut transaction = world.begin("greedy").await;
    let mut attack = Vec::new();
    for _ in 0..COUNT {
        attack.push(world.write("greedy", LARGE).await);
    }
    let share = REQUEST_MEMORY / 2 / 4 * 3;
    world.until_waiting(share / LARGE).await;
    let held = world.load.held_bytes();
    assert!((share - LARGE..=share).contains(&held), "three quarters: {held}");

    let mut honest = world.log_in("honest").await;
    let oversized = world.log_in("honest").await;
    let oversized = tokio::spawn(async move {
        let mut client = oversized;
        client.on("db", insert("honest", REQUEST_MEMORY / 2 / 3)).await
    });
    for bytes in [10, LARGE, 10, 3 * LARGE, LARGE] {
        for command in [insert("honest", bytes), update("honest", bytes)] {
            timeout(SOON, honest.done("db", command)).await.expect("it is not held up");
        }
    }
    let nosql = Tenant::new(Api::Nosql, "key");
    for bytes in [LARGE, 2 * LARGE] {
        world.load.receive(nosql, bytes).await.expect("it is not refused");
    }
    assert_eq!(world.updates().await, share / LARGE, "the attack goes on");
    assert!(!oversized.is_finished(), "it needs more than is left");
    transaction.ok(part(Document::new().with("abortTransaction", 1))).await;
    for waited in attack.into_iter().chain([oversized]) {
        let reply = timeout(SOON, waited).await.unwrap().unwrap();
        assert_eq!(reply.get("ok"), Some(&Value::Double(1.0)), "{reply:?}");
    }
    assert_eq!(world.load.held_bytes(), 0);
}

/// With all positions taken by one user, the writes of another would go ahead and make its own transactions conflict.
#[tokio::test(flavor = "multi_thread")]
async fn writes_of_one_user_that_wait_for_a_transaction_leave_positions_to_others() {
    let mut world = World::new().await;
    let mut attacked = world.begin("greedy").await;
    let mut attack = Vec::new();
    for _ in 0..COUNT {
        attack.push(world.write("greedy", 10).await);
    }
    world.until_waiting(WAITING).await;
    let gone_ahead = attack.iter().filter(|write| write.is_finished()).count();
    assert!(gone_ahead <= COUNT - WAITING, "{gone_ahead}");

    let mut transaction = world.begin("honest").await;
    let waiting = world.write("honest", 10).await;
    world.until_waiting(WAITING + 1).await;
    transaction.ok(part(Document::new().with("commitTransaction", 1))).await;
    let reply = timeout(SOON, waiting).await.unwrap().unwrap();
    assert_eq!(reply.get("n"), Some(&Value::Int32(1)));

    let conflict = attacked.on("admin", part(Document::new().with("commitTransaction", 1))).await;
    assert_eq!(code(&conflict), 112, "those beyond the share have not waited");
    for waited in attack {
        let reply = timeout(SOON, waited).await.unwrap().unwrap();
        assert_eq!(reply.get("ok"), Some(&Value::Double(1.0)), "{reply:?}");
    }
}
