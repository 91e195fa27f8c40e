//! The thread that removes what has expired. It sleeps while nothing is due, and stands back while the store is in use.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use engine::{Engine, Neighbours, PurgeReport};
use parking_lot::{Condvar, Mutex};

/// Items in a step: what a write may have to wait for.
const STEP_ITEMS: usize = 64;

/// Pause after a step that met users of the store, and after one that did not.
const BUSY_PAUSE: Duration = Duration::from_millis(20);
const IDLE_PAUSE: Duration = Duration::from_millis(1);

/// Pause after a step that failed, or that found nothing to do although something is due.
const EMPTY_PAUSE: Duration = Duration::from_secs(1);

/// The longest sleep; wall clocks get adjusted.
const SLEEP_MAX: Duration = Duration::from_mins(10);

/// Why the thread wakes up before its time.
#[derive(Default)]
struct Bell {
    state: Mutex<Call>,
    rung: Condvar,
}

#[derive(Default)]
struct Call {
    due: bool,
    stop: bool,
}

impl Bell {
    fn ring(&self, change: impl FnOnce(&mut Call)) {
        change(&mut self.state.lock());
        self.rung.notify_one();
    }

    /// Sleeps until somebody rings or the time is over; false if it is over for good.
    fn sleep(&self, time: Duration) -> bool {
        let mut call = self.state.lock();
        if !call.due && !call.stop {
            self.rung.wait_for(&mut call, time);
        }
        call.due = false;
        !call.stop
    }
}

/// The running thread; dropping this ends it.
pub(crate) struct Purge {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Purge {
    pub(crate) fn start(engine: &Arc<Engine>) -> Purge {
        let bell = Arc::new(Bell::default());
        let ringer = Arc::clone(&bell);
        engine.on_purge_due(move || ringer.ring(|call| call.due = true));
        let (worker, listener) = (Arc::clone(engine), Arc::clone(&bell));
        let thread = Builder::new().name("bolide-purge".to_owned()).spawn(move || run(&worker, &listener));
        // Without a thread nothing is purged, and nothing dead is visible all the same.
        Purge { bell, thread: thread.ok() }
    }
}

impl Drop for Purge {
    fn drop(&mut self) {
        self.bell.ring(|call| call.stop = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(engine: &Engine, bell: &Bell) {
    let mut pause = Duration::ZERO;
    while bell.sleep(pause) {
        let step = engine.purge_step(STEP_ITEMS).and_then(|report| {
            engine.retention_step()?;
            Ok(after(&report, engine.now()?.millis()))
        });
        pause = step.unwrap_or(EMPTY_PAUSE);
    }
}

/// How long to sleep after a step.
fn after(report: &PurgeReport, now_ms: u64) -> Duration {
    let Some(due) = report.next_due else { return SLEEP_MAX };
    let wait = Duration::from_millis(due.millis().saturating_sub(now_ms));
    if !wait.is_zero() {
        return wait.min(SLEEP_MAX);
    }
    if report.purged_items == 0 && report.other_entries == 0 {
        return EMPTY_PAUSE;
    }
    if report.neighbours == Neighbours::Present && !report.urgent { BUSY_PAUSE } else { IDLE_PAUSE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::Time;

    #[test]
    fn what_comes_after_a_step() {
        let idle = PurgeReport { next_due: Some(Time::from_seconds(100)), ..PurgeReport::default() };
        let busy = PurgeReport { purged_items: 1, ..idle };
        for (report, pause) in [
            (PurgeReport::default(), SLEEP_MAX),
            (PurgeReport { next_due: Some(Time::from_seconds(103)), ..idle }, Duration::from_secs(3)),
            (idle, EMPTY_PAUSE),
            (busy, IDLE_PAUSE),
            (PurgeReport { neighbours: Neighbours::Present, ..busy }, BUSY_PAUSE),
            (PurgeReport { neighbours: Neighbours::Present, urgent: true, ..busy }, IDLE_PAUSE),
        ] {
            assert_eq!(after(&report, 100_000), pause, "{report:?}");
        }
    }
}
