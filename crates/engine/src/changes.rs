//! The change feed, latest version: every living item once, at its last write, in the order of writing.
//!
//! Deletes and expiries do not appear here, and an item that died before it was read is absent (T14).

use document::Sequence;
use storage::{Direction, KeyRange, Keyspace};

use crate::Engine;
use crate::charge::Charge;
use crate::container::{Container, Partition};
use crate::continuation::{self, FeedToken};
use crate::counters;
use crate::error::Result;
use crate::events;
use crate::gate::View;
use crate::item::Item;
use crate::keys::{self, Key};
use crate::limits::{PAGE_BYTES_MAX, PAGE_ENTRIES_MAX};
use crate::lsn::RangeLsn;
use crate::operation::Scope;
use crate::read::in_scope;

/// Where a reader of the feed begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedStart {
    /// With the oldest change.
    Beginning,
    /// With the next change after this call.
    Now,
    /// With the first change after this second, counted from 1970. A change in it is not shown, even if it came later
    /// than the call.
    Time(u64),
    /// Behind what an earlier page ended with.
    After(String),
}

/// Some changes, and where to go on.
#[derive(Debug, Clone)]
pub struct Changes {
    /// Living items in the order of their last write; empty when there is nothing new.
    pub items: Vec<Item>,
    /// Where to go on; always present.
    pub continuation: String,
    /// Whether there was more than this page has: a page may be empty although there is, where much has died.
    pub more: bool,
    /// What it cost.
    pub charge: Charge,
    /// The range that the changes are of, or one that was read, at its LSN in what was read.
    pub range: RangeLsn,
}

impl Engine {
    /// Reads changes. The changes of one commit are never split over two pages. Physical partitions are read in turn, one on
    /// each page: there is no order between them.
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
        let toll = self.admit(container, partition)?;
        let view = View::open(&*self.store, partition)?;
        // All that the view holds will have been dealt with, unless the page ends earlier. No dead item is named either
        // way: it would tell of the dead, and whether the purge has run.
        let end = last.max(events::last_of_commit(view.sequence));
        let charge = Charge::default();
        let lsn = counters::lsn(&*view.snapshot, partition.id)?.unwrap_or_default();
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
                .filter(|record| record.header.ts >= since && in_scope(scope, container, partition, record));
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
        toll.pay(page.charge);
        Ok(page)
    }
}

/// Some changes of one partition.
struct Page {
    items: Vec<Item>,
    /// Everything up to here was dealt with.
    end: Sequence,
    /// Whether it ended before all that was there.
    more: bool,
    charge: Charge,
    range: RangeLsn,
}
