//! Few files: the server has so few that connections alone could take all of them, and then none at all.
//!
//! With few files the store keeps those it needs: the oldest connections without a key make way for new ones, and writes
//! meanwhile are flushed and merged into new tables, and not lost. When the limit is lowered under a running server, so
//! that it cannot accept a connection, it serves the open ones and logs the reason, and all goes on with the limit raised
//! again.

use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bolide_bench::client::Client;

use crate::overload_peers::{ask_alive, open_connections, wait_for};
use crate::process::{Launch, Server};
use crate::{Outcome, Setting};

/// The limit that the server starts with.
const FILES: usize = 320;

/// Runs the check.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let items = setting.rounds(2_000, 20_000, 60_000);
    let mut launch = Launch::new(&setting.server, place);
    launch.wrapper = ["prlimit", &format!("--nofile={FILES}:{FILES}")].map(Into::into).to_vec();
    let server = launch.start()?;
    let mut client = Client::connect(&server.address)?;
    client.database("db")?;
    client.container("c", "", "")?;

    let mut held = crowd(&server, 2 * FILES)?;
    write(&mut client, items).context("writing while connections take all they may")?;
    let files = open_files(&server)?;
    ensure!(files < FILES, "{files} of {FILES} files are open");
    held.retain_mut(|stream| ask_alive(stream).is_ok());
    let made_way = 2 * FILES - held.len();
    ensure!(!held.is_empty() && held.len() < FILES, "{} of {} connections are open", held.len(), 2 * FILES);

    let served = held.len();
    held.truncate(served / 2);
    wait_for(Duration::from_secs(30), || Ok(open_connections(&server)? <= served as u64 / 2 + 2))?;
    starve(&server, &mut client, &launch)?;
    drop(held);
    wait_for(Duration::from_secs(30), || Ok(open_connections(&server)? <= 2))?;
    ask_alive(&mut TcpStream::connect(&server.address)?).context("a new connection afterwards")?;
    let status = server.stop(Duration::from_secs(60))?;
    ensure!(status.success(), "the server ended with {status}");
    launch.inspect()?;
    verify(&launch, items)?;
    Ok(Outcome::Held(format!(
        "with {FILES} files {served} connections were open at last and {made_way} had made way, {files} files open; {items} items \
         written meanwhile are all there; an exhausted limit was survived and told once"
    )))
}

/// Opens so many connections, each of which gets an answer when it is opened.
fn crowd(server: &Server, count: usize) -> Result<Vec<TcpStream>> {
    let mut held = Vec::new();
    for number in 0..count {
        let mut stream = TcpStream::connect(&server.address)?;
        ask_alive(&mut stream).with_context(|| format!("newcomer {number} with {FILES} files"))?;
        held.push(stream);
    }
    Ok(held)
}

/// Items of a kilobyte, enough to make the store write new files.
fn write(client: &mut Client, items: u64) -> Result<()> {
    let text = "x".repeat(1000);
    for first in (0..items).step_by(100) {
        let item = |id| format!("{{\"id\":\"{id}\",\"pk\":\"p\",\"text\":\"{text}\"}}");
        client.batch("c", "p", &(first..first + 100).map(item).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn verify(launch: &Launch, items: u64) -> Result<()> {
    let server = launch.start()?;
    let mut client = Client::connect(&server.address)?;
    for id in (0..items).step_by(7) {
        client.read("c", "p", &id.to_string())?.expect(200).with_context(|| format!("item {id}"))?;
    }
    client.upsert("c", "p", "{\"id\":\"last\",\"pk\":\"p\"}")?.expect(201)?;
    server.stop(Duration::from_secs(60))?;
    Ok(())
}

/// Takes every free file from the running server for a while.
fn starve(server: &Server, client: &mut Client, launch: &Launch) -> Result<()> {
    launch.forget_log()?;
    let began = Instant::now();
    // Opens the tables with the item.
    client.read("c", "p", "7")?.expect(200)?;
    limit_files(server, 8)?;
    let mut waiting = TcpStream::connect(&server.address)?;
    waiting.set_read_timeout(Some(Duration::from_millis(1500)))?;
    ensure!(waiting.read(&mut [0]).is_err(), "a connection was accepted and closed without a file for it");
    for _ in 0..100 {
        client.read("c", "p", "7")?.expect(200).context("an open connection while no file is left")?;
    }
    client
        .upsert("c", "p", "{\"id\":\"starved\",\"pk\":\"p\"}")?
        .expect(201)
        .context("a write while no file is left")?;
    limit_files(server, FILES)?;
    ask_alive(&mut waiting).context("the connection that had to wait")?;
    let told = launch.logged().lines().filter(|line| line.contains("cannot accept a connection")).count();
    // It logs the same complaint every ten seconds.
    let most = 2 + (began.elapsed().as_secs() / 10) as usize;
    ensure!((1..=most).contains(&told), "the log tells of it {told} times");
    Ok(())
}

fn limit_files(server: &Server, files: usize) -> Result<()> {
    let pid = server.id().to_string();
    let status =
        Command::new("prlimit").args(["--pid", &pid, &format!("--nofile={files}:{FILES}")]).status()?;
    ensure!(status.success(), "prlimit ended with {status}");
    Ok(())
}

fn open_files(server: &Server) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{}/fd", server.id()))?.count())
}
