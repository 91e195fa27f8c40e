//! Reading items: by name, and by query page after page.
//!
//! A query looks at a sound superset of its answer ([`Query::access`]) and applies the filter to each living item in it. There
//! are two ways to walk, and a continuation token tells where the walk stands, so that what is inserted, deleted or
//! dies between two pages neither repeats nor hides an item that lives throughout:
//!
//! - along the `Id` entries, in the order of (effective key, partition key, id): whole, by ranges or by single lookups;
//! - along the queues that are ordered by `_ts`, when the filter bounds it and names no partition key.

use std::ops::Bound;

use document::{EffectiveRange, ItemNumber, PartitionKey, Value};
use query::{Access, Context, Operand, Query, Row, Segment, Stamps};
use storage::{Direction, KeyRange, Keyspace};

use crate::Engine;
use crate::charge::Charge;
use crate::container::{Container, Partition};
use crate::continuation::{Continuation, Position};
use crate::error::{Error, Result};
use crate::expiry::{Millis, Queue, from_seconds};
use crate::footprint::Home;
use crate::gate::{Usage, View};
use crate::header::Record;
use crate::item::{Item, SYSTEM_PROPERTIES};
use crate::keys::{self, Key};
use crate::limits::{PAGE_BYTES_MAX, PAGE_ENTRIES_MAX};
use crate::operation::{ItemName, Outcome, Page, PageRequest, Precondition, QueryMetrics, Scope};
use crate::write::{home_of_key, is_at_home, read_outcome};

/// Beyond this many (key, id) pairs single lookups are no better than a walk through the keys.
const LOOKUPS_MAX: usize = 4096;

impl Engine {
    /// Reads one item.
    pub fn read(
        &self,
        container: &Container,
        key: &PartitionKey,
        name: &ItemName,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        let home = home_of_key(container, Some(key.clone()))?;
        let view = View::open(&*self.store, container.partition_of(&home.effective))?;
        let record = match name {
            ItemName::Id(id) => view.by_id_key(&home.id_key(id))?,
            ItemName::Number(number) => {
                view.by_number(*number)?.filter(|record| is_at_home(&home, container, record))
            }
        };
        let record = record.ok_or_else(|| Error::no_item(name))?;
        read_outcome(Item::new(container.rid, record), precondition, view.sequence)
    }

    /// One page of the items that match a query, or of all items.
    pub fn query(
        &self,
        container: &Container,
        query: Option<&Query>,
        scope: &Scope,
        page: &PageRequest,
    ) -> Result<Page> {
        let definition = &container.definition.partition_key;
        let mut access = match query {
            Some(query) => query.access(definition),
            None => Access { ids: None, keys: None, stamps: Stamps::default() },
        };
        if let Some(key) = &scope.key {
            access.keys = Some(narrow(access.keys, key));
        }
        let position = page.continuation.as_deref().map(str::parse::<Continuation>).transpose()?;
        let views = View::open_all(&*self.store, &container.partitions)?;
        let sequence = views.first().map_or(0, |view| view.sequence);
        let now = views.first().map_or(0, |view| view.gate.now.millis());
        let context = Context::new(now, now);
        let answer = Answer::default();
        let mut walk = Walk { query, context, scope, access: &access, container, page, answer };
        let mut from = position;
        for (partition, view) in container.partitions.iter().zip(&views) {
            if let Some(position) = &from
                && position.partition != partition.id
            {
                continue;
            }
            walk.partition(partition, view, from.take().map(|from| from.position))?;
            if walk.answer.continuation.is_some() {
                break;
            }
        }
        if from.is_some() {
            return Err(Continuation::foreign());
        }
        if let Some(fault) = walk.context.fault() {
            return Err(fault.into());
        }
        Ok(walk.answer.into_page(sequence))
    }

    /// Exact figures of a container (T18).
    pub fn usage(&self, container: &Container) -> Result<Usage> {
        let mut sum = Usage::default();
        for view in View::open_all(&*self.store, &container.partitions)? {
            let usage = view.usage()?;
            sum.living = sum.living.plus(usage.living);
            sum.dead = sum.dead.plus(usage.dead);
        }
        Ok(sum)
    }
}

/// The keys of `known` that lie within the prefix `key`, or `key` itself.
fn narrow(known: Option<Vec<PartitionKey>>, key: &PartitionKey) -> Vec<PartitionKey> {
    match known {
        None => vec![key.clone()],
        Some(known) => {
            let longer = known.iter().filter(|other| key.is_prefix_of(other)).cloned();
            let shorter = known.iter().any(|other| other.is_prefix_of(key) && other != key);
            longer.chain(shorter.then(|| key.clone())).collect()
        }
    }
}

impl Row for Item {
    fn get(&self, path: &[Segment]) -> Option<Operand<'_>> {
        if let [Segment::Name(name)] = path
            && let Some(value) = self.system_property(name)
        {
            return Some(Operand::Owned(value));
        }
        query::walk(self.body.root(), path).map(Operand::Borrowed)
    }

    fn whole(&self) -> Value {
        let mut whole = self.body.root().to_value();
        if let Value::Object(members) = &mut whole {
            for name in SYSTEM_PROPERTIES {
                if let Some(value) = self.system_property(name) {
                    members.insert(name, value);
                }
            }
        }
        whole
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        Item::write_json(self, out);
    }
}

/// One request on its way through the partitions.
struct Walk<'a> {
    query: Option<&'a Query>,
    context: Context,
    scope: &'a Scope,
    access: &'a Access,
    container: &'a Container,
    page: &'a PageRequest,
    answer: Answer,
}

#[derive(Default)]
struct Answer {
    items: Vec<Item>,
    metrics: QueryMetrics,
    /// Entries looked at, dead or alive; only bounds the page.
    looked_at: usize,
    /// Behind the last living entry that is dealt with. A token names no dead one: it would tell of the dead, and whether
    /// the purge has run.
    dealt_with: Option<Continuation>,
    continuation: Option<Continuation>,
}

impl Answer {
    fn is_full(&self, page: &PageRequest) -> bool {
        self.items.len() >= page.max_items.max(1) || self.metrics.output_bytes >= PAGE_BYTES_MAX
    }

    fn into_page(self, sequence: u64) -> Page {
        let charge = Charge::query(self.metrics.loaded_items, self.metrics.loaded_bytes);
        let continuation = self.continuation.map(|continuation| continuation.to_string());
        Page { items: self.items, continuation, charge, sequence, metrics: self.metrics }
    }
}

/// A piece of the walk along the `Id` entries.
enum Step {
    Lookup(Vec<u8>),
    Range(KeyRange),
}

impl Step {
    fn start(&self) -> &[u8] {
        match self {
            Step::Lookup(key) => key,
            Step::Range(range) => match &range.start {
                Bound::Included(start) | Bound::Excluded(start) => start,
                Bound::Unbounded => &[],
            },
        }
    }
}

impl Walk<'_> {
    fn partition(&mut self, partition: &Partition, view: &View, from: Option<Position>) -> Result<()> {
        let by_stamp = self.access.keys.is_none() && self.access.stamps != Stamps::default();
        match (by_stamp, from) {
            (true, None) => self.along_stamps(partition, view, None),
            (true, Some(Position::Stamp { base, number })) => {
                self.along_stamps(partition, view, Some((base, number)))
            }
            (false, None) => self.along_ids(partition, view, None),
            (false, Some(Position::Id(key))) => self.along_ids(partition, view, Some(&key)),
            (true, Some(Position::Id(_)))
            | (false, Some(Position::Stamp { .. }))
            | (_, Some(Position::Feed { .. })) => Err(Continuation::foreign()),
        }
    }

    fn along_ids(&mut self, partition: &Partition, view: &View, after: Option<&[u8]>) -> Result<()> {
        for step in self.steps(partition) {
            let resume = after.filter(|after| *after >= step.start());
            match (step, resume) {
                (Step::Lookup(_), Some(_)) => {}
                (Step::Lookup(key), None) => {
                    let record = view.by_id_key(&key)?;
                    if !self.take(partition, Position::Id(key), record) {
                        return Ok(());
                    }
                }
                (Step::Range(range), resume) => {
                    let range = match resume {
                        Some(after) => range.after(after),
                        None => range,
                    };
                    for entry in view.snapshot.scan(Keyspace::Id, range, Direction::Forward) {
                        let (key, value) = entry?;
                        let record = view.by_number(keys::number_from_value(&value)?)?;
                        if !self.take(partition, Position::Id(key.to_vec()), record) {
                            return Ok(());
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Where matching items can lie among the `Id` entries of a partition, in ascending order without overlap.
    fn steps(&self, partition: &Partition) -> Vec<Step> {
        let definition = &self.container.definition.partition_key;
        let range = match &self.scope.range {
            Some(range) => partition.range.intersect(range),
            None => partition.range.clone(),
        };
        let ranged = |range: &EffectiveRange| {
            let bound = |key| keys::effective_bound(partition.id, key);
            Step::Range(KeyRange::between(bound(&range.min), bound(&range.max)))
        };
        let Some(wanted) = &self.access.keys else { return vec![ranged(&range)] };
        let ids = self.access.ids.as_ref().filter(|ids| ids.len() * wanted.len() <= LOOKUPS_MAX);
        let mut steps = Vec::new();
        for key in wanted {
            if key.len() < definition.paths.len() {
                let covered = key.effective_range(definition).intersect(&range);
                if !covered.is_empty() {
                    steps.push(ranged(&covered));
                }
                continue;
            }
            let effective = key.effective(definition);
            if !range.contains(&effective) {
                continue;
            }
            let home = Home { partition: partition.id, key: key.clone(), effective };
            match ids {
                Some(ids) => steps.extend(ids.iter().map(|id| Step::Lookup(home.id_key(id)))),
                None => steps.push(Step::Range(KeyRange::prefix(home.id_key("")))),
            }
        }
        steps.sort_by(|one, other| one.start().cmp(other.start()));
        steps
    }

    /// Both queues that are ordered by `_ts`, merged.
    fn along_stamps(
        &mut self,
        partition: &Partition,
        view: &View,
        after: Option<(Millis, ItemNumber)>,
    ) -> Result<()> {
        let from = self.access.stamps.from.map_or(Millis::MIN, from_seconds);
        let to = self.access.stamps.to.map_or(Millis::MAX, |to| from_seconds(to.saturating_add(1)));
        let entries = |queue| {
            let bound = |base| keys::queue_base(partition.id, queue, base);
            let mut range = KeyRange::between(bound(from), bound(to));
            if let Some((base, number)) = after {
                range = range.after(Key::Queue { partition: partition.id, queue, base, number }.encode().1);
            }
            let scan = view.snapshot.scan(Keyspace::Queue, range, Direction::Forward);
            scan.map(|entry| keys::queue_entry(&entry?.0)).peekable()
        };
        let (mut inherit, mut stamp) = (entries(Queue::Inherit), entries(Queue::Stamp));
        loop {
            let inherit_first = match (inherit.peek(), stamp.peek()) {
                (Some(Ok(one)), Some(Ok(other))) => one <= other,
                (Some(_), _) => true,
                (None, Some(_)) => false,
                (None, None) => return Ok(()),
            };
            let next = if inherit_first { inherit.next() } else { stamp.next() };
            let Some((base, number)) = next.transpose()? else { return Ok(()) };
            if !self.take(partition, Position::Stamp { base, number }, view.by_number(number)?) {
                return Ok(());
            }
        }
    }

    /// Deals with one entry; false ends the page. A full page goes on until it knows whether there is more, so that the
    /// last page carries no continuation.
    fn take(&mut self, partition: &Partition, position: Position, record: Option<Record>) -> bool {
        let answer = &mut self.answer;
        answer.looked_at += 1;
        let here = Continuation { partition: partition.id, position };
        if let Some(record) = record.filter(|record| in_scope(self.scope, self.container, partition, record))
        {
            let (item, size) = (Item::new(self.container.rid, record.clone()), record.size());
            let matches = self.query.is_none_or(|query| query.matches(&item, &self.context));
            if matches && answer.is_full(self.page) {
                answer.continuation = answer.dealt_with.take();
                return false;
            }
            answer.metrics.loaded_items += 1;
            answer.metrics.loaded_bytes += size;
            if matches {
                answer.metrics.output_items += 1;
                answer.metrics.output_bytes += size;
                answer.items.push(item);
            }
            answer.dealt_with = Some(here.clone());
        }
        if answer.looked_at < PAGE_ENTRIES_MAX {
            return true;
        }
        // The one case in which a token may name a dead entry: a stretch of them longer than a page may be.
        answer.continuation = Some(here);
        false
    }
}

/// Whether an item lies in the scope. A walk may pass neighbours: two keys may share a hash, and the queues know no keys.
pub(crate) fn in_scope(scope: &Scope, container: &Container, partition: &Partition, record: &Record) -> bool {
    if scope.key.is_none() && scope.range.is_none() {
        return true;
    }
    Home::of(partition.id, &container.definition, record).is_ok_and(|home| {
        scope.key.as_ref().is_none_or(|key| key.is_prefix_of(&home.key))
            && scope.range.as_ref().is_none_or(|range| range.contains(&home.effective))
    })
}
