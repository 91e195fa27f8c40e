//! The effect of peers without a key, and of a greedy user, on other users.
//!
//! Each attack of the table goes on while honest clients of both APIs and of direct mode work, with a connection that stays and with new ones. An
//! attack fails the check if a point read, a small write or a cheap query is refused, if honest latency grows beyond
//! [`SLOWER_MOST`], if a new connection is refused, or if memory grows beyond `request-memory` and [`CONSTANT_MIB`]. Latency leaves
//! out the seconds in which other machines took the processors; where too few are left it is not judged, and the check says so.
//! Attackers run only while a processor is idle: they stand for other machines, so their own work must not take the processors that
//! the server and honest clients share.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use bolide_bench::client::{Bson, Client, WireClient, resident_kib_of};

use crate::honest::{ClientFigures, account, query, work};
use crate::hostile_peers::{PeerGroup, Reading, announcement, preface, unread_answers};
use crate::hostile_users::{add_users, guesses, idle_cursors, idle_transactions, many_cursors};
use crate::process::{Launch, Server};
use crate::{Outcome, Setting};

/// What requests and answers of authenticated clients may have,
const ROOM_MIB: u64 = 128;
/// and what may rest in cursors and transactions.
const IDLE_MIB: u64 = 128;
/// What the server may grow by beside: the budget of unauthenticated clients, connections, what was stored meanwhile, what the allocator keeps.
const CONSTANT_MIB: u64 = 160;
/// How much of honest latency (p99) there may be during an attack, of that before.
const SLOWER_MOST: f64 = 1.5;
/// Below it latency is the scheduler's, on two processors that the server shares with all its clients: kernels that preempt at
/// ticks do so every 4 ms, and a request wakes several threads.
const FLOOR: Duration = Duration::from_millis(10);
/// An attack is tried so often until honest latency can be judged and is small enough.
const TRIES: usize = 3;
/// An attack is there before the first honest request of it.
const LEAD: Duration = Duration::from_secs(3);
/// The time limit of a user's attack.
const IDLE_USER_MAX_WAIT: Duration = Duration::from_mins(2);

/// An attack: runs until it is stopped or finished, and returns how much it did.
#[derive(Clone, Copy)]
pub struct Attack {
    name: &'static str,
    run: fn(&Server, &AtomicBool) -> Result<u64>,
    by: By,
    /// Further options of the server.
    options: &'static [&'static str],
    /// A metric that is above zero at some time of the attack: an attack that does something else than was meant does not get there.
    sign: &'static str,
}

impl Attack {
    pub const fn new(
        name: &'static str,
        by: By,
        sign: &'static str,
        run: fn(&Server, &AtomicBool) -> Result<u64>,
    ) -> Attack {
        Attack { name, run, by, options: &[], sign }
    }

    const fn with_options(self, options: &'static [&'static str]) -> Attack {
        Attack { options, ..self }
    }
}

/// The attacker, which decides the bounds that apply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Peers without a key: nothing that is meant for others.
    Unauthenticated,
    /// A key holder, which may use idle processors.
    KeyHolder,
    /// A user that takes what it can get as long as it lasts.
    User,
    /// A user that runs its attack once.
    IdleUser,
}

impl By {
    /// Returns what the server may grow by.
    fn most_mib(self) -> u64 {
        CONSTANT_MIB
            + match self {
                By::Unauthenticated => 0,
                By::KeyHolder => ROOM_MIB,
                By::User | By::IdleUser => ROOM_MIB + IDLE_MIB,
            }
    }
}

/// Answers that peers without a key leave unread, and their connections.
const UNREAD: &str = "bolide_unauthenticated_bytes";
pub const WITHOUT_A_KEY: &str = "bolide_unauthenticated_connections";
const ENDED: &str = "bolide_mongo_idle_ended_total";

const FILES_UNREAD: Attack = Attack::new(
    "62 connections leave 256 answers of a static file unread",
    By::Unauthenticated,
    WITHOUT_A_KEY,
    |server, over| crowd(62, unread_answers("/_explorer/style.css", 256)).keep(server, over),
);

const ATTACKS: &[Attack] = &[
    FILES_UNREAD,
    Attack { name: "the same without an explorer", ..FILES_UNREAD }.with_options(&["--explorer", "off"]),
    Attack::new("62 connections leave 256 refusals unread", By::Unauthenticated, UNREAD, |server, over| {
        crowd(62, unread_answers("/dbs/none/colls/none", 256)).keep(server, over)
    }),
    Attack::new(
        "300 connections leave 256 pages unread that quote them",
        By::Unauthenticated,
        UNREAD,
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
        UNREAD,
        |server, over| {
            let says = [announcement(16 << 10), vec![0; 15 << 10]].concat();
            PeerGroup { to_mongo: true, ..crowd(1200, says) }.keep(server, over)
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
    Attack::new("40 idle cursors with 100,000 groups each", By::IdleUser, ENDED, idle_cursors),
    Attack::new("24 open transactions of 60 MiB each", By::IdleUser, ENDED, idle_transactions),
];

fn crowd(count: usize, says: Vec<u8>) -> PeerGroup {
    PeerGroup { count, says, to_mongo: false, reading: Reading::All }
}

/// Runs it.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    run_attacks(setting, place, ATTACKS)
}

/// Runs one attack after the other.
pub fn run_attacks(setting: &Setting, place: &Path, attacks: &[Attack]) -> Result<Outcome> {
    let length = Duration::from_secs(setting.rounds(4, 12, 60));
    let mut launch = Launch::new(&setting.server, place);
    let [room, idle] = [ROOM_MIB, IDLE_MIB].map(|mib| (mib << 20).to_string());
    let bounds = ["--request-memory", &room, "--mongo-idle-memory", &idle];
    let (mut told, mut failed, mut unjudged) = (Vec::new(), Vec::new(), Vec::new());
    for attack in attacks {
        // A client without a key is unauthenticated for the MongoDB API, too.
        let options = bounds.iter().chain(&["--mongo-auth"]).chain(attack.options);
        launch.options = options.map(|&word| word.to_owned()).collect();
        match attempts(&launch, attack, length)? {
            Verdict::Held(figures) => {
                println!("  held: {}: {figures}", attack.name);
                told.push(format!("{}: {figures}", attack.name));
            }
            Verdict::Unjudged(figures) => {
                println!("  held, latency not judged: {}: {figures}", attack.name);
                unjudged.push(attack.name);
            }
            Verdict::Slow(error) | Verdict::Failed(error) => {
                println!("  FAILED: {}: {error:#}", attack.name);
                failed.push(attack.name);
            }
        }
    }
    ensure!(failed.is_empty(), "{} of {} attacks: {}", failed.len(), attacks.len(), failed.join("; "));
    if !unjudged.is_empty() {
        return Ok(Outcome::Skipped(format!(
            "other machines took the processors, so latency was not judged of: {}; all else held",
            unjudged.join("; ")
        )));
    }
    Ok(Outcome::Held(told.join("; ")))
}

/// What came of an attack.
enum Verdict {
    Held(String),
    /// All but the latency held, which could not be judged.
    Unjudged(String),
    /// All but the latency held.
    Slow(anyhow::Error),
    Failed(anyhow::Error),
}

/// Tries an attack until its latency can be judged and is small: a machine that is busy with something else makes it large by
/// chance, an attack each time.
fn attempts(launch: &Launch, attack: &Attack, length: Duration) -> Result<Verdict> {
    let mut verdict = Verdict::Unjudged("not tried".to_owned());
    for _ in 0..TRIES {
        // Each begins with a server that is calm.
        let server = launch.start()?;
        prepare(&server)?;
        work(&server, || Duration::from_secs(1))?;
        let before = work(&server, || length)?;
        let memory = resident_kib_of(server.id())?.0 / 1024;
        verdict = judge(&server, attack, &before, memory, length).unwrap_or_else(Verdict::Failed);
        server.kill()?;
        std::fs::remove_dir_all(&launch.data).context("cannot remove the data")?;
        if matches!(verdict, Verdict::Held(_) | Verdict::Failed(_)) {
            break;
        }
    }
    Ok(verdict)
}

fn judge(
    server: &Server,
    attack: &Attack,
    before: &ClientFigures,
    memory_mib: u64,
    length: Duration,
) -> Result<Verdict> {
    let over = AtomicBool::new(false);
    let (during, made, peak_mib) = std::thread::scope(|scope| -> Result<_> {
        let crowd = scope.spawn(|| {
            only_use_idle_processors()?;
            (attack.run)(server, &over)
        });
        let peak = scope.spawn(|| peak_mib(server, &over));
        let seen = scope.spawn(|| peak_of_metric(server, attack.sign, &over));
        if attack.by != By::IdleUser {
            // The attack is there before the first honest request of it.
            std::thread::sleep(LEAD);
        }
        let max_wait = || match attack.by {
            By::IdleUser if !crowd.is_finished() => IDLE_USER_MAX_WAIT,
            _ => length,
        };
        let during = work(server, max_wait);
        over.store(true, Ordering::Relaxed);
        let made = crowd.join().expect("it does not panic");
        let seen = seen.join().expect("it does not panic")?;
        ensure!(seen > 0.0, "{} is {seen}: there was no such attack", attack.sign);
        Ok((during?, made?, peak.join().expect("it does not panic")?))
    })?;
    ensure!(made > 0, "no connection was made, which is no attack");
    let grown = peak_mib.saturating_sub(memory_mib);
    let figures = format!(
        "{} honest requests, {} refused; p99 {} before and {} during; {made} attempts; {grown} MiB more",
        during.requests,
        during.refused.len(),
        shown(before.p99_us()),
        shown(during.p99_us()),
    );
    ensure!(during.refused.is_empty(), "{figures}: {:?}", during.refused.first());
    ensure!(during.is_ready, "{figures}: /ready did not say that honest work goes on");
    let most = attack.by.most_mib();
    ensure!(grown <= most, "{figures}: memory grew by {grown} MiB, {most} MiB would do");
    let (Some(before_us), Some(p99)) = (before.p99_us(), during.p99_us()) else {
        return Ok(Verdict::Unjudged(figures));
    };
    let limit = (before_us * SLOWER_MOST).max(FLOOR.as_micros() as f64);
    if p99 > limit {
        return Ok(Verdict::Slow(anyhow!("{figures}: {:.1} ms would do", limit / 1e3)));
    }
    Ok(Verdict::Held(figures))
}

/// Lets this thread, and those that it starts, run only where no other thread wants to.
fn only_use_idle_processors() -> Result<()> {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let status = Command::new("chrt").args(["--idle", "--pid", "0", &thread]).status();
    ensure!(status.context("cannot run chrt")?.success(), "chrt refuses to change a policy");
    Ok(())
}

fn shown(p99_us: Option<f64>) -> String {
    p99_us.map_or_else(|| "of too few latencies".to_owned(), |us| format!("{:.1} ms", us / 1e3))
}

fn prepare(server: &Server) -> Result<()> {
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

/// Returns the sum of a metric over its labels. It is asked for with the key: the page is larger than what one of the attackers
/// holds, so that of a scrape without one the connection would be the first to be cut off.
fn metric(server: &Server, name: &str) -> Result<f64> {
    let page = Client::connect(&server.address)?.admin("GET", "/metrics", "")?.expect(200)?.body;
    let values = page.lines().filter_map(|line| {
        let (found, value) = line.rsplit_once(' ')?;
        (found.split('{').next() == Some(name)).then(|| value.parse::<f64>().ok())?
    });
    Ok(values.sum())
}

/// Returns the largest value that a metric has from the time when the attack is there: at its end it may have nothing left of
/// what it had.
fn peak_of_metric(server: &Server, name: &str, over: &AtomicBool) -> Result<f64> {
    std::thread::sleep(LEAD);
    let mut peak = 0_f64;
    loop {
        let is_last = over.load(Ordering::Relaxed);
        match metric(server, name) {
            Ok(value) => peak = peak.max(value),
            Err(error) if is_last => return Err(error),
            Err(_) => {}
        }
        if is_last {
            return Ok(peak);
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}

fn peak_mib(server: &Server, over: &AtomicBool) -> Result<u64> {
    let mut peak = 0;
    while !over.load(Ordering::Relaxed) {
        peak = peak.max(resident_kib_of(server.id())?.0 / 1024);
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(peak)
}
