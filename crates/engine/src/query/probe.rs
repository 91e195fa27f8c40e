//! The entries that a request has counted to choose its plan, so that none is read twice.
//!
//! A choice counts the living entries of a part of a condition, up to a small number, and may count more of them later.
//! If it stopped before the end, the number serves later requests, too (`EntryFloors`). If the part is a single value,
//! its entries are in the order of the numbers: once all of them have been counted, the stream of the chosen plan reads
//! them from here (`Entries`). It counts them as work of the page like those that it reads from the store.
//!
//! A bounded number of small parts is kept: a request may have thousands, and some of megabytes.

use std::cell::RefCell;
use std::rc::Rc;

use document::ItemNumber;
use query::{Interval, Leaf, Step};
use storage::{Direction, KeyRange, Keyspace, Time};

use super::by_path::scalars;
use super::context::QueryContext;
use crate::catalog::entry_floors::{EntryFloor, EntryState};
use crate::entries::counters;
use crate::index::{Index, IndexEntry, PathKey, Term};
use crate::types::error::Result;

/// Leaves of a request whose entries are kept.
const PROBES_MAX: usize = 64;

/// The largest leaf that is kept: its values, and the bytes of all of them and of its path.
const INTERVALS_MAX: usize = 8;
const LEAF_BYTES_MAX: usize = 1024;

/// An index entry that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbedEntry {
    pub(super) number: ItemNumber,
    pub(super) is_living: bool,
}

/// The probes of a request in one partition.
#[derive(Debug, Default)]
pub(super) struct Probes(RefCell<Vec<Probe>>);

/// The entries of one leaf's scalars that were counted.
#[derive(Debug)]
struct Probe {
    leaf: Leaf,
    /// The term that all entries have, if the leaf asks for a single value.
    term: Option<Term>,
    /// The state that the entries are counted in, if the leaf asks for more than a single value.
    counted_in: Option<EntryState>,
    /// All entries so far, if they have one term.
    entries: Vec<ProbedEntry>,
    living: usize,
    /// The interval that is read, and its last key that was.
    at: (usize, Option<Vec<u8>>),
    /// The same entries for streams, once there are no more.
    complete: Option<Rc<[ProbedEntry]>>,
    /// When the first of the living entries may expire.
    until: Option<Time>,
    /// How many living entries there are at least, from an earlier request.
    floor: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// There may be more entries.
    Open,
    /// All entries were counted.
    Ended,
    /// The work that a probe may do was done.
    Spent,
}

/// How many living entries there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LivingEntries {
    /// Exactly this many.
    All(usize),
    /// At least this many. The probe ended there.
    AtLeast(usize),
}

impl Probes {
    /// Counts the living entries of a leaf's scalars, up to `most`.
    pub(super) fn count(
        &self,
        ctx: &QueryContext<'_>,
        (index, path): (&Index, &PathKey),
        leaf: &Leaf,
        most: usize,
    ) -> Result<LivingEntries> {
        let mut probes = self.0.borrow_mut();
        let prefix = index.path_prefix(path);
        if !is_small(leaf) {
            return Probe::new(leaf).count_to(ctx, &prefix, most);
        }
        if let Some(known) = probes.iter_mut().find(|probe| probe.leaf == *leaf) {
            return known.count_to(ctx, &prefix, most);
        }
        let mut probe = Probe::of_state(ctx, index, leaf)?;
        let counted = probe.count_to(ctx, &prefix, most)?;
        if probes.len() < PROBES_MAX {
            probes.push(probe);
        }
        Ok(counted)
    }

    /// Returns the entries of a leaf that asks for a single value, if all of them were counted.
    pub(super) fn complete(&self, leaf: &Leaf) -> Option<Rc<[ProbedEntry]>> {
        let mut probes = self.0.borrow_mut();
        let probe = probes.iter_mut().find(|probe| probe.leaf == *leaf)?;
        if probe.term.is_none() || probe.state != State::Ended {
            return None;
        }
        let entries = &mut probe.entries;
        Some(Rc::clone(probe.complete.get_or_insert_with(|| std::mem::take(entries).into())))
    }
}

impl Probe {
    /// Creates the probe of a leaf that earlier requests may have counted.
    fn of_state(ctx: &QueryContext<'_>, index: &Index, leaf: &Leaf) -> Result<Probe> {
        let mut probe = Probe::new(leaf);
        if probe.term.is_none() {
            probe.counted_in = entry_state(ctx, index)?;
            let floors = &ctx.partition.entry_floors;
            let floor = probe.counted_in.map(|state| floors.of(leaf, state, ctx.view.gate.now));
            probe.floor = floor.unwrap_or_default();
        }
        Ok(probe)
    }

    fn new(leaf: &Leaf) -> Probe {
        let point = match leaf.values.scalars.as_slice() {
            [interval] => interval.as_point(),
            _ => None,
        };
        Probe {
            leaf: leaf.clone(),
            term: point.and_then(|point| Term::new(point.view())),
            counted_in: None,
            entries: Vec::new(),
            living: 0,
            at: (0, None),
            complete: None,
            until: None,
            floor: 0,
            state: State::Open,
        }
    }

    fn count_to(&mut self, ctx: &QueryContext<'_>, prefix: &[u8], most: usize) -> Result<LivingEntries> {
        if self.floor >= most {
            return Ok(LivingEntries::AtLeast(most));
        }
        if self.state == State::Spent {
            // There may be an allowance for more by now.
            self.state = State::Open;
        }
        self.extend(ctx, prefix, most)?;
        if self.state == State::Open {
            self.remember(ctx);
        }
        Ok(match self.state {
            State::Ended if self.living < most => LivingEntries::All(self.living),
            _ => LivingEntries::AtLeast(self.living.min(most)),
        })
    }

    /// Stores the number for later requests, unless one of the entries is known to be living only by the header of its
    /// item.
    fn remember(&self, ctx: &QueryContext<'_>) {
        let Some(state) = self.counted_in else { return };
        if self.until.is_none_or(|until| ctx.view.gate.now < until) {
            let Probe { leaf, living, until, .. } = self;
            let floor = EntryFloor { state, leaf: leaf.clone(), living: *living, until: *until };
            ctx.partition.entry_floors.remember(floor);
        }
    }

    /// Counts on until there are `most` living entries.
    fn extend(&mut self, ctx: &QueryContext<'_>, prefix: &[u8], most: usize) -> Result<()> {
        while self.state == State::Open && self.living < most {
            let (interval, last) = &self.at;
            let Some(interval) = self.leaf.values.scalars.get(*interval) else {
                self.state = State::Ended;
                break;
            };
            let range = rest(prefix, interval, last.as_deref());
            let mut scan = ctx.view.snapshot.scan(Keyspace::Index, range, Direction::Forward);
            let mut last = None;
            while self.living < most && self.state == State::Open {
                let Some(entry) = scan.next() else {
                    last = None;
                    self.at.0 += 1;
                    break;
                };
                let (key, value) = entry?;
                self.count(ctx, &IndexEntry::decode(prefix.len(), &key, &value)?)?;
                last = Some(key);
            }
            self.at.1 = last.map(|key| key.to_vec());
        }
        Ok(())
    }

    fn count(&mut self, ctx: &QueryContext<'_>, entry: &IndexEntry) -> Result<()> {
        ctx.work.look()?;
        let is_living = ctx.is_living(entry.number, &entry.mark)?;
        self.living += usize::from(is_living);
        if is_living {
            let due = |place| ctx.view.gate.policy.due(place);
            self.until = self.until.into_iter().chain(entry.mark.places.iter().filter_map(due)).min();
        }
        if self.term.as_ref().is_some_and(|term| term.as_bytes() == entry.term) {
            self.entries.push(ProbedEntry { number: entry.number, is_living });
        } else {
            self.term = None;
        }
        if ctx.work.is_spent() {
            self.state = State::Spent;
        }
        Ok(())
    }
}

/// Returns whether a leaf is small enough to be kept and compared with others.
fn is_small(leaf: &Leaf) -> bool {
    let names = leaf.path.iter().map(|step| if let Step::Name(name) = step { name.len() } else { 0 });
    let values = leaf.values.scalars.iter().map(|interval| interval.low.len() + interval.high.len());
    leaf.values.scalars.len() <= INTERVALS_MAX && names.chain(values).sum::<usize>() <= LEAF_BYTES_MAX
}

/// Returns the state of the partition that entries are counted in, or `None` if its commits are not counted.
fn entry_state(ctx: &QueryContext<'_>, index: &Index) -> Result<Option<EntryState>> {
    let lsn = counters::lsn(&*ctx.view.snapshot, ctx.partition.id)?;
    let (generation, policy) = (index.generation, ctx.view.gate.policy.version);
    Ok(lsn.map(|lsn| EntryState { generation, lsn, policy }))
}

/// Returns the keys of an interval behind the last one that was read.
fn rest(prefix: &[u8], interval: &Interval, last: Option<&[u8]>) -> KeyRange {
    let range = scalars(prefix, interval);
    match last {
        Some(last) => range.after(last),
        None => range,
    }
}

#[cfg(test)]
mod tests {
    use query::{Kinds, ValueSet};

    use super::*;

    #[test]
    fn large_leaves_are_not_kept() {
        let leaf = |name: usize, intervals: usize, bytes: usize| {
            let interval = Interval { low: vec![1; bytes], high: vec![2; bytes] };
            let values = ValueSet { scalars: vec![interval; intervals], kinds: Kinds::default() };
            Leaf { path: vec![Step::Name("n".repeat(name)), Step::Each], values }
        };
        for (leaf, is_kept) in [
            (leaf(10, 1, 20), true),
            (leaf(10, INTERVALS_MAX, 20), true),
            (leaf(10, INTERVALS_MAX + 1, 20), false),
            (leaf(10, 1, LEAF_BYTES_MAX), false),
            (leaf(LEAF_BYTES_MAX, 1, 20), false),
        ] {
            assert_eq!(is_small(&leaf), is_kept);
        }
    }
}
