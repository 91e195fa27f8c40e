//! TTL.md as a plain program: a list of items, the truth table of T2 evaluated one item at a time, and a set of the
//! versions that have expired.
//!
//! The model is simple and shares no code with the engine: no queues, no cutoffs, no counters, no dependency but `std`.
//! "Expired is final" (T13) is a set that only grows, and every question is answered by a scan over all items.
//!
//! The one surprising thing: the model does not compute values that only a store can choose (etags, item numbers,
//! sequences). It takes these *stamps* from the answers and checks their properties.

mod evidence;
mod history;
mod items;
mod owner;
mod ttl_modes;
mod types;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use evidence::{Evidence, Expiry};
pub(crate) use history::{ChangeKind, Event, Feed, FeedPosition};
pub(crate) use ttl_modes::{CountdownOrigin, TtlModes};
pub(crate) use types::{
    Answer, BadTtl, Body, Change, Consent, Countdown, DefaultTtl, Edit, Guard, Indexing, Instant, MAX_TTL,
    Name, SettingChange, Stamp, Ttl,
};

/// The unit of shares: millionths.
pub(crate) const MILLION: u64 = 1_000_000;

/// One version of one item, live or expired.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Its number in the set of expired versions.
    pub(crate) version: u64,
    /// What the client stored.
    pub(crate) body: Body,
    /// Seconds of its last write.
    pub(crate) ts: u64,
    /// The second from which its time to live is counted (T33),
    pub(crate) counts_from: u64,
    /// and from which it was when the item was written.
    pub(crate) written_from: u64,
    /// Whether a read may restart its countdown,
    pub(crate) slides: bool,
    /// and whether one has.
    pub(crate) touched: bool,
    /// The second of expiry that it names.
    pub(crate) expires_at: Option<u64>,
    /// Unknown after a crash that left a write unacknowledged, until read.
    pub(crate) stamp: Option<Stamp>,
    /// Whether it may not expire, be changed or deleted (T31).
    pub(crate) held: bool,
}

/// A container.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    /// `D`
    pub(crate) default_ttl: DefaultTtl,
    /// Whether `/u` is a unique key.
    pub(crate) unique: bool,
    /// What is indexed.
    pub(crate) indexing: Indexing,
    /// Every version that has not been replaced or deleted, the expired items included until another takes their id.
    pub(crate) items: Vec<Item>,
    /// Whether nothing in it may expire, be changed or deleted (T31).
    pub(crate) hold: bool,
    /// The share of the live items, in millionths, that a change of rules may expire without consent (T30).
    pub(crate) guard: Option<u32>,
    /// The feed of all versions (T28).
    pub(crate) feed: Option<Feed>,
    /// The evidence that its owner has configured, and since when.
    pub(crate) evidence: BTreeMap<Evidence, u64>,
    /// The TTL modes: where countdowns start (T33).
    pub(crate) ttl_modes: TtlModes,
    /// Where any countdown may have started so far.
    pub(crate) counted: CountdownOrigin,
    /// No other container, before or after, has this number.
    pub(crate) number: u64,
    /// The LSN at which it began, once it was seen,
    pub(crate) first_lsn: Option<u64>,
    /// and how many commits have written or deleted items in it since.
    pub(crate) commits: u64,
}

/// The contents of a store that fulfils the contract.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    /// The time that requests see, whole seconds.
    pub(crate) now: u64,
    /// The time by which data may be destroyed; behind `now` only while the clock is suspect after a start.
    pub(crate) trusted: u64,
    /// The same in milliseconds: when something happens.
    pub(crate) trusted_ms: u64,
    /// Whether an operator has to judge the clock (T34).
    pub(crate) suspect: bool,
    /// By name.
    pub(crate) containers: BTreeMap<&'static str, Container>,
    /// Every version that ever expired. It only grows (T13).
    pub(crate) expired_versions: BTreeSet<u64>,
    /// How each of them expired.
    pub(crate) expiries: Vec<Expiry>,
    versions: u64,
    /// The effect of the current operation on countdowns.
    countdown: Countdown,
    made: u64,
    /// What has happened so far, by turn and by event.
    turns: u64,
    events: u64,
}

/// Returns the second in which an item expires by the truth table of T2, if its countdown starts at `from`; `None` = never.
pub(crate) fn deadline(default_ttl: DefaultTtl, ttl: Ttl, from: u64) -> Option<u64> {
    let lives = match default_ttl {
        DefaultTtl::Off | DefaultTtl::Bad(_) => None,
        DefaultTtl::Never | DefaultTtl::After(_) => match (ttl, default_ttl) {
            (Ttl::After(own) | Ttl::AfterPoint(own), _) => Some(own),
            (Ttl::Absent, DefaultTtl::After(default)) => Some(default),
            _ => None,
        },
    };
    lives.map(|seconds| from + seconds.unsigned_abs())
}

impl Container {
    /// Returns when an item of this container expires, as the rules stand.
    pub(crate) fn deadline(&self, item: &Item) -> Option<u64> {
        if self.hold || item.held {
            return None;
        }
        self.ttl_deadline(item).into_iter().chain(item.expires_at).min()
    }

    /// Returns when it expires by its time to live.
    fn ttl_deadline(&self, item: &Item) -> Option<u64> {
        let held = self.hold || item.held;
        deadline(self.default_ttl, item.body.ttl, item.counts_from).filter(|_| !held)
    }

    fn overdue(&self, item: &Item, now: u64) -> bool {
        self.deadline(item).is_some_and(|deadline| now >= deadline)
    }
}

impl Model {
    /// Advances the model to the time that the clock shows now.
    pub(crate) fn see(&mut self, now_ms: u64, trusted_ms: u64, suspect: bool) {
        self.suspect = suspect;
        self.now = now_ms / 1000;
        self.trusted = trusted_ms / 1000;
        self.trusted_ms = trusted_ms;
        let names: Vec<&'static str> = self.containers.keys().copied().collect();
        for name in names {
            let container = &self.containers[name];
            let expiring =
                container.items.iter().filter(|item| !self.expired_versions.contains(&item.version));
            let expiring = expiring.filter_map(|item| Some((container.deadline(item)?, item)));
            let expiring = expiring.filter(|(deadline, _)| *deadline <= self.trusted);
            let expiring: Vec<(u64, Item)> =
                expiring.map(|(deadline, item)| (deadline, item.clone())).collect();
            // An item that has expired by the rules stays expired for ever.
            self.expired_versions.extend(expiring.iter().map(|(_, item)| item.version));
            self.expire(name, expiring);
        }
    }

    /// Returns `true` if a request sees this item.
    pub(crate) fn is_visible(&self, container: &Container, item: &Item) -> bool {
        !self.expired_versions.contains(&item.version) && !container.overdue(item, self.now)
    }

    /// Returns `true` if an item has expired by a suspect time, but not by the trusted one: it may neither be
    /// returned nor be removed.
    pub(crate) fn is_withheld(&self, container: &Container, item: &Item) -> bool {
        !self.expired_versions.contains(&item.version) && container.overdue(item, self.now)
    }

    /// Returns the items of a container that requests see.
    pub(crate) fn visible(&self, name: &str) -> Vec<&Item> {
        let Some(container) = self.containers.get(name) else { return Vec::new() };
        container.items.iter().filter(|item| self.is_visible(container, item)).collect()
    }

    /// Returns the expired items of a container whose ids are not in use again.
    pub(crate) fn expired(&self, name: &str) -> Vec<&Item> {
        let Some(container) = self.containers.get(name) else { return Vec::new() };
        container.items.iter().filter(|item| self.expired_versions.contains(&item.version)).collect()
    }

    /// Returns the number of items of a container that are neither visible nor finally expired.
    pub(crate) fn withheld(&self, name: &str) -> usize {
        let Some(container) = self.containers.get(name) else { return 0 };
        container.items.iter().filter(|item| self.is_withheld(container, item)).count()
    }

    /// Returns a new, empty container.
    pub(crate) fn create_container(
        &mut self,
        name: &'static str,
        default_ttl: DefaultTtl,
        unique: bool,
        feed: Option<u32>,
        base: bool,
    ) -> Answer {
        if matches!(default_ttl, DefaultTtl::Bad(_)) {
            return Answer::BadTtl;
        }
        if self.containers.contains_key(name) {
            return Answer::IdTaken;
        }
        self.made += 1;
        let container = Container {
            default_ttl,
            unique,
            indexing: Indexing::default(),
            items: Vec::new(),
            hold: false,
            guard: None,
            feed: None,
            evidence: BTreeMap::new(),
            ttl_modes: TtlModes { base, ..TtlModes::default() },
            counted: if base { CountdownOrigin::Otherwise } else { CountdownOrigin::FromWrites },
            number: self.made,
            first_lsn: None,
            commits: 0,
        };
        self.containers.insert(name, container);
        self.keep_feed(name, feed);
        Answer::Created
    }

    /// Deletes a container with all its items.
    pub(crate) fn delete_container(&mut self, name: &str) -> Answer {
        let is_held = |container: &Container| container.hold || self.has_held(container, |_| true);
        match self.containers.get(name) {
            None => Answer::NoContainer,
            Some(container) if is_held(container) => Answer::Held,
            Some(_) => {
                self.containers.remove(name);
                Answer::Deleted
            }
        }
    }

    fn has_held(&self, container: &Container, which: impl Fn(&Item) -> bool) -> bool {
        let living = |item: &&Item| self.is_visible(container, item);
        container.items.iter().filter(living).any(|item| item.held && which(item))
    }

    /// Changes `D`: moves the deadline of every inheriting item at once (T11), and no expired item becomes visible (T13).
    pub(crate) fn set_default_ttl(
        &mut self,
        name: &'static str,
        default_ttl: DefaultTtl,
        consent: Consent,
    ) -> Answer {
        let Some(container) = self.containers.get(name) else { return Answer::NoContainer };
        if matches!(default_ttl, DefaultTtl::Bad(_)) || refuses(container.indexing, default_ttl) {
            return Answer::BadTtl;
        }
        // A policy change is final about what has expired, so it is refused while the clock is suspect.
        if self.suspect && container.default_ttl != default_ttl {
            return Answer::ClockSuspect;
        }
        if container.default_ttl == default_ttl {
            return Answer::Replaced;
        }
        let before = self.clone();
        self.containers.get_mut(name).expect("looked up above").default_ttl = default_ttl;
        self.unless_too_many_expire(name, before, consent, Answer::Replaced)
    }

    /// Changes the indexing policy: nothing visible changes.
    pub(crate) fn set_indexing(&mut self, name: &str, indexing: Indexing) -> Answer {
        let Some(container) = self.containers.get_mut(name) else { return Answer::NoContainer };
        if refuses(indexing, container.default_ttl) {
            return Answer::BadTtl;
        }
        container.indexing = indexing;
        Answer::Replaced
    }

    /// Removes the living items of one partition key.
    pub(crate) fn delete_partition(&mut self, name: &str, key: usize) -> Answer {
        let Some(container) = self.containers.get(name) else { return Answer::NoContainer };
        if container.hold || self.has_held(container, |item| item.body.key == key) {
            return Answer::Held;
        }
        let living = self.visible(name).into_iter();
        let gone: Vec<Item> = living.filter(|item| item.body.key == key).cloned().collect();
        self.turns += 1;
        if !gone.is_empty() {
            self.commit(name);
        }
        for item in gone {
            let items = &mut self.containers.get_mut(name).expect("looked up above").items;
            items.retain(|other| other.version != item.version);
            self.happen_at_once(name, ChangeKind::Deleted, Some(item), None);
        }
        Answer::Deleted
    }
}

/// Returns whether a definition is refused: there is no TTL without an index (T25).
fn refuses(indexing: Indexing, default_ttl: DefaultTtl) -> bool {
    indexing == Indexing::None && default_ttl != DefaultTtl::Off
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t2_the_nine_cells() {
        let off = DefaultTtl::Off;
        for (default_ttl, ttl, expected) in [
            (off, Ttl::Absent, None),
            (DefaultTtl::Never, Ttl::Absent, None),
            (DefaultTtl::After(5), Ttl::Absent, Some(105)),
            (off, Ttl::Never, None),
            (DefaultTtl::Never, Ttl::Never, None),
            (DefaultTtl::After(5), Ttl::Never, None),
            (off, Ttl::After(3), None),
            (DefaultTtl::Never, Ttl::After(3), Some(103)),
            (DefaultTtl::After(5), Ttl::After(3), Some(103)),
        ] {
            assert_eq!(deadline(default_ttl, ttl, 100), expected, "{default_ttl:?} {ttl:?}");
        }
    }

    #[test]
    fn t13_the_model_forgets_no_expiry() {
        let mut model = Model::default();
        model.see(100_000, 100_000, false);
        model.create_container("c", DefaultTtl::After(5), false, Some(10), false);
        let (id, ttl) = ("a".into(), Ttl::Absent);
        let body = Body { id, key: 0, ttl, unique: None, number: 0, padding: 0, base: None, gone: None };
        assert_eq!(
            model.apply("c", 0, &Change::Create(body), Countdown::Restart, &mut Vec::new()),
            Answer::Created
        );
        model.see(107_500, 107_500, false);
        assert!(model.visible("c").is_empty());
        model.set_default_ttl("c", DefaultTtl::Off, Consent::NotGiven);
        assert!(model.visible("c").is_empty());
        let read = Change::Read(Name::Id("a".into()), Guard::None);
        assert_eq!(model.apply("c", 0, &read, Countdown::Restart, &mut Vec::new()), Answer::NotFound);
        let told = &model.containers["c"].feed.as_ref().unwrap().events;
        let told: Vec<_> = told.iter().map(|event| (event.what, event.place.time_ms)).collect();
        assert_eq!(
            told,
            [(ChangeKind::Created, 100_000), (ChangeKind::Expired, 105_000)],
            "as of the instant"
        );
    }
}
