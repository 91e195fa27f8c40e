//! A disk that gets full: reads go on, writes get an error that says so, and with room again everything is there.
//!
//! With a reserve, as by default, the server never reaches the end of the disk: it refuses writes that need more and
//! accepts those that free space, and with room again it accepts all, without a restart. Without a reserve a commit fails
//! half-way, and a restart repairs that.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Bson, Client, WireClient, message};
use fastrand::Rng;

use crate::process::{Launch, Server};
use crate::verify::{self, Feeds, Writers};
use crate::world::{self, CONTAINERS, DATABASE, World};
use crate::writer::Step;
use crate::{Outcome, Setting};

/// The size of the disk: at first, and with room again.
const SMALL_MIB: u32 = 8;
const LARGE_MIB: u32 = 400;
/// Steps of a writer of the MongoDB API while there is room.
const DOCUMENT_STEPS: usize = 20;
/// The largest number of batches of a hundred items: many more than fit.
const BATCHES_MAX: usize = 400;
/// The largest number of single items: many more than fit where a batch does not.
const SINGLES_MAX: usize = 20_000;
/// A container beside those of the ledger, with one item to be deleted.
const SPARE: &str = "spare";

/// Whether the server reserves space on the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reserve {
    Kept,
    None,
}

pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let Some(disk) = Disk::mount(&place.join("disk"))? else {
        return Ok(Outcome::Skipped("a file system of limited size takes the right to mount one".to_owned()));
    };
    let rounds = setting.rounds(1, 3, 10);
    let (mut acknowledged, mut told) = (0, Vec::new());
    for round in 0..rounds {
        told.clear();
        for reserve in [Reserve::Kept, Reserve::None] {
            disk.resize(SMALL_MIB)?;
            let mut launch = Launch::new(&setting.server, place);
            launch.data = disk.path.join(format!("data-{round}"));
            if reserve == Reserve::None {
                launch.options.extend(["--disk-reserve", "0"].map(str::to_owned));
            }
            let world = World::default();
            let mut all_writers = Writers::new(2, 1, &mut Rng::with_seed(setting.seed + round));
            let (full, why) = fill(&launch, &world, &mut all_writers)?;
            acknowledged += all_writers.acknowledged();
            let server = make_room(&disk, &launch, full, reserve)?;
            verify::everything(&world, &server, &mut all_writers, Feeds::LeftAlone)?;
            let mut client = Client::connect(&server.address)?;
            for writer in &mut all_writers.writers {
                let step = writer.step(&world, &mut client)?;
                ensure!(step == Step::Answered, "with room again a write is refused: {step:?}");
            }
            server.kill()?;
            launch.inspect()?;
            std::fs::remove_dir_all(&launch.data)?;
            told.push(why);
        }
    }
    Ok(Outcome::Held(format!(
        "{rounds} times with and without a reserve, {acknowledged} writes acknowledged before, then: {}",
        told.join(" and ")
    )))
}

/// Writes until the disk is full; returns the server's error.
fn fill(launch: &Launch, world: &World, all_writers: &mut Writers) -> Result<(Server, String)> {
    let server = launch.start()?;
    let mut client = Client::connect(&server.address)?;
    let mut wire = WireClient::connect(&server.mongo)?;
    world.make(&mut client, &mut wire)?;
    world.read_clock(&mut client)?;
    client.container(SPARE, "", "")?;
    client.upsert(SPARE, "p", r#"{"id":"spare","pk":"p"}"#)?.expect(201)?;
    for writer in &mut all_writers.wire_writers {
        for _ in 0..DOCUMENT_STEPS {
            ensure!(writer.step(world, &mut wire)? == Step::Answered, "a write with room is refused");
        }
    }
    let writer = all_writers.writers.last_mut().context("there are writers")?;
    for _ in 0..BATCHES_MAX {
        let Step::Refused(status, why) = writer.crowd(world, &mut client, 1_000_000)? else { continue };
        ensure!(status == 503, "a write without room is answered {status}: {why}");
        let answer = client.read(CONTAINERS[2], &writer.pk(), &writer.items[2][12].id)?;
        ensure!(answer.status == 200, "a read without room is answered {}: {}", answer.status, answer.body);
        return Ok((server, why));
    }
    anyhow::bail!("the disk does not get full")
}

/// Checks the behaviour on a full disk, and after space is freed.
fn make_room(disk: &Disk, launch: &Launch, full: Server, reserve: Reserve) -> Result<Server> {
    let mut client = Client::connect(&full.address)?;
    let headers = "x-ms-documentdb-partitionkey: [\"p\"]\r\n";
    let delete = |client: &mut Client| {
        client.request("DELETE", &format!("/dbs/db/colls/{SPARE}/docs/spare"), headers, "")
    };
    match reserve {
        Reserve::Kept => {
            fill_up(&mut client)?;
            ask_documents(&full, "not enough disk space")?;
            delete(&mut client)?.expect(204).context("a deletion without room")?;
            client.plain("GET", "/ready", "", "")?.expect(200)?;
            disk.resize(LARGE_MIB)?;
            Ok(full)
        }
        Reserve::None => {
            ask_documents(&full, "no more writes")?;
            delete(&mut client)?.expect(503).context("a deletion after a commit has failed")?;
            client.plain("GET", "/ready", "", "")?.expect(503)?;
            full.kill()?;
            disk.resize(LARGE_MIB)?;
            launch.start().context("with room again")
        }
    }
}

/// Writes single items where a hundred do not fit, until the first is refused.
fn fill_up(client: &mut Client) -> Result<()> {
    for number in 0..SINGLES_MAX {
        let answer = client.upsert(SPARE, "p", &format!("{{\"id\":\"s{number}\",\"pk\":\"p\"}}"))?;
        if answer.status != 201 {
            return answer.expect(503).map(drop);
        }
    }
    anyhow::bail!("the disk does not get full by single items")
}

/// Checks the same by the MongoDB API: documents are found, and another one is refused with the reason.
fn ask_documents(server: &Server, why: &str) -> Result<()> {
    let mut wire = WireClient::connect(&server.mongo)?;
    let found = world::living_documents(&mut wire, 0).context("a find without room")?;
    ensure!(!found.is_empty(), "no document is found without room");
    let document = Bson::new().text("_id", "one too many").finish();
    let insert = Bson::new().text("insert", "c").array("documents", [document]);
    let answer = String::from_utf8_lossy(wire.exchange(&message(DATABASE, insert))?).into_owned();
    ensure!(answer.contains(why), "an insert without room is answered {answer}");
    Ok(())
}

/// A file system in memory, unmounted when dropped.
struct Disk {
    path: PathBuf,
}

impl Disk {
    /// Mounts it; none without the right to mount.
    fn mount(path: &Path) -> Result<Option<Disk>> {
        std::fs::create_dir_all(path)?;
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={SMALL_MIB}m"), "tmpfs"]).arg(path);
        let mounted = command.output().is_ok_and(|output| output.status.success());
        Ok(mounted.then(|| Disk { path: path.to_owned() }))
    }

    fn resize(&self, mib: u32) -> Result<()> {
        let mut command = Command::new("mount");
        command.args(["-o", &format!("remount,size={mib}m")]).arg(&self.path);
        ensure!(command.status()?.success(), "cannot give the disk {mib} MiB");
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: an engineer who looks at the files of a failure keeps it mounted.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
