//! Streams of item numbers in one order, so that several can be joined without keeping any of them in memory.
//!
//! ```text
//!   /a = 1      3     7  8        15
//!   /b = 2         5  7        9  15        intersection: 7, 15       a stream that is behind skips to the others
//!   /c = 3      3           8               union: 3, 7, 8, 15  ...
//! ```
//!
//! A *rank* is the number itself, or its complement where descending order is requested, so that every stream
//! ascends. Expired entries are skipped inside the streams, so whatever is built of streams sees only living items
//! and does the same work whether or not the purge has run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Scan};

use super::context::QueryContext;
use super::probe::ProbedEntry;
use crate::entries::mark::Mark;
use crate::index::IndexEntry;
use crate::types::error::Result;

/// Entries that are passed one by one before a stream seeks.
const STEPS_BEFORE_JUMP: usize = 8;

/// A living item that a stream returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) rank: u64,
    /// Whether the item certainly meets the stream's condition; otherwise it has to be read.
    pub(super) exact: bool,
}

/// The next step of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A living item.
    Found(Candidate),
    /// Nothing below this rank, but the page ends.
    Pause(u64),
    /// Nothing more.
    End,
}

/// An ascending stream of living items.
pub(super) trait NumberStream {
    /// Returns the first item at or behind a rank. Ranks must not decrease from call to call.
    fn seek(&mut self, from: u64) -> Result<Next>;
}

/// Returns the rank of a number.
pub(super) fn rank(number: ItemNumber, direction: Direction) -> u64 {
    match direction {
        Direction::Forward => number.0,
        Direction::Backward => !number.0,
    }
}

/// Returns the number of a rank.
pub(super) fn number(rank: u64, direction: Direction) -> ItemNumber {
    match direction {
        Direction::Forward => ItemNumber(rank),
        Direction::Backward => ItemNumber(!rank),
    }
}

/// The index entries behind one prefix, which only the number follows.
pub(super) struct Entries<'a> {
    ctx: &'a QueryContext<'a>,
    prefix: Vec<u8>,
    direction: Direction,
    exact: bool,
    /// All of the entries in ascending order, if a probe has read them.
    probed: Option<Rc<[ProbedEntry]>>,
    cursor: Option<EntryCursor<'a>>,
    /// The rank of the current living item, if there is one.
    head: Option<u64>,
    ended: bool,
}

impl<'a> Entries<'a> {
    /// Creates the stream; `exact` if every entry certainly meets its condition.
    pub(super) fn new(
        ctx: &'a QueryContext<'a>,
        prefix: Vec<u8>,
        direction: Direction,
        exact: bool,
    ) -> Entries<'a> {
        Entries { ctx, prefix, direction, exact, probed: None, cursor: None, head: None, ended: false }
    }

    /// Creates the stream of entries that a probe has read, in ascending order.
    pub(super) fn probed(ctx: &'a QueryContext<'a>, entries: Rc<[ProbedEntry]>, exact: bool) -> Entries<'a> {
        Entries { probed: Some(entries), ..Entries::new(ctx, Vec::new(), Direction::Forward, exact) }
    }

    fn open(&self, from: u64) -> EntryCursor<'a> {
        if let Some(probed) = &self.probed {
            return EntryCursor::Probed(probed.partition_point(|entry| entry.number.0 < from));
        }
        let mut bound = self.prefix.clone();
        bound.extend_from_slice(&number(from, self.direction).0.to_be_bytes());
        let mut range = KeyRange::prefix(self.prefix.clone());
        match self.direction {
            Direction::Forward => range.start = std::ops::Bound::Included(bound),
            Direction::Backward => range.end = std::ops::Bound::Included(bound),
        }
        EntryCursor::Stored(self.ctx.view.snapshot.scan(Keyspace::Index, range, self.direction))
    }

    /// Returns the cursor's next entry.
    fn step(&mut self) -> Result<Option<Passing>> {
        match &mut self.cursor {
            None => Ok(None),
            Some(EntryCursor::Stored(scan)) => {
                let Some(entry) = scan.next() else { return Ok(None) };
                let (key, value) = entry?;
                let entry = IndexEntry::decode(self.prefix.len(), &key, &value)?;
                Ok(Some(Passing { number: entry.number, liveness: Liveness::Marked(entry.mark) }))
            }
            Some(EntryCursor::Probed(at)) => {
                let entry = self.probed.as_ref().and_then(|probed| probed.get(*at));
                *at += 1;
                Ok(entry.map(|entry| Passing {
                    number: entry.number,
                    liveness: Liveness::Known(entry.is_living),
                }))
            }
        }
    }

    fn is_living(&self, passing: &Passing) -> Result<bool> {
        match &passing.liveness {
            Liveness::Marked(mark) => self.ctx.is_living(passing.number, mark),
            Liveness::Known(is_living) => Ok(*is_living),
        }
    }
}

/// A position among entries.
enum EntryCursor<'a> {
    Stored(Scan<'a>),
    /// The index in the entries that a probe has read.
    Probed(usize),
}

/// An entry that a cursor passes.
struct Passing {
    number: ItemNumber,
    liveness: Liveness,
}

/// What a cursor has found out about an entry's expiry.
enum Liveness {
    Marked(Mark),
    Known(bool),
}

impl NumberStream for Entries<'_> {
    fn seek(&mut self, from: u64) -> Result<Next> {
        if let Some(head) = self.head.filter(|head| *head >= from) {
            return Ok(Next::Found(Candidate { rank: head, exact: self.exact }));
        }
        let mut passed = 0;
        while !self.ended {
            if self.cursor.is_none() || passed == STEPS_BEFORE_JUMP {
                passed = 0;
                self.cursor = Some(self.open(from));
            }
            let Some(entry) = self.step()? else {
                self.ended = true;
                break;
            };
            self.ctx.work.look()?;
            let rank = rank(entry.number, self.direction);
            if rank < from {
                passed += 1;
                continue;
            }
            if self.is_living(&entry)? {
                self.ctx.work.count_entry();
                self.head = Some(rank);
                return Ok(Next::Found(Candidate { rank, exact: self.exact }));
            }
            if self.ctx.work.is_spent() {
                return Ok(Next::Pause(rank.saturating_add(1)));
            }
        }
        self.head = None;
        Ok(Next::End)
    }
}

/// Items that were collected before.
pub(super) struct Collected {
    /// In ascending order, each once.
    candidates: Vec<Candidate>,
    at: usize,
}

impl Collected {
    pub(super) fn new(mut candidates: Vec<Candidate>) -> Collected {
        candidates.sort_unstable_by_key(|candidate| (candidate.rank, !candidate.exact));
        candidates.dedup_by_key(|candidate| candidate.rank);
        Collected { candidates, at: 0 }
    }

    /// Returns the living items of index entries, or `None` if there are more than `most`.
    pub(super) fn of_entries(
        ctx: &QueryContext<'_>,
        entries: impl Iterator<Item = Result<IndexEntry>>,
        most: usize,
        is_exact: impl Fn(&IndexEntry) -> Result<bool>,
    ) -> Result<Option<Collected>> {
        let mut candidates = Vec::new();
        for entry in entries {
            let entry = entry?;
            ctx.work.look()?;
            if !ctx.is_living(entry.number, &entry.mark)? {
                continue;
            }
            if candidates.len() == most {
                return Ok(None);
            }
            candidates.push(Candidate { rank: entry.number.0, exact: is_exact(&entry)? });
        }
        ctx.work.count_entries(candidates.len());
        Ok(Some(Collected::new(candidates)))
    }

    /// Returns how many items there are.
    pub(super) fn len(&self) -> usize {
        self.candidates.len()
    }
}

impl NumberStream for Collected {
    fn seek(&mut self, from: u64) -> Result<Next> {
        self.at += self.candidates[self.at..].partition_point(|candidate| candidate.rank < from);
        Ok(self.candidates.get(self.at).map_or(Next::End, |candidate| Next::Found(*candidate)))
    }
}

/// The intersection of several streams.
pub(super) struct Intersection<'a>(pub(super) Vec<Box<dyn NumberStream + 'a>>);

impl NumberStream for Intersection<'_> {
    fn seek(&mut self, from: u64) -> Result<Next> {
        let mut target = from;
        'again: loop {
            let mut exact = true;
            for stream in &mut self.0 {
                match stream.seek(target)? {
                    Next::Found(candidate) if candidate.rank > target => {
                        target = candidate.rank;
                        continue 'again;
                    }
                    Next::Found(candidate) => exact &= candidate.exact,
                    other => return Ok(other),
                }
            }
            return Ok(Next::Found(Candidate { rank: target, exact }));
        }
    }
}

/// The union of several streams.
pub(super) struct Union<'a> {
    streams: Vec<Box<dyn NumberStream + 'a>>,
    /// The current item of each stream, the smallest rank on top: rank, whether it is inexact, stream.
    heads: BinaryHeap<Reverse<(u64, bool, usize)>>,
    /// Streams that have not begun, or that paused.
    waiting: Vec<usize>,
}

impl<'a> Union<'a> {
    pub(super) fn new(streams: Vec<Box<dyn NumberStream + 'a>>) -> Union<'a> {
        let waiting = (0..streams.len()).collect();
        Union { streams, heads: BinaryHeap::new(), waiting }
    }
}

impl NumberStream for Union<'_> {
    fn seek(&mut self, from: u64) -> Result<Next> {
        while let Some(Reverse((rank, _, stream))) = self.heads.peek().copied()
            && rank < from
        {
            self.heads.pop();
            self.waiting.push(stream);
        }
        // Mostly there is one stream, and another that has no entries.
        if let ([only], true) = (self.waiting.as_slice(), self.heads.is_empty()) {
            let next = self.streams[*only].seek(from)?;
            if next == Next::End {
                self.waiting.clear();
            }
            return Ok(next);
        }
        let mut pause: Option<u64> = None;
        for stream in std::mem::take(&mut self.waiting) {
            match self.streams[stream].seek(from)? {
                Next::Found(Candidate { rank, exact }) => self.heads.push(Reverse((rank, !exact, stream))),
                Next::Pause(bound) => {
                    self.waiting.push(stream);
                    pause = Some(pause.map_or(bound, |other| other.min(bound)));
                }
                Next::End => {}
            }
        }
        match (self.heads.peek(), pause) {
            // Of several streams at one item, one exact stream is enough, and it is on top.
            (Some(Reverse((rank, inexact, _))), pause) if pause.is_none_or(|bound| *rank < bound) => {
                Ok(Next::Found(Candidate { rank: *rank, exact: !inexact }))
            }
            (_, Some(bound)) => Ok(Next::Pause(bound)),
            (_, None) => Ok(Next::End),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that pauses once, before it reaches the given rank.
    struct Pausing<'a>(Box<dyn NumberStream + 'a>, Option<u64>);

    impl NumberStream for Pausing<'_> {
        fn seek(&mut self, from: u64) -> Result<Next> {
            match self.1.take_if(|bound| *bound > from) {
                Some(bound) => Ok(Next::Pause(bound)),
                None => self.0.seek(from),
            }
        }
    }

    fn stream(ranks: &[u64], exact: bool) -> Box<dyn NumberStream> {
        Box::new(Collected::new(ranks.iter().map(|&rank| Candidate { rank, exact }).collect()))
    }

    fn all(mut stream: impl NumberStream) -> Vec<(u64, bool)> {
        let (mut found, mut from) = (Vec::new(), 0);
        while let Next::Found(Candidate { rank, exact }) = stream.seek(from).expect("no store to fail") {
            found.push((rank, exact));
            from = rank + 1;
        }
        found
    }

    #[test]
    fn streams_meet_where_all_of_them_are() {
        let both = Intersection(vec![stream(&[3, 7, 8, 15], true), stream(&[5, 7, 9, 15], false)]);
        assert_eq!(all(both), [(7, false), (15, false)]);
        assert_eq!(all(Intersection(vec![stream(&[1, 2], true), stream(&[], true)])), []);
    }

    #[test]
    fn streams_together_have_each_item_once_and_the_surest_word_counts() {
        let either = Union::new(vec![stream(&[3, 7], false), stream(&[7, 8], true), stream(&[3], true)]);
        assert_eq!(all(either), [(3, true), (7, true), (8, true)]);
    }

    #[test]
    fn a_pause_loses_nothing_that_comes_before_it() {
        let pausing = Pausing(stream(&[2, 9], true), Some(6));
        let mut either = Union::new(vec![Box::new(pausing), stream(&[4, 7], true)]);
        let found = |rank| Next::Found(Candidate { rank, exact: true });
        assert_eq!(either.seek(3), Ok(found(4)));
        assert_eq!(either.seek(5), Ok(found(7)));
        assert_eq!(either.seek(8), Ok(found(9)));
        let mut both =
            Intersection(vec![stream(&[4, 7], true), Box::new(Pausing(stream(&[7], true), Some(6)))]);
        assert_eq!(both.seek(0), Ok(Next::Pause(6)));
        assert_eq!(both.seek(6), Ok(found(7)));
    }
}
