//! Random operations with failures of the archive and crashes of the store, against a plain model: every expired item has its line
//! (T32) and exactly one entry in the deletion record, with the instant of its expiry, and no living item has either. In
//! every other seed reads restart countdowns (T33): what they keep alive is not told of, and then of the true instant.

use std::collections::{BTreeMap, BTreeSet};

use engine::definition::OwnTtl;
use engine::{ArchiveDirectory, DefaultTtl, DeletionLog, Verifier};
use fastrand::Rng;
use storage::CrashMode;

use crate::container_model::{ContainerModel, Draft, Settings};
use crate::model_test::{ModelTest, Reached, Step, run};

const IDS: u32 = 6;

/// The evidence of an expired item: its id, `_ts`, and when it expired.
type Told = (String, u64, String);

struct EvidenceTest {
    model: ContainerModel,
    /// How many lines of the archive were compared.
    seen: usize,
}

impl EvidenceTest {
    fn write(&mut self) {
        let random = &mut self.model.random;
        let ttls = [OwnTtl::Absent, OwnTtl::Absent, OwnTtl::Never, OwnTtl::Seconds(3), OwnTtl::Seconds(8)];
        let ttl = random.choice(ttls).expect("some");
        self.model.write(&Draft { ttl, ..Draft::default() });
    }

    fn change_rules(&mut self) {
        let seconds = self.model.random.choice([2, 5, 20]).map(DefaultTtl::Seconds).expect("some");
        let (off, never) = (DefaultTtl::Off, DefaultTtl::Never);
        let default = self.model.random.choice([off, never, seconds, seconds, seconds]);
        self.model.set_default(default.expect("some"));
    }

    fn fill_archive(&mut self) {
        self.model.world.archive.set_full("cold", self.model.random.bool());
    }

    fn crash_in_the_purge(&mut self) {
        let ContainerModel { world, random, .. } = &mut self.model;
        let mode = if random.bool() { CrashMode::BeforeCommit } else { CrashMode::AfterCommit };
        world.crash_after(random.u64(..4), mode);
        for _ in 0..3 {
            let _ = world.engine.purge_step(random.usize(1..10));
        }
        self.model.restart();
    }

    /// What must be told of each version that has expired, by its number.
    fn expired(&self) -> BTreeMap<u32, Told> {
        let expired = self.model.expired.iter().map(|expired| {
            let ts = expired.item.written_ms.cast_unsigned() / 1000;
            (expired.item.version, (expired.id.to_string(), ts, bson::format_date(expired.at_ms)))
        });
        expired.collect()
    }

    /// Returns the entries of the record, which must be valid.
    fn entries(&self, log: &DeletionLog) -> Vec<Told> {
        let (mut verifier, mut entries) = (Verifier::default(), Vec::new());
        while verifier.count() < log.count {
            let page = self.model.world.engine.deletion_page(log.log, verifier.count()).expect("a page");
            for line in page.lines.split_inclusive(|byte| *byte == b'\n') {
                verifier.line(line).expect("in order");
                let line = crate::world::value(str::from_utf8(line).expect("text"));
                if line.get("event").and_then(document::Value::as_str) == Some("purged") {
                    let text =
                        |name| line.get(name).and_then(document::Value::as_str).expect("text").to_owned();
                    let ts = line.get("_ts").and_then(document::Value::as_i64).expect("a time");
                    entries.push((text("id"), ts.cast_unsigned(), text("expired")));
                }
            }
        }
        verifier.finish(Some(&log.head), Some(log.count)).expect("in order");
        entries
    }
}

impl ModelTest for EvidenceTest {
    const SEEDS: u64 = 100;
    const LENGTH: usize = 300;
    const STEPS: &'static [Step<Self>] = &[
        (28, "write", Self::write),
        (16, "read", |test| test.model.read()),
        (4, "delete", |test| test.model.delete()),
        (8, "pass", |test| test.model.pass(1..9)),
        (4, "change rules", Self::change_rules),
        (1, "hold or lift", |test| test.model.turn_hold()),
        (4, "fill the archive or make room", Self::fill_archive),
        (4, "crash in the purge", Self::crash_in_the_purge),
        (15, "purge", |test| test.model.world.purge_some(test.model.random.usize(1..10))),
    ];

    fn start(seed: u64, random: Rng) -> EvidenceTest {
        let settings =
            Settings { default: DefaultTtl::Seconds(5), sliding: seed % 2 == 1, ..Settings::default() };
        let model = ContainerModel::new("", settings, IDS, random);
        let evidence = |lifecycle: &mut engine::Lifecycle| {
            lifecycle.archive = ArchiveDirectory::parse("cold");
            lifecycle.deletion_record = true;
        };
        model.world.engine.change_lifecycle(&model.world.owner(), evidence).expect("a change");
        EvidenceTest { model, seen: 0 }
    }

    /// No line is of a living item, or of one that a client has deleted.
    fn compare(&mut self) {
        let lines = self.model.world.archive.lines("cold");
        for line in &lines[self.seen..] {
            let version = version_of(line);
            let has_expired = self.model.expired.iter().any(|expired| expired.item.version == version);
            assert!(has_expired, "version {version} has not expired: {line}");
        }
        self.seen = lines.len();
        assert_eq!(self.model.world.counts().0, self.model.items.len() as u64);
    }

    /// In the end every expired item has a line and one entry.
    fn finish(&mut self) {
        if self.model.settings.held {
            self.model.turn_hold();
        }
        self.model.world.archive.set_full("cold", false);
        self.model.pass(61..=61);
        self.model.world.drain();
        self.compare();
        let (world, owner) = (&self.model.world, self.model.world.owner());
        let lines: BTreeSet<u32> = world.archive.lines("cold").iter().map(|line| version_of(line)).collect();
        assert_eq!(lines, self.expired().into_keys().collect());
        assert_eq!(world.engine.purge_figures(&owner).expect("figures").backlog.items, 0);

        let log = world.engine.deletion_logs_of(&owner).expect("logs").remove(0);
        let mut entries = self.entries(&log);
        let mut expired: Vec<Told> = self.expired().into_values().collect();
        entries.sort();
        expired.sort();
        assert_eq!(entries, expired);
    }

    fn reached(&self) -> Vec<Reached> {
        let expired = self.model.expired.len();
        vec![
            ("expiry", expired, 1001),
            ("countdown restarted", self.model.renewals, 101),
            ("line that came twice after a crash or failure", self.seen - expired, 1),
        ]
    }
}

fn version_of(line: &str) -> u32 {
    let line = crate::world::value(line);
    let version = line.get("item").and_then(|item| item.get("version")).and_then(document::Value::as_i64);
    u32::try_from(version.expect("a version")).expect("small")
}

#[test]
fn t32_in_random_operations_every_expired_item_has_its_line_and_its_entry_and_no_other_has() {
    run::<EvidenceTest>();
}
