//! The change feed, latest version: every living item once, at its last write, in the order of writing.
//!
//! Deletes and expiries do not appear here, and an item that died before it was read is absent (T14).

use document::Sequence;
use storage::{Direction, KeyRange, Keyspace};

use crate::Engine;
use crate::charge::Charge;
use crate::container::{Container, Partition};
use crate::continuation::Continuation;
use crate::error::{Error, Result};
use crate::events;
use crate::gate::View;
use crate::item::Item;
use crate::keys::{self, Key};
use crate::limits::{PAGE_BYTES_MAX, PAGE_ENTRIES_MAX};
use crate::operation::Scope;
use crate::read::in_scope;

/// Where a reader of the feed begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedStart {
    /// With the oldest change.
    Beginning,
    /// With the next change after this call.
    Now,
    /// With the first change at or after this time, seconds since 1970.
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
    /// What it cost.
    pub charge: Charge,
    /// The sequence a session must have seen to see this.
    pub sequence: u64,
}

impl Engine {
    /// Reads changes of one physical partition. The changes of one commit are never split over two pages.
    pub fn changes(
        &self,
        container: &Container,
        scope: &Scope,
        start: &FeedStart,
        max_items: usize,
    ) -> Result<Changes> {
        let partition = the_partition(container, scope)?;
        let toll = self.admit(container, partition)?;
        let view = View::open(&*self.store, partition)?;
        let (mut last, since) = match start {
            FeedStart::Beginning => (Sequence(0), 0),
            FeedStart::Time(since) => (Sequence(0), *since),
            FeedStart::Now => (events::last_of_commit(view.sequence), 0),
            FeedStart::After(token) => match token.parse::<Continuation>()? {
                Continuation { partition: id, last, since } if id == partition.id => (last, since),
                _ => return Err(Continuation::foreign()),
            },
        };

        let (mut items, mut bytes) = (Vec::<Item>::new(), 0);
        // All that the view holds will have been dealt with, unless the page ends earlier. No dead item is named either
        // way: it would tell of the dead, and whether the purge has run.
        let mut end = last.max(events::last_of_commit(view.sequence));
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
                let same_commit = items
                    .last()
                    .is_some_and(|item| events::commit_of(item.sequence) == events::commit_of(sequence));
                let full = items.len() >= max_items.max(1) || bytes >= PAGE_BYTES_MAX;
                if full && !same_commit {
                    end = last;
                    break;
                }
                bytes += record.size();
                items.push(Item::new(container.rid, record));
                last = sequence;
            }
            if looked_at >= PAGE_ENTRIES_MAX {
                end = sequence;
                break;
            }
        }
        let end = end.max(last);
        let charge = Charge::feed(items.len() as u64, bytes);
        toll.pay(charge);
        Ok(Changes {
            charge,
            items,
            continuation: Continuation { partition: partition.id, last: end, since }.to_string(),
            sequence: view.sequence,
        })
    }
}

/// The one partition that a scope lies in.
fn the_partition<'a>(container: &'a Container, scope: &Scope) -> Result<&'a Partition> {
    let range = match (&scope.key, &scope.range) {
        (Some(key), _) => key.effective_range(&container.definition.partition_key),
        (None, Some(range)) => range.clone(),
        (None, None) => document::EffectiveRange::all(),
    };
    let mut overlapping = container.partitions.iter().filter(|partition| partition.range.overlaps(&range));
    match (overlapping.next(), overlapping.next()) {
        (Some(partition), None) => Ok(partition),
        _ => Err(Error::NotSupported {
            what: "a change feed over several partition key ranges at once".into(),
        }),
    }
}
