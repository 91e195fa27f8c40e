//! Runs long work away from the worker threads that serve all connections.
//!
//! A worker that computes serves no other connection meanwhile. While work is offloaded, the worker's other tasks move to
//! another thread. That costs some microseconds, so short work stays where it is.

use std::future::{Future, poll_fn};
use std::pin::pin;

use tokio::task::block_in_place;

use crate::protocol::limits::SMALL_MESSAGE_BYTES;

/// Runs a function that handles so many bytes from a peer.
pub(crate) fn offload<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > SMALL_MESSAGE_BYTES { block_in_place(work) } else { work() }
}

/// Runs work that has turned out long.
pub(crate) fn offload_step(work: &mut dyn FnMut()) {
    block_in_place(work);
}

/// Runs a future that handles so many bytes from a peer: every step of it is such work, its waiting is not.
pub(crate) async fn offload_future<T>(bytes: usize, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| offload(bytes, || work.as_mut().poll(context))).await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// With one worker, a task that waits on the thread for another task is answered only if its work is offloaded.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_large_command_leaves_its_worker_to_others() {
        let (say, hear) = mpsc::channel();
        let work = tokio::spawn(offload_future(SMALL_MESSAGE_BYTES + 1, async move {
            tokio::spawn(async move { say.send(7).unwrap() });
            let heard = hear.recv_timeout(Duration::from_secs(20));
            // Commands offload parts of themselves, too.
            block_in_place(|| heard)
        }));
        assert_eq!(work.await.unwrap(), Ok(7));
    }
}
