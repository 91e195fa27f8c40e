//! What will expire when, and what a change of `defaultTtl` would kill at once (T30): from counters, without looking at
//! items.
//!
//! A rule is a delay on its queues, and counters know each queue by base time: who dies between two instants stands between
//! two bases. So a forecast is a difference of prefixes at other times than now, and a dry run is a sum of prefixes under other
//! rules than those in force.
//!
//! An item that stands under several rules is due by each of them. Counters do not know who is the same: where more than one
//! rule has somebody to kill, a forecast counts such an item under each, and says that it is not exact. Every figure but
//! `never` is then an upper bound, and `never` a lower one.

use document::Sequence;
use storage::Time;

use crate::Engine;
use crate::counters::{self, Count, Tally};
use crate::definition::DefaultTtl;
use crate::error::{Error, Result};
use crate::expiry::{Change, Millis, Policy};
use crate::gate::{Usage, View};
use crate::holder::Holder;
use crate::limits::FORECAST_INTERVALS_MAX;
use crate::purge;

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
    /// Its length.
    pub fn seconds(self) -> u64 {
        match self {
            Interval::Minute => 60,
            Interval::Hour => 3600,
            Interval::Day => 86_400,
            Interval::Week => 604_800,
        }
    }
}

/// Who dies when, as rules and items stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// When it was made; the first interval begins here.
    pub now: Time,
    /// Dead already, and not purged.
    pub overdue: Tally,
    /// Those who die in each interval: after its beginning, and not after its end.
    pub intervals: Vec<Tally>,
    /// Those who die after the last interval.
    pub later: Tally,
    /// Living items that no rule will kill.
    pub never: Tally,
    /// Whether no item is counted twice.
    pub exact: bool,
}

/// What a change of `defaultTtl` would do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DryRun {
    /// What lives.
    pub living: Tally,
    /// What of it would die at once.
    pub dying: Count,
}

impl DryRun {
    /// What would live then; at least so much if the count of the dying is an upper bound.
    pub fn remaining(&self) -> Tally {
        self.living.saturating_minus(self.dying.tally)
    }
}

impl Engine {
    /// Tells who dies in each of the next intervals.
    pub fn forecast(&self, holder: &Holder, interval: Interval, count: usize) -> Result<Forecast> {
        self.forecast_under(holder, None, interval, count)
    }

    /// Tells who would die in each of the next intervals under another `defaultTtl`. What would die at once is overdue.
    pub fn forecast_if(
        &self,
        holder: &Holder,
        default_ttl: DefaultTtl,
        interval: Interval,
        count: usize,
    ) -> Result<Forecast> {
        self.forecast_under(holder, Some(default_ttl), interval, count)
    }

    fn forecast_under(
        &self,
        holder: &Holder,
        default_ttl: Option<DefaultTtl>,
        interval: Interval,
        count: usize,
    ) -> Result<Forecast> {
        if !(1..=FORECAST_INTERVALS_MAX).contains(&count) {
            let range = format!("A forecast has 1 to {FORECAST_INTERVALS_MAX} intervals.");
            return Err(Error::invalid(range));
        }
        let views = View::open_all(&*self.store, holder.partitions())?;
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
            let dead = counters::dead_at_most(&*view.snapshot, partition, &policy, now)?;
            let living = counters::total(&*view.snapshot, partition)?.saturating_minus(dead.tally);
            forecast.exact &= dead.exact;
            forecast.add(view, &policy, Usage { living, dead: dead.tally }, &ends)?;
        }
        Ok(forecast)
    }

    /// Tells what another `defaultTtl` would kill at once.
    pub fn dry_run(&self, holder: &Holder, default_ttl: DefaultTtl) -> Result<DryRun> {
        let (mut living, mut dying) = (Tally::default(), Count::default());
        for view in View::open_all(&*self.store, holder.partitions())? {
            let View { snapshot, gate, .. } = &view;
            let (usage, next) = (view.usage()?, view.policy_under(default_ttl)?);
            let after = counters::dead_at_most(&**snapshot, gate.partition, &next, gate.now)?;
            living = living.plus(usage.living);
            dying = dying.plus(Count { tally: after.tally.minus(usage.dead)?, ..after });
        }
        Ok(DryRun { living, dying })
    }
}

impl View {
    /// The policy as another `defaultTtl` would make it now.
    fn policy_under(&self, default_ttl: DefaultTtl) -> Result<Policy> {
        let View { snapshot, gate, .. } = self;
        let occupied = |queue, through| purge::is_occupied(&**snapshot, gate.partition, queue, through);
        // Whatever the snapshot has was written before the change.
        let sequence = Sequence(u64::MAX);
        gate.policy.change(Change::DefaultTtl(default_ttl), gate.now, sequence, occupied)
    }
}

impl Forecast {
    /// Adds what one partition tells under a policy: that in force, or another.
    fn add(&mut self, view: &View, policy: &Policy, usage: Usage, ends: &[Time]) -> Result<()> {
        let snapshot = &*view.snapshot;
        let (mut due, mut involved) = (Tally::default(), 0);
        for queues in policy.groups() {
            let due_before = due;
            let mut dead = Tally::default();
            for queue in queues {
                let times = std::iter::once(view.gate.now).chain(ends.iter().copied());
                let Some(mut bases) =
                    times.map(|time| policy.dead_through(queue, time)).collect::<Option<Vec<_>>>()
                else {
                    continue;
                };
                if policy.has_rule(queue) {
                    bases.push(Millis::MAX);
                }
                let sums = counters::prefixes(snapshot, view.gate.partition, queue, &bases)?;
                dead = dead.plus(sums[0]);
                for (at, pair) in sums.windows(2).enumerate() {
                    let dying = pair[1].minus(pair[0])?;
                    let slot = self.intervals.get_mut(at).unwrap_or(&mut self.later);
                    *slot = slot.plus(dying);
                    due = due.plus(dying);
                }
            }
            involved += u32::from(dead != Tally::default() || due != due_before);
            debug_assert!(dead.items <= usage.dead.items, "a group has no more dead than the partition");
        }
        self.exact &= involved <= 1;
        self.overdue = self.overdue.plus(usage.dead);
        self.never = self.never.plus(usage.living.saturating_minus(due));
        Ok(())
    }
}
