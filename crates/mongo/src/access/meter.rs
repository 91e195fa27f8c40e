//! The charge of a command in request units: the sum of everything that its statements read and write. Also the access paths that
//! it used, and how long it only waited, for the log of slow operations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::collection::Collection;
use engine::find::AccessPath;
use engine::{Charge, PendingCharge, Position, QueryMetrics};
use parking_lot::Mutex;

/// The largest number of access paths that are remembered of a command.
const PATHS_MAX: usize = 4;

/// The sums of one command.
#[derive(Default)]
pub(crate) struct Meter(Mutex<Sums>);

#[derive(Default)]
struct Sums {
    /// What was read; none if nothing was read.
    read: Option<QueryMetrics>,
    written: Charge,
    /// The pending charges of reads, by the name of the collection; they are paid at the end. Writes pay by themselves.
    pending_charges: BTreeMap<String, PendingCharge>,
    /// The first access paths that were used.
    paths: Vec<(Arc<Collection>, UsedPath)>,
    waited: Duration,
    /// The position of the last write in the feeds of all versions.
    position: Option<Position>,
}

/// An access path that was used.
enum UsedPath {
    Id,
    Everything,
    Index(u32),
}

/// What a command did.
pub(crate) struct Work {
    /// What was read; none if nothing was read.
    pub(crate) read: Option<QueryMetrics>,
    /// Which access paths it used, in MongoDB's words.
    pub(crate) plan: Option<String>,
}

impl Meter {
    /// Adds what a reading has examined.
    pub(crate) fn read(&self, metrics: &QueryMetrics) {
        let mut sums = self.0.lock();
        let sum = sums.read.get_or_insert_default();
        sum.index_entries += metrics.index_entries;
        sum.loaded_items += metrics.loaded_items;
        sum.loaded_bytes += metrics.loaded_bytes;
    }

    /// Remembers an access path that is used.
    pub(crate) fn note_path(&self, collection: &Arc<Collection>, path: &AccessPath) {
        let mut sums = self.0.lock();
        let mut take = |path| {
            if sums.paths.len() < PATHS_MAX {
                sums.paths.push((Arc::clone(collection), path));
            }
        };
        match path {
            AccessPath::Empty => {}
            AccessPath::Id(_) => take(UsedPath::Id),
            AccessPath::CollectionScan(_) => take(UsedPath::Everything),
            AccessPath::IndexScans(scans) => scans.iter().for_each(|scan| take(UsedPath::Index(scan.index))),
        }
    }

    /// Adds time in which the command only waited for new events.
    pub(crate) fn note_wait(&self, time: Duration) {
        self.0.lock().waited += time;
    }

    pub(crate) fn waited(&self) -> Duration {
        self.0.lock().waited
    }

    /// Returns what the command did so far.
    pub(crate) fn work(&self) -> Work {
        let sums = self.0.lock();
        let steps: Vec<String> = sums.paths.iter().map(|(collection, path)| path.shown(collection)).collect();
        Work { read: sums.read, plan: (!steps.is_empty()).then(|| steps.join(", ")) }
    }

    /// Keeps the charge that is pending for the reads of a collection.
    pub(crate) fn keep_toll(&self, namespace: String, pending: PendingCharge) {
        match self.0.lock().pending_charges.entry(namespace) {
            std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(pending)),
            // One command pays once for a collection.
            std::collections::btree_map::Entry::Occupied(_) => pending.pay(Charge::default()),
        }
    }

    /// Adds what a write has cost.
    pub(crate) fn wrote(&self, charge: Charge) {
        self.0.lock().written += charge;
    }

    /// Notes the position of a write in the feeds of all versions.
    pub(crate) fn committed(&self, position: Option<Position>) {
        let mut sums = self.0.lock();
        sums.position = sums.position.max(position);
    }

    /// The position of the command's last write; none if it has written nothing.
    pub(crate) fn position(&self) -> Option<Position> {
        self.0.lock().position
    }

    /// Returns the charge of the command, with an answer of so many bytes: its reads as one page of a query, and its writes. A
    /// command that did neither costs the minimum. Reads are paid with this.
    pub(crate) fn settle(&self, answer_bytes: usize) -> Charge {
        let mut sums = self.0.lock();
        let shown = |read: QueryMetrics| QueryMetrics { output_bytes: answer_bytes as u64, ..read };
        let read = sums.read.map_or_else(Charge::default, |read| Charge::query(&shown(read), 1));
        let pending_charges = std::mem::take(&mut sums.pending_charges);
        let share = Charge(read.0 / pending_charges.len().max(1) as u64);
        for pending in pending_charges.into_values() {
            pending.pay(share);
        }
        (read + sums.written).max(Charge::MINIMUM)
    }
}

impl UsedPath {
    fn shown(&self, collection: &Collection) -> String {
        match self {
            UsedPath::Id => "IDHACK".to_owned(),
            UsedPath::Everything => "COLLSCAN".to_owned(),
            UsedPath::Index(number) => {
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
