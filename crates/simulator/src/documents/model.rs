//! T6, T26 and T27 as a plain program: every rule is evaluated on every document, and each expiry is recorded for ever.

use std::collections::{BTreeMap, BTreeSet};

use super::types::{Answer, Cause, ChangeKind, Default, Doc, Event, FIELDS, Request, Rule, Seen, Ttl};
use crate::model::{Consent, Evidence, MILLION};

#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) version: u64,
    pub(super) doc: Doc,
    /// Seconds of its last write.
    ts: u64,
    pub(super) held: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Collection {
    pub(super) default: super::types::Default,
    pub(super) rules: [Option<Rule>; FIELDS],
    /// In the order of creation, the expired items included until another takes their id.
    pub(super) items: Vec<Item>,
    pub(super) hold: bool,
    /// The share of the living items that may expire at once, in millionths.
    pub(super) guard: Option<u32>,
    /// The evidence that is configured, and since which turn.
    pub(super) evidence: BTreeMap<Evidence, u64>,
    /// A name may be used again; a number is not.
    number: u64,
}

impl Collection {
    /// Returns the millisecond in which the earliest rule expires an item.
    pub(super) fn deadline_ms(&self, item: &Item) -> Option<u64> {
        self.deadlines_ms(item).into_iter().map(|(deadline, _)| deadline).min()
    }

    /// Returns the milliseconds in which its rules expire an item.
    fn deadlines_ms(&self, item: &Item) -> Vec<(u64, Cause)> {
        if self.hold || item.held {
            return Vec::new();
        }
        let own = match (self.default, item.doc.ttl) {
            (Default::Off, _) | (_, Ttl::Never) => None,
            (_, Ttl::After(seconds, _)) => Some((seconds, Cause::Ttl(seconds))),
            (default, Ttl::Absent | Ttl::Ignored(_)) => {
                default.seconds().map(|seconds| (seconds, Cause::Default(seconds)))
            }
        };
        let own = own.map(|(seconds, cause)| ((item.ts.cast_signed() + seconds) * 1000, cause));
        let by_date = (0..FIELDS).filter_map(|field| {
            let rule = self.rules[field].filter(|rule| rule.in_force && (!rule.partial || item.doc.tag))?;
            let cause = Cause::Date { field: Some(field), seconds: rule.seconds };
            Some((item.doc.dates[field].earliest()? + rule.seconds * 1000, cause))
        });
        let deadlines = own.into_iter().chain(by_date);
        deadlines.map(|(deadline, cause)| (deadline.max(0).unsigned_abs(), cause)).collect()
    }
}

/// One expiry.
#[derive(Debug, Clone)]
pub(super) struct Expiry {
    /// The collection that it happened in, by number.
    pub(super) collection: u64,
    pub(super) doc: Doc,
    pub(super) ts: u64,
    pub(super) time_ms: u64,
    /// The rules by which it was overdue in that instant.
    pub(super) causes: Vec<Cause>,
    turn: u64,
}

/// All collections, and everything that has happened.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) now_ms: u64,
    pub(super) collections: BTreeMap<&'static str, Collection>,
    pub(super) expired_versions: BTreeSet<u64>,
    pub(super) events: Vec<Event>,
    pub(super) expiries: Vec<Expiry>,
    made: u64,
    versions: u64,
    turns: u64,
}

impl Model {
    /// Advances the model to the time that the clock shows now.
    pub(super) fn see(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let mut expiring = Vec::new();
        for (name, collection) in &self.collections {
            for item in collection.items.iter().filter(|item| !self.expired_versions.contains(&item.version))
            {
                let deadline = collection.deadline_ms(item).filter(|deadline| *deadline <= now_ms);
                expiring.extend(deadline.map(|deadline| (deadline, *name, item.clone())));
            }
        }
        expiring.sort_by_key(|(deadline, ..)| *deadline);
        let mut last = None;
        for (deadline, name, item) in expiring {
            self.turns += u64::from(last != Some(deadline));
            last = Some(deadline);
            self.expire(name, deadline, item);
        }
    }

    /// Expires the documents that are overdue by the changed rules; returns their number.
    fn expire_overdue(&mut self, name: &'static str) -> u64 {
        let collection = &self.collections[name];
        let overdue =
            |item: &&Item| collection.deadline_ms(item).is_some_and(|deadline| deadline <= self.now_ms);
        let living = collection.items.iter().filter(|item| !self.expired_versions.contains(&item.version));
        let expiring: Vec<Item> = living.filter(overdue).cloned().collect();
        let count = expiring.len() as u64;
        self.turns += 1;
        for item in expiring {
            self.expire(name, self.now_ms, item);
        }
        count
    }

    fn expire(&mut self, name: &'static str, time_ms: u64, item: Item) {
        let collection = &self.collections[name];
        let overdue = collection.deadlines_ms(&item).into_iter().filter(|(deadline, _)| *deadline <= time_ms);
        let causes = overdue.map(|(_, cause)| cause).collect();
        let (collection, turn) = (collection.number, self.turns);
        let doc = item.doc.clone();
        self.expiries.push(Expiry { collection, doc, ts: item.ts, time_ms, causes, turn });
        self.expired_versions.insert(item.version);
        self.tell(name, time_ms, ChangeKind::Expired(item.doc));
    }

    /// Changes the rules, unless more would expire at once than the owner allows.
    fn change_rules(
        &mut self,
        name: &'static str,
        consent: Consent,
        change: impl FnOnce(&mut Collection),
    ) -> Answer {
        let before = self.clone();
        let living = self.living(name).len() as u64;
        change(self.collection(name));
        let expiring = self.expire_overdue(name);
        let guard = self.collections[name].guard.filter(|_| consent == Consent::NotGiven);
        if guard.is_some_and(|share| expiring * MILLION > u64::from(share) * living) {
            *self = before;
            return Answer::NotConfirmed;
        }
        Answer::Written
    }

    /// Returns all expiries in a collection of a name, as it is now.
    pub(super) fn expiries_in(&self, name: &str) -> Vec<&Expiry> {
        let Some(collection) = self.collections.get(name) else { return Vec::new() };
        self.expiries.iter().filter(|expiry| expiry.collection == collection.number).collect()
    }

    /// Returns the expiries whose evidence must exist once their bytes are gone.
    pub(super) fn owed(&self, name: &str, evidence: Evidence) -> Vec<&Expiry> {
        let since = self.collections.get(name).and_then(|it| it.evidence.get(&evidence).copied());
        let Some(since) = since else { return Vec::new() };
        self.expiries_in(name).into_iter().filter(|expiry| expiry.turn > since).collect()
    }

    /// Forgets the index of a rule: evidence written from now on has no name for a rule whose index was dropped.
    fn forget_index(&mut self, name: &str, field: usize) {
        let number = self.collections[name].number;
        for expiry in self.expiries.iter_mut().filter(|expiry| expiry.collection == number) {
            let named = |cause: &Cause| match cause {
                Cause::Date { field: Some(of), seconds } if *of == field => {
                    Some(Cause::Date { field: None, seconds: *seconds })
                }
                _ => None,
            };
            let nameless: Vec<Cause> = expiry.causes.iter().filter_map(named).collect();
            expiry.causes.extend(nameless);
        }
    }

    fn tell(&mut self, name: &'static str, time_ms: u64, what: ChangeKind) {
        self.events.push(Event { turn: self.turns, time_ms, name, what });
    }

    fn happen(&mut self, name: &'static str, what: ChangeKind) {
        self.turns += 1;
        self.tell(name, self.now_ms, what);
    }

    /// Returns the live items, in the order of their creation.
    pub(super) fn living(&self, name: &str) -> Vec<&Item> {
        let Some(collection) = self.collections.get(name) else { return Vec::new() };
        collection.items.iter().filter(|item| !self.expired_versions.contains(&item.version)).collect()
    }

    /// Returns the visible state of all collections.
    pub(super) fn expected(&self) -> BTreeMap<&'static str, Seen> {
        let seen = |(name, collection): (&&'static str, &Collection)| {
            let living = self.living(name);
            let mut held: Vec<i32> = living.iter().filter(|item| item.held).map(|item| item.doc.id).collect();
            held.sort_unstable();
            let seen = Seen {
                default: collection.default,
                rules: collection.rules,
                hold: collection.hold,
                guard: collection.guard,
                evidence: collection.evidence.keys().copied().collect(),
                held,
                living: living.len() as u64,
                documents: living.into_iter().map(|item| item.doc.clone()).collect(),
            };
            (*name, seen)
        };
        self.collections.iter().map(seen).collect()
    }

    /// Adds a rule: it expires no document until its index is built. The number of documents that it will expire then
    /// is unknown.
    pub(super) fn add_rule(
        &mut self,
        name: &'static str,
        field: usize,
        rule: Rule,
        consent: Consent,
    ) -> Answer {
        let is_guarded = self.collections[name].guard.is_some() && consent == Consent::NotGiven;
        if is_guarded && !self.living(name).is_empty() {
            return Answer::NotConfirmed;
        }
        self.collection(name).rules[field] = Some(Rule { in_force: false, ..rule });
        Answer::Written
    }

    /// Puts a rule into force when its index is complete.
    pub(super) fn enforce(&mut self, name: &'static str, field: usize) {
        if let Some(rule) = &mut self.collection(name).rules[field] {
            rule.in_force = true;
        }
        self.expire_overdue(name);
    }

    fn collection(&mut self, name: &str) -> &mut Collection {
        self.collections.get_mut(name).expect("the caller looked it up")
    }

    /// Applies one request to the collection of a name.
    pub(super) fn apply(&mut self, name: &'static str, request: &Request) -> Answer {
        if *request == Request::Make {
            if self.collections.contains_key(name) {
                return Answer::Exists;
            }
            self.made += 1;
            let number = self.made;
            self.collections.insert(name, Collection { number, ..Collection::default() });
            self.happen(name, ChangeKind::Made);
            return Answer::Written;
        }
        if !self.collections.contains_key(name) {
            return Answer::NoCollection;
        }
        match request {
            Request::Insert(doc) => match self.find(name, doc.id) {
                Some(_) => Answer::Duplicate,
                None => self.insert(name, doc),
            },
            Request::Change { doc, parts, upsert } => match self.find(name, doc.id) {
                Some(at) => self.change(name, at, doc, *parts),
                None if *upsert => self.insert(name, doc),
                None => Answer::NotFound,
            },
            Request::Delete(id) => self.delete(name, *id),
            Request::SetDefault(default, consent) => {
                self.change_rules(name, *consent, |collection| collection.default = *default)
            }
            Request::ChangeRule(field, rule, consent) => {
                self.change_rules(name, *consent, |collection| collection.rules[*field] = Some(*rule))
            }
            Request::DropRule(field) => {
                self.collection(name).rules[*field] = None;
                self.forget_index(name, *field);
                Answer::Written
            }
            Request::HoldItem(id) => self.hold(name, *id, true),
            Request::LiftItem(_) if self.collections[name].hold => Answer::Held,
            Request::LiftItem(id) => self.hold(name, *id, false),
            Request::HoldCollection(hold, consent) => {
                self.change_rules(name, *consent, |collection| collection.hold = *hold)
            }
            Request::Guard(share) => {
                self.collection(name).guard = *share;
                Answer::Written
            }
            Request::Evidence(evidence, is_on) => self.set_evidence(name, *evidence, *is_on),
            Request::Drop | Request::Rename(_) if self.is_held(name) => self.refuse(request),
            Request::Drop => {
                self.collections.remove(name);
                self.happen(name, ChangeKind::Dropped);
                Answer::Written
            }
            Request::Rename(to) if self.collections.contains_key(to) => Answer::Exists,
            Request::Rename(to) => {
                let collection = self.collections.remove(name).expect("looked up above");
                self.collections.insert(to, collection);
                self.happen(name, ChangeKind::Renamed(to));
                Answer::Written
            }
            Request::Make => Answer::Exists,
        }
    }

    fn set_evidence(&mut self, name: &str, evidence: Evidence, is_on: bool) -> Answer {
        self.turns += 1;
        let turn = self.turns;
        let kept = &mut self.collection(name).evidence;
        if is_on {
            kept.entry(evidence).or_insert(turn);
        } else {
            kept.remove(&evidence);
        }
        Answer::Written
    }

    fn refuse(&self, request: &Request) -> Answer {
        match request {
            Request::Rename(to) if self.collections.contains_key(to) => Answer::Exists,
            _ => Answer::Held,
        }
    }

    fn is_held(&self, name: &str) -> bool {
        self.collections[name].hold || self.living(name).iter().any(|item| item.held)
    }

    fn find(&self, name: &str, id: i32) -> Option<usize> {
        let living = |item: &Item| item.doc.id == id && !self.expired_versions.contains(&item.version);
        self.collections[name].items.iter().position(living)
    }

    fn version(&mut self, doc: &Doc) -> Item {
        self.versions += 1;
        Item { version: self.versions, doc: doc.clone(), ts: self.now_ms / 1000, held: false }
    }

    /// Inserts a document; one that has already expired is never visible.
    fn insert(&mut self, name: &'static str, doc: &Doc) -> Answer {
        let item = self.version(doc);
        let items = &mut self.collection(name).items;
        items.retain(|other| other.doc.id != doc.id);
        items.push(item);
        self.happen(name, ChangeKind::Inserted(doc.clone()));
        self.expire_overdue(name);
        Answer::Written
    }

    fn change(&mut self, name: &'static str, at: usize, doc: &Doc, parts: bool) -> Answer {
        let before = self.collections[name].items[at].clone();
        if before.doc == *doc {
            return Answer::Same;
        }
        if self.collections[name].hold || before.held {
            return Answer::Held;
        }
        let item = self.version(doc);
        self.collection(name).items[at] = item;
        self.happen(name, ChangeKind::Changed { before: before.doc, after: doc.clone(), parts });
        self.expire_overdue(name);
        Answer::Written
    }

    fn delete(&mut self, name: &'static str, id: i32) -> Answer {
        let Some(at) = self.find(name, id) else { return Answer::NotFound };
        if self.collections[name].hold || self.collections[name].items[at].held {
            return Answer::Held;
        }
        let gone = self.collection(name).items.remove(at);
        self.happen(name, ChangeKind::Deleted(gone.doc));
        Answer::Written
    }

    fn hold(&mut self, name: &'static str, id: i32, hold: bool) -> Answer {
        let Some(at) = self.find(name, id) else { return Answer::NotFound };
        let item = &mut self.collection(name).items[at];
        if !hold && !item.held {
            return Answer::NotFound;
        }
        item.held = hold;
        self.expire_overdue(name);
        Answer::Written
    }
}
