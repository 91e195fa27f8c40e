//! Reads the items that a source names by their numbers.
//!
//! A lookup searches every table of the store that may have the item. Items that were written one after another, as
//! those of one partition key often are, are adjacent, and the next one costs a scan a fraction of a lookup. So
//! where two consecutive items were written close to each other, the reader opens a scan and steps through it as long as
//! that is cheaper:
//!
//! ```text
//!   numbers      3    4  5      7          90      305
//!                |    '--scan---'          |        |
//!             lookup                     lookup   lookup
//! ```
//!
//! The result is the same as that of lookups alone, and so is the work that is counted.

use bytes::Bytes;
use document::{ItemNumber, Sequence};
use storage::{Direction, Keyspace, Scan};

use super::context::QueryContext;
use crate::access::gate::{View, item_range};
use crate::expiry::header::Record;
use crate::keys;
use crate::types::error::Result;
use crate::types::events::commit_of;

/// Items whose commits are at most this far apart are looked for in one scan, and a scan steps over as many items that
/// the source does not name. A lookup costs as much as about this many steps.
const NEAR: u64 = 4;

/// Items that a scan must find to cost less than looking each of them up.
const HITS_THAT_PAY: u64 = 8;

/// Reads items by number, in one partition.
pub(super) struct ItemReader<'a> {
    pub(super) ctx: &'a QueryContext<'a>,
    /// The last item that was asked for.
    last: Option<ItemNumber>,
    scan: Option<Scan<'a>>,
    /// The next item of the scan, which lies behind those asked for so far.
    head: Option<(ItemNumber, Bytes)>,
    /// How many items the scan has found.
    hits: u64,
    /// Whether a scan ended before it had saved the cost of opening it.
    has_failed: bool,
}

impl<'a> ItemReader<'a> {
    pub(super) fn new(ctx: &'a QueryContext<'a>) -> ItemReader<'a> {
        ItemReader { ctx, last: None, scan: None, head: None, hits: 0, has_failed: false }
    }

    /// Returns the living item of that number.
    pub(super) fn load(&mut self, number: ItemNumber) -> Result<Option<Record>> {
        let last = self.last.replace(number);
        if self.scan.is_none() && !self.has_failed && last.is_some_and(|last| is_near(last, number)) {
            self.open(number);
        }
        let stored = if self.scan.is_some() { self.advance(number) } else { None };
        let Some(bytes) = stored else { return self.ctx.load(number) };
        let record = self.ctx.view.judge(number, &bytes)?;
        self.ctx.count_load(record.as_ref())?;
        Ok(record)
    }

    fn open(&mut self, number: ItemNumber) {
        let View { gate, snapshot, .. } = self.ctx.view;
        let before = ItemNumber(number.0.saturating_sub(1));
        let range = item_range(gate.partition, Some(before), Direction::Forward);
        self.scan = Some(snapshot.scan(Keyspace::Item, range, Direction::Forward));
        (self.head, self.hits) = (None, 0);
    }

    /// Returns the stored bytes of the item if the scan finds it within a few steps. Otherwise closes the scan.
    fn advance(&mut self, number: ItemNumber) -> Option<Bytes> {
        for _ in 0..=NEAR {
            match self.head.take().or_else(|| self.step()) {
                Some((found, bytes)) if found == number => {
                    self.hits += 1;
                    return Some(bytes);
                }
                Some((found, _)) if found < number => {}
                Some(head) => {
                    // A number before that of the scan, which is there for the next one.
                    self.head = Some(head);
                    return None;
                }
                None => break,
            }
        }
        self.scan = None;
        self.has_failed = self.hits < HITS_THAT_PAY;
        None
    }

    fn step(&mut self) -> Option<(ItemNumber, Bytes)> {
        // Damage in items that were not requested does not concern this request: lookups would not read them.
        let Some(Ok((key, bytes))) = self.scan.as_mut().and_then(Iterator::next) else { return None };
        Some((keys::item_number(&key).ok()?, bytes))
    }
}

/// Returns whether the second item was written shortly after the first.
fn is_near(first: ItemNumber, second: ItemNumber) -> bool {
    let [first, second] = [first, second].map(|number| commit_of(Sequence(number.0)));
    second.checked_sub(first).is_some_and(|distance| distance <= NEAR)
}
