//! Compares the policy with a model without queues, cutoffs and generations. The model keeps every set of
//! rules that was ever in force. An item has expired if any of them expired it at any instant since its last write,
//! and the first of them gives the instant.

use std::collections::{BTreeMap, BTreeSet};

use document::Sequence;
use storage::Time;

use super::change::CUTOFFS_MAX;
use super::{Change, CountdownBase, Lifecycle, Millis, Moment, Policy, Queue};
use crate::expiry::header::Header;
use crate::expiry::ttl::{DefaultTtl, OwnTtl};
use crate::tests::model_test::{ModelTest, Reached, Step, run};

/// Rules as a user thinks of them.
#[derive(Debug, Clone, Default)]
struct Rules {
    default_ttl: DefaultTtl,
    /// The delays of date rules in force.
    delays: BTreeMap<u32, Millis>,
    /// Whether no item may expire (T31).
    held: bool,
}

/// A set of rules that was in force, and until when.
#[derive(Debug)]
struct Era {
    rules: Rules,
    from: Moment,
    until_ms: Millis,
    until_sequence: u64,
}

#[derive(Debug, Clone)]
struct Item {
    header: Header,
    /// When the countdown of its ttl starts.
    from_ms: Millis,
    /// The item's date for each rule that there may ever be.
    dates: BTreeMap<u32, Millis>,
    /// Whether a date in the past expired it as it was written.
    born_expired: bool,
}

#[derive(Debug)]
struct PolicyTest {
    random: fastrand::Rng,
    now_ms: Millis,
    sequence: u64,
    policy: Policy,
    rules: Rules,
    /// When the rules came into force.
    from: Moment,
    past: Vec<Era>,
    items: Vec<Item>,
    last_rule: u32,
    /// After how many steps a rule had queues that are not in the order of their making.
    reopened: usize,
}

impl Rules {
    /// Returns when these rules expire an item, if they have done so by an instant.
    fn kill(&self, item: &Item, by_ms: Millis) -> Option<Millis> {
        if self.held {
            return None;
        }
        let ttl = match (item.header.ttl, self.default_ttl) {
            (OwnTtl::Never, _) | (_, DefaultTtl::Off) | (OwnTtl::Absent, DefaultTtl::Never) => None,
            (OwnTtl::Absent, DefaultTtl::Seconds(n)) | (OwnTtl::Seconds(n), _) => {
                Some(item.from_ms + Millis::from(n) * 1000)
            }
        };
        let dates = self.delays.iter().filter_map(|(rule, delay)| Some(item.dates.get(rule)? + delay));
        ttl.into_iter().chain(dates).min().filter(|deadline| *deadline <= by_ms)
    }
}

impl PolicyTest {
    fn now(&self) -> Time {
        Time::from_millis(self.now_ms.unsigned_abs())
    }

    /// Returns what the model says.
    fn is_expired(&self, item: &Item) -> bool {
        self.instant(item).is_some()
    }

    /// Returns when an item expired: by the first rules that expired it, but not before those came into force.
    fn instant(&self, item: &Item) -> Option<Moment> {
        let at = |time, from: Moment| Moment { time, sequence: Sequence(0) }.max(from);
        let lived_in = self.past.iter().filter(|era| item.header.sequence.0 < era.until_sequence);
        let mut expiries = lived_in.filter_map(|era| Some(at(era.rules.kill(item, era.until_ms)?, era.from)));
        expiries.next().or_else(|| Some(at(self.rules.kill(item, self.now_ms)?, self.from)))
    }

    fn entries(&self) -> BTreeSet<(Queue, Millis)> {
        let places = self.items.iter().flat_map(|item| item.header.expiry_positions());
        places.map(|place| (place.queue, place.base)).collect()
    }

    fn change(&mut self, change: Change, rules: Rules) {
        let entries = self.entries();
        let occupied =
            |queue, through| Ok(entries.iter().any(|(other, base)| *other == queue && *base <= through));
        self.sequence += 1;
        let changed = self.policy.change(change, self.now(), Sequence(self.sequence), occupied);
        self.policy = changed.expect("a change");
        let rules = std::mem::replace(&mut self.rules, rules);
        let now = Moment { time: self.now_ms, sequence: Sequence(self.sequence) };
        let from = std::mem::replace(&mut self.from, now);
        self.past.push(Era { rules, from, until_ms: self.now_ms, until_sequence: self.sequence });
    }

    /// Writes a new version, of a living item or of none.
    fn write(&mut self) {
        self.sequence += 1;
        let living: Vec<usize> =
            (0..self.items.len()).filter(|at| !self.is_expired(&self.items[*at])).collect();
        let ttl = match self.random.u8(..4) {
            0 => OwnTtl::Never,
            1 => OwnTtl::Seconds(self.random.u32(1..8)),
            _ => OwnTtl::Absent,
        };
        let mut dates = BTreeMap::new();
        for rule in 1..=self.last_rule + 2 {
            if self.random.u8(..3) > 0 {
                dates.insert(rule, self.now_ms + self.random.i64(-9_000..9_000));
            }
        }
        let bases = self.policy.bases(|rule| dates.get(&rule).copied());
        let plain = Header::new(Sequence(self.sequence), self.now_ms.unsigned_abs() / 1000, ttl);
        let replaced = self.random.choice(living).filter(|_| self.random.bool());
        let from_ms = match (self.policy.has_ttl_modes(), replaced, self.random.u8(..4)) {
            (true, Some(at), 0) => Some(self.items[at].from_ms),
            (true, _, 1) => Some(self.now_ms + self.random.i64(-9_000..9_000)),
            _ => None,
        };
        let counted = from_ms.map(|from| CountdownBase {
            queue: self.policy.counted_queue(ttl).expect("there are TTL modes"),
            from,
            slides: true,
        });
        let header = Header { bases, counted, ..plain };
        let from_ms = from_ms.unwrap_or(self.now_ms / 1000 * 1000);
        let mut item = Item { header, from_ms, dates, born_expired: false };
        item.born_expired = self.is_expired(&item);
        match replaced {
            Some(at) => self.items[at] = item,
            None => self.items.push(item),
        }
    }

    /// Restarts the countdown of a living item, as a read does.
    fn renew(&mut self) {
        let second = self.now_ms / 1000 * 1000;
        let slides = |item: &Item| item.header.slides() && item.from_ms < second;
        let touchable = (0..self.items.len()).filter(|at| slides(&self.items[*at]));
        let touchable: Vec<usize> = touchable.filter(|at| !self.is_expired(&self.items[*at])).collect();
        if let Some(at) = self.random.choice(touchable) {
            let item = &mut self.items[at];
            (item.from_ms, item.header.renewed_at) = (second, Some(second));
            item.born_expired = false;
        }
    }

    fn change_rules(&mut self) {
        let mut rules = self.rules.clone();
        let known = self.policy.rules.iter().filter(|rule| !rule.is_of_ttl());
        let known: Vec<u32> = known.map(|rule| rule.id).collect();
        let date_rules = known.len();
        match (self.random.u8(..8), self.random.choice(known)) {
            (0 | 1, _) => {
                rules.default_ttl = match self.random.u32(..10) {
                    0 => DefaultTtl::Off,
                    1 => DefaultTtl::Never,
                    seconds => DefaultTtl::Seconds(seconds),
                };
                self.change(Change::DefaultTtl(rules.default_ttl), rules);
            }
            (2, Some(id)) => {
                rules.delays.remove(&id);
                self.change(Change::DropRule { id }, rules);
            }
            (3.., Some(id)) => {
                if !rules.delays.contains_key(&id) {
                    self.build(id);
                }
                let delay_ms = self.random.i64(0..9_000);
                rules.delays.insert(id, delay_ms);
                self.change(Change::SetDelay { id, delay_ms }, rules);
            }
            (_, None) => self.add_rule(),
        }
        if self.random.u8(..6) == 0 {
            let mut rules = self.rules.clone();
            rules.held = !rules.held;
            let hold = rules.held.then(|| "a case".to_owned());
            self.change(Change::Lifecycle(Lifecycle { hold, ..self.policy.lifecycle.clone() }), rules);
        }
        if self.random.u8(..8) == 0 && self.policy.differs(&Change::EnableTtlModes) {
            self.change(Change::EnableTtlModes, self.rules.clone());
        }
        if date_rules < 3 && self.random.u8(..4) == 0 {
            self.add_rule();
        }
    }

    fn add_rule(&mut self) {
        self.last_rule += 1;
        self.change(Change::AddRule { id: self.last_rule }, self.rules.clone());
    }

    /// Builds an index: every living item gets its base.
    fn build(&mut self, rule: u32) {
        for at in 0..self.items.len() {
            if !self.is_expired(&self.items[at]) {
                let item = &self.items[at];
                let date = item.dates.get(&rule).copied();
                self.items[at].header.bases = self.policy.rebase(&item.header, rule, date);
            }
        }
    }

    /// Purges one queue, or a part of it.
    fn purge(&mut self) {
        let Some(queue) = self.random.choice(self.policy.queues()) else { return };
        let Some(through) = self.policy.expired_through(queue, self.now()) else { return };
        let whole = self.random.bool();
        let random = &mut self.random;
        self.items.retain(|item| {
            let stands =
                item.header.expiry_positions().any(|place| place.queue == queue && place.base <= through);
            !stands || (!whole && random.bool())
        });
        if let Some(policy) = self.policy.forget(queue, through, &[]).filter(|_| whole) {
            self.policy = policy;
        }
    }

    fn check(&self) {
        let now = self.now();
        for item in &self.items {
            let expired = self.is_expired(item);
            assert_eq!(self.policy.is_expired(&item.header, now), expired, "{item:?} {:?}", self.policy);
            // Purge, counters and marks rely on this: the expired prefix of a queue has no living item in it.
            let among_expired = item.header.expiry_positions().any(|place| {
                self.policy.expired_through(place.queue, now).is_some_and(|through| place.base <= through)
            });
            assert_eq!(among_expired, expired, "{item:?} {:?}", self.policy);
            if expired && !item.born_expired && self.policy.lifecycle.history_minutes.is_some() {
                let instant = self.policy.expiry_of(&item.header).map(|(instant, _)| instant);
                assert_eq!(instant, self.instant(item), "T28: {item:?} {:?}", self.policy);
            }
        }
        for group in self.policy.groups() {
            let of_group = |item: &&Item| {
                item.header.expiry_positions().filter(|place| group.contains(&place.queue)).count() > 1
            };
            assert!(!self.items.iter().any(|item| of_group(&item)), "{group:?}");
        }
        for rule in &self.policy.rules {
            let newest_is_cut = self.policy.cutoffs.iter().any(|cutoff| cutoff.queue == rule.newest());
            assert!(!newest_is_cut && rule.queues.len() <= CUTOFFS_MAX + 1, "{:?}", self.policy);
        }
        assert_eq!(Policy::decode(&self.policy.encode()).as_ref(), Ok(&self.policy));
    }
}

impl ModelTest for PolicyTest {
    const SEEDS: u64 = 400;
    const LENGTH: usize = 120;
    const STEPS: &'static [Step<Self>] = &[
        (7, "write", Self::write),
        (1, "renew", Self::renew),
        (5, "pass", |test| test.now_ms += test.random.i64(0..3_000)),
        (4, "change rules", Self::change_rules),
        (3, "purge", Self::purge),
    ];

    fn start(seed: u64, random: fastrand::Rng) -> PolicyTest {
        let mut test = PolicyTest {
            random,
            now_ms: 20_000,
            sequence: 1,
            policy: Policy::new(DefaultTtl::Off),
            rules: Rules::default(),
            from: Moment::ALWAYS,
            past: Vec::new(),
            items: Vec::new(),
            last_rule: 0,
            reopened: 0,
        };
        if seed % 2 == 1 {
            let history = Lifecycle { history_minutes: Some(10), ..Lifecycle::default() };
            test.change(Change::Lifecycle(history), Rules::default());
        }
        test
    }

    fn compare(&mut self) {
        self.check();
        let is_reopened = |queues: &Vec<Queue>| !queues.is_sorted();
        self.reopened += usize::from(self.policy.rules.iter().any(|rule| is_reopened(&rule.queues)));
    }

    fn reached(&self) -> Vec<Reached> {
        let expired = self.items.iter().filter(|item| self.is_expired(item)).count();
        let renewed = self.items.iter().filter(|item| item.header.renewed_at.is_some()).count();
        vec![("expired", expired, 1), ("queue reopened", self.reopened, 1), ("renewed", renewed, 1)]
    }
}

#[test]
fn t13_t27_t33_no_change_of_rules_ever_revives_or_expires_against_the_model() {
    run::<PolicyTest>();
}
