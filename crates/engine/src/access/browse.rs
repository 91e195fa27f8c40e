//! Browsing items as an operator does: page by page, the newest first, or one by one, each with the instant of its
//! expiry.
//!
//! Items of both APIs are read through the gate, so expired ones are not shown (T14). Browsing is not charged, and it
//! restarts no countdown. The cost of a page depends on the items it shows, not on how many there are: a position
//! names the last item that was visited, and no page counts items by scanning.

use std::fmt;
use std::str::FromStr;

use bson::RawDocument;
use document::{Etag, ItemNumber, Sequence};
use storage::{Direction, KeyRange, Keyspace, Time};

use crate::Engine;
use crate::access::document::BsonRecord;
use crate::access::gate::{View, item_range};
use crate::catalog::owner::Owner;
use crate::entries::traces::Home;
use crate::expiry::header::{Body, Header, Record};
use crate::expiry::item::Item;
use crate::keys;
use crate::types::error::{Error, Result};
use crate::types::item_address::ItemAddress;
use crate::types::limits::PAGE_ENTRIES_MAX;

/// A living item as browsing shows it.
#[derive(Debug, Clone)]
pub struct BrowsedItem {
    /// Its number: constant over its lifetime, and never reused.
    pub number: ItemNumber,
    /// The address of the item.
    pub address: ItemAddress,
    /// The sequence of its last write: its version.
    pub sequence: Sequence,
    /// The time of its last write, seconds since 1970.
    pub ts: u64,
    /// When it will expire under the present rules; `None` if no rule will expire it.
    pub expiry: Option<Time>,
    /// Whether the item itself is held (T31), not only its container.
    pub held: bool,
    /// What the user stored.
    pub body: BrowsedBody,
}

/// An item's body in the form of its API.
#[derive(Debug, Clone)]
pub enum BrowsedBody {
    /// The body of a container's item.
    Json(Item),
    /// The body of a collection's document.
    Bson(RawDocument),
}

impl BrowsedItem {
    /// Returns its version as opaque text, quotes included.
    pub fn etag(&self) -> String {
        Etag::new(self.sequence, self.ts).to_string()
    }

    /// Returns the size of its body.
    pub fn bytes(&self) -> usize {
        match &self.body {
            BrowsedBody::Json(item) => item.body.as_bytes().len(),
            BrowsedBody::Bson(document) => document.as_bytes().len(),
        }
    }
}

/// The position behind which a page begins: the index of the physical partition, and an item's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrowsePosition {
    partition: usize,
    number: ItemNumber,
}

impl fmt::Display for BrowsePosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.partition, self.number.0)
    }
}

impl FromStr for BrowsePosition {
    type Err = Error;

    fn from_str(text: &str) -> Result<BrowsePosition> {
        let parse = || {
            let (partition, number) = text.split_once('-')?;
            Some(BrowsePosition {
                partition: partition.parse().ok()?,
                number: ItemNumber(number.parse().ok()?),
            })
        };
        parse().ok_or_else(|| Error::invalid("A position in a list is two numbers with a '-' between them."))
    }
}

/// A page of living items, all as of one instant.
#[derive(Debug, Clone)]
pub struct Browsed {
    /// The items.
    pub items: Vec<BrowsedItem>,
    /// Where the next page begins; `None` after the last page.
    pub next: Option<BrowsePosition>,
    /// The instant.
    pub now: Time,
}

impl Engine {
    /// Returns at most `max_items` living items in the order of their creation in each physical partition. Where many
    /// items have expired, a page may be short although more follows.
    pub fn browse(&self, owner: &Owner, after: Option<BrowsePosition>, max_items: usize) -> Result<Browsed> {
        let views = View::open_all(&*self.store, owner.partitions())?;
        let mut page = Browsed { items: Vec::new(), next: None, now: instant(&views) };
        let (first, mut behind) = after.map_or((0, None), |place| (place.partition, Some(place.number)));
        let mut looked_at = 0;
        for (partition, view) in views.iter().enumerate().skip(first) {
            let range = item_range(view.gate.partition, behind.take(), Direction::Forward);
            let mut last = None;
            for entry in view.snapshot.scan(Keyspace::Item, range, Direction::Forward) {
                let number = keys::item_number(&entry?.0)?;
                if page.items.len() >= max_items || looked_at >= PAGE_ENTRIES_MAX {
                    page.next = last.map(|number| BrowsePosition { partition, number });
                    return Ok(page);
                }
                looked_at += 1;
                last = Some(number);
                page.items.extend(look(view, owner, number)?);
            }
            let goes_on = partition + 1 < views.len() && page.items.len() >= max_items;
            if let (true, Some(number)) = (goes_on, last) {
                page.next = Some(BrowsePosition { partition, number });
                return Ok(page);
            }
        }
        Ok(page)
    }

    /// Returns at most `max_items` of the living items that were written last, the newest first.
    pub fn latest(&self, owner: &Owner, max_items: usize) -> Result<Browsed> {
        let views = View::open_all(&*self.store, owner.partitions())?;
        let mut page = Browsed { items: Vec::new(), next: None, now: instant(&views) };
        for view in &views {
            let range = KeyRange::prefix(keys::partition(view.gate.partition));
            let mut of_view = Vec::new();
            let entries = view.snapshot.scan(Keyspace::Feed, range, Direction::Backward);
            for entry in entries.take(PAGE_ENTRIES_MAX) {
                if of_view.len() >= max_items {
                    break;
                }
                let (key, value) = entry?;
                of_view.extend(look(view, owner, keys::feed_entry(&key, &value)?.1)?);
            }
            page.items.append(&mut of_view);
        }
        page.items.sort_by_key(|seen| std::cmp::Reverse(seen.sequence));
        page.items.truncate(max_items);
        Ok(page)
    }

    /// Returns the living items among those with these numbers, in the same order.
    pub fn look_at(&self, owner: &Owner, numbers: &[ItemNumber]) -> Result<Browsed> {
        let views = View::open_all(&*self.store, owner.partitions())?;
        let mut page = Browsed { items: Vec::new(), next: None, now: instant(&views) };
        for number in numbers {
            for view in &views {
                if let Some(seen) = look(view, owner, *number)? {
                    page.items.push(seen);
                    break;
                }
            }
        }
        Ok(page)
    }
}

fn instant(views: &[View]) -> Time {
    views.first().expect("whatever holds items has a partition").gate.now
}

/// Returns the living item of a number, as an operator sees it.
pub(crate) fn look(view: &View, owner: &Owner, number: ItemNumber) -> Result<Option<BrowsedItem>> {
    match owner {
        Owner::Container(container) => look_with(view, number, |record| {
            let key = Home::of(view.gate.partition, &container.definition, &record)?.key;
            let item = Item::new(container.rid, record);
            Ok((ItemAddress::Id(key, item.id().to_owned()), BrowsedBody::Json(item)))
        }),
        Owner::Collection(_) => look_with(view, number, |record: BsonRecord| {
            let id = record.body.get("_id").map_or(bson::Value::Null, bson::ValueRef::to_value);
            Ok((ItemAddress::DocumentId(id), BrowsedBody::Bson(record.body)))
        }),
    }
}

/// Returns the living item of a number, with its record of a renewal: the instant of its expiry is shown.
fn look_with<B: Body>(
    view: &View,
    number: ItemNumber,
    show: impl FnOnce(Record<B>) -> Result<(ItemAddress, BrowsedBody)>,
) -> Result<Option<BrowsedItem>> {
    let Some(record) = view.gate.by_number::<B>(&*view.snapshot, number)?.living() else { return Ok(None) };
    let expiry = view.gate.policy.expiry_time(&record.header);
    let Header { sequence, ts, held, .. } = record.header;
    let (address, body) = show(record)?;
    Ok(Some(BrowsedItem { number, address, sequence, ts, expiry, held, body }))
}
