//! The answers of a connection until they are sent.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, Waker};

use bytes::Buf;
use parking_lot::Mutex;
use telemetry::FrontEnd;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use transport::Held;

use crate::direct::answer::Encoded;
use crate::message::unread::Mark;
use crate::protocol::limits::direct::LINGER;

/// An answer that waits to be sent. What it holds is given back when its last byte is written.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) encoded: Encoded,
    /// The memory that it is charged for.
    pub(crate) _held: Option<Held>,
    /// Its mark among the unread answers.
    pub(crate) _mark: Mark,
    /// The turn of its request.
    pub(crate) _turn: OwnedSemaphorePermit,
}

/// The answers that wait, and who sends them.
///
/// Most answers are made by the very task that sends them, which looks here after each request. Waking it then would cost
/// more than the answer: so only [`Answers::wake`] does, for answers that were made elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    list: VecDeque<Pending>,
    is_closed: bool,
    sender: Option<Waker>,
}

impl Answers {
    /// Adds an answer, without waking the task that sends it.
    pub(crate) fn push(&self, answer: Pending) {
        self.0.lock().list.push_back(answer);
    }

    /// Lets the task that sends look here.
    pub(crate) fn wake(&self) {
        let sender = self.0.lock().sender.take();
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Ends the sending when all that waits is sent.
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

/// Sends answers in the order in which they come, until they are closed; then says goodbye.
///
/// Each answer is written alone, so that each begins a TLS record. The Java client keeps an answer where it was decrypted and
/// moves what follows it there over it: of two answers in one record it reads the first one damaged.
pub(crate) async fn send(
    answers: &Answers,
    mut writer: impl AsyncWrite + Unpin,
    front_end: &FrontEnd,
    on_sent: impl Fn(),
) -> io::Result<()> {
    while let Some(mut next) = poll_fn(|context| answers.poll_next(context)).await {
        let Encoded { frame, payload } = &mut next.encoded;
        let mut whole = frame.chain(payload);
        while whole.has_remaining() {
            let mut slices = [IoSlice::new(&[]); 2];
            let count = whole.chunks_vectored(&mut slices);
            let written = writer.write_vectored(&slices[..count]).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            front_end.sent(written);
            whole.advance(written);
        }
        if answers.is_empty() {
            writer.flush().await?;
        }
        drop(next);
        on_sent();
    }
    // Nothing watches this any more.
    timeout(LINGER, writer.shutdown()).await.unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;

    use bytes::Bytes;
    use telemetry::Registry;
    use tokio::sync::Semaphore;
    use tokio::time::Duration;

    use super::*;
    use crate::message::unread::Unread;

    /// Takes some bytes at each write, and remembers what each was.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>, usize);

    impl AsyncWrite for &mut Writes {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = &bytes[..bytes.len().min(self.1)];
            self.0.push(taken.to_vec());
            Poll::Ready(Ok(taken.len()))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).take(self.1).collect();
            let count = all.len();
            self.0.push(all);
            Poll::Ready(Ok(count))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn no_two_answers_are_in_one_write() {
        let (turns, unread) = (Arc::new(Semaphore::new(10)), Unread::new(Duration::from_mins(1)));
        let front_end = Registry::default().register("nosql", []);
        let replies: [(&'static str, &'static str); 3] = [("frame-a", "payload-a"), ("b", ""), ("c", "cc")];
        for room in [1, 3, 8, 1000] {
            let queue = Answers::default();
            for (frame, payload) in replies {
                let encoded = Encoded { frame: frame.into(), payload: Bytes::from(payload) };
                let turn = Arc::clone(&turns).try_acquire_owned().unwrap();
                let pending = Pending { encoded, _held: None, _mark: unread.mark(1), _turn: turn };
                queue.push(pending);
            }
            queue.close();
            let mut writes = Writes(Vec::new(), room);
            send(&queue, &mut writes, &front_end, || ()).await.unwrap();
            let all: Vec<u8> = writes.0.concat();
            assert_eq!(all, b"frame-apayload-abccc");
            for end in [16, 17] {
                let mut at = 0;
                let ends: Vec<usize> = writes
                    .0
                    .iter()
                    .map(|write| {
                        at += write.len();
                        at
                    })
                    .collect();
                assert!(ends.contains(&end), "an answer ends at {end}, the writes at {ends:?}");
            }
            assert_eq!((turns.available_permits(), unread.waiting_bytes()), (10, 0), "all is given back");
        }
    }
}
