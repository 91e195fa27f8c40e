//! The impact of the purge on users: mass expiry, enforced throughput, many containers. Figures and their meaning:
//! docs/purge.md.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bolide_bench::client::{Client, Server};
use bolide_bench::processors::Ticks;

use crate::load::{self, Figures, Kind, Latencies, Requests, Users, insert};

/// Longer than inserting takes, so that the first items are still live when the last are inserted.
pub const TTL_SECONDS: u64 = 7200;
/// The number of items inserted one by one, to measure that cost.
const SINGLY_ITEMS: u64 = 20_000;
/// The purge of a storm is paused and resumed in turns of this length, and both are compared: other load on the machine
/// changes within minutes and affects both alike.
const WINDOW: Duration = Duration::from_secs(2);
const TRIES: u64 = 4;

/// Progress lines, kept for a report.
#[derive(Default)]
pub struct Lines(pub Vec<String>);

impl Lines {
    pub fn say(&mut self, line: String) {
        println!("{line}");
        self.0.push(line);
    }
}

/// The effect of a storm on users.
pub struct StormEffect {
    pub items: u64,
    pub lines: Vec<String>,
    /// Expired items that were shown.
    pub ghosts: u64,
    pub read_p99_ms: f64,
    /// The p99 while the purge runs, divided by the p99 while it is paused.
    pub read_ratio: f64,
    pub write_ratio: f64,
    pub worst_write_ms: f64,
    /// The CPU of a purged item, divided by that of an item inserted by a request of its own.
    pub purge_to_insert: f64,
}

/// Measures mass expiry in one container: users read and write live items in it, others look for the expired items.
pub fn storm(binary: &Path, items: u64, phase: Duration) -> Result<StormEffect> {
    let mut lines = Lines::default();
    let server = Server::start(binary, &[])?;
    let mut operator = server.client()?;
    operator.database("db")?;
    operator.container("c", &format!(",\"defaultTtl\":{TTL_SECONDS}"), "")?;
    operator.container("singly", &format!(",\"defaultTtl\":{TTL_SECONDS}"), "")?;
    let singly_cpu = insert(&server, "singly", SINGLY_ITEMS, Requests::OfOne)?;
    let began = Instant::now();
    let insert_cpu = insert(&server, "c", items, Requests::OfMany)?;
    lines.say(format!(
        "inserted {items} items at {:.0}/s, {:.0} us of CPU each; one by one {:.0} us",
        items as f64 / began.elapsed().as_secs_f64(),
        insert_cpu * 1e6,
        singly_cpu * 1e6
    ));
    // The server closes a connection that is idle for so long.
    operator = server.client()?;
    forecast(&mut operator, &mut lines)?;
    let users = Users::start(&server, "c", items)?;
    sleep(Duration::from_secs(15));
    users.take();
    sleep(phase);
    let before = users.take();
    before.show("before", &mut lines);
    operator = server.client()?;
    operator.advance(2 * TTL_SECONDS)?;
    users.have_expired.store(true, Ordering::SeqCst);
    let (waiting, purging, ghosts) = by_turns(&users, &mut operator, phase, &mut lines)?;
    waiting.show("while they wait", &mut lines);
    purging.show("while they are purged", &mut lines);
    let (purged, left) = operator.purge()?;
    lines.say(format!("purged {purged} meanwhile, {left} wait; expired items seen: {ghosts}"));
    let ratio = |kind: Kind| purging.of(kind).percentile(99.0) / waiting.of(kind).percentile(99.0);
    for kind in [Kind::Read, Kind::Write] {
        let ratio = ratio(kind);
        lines.say(match ratio.is_finite() {
            true => format!("{kind:?}: p99 is {ratio:.2} of what it is while the purge is paused"),
            false => format!("{kind:?}: no window counts, so p99 cannot be compared"),
        });
    }
    let (read_ratio, write_ratio) = (ratio(Kind::Read), ratio(Kind::Write));
    users.stop();
    let purge_cpu = drain(&server, &mut operator, insert_cpu, singly_cpu, &mut lines)?;
    Ok(StormEffect {
        items,
        lines: lines.0,
        ghosts,
        read_p99_ms: purging.of(Kind::Read).percentile(99.0) / 1e3,
        read_ratio,
        write_ratio,
        worst_write_ms: purging.of(Kind::Write).percentile(100.0) / 1e3,
        purge_to_insert: purge_cpu / singly_cpu,
    })
}

/// Returns the users' figures while the purge is paused and while it runs, and how often they saw an expired item. Each is
/// measured until that much time had no load of other machines, or [`TRIES`] times as long.
fn by_turns(
    users: &Users,
    operator: &mut Client,
    phase: Duration,
    lines: &mut Lines,
) -> Result<(Figures, Figures, u64)> {
    let windows = phase.as_secs().div_ceil(WINDOW.as_secs());
    let mut seen = [(true, 0, Figures::default()), (false, 0, Figures::default())];
    let (mut all, mut ghosts) = (0, 0);
    while all < 2 * TRIES * windows && seen.iter().any(|(_, counted, _)| *counted < windows) {
        for (is_paused, counted, sum) in &mut seen {
            operator.pause_purge(*is_paused)?;
            let ticks = Ticks::read()?;
            // An expired item that was shown counts in any case.
            ghosts += users.take().ghosts;
            sleep(WINDOW);
            let figures = users.take();
            all += 1;
            ghosts += figures.ghosts;
            if !Ticks::read()?.were_taken_since(ticks) {
                *counted += 1;
                sum.add(figures);
            }
        }
    }
    let [(_, paused, waiting), (_, going, purging)] = seen;
    lines.say(format!(
        "{} of {all} windows count, in which other machines took no processors",
        paused + going
    ));
    Ok((waiting, purging, ghosts))
}

/// Measures how long a forecast of expiries takes.
fn forecast(operator: &mut Client, lines: &mut Lines) -> Result<()> {
    for question in ["forecast=minute&count=180", "forecast=hour&count=24", "defaultTtl=60"] {
        let mut times = Latencies::default();
        for _ in 0..20 {
            let began = Instant::now();
            operator.admin("GET", &format!("/_bolide/ttl/db/c?{question}"), "")?.expect(200)?;
            times.add(began.elapsed());
        }
        let [median, slowest] = [50.0, 100.0].map(|percent| times.percentile(percent) / 1000.0);
        lines.say(format!("?{question}: median {median:.1} ms, slowest {slowest:.1} ms"));
    }
    Ok(())
}

/// Waits until the backlog is empty, without other load, and reports speed and cost: CPU seconds per item.
fn drain(
    server: &Server,
    operator: &mut Client,
    insert_cpu: f64,
    singly_cpu: f64,
    lines: &mut Lines,
) -> Result<f64> {
    let (purged, _) = operator.purge()?;
    let (began, cpu) = (Instant::now(), server.cpu_seconds()?);
    let (done, elapsed) = loop {
        let (now, left) = operator.purge()?;
        if left == 0 {
            break (now - purged, began.elapsed());
        }
        sleep(Duration::from_millis(500));
    };
    let cost = (server.cpu_seconds()? - cpu) / done.max(1) as f64;
    lines.say(format!(
        "without users: {done} items at {:.0}/s, {:.0} us of CPU each ({:.2} of an insert in a batch, {:.2} of one alone), \
         {} MiB resident",
        done as f64 / elapsed.as_secs_f64(),
        cost * 1e6,
        cost / insert_cpu,
        cost / singly_cpu,
        server.resident_mib()?
    ));
    Ok(cost)
}

/// Measures a container of 400 RU/s whose users request more than that, with expired items in it.
pub fn quota(binary: &Path, items: u64) -> Result<()> {
    let server = Server::start(binary, &[])?;
    let mut operator = server.client()?;
    operator.database("db")?;
    operator.container("c", &format!(",\"defaultTtl\":{TTL_SECONDS}"), "x-ms-offer-throughput: 400\r\n")?;
    operator.upsert("c", "u", "{\"id\":\"living\",\"pk\":\"u\",\"ttl\":-1}")?.expect(201)?;
    insert(&server, "c", items, Requests::OfMany)?;
    // Inserting so much at 400 RU/s would take hours, so the throughput is enforced only from here on.
    let server = server.restart(binary, &["--enforce-throughput"])?;
    let mut operator = server.client()?;
    let calm = load::saturate(&server, Duration::from_secs(10))?;
    operator.advance(2 * TTL_SECONDS)?;
    let (before, _) = operator.purge()?;
    let stormy = load::saturate(&server, Duration::from_secs(20))?;
    let (after, left) = operator.purge()?;
    println!("without expired items: {calm}");
    println!("with them:          {stormy}");
    println!("purged meanwhile: {}, {left} wait", after - before);
    for _ in 0..6 {
        let (before, _) = operator.purge()?;
        sleep(Duration::from_secs(5));
        let (after, left) = operator.purge()?;
        println!("users gone: {:.0} items/s, {left} wait", (after - before) as f64 / 5.0);
    }
    Ok(())
}

/// Measures many small containers and a huge one that all expire at once.
pub fn crowd(binary: &Path, containers: u64) -> Result<()> {
    const SMALL_ITEMS: u64 = 20;
    let server = Server::start(binary, &[])?;
    let mut operator = server.client()?;
    operator.database("db")?;
    let more = format!(",\"defaultTtl\":{TTL_SECONDS}");
    operator.container("huge", &more, "")?;
    insert(&server, "huge", 200 * containers, Requests::OfMany)?;
    for number in 0..containers {
        let name = format!("small{number}");
        operator.container(&name, &more, "")?;
        let bodies: Vec<String> =
            (0..SMALL_ITEMS).map(|item| format!("{{\"id\":\"{item}\",\"pk\":\"a\"}}")).collect();
        operator.batch(&name, "a", &bodies)?;
    }
    let began = Instant::now();
    operator.advance(2 * TTL_SECONDS)?;
    let mut small_done = None;
    loop {
        let status = operator.admin("GET", "/_bolide/purge", "")?.expect(200)?;
        let waiting = status.body.split("\"container\":\"small").skip(1);
        let waiting = waiting.filter(|one| !one.contains("\"backlog\":{\"items\":0,")).count() as u64;
        let told = status.body.matches("\"container\":\"small").count() as u64;
        if told == containers && waiting == 0 && small_done.is_none() {
            let left = status.number("items").context("a backlog")?;
            small_done = Some(began.elapsed());
            println!(
                "{containers} small containers drained after {:?}, {left} of the huge one left",
                began.elapsed()
            );
        }
        if status.number("items") == Some(0) {
            println!("all drained after {:?}", began.elapsed());
            return Ok(());
        }
        sleep(Duration::from_millis(100));
    }
}
