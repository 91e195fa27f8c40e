//! The generator of steps, drawn from the seed and from the state of the model.
//!
//! The universe is small on purpose - a few ids, keys and unique values, times to live of a few seconds - so that
//! operations affect the same items, and half of the waits end exactly at a deadline or a millisecond before it. The
//! generator reads the model only, never the engine, so a run and its twin without purge take the same steps.

mod owner;

use std::collections::VecDeque;

use crate::clock::RestartKind;
use crate::model::{
    BadTtl, Body, Change, Consent, Countdown, DefaultTtl, Edit, Guard, Indexing, Instant, Item, MAX_TTL,
    Model, Name, Ttl,
};
pub(crate) use owner::OwnerStep;

/// The containers that are created and deleted. The first has a unique key, the second a hierarchical partition key.
pub(crate) const CONTAINERS: [&str; 2] = ["plain", "tree"];
/// How many partition keys each container uses.
pub(crate) const KEYS: usize = 3;
const IDS: [&str; 4] = ["a", "b", "c", "d"];

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// One operation on one item.
    Change { container: &'static str, key: usize, change: Change, countdown: Countdown },
    /// An operation built, and its item read, before `wait_ms` pass; then submitted.
    Late { container: &'static str, key: usize, change: Change, wait_ms: u64 },
    /// An operation through a handle whose container has been deleted.
    DeletedHandle { container: &'static str, key: usize, change: Change },
    /// A transactional batch.
    Batch { container: &'static str, key: usize, changes: Vec<Change>, countdown: Countdown },
    /// Everything under one partition key.
    DeletePartition { container: &'static str, key: usize },
    /// A query in pages, with time passing between them.
    Query { container: &'static str, filter: Filter, scope: QueryScope, page: usize, between_ms: u64 },
    /// A consumer of the change feed continues from its position.
    ReadFeed { container: &'static str, max_items: usize },
    /// A new `defaultTtl`.
    SetDefaultTtl { container: &'static str, default_ttl: DefaultTtl, consent: Consent },
    /// A new indexing policy, and writes between the steps in which it is built.
    Reindex { container: &'static str, indexing: Indexing, changes: Vec<(usize, Change)>, limit: usize },
    /// A new container.
    CreateContainer { container: &'static str, default_ttl: DefaultTtl, feed: Option<u32>, base: bool },
    /// Deletes a container.
    DeleteContainer { container: &'static str },
    /// A step of an owner or operator.
    Owner(OwnerStep),
    /// A step about time.
    Clock(ClockStep),
    /// One step of the purge.
    Purge { limit: usize },
    /// The purge until nothing is left.
    Drain,
    /// The process, or the machine, ends and starts again after a while, with the wall clock moved by `drift_ms` besides.
    Restart { clean: bool, over: RestartKind, down_ms: u64, drift_ms: i64 },
}

impl Step {
    /// Returns whether it ends the hold of an item.
    fn is_lift(&self) -> bool {
        matches!(self, Step::Owner(OwnerStep::HoldItem { hold: false, .. }))
    }
}

/// A step that is about time alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockStep {
    /// Time passes.
    Wait { ms: u64 },
    /// The system clock is set back.
    SetBack { ms: u64 },
    /// The system clock is set forward.
    SetForward { ms: u64 },
    /// The system clock is put right.
    Correct,
    /// The test clock is moved.
    AdvanceTestClock { seconds: u64 },
    /// The operator accepts the suspect clock.
    Accept,
    /// The operator rejects it.
    Reject,
}

/// The filter of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filter {
    /// Everything.
    All,
    /// `c.id = `
    Id(String),
    /// `c.n >= `
    NumberFrom(i64),
    /// `c._ts >= … AND c._ts <= …`
    Stamp(u64, u64),
}

/// The scope of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryScope {
    /// The whole container.
    Everywhere,
    /// One partition key.
    Key(usize),
    /// The first level of a hierarchical key: keys 0 and 1 share it.
    Prefix,
}

/// A fault during a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process crashes at the n-th commit of the step (or right after the step, if it makes fewer); the commit is on
    /// disk or not.
    Crash {
        /// Counted from 1.
        nth: u64,
        /// Whether the commit survives.
        kept: bool,
    },
    /// The n-th commit of the step fails; the store takes no more writes until a restart, which may find it all the same.
    Fail {
        /// Counted from 1.
        nth: u64,
        /// Whether the restart finds it.
        kept: bool,
    },
}

/// A step and its fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    /// The step.
    pub(crate) step: Step,
    /// Its fault.
    pub(crate) fault: Option<Fault>,
}

/// Draws steps.
#[derive(Debug)]
pub(crate) struct Generator {
    random: fastrand::Rng,
    queued: VecDeque<Step>,
    /// The current second.
    now: u64,
    /// Whether this run has a test clock.
    pub(crate) test_clock: bool,
}

/// The state besides the model that the generator may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GeneratorView {
    /// The store's time, in milliseconds.
    pub(crate) now_ms: u64,
    /// Whether the clock is suspect.
    pub(crate) suspect: bool,
    /// Whether the store refuses writes after a failed commit.
    pub(crate) poisoned: bool,
    /// The obstacles to the purge.
    pub(crate) obstacles: PurgeObstacles,
}

/// The obstacles to the purge, besides the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PurgeObstacles {
    /// An operator has stopped it.
    pub(crate) paused: bool,
    /// An archive's volume is full.
    pub(crate) full: bool,
}

const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;

impl Generator {
    /// Creates a generator for one seed.
    pub(crate) fn new(seed: u64) -> Generator {
        let mut random = fastrand::Rng::with_seed(seed);
        let test_clock = random.u8(..4) == 0;
        Generator { random, queued: VecDeque::new(), now: 0, test_clock }
    }

    /// Returns the wall clock's time at the beginning of the run: often near the end of a minute or an hour.
    pub(crate) fn start_ms(&mut self) -> u64 {
        let base = 1_700_000_000 * SECOND + self.random.u64(..400) * DAY;
        match self.random.u8(..3) {
            0 => base / HOUR * HOUR + HOUR - self.random.u64(1..5 * SECOND),
            1 => base / HOUR * HOUR + 60 * SECOND - self.random.u64(1..5 * SECOND),
            _ => base + self.random.u64(..DAY),
        }
    }

    /// Returns the next step.
    pub(crate) fn next(&mut self, model: &Model, sight: GeneratorView) -> Planned {
        self.now = sight.now_ms / SECOND;
        // A restart may have come between a plan and its end: where the clock is suspect now, a lift cannot wait for the purge.
        let queued = self.queued.pop_front().filter(|step| !(sight.suspect && step.is_lift()));
        let step = queued.unwrap_or_else(|| self.draw(model, sight));
        let fault = if self.random.u8(..20) == 0 { Some(self.fault()) } else { None };
        Planned { step, fault }
    }

    fn fault(&mut self) -> Fault {
        let nth = if self.random.u8(..4) == 0 { 2 } else { 1 };
        let kept = self.random.bool();
        if self.random.u8(..5) == 0 { Fault::Fail { nth, kept } } else { Fault::Crash { nth, kept } }
    }

    fn draw(&mut self, model: &Model, sight: GeneratorView) -> Step {
        if sight.poisoned && self.random.u8(..4) == 0 {
            return self.restart(sight);
        }
        if sight.suspect && self.random.u8(..5) == 0 {
            return if self.random.bool() {
                Step::Clock(ClockStep::Accept)
            } else {
                Step::Clock(ClockStep::Reject)
            };
        }
        let container = CONTAINERS[usize::from(self.random.u8(..10) >= 7)];
        if !model.containers.contains_key(container) && self.random.u8(..3) != 0 {
            return self.create_container(container);
        }
        if model.containers.get(container).is_some_and(|inside| inside.hold) && self.random.u8(..8) == 0 {
            return self.lift_container(container);
        }
        if self.random.u8(..6) == 0 {
            return Step::Owner(self.owner_step(container, model, sight));
        }
        if self.random.u8(..8) == 0
            && let Some(step) = self.keep_alive(container, model, sight)
        {
            return step;
        }
        match self.random.u32(..1000) {
            0..380 => self.change_step(container, model),
            380..440 => self.batch(container, model),
            440..460 => Step::DeletePartition { container, key: self.random.usize(..KEYS) },
            460..500 => self.query(container, model, sight),
            500..520 => Step::ReadFeed { container, max_items: self.random.usize(1..4) },
            520..580 => self.set_default_ttl(container),
            580..610 => self.toggle(container),
            610..625 => Step::DeleteContainer { container },
            625..640 => self.create_container(container),
            640..790 => Step::Clock(ClockStep::Wait { ms: self.wait_ms(model, sight) }),
            790..840 => self.late(container, model, sight),
            840..850 => self.ghost(container, model),
            850..860 => self.back(),
            860..873 => self.forward(),
            873..880 => Step::Clock(ClockStep::Correct),
            880..935 => Step::Purge { limit: self.random.usize(1..4) },
            935..960 => self.reindex(container, model),
            960..975 => Step::Drain,
            975..985 if self.test_clock => {
                Step::Clock(ClockStep::AdvanceTestClock { seconds: self.random.u64(1..1000) })
            }
            _ => self.restart(sight),
        }
    }

    fn reindex(&mut self, container: &'static str, model: &Model) -> Step {
        const POLICIES: [Indexing; 5] = [
            Indexing::Everything,
            Indexing::OnlyNumber,
            Indexing::NoPadding,
            Indexing::Composite,
            Indexing::None,
        ];
        let indexing = POLICIES[self.random.usize(..POLICIES.len())];
        let mut changes = Vec::new();
        for _ in 0..self.random.usize(1..6) {
            if let Step::Change { key, change, .. } = self.change_step(container, model) {
                changes.push((key, change));
            }
        }
        Step::Reindex { container, indexing, changes, limit: self.random.usize(1..3) }
    }

    fn create_container(&mut self, container: &'static str) -> Step {
        let feed = [None, Some(1), Some(60)][self.random.usize(..3)];
        let base = self.random.u8(..4) == 0;
        Step::CreateContainer { container, default_ttl: self.default_ttl(), feed, base }
    }

    fn set_default_ttl(&mut self, container: &'static str) -> Step {
        Step::SetDefaultTtl { container, default_ttl: self.default_ttl(), consent: self.consent() }
    }

    fn default_ttl(&mut self) -> DefaultTtl {
        match self.random.u8(..20) {
            0..5 => DefaultTtl::Off,
            5..10 => DefaultTtl::Never,
            10..16 => DefaultTtl::After(self.random.i64(1..6)),
            16..18 => DefaultTtl::After(self.random.i64(10..40)),
            18 => DefaultTtl::After([MAX_TTL, 3600, 60][self.random.usize(..3)]),
            _ => DefaultTtl::Bad(self.bad_ttl()),
        }
    }

    fn bad_ttl(&mut self) -> BadTtl {
        const BAD: [BadTtl; 7] = [
            BadTtl::Zero,
            BadTtl::Negative,
            BadTtl::Fraction,
            BadTtl::Text,
            BadTtl::True,
            BadTtl::TooLarge,
            BadTtl::NullOrObject,
        ];
        BAD[self.random.usize(..BAD.len())]
    }

    fn ttl(&mut self) -> Ttl {
        match self.random.u8(..40) {
            0..16 => Ttl::Absent,
            16..20 => Ttl::Never,
            20..32 => Ttl::After(self.random.i64(1..5)),
            32..35 => Ttl::After(self.random.i64(10..40)),
            35..37 => Ttl::AfterPoint(self.random.i64(1..5)),
            37 => Ttl::After([MAX_TTL, 60, 3600][self.random.usize(..3)]),
            _ => Ttl::Bad(self.bad_ttl()),
        }
    }

    fn id(&mut self) -> String {
        IDS[self.random.usize(..IDS.len())].to_owned()
    }

    fn body(&mut self, id: String, key: usize) -> Body {
        let unique = if self.random.u8(..4) == 0 { None } else { Some(self.random.i64(0..5)) };
        let padding =
            if self.random.u8(..10) == 0 { self.random.usize(..3000) } else { self.random.usize(..9) };
        let (ttl, number) = (self.ttl(), self.random.i64(0..4));
        Body { id, key, ttl, unique, number, padding, base: self.instant(), gone: self.instant() }
    }

    /// Returns a value for a property that should hold a time: seldom, and near to now.
    fn instant(&mut self) -> Option<Instant> {
        let near = (self.now + 12).saturating_sub(self.random.u64(..20));
        match self.random.u8(..12) {
            0..2 => Some(Instant::Seconds(near)),
            2 => Some(Instant::Date(near)),
            3 => Some(Instant::Nonsense),
            _ => None,
        }
    }

    /// Returns what a write does to a countdown: most restart it.
    fn countdown(&mut self) -> Countdown {
        if self.random.u8(..8) == 0 { Countdown::Keep } else { Countdown::Restart }
    }

    fn change_step(&mut self, container: &'static str, model: &Model) -> Step {
        // Half of the time an existing item is the target, living or expired, so that its id and key are used again.
        let target = self.any_item(container, model);
        let (key, id) = match target {
            Some(item) if self.random.bool() => (item.body.key, item.body.id.clone()),
            _ => (self.random.usize(..KEYS), self.id()),
        };
        let change = self.change(container, key, id, model);
        Step::Change { container, key, change, countdown: self.countdown() }
    }

    /// Returns a read of an item whose countdown that restarts (T33), and then the instant at which it would have expired
    /// otherwise.
    fn keep_alive(&mut self, container: &'static str, model: &Model, sight: GeneratorView) -> Option<Step> {
        let inside = model.containers.get(container).filter(|inside| inside.ttl_modes.sliding)?;
        let visible = model.visible(container);
        let expiring = visible.iter().filter(|item| item.slides && item.counts_from < model.now);
        let expiring = expiring.filter_map(|item| Some((item, inside.deadline(item)?)));
        let expiring: Vec<_> = expiring.filter(|(_, deadline)| *deadline < model.now + 60).collect();
        let (item, deadline) = *self.random.choice(&expiring)?;
        let ms = (deadline * SECOND).saturating_sub(sight.now_ms);
        self.queued.push_back(Step::Clock(ClockStep::Wait { ms }));
        let change = Change::Read(Name::Id(item.body.id.clone()), Guard::None);
        let (key, countdown) = (item.body.key, Countdown::Restart);
        Some(Step::Change { container, key, change, countdown })
    }

    fn any_item<'a>(&mut self, container: &str, model: &'a Model) -> Option<&'a Item> {
        let items = &model.containers.get(container)?.items;
        if items.is_empty() { None } else { items.get(self.random.usize(..items.len())) }
    }

    fn change(&mut self, container: &str, key: usize, id: String, model: &Model) -> Change {
        let items =
            model.containers.get(container).map(|container| container.items.as_slice()).unwrap_or_default();
        let item = items.iter().find(|item| item.body.key == key && item.body.id == id);
        let stamp = item.and_then(|item| item.stamp.as_ref()).filter(|stamp| !stamp.etag.is_empty());
        let name = match stamp {
            Some(stamp) if self.random.u8(..4) == 0 => Name::Number(stamp.number),
            _ => Name::Id(id.clone()),
        };
        let guard = match (self.random.u8(..6), stamp) {
            (0, Some(stamp)) => Guard::Match(stamp.etag.clone()),
            (1, _) => Guard::Match("\"00000000-0000-0000-0000-000000000000\"".to_owned()),
            (2, _) => Guard::Exists,
            _ => Guard::None,
        };
        // Where reads restart countdowns, there are more of them.
        if model.containers.get(container).is_some_and(|inside| inside.ttl_modes.sliding)
            && self.random.u8(..3) == 0
        {
            return Change::Read(name, Guard::None);
        }
        match self.random.u8(..20) {
            0..7 => Change::Create(self.body(id, key)),
            7..11 => {
                Change::Upsert(self.body(id, key), if guard == Guard::Exists { Guard::None } else { guard })
            }
            11..14 => {
                let id = if self.random.u8(..6) == 0 { self.id() } else { id };
                Change::Replace(name, self.body(id, key), guard)
            }
            14..17 => {
                let edits = self.edits();
                let condition = if self.random.u8(..4) == 0 { Some(self.random.i64(0..4)) } else { None };
                Change::Patch(name, edits, condition, guard)
            }
            17 => Change::Delete(name, guard),
            _ => match guard {
                Guard::Match(etag) => Change::Read(name, Guard::NoneMatch(etag)),
                _ => Change::Read(name, Guard::None),
            },
        }
    }

    fn edits(&mut self) -> Vec<Edit> {
        let count = self.random.usize(1..3);
        let mut edits = Vec::new();
        for _ in 0..count {
            let touched = edits.iter().any(|edit| matches!(edit, Edit::SetTtl(_) | Edit::AddToTtl(_)));
            edits.push(match self.random.u8(..8) {
                0..2 => match self.ttl() {
                    Ttl::Absent => Edit::RemoveTtl,
                    ttl => Edit::SetTtl(ttl),
                },
                // To add to what T5 would refuse in the end is an error of another kind, which the model does not tell apart.
                2 if !touched => Edit::AddToTtl(self.random.i64(-3..4)),
                2 | 3 => Edit::RemoveTtl,
                4 => Edit::SetUnique(self.random.i64(0..5)),
                5 | 6 => Edit::SetNumber(self.random.i64(0..4)),
                _ => Edit::AddToNumber(self.random.i64(-2..3)),
            });
        }
        edits
    }

    /// Returns a batch. Half of them consist of writes that will mostly succeed: a random batch mostly fails.
    fn batch(&mut self, container: &'static str, model: &Model) -> Step {
        let key = self.random.usize(..KEYS);
        let count = self.random.usize(1..5);
        let friendly = self.random.bool();
        let changes = (0..count)
            .map(|_| {
                let id = self.id();
                if friendly {
                    Change::Upsert(self.body(id, key), Guard::None)
                } else {
                    self.change(container, key, id, model)
                }
            })
            .collect();
        Step::Batch { container, key, changes, countdown: self.countdown() }
    }

    fn query(&mut self, container: &'static str, model: &Model, sight: GeneratorView) -> Step {
        let now = sight.now_ms / SECOND;
        let filter = match self.random.u8(..6) {
            0..2 => Filter::All,
            2 => Filter::Id(self.id()),
            3 => Filter::NumberFrom(self.random.i64(0..4)),
            _ => {
                let from = now.saturating_sub(self.random.u64(..8));
                Filter::Stamp(from, from + self.random.u64(..6))
            }
        };
        let scope = match self.random.u8(..4) {
            0 => QueryScope::Key(self.random.usize(..KEYS)),
            1 if container == CONTAINERS[1] => QueryScope::Prefix,
            _ => QueryScope::Everywhere,
        };
        let expiring = Self::expiring(container, model, sight);
        if !expiring.is_empty() && self.random.bool() {
            // The page that follows is asked for at a deadline: the reader holds a token, and something behind it is expired.
            let (_, deadline) = expiring[self.random.usize(..expiring.len())];
            let between_ms = (deadline * SECOND - sight.now_ms).min(HOUR / 2);
            let scope = QueryScope::Everywhere;
            return Step::Query { container, filter: Filter::All, scope, page: 1, between_ms };
        }
        let between_ms = if self.random.bool() { 0 } else { self.wait_ms(model, sight).min(HOUR / 2) };
        Step::Query { container, filter, scope, page: self.random.usize(1..5), between_ms }
    }

    /// Returns the live items of a container that will expire, with the second in which they do.
    fn expiring<'a>(container: &str, model: &'a Model, sight: GeneratorView) -> Vec<(&'a Item, u64)> {
        let Some(inside) = model.containers.get(container) else { return Vec::new() };
        let living = model.visible(container).into_iter();
        let dated = living.filter_map(|item| inside.deadline(item).map(|deadline| (item, deadline)));
        dated.filter(|(_, deadline)| deadline * SECOND > sight.now_ms).collect()
    }

    /// Returns several changes of policy with writes between them, before the clock moves.
    fn toggle(&mut self, container: &'static str) -> Step {
        for _ in 0..self.random.usize(2..5) {
            if self.random.u8(..3) == 0 {
                let (key, id) = (self.random.usize(..KEYS), self.id());
                let change = Change::Upsert(self.body(id, key), Guard::None);
                let countdown = self.countdown();
                self.queued.push_back(Step::Change { container, key, change, countdown });
            }
            if self.random.u8(..4) == 0 {
                self.queued.push_back(Step::Purge { limit: 1 });
            }
            let step = self.set_default_ttl(container);
            self.queued.push_back(step);
        }
        self.set_default_ttl(container)
    }

    /// Returns how long to wait: to a deadline, to a millisecond before one, or any time.
    fn wait_ms(&mut self, model: &Model, sight: GeneratorView) -> u64 {
        let deadlines: Vec<u64> = model
            .containers
            .values()
            .flat_map(|container| container.items.iter().filter_map(|item| container.deadline(item)))
            .filter_map(|deadline| (deadline * SECOND).checked_sub(sight.now_ms))
            .filter(|wait| (1..HOUR / 2).contains(wait))
            .collect();
        match self.random.u8(..20) {
            0..8 if !deadlines.is_empty() => deadlines[self.random.usize(..deadlines.len())],
            8..11 if !deadlines.is_empty() => deadlines[self.random.usize(..deadlines.len())] - 1,
            0..13 => self.random.u64(1..1500),
            13..15 => SECOND - sight.now_ms % SECOND,
            15..18 => self.random.u64(SECOND..4 * SECOND),
            18 => self.random.u64(30 * SECOND..200 * SECOND),
            _ => self.random.u64(HOUR / 4..HOUR - 60 * SECOND),
        }
    }

    fn late(&mut self, container: &'static str, model: &Model, sight: GeneratorView) -> Step {
        let expiring = Self::expiring(container, model, sight);
        if expiring.is_empty() {
            return self.change_step(container, model);
        }
        let (item, deadline) = expiring[self.random.usize(..expiring.len())];
        let wait_ms = deadline * SECOND - sight.now_ms - u64::from(self.random.u8(..5) == 0);
        let (key, id) = (item.body.key, item.body.id.clone());
        let guard = match &item.stamp {
            Some(stamp) if !stamp.etag.is_empty() => Guard::Match(stamp.etag.clone()),
            Some(_) | None => Guard::Exists,
        };
        let name = Name::Id(id.clone());
        let change = match self.random.u8(..5) {
            0 => Change::Replace(name, self.body(id, key), guard),
            1 => Change::Patch(name, vec![Edit::SetTtl(Ttl::Never)], None, guard),
            2 => Change::Delete(name, guard),
            3 => Change::Upsert(self.body(id, key), guard),
            _ => Change::Read(name, Guard::None),
        };
        Step::Late { container, key, change, wait_ms: wait_ms.min(HOUR / 2) }
    }

    fn ghost(&mut self, container: &'static str, model: &Model) -> Step {
        let (key, id) = (self.random.usize(..KEYS), self.id());
        let change = self.change(container, key, id, model);
        Step::DeletedHandle { container, key, change }
    }

    fn back(&mut self) -> Step {
        let ms = match self.random.u8(..3) {
            0 => self.random.u64(1..5 * SECOND),
            1 => self.random.u64(1..HOUR - SECOND),
            _ => self.random.u64(1..2 * DAY),
        };
        Step::Clock(ClockStep::SetBack { ms })
    }

    /// Sets the wall clock forward; often only for a while.
    fn forward(&mut self) -> Step {
        if self.random.u8(..4) == 0 {
            return self.wrong_until_a_crash();
        }
        let ms = match self.random.u8(..4) {
            0 => self.random.u64(1..100),
            1 => self.random.u64(1..5 * SECOND),
            2 => self.random.u64(1..HOUR - SECOND),
            _ => self.random.u64(2 * HOUR..90 * DAY),
        };
        if self.random.bool() {
            let wait = Step::Clock(ClockStep::Wait { ms: self.random.u64(..2 * SECOND) });
            self.queued.extend([wait, Step::Clock(ClockStep::SetBack { ms })]);
        }
        Step::Clock(ClockStep::SetForward { ms })
    }

    /// Steps the wall clock forward within the lease, takes it back, and crashes the process before its next renewal.
    fn wrong_until_a_crash(&mut self) -> Step {
        let (ms, down_ms) = (self.random.u64(1..SECOND), self.random.u64(..100));
        let crash = Step::Restart { clean: false, over: RestartKind::Process, down_ms, drift_ms: 0 };
        self.queued.extend([Step::Clock(ClockStep::SetBack { ms }), crash]);
        Step::Clock(ClockStep::SetForward { ms })
    }

    fn restart(&mut self, sight: GeneratorView) -> Step {
        let clean = self.random.bool();
        let down_ms = if self.random.u8(..3) == 0 { 0 } else { self.random.u64(..8 * SECOND) };
        let drift_ms = match self.random.u8(..10) {
            0 => -self.random.i64(1..DAY as i64),
            1 if !sight.suspect => self.random.i64(31 * DAY as i64..400 * DAY as i64),
            2 => self.random.i64(0..20 * DAY as i64),
            _ => 0,
        };
        let over = if self.random.u8(..3) == 0 { RestartKind::Machine } else { RestartKind::Process };
        Step::Restart { clean, over, down_ms, drift_ms }
    }
}
