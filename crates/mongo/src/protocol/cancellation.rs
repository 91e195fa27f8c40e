//! How a running command is stopped: by its client, by an operator, by a time limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Why a command is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelReason {
    /// Its `maxTimeMS` is over.
    TimeLimit = 1,
    /// A client or an operator has sent `killOp` or killed its session.
    Killed = 2,
    /// The client has left.
    Abandoned = 3,
    /// The lifetime of its transaction is over.
    TransactionExpired = 4,
    /// Another command has ended its transaction.
    TransactionAborted = 5,
}

/// Stops a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancellation {
    /// The flag that working code checks.
    pub(crate) flag: Arc<AtomicBool>,
    reason: Arc<AtomicU8>,
    /// Wakes code that waits.
    waiters: Arc<Notify>,
}

impl Cancellation {
    /// Stops the command; the first reason is kept.
    pub(crate) fn cancel(&self, reason: CancelReason) {
        let _ = self.reason.compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire);
        self.flag.store(true, Ordering::Release);
        self.waiters.notify_waiters();
    }

    /// Whether it stops the same command as `other`.
    pub(crate) fn is(&self, other: &Cancellation) -> bool {
        Arc::ptr_eq(&self.flag, &other.flag)
    }

    /// Completes when the command is to stop.
    pub(crate) async fn cancelled(&self) {
        loop {
            let notified = self.waiters.notified();
            if self.flag.load(Ordering::Acquire) {
                return;
            }
            notified.await;
        }
    }

    /// Why the command was stopped, if it was.
    pub(crate) fn reason(&self) -> Option<CancelReason> {
        [
            CancelReason::TimeLimit,
            CancelReason::Killed,
            CancelReason::Abandoned,
            CancelReason::TransactionExpired,
            CancelReason::TransactionAborted,
        ]
        .into_iter()
        .find(|stop| *stop as u8 == self.reason.load(Ordering::Acquire))
    }
}

/// Cancels a command when its time is over, unless it is dropped before.
pub(crate) struct Timer(tokio::task::JoinHandle<()>);

impl Timer {
    pub(crate) fn start(limit: Duration, cancellation: Cancellation) -> Timer {
        Timer(tokio::spawn(async move {
            tokio::time::sleep(limit).await;
            cancellation.cancel(CancelReason::TimeLimit);
        }))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}
