//! The queue of waiting work, and the writer thread.
//!
//! Work of background priority waits in a queue of its own. It runs when no other work waits, which happens all the time
//! between the requests of a few connections: a writer that has answered a group is idle until the next requests are read. If
//! other work never ends, background work runs after every few groups ([`PASSED_GROUPS`]), so it is late but not
//! starved. A group has one priority: no other caller waits for the commit of background work, and the writer time that
//! background work takes is known.

use super::throttle::instant;
use crate::sync::{self, Condvar, JoinHandle, Mutex};
use crate::writer::{Backend, Shared, Work, Writer, refuse};
use crate::{Error, Priority, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

/// The amount of queued work at which submitters wait; small in models, so that they reach it.
const MAX_WAITING: usize = if cfg!(feature = "shuttle") { 3 } else { 4096 };

/// How many groups may run before waiting background work.
const PASSED_GROUPS: u32 = 2;

/// Work in the order of submission, with background work in a queue of its own.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Work has been added, or the queue is closed.
    filled: Condvar,
    /// There is space again, or the queue is closed.
    drained: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    background: VecDeque<Work>,
    /// Groups begun since background work has been waiting.
    passed: u32,
    closed: bool,
}

impl State {
    fn len(&self) -> usize {
        self.waiting.len() + self.background.len()
    }

    /// Takes the work that a group begins with.
    fn first(&mut self) -> Option<Work> {
        let is_late = self.passed >= PASSED_GROUPS && !self.background.is_empty();
        if self.waiting.is_empty() || is_late {
            self.passed = 0;
            return self.background.pop_front();
        }
        self.passed += u32::from(!self.background.is_empty());
        self.waiting.pop_front()
    }

    /// Takes more work for a group of this priority.
    fn more(&mut self, priority: Priority) -> Option<Work> {
        match priority {
            Priority::Normal => self.waiting.pop_front(),
            Priority::Background => self.background.pop_front(),
        }
    }
}

impl Queue {
    /// Adds work at the end; refuses it if the queue is closed.
    pub(super) fn push(&self, work: Work) {
        let mut state = self.state.lock();
        while state.len() >= MAX_WAITING && !state.closed {
            self.drained.wait(&mut state);
        }
        if state.closed {
            drop(state);
            return refuse(work, Error::Closed);
        }
        self.add(&mut state, work);
    }

    /// Adds work that a later caller will request again anyway, unless the queue is full or closed.
    pub(super) fn offer(&self, work: Work) {
        let mut state = self.state.lock();
        if state.len() < MAX_WAITING && !state.closed {
            self.add(&mut state, work);
        }
    }

    fn add(&self, state: &mut State, work: Work) {
        match work.priority() {
            Priority::Normal => state.waiting.push_back(work),
            Priority::Background => state.background.push_back(work),
        }
        if state.len() == 1 {
            self.filled.notify_one();
        }
    }

    /// Adds the final piece of work and closes the queue.
    pub(super) fn close(&self, last: Work) {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            return refuse(last, Error::Closed);
        }
        state.closed = true;
        let background = std::mem::take(&mut state.background);
        state.waiting.extend(background);
        state.waiting.push_back(last);
        self.filled.notify_one();
        self.drained.notify_all();
    }

    /// Returns the next work, or `None` once the queue is closed and empty. Prepares while idle.
    fn next_or_prepare<B: Backend>(&self, preparing: &mut bool, writer: &mut Writer<B>) -> Option<Work> {
        while *preparing && !self.state.lock().closed {
            if let Some(work) = self.take(State::first) {
                return Some(work);
            }
            *preparing = writer.prepare();
        }
        self.wait()
    }

    /// Waits for the next work; `None` once the queue is closed and empty.
    fn wait(&self) -> Option<Work> {
        let mut state = self.state.lock();
        while state.len() == 0 && !state.closed {
            self.filled.wait(&mut state);
        }
        self.pop(&mut state, State::first)
    }

    /// Takes the next work if there is any now.
    fn take(&self, which: impl FnOnce(&mut State) -> Option<Work>) -> Option<Work> {
        self.pop(&mut self.state.lock(), which)
    }

    fn pop(&self, state: &mut State, which: impl FnOnce(&mut State) -> Option<Work>) -> Option<Work> {
        if state.len() == MAX_WAITING {
            self.drained.notify_all();
        }
        which(state)
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
            let (began, priority) = (instant(), first.priority());
            let Some((mut group, first)) = writer.begin(first) else { continue };
            let mut full = writer.add(&mut group, first);
            while !full && let Some(work) = queue.take(|state| state.more(priority)) {
                full = writer.add(&mut group, work);
            }
            writer.finish(group);
            shared.load.add(priority, began.elapsed());
        }
    };
    sync::spawn("bolide-writer", body).map_err(|error| Error::io("start the writer thread", &error))
}

/// Answers all waiting work when the writer thread ends, for whatever reason.
struct End<'a> {
    queue: &'a Queue,
    shared: &'a Shared,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.shared.stop(&Error::Internal { message: "the writer thread has ended".to_owned() });
        }
        let rest = {
            let mut state = self.queue.state.lock();
            state.closed = true;
            self.queue.drained.notify_all();
            let background = std::mem::take(&mut state.background);
            std::mem::take(&mut state.waiting).into_iter().chain(background)
        };
        for work in rest {
            refuse(work, self.shared.poison().cloned().unwrap_or(Error::Closed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PASSED_GROUPS, Queue, State};
    use crate::writer::Work;
    use crate::{Job, Priority, Result, Transaction, Verdict};

    struct Named(Priority);

    impl Job for Named {
        fn run(&mut self, _: &mut Transaction<'_>) -> Verdict {
            Verdict::Commit
        }

        fn done(self: Box<Self>, _: Result<()>) {}

        fn priority(&self) -> Priority {
            self.0
        }
    }

    fn push(queue: &Queue, priority: Priority) {
        queue.push(Work::Job(Box::new(Named(priority))));
    }

    /// Returns the priorities of one group.
    fn group(queue: &Queue) -> Vec<Priority> {
        let Some(first) = queue.take(State::first) else { return Vec::new() };
        let priority = first.priority();
        std::iter::once(first)
            .chain(std::iter::from_fn(|| queue.take(|state| state.more(priority))))
            .map(|work| work.priority())
            .collect()
    }

    #[test]
    fn background_work_uses_idle_moments_and_is_not_starved_without_them() {
        use Priority::{Background, Normal};
        let queue = Queue::default();
        push(&queue, Background);
        push(&queue, Normal);
        assert_eq!(group(&queue), [Normal]);
        assert_eq!(group(&queue), [Background], "nothing else waits");
        push(&queue, Background);
        push(&queue, Background);
        for passed in 0..PASSED_GROUPS {
            push(&queue, Normal);
            push(&queue, Normal);
            assert_eq!(group(&queue), [Normal, Normal], "{passed} groups have passed it");
        }
        push(&queue, Normal);
        assert_eq!(group(&queue), [Background, Background], "a group of its own");
        assert_eq!(group(&queue), [Normal]);
        assert_eq!(group(&queue), []);
    }

    #[test]
    fn background_work_is_not_starved_by_groups_that_are_full_before_they_end() {
        use Priority::{Background, Normal};
        let queue = Queue::default();
        push(&queue, Background);
        for _ in 0..=PASSED_GROUPS {
            push(&queue, Normal);
        }
        let groups: Vec<_> = (0..=PASSED_GROUPS).map_while(|_| queue.take(State::first)).collect();
        let priorities: Vec<_> = groups.iter().map(Work::priority).collect();
        assert_eq!(priorities, [Normal, Normal, Background], "of groups of one");
    }

    #[test]
    fn a_queue_that_closes_ends_with_its_last_work() {
        let queue = Queue::default();
        push(&queue, Priority::Background);
        push(&queue, Priority::Normal);
        queue.close(Work::Job(Box::new(Named(Priority::Normal))));
        assert_eq!(group(&queue), [Priority::Normal, Priority::Background, Priority::Normal]);
    }
}
