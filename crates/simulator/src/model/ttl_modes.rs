//! T33 as a plain program: TTL modes that count from a property or from reads, and expiry instants in items.
//!
//! The modes of a container apply to items that are written from then on.

use super::{Answer, Body, Container, Countdown, Instant, Item, Model, Ttl};

/// The TTL modes that an owner has chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TtlModes {
    /// Countdowns begin at a time that a property has.
    pub(crate) base: bool,
    /// Items name the instant of their expiry.
    pub(crate) absolute: bool,
    /// Reads restart countdowns.
    pub(crate) sliding: bool,
}

/// Where the countdowns of a container's items may have started so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CountdownOrigin {
    /// At their last writes only.
    FromWrites,
    /// At other times, too.
    Otherwise,
    /// As `Otherwise`, and some items may have named their expiry: then counters cannot show which items expire by two rules.
    Named,
}

impl Container {
    /// Returns where the countdown begins of a version that is written at a second and replaces another.
    pub(super) fn beginning(
        &self,
        body: &Body,
        now: u64,
        before: Option<&Item>,
        countdown: Countdown,
    ) -> u64 {
        match (countdown, before) {
            (Countdown::Keep, Some(before)) => before.counts_from,
            _ => body.base.filter(|_| self.ttl_modes.base).and_then(Instant::beginning).unwrap_or(now),
        }
    }

    /// Returns the instant of expiry that an item names, if the container honours it.
    pub(super) fn named_expiry(&self, body: &Body) -> Option<u64> {
        body.gone.filter(|_| self.ttl_modes.absolute).and_then(Instant::end)
    }

    /// Returns `true` if reads will restart the countdown of an item that is written now.
    pub(super) fn makes_slide(&self, body: &Body) -> bool {
        self.ttl_modes.sliding && body.ttl != Ttl::Never
    }
}

impl Model {
    /// Turns absolute expiry on or off; once it is off no further item expires by it.
    pub(super) fn listen(&mut self, name: &str, absolute: bool) -> Answer {
        let suspect = self.suspect;
        let container = self.containers.get_mut(name).expect("the caller looked it up");
        if suspect && container.ttl_modes.absolute && !absolute {
            return Answer::ClockSuspect;
        }
        container.ttl_modes.absolute = absolute;
        if absolute {
            container.counted = CountdownOrigin::Named;
        }
        if !absolute {
            container.items.iter_mut().for_each(|item| item.expires_at = None);
        }
        Answer::Changed
    }

    /// Restarts an item's countdown for a read, if it has one.
    pub(super) fn renew(&mut self, name: &str, index: usize) {
        let now = self.now;
        let container = self.containers.get_mut(name).expect("the caller looked it up");
        let is_counted = container.ttl_deadline(&container.items[index]).is_some();
        let item = &mut container.items[index];
        // A read in the future was one at a time that was rejected since (T34).
        let is_another = item.written_from < now && item.counts_from != now;
        if container.ttl_modes.sliding && item.slides && is_counted && is_another {
            item.counts_from = now;
            item.touched = true;
        }
    }
}
