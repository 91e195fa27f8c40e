//! The duration of a refusal reveals nothing about the secret, nor about the existence of a user.
//!
//! Two kinds of wrong credentials are sent in turns, so that other load on the machine affects both alike; then their
//! medians are compared. A key's beginning or the names of users, if an unauthenticated client could learn them in this
//! way, would show.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Bson, Client, KEY, Value, WireClient, date, message, sign};

use crate::process::{Launch, Server};
use crate::{Outcome, Setting};

/// The largest difference of two medians: noise, and nothing that a network would let through.
const APART_MOST: f64 = 0.10;
const APART_MOST_US: f64 = 10.0;

/// Runs the check.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let rounds = setting.rounds(300, 3000, 20_000) as usize;
    let server = Launch::new(&setting.server, place).start()?;
    let told = [bearer(&server, rounds)?, signature(&server, rounds)?, user(&server, rounds)?];
    server.stop(Duration::from_secs(60))?;
    Ok(Outcome::Held(told.join("; ")))
}

/// Compares a key that is wrong in its first character with one that is wrong in its last.
fn bearer(server: &Server, rounds: usize) -> Result<String> {
    let mut client = Client::connect(&server.address)?;
    let early = format!("D{}", &KEY[1..]);
    let late = format!("{}x==", &KEY[..KEY.len() - 3]);
    let mut ask = |key: &str| -> Result<()> {
        let headers = format!("authorization: Bearer {key}\r\n");
        client.plain("GET", "/_bolide/status", &headers, "")?.expect(401).map(drop)
    };
    compare("a key wrong at its beginning or at its end", rounds, |which| {
        ask(if which { &early } else { &late })
    })
}

/// Compares a signature that is wrong in its first byte with one that is wrong in its last.
fn signature(server: &Server, rounds: usize) -> Result<String> {
    let mut client = Client::connect(&server.address)?;
    let date = date();
    let good = sign("GET", "/dbs", &date)?;
    let at = good.find("sig%3D").context("a signature")? + "sig%3D".len();
    let wrong = |at: usize| {
        let mut bytes = good.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8_lossy(&bytes).into_owned()
    };
    // The last character before the escaped `=` carries bits that base64 wants to be zero, so the one before it is changed.
    let end = good.len() - "%3D".len() - 2;
    let (early, late) = (wrong(at), wrong(end));
    let mut ask = |token: &str| -> Result<()> {
        let headers = format!("x-ms-date: {date}\r\nauthorization: {token}\r\n");
        client.plain("GET", "/dbs", &headers, "")?.expect(401).map(drop)
    };
    compare("a signature wrong at its beginning or near its end", rounds, |which| {
        ask(if which { &early } else { &late })
    })
}

/// Compares a user who exists with one who does not, up to the challenge. The answer to a wrong proof waits for a second,
/// which hides any difference before it.
fn user(server: &Server, rounds: usize) -> Result<String> {
    let mut wire = WireClient::connect(&server.mongo)?;
    let command = Bson::new().text("createUser", "known").text("pwd", "secret").array("roles", []);
    wire.command("admin", command)?;
    let mut ask = |name: &str| -> Result<()> {
        let payload = format!("n,,n={name},r=abcdefghijklmnopqrstuvwx");
        let start =
            Bson::new().int("saslStart", 1).text("mechanism", "SCRAM-SHA-256").text("payload", &payload);
        let answer = wire.exchange(&message("admin", start))?;
        ensure!(Value::field(answer, "ok")?.and_then(|ok| ok.number()) == Some(1.0), "saslStart was refused");
        Ok(())
    };
    compare("a user who exists or does not", rounds, |which| ask(if which { "known" } else { "missing" }))
}

fn compare(what: &str, rounds: usize, mut ask: impl FnMut(bool) -> Result<()>) -> Result<String> {
    let (mut one, mut other) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for round in 0..2 * rounds + 100 {
        let began = Instant::now();
        ask(round % 2 == 0)?;
        // The first ones find caches cold.
        if round >= 100 {
            (if round % 2 == 0 { &mut one } else { &mut other }).push(began.elapsed());
        }
    }
    let (one, other) = (median_us(one), median_us(other));
    let apart = (one - other).abs();
    let told = format!("{what}: {one:.1} and {other:.1} us");
    ensure!(apart <= APART_MOST_US || apart / one.min(other) <= APART_MOST, "{told}");
    Ok(told)
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}
