//! Warnings that clients can cause, limited so that they do not fill the log.

use std::time::Duration;

use tokio::time::Instant;

/// How long a repeated warning is suppressed.
const PAUSE: Duration = Duration::from_secs(10);

/// Limits warnings of one kind to one every ten seconds.
#[derive(Debug, Default)]
pub struct WarningLimiter {
    last: Option<Instant>,
}

impl WarningLimiter {
    /// Logs the warning, unless one was logged within the last ten seconds.
    pub fn warn(&mut self, message: &str) {
        if self.last.is_none_or(|last| last.elapsed() >= PAUSE) {
            self.last = Some(Instant::now());
            tracing::warn!("{message} (not repeated for {PAUSE:?})");
        }
    }
}
