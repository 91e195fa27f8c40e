//! The feed of all versions as a consumer sees it (T28).

use engine::{Event, EventKind, HistoryFrom, HistoryStart, Scope};
use storage::Time;

use super::translate::{answer_of, container_answer, seen_item};
use super::{SeenItem, World};
use crate::body;
use crate::model::{Answer, ChangeKind};

/// One event as the engine returned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenEvent {
    /// What happened.
    pub(crate) what: ChangeKind,
    /// When.
    pub(crate) time_ms: u64,
    /// The LSN of its commit.
    pub(crate) lsn: u64,
    /// The LSN of the commit that made the previous version.
    pub(crate) previous_lsn: Option<u64>,
    /// The LSNs of the two versions.
    pub(crate) item_lsns: (Option<u64>, Option<u64>),
    /// The item's number.
    pub(crate) number: u64,
    /// The version that it made.
    pub(crate) current: Option<SeenItem>,
    /// The version that it ended.
    pub(crate) previous: Option<SeenItem>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenHistory {
    /// In order.
    pub(crate) events: Vec<SeenEvent>,
    /// The token of the next page.
    pub(crate) continuation: Option<String>,
    /// Whether there is more.
    pub(crate) more: bool,
    /// Charge and LSN.
    pub(crate) figures: String,
}

impl World {
    /// Reads the events after a token, or after everything so far; of one partition key, or of all.
    pub(crate) fn history(
        &self,
        name: &'static str,
        key: Option<usize>,
        after: Option<&str>,
        max_items: usize,
    ) -> Result<SeenHistory, Answer> {
        let container = self.current(name).map_err(|error| container_answer(&error))?;
        let scope = Scope { key: key.map(|key| body::partition_key(name, key)), range: None };
        let from = after.map_or(HistoryFrom::Now, |token| HistoryFrom::After(token.to_owned()));
        let page = self.process().engine.history(&container, &scope, &from, max_items);
        let page = page.map_err(|error| history_answer(&error))?;
        self.charged(page.charge.0);
        Ok(SeenHistory {
            events: seen_events(name, &page.events)?,
            continuation: Some(page.continuation),
            more: page.more,
            figures: format!("{:?} {:?}", page.charge, page.range),
        })
    }

    /// Returns every event at or after a time.
    pub(crate) fn history_since(&self, name: &'static str, time_ms: u64) -> Result<SeenHistory, Answer> {
        let container = self.current(name).map_err(|error| container_answer(&error))?;
        let engine = &self.process().engine;
        let barrier = engine.barrier().map_err(|error| answer_of(&error))?;
        let start = HistoryStart::At(Time::from_millis(time_ms));
        let partition = &container.partitions[0];
        let page =
            engine.container_history(&container, partition, &Scope::default(), &barrier, start, usize::MAX);
        let page = page.map_err(|error| history_answer(&error))?;
        Ok(SeenHistory {
            events: seen_events(name, &page.events)?,
            continuation: None,
            more: page.more,
            figures: format!("{} {}", page.bytes, page.lsn),
        })
    }
}

fn history_answer(error: &engine::Error) -> Answer {
    match error {
        engine::Error::Invalid { .. } => Answer::NoFeed,
        other => answer_of(other),
    }
}

fn seen_events(name: &str, events: &[Event<engine::Item>]) -> Result<Vec<SeenEvent>, Answer> {
    let image = |item: &Option<engine::Item>| item.as_ref().map(|item| seen_item(name, item)).transpose();
    let lsn = |item: &Option<engine::Item>| item.as_ref().map(|item| item.lsn);
    let seen = |event: &Event<engine::Item>| {
        Ok(SeenEvent {
            what: match event.kind {
                EventKind::Create => ChangeKind::Created,
                EventKind::Replace => ChangeKind::Replaced,
                EventKind::Delete => ChangeKind::Deleted,
                EventKind::Expire => ChangeKind::Expired,
            },
            time_ms: event.position.time().millis(),
            lsn: event.lsn,
            previous_lsn: event.previous_lsn,
            item_lsns: (lsn(&event.current), lsn(&event.previous)),
            number: event.number.0,
            current: image(&event.current)?,
            previous: image(&event.previous)?,
        })
    };
    events.iter().map(seen).collect::<Result<_, String>>().map_err(Answer::Other)
}
