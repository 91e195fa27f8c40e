//! A disk that is full: reads go on, writes get an error that says so, and with room again a restart has everything.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Bson, Client, WireClient, message};
use fastrand::Rng;

use crate::process::{Launch, Server};
use crate::verify::{self, Everybody, Feeds};
use crate::world::{self, CONTAINERS, DATABASE, World};
use crate::writer::Step;
use crate::{Outcome, Setting};

/// The disk's size, and with room again.
const SMALL_MIB: u32 = 8;
const LARGE_MIB: u32 = 400;
/// Steps of a writer of the MongoDB API while there is room.
const DOCUMENT_STEPS: usize = 20;
/// Batches of a hundred items: many more than fit.
const BATCHES_MAX: usize = 400;

pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let Some(disk) = Disk::mount(&place.join("disk"))? else {
        return Ok(Outcome::Skipped("a file system of limited size takes the right to mount one".to_owned()));
    };
    let rounds = setting.rounds(1, 3, 10);
    let (mut acknowledged, mut told) = (0, String::new());
    for round in 0..rounds {
        disk.resize(SMALL_MIB)?;
        let mut launch = Launch::new(&setting.server, place);
        launch.data = disk.path.join(format!("data-{round}"));
        let world = World::default();
        let mut everybody = Everybody::new(2, 1, &mut Rng::with_seed(setting.seed + round));
        told = fill(&launch, &world, &mut everybody)?;
        acknowledged += everybody.acknowledged();
        disk.resize(LARGE_MIB)?;
        let server = launch.start().context("with room again")?;
        verify::everything(&world, &server, &mut everybody, Feeds::LeftAlone)?;
        let mut client = Client::connect(&server.address)?;
        for writer in &mut everybody.writers {
            ensure!(
                writer.step(&world, &mut client)? == Step::Answered,
                "with room again a write is refused"
            );
        }
        server.kill()?;
        launch.inspect()?;
        std::fs::remove_dir_all(&launch.data)?;
    }
    Ok(Outcome::Held(format!("{rounds} times, {acknowledged} writes acknowledged before, then: {told}")))
}

/// Writes until there is no room; what the server says then.
fn fill(launch: &Launch, world: &World, everybody: &mut Everybody) -> Result<String> {
    let server = launch.start()?;
    let mut client = Client::connect(&server.address)?;
    let mut wire = WireClient::connect(&server.mongo)?;
    world.make(&mut client, &mut wire)?;
    world.read_clock(&mut client)?;
    for writer in &mut everybody.wire_writers {
        for _ in 0..DOCUMENT_STEPS {
            ensure!(writer.step(world, &mut wire)? == Step::Answered, "a write with room is refused");
        }
    }
    let writer = everybody.writers.last_mut().context("there are writers")?;
    for _ in 0..BATCHES_MAX {
        let Step::Refused(status, why) = writer.crowd(world, &mut client, 1_000_000)? else { continue };
        ensure!(status == 503, "a write without room is answered {status}: {why}");
        ensure!(why.contains("space") || why.contains("no more writes"), "nobody says why: {why}");
        let answer = client.read(CONTAINERS[2], &writer.pk(), &writer.items[2][12].id)?;
        ensure!(answer.status == 200, "a read without room is answered {}: {}", answer.status, answer.body);
        ask_documents(&server)?;
        server.kill()?;
        return Ok(why);
    }
    anyhow::bail!("the disk does not get full")
}

/// The MongoDB API says the same: documents are found, another one is refused, with the reason.
fn ask_documents(server: &Server) -> Result<()> {
    let mut wire = WireClient::connect(&server.mongo)?;
    let found = world::living_documents(&mut wire, 0).context("a find without room")?;
    ensure!(!found.is_empty(), "no document is found without room");
    let document = Bson::new().text("_id", "one too many").finish();
    let insert = Bson::new().text("insert", "c").array("documents", [document]);
    let answer = String::from_utf8_lossy(wire.exchange(&message(DATABASE, insert))?).into_owned();
    ensure!(answer.contains("no more writes"), "an insert without room is answered {answer}");
    Ok(())
}

/// A file system in memory, unmounted when dropped.
struct Disk {
    path: PathBuf,
}

impl Disk {
    /// None without the right to mount.
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
        // Lazily: whoever looks at what a failure left is not in its way.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
