//! One engine with collections in one database, its disk and its clock.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{RawDocument, Value, ValueRef};
use engine::collection::{Decision, IndexState, Target};
use engine::{
    ArchiveDirectory, Charge, Collection, CollectionDefinition, Engine, Error, EventKind, ItemAddress,
    Lifecycle, Manner, MemoryArchive, Options, Owner, Position, PurgeReport, Watch, WatchEvent, Watched,
};
use storage::{ClockOptions, CrashMode, Direction, ManualClock, MemoryDisk, MemoryStore};

use super::bson_form;
use super::types::{Answer, ChangeKind, Default, Event, FIELDS, Request, Rule, Seen};
use crate::deletion_records;
use crate::digest::Digest;
use crate::model::{Consent, Evidence};
use crate::world::translate::engine_consent;

/// The names of collections that are created and dropped.
pub(super) const NAMES: [&str; 2] = ["one", "two"];
const DATABASE: &str = "db";
const REASON: &str = "a case";
/// The directory of all archives: collections change their names, and it does not.
const ARCHIVE: &str = "cold";

/// An engine over a memory store.
pub(super) struct Machine {
    disk: MemoryDisk,
    archive: Arc<MemoryArchive>,
    clock: Arc<ManualClock>,
    process: Option<(Arc<MemoryStore>, Engine)>,
    /// All charges so far.
    charges: Cell<Digest>,
}

impl Machine {
    pub(super) fn new(clock: Arc<ManualClock>) -> Result<Machine, String> {
        let mut machine = Machine {
            disk: MemoryDisk::new(),
            archive: Arc::default(),
            clock,
            process: None,
            charges: Cell::default(),
        };
        machine.restart()?;
        Ok(machine)
    }

    /// Crashes the process and starts another.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        self.process = None;
        self.disk.clear_faults();
        let store = MemoryStore::open(self.disk.clone(), ClockOptions::new(self.clock.clone()));
        let store = Arc::new(store.map_err(|error| error.to_string())?);
        let options = Options { archive: Some(self.archive.clone()), ..Options::default() };
        let engine = Engine::open_with(store.clone(), options).map_err(text)?;
        self.process = Some((store, engine));
        Ok(())
    }

    /// Plans a crash at the next commit, which is on disk afterwards if `kept`.
    pub(super) fn plan_crash(&self, kept: bool) {
        let mode = if kept { CrashMode::AfterCommit } else { CrashMode::BeforeCommit };
        self.disk.crash_after(0, mode);
    }

    /// Returns `true` if the planned crash has happened; it will not any more.
    pub(super) fn has_crashed(&self) -> bool {
        let crashed = !self.disk.fault_is_planned();
        self.disk.clear_faults();
        crashed
    }

    pub(super) fn now_ms(&self) -> Result<u64, String> {
        Ok(self.engine().now().map_err(text)?.millis())
    }

    /// Returns the digest of what is stored, and of all charges so far.
    pub(super) fn digest(&self) -> Result<Digest, String> {
        let mut digest = Digest::of_store(&*self.process().0)?;
        digest.add(self.charges.get().line().as_bytes());
        Ok(digest)
    }

    fn charged(&self, charge: Charge) {
        let mut charges = self.charges.get();
        charges.add(&charge.0.to_le_bytes());
        self.charges.set(charges);
    }

    pub(super) fn sequence(&self) -> u64 {
        self.engine().last_sequence()
    }

    pub(super) fn purge(&self, limit: usize) -> Result<PurgeReport, String> {
        self.engine().purge_step(limit).map_err(text)
    }

    /// Returns how many expired documents of each collection are not purged.
    pub(super) fn backlog(&self) -> Result<BTreeMap<&'static str, u64>, String> {
        let mut backlog = BTreeMap::new();
        for name in NAMES {
            if let Some(collection) = self.collection(name) {
                let figures = self.engine().purge_figures(&Owner::Collection(collection)).map_err(text)?;
                backlog.insert(name, figures.backlog.items);
            }
        }
        Ok(backlog)
    }

    /// Makes the archive full, or writable again.
    pub(super) fn fill_archive(&self, full: bool) -> Result<(), String> {
        self.archive.set_full(ARCHIVE, full);
        if full { Ok(()) } else { self.engine().retry_archives(None).map_err(text) }
    }

    /// Returns the lines of the archive.
    pub(super) fn archived(&self) -> Vec<String> {
        self.archive.lines(ARCHIVE)
    }

    /// Returns the entries about purged documents in a collection's deletion record.
    pub(super) fn recorded(&self, name: &str) -> Result<Vec<String>, String> {
        let Some(collection) = self.collection(name) else { return Ok(Vec::new()) };
        deletion_records::purged_lines(self.engine(), &Owner::Collection(collection))
    }

    /// Verifies every deletion record, those of dropped collections included.
    pub(super) fn verify_records(&self) -> Result<(), String> {
        deletion_records::verify(self.engine())
    }

    /// Checks that every entry of the store follows from the documents.
    pub(super) fn check(&self) -> Result<(), String> {
        let report = self.engine().check().map_err(text)?;
        report.told.first().map_or(Ok(()), |finding| Err(format!("T22: {finding}")))
    }

    /// Sends one request to the collection of a name.
    pub(super) fn request(&self, name: &'static str, request: &Request) -> Answer {
        if *request == Request::Make {
            let made = self.engine().create_collection(DATABASE, name, CollectionDefinition::default(), None);
            return answer(made.map(drop));
        }
        let Some(collection) = self.collection(name) else { return Answer::NoCollection };
        match request {
            Request::Insert(doc) => self.insert(&collection, bson_form::raw(doc)),
            Request::Change { doc, parts, upsert } => {
                self.change(&collection, bson_form::raw(doc), *parts, *upsert)
            }
            Request::Delete(id) => {
                let delete = |found: Option<&engine::collection::LivingDocument>| match found {
                    Some(_) => Decision::Delete,
                    None => Decision::Keep,
                };
                self.modify(&collection, *id, delete)
            }
            Request::SetDefault(default, consent) => {
                answer(self.set_default(&collection, *default, *consent))
            }
            Request::ChangeRule(field, rule, consent) => {
                answer(self.change_rule(&collection, *field, *rule, *consent))
            }
            Request::DropRule(field) => {
                let number = number_of(&collection, &bson_form::index_name(*field));
                answer(number.and_then(|number| self.engine().drop_indexes(&collection, &[number])))
            }
            Request::HoldItem(id) | Request::LiftItem(id) => {
                let (item, item_owner) =
                    (ItemAddress::DocumentId(Value::Int32(*id)), Owner::Collection(collection));
                let engine = self.engine();
                answer(match request {
                    Request::HoldItem(_) => engine.hold_item(&item_owner, &item, REASON),
                    _ => engine.lift_item(&item_owner, &item),
                })
            }
            Request::HoldCollection(hold, consent) => self.change_setting(collection, *consent, |settings| {
                settings.hold = hold.then(|| REASON.to_owned());
            }),
            Request::Guard(share) => self.change_setting(collection, Consent::NotGiven, |settings| {
                settings.max_instant_expiry = *share;
            }),
            Request::Evidence(Evidence::Archive, is_on) => {
                let directory = is_on.then(|| ArchiveDirectory::parse(ARCHIVE).expect("a plain name"));
                self.change_setting(collection, Consent::NotGiven, |settings| settings.archive = directory)
            }
            Request::Evidence(Evidence::Record, is_on) => {
                self.change_setting(collection, Consent::NotGiven, |settings| {
                    settings.deletion_record = *is_on;
                })
            }
            Request::Drop => answer(self.engine().drop_collection(&collection)),
            Request::Rename(to) => {
                answer(self.engine().rename_collection(&collection, DATABASE, to, false).map(drop))
            }
            Request::Make => Answer::Exists,
        }
    }

    fn change_setting(
        &self,
        collection: Arc<Collection>,
        consent: Consent,
        change: impl FnOnce(&mut Lifecycle),
    ) -> Answer {
        let item_owner = Owner::Collection(collection);
        answer(self.engine().change_lifecycle_with(&item_owner, engine_consent(consent), change).map(drop))
    }

    fn insert(&self, collection: &Arc<Collection>, document: RawDocument) -> Answer {
        match self.engine().insert(collection, vec![document], true, None).wait() {
            Ok(mut inserted) => {
                let inserted = inserted.pop().expect("an outcome for each document");
                if let Ok(inserted) = &inserted {
                    self.charged(inserted.charge);
                }
                answer(inserted.map(drop))
            }
            Err(error) => answer(Err(error)),
        }
    }

    fn change(
        &self,
        collection: &Arc<Collection>,
        document: RawDocument,
        parts: bool,
        upsert: bool,
    ) -> Answer {
        let id = bson_form::id(&document);
        self.modify(collection, id, move |found| match found {
            Some(_) if parts => Decision::Update(document),
            Some(_) => Decision::Replace(document),
            None if upsert => Decision::Insert(document),
            None => Decision::Keep,
        })
    }

    fn modify(
        &self,
        collection: &Arc<Collection>,
        id: i32,
        decide: impl FnOnce(Option<&engine::collection::LivingDocument>) -> Decision + Send + 'static,
    ) -> Answer {
        let decide = move |found: Option<&engine::collection::LivingDocument>, _| Ok(decide(found).into());
        let modified = self.engine().modify(collection, Target::Id(Value::Int32(id)), decide, None).wait();
        if let Ok(modified) = &modified {
            self.charged(modified.charge);
        }
        match modified {
            Ok(modified) if modified.is_write() => Answer::Written,
            Ok(modified) if modified.before.is_some() => Answer::Same,
            Ok(_) => Answer::NotFound,
            Err(error) => answer(Err(error)),
        }
    }

    fn set_default(
        &self,
        collection: &Arc<Collection>,
        default: Default,
        consent: Consent,
    ) -> engine::Result<()> {
        let (engine, consent) = (self.engine(), engine_consent(consent));
        let existing = number_of(collection, bson_form::DEFAULT_INDEX).ok();
        let seconds = match default {
            Default::Off => {
                return existing.map_or(Ok(()), |number| engine.drop_indexes(collection, &[number]));
            }
            Default::Never => -1,
            Default::After(seconds) => seconds,
        };
        let spec = bson_form::default_index(seconds);
        match existing {
            None => engine.create_indexes_with(collection, vec![spec], consent).map(drop),
            Some(number) => engine.change_index_with(collection, number, spec, consent).map(drop),
        }
    }

    fn change_rule(
        &self,
        collection: &Arc<Collection>,
        field: usize,
        rule: Rule,
        consent: Consent,
    ) -> engine::Result<()> {
        let number = number_of(collection, &bson_form::index_name(field))?;
        let (spec, consent) = (bson_form::rule_index(field, rule), engine_consent(consent));
        self.engine().change_index_with(collection, number, spec, consent).map(drop)
    }

    /// Creates the index of a rule.
    pub(super) fn add_rule(&self, name: &str, field: usize, rule: Rule, consent: Consent) -> Answer {
        let Some(collection) = self.collection(name) else { return Answer::NoCollection };
        let (specs, consent) = (vec![bson_form::rule_index(field, rule)], engine_consent(consent));
        answer(self.engine().create_indexes_with(&collection, specs, consent).map(drop))
    }

    /// Does a piece of the build of a rule's index; returns whether it is complete.
    pub(super) fn build(&self, name: &str, field: usize, limit: usize) -> Result<bool, String> {
        let collection = self.collection(name).ok_or("no collection")?;
        let number = number_of(&collection, &bson_form::index_name(field)).map_err(text)?;
        Ok(self.engine().build_indexes_step(&collection, &[number], limit).map_err(text)?.done)
    }

    /// Returns the visible state of all collections.
    pub(super) fn observe(&self) -> Result<BTreeMap<&'static str, Seen>, String> {
        let mut all = BTreeMap::new();
        for name in NAMES {
            if let Some(collection) = self.collection(name) {
                all.insert(name, self.observe_collection(&collection)?);
            }
        }
        Ok(all)
    }

    fn observe_collection(&self, collection: &Arc<Collection>) -> Result<Seen, String> {
        let reading = self.engine().reading(&[collection]).map_err(text)?;
        let found =
            reading.natural(collection, None, Direction::Forward, usize::MAX, usize::MAX).map_err(text)?;
        let documents: Vec<_> =
            found.iter().map(|found| bson_form::doc(&found.document)).collect::<Result<_, _>>()?;
        for doc in &documents {
            let by_id = reading.by_id(collection, ValueRef::Int32(doc.id)).map_err(text)?;
            let by_id = by_id.map(|found| bson_form::doc(&found.document)).transpose()?;
            if by_id.as_ref() != Some(doc) {
                return Err(format!("listed is {doc:?}, by its id is {by_id:?}"));
            }
        }
        let owner = Owner::Collection(Arc::clone(collection));
        let mut held = Vec::new();
        for item in self.engine().held_items(&owner, None).map_err(text)? {
            let ItemAddress::DocumentId(Value::Int32(id)) = item.address else {
                return Err(format!("held is {item:?}"));
            };
            held.push(id);
        }
        held.sort_unstable();
        let mut rules = [None; FIELDS];
        for index in collection.indexes().iter() {
            let field = bson_form::field_of(index.spec.name());
            if let Some((field, seconds)) = field.zip(index.spec.expire_after_seconds()) {
                let in_force = index.state == IndexState::Ready;
                let (partial, hidden) = (index.spec.partial_filter().is_some(), index.spec.is_hidden());
                rules[field] = Some(Rule { seconds: seconds.into(), partial, hidden, in_force });
            }
        }
        let default = match owner.default_ttl() {
            engine::DefaultTtl::Off => Default::Off,
            engine::DefaultTtl::Never => Default::Never,
            engine::DefaultTtl::Seconds(seconds) => Default::After(seconds.into()),
        };
        let living = reading.usage(collection).map_err(text)?.living.items;
        let settings = owner.lifecycle();
        let archive = settings.archive.map(|_| Evidence::Archive);
        let record = settings.deletion_record.then_some(Evidence::Record);
        Ok(Seen {
            default,
            rules,
            hold: settings.hold.is_some(),
            guard: settings.max_instant_expiry,
            evidence: archive.into_iter().chain(record).collect(),
            held,
            documents,
            living,
        })
    }

    /// Begins to watch the database.
    pub(super) fn watch(&self) -> Result<Position, String> {
        self.engine().watch(&watched()).map_err(text)
    }

    /// Returns the events after a position, and the position to continue from.
    pub(super) fn watched(
        &self,
        after: Position,
        max_items: usize,
    ) -> Result<(Vec<Event>, Position), String> {
        let barrier = self.engine().barrier().map_err(text)?;
        let page = self.engine().watch_page(&watched(), &barrier, after, max_items).map_err(text)?;
        Ok((page.events.iter().map(event).collect::<Result<_, _>>()?, page.next))
    }

    fn collection(&self, name: &str) -> Option<Arc<Collection>> {
        self.engine().collection(DATABASE, name)
    }

    fn engine(&self) -> &Engine {
        &self.process().1
    }

    fn process(&self) -> &(Arc<MemoryStore>, Engine) {
        self.process.as_ref().expect("a process runs")
    }
}

fn watched() -> Watch {
    Watch::Database(DATABASE.to_owned())
}

fn event(event: &WatchEvent) -> Result<Event, String> {
    let known = |name: &str| NAMES.into_iter().find(|known| *known == name).ok_or(format!("a name {name}"));
    let what = match &event.what {
        Watched::Created => ChangeKind::Made,
        Watched::Dropped => ChangeKind::Dropped,
        Watched::Renamed { name, .. } => ChangeKind::Renamed(known(name)?),
        Watched::DatabaseDropped => return Err("a database that was not dropped".to_owned()),
        Watched::Item(_, item) => {
            let image = |found: &Option<engine::collection::LivingDocument>| {
                bson_form::doc(&found.as_ref().ok_or("an image is missing")?.document)
            };
            match item.kind {
                EventKind::Create => ChangeKind::Inserted(image(&item.current)?),
                EventKind::Replace => ChangeKind::Changed {
                    before: image(&item.previous)?,
                    after: image(&item.current)?,
                    parts: item.manner == Manner::Parts,
                },
                EventKind::Delete => ChangeKind::Deleted(image(&item.previous)?),
                EventKind::Expire => ChangeKind::Expired(image(&item.previous)?),
            }
        }
    };
    Ok(Event { turn: 0, time_ms: event.position.time().millis(), name: known(&event.name)?, what })
}

fn number_of(collection: &Collection, index: &str) -> engine::Result<u32> {
    let found = collection.indexes().named(index).map(|index| index.number);
    found.ok_or_else(|| Error::NotFound { what: format!("index '{index}'") })
}

fn answer(done: engine::Result<()>) -> Answer {
    match done {
        Ok(()) => Answer::Written,
        Err(Error::NotFound { .. }) => Answer::NotFound,
        Err(Error::DuplicateKey { .. }) => Answer::Duplicate,
        Err(Error::Held { .. }) => Answer::Held,
        Err(Error::NotConfirmed { .. }) => Answer::NotConfirmed,
        Err(Error::Exists { .. }) => Answer::Exists,
        Err(other) => Answer::Other(other.to_string()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is for map_err")]
fn text(error: Error) -> String {
    error.to_string()
}
