//! The progress of a transfer: a bar on a terminal, occasional lines elsewhere. Both on standard error, so that
//! standard output can carry the data.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

use crate::format;

/// The pause between two lines.
const LINE_PAUSE: Duration = Duration::from_secs(10);

/// The unit of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Items,
    Bytes,
}

/// The meter of one file.
pub(crate) struct Meter {
    name: String,
    unit: Unit,
    total: u64,
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl Meter {
    /// Creates a meter up to `total`; `None` if that is unknown.
    pub(crate) fn new(name: &str, unit: Unit, total: Option<u64>) -> Meter {
        let total = total.unwrap_or(0);
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
            let (position, rest) = match unit {
                Unit::Items => ("{human_pos}/{human_len} items", "{per_sec}"),
                Unit::Bytes => ("{binary_bytes}/{binary_total_bytes}", "{binary_bytes_per_sec}"),
            };
            let template = format!("{{prefix}} {{wide_bar}} {position} {rest} {{eta}} {{msg}}");
            let style =
                ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.with_style(style).with_prefix(name.to_owned())
        });
        Meter { name: name.to_owned(), unit, total, bar, last_line: Instant::now() }
    }

    /// Shows the position.
    pub(crate) fn at(&mut self, position: u64, remark: &str) {
        match &self.bar {
            Some(bar) => {
                // Data written meanwhile may exceed the initial total.
                bar.set_length(self.total.max(position));
                bar.set_position(position);
                bar.set_message(remark.to_owned());
            }
            None if self.last_line.elapsed() >= LINE_PAUSE => {
                self.last_line = Instant::now();
                eprintln!("{}: {} of {} {remark}", self.name, self.shown(position), self.shown(self.total));
            }
            None => {}
        }
    }

    /// Prints a message beside the bar.
    pub(crate) fn say(&self, words: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{words}")),
            None => eprintln!("{words}"),
        }
    }

    /// Ends the meter and leaves a message.
    pub(crate) fn end(self, words: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        eprintln!("{}: {words}", self.name);
    }

    fn shown(&self, figure: u64) -> String {
        match self.unit {
            Unit::Items => format::counted(figure, "item"),
            Unit::Bytes => format::bytes(figure),
        }
    }
}
