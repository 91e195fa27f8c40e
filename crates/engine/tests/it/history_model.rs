//! A reader of the feed of all versions, beside a model that knows no positions, queues, cutoffs or purge: it has a list of
//! items and the rules in force, and writes down what happens as it happens (T28).
//!
//! Every operation runs in two worlds, only one of which purges: both must give the same pages to the byte.

use std::sync::Arc;

use bson::{Document, Value, ValueRef};
use engine::collection::{Decision, LivingDocument, Target};
use engine::{
    Collection, DefaultTtl, Error, Event, EventKind, HistoryPage, HistoryStart, Lifecycle, Owner, Position,
};
use fastrand::Rng;
use mql::index::IndexSpec;
use storage::{CrashMode, Direction};

use crate::collections::{by, raw};
use crate::model_test::{ModelTest, Reached, Step, run};
use crate::world::{START, World};

const IDS: i32 = 8;
const DATE_FIELDS: [&str; 2] = ["d", "e"];
const MINUTE_MS: i64 = 60_000;
/// Longer than the clock's lease: after a crash both worlds have the same time.
const RESTART_MS: u64 = 10_000;

/// An item as the model knows it.
#[derive(Debug, Clone)]
struct Known {
    id: i32,
    version: i32,
    written_ms: i64,
    ttl: Option<i64>,
    dates: [Option<i64>; 2],
}

#[derive(Debug, Clone, Default)]
struct Rules {
    default: DefaultTtl,
    /// Of the date rules in force, milliseconds.
    delays: [Option<i64>; 2],
    held: bool,
}

impl Known {
    /// Returns when the rules expire it (T2, T27).
    fn deadline(&self, rules: &Rules) -> Option<i64> {
        let written = self.written_ms.div_euclid(1000);
        let by_ttl = match (self.ttl, rules.default) {
            (_, DefaultTtl::Off) | (Some(-1), _) | (None, DefaultTtl::Never) => None,
            (Some(ttl), _) => Some((written + ttl) * 1000),
            (None, DefaultTtl::Seconds(seconds)) => Some((written + i64::from(seconds)) * 1000),
        };
        let dates = self.dates.iter().zip(rules.delays);
        let by_date = dates.filter_map(|(date, delay)| Some(date.as_ref()? + delay?));
        by_ttl.into_iter().chain(by_date).min().filter(|_| !rules.held)
    }

    fn document(&self) -> Document {
        let mut document = Document::new().with("_id", self.id).with("v", self.version);
        if let Some(ttl) = self.ttl {
            document.push("ttl", ttl);
        }
        for (field, date) in DATE_FIELDS.iter().zip(self.dates) {
            if let Some(date) = date {
                document.push(*field, Value::DateTime(date));
            }
        }
        document
    }
}

/// An event in the form that both sides are compared in: when, what, to which id, from which version to which.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    time_ms: i64,
    kind: &'static str,
    id: i32,
    previous: Option<i32>,
    current: Option<i32>,
}

/// Events in an order that ignores the order of expiries at the same instant.
fn plain(events: &[Told]) -> Vec<Told> {
    let same = |one: &Told, other: &Told| {
        (one.kind, other.kind) == ("expire", "expire") && one.time_ms == other.time_ms
    };
    let sorted = |group: &[Told]| {
        let mut group = group.to_vec();
        group.sort();
        group
    };
    events.chunk_by(same).flat_map(sorted).collect()
}

fn told(event: &Event<LivingDocument>) -> Told {
    let number = |found: &LivingDocument, field: &str| match found.document.get(field) {
        Some(ValueRef::Int32(number)) => number,
        other => panic!("{other:?}"),
    };
    let version = |found: &Option<LivingDocument>| found.as_ref().map(|found| number(found, "v"));
    let kind = match event.kind {
        EventKind::Create => "create",
        EventKind::Replace => "replace",
        EventKind::Delete => "delete",
        EventKind::Expire => "expire",
    };
    let item = event.current.as_ref().or(event.previous.as_ref()).expect("an image");
    Told {
        time_ms: event.position.time().millis() as i64,
        kind,
        id: number(item, "_id"),
        previous: version(&event.previous),
        current: version(&event.current),
    }
}

/// A reader of the feed.
struct Reader {
    position: Position,
    seen: Vec<Told>,
    /// How many events had happened when it began.
    from: usize,
}

struct HistoryTest {
    rng: Rng,
    /// The first purges, the second does not.
    worlds: [World; 2],
    now_ms: i64,
    /// How far the clocks are ahead of the model.
    ahead_ms: u64,
    version: i32,
    items: Vec<Known>,
    rules: Rules,
    events: Vec<Told>,
    minutes: Option<u32>,
    /// Earlier events are not returned any more, because the retention was changed.
    floor_ms: i64,
    reader: Reader,
    /// How often a reader came too late, a page had events, a crash kept or lost a write.
    gone: usize,
    pages: usize,
    crashes: usize,
}

impl HistoryTest {
    fn collection(world: &World) -> Arc<Collection> {
        world.engine.collection("db", "c").expect("made at the start")
    }

    /// Does the same in both worlds; they must answer the same.
    fn both<R: std::fmt::Debug + PartialEq>(&self, run: impl Fn(&World, &Arc<Collection>) -> R) -> R {
        let [one, other] = &self.worlds;
        let (one, other) =
            (run(one, &HistoryTest::collection(one)), run(other, &HistoryTest::collection(other)));
        assert_eq!(one, other, "the purge is seen");
        one
    }

    /// Expires what is overdue: at its deadline, or now if the rules have just been changed.
    fn expire(&mut self, rules_changed: bool) {
        let (now, rules) = (self.now_ms, self.rules.clone());
        let mut expired: Vec<(i64, Known)> = Vec::new();
        self.items.retain(|item| match item.deadline(&rules).filter(|deadline| *deadline <= now) {
            Some(deadline) => {
                expired.push((if rules_changed { now } else { deadline }, item.clone()));
                false
            }
            None => true,
        });
        expired.sort_by_key(|(time, _)| *time);
        for (time_ms, Known { id, version, .. }) in expired {
            self.events.push(Told { time_ms, kind: "expire", id, previous: Some(version), current: None });
        }
    }

    fn pass(&mut self, millis: u64) {
        let ahead_ms = std::mem::take(&mut self.ahead_ms);
        for world in &self.worlds {
            world.pass_millis(millis - ahead_ms);
        }
        self.now_ms += millis as i64;
        self.expire(false);
        let now_ms = self.both(|world, _| world.engine.now().expect("a time").millis() as i64);
        assert_eq!(now_ms, self.now_ms);
    }

    fn pass_some(&mut self) {
        let millis = self.rng.choice([1, 500, 1000, 2300, 4000]).expect("one of them");
        self.pass(millis);
    }

    fn draft(&mut self, id: i32) -> Known {
        self.version += 1;
        let rng = &mut self.rng;
        let ttl = match rng.u8(..4) {
            0 => Some(-1),
            1 => Some(rng.i64(1..30)),
            _ => None,
        };
        let dates = [(); 2].map(|()| match rng.u8(..4) {
            0 | 1 => Some(self.now_ms + rng.i64(-5_000..40_000)),
            // Ends with others in the same instant.
            2 => Some((self.now_ms / 1000 + rng.i64(0..20)) * 1000),
            _ => None,
        });
        Known { id, version: self.version, written_ms: self.now_ms, ttl, dates }
    }

    /// Creates, replaces or deletes.
    fn write(&mut self) {
        if self.rules.held {
            return;
        }
        let id = self.rng.i32(..IDS);
        let old = self.items.iter().position(|item| item.id == id);
        let (next, delete) = (self.draft(id), self.rng.u8(..4) == 0);
        let document = raw(&next.document());
        let wrote = self.both(|world, collection| {
            let document = document.clone();
            let decide = move |found: Option<&LivingDocument>, _| {
                Ok(match found {
                    Some(_) if delete => Decision::Delete,
                    Some(_) => Decision::Replace(document),
                    None => Decision::Insert(document),
                }
                .into())
            };
            let done = world.engine.modify(collection, Target::Id(Value::Int32(id)), decide, None).wait();
            let done = done.expect("a write");
            (done.before.is_some(), done.after.is_some())
        });
        assert_eq!(wrote, (old.is_some(), old.is_none() || !delete));
        self.record(old, (old.is_none() || !delete).then_some(next));
    }

    fn record(&mut self, old: Option<usize>, next: Option<Known>) {
        let old = old.map(|at| self.items.remove(at));
        let kind = match (&old, &next) {
            (None, _) => "create",
            (Some(_), Some(_)) => "replace",
            (Some(_), None) => "delete",
        };
        let id = old.as_ref().or(next.as_ref()).expect("one of them").id;
        let version = |known: &Option<Known>| known.as_ref().map(|known| known.version);
        let (previous, current) = (version(&old), version(&next));
        self.events.push(Told { time_ms: self.now_ms, kind, id, previous, current });
        self.items.extend(next);
        // Expired on arrival.
        self.expire(true);
    }

    /// Changes a rule: `_ts`, or one of the dates.
    fn change_rule(&mut self) {
        if self.rules.held {
            return;
        }
        let field = self.rng.choice(["_ts", "d", "e"]).expect("one of three");
        let seconds = match self.rng.u8(..5) {
            0 => None,
            1 if field == "_ts" => Some(-1),
            _ => Some(self.rng.i32(1..25)),
        };
        self.both(|world, collection| {
            let known = collection.indexes().named(&format!("{field}_1")).map(|index| index.number);
            match (known, seconds) {
                (None, None) => {}
                (Some(number), None) => world.engine.drop_indexes(collection, &[number]).expect("dropped"),
                (None, Some(seconds)) => {
                    let number = world.index(collection, &by(field).with("expireAfterSeconds", seconds));
                    assert!(number > 0);
                }
                (Some(number), Some(seconds)) => {
                    let spec = by(field).with("expireAfterSeconds", seconds);
                    let spec = IndexSpec::parse(spec.view()).expect("valid");
                    assert_eq!(world.engine.change_index(collection, number, spec), Ok(number));
                }
            }
        });
        match (DATE_FIELDS.iter().position(|known| *known == field), seconds) {
            (Some(at), seconds) => self.rules.delays[at] = seconds.map(|seconds| i64::from(seconds) * 1000),
            (None, None) => self.rules.default = DefaultTtl::Off,
            (None, Some(-1)) => self.rules.default = DefaultTtl::Never,
            (None, Some(seconds)) => self.rules.default = DefaultTtl::Seconds(seconds.unsigned_abs()),
        }
        self.expire(true);
    }

    fn change_lifecycle(&self, change: impl Fn(&mut Lifecycle)) {
        self.both(|world, collection| {
            let owner = Owner::Collection(Arc::clone(collection));
            drop(world.engine.change_lifecycle(&owner, &change).expect("a change"));
        });
    }

    fn hold(&mut self, held: bool) {
        self.change_lifecycle(|lifecycle| lifecycle.hold = held.then(|| "a case".to_owned()));
        self.rules.held = held;
        self.expire(true);
    }

    fn keep(&mut self, minutes: Option<u32>) {
        self.change_lifecycle(|lifecycle| lifecycle.history_minutes = minutes);
        self.floor_ms = match (self.minutes, minutes) {
            (None, Some(_)) => i64::MAX,
            (Some(before), Some(_)) => self.floor_ms.max(self.now_ms - i64::from(before) * MINUTE_MS),
            _ => self.floor_ms,
        };
        self.minutes = minutes;
    }

    fn change_retention(&mut self) {
        let minutes = self.rng.choice([Some(1), Some(2), Some(3), None]).expect("one of them");
        self.keep(minutes);
    }

    fn page(&self, start: HistoryStart, max: usize) -> Result<HistoryPage<LivingDocument>, Error> {
        let read = |world: &World| {
            let barrier = world.engine.barrier().expect("a barrier");
            world.engine.collection_history(&HistoryTest::collection(world), &barrier, start, max)
        };
        let (one, other) = (read(&self.worlds[0]), read(&self.worlds[1]));
        assert_eq!(format!("{one:?}"), format!("{other:?}"), "the purge is seen");
        one
    }

    fn begin_reading(&mut self) {
        let position = self.page(HistoryStart::Now, 1).expect("a page").next;
        self.reader = Reader { position, seen: Vec::new(), from: self.events.len() };
        self.floor_ms = self.floor_ms.min(self.now_ms);
    }

    /// Reads one page, or all there is.
    fn read(&mut self, all: bool) {
        let Some(minutes) = self.minutes else {
            let outcome = self.page(HistoryStart::Now, 1);
            assert!(matches!(outcome, Err(Error::Invalid { .. })), "{outcome:?}");
            return;
        };
        let kept_ms = self.floor_ms.max(self.now_ms - i64::from(minutes) * MINUTE_MS);
        loop {
            let max = if self.rng.bool() { self.rng.usize(1..4) } else { 100 };
            let page = self.page(HistoryStart::After(self.reader.position), max);
            if (self.reader.position.time().millis() as i64) < kept_ms {
                assert_eq!(page.err(), Some(Error::HistoryGone));
                self.gone += 1;
                return self.begin_reading();
            }
            let page = page.expect("a page");
            self.pages += usize::from(!page.events.is_empty());
            self.reader.seen.extend(page.events.iter().map(told));
            self.reader.position = page.next;
            if !page.more {
                let happened = plain(&self.events[self.reader.from..]);
                assert_eq!(plain(&self.reader.seen), happened, "T28");
                return;
            }
            if !all {
                return;
            }
        }
    }

    /// Crashes the machine during a write, and starts it again.
    fn crash(&mut self) {
        let mode = self.rng.choice([CrashMode::BeforeCommit, CrashMode::AfterCommit]).expect("one of two");
        if self.rng.bool() || self.rules.held {
            self.worlds[0].crash_after(self.rng.u64(..2), mode);
            drop(self.worlds[0].engine.purge_step(3));
            self.restart();
        } else {
            let id = self.rng.i32(..IDS);
            let old = self.items.iter().position(|item| item.id == id);
            // It lives, whatever the rules.
            let next = Known { ttl: Some(-1), dates: [None, None], ..self.draft(id) };
            let document = raw(&next.document());
            self.worlds.iter().for_each(|world| world.crash_after(0, mode));
            self.both(|world, collection| {
                let document = document.clone();
                let decide = move |found: Option<&LivingDocument>, _| {
                    let is_new = found.is_none();
                    Ok(if is_new { Decision::Insert(document) } else { Decision::Replace(document) }.into())
                };
                world.engine.modify(collection, Target::Id(Value::Int32(id)), decide, None).wait().is_ok()
            });
            self.restart();
            let is_kept = self.both(|world, collection| {
                world.get(collection, id).is_some_and(|found| found.document == document)
            });
            if is_kept {
                self.record(old, Some(next));
            }
            self.crashes += 1;
        }
        self.pass(RESTART_MS);
    }

    /// Restarts both worlds. The clock has continued meanwhile, further than any time that was promised before; the model
    /// gets that time later.
    fn restart(&mut self) {
        for world in &mut self.worlds {
            world.pass_millis(RESTART_MS);
            world.restart();
        }
        self.ahead_ms = RESTART_MS;
    }
}

impl ModelTest for HistoryTest {
    const SEEDS: u64 = 60;
    const LENGTH: usize = 250;
    const STEPS: &'static [Step<Self>] = &[
        (14, "write", Self::write),
        (8, "pass", Self::pass_some),
        (1, "pass 20 s", |test| test.pass(20_000)),
        (3, "change a rule", Self::change_rule),
        (4, "purge", |test| test.worlds[0].purge_some(3)),
        (4, "read a page", |test| test.read(false)),
        (1, "read all", |test| test.read(true)),
        (1, "hold or lift", |test| test.hold(!test.rules.held)),
        (1, "change the retention", Self::change_retention),
        (1, "crash", Self::crash),
    ];

    fn start(_: u64, rng: Rng) -> HistoryTest {
        let worlds = [World::new(), World::new()];
        for world in &worlds {
            world.collection("c");
        }
        let mut test = HistoryTest {
            rng,
            worlds,
            now_ms: START as i64 * 1000,
            ahead_ms: 0,
            version: 0,
            items: Vec::new(),
            rules: Rules::default(),
            events: Vec::new(),
            minutes: None,
            floor_ms: 0,
            reader: Reader { position: Position::from_bytes([0; 32]), seen: Vec::new(), from: 0 },
            gone: 0,
            pages: 0,
            crashes: 0,
        };
        test.keep(Some(3));
        test.begin_reading();
        test
    }

    fn compare(&mut self) {
        let mut known: Vec<i32> = self.items.iter().map(|item| item.id).collect();
        known.sort_unstable();
        let mut living = self.both(|world, collection| world.all(collection, Direction::Forward));
        living.sort_unstable();
        assert_eq!(living, known, "what lives");
    }

    fn finish(&mut self) {
        if self.rules.held {
            self.hold(false);
        }
        self.read(true);
    }

    fn reached(&self) -> Vec<Reached> {
        let expiries = self.events.iter().filter(|told| told.kind == "expire").count();
        vec![
            ("reader came too late", self.gone, 21),
            ("page had events", self.pages, 201),
            ("crash in a write", self.crashes, 51),
            ("expiry", expiries, 1001),
        ]
    }
}

#[test]
fn t28_what_a_reader_sees_is_what_happened_exactly_once_and_the_purge_is_not_seen() {
    run::<HistoryTest>();
}
