//! Taking items into a page: as they come, in the order of an index, sorted in memory, or by rank.

use document::ItemNumber;
use query::{
    Analysis, Answer, Arrival, Condition, Context, Flow, PageLimits, Query, Ranking, Resume, Run, SortPath,
    Sorting,
};
use storage::Direction;

use super::by_composite::{self, leaf_at};
use super::by_path::{PathWalk, Start, Walk};
use super::by_stamp::StampWalk;
use super::choose::{Chosen, Purpose, choose, estimate};
use super::desk::Desk;
use super::numbers::Numbers as _;
use super::refine::{self, Merged, Refined, Sorted};
use super::report::Report;
use super::row::Covered;
use super::sources::{Arriving, Coming, Everything, Source as _};
use super::wish;
use super::work::Work;
use crate::container::Container;
use crate::continuation::{self, KEY_BYTES_MAX, Position, QueryToken, ShortenedKey};
use crate::error::{Error, Result};
use crate::header::Record;
use crate::item::Item;
use crate::keys::PartitionId;
use crate::limits::PAGE_BYTES_MAX;
use crate::operation::{IndexUse, QueryMetrics, QueryRequest};
use crate::read::in_scope;
use crate::touch::Touch;

/// One request.
pub(super) struct Paging<'a> {
    pub(super) container: &'a Container,
    pub(super) query: &'a Query,
    pub(super) request: &'a QueryRequest<'a>,
    pub(super) analysis: &'a Analysis,
    pub(super) context: &'a Context,
    pub(super) work: &'a Work,
    /// What tokens of this request are bound to.
    pub(super) binding: u64,
}

/// A page and what it took.
pub(super) struct Outcome {
    pub(super) answer: Vec<Vec<u8>>,
    pub(super) token: Option<QueryToken>,
    pub(super) metrics: QueryMetrics,
    pub(super) report: IndexUse,
    pub(super) touches: Vec<Touch>,
}

/// What a page has come to so far.
#[derive(Default)]
struct Progress {
    metrics: QueryMetrics,
    report: Report,
    touches: Vec<Touch>,
}

/// Where a page ends that is not the last one.
struct Stop {
    partition: PartitionId,
    position: Option<Position>,
    /// The key of the last item dealt with, where it is not the one of the last row.
    after: Option<Vec<u8>>,
    in_memory: bool,
}

impl<'a> Paging<'a> {
    /// Makes the page.
    pub(super) fn page(&self, desks: &'a [Desk<'a>], token: Option<QueryToken>) -> Result<Outcome> {
        let mut progress = Progress::default();
        progress.report.consider(self.analysis, desks);
        if !self.query.reads_items() {
            let answer = self.run(Arrival::Any, token.map(|token| token.resume)).finish()?;
            return Ok(self.outcome(answer, None, progress));
        }
        let token = self.resumed(desks, token)?;
        if self.query.is_ranked() {
            return self.ranked(desks, token, progress);
        }
        if let Sorting::Paths(keys) = &self.analysis.sorting
            && self.query.is_streaming(Arrival::InOrder)
            && !token.as_ref().is_some_and(|token| token.in_memory)
            && !self.is_worth_sorting(desks, keys)?
            && let Some(walks) = self.walks(desks, keys, token.as_ref(), &mut progress)?
        {
            return self.in_order(desks, Merged::new(walks), token, progress);
        }
        if self.query.is_streaming(Arrival::Any) {
            return self.stream(desks, token, progress);
        }
        self.all_at_once(desks, token, progress)
    }

    /// The token, or what a client says about where it wants to go on.
    fn resumed(&self, desks: &[Desk<'_>], token: Option<QueryToken>) -> Result<Option<QueryToken>> {
        if let Some(mut token) = token {
            if let Some(shortened) = token.shortened.take() {
                token.resume.after = Some(self.lengthened(desks, shortened)?);
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
        let partition = desks.first().map_or(PartitionId(0), |desk| desk.partition.id);
        let (binding, position, shortened, in_memory) = (self.binding, None, None, false);
        Ok(Some(QueryToken { binding, partition, position, resume, shortened, in_memory }))
    }

    /// The whole of a key that was too long for a token: from the item, or, if that has gone or changed, as much as the
    /// token has; rows that begin so are shown again rather than lost.
    fn lengthened(&self, desks: &[Desk<'_>], shortened: ShortenedKey) -> Result<Vec<u8>> {
        let Sorting::Paths(keys) = &self.analysis.sorting else { return Ok(shortened.head) };
        let [tie @ .., _, _, _, _] = shortened.tail;
        let descends = keys.first().is_some_and(|key| key.descending);
        let rank = u64::from_be_bytes(tie);
        let number = ItemNumber(if descends { !rank } else { rank });
        let Some((desk, record)) = find(desks, number)? else { return Ok(shortened.head) };
        let mut key = refine::sort_key(desk, keys, record);
        key.extend_from_slice(&shortened.tail);
        Ok(if shortened.is_of(&key) { key } else { shortened.head })
    }

    fn run(&self, arrival: Arrival, resume: Option<Resume>) -> Run<'a> {
        let limits = PageLimits { rows: self.request.max_items.max(1), bytes: PAGE_BYTES_MAX as usize };
        Run::new(self.query, self.context, arrival, resume, limits)
    }

    fn outcome(&self, answer: Answer, stop: Option<Stop>, mut progress: Progress) -> Outcome {
        let metrics = &mut progress.metrics;
        metrics.index_entries = self.work.touched();
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
        let Progress { metrics, report, touches } = progress;
        Outcome { answer: answer.rows, token, metrics, report: report.finish(), touches }
    }

    /// Shows rows as the items come.
    fn stream(
        &self,
        desks: &'a [Desk<'a>],
        token: Option<QueryToken>,
        mut progress: Progress,
    ) -> Result<Outcome> {
        self.work.end_in_time();
        let (mut place, resume) = match token {
            Some(token) => (Some((token.partition, token.position)), Some(token.resume)),
            None => (None, None),
        };
        let mut run = self.run(Arrival::Any, resume);
        for desk in desks {
            if place.as_ref().is_some_and(|(partition, _)| *partition != desk.partition.id) {
                continue;
            }
            let mut dealt_with = place.take().and_then(|(_, position)| position);
            let wish = wish(self.query, self.analysis, &self.request.scope, desk);
            let mut chosen = choose(desk, &wish, dealt_with.clone())?;
            progress.report.use_paths(&chosen.used);
            let stop =
                |position| Stop { partition: desk.partition.id, position, after: None, in_memory: false };
            loop {
                match chosen.source.next()? {
                    Coming::End => break,
                    Coming::Pause(position) => {
                        return Ok(self.outcome(run.pause()?, Some(stop(Some(position))), progress));
                    }
                    Coming::Item(mut arriving) => {
                        match self.take(&mut run, desk, &chosen, &mut arriving, &mut progress)? {
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
        Ok(self.outcome(run.finish()?, None, progress))
    }

    /// Lets all items go by before the first row is shown.
    fn all_at_once(
        &self,
        desks: &'a [Desk<'a>],
        token: Option<QueryToken>,
        mut progress: Progress,
    ) -> Result<Outcome> {
        let in_memory = token.as_ref().is_some_and(|token| token.in_memory);
        let mut run = self.run(Arrival::Any, token.map(|token| token.resume));
        'all: for desk in desks {
            let wish = wish(self.query, self.analysis, &self.request.scope, desk);
            if wish.purpose == Purpose::Count && wish.exact && wish.condition == Condition::Everything {
                run.push_count(desk.view.usage()?.living.items);
                continue;
            }
            let mut chosen = choose(desk, &wish, None)?;
            progress.report.use_paths(&chosen.used);
            while let Coming::Item(mut arriving) = chosen.source.next()? {
                if self.take(&mut run, desk, &chosen, &mut arriving, &mut progress)? == Flow::Enough {
                    break 'all;
                }
            }
        }
        let partition = desks.first().map_or(PartitionId(0), |desk| desk.partition.id);
        let stop = Stop { partition, position: None, after: None, in_memory };
        let answer = run.finish()?;
        self.bound_key(&answer)?;
        Ok(self.outcome(answer, Some(stop), progress))
    }

    /// Takes one item, from its entry alone where that will do.
    fn take(
        &self,
        run: &mut Run<'_>,
        desk: &Desk<'_>,
        chosen: &Chosen<'_>,
        arriving: &mut Arriving,
        progress: &mut Progress,
    ) -> Result<Flow> {
        if chosen.exact && arriving.exact && self.query.counts_only() {
            run.push_count(1);
            return Ok(Flow::More);
        }
        if let (Some(path), Some(told)) = (&chosen.covers, &arriving.told) {
            return Ok(run.push(&Covered { path, told }, arriving.number.0)?);
        }
        let record = match arriving.record.take() {
            Some(record) => Some(record),
            None => desk.load(arriving.number)?,
        };
        self.take_record(run, desk, record, progress)
    }

    fn take_record(
        &self,
        run: &mut Run<'_>,
        desk: &Desk<'_>,
        record: Option<Record>,
        progress: &mut Progress,
    ) -> Result<Flow> {
        let Some(record) = record else { return Ok(Flow::More) };
        if !in_scope(&self.request.scope, self.container, desk.partition, &record) {
            return Ok(Flow::More);
        }
        let (number, size, rows) = (record.number.0, record.size(), run.rows());
        let touch = self.touch_of(desk, &record);
        let flow = run.push(&Item::new(self.container.rid, record), number)?;
        if run.rows() > rows {
            progress.touches.extend(touch);
        }
        // The item that did not fit will be loaded for the page it is on.
        if flow != Flow::Full {
            progress.metrics.loaded_items += 1;
            progress.metrics.loaded_bytes += size;
        }
        Ok(flow)
    }

    /// The countdown that showing an item restarts: a query for whole items of known ids is how clients read many (T33).
    fn touch_of(&self, desk: &Desk<'_>, record: &Record) -> Option<Touch> {
        let partition = &self.container.partitions[desk.partition.index];
        let touch = Touch::of(partition, &desk.view.gate, record.number, &record.header)?;
        (self.analysis.access.ids.is_some() && self.query.selects_items()).then_some(touch)
    }

    /// Shows rows in the order in which the indexes have them.
    fn in_order(
        &self,
        desks: &'a [Desk<'a>],
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
            let partition = desks.first().map_or(PartitionId(0), |desk| desk.partition.id);
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
                    let desk = &desks[at];
                    let flow = if let (Some(path), Some(told)) = (&covers, &passing.told) {
                        run.push(&Covered { path, told }, passing.number.0)?
                    } else {
                        let record = match passing.record.take() {
                            Some(record) => Some(record),
                            None => desk.load(passing.number)?,
                        };
                        self.take_record(&mut run, desk, record, &mut progress)?
                    };
                    match flow {
                        Flow::More => dealt_with = Some(item_key(&passing.sort, passing.rank)),
                        Flow::Full => {
                            return Ok(self.outcome(run.finish()?, stop(None, false), progress));
                        }
                        Flow::Enough => return Ok(self.outcome(run.finish()?, None, progress)),
                    }
                    // A walk may begin with what earlier pages have shown, and must get behind that.
                    if self.work.is_spent() && dealt_with > before {
                        return Ok(self.outcome(run.pause()?, stop(dealt_with, false), progress));
                    }
                }
            }
        }
    }

    /// The path whose value alone answers a query that is walked in its order.
    fn covered_key(&self) -> Option<Vec<query::Segment>> {
        let references = &self.analysis.references;
        let Sorting::Paths(keys) = &self.analysis.sorting else { return None };
        let ([key], true) = (keys.as_slice(), references.paths.len() == 1) else { return None };
        let path: Vec<_> = key.path.iter().cloned().map(query::Segment::Name).collect();
        let scope = &self.request.scope;
        let alone = !references.whole && scope.key.is_none() && scope.range.is_none();
        (alone && references.paths.contains(&path)).then_some(path)
    }

    /// Whether so few items match that sorting them costs less than walking in order past those that do not.
    fn is_worth_sorting(&self, desks: &[Desk<'_>], keys: &[SortPath]) -> Result<bool> {
        let Some(first) = desks.first() else { return Ok(false) };
        let condition = wish(self.query, self.analysis, &self.request.scope, first).condition;
        let by_first = keys.first().and_then(|key| leaf_at(&condition, &key.path));
        let only_by_first =
            matches!((&condition, by_first), (Condition::Leaf(leaf), Some(first)) if leaf == first);
        let plan = first.index.as_ref().and_then(|index| by_composite::plan(index, &condition, keys));
        let keeps_to_it = only_by_first || plan.is_some_and(|plan| plan.keeps_to(&condition));
        if condition == Condition::Everything || keeps_to_it {
            return Ok(false);
        }
        let mut living = 0;
        for desk in desks {
            living += desk.view.usage()?.living.items;
        }
        let tuning = &self.work.tuning;
        // With `n` of them spread evenly, a page of `p` rows walks past `p * living / n` items.
        let even = (self.request.max_items as u64).saturating_mul(living).isqrt();
        let most = usize::try_from(even).unwrap_or(usize::MAX).clamp(tuning.probe, tuning.sort_probe);
        let mut matching = 0;
        for desk in desks {
            let Some(count) = estimate(desk, &condition, most)? else { return Ok(false) };
            matching += count;
        }
        Ok(matching < most)
    }

    /// A walk in the query's order for every partition; none if one of them has no index for it.
    fn walks(
        &self,
        desks: &'a [Desk<'a>],
        keys: &'a [SortPath],
        token: Option<&QueryToken>,
        progress: &mut Progress,
    ) -> Result<Option<Vec<Refined<'a>>>> {
        let after = token.and_then(|token| token.resume.after.as_deref());
        let mut walks = Vec::with_capacity(desks.len());
        for desk in desks {
            let Some(walk) = self.walk(desk, keys, after, progress)? else { return Ok(None) };
            walks.push(walk);
        }
        Ok(Some(walks))
    }

    fn walk(
        &self,
        desk: &'a Desk<'a>,
        keys: &'a [SortPath],
        after: Option<&[u8]>,
        progress: &mut Progress,
    ) -> Result<Option<Refined<'a>>> {
        let wish = wish(self.query, self.analysis, &self.request.scope, desk);
        let plan = desk.index.as_ref().and_then(|index| by_composite::plan(index, &wish.condition, keys));
        if let (Some(index), Some(plan)) =
            (&desk.index, plan.filter(|plan| keys.len() > 1 || plan.is_narrower()))
        {
            // Outliers are in no composite index.
            if !matches!(desk.outliers(index, Direction::Forward).seek(0)?, super::numbers::Next::End) {
                return Ok(None);
            }
            progress.report.use_composite(&plan);
            let walk = Box::new(plan.open(desk, index, after));
            return Ok(Some(Refined::new(desk, walk, keys, plan.ties_in_order)));
        }
        let [key] = keys else { return Ok(None) };
        let direction = if key.descending { Direction::Backward } else { Direction::Forward };
        let start = after.and_then(|after| start(after, key));
        let walk: Box<dyn Walk + 'a> = if key.path == ["_ts"] {
            Box::new(StampWalk::open(desk, wish.stamps, direction, start.as_ref()))
        } else {
            let leaf = leaf_at(&wish.condition, &key.path).cloned();
            let path = key.path.iter().cloned().map(query::Step::Name).collect();
            let leaf = leaf.unwrap_or_else(|| query::Leaf::any(path));
            let Some(walk) = PathWalk::open(desk, &leaf, direction, start)? else { return Ok(None) };
            progress.report.use_paths(std::slice::from_ref(&leaf.path));
            Box::new(walk)
        };
        Ok(Some(Refined::new(desk, walk, keys, true)))
    }

    /// Scores everything that matches, then shows it best first.
    fn ranked(
        &self,
        desks: &'a [Desk<'a>],
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
        let numbers = self.ranking(desks, &mut progress)?;
        let partition = desks.first().map_or(PartitionId(0), |desk| desk.partition.id);
        for (at, number) in (0_u64..).zip(numbers).skip(usize::try_from(passed).unwrap_or(usize::MAX)) {
            let Some((desk, record)) = find(desks, ItemNumber(number))? else { continue };
            match self.take_record(&mut run, desk, Some(record), &mut progress)? {
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

    /// The numbers of all matching items, best first.
    fn ranking(&self, desks: &'a [Desk<'a>], progress: &mut Progress) -> Result<Vec<u64>> {
        let Some(mut ranking) = Ranking::of(self.query, self.context) else { return Ok(Vec::new()) };
        if ranking.needs_statistics() {
            for desk in desks {
                let mut items = Everything::new(desk, None);
                while let Coming::Item(arriving) = items.next()? {
                    if let Some(record) = self.in_scope(desk, arriving.record) {
                        ranking.observe(&Item::new(self.container.rid, record))?;
                    }
                }
            }
        }
        for desk in desks {
            let wish = wish(self.query, self.analysis, &self.request.scope, desk);
            let mut chosen = choose(desk, &wish, None)?;
            progress.report.use_paths(&chosen.used);
            while let Coming::Item(arriving) = chosen.source.next()? {
                let record = match arriving.record {
                    Some(record) => Some(record),
                    None => desk.load(arriving.number)?,
                };
                if let Some(record) = self.in_scope(desk, record) {
                    progress.metrics.loaded_items += 1;
                    progress.metrics.loaded_bytes += record.size();
                    ranking.score(&Item::new(self.container.rid, record), arriving.number.0)?;
                }
            }
        }
        Ok(ranking.finish())
    }

    /// The key of a group or of a distinct row belongs to no item: too long for a token, it ends the query. Better a
    /// clear word than a client that drops the header.
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

    fn in_scope(&self, desk: &Desk<'_>, record: Option<Record>) -> Option<Record> {
        record.filter(|record| in_scope(&self.request.scope, self.container, desk.partition, record))
    }
}

/// The living item of that number, in whatever partition.
fn find<'d, 'a>(desks: &'d [Desk<'a>], number: ItemNumber) -> Result<Option<(&'d Desk<'a>, Record)>> {
    for desk in desks {
        if let Some(record) = desk.load(number)? {
            return Ok(Some((desk, record)));
        }
    }
    Ok(None)
}

/// The key behind every row of an item.
fn item_key(sort: &[u8], rank: u64) -> Vec<u8> {
    [sort, &rank.to_be_bytes(), &u32::MAX.to_be_bytes()].concat()
}

/// Where a walk begins to come to everything behind the key of a row.
fn start(after: &[u8], key: &SortPath) -> Option<Start> {
    use document::{decode_key, decode_key_descending};
    let (value, rest) = if key.descending { decode_key_descending(after) } else { decode_key(after) }.ok()?;
    let rank = u64::from_be_bytes(*rest.first_chunk()?);
    Some(super::by_path::start(value.as_ref().map(document::Value::view), rank, key.descending))
}
