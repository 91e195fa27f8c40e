//! T28 as a plain program: everything that ever happened in a container whose feed of all versions is kept, written down in
//! the order in which it happened.
//!
//! There is no merging, trimming or recording here: every change of the model adds to the list, and an expiry is added when
//! the clock reaches its instant.
//!
//! The one surprising thing: some events happen at once, and no rule defines which of them comes first (expiries at the same
//! instant, deletes by one request). They have the same *turn*.

use super::{Answer, Item, Model};

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// It was created.
    Created,
    /// Another version took its place.
    Replaced,
    /// A client deleted it.
    Deleted,
    /// It expired.
    Expired,
}

/// Where something happened: the time, and the order within it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FeedPosition {
    /// Trusted time.
    pub(crate) time_ms: u64,
    /// Events of the same turn have no order.
    pub(crate) turn: u64,
}

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// Its own number.
    pub(crate) id: u64,
    /// Its position in the feed.
    pub(crate) place: FeedPosition,
    /// What happened.
    pub(crate) what: ChangeKind,
    /// The version that it made.
    pub(crate) current: Option<Item>,
    /// The version that it ended.
    pub(crate) previous: Option<Item>,
}

impl Event {
    /// Returns the partition key that it happened under.
    pub(crate) fn key(&self) -> usize {
        self.current.iter().chain(&self.previous).next().map_or(usize::MAX, |item| item.body.key)
    }
}

/// The feed of all versions of a container, while it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    /// For how long.
    pub(crate) minutes: u32,
    /// No event before this is returned any more, however long the feed is kept from now on.
    floor: FeedPosition,
    /// Everything since it was turned on.
    pub(crate) events: Vec<Event>,
}

impl Feed {
    /// Returns the first position that the feed returns.
    pub(crate) fn kept_from(&self, trusted_ms: u64) -> FeedPosition {
        self.floor.max(horizon(trusted_ms, self.minutes))
    }
}

fn horizon(trusted_ms: u64, minutes: u32) -> FeedPosition {
    FeedPosition { time_ms: trusted_ms.saturating_sub(u64::from(minutes) * 60_000), turn: 0 }
}

impl Model {
    /// Returns the position of a reader that has received every event up to now.
    pub(crate) fn here(&self) -> FeedPosition {
        FeedPosition { time_ms: self.trusted_ms, turn: self.turns }
    }

    /// Keeps the feed for this long, or turns it off.
    pub(super) fn keep_feed(&mut self, name: &str, minutes: Option<u32>) -> Answer {
        self.turns += 1;
        let here = self.here();
        let Some(container) = self.containers.get_mut(name) else { return Answer::NoContainer };
        container.feed = match (container.feed.take(), minutes) {
            (Some(feed), Some(minutes)) if feed.minutes == minutes => Some(feed),
            (Some(feed), Some(minutes)) => {
                Some(Feed { floor: feed.kept_from(here.time_ms), minutes, events: feed.events })
            }
            (None, Some(minutes)) => Some(Feed { minutes, floor: here, events: Vec::new() }),
            (_, None) => None,
        };
        Answer::Changed
    }

    /// Records an event now, after all others.
    pub(super) fn happen(
        &mut self,
        name: &str,
        what: ChangeKind,
        previous: Option<Item>,
        current: Option<Item>,
    ) {
        self.turns += 1;
        self.happen_at_once(name, what, previous, current);
    }

    /// Records an event in the same turn as the last one.
    pub(super) fn happen_at_once(
        &mut self,
        name: &str,
        what: ChangeKind,
        previous: Option<Item>,
        current: Option<Item>,
    ) {
        let place = self.here();
        self.tell(name, place, what, previous, current);
    }

    /// Records expiries at these seconds, all of which are after every recorded event.
    pub(super) fn expire(&mut self, name: &'static str, mut expiring: Vec<(u64, Item)>) {
        expiring.sort_by_key(|(second, _)| *second);
        let mut last = None;
        for (second, item) in expiring {
            self.turns += u64::from(last != Some(second));
            last = Some(second);
            let place = FeedPosition { time_ms: second * 1000, turn: self.turns };
            self.record_expiry(name, place.time_ms, &item);
            self.tell(name, place, ChangeKind::Expired, Some(item), None);
        }
    }

    fn tell(
        &mut self,
        name: &str,
        place: FeedPosition,
        what: ChangeKind,
        previous: Option<Item>,
        current: Option<Item>,
    ) {
        self.events += 1;
        let id = self.events;
        let feed = self.containers.get_mut(name).and_then(|container| container.feed.as_mut());
        if let Some(feed) = feed {
            feed.events.push(Event { id, place, what, current, previous });
        }
    }
}
