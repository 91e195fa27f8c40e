//! Exports all living items of a container or collection, page by page, in the order of their creation.
//!
//! Each page has its own snapshot and its own `now`, and nothing is kept between two pages, so that an export may
//! take days without holding back the purge. An item that is living from the first page to the last is exported exactly
//! once, as it is when its page is read: its number never changes. An item that expires meanwhile is absent from then
//! on (T14), and a page restarts no countdown (T33): an export does not count as a read.

use bson::RawDocument;
use document::ItemNumber;
use storage::Direction;

use crate::Engine;
use crate::access::continuation::{decode_token, encode_token};
use crate::access::gate::{ScannedItem, View};
use crate::catalog::container::Partition;
use crate::catalog::owner::Owner;
use crate::expiry::header::{Body, Record};
use crate::expiry::item::Item;
use crate::types::charge::Charge;
use crate::types::error::{Error, Result};
use crate::types::limits::PAGE_ENTRIES_MAX;

/// Kind and version of an export's token.
const KIND: &[u8] = &[0x45, 1];

/// Living items, in the form in which the API of the container or collection stores them.
#[derive(Debug, Clone)]
pub enum Exported {
    /// Items of a container.
    Items(Vec<Item>),
    /// Documents of a collection.
    Documents(Vec<RawDocument>),
}

/// One page of an export.
#[derive(Debug, Clone)]
pub struct ExportPage {
    /// The living items. The list may be empty although more follow, where many items have expired.
    pub living: Exported,
    /// The token of the next page; `None` after the last.
    pub next: Option<String>,
    /// The charge: as much as a page of the change feed costs.
    pub charge: Charge,
}

/// The items that a scan of one partition has collected.
struct ScannedPage<T> {
    living: Vec<T>,
    bytes: usize,
    /// The last item that was visited, if the partition has more.
    stopped: Option<ItemNumber>,
}

impl Engine {
    /// Returns the living items behind a token, up to `max_bytes`.
    pub fn export_page(&self, owner: &Owner, after: Option<&str>, max_bytes: usize) -> Result<ExportPage> {
        let (at, number) = match after {
            None => (0, None),
            Some(token) => place(owner, token)?,
        };
        let partitions = owner.partitions();
        let Some(partition) = partitions.get(at) else {
            return Err(Error::invalid("the export token is behind the last partition"));
        };
        let pending = self.budget(owner, partition).admit()?;
        let (living, items, bytes, stopped) = match owner {
            Owner::Container(container) => {
                let walked =
                    self.walk(partition, number, max_bytes, |record| Item::new(container.rid, record))?;
                let items = walked.living.len();
                (Exported::Items(walked.living), items, walked.bytes, walked.stopped)
            }
            Owner::Collection(_) => {
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
        pending.pay(charge);
        Ok(ExportPage { living, next, charge })
    }

    /// Scans one partition from behind a number on.
    fn walk<B: Body, T>(
        &self,
        partition: &Partition,
        after: Option<ItemNumber>,
        max_bytes: usize,
        tell: impl Fn(Record<B>) -> T,
    ) -> Result<ScannedPage<T>> {
        let view = View::open(&*self.store, partition)?;
        let (mut living, mut bytes, mut last) = (Vec::new(), 0, None);
        let stored = view.gate.items::<B>(&*view.snapshot, after, Direction::Forward);
        for (looked_at, stored) in stored.enumerate() {
            let ScannedItem { number, living: record, .. } = stored?;
            if let Some(record) = record {
                let size = record.body.as_bytes().len();
                // The first item is returned whatever its size, or the export could not make progress. The token
                // never names an expired item: that would reveal it, and whether the purge has run.
                if !living.is_empty() && bytes + size > max_bytes {
                    return Ok(ScannedPage { living, bytes, stopped: last });
                }
                bytes += size;
                living.push(tell(record));
                last = Some(number);
            }
            if looked_at >= PAGE_ENTRIES_MAX {
                return Ok(ScannedPage { living, bytes, stopped: Some(number) });
            }
        }
        Ok(ScannedPage { living, bytes, stopped: None })
    }
}

/// Returns the token of the last visited item: partition and number. Numbers of partitions are never reused, so a
/// token of a deleted container does not fit the container that has its name now.
fn token(partition: &Partition, number: ItemNumber) -> String {
    encode_token([KIND, &partition.id.0.to_be_bytes(), &number.0.to_be_bytes()].concat())
}

fn place(owner: &Owner, token: &str) -> Result<(usize, Option<ItemNumber>)> {
    let parse = || {
        // `partition.number` is the older form; exports that resume from a file written then still use it.
        if let Some((partition, number)) = token.split_once('.') {
            return Some((partition.parse::<u32>().ok()?, ItemNumber(number.parse().ok()?)));
        }
        let bytes = decode_token(token)?;
        let (partition, number) = bytes.strip_prefix(KIND)?.split_first_chunk()?;
        Some((u32::from_be_bytes(*partition), ItemNumber(u64::from_be_bytes(number.try_into().ok()?))))
    };
    let damaged = || Error::InvalidContinuation { why: "it was cut or changed, or is no token of an export" };
    let (partition, number) = parse().ok_or_else(damaged)?;
    let at = owner.partitions().iter().position(|known| known.id.0 == partition);
    let at = at.ok_or_else(|| {
        Error::invalid(format!(
            "the export cannot continue: '{}' was deleted and created again since it began",
            owner.name()
        ))
    })?;
    Ok((at, Some(number)))
}
