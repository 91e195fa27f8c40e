//! The answers of a connection until they are sent.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, Waker};

use bytes::Buf;
use parking_lot::Mutex;
use telemetry::FrontEnd;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use transport::{Held, Writer};

use crate::direct::answer::Encoded;
use crate::message::unread::Mark;
use crate::protocol::limits::direct::LINGER;

/// An answer that waits to be sent. It releases what it holds when a flush has sent its last byte.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) encoded: Encoded,
    /// The memory that it is charged for.
    pub(crate) _held: Option<Held>,
    /// Its mark among the unread answers.
    pub(crate) _mark: Mark,
    /// The permit of its request.
    pub(crate) _turn: OwnedSemaphorePermit,
}

/// The waiting answers, and the task that sends them.
///
/// Most answers are made by the task that sends them, which checks here after each request. Waking it then would cost more
/// than the answer: so only [`Answers::wake`] does, for answers made in other tasks.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    list: VecDeque<Pending>,
    is_closed: bool,
    is_discarded: bool,
    sender: Option<Waker>,
}

impl Answers {
    /// Adds an answer, without waking the task that sends it.
    pub(crate) fn push(&self, answer: Pending) {
        let mut waiting = self.0.lock();
        if !waiting.is_discarded {
            waiting.list.push_back(answer);
        }
    }

    /// Drops the waiting answers and those that follow: no task sends them any more.
    pub(crate) fn discard(&self) {
        let mut waiting = self.0.lock();
        waiting.is_discarded = true;
        waiting.list.clear();
    }

    /// Wakes the task that sends.
    pub(crate) fn wake(&self) {
        let sender = self.0.lock().sender.take();
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Ends the sending task when it has sent all waiting answers.
    pub(crate) fn close(&self) {
        self.0.lock().is_closed = true;
        self.wake();
    }

    fn poll_next(&self, context: &Context<'_>) -> Poll<Option<Pending>> {
        let mut waiting = self.0.lock();
        match waiting.list.pop_front() {
            Some(answer) => Poll::Ready(Some(answer)),
            None if waiting.is_closed => Poll::Ready(None),
            None => {
                if !waiting.sender.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                    waiting.sender = Some(context.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.0.lock().list.is_empty()
    }
}

/// The destination of answers: the bytes of one call are TLS records of their own, sent by a flush.
pub(crate) trait Records {
    /// Takes bytes; none if the bytes that wait to be sent have reached their limit.
    fn put(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl Records for Writer {
    fn put(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.put(slices)
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }

    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_shutdown(context)
    }
}

/// Sends answers in the order in which they come, until they are closed; then shuts the connection down. Answers that wait
/// together are sent together.
///
/// Each answer begins a TLS record. The Java client keeps an answer in the buffer where it was decrypted and moves the
/// bytes behind it over it: of two answers in one record it reads the first one damaged.
pub(crate) async fn send(
    answers: &Answers,
    writer: &mut impl Records,
    front_end: &FrontEnd,
    on_sent: impl Fn(),
) -> io::Result<()> {
    let mut unsent = Vec::new();
    while let Some(mut next) = poll_fn(|context| answers.poll_next(context)).await {
        let Encoded { frame, payload } = &mut next.encoded;
        let mut rest = frame.chain(payload);
        while !put(writer, &mut rest, front_end)? {
            // Then all answers before this one are sent.
            poll_fn(|context| writer.poll_flush(context)).await?;
            unsent.clear();
            on_sent();
        }
        unsent.push(next);
        if answers.is_empty() {
            poll_fn(|context| writer.poll_flush(context)).await?;
            unsent.clear();
            on_sent();
        }
    }
    // No other timeout covers this.
    timeout(LINGER, poll_fn(|context| writer.poll_shutdown(context))).await.unwrap_or(Ok(()))
}

/// Puts the rest of an answer as far as there is room, and returns whether that is all of it; if not, a flush makes room.
pub(crate) fn put(writer: &mut impl Records, rest: &mut impl Buf, front_end: &FrontEnd) -> io::Result<bool> {
    while rest.has_remaining() {
        let mut slices = [IoSlice::new(&[]); 2];
        let count = rest.chunks_vectored(&mut slices);
        let taken = writer.put(&slices[..count])?;
        if taken == 0 {
            return Ok(false);
        }
        front_end.sent(taken);
        rest.advance(taken);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use telemetry::Registry;
    use tokio::sync::Semaphore;
    use tokio::time::Duration;

    use super::*;
    use crate::message::unread::Unread;

    /// Takes some bytes until they are flushed, and remembers each record.
    #[derive(Default)]
    struct Recorded {
        records: Vec<Vec<u8>>,
        room: usize,
        unsent: usize,
        flushes: usize,
        /// The flush that never completes.
        stuck_at: Option<usize>,
    }

    impl Records for Recorded {
        fn put(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            let free = self.room - self.unsent;
            let taken: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).take(free).collect();
            let count = taken.len();
            self.unsent += count;
            self.records.extend(Some(taken).filter(|record| !record.is_empty()));
            Ok(count)
        }

        fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            if self.stuck_at == Some(self.flushes) {
                return Poll::Pending;
            }
            self.unsent = 0;
            self.flushes += 1;
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.poll_flush(context)
        }
    }

    /// Returns a queue of answers, with their permits and the count of unread ones.
    fn waiting(answers: &[(&'static str, &'static str)]) -> (Answers, Arc<Semaphore>, Arc<Unread>) {
        let (queue, unread) = (Answers::default(), Unread::new(Duration::from_mins(1)));
        let turns = Arc::new(Semaphore::new(answers.len()));
        for (frame, payload) in answers {
            let encoded = Encoded { frame: (*frame).into(), payload: Bytes::from(*payload) };
            let turn = Arc::clone(&turns).try_acquire_owned().unwrap();
            queue.push(Pending { encoded, _held: None, _mark: unread.mark(1), _turn: turn });
        }
        (queue, turns, unread)
    }

    fn front_end() -> Arc<FrontEnd> {
        Registry::default().register("nosql", [])
    }

    /// Otherwise a client that reads would seem to leave the first of many answers unread.
    #[test]
    fn what_an_answer_holds_is_given_back_while_later_ones_wait_for_the_client() {
        let (queue, turns, unread) = waiting(&[("frame-a", ""), ("frame-b", "payload-b"), ("c", "")]);
        let (mut writer, front_end) =
            (Recorded { room: 10, stuck_at: Some(1), ..Recorded::default() }, front_end());
        let sent = AtomicUsize::new(0);
        let on_sent = || {
            sent.fetch_add(1, Ordering::Relaxed);
        };
        let mut sending = pin!(send(&queue, &mut writer, &front_end, on_sent));
        assert!(sending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!((turns.available_permits(), unread.waiting_bytes()), (1, 2), "the first is sent");
        assert_eq!(sent.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn answers_that_wait_are_sent_together_and_no_two_are_in_one_record() {
        for room in [1, 3, 8, 1000] {
            let (queue, turns, unread) = waiting(&[("frame-a", "payload-a"), ("b", ""), ("c", "cc")]);
            queue.close();
            let mut writer = Recorded { room, ..Recorded::default() };
            send(&queue, &mut writer, &front_end(), || ()).await.unwrap();
            let all: Vec<u8> = writer.records.concat();
            assert_eq!(all, b"frame-apayload-abccc");
            for end in [16, 17] {
                let mut at = 0;
                let ends: Vec<usize> = writer
                    .records
                    .iter()
                    .map(|record| {
                        at += record.len();
                        at
                    })
                    .collect();
                assert!(ends.contains(&end), "an answer ends at {end}, the records at {ends:?}");
            }
            // The last one shuts the connection down.
            assert_eq!(writer.flushes, all.len().div_ceil(room) + 1, "with room for {room}");
            assert_eq!((turns.available_permits(), unread.waiting_bytes()), (3, 0), "all is given back");
        }
    }
}
