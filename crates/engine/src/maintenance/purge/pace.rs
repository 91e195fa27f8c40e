//! The rate of the purge while users use the store: a pure state machine over observations.
//!
//! Alone the purge goes as fast as it can. Beside users it has a rate, in items a second:
//!
//! ```text
//!   wanted    items that expire as a steady stream, and part    rate = min(wanted, max(spare, granted))
//!             of the backlog
//!   spare     half of the idle time: of the writer, of the processors
//!   granted   a twentieth of the writer's time; once the oldest item has
//!             waited TOLERATED_AGE, the share that the operator set
//! ```
//!
//! - `wanted` limits the purge to the necessary rate. A steady stream is removed as fast as it expires, because otherwise
//!   the backlog would grow without end. A storm, which has expired all at once, is removed slowly while users are
//!   present: a faster removal would slow their requests down, and expired items that wait are invisible to them.
//! - `spare` is the capacity that is really free, and zero while compaction lags behind. The purge's own use
//!   does not count as idle, so the purge settles below half of what users leave.
//! - `granted` bounds the capacity that users give up when none is free.
//!
//! The rate is spent in slices so short that a write which waits for one is hardly delayed ([`SLICE`]). The number of
//! items in a slice follows from the measured cost of removing one. When users have not used the store for
//! [`GONE_AFTER`], slices grow with each pause without users, up to [`ALONE_ITEMS`]; the first request ends that.
//!
//! Nothing here reads a clock: every time comes with an [`Observation`].

use std::time::Duration;

use super::ConcurrentUse;
use super::shortage::{Look, Shortage, TOLERATED_AGE};
use super::stream::Stream;

/// Users are considered gone when they have not used the store for this long. The pauses between slices beside users
/// are shorter, and at a few requests a second many pauses are without a request.
const GONE_AFTER: Duration = Duration::from_millis(50);
/// The items of a slice when users have long been gone.
const ALONE_ITEMS: usize = 4096;
/// By this factor the next slice grows after a pause without users.
const GROWTH: usize = 32;
/// The pause for detecting users when they have long been gone.
const ALONE_PAUSE: Duration = Duration::from_millis(1);
/// While slices grow, a pause is this many times as long as the slice before it, within limits: long enough to detect
/// users, short enough to detect that they are gone.
const GROWING_PAUSES: u32 = 9;
const GROWING_PAUSE_MIN: Duration = Duration::from_millis(5);
const GROWING_PAUSE_MAX: Duration = Duration::from_millis(100);

/// The writer's time that a slice beside users may take.
const SLICE: Duration = Duration::from_micros(400);
/// The items of a slice beside users: at least, and at most.
const SLICE_ITEMS_MIN: usize = 8;
const SLICE_ITEMS_MAX: usize = 64;
/// The target period of slices beside users, and the longest. The period is shorter where a slice cannot hold what is
/// due in it.
const PERIOD: Duration = Duration::from_millis(2);
const PERIOD_MAX: Duration = Duration::from_millis(100);

/// The time in which the backlog of a stream is to be removed, at no more than twice the speed of the stream.
const STREAM_SECONDS: f64 = 10.0;
/// The time in which the backlog of a storm is to be removed even if users never pause.
const STORM_SECONDS: f64 = 1800.0;
/// The least rate that is wanted while there is a backlog.
const WANTED_MIN: f64 = 400.0;
/// The part of the wanted rate that counts as reaching it.
const AS_WANTED: f64 = 0.9;
/// The share of the writer's time that is taken before the oldest item has waited for [`TOLERATED_AGE`].
const SHARE_AT_FIRST: f64 = 0.05;
/// The part of the idle capacity that is used.
const SPARE_PART: f64 = 0.5;
/// The processor time of an item, preparing and compaction included, for each unit of the writer's time that it
/// takes.
const PROCESSOR_TO_WRITER: f64 = 2.0;
/// The assumed cost of an item until one was removed, and the bounds of the estimate, in seconds.
const COST_AT_FIRST: f64 = 50e-6;
const COST_MIN: f64 = 2e-6;
const COST_MAX: f64 = 0.1;
/// How fast estimates follow observations: after this many seconds, two thirds of the way. Items expire at full
/// seconds, so rates are averaged over several of them.
const SMOOTHING_SECONDS: f64 = 1.0;
pub(super) const RATE_SMOOTHING_SECONDS: f64 = 5.0;

/// The backlog of the purge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Expired items that are not removed yet.
    pub items: u64,
    /// How long ago the oldest of them expired.
    pub age: Duration,
}

/// The measurements since the last observation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Observation {
    /// The time since then.
    pub elapsed: Duration,
    /// Whether others used the store.
    pub concurrent_use: ConcurrentUse,
    /// Items that were removed.
    pub purged_items: u64,
    /// Those of them that were removed with background priority,
    pub background_items: u64,
    /// and the writer's time for these.
    pub purging: Duration,
    /// The writer's time for other work.
    pub writing: Duration,
    /// Whether compaction lags so far behind that writes are slowed down.
    pub merging_lags: bool,
    /// The number of idle processors; `None` if it was not measured, or the system does not provide it.
    pub idle_processors: Option<f64>,
    /// The backlog; `None` if it was not measured.
    pub backlog: Option<Backlog>,
}

/// What to do next: remove up to `items` items, then [pause](Slice::pause).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// The most items to remove.
    pub items: usize,
    rhythm: Rhythm,
}

/// When the next slice begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rhythm {
    /// This long after the present one has begun.
    Every(Duration),
    /// After a pause that is long enough to detect users.
    Growing,
    /// After the shortest pause that detects users.
    Alone,
}

impl Slice {
    /// Returns how long to pause after this slice, which took `took`.
    pub fn pause(&self, took: Duration) -> Duration {
        match self.rhythm {
            Rhythm::Every(period) => period.saturating_sub(took),
            Rhythm::Growing => (took * GROWING_PAUSES).clamp(GROWING_PAUSE_MIN, GROWING_PAUSE_MAX),
            Rhythm::Alone => ALONE_PAUSE,
        }
    }
}

/// The purge's pace, for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaceStatus {
    /// Items that expire per second.
    pub expiring_per_second: u64,
    /// Items that are removed per second.
    pub purging_per_second: u64,
    /// When the backlog will be gone if both rates continue; `None` while it grows.
    pub drained_in_seconds: Option<u64>,
    /// Whether the backlog and the age of its oldest item grow although all permitted capacity is used
    /// (`shortage.rs`). They will continue to grow until less is written or the purge is granted more.
    pub is_capacity_short: bool,
}

/// The status of a purge that has nothing to do.
impl Default for PaceStatus {
    fn default() -> PaceStatus {
        PaceStatus {
            expiring_per_second: 0,
            purging_per_second: 0,
            drained_in_seconds: Some(0),
            is_capacity_short: false,
        }
    }
}

/// The state machine.
#[derive(Debug, Clone)]
pub struct Pace {
    /// The share of the writer's time that an old backlog is granted.
    share: f64,
    /// How long users have not used the store.
    unused: Duration,
    /// The items of the last slice while users are gone.
    alone: Option<usize>,
    /// The writer's time for an item, in seconds.
    cost: f64,
    /// Idle shares of the time.
    writer_idle: f64,
    processors_idle: Option<f64>,
    merging_lags: bool,
    backlog: Backlog,
    /// Items per second.
    expiring: f64,
    purging: f64,
    stream: Stream,
    /// The largest backlog since it was last no more than a stream leaves.
    storm: u64,
    /// The time since the backlog was last measured.
    since_look: Duration,
    purged_since_look: u64,
    shortage: Shortage,
    /// Items that are due by the rate; below zero where a slice was ahead of it.
    credit: f64,
}

impl Pace {
    /// Creates a pace that grants an old backlog a share of the writer's time.
    pub fn new(share: f64) -> Pace {
        Pace {
            share,
            unused: Duration::ZERO,
            alone: None,
            cost: COST_AT_FIRST,
            writer_idle: 0.0,
            processors_idle: None,
            merging_lags: false,
            backlog: Backlog::default(),
            expiring: 0.0,
            purging: 0.0,
            stream: Stream::default(),
            storm: 0,
            since_look: Duration::ZERO,
            purged_since_look: 0,
            shortage: Shortage::default(),
            credit: 0.0,
        }
    }

    /// Takes what was observed since the last slice began, and returns what to do next.
    pub fn next(&mut self, seen: &Observation) -> Slice {
        self.learn(seen);
        self.unused = match seen.concurrent_use {
            ConcurrentUse::Present => Duration::ZERO,
            ConcurrentUse::Absent => self.unused.saturating_add(seen.elapsed),
        };
        if self.unused < GONE_AFTER {
            self.alone = None;
            return self.beside_users(seen.elapsed);
        }
        let items = self.alone.unwrap_or(SLICE_ITEMS_MIN).saturating_mul(GROWTH).min(ALONE_ITEMS);
        (self.alone, self.credit) = (Some(items), 0.0);
        let rhythm = if items < ALONE_ITEMS { Rhythm::Growing } else { Rhythm::Alone };
        Slice { items, rhythm }
    }

    /// Returns the status for operators.
    pub fn status(&self) -> PaceStatus {
        let net = self.purging - self.expiring;
        let drained = self.backlog.items as f64 / net;
        let is_waiting = self.backlog.items > 0;
        PaceStatus {
            expiring_per_second: self.expiring.round() as u64,
            purging_per_second: self.purging.round() as u64,
            drained_in_seconds: (!is_waiting || net > 0.0).then_some(if is_waiting {
                drained as u64
            } else {
                0
            }),
            // A backlog of storms may grow because it is removed slowly on purpose.
            is_capacity_short: self.shortage.is_short() && self.purging < AS_WANTED * self.wanted(),
        }
    }

    fn learn(&mut self, seen: &Observation) {
        let seconds = seen.elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let follow = |estimate: &mut f64, value: f64| toward(estimate, value, seconds / SMOOTHING_SECONDS);
        if seen.background_items > 0 {
            let cost = seen.purging.as_secs_f64() / seen.background_items as f64;
            follow(&mut self.cost, cost.clamp(COST_MIN, COST_MAX));
        }
        let busy = (seen.writing + seen.purging).as_secs_f64() / seconds;
        follow(&mut self.writer_idle, (1.0 - busy).clamp(0.0, 1.0));
        let purged = seen.purged_items as f64 / seconds;
        toward(&mut self.purging, purged, seconds / RATE_SMOOTHING_SECONDS);
        self.merging_lags = seen.merging_lags;
        if let Some(idle) = seen.idle_processors {
            self.processors_idle =
                Some(self.processors_idle.map_or(idle, |before| f64::midpoint(before, idle)));
        }
        self.since_look += seen.elapsed;
        self.purged_since_look += seen.purged_items;
        if let Some(backlog) = seen.backlog {
            self.look(backlog);
        }
    }

    /// Takes a measurement of the backlog. What has expired since the last one is what the backlog has grown by plus
    /// what was removed.
    fn look(&mut self, backlog: Backlog) {
        let seconds = self.since_look.as_secs_f64();
        let gone = self.purged_since_look;
        let expired = (backlog.items + gone).saturating_sub(self.backlog.items);
        if seconds > 0.0 {
            toward(&mut self.expiring, expired as f64 / seconds, seconds / RATE_SMOOTHING_SECONDS);
            self.stream.look(seconds, expired);
            self.shortage.look(Look { seconds, expired, purged: gone, backlog });
        }
        let is_over = backlog.items as f64 <= self.stream.speed() * STREAM_SECONDS;
        self.storm = if is_over { 0 } else { self.storm.max(backlog.items) };
        self.backlog = backlog;
        (self.since_look, self.purged_since_look) = (Duration::ZERO, 0);
    }

    /// Returns the slice for what is due after `elapsed`. A slice that waited for the writer is followed by a larger
    /// one, so that the rate is kept.
    fn beside_users(&mut self, elapsed: Duration) -> Slice {
        let wanted = self.wanted();
        let share =
            if self.backlog.age >= TOLERATED_AGE { self.share } else { SHARE_AT_FIRST.min(self.share) };
        let rate = wanted.min(self.spare().max(share / self.cost)).max(f64::MIN_POSITIVE);
        let (least, most) = (SLICE_ITEMS_MIN as f64, SLICE_ITEMS_MAX as f64);
        let fitting = (SLICE.as_secs_f64() / self.cost).clamp(least, most);
        self.credit = (self.credit + rate * elapsed.as_secs_f64()).min(fitting);
        let items = self.credit.clamp(least, fitting).floor();
        self.credit = (self.credit - items).max(-least);
        // The time until the next slice is paid for.
        let next = (rate * PERIOD.as_secs_f64()).clamp(least, fitting);
        let period = ((next - self.credit) / rate).min(PERIOD_MAX.as_secs_f64());
        let (items, period) = (items as usize, Duration::from_secs_f64(period));
        Slice { items, rhythm: Rhythm::Every(period) }
    }

    /// Returns the items per second that should be removed.
    fn wanted(&self) -> f64 {
        let stream = self.stream.speed();
        let rest = (self.backlog.items as f64 / STREAM_SECONDS).min(stream);
        stream + rest.max(self.storm as f64 / STORM_SECONDS).max(WANTED_MIN)
    }

    /// Returns the items per second that idle capacity pays for.
    fn spare(&self) -> f64 {
        if self.merging_lags {
            return 0.0;
        }
        let by_writer = self.writer_idle / self.cost;
        let by_processors = self.processors_idle.map_or(0.0, |idle| idle / (self.cost * PROCESSOR_TO_WRITER));
        SPARE_PART * by_writer.min(by_processors)
    }
}

/// Moves an estimate toward an observation that held for this many time constants.
pub(super) fn toward(estimate: &mut f64, observed: f64, constants: f64) {
    *estimate += (1.0 - (-constants).exp()) * (observed - *estimate);
}
