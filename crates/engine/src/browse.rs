//! Looking at items as an operator does: page by page, the newest first, one by one, each with the instant of its death.
//!
//! Both APIs alike, and through the gate as everything else: the dead are not shown (T14). Nobody pays for a look, and it
//! restarts no countdown. A page costs what it shows, however much there is: the place names the last item that was dealt
//! with, and nothing is counted by walking.

use std::fmt;
use std::str::FromStr;

use bson::RawDocument;
use document::{Document, Etag, ItemNumber, Sequence};
use storage::{Direction, KeyRange, Keyspace, Time};

use crate::Engine;
use crate::error::{Error, Result};
use crate::footprint::Home;
use crate::gate::View;
use crate::header::{Body, Header, Record};
use crate::hold::ItemAddress;
use crate::holder::Holder;
use crate::item::Item;
use crate::keys::{self, Key};
use crate::limits::PAGE_ENTRIES_MAX;

/// A living item as it is looked at.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its number: the same as long as it lives, and nobody else's afterwards.
    pub number: ItemNumber,
    /// How it is addressed.
    pub address: ItemAddress,
    /// The sequence of its last write: its version.
    pub sequence: Sequence,
    /// The time of its last write, seconds since 1970.
    pub ts: u64,
    /// When it will die as rules stand; none if no rule will kill it.
    pub death: Option<Time>,
    /// Whether it is held by itself (T31).
    pub held: bool,
    /// What the user stored.
    pub body: SeenBody,
}

/// An item's body in the form of its API.
#[derive(Debug, Clone)]
pub enum SeenBody {
    /// Of a container.
    Json(Item),
    /// Of a collection.
    Bson(RawDocument),
}

impl Seen {
    /// Its version as opaque text, quotes included.
    pub fn etag(&self) -> String {
        Etag::new(self.sequence, self.ts).to_string()
    }

    /// How large its body is.
    pub fn bytes(&self) -> usize {
        match &self.body {
            SeenBody::Json(item) => item.body.as_bytes().len(),
            SeenBody::Bson(document) => document.as_bytes().len(),
        }
    }
}

/// Behind which item a page begins: its physical partition, by position, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrowsePlace {
    partition: usize,
    number: ItemNumber,
}

impl fmt::Display for BrowsePlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.partition, self.number.0)
    }
}

impl FromStr for BrowsePlace {
    type Err = Error;

    fn from_str(text: &str) -> Result<BrowsePlace> {
        let parse = || {
            let (partition, number) = text.split_once('-')?;
            Some(BrowsePlace { partition: partition.parse().ok()?, number: ItemNumber(number.parse().ok()?) })
        };
        parse().ok_or_else(|| Error::invalid("A place in a list is two numbers with a '-' between them."))
    }
}

/// Some living items, all at one instant.
#[derive(Debug, Clone)]
pub struct Browsed {
    /// The items.
    pub items: Vec<Seen>,
    /// Where to go on; none if there is nothing more.
    pub next: Option<BrowsePlace>,
    /// The instant.
    pub now: Time,
}

impl Engine {
    /// The next living items in the order of their creation in each physical partition, at most so many. Where much lies dead a
    /// page may be short although there is more.
    pub fn browse(&self, holder: &Holder, after: Option<BrowsePlace>, max_items: usize) -> Result<Browsed> {
        let views = View::open_all(&*self.store, holder.partitions())?;
        let mut page = Browsed { items: Vec::new(), next: None, now: instant(&views) };
        let (first, mut behind) = after.map_or((0, None), |place| (place.partition, Some(place.number)));
        let mut looked_at = 0;
        for (partition, view) in views.iter().enumerate().skip(first) {
            let id = view.gate.partition;
            let mut range = KeyRange::prefix(keys::partition(id));
            if let Some(number) = behind.take() {
                range = range.after(Key::Item(id, number).encode().1);
            }
            let mut last = None;
            for entry in view.snapshot.scan(Keyspace::Item, range, Direction::Forward) {
                let number = keys::item_number(&entry?.0)?;
                if page.items.len() >= max_items || looked_at >= PAGE_ENTRIES_MAX {
                    page.next = last.map(|number| BrowsePlace { partition, number });
                    return Ok(page);
                }
                looked_at += 1;
                last = Some(number);
                page.items.extend(look(view, holder, number)?);
            }
            let goes_on = partition + 1 < views.len() && page.items.len() >= max_items;
            if let (true, Some(number)) = (goes_on, last) {
                page.next = Some(BrowsePlace { partition, number });
                return Ok(page);
            }
        }
        Ok(page)
    }

    /// The living items that were written last, the newest first, at most so many.
    pub fn latest(&self, holder: &Holder, max_items: usize) -> Result<Browsed> {
        let views = View::open_all(&*self.store, holder.partitions())?;
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
                of_view.extend(look(view, holder, keys::feed_entry(&key, &value)?.1)?);
            }
            page.items.append(&mut of_view);
        }
        page.items.sort_by_key(|seen| std::cmp::Reverse(seen.sequence));
        page.items.truncate(max_items);
        Ok(page)
    }

    /// The living items of these numbers, as far as there are any, in the same order.
    pub fn look_at(&self, holder: &Holder, numbers: &[ItemNumber]) -> Result<Browsed> {
        let views = View::open_all(&*self.store, holder.partitions())?;
        let mut page = Browsed { items: Vec::new(), next: None, now: instant(&views) };
        for number in numbers {
            for view in &views {
                if let Some(seen) = look(view, holder, *number)? {
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

fn look(view: &View, holder: &Holder, number: ItemNumber) -> Result<Option<Seen>> {
    match holder {
        Holder::Container(container) => {
            let Some(record) = living::<Document>(view, number)? else { return Ok(None) };
            let key = Home::of(view.gate.partition, &container.definition, &record)?.key;
            let death = view.gate.policy.death(&record.header);
            let Header { sequence, ts, held, .. } = record.header;
            let item = Item::new(container.rid, record);
            let address = ItemAddress::Id(key, item.id().to_owned());
            let body = SeenBody::Json(item);
            Ok(Some(Seen { number, address, sequence, ts, death, held, body }))
        }
        Holder::Collection(_) => {
            let Some(record) = living::<RawDocument>(view, number)? else { return Ok(None) };
            let id = record.body.get("_id").map_or(bson::Value::Null, bson::ValueRef::to_value);
            let death = view.gate.policy.death(&record.header);
            let Header { sequence, ts, held, .. } = record.header;
            let (address, body) = (ItemAddress::DocumentId(id), SeenBody::Bson(record.body));
            Ok(Some(Seen { number, address, sequence, ts, death, held, body }))
        }
    }
}

/// The living item of a number, with its touch: its death is told.
fn living<B: Body>(view: &View, number: ItemNumber) -> Result<Option<Record<B>>> {
    Ok(view.gate.by_number::<B>(&*view.snapshot, number)?.living())
}
