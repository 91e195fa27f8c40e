//! Reads the feed of all versions.
//!
//! A transaction gets its time before it is committed. A reader that has returned the events of a time must not find
//! an earlier event later. So it runs an empty transaction first, the *barrier*: every transaction that is not committed
//! by then has the barrier's time or a later one, and, within the millisecond, a later sequence. The reader returns the
//! events before the barrier.
//!
//! Instants are by trusted time (T34): an item that only a suspect clock calls expired is not reported as expired.

use std::sync::Arc;

use bson::RawDocument;
use document::{Document, ItemNumber};
use storage::{Direction, Keyspace, Lanes, Time, transact};

use super::codec::{self, ChangeKind, RecordedChange};
use super::merge::{Entry, Merge};
use super::record::no_state;
use super::retention::stream_from;
use super::state::State;
use crate::Engine;
use crate::access::document::LivingDocument;
use crate::access::gate::View;
use crate::access::read::in_scope;
use crate::catalog::collection::Collection;
use crate::catalog::container::{Container, Partition};
use crate::entries::counters;
use crate::entries::renewals;
use crate::expiry::QueuePosition;
use crate::expiry::header::{Body, Record, decode_header};
use crate::expiry::item::Item;
use crate::keys::Position;
use crate::keys::{self, Key};
use crate::types::error::{Error, Result};
use crate::types::events;
use crate::types::limits::{PAGE_BYTES_MAX, PAGE_ENTRIES_MAX};
use crate::types::request::Scope;

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It was created.
    Create,
    /// Another version took its place.
    Replace,
    /// A client deleted it.
    Delete,
    /// It expired.
    Expire,
}

/// How a version replaced another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Manner {
    /// As a whole.
    #[default]
    Whole,
    /// The client changed parts of it.
    Parts,
}

/// One event of the feed; `I` is an item in the form of its API.
#[derive(Debug, Clone)]
pub struct Event<I> {
    /// What happened.
    pub kind: EventKind,
    /// How the version replaced another, if it did.
    pub manner: Manner,
    /// The position of the event. A reader that keeps it resumes behind it.
    pub position: Position,
    /// The LSN of its commit; in a collection the number of the commit. An expiry has none of its own and shows that
    /// of the change before it.
    pub lsn: u64,
    /// The LSN of the commit that made the previous version.
    pub previous_lsn: Option<u64>,
    /// The item that it happened to.
    pub number: ItemNumber,
    /// The version that it made.
    pub current: Option<I>,
    /// The version that it ended.
    pub previous: Option<I>,
}

/// A page of events of one partition, and where the next one begins.
#[derive(Debug, Clone)]
pub struct HistoryPage<I> {
    /// In the order of their positions; events of one commit are never split over two pages.
    pub events: Vec<Event<I>>,
    /// Everything up to here has been visited.
    pub next: Position,
    /// Whether the page ended before the barrier.
    pub more: bool,
    /// The bytes of all images.
    pub bytes: u64,
    /// The LSN of the partition in the snapshot; in a collection the last commit whose events the page may have.
    pub lsn: u64,
}

/// Where a reader of the feed of all versions begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryStart {
    /// With the oldest event that is kept.
    Oldest,
    /// With the next event after the barrier.
    Now,
    /// With the first event at or after this time.
    At(Time),
    /// Behind a position.
    After(Position),
}

/// An instant up to which everything that happened can be read; see the module's head.
#[derive(Debug, Clone, Copy)]
pub struct Barrier {
    trusted: Time,
    sequence: u64,
}

impl Barrier {
    /// Returns the last position before it.
    pub fn position(&self) -> Position {
        Position::behind(self.trusted, events::last_of_commit(self.sequence))
    }
}

impl Engine {
    /// Waits until everything that began before this call and could still get an earlier position is committed.
    pub fn barrier(&self) -> Result<Barrier> {
        transact(&*self.store, Lanes::all(), |tx| {
            Ok(Barrier { trusted: tx.trusted_time(), sequence: tx.last_sequence() })
        })
        .wait()
    }

    /// Reads events of one physical partition of a container, up to the barrier.
    pub fn container_history(
        &self,
        container: &Container,
        partition: &Partition,
        scope: &Scope,
        barrier: &Barrier,
        start: HistoryStart,
        max_items: usize,
    ) -> Result<HistoryPage<Item>> {
        let is_wanted = |record: &Record<Document>| in_scope(scope, container, record);
        let image = |record: Record<Document>| Item::new(container.rid, record);
        read(&*self.store, partition, barrier, start, PageBudget::of(max_items), &is_wanted, &image)
    }

    /// Reads events of a collection, up to the barrier.
    pub fn collection_history(
        &self,
        collection: &Arc<Collection>,
        barrier: &Barrier,
        start: HistoryStart,
        max_items: usize,
    ) -> Result<HistoryPage<LivingDocument>> {
        let is_wanted = |_: &Record<RawDocument>| true;
        let (partition, room) = (&collection.partition, PageBudget::of(max_items));
        read(&*self.store, partition, barrier, start, room, &is_wanted, &LivingDocument::from)
    }
}

/// The limits of a page. It ends with the commit in which they are used up.
#[derive(Clone, Copy)]
struct PageBudget {
    events: usize,
    /// Entries that may still be read.
    entries: usize,
}

impl PageBudget {
    fn of(max_items: usize) -> PageBudget {
        PageBudget { events: max_items.max(1), entries: PAGE_ENTRIES_MAX }
    }
}

fn read<B: Body, I>(
    store: &dyn storage::Store,
    partition: &Partition,
    barrier: &Barrier,
    start: HistoryStart,
    room: PageBudget,
    is_wanted: &dyn Fn(&Record<B>) -> bool,
    image: &dyn Fn(Record<B>) -> I,
) -> Result<HistoryPage<I>> {
    let view = View::open(store, partition)?;
    if view.gate.policy.lifecycle.history_minutes.is_none() {
        return Err(Error::invalid(
            "The container keeps no change feed of all versions and deletes: it has no 'retentionDuration' in its \
             'changeFeedPolicy'.",
        ));
    }
    let state = State::load(&*view.snapshot, partition.id)?.ok_or_else(no_state)?;
    let until = barrier.position();
    let kept_from = state.kept_from(&view.gate.policy, barrier.trusted);
    let after = match start {
        HistoryStart::Oldest => kept_from,
        HistoryStart::Now => until,
        HistoryStart::At(time) => Position::before(keys::millis(time)),
        HistoryStart::After(position) => position,
    };
    if after < kept_from {
        return Err(Error::HistoryGone);
    }
    let (mut commit, mut lsn) = last_change(&view, &state, after)?;
    let mut merge = Merge::new(&view, after, until)?;
    let mut page = HistoryPage {
        events: Vec::new(),
        next: until.max(after),
        more: false,
        bytes: 0,
        lsn: counters::lsn(&*view.snapshot, partition.id)?.unwrap_or(barrier.sequence),
    };
    // The end of a full page must not reveal which entries were skipped: the purge may have removed them.
    let (mut last_event, mut last, mut looked_at, mut shown_commit) = (after, after, 0, 0);
    while let Some((position, entry)) = merge.next()? {
        if looked_at >= room.entries && !is_of_commit(position, commit) {
            (page.next, page.more) = (last, true);
            break;
        }
        (last, looked_at) = (position, looked_at + 1);
        if let Some(told) = RawEvent::<B>::new(&view, position, entry)? {
            if told.kind != EventKind::Expire {
                commit = events::commit_of(position.order);
                lsn = commit.saturating_sub(told.behind);
            }
            if told.images().any(is_wanted) {
                let same_commit = !page.events.is_empty() && is_of_commit(position, shown_commit);
                let full = page.events.len() >= room.events || page.bytes >= PAGE_BYTES_MAX;
                if full && !same_commit {
                    (page.next, page.more) = (last_event, true);
                    break;
                }
                page.bytes += told.images().map(Record::size).sum::<u64>();
                page.events.push(told.into_event(position, lsn, image));
                shown_commit = commit;
            }
            last_event = position;
        }
    }
    Ok(page)
}

/// Returns whether an event was made by a commit. Regular expiries are not.
fn is_of_commit(position: Position, commit: u64) -> bool {
    position.order.0 > 0 && events::commit_of(position.order) == commit
}

/// Returns the last change up to a position: the number of its commit, 0 if it is not recorded any more, and its LSN.
fn last_change(view: &View, state: &State, position: Position) -> Result<(u64, u64)> {
    let partition = view.gate.partition;
    let range = stream_from(keys::history_changes(partition), &state.trimmed_changes);
    let end = std::ops::Bound::Included(Key::HistoryChange(partition, position).encode().1);
    let range = storage::KeyRange { end, ..range };
    if range.is_empty() {
        return Ok((0, state.lsn));
    }
    match view.snapshot.scan(Keyspace::History, range, Direction::Backward).next() {
        Some(entry) => {
            let (key, value) = entry?;
            let commit = events::commit_of(keys::history_position(&key)?.order);
            Ok((commit, codec::lsn_of_change(&key, &value)?.max(state.lsn)))
        }
        None => Ok((0, state.lsn)),
    }
}

/// An event before its item is converted to the form of its API.
struct RawEvent<B> {
    kind: EventKind,
    manner: Manner,
    number: ItemNumber,
    /// The number of its commit less its LSN.
    behind: u64,
    current: Option<Record<B>>,
    previous: Option<Record<B>>,
}

impl<B: Body> RawEvent<B> {
    /// Returns the event of an entry, or `None` if the item of the entry has expired by another queue.
    fn new(view: &View, position: Position, entry: Entry) -> Result<Option<RawEvent<B>>> {
        let expired = |previous: Record<B>| RawEvent {
            kind: EventKind::Expire,
            manner: Manner::Whole,
            number: position.number,
            behind: 0,
            current: None,
            previous: Some(previous),
        };
        match entry {
            Entry::Change(value) => {
                let RecordedChange { kind, number, behind, current, previous } = codec::decode(&value)?;
                let (kind, manner) = match kind {
                    ChangeKind::Create => (EventKind::Create, Manner::Whole),
                    ChangeKind::Replace => (EventKind::Replace, Manner::Whole),
                    ChangeKind::Update => (EventKind::Replace, Manner::Parts),
                    ChangeKind::Delete => (EventKind::Delete, Manner::Whole),
                };
                Ok(Some(RawEvent { kind, manner, number, behind, current, previous }))
            }
            Entry::Expiry(image) => {
                Record::decode(position.number, &image).map(|expired_items| Some(expired(expired_items)))
            }
            Entry::Expired(place) => {
                match expired_items(view, position.number, place) {
                    // Its event has neither an id nor an image and belongs to no logical partition, and the item
                    // stays until it is repaired. Readers continue without it: the purge reports it when it sets the
                    // item aside.
                    Err(Error::Corrupt(_)) => Ok(None),
                    found => Ok(found?.map(expired)),
                }
            }
        }
    }

    fn images(&self) -> impl Iterator<Item = &Record<B>> {
        self.current.iter().chain(&self.previous)
    }

    fn into_event<I>(self, position: Position, lsn: u64, image: &dyn Fn(Record<B>) -> I) -> Event<I> {
        let previous_lsn = self.previous.as_ref().map(|record| record.header.lsn);
        Event {
            kind: self.kind,
            manner: self.manner,
            position,
            lsn,
            previous_lsn,
            number: self.number,
            current: self.current.map(image),
            previous: self.previous.map(image),
        }
    }
}

/// Returns the expired item of a queue entry, or `None` if it has expired by another queue.
fn expired_items<B: Body>(
    view: &View,
    number: ItemNumber,
    place: QueuePosition,
) -> Result<Option<Record<B>>> {
    let (keyspace, key) = Key::Item(view.gate.partition, number).encode();
    let Some(bytes) = view.snapshot.get(keyspace, &key)? else {
        return Err(Error::Corrupt(format!("a queue has item {}, which is not there", number.0)));
    };
    let (mut header, length) = decode_header(number, &bytes)?;
    renewals::look_up(&*view.snapshot, view.gate.partition, number, &mut header)?;
    if view.gate.policy.expiry_of(&header).is_none_or(|(_, end)| end != place) {
        return Ok(None);
    }
    let body = Record::decode_body(number, &bytes, length)?;
    Ok(Some(Record { number, header, body }))
}

#[cfg(test)]
mod tests {
    use document::{PartitionKey, parse_json};
    use storage::{ClockOptions, ManualClock, MemoryStore};

    use super::*;
    use crate::{ContainerDefinition, Operation};

    /// A page that has read as many entries as it may still ends with a whole commit.
    #[test]
    fn t28_no_commit_is_split_however_little_a_page_may_look_at() {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let engine = Engine::open(Arc::new(store)).expect("an engine");
        let database = engine.create_database("db", None).expect("a database");
        let text = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1,
            "changeFeedPolicy":{"retentionDuration":10}}"#;
        let definition = ContainerDefinition::from_value(&parse_json(text.as_bytes()).expect("JSON"));
        let container = engine.create_container(&database, definition.expect("valid"), None).expect("made");
        let key = PartitionKey::from_header(r#"["a"]"#).expect("a key");
        let create = |id: String| {
            let body = format!(r#"{{"id":"{id}","pk":"a","ttl":5}}"#);
            Operation::Create { body: Document::from_json(body.as_bytes()).expect("JSON") }
        };
        let begun = engine.barrier().expect("a barrier").position();
        for (batch, size) in [1, 3, 1, 7, 2].into_iter().enumerate() {
            let operations = (0..size).map(|n| create(format!("{batch}-{n}"))).collect();
            engine.batch(&container, &key, operations).wait().expect("created");
        }
        clock.advance(std::time::Duration::from_secs(5));
        let (barrier, partition) = (engine.barrier().expect("a barrier"), &container.partitions[0]);
        let page = |after, entries| {
            let (start, room) = (HistoryStart::After(after), PageBudget { events: 100, entries });
            let image = |record: Record<Document>| record.header.sequence;
            let page =
                read(&*engine.store, partition, &barrier, start, room, &|_: &Record<Document>| true, &image);
            page.expect("a page")
        };
        let all: Vec<Position> = page(begun, 100).events.iter().map(|event| event.position).collect();
        assert_eq!(all.len(), 28, "14 were created and have expired");
        for entries in 1..30 {
            let (mut told, mut after) = (Vec::new(), begun);
            loop {
                let page = page(after, entries);
                let is_change = |event: &&Event<_>| event.kind == EventKind::Create;
                for event in page.events.iter().filter(is_change) {
                    let commit = events::commit_of(event.position.order);
                    let is_same =
                        |other: &&Event<_>| is_of_commit(other.position, commit) && is_change(other);
                    let size = all.iter().filter(|it| is_of_commit(**it, commit)).count();
                    assert_eq!(page.events.iter().filter(is_same).count(), size, "{entries} entries");
                }
                assert!(page.events.len() < entries + 7, "{entries} entries");
                told.extend(page.events.iter().map(|event| event.position));
                after = page.next;
                if !page.more {
                    break;
                }
            }
            assert_eq!(told, all, "{entries} entries");
        }
    }
}
