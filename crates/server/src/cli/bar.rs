//! The progress of a long command: a bar on a terminal, a line for each tenth elsewhere. Always on standard error.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// The amount of work below which no line is printed.
const WORTH_A_LINE: u64 = 10_000;

/// The bar where the total is known, and where it is not.
const MEASURED: &str = "{prefix} [{bar:30}] {percent:>3} % {msg}";
const UNMEASURED: &str = "{prefix} {spinner} {msg}";

/// The progress of one piece of work.
pub(super) struct Bar {
    what: &'static str,
    shown: Option<ProgressBar>,
    is_measured: bool,
    /// The last tenth that was printed.
    tenth: u64,
}

impl Bar {
    /// Begins a piece of work.
    pub(super) fn new(what: &'static str) -> Bar {
        let shown = std::io::stderr().is_terminal().then(|| ProgressBar::new(0).with_prefix(what));
        let mut bar = Bar { what, shown, is_measured: true, tenth: 0 };
        bar.set_measured(true);
        bar
    }

    fn set_measured(&mut self, is_measured: bool) {
        self.is_measured = is_measured;
        let style = ProgressStyle::with_template(if is_measured { MEASURED } else { UNMEASURED });
        if let (Some(bar), Ok(style)) = (&self.shown, style) {
            bar.set_style(style.progress_chars("=> "));
        }
    }

    /// Shows that `done` of `of` is finished, 0 if the total is unknown, and the current place.
    pub(super) fn at(&mut self, done: u64, of: u64, place: &str) {
        if of == 0 && self.shown.is_none() {
            return;
        }
        if self.is_measured != (of > 0) {
            self.set_measured(of > 0);
        }
        let of = of.max(done).max(1);
        if let Some(bar) = &self.shown {
            if bar.length() != Some(of) {
                bar.set_length(of);
            }
            bar.set_position(done);
            if bar.message() != place {
                bar.set_message(place.to_owned());
            }
            return;
        }
        let tenth = done * 10 / of;
        if tenth > self.tenth && of >= WORTH_A_LINE {
            self.tenth = tenth;
            eprintln!("{}: {} % {place}", self.what, tenth * 10);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}
