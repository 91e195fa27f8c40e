//! A container of the NoSQL API beside a model of it: a list of items, and settings that say when each expires (T2, T13,
//! T31, T33). The model knows no queues, cutoffs, renewals or counters.
//!
//! Every operation runs in both, and the engine must answer as the model does. Tests draw the operations, and compare
//! what they are about. The tests in `src` include this file too.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use document::{Document, Object, Path, Value};
use engine::definition::OwnTtl;
use engine::{
    Consent, ContainerDefinition, Countdown, DefaultTtl, Error, ItemAddress, ItemName, Operation, Outcome,
    Precondition, QueryRequest,
};
use fastrand::Rng;

use super::world::{World, key, parse};

const PARTITION_KEY: &str = "p";

/// What a write brings.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) ttl: OwnTtl,
    /// From which second its countdown starts, where the settings name the property.
    pub(crate) created: Option<i64>,
    /// The second at which it wants to expire, where the settings name the property.
    pub(crate) expires_at: Option<i64>,
    pub(crate) countdown: Countdown,
}

/// A living item.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// The number of the write that made it.
    pub(crate) version: u32,
    /// When it was last written, in whole seconds as milliseconds.
    pub(crate) written_ms: i64,
    /// When the countdown of its ttl starts.
    from_ms: i64,
    ttl: OwnTtl,
    /// The instant of expiry that it names,
    names: Option<i64>,
    /// and the setting of the property that was in force when it last did so.
    named_under: u32,
    slides: bool,
    pub(crate) held: bool,
    pub(crate) etag: String,
}

/// An item that has expired, and when.
#[derive(Debug, Clone)]
pub(crate) struct Expired {
    pub(crate) at_ms: i64,
    pub(crate) id: u32,
    pub(crate) item: Known,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) default: DefaultTtl,
    /// Whether countdowns start at `/created`.
    pub(crate) base: bool,
    /// How many times the property for instants of expiry was set or removed; it is set if the number is odd.
    pub(crate) absolute: u32,
    pub(crate) sliding: bool,
    pub(crate) held: bool,
}

/// Why items have expired since the model last decided that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Time passed: items expired at their deadlines.
    Time,
    /// Anything else: items expired just now.
    Else,
}

pub(crate) struct ContainerModel {
    pub(crate) world: World,
    /// How many ids the operations choose from.
    ids: u32,
    pub(crate) random: Rng,
    pub(crate) settings: Settings,
    pub(crate) items: BTreeMap<u32, Known>,
    pub(crate) expired: Vec<Expired>,
    pub(crate) renewals: usize,
    versions: u32,
}

impl Settings {
    fn names_expiry(&self) -> bool {
        self.absolute % 2 == 1
    }

    fn deadline_by_ttl(&self, item: &Known) -> Option<i64> {
        let seconds = match (self.default, item.ttl) {
            _ if self.held || item.held => None,
            (DefaultTtl::Off, _) | (_, OwnTtl::Never) | (DefaultTtl::Never, OwnTtl::Absent) => None,
            (_, OwnTtl::Seconds(seconds)) | (DefaultTtl::Seconds(seconds), OwnTtl::Absent) => Some(seconds),
        };
        Some(item.from_ms + i64::from(seconds?) * 1000)
    }

    fn deadline(&self, item: &Known) -> Option<i64> {
        let is_heard = self.names_expiry() && item.named_under == self.absolute && !self.held && !item.held;
        self.deadline_by_ttl(item).into_iter().chain(item.names.filter(|_| is_heard)).min()
    }
}

impl ContainerModel {
    /// Creates the container with these members of its definition.
    pub(crate) fn new(members: &str, settings: Settings, ids: u32, random: Rng) -> ContainerModel {
        let world = World::new();
        world.container(members);
        let (items, expired) = (BTreeMap::new(), Vec::new());
        let mut model =
            ContainerModel { world, ids, random, settings, items, expired, renewals: 0, versions: 0 };
        model.apply_settings();
        model
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.world.engine.now().expect("a time").millis().cast_signed()
    }

    fn second(&self) -> i64 {
        self.now_ms() / 1000 * 1000
    }

    /// Removes the items that have expired.
    pub(crate) fn expire(&mut self, cause: Cause) {
        let now = self.now_ms();
        let (settings, expired) = (&self.settings, &mut self.expired);
        self.items.retain(|id, item| {
            let Some(deadline) = settings.deadline(item).filter(|deadline| *deadline <= now) else {
                return true;
            };
            let at_ms = if cause == Cause::Time { deadline } else { now };
            expired.push(Expired { at_ms, id: *id, item: item.clone() });
            false
        });
    }

    fn draw_id(&mut self) -> u32 {
        self.random.u32(..self.ids)
    }

    /// Lets whole seconds pass, so that some items are seen at the instant of their expiry.
    pub(crate) fn pass(&mut self, seconds: impl RangeBounds<u64>) {
        self.world.pass(self.random.u64(seconds));
        self.expire(Cause::Time);
    }

    /// Reopens the store. Time has passed when it is open.
    pub(crate) fn restart(&mut self) {
        self.world.restart();
        self.expire(Cause::Time);
    }

    fn run(&self, operation: Operation, countdown: Countdown) -> Result<Outcome, Error> {
        let key = Some(key(PARTITION_KEY));
        self.world.engine.write_with(&self.world.current(), key, operation, countdown).wait()
    }

    /// Whether the item is living and may not be changed.
    fn is_held(&self, id: u32) -> bool {
        self.items.get(&id).is_some_and(|item| item.held || self.settings.held)
    }

    pub(crate) fn write(&mut self, draft: &Draft) {
        self.versions += 1;
        let (id, second) = (self.draw_id(), self.second());
        let body = draft.body(id, self.versions);
        let upsert = Operation::Upsert { body, precondition: Precondition::None };
        let written = self.run(upsert, draft.countdown);
        if self.is_held(id) {
            return assert_held(&written);
        }
        let outcome = written.expect("written");
        let kept = self.items.get(&id).filter(|_| draft.countdown == Countdown::Keep).map(|old| old.from_ms);
        let based = draft.created.filter(|_| self.settings.base).map(|created| created * 1000);
        let item = Known {
            version: self.versions,
            written_ms: second,
            from_ms: kept.or(based).unwrap_or(second),
            ttl: draft.ttl,
            names: draft.expires_at.map(|seconds| seconds * 1000),
            named_under: self.settings.absolute,
            slides: self.settings.sliding && draft.ttl != OwnTtl::Never,
            held: false,
            etag: outcome.item.as_ref().expect("a written item").etag.to_string(),
        };
        self.check_seconds_left(&item, &outcome);
        self.items.insert(id, item);
        self.expire(Cause::Else);
    }

    fn check_seconds_left(&self, item: &Known, outcome: &Outcome) {
        let left = self.settings.deadline(item).map(|deadline| deadline - self.now_ms());
        let left = left.map(|left| u64::try_from(left).unwrap_or_default().div_ceil(1000));
        assert_eq!(outcome.seconds_left, left, "{item:?}");
    }

    /// Makes a point read, a read in a transaction, or a read of several ids; most are of living items.
    pub(crate) fn read(&mut self) {
        let living = self.random.choice(self.items.keys().copied());
        let id = living.filter(|_| self.random.u8(..4) > 0).unwrap_or(self.draw_id());
        let way = self.random.u8(..4);
        let second = self.second();
        let found = self.read_by(way, id);
        let Some(item) = self.items.get_mut(&id) else {
            assert_not_found(&found);
            return;
        };
        let may_restart = self.settings.sliding && item.slides && item.from_ms < second;
        if may_restart && self.settings.deadline_by_ttl(item).is_some() {
            item.from_ms = second;
            self.renewals += 1;
        }
        let item = item.clone();
        if let Some(outcome) = found.expect("it lives") {
            self.check_seconds_left(&item, &outcome);
        }
    }

    /// Reads an item and makes its renewals; a query has no outcome.
    fn read_by(&self, way: u8, id: u32) -> Result<Option<Outcome>, Error> {
        let (engine, container) = (&self.world.engine, self.world.current());
        let (name, precondition) = (ItemName::Id(id.to_string()), Precondition::None);
        let renew = |renewal| {
            if let Some(renewal) = engine.renew(renewal) {
                renewal.wait().expect("renewed");
            }
        };
        match way {
            0 => self.run(Operation::Read { name, precondition }, Countdown::Restart).map(Some),
            1 => {
                let query = parse(&format!("SELECT * FROM c WHERE c.id IN ('{id}', 'missing')"));
                let page = engine.query(&container, &QueryRequest::new(Some(&query), 10)).expect("a page");
                page.renewals.iter().for_each(renew);
                let what = format!("item {id}");
                if page.rows.is_empty() { Err(Error::NotFound { what }) } else { Ok(None) }
            }
            _ => {
                let outcome = engine.read(&container, &key(PARTITION_KEY), &name, &precondition)?;
                outcome.renewal.iter().for_each(renew);
                Ok(Some(outcome))
            }
        }
    }

    pub(crate) fn delete(&mut self) {
        let id = self.draw_id();
        let deleted = self.world.delete(PARTITION_KEY, &id.to_string());
        if self.is_held(id) {
            assert_held(&deleted);
        } else if self.items.remove(&id).is_some() {
            deleted.expect("it lives");
        } else {
            assert_not_found(&deleted);
        }
    }

    pub(crate) fn set_default(&mut self, default: DefaultTtl) {
        self.settings.default = default;
        self.apply_settings();
    }

    /// Holds the container, or lifts its hold.
    pub(crate) fn turn_hold(&mut self) {
        self.settings.held = !self.settings.held;
        self.apply_settings();
    }

    /// Makes the settings of the engine those of the model.
    pub(crate) fn apply_settings(&mut self) {
        let wanted = self.settings.clone();
        let engine = &self.world.engine;
        let changed = engine.change_lifecycle_with(&self.world.owner(), Consent::Given, |lifecycle| {
            lifecycle.sliding = wanted.sliding;
            lifecycle.expire_at_path =
                wanted.names_expiry().then(|| Path::parse("/expiresAt").expect("a path"));
            lifecycle.hold = wanted.held.then(|| "a case".to_owned());
        });
        changed.expect("a change");
        let container = self.world.current();
        let mut definition = container.definition.to_value();
        let members = definition.as_object_mut().expect("an object");
        members.insert("ttlPropertyPath", if wanted.base { "/created" } else { "" });
        members.insert("defaultTtl", wanted.default.to_member().unwrap_or(Value::Null));
        let definition = ContainerDefinition::from_value(&definition).expect("valid");
        let replaced = engine.replace_container(&container, definition, &Precondition::None);
        assert_eq!(replaced.expect("a change").definition.ttl_property_path().is_some(), wanted.base);
        self.expire(Cause::Else);
    }

    pub(crate) fn hold(&mut self) {
        let id = self.draw_id();
        let outcome = self.world.engine.hold_item(&self.world.owner(), &address(id), "a case");
        match self.items.get_mut(&id) {
            None => assert_not_found(&outcome),
            Some(item) => {
                outcome.expect("it lives");
                item.held = true;
            }
        }
    }

    pub(crate) fn lift(&mut self) {
        let id = self.draw_id();
        let outcome = self.world.engine.lift_item(&self.world.owner(), &address(id));
        match self.items.get_mut(&id) {
            _ if self.settings.held => assert_held(&outcome),
            Some(item) if item.held => {
                outcome.expect("it is held");
                // The rules then in force apply (T31).
                (item.held, item.named_under) = (false, self.settings.absolute);
            }
            _ => assert_not_found(&outcome),
        }
        self.expire(Cause::Else);
    }
}

impl Draft {
    fn body(&self, id: u32, version: u32) -> Document {
        let mut body = Object::new();
        body.insert("id", id.to_string());
        body.insert("pk", PARTITION_KEY);
        body.insert("k", Value::Int((id % 3).into()));
        body.insert("version", Value::Int(version.into()));
        let ttl = match self.ttl {
            OwnTtl::Absent => None,
            OwnTtl::Never => Some(-1),
            OwnTtl::Seconds(seconds) => Some(seconds.into()),
        };
        for (name, number) in [("ttl", ttl), ("created", self.created), ("expiresAt", self.expires_at)] {
            if let Some(number) = number {
                body.insert(name, Value::Int(number));
            }
        }
        Document::from_value(&Value::Object(body)).expect("small")
    }
}

fn address(id: u32) -> ItemAddress {
    ItemAddress::Id(key(PARTITION_KEY), id.to_string())
}

fn assert_held<T: std::fmt::Debug>(outcome: &Result<T, Error>) {
    assert!(matches!(outcome, Err(Error::Held { .. })), "{outcome:?}");
}

fn assert_not_found<T: std::fmt::Debug>(outcome: &Result<T, Error>) {
    assert!(matches!(outcome, Err(Error::NotFound { .. })), "{outcome:?}");
}
