//! The waiting requests of one tenant, in the order in which they are granted.
//!
//! Requests wait in turn, and a request that comes first and needs more units than are free holds the others up: otherwise
//! small ones would delay it forever. But what it waits for may be held for long, by clients that send slowly or by
//! commands that wait for others. So a request that has waited for a moment *gives way*: from then on it is granted when it
//! fits, before the tenant's other requests, and holds up none. A tenant with a request that has given way holds others up
//! no more, however many requests follow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

/// A waiting request.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) number: u64,
    pub(super) units: usize,
    pub(super) kind: WaitKind,
    /// Reports when its units were granted.
    pub(super) grant: oneshot::Sender<Duration>,
}

/// Whether a request may be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitKind {
    /// Its position counts against the limit of waiting requests and the shares in it.
    Refusable,
    /// It continues earlier work: it takes no position from requests that can be refused.
    Unbounded,
}

/// The waiting requests of one tenant.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    in_turn: VecDeque<Waiter>,
    /// By units, then by age: what fits into a number of units is a range, and the largest of it comes last.
    gave_way: BTreeMap<(usize, Reverse<u64>), Waiter>,
    /// Those that can be refused.
    refusable: usize,
    /// Since when at least one request has been waiting without a break.
    queued_since: Option<Instant>,
}

impl Waiters {
    pub(super) fn is_empty(&self) -> bool {
        self.in_turn.is_empty() && self.gave_way.is_empty()
    }

    /// Returns how many can be refused.
    pub(super) fn refusable(&self) -> usize {
        self.refusable
    }

    /// Adds a request; returns since when at least one has been waiting.
    pub(super) fn push(&mut self, waiter: Waiter, now: Instant) -> Instant {
        self.refusable += usize::from(waiter.kind == WaitKind::Refusable);
        self.in_turn.push_back(waiter);
        *self.queued_since.get_or_insert(now)
    }

    /// Returns the request that comes next where the tenant may take `allowed` units at once, and `free` are free: one that
    /// needs more than are free is waited for.
    pub(super) fn next(&self, allowed: usize, free: usize) -> Option<&Waiter> {
        let fits = self.gave_way.range(..=(allowed, Reverse(0))).next_back();
        if let Some((_, waiter)) = fits {
            return Some(waiter);
        }
        let first = self.in_turn.front()?;
        let may_hold_up = self.gave_way.is_empty() && first.units > free;
        let wanted = if may_hold_up { free } else { first.units };
        (wanted <= allowed).then_some(first)
    }

    /// Lets a request that still waits give way.
    pub(super) fn give_way(&mut self, number: u64) {
        let position = self.in_turn.iter().position(|waiter| waiter.number == number);
        if let Some(waiter) = position.and_then(|position| self.in_turn.remove(position)) {
            self.gave_way.insert((waiter.units, Reverse(number)), waiter);
        }
    }

    /// Takes a request out; `None` if it no longer waits.
    pub(super) fn remove(&mut self, number: u64, units: usize) -> Option<Waiter> {
        let waiter = self.gave_way.remove(&(units, Reverse(number))).or_else(|| {
            let position = self.in_turn.iter().position(|waiter| waiter.number == number)?;
            self.in_turn.remove(position)
        })?;
        self.refusable -= usize::from(waiter.kind == WaitKind::Refusable);
        if self.is_empty() {
            self.queued_since = None;
        }
        Some(waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiters(units: &[usize]) -> Waiters {
        let mut waiters = Waiters::default();
        for (number, units) in (1..).zip(units.iter().copied()) {
            let (grant, _) = oneshot::channel();
            waiters.push(Waiter { number, units, kind: WaitKind::Refusable, grant }, Instant::now());
        }
        waiters
    }

    fn next(waiters: &Waiters, allowed: usize, free: usize) -> Option<u64> {
        waiters.next(allowed, free).map(|waiter| waiter.number)
    }

    #[tokio::test]
    async fn requests_that_gave_way_come_first_if_they_fit_the_largest_and_oldest_of_them() {
        let mut waiters = waiters(&[9, 2, 4, 2, 4, 1]);
        assert_eq!(next(&waiters, 5, 5), Some(1), "it is waited for");
        waiters.give_way(1);
        assert_eq!((next(&waiters, 5, 5), next(&waiters, 1, 1)), (Some(2), None));
        (2..=5).for_each(|number| waiters.give_way(number));
        waiters.give_way(7);
        let picked = [9, 5, 3, 1, 0].map(|free| next(&waiters, free, free));
        assert_eq!(picked, [Some(1), Some(3), Some(2), Some(6), None]);
        assert_eq!(waiters.refusable(), 6);
        for (number, units) in (1..).zip([9, 2, 4, 2, 4, 1]) {
            assert!(waiters.remove(number, units).is_some() && waiters.remove(number, units).is_none());
        }
        assert!(waiters.is_empty() && waiters.refusable() == 0 && waiters.queued_since.is_none());
    }
}
