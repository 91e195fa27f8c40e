//! The loops around background work: the purge, the promises about it, and what the log says of the clock.
//!
//! The purge is a bounded step, then sleep until the engine says that something is due. An idle store costs nothing here.
//! Writes, policy changes and moves of the clock ring when something becomes due earlier than the loop believes.
//!
//! Users come first (T20). Between two steps the loop pauses and looks whether anybody used the store meanwhile. As long as
//! somebody does, steps are small and take a small share of the time; each pause in which nobody does lets them grow, until they
//! are large and follow each other. So a moment without users, which also a busy store has, is not taken for their absence. A step
//! that meets a user ends with the sweep it is in. Only a retention promise (T24) waits for nobody.

use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, Neighbours, PurgeNews, PurgeReport, Scrubbed};
use storage::{Time, WallClock};
use tokio::sync::Notify;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{Instant, sleep, timeout};

use crate::clock_log::ClockLog;

/// Items per step while users are there, and when they have long been gone.
const BUSY_ITEMS: usize = 4;
const IDLE_ITEMS: usize = 4096;

/// So many times as many items has the next step after a pause without users.
const GROWTH: usize = 32;

/// Until they have long been gone, pauses are so many times as long as steps,
const BUSY_PAUSES: u32 = 9;
/// within these limits: long enough to notice users, short enough to notice that they are gone.
const BUSY_PAUSE_MIN: Duration = Duration::from_millis(5);
const BUSY_PAUSE_MAX: Duration = Duration::from_millis(100);

/// The pause in which users are looked for when they have long been gone.
const IDLE_PAUSE: Duration = Duration::from_millis(1);

/// The longest sleep; wall clocks get adjusted, so due times and the clock itself are looked at again now and then.
const SLEEP_MAX: Duration = Duration::from_mins(10);

/// Pause after a step that found nothing to do although something was due.
const EMPTY_PAUSE: Duration = Duration::from_millis(10);

/// Pause after a failed step.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// The shortest time between two looks at the promises.
const PROMISE_PAUSE: Duration = Duration::from_millis(100);

/// Runs until dropped.
pub(crate) async fn run(engine: Arc<Engine>, clock: Arc<dyn WallClock>) {
    let bell = Arc::new(Notify::new());
    let ringer = Arc::clone(&bell);
    engine.on_purge_due(move || ringer.notify_one());
    let stepped = Notify::new();
    let log = ClockLog::new(clock);
    tokio::join!(
        remove(&engine, &bell, &stepped, &log),
        keep_promises(&engine, &stepped),
        log.watch(&engine)
    );
}

/// What comes after a step.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// There is more: another step of that urgency.
    More { urgent: bool, users: bool },
    /// Nothing is due before.
    Sleep(Duration),
}

/// How many items the next step may have: the more, the longer nobody has used the store besides the purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stride(usize);

impl Stride {
    /// While users are there. Who has slept does not know who came meanwhile, and begins as if somebody had.
    const WITH_USERS: Stride = Stride(BUSY_ITEMS);

    /// How long to make way after a step that took so long.
    fn pause(self, step: Duration) -> Duration {
        if self.0 < IDLE_ITEMS {
            (step * BUSY_PAUSES).clamp(BUSY_PAUSE_MIN, BUSY_PAUSE_MAX)
        } else {
            IDLE_PAUSE
        }
    }

    /// The one after a pause in which nobody was seen.
    fn grown(self) -> Stride {
        Stride((self.0 * GROWTH).min(IDLE_ITEMS))
    }
}

/// Steps of the purge.
async fn remove(engine: &Arc<Engine>, bell: &Notify, stepped: &Notify, log: &ClockLog) {
    let mut stride = Stride::WITH_USERS;
    loop {
        let began = Instant::now();
        let next = step(engine, stride.0, log).await.unwrap_or_else(|error| {
            tracing::error!("the purge failed and will be tried again: {error:#}");
            Next::Sleep(FAILURE_PAUSE)
        });
        stepped.notify_one();
        match next {
            Next::More { urgent: true, .. } => yield_now().await,
            Next::More { urgent: false, users } => {
                stride = if users { Stride::WITH_USERS } else { stride };
                let before = engine.operations();
                sleep(stride.pause(began.elapsed())).await;
                stride = if engine.operations() > before { Stride::WITH_USERS } else { stride.grown() };
            }
            Next::Sleep(pause) => {
                let _ = timeout(pause, bell.notified()).await;
                stride = Stride::WITH_USERS;
            }
        }
    }
}

/// One step, and what comes after it.
async fn step(engine: &Arc<Engine>, items: usize, log: &ClockLog) -> anyhow::Result<Next> {
    let worker = Arc::clone(engine);
    let report = spawn_blocking(move || worker.purge_step(items)).await?;
    log_news(engine);
    let (report, clock) = (report?, engine.clock_status()?);
    log.log(&clock);
    Ok(after(&report, clock.now, engine.next_left_over()))
}

/// `next_units` is how long it takes until units that users leave unused come in.
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
    Next::More { urgent: report.urgent, users: report.neighbours == Neighbours::Present }
}

/// Looks after retention promises: whenever the purge has done something, and when the engine says so.
async fn keep_promises(engine: &Arc<Engine>, stepped: &Notify) {
    let mut pause = SLEEP_MAX;
    loop {
        let _ = timeout(pause, stepped.notified()).await;
        pause = look_after(engine).await.unwrap_or_else(|error| {
            tracing::error!("looking after retention promises failed and will be tried again: {error:#}");
            FAILURE_PAUSE
        });
        sleep(PROMISE_PAUSE).await;
    }
}

/// One look, and how long until the next.
async fn look_after(engine: &Arc<Engine>) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let worker = Arc::clone(engine);
    let report = spawn_blocking(move || worker.retention_step()).await??;
    for failure in &report.failures {
        tracing::error!("a retention promise cannot be looked after: {failure}");
    }
    for container in &report.missed {
        tracing::error!(
            "retention promise missed: '{container}' has items that are dead for longer than its maxPurgeDelay, and \
             their bytes are still in the data directory"
        );
    }
    match report.scrubbed {
        Some(Scrubbed::Done) => {
            tracing::info!("scrubbed what was purged out of the data directory in {:?}", began.elapsed());
        }
        Some(Scrubbed::Held) => tracing::warn!("a scrub waits for a snapshot that somebody still reads"),
        None => {}
    }
    let Some(due) = report.next_due else { return Ok(SLEEP_MAX) };
    Ok(Duration::from_millis(due.millis_since(engine.now()?)).min(SLEEP_MAX))
}

/// Says once when the purge of a container begins to wait for its archive, and once when it goes on (T32); and which expired items
/// it had to set aside.
fn log_news(engine: &Engine) {
    for news in engine.take_purge_news() {
        match news {
            PurgeNews::Waits { container, error } => tracing::error!(
                "the purge of '{container}' waits for its archive, nothing of it is dropped meanwhile: {error}"
            ),
            PurgeNews::GoesOn { container } => {
                tracing::warn!("the archive of '{container}' can be written again, its purge goes on");
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
    fn t20_steps_grow_with_each_pause_without_users_and_pauses_grow_with_them() {
        let mut stride = Stride::WITH_USERS;
        for (items, pause) in [(4, 5), (128, 36), (4096, 1), (4096, 1)] {
            assert_eq!(stride, Stride(items));
            let step = Duration::from_micros(1_000 * items as u64 / 32);
            assert_eq!(stride.pause(step), Duration::from_millis(pause), "{items}");
            stride = stride.grown();
        }
        for (step, pause) in [(0, 5), (1, 9), (2, 18), (50, 100)] {
            let [step, pause] = [step, pause].map(Duration::from_millis);
            assert_eq!(Stride::WITH_USERS.pause(step), pause);
            assert_eq!(Stride(IDLE_ITEMS).pause(step), IDLE_PAUSE);
        }
    }

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
            // Nothing was done although something is due: no spinning, and no waiting for units that nobody lacks.
            (idle, Next::Sleep(EMPTY_PAUSE)),
            (PurgeReport { out_of_units: true, ..idle }, Next::Sleep(second)),
            (busy, Next::More { urgent: false, users: false }),
            (
                PurgeReport { neighbours: Neighbours::Present, ..busy },
                Next::More { urgent: false, users: true },
            ),
            (PurgeReport { urgent: true, ..busy }, Next::More { urgent: true, users: false }),
        ] {
            assert_eq!(after(&report, now, Some(second)), next, "{report:?}");
        }
    }
}
