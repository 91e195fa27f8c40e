//! The last lines of this front end's log, for `getLog`: one JSON text each, as tools read them.

use std::collections::VecDeque;

use bson::{Document, Value, ValueRef};
use parking_lot::Mutex;
use storage::Time;

/// How many lines are kept.
const LINES_MAX: usize = 1024;

/// The lines.
#[derive(Debug, Default)]
pub(crate) struct RecentLog {
    lines: Mutex<(i32, VecDeque<String>)>,
}

impl RecentLog {
    /// Adds a line.
    pub(crate) fn push(&self, now: Time, message: &str) {
        let line = Document::new()
            .with("t", Value::DateTime(now.millis() as i64))
            .with("s", "I")
            .with("c", "NETWORK")
            .with("id", 0)
            .with("ctx", "bolide")
            .with("msg", message);
        let line = bson::to_extended_json(ValueRef::Document(line.view()), true);
        let mut lines = self.lines.lock();
        lines.0 = lines.0.wrapping_add(1).max(0);
        if lines.1.len() == LINES_MAX {
            lines.1.pop_front();
        }
        lines.1.push_back(line);
    }

    /// Returns how many there have been, and the last of them.
    pub(crate) fn lines(&self) -> (i32, Vec<String>) {
        let lines = self.lines.lock();
        (lines.0, lines.1.iter().cloned().collect())
    }
}
