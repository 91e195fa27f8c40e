//! Work that takes long, beside the workers that serve everybody.
//!
//! A worker that computes serves nobody else meanwhile. What may take long is done here: the worker's other tasks move to
//! another thread for as long as it lasts. That costs some microseconds, so small things stay where they are.

use std::future::{Future, poll_fn};
use std::pin::pin;

use tokio::task::block_in_place;

use crate::limits::SMALL_MESSAGE_BYTES;

/// Runs a function that handles so many bytes from a peer.
pub(crate) fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > SMALL_MESSAGE_BYTES { block_in_place(work) } else { work() }
}

/// Runs work that has turned out long.
pub(crate) fn step(work: &mut dyn FnMut()) {
    block_in_place(work);
}

/// Runs a future that handles so many bytes from a peer: every step of it is such work, its waiting is not.
pub(crate) async fn steps_aside<T>(bytes: usize, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| aside(bytes, || work.as_mut().poll(context))).await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// With one worker, a task that waits on the thread for another task is answered only if it stands aside.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_large_command_leaves_its_worker_to_others() {
        let (say, hear) = mpsc::channel();
        let work = tokio::spawn(steps_aside(SMALL_MESSAGE_BYTES + 1, async move {
            tokio::spawn(async move { say.send(7).unwrap() });
            let heard = hear.recv_timeout(Duration::from_secs(20));
            // Commands stand aside in themselves, too.
            block_in_place(|| heard)
        }));
        assert_eq!(work.await.unwrap(), Ok(7));
    }
}
