//! The running requests of a connection that wait, each in a task of its own.

use std::future::Future;

use tokio::task::JoinSet;

use crate::message::request::Verb;

/// The tasks of a connection's requests. All end with the connection; reads end as soon as its client has left.
#[derive(Debug, Default)]
pub(crate) struct Working {
    reads: JoinSet<()>,
    writes: JoinSet<()>,
}

impl Working {
    /// Continues a request in a task.
    pub(crate) fn spawn(&mut self, verb: Verb, work: impl Future<Output = ()> + Send + 'static) {
        let tasks = if verb.is_read() { &mut self.reads } else { &mut self.writes };
        tasks.spawn(work);
    }

    /// Releases the tasks that have ended.
    pub(crate) fn clear_ended(&mut self) {
        for tasks in [&mut self.reads, &mut self.writes] {
            while tasks.try_join_next().is_some() {}
        }
    }

    /// Ends the reads, for which no client waits any more. Writes continue until the connection ends: they may be
    /// submitted.
    pub(crate) fn abandon_reads(&mut self) {
        self.reads.abort_all();
    }
}
