//! What an HTTP/2 connection is waiting for: answers that its peer does not take, and the next request.
//!
//! A slow reader of HTTP/1.1 lets its socket fill up, and the listener sees that. One of HTTP/2 need not: it reads its socket, grants
//! no window, and its answers wait in the protocol's buffers. So each answer carries a mark for as long as it waits there. The
//! connection is cut off when a mark is older than it may be: the time in which a peer has to take a step of what is sent to it
//! ([`WRITE_STEP_BYTES`]), as many times as there are steps before its end.
//!
//! Until something on a connection was authenticated, its peer is read no further while [`STRANGER_REQUESTS`] are in progress or
//! have answers that wait; or slowly, while it may be the peer that they wait for.
//!
//! A peer of HTTP/2 that answers pings is there, and may still want nothing: a connection without a request ends like an idle
//! one of HTTP/1.1, which its protocol's own timer watches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use transport::WRITE_STEP_BYTES;

use crate::limits::STRANGER_REQUESTS;

/// The answers of one connection.
#[derive(Debug)]
pub(crate) struct Unread {
    step: Duration,
    answers: Mutex<Answers>,
    /// Rung when there is something to watch.
    begun: Notify,
}

#[derive(Debug)]
struct Answers {
    marks: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Requests in progress and answers that are not gone yet.
    busy: usize,
    /// Who waits until there are fewer.
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

/// One answer that waits for its peer, until this is dropped.
#[derive(Debug)]
pub(crate) struct Mark {
    number: u64,
    busy: InProgress,
}

/// A request or an answer for which the connection is not idle, until this is dropped.
#[derive(Debug)]
pub(crate) struct InProgress {
    unread: Arc<Unread>,
}

impl Unread {
    /// `step` is the time for each step of what is sent.
    pub(crate) fn new(step: Duration) -> Arc<Unread> {
        let answers = Answers {
            marks: 0,
            waiting: BTreeMap::new(),
            busy: 0,
            reader: None,
            idle_since: Instant::now(),
            is_watched_elsewhere: false,
        };
        Arc::new(Unread { step, answers: Mutex::new(answers), begun: Notify::new() })
    }

    /// A request has begun.
    pub(crate) fn begin(self: &Arc<Unread>) -> InProgress {
        self.answers.lock().busy += 1;
        InProgress { unread: Arc::clone(self) }
    }

    /// Ready while there is so little of a stranger that more may be read of it.
    pub(crate) fn poll_stranger(&self, context: &Context<'_>) -> Poll<()> {
        let mut answers = self.answers.lock();
        if answers.busy < STRANGER_REQUESTS {
            return Poll::Ready(());
        }
        answers.reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// The peer speaks HTTP/1.1: its idle time is not watched here.
    pub(crate) fn is_watched_elsewhere(&self) {
        self.answers.lock().is_watched_elsewhere = true;
    }

    /// Bytes that wait for the peer.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.answers.lock().waiting.values().map(|waiting| waiting.bytes).sum()
    }

    /// Ends when there has been no request and no answer for so long.
    pub(crate) async fn idle_for(&self, limit: Duration) {
        loop {
            let until = {
                let answers = self.answers.lock();
                match answers.is_watched_elsewhere {
                    true => None,
                    // A connection that is busy now will have been idle for long enough after that time at the earliest.
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

    /// Marks an answer that waits from now on.
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

    /// Ends when an answer has waited for too long.
    pub(crate) async fn too_long(&self) {
        loop {
            while let Some(until) = self.first_deadline() {
                if until <= Instant::now() {
                    return;
                }
                sleep_until(until).await;
            }
            self.begun.notified().await;
        }
    }

    fn first_deadline(&self) -> Option<Instant> {
        self.answers.lock().waiting.values().map(|waiting| waiting.until).min()
    }
}

impl Mark {
    /// The peer has so much to take, from now on.
    pub(crate) fn waits(&self, bytes: usize) {
        let unread = &self.busy.unread;
        let mut answers = unread.answers.lock();
        let before: usize = answers.waiting.values().map(|waiting| waiting.bytes).sum();
        let steps = 1 + (before + bytes) / WRITE_STEP_BYTES;
        let until = Instant::now() + unread.step * u32::try_from(steps).unwrap_or(u32::MAX);
        if answers.waiting.is_empty() {
            unread.begun.notify_one();
        }
        answers.waiting.insert(self.number, Waiting { bytes, until });
    }

    /// A mark for something else on the same connection.
    pub(crate) fn beside(&self, bytes: usize) -> Mark {
        self.busy.unread.mark(bytes)
    }

    /// It is not the peer that is waited for.
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
    async fn who_takes_its_answers_is_never_late() {
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
