//! The log: one line per event on standard error, as text or as JSON. Standard output is for the connection string.
//!
//! `RUST_LOG` is ignored: a setting has one name, so that `bolide config` can show its source.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};
use std::panic::PanicHookInfo;

use anyhow::{Context, Result, anyhow};
use tracing_subscriber::EnvFilter;

use crate::settings::Settings;

/// Starts logging according to the settings.
pub(crate) fn begin(settings: &Settings) -> Result<()> {
    let text = settings.always("log");
    let filter = EnvFilter::try_new(text)
        .with_context(|| format!("'log' must be levels such as warn or info,engine=debug, it is '{text}'"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| OneLine(io::stderr()));
    match settings.always("log-format") {
        "json" => log.json().flatten_event(true).with_current_span(false).with_span_list(false).init(),
        _ => log.init(),
    }
    log::set_logger(&Libraries).map_err(|error| anyhow!("{error}"))?;
    log::set_max_level(log::LevelFilter::Warn);
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// The filter for libraries: their errors, because fjall reports only there why it stopped flushing; from the store's
/// own crate warnings, too.
struct Libraries;

impl log::Log for Libraries {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() == log::Level::Error || metadata.target().starts_with("storage")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            if record.level() == log::Level::Error {
                tracing::error!(library = record.target(), "{}", record.args());
            } else {
                tracing::warn!(library = record.target(), "{}", record.args());
            }
        }
    }

    fn flush(&self) {}
}

/// Logs a panic as an event, so that tools that read the log by lines can read this, too.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    let thread = std::thread::current();
    tracing::error!(
        location = panic.location().map(ToString::to_string),
        thread = thread.name(),
        backtrace,
        "panicked: {}",
        panic.payload_as_str().unwrap_or("for an unknown reason")
    );
}

/// A writer that keeps each event on one line: texts of clients in a message cannot begin another.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    /// Receives a complete event, which ends with a line break.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let (line, end) = match event {
            [line @ .., b'\n'] => (line, "\n"),
            line => (line, ""),
        };
        if !line.contains(&b'\n') && !line.contains(&b'\r') {
            return self.0.write(event);
        }
        let line = String::from_utf8_lossy(line).replace('\n', "\\n").replace('\r', "\\r");
        self.0.write_all((line + end).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let written = |event: &str| {
            let mut line = OneLine(Vec::new());
            line.write_all(event.as_bytes()).unwrap();
            String::from_utf8(line.0).unwrap()
        };
        assert_eq!(written("WARN a: b\n"), "WARN a: b\n");
        assert_eq!(written("no such path '/\nERROR forged\r'\n"), "no such path '/\\nERROR forged\\r'\n");
        assert_eq!(written(""), "");
    }
}
