//! What a command costs in request units: everything that its statements read and write is added up here. Also which ways it
//! took, and how long it only waited, for the log of slow operations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::collection::Collection;
use engine::{Charge, Position, QueryMetrics, Toll};
use parking_lot::Mutex;

use crate::access::Way;

/// How many ways are remembered of a command that takes many.
const WAYS_MAX: usize = 4;

/// The sums of one command.
#[derive(Default)]
pub(crate) struct Meter(Mutex<Sums>);

#[derive(Default)]
struct Sums {
    /// What was read; none if nothing was looked at.
    read: Option<QueryMetrics>,
    written: Charge,
    /// The collections that were read, by name, and what lets them in; reads are paid at the end. Writes pay by themselves.
    tolls: BTreeMap<String, Toll>,
    /// The first ways that were taken.
    ways: Vec<(Arc<Collection>, Taken)>,
    waited: Duration,
    /// Where the last write stands in the feeds of all versions.
    position: Option<Position>,
}

/// A way that was taken.
enum Taken {
    Id,
    Everything,
    Index(u32),
}

/// What a command did.
pub(crate) struct Work {
    /// What was read; none if nothing was looked at.
    pub(crate) read: Option<QueryMetrics>,
    /// Which ways it took, in the words that MongoDB has for them.
    pub(crate) plan: Option<String>,
}

impl Meter {
    /// Adds what a reading has come by.
    pub(crate) fn read(&self, metrics: &QueryMetrics) {
        let mut sums = self.0.lock();
        let sum = sums.read.get_or_insert_default();
        sum.index_entries += metrics.index_entries;
        sum.loaded_items += metrics.loaded_items;
        sum.loaded_bytes += metrics.loaded_bytes;
    }

    /// Remembers a way that is taken.
    pub(crate) fn goes(&self, collection: &Arc<Collection>, way: &Way) {
        let mut sums = self.0.lock();
        let mut take = |taken| {
            if sums.ways.len() < WAYS_MAX {
                sums.ways.push((Arc::clone(collection), taken));
            }
        };
        match way {
            Way::Nothing => {}
            Way::Id(_) => take(Taken::Id),
            Way::Natural(_) => take(Taken::Everything),
            Way::Indexes(legs) => legs.iter().for_each(|leg| take(Taken::Index(leg.index))),
        }
    }

    /// Adds time in which the command had nothing to do but to wait for news.
    pub(crate) fn waits(&self, time: Duration) {
        self.0.lock().waited += time;
    }

    pub(crate) fn waited(&self) -> Duration {
        self.0.lock().waited
    }

    /// What the command did so far.
    pub(crate) fn work(&self) -> Work {
        let sums = self.0.lock();
        let steps: Vec<String> =
            sums.ways.iter().map(|(collection, taken)| taken.shown(collection)).collect();
        Work { read: sums.read, plan: (!steps.is_empty()).then(|| steps.join(", ")) }
    }

    /// Keeps what a reading of a collection was let in with.
    pub(crate) fn owes(&self, namespace: String, toll: Toll) {
        match self.0.lock().tolls.entry(namespace) {
            std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(toll)),
            // One command pays once for a collection.
            std::collections::btree_map::Entry::Occupied(_) => toll.pay(Charge::default()),
        }
    }

    /// Adds what a write has cost.
    pub(crate) fn wrote(&self, charge: Charge) {
        self.0.lock().written += charge;
    }

    /// Notes where a write stands in the feeds of all versions.
    pub(crate) fn committed(&self, position: Option<Position>) {
        let mut sums = self.0.lock();
        sums.position = sums.position.max(position);
    }

    /// Where the last write of the command stands; none if it has written nothing.
    pub(crate) fn position(&self) -> Option<Position> {
        self.0.lock().position
    }

    /// The charge of the command, with an answer of so many bytes: its reads as one page of a query, and its writes. One that
    /// did neither costs the least that anything costs. Reads are paid with this.
    pub(crate) fn settle(&self, answer_bytes: usize) -> Charge {
        let mut sums = self.0.lock();
        let shown = |read: QueryMetrics| QueryMetrics { output_bytes: answer_bytes as u64, ..read };
        let read = sums.read.map_or_else(Charge::default, |read| Charge::query(&shown(read), 1));
        let tolls = std::mem::take(&mut sums.tolls);
        let share = Charge(read.0 / tolls.len().max(1) as u64);
        for toll in tolls.into_values() {
            toll.pay(share);
        }
        (read + sums.written).max(Charge::MINIMUM)
    }
}

impl Taken {
    fn shown(&self, collection: &Collection) -> String {
        match self {
            Taken::Id => "IDHACK".to_owned(),
            Taken::Everything => "COLLSCAN".to_owned(),
            Taken::Index(number) => {
                let indexes = collection.indexes();
                let index = indexes.iter().find(|index| index.number == *number);
                format!("IXSCAN {}", index.map_or("of an index that is gone", |index| index.spec.name()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cost_as_one_query_and_writes_on_top() {
        let meter = Meter::default();
        assert_eq!(meter.settle(100), Charge::MINIMUM);
        meter.wrote(Charge(500));
        assert_eq!(meter.settle(100), Charge(500));
        let page = QueryMetrics { loaded_items: 2, loaded_bytes: 2000, ..QueryMetrics::default() };
        meter.read(&page);
        meter.read(&page);
        let sum = QueryMetrics { loaded_items: 4, loaded_bytes: 4000, output_bytes: 100, ..page };
        assert_eq!(meter.settle(100), Charge(500) + Charge::query(&sum, 1));
    }
}
