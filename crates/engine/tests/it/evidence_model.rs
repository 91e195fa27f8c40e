//! Random operations with failures of the archive and crashes of the store, against a plain model: every expired item has its line
//! (T32) and exactly one entry in the deletion record, with the instant of its expiry, and no living item has either. In
//! every other run reads restart countdowns (T33): items that they keep living have no evidence, and later that of the true instant.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Api, ArchiveDirectory, Consent, DeletionLog, ItemName, Owner, Precondition, Verifier};
use storage::CrashMode;

use crate::world::{START, World, key};

const IDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// A version of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    number: u32,
    ts: u64,
    /// From when on its ttl is counted.
    from: u64,
    ttl: Option<i64>,
}

/// The evidence of an expired item: its id, `_ts`, and when it expired.
type Told = (String, u64, String);

struct Life {
    world: World,
    random: fastrand::Rng,
    now: u64,
    default_ttl: Option<i64>,
    held: bool,
    slides: bool,
    living: BTreeMap<&'static str, Version>,
    /// The numbers of all versions that have expired.
    died: BTreeMap<u32, Told>,
    written: u32,
    seen: usize,
    restarts: usize,
}

impl Life {
    fn new(seed: u64) -> Life {
        let world = World::new();
        let owner = Owner::Container(world.container(r#","defaultTtl":5"#));
        let slides = seed % 2 == 1;
        let settings = |settings: &mut engine::Lifecycle| {
            settings.sliding = slides;
            settings.archive = ArchiveDirectory::parse("cold");
            settings.deletion_record = true;
        };
        world.engine.change_lifecycle(&owner, settings).expect("a wish");
        Life {
            world,
            random: fastrand::Rng::with_seed(seed),
            now: START,
            default_ttl: Some(5),
            held: false,
            slides,
            living: BTreeMap::new(),
            died: BTreeMap::new(),
            written: 0,
            seen: 0,
            restarts: 0,
        }
    }

    fn owner(&self) -> Owner {
        self.world.engine.owner(Api::NoSql, "db", "c").expect("made at the start")
    }

    /// Returns when an item expires by the present rules.
    fn deadline(&self, version: &Version) -> Option<i64> {
        match (self.default_ttl, version.ttl) {
            _ if self.held => None,
            (None, _) | (_, Some(-1)) | (Some(-1), None) => None,
            (Some(_), Some(ttl)) | (Some(ttl), None) => Some(version.from.cast_signed() + ttl),
        }
    }

    /// Expires items that are overdue: at their deadline, or at the change that expired them.
    fn reap(&mut self, change: Option<i64>) {
        let now = self.now.cast_signed();
        let due = |(id, version): (&&'static str, &Version)| Some((*id, self.deadline(version)?));
        let expired: Vec<_> =
            self.living.iter().filter_map(due).filter(|(_, deadline)| *deadline <= now).collect();
        for (id, deadline) in expired {
            let version = self.living.remove(id).expect("just found");
            let died = bson::format_date(change.unwrap_or(deadline * 1000));
            self.died.insert(version.number, (id.to_owned(), version.ts, died));
        }
    }

    /// Expires every item that is overdue after a change of rules.
    fn reap_by_change(&mut self) {
        let now = self.world.engine.now().expect("a running clock").millis();
        self.reap(Some(now.cast_signed()));
    }

    fn read(&mut self) {
        let living = self.random.choice(self.living.keys().copied());
        let id = living.unwrap_or(IDS[self.random.usize(..IDS.len())]);
        let engine = &self.world.engine;
        let outcome =
            engine.read(&self.world.current(), &key("p"), &ItemName::Id(id.into()), &Precondition::None);
        assert_eq!(outcome.is_ok(), self.living.contains_key(id), "{outcome:?}");
        let Some(version) = self.living.get(id) else { return };
        if let Some(renewal) = outcome.expect("it lives").renewal.and_then(|renewal| engine.renew(&renewal)) {
            renewal.wait().expect("restarted");
        }
        if self.slides && version.ttl != Some(-1) && self.deadline(version).is_some() {
            self.restarts += usize::from(version.from < self.now);
            self.living.get_mut(id).expect("it lives").from = self.now;
        }
    }

    fn write(&mut self) {
        let id = IDS[self.random.usize(..IDS.len())];
        self.written += 1;
        let ttl = self.random.choice([None, None, Some(-1), Some(3), Some(8)]).expect("some");
        let own = ttl.map_or(String::new(), |ttl| format!(r#","ttl":{ttl}"#));
        let outcome = self.world.upsert("p", &format!(r#""id":"{id}","version":{}{own}"#, self.written));
        if self.held && self.living.contains_key(id) {
            assert!(matches!(outcome, Err(engine::Error::Held { .. })), "{outcome:?}");
            return;
        }
        outcome.expect("written");
        self.living.insert(id, Version { number: self.written, ts: self.now, from: self.now, ttl });
    }

    fn delete(&mut self) {
        let id = IDS[self.random.usize(..IDS.len())];
        if !self.held && self.living.remove(id).is_some() {
            self.world.delete("p", id).expect("it lives");
        }
    }

    fn change_rules(&mut self) {
        self.default_ttl = self.random.choice([None, Some(-1), Some(2), Some(5), Some(20)]).expect("some");
        self.world.set_default(self.default_ttl);
        self.reap_by_change();
    }

    fn turn_hold(&mut self) {
        self.held = !self.held;
        let hold = self.held.then(|| "case".to_owned());
        let change = self.world.engine.change_lifecycle_with(&self.owner(), Consent::Given, |settings| {
            settings.hold = hold;
        });
        change.expect("a wish");
        self.reap_by_change();
    }

    fn crash_in_the_purge(&mut self) {
        let mode = if self.random.bool() { CrashMode::BeforeCommit } else { CrashMode::AfterCommit };
        self.world.crash_after(self.random.u64(..4), mode);
        for _ in 0..3 {
            let _ = self.world.engine.purge_step(self.random.usize(1..10));
        }
        self.world.restart();
        // A start goes on up to a tenth of a second later.
        self.look_at_the_clock();
    }

    fn look_at_the_clock(&mut self) {
        self.now = self.world.engine.now().expect("a running clock").seconds();
        self.reap(None);
    }

    fn step(&mut self) {
        match self.random.u8(..20) {
            0..7 => self.write(),
            7..10 => self.read(),
            10 => self.delete(),
            11 | 12 => {
                self.world.pass(self.random.u64(1..9));
                self.look_at_the_clock();
            }
            13 => self.change_rules(),
            14 if self.random.u8(..4) == 0 => self.turn_hold(),
            15 => self.world.archive.set_full("cold", self.random.bool()),
            16 => self.crash_in_the_purge(),
            _ => drop(self.world.engine.purge_step(self.random.usize(1..10)).expect("a step")),
        }
        self.check();
    }

    /// Checks that no line is of a living item, or of one that a client has deleted.
    fn check(&mut self) {
        let lines = self.world.archive.lines("cold");
        for line in &lines[self.seen..] {
            let number = version_of(line);
            assert!(self.died.contains_key(&number), "version {number} has not died: {line}");
        }
        self.seen = lines.len();
        let (living, _) = self.world.counts();
        assert_eq!(living, self.living.len() as u64);
    }

    /// Checks at the end that every expired item has a line and one entry.
    fn end(&mut self) {
        if self.held {
            self.turn_hold();
        }
        self.world.archive.set_full("cold", false);
        self.world.pass(61);
        self.look_at_the_clock();
        self.world.drain();
        self.check();
        let lines: BTreeSet<u32> =
            self.world.archive.lines("cold").iter().map(|line| version_of(line)).collect();
        assert_eq!(lines, self.died.keys().copied().collect());
        assert_eq!(self.world.engine.purge_figures(&self.owner()).expect("figures").backlog.items, 0);

        let log = self.world.engine.deletion_logs_of(&self.owner()).expect("logs").remove(0);
        let mut entries = self.entries(&log);
        let mut died: Vec<Told> = self.died.values().cloned().collect();
        entries.sort();
        died.sort();
        assert_eq!(entries, died);
    }

    /// Returns the entries of the record, which must be valid.
    fn entries(&self, log: &DeletionLog) -> Vec<Told> {
        let (mut verifier, mut entries) = (Verifier::default(), Vec::new());
        while verifier.count() < log.count {
            let page = self.world.engine.deletion_page(log.log, verifier.count()).expect("a page");
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

fn version_of(line: &str) -> u32 {
    let line = crate::world::value(line);
    let version = line.get("item").and_then(|item| item.get("version")).and_then(document::Value::as_i64);
    u32::try_from(version.expect("a version")).expect("small")
}

#[test]
fn t32_in_random_lives_all_that_died_has_its_line_and_its_entry_and_nothing_else_has() {
    let (mut died, mut lines, mut restarts) = (0, 0, 0);
    for seed in 0..100 {
        println!("seed {seed}");
        let mut life = Life::new(seed);
        for _ in 0..300 {
            life.step();
        }
        life.end();
        died += life.died.len();
        lines += life.seen;
        restarts += life.restarts;
    }
    assert!(died > 1000 && restarts > 100, "{died}, {restarts}: too few to test anything");
    assert!(lines > died, "no crash or failure has made a line come twice");
}
