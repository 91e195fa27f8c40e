//! TTL.md as a plain program: a list of items, the truth table of T2 evaluated one item at a time, and a set of the
//! versions that have died.
//!
//! Nothing here is clever and nothing here is shared with the engine: no queues, no cutoffs, no counters, no
//! dependency but `std`. "Expired is final" (T13) is a set that only grows, and every question is answered by looking
//! at every item.
//!
//! The one surprising thing: the model never makes up what only a store can choose (etags, item numbers, sequences).
//! It takes these *stamps* from the answers and checks what must hold of them.

use std::collections::{BTreeMap, BTreeSet};

/// The greatest number of seconds that T4 and T5 accept.
pub(crate) const MAX_TTL: i64 = 2_147_483_647;

/// A `ttl` or `defaultTtl` that T4 and T5 refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadTtl {
    /// `0`
    Zero,
    /// `-10`
    Negative,
    /// `1.5`
    Fraction,
    /// `"10"`
    Text,
    /// `true`
    True,
    /// `2147483648`
    TooLarge,
    /// `{}` (an item) - a container's `defaultTtl` may be null, an item's may not
    NullOrObject,
}

/// An item's own `ttl`, as a client wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ttl {
    /// No such property.
    Absent,
    /// `-1`
    Never,
    /// A whole number of seconds.
    After(i64),
    /// The same, written with a decimal point: `20.0`.
    AfterPoint(i64),
    /// What T5 refuses.
    Bad(BadTtl),
}

/// A container's `defaultTtl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultTtl {
    /// Absent or null.
    Off,
    /// `-1`
    Never,
    /// Seconds.
    After(i64),
    /// What T4 refuses.
    Bad(BadTtl),
}

/// What a client stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    /// Its `id`.
    pub(crate) id: String,
    /// Which of the pool's partition keys it lies under.
    pub(crate) key: usize,
    /// Its `ttl`.
    pub(crate) ttl: Ttl,
    /// The value under the container's unique key; none = the property is missing, which is a value like any other.
    pub(crate) unique: Option<i64>,
    /// Something to patch and to query.
    pub(crate) number: i64,
    /// Length of a filler string, so that sizes differ.
    pub(crate) padding: usize,
}

/// What the store chose for a version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    /// Opaque text; empty while unknown.
    pub(crate) etag: String,
    /// The item's number; the same for all versions of one item, never used again.
    pub(crate) number: u64,
    /// The sequence of the write.
    pub(crate) sequence: u64,
}

impl Stamp {
    /// Whether a store's stamp can be this one.
    pub(crate) fn admits(&self, other: &Stamp) -> bool {
        if self.etag.is_empty() { self.number == other.number } else { self == other }
    }
}

/// One version of one item, living or dead.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Its name in the set of the dead.
    pub(crate) version: u64,
    /// What the client stored.
    pub(crate) body: Body,
    /// Seconds of its last write.
    pub(crate) ts: u64,
    /// Unknown after a crash that left a write unacknowledged, until read.
    pub(crate) stamp: Option<Stamp>,
}

/// A container.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    /// `D`
    pub(crate) default_ttl: DefaultTtl,
    /// Whether `/u` is a unique key.
    pub(crate) unique: bool,
    /// Every version that has not been replaced or deleted, the dead included until another takes their id.
    pub(crate) items: Vec<Item>,
}

/// How an operation names its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    /// By id.
    Id(String),
    /// By item number.
    Number(u64),
}

/// A condition on the current version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Guard {
    /// None.
    None,
    /// `If-Match: etag`
    Match(String),
    /// `If-Match: *`
    Exists,
    /// `If-None-Match: etag`, on reads
    NoneMatch(String),
}

/// One patch operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    /// `set /ttl`
    SetTtl(Ttl),
    /// `remove /ttl`
    RemoveTtl,
    /// `incr /ttl`
    AddToTtl(i64),
    /// `set /n`
    SetNumber(i64),
    /// `incr /n`
    AddToNumber(i64),
    /// `set /u`
    SetUnique(i64),
}

/// One operation on one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Create.
    Create(Body),
    /// Upsert.
    Upsert(Body, Guard),
    /// Replace.
    Replace(Name, Body, Guard),
    /// Patch, with the condition `n = value`.
    Patch(Name, Vec<Edit>, Option<i64>, Guard),
    /// Delete.
    Delete(Name, Guard),
    /// Read.
    Read(Name, Guard),
}

impl Change {
    fn has_bad_body(&self) -> bool {
        match self {
            Change::Create(body) | Change::Upsert(body, _) | Change::Replace(_, body, _) => {
                matches!(body.ttl, Ttl::Bad(_))
            }
            Change::Patch(..) | Change::Delete(..) | Change::Read(..) => false,
        }
    }

    /// The id of the item it is about, if it tells.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Change::Create(body) | Change::Upsert(body, _) => Some(&body.id),
            Change::Replace(name, ..)
            | Change::Patch(name, ..)
            | Change::Delete(name, _)
            | Change::Read(name, _) => match name {
                Name::Id(id) => Some(id),
                Name::Number(_) => None,
            },
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 201
    Created,
    /// 200 of a write
    Replaced,
    /// 204
    Deleted,
    /// 200 of a read
    Read,
    /// 304
    NotModified,
    /// 404
    NotFound,
    /// 409, the id
    IdTaken,
    /// 409, a unique key
    UniqueTaken,
    /// 412
    PreconditionFailed,
    /// 400, the ttl (T4, T5)
    BadTtl,
    /// 400, a patch that cannot be applied
    BadPatch,
    /// Refused until an operator has judged the clock (T34)
    ClockSuspect,
    /// The container is not there (any more)
    NoContainer,
    /// The store takes no writes
    Unavailable,
    /// Every operation of a batch
    Batch(Vec<Answer>),
    /// The batch did nothing, because of this operation
    BatchFailed(usize, Box<Answer>),
    /// Something else that the model never expects
    Other(String),
}

impl Answer {
    /// Whether something changed.
    pub(crate) fn is_write(&self) -> bool {
        match self {
            Answer::Created | Answer::Replaced | Answer::Deleted => true,
            Answer::Batch(answers) => answers.iter().any(Answer::is_write),
            _ => false,
        }
    }
}

/// Everything a store of the contract would hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    /// The time that requests see, whole seconds.
    pub(crate) now: u64,
    /// The time by which something may be destroyed; behind `now` only while the clock is suspect after a start.
    pub(crate) trusted: u64,
    /// Whether an operator has to judge the clock (T34).
    pub(crate) suspect: bool,
    /// By name.
    pub(crate) containers: BTreeMap<&'static str, Container>,
    /// Every version that ever died. It only grows (T13).
    pub(crate) dead: BTreeSet<u64>,
    /// Every etag ever given out: none comes twice.
    pub(crate) etags: BTreeSet<String>,
    /// Every item number ever given out.
    pub(crate) numbers: BTreeSet<u64>,
    versions: u64,
}

/// The second in which the truth table of T2 lets an item die; none = never.
pub(crate) fn deadline(default_ttl: DefaultTtl, ttl: Ttl, ts: u64) -> Option<u64> {
    match (default_ttl, ttl) {
        (DefaultTtl::Off | DefaultTtl::Bad(_), _) => None,
        (_, Ttl::Never | Ttl::Bad(_)) => None,
        (_, Ttl::After(own) | Ttl::AfterPoint(own)) => Some(ts + own.unsigned_abs()),
        (DefaultTtl::Never, Ttl::Absent) => None,
        (DefaultTtl::After(default), Ttl::Absent) => Some(ts + default.unsigned_abs()),
    }
}

impl Container {
    /// When an item of this container dies, as the rules stand.
    pub(crate) fn deadline(&self, item: &Item) -> Option<u64> {
        deadline(self.default_ttl, item.body.ttl, item.ts)
    }

    fn overdue(&self, item: &Item, now: u64) -> bool {
        self.deadline(item).is_some_and(|deadline| now >= deadline)
    }
}

impl Model {
    /// The clock shows this now.
    pub(crate) fn see(&mut self, now: u64, trusted: u64, suspect: bool) {
        self.suspect = suspect;
        self.move_to(now, trusted);
    }

    /// The clock stands here now; whatever the rules call dead is dead for ever.
    fn move_to(&mut self, now: u64, trusted: u64) {
        self.now = now;
        self.trusted = trusted;
        for container in self.containers.values() {
            for item in &container.items {
                if container.overdue(item, trusted) {
                    self.dead.insert(item.version);
                }
            }
        }
    }

    /// Whether a request sees this item.
    pub(crate) fn is_visible(&self, container: &Container, item: &Item) -> bool {
        !self.dead.contains(&item.version) && !container.overdue(item, self.now)
    }

    /// Hidden by a suspect time, and not dead by the trusted one: neither to be seen nor to be destroyed.
    pub(crate) fn is_withheld(&self, container: &Container, item: &Item) -> bool {
        !self.dead.contains(&item.version) && container.overdue(item, self.now)
    }

    /// The items of a container that requests see.
    pub(crate) fn visible(&self, name: &str) -> Vec<&Item> {
        let Some(container) = self.containers.get(name) else { return Vec::new() };
        container.items.iter().filter(|item| self.is_visible(container, item)).collect()
    }

    /// The items of a container that have died and whose place nobody has taken.
    pub(crate) fn expired(&self, name: &str) -> Vec<&Item> {
        let Some(container) = self.containers.get(name) else { return Vec::new() };
        container.items.iter().filter(|item| self.dead.contains(&item.version)).collect()
    }

    /// How many items of a container requests do not see, dead or withheld.
    pub(crate) fn not_visible(&self, name: &str) -> usize {
        self.containers.get(name).map_or(0, |container| container.items.len() - self.visible(name).len())
    }

    /// A new, empty container.
    pub(crate) fn create_container(
        &mut self,
        name: &'static str,
        default_ttl: DefaultTtl,
        unique: bool,
    ) -> Answer {
        if matches!(default_ttl, DefaultTtl::Bad(_)) {
            return Answer::BadTtl;
        }
        if self.containers.contains_key(name) {
            return Answer::IdTaken;
        }
        self.containers.insert(name, Container { default_ttl, unique, items: Vec::new() });
        Answer::Created
    }

    /// The container and all that is in it go.
    pub(crate) fn delete_container(&mut self, name: &str) -> Answer {
        match self.containers.remove(name) {
            Some(_) => Answer::Deleted,
            None => Answer::NoContainer,
        }
    }

    /// A change of `D`: re-dates every inheriting item at once (T11) and revives none (T13).
    pub(crate) fn set_default_ttl(&mut self, name: &str, default_ttl: DefaultTtl) -> Answer {
        let Some(container) = self.containers.get(name) else { return Answer::NoContainer };
        if matches!(default_ttl, DefaultTtl::Bad(_)) {
            return Answer::BadTtl;
        }
        // A policy change says for ever what is dead, so it waits for a time that can be believed.
        if self.suspect && container.default_ttl != default_ttl {
            return Answer::ClockSuspect;
        }
        self.containers.get_mut(name).expect("looked up above").default_ttl = default_ttl;
        // What the new rule calls dead is dead from this instant on.
        self.move_to(self.now, self.trusted);
        Answer::Replaced
    }

    /// Removes what lives under one partition key.
    pub(crate) fn delete_partition(&mut self, name: &str, key: usize) -> Answer {
        let Some(container) = self.containers.get(name) else { return Answer::NoContainer };
        let gone: BTreeSet<u64> = container
            .items
            .iter()
            .filter(|item| item.body.key == key && self.is_visible(container, item))
            .map(|item| item.version)
            .collect();
        let container = self.containers.get_mut(name).expect("looked up above");
        container.items.retain(|item| !gone.contains(&item.version));
        Answer::Deleted
    }

    /// One operation, alone. Stamps for what it writes are taken from the front of `stamps`.
    pub(crate) fn apply(
        &mut self,
        name: &str,
        key: usize,
        change: &Change,
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        if !self.containers.contains_key(name) {
            return Answer::NoContainer;
        }
        match change {
            Change::Create(body) => self.put(name, body, &Guard::None, PutMode::Create, stamps),
            Change::Upsert(body, guard) => self.put(name, body, guard, PutMode::Upsert, stamps),
            Change::Replace(which, body, guard) => self.replace(name, (key, which), body, guard, stamps),
            Change::Patch(which, edits, condition, guard) => {
                self.patch(name, (key, which), edits, *condition, guard, stamps)
            }
            Change::Delete(which, guard) => self.delete(name, (key, which), guard),
            Change::Read(which, guard) => match self.find(name, key, which) {
                Err(answer) => answer,
                Ok(index) => match guard {
                    Guard::NoneMatch(etag) if self.etag(name, index) == Some(etag) => Answer::NotModified,
                    _ => Answer::Read,
                },
            },
        }
    }

    /// Several operations under one key: all or nothing.
    pub(crate) fn apply_batch(
        &mut self,
        name: &str,
        key: usize,
        changes: &[Change],
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        if !self.containers.contains_key(name) {
            return Answer::NoContainer;
        }
        // What can be seen from a request alone is refused before anything is looked up.
        if let Some(index) = changes.iter().position(Change::has_bad_body) {
            return Answer::BatchFailed(index, Box::new(Answer::BadTtl));
        }
        let before = self.clone();
        let mut answers = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            let answer = self.apply(name, key, change, stamps);
            match answer {
                Answer::Created | Answer::Replaced | Answer::Deleted | Answer::Read | Answer::NotModified => {
                    answers.push(answer);
                }
                failure => {
                    *self = before;
                    return Answer::BatchFailed(index, Box::new(failure));
                }
            }
        }
        Answer::Batch(answers)
    }

    fn etag(&self, name: &str, index: usize) -> Option<&String> {
        self.containers[name].items[index].stamp.as_ref().map(|stamp| &stamp.etag)
    }

    /// The living item of that name; a withheld one is not found either.
    fn find(&self, name: &str, key: usize, which: &Name) -> Result<usize, Answer> {
        let container = &self.containers[name];
        let named = |item: &Item| {
            item.body.key == key
                && match which {
                    Name::Id(id) => item.body.id == *id,
                    Name::Number(number) => item.stamp.as_ref().is_some_and(|stamp| stamp.number == *number),
                }
        };
        let found = container.items.iter().position(|item| named(item) && self.is_visible(container, item));
        found.ok_or(Answer::NotFound)
    }

    fn guard(&self, name: &str, index: usize, guard: &Guard) -> Result<(), Answer> {
        match guard {
            Guard::Match(etag) if self.etag(name, index) != Some(etag) => Err(Answer::PreconditionFailed),
            _ => Ok(()),
        }
    }

    /// Whether `/u` is free for this body: only the living hold it (T15); a withheld holder cannot be judged.
    fn check_unique(&self, name: &str, body: &Body, except: Option<usize>) -> Result<(), Answer> {
        let container = &self.containers[name];
        if !container.unique {
            return Ok(());
        }
        for (index, item) in container.items.iter().enumerate() {
            if Some(index) == except || item.body.key != body.key || item.body.unique != body.unique {
                continue;
            }
            if self.is_visible(container, item) {
                return Err(Answer::UniqueTaken);
            }
            if self.is_withheld(container, item) {
                return Err(Answer::ClockSuspect);
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        name: &str,
        body: &Body,
        guard: &Guard,
        mode: PutMode,
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        if matches!(body.ttl, Ttl::Bad(_)) {
            return Answer::BadTtl;
        }
        let which = Name::Id(body.id.clone());
        if let Ok(index) = self.find(name, body.key, &which) {
            return match mode {
                PutMode::Create => Answer::IdTaken,
                PutMode::Upsert => match self.guard(name, index, guard) {
                    Err(answer) => answer,
                    Ok(()) => self.overwrite(name, index, body.clone(), stamps),
                },
            };
        }
        if matches!(guard, Guard::Match(_) | Guard::Exists) {
            return Answer::NotFound;
        }
        let container = &self.containers[name];
        let same_id = |item: &Item| item.body.key == body.key && item.body.id == body.id;
        if container.items.iter().any(|item| same_id(item) && self.is_withheld(container, item)) {
            return Answer::ClockSuspect;
        }
        if let Err(answer) = self.check_unique(name, body, None) {
            return answer;
        }
        let item = self.version(body.clone(), None, stamps);
        let container = self.containers.get_mut(name).expect("the caller looked it up");
        container.items.retain(|item| !same_id(item));
        container.items.push(item);
        // An item cannot be born dead: the least ttl is a second.
        Answer::Created
    }

    fn replace(
        &mut self,
        name: &str,
        (key, which): (usize, &Name),
        body: &Body,
        guard: &Guard,
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        if matches!(body.ttl, Ttl::Bad(_)) {
            return Answer::BadTtl;
        }
        let checked = self.find(name, key, which).and_then(|index| {
            self.guard(name, index, guard)?;
            Ok(index)
        });
        match checked {
            Err(answer) => answer,
            Ok(index) => self.overwrite(name, index, body.clone(), stamps),
        }
    }

    fn patch(
        &mut self,
        name: &str,
        (key, which): (usize, &Name),
        edits: &[Edit],
        condition: Option<i64>,
        guard: &Guard,
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        let index = match self.find(name, key, which) {
            Err(answer) => return answer,
            Ok(index) => index,
        };
        if let Err(answer) = self.guard(name, index, guard) {
            return answer;
        }
        let mut body = self.containers[name].items[index].body.clone();
        if condition.is_some_and(|number| number != body.number) {
            return Answer::PreconditionFailed;
        }
        for edit in edits {
            if !apply_edit(&mut body, edit) {
                return Answer::BadPatch;
            }
        }
        if matches!(body.ttl, Ttl::Bad(_)) {
            return Answer::BadTtl;
        }
        self.overwrite(name, index, body, stamps)
    }

    fn delete(&mut self, name: &str, (key, which): (usize, &Name), guard: &Guard) -> Answer {
        let index = match self.find(name, key, which) {
            Err(answer) => return answer,
            Ok(index) => index,
        };
        if let Err(answer) = self.guard(name, index, guard) {
            return answer;
        }
        self.containers.get_mut(name).expect("the caller looked it up").items.remove(index);
        Answer::Deleted
    }

    /// A living item gets a new version: `_ts` is now, its countdown starts again (T9).
    fn overwrite(&mut self, name: &str, index: usize, body: Body, stamps: &mut Vec<Stamp>) -> Answer {
        if let Err(answer) = self.check_unique(name, &body, Some(index)) {
            return answer;
        }
        let number = self.containers[name].items[index].stamp.as_ref().map(|stamp| stamp.number);
        let item = self.version(body, number, stamps);
        self.containers.get_mut(name).expect("the caller looked it up").items[index] = item;
        Answer::Replaced
    }

    /// A new version. Without a stamp from an answer, its etag is unknown and not that of any version before.
    fn version(&mut self, body: Body, number: Option<u64>, stamps: &mut Vec<Stamp>) -> Item {
        self.versions += 1;
        let unknown = |number| Stamp { etag: String::new(), number, sequence: 0 };
        let stamp = if stamps.is_empty() { number.map(unknown) } else { Some(stamps.remove(0)) };
        Item { version: self.versions, body, ts: self.now, stamp }
    }
}

#[derive(Debug, Clone, Copy)]
enum PutMode {
    Create,
    Upsert,
}

fn apply_edit(body: &mut Body, edit: &Edit) -> bool {
    match edit {
        Edit::SetTtl(ttl) => body.ttl = *ttl,
        Edit::RemoveTtl if body.ttl == Ttl::Absent => return false,
        Edit::RemoveTtl => body.ttl = Ttl::Absent,
        Edit::AddToTtl(more) => {
            body.ttl = match body.ttl {
                Ttl::Absent => from_number(*more),
                Ttl::Never => from_number(more - 1),
                Ttl::After(own) => from_number(own + more),
                Ttl::AfterPoint(own) => match from_number(own + more) {
                    Ttl::After(sum) => Ttl::AfterPoint(sum),
                    other => other,
                },
                Ttl::Bad(_) => return false,
            }
        }
        Edit::SetNumber(number) => body.number = *number,
        Edit::AddToNumber(more) => body.number += more,
        Edit::SetUnique(value) => body.unique = Some(*value),
    }
    true
}

fn from_number(number: i64) -> Ttl {
    match number {
        -1 => Ttl::Never,
        0 => Ttl::Bad(BadTtl::Zero),
        1..=MAX_TTL => Ttl::After(number),
        _ if number < 0 => Ttl::Bad(BadTtl::Negative),
        _ => Ttl::Bad(BadTtl::TooLarge),
    }
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
    fn t13_the_model_forgets_no_death() {
        let mut model = Model::default();
        model.move_to(100, 100);
        model.create_container("c", DefaultTtl::After(5), false);
        let body = Body { id: "a".into(), key: 0, ttl: Ttl::Absent, unique: None, number: 0, padding: 0 };
        assert_eq!(model.apply("c", 0, &Change::Create(body), &mut Vec::new()), Answer::Created);
        model.move_to(105, 105);
        assert!(model.visible("c").is_empty());
        model.set_default_ttl("c", DefaultTtl::Off);
        assert!(model.visible("c").is_empty());
        let read = Change::Read(Name::Id("a".into()), Guard::None);
        assert_eq!(model.apply("c", 0, &read, &mut Vec::new()), Answer::NotFound);
    }
}
