//! The log of slow operations: one line for each, rate-limited.
//!
//! A line names the operation, its target, its duration and its plan; it is built only for an operation that is slow,
//! so that others cost a comparison. It contains no values of users: front ends remove them from queries unless the
//! operator has asked for full texts.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::front_end::{FrontEnd, OperationId, RequestSummary};

/// The largest number of lines per second. A server on which everything is slow must not be slowed down further by its
/// log.
const LINES_PER_SECOND: u32 = 20;

/// The largest number of characters of a query or a plan in a line.
const TEXT_CHARS: usize = 1000;

/// How queries are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// The shape of a query, without the values in it.
    Shapes,
    /// The text as received, with values and parameters.
    Whole,
}

/// The log of slow operations.
#[derive(Debug)]
pub struct SlowLog {
    /// The duration from which operations are logged; `None` logs nothing.
    threshold: Option<Duration>,
    texts: Texts,
    window: Mutex<Window>,
}

/// The lines written within the current second.
#[derive(Debug, Default)]
struct Window {
    since: Option<Instant>,
    lines: u32,
    /// Operations left out since the last line.
    left_out: u64,
}

/// The details of a slow operation.
#[derive(Debug, Default)]
pub struct SlowOperation {
    /// The database.
    pub database: Option<String>,
    /// The container or collection.
    pub container: Option<String>,
    /// The status or error number that the client was sent.
    pub status: Option<i64>,
    /// The client's id of the request.
    pub activity: Option<String>,
    /// Items read.
    pub items_examined: Option<u64>,
    /// Index entries read.
    pub index_entries_examined: Option<u64>,
    /// Items returned or changed.
    pub items_returned: Option<u64>,
    /// The indexes used.
    pub plan: Option<String>,
    /// The query, as [`Texts`] requires.
    pub query: Option<String>,
}

impl SlowLog {
    /// Creates a log of operations that take `threshold` or longer.
    pub fn new(threshold: Duration, texts: Texts) -> SlowLog {
        SlowLog { threshold: Some(threshold), texts, window: Mutex::default() }
    }

    /// Creates a log that is off.
    pub fn off() -> SlowLog {
        SlowLog { threshold: None, texts: Texts::Shapes, window: Mutex::default() }
    }

    /// Logs an operation that ended `now` if it was slow; calls `describe` only then.
    pub fn record(
        &self,
        front_end: &FrontEnd,
        operation: OperationId,
        summary: &RequestSummary,
        now: Instant,
        describe: impl FnOnce(Texts) -> SlowOperation,
    ) {
        if self.threshold.is_none_or(|threshold| summary.duration < threshold) {
            return;
        }
        front_end.count_slow();
        let Some(left_out) = self.window.lock().admit(now) else { return };
        let slow = describe(self.texts);
        tracing::warn!(
            target: "bolide::slow",
            api = front_end.api(),
            operation = front_end.name(operation),
            database = slow.database,
            container = slow.container,
            duration_ms = summary.duration.as_micros() as f64 / 1000.0,
            request_units = summary.charge_hundredths as f64 / 100.0,
            outcome = summary.outcome.name(),
            status = slow.status,
            activity = slow.activity,
            items_examined = slow.items_examined,
            index_entries_examined = slow.index_entries_examined,
            items_returned = slow.items_returned,
            plan = slow.plan.map(shortened),
            query = slow.query.map(shortened),
            left_out = Some(left_out).filter(|count| *count > 0),
            "slow operation"
        );
    }
}

impl Window {
    /// Returns whether another line is allowed; if so, how many were left out since the last one.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let fresh =
            self.since.is_none_or(|since| now.saturating_duration_since(since) >= Duration::from_secs(1));
        if fresh {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines == LINES_PER_SECOND {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(TEXT_CHARS) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant to count from")]
    fn a_second_has_so_many_lines_and_the_next_tells_of_the_others() {
        let (mut window, start) = (Window::default(), Instant::now());
        for line in 0..LINES_PER_SECOND {
            assert_eq!(window.admit(start), Some(0), "{line}");
        }
        for _ in 0..7 {
            assert_eq!(window.admit(start + Duration::from_millis(999)), None);
        }
        assert_eq!(window.admit(start + Duration::from_secs(1)), Some(7));
        assert_eq!(window.admit(start + Duration::from_secs(1)), Some(0));
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(shortened("abc".to_owned()), "abc");
        let long = "é".repeat(TEXT_CHARS + 1);
        assert_eq!(shortened(long), format!("{}…", "é".repeat(TEXT_CHARS)));
    }
}
