//! `bolide top`: watches a running server: its requests, its latency, its purge.
//!
//! The output is plain ANSI on the alternate screen, redrawn each time, and restored at the end, however the command
//! ends.

mod sample;
mod view;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use crate::client::{Client, Endpoint};
use crate::settings::Settings;
use sample::Sample;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// Print one sample of an interval, and exit
    #[arg(long)]
    once: bool,
    /// Seconds between two samples
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// How many operations and containers to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,
}

/// Shows samples until stopped.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    let interval = Duration::from_secs_f64(request.interval.clamp(0.1, 3600.0));
    let mut client = Client::new(&Endpoint::from_settings(settings)?)?;
    let mut before = Sample::take(&mut client)?;
    if request.once || !std::io::stdout().is_terminal() {
        client.pause(interval);
        let now = Sample::take(&mut client)?;
        print!("{}", view::page(client.url(), &before, &now, request.rows));
        return Ok(ExitCode::SUCCESS);
    }
    let screen = Screen::open();
    screen.show("One moment …\n");
    while client.pause_unless_stopped(interval)? {
        match Sample::take(&mut client) {
            Ok(now) => {
                screen.show(&view::page(client.url(), &before, &now, request.rows));
                before = now;
            }
            // The server may come back.
            Err(error) => screen.show(&format!("{error:#}\n")),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The alternate screen of a terminal; dropping it restores the main one.
struct Screen;

impl Screen {
    /// Hides the cursor and disables line wrapping.
    fn open() -> Screen {
        write("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J");
        Screen
    }

    /// Redraws the screen: each line is cleared to its end, and so is everything below.
    #[expect(clippy::unused_self, reason = "only an open screen is drawn upon")]
    fn show(&self, page: &str) {
        write(&format!("\x1b[H{}\x1b[J", page.replace('\n', "\x1b[K\r\n")));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write("\x1b[?7h\x1b[?25h\x1b[?1049l");
    }
}

/// Errors are ignored: a terminal that has gone shows nothing.
fn write(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
