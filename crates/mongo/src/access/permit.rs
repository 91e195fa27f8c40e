//! The permit of a running command, which the command gives back while it waits for an open transaction.
//!
//! The statements that end the wait need permits too, of the same queue: commands that kept theirs while they wait could
//! hold all that the transaction's own user may have.

use mql::Code;
use parking_lot::Mutex;
use transport::{OwnedPermit, PausedPermit};

use crate::protocol::cancellation::Cancellation;
use crate::protocol::error::{Error, Result};

/// The permit of a command; none before it has one, and for a command that needs none.
#[derive(Debug, Default)]
pub(crate) struct CommandPermit {
    held: Mutex<Option<OwnedPermit>>,
}

impl CommandPermit {
    /// Keeps the permit until the command ends, or takes it back.
    pub(crate) fn keep(&self, permit: Option<OwnedPermit>) {
        *self.held.lock() = permit;
    }

    /// Gives the permit back until [`CommandPermit::resume`]; keeps it, and returns none, if the command's user has its share
    /// of those that were given back.
    pub(crate) fn pause(&self) -> Option<PausedPermit> {
        let mut held = self.held.lock();
        match held.take()?.pause() {
            Ok(paused) => Some(paused),
            Err(permit) => {
                *held = Some(permit);
                None
            }
        }
    }

    /// Waits for the permit that was given back, or until the command is stopped.
    pub(crate) async fn resume(&self, paused: PausedPermit, cancellation: &Cancellation) -> Result<()> {
        self.keep(unless_stopped(paused.resume(), cancellation).await?);
        Ok(())
    }
}

/// Waits for something, or until the command is stopped.
pub(crate) async fn unless_stopped<T>(
    wait: impl Future<Output = T>,
    cancellation: &Cancellation,
) -> Result<T> {
    tokio::select! {
        done = wait => Ok(done),
        () = cancellation.cancelled() => {
            Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"))
        }
    }
}
