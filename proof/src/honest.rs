//! Well-behaved clients, and the answers they get while others attack.

use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use bolide_bench::client::{Answer, Bson, Client, KEY, Login, Value, WireClient, date, message, sign_with};
use bolide_bench::histogram::Histogram;
use bolide_bench::processors::Ticks;

use crate::item_client::{Act, DirectClient, ItemClient, ItemRequest};
use crate::process::Server;

/// A kind of honest requests, whose latency is judged by itself: a log-in takes many times as long as a point read, and would
/// hide what an attack does to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Point reads and small writes on connections that stay.
    Brief,
    /// Larger writes, queries, cursors and transactions on connections that stay.
    Longer,
    /// New connections with a read or a log-in.
    Connection,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Brief, Kind::Longer, Kind::Connection];

    /// Returns the name, and the percentile that is judged: there are few new connections.
    pub fn judged(self) -> (&'static str, f64) {
        match self {
            Kind::Brief => ("point reads and small writes", 99.0),
            Kind::Longer => ("other requests", 99.0),
            Kind::Connection => ("new connections", 95.0),
        }
    }

    /// Returns the fewest requests for which that is judged: three are slower.
    fn judged_least(self) -> u64 {
        match self {
            Kind::Brief | Kind::Longer => 300,
            Kind::Connection => 60,
        }
    }
}

/// New connections are made in every round that this divides.
const CONNECTING_ROUNDS: u64 = 4;

/// The figures of well-behaved clients.
#[derive(Default)]
pub struct ClientFigures {
    /// Latencies of the seconds in which other machines took no processors.
    latency: [Histogram; Kind::ALL.len()],
    /// Latencies of the current second.
    second: [Histogram; Kind::ALL.len()],
    pub requests: u64,
    /// The refusals.
    pub refused: Vec<String>,
    /// Whether `/ready` succeeded all the time.
    pub is_ready: bool,
}

impl ClientFigures {
    /// Returns the judged latency of requests of a kind in microseconds; none if there are too few.
    pub fn latency_us(&self, kind: Kind) -> Option<f64> {
        let latency = &self.latency[kind as usize];
        (latency.count() >= kind.judged_least()).then(|| latency.percentile(kind.judged().1))
    }

    fn note(&mut self, kind: Kind, what: &str, began: Instant, outcome: Result<()>) {
        self.second[kind as usize].add(began.elapsed());
        self.requests += 1;
        if let Err(error) = outcome {
            self.refused.push(format!("{what}: {error:#}"));
        }
    }
}

/// Runs well-behaved clients of both APIs and of direct mode: reads, small and larger writes, queries; each round also on
/// new connections. Runs for as long as `length` returns.
pub fn work(server: &Server, length: impl Fn() -> Duration) -> Result<ClientFigures> {
    let mut honest = ClientFigures { is_ready: true, ..ClientFigures::default() };
    let mut client = Client::connect(&server.address).context("an honest connection")?;
    let mut login = account();
    let mut wire = WireClient::connect(&server.mongo).context("an honest connection")?;
    login.authenticate(&mut wire).context("an honest log-in")?;
    let mut direct = DirectClient::connect(server).context("an honest connection in direct mode")?;
    let filler = "z".repeat(20_000);
    let (began, mut round) = (Instant::now(), 0_u64);
    let (mut second, mut ticks) = (Instant::now(), Ticks::read()?);
    while began.elapsed() < length() {
        if second.elapsed() >= Duration::from_secs(1) {
            let (now, seen) = (Ticks::read()?, std::mem::take(&mut honest.second));
            if !now.were_taken_since(ticks) {
                honest.latency.iter_mut().zip(&seen).for_each(|(latency, seen)| latency.merge(seen));
            }
            (second, ticks) = (Instant::now(), now);
        }
        round += 1;
        let id = format!("w{}", round % 50);
        rest(&mut honest, &mut client, &id, &filler);
        mongo(&mut honest, &mut wire, round);
        in_direct_mode(&mut honest, &mut direct, &id);
        if round.is_multiple_of(CONNECTING_ROUNDS) {
            by_new_connections(&mut honest, server, &mut login);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(honest)
}

/// The account as a user of the MongoDB API.
pub fn account() -> Login {
    Login::new("bolide", KEY)
}

fn by_new_connections(honest: &mut ClientFigures, server: &Server, login: &mut Login) {
    let now = Instant::now();
    match Client::connect(&server.address) {
        Ok(mut fresh) => {
            let read = fresh.read("c", "p", "small").and_then(|answer| answer.expect(200));
            honest.note(Kind::Connection, "a read by a new connection", now, read.map(drop));
            honest.is_ready &= fresh.plain("GET", "/ready", "", "").is_ok_and(|it| it.status == 200);
        }
        Err(error) => honest.note(Kind::Connection, "a new connection", now, Err(error)),
    }
    // As a load balancer asks: by a connection of its own, without a key.
    let probe = Client::connect(&server.address).and_then(|mut fresh| fresh.plain("GET", "/ready", "", ""));
    honest.is_ready &= probe.is_ok_and(|it| it.status == 200);
    let now = Instant::now();
    let read = DirectClient::connect(server).and_then(|mut fresh| fresh.item(&small())?.expect(200));
    honest.note(Kind::Connection, "a read by a new connection in direct mode", now, read.map(drop));
    let now = Instant::now();
    let logged_in = WireClient::connect(&server.mongo).and_then(|mut fresh| login.authenticate(&mut fresh));
    honest.note(Kind::Connection, "a log-in to the MongoDB API", now, logged_in);
}

/// Returns the request for the item that always exists.
fn small() -> ItemRequest<'static> {
    ItemRequest { act: Act::Read, container: "c", pk: "p", id: "small", if_match: None, body: "" }
}

fn in_direct_mode(honest: &mut ClientFigures, direct: &mut DirectClient, id: &str) {
    let now = Instant::now();
    let read = direct.item(&small()).and_then(|answer| answer.expect(200));
    honest.note(Kind::Brief, "a point read in direct mode", now, read.map(drop));
    let now = Instant::now();
    let body = format!("{{\"id\":\"{id}\",\"pk\":\"p\"}}");
    let written =
        direct.item(&ItemRequest { act: Act::Upsert, id, body: &body, ..small() }).and_then(upserted);
    honest.note(Kind::Brief, "a small write in direct mode", now, written);
}

/// Fails unless an upsert was carried out.
fn upserted(answer: Answer) -> Result<()> {
    ensure!(matches!(answer.status, 200 | 201), "{}: {}", answer.status, answer.body);
    Ok(())
}

fn rest(honest: &mut ClientFigures, client: &mut Client, id: &str, filler: &str) {
    let now = Instant::now();
    let read = client.read("c", "p", "small").and_then(|answer| answer.expect(200));
    honest.note(Kind::Brief, "a point read", now, read.map(drop));
    for (kind, what, text) in [(Kind::Brief, "a small write", ""), (Kind::Longer, "a write of 20 KB", filler)]
    {
        let now = Instant::now();
        let body = format!("{{\"id\":\"{id}\",\"pk\":\"p\",\"text\":\"{text}\"}}");
        let written = client.upsert("c", "p", &body).and_then(upserted);
        honest.note(kind, what, now, written);
    }
    let now = Instant::now();
    let found = query(client, KEY, "c", "SELECT VALUE c.id FROM c WHERE c.id = 'small'");
    honest.note(Kind::Longer, "a cheap query", now, found.map(drop));
}

fn mongo(honest: &mut ClientFigures, wire: &mut WireClient, round: u64) {
    let now = Instant::now();
    let document = Bson::new().int("round", round as i32).text("text", "small");
    let insert = Bson::new().text("insert", "c").array("documents", [document.finish()]);
    let inserted = wire.command("test", insert).map(drop);
    honest.note(Kind::Brief, "a MongoDB insert", now, inserted);
    let now = Instant::now();
    let find = Bson::new().text("find", "c").document("filter", Bson::new().int("_id", 1));
    let found = wire.command("test", find).map(drop);
    honest.note(Kind::Brief, "a MongoDB find", now, found);
    let now = Instant::now();
    honest.note(Kind::Longer, "a MongoDB cursor", now, two_batches(wire));
    let now = Instant::now();
    honest.note(Kind::Longer, "a MongoDB transaction", now, transaction(wire, round));
}

/// Reads two documents, one with each batch.
fn two_batches(wire: &mut WireClient) -> Result<()> {
    let find = Bson::new().text("find", "c").int("limit", 2).int("batchSize", 1);
    let answer = wire.command("test", find)?;
    let cursor = Value::field(answer, "cursor")?.and_then(|cursor| cursor.bytes()).context("no cursor")?;
    let Some(Value::Long(id)) = Value::field(cursor, "id")? else { bail!("a cursor without an id") };
    wire.command("test", Bson::new().long("getMore", id).text("collection", "c")).map(drop)
}

/// Inserts a document in a transaction of its own, in a session of its own.
fn transaction(wire: &mut WireClient, round: u64) -> Result<()> {
    // Higher than all earlier ones, also those of other connections.
    let number = UNIX_EPOCH.elapsed()?.as_micros() as i64;
    let in_transaction = |command: Bson| {
        let lsid = Bson::new().uuid("id", (0xab << 64 | u128::from(round)).to_be_bytes());
        command.document("lsid", lsid).long("txnNumber", number).bool("autocommit", false)
    };
    let document = Bson::new().long("number", number).finish();
    let insert = Bson::new().text("insert", "c").array("documents", [document]);
    wire.command("test", in_transaction(insert).bool("startTransaction", true))?;
    wire.exchange(&message("admin", in_transaction(Bson::new().int("commitTransaction", 1))))?;
    wire.checked().map(drop)
}

pub fn query(client: &mut Client, key: &str, container: &str, text: &str) -> Result<()> {
    let path = format!("/dbs/db/colls/{container}/docs");
    let date = date();
    let token = sign_with(key, "POST", &path, &date)?;
    let headers = format!(
        "x-ms-date: {date}\r\nauthorization: {token}\r\nx-ms-documentdb-isquery: True\r\n\
         x-ms-documentdb-query-enablecrosspartition: True\r\ncontent-type: application/query+json\r\n"
    );
    client.plain("POST", &path, &headers, &format!("{{\"query\":\"{text}\"}}"))?.expect(200).map(drop)
}
