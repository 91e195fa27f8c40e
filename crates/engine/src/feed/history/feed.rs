//! The feed of all versions of a container, by scope and with continuation tokens, as the NoSQL API reads it.

use super::read::{Event, HistoryStart};
use crate::Engine;
use crate::access::continuation::{self, HistoryToken};
use crate::catalog::container::Container;
use crate::expiry::item::Item;
use crate::types::charge::Charge;
use crate::types::error::Result;
use crate::types::lsn::RangeLsn;
use crate::types::request::Scope;

/// Where a reader begins. The feed has no fixed beginning: it goes back as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryFrom {
    /// With the next event after this call.
    Now,
    /// Behind the end of an earlier page.
    After(String),
}

/// A page of events, and where the next one begins.
#[derive(Debug, Clone)]
pub struct History {
    /// The events, in the order in which they happened in their physical partition.
    pub events: Vec<Event<Item>>,
    /// The token of the next page; always present.
    pub continuation: String,
    /// Whether more follows. A page may be empty although more follows.
    pub more: bool,
    /// The charge.
    pub charge: Charge,
    /// The range of the events, or another range that was read, at its LSN in the snapshot.
    pub range: RangeLsn,
}

impl Engine {
    /// Reads events. Those of one commit are never split over two pages. Physical partitions are read in turn, one on
    /// each page: they have no order between them.
    pub fn history(
        &self,
        container: &Container,
        scope: &Scope,
        from: &HistoryFrom,
        max_items: usize,
    ) -> Result<History> {
        let partitions = container.partitions_in(scope);
        let barrier = self.barrier()?;
        let mut places = match from {
            HistoryFrom::Now => {
                partitions.into_iter().map(|partition| (partition, barrier.position())).collect()
            }
            HistoryFrom::After(token) => {
                let token: HistoryToken = token.parse()?;
                continuation::places_in(&token.places, &partitions)?
            }
        };
        let (mut events, mut charge, mut more) = (Vec::new(), Charge::default(), false);
        let mut range = None;
        for at in 0..places.len() {
            let (partition, last) = places[at];
            let start = HistoryStart::After(last);
            let pending = self.admit(container, partition)?;
            let page = self.container_history(container, partition, scope, &barrier, start, max_items)?;
            (places[at].1, more, range) = (page.next, page.more, Some(partition.show(page.lsn)));
            let paid = Charge::feed(page.events.len() as u64, page.bytes, page.more);
            pending.pay(paid);
            charge += paid;
            if !page.events.is_empty() || page.more {
                events = page.events;
                // The others come first on the next pages.
                more = more || at + 1 < places.len();
                places.rotate_left(at + 1);
                break;
            }
        }
        let places = places.iter().map(|(partition, position)| (partition.id, *position)).collect();
        let continuation = HistoryToken { places }.to_string();
        let range = range.unwrap_or_else(|| container.partitions[0].range_lsn());
        Ok(History { events, continuation, more, charge, range })
    }
}
