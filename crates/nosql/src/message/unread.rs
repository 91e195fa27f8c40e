//! Watches HTTP/2 connections for answers that the client does not read, and for idleness.
//!
//! A slow reader of HTTP/1.1 lets its socket fill up, and the listener detects that. One of HTTP/2 may read its socket
//! but grant no window, and its answers wait in the protocol's buffers. So each answer carries a mark as long as it
//! waits there. The connection is closed when a mark is too old: the time in which a client must read one step
//! ([`WRITE_STEP_BYTES`]), times the number of steps before the end of the answer.
//!
//! Until a request on a connection is authenticated, nothing more is read from it while [`UNAUTHENTICATED_REQUESTS`]
//! are in progress or have unread answers; or slowly, while they may be waiting for the client.
//!
//! An HTTP/2 client that answers pings is alive, but may be idle: a connection without a request is closed like an idle
//! one of HTTP/1.1, which its protocol's own timer watches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use transport::WRITE_STEP_BYTES;

use crate::protocol::limits::UNAUTHENTICATED_REQUESTS;

/// The answers of one connection.
#[derive(Debug)]
pub(crate) struct Unread {
    step: Duration,
    answers: Mutex<Answers>,
    /// Signals that there is something to watch.
    begun: Notify,
}

#[derive(Debug)]
struct Answers {
    marks: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Whether an answer began to wait since the watch last looked.
    has_new: bool,
    /// Whether the watch will look again without a notification.
    is_watched: bool,
    /// Requests in progress and answers not sent completely.
    busy: usize,
    /// The waker to call when there are fewer.
    reader: Option<Waker>,
    /// Since when there have been none.
    idle_since: Instant,
    /// Whether the peer speaks HTTP/1.1.
    is_watched_elsewhere: bool,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    bytes: usize,
    until: Instant,
}

/// One answer waiting for its client, until this is dropped.
#[derive(Debug)]
pub(crate) struct Mark {
    number: u64,
    busy: InProgress,
}

/// A request or an answer that keeps the connection from being idle, until this is dropped.
#[derive(Debug)]
pub(crate) struct InProgress {
    unread: Arc<Unread>,
}

impl Unread {
    /// `step` is the time limit for each step of an answer.
    pub(crate) fn new(step: Duration) -> Arc<Unread> {
        let answers = Answers {
            marks: 0,
            waiting: BTreeMap::new(),
            has_new: false,
            is_watched: false,
            busy: 0,
            reader: None,
            idle_since: Instant::now(),
            is_watched_elsewhere: false,
        };
        Arc::new(Unread { step, answers: Mutex::new(answers), begun: Notify::new() })
    }

    /// Records the beginning of a request.
    pub(crate) fn begin(self: &Arc<Unread>) -> InProgress {
        self.answers.lock().busy += 1;
        InProgress { unread: Arc::clone(self) }
    }

    /// Ready while few requests are in progress, so that more may be read.
    pub(crate) fn poll_unauthenticated(&self, context: &Context<'_>) -> Poll<()> {
        let mut answers = self.answers.lock();
        if answers.busy < UNAUTHENTICATED_REQUESTS {
            return Poll::Ready(());
        }
        answers.reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// Sets that the client speaks HTTP/1.1, whose idle time is not watched here.
    pub(crate) fn is_watched_elsewhere(&self) {
        self.answers.lock().is_watched_elsewhere = true;
    }

    /// Returns the bytes waiting for the client.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.answers.lock().waiting.values().map(|waiting| waiting.bytes).sum()
    }

    /// Completes when there has been no request and no answer for `limit`.
    pub(crate) async fn idle_for(&self, limit: Duration) {
        loop {
            let until = {
                let answers = self.answers.lock();
                match answers.is_watched_elsewhere {
                    true => None,
                    // A connection that is busy now can be idle for long enough after that time at the earliest.
                    false if answers.busy > 0 => Some(Instant::now() + limit),
                    false => Some(answers.idle_since + limit),
                }
            };
            match until {
                None => std::future::pending().await,
                Some(until) if until <= Instant::now() => return,
                Some(until) => sleep_until(until).await,
            }
        }
    }

    /// Marks an answer as waiting from now on.
    pub(crate) fn mark(self: &Arc<Unread>, bytes: usize) -> Mark {
        let number = {
            let mut answers = self.answers.lock();
            answers.marks += 1;
            answers.marks
        };
        let mark = Mark { number, busy: self.begin() };
        mark.waits(bytes);
        mark
    }

    /// Completes when an answer has waited for too long.
    pub(crate) async fn too_long(&self) {
        loop {
            match self.next_look() {
                Some(until) if until <= Instant::now() => return,
                Some(until) => sleep_until(until).await,
                None => self.begun.notified().await,
            }
        }
    }

    /// Returns when to look for a late answer again; `None`: at the next notification.
    ///
    /// Clients read most answers at once, and a notification of each would cost more than sending it. Each answer has at
    /// least one step of time, so a look after each step, and at the first deadline if that comes before, sees every late
    /// answer in time.
    fn next_look(&self) -> Option<Instant> {
        let mut answers = self.answers.lock();
        let had_new = std::mem::take(&mut answers.has_new);
        let first = answers.waiting.values().map(|waiting| waiting.until).min();
        let after_a_step = Instant::now() + self.step;
        let next = match first {
            Some(first) => Some(first.min(after_a_step)),
            None => had_new.then_some(after_a_step),
        };
        answers.is_watched = next.is_some();
        next
    }
}

impl Mark {
    /// Sets the bytes that wait for the client from now on.
    pub(crate) fn waits(&self, bytes: usize) {
        let unread = &self.busy.unread;
        let mut answers = unread.answers.lock();
        let before: usize = answers.waiting.values().map(|waiting| waiting.bytes).sum();
        let steps = 1 + (before + bytes) / WRITE_STEP_BYTES;
        let until = Instant::now() + unread.step * u32::try_from(steps).unwrap_or(u32::MAX);
        answers.has_new = true;
        if !answers.is_watched {
            unread.begun.notify_one();
        }
        answers.waiting.insert(self.number, Waiting { bytes, until });
    }

    /// Creates a mark for another answer on the same connection.
    pub(crate) fn beside(&self, bytes: usize) -> Mark {
        self.busy.unread.mark(bytes)
    }

    /// Records that the answer does not wait for the client.
    pub(crate) fn rests(&self) {
        self.busy.unread.answers.lock().waiting.remove(&self.number);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.rests();
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let mut answers = self.unread.answers.lock();
        answers.busy -= 1;
        answers.idle_since = Instant::now();
        let reader = answers.reader.take();
        drop(answers);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const STEP: Duration = Duration::from_mins(1);
    const MOMENT: Duration = Duration::from_millis(1);

    async fn is_over(unread: &Unread) -> bool {
        timeout(MOMENT, unread.too_long()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_has_its_time_and_each_before_it_too() {
        for (bytes_before, steps) in [(0, 1), (WRITE_STEP_BYTES, 2), (10 * WRITE_STEP_BYTES, 11)] {
            let unread = Unread::new(STEP);
            let before = unread.mark(bytes_before);
            let after = unread.mark(100);
            drop(before);
            advance((STEP * steps).saturating_sub(2 * MOMENT)).await;
            assert!(!is_over(&unread).await, "{bytes_before}");
            advance(2 * MOMENT).await;
            assert!(is_over(&unread).await, "{bytes_before}");
            drop(after);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_answer_is_late_in_time_although_a_large_one_was_waited_for() {
        let unread = Unread::new(STEP);
        let watch = tokio::spawn({
            let unread = Arc::clone(&unread);
            async move {
                unread.too_long().await;
                Instant::now()
            }
        });
        let large = unread.mark(100 * WRITE_STEP_BYTES);
        tokio::task::yield_now().await;
        advance(STEP / 2).await;
        drop(large);
        let _small = unread.mark(100);
        let begun = Instant::now();
        assert_eq!(watch.await.unwrap() - begun, STEP);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_requests_and_answers_is_idle() {
        const LIMIT: Duration = Duration::from_mins(2);
        let unread = Unread::new(STEP);
        let watch = tokio::spawn({
            let unread = Arc::clone(&unread);
            async move {
                unread.idle_for(LIMIT).await;
                Instant::now()
            }
        });
        tokio::task::yield_now().await;
        advance(LIMIT / 2).await;
        let request = unread.begin();
        advance(3 * LIMIT).await;
        let answer = unread.mark(1);
        answer.rests();
        drop(request);
        advance(3 * LIMIT).await;
        tokio::task::yield_now().await;
        assert!(!watch.is_finished(), "an answer that is made slowly is not gone");
        let gone = Instant::now();
        drop(answer);
        assert_eq!(watch.await.unwrap() - gone, LIMIT);
        unread.is_watched_elsewhere();
        assert!(timeout(10 * LIMIT, unread.idle_for(LIMIT)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_its_answers_is_never_late() {
        let unread = Unread::new(STEP);
        let watch = tokio::spawn({
            let unread = Arc::clone(&unread);
            async move { unread.too_long().await }
        });
        let streamed = unread.mark(1);
        for _ in 0..10 {
            let whole = unread.mark(100);
            advance(STEP / 2).await;
            drop(whole);
            streamed.waits(100);
        }
        streamed.rests();
        advance(STEP * 10).await;
        assert!(!watch.is_finished(), "nothing waits for the peer");
        streamed.waits(100);
        tokio::task::yield_now().await;
        advance(STEP).await;
        watch.await.unwrap();
    }
}
