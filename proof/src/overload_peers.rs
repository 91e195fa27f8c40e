//! Greedy peers: ten thousand connections at once, silent ones, half-open ones, ones that do not read.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Client, date, resident_kib_of, sign};
use bolide_bench::histogram::Histogram;

use crate::process::{Launch, Server};
use crate::{Outcome, Setting};

/// Memory that one more idle connection may take, in KiB.
const IDLE_KIB_MOST: u64 = 32;

/// Checks many connections, most of them idle, beside a working client.
pub fn connections(setting: &Setting, place: &Path) -> Result<Outcome> {
    let count = setting.rounds(1000, 10_000, 10_000) as usize;
    let allowed = open_files_max()?;
    if allowed < count + 2000 {
        return Ok(Outcome::Skipped(format!(
            "{allowed} files may be open here (ulimit -n), {} are wanted",
            count + 2000
        )));
    }
    let mut launch = Launch::new(&setting.server, place);
    launch.options = ["--max-unauthenticated-connections", "20000"].map(str::to_owned).to_vec();
    let server = launch.start()?;
    let mut client = Client::connect(&server.address)?;
    client.database("db")?;
    client.container("c", "", "")?;
    client.upsert("c", "p", "{\"id\":\"1\",\"pk\":\"p\"}")?.expect(201)?;
    let alone = latency(&mut client, 300)?;
    let before = resident_kib_of(server.id())?.0;
    let began = Instant::now();
    let mut held = Vec::with_capacity(count);
    for number in 0..count {
        let address = if number % 4 == 0 { &server.mongo } else { &server.address };
        let mut stream = TcpStream::connect(address).with_context(|| format!("connection {number}"))?;
        // A third has had an answer and stays, a third has begun a request, a third is silent.
        match number % 3 {
            0 if number % 4 != 0 => ask_alive(&mut stream)?,
            1 => stream.write_all(b"GET /al")?,
            _ => {}
        }
        held.push(stream);
    }
    let opened = began.elapsed();
    let crowded = latency(&mut client, 300)?;
    let each = resident_kib_of(server.id())?.0.saturating_sub(before) / count as u64;
    for stream in held.iter_mut().skip(3).step_by(12).take(200) {
        ask_alive(stream).context("a connection that was idle")?;
    }
    drop(held);
    wait_for(Duration::from_secs(60), || Ok(open_connections(&server)? <= 8))
        .context("connections that were closed are still counted")?;
    ensure!(each <= IDLE_KIB_MOST, "{each} KiB for each idle connection");
    let (p99, limit) = (crowded.percentile(99.0), alone.percentile(99.0) * 5.0 + 20_000.0);
    ensure!(
        p99 <= limit,
        "p99 of single reads is {p99:.0} us with {count} connections, {limit:.0} us would do"
    );
    server.stop(Duration::from_secs(60))?;
    Ok(Outcome::Held(format!(
        "{count} connections in {:.1} s, {each} KiB each; single reads p99 {:.2} ms alone and {:.2} ms among them",
        opened.as_secs_f64(),
        alone.percentile(99.0) / 1e3,
        p99 / 1e3,
    )))
}

/// Peers that vanish or fall silent, at every possible point, lose their connections in time.
pub fn half_open(setting: &Setting, place: &Path) -> Result<Outcome> {
    let count = setting.rounds(50, 500, 2000) as usize;
    let mut launch = Launch::new(&setting.server, place);
    launch.options = ["--idle-timeout", "2", "--mongo-idle-timeout", "2", "--body-timeout", "2"]
        .map(str::to_owned)
        .to_vec();
    let server = launch.start()?;
    let head = signed("POST", "/dbs");
    let unfinished = format!("POST /dbs HTTP/1.1\r\nhost: x\r\n{head}content-length: 1000\r\n\r\n{{\"id\"");
    let beginnings: &[(&str, &[u8])] = &[
        ("says nothing", b""),
        ("begins a request line", b"GE"),
        ("begins a head", b"GET /alive HTTP/1.1\r\nhost: x\r\nx-h"),
        ("begins a body", unfinished.as_bytes()),
        ("begins a TLS handshake", &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]),
        ("begins HTTP/2 and no more", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("has had an answer", b"GET /alive HTTP/1.1\r\nhost: x\r\n\r\n"),
    ];
    let mut held = Vec::new();
    for number in 0..count {
        let mut stream = TcpStream::connect(&server.address)?;
        stream.write_all(beginnings[number % beginnings.len()].1)?;
        held.push(stream);
        if number % 10 == 0 {
            held.push(TcpStream::connect(&server.mongo)?);
        }
    }
    let began = Instant::now();
    // The MongoDB port gives a client a minute for its first message; an HTTP/2 peer has to answer a ping after one.
    wait_for(Duration::from_secs(100), || Ok(open_connections(&server)? <= 1))?;
    let gone = began.elapsed();
    drop(held);
    server.stop(Duration::from_secs(60))?;
    Ok(Outcome::Held(format!(
        "{count} peers in {} kinds, all gone after {:.0} s",
        beginnings.len(),
        gone.as_secs_f64()
    )))
}

/// Peers that request much and read nothing, or a byte now and then: memory stays bounded, others are served.
pub fn slow_readers(setting: &Setting, place: &Path) -> Result<Outcome> {
    const ROOM: u64 = 64 << 20;
    let count = setting.rounds(60, 200, 400) as usize;
    let mut launch = Launch::new(&setting.server, place);
    launch.options = ["--request-memory", &ROOM.to_string()].map(str::to_owned).to_vec();
    let server = launch.start()?;
    let mut client = Client::connect(&server.address)?;
    make_large_items(&mut client)?;
    let before = resident_kib_of(server.id())?.0;
    let mut held = Vec::new();
    let request = format!(
        "GET /dbs/db/colls/c/docs HTTP/1.1\r\nhost: x\r\n{}x-ms-documentdb-partitionkey: [\"p\"]\r\n\r\n",
        signed("GET", "/dbs/db/colls/c/docs")
    );
    for _ in 0..count {
        let mut stream = TcpStream::connect(&server.address)?;
        stream.write_all(request.as_bytes())?;
        held.push(stream);
    }
    std::thread::sleep(Duration::from_secs(1));
    let (mut peak, mut held_most, began) = (0, 0, Instant::now());
    let mut others = Histogram::default();
    // Some read a byte now and then, which must not keep their connections either.
    while held_bytes(&server)? > 1 << 20 || began.elapsed() < Duration::from_secs(3) {
        ensure!(
            began.elapsed() < Duration::from_secs(150),
            "slow readers still hold {} bytes",
            held_bytes(&server)?
        );
        for stream in held.iter_mut().take(10) {
            stream.set_nonblocking(true)?;
            let _ = stream.read(&mut [0]);
        }
        others.add(single(&mut client, "small")?);
        peak = peak.max(resident_kib_of(server.id())?.0);
        held_most = held_most.max(held_bytes(&server)?);
        std::thread::sleep(Duration::from_millis(50));
    }
    let gone = began.elapsed();
    let grown = peak.saturating_sub(before) / 1024;
    // The answers for slow readers, the pages they are made of, and what the allocator keeps.
    let most = 4 * (ROOM >> 20);
    ensure!(grown <= most, "memory grew by {grown} MiB, {most} MiB would do");
    ensure!(held_most >= ROOM / 8, "only {held_most} bytes waited for readers, which shows nothing");
    server.stop(Duration::from_secs(60))?;
    Ok(Outcome::Held(format!(
        "{count} peers asked for {} MiB and read nothing: {} MiB waited for them at most and {grown} MiB more were used \
         (request-memory 64 MiB), cut off after {:.0} s; single reads meanwhile p99 {:.1} ms",
        (count * 4 * 1_500_000) >> 20,
        held_most >> 20,
        gone.as_secs_f64(),
        others.percentile(99.0) / 1e3
    )))
}

/// A container whose list is four items of 1.5 MB, and a small one that honest peers read.
pub(crate) fn make_large_items(client: &mut Client) -> Result<()> {
    client.database("db")?;
    client.container("c", ",\"indexingPolicy\":{\"indexingMode\":\"none\",\"automatic\":false}", "")?;
    let large = "x".repeat(1_500_000);
    for id in 0..4 {
        client
            .upsert("c", "p", &format!("{{\"id\":\"{id}\",\"pk\":\"p\",\"text\":\"{large}\"}}"))?
            .expect(201)?;
    }
    client.upsert("c", "p", "{\"id\":\"small\",\"pk\":\"p\"}")?.expect(201)?;
    Ok(())
}

/// Returns the headers that identify the client.
pub(crate) fn signed(method: &str, path: &str) -> String {
    let date = date();
    let token = sign(method, path, &date).expect("a path that can be signed");
    format!("x-ms-date: {date}\r\nauthorization: {token}\r\n")
}

pub(crate) fn ask_alive(stream: &mut TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(b"GET /alive HTTP/1.1\r\nhost: x\r\n\r\n")?;
    let (mut answer, mut piece) = (Vec::new(), [0; 1024]);
    while !answer.ends_with(b"{\"alive\":true}") {
        let count = stream.read(&mut piece)?;
        ensure!(count > 0, "the connection was closed");
        answer.extend_from_slice(&piece[..count]);
    }
    Ok(())
}

fn single(client: &mut Client, id: &str) -> Result<Duration> {
    let began = Instant::now();
    client.read("c", "p", id)?.expect(200)?;
    Ok(began.elapsed())
}

fn latency(client: &mut Client, count: usize) -> Result<Histogram> {
    let mut histogram = Histogram::default();
    for _ in 0..count {
        histogram.add(single(client, "1")?);
    }
    Ok(histogram)
}

/// Waits until something holds.
pub(crate) fn wait_for(max_wait: Duration, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let began = Instant::now();
    while !holds()? {
        ensure!(began.elapsed() < max_wait, "not within {max_wait:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Returns a figure of the metrics page, its samples added up.
pub(crate) fn metric(server: &Server, name: &str) -> Result<u64> {
    let page = Client::connect(&server.address)?.request("GET", "/metrics", "", "")?.expect(200)?;
    let samples = page.body.lines().filter(|line| line.starts_with(name) && !line.starts_with('#'));
    let values = samples.filter(|line| line[name.len()..].starts_with([' ', '{']));
    Ok(values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64)
}

/// Returns the number of open connections without that of the caller.
pub(crate) fn open_connections(server: &Server) -> Result<u64> {
    Ok(metric(server, "bolide_connections_open")?.saturating_sub(1))
}

pub(crate) fn held_bytes(server: &Server) -> Result<u64> {
    metric(server, "bolide_held_bytes")
}

/// Returns the limit of open files of this process and the servers it starts.
fn open_files_max() -> Result<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find(|line| line.starts_with("Max open files")).context("no such limit")?;
    Ok(line.split_whitespace().nth(3).context("no figure")?.parse()?)
}
