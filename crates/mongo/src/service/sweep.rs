//! The background step of the front end: closes what has exceeded its lifetime, whether or not another command ever
//! arrives.
//!
//! Idle cursors, transactions that last too long and unused sessions hold memory; a transaction also holds a snapshot, and
//! with it the bytes of everything removed since (T24). [`Service::sweep`] is bounded and returns when it is next due;
//! [`Service::sweep_due`] waits for that time, or for something that becomes due earlier. The loop that joins the two is
//! the server's.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::service::Service;

/// How many transactions one step ends at most: each may have made collections, which are dropped with it.
const TRANSACTIONS_PER_STEP: usize = 64;
/// How many cursors one step closes at most, and how many sessions.
const ENTRIES_PER_STEP: usize = 1024;

/// When a step that has panicked is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

/// The earliest time at which something may be due.
#[derive(Debug, Default)]
pub(crate) struct SweepTimer {
    next: Mutex<Option<Instant>>,
    changed: Notify,
}

impl SweepTimer {
    /// Notes that something is due at `due`: wakes the waiting step if it would come later.
    pub(crate) fn set(&self, due: Instant) {
        let mut next = self.next.lock();
        if next.is_none_or(|next| due < next) {
            *next = Some(due);
            self.changed.notify_one();
        }
    }

    /// Runs a step, which begins with nothing due: what becomes due meanwhile is set again. If the step panics, it is due
    /// again at `retry`, since the rest of its work still waits.
    fn during<T>(&self, retry: Instant, step: impl FnOnce() -> T) -> T {
        struct Retry<'a>(&'a SweepTimer, Instant);
        impl Drop for Retry<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.set(self.1);
                }
            }
        }
        *self.next.lock() = None;
        let _retry = Retry(self, retry);
        step()
    }

    async fn wait(&self) {
        loop {
            let notified = self.changed.notified();
            let next = *self.next.lock();
            match next {
                Some(due) => tokio::select! {
                    () = sleep_until(due) => return,
                    () = notified => {}
                },
                None => notified.await,
            }
        }
    }
}

impl Service {
    /// Closes cursors, aborts transactions and ends sessions that have exceeded their lifetime at `now`. Returns when the
    /// next of them is due; none if nothing can become due. One step is bounded: the rest is due at once.
    pub fn sweep(&self, now: Instant) -> Option<Instant> {
        self.sweep_timer.during(now + RETRY_PAUSE, || self.sweep_step(now))
    }

    fn sweep_step(&self, now: Instant) -> Option<Instant> {
        let transactions = self.transactions.sweep(now, TRANSACTIONS_PER_STEP);
        let cursors = self.cursors.sweep(now, self.cursor_idle(), ENTRIES_PER_STEP);
        let sessions = self.sessions.sweep(now, ENTRIES_PER_STEP);
        self.clean_up_all(&sessions.expired);
        let dues = [transactions.next_due, cursors.next_due, sessions.next_due];
        let next = dues.into_iter().flatten().min();
        if let Some(next) = next {
            self.sweep_timer.set(next);
        }
        next
    }

    /// Completes when a step of [`Service::sweep`] is due. Waits for ever as long as nothing can become due.
    pub async fn sweep_due(&self) {
        self.sweep_timer.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_step_that_panics_is_due_again() {
        let alarm = SweepTimer::default();
        let retry = Instant::now() + RETRY_PAUSE;
        alarm.set(Instant::now());
        assert_eq!(alarm.during(retry, || 1), 1);
        assert_eq!(*alarm.next.lock(), None, "nothing is due after a step that came to its end");
        let panicked = catch_unwind(AssertUnwindSafe(|| alarm.during(retry, || panic!("as planned"))));
        assert!(panicked.is_err());
        alarm.wait().await;
        assert_eq!(Instant::now(), retry);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_step_wakes_at_the_earliest_due_time() {
        let alarm = Arc::new(SweepTimer::default());
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let waiting = Arc::clone(&alarm);
        let woken = tokio::spawn(async move {
            waiting.wait().await;
            Instant::now()
        });
        tokio::time::sleep(5 * second).await;
        alarm.set(start + 60 * second);
        tokio::time::sleep(5 * second).await;
        alarm.set(start + 30 * second);
        alarm.set(start + 90 * second);
        assert_eq!(woken.await.unwrap(), start + 30 * second);
    }
}
