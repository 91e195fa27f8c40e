//! Warnings that strangers can cause, at most one in a while.

use std::time::Duration;

use tokio::time::Instant;

/// How long a repeated complaint stays unsaid.
const PAUSE: Duration = Duration::from_secs(10);

/// Remembers when it last said something.
#[derive(Debug, Default)]
pub struct Complaints {
    last: Option<Instant>,
}

impl Complaints {
    /// Says it, unless something was said just now.
    pub fn warn(&mut self, message: &str) {
        if self.last.is_none_or(|last| last.elapsed() >= PAUSE) {
            self.last = Some(Instant::now());
            tracing::warn!("{message} (not repeated for {PAUSE:?})");
        }
    }
}
