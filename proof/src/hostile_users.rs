//! Users of the MongoDB API that hold resources between two requests, and peers that guess passwords. Each function returns
//! how much it has done, when it is done or when the attack is over.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bolide_bench::client::{Bson, Login, Value, WireClient, message};

use crate::process::Server;

/// The number of guessing connections, and the bound on their guesses per second: each wrong one waits a second.
const GUESSING: usize = 50;
const GUESSES_MOST: f64 = 2.0 * GUESSING as f64;

/// How many cursors or transactions exceed the bound by far if the server ends none.
const ENOUGH: u64 = 14;

/// The users that attack: the name is the password and the role.
const USERS: [&str; 2] = ["read", "readWrite"];
/// A user without a role.
const BARE: &str = "bare";
/// The transactions that run queries at once, and the documents that each of them groups.
const QUERYING: u64 = 200;
const GROUPED: i32 = 50_000;
/// The transactions that are committed while a query runs in them, and how long after it.
const COMMITTING: u64 = 40;
const BESIDE: Duration = Duration::from_millis(5);
/// The large writes that wait for a transaction, the bytes in each, and how long the transaction lasts: less than it may. Their
/// user gets memory for fewer of them than may wait, so none goes ahead.
const WRITING: usize = 40;
const WRITTEN_BYTES: usize = 2_600_000;
const WAITED_FOR: Duration = Duration::from_secs(50);
/// How many sessions one command names.
const NAMED: u64 = 5_000;
/// After this many refusals in a row nothing is left to take.
const REFUSALS: usize = 20;

/// Creates the users that attack.
pub fn add_users(wire: &mut WireClient) -> Result<()> {
    for role in USERS {
        let roles = [Bson::new().text("role", role).text("db", "test").finish()];
        wire.command("admin", Bson::new().text("createUser", role).text("pwd", role).array("roles", roles))?;
    }
    wire.command("admin", Bson::new().text("createUser", BARE).text("pwd", BARE).array("roles", []))?;
    Ok(())
}

/// Stores the documents that queries in transactions group.
pub fn add_grouped(wire: &mut WireClient) -> Result<()> {
    for from in (0..GROUPED).step_by(10_000) {
        let grouped = |number: i32| Bson::new().int("k", number).finish();
        let documents = (from..from + 10_000).map(grouped);
        wire.command("test", Bson::new().text("insert", "grouped").array("documents", documents))?;
    }
    Ok(())
}

/// Names sessions that did not exist before, thousands with each command.
pub fn many_sessions(server: &Server, over: &AtomicBool) -> Result<u64> {
    let mut wire = connect(server, BARE)?;
    let mut begun = 0;
    while !over.load(Ordering::Relaxed) {
        let named = (begun..begun + NAMED).map(|number| session(number).finish());
        wire.command("admin", Bson::new().array("refreshSessions", named))?;
        let ping = Bson::new().int("ping", 1).document("lsid", session(begun));
        wire.command("admin", ping)?;
        begun += NAMED;
    }
    ensure!(begun > 100_000, "{begun} sessions are too few to tell");
    Ok(begun)
}

fn session(number: u64) -> Bson {
    Bson::new().uuid("id", u128::from(number).to_be_bytes())
}

/// Opens transactions by cheap reads, and then groups a collection in all of them at once, again and again.
pub fn queries_in_transactions(server: &Server, over: &AtomicBool) -> Result<u64> {
    in_transactions(server, over, QUERYING, query_in_transactions)
}

/// Groups a collection in transactions, and commits each on another connection while it does so.
pub fn commits_beside_queries(server: &Server, over: &AtomicBool) -> Result<u64> {
    in_transactions(server, over, COMMITTING, commit_beside_queries)
}

/// Runs a function on a thread for each of so many sessions; it counts what it asks for.
fn in_transactions(
    server: &Server,
    over: &AtomicBool,
    sessions: u64,
    run: fn(&Server, &AtomicBool, u64, &AtomicU64) -> Result<()>,
) -> Result<u64> {
    let asked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..sessions)
            .map(|number| {
                let asked = &asked;
                std::thread::Builder::new()
                    .stack_size(256 << 10)
                    .spawn_scoped(scope, move || run(server, over, number, asked))
            })
            .collect::<std::io::Result<_>>()?;
        workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
    })?;
    Ok(asked.into_inner())
}

fn query_in_transactions(server: &Server, over: &AtomicBool, number: u64, asked: &AtomicU64) -> Result<()> {
    let mut wire = connect(server, "read")?;
    for transaction in 1.. {
        let part = |command: Bson| {
            let command = command.document("lsid", session(number)).long("txnNumber", transaction);
            command.bool("autocommit", false)
        };
        let begin = Bson::new().text("find", "c").document("filter", Bson::new().int("_id", 1));
        let mut goes_on =
            succeeds(wire.exchange(&message("test", part(begin).bool("startTransaction", true)))?)?;
        while goes_on && !over.load(Ordering::Relaxed) {
            asked.fetch_add(1, Ordering::Relaxed);
            goes_on = succeeds(wire.exchange(&message("test", part(grouping())))?)?;
        }
        if over.load(Ordering::Relaxed) {
            break;
        }
        // Its time was over, or there is too much to do.
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn grouping() -> Bson {
    let group = Bson::new().document("$group", Bson::new().text("_id", "$k")).finish();
    let count = Bson::new().text("$count", "n").finish();
    let query = Bson::new().text("aggregate", "grouped").array("pipeline", [group, count]);
    query.document("cursor", Bson::new())
}

fn commit_beside_queries(server: &Server, over: &AtomicBool, number: u64, asked: &AtomicU64) -> Result<()> {
    let (mut wire, mut beside) = (connect(server, "read")?, connect(server, "read")?);
    for transaction in 1.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let part = |command: Bson| {
            let command = command.document("lsid", session(number)).long("txnNumber", transaction);
            command.bool("autocommit", false)
        };
        let begin = Bson::new().text("find", "c").document("filter", Bson::new().int("_id", 1));
        if !succeeds(wire.exchange(&message("test", part(begin).bool("startTransaction", true)))?)? {
            std::thread::sleep(Duration::from_millis(100));
            continue;
        }
        asked.fetch_add(1, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let query = scope.spawn(|| wire.exchange(&message("test", part(grouping()))).map(drop));
            std::thread::sleep(BESIDE);
            let commit = part(Bson::new().int("commitTransaction", 1));
            beside.exchange(&message("admin", commit))?;
            query.join().expect("it does not panic")
        })?;
    }
    Ok(())
}

/// Connects as the user with that role.
fn connect(server: &Server, role: &str) -> Result<WireClient> {
    let mut wire = WireClient::connect(&server.mongo)?;
    Login::new(role, role).authenticate(&mut wire)?;
    Ok(wire)
}

/// Opens cursors and transactions until none are granted, then tries again from time to time.
pub fn many_cursors(server: &Server, over: &AtomicBool) -> Result<u64> {
    let mut wire = connect(server, "read")?;
    let (mut opened, mut refused) = ([0_u64; 2], [0; 2]);
    for number in 0_u32.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let at = (number % 2) as usize;
        let mut find = Bson::new().text("find", "c").int("batchSize", 0);
        if at == 1 {
            let session = u128::from(number).to_be_bytes();
            find = find.document("lsid", Bson::new().uuid("id", session)).long("txnNumber", 1);
            find = find.bool("autocommit", false).bool("startTransaction", true).bool("singleBatch", true);
        }
        if succeeds(wire.exchange(&message("test", find))?)? {
            (opened[at], refused[at]) = (opened[at] + 1, 0);
        } else {
            refused[at] += 1;
        }
        if refused.iter().all(|&refused| refused >= REFUSALS) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    ensure!(
        opened.iter().all(|&opened| opened >= ENOUGH),
        "{opened:?} cursors and transactions are too few to tell"
    );
    Ok(opened.iter().sum())
}

/// Whether a command succeeded.
fn succeeds(answer: &[u8]) -> Result<bool> {
    let ok = Value::field(answer, "ok")?.and_then(|ok| ok.number());
    Ok(ok == Some(1.0) && Value::field(answer, "writeErrors")?.is_none())
}

/// Opens cursors over groups of small documents, and abandons them.
pub fn idle_cursors(server: &Server, over: &AtomicBool) -> Result<u64> {
    let mut wire = connect(server, "readWrite")?;
    for from in (0..100_000).step_by(10_000) {
        let small = |number: i32| {
            let inner = Bson::new().int("a", number).text("b", &number.to_string());
            Bson::new().int("k", number).document("s", inner).finish()
        };
        let insert = Bson::new().text("insert", "small").array("documents", (from..from + 10_000).map(small));
        wire.command("test", insert)?;
    }
    let mut opened = 0;
    while opened < 40 && !over.load(Ordering::Relaxed) {
        let fields = Bson::new().text("_id", "$k").document("s", Bson::new().text("$first", "$s"));
        let group = Bson::new().document("$group", fields).finish();
        let aggregate = Bson::new().text("aggregate", "small").array("pipeline", [group]);
        wire.command("test", aggregate.document("cursor", Bson::new().int("batchSize", 1)))?;
        opened += 1;
    }
    ensure!(opened >= ENOUGH, "{opened} are too few to tell");
    Ok(opened)
}

/// Opens transactions, writes the most allowed in each, and abandons them.
pub fn idle_transactions(server: &Server, over: &AtomicBool) -> Result<u64> {
    let mut wire = connect(server, "readWrite")?;
    wire.command("test", Bson::new().text("create", "written"))?;
    let pad = "x".repeat(1 << 20);
    let mut opened = 0;
    for session in (0..24_u8).take_while(|_| !over.load(Ordering::Relaxed)) {
        for part in 0..6 {
            let documents = (0..10).map(|_| Bson::new().text("pad", &pad).finish());
            let mut command = Bson::new()
                .text("insert", "written")
                .array("documents", documents)
                .document("lsid", Bson::new().uuid("id", [session; 16]))
                .long("txnNumber", 1)
                .bool("autocommit", false);
            if part == 0 {
                command = command.bool("startTransaction", true);
            }
            // The server reports a transaction that it has ended because of its user's memory; the next one is tried.
            if !succeeds(wire.exchange(&message("test", command))?)? {
                break;
            }
            opened += u64::from(part == 0);
        }
    }
    ensure!(opened >= ENOUGH, "{opened} are too few to tell");
    Ok(opened)
}

/// Writes a document in a transaction, and outside of it on many connections, with large messages: all of these wait.
pub fn waiting_writes(server: &Server, over: &AtomicBool) -> Result<u64> {
    let mut wire = connect(server, "readWrite")?;
    let document = Bson::new().int("_id", 1).finish();
    wire.command("test", Bson::new().text("insert", "waited").array("documents", [document]))?;
    let part = |command: Bson, number: i64| {
        command.document("lsid", session(1)).long("txnNumber", number).bool("autocommit", false)
    };
    let asked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let mut writers = Vec::new();
        for number in (1..).take_while(|_| !over.load(Ordering::Relaxed)) {
            wire.command("test", part(write(1), number).bool("startTransaction", true))?;
            if writers.is_empty() {
                let asked = &asked;
                writers.extend((0..WRITING).map(|_| scope.spawn(move || write_outside(server, over, asked))));
            }
            let began = Instant::now();
            while began.elapsed() < WAITED_FOR && !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
            }
            wire.command("admin", part(Bson::new().int("abortTransaction", 1), number))?;
        }
        writers.into_iter().try_for_each(|writer| writer.join().expect("it does not panic"))
    })?;
    Ok(asked.into_inner())
}

fn write(bytes: usize) -> Bson {
    let fields = Bson::new().text("pad", &"x".repeat(bytes));
    let update = Bson::new().document("q", Bson::new().int("_id", 1));
    let update = update.document("u", Bson::new().document("$set", fields)).finish();
    Bson::new().text("update", "waited").array("updates", [update])
}

fn write_outside(server: &Server, over: &AtomicBool, asked: &AtomicU64) -> Result<()> {
    let mut wire = connect(server, "readWrite")?;
    while !over.load(Ordering::Relaxed) {
        asked.fetch_add(1, Ordering::Relaxed);
        wire.exchange(&message("test", write(WRITTEN_BYTES)))?;
    }
    Ok(())
}

/// Guesses passwords on many connections, each reopened when the server has ended it.
pub fn guesses(server: &Server, over: &AtomicBool) -> Result<u64> {
    let (tried, began) = (AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..GUESSING {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // A connection that the server has ended is an error here.
                    let _ = guess_until_closed(server, over, &tried);
                }
            });
        }
    });
    let tried = tried.load(Ordering::Relaxed);
    let rate = tried as f64 / began.elapsed().as_secs_f64();
    ensure!(rate <= GUESSES_MOST, "{rate:.0} guesses a second, {GUESSES_MOST} would do");
    Ok(tried)
}

fn guess_until_closed(server: &Server, over: &AtomicBool, tried: &AtomicU64) -> Result<()> {
    let mut wire = WireClient::connect(&server.mongo)?;
    while !over.load(Ordering::Relaxed) {
        let start = Bson::new()
            .int("saslStart", 1)
            .text("mechanism", "SCRAM-SHA-256")
            .text("payload", "n,,n=bolide,r=abcdefghijklmnopqrstuvwx");
        wire.command("admin", start)?;
        let proof = "c=biws,r=abcdefghijklmnopqrstuvwx,p=AAAA";
        let go_on = Bson::new().int("saslContinue", 1).int("conversationId", 1).text("payload", proof);
        wire.exchange(&message("admin", go_on))?;
        tried.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
