//! The queue of waiting work and the thread that does it.

use crate::sync::{self, Condvar, JoinHandle, Mutex};
use crate::writer::{Backend, Shared, Work, Writer, refuse};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

/// Submitters wait while this much work is queued; soon, in models, so that they come there.
const MAX_WAITING: usize = if cfg!(feature = "shuttle") { 3 } else { 4096 };

/// Work in the order of submission.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Work has come, or the queue is closed.
    filled: Condvar,
    /// There is room again, or the queue is closed.
    drained: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    closed: bool,
}

impl Queue {
    /// Adds work at the end; refuses it if the queue is closed.
    pub(super) fn push(&self, work: Work) {
        let mut state = self.state.lock();
        while state.waiting.len() >= MAX_WAITING && !state.closed {
            self.drained.wait(&mut state);
        }
        if state.closed {
            drop(state);
            return refuse(work, Error::Closed);
        }
        self.add(&mut state, work);
    }

    /// Adds work that somebody will ask for again, unless the queue is full or closed.
    pub(super) fn offer(&self, work: Work) {
        let mut state = self.state.lock();
        if state.waiting.len() < MAX_WAITING && !state.closed {
            self.add(&mut state, work);
        }
    }

    fn add(&self, state: &mut State, work: Work) {
        state.waiting.push_back(work);
        if state.waiting.len() == 1 {
            self.filled.notify_one();
        }
    }

    /// Adds the last work there will be.
    pub(super) fn close(&self, last: Work) {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            return refuse(last, Error::Closed);
        }
        state.closed = true;
        state.waiting.push_back(last);
        self.filled.notify_one();
        self.drained.notify_all();
    }

    /// The next work, or `None` once the queue is closed and empty. Prepares while there is nothing to do.
    fn next_or_prepare<B: Backend>(&self, preparing: &mut bool, writer: &mut Writer<B>) -> Option<Work> {
        while *preparing && !self.state.lock().closed {
            if let Some(work) = self.next() {
                return Some(work);
            }
            *preparing = writer.prepare();
        }
        self.wait()
    }

    /// The next work, or `None` once the queue is closed and empty.
    fn wait(&self) -> Option<Work> {
        let mut state = self.state.lock();
        while state.waiting.is_empty() && !state.closed {
            self.filled.wait(&mut state);
        }
        self.pop(&mut state)
    }

    /// The next work if there is any now.
    fn next(&self) -> Option<Work> {
        self.pop(&mut self.state.lock())
    }

    fn pop(&self, state: &mut State) -> Option<Work> {
        if state.waiting.len() == MAX_WAITING {
            self.drained.notify_all();
        }
        state.waiting.pop_front()
    }
}

/// Starts the writer thread. It ends when the queue is closed and empty.
pub(super) fn start<B: Backend + 'static>(
    queue: Arc<Queue>,
    mut writer: Writer<B>,
    shared: Arc<Shared>,
) -> Result<JoinHandle<()>> {
    let body = move || {
        let _end = End { queue: &queue, shared: &shared };
        let mut preparing = true;
        while let Some(first) = queue.next_or_prepare(&mut preparing, &mut writer) {
            let Some((mut group, first)) = writer.begin(first) else { continue };
            let mut full = writer.add(&mut group, first);
            while !full && let Some(work) = queue.next() {
                full = writer.add(&mut group, work);
            }
            writer.finish(group);
        }
    };
    sync::spawn("bolide-writer", body).map_err(|error| Error::io("start the writer thread", &error))
}

/// When the writer thread ends for whatever reason, nobody is left waiting.
struct End<'a> {
    queue: &'a Queue,
    shared: &'a Shared,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.shared.stop(&Error::Internal { message: "the writer thread died".to_owned() });
        }
        let rest = {
            let mut state = self.queue.state.lock();
            state.closed = true;
            self.queue.drained.notify_all();
            std::mem::take(&mut state.waiting)
        };
        for work in rest {
            refuse(work, self.shared.poison().cloned().unwrap_or(Error::Closed));
        }
    }
}
