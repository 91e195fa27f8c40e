//! The commands that run just now, so that they can be shown, limited in time and stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use bson::RawDocument;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::session::SessionId;

/// Why a command is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its `maxTimeMS` is over.
    TimeLimit = 1,
    /// Somebody said `killOp` or killed its session.
    Killed = 2,
    /// Nobody waits for its answer.
    Abandoned = 3,
    /// The lifetime of its transaction is over.
    TransactionExpired = 4,
}

/// The way to stop a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Brake {
    /// What the work looks at.
    pub(crate) pulled: Arc<AtomicBool>,
    why: Arc<AtomicU8>,
    /// What waits instead of working.
    waiting: Arc<Notify>,
}

impl Brake {
    /// Stops the command; the first reason counts.
    pub(crate) fn pull(&self, why: Stop) {
        let _ = self.why.compare_exchange(0, why as u8, Ordering::AcqRel, Ordering::Acquire);
        self.pulled.store(true, Ordering::Release);
        self.waiting.notify_waiters();
    }

    /// Returns when the command is to stop.
    pub(crate) async fn stopped(&self) {
        loop {
            let rung = self.waiting.notified();
            if self.pulled.load(Ordering::Acquire) {
                return;
            }
            rung.await;
        }
    }

    /// Why the command was stopped, if it was.
    pub(crate) fn why(&self) -> Option<Stop> {
        [Stop::TimeLimit, Stop::Killed, Stop::Abandoned, Stop::TransactionExpired]
            .into_iter()
            .find(|stop| *stop as u8 == self.why.load(Ordering::Acquire))
    }
}

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) database: String,
    pub(crate) body: RawDocument,
    pub(crate) session: Option<SessionId>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) since: Instant,
    pub(crate) brake: Brake,
}

/// All commands that run.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    running: Mutex<(u32, BTreeMap<u32, Arc<Operation>>)>,
}

impl Operations {
    /// Enters a command; it leaves when the guard is dropped. Numbers are positive and come again only after two thousand
    /// million others.
    pub(crate) fn enter(self: &Arc<Self>, make: impl FnOnce(u32) -> Operation) -> Running {
        let mut running = self.running.lock();
        running.0 = running.0 % (i32::MAX as u32) + 1;
        let number = running.0;
        let operation = Arc::new(make(number));
        running.1.insert(number, Arc::clone(&operation));
        Running { operations: Arc::clone(self), number }
    }

    /// All that run, in the order they came.
    pub(crate) fn list(&self) -> Vec<Arc<Operation>> {
        self.running.lock().1.values().cloned().collect()
    }

    /// Stops those that are meant.
    pub(crate) fn stop(&self, which: impl Fn(&Operation) -> bool, why: Stop) {
        for operation in self.list().iter().filter(|operation| which(operation)) {
            operation.brake.pull(why);
        }
    }
}

/// A command's entry.
#[derive(Debug)]
pub(crate) struct Running {
    operations: Arc<Operations>,
    pub(crate) number: u32,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.operations.running.lock().1.remove(&self.number);
    }
}

/// Pulls a brake when the time is over, unless it is dropped before.
pub(crate) struct Timer(tokio::task::JoinHandle<()>);

impl Timer {
    pub(crate) fn start(limit: Duration, brake: Brake) -> Timer {
        Timer(tokio::spawn(async move {
            tokio::time::sleep(limit).await;
            brake.pull(Stop::TimeLimit);
        }))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}
