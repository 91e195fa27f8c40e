//! A limit on memory: the server in a control group with a fixed bound, and peers that want all of it.
//!
//! Everything at once: large pages that are never read, large bodies that do not end, large MongoDB messages, sorts that
//! keep much, heads without end. The kernel would kill the server at the limit; the server must stay below it, answer, and
//! recover.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bolide_bench::client::{Bson, Client, Value, WireClient, message};

use crate::overload_peers::{held_bytes, make_large_items, metric, signed};
use crate::process::{Launch, Server};
use crate::{Outcome, Setting};

/// The memory bound of the whole process.
const LIMIT_MIB: u64 = 768;
/// The part of it for requests and answers.
const ROOM_MIB: u64 = 128;
/// Connections of each kind of attack.
const EACH: usize = 60;

/// Runs the check.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let seconds = setting.rounds(3, 20, 60);
    let Some(group) = Group::make() else {
        return Ok(Outcome::Skipped("no control group for memory can be made here".to_owned()));
    };
    let mut launch = Launch::new(&setting.server, place);
    let join = format!("echo $$ > {} && exec \"$@\"", group.members().display());
    launch.wrapper = ["sh", "-c", &join, "sh"].map(Into::into).to_vec();
    let room = (ROOM_MIB << 20).to_string();
    launch.options =
        ["--request-memory", &room, "--mongo-stage-memory", "16777216"].map(str::to_owned).to_vec();
    let mut server = launch.start()?;
    prepare(&server)?;
    let over = AtomicBool::new(false);
    let attacks = [
        Attack::new("pages that are never read", unread_pages),
        Attack::new("bodies that do not end", endless_bodies),
        Attack::new("large messages", large_messages),
        Attack::new("sorts", sorts),
        Attack::new("heads that do not end", endless_heads),
    ];
    let (answered, held) = std::thread::scope(|scope| -> Result<(u64, u64)> {
        for attack in &attacks {
            for _ in 0..EACH {
                let (server, over) = (&server, &over);
                let worker = std::thread::Builder::new().stack_size(256 * 1024);
                worker.spawn_scoped(scope, move || attack.go_on(server, over))?;
            }
        }
        let held = scope.spawn(|| most_held(&server, &over));
        let answered = work(&server, Duration::from_secs(seconds));
        over.store(true, Ordering::Relaxed);
        Ok((answered?, held.join().expect("it does not panic")?))
    })?;
    for attack in &attacks {
        ensure!(attack.met.load(Ordering::Relaxed) > 0, "{}: none of them was let in", attack.name);
    }
    let shed = metric(&server, "bolide_held_bytes_shed_total")? + metric(&server, "bolide_load_shed_total")?;
    // Queries leave half of their half to others.
    ensure!(held >= (ROOM_MIB << 20) / 4, "{held} bytes were held at most, which is no attack");
    ensure!(shed > 0, "nothing was refused, so nothing was short");
    ensure!(server.ended()?.is_none(), "the server is gone: {}", launch.last_words());
    let peak = group.peak_mib()?;
    ensure!(peak < LIMIT_MIB, "{peak} MiB were used, which is all there was");
    let mut client = Client::connect(&server.address)?;
    client.read("c", "p", "small")?.expect(200).context("after the attack")?;
    let status = server.stop(Duration::from_secs(60))?;
    ensure!(status.success(), "the server ended with {status}");
    launch.inspect()?;
    Ok(Outcome::Held(format!(
        "{} peers that wanted everything made {} attempts in {seconds} s, {shed} of which were refused: {peak} MiB at most of \
         {LIMIT_MIB} MiB, page cache included, {} MiB held for peers (request-memory {ROOM_MIB} MiB); {answered} single reads \
         and writes were answered meanwhile",
        EACH * attacks.len(),
        attacks.iter().map(|attack| attack.made.load(Ordering::Relaxed)).sum::<u64>(),
        held >> 20
    )))
}

/// One kind of attack.
struct Attack {
    name: &'static str,
    run: fn(&Server, &AtomicBool) -> Result<()>,
    made: AtomicU64,
    /// Peers that were neither refused as unauthenticated nor cut off at once, so that the server read their requests.
    met: AtomicU64,
}

impl Attack {
    fn new(name: &'static str, run: fn(&Server, &AtomicBool) -> Result<()>) -> Attack {
        Attack { name, run, made: AtomicU64::new(0), met: AtomicU64::new(0) }
    }

    fn go_on(&self, server: &Server, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            self.made.fetch_add(1, Ordering::Relaxed);
            // Most of them are cut off or refused on purpose.
            if (self.run)(server, over).is_ok() {
                self.met.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Returns the most bytes that are held at a time.
fn most_held(server: &Server, over: &AtomicBool) -> Result<u64> {
    let mut most = 0;
    while !over.load(Ordering::Relaxed) {
        most = most.max(held_bytes(server)?);
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(most)
}

/// Checks that the NoSQL API has accepted a peer: it sends a page or a refusal for lack of memory, or nothing yet.
fn is_let_in(stream: &mut TcpStream) -> Result<()> {
    stream.set_nonblocking(true)?;
    let mut head = [0; 12];
    match stream.read(&mut head) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        Ok(12) if [b"HTTP/1.1 200", b"HTTP/1.1 429"].contains(&&head) => Ok(()),
        other => bail!("{other:?}: {}", String::from_utf8_lossy(&head)),
    }
}

fn prepare(server: &Server) -> Result<()> {
    let mut client = Client::connect(&server.address)?;
    make_large_items(&mut client)?;
    let text = "y".repeat(100_000);
    let documents = (0..100).map(|id| Bson::new().int("_id", id).text("text", &text).finish());
    let mut wire = WireClient::connect(&server.mongo)?;
    wire.command("test", Bson::new().text("insert", "c").array("documents", documents))?;
    Ok(())
}

/// Runs a well-behaved client; returns the number of answers. It retries when told to, which is rare.
fn work(server: &Server, length: Duration) -> Result<u64> {
    let (began, mut asked, mut answered) = (Instant::now(), 0, 0);
    let mut client = Client::connect(&server.address)?;
    while began.elapsed() < length {
        let read = client.read("c", "p", "small").context("an honest read")?;
        let written = client.upsert("c", "p", &format!("{{\"id\":\"w{answered}\",\"pk\":\"p\"}}"))?;
        for status in [read.status, written.status] {
            ensure!(matches!(status, 200 | 201 | 429), "an honest request was answered with {status}");
            asked += 1;
            answered += u64::from(status != 429);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    ensure!(answered * 10 > asked * 9, "of {asked} honest requests only {answered} were answered");
    Ok(answered)
}

fn pause(over: &AtomicBool, length: Duration) {
    let began = Instant::now();
    while began.elapsed() < length && !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn unread_pages(server: &Server, over: &AtomicBool) -> Result<()> {
    let mut stream = TcpStream::connect(&server.address)?;
    let path = "/dbs/db/colls/c/docs";
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\n{}x-ms-documentdb-partitionkey: [\"p\"]\r\n\r\n",
        signed("GET", path)
    );
    stream.write_all(request.as_bytes())?;
    pause(over, Duration::from_secs(3));
    is_let_in(&mut stream)
}

fn endless_bodies(server: &Server, over: &AtomicBool) -> Result<()> {
    let mut stream = TcpStream::connect(&server.address)?;
    let path = "/dbs/db/colls/c/docs";
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\n{}x-ms-documentdb-partitionkey: [\"p\"]\r\ncontent-length: 2097152\r\n\r\n",
        signed("POST", path)
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&vec![b' '; 2_000_000])?;
    pause(over, Duration::from_secs(3));
    is_let_in(&mut stream)
}

fn large_messages(server: &Server, over: &AtomicBool) -> Result<()> {
    let text = "z".repeat(4_000_000);
    let documents = (0..8).map(|_| Bson::new().text("text", &text).finish());
    let command = Bson::new().text("insert", "large").bool("ordered", true).array("documents", documents);
    // All but the end, so that it is never run.
    let bytes = message("test", command);
    let mut stream = TcpStream::connect(&server.mongo)?;
    stream.set_write_timeout(Some(Duration::from_secs(3)))?;
    stream.write_all(&bytes[..bytes.len() - 10])?;
    pause(over, Duration::from_secs(3));
    Ok(())
}

fn sorts(server: &Server, _: &AtomicBool) -> Result<()> {
    let mut wire = WireClient::connect(&server.mongo)?;
    let stage = Bson::new().document("$sort", Bson::new().int("text", -1));
    let command = Bson::new()
        .text("aggregate", "c")
        .array("pipeline", [stage.finish()])
        .document("cursor", Bson::new());
    let answer = wire.exchange(&message("test", command))?;
    // Done, refused for lack of a permit, or for lack of memory for the stage.
    let code = Value::field(answer, "code")?.and_then(|code| code.number());
    ensure!(matches!(code, None | Some(262.0 | 292.0)), "a sort failed with {code:?}");
    Ok(())
}

fn endless_heads(server: &Server, over: &AtomicBool) -> Result<()> {
    let mut stream = TcpStream::connect(&server.address)?;
    stream.write_all(b"GET /alive HTTP/1.1\r\nhost: x\r\n")?;
    for _ in 0..60 {
        stream.write_all(format!("x-h: {}\r\n", "h".repeat(1000)).as_bytes())?;
    }
    pause(over, Duration::from_secs(3));
    Ok(())
}

/// A control group with a limit on memory; dropping it removes it.
struct Group {
    path: PathBuf,
    /// The file with the peak.
    peak: &'static str,
}

impl Group {
    /// In whichever hierarchy there is.
    fn make() -> Option<Group> {
        let name = format!("bolide-proof-{}", std::process::id());
        let limit = (LIMIT_MIB << 20).to_string();
        let kinds = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
            ("/sys/fs/cgroup", "memory.max", "memory.peak"),
        ];
        kinds.into_iter().find_map(|(root, bound, peak)| {
            let path = Path::new(root).join(&name);
            std::fs::create_dir(&path).ok()?;
            let group = Group { path, peak };
            std::fs::write(group.path.join(bound), &limit).ok()?;
            group.peak_mib().ok()?;
            Some(group)
        })
    }

    fn members(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    fn peak_mib(&self) -> Result<u64> {
        Ok(std::fs::read_to_string(self.path.join(self.peak))?.trim().parse::<u64>()? >> 20)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It can be removed once the kernel has released its last process.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
