//! Readers of the feed of all versions (T28): one that reads all of it after every step, and some that continue page by page,
//! over crashes and restarts.
//!
//! A page must have the model's events from the reader's position on, none missing, none twice; and the same without purge.

use std::collections::BTreeSet;

use crate::check::compare_item;
use crate::coverage::CoveragePoint;
use crate::model::{Answer, ChangeKind, Event, FeedPosition, Item};
use crate::operation::CONTAINERS;
use crate::run::Run;
use crate::world::{SeenEvent, SeenHistory, SeenItem, World};

/// The position of a reader.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reader {
    token: String,
    /// The position before which it is too late,
    at: FeedPosition,
    /// unless its page ended farther on: a page of one partition key passes events of others, up to this one.
    before: Option<FeedPosition>,
    /// It began behind this turn,
    began: u64,
    /// and has read these events since.
    read: BTreeSet<u64>,
    /// Whether a process has crashed since its last read.
    pub(crate) crashed: bool,
}

impl Run {
    /// Continues a reader, or starts one: of a whole container or of one partition key.
    pub(crate) fn read_history(
        &mut self,
        container: &'static str,
        key: Option<usize>,
        max_items: usize,
    ) -> Result<(), String> {
        if self.poisoned {
            return Ok(());
        }
        let reader = self.readers.get(&(container, key)).cloned();
        let token = reader.as_ref().map(|reader| reader.token.as_str());
        let page = self.ask_history(|world| world.history(container, key, token, max_items))?;
        let reader = reader.unwrap_or_else(|| self.fresh_reader());
        let Some(page) = self.admit_reader(container, &reader, page)? else {
            self.readers.remove(&(container, key));
            return Ok(());
        };
        self.situation
            .coverage
            .reach_if(reader.crashed && !page.events.is_empty(), CoveragePoint::HistoryOverACrash);
        let next = self.match_page(container, key, reader, &page, max_items)?;
        self.readers.insert((container, key), next);
        Ok(())
    }

    /// Checks all that the feeds return.
    pub(crate) fn audit_histories(&mut self) -> Result<(), String> {
        for container in CONTAINERS {
            if let Err(error) = self.audit_history(container) {
                return Err(format!("{container}: T28: {error}"));
            }
        }
        Ok(())
    }

    fn audit_history(&mut self, container: &'static str) -> Result<(), String> {
        let feed = self.model.containers.get(container).and_then(|inside| inside.feed.as_ref());
        let Some(feed) = feed else {
            self.auditors.remove(container);
            return Ok(());
        };
        let kept_from = feed.kept_from(self.model.trusted_ms);
        let page = if kept_from.turn == 0 {
            // The retention tells where the feed begins.
            let since = kept_from.time_ms;
            let expected = feed.events.iter().filter(|event| event.place.time_ms >= since).cloned().collect();
            let page = self.ask_history(|world| world.history_since(container, since))?;
            let page = page.map_err(|answer| format!("the feed failed: {answer:?}"))?;
            match_events(expected, &page.events)?;
            self.situation.coverage.reach_if(!page.events.is_empty(), CoveragePoint::HistoryWithinRetention);
            page
        } else {
            let auditor = self.auditors.get(container).cloned();
            let token = auditor.as_ref().map(|auditor| auditor.token.as_str());
            let page = self.ask_history(|world| world.history(container, None, token, usize::MAX))?;
            let auditor = auditor.unwrap_or_else(|| self.fresh_reader());
            let Some(page) = self.admit_reader(container, &auditor, page)? else {
                self.auditors.remove(container);
                return Ok(());
            };
            let read = self.match_page(container, None, auditor.clone(), &page, usize::MAX)?;
            let token = if auditor.token.is_empty() { read.token } else { auditor.token };
            self.auditors.insert(container, Reader { token, ..auditor });
            page
        };
        check_numbers(&page.events)
    }

    fn ask_history(
        &mut self,
        ask: impl Fn(&mut World) -> Result<SeenHistory, Answer>,
    ) -> Result<Result<SeenHistory, Answer>, String> {
        let (main, twin, _) = self.perform(None, ask);
        if main != twin {
            return Err(format!("invariant 8: the feed tells {main:?}, and without purge {twin:?}"));
        }
        Ok(main)
    }

    fn fresh_reader(&self) -> Reader {
        let at = self.model.here();
        Reader { at, began: at.turn, ..Reader::default() }
    }

    /// Returns the page, unless by the model the reader is too late or there is no feed.
    fn admit_reader(
        &mut self,
        container: &str,
        reader: &Reader,
        page: Result<SeenHistory, Answer>,
    ) -> Result<Option<SeenHistory>, String> {
        let expected = match self.model.containers.get(container).map(|inside| inside.feed.as_ref()) {
            None => Some(Answer::NoContainer),
            Some(None) => Some(Answer::NoFeed),
            Some(Some(feed)) => {
                let kept_from = feed.kept_from(self.model.trusted_ms);
                let may_be_kept = page.is_ok() && reader.before.is_some_and(|before| before >= kept_from);
                (reader.at < kept_from && !may_be_kept).then_some(Answer::HistoryGone)
            }
        };
        match (page, expected) {
            (Ok(page), None) => Ok(Some(page)),
            (Err(answer), Some(expected)) if answer == expected => {
                self.situation.coverage.reach_if(answer == Answer::HistoryGone, CoveragePoint::HistoryGone);
                Ok(None)
            }
            (page, expected) => Err(format!("a reader gets {page:?}, should get {expected:?}")),
        }
    }

    /// Compares a page with the model's events; returns the reader's new position.
    fn match_page(
        &mut self,
        container: &str,
        key: Option<usize>,
        mut reader: Reader,
        page: &SeenHistory,
        max_items: usize,
    ) -> Result<Reader, String> {
        let feed = self.model.containers[container].feed.as_ref().expect("the reader was admitted");
        let is_news = |event: &&Event| {
            event.place.turn > reader.began
                && !reader.read.contains(&event.id)
                && key.is_none_or(|key| event.key() == key)
        };
        let news: Vec<Event> = feed.events.iter().filter(is_news).cloned().collect();
        let left = news.len() - page.events.len().min(news.len());
        let next = news.get(page.events.len()).map(|event| event.place);
        let read = match_events_partly(news, &page.events)?;
        if page.more != (left > 0) || page.more && page.events.len() < max_items {
            return Err(format!("{} events are left, and the page says {}: {page:?}", left, page.more));
        }
        self.situation.coverage.reach_if(page.more, CoveragePoint::HistoryInPages);
        let told = page.events.iter().any(|event| event.what == ChangeKind::Expired);
        self.situation.coverage.reach_if(told, CoveragePoint::ExpiryTold);
        if page.more {
            reader.at = read.last().map_or(reader.at, |(_, place)| *place);
            reader.before = next.filter(|_| key.is_some());
            reader.read.extend(read.into_iter().map(|(id, _)| id));
        } else {
            reader = self.fresh_reader();
        }
        reader.token = page.continuation.clone().ok_or("a page without continuation")?;
        reader.crashed = false;
        Ok(reader)
    }
}

fn match_events(expected: Vec<Event>, seen: &[SeenEvent]) -> Result<(), String> {
    let count = expected.len();
    if seen.len() != count {
        return Err(format!("{} events are told, {count} have happened: {seen:?} {expected:?}", seen.len()));
    }
    match_events_partly(expected, seen).map(drop)
}

/// Matches the received events with the first of the model's, in order except within one turn.
fn match_events_partly(
    mut expected: Vec<Event>,
    seen: &[SeenEvent],
) -> Result<Vec<(u64, FeedPosition)>, String> {
    let mut matched = Vec::new();
    for event in seen {
        let Some(turn) = expected.first().map(|first| first.place.turn) else {
            return Err(format!("told, and has not happened or was told before: {event:?}"));
        };
        let at_once = expected.iter().take_while(|other| other.place.turn == turn);
        let mut misfits = Vec::new();
        let found = at_once.enumerate().find_map(|(at, other)| match compare_event(other, event) {
            Ok(()) => Some(at),
            Err(error) => {
                misfits.push(error);
                None
            }
        });
        let at = found.ok_or_else(|| misfits.join("; or "))?;
        let Event { id, place, .. } = expected.remove(at);
        matched.push((id, place));
    }
    Ok(matched)
}

fn compare_event(expected: &Event, seen: &SeenEvent) -> Result<(), String> {
    let image = |expected: &Option<Item>, seen: &Option<SeenItem>| match (expected, seen) {
        (None, None) => Ok(()),
        (Some(expected), Some(seen)) => compare_item(expected, seen),
        _ => Err("an image too many or too few".to_owned()),
    };
    let same = expected.what == seen.what && expected.place.time_ms == seen.time_ms;
    let same = if same { Ok(()) } else { Err("not what or when it happened".to_owned()) };
    same.and_then(|()| image(&expected.current, &seen.current))
        .and_then(|()| image(&expected.previous, &seen.previous))
        .map_err(|error| format!("told {seen:?}, should be {expected:?}: {error}"))
}

/// Checks LSNs: those of the versions returned, and for an expiry that of the change before it.
fn check_numbers(events: &[SeenEvent]) -> Result<(), String> {
    let mut last = None;
    for event in events {
        let (own, previous) = event.item_lsns;
        let wrong = own.is_some_and(|own| own != event.lsn)
            || previous != event.previous_lsn
            || event.current.iter().chain(&event.previous).any(|item| item.stamp.number != event.number)
            || last.is_some_and(|last| event.lsn < last)
            || event.what == ChangeKind::Expired && last.is_some_and(|last| event.lsn != last);
        if wrong {
            return Err(format!("LSNs: {event:?} after {last:?}"));
        }
        last = Some(event.lsn);
    }
    Ok(())
}
