//! The feed of all versions of a container, by scope and with continuation tokens: the form in which the NoSQL API asks.

use super::read::{Event, HistoryStart};
use crate::Engine;
use crate::charge::Charge;
use crate::container::Container;
use crate::continuation::{self, HistoryToken};
use crate::error::Result;
use crate::item::Item;
use crate::lsn::RangeLsn;
use crate::operation::Scope;

/// Where a reader begins. The feed has no beginning: it goes back as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryFrom {
    /// With the next event after this call.
    Now,
    /// Behind what an earlier page ended with.
    After(String),
}

/// Some events, and where to go on.
#[derive(Debug, Clone)]
pub struct History {
    /// In the order in which they happened in their physical partition.
    pub events: Vec<Event<Item>>,
    /// Where to go on; always present.
    pub continuation: String,
    /// Whether there was more than this page has: a page may be empty although there is.
    pub more: bool,
    /// What it cost.
    pub charge: Charge,
    /// The range that the events are of, or one that was read, at its LSN in what was read.
    pub range: RangeLsn,
}

impl Engine {
    /// Reads events. Those of one commit are never split over two pages. Physical partitions are read in turn, one on each
    /// page: there is no order between them.
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
            let toll = self.admit(container, partition)?;
            let page = self.container_history(container, partition, scope, &barrier, start, max_items)?;
            (places[at].1, more, range) = (page.next, page.more, Some(partition.show(page.lsn)));
            let paid = Charge::feed(page.events.len() as u64, page.bytes, page.more);
            toll.pay(paid);
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
