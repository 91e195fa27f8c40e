//! Where items stand: queues, and places in them.

use crate::definition::OwnTtl;
use crate::header::Header;

/// Milliseconds since 1970; negative before.
pub(crate) type Millis = i64;

/// An ordered list of items by base time. The number is its name on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Queue {
    /// Items without own ttl, by `_ts`.
    Inherit,
    /// Items with own ttl, by deadline.
    Own,
    /// Items that do not stand in `Inherit`, by `_ts`: serves queries, kills nobody.
    Stamp,
    /// One generation of a date rule, by the date: its number, [`Queue::FIRST_DATE`] or more.
    Date(u16),
}

impl Queue {
    /// The lowest number of a date queue.
    pub(crate) const FIRST_DATE: u16 = 16;

    pub(crate) fn number(self) -> u16 {
        match self {
            Queue::Inherit => 1,
            Queue::Own => 2,
            Queue::Stamp => 3,
            Queue::Date(number) => number,
        }
    }

    /// The queue of that number; none if there can be no such queue.
    pub(crate) fn from_number(number: u16) -> Option<Queue> {
        match number {
            1 => Some(Queue::Inherit),
            2 => Some(Queue::Own),
            3 => Some(Queue::Stamp),
            Queue::FIRST_DATE.. => Some(Queue::Date(number)),
            _ => None,
        }
    }

    /// The date queue of that number; none if it is the number of another kind.
    pub(crate) fn date(number: u16) -> Option<Queue> {
        Queue::from_number(number).filter(|queue| matches!(queue, Queue::Date(_)))
    }
}

/// Where an item stands: its queue and its base time there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) queue: Queue,
    pub(crate) base: Millis,
}

/// All places by which one item can die: at most one by ttl, at most one by each date rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// In inherit or own.
    pub(crate) ttl: Option<Place>,
    /// In queues that have numbers; by ttl too, if the countdown does not begin at `_ts`.
    pub(crate) dates: Vec<Place>,
}

/// A countdown that does not begin at `_ts` (T33).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// The queue by which the item dies, unless it is held or never dies: a generation of the rule for its kind of ttl.
    pub(crate) queue: Queue,
    /// Where the countdown begins, as the version was written.
    pub(crate) from: Millis,
    /// Whether reads restart it.
    pub(crate) slides: bool,
}

impl Places {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Place> + '_ {
        self.ttl.into_iter().chain(self.dates.iter().copied())
    }

    /// Whether an item at `later` stands in the same queues, and in none of them earlier than here: then what does not kill
    /// here does not kill there.
    pub(crate) fn bounds(&self, later: &Places) -> bool {
        let bounded =
            |place: Place| self.iter().any(|bound| bound.queue == place.queue && bound.base <= place.base);
        self.iter().count() == later.iter().count() && later.iter().all(bounded)
    }
}

impl From<Place> for Places {
    /// A single place, by ttl.
    fn from(place: Place) -> Places {
        Places { ttl: Some(place), dates: Vec::new() }
    }
}

impl Header {
    /// Where the countdown of ttl begins.
    pub(crate) fn counts_from(&self) -> Millis {
        self.touched.unwrap_or_else(|| self.written_from())
    }

    /// Where it began when the item was written, whatever reads have made of it.
    pub(crate) fn written_from(&self) -> Millis {
        self.counted.map_or(from_seconds(self.ts), |counted| counted.from)
    }

    /// The place by which the item can die by ttl; none for `ttl` = -1, and while it is held.
    pub(crate) fn ttl_place(&self) -> Option<Place> {
        let from = self.counts_from();
        let (queue, base) = match self.ttl {
            _ if self.held => return None,
            OwnTtl::Absent => (Queue::Inherit, from),
            OwnTtl::Seconds(ttl) => (Queue::Own, from.saturating_add(from_seconds(ttl.into()))),
            OwnTtl::Never => return None,
        };
        Some(Place { queue: self.counted.map_or(queue, |counted| counted.queue), base })
    }

    /// Every place by which the item can die.
    pub(crate) fn mortal_places(&self) -> impl Iterator<Item = Place> + '_ {
        self.ttl_place().into_iter().chain(self.bases.iter().copied())
    }

    /// The same places, to keep.
    pub(crate) fn places(&self) -> Places {
        match self.counted {
            None => Places { ttl: self.ttl_place(), dates: self.bases.clone() },
            Some(_) => Places { ttl: None, dates: self.mortal_places().collect() },
        }
    }

    /// The place in `Stamp`, for items whose `_ts` no other queue tells.
    pub(crate) fn stamp_place(&self) -> Option<Place> {
        match self.ttl {
            OwnTtl::Absent if !self.held && self.counted.is_none() => None,
            OwnTtl::Absent | OwnTtl::Seconds(_) | OwnTtl::Never => {
                Some(Place { queue: Queue::Stamp, base: from_seconds(self.ts) })
            }
        }
    }
}

/// Whole seconds as milliseconds, saturating (T7).
pub(crate) fn from_seconds(seconds: u64) -> Millis {
    Millis::try_from(seconds).unwrap_or(Millis::MAX).saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_keep_their_numbers() {
        for queue in [Queue::Inherit, Queue::Own, Queue::Stamp, Queue::Date(16), Queue::Date(u16::MAX)] {
            assert_eq!(Queue::from_number(queue.number()), Some(queue));
        }
        for number in [0, 4, 15] {
            assert_eq!(Queue::from_number(number), None);
        }
        assert_eq!(Queue::date(2), None);
    }

    #[test]
    fn t11_places_bound_what_comes_later_in_the_same_queues() {
        let place = |queue, base| Place { queue, base };
        let own = |base| Places::from(place(Queue::Own, base));
        let dated = |ttl: &Places, dates: &[(u16, Millis)]| {
            let dates = dates.iter().map(|(queue, base)| place(Queue::Date(*queue), *base)).collect();
            Places { ttl: ttl.ttl, dates }
        };
        let nowhere = Places::default();
        assert!(nowhere.bounds(&nowhere));
        assert!(own(5).bounds(&own(5)) && own(5).bounds(&own(6)));
        assert!(!own(5).bounds(&own(4)), "an earlier death");
        assert!(!own(5).bounds(&place(Queue::Inherit, 6).into()), "another queue");
        assert!(!own(5).bounds(&nowhere) && !nowhere.bounds(&own(5)));

        let two = dated(&own(5), &[(16, 5)]);
        assert!(two.bounds(&dated(&own(6), &[(16, 5)])));
        assert!(!two.bounds(&own(5)) && !own(5).bounds(&two), "a place more or less");
        assert!(!two.bounds(&dated(&own(6), &[(16, 4)])) && !two.bounds(&dated(&own(6), &[(17, 5)])));
        let by_dates = dated(&nowhere, &[(16, 5), (17, 1)]);
        assert!(by_dates.bounds(&dated(&nowhere, &[(17, 1), (16, 9)])), "in whatever order");
    }
}
