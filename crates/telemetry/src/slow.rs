//! The log of slow operations: one line for each, but only so many a second.
//!
//! A line names what was done, where, how long it took and why; it is made only for an operation that is slow, so that others pay
//! a comparison for it. Values that belong to users are not in it: front ends give queries without them unless the operator has
//! asked for texts.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::front_end::{Ending, FrontEnd, OperationId};

/// Lines in a second. A server on which everything is slow must not be made slower by saying so.
const LINES_PER_SECOND: u32 = 20;

/// Characters of a query or of a plan in a line.
const TEXT_CHARS: usize = 1000;

/// How queries are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// Their shape: no value that a user gave is in it.
    Shapes,
    /// As they came, with values and parameters.
    Whole,
}

/// The log.
#[derive(Debug)]
pub struct SlowLog {
    /// None: nothing is logged.
    threshold: Option<Duration>,
    texts: Texts,
    window: Mutex<Window>,
}

/// What was written in this second.
#[derive(Debug, Default)]
struct Window {
    since: Option<Instant>,
    lines: u32,
    /// Not told of since the last line.
    left_out: u64,
}

/// What is known of a slow operation besides its name and its ending.
#[derive(Debug, Default)]
pub struct SlowOperation {
    /// The database that it is about.
    pub database: Option<String>,
    /// The container or collection that it is about.
    pub container: Option<String>,
    /// The status or the error's number, as its client saw it.
    pub status: Option<i64>,
    /// What the client knows the request by.
    pub activity: Option<String>,
    /// Items and index entries that were looked at.
    pub items_examined: Option<u64>,
    /// See above.
    pub index_entries_examined: Option<u64>,
    /// Items in the answer, or changed.
    pub items_returned: Option<u64>,
    /// Which indexes were used.
    pub plan: Option<String>,
    /// The query, as [`Texts`] says.
    pub query: Option<String>,
}

impl SlowLog {
    /// A log of what takes `threshold` or longer.
    pub fn new(threshold: Duration, texts: Texts) -> SlowLog {
        SlowLog { threshold: Some(threshold), texts, window: Mutex::default() }
    }

    /// A log of nothing.
    pub fn off() -> SlowLog {
        SlowLog { threshold: None, texts: Texts::Shapes, window: Mutex::default() }
    }

    /// Logs an operation that ended `now` if it was slow. What is to be said of it is found out only then.
    pub fn look(
        &self,
        front_end: &FrontEnd,
        operation: OperationId,
        ending: &Ending,
        now: Instant,
        describe: impl FnOnce(Texts) -> SlowOperation,
    ) {
        if self.threshold.is_none_or(|threshold| ending.duration < threshold) {
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
            duration_ms = ending.duration.as_micros() as f64 / 1000.0,
            request_units = ending.charge_hundredths as f64 / 100.0,
            outcome = ending.outcome.name(),
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
    /// Whether there is room for a line; then also how many were left out since the last one.
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
