//! The entries that a request has counted to choose its plan, so that none is read twice.
//!
//! A choice counts the living entries of a part of a condition, up to a small number, and may ask for more of them
//! later. If it stopped counting, what it has seen serves the next requests, too (`EntryFloors`). If the part is a single value, its entries come in the order of the numbers: once all of them have been
//! counted, the stream of the chosen plan reads them from here (`Entries`). It counts them as work of the page like
//! those that it reads from the store.

use std::cell::RefCell;
use std::rc::Rc;

use document::ItemNumber;
use query::{Interval, Leaf};
use storage::{Direction, KeyRange, Keyspace, Time};

use super::by_path::scalars;
use super::context::QueryContext;
use crate::catalog::entry_floors::{EntryFloor, EntryState};
use crate::entries::counters;
use crate::index::{Index, IndexEntry, PathKey, Term};
use crate::types::error::Result;

/// An index entry that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbedEntry {
    pub(super) number: ItemNumber,
    pub(super) is_living: bool,
}

/// What a request has counted so far in one partition.
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
        let known = probes.iter().position(|probe| probe.leaf == *leaf);
        if known.is_none() {
            probes.push(Probe::new(ctx, index, leaf)?);
        }
        let at = known.unwrap_or(probes.len() - 1);
        let probe = &mut probes[at];
        if probe.floor >= most {
            return Ok(LivingEntries::AtLeast(most));
        }
        probe.extend(ctx, &index.path_prefix(path), most)?;
        if probe.state == State::Open {
            probe.remember(ctx);
        }
        Ok(match probe.state {
            State::Ended if probe.living < most => LivingEntries::All(probe.living),
            _ => LivingEntries::AtLeast(probe.living.min(most)),
        })
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
    fn new(ctx: &QueryContext<'_>, index: &Index, leaf: &Leaf) -> Result<Probe> {
        let point = match leaf.values.scalars.as_slice() {
            [interval] => interval.as_point(),
            _ => None,
        };
        let term = point.and_then(|point| Term::new(point.view()));
        let counted_in = if term.is_none() { entry_state(ctx, index)? } else { None };
        let floors = &ctx.partition.entry_floors;
        let floor = counted_in.map_or(0, |state| floors.of(leaf, state, ctx.view.gate.now));
        Ok(Probe {
            leaf: leaf.clone(),
            term,
            counted_in,
            entries: Vec::new(),
            living: 0,
            at: (0, None),
            complete: None,
            until: None,
            floor,
            state: State::Open,
        })
    }

    /// Lets the next requests know what was counted, unless one of the entries is known to be living only by the
    /// header of its item.
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
