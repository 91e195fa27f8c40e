//! Takes items into a page: in the order of their source, in the order of an index, sorted in memory, or by rank.

use document::ItemNumber;
use query::{
    Analysis, Answer, Arrival, Condition, Context, Flow, PageLimits, Query, Ranking, Resume, Run, SortPath,
    Sorting,
};
use storage::Direction;

use super::by_composite::{self, leaf_at};
use super::by_path::{CursorStart, PathCursor, SortedCursor};
use super::by_timestamp::TimestampCursor;
use super::choose::{ChosenPlan, Purpose, choose, estimate};
use super::context::QueryContext;
use super::item_reader::ItemReader;
use super::numbers::NumberStream as _;
use super::partition_query;
use super::refine::{self, Merged, Refined, Sorted};
use super::report::{Report, Used};
use super::row::Covered;
use super::sources::{FullScan, Source as _, SourceItem, SourceStep};
use super::work::Work;
use crate::access::continuation::{self, KEY_BYTES_MAX, Position, QueryToken, ShortenedKey};
use crate::access::read::in_scope;
use crate::access::renewal::SlidingRenewal;
use crate::catalog::container::Container;
use crate::expiry::header::Record;
use crate::expiry::item::Item;
use crate::keys::PartitionId;
use crate::query::request::{FullPage, QueryRequest};
use crate::types::error::{Error, Result};
use crate::types::limits::PAGE_BYTES_MAX;
use crate::types::request::{IndexUse, QueryMetrics};

/// One request.
pub(super) struct Paging<'a> {
    pub(super) container: &'a Container,
    pub(super) query: &'a Query,
    pub(super) request: &'a QueryRequest<'a>,
    pub(super) analysis: &'a Analysis,
    pub(super) context: &'a Context,
    pub(super) work: &'a Work,
    /// The binding of this request's tokens.
    pub(super) binding: u64,
}

/// A page and its metrics.
pub(super) struct Outcome {
    pub(super) answer: Vec<Vec<u8>>,
    pub(super) token: Option<QueryToken>,
    pub(super) metrics: QueryMetrics,
    pub(super) report: IndexUse,
    pub(super) renewals: Vec<SlidingRenewal>,
}

/// The state of a page so far.
#[derive(Default)]
struct Progress {
    metrics: QueryMetrics,
    report: Report,
    renewals: Vec<SlidingRenewal>,
}

/// The end of a page that is not the last one.
struct Stop {
    partition: PartitionId,
    position: Option<Position>,
    /// The key of the last visited item, where it differs from that of the last row.
    after: Option<Vec<u8>>,
    in_memory: bool,
}

impl<'a> Paging<'a> {
    /// Returns the page.
    pub(super) fn page(
        &self,
        contexts: &'a [QueryContext<'a>],
        token: Option<QueryToken>,
    ) -> Result<Outcome> {
        let mut progress = Progress::default();
        if matches!(token, Some(QueryToken { position: Some(Position::End), .. })) {
            return Ok(self.outcome(Answer { rows: Vec::new(), resume: None }, None, progress));
        }
        progress.report.consider(self.analysis, contexts);
        if !self.query.reads_items() {
            let answer = self.run(Arrival::Any, token.map(|token| token.resume)).finish()?;
            return Ok(self.outcome(answer, None, progress));
        }
        let token = self.resumed(contexts, token)?;
        if self.query.is_ranked() {
            return self.ranked(contexts, token, progress);
        }
        if let Sorting::Paths(keys) = &self.analysis.sorting
            && self.query.is_streaming(Arrival::InOrder)
            && !token.as_ref().is_some_and(|token| token.in_memory)
            && !self.is_worth_sorting(contexts, keys)?
            && let Some(walks) = self.walks(contexts, keys, token.as_ref(), &mut progress)?
        {
            return self.in_order(contexts, Merged::new(walks), token, progress);
        }
        if self.query.is_streaming(Arrival::Any) {
            return self.stream(contexts, token, progress);
        }
        self.all_at_once(contexts, token, progress)
    }

    /// Returns the token, or the position that a client's resume filter names.
    fn resumed(
        &self,
        contexts: &[QueryContext<'_>],
        token: Option<QueryToken>,
    ) -> Result<Option<QueryToken>> {
        if let Some(mut token) = token {
            if let Some(shortened) = token.shortened.take() {
                token.resume.after = Some(self.lengthened(contexts, shortened)?);
            }
            return Ok(Some(token));
        }
        let Some(filter) = &self.request.resume_filter else { return Ok(None) };
        if self.query.sort_keys() != filter.values.len() || filter.values.is_empty() {
            return Err(Error::invalid(
                "A resume filter needs one value for each key of the query's ORDER BY.",
            ));
        }
        let number = filter.number.map_or(0, |number| number.0);
        let mut after = query::resume_key(self.query, &filter.values, number, false);
        if filter.number.is_none() {
            after.truncate(after.len() - size_of::<u64>());
        }
        if filter.exclude {
            // Behind every row of the item, or of all items with these values.
            after.extend_from_slice(&[0xFF; 12][..if filter.number.is_some() { 4 } else { 12 }]);
        }
        let resume = Resume { passed: 0, within: None, after: Some(after) };
        let partition = contexts.first().map_or(PartitionId(0), |ctx| ctx.partition.id);
        let (binding, position, shortened, in_memory) = (self.binding, None, None, false);
        Ok(Some(QueryToken { binding, partition, position, resume, shortened, in_memory }))
    }

    /// Returns the whole of a key that was too long for a token: from the item, or, if the item was removed or changed,
    /// the part that the token has. Then rows that begin with that part are returned again rather than lost.
    fn lengthened(&self, contexts: &[QueryContext<'_>], shortened: ShortenedKey) -> Result<Vec<u8>> {
        let Sorting::Paths(keys) = &self.analysis.sorting else { return Ok(shortened.head) };
        let [tie @ .., _, _, _, _] = shortened.tail;
        let descends = keys.first().is_some_and(|key| key.descending);
        let rank = u64::from_be_bytes(tie);
        let number = ItemNumber(if descends { !rank } else { rank });
        let Some((ctx, record)) = find(contexts, number)? else { return Ok(shortened.head) };
        let mut key = refine::sort_key(ctx, keys, record);
        key.extend_from_slice(&shortened.tail);
        Ok(if shortened.is_of(&key) { key } else { shortened.head })
    }

    fn run(&self, arrival: Arrival, resume: Option<Resume>) -> Run<'a> {
        let limits = PageLimits { rows: self.request.max_items.max(1), bytes: PAGE_BYTES_MAX as usize };
        Run::new(self.query, self.context, arrival, resume, limits)
    }

    fn outcome(&self, answer: Answer, stop: Option<Stop>, mut progress: Progress) -> Outcome {
        let metrics = &mut progress.metrics;
        metrics.index_entries = self.work.index_entries();
        metrics.output_items = answer.rows.len() as u64;
        metrics.output_bytes = answer.rows.iter().map(|row| row.len() as u64).sum();
        let token = answer.resume.zip(stop).map(|(mut resume, stop)| {
            resume.after = resume.after.max(stop.after);
            QueryToken {
                binding: self.binding,
                partition: stop.partition,
                position: stop.position,
                resume,
                shortened: None,
                in_memory: stop.in_memory,
            }
        });
        let Progress { metrics, report, renewals } = progress;
        Outcome { answer: answer.rows, token, metrics, report: report.finish(), renewals }
    }

    /// Returns rows in the order in which items are read.
    fn stream(
        &self,
        contexts: &'a [QueryContext<'a>],
        token: Option<QueryToken>,
        mut progress: Progress,
    ) -> Result<Outcome> {
        self.work.end_in_time();
        let (mut place, resume) = match token {
            Some(token) => (Some((token.partition, token.position)), Some(token.resume)),
            None => (None, None),
        };
        let mut run = self.run(Arrival::Any, resume);
        for ctx in contexts {
            if place.as_ref().is_some_and(|(partition, _)| *partition != ctx.partition.id) {
                continue;
            }
            let mut dealt_with = place.take().and_then(|(_, position)| position);
            let partition_query = partition_query(self.query, self.analysis, &self.request.scope, ctx);
            let mut chosen = choose(ctx, &partition_query, dealt_with.clone())?;
            let mut items = ItemReader::new(ctx);
            progress.report.use_indexes(&chosen.used);
            let stop =
                |position| Stop { partition: ctx.partition.id, position, after: None, in_memory: false };
            loop {
                match chosen.source.next()? {
                    SourceStep::End => break,
                    SourceStep::Pause(position) => {
                        return Ok(self.outcome(run.pause()?, Some(stop(Some(position))), progress));
                    }
                    SourceStep::Item(mut arriving) => {
                        match self.take(&mut run, &mut items, &chosen, &mut arriving, &mut progress)? {
                            Flow::More => dealt_with = Some(arriving.position),
                            Flow::Full => {
                                return Ok(self.outcome(run.finish()?, Some(stop(dealt_with)), progress));
                            }
                            Flow::Enough => return Ok(self.outcome(run.finish()?, None, progress)),
                        }
                        if self.work.is_spent() {
                            return Ok(self.outcome(run.pause()?, Some(stop(dealt_with)), progress));
                        }
                    }
                }
            }
        }
        if place.is_some() {
            return Err(continuation::foreign());
        }
        let is_complete = run.is_complete();
        let last = self.outcome(run.finish()?, None, progress);
        Ok(if is_complete { last } else { self.followed(last) })
    }

    /// Returns the page behind whose rows the items have ended, followed by an empty one if it is full and the request
    /// wants that.
    fn followed(&self, last: Outcome) -> Outcome {
        let is_full = last.answer.len() >= self.request.max_items.max(1);
        let is_followed = is_full && self.request.full_page == FullPage::HasSuccessor;
        Outcome { token: is_followed.then(|| QueryToken::end(self.binding)), ..last }
    }

    /// Visits all items before the first row is shown.
    fn all_at_once(
        &self,
        contexts: &'a [QueryContext<'a>],
        token: Option<QueryToken>,
        mut progress: Progress,
    ) -> Result<Outcome> {
        let in_memory = token.as_ref().is_some_and(|token| token.in_memory);
        let mut run = self.run(Arrival::Any, token.map(|token| token.resume));
        'all: for ctx in contexts {
            let partition_query = partition_query(self.query, self.analysis, &self.request.scope, ctx);
            if partition_query.purpose == Purpose::Count
                && partition_query.exact
                && partition_query.condition == Condition::Everything
            {
                run.push_count(ctx.view.usage()?.living.items);
                continue;
            }
            let mut chosen = choose(ctx, &partition_query, None)?;
            let mut items = ItemReader::new(ctx);
            progress.report.use_indexes(&chosen.used);
            while let SourceStep::Item(mut arriving) = chosen.source.next()? {
                if self.take(&mut run, &mut items, &chosen, &mut arriving, &mut progress)? == Flow::Enough {
                    break 'all;
                }
            }
        }
        let partition = contexts.first().map_or(PartitionId(0), |ctx| ctx.partition.id);
        let stop = Stop { partition, position: None, after: None, in_memory };
        let answer = run.finish()?;
        self.bound_key(&answer)?;
        Ok(self.outcome(answer, Some(stop), progress))
    }

    /// Takes one item, from its entry alone where that is enough.
    fn take(
        &self,
        run: &mut Run<'_>,
        items: &mut ItemReader<'_>,
        chosen: &ChosenPlan<'_>,
        arriving: &mut SourceItem,
        progress: &mut Progress,
    ) -> Result<Flow> {
        if chosen.exact && arriving.exact && self.query.counts_only() {
            run.push_count(1);
            return Ok(Flow::More);
        }
        if let (Some(path), Some(indexed)) = (&chosen.covers, &arriving.indexed) {
            return Ok(run.push(&Covered { path, indexed }, arriving.number.0)?);
        }
        let record = match arriving.record.take() {
            Some(record) => Some(record),
            None => items.load(arriving.number)?,
        };
        self.take_record(run, items.ctx, record, progress)
    }

    fn take_record(
        &self,
        run: &mut Run<'_>,
        ctx: &QueryContext<'_>,
        record: Option<Record>,
        progress: &mut Progress,
    ) -> Result<Flow> {
        let Some(record) = record else { return Ok(Flow::More) };
        if !in_scope(&self.request.scope, self.container, &record) {
            return Ok(Flow::More);
        }
        let (number, size, rows) = (record.number.0, record.size(), run.rows());
        let renewal = self.renewal_of(ctx, &record);
        let flow = run.push(&Item::new(self.container.rid, record), number)?;
        if run.rows() > rows {
            progress.renewals.extend(renewal);
        }
        // An item that did not fit is loaded for the page it is on.
        if flow != Flow::Full {
            progress.metrics.loaded_items += 1;
            progress.metrics.loaded_bytes += size;
        }
        Ok(flow)
    }

    /// Returns the renewal that showing an item calls for: clients read many items by a query for whole items of
    /// known ids (T33).
    fn renewal_of(&self, ctx: &QueryContext<'_>, record: &Record) -> Option<SlidingRenewal> {
        let partition = &self.container.partitions[ctx.partition.index];
        let renewal = SlidingRenewal::of(partition, &ctx.view.gate, record.number, &record.header)?;
        (self.analysis.access.ids.is_some() && self.query.selects_items()).then_some(renewal)
    }

    /// Shows rows in the order of the indexes.
    fn in_order(
        &self,
        contexts: &'a [QueryContext<'a>],
        mut merged: Merged<'a>,
        token: Option<QueryToken>,
        mut progress: Progress,
    ) -> Result<Outcome> {
        self.work.end_in_time();
        let resume = token.map(|token| token.resume);
        let before = resume.as_ref().and_then(|resume| resume.after.clone());
        let mut run = self.run(Arrival::InOrder, resume);
        let covers = self.covered_key();
        let mut dealt_with: Option<Vec<u8>> = None;
        let stop = |after, in_memory| {
            let partition = contexts.first().map_or(PartitionId(0), |ctx| ctx.partition.id);
            Some(Stop { partition, position: None, after, in_memory })
        };
        loop {
            let (at, next) = merged.next()?;
            match next {
                Sorted::End => return Ok(self.outcome(run.finish()?, None, progress)),
                Sorted::Overflow => return Ok(self.outcome(run.pause()?, stop(dealt_with, true), progress)),
                Sorted::Pause(sort, rank) => {
                    let after = Some(item_key(&sort, rank));
                    return Ok(self.outcome(run.pause()?, stop(after, false), progress));
                }
                Sorted::Item(mut passing) => {
                    let ctx = &contexts[at];
                    let flow = if let (Some(path), Some(indexed)) = (&covers, &passing.indexed) {
                        run.push(&Covered { path, indexed }, passing.number.0)?
                    } else {
                        let record = match passing.record.take() {
                            Some(record) => Some(record),
                            None => ctx.load(passing.number)?,
                        };
                        self.take_record(&mut run, ctx, record, &mut progress)?
                    };
                    match flow {
                        Flow::More => dealt_with = Some(item_key(&passing.sort, passing.rank)),
                        Flow::Full => {
                            return Ok(self.outcome(run.finish()?, stop(None, false), progress));
                        }
                        Flow::Enough => return Ok(self.outcome(run.finish()?, None, progress)),
                    }
                    // A cursor may begin with items that earlier pages have returned, and must get past them.
                    if self.work.is_spent() && dealt_with > before {
                        return Ok(self.outcome(run.pause()?, stop(dealt_with, false), progress));
                    }
                }
            }
        }
    }

    /// Returns the path whose value alone answers a query that is read in its order.
    fn covered_key(&self) -> Option<Vec<query::Segment>> {
        let references = &self.analysis.references;
        let Sorting::Paths(keys) = &self.analysis.sorting else { return None };
        let ([key], true) = (keys.as_slice(), references.paths.len() == 1) else { return None };
        let path: Vec<_> = key.path.iter().cloned().map(query::Segment::Name).collect();
        let scope = &self.request.scope;
        let alone = !references.whole && scope.key.is_none() && scope.range.is_none();
        (alone && references.paths.contains(&path)).then_some(path)
    }

    /// Returns whether so few items match that sorting them costs less than reading all items in order.
    fn is_worth_sorting(&self, contexts: &[QueryContext<'_>], keys: &[SortPath]) -> Result<bool> {
        let Some(first) = contexts.first() else { return Ok(false) };
        let condition = partition_query(self.query, self.analysis, &self.request.scope, first).condition;
        let by_first = keys.first().and_then(|key| leaf_at(&condition, &key.path));
        let only_by_first =
            matches!((&condition, by_first), (Condition::Leaf(leaf), Some(first)) if leaf == first);
        let plan = first.index.as_ref().and_then(|index| by_composite::plan(index, &condition, keys));
        let keeps_to_it = only_by_first || plan.is_some_and(|plan| plan.keeps_to(&condition));
        if condition == Condition::Everything || keeps_to_it {
            return Ok(false);
        }
        let mut living = 0;
        for ctx in contexts {
            living += ctx.view.usage()?.living.items;
        }
        let tuning = &self.work.tuning;
        // With `n` of them spread evenly, a page of `p` rows reads past `p * living / n` items.
        let even = (self.request.max_items as u64).saturating_mul(living).isqrt();
        let most = usize::try_from(even).unwrap_or(usize::MAX).clamp(tuning.probe, tuning.sort_probe);
        let mut matching = 0;
        for ctx in contexts {
            let Some(count) = estimate(ctx, &condition, most)? else { return Ok(false) };
            matching += count;
        }
        Ok(matching < most)
    }

    /// Returns a cursor in the query's order for every partition, or `None` if one of them has no index for it.
    fn walks(
        &self,
        contexts: &'a [QueryContext<'a>],
        keys: &'a [SortPath],
        token: Option<&QueryToken>,
        progress: &mut Progress,
    ) -> Result<Option<Vec<Refined<'a>>>> {
        let after = token.and_then(|token| token.resume.after.as_deref());
        let mut walks = Vec::with_capacity(contexts.len());
        for ctx in contexts {
            let Some(walk) = self.walk(ctx, keys, after, progress)? else { return Ok(None) };
            walks.push(walk);
        }
        Ok(Some(walks))
    }

    fn walk(
        &self,
        ctx: &'a QueryContext<'a>,
        keys: &'a [SortPath],
        after: Option<&[u8]>,
        progress: &mut Progress,
    ) -> Result<Option<Refined<'a>>> {
        let partition_query = partition_query(self.query, self.analysis, &self.request.scope, ctx);
        let plan =
            ctx.index.as_ref().and_then(|index| by_composite::plan(index, &partition_query.condition, keys));
        if let (Some(index), Some(plan)) =
            (&ctx.index, plan.filter(|plan| keys.len() > 1 || plan.is_narrower()))
        {
            // Outliers are in no composite index.
            if !matches!(ctx.outliers(index, Direction::Forward).seek(0)?, super::numbers::Next::End) {
                return Ok(None);
            }
            progress.report.use_order(&plan);
            let walk = Box::new(plan.open(ctx, index, after));
            return Ok(Some(Refined::new(ctx, walk, keys, plan.ties_in_order)));
        }
        let [key] = keys else { return Ok(None) };
        let direction = if key.descending { Direction::Backward } else { Direction::Forward };
        let start = after.and_then(|after| start(after, key));
        let walk: Box<dyn SortedCursor + 'a> = if key.path == ["_ts"] {
            Box::new(TimestampCursor::open(ctx, partition_query.stamps, direction, start.as_ref()))
        } else {
            let leaf = leaf_at(&partition_query.condition, &key.path).cloned();
            let path = key.path.iter().cloned().map(query::Step::Name).collect();
            let leaf = leaf.unwrap_or_else(|| query::Leaf::any(path));
            let Some(walk) = PathCursor::open(ctx, &leaf, direction, start)? else { return Ok(None) };
            progress.report.use_indexes(&Used::path(&leaf.path));
            Box::new(walk)
        };
        Ok(Some(Refined::new(ctx, walk, keys, true)))
    }

    /// Scores all matching items, then returns them best first.
    fn ranked(
        &self,
        contexts: &'a [QueryContext<'a>],
        token: Option<QueryToken>,
        mut progress: Progress,
    ) -> Result<Outcome> {
        let (passed, resume) = match token {
            None => (0, None),
            Some(QueryToken { position: Some(Position::Ranked(passed)), resume, .. }) => {
                (passed, Some(resume))
            }
            Some(_) => return Err(continuation::foreign()),
        };
        let mut run = self.run(Arrival::InOrder, resume);
        let numbers = self.ranking(contexts, &mut progress)?;
        let partition = contexts.first().map_or(PartitionId(0), |ctx| ctx.partition.id);
        for (at, number) in (0_u64..).zip(numbers).skip(usize::try_from(passed).unwrap_or(usize::MAX)) {
            let Some((ctx, record)) = find(contexts, ItemNumber(number))? else { continue };
            match self.take_record(&mut run, ctx, Some(record), &mut progress)? {
                Flow::More => {}
                Flow::Full => {
                    let position = Some(Position::Ranked(at));
                    let stop = Stop { partition, position, after: None, in_memory: false };
                    return Ok(self.outcome(run.finish()?, Some(stop), progress));
                }
                Flow::Enough => break,
            }
        }
        Ok(self.outcome(run.finish()?, None, progress))
    }

    /// Returns the numbers of all matching items, best first.
    fn ranking(&self, contexts: &'a [QueryContext<'a>], progress: &mut Progress) -> Result<Vec<u64>> {
        let Some(mut ranking) = Ranking::of(self.query, self.context) else { return Ok(Vec::new()) };
        if ranking.needs_statistics() {
            for ctx in contexts {
                let mut items = FullScan::new(ctx, None);
                while let SourceStep::Item(arriving) = items.next()? {
                    if let Some(record) = self.in_scope(arriving.record) {
                        ranking.observe(&Item::new(self.container.rid, record))?;
                    }
                }
            }
        }
        for ctx in contexts {
            let partition_query = partition_query(self.query, self.analysis, &self.request.scope, ctx);
            let mut chosen = choose(ctx, &partition_query, None)?;
            progress.report.use_indexes(&chosen.used);
            while let SourceStep::Item(arriving) = chosen.source.next()? {
                let record = match arriving.record {
                    Some(record) => Some(record),
                    None => ctx.load(arriving.number)?,
                };
                if let Some(record) = self.in_scope(record) {
                    progress.metrics.loaded_items += 1;
                    progress.metrics.loaded_bytes += record.size();
                    ranking.score(&Item::new(self.container.rid, record), arriving.number.0)?;
                }
            }
        }
        Ok(ranking.finish())
    }

    /// Refuses a key of a group or of a distinct row that is too long for a token: it belongs to no item, so it
    /// cannot be shortened. Without this error, clients would drop the header.
    fn bound_key(&self, answer: &Answer) -> Result<()> {
        let sorts_items = matches!(self.analysis.sorting, Sorting::Paths(_));
        let belongs_to_item = sorts_items && self.query.is_streaming(Arrival::InOrder);
        match &answer.resume {
            Some(Resume { after: Some(after), .. }) if after.len() > KEY_BYTES_MAX && !belongs_to_item => {
                Err(Error::invalid(format!(
                    "A page of this query ends at a value of {} bytes; to go on from there it may have \
                     {KEY_BYTES_MAX}. Ask for more rows in one page, or for less of the value.",
                    after.len()
                )))
            }
            _ => Ok(()),
        }
    }

    fn in_scope(&self, record: Option<Record>) -> Option<Record> {
        record.filter(|record| in_scope(&self.request.scope, self.container, record))
    }
}

/// Returns the living item of that number, in any of the partitions.
fn find<'d, 'a>(
    contexts: &'d [QueryContext<'a>],
    number: ItemNumber,
) -> Result<Option<(&'d QueryContext<'a>, Record)>> {
    for ctx in contexts {
        if let Some(record) = ctx.load(number)? {
            return Ok(Some((ctx, record)));
        }
    }
    Ok(None)
}

/// Returns the key behind every row of an item.
fn item_key(sort: &[u8], rank: u64) -> Vec<u8> {
    [sort, &rank.to_be_bytes(), &u32::MAX.to_be_bytes()].concat()
}

/// Returns where a cursor begins that has to return everything behind the key of a row.
fn start(after: &[u8], key: &SortPath) -> Option<CursorStart> {
    use document::{decode_key, decode_key_descending};
    let (value, rest) = if key.descending { decode_key_descending(after) } else { decode_key(after) }.ok()?;
    let rank = u64::from_be_bytes(*rest.first_chunk()?);
    Some(super::by_path::start(value.as_ref().map(document::Value::view), rank, key.descending))
}
