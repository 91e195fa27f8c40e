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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;

    /// Counts warnings.
    struct Counter(Arc<AtomicUsize>);

    impl Subscriber for Counter {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            if *event.metadata().level() == Level::WARN {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_warning_that_clients_cause_is_logged_once_in_ten_seconds() {
        let logged = Arc::new(AtomicUsize::new(0));
        let _log = tracing::subscriber::set_default(Counter(Arc::clone(&logged)));
        let (mut limiter, mut other) = (WarningLimiter::default(), WarningLimiter::default());
        for (seconds, expected) in [(0, 1), (9, 1), (1, 2), (1, 2), (9, 3)] {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            for _ in 0..100 {
                limiter.warn("again");
            }
            assert_eq!(logged.load(Ordering::Relaxed), expected);
        }
        other.warn("of another kind");
        assert_eq!(logged.load(Ordering::Relaxed), 4);
    }
}
