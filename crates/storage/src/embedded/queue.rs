//! The queue of waiting work and the thread that does it.
//!
//! Work of background priority waits apart. It is taken when nothing else waits, which between the requests of a few
//! connections happens all the time: a writer that has answered a group is idle until the next requests are read. If other
//! work never ends, background work joins the end of every few groups ([`PASSED_GROUPS`]); and where groups are full before they
//! end, the beginning ([`STARVED_GROUPS`]). So it is late but not starved.

use crate::sync::{self, Condvar, JoinHandle, Mutex};
use crate::writer::{Backend, Shared, Work, Writer, refuse};
use crate::{Error, Priority, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Submitters wait while this much work is queued; soon, in models, so that they come there.
const MAX_WAITING: usize = if cfg!(feature = "shuttle") { 3 } else { 4096 };

/// So many groups may run before background work that waits.
const PASSED_GROUPS: u32 = 2;
/// After so many it waits no longer for the end of one.
const STARVED_GROUPS: u32 = 8;

/// Work in the order of submission, background work apart.
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
    background: VecDeque<Work>,
    /// Groups that have begun since background work has been waiting.
    passed: u32,
    closed: bool,
}

impl State {
    fn len(&self) -> usize {
        self.waiting.len() + self.background.len()
    }

    /// The work that a group begins with.
    fn first(&mut self) -> Option<Work> {
        let first = self.waiting.pop_front();
        if first.is_some() && !self.background.is_empty() {
            self.passed += 1;
        }
        first.or_else(|| self.next_background())
    }

    /// The work that a group goes on with.
    fn more(&mut self) -> Option<Work> {
        let (is_late, is_starved) = (self.passed >= PASSED_GROUPS, self.passed >= STARVED_GROUPS);
        let background = if is_starved { self.next_background() } else { None };
        background
            .or_else(|| self.waiting.pop_front())
            .or_else(|| if is_late { self.next_background() } else { None })
    }

    fn next_background(&mut self) -> Option<Work> {
        self.passed = 0;
        self.background.pop_front()
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

    /// Adds work that somebody will ask for again, unless the queue is full or closed.
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

    /// Adds the last work there will be.
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

    /// The next work, or `None` once the queue is closed and empty. Prepares while there is nothing to do.
    fn next_or_prepare<B: Backend>(&self, preparing: &mut bool, writer: &mut Writer<B>) -> Option<Work> {
        while *preparing && !self.state.lock().closed {
            if let Some(work) = self.take(State::first) {
                return Some(work);
            }
            *preparing = writer.prepare();
        }
        self.wait()
    }

    /// The next work, or `None` once the queue is closed and empty.
    fn wait(&self) -> Option<Work> {
        let mut state = self.state.lock();
        while state.len() == 0 && !state.closed {
            self.filled.wait(&mut state);
        }
        self.pop(&mut state, State::first)
    }

    /// The next work if there is any now.
    fn take(&self, which: fn(&mut State) -> Option<Work>) -> Option<Work> {
        self.pop(&mut self.state.lock(), which)
    }

    fn pop(&self, state: &mut State, which: fn(&mut State) -> Option<Work>) -> Option<Work> {
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
            let mut stopwatch = Stopwatch::start();
            let Some((mut group, first)) = writer.begin(first) else { continue };
            let mut full = stopwatch.add(first, |work| writer.add(&mut group, work));
            while !full && let Some(work) = queue.take(State::more) {
                full = stopwatch.add(work, |work| writer.add(&mut group, work));
            }
            writer.finish(group);
            let (normal, background) = stopwatch.stop();
            shared.load.add(normal, background);
        }
    };
    sync::spawn("bolide-writer", body).map_err(|error| Error::io("start the writer thread", &error))
}

/// How long a group takes, and how much of it is for background work: such a group as a whole, and in one with other work the
/// time that it runs, because the others are committed in any case.
struct Stopwatch {
    began: Instant,
    background: Duration,
    has_normal: bool,
}

impl Stopwatch {
    fn start() -> Self {
        Self { began: instant(), background: Duration::ZERO, has_normal: false }
    }

    fn add(&mut self, work: Work, run: impl FnOnce(Work) -> bool) -> bool {
        match work.priority() {
            Priority::Normal => {
                self.has_normal = true;
                run(work)
            }
            Priority::Background => {
                let began = instant();
                let full = run(work);
                self.background += began.elapsed();
                full
            }
        }
    }

    fn stop(self) -> (Duration, Duration) {
        let whole = self.began.elapsed();
        let background = if self.has_normal { self.background } else { whole };
        (whole.saturating_sub(background), background)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the writer thread works is no matter of the store's clock"
)]
fn instant() -> Instant {
    Instant::now()
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
    use super::{PASSED_GROUPS, Queue, STARVED_GROUPS, State};
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

    /// The priorities of one group.
    fn group(queue: &Queue) -> Vec<Priority> {
        let first = queue.take(State::first);
        first
            .into_iter()
            .chain(std::iter::from_fn(|| queue.take(State::more)))
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
        for passed in 1..PASSED_GROUPS {
            push(&queue, Normal);
            assert_eq!(group(&queue), [Normal], "{passed} groups have passed it");
        }
        push(&queue, Normal);
        push(&queue, Normal);
        assert_eq!(group(&queue), [Normal, Normal, Background], "the last of a group, and one of them");
        push(&queue, Normal);
        assert_eq!(group(&queue), [Normal]);
        assert_eq!(group(&queue), [Background]);
    }

    #[test]
    fn background_work_is_not_starved_by_groups_that_are_full_before_they_end() {
        use Priority::{Background, Normal};
        let queue = Queue::default();
        push(&queue, Background);
        let full_group = || {
            push(&queue, Normal);
            push(&queue, Normal);
            let second = (queue.take(State::first), queue.take(State::more)).1;
            second.map(|work| work.priority())
        };
        let groups: Vec<_> = (0..STARVED_GROUPS).map_while(|_| full_group()).collect();
        assert_eq!(groups.iter().filter(|second| **second == Background).count(), 1);
        assert_eq!(groups.last(), Some(&Background));
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
