//! The work that goes on while the server is killed: each focus makes one kind likely to be interrupted.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Client, KEY};
use fastrand::Rng;
use parking_lot::Mutex;

use crate::backups::Taken;
use crate::ledger::wall_clock;
use crate::times::Ttl;
use crate::world::{BULK, CONTAINERS, Indexed, Lost, World, definition};
use crate::writer::{Step, Writer};

/// The focus of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// Writers alone.
    Writes,
    /// Hundreds of items that expired in one instant are being purged.
    Purge,
    /// The indexing policy was changed, the new index is being built.
    IndexBuild,
    /// `bolide backup` reads everything.
    Backup,
    /// `defaultTtl` changes again and again.
    Policy,
    /// The journal is ended and tables are rewritten, because a container promises that bytes are gone (T24).
    Compaction,
    /// The server is killed again while it recovers.
    Recovery,
    /// The server was told to stop, and is killed before it has.
    Stopping,
}

impl Focus {
    pub const ALL: [Focus; 8] = [
        Focus::Writes,
        Focus::Purge,
        Focus::IndexBuild,
        Focus::Backup,
        Focus::Policy,
        Focus::Compaction,
        Focus::Recovery,
        Focus::Stopping,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Focus::Writes => "writes alone",
            Focus::Purge => "a purge",
            Focus::IndexBuild => "an index build",
            Focus::Backup => "a backup",
            Focus::Policy => "a change of defaultTtl",
            Focus::Compaction => "a compaction",
            Focus::Recovery => "recovery",
            Focus::Stopping => "a stop in order",
        }
    }

    /// Returns how long after its work has begun the server is killed at the latest.
    pub fn window(self) -> Duration {
        Duration::from_millis(match self {
            Focus::Writes | Focus::Recovery | Focus::Stopping => 400,
            Focus::Purge | Focus::Policy => 150,
            Focus::IndexBuild | Focus::Backup => 60,
            Focus::Compaction => 700,
        })
    }
}

/// The state of the disturber when the server has ended.
#[derive(Default)]
pub struct Tally {
    /// Whether its work was interrupted.
    pub struck: AtomicBool,
    /// The last backup that finished before the kill.
    pub backup: Mutex<Option<Taken>>,
}

/// Disturbs until the server ends. Signals `begun` when there is an operation to interrupt.
pub struct Disturber<'a> {
    pub world: &'a World,
    pub client: Client,
    pub server: &'a Path,
    pub place: &'a Path,
    /// Host and port of the NoSQL API.
    pub address: &'a str,
    pub writer: &'a mut Writer,
    pub random: Rng,
    pub begun: Sender<()>,
    pub tally: &'a Tally,
}

impl Disturber<'_> {
    pub fn run(mut self, focus: Focus) -> Result<()> {
        match self.disturb(focus) {
            Err(error) if error.is::<Lost>() => Ok(()),
            other => other,
        }
    }

    fn disturb(&mut self, focus: Focus) -> Result<()> {
        match focus {
            Focus::Writes | Focus::Recovery | Focus::Stopping => self.move_time(),
            Focus::Purge => self.purge(),
            Focus::IndexBuild => self.build_indexes(),
            Focus::Backup => self.back_up(),
            Focus::Policy => self.change_policy(),
            Focus::Compaction => self.compact(),
        }
    }

    fn begun(&self) {
        // No thread may wait any longer once the server is to be killed.
        let _ = self.begun.send(());
    }

    fn crowd(&mut self, batches: usize, seconds: i64) -> Result<()> {
        for _ in 0..batches {
            match self.writer.crowd(self.world, &mut self.client, seconds)? {
                Step::Answered => {}
                Step::Lost => return Err(Lost.into()),
                Step::Refused(status, why) => anyhow::bail!("refused with {status}: {why}"),
            }
        }
        Ok(())
    }

    fn advance(&mut self, seconds: u64) -> Result<()> {
        self.world.advance(&mut self.client, seconds).map_err(|_| Lost.into())
    }

    fn pause(&mut self, most_ms: u64) {
        std::thread::sleep(Duration::from_millis(self.random.u64(1..=most_ms)));
    }

    fn move_time(&mut self) -> Result<()> {
        self.begun();
        loop {
            self.pause(200);
            let seconds = self.random.u64(1..8);
            self.advance(seconds)?;
        }
    }

    fn purge(&mut self) -> Result<()> {
        self.crowd(5, 10)?;
        self.advance(11)?;
        self.begun();
        loop {
            self.pause(50);
            self.advance(1)?;
        }
    }

    fn build_indexes(&mut self) -> Result<()> {
        self.crowd(4, 100)?;
        let path = format!("/dbs/db/colls/{}", CONTAINERS[BULK]);
        let mut indexed = if self.random.bool() { Indexed::Numbers } else { Indexed::Everything };
        loop {
            let body = definition(CONTAINERS[BULK], Ttl::Infinite, indexed);
            self.begun();
            self.client.request("PUT", &path, "", &body).map_err(|_| Lost)?.expect(200)?;
            self.pause(60);
            indexed = match indexed {
                Indexed::Everything => Indexed::Numbers,
                Indexed::Numbers => Indexed::Everything,
            };
        }
    }

    /// Makes one backup after the other. The first always finishes, to be compared; a later one is interrupted.
    fn back_up(&mut self) -> Result<()> {
        self.crowd(2, 100)?;
        let (file, whole) = (self.place.join("new.backup"), self.place.join("whole.backup"));
        loop {
            let begun = wall_clock();
            let status = Command::new(self.server)
                .args(["backup", "--url", &format!("http://{}/", self.address), "--key", KEY, "--to"])
                .arg(&file)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            if !status.success() {
                ensure!(!file.exists(), "a backup that failed has its name");
                self.tally.struck.store(true, Ordering::Relaxed);
                return Err(Lost.into());
            }
            let ended = wall_clock();
            std::fs::rename(&file, &whole)?;
            *self.tally.backup.lock() = Some(Taken { file: whole.clone(), begun, ended });
            self.begun();
        }
    }

    fn change_policy(&mut self) -> Result<()> {
        loop {
            let ttl = match self.random.u8(..6) {
                0 => Ttl::Off,
                1 => Ttl::Infinite,
                _ => Ttl::Seconds(self.random.i64(2..60)),
            };
            self.begun();
            self.world.change_policy(&mut self.client, ttl)?;
            self.pause(10);
            if self.random.u8(..4) == 0 {
                self.advance(3)?;
            }
        }
    }

    fn compact(&mut self) -> Result<()> {
        self.crowd(3, 5)?;
        promise(&mut self.client, Some(2)).map_err(|_| Lost)?;
        let before = self.scrubs()?;
        self.advance(6)?;
        self.begun();
        self.tally.struck.store(true, Ordering::Relaxed);
        while self.scrubs()? == before {
            std::thread::sleep(Duration::from_millis(5));
        }
        // It finished before the server was killed.
        self.tally.struck.store(false, Ordering::Relaxed);
        self.move_time()
    }

    fn scrubs(&mut self) -> Result<u64> {
        scrubs(&mut self.client).map_err(|_| Lost.into())
    }
}

/// Returns how often removed bytes have been scrubbed from the files.
pub fn scrubs(client: &mut Client) -> Result<u64> {
    let figures = client.admin("GET", "/_bolide/purge", "")?.expect(200)?;
    figures.number("scrubs").context("no figure of scrubs")
}

/// Sets a promise of container `bulk` that bytes of expired items are gone after so many seconds, or removes it.
pub fn promise(client: &mut Client, seconds: Option<u32>) -> Result<()> {
    let seconds = seconds.map_or("null".to_owned(), |seconds| seconds.to_string());
    let body = format!("{{\"maxPurgeDelay\":{seconds}}}");
    client.admin("PATCH", &format!("/_bolide/ttl/db/{}", CONTAINERS[BULK]), &body)?.expect(200).map(drop)
}
