//! Reads the events of a watch: those of the feeds of all its collections and of the log, in the order of positions.

use std::collections::BTreeMap;
use std::sync::Arc;

use storage::Time;

use super::log::{self, CatalogChange, LogEntry};
use super::{WATCH_MS, Watch, keeps_feed};
use crate::Engine;
use crate::access::document::LivingDocument;
use crate::catalog::collection::Collection;
use crate::feed::history::{Barrier, Event, HistoryStart};
use crate::keys::PartitionId;
use crate::keys::Position;
use crate::types::error::{Error, Result};
use crate::types::limits::PAGE_BYTES_MAX;

/// One event that a watch reports.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// The position of the event. A client that keeps it resumes behind it.
    pub position: Position,
    /// The database.
    pub database: String,
    /// The name that the collection had then; empty if the event is about the database.
    pub name: String,
    /// What happened.
    pub what: Watched,
}

impl WatchEvent {
    /// Returns approximately how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let images = match &self.what {
            Watched::Item(_, event) => {
                let images = event.current.iter().chain(&event.previous);
                images.map(|found| found.document.as_bytes().len()).sum()
            }
            Watched::Created | Watched::Dropped | Watched::Renamed { .. } | Watched::DatabaseDropped => 0,
        };
        size_of::<WatchEvent>() + self.database.len() + self.name.len() + images
    }
}

/// What happened to an item, a collection or a database.
#[derive(Debug, Clone)]
pub enum Watched {
    /// An item was changed, or expired.
    Item(Arc<Collection>, Event<LivingDocument>),
    /// A collection was created.
    Created,
    /// The collection was dropped.
    Dropped,
    /// The collection was renamed.
    Renamed {
        /// The database that it is in from then on.
        database: String,
        /// Its name from then on.
        name: String,
    },
    /// A database was dropped.
    DatabaseDropped,
}

/// A page of a watch's events.
#[derive(Debug, Clone)]
pub struct WatchPage {
    /// In the order of their positions.
    pub events: Vec<WatchEvent>,
    /// Everything up to here has been visited.
    pub next: Position,
    /// What happened to a collection or database exactly at the position from which the page begins.
    pub before: Option<WatchEvent>,
}

/// A collection whose feed is read.
struct Feed {
    collection: Arc<Collection>,
    /// The position behind which nothing of it is reported.
    until: Option<Position>,
}

impl Engine {
    /// Reads what a watch reports behind a position, up to the barrier. Fails with [`Error::HistoryGone`] if that is
    /// no longer kept.
    pub fn watch_page(
        &self,
        watch: &Watch,
        barrier: &Barrier,
        after: Position,
        max_items: usize,
    ) -> Result<WatchPage> {
        let (log, feeds) = self.watched_now(watch, barrier, after)?;
        let mut page = Gathered { events: Vec::new(), bytes: 0, next: barrier.position().max(after) };
        for feed in &feeds {
            self.gather(&mut page, feed, &log, watch, barrier, after, max_items)?;
        }
        let Gathered { mut events, next, .. } = page;
        let told = log.iter().filter(|entry| entry.position > after && entry.position <= next);
        events.extend(told.map(|entry| (0, WatchEvent::of(entry))));
        events.sort_by_key(|(_, event)| event.position);
        let before = log.iter().find(|entry| entry.position == after).map(WatchEvent::of);
        Ok(WatchPage { events: events.into_iter().map(|(_, event)| event).collect(), next, before })
    }

    /// Returns the log from a position on, and the collections that the watch may report.
    fn watched_now(
        &self,
        watch: &Watch,
        barrier: &Barrier,
        after: Position,
    ) -> Result<(Vec<LogEntry>, Vec<Feed>)> {
        // A change of the catalog is in the store before it is in the copy: both are read between two changes.
        let _change = self.changes.lock();
        let catalog = self.catalog();
        let since = catalog.watches.get(watch).and_then(|watching| watching.since);
        let horizon = barrier.position().time().millis().saturating_sub(WATCH_MS);
        if since.is_none_or(|since| after < since) || after.time() < Time::from_millis(horizon) {
            return Err(Error::HistoryGone);
        }
        let log = log::from(&*self.store.snapshot()?, watch, after)?;
        let is_meant = |collection: &Collection| {
            watch.covers(&collection.database, &collection.name)
                || log.iter().any(|entry| entry.partition == collection.partition.id)
        };
        let living = catalog.collections.values().map(|it| Feed { collection: Arc::clone(it), until: None });
        let retired = catalog.retired.values().filter(|it| it.dropped > after);
        let retired =
            retired.map(|it| Feed { collection: Arc::clone(&it.collection), until: Some(it.dropped) });
        let feeds = living.chain(retired).filter(|feed| is_meant(&feed.collection)).collect();
        Ok((log, feeds))
    }

    #[expect(clippy::too_many_arguments, reason = "all of it says what to read")]
    fn gather(
        &self,
        page: &mut Gathered,
        feed: &Feed,
        log: &[LogEntry],
        watch: &Watch,
        barrier: &Barrier,
        after: Position,
        max_items: usize,
    ) -> Result<()> {
        let id = feed.collection.partition.id;
        if !keeps_feed(&feed.collection.partition.policy.read()) {
            // A collection that was renamed out of the watch may keep no feed any more.
            let is_left = !watch.covers(&feed.collection.database, &feed.collection.name);
            return if is_left { Ok(()) } else { Err(Error::HistoryGone) };
        }
        let begun = log.iter().filter(|entry| entry.partition == id && entry.begins());
        let start = begun.map(|entry| entry.position).max().map_or(after, |begun| begun.max(after));
        let start = HistoryStart::After(start);
        let told = self.collection_history(&feed.collection, barrier, start, max_items)?;
        page.next = page.next.min(told.next.max(after));
        let names = Names::new(log, &feed.collection);
        for event in told.events {
            let (database, name) = names.at(event.position);
            let is_told =
                feed.until.is_none_or(|until| event.position < until) && watch.covers(database, name);
            if is_told {
                let images = event.current.iter().chain(&event.previous);
                let bytes = images.map(|found| found.document.as_bytes().len() as u64).sum();
                let (position, database, name) = (event.position, database.to_owned(), name.to_owned());
                let what = Watched::Item(Arc::clone(&feed.collection), event);
                page.events.push((bytes, WatchEvent { position, database, name, what }));
                page.bytes += bytes;
            }
        }
        page.cut(max_items);
        Ok(())
    }
}

/// Events of several feeds, with the bytes of their images.
struct Gathered {
    events: Vec<(u64, WatchEvent)>,
    bytes: u64,
    next: Position,
}

impl Gathered {
    /// Keeps the first events, as many as a page may have; the rest is read again.
    fn cut(&mut self, max_items: usize) {
        self.events.sort_by_key(|(_, event)| event.position);
        let (mut bytes, mut length) = (0, 0);
        for (size, event) in &self.events {
            if event.position > self.next
                || length >= max_items.max(1)
                || (length > 0 && bytes >= PAGE_BYTES_MAX)
            {
                break;
            }
            bytes += size;
            length += 1;
        }
        if length < self.events.len() {
            if let Some((_, last)) = length.checked_sub(1).and_then(|last| self.events.get(last)) {
                let full = self.events[length].1.position <= self.next;
                self.next = if full { last.position } else { self.next };
            }
            self.events.truncate(length);
        }
        self.bytes = bytes;
    }
}

/// The names that a collection had.
struct Names<'a> {
    /// Each former name, with the position at which the next one began.
    former: BTreeMap<Position, (&'a str, &'a str)>,
    last: (&'a str, &'a str),
}

impl<'a> Names<'a> {
    fn new(log: &'a [LogEntry], collection: &'a Collection) -> Names<'a> {
        let id: PartitionId = collection.partition.id;
        let renames = log.iter().filter(|entry| entry.partition == id);
        let renames = renames.filter(|entry| matches!(entry.change, CatalogChange::Rename { .. }));
        let former = renames.map(|entry| (entry.position, (&*entry.database, &*entry.name))).collect();
        Names { former, last: (&collection.database, &collection.name) }
    }

    fn at(&self, position: Position) -> (&'a str, &'a str) {
        self.former.range(position..).next().map_or(self.last, |(_, name)| *name)
    }
}

impl WatchEvent {
    fn of(entry: &LogEntry) -> WatchEvent {
        let what = match &entry.change {
            CatalogChange::Create => Watched::Created,
            CatalogChange::Drop => Watched::Dropped,
            CatalogChange::DropDatabase => Watched::DatabaseDropped,
            CatalogChange::Rename { database, name, .. } => {
                Watched::Renamed { database: database.clone(), name: name.clone() }
            }
        };
        let (position, database, name) = (entry.position, entry.database.clone(), entry.name.clone());
        WatchEvent { position, database, name, what }
    }
}
