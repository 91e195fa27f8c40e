//! A page in the Prometheus text format, while it is written.
//!
//! The format requires each metric once, with its help and its type, and all of its samples together. A [`Family`]
//! borrows the page while its samples are written, so that nothing else gets between them.

use std::collections::HashSet;
use std::fmt::{Display, Write};
use std::time::Duration;

use crate::buckets::{BOUNDS, Snapshot};

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value that only grows, until the process ends.
    Counter,
    /// A value that may go up and down.
    Gauge,
    /// Counts of durations by their length.
    Histogram,
}

impl Kind {
    /// Returns the name used by the format.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// The page.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    families: HashSet<&'static str>,
}

impl Page {
    /// Writes a metric with one sample and no labels.
    pub fn plain(&mut self, name: &'static str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// Begins a metric. It may have no samples at all: then the page only declares it.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        debug_assert!(!help.contains(['\n', '\\']), "{name}: help is one plain line");
        assert!(self.families.insert(name), "{name} stands twice on the page");
        write(&mut self.text, format_args!("# HELP {name} {help}\n# TYPE {name} {}\n", kind.name()));
        Family { text: &mut self.text, name }
    }

    /// Returns the whole page.
    pub fn finish(self) -> String {
        self.text
    }
}

/// A metric whose samples are being written.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    /// Writes one sample. Label values may be any text.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Writes the samples of one histogram.
    pub(crate) fn histogram(&mut self, labels: &[(&str, &str)], snapshot: &Snapshot) {
        for ((bound, _), count) in BOUNDS.iter().zip(snapshot.cumulative) {
            self.line("_bucket", labels, Some(bound), count);
        }
        self.line("_bucket", labels, Some("+Inf"), snapshot.count());
        self.line("_sum", labels, None, Seconds(snapshot.sum));
        self.line("_count", labels, None, snapshot.count());
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], bound: Option<&str>, value: impl Display) {
        write(self.text, format_args!("{}{suffix}", self.name));
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let mut separator = '{';
        for (label, text) in all {
            write(self.text, format_args!("{separator}{label}=\"{}\"", Escaped(text)));
            separator = ',';
        }
        self.text.push_str(if separator == '{' { " " } else { "} " });
        write(self.text, format_args!("{value}\n"));
    }
}

fn write(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("text takes all that is written");
}

/// A duration in seconds.
pub(crate) struct Seconds(pub(crate) Duration);

impl Display for Seconds {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{:09}", self.0.as_secs(), self.0.subsec_nanos())
    }
}

/// A label's text, escaped.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '\\' => out.write_str("\\\\")?,
                '"' => out.write_str("\\\"")?,
                '\n' => out.write_str("\\n")?,
                letter => out.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_label() {
        let mut page = Page::default();
        page.family("m", Kind::Gauge, "h").sample(&[("container", "a\"} 1\nb\\")], 7);
        assert_eq!(page.finish(), "# HELP m h\n# TYPE m gauge\nm{container=\"a\\\"} 1\\nb\\\\\"} 7\n");
    }

    #[test]
    #[should_panic(expected = "stands twice")]
    fn a_metric_stands_on_a_page_once() {
        let mut page = Page::default();
        page.plain("m", Kind::Gauge, "h", 1);
        page.plain("m", Kind::Gauge, "h", 2);
    }
}
