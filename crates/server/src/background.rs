//! The background loops: the purge, its retention promises, and the clock's log lines.
//!
//! The purge is a bounded step, followed by a sleep until the engine's next due time. An idle store costs nothing here.
//! Writes, policy changes and clock changes notify the loop when something becomes due earlier than it expects.
//!
//! Users come first (T20). [`Pace`] decides the number of items in a step and the pause after it, from the observations
//! made here: whether others used the store, how busy its writer and the machine's processors were, how much waits and
//! for how long. A step that meets users ends with its current sweep. Only a retention promise (T24) does not yield.

use std::sync::Arc;
use std::time::Duration;

use engine::{
    Backlog, ConcurrentUse, Engine, Observation, Pace, PaceStatus, PurgeNews, PurgeReport, Scrubbed, Slice,
    WriterLoad,
};
use storage::{Time, WallClock};
use tokio::sync::Notify;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{Instant, sleep, timeout};

use crate::clock_log::ClockLog;
use crate::processors::Processors;

/// How often the backlog and the processors are measured; less often where that takes long: at most one part in this
/// many of the time.
const LOOK_PAUSE: Duration = Duration::from_millis(250);
const LOOK_PART: u32 = 50;

/// The length of a sleep after which the reported pace is reset. Items expire by the second, so shorter sleeps are part
/// of normal work.
const REST: Duration = Duration::from_secs(5);

/// The longest sleep; wall clocks are adjusted, so due times and the clock are checked again now and then.
const SLEEP_MAX: Duration = Duration::from_mins(10);

/// The pause after a step that found nothing to do although something was due.
const EMPTY_PAUSE: Duration = Duration::from_millis(10);

/// The pause after a failed step.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// The shortest time between two checks of the retention promises.
const PROMISE_PAUSE: Duration = Duration::from_millis(100);

/// Runs the loops until dropped. `share` is the part of the writer's time that an old backlog may use.
pub(crate) async fn run(engine: Arc<Engine>, clock: Arc<dyn WallClock>, share: f64) {
    let wakeup = Arc::new(Notify::new());
    let ringer = Arc::clone(&wakeup);
    engine.on_purge_due(move || ringer.notify_one());
    let stepped = Notify::new();
    let log = ClockLog::new(clock);
    tokio::join!(
        remove(&engine, &wakeup, &stepped, &log, share),
        keep_promises(&engine, &stepped),
        log.watch(&engine)
    );
}

/// What follows a step.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// More work: another step with this urgency.
    More { urgent: bool, concurrent_use: ConcurrentUse },
    /// Nothing is due before this.
    Sleep(Duration),
}

/// Runs the steps of the purge.
async fn remove(engine: &Arc<Engine>, wakeup: &Notify, stepped: &Notify, log: &ClockLog, share: f64) {
    let mut observer = Observer::new(Arc::clone(engine), share);
    let mut slice = observer.next(ConcurrentUse::Present).await;
    // When the current step was due. Sleeps last up to a millisecond longer than requested; the next one is shortened
    // by that.
    let mut due = Instant::now();
    loop {
        let next = step(engine, slice.items, log, &mut observer).await.unwrap_or_else(|error| {
            tracing::error!("the purge failed and will be retried: {error:#}");
            Next::Sleep(FAILURE_PAUSE)
        });
        stepped.notify_one();
        let concurrent_use = match next {
            Next::More { urgent: true, concurrent_use } => {
                yield_now().await;
                due = Instant::now();
                concurrent_use
            }
            Next::More { urgent: false, concurrent_use } => {
                let before = engine.operations();
                let (now, pause) = (Instant::now(), slice.pause(due.elapsed()));
                due = now + pause;
                sleep(pause).await;
                if engine.operations() > before { ConcurrentUse::Present } else { concurrent_use }
            }
            Next::Sleep(pause) => {
                observer.rest(pause);
                let _ = timeout(pause, wakeup.notified()).await;
                due = Instant::now();
                // Whether there were requests meanwhile is unknown.
                ConcurrentUse::Present
            }
        };
        slice = observer.next(concurrent_use).await;
    }
}

/// Collects the observations for [`Pace`], and reports its status to operators.
struct Observer {
    engine: Arc<Engine>,
    pace: Pace,
    processors: Processors,
    /// When the last observation was made, and the writer's load then.
    observed: (Instant, WriterLoad),
    /// When the backlog is measured again.
    next_look: Instant,
    purged_items: u64,
    background_items: u64,
}

impl Observer {
    fn new(engine: Arc<Engine>, share: f64) -> Observer {
        let (now, load) = (Instant::now(), engine.writer_load());
        Observer {
            engine,
            pace: Pace::new(share),
            processors: Processors::new(),
            observed: (now, load),
            next_look: now,
            purged_items: 0,
            background_items: 0,
        }
    }

    /// Records the result of a step.
    fn stepped(&mut self, report: &PurgeReport) {
        self.purged_items += report.purged_items;
        self.background_items += report.background_items;
    }

    /// Records that nothing is due for `pause`. The reported pace no longer applies.
    fn rest(&self, pause: Duration) {
        if pause >= REST {
            self.engine.note_purge_pace(PaceStatus::default());
        }
    }

    /// Returns what to do next.
    async fn next(&mut self, concurrent_use: ConcurrentUse) -> Slice {
        let (backlog, idle_processors) = self.look().await;
        let (now, load) = (Instant::now(), self.engine.writer_load());
        let (before, load_before) = std::mem::replace(&mut self.observed, (now, load));
        let slice = self.pace.next(&Observation {
            elapsed: now - before,
            concurrent_use,
            purged_items: std::mem::take(&mut self.purged_items),
            background_items: std::mem::take(&mut self.background_items),
            purging: load.background.saturating_sub(load_before.background),
            writing: load.normal.saturating_sub(load_before.normal),
            merging_lags: load.compaction_lags,
            idle_processors,
            backlog,
        });
        if backlog.is_some() {
            self.tell();
        }
        slice
    }

    /// Measures the backlog and the idle processors, if it is time to.
    async fn look(&mut self) -> (Option<Backlog>, Option<f64>) {
        let began = Instant::now();
        if began < self.next_look {
            return (None, None);
        }
        let engine = Arc::clone(&self.engine);
        // The sweep reports damage.
        let backlog = spawn_blocking(move || engine.backlog()).await.ok().and_then(Result::ok).flatten();
        let looked = (backlog, self.processors.idle());
        self.next_look = Instant::now() + LOOK_PAUSE.max(began.elapsed() * LOOK_PART);
        looked
    }

    /// Reports the status to operators, and logs once when capacity becomes short and once when it suffices again.
    fn tell(&self) {
        let (before, status) = (self.engine.purge_status().pace, self.pace.status());
        self.engine.note_purge_pace(status);
        let PaceStatus { expiring_per_second, purging_per_second, is_capacity_short, .. } = status;
        if is_capacity_short && !before.is_capacity_short {
            tracing::warn!(
                "the purge is short of capacity: {expiring_per_second} items expire in a second and {purging_per_second} are \
                 removed; write less, use a faster machine or raise purge-share"
            );
        }
        if before.is_capacity_short && !is_capacity_short {
            tracing::info!("the purge keeps up again");
        }
    }
}

/// Runs one step and returns what follows.
async fn step(
    engine: &Arc<Engine>,
    items: usize,
    log: &ClockLog,
    observer: &mut Observer,
) -> anyhow::Result<Next> {
    let worker = Arc::clone(engine);
    let report = spawn_blocking(move || worker.purge_step(items)).await?;
    log_news(engine);
    let (report, clock) = (report?, engine.clock_status()?);
    log.log(&clock);
    observer.stepped(&report);
    Ok(after(&report, clock.now, engine.next_left_over()))
}

/// `next_units` is the time until unused throughput is available again.
fn after(report: &PurgeReport, now: Time, next_units: Option<Duration>) -> Next {
    let Some(due) = report.next_due else { return Next::Sleep(SLEEP_MAX) };
    let wait = Duration::from_millis(due.millis_since(now)).min(SLEEP_MAX);
    if !wait.is_zero() {
        return Next::Sleep(wait);
    }
    // Nothing was due although something should be: do not spin.
    if report.purged_items == 0 && report.other_entries == 0 {
        return Next::Sleep(next_units.filter(|_| report.out_of_units).unwrap_or(EMPTY_PAUSE));
    }
    Next::More { urgent: report.urgent, concurrent_use: report.concurrent_use }
}

/// Enforces retention promises: whenever the purge has done something, and when the engine requires it.
async fn keep_promises(engine: &Arc<Engine>, stepped: &Notify) {
    let mut pause = SLEEP_MAX;
    loop {
        let _ = timeout(pause, stepped.notified()).await;
        pause = look_after(engine).await.unwrap_or_else(|error| {
            tracing::error!("checking retention promises failed and will be retried: {error:#}");
            FAILURE_PAUSE
        });
        sleep(PROMISE_PAUSE).await;
    }
}

/// Runs one check; returns the time until the next.
async fn look_after(engine: &Arc<Engine>) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let worker = Arc::clone(engine);
    let report = spawn_blocking(move || worker.retention_step()).await??;
    for failure in &report.failures {
        tracing::error!("cannot enforce a retention promise: {failure}");
    }
    for container in &report.missed {
        tracing::error!(
            "retention promise missed: '{container}' has items that expired longer ago than its maxPurgeDelay, and \
             their bytes are still in the data directory"
        );
    }
    match report.scrubbed {
        Some(Scrubbed::Done) => {
            tracing::info!("scrubbed purged data from the data directory in {:?}", began.elapsed());
        }
        Some(Scrubbed::Held) => tracing::warn!("a scrub waits for an open snapshot"),
        None => {}
    }
    let Some(due) = report.next_due else { return Ok(SLEEP_MAX) };
    Ok(Duration::from_millis(due.millis_since(engine.now()?)).min(SLEEP_MAX))
}

/// Logs once when the purge of a container begins to wait for its archive, and once when it continues (T32); and the
/// expired items that it had to set aside.
fn log_news(engine: &Engine) {
    for news in engine.take_purge_news() {
        match news {
            PurgeNews::Waits { container, error } => tracing::error!(
                "the purge of '{container}' waits for its archive and removes nothing meanwhile: {error}"
            ),
            PurgeNews::GoesOn { container } => {
                tracing::warn!("the archive of '{container}' is writable again, its purge continues");
            }
            PurgeNews::SetAside { container, item, reason } => tracing::error!(
                "item {item} of '{container}' has expired and cannot be purged: {reason}; it is set aside and the purge goes \
                 on; stop the server and run bolide check --repair"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_step() {
        let (now, second) = (Time::from_seconds(100), Duration::from_secs(1));
        let due = |seconds| Some(Time::from_seconds(seconds));
        let idle = PurgeReport { next_due: due(100), ..PurgeReport::default() };
        let busy = PurgeReport { purged_items: 1, ..idle };
        for (report, next) in [
            (PurgeReport::default(), Next::Sleep(SLEEP_MAX)),
            (PurgeReport { next_due: due(103), ..busy }, Next::Sleep(3 * second)),
            (PurgeReport { next_due: due(99_999), ..busy }, Next::Sleep(SLEEP_MAX)),
            // Nothing was done although something is due: do not spin, and do not wait for throughput that is not
            // short.
            (idle, Next::Sleep(EMPTY_PAUSE)),
            (PurgeReport { out_of_units: true, ..idle }, Next::Sleep(second)),
            (busy, Next::More { urgent: false, concurrent_use: ConcurrentUse::Absent }),
            (
                PurgeReport { concurrent_use: ConcurrentUse::Present, ..busy },
                Next::More { urgent: false, concurrent_use: ConcurrentUse::Present },
            ),
            (
                PurgeReport { urgent: true, ..busy },
                Next::More { urgent: true, concurrent_use: ConcurrentUse::Absent },
            ),
        ] {
            assert_eq!(after(&report, now, Some(second)), next, "{report:?}");
        }
    }
}
