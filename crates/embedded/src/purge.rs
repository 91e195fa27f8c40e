//! The thread that purges expired items. It sleeps while nothing is due, and yields while the store is in use.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use engine::{ConcurrentUse, Engine, PurgeReport};
use parking_lot::{Condvar, Mutex};

/// Items in a step; a write may have to wait for a step.
const STEP_ITEMS: usize = 64;

/// The pause after a step during which others used the store, and after one without.
const BUSY_PAUSE: Duration = Duration::from_millis(20);
const IDLE_PAUSE: Duration = Duration::from_millis(1);

/// The pause after a step that failed, or that found nothing to do although something is due.
const EMPTY_PAUSE: Duration = Duration::from_secs(1);

/// The longest sleep, since wall clocks are adjusted.
const SLEEP_MAX: Duration = Duration::from_mins(10);

/// The signal that wakes the thread early.
#[derive(Default)]
struct Wakeup {
    state: Mutex<Signal>,
    signalled: Condvar,
}

#[derive(Default)]
struct Signal {
    due: bool,
    stop: bool,
}

impl Wakeup {
    fn signal(&self, change: impl FnOnce(&mut Signal)) {
        change(&mut self.state.lock());
        self.signalled.notify_one();
    }

    /// Sleeps until a signal or the end of `time`; returns false when the thread must end.
    fn sleep(&self, time: Duration) -> bool {
        let mut call = self.state.lock();
        if !call.due && !call.stop {
            self.signalled.wait_for(&mut call, time);
        }
        call.due = false;
        !call.stop
    }
}

/// The running thread; dropping this ends it.
pub(crate) struct Purge {
    wakeup: Arc<Wakeup>,
    thread: Option<JoinHandle<()>>,
}

impl Purge {
    pub(crate) fn start(engine: &Arc<Engine>) -> Purge {
        let wakeup = Arc::new(Wakeup::default());
        let sender = Arc::clone(&wakeup);
        engine.on_purge_due(move || sender.signal(|call| call.due = true));
        let (worker, receiver) = (Arc::clone(engine), Arc::clone(&wakeup));
        let thread = Builder::new().name("bolide-purge".to_owned()).spawn(move || run(&worker, &receiver));
        // Without a thread no item is purged, but expired items stay hidden.
        Purge { wakeup, thread: thread.ok() }
    }
}

impl Drop for Purge {
    fn drop(&mut self) {
        self.wakeup.signal(|call| call.stop = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(engine: &Engine, wakeup: &Wakeup) {
    let mut pause = Duration::ZERO;
    while wakeup.sleep(pause) {
        let step = engine.purge_step(STEP_ITEMS).and_then(|report| {
            engine.retention_step()?;
            Ok(after(&report, engine.now()?.millis()))
        });
        pause = step.unwrap_or(EMPTY_PAUSE);
    }
}

/// Returns how long to sleep after a step.
fn after(report: &PurgeReport, now_ms: u64) -> Duration {
    let Some(due) = report.next_due else { return SLEEP_MAX };
    let wait = Duration::from_millis(due.millis().saturating_sub(now_ms));
    if !wait.is_zero() {
        return wait.min(SLEEP_MAX);
    }
    if report.purged_items == 0 && report.other_entries == 0 {
        return EMPTY_PAUSE;
    }
    if report.concurrent_use == ConcurrentUse::Present && !report.urgent { BUSY_PAUSE } else { IDLE_PAUSE }
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
            (PurgeReport { concurrent_use: ConcurrentUse::Present, ..busy }, BUSY_PAUSE),
            (PurgeReport { concurrent_use: ConcurrentUse::Present, urgent: true, ..busy }, IDLE_PAUSE),
        ] {
            assert_eq!(after(&report, 100_000), pause, "{report:?}");
        }
    }
}
