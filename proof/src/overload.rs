//! Overload: three times the server's capacity, from thousands of connections that do not wait for each other.
//!
//! The server has one processor and the generator the others, if there are two or more, so that neither measures the other.
//! First, connections that send one request after the other find the capacity. Then requests become due at three times that
//! rate, whether or not answers come, on as many connections as that takes; the latency of a request counts from when it
//! was due. What must hold: the server answers as many requests as before, with short waits; it refuses the others soon and
//! says when to retry; a client that reads single items meanwhile hardly notices; and afterwards everything is as it was.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bolide_bench::client::{Bson, Client, Value, WireClient, cpu_seconds_of, message};
use bolide_bench::histogram::Histogram;

use crate::process::{Launch, Server};
use crate::{Outcome, Setting};

/// Connections that send at three times the capacity: each has so many seconds for one request, which is more than an
/// answer or a refusal takes.
const CROWD_LEAST: usize = 1000;
const CROWD_MOST: usize = 8000;
const TURN_SECONDS: f64 = 1.5;
/// Connections that find the capacity: more than the number of requests that the server runs at once.
const FEW: usize = 32;
const TIMES: f64 = 3.0;
/// The least part of the capacity that must be sent, unless the generator's processor cannot.
const TIMES_LEAST: f64 = 2.7;
/// A generator that uses this part of its processor can send no more.
const BUSY: f64 = 0.85;
/// The server waits out a burst for five seconds; the measurement begins after that.
const BURST: Duration = Duration::from_secs(7);
/// How long the server may take to become idle, and how much processor time of a second counts as idle.
const SETTLE_MOST: Duration = Duration::from_mins(1);
const SETTLED_CPU_SECONDS: f64 = 0.05;
const ITEMS: u64 = 2000;
/// The least part of the capacity that is still done, by processor time and by the clock; refusing the rest takes time,
/// too.
const GOODPUT_LEAST: f64 = 0.5;
/// The longest wait of ninety-nine in a hundred for an answer, for a refusal or for a single item.
/// Two seconds, and a turn of a connection that is late.
const P99_MOST: Duration = Duration::from_millis(3500);
const READ_P99_MOST: Duration = Duration::from_millis(500);
/// Items of a durable insert: one alone costs its sender about as much as the server.
const BATCH: u64 = 10;

/// The operation that is requested.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// A query of the NoSQL API that reads every item.
    Scan,
    /// An aggregation of the MongoDB API that reads every document.
    Aggregate,
    /// A durable insert of several items.
    Insert,
}

impl Ask {
    fn name(self) -> &'static str {
        match self {
            Ask::Scan => "SQL scan",
            Ask::Aggregate => "aggregation",
            Ask::Insert => "durable insert of ten items",
        }
    }
}

/// Runs the check.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let seconds = setting.rounds(3, 10, 30);
    let mut launch = Launch::new(&setting.server, place);
    let generator = Generator::beside(&mut launch)?;
    let server = launch.start()?;
    prepare(&server)?;
    let (mut told, mut failed) = (Vec::new(), Vec::new());
    for ask in [Ask::Scan, Ask::Aggregate, Ask::Insert] {
        match one(&server, &generator, ask, Duration::from_secs(seconds)) {
            Ok(figures) => told.push(figures),
            // The others are measured all the same: what they have in common shows the cause.
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    drop(generator);
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    let status = server.stop(Duration::from_secs(60))?;
    ensure!(status.success(), "the server ended with {status}");
    launch.inspect()?;
    Ok(Outcome::Held(told.join("; ")))
}

/// Keeps this process off the server's processor until it is dropped.
struct Generator {
    /// Processors of its own; 0 if there is only one for both.
    processors: usize,
}

impl Generator {
    fn beside(launch: &mut Launch) -> Result<Generator> {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        if all >= 2 {
            launch.wrapper = ["taskset", "-c", "0"].map(Into::into).to_vec();
            keep_to(&format!("1-{}", all - 1))?;
        }
        Ok(Generator { processors: all - 1 })
    }

    /// Returns which part of its processors it used: of so many seconds, this processor time.
    fn busy(&self, cpu_seconds: f64, seconds: f64) -> f64 {
        cpu_seconds / seconds / self.processors.max(1) as f64
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        let _ = keep_to(&format!("0-{}", self.processors));
    }
}

/// Lets all threads of this process run on these processors alone.
fn keep_to(processors: &str) -> Result<()> {
    let process = std::process::id().to_string();
    let done = Command::new("taskset").args(["-a", "-c", "-p", processors, &process]).output()?;
    ensure!(done.status.success(), "taskset: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

fn prepare(server: &Server) -> Result<()> {
    let mut client = Client::connect(&server.address)?;
    client.database("db")?;
    client.container("c", "", "")?;
    for first in (0..ITEMS).step_by(100) {
        let item =
            |id| format!("{{\"id\":\"{id}\",\"pk\":\"p\",\"n\":{id},\"text\":\"{}\"}}", "x".repeat(200));
        client.batch("c", "p", &(first..first + 100).map(item).collect::<Vec<_>>())?;
    }
    let documents = (0..ITEMS as i32)
        .map(|id| Bson::new().int("_id", id).int("n", id).text("text", &"x".repeat(200)).finish());
    let mut wire = WireClient::connect(&server.mongo)?;
    wire.command("test", Bson::new().text("insert", "c").array("documents", documents))?;
    Ok(())
}

fn one(server: &Server, generator: &Generator, ask: Ask, length: Duration) -> Result<String> {
    // As long and after as long a beginning as the overload, so that both pay alike for merging what they write.
    settle(server)?;
    let before = drive(server, ask, FEW, None, BURST, length)?;
    let capacity = before.done.count() as f64 / before.seconds;
    let calm = drive(server, ask, FEW, Some(capacity / 2.0), Duration::ZERO, length / 2)?;
    settle(server)?;
    let connections = ((capacity * TIMES * TURN_SECONDS) as usize).clamp(CROWD_LEAST, CROWD_MOST);
    let crowd = drive(server, ask, connections, Some(capacity * TIMES), BURST, length)?;
    let after = drive(server, ask, FEW, Some(capacity / 2.0), Duration::from_secs(1), length / 2)?;
    let name = ask.name();
    // By the server's own processor time: other programs on the machine take from both alike.
    let goodput = crowd.per_cpu_second() / before.per_cpu_second();
    let by_clock = crowd.done.count() as f64 / crowd.seconds / capacity;
    let times = crowd.sent() / crowd.seconds / capacity;
    let busy = generator.busy(crowd.own_cpu_seconds, crowd.seconds);
    let told = format!(
        "{name}: capacity {capacity:.0}/s; {times:.1}x were sent on {connections} connections, the generator {:.0} % busy; \
         {:.0}/s were done, {:.0} % of the capacity and by processor time {:.0} % (p50 {:.0} ms, p99 {:.0} ms), {:.0}/s refused \
         (p50 {:.0} ms, p99 {:.0} ms), {:.0}/s never sent for want of a connection, single reads meanwhile p99 {:.1} ms; at half \
         load p99 {:.1} ms before and {:.1} ms after",
        busy * 100.0,
        crowd.done.count() as f64 / crowd.seconds,
        by_clock * 100.0,
        goodput * 100.0,
        crowd.done.percentile(50.0) / 1e3,
        crowd.done.percentile(99.0) / 1e3,
        crowd.refused.count() as f64 / crowd.seconds,
        crowd.refused.percentile(50.0) / 1e3,
        crowd.refused.percentile(99.0) / 1e3,
        crowd.unsent as f64 / crowd.seconds,
        crowd.reads.percentile(99.0) / 1e3,
        calm.done.percentile(99.0) / 1e3,
        after.done.percentile(99.0) / 1e3,
    );
    println!("  {told}");
    for part in [&before, &calm, &crowd, &after] {
        ensure!(part.failed.is_none(), "{name}: {}", part.failed.as_deref().unwrap_or_default());
    }
    ensure!(
        times >= TIMES_LEAST || busy >= BUSY,
        "{name}: only {times:.1}x were sent, and the generator was {:.0} % busy",
        busy * 100.0
    );
    ensure!(goodput >= GOODPUT_LEAST, "{name}: only {:.0} % of the capacity is left", goodput * 100.0);
    ensure!(by_clock >= GOODPUT_LEAST, "{name}: only {:.0} % are done", by_clock * 100.0);
    for (who, waits, most) in [
        ("those who were served", &crowd.done, P99_MOST),
        ("those who were refused", &crowd.refused, P99_MOST),
        ("who reads single items", &crowd.reads, READ_P99_MOST),
    ] {
        let p99 = Duration::from_secs_f64(waits.percentile(99.0) / 1e6);
        ensure!(p99 <= most, "{name}: {who} waited {p99:?}, {most:?} would do");
    }
    ensure!(crowd.refused.count() > 0, "{name}: no request was refused, so that was no overload");
    ensure!(after.refused.count() == 0, "{name}: {} were refused afterwards", after.refused.count());
    let recovered = after.done.percentile(99.0) <= (calm.done.percentile(99.0) * 3.0).max(100_000.0);
    ensure!(recovered, "{name}: afterwards it is slower than before");
    Ok(told)
}

/// Waits until the server has finished deferred work: merging the tables of earlier requests is not the next ones' work.
fn settle(server: &Server) -> Result<()> {
    let deadline = Instant::now() + SETTLE_MOST;
    let mut before = cpu_seconds_of(server.id())?;
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = cpu_seconds_of(server.id())?;
        if now - before < SETTLED_CPU_SECONDS {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the server does not come to rest");
        before = now;
    }
}

/// The figures of a set of connections.
#[derive(Default)]
struct Seen {
    /// Latencies of requests that were done, from when they were due.
    done: Histogram,
    /// Latencies of requests that were refused.
    refused: Histogram,
    /// Requests that became due while their connection still waited for another answer, and were given up.
    unsent: u64,
    /// Single reads of another client.
    reads: Histogram,
    /// The violations.
    failed: Option<String>,
    seconds: f64,
    /// Processor time that the server used.
    cpu_seconds: f64,
    /// Processor time that the generator used.
    own_cpu_seconds: f64,
}

impl Seen {
    fn per_cpu_second(&self) -> f64 {
        self.done.count() as f64 / self.cpu_seconds
    }

    fn sent(&self) -> f64 {
        (self.done.count() + self.refused.count()) as f64
    }

    fn add(&mut self, other: Seen) {
        self.done.merge(&other.done);
        self.refused.merge(&other.refused);
        self.reads.merge(&other.reads);
        self.unsent += other.unsent;
        self.failed = self.failed.take().or(other.failed);
    }
}

/// Drives this many connections, as fast as answers come or at that rate, for that long after a beginning that does not
/// count.
fn drive(
    server: &Server,
    ask: Ask,
    connections: usize,
    rate: Option<f64>,
    ahead: Duration,
    length: Duration,
) -> Result<Seen> {
    let over = AtomicBool::new(false);
    let period = rate.map(|rate| Duration::from_secs_f64(connections as f64 / rate));
    let mut users = Vec::new();
    for number in 0..connections {
        users.push(User::connect(server, ask, number)?);
    }
    let reader = Client::connect(&server.address)?;
    std::thread::scope(|scope| {
        let over = &over;
        let began = Instant::now();
        let from = began + ahead;
        let small = || std::thread::Builder::new().stack_size(256 * 1024);
        let mut running = vec![small().spawn_scoped(scope, move || read_single(reader, over))?];
        for (number, user) in users.into_iter().enumerate() {
            let first = period.map(|period| began + period.mul_f64(number as f64 / connections as f64));
            running.push(small().spawn_scoped(scope, move || user.go(first.zip(period), from, over))?);
        }
        std::thread::sleep(ahead);
        let used = || [server.id(), std::process::id()].map(cpu_seconds_of);
        let [cpu, own_cpu] = used();
        std::thread::sleep(length);
        let [cpu_after, own_cpu_after] = used();
        let (cpu_seconds, own_cpu_seconds) = (cpu_after? - cpu?, own_cpu_after? - own_cpu?);
        over.store(true, Ordering::Relaxed);
        let seconds = from.elapsed().as_secs_f64();
        let mut seen = Seen { seconds, cpu_seconds, own_cpu_seconds, ..Seen::default() };
        for running in running {
            seen.add(running.join().expect("a user does not panic"));
        }
        Ok(seen)
    })
}

/// Runs a client that reads one item ten times a second and expects an answer each time.
fn read_single(mut client: Client, over: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        match client.read("c", "p", "7").and_then(|answer| answer.expect(200)) {
            Ok(_) => seen.reads.add(began.elapsed()),
            Err(error) => seen.failed = Some(format!("a single read failed: {error:#}")),
        }
        std::thread::sleep(Duration::from_millis(100).saturating_sub(began.elapsed()));
    }
    seen
}

/// One of the connections.
struct User {
    connection: Connection,
    ask: Ask,
    number: usize,
    sent: u64,
}

enum Connection {
    Rest(Client),
    Wire(WireClient),
}

/// The meaning of an answer.
enum Answer {
    Done,
    Refused,
}

impl User {
    fn connect(server: &Server, ask: Ask, number: usize) -> Result<User> {
        let connection = match ask {
            Ask::Aggregate => Connection::Wire(WireClient::connect(&server.mongo)?),
            Ask::Scan | Ask::Insert => Connection::Rest(Client::connect(&server.address)?),
        };
        Ok(User { connection, ask, number, sent: 0 })
    }

    fn go(mut self, schedule: Option<(Instant, Duration)>, from: Instant, over: &AtomicBool) -> Seen {
        let mut seen = Seen::default();
        let mut due = schedule.map(|(first, _)| first);
        while !over.load(Ordering::Relaxed) {
            let mut began = Instant::now();
            if let (Some(due), Some((_, period))) = (&mut due, schedule) {
                let now = Instant::now();
                while now > *due + period {
                    seen.unsent += u64::from(*due >= from);
                    *due += period;
                }
                std::thread::sleep(due.saturating_duration_since(now).min(Duration::from_secs(1)));
                if Instant::now() < *due {
                    continue;
                }
                began = *due;
                *due += period;
            }
            match self.send() {
                // An answer after the end belongs to no counted second.
                Ok(_) if began < from || over.load(Ordering::Relaxed) => {}
                Ok(Answer::Done) => seen.done.add(began.elapsed()),
                Ok(Answer::Refused) => seen.refused.add(began.elapsed()),
                Err(error) => {
                    seen.failed = Some(format!("{error:#}"));
                    break;
                }
            }
        }
        seen
    }

    fn send(&mut self) -> Result<Answer> {
        self.sent += 1;
        match (&mut self.connection, self.ask) {
            (Connection::Wire(wire), _) => {
                let stage =
                    Bson::new().document("$match", Bson::new().document("n", Bson::new().int("$lt", 0)));
                let command = Bson::new()
                    .text("aggregate", "c")
                    .array("pipeline", [stage.finish()])
                    .document("cursor", Bson::new());
                let answer = wire.exchange(&message("test", command))?;
                match Value::field(answer, "code")?.and_then(|code| code.number()) {
                    None => Ok(Answer::Done),
                    Some(262.0) => {
                        let after = Value::field(answer, "baseBackoffMS")?.and_then(|after| after.number());
                        ensure!(after > Some(0.0), "a refusal does not say when to come back");
                        Ok(Answer::Refused)
                    }
                    Some(_) => anyhow::bail!("the command failed: {}", String::from_utf8_lossy(answer)),
                }
            }
            (Connection::Rest(client), Ask::Insert) => {
                let (number, text) = (self.number, "x".repeat(400));
                let item = |at| {
                    let id = format!("{number}-{at}");
                    let body = format!("{{\"id\":\"{id}\",\"pk\":\"{number}\",\"text\":\"{text}\"}}");
                    format!("{{\"operationType\":\"Upsert\",\"resourceBody\":{body}}}")
                };
                let first = self.sent * BATCH;
                let operations: Vec<String> = (first..first + BATCH).map(item).collect();
                let headers = format!(
                    "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n\
                     x-ms-documentdb-partitionkey: [\"{number}\"]\r\n"
                );
                let body = format!("[{}]", operations.join(","));
                judge(client.request("POST", "/dbs/db/colls/c/docs", &headers, &body)?)
            }
            (Connection::Rest(client), _) => {
                let headers = "content-type: application/query+json\r\nx-ms-documentdb-isquery: True\r\n\
                               x-ms-documentdb-partitionkey: [\"p\"]\r\n";
                let query = "{\"query\":\"SELECT VALUE c.id FROM c WHERE CONTAINS(c.text, 'y')\"}";
                judge(client.request("POST", "/dbs/db/colls/c/docs", headers, query)?)
            }
        }
    }
}

fn judge(answer: bolide_bench::client::Answer) -> Result<Answer> {
    if answer.status != 429 {
        return answer.expect(200).map(|_| Answer::Done);
    }
    ensure!(answer.retry_after_ms > Some(0), "a refusal does not say when to come back");
    Ok(Answer::Refused)
}
