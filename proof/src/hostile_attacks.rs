//! The attacks on both APIs: peers without a key, keys and users that take what they can get.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bolide_bench::client::{Bson, Client, WireClient};

use crate::honest::{account, query};
use crate::hostile::{Attack, By, run_attacks};
use crate::hostile_peers::{
    PeerGroup, Reading, announcement, preface, unfinished_authentication, unread_answers,
};
use crate::hostile_users::{
    add_grouped, add_users, commits_beside_queries, guesses, idle_cursors, idle_transactions, many_cursors,
    many_sessions, queries_in_transactions, waiting_writes,
};
use crate::process::Server;
use crate::{Outcome, Setting};

/// Bytes that are held for peers without a key, and their connections.
const HELD: &str = "bolide_unauthenticated_bytes";
pub const WITHOUT_A_KEY: &str = "bolide_unauthenticated_connections";
/// Requests that wait for a permit.
const WAITING: &str = "bolide_load_waiting";
const ENDED: &str = "bolide_mongo_idle_ended_total";

const FILES_UNREAD: Attack = Attack::new(
    "62 connections leave 256 answers of a static file unread",
    By::Unauthenticated,
    WITHOUT_A_KEY,
    |server, over| crowd(62, unread_answers("/_explorer/style.css", 256)).keep(server, over),
);

const ATTACKS: &[Attack] = &[
    FILES_UNREAD,
    FILES_UNREAD.named("the same without an explorer").with_options(&["--explorer", "off"]),
    Attack::new("62 connections leave 256 refusals unread", By::Unauthenticated, HELD, |server, over| {
        crowd(62, unread_answers("/dbs/none/colls/none", 256)).keep(server, over)
    }),
    Attack::new(
        "300 connections leave 256 pages unread that quote them",
        By::Unauthenticated,
        HELD,
        |server, over| {
            // The longest place to go back to that the form takes: behind the path, 1024 bytes, each of which it writes as six.
            let path = format!("/_explorer/sign-in?next=/_explorer/{}", "%22".repeat(1000));
            crowd(300, unread_answers(&path, 256)).keep(server, over)
        },
    ),
    Attack::new(
        "20 connections ask for 4096 redirects and read nothing",
        By::Unauthenticated,
        WITHOUT_A_KEY,
        |server, over| {
            // Three bytes for each are in the address that a redirect leads to: 9 MB, of which the kernel takes 4.
            let path = format!("/_explorer/{}", "/".repeat(1000));
            PeerGroup { reading: Reading::Nothing, ..crowd(20, unread_answers(&path, 4096)) }
                .keep(server, over)
        },
    ),
    Attack::new(
        "1200 connections announce a MongoDB message of 1 MiB",
        By::Unauthenticated,
        WITHOUT_A_KEY,
        |server, over| PeerGroup { to_mongo: true, ..crowd(1200, announcement(1 << 20)) }.keep(server, over),
    ),
    Attack::new(
        "1200 connections send 15 KiB of a MongoDB message of 16",
        By::Unauthenticated,
        HELD,
        |server, over| {
            let says = [announcement(16 << 10), vec![0; 15 << 10]].concat();
            PeerGroup { to_mongo: true, ..crowd(1200, says) }.keep(server, over)
        },
    ),
    Attack::new(
        "1500 connections send 60 KiB of a request head and not its end",
        By::Unauthenticated,
        HELD,
        |server, over| {
            let head = format!("GET / HTTP/1.1\r\nhost: x\r\na: {}", "a".repeat(60 << 10));
            crowd(1500, head.into_bytes()).keep(server, over)
        },
    ),
    Attack::new(
        "1500 connections begin to authenticate with a name of 4 KB, and do not end that",
        By::Unauthenticated,
        HELD,
        |server, over| {
            PeerGroup { to_mongo: true, ..crowd(1500, unfinished_authentication()) }.keep(server, over)
        },
    ),
    Attack::new(
        "3100 connections of one address begin HTTP/2 where 3000 are allowed, and ask for nothing",
        By::Unauthenticated,
        WITHOUT_A_KEY,
        |server, over| crowd(3100, preface()).keep(server, over),
    )
    .with_options(&["--max-connections", "3000"]),
    Attack::new(
        "12,010 connections of one address begin HTTP/2 and ask for nothing",
        By::Unauthenticated,
        WITHOUT_A_KEY,
        |server, over| crowd(12_010, preface()).keep(server, over),
    ),
    Attack::new(
        "12,010 connections of one address to the MongoDB API say nothing",
        By::Unauthenticated,
        WITHOUT_A_KEY,
        |server, over| PeerGroup { to_mongo: true, ..crowd(12_010, Vec::new()) }.keep(server, over),
    ),
    Attack::new(
        "50 connections guess passwords",
        By::Unauthenticated,
        "bolide_mongo_authentication_failures_total",
        guesses,
    ),
    Attack::new(
        "40 connections of a read-only key ask for long joins",
        By::KeyHolder,
        "bolide_load_shed_total",
        joins,
    ),
    Attack::new(
        "a user with the role read opens cursors and transactions until it gets no more",
        By::User,
        "bolide_mongo_transactions_open",
        many_cursors,
    ),
    Attack::new(
        "a user without a role begins new sessions all the time",
        By::User,
        "bolide_mongo_sessions_open",
        many_sessions,
    ),
    Attack::new(
        "a user with the role read groups 50,000 documents in each of 200 open transactions at once",
        By::User,
        WAITING,
        queries_in_transactions,
    ),
    Attack::new(
        "a user with the role read commits 40 transactions while each groups 50,000 documents",
        By::User,
        WAITING,
        commits_beside_queries,
    ),
    Attack::new(
        "40 writes of 2.6 MB wait for an open transaction",
        By::User,
        "bolide_mongo_transactions_open",
        waiting_writes,
    ),
    Attack::new("40 idle cursors with 100,000 groups each", By::IdleUser, ENDED, idle_cursors),
    Attack::new("24 open transactions of 60 MiB each", By::IdleUser, ENDED, idle_transactions),
];

fn crowd(count: usize, says: Vec<u8>) -> PeerGroup {
    PeerGroup { count, says, to_mongo: false, reading: Reading::All }
}

/// Runs the check.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    run_attacks(setting, place, ATTACKS)
}

/// Stores what honest clients and attackers read, and creates the users that attack.
pub fn prepare(server: &Server) -> Result<()> {
    let mut client = Client::connect(&server.address)?;
    client.database("db")?;
    client.container("c", "", "")?;
    client.upsert("c", "p", "{\"id\":\"small\",\"pk\":\"p\"}")?.expect(201)?;
    let numbers: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    client.container("joins", "", "")?;
    let item = format!("{{\"id\":\"1\",\"pk\":\"p\",\"a\":[{}]}}", numbers.join(","));
    client.upsert("joins", "p", &item)?.expect(201)?;
    let document = Bson::new().int("_id", 1).text("text", "small");
    let insert = Bson::new().text("insert", "c").array("documents", [document.finish()]);
    let mut wire = WireClient::connect(&server.mongo)?;
    account().authenticate(&mut wire)?;
    wire.command("test", insert)?;
    add_grouped(&mut wire)?;
    add_users(&mut wire)
}

/// Forty connections of a read-only key, each of which asks for a join of eight million rows again and again.
fn joins(server: &Server, over: &AtomicBool) -> Result<u64> {
    let made = Client::connect(&server.address)?
        .admin("POST", "/_bolide/keys", "{\"regenerate\":\"primaryReadonly\"}")?
        .expect(200)?;
    let answer: serde_json::Value = serde_json::from_str(&made.body)?;
    let key = answer["key"].as_str().context("no key in the answer")?;
    let text = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.a JOIN b IN c.a JOIN d IN c.a WHERE a + b > d";
    std::thread::scope(|scope| {
        let greedy = || {
            let mut asked = 0;
            while !over.load(Ordering::Relaxed) {
                asked += 1;
                let asks = || query(&mut Client::connect(&server.address)?, key, "joins", text);
                // Being refused is what most of them are there for.
                if asks().is_err() {
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
            asked
        };
        let workers: Vec<_> = (0..40).map(|_| scope.spawn(greedy)).collect();
        Ok(workers.into_iter().map(|worker| worker.join().expect("it does not panic")).sum())
    })
}
