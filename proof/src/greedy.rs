//! Users of the MongoDB API who hold what they can between two requests, and peers who guess passwords.
//!
//! Each attack of the table goes on while an honest client reads and writes. It fails the check if one of its requests is refused,
//! or if memory grows beyond `mongo-idle-memory` and [`CONSTANT_MIB`].

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Bson, Value, WireClient, message, resident_kib_of};
use bolide_bench::histogram::Histogram;

use crate::process::{Launch, Server};
use crate::{Outcome, Setting};

/// What may rest in cursors and transactions.
const IDLE_MIB: u64 = 128;
/// What the server may grow by beside: what was stored, the one request that runs, what the allocator keeps.
const CONSTANT_MIB: u64 = 384;
/// Connections that guess at once, and how many guesses a second all of them may come to: each wrong one waits a second.
const GUESSING: usize = 50;
const GUESSES_MOST: f64 = 2.0 * GUESSING as f64;

/// How many cursors or transactions would exceed the bound by far if nothing ended them.
const ENOUGH: u64 = 14;

/// An attack: until it is over, or it has done what it can. Says how much.
struct Attack {
    name: &'static str,
    run: fn(&Server, &AtomicBool) -> Result<u64>,
}

const ATTACKS: &[Attack] = &[
    Attack { name: "40 idle cursors with 100,000 groups each", run: idle_cursors },
    Attack { name: "24 open transactions of 60 MiB each", run: idle_transactions },
    Attack { name: "50 connections that guess passwords", run: guesses },
];

/// Runs it.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let length = Duration::from_secs(setting.rounds(5, 15, 60));
    let mut launch = Launch::new(&setting.server, place);
    launch.options = ["--mongo-idle-memory", &(IDLE_MIB << 20).to_string()].map(str::to_owned).to_vec();
    let mut told = Vec::new();
    for attack in ATTACKS {
        let server = launch.start()?;
        let figures = judge(&server, attack, length).with_context(|| attack.name)?;
        told.push(format!("{}: {figures}", attack.name));
        server.kill()?;
        std::fs::remove_dir_all(&launch.data).context("cannot remove the data")?;
    }
    Ok(Outcome::Held(told.join("; ")))
}

fn judge(server: &Server, attack: &Attack, length: Duration) -> Result<String> {
    let mut wire = WireClient::connect(&server.mongo)?;
    let document = Bson::new().int("_id", 1).text("text", "small");
    wire.command("test", Bson::new().text("insert", "c").array("documents", [document.finish()]))?;
    let (began, over) = (Instant::now(), AtomicBool::new(false));
    let before = resident_kib_of(server.id())?.0 / 1024;
    let (done, latency, most) = std::thread::scope(|scope| -> Result<_> {
        let attacking = scope.spawn(|| (attack.run)(server, &over));
        let worked = work(server, &mut wire, || {
            began.elapsed() < length || !attacking.is_finished() && began.elapsed() < 8 * length
        });
        over.store(true, Ordering::Relaxed);
        let done = attacking.join().expect("it does not panic")?;
        let (latency, most) = worked?;
        Ok((done, latency, most))
    })?;
    let grown = most.saturating_sub(before);
    let p99 = latency.percentile(99.0) / 1e3;
    let figures = format!("{done} done, {grown} MiB more, honest p99 {p99:.1} ms");
    ensure!(grown <= IDLE_MIB + CONSTANT_MIB, "{figures}: {} MiB would do", IDLE_MIB + CONSTANT_MIB);
    Ok(figures)
}

/// An honest client, and the most memory that the server had meanwhile. A request that is refused is an error.
fn work(server: &Server, wire: &mut WireClient, goes_on: impl Fn() -> bool) -> Result<(Histogram, u64)> {
    let (mut latency, mut most) = (Histogram::default(), 0);
    while goes_on() {
        let began = Instant::now();
        let find = Bson::new().text("find", "c").document("filter", Bson::new().int("_id", 1));
        wire.command("test", find).context("an honest find")?;
        let insert =
            Bson::new().text("insert", "c").array("documents", [Bson::new().text("text", "small").finish()]);
        wire.command("test", insert).context("an honest insert")?;
        latency.add(began.elapsed());
        most = most.max(resident_kib_of(server.id())?.0 / 1024);
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok((latency, most))
}

/// Opens cursors over groups of small documents, and leaves them.
fn idle_cursors(server: &Server, over: &AtomicBool) -> Result<u64> {
    let mut wire = WireClient::connect(&server.mongo)?;
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

/// Opens transactions, writes as much as one may in each, and leaves them.
fn idle_transactions(server: &Server, over: &AtomicBool) -> Result<u64> {
    let mut wire = WireClient::connect(&server.mongo)?;
    wire.command("test", Bson::new().text("create", "written"))?;
    let pad = "x".repeat(1 << 20);
    let mut opened = 0;
    for session in (0..24_u8).take_while(|_| !over.load(Ordering::Relaxed)) {
        opened += 1;
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
            let answer = wire.exchange(&message("test", command))?;
            // One that was ended because of what its user holds is told so, and the next one is tried.
            if Value::field(answer, "ok")?.and_then(|ok| ok.number()) != Some(1.0) {
                break;
            }
        }
    }
    ensure!(opened >= ENOUGH, "{opened} are too few to tell");
    Ok(opened)
}

/// Guesses passwords on many connections, each made anew when the server has ended it.
fn guesses(server: &Server, over: &AtomicBool) -> Result<u64> {
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
