//! Forecasts when items will expire, and how many a change of `defaultTtl` would expire at once (T30): from counters,
//! without reading items.
//!
//! A rule is a delay on its queues, and counters count each queue by base time: the items that expire between two
//! instants are those between two bases. So a forecast is a difference of prefixes at later times than now, and a dry
//! run is a sum of prefixes under other rules than those in force.
//!
//! An item under several rules is due by each of them, and counters cannot show that it is the same item. Where more
//! than one rule has items to expire, a forecast counts such an item under each, and is marked as not exact. Then
//! every figure but `never` is an upper bound, and `never` is a lower one.

use document::Sequence;
use storage::Time;

use crate::Engine;
use crate::access::gate::{Usage, View};
use crate::catalog::owner::Owner;
use crate::definition::DefaultTtl;
use crate::entries::counters::{self, Count, Tally};
use crate::entries::queues;
use crate::expiry::{Change, Millis, Policy};
use crate::types::error::{Error, Result};
use crate::types::limits::FORECAST_INTERVALS_MAX;

/// How long the intervals of a forecast are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// 60 seconds.
    Minute,
    /// 3,600 seconds.
    Hour,
    /// 86,400 seconds.
    Day,
    /// 604,800 seconds.
    Week,
}

impl Interval {
    /// Returns its length.
    pub fn seconds(self) -> u64 {
        match self {
            Interval::Minute => 60,
            Interval::Hour => 3600,
            Interval::Day => 86_400,
            Interval::Week => 604_800,
        }
    }
}

/// How many items expire in each coming interval, under the present rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// When it was computed; the first interval begins here.
    pub now: Time,
    /// Items that have expired and are not purged.
    pub overdue: Tally,
    /// Items that expire in each interval: after its beginning, and not after its end.
    pub intervals: Vec<Tally>,
    /// Items that expire after the last interval.
    pub later: Tally,
    /// Living items that no rule will expire.
    pub never: Tally,
    /// Whether no item is counted twice.
    pub exact: bool,
}

/// The effect that a change of `defaultTtl` would have now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DryRun {
    /// The living items.
    pub living: Tally,
    /// The living items that would expire at once.
    pub expiring: Count,
}

impl DryRun {
    /// Returns how many items would remain living; a lower bound if the count of expiring items is an upper bound.
    pub fn remaining(&self) -> Tally {
        self.living.saturating_minus(self.expiring.tally)
    }
}

impl Engine {
    /// Returns how many items expire in each of the next intervals.
    pub fn forecast(&self, owner: &Owner, interval: Interval, count: usize) -> Result<Forecast> {
        self.forecast_under(owner, None, interval, count)
    }

    /// Returns how many items would expire in each of the next intervals under another `defaultTtl`. Items that would
    /// expire at once count as overdue.
    pub fn forecast_if(
        &self,
        owner: &Owner,
        default_ttl: DefaultTtl,
        interval: Interval,
        count: usize,
    ) -> Result<Forecast> {
        self.forecast_under(owner, Some(default_ttl), interval, count)
    }

    fn forecast_under(
        &self,
        owner: &Owner,
        default_ttl: Option<DefaultTtl>,
        interval: Interval,
        count: usize,
    ) -> Result<Forecast> {
        if !(1..=FORECAST_INTERVALS_MAX).contains(&count) {
            let range = format!("A forecast has 1 to {FORECAST_INTERVALS_MAX} intervals.");
            return Err(Error::invalid(range));
        }
        let views = View::open_all(&*self.store, owner.partitions())?;
        let now = views.first().expect("whatever holds items has a partition").gate.now;
        let ends = |at: usize| now.plus_millis(interval.seconds() * 1000 * at as u64);
        let ends: Vec<Time> = (1..=count).map(ends).collect();
        let (overdue, later, never) = (Tally::default(), Tally::default(), Tally::default());
        let intervals = vec![Tally::default(); count];
        let mut forecast = Forecast { now, overdue, intervals, later, never, exact: true };
        for view in &views {
            let Some(default_ttl) = default_ttl else {
                forecast.add(view, &view.gate.policy, view.usage()?, &ends)?;
                continue;
            };
            let (partition, policy) = (view.gate.partition, view.policy_under(default_ttl)?);
            let expired = counters::expired_at_most(&*view.snapshot, partition, &policy, now)?;
            let living = counters::total(&*view.snapshot, partition)?.saturating_minus(expired.tally);
            forecast.exact &= expired.exact;
            forecast.add(view, &policy, Usage { living, expired: expired.tally }, &ends)?;
        }
        Ok(forecast)
    }

    /// Returns how many items another `defaultTtl` would expire at once.
    pub fn dry_run(&self, owner: &Owner, default_ttl: DefaultTtl) -> Result<DryRun> {
        let (mut living, mut expiring) = (Tally::default(), Count::default());
        for view in View::open_all(&*self.store, owner.partitions())? {
            let View { snapshot, gate, .. } = &view;
            let (usage, next) = (view.usage()?, view.policy_under(default_ttl)?);
            let after = counters::expired_at_most(&**snapshot, gate.partition, &next, gate.now)?;
            living = living.plus(usage.living);
            expiring = expiring.plus(Count { tally: after.tally.minus(usage.expired)?, ..after });
        }
        Ok(DryRun { living, expiring })
    }
}

impl View {
    /// Returns the policy as another `defaultTtl` would make it now.
    fn policy_under(&self, default_ttl: DefaultTtl) -> Result<Policy> {
        let View { snapshot, gate, .. } = self;
        let occupied = |queue, through| queues::is_occupied(&**snapshot, gate.partition, queue, through);
        // Everything in the snapshot was written before the change.
        let sequence = Sequence(u64::MAX);
        gate.policy.change(Change::DefaultTtl(default_ttl), gate.now, sequence, occupied)
    }
}

impl Forecast {
    /// Adds the figures of one partition under a policy, which need not be the one in force.
    fn add(&mut self, view: &View, policy: &Policy, usage: Usage, ends: &[Time]) -> Result<()> {
        let snapshot = &*view.snapshot;
        let (mut due, mut involved) = (Tally::default(), 0);
        for queues in policy.groups() {
            let due_before = due;
            let mut expired = Tally::default();
            for queue in queues {
                let times = std::iter::once(view.gate.now).chain(ends.iter().copied());
                let Some(mut bases) =
                    times.map(|time| policy.expired_through(queue, time)).collect::<Option<Vec<_>>>()
                else {
                    continue;
                };
                if policy.has_rule(queue) {
                    bases.push(Millis::MAX);
                }
                let sums = counters::prefixes(snapshot, view.gate.partition, queue, &bases)?;
                expired = expired.plus(sums[0]);
                for (at, pair) in sums.windows(2).enumerate() {
                    let expiring = pair[1].minus(pair[0])?;
                    let slot = self.intervals.get_mut(at).unwrap_or(&mut self.later);
                    *slot = slot.plus(expiring);
                    due = due.plus(expiring);
                }
            }
            involved += u32::from(expired != Tally::default() || due != due_before);
            debug_assert!(
                expired.items <= usage.expired.items,
                "a group has no more expired items than the partition"
            );
        }
        self.exact &= involved <= 1;
        self.overdue = self.overdue.plus(usage.expired);
        self.never = self.never.plus(usage.living.saturating_minus(due));
        Ok(())
    }
}
