//! All living items of a container or collection, page by page, in the order of their creation.
//!
//! Each page has its own snapshot and its own `now`, and none is held between two pages, so that an export may take days
//! without keeping anything from the purge. An item that lives from the first page to the last is told exactly once, as it is
//! when its page is read: its number never changes. What dies meanwhile is absent from then on (T14), and a page restarts no
//! countdown (T33): a copy is not a use.

use bson::RawDocument;
use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace};

use crate::Engine;
use crate::budget::Toll;
use crate::charge::Charge;
use crate::container::Partition;
use crate::continuation::{decode_token, encode_token};
use crate::error::{Error, Result};
use crate::gate::View;
use crate::header::{Body, Record};
use crate::holder::Holder;
use crate::item::Item;
use crate::keys::{self, Key};
use crate::limits::PAGE_ENTRIES_MAX;

/// Kind and version of an export's token.
const KIND: &[u8] = &[0x45, 1];

/// Living items, as whoever made the container or collection stored them.
#[derive(Debug, Clone)]
pub enum Exported {
    /// Of a container.
    Items(Vec<Item>),
    /// Of a collection.
    Documents(Vec<RawDocument>),
}

/// One page of an export.
#[derive(Debug, Clone)]
pub struct ExportPage {
    /// The living; there may be none although more follow, where much has died.
    pub living: Exported,
    /// Where to go on; none behind the last page.
    pub next: Option<String>,
    /// What it cost: as much as a page of the change feed.
    pub charge: Charge,
}

/// What a walk over one partition has come by.
struct Walked<T> {
    living: Vec<T>,
    bytes: usize,
    /// The last one that was dealt with, if the partition has more.
    stopped: Option<ItemNumber>,
}

impl Engine {
    /// The living items behind a place, until they have so many bytes.
    pub fn export_page(&self, holder: &Holder, after: Option<&str>, max_bytes: usize) -> Result<ExportPage> {
        let (at, number) = match after {
            None => (0, None),
            Some(token) => place(holder, token)?,
        };
        let partitions = holder.partitions();
        let Some(partition) = partitions.get(at) else {
            return Err(Error::invalid("an export goes on behind the last partition"));
        };
        let toll = self.toll(holder, partition)?;
        let (living, items, bytes, stopped) = match holder {
            Holder::Container(container) => {
                let walked =
                    self.walk(partition, number, max_bytes, |record| Item::new(container.rid, record))?;
                let items = walked.living.len();
                (Exported::Items(walked.living), items, walked.bytes, walked.stopped)
            }
            Holder::Collection(_) => {
                let walked = self.walk(partition, number, max_bytes, |record: Record<_>| record.body)?;
                let items = walked.living.len();
                (Exported::Documents(walked.living), items, walked.bytes, walked.stopped)
            }
        };
        let next = match stopped {
            Some(number) => Some(token(partition, number)),
            None => partitions.get(at + 1).map(|next| token(next, ItemNumber(0))),
        };
        let charge = Charge::feed(items as u64, bytes as u64, next.is_some());
        toll.pay(charge);
        Ok(ExportPage { living, next, charge })
    }

    fn toll(&self, holder: &Holder, partition: &Partition) -> Result<Toll> {
        match holder {
            Holder::Container(container) => self.admit(container, partition),
            Holder::Collection(collection) => self.admit_collection(collection),
        }
    }

    /// Goes through one partition, from behind a number on.
    fn walk<B: Body, T>(
        &self,
        partition: &Partition,
        after: Option<ItemNumber>,
        max_bytes: usize,
        tell: impl Fn(Record<B>) -> T,
    ) -> Result<Walked<T>> {
        let view = View::open(&*self.store, partition)?;
        let all = KeyRange::prefix(keys::partition(partition.id));
        let range = match after {
            None => all,
            Some(number) => all.after(Key::Item(partition.id, number).encode().1),
        };
        let (mut living, mut bytes, mut last) = (Vec::new(), 0, None);
        for (looked_at, entry) in view.snapshot.scan(Keyspace::Item, range, Direction::Forward).enumerate() {
            let (key, value) = entry?;
            let number = keys::item_number(&key)?;
            if let Some(record) = view.gate.judge::<B>(&*view.snapshot, number, &value)? {
                let size = record.body.as_bytes().len();
                // The first one comes whatever it weighs, or the export would never go on. No dead item is named: it
                // would tell of the dead, and whether the purge has run.
                if !living.is_empty() && bytes + size > max_bytes {
                    return Ok(Walked { living, bytes, stopped: last });
                }
                bytes += size;
                living.push(tell(record));
                last = Some(number);
            }
            if looked_at >= PAGE_ENTRIES_MAX {
                return Ok(Walked { living, bytes, stopped: Some(number) });
            }
        }
        Ok(Walked { living, bytes, stopped: None })
    }
}

/// Partition and number of what was dealt with last. Numbers of partitions are never given twice, so a token of a container
/// that was deleted does not fit the one that has its name now.
fn token(partition: &Partition, number: ItemNumber) -> String {
    encode_token([KIND, &partition.id.0.to_be_bytes(), &number.0.to_be_bytes()].concat())
}

fn place(holder: &Holder, token: &str) -> Result<(usize, Option<ItemNumber>)> {
    let parse = || {
        // `partition.number`, as exports were given that are resumed from a file of then.
        if let Some((partition, number)) = token.split_once('.') {
            return Some((partition.parse::<u32>().ok()?, ItemNumber(number.parse().ok()?)));
        }
        let bytes = decode_token(token)?;
        let (partition, number) = bytes.strip_prefix(KIND)?.split_first_chunk()?;
        Some((u32::from_be_bytes(*partition), ItemNumber(u64::from_be_bytes(number.try_into().ok()?))))
    };
    let damaged = || Error::InvalidContinuation { why: "it was cut or changed, or is no token of an export" };
    let (partition, number) = parse().ok_or_else(damaged)?;
    let at = holder.partitions().iter().position(|known| known.id.0 == partition);
    let at = at.ok_or_else(|| {
        Error::invalid(format!(
            "the export cannot go on: '{}' is not what it was begun with, but was deleted and made again",
            holder.name()
        ))
    })?;
    Ok((at, Some(number)))
}
