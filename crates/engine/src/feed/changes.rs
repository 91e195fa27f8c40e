//! The change feed, latest version: every living item once, at its last write, in the order of writing.
//!
//! Deletes and expiries do not appear here, and an item that expired before it was read is absent (T14).

use document::Sequence;
use storage::{Direction, KeyRange, Keyspace};

use crate::Engine;
use crate::access::continuation::{self, FeedToken};
use crate::access::gate::View;
use crate::access::read::in_scope;
use crate::catalog::container::{Container, Partition};
use crate::entries::counters;
use crate::expiry::item::Item;
use crate::keys::{self, Key};
use crate::types::charge::Charge;
use crate::types::error::Result;
use crate::types::events;
use crate::types::limits::{PAGE_BYTES_MAX, PAGE_ENTRIES_MAX};
use crate::types::lsn::RangeLsn;
use crate::types::request::Scope;

/// Where a reader of the feed begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedStart {
    /// With the oldest change.
    Beginning,
    /// With the next change after this call.
    Now,
    /// With the first change after this second, counted from 1970. A change within the second is not shown, even if
    /// it came later than the call.
    Time(u64),
    /// Behind the end of an earlier page.
    After(String),
}

/// A page of changes, and where the next one begins.
#[derive(Debug, Clone)]
pub struct Changes {
    /// Living items in the order of their last write; empty when there is nothing new.
    pub items: Vec<Item>,
    /// The token of the next page; always present.
    pub continuation: String,
    /// Whether more follows. A page may be empty although more follows, where many items have expired.
    pub more: bool,
    /// The charge.
    pub charge: Charge,
    /// The range of the changes, or another range that was read, at its LSN in the snapshot.
    pub range: RangeLsn,
}

impl Engine {
    /// Reads changes. The changes of one commit are never split over two pages. Physical partitions are read in turn,
    /// one on each page: they have no order between them.
    pub fn changes(
        &self,
        container: &Container,
        scope: &Scope,
        start: &FeedStart,
        max_items: usize,
    ) -> Result<Changes> {
        let partitions = container.partitions_in(scope);
        let all = |last| partitions.iter().map(|partition| (*partition, last)).collect();
        let (mut places, since) = match start {
            FeedStart::Beginning => (all(Sequence(0)), 0),
            FeedStart::Time(second) => (all(Sequence(0)), second.saturating_add(1)),
            FeedStart::Now => (all(events::last_of_commit(self.store.last_sequence())), 0),
            FeedStart::After(token) => {
                let token: FeedToken = token.parse()?;
                (continuation::places_in(&token.places, &partitions)?, token.since)
            }
        };
        let (mut items, mut charge, mut more) = (Vec::new(), Charge::default(), false);
        let mut range = None;
        for at in 0..places.len() {
            let (partition, last) = places[at];
            let page = self.changes_of(container, partition, scope, (last, since), max_items)?;
            (places[at].1, more, range) = (page.end, page.more, Some(page.range));
            charge += page.charge;
            if !page.items.is_empty() || page.more {
                items = page.items;
                // The others come first on the next pages.
                more = more || at + 1 < places.len();
                places.rotate_left(at + 1);
                break;
            }
        }
        let places = places.iter().map(|(partition, last)| (partition.id, *last)).collect();
        let continuation = FeedToken { places, since }.to_string();
        let range = range.unwrap_or_else(|| container.partitions[0].range_lsn());
        Ok(Changes { items, continuation, more, charge, range })
    }

    /// Reads changes of one partition behind a sequence, and not before a time.
    fn changes_of(
        &self,
        container: &Container,
        partition: &Partition,
        scope: &Scope,
        (mut last, since): (Sequence, u64),
        max_items: usize,
    ) -> Result<Page> {
        let pending = self.admit(container, partition)?;
        let view = View::open(&*self.store, partition)?;
        // Unless the page ends earlier, everything in the view has been visited. An expired item is never named: that
        // would reveal it, and whether the purge has run.
        let end = events::last_of_commit(view.sequence);
        let charge = Charge::default();
        let lsn = counters::lsn(&*view.snapshot, partition.id)?;
        let end = last.max(lsn.map_or(end, |lsn| partition.feed_end.at(lsn, end)));
        let lsn = lsn.unwrap_or_default();
        let range = partition.show(lsn);
        let mut page = Page { items: Vec::new(), end, more: false, charge, range };
        let mut bytes = 0;
        let range = KeyRange::prefix(keys::partition(partition.id));
        let range = range.after(Key::Feed(partition.id, last).encode().1);
        let entries = view.snapshot.scan(Keyspace::Feed, range, Direction::Forward);
        for (looked_at, entry) in entries.enumerate() {
            let (key, value) = entry?;
            let (sequence, number) = keys::feed_entry(&key, &value)?;
            let record = view
                .by_number(number)?
                .filter(|record| record.header.ts >= since && in_scope(scope, container, record));
            if let Some(record) = record {
                let same_commit = page
                    .items
                    .last()
                    .is_some_and(|item| events::commit_of(item.sequence) == events::commit_of(sequence));
                let full = page.items.len() >= max_items.max(1) || bytes >= PAGE_BYTES_MAX;
                if full && !same_commit {
                    (page.end, page.more) = (last, true);
                    break;
                }
                bytes += record.size();
                page.items.push(Item::new(container.rid, record));
                last = sequence;
            }
            if looked_at >= PAGE_ENTRIES_MAX {
                (page.end, page.more) = (sequence, true);
                break;
            }
        }
        page.end = page.end.max(last);
        page.charge = Charge::feed(page.items.len() as u64, bytes, page.more);
        pending.pay(page.charge);
        Ok(page)
    }
}

/// Some changes of one partition.
struct Page {
    items: Vec<Item>,
    /// Everything up to here was visited.
    end: Sequence,
    /// Whether it ended before the end of the feed.
    more: bool,
    charge: Charge,
    range: RangeLsn,
}
