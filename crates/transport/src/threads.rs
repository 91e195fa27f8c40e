//! Threads for work that may keep a processor for long.
//!
//! A query that joins or scans for seconds and a point read compete for the same processors, and the operating system
//! divides them evenly among threads: a few long queries make every brief request wait for its turn again and again.
//! So a thread whose work has run for longer than [`PROMPT`] gets a [lower priority](LOWERED): it still uses every
//! processor that is idle, but gives way to the threads that serve other requests.
//!
//! Any thread may lower a priority, but raising it again needs rights that a server seldom has. A thread with a lowered
//! priority therefore ends with its work, and the next work gets a new one.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, setpriority_process};
use rustix::thread::gettid;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long work may run with the priority of all others. Most queries are done by then.
const PROMPT: Duration = Duration::from_millis(5);

/// The "nice" value of a thread whose work runs for longer: beside a thread of usual priority it gets a tenth of a
/// processor, and never makes it wait for its turn.
const LOWERED: i32 = 10;

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

/// A pool of threads. There are as many as there is work at once, which admission control limits.
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

/// The priority of the thread that runs a job. It is lowered by another thread, and only while the job runs.
#[derive(Debug, Default)]
struct Priority(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Queued,
    /// The job runs on the thread with this id.
    Runs(Pid),
    /// It has been running for too long, or was waiting for all that time.
    Lowered,
    Ended,
}

impl Priority {
    /// Notes the thread that begins to run the job.
    fn begin(&self) {
        let mut state = self.0.lock();
        let thread = gettid();
        match *state {
            State::Lowered => set_lowered(thread),
            _ => *state = State::Runs(thread),
        }
    }

    /// Lowers the priority, unless the job has ended.
    fn lower(&self) {
        let mut state = self.0.lock();
        match *state {
            State::Ended => return,
            State::Runs(thread) => set_lowered(thread),
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

/// Lowers the priority of a thread. For Linux a thread is a process here; elsewhere all threads stay equal.
fn set_lowered(thread: Pid) {
    if cfg!(target_os = "linux") {
        // Nothing else refuses to lower a priority; the work is done in any case.
        let _ = setpriority_process(Some(thread), LOWERED);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Instant;

    use rustix::process::getpriority_process;

    use super::*;
    use crate::CatchPanic;

    fn current() -> (Pid, i32) {
        let thread = gettid();
        (thread, getpriority_process(Some(thread)).unwrap())
    }

    #[tokio::test]
    async fn long_work_gives_way_to_other_threads_and_takes_its_thread_with_it() {
        let threads = Threads::default();
        let usual = threads.run(current).await.unwrap().1;
        let (long, lowered) = threads
            .run(move || {
                let began = Instant::now();
                while current().1 == usual && began.elapsed() < Duration::from_secs(20) {
                    std::hint::spin_loop();
                }
                current()
            })
            .await
            .unwrap();
        assert_eq!(lowered, LOWERED);
        let (next, priority) = threads.run(current).await.unwrap();
        assert!(next != long && priority == usual, "{next:?} with {priority}");
    }

    #[tokio::test]
    async fn brief_work_uses_a_thread_again() {
        let threads = Threads::default();
        let first = threads.run(current).await.unwrap();
        // The thread answers before it waits for more.
        while threads.pool.queue.lock().waiting == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(threads.run(current).await.unwrap(), first);
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
