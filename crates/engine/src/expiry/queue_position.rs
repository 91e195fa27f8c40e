//! Queues, and the positions of items in them.

use crate::expiry::header::Header;
use crate::expiry::ttl::OwnTtl;

/// Milliseconds since 1970; negative before.
pub(crate) type Millis = i64;

/// A list of items in the order of their base times. The number is its name on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Queue {
    /// Items without own ttl, by `_ts`.
    Inherit,
    /// Items with own ttl, by deadline.
    Own,
    /// Items that are not in `Inherit`, by `_ts`. It serves queries; nothing expires by it.
    Stamp,
    /// One generation of a date rule, by date: its number, [`Queue::FIRST_DATE`] or more.
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

    /// Returns the queue of that number, or `None` if no queue can have it.
    pub(crate) fn from_number(number: u16) -> Option<Queue> {
        match number {
            1 => Some(Queue::Inherit),
            2 => Some(Queue::Own),
            3 => Some(Queue::Stamp),
            Queue::FIRST_DATE.. => Some(Queue::Date(number)),
            _ => None,
        }
    }

    /// Returns the date queue of that number, or `None` if the number belongs to another kind of queue.
    pub(crate) fn date(number: u16) -> Option<Queue> {
        Queue::from_number(number).filter(|queue| matches!(queue, Queue::Date(_)))
    }
}

/// An item's position in a queue: the queue, and the item's base time in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueuePosition {
    pub(crate) queue: Queue,
    pub(crate) base: Millis,
}

/// All queue positions by which one item can expire: at most one by ttl, and at most one by each date rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct QueuePositions {
    /// The position in `inherit` or `own`.
    pub(crate) ttl: Option<QueuePosition>,
    /// The positions in numbered queues, which include that by ttl if the countdown does not start at `_ts`.
    pub(crate) dates: Vec<QueuePosition>,
}

/// The start of a countdown that does not start at `_ts` (T33).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountdownBase {
    /// The queue by which the item expires, unless it is held or never expires: a generation of the rule for its kind
    /// of ttl.
    pub(crate) queue: Queue,
    /// Where the countdown started when the version was written.
    pub(crate) from: Millis,
    /// Whether reads restart the countdown.
    pub(crate) slides: bool,
}

impl QueuePositions {
    pub(crate) fn iter(&self) -> impl Iterator<Item = QueuePosition> + '_ {
        self.ttl.into_iter().chain(self.dates.iter().copied())
    }

    /// Returns whether an item at `later` has its entries in the same queues, and in none of them earlier than here.
    /// If so, the item has not expired as long as these positions have not.
    pub(crate) fn bounds(&self, later: &QueuePositions) -> bool {
        let bounded = |place: QueuePosition| {
            self.iter().any(|bound| bound.queue == place.queue && bound.base <= place.base)
        };
        self.iter().count() == later.iter().count() && later.iter().all(bounded)
    }
}

impl From<QueuePosition> for QueuePositions {
    /// Returns a single place, by ttl.
    fn from(place: QueuePosition) -> QueuePositions {
        QueuePositions { ttl: Some(place), dates: Vec::new() }
    }
}

impl Header {
    /// Returns where the countdown of ttl starts.
    pub(crate) fn counts_from(&self) -> Millis {
        self.renewed_at.unwrap_or_else(|| self.written_from())
    }

    /// Returns where the countdown started when the item was written, without the effect of later reads.
    pub(crate) fn written_from(&self) -> Millis {
        self.counted.map_or(from_seconds(self.ts), |counted| counted.from)
    }

    /// Returns the position by which the item can expire by ttl, or `None` for `ttl` = -1 and while the item is held.
    pub(crate) fn ttl_position(&self) -> Option<QueuePosition> {
        let from = self.counts_from();
        let (queue, base) = match self.ttl {
            _ if self.held => return None,
            OwnTtl::Absent => (Queue::Inherit, from),
            OwnTtl::Seconds(ttl) => (Queue::Own, from.saturating_add(from_seconds(ttl.into()))),
            OwnTtl::Never => return None,
        };
        Some(QueuePosition { queue: self.counted.map_or(queue, |counted| counted.queue), base })
    }

    /// Returns every queue position by which the item can expire.
    pub(crate) fn expiry_positions(&self) -> impl Iterator<Item = QueuePosition> + '_ {
        self.ttl_position().into_iter().chain(self.bases.iter().copied())
    }

    /// Collects the same positions.
    pub(crate) fn places(&self) -> QueuePositions {
        match self.counted {
            None => QueuePositions { ttl: self.ttl_position(), dates: self.bases.clone() },
            Some(_) => QueuePositions { ttl: None, dates: self.expiry_positions().collect() },
        }
    }

    /// Returns the position in `Stamp`, for items whose `_ts` is not the base of another queue.
    pub(crate) fn stamp_position(&self) -> Option<QueuePosition> {
        match self.ttl {
            OwnTtl::Absent if !self.held && self.counted.is_none() => None,
            OwnTtl::Absent | OwnTtl::Seconds(_) | OwnTtl::Never => {
                Some(QueuePosition { queue: Queue::Stamp, base: from_seconds(self.ts) })
            }
        }
    }
}

/// Converts whole seconds to milliseconds, saturating (T7).
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
        let place = |queue, base| QueuePosition { queue, base };
        let own = |base| QueuePositions::from(place(Queue::Own, base));
        let dated = |ttl: &QueuePositions, dates: &[(u16, Millis)]| {
            let dates = dates.iter().map(|(queue, base)| place(Queue::Date(*queue), *base)).collect();
            QueuePositions { ttl: ttl.ttl, dates }
        };
        let nowhere = QueuePositions::default();
        assert!(nowhere.bounds(&nowhere));
        assert!(own(5).bounds(&own(5)) && own(5).bounds(&own(6)));
        assert!(!own(5).bounds(&own(4)), "an earlier expiry");
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
