//! Threads for work that may keep a processor for long.
//!
//! A query that joins or scans for seconds and a point read compete for the same processors, and the operating system
//! divides them evenly among threads: a few long queries make every brief request wait for its turn again and again.
//! So a thread whose work has run for longer than [`PROMPT`], or whose caller has left, gets a
//! [lower priority](LOWERED_BY): it still uses every processor that is idle, but gives way to the threads that serve
//! other requests.
//!
//! Any thread may lower a priority, but raising it again needs rights that a server seldom has. A thread with a lowered
//! priority therefore ends with its work, and the next work gets a new one.
//!
//! Linux has a priority for each thread. On other systems all threads stay equal, and end as they do here.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long work may run with the priority of all others. Most queries are done by then.
const PROMPT: Duration = Duration::from_millis(5);

/// What is added to the "nice" value of a thread whose work runs for longer: beside a thread of usual priority it gets a
/// tenth of a processor.
const LOWERED_BY: i32 = 10;

/// The stack size of threads that run requests: documents of clients nest up to 200 levels, and so do expressions over
/// them.
pub const STACK_BYTES: usize = 8 * 1024 * 1024;

/// How long a thread waits for further work before it ends.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Work to be run; returns whether the thread may run more.
type Job = Box<dyn FnOnce() -> Reuse + Send>;

/// Whether a thread may be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reuse {
    Allowed,
    /// Its priority was lowered.
    Refused,
}

/// A pool of threads, as many as there is work at once: admission control limits the work that a caller waits for, and
/// work whose caller has left is expected to end soon.
#[derive(Debug, Default)]
pub struct Threads {
    pool: Arc<Pool>,
}

#[derive(Default)]
struct Pool {
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Work for threads that wait; never more than those.
    jobs: VecDeque<Job>,
    waiting: usize,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pool").field("waiting", &self.queue.lock().waiting).finish_non_exhaustive()
    }
}

impl Threads {
    /// Runs work on one of the threads and returns its result; a panic continues in the caller. The work runs to its
    /// end even if the caller stops waiting.
    ///
    /// # Errors
    ///
    /// The operating system refuses a new thread.
    pub async fn run<T, W>(&self, work: W) -> io::Result<T>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let (sender, mut receiver) = oneshot::channel();
        let priority = Arc::new(Priority::default());
        let of_thread = Arc::clone(&priority);
        let _when_left = LowerOnDrop(Arc::clone(&priority));
        self.pool.submit(Box::new(move || {
            of_thread.begin();
            let outcome = catch_unwind(AssertUnwindSafe(work));
            let reuse = of_thread.end();
            // A caller that has left needs no result.
            let _ = sender.send(outcome);
            reuse
        }))?;
        let outcome = if let Ok(outcome) = timeout(PROMPT, &mut receiver).await {
            outcome
        } else {
            priority.lower();
            receiver.await
        };
        match outcome.expect("a job ends with its outcome, also after a panic") {
            Ok(value) => Ok(value),
            Err(payload) => resume_unwind(payload),
        }
    }
}

impl Pool {
    fn submit(self: &Arc<Self>, job: Job) -> io::Result<()> {
        let mut queue = self.queue.lock();
        if queue.jobs.len() < queue.waiting {
            queue.jobs.push_back(job);
            self.filled.notify_one();
            return Ok(());
        }
        drop(queue);
        let pool = Arc::clone(self);
        let builder = Builder::new().name("query".to_owned()).stack_size(STACK_BYTES);
        builder.spawn(move || pool.work(job)).map(drop)
    }

    /// Runs a job, then further ones, until there is none for a while.
    fn work(&self, first: Job) {
        let mut next = Some(first);
        while let Some(job) = next {
            if job() == Reuse::Refused {
                return;
            }
            next = self.wait();
        }
    }

    fn wait(&self) -> Option<Job> {
        let mut queue = self.queue.lock();
        queue.waiting += 1;
        while queue.jobs.is_empty() && !self.filled.wait_for(&mut queue, KEEP_ALIVE).timed_out() {}
        queue.waiting -= 1;
        queue.jobs.pop_front()
    }
}

/// The priority of the thread that runs a job, which is lowered only while the job runs: its id may be reused afterwards.
#[derive(Debug, Default)]
struct Priority(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Queued,
    /// The job runs on the thread with this id.
    Runs(ThreadId),
    /// It has been running or waiting for too long, or its caller has left.
    Lowered,
    Ended,
}

impl Priority {
    /// Notes the thread that begins to run the job.
    fn begin(&self) {
        let mut state = self.0.lock();
        let thread = current();
        match *state {
            State::Lowered => lower(thread),
            _ => *state = State::Runs(thread),
        }
    }

    /// Lowers the priority, unless the job has ended.
    fn lower(&self) {
        let mut state = self.0.lock();
        match *state {
            State::Ended => return,
            State::Runs(thread) => lower(thread),
            State::Queued | State::Lowered => {}
        }
        *state = State::Lowered;
    }

    /// Notes the end of the job.
    fn end(&self) -> Reuse {
        match std::mem::replace(&mut *self.0.lock(), State::Ended) {
            State::Lowered => Reuse::Refused,
            State::Queued | State::Runs(_) | State::Ended => Reuse::Allowed,
        }
    }
}

/// Lowers the priority when the caller stops waiting; no effect on work that has ended.
struct LowerOnDrop(Arc<Priority>);

impl Drop for LowerOnDrop {
    fn drop(&mut self) {
        self.0.lower();
    }
}

#[cfg(target_os = "linux")]
use linux::{ThreadId, current, lower};

/// For Linux, a thread is a process here.
#[cfg(target_os = "linux")]
mod linux {
    pub(super) use rustix::process::Pid as ThreadId;
    use rustix::process::{getpriority_process, setpriority_process};

    use super::LOWERED_BY;

    /// The largest "nice" value.
    const LOWEST: i32 = 19;

    pub(super) fn current() -> ThreadId {
        rustix::thread::gettid()
    }

    /// Lowers the priority of a thread; if the system refuses, the work goes on as it is.
    pub(super) fn lower(thread: ThreadId) {
        if let Ok(usual) = getpriority_process(Some(thread)) {
            let _ = setpriority_process(Some(thread), (usual + LOWERED_BY).min(LOWEST));
        }
    }
}

#[cfg(not(target_os = "linux"))]
use elsewhere::{ThreadId, current, lower};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    #[derive(Debug, Clone, Copy)]
    pub(super) struct ThreadId;

    pub(super) fn current() -> ThreadId {
        ThreadId
    }

    pub(super) fn lower(_: ThreadId) {}
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::{Barrier, mpsc};
    use std::task::{Context, Waker};

    use rustix::process::getpriority_process;
    use tokio::time::Instant;

    use super::*;
    use crate::CatchPanic;

    fn here() -> (ThreadId, i32) {
        (current(), getpriority_process(Some(current())).unwrap())
    }

    /// Computes until the thread's priority is not the usual one; returns both.
    fn until_lowered(usual: i32) -> (ThreadId, i32) {
        let began = Instant::now();
        while here().1 == usual && began.elapsed() < Duration::from_secs(20) {
            std::hint::spin_loop();
        }
        here()
    }

    #[tokio::test]
    async fn long_work_gives_way_to_other_threads_and_takes_its_thread_with_it() {
        let threads = Threads::default();
        let usual = threads.run(here).await.unwrap().1;
        let (long, lowered) = threads.run(move || until_lowered(usual)).await.unwrap();
        assert_eq!(lowered, (usual + LOWERED_BY).min(19));
        let (next, priority) = threads.run(here).await.unwrap();
        assert!(next != long && priority == usual, "{next:?} with {priority}");
    }

    #[tokio::test]
    async fn work_whose_caller_has_left_gives_way_too() {
        let threads = Threads::default();
        let usual = threads.run(here).await.unwrap().1;
        let (sender, receiver) = mpsc::channel();
        {
            let mut left = pin!(threads.run(move || sender.send(until_lowered(usual).1)));
            assert!(left.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(receiver.recv(), Ok((usual + LOWERED_BY).min(19)));
    }

    #[tokio::test]
    async fn brief_work_uses_a_thread_again() {
        let threads = Threads::default();
        let first = threads.run(here).await.unwrap();
        // The thread answers before it waits for more.
        while threads.pool.queue.lock().waiting == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(threads.run(here).await.unwrap(), first);
    }

    #[tokio::test]
    async fn a_panic_continues_in_the_caller_and_costs_no_thread() {
        let threads = Threads::default();
        let work = threads.run(|| assert!(std::hint::black_box(false), "as the test wants"));
        let caught = CatchPanic::new(Box::pin(work)).await;
        assert!(caught.is_err());
        assert_eq!(threads.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn much_work_at_once_has_a_thread_each() {
        let threads = Arc::new(Threads::default());
        let barrier = Arc::new(Barrier::new(16));
        let all: Vec<_> = (0..16)
            .map(|_| {
                let (threads, barrier) = (Arc::clone(&threads), Arc::clone(&barrier));
                tokio::spawn(async move { threads.run(move || barrier.wait()).await.unwrap() })
            })
            .collect();
        for work in all {
            work.await.unwrap();
        }
    }
}
