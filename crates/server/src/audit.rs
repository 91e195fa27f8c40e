//! The audit log as files: one JSON object per line, rotated by size and number.
//!
//! A separate thread writes, so that no request waits for the disk; events that it fails to write, or that exceed its
//! queue, are counted and reported in the log, and requests continue. Clients without credentials can cause refusals at
//! any rate: only some of them are recorded per second, and the next one carries the count of the others, so that a
//! flood cannot displace other events from the queue or from the files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result};
use document::{Object, Value, parse_json};
use parking_lot::Mutex;
use storage::{Time, WallClock};
use telemetry::{AuditEvent, AuditOutcome, AuditSink, Kind, MetricsSource, Page};
use transport::WarningLimiter;

use crate::archive::day_of;
use crate::files::{make_private, private};

/// The largest number of events waiting to be written. Events beyond it are dropped and counted.
const WAITING_MAX: usize = 4096;
/// The largest number of refusals recorded per second.
const DENIALS_PER_SECOND: u64 = 10;
/// The largest length of a text chosen by a client, in bytes.
const TEXT_BYTES_MAX: usize = 1024;
/// How long a shutdown waits for unwritten events.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The destination of audit events, and how many are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditSettings {
    pub(crate) path: PathBuf,
    /// The size at which a file is rotated.
    pub(crate) file_bytes: u64,
    /// The number of files kept, including the current one.
    pub(crate) files: u64,
}

/// The audit log.
pub(crate) struct AuditLog {
    sender: SyncSender<Message>,
    clock: Arc<dyn WallClock>,
    refusals: Mutex<Refusals>,
    figures: Arc<Figures>,
}

#[derive(Debug, Default)]
struct Figures {
    written: AtomicU64,
    lost: AtomicU64,
    left_out: AtomicU64,
    warnings: Mutex<WarningLimiter>,
}

enum Message {
    Event(Box<Stamped>),
    /// A request to report when all earlier events are written.
    Flush(Sender<()>),
}

/// An event with what the log adds to it.
struct Stamped {
    at: Time,
    event: AuditEvent,
    /// Refusals left out since the last one.
    left_out: u64,
}

/// Returns an event for an action of the server that no client requested.
pub(crate) fn of_server(action: &str, target: Option<String>, outcome: AuditOutcome) -> AuditEvent {
    AuditEvent {
        api: "server",
        who: Some("server".to_owned()),
        from: None,
        action: action.to_owned(),
        target,
        details: None,
        outcome,
        status: None,
    }
}

impl AuditLog {
    /// Opens the log and starts its thread. A file that cannot be opened is an error here, and only counted later.
    pub(crate) fn open(settings: AuditSettings, clock: Arc<dyn WallClock>) -> Result<AuditLog> {
        let shown = settings.path.display().to_string();
        let figures = Arc::<Figures>::default();
        let mut writer = Writer { settings, open: None, figures: Arc::clone(&figures) };
        writer.file().with_context(|| format!("cannot open the audit log '{shown}'"))?;
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let run = move || writer.run(&receiver);
        std::thread::Builder::new().name("audit".into()).spawn(run).context("cannot start a thread")?;
        Ok(AuditLog { sender, clock, refusals: Mutex::default(), figures })
    }

    /// Waits until all recorded events are written, or for a few seconds.
    pub(crate) fn flush(&self) {
        let (done, wait) = channel();
        if self.sender.send(Message::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(CLOSE_TIMEOUT);
        }
    }
}

impl AuditSink for AuditLog {
    fn record(&self, event: AuditEvent) {
        let (at, mut left_out) = (self.clock.wall(), 0);
        if event.outcome == AuditOutcome::Denied {
            let Some(before) = self.refusals.lock().admit(at) else {
                self.figures.left_out.fetch_add(1, Ordering::Relaxed);
                return;
            };
            left_out = before;
        }
        if self.sender.try_send(Message::Event(Box::new(Stamped { at, event, left_out }))).is_err() {
            self.figures.lose("more events come than can be written");
        }
    }
}

impl MetricsSource for AuditLog {
    fn write(&self, page: &mut Page) {
        let Figures { written, lost, left_out, .. } = &*self.figures;
        for (name, help, figure) in [
            ("bolide_audit_events_total", "Events that were written to the audit log.", written),
            ("bolide_audit_lost_total", "Events that could not be written to the audit log.", lost),
            (
                "bolide_audit_left_out_total",
                "Refused requests that have no line of their own in the audit log, because there were too many.",
                left_out,
            ),
        ] {
            page.plain(name, Kind::Counter, help, figure.load(Ordering::Relaxed));
        }
    }
}

impl Figures {
    fn lose(&self, why: &str) {
        self.lost.fetch_add(1, Ordering::Relaxed);
        self.warnings.lock().warn(&format!("an event is not in the audit log: {why}"));
    }
}

/// The state of the thread.
struct Writer {
    settings: AuditSettings,
    /// The file and its length.
    open: Option<(File, u64)>,
    figures: Arc<Figures>,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Message>) {
        while let Ok(message) = receiver.recv() {
            match message {
                Message::Event(event) => self.write(&event),
                Message::Flush(done) => drop(done.send(())),
            }
        }
    }

    fn write(&mut self, Stamped { at, event, left_out }: &Stamped) {
        match self.append(line(*at, event, *left_out).as_bytes()) {
            Ok(()) => drop(self.figures.written.fetch_add(1, Ordering::Relaxed)),
            Err(error) => {
                // The file itself may be the cause: the next event opens it again.
                self.open = None;
                self.figures.lose(&format!("{}: {error}", self.settings.path.display()));
            }
        }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let (_, length) = self.file()?;
        if *length > 0 && *length + line.len() as u64 > self.settings.file_bytes {
            self.open = None;
            self.settings.rotate()?;
        }
        let (file, length) = self.file()?;
        file.write_all(line)?;
        *length += line.len() as u64;
        Ok(())
    }

    fn file(&mut self) -> io::Result<&mut (File, u64)> {
        if self.open.is_none() {
            let file = private().append(true).create(true).open(&self.settings.path)?;
            make_private(&file)?;
            let length = file.metadata()?.len();
            self.open = Some((file, length));
        }
        self.open.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl AuditSettings {
    /// Rotates the file and its predecessors: `audit.log.1` is the newest of them.
    fn rotate(&self) -> io::Result<()> {
        for number in (1..self.files).rev() {
            let from = if number == 1 { self.path.clone() } else { self.aside(number - 1) };
            rename(&from, &self.aside(number))?;
        }
        if self.files == 1 { fs::remove_file(&self.path) } else { Ok(()) }
    }

    fn aside(&self, number: u64) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// Renames a file, if it exists.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The refusals of the current second.
#[derive(Debug, Default)]
struct Refusals {
    second: u64,
    written: u64,
    left_out: u64,
}

impl Refusals {
    /// Returns whether another refusal may be recorded; if so, how many were left out since the last one.
    fn admit(&mut self, at: Time) -> Option<u64> {
        if self.second != at.seconds() {
            (self.second, self.written) = (at.seconds(), 0);
        }
        if self.written == DENIALS_PER_SECOND {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Formats an event as a line.
fn line(at: Time, event: &AuditEvent, left_out: u64) -> String {
    let AuditEvent { api, who, from, action, target, details, outcome, status } = event;
    let mut line = Object::new();
    line.insert("time", instant(at));
    line.insert("api", *api);
    line.insert("action", bounded(action));
    if let Some(who) = who {
        line.insert("who", bounded(who));
    }
    if let Some(from) = from {
        line.insert("from", from.to_string());
    }
    if let Some(target) = target {
        line.insert("target", bounded(target));
    }
    // Details that are too long are omitted: a part of them would not be JSON.
    let details = details.as_ref().filter(|text| text.len() <= TEXT_BYTES_MAX);
    if let Some(details) = details.and_then(|text| parse_json(text.as_bytes()).ok()) {
        line.insert("details", details);
    }
    line.insert("outcome", outcome.name());
    if let Some(status) = status {
        line.insert("status", *status);
    }
    if left_out > 0 {
        line.insert("leftOut", i64::try_from(left_out).unwrap_or(i64::MAX));
    }
    Value::Object(line).to_json() + "\n"
}

/// Formats an instant as `2026-01-02T03:04:05.678Z`.
fn instant(at: Time) -> String {
    let (millis, seconds) = (at.millis() % 1000, at.seconds() % 86_400);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z", day_of(at))
}

fn bounded(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use storage::ManualClock;

    use super::*;

    fn event(action: &str, outcome: AuditOutcome) -> AuditEvent {
        AuditEvent {
            api: "nosql",
            who: Some("primary key 01234567".to_owned()),
            from: Some("127.0.0.1:5000".parse().unwrap()),
            action: action.to_owned(),
            target: Some("/dbs/a\n\"b".to_owned()),
            details: Some(r#"{"defaultTtl":60}"#.to_owned()),
            outcome,
            status: Some(200),
        }
    }

    fn open(path: &Path, file_bytes: u64, files: u64) -> AuditLog {
        let clock = Arc::new(ManualClock::new(Time::from_millis(1_700_000_000_123)));
        AuditLog::open(AuditSettings { path: path.to_owned(), file_bytes, files }, clock).unwrap()
    }

    #[test]
    fn an_event_is_one_line_of_json() {
        let told = line(Time::from_millis(1_700_000_000_123), &event("CreateUser", AuditOutcome::Success), 0);
        let expected = r#"{"time":"2023-11-14T22:13:20.123Z","api":"nosql","action":"CreateUser","who":"primary key 01234567","from":"127.0.0.1:5000","target":"/dbs/a\n\"b","details":{"defaultTtl":60},"outcome":"success","status":200}"#;
        assert_eq!(told, format!("{expected}\n"));
        let anonymous = AuditEvent {
            who: None,
            from: None,
            target: None,
            details: None,
            status: None,
            ..event("x", AuditOutcome::Denied)
        };
        let denied = line(Time::from_millis(0), &anonymous, 7);
        assert!(denied.ends_with("\"outcome\":\"denied\",\"leftOut\":7}\n"), "{denied}");
        let long = AuditEvent { target: Some("é".repeat(5000)), ..anonymous };
        assert!(line(Time::from_millis(0), &long, 0).len() < 2 * TEXT_BYTES_MAX);
    }

    #[test]
    fn files_are_rotated_by_size_and_number_and_are_their_owners() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let log = open(&path, 1000, 3);
        for number in 0..40 {
            log.record(event(&format!("Action{number}"), AuditOutcome::Success));
        }
        log.flush();
        let name = |number: u64| {
            if number == 0 { path.clone() } else { folder.path().join(format!("audit.log.{number}")) }
        };
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        let texts = [0, 1, 2].map(|number| fs::read_to_string(name(number)).unwrap());
        assert!(texts.iter().all(|text| text.len() <= 1000 && text.ends_with('\n')), "{texts:#?}");
        assert!(texts[0].contains("Action39") && !texts.iter().any(|text| text.contains("\"Action0\"")));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // A new process continues where the last one ended.
        let before = texts[0].lines().count();
        let log = open(&path, 100_000, 3);
        log.record(event("Later", AuditOutcome::Success));
        log.flush();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), before + 1);
    }

    #[test]
    fn a_file_that_others_could_read_is_its_owners_once_it_is_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, "of before\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let log = open(&path, 1 << 20, 2);
        log.record(event("CreateUser", AuditOutcome::Success));
        log.flush();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2, "what was there stays");
    }

    #[test]
    fn refusals_cannot_push_everything_else_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        // The writer takes no event before all have been recorded.
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let log = AuditLog { sender, ..open(&path, 1 << 20, 2) };
        let denials = 2 * WAITING_MAX as u64;
        for _ in 0..denials {
            log.record(event("ReadItem", AuditOutcome::Denied));
        }
        log.record(event("AdminRegenerateKey", AuditOutcome::Success));
        let settings = AuditSettings { path: path.clone(), file_bytes: 1 << 20, files: 2 };
        let writer = Writer { settings, open: None, figures: Arc::clone(&log.figures) };
        let AuditLog { sender, figures, .. } = log;
        drop(sender);
        writer.run(&receiver);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count() as u64, DENIALS_PER_SECOND + 1, "{text}");
        assert!(text.contains("AdminRegenerateKey"), "{text}");
        assert_eq!(figures.left_out.load(Ordering::Relaxed), denials - DENIALS_PER_SECOND);
        assert_eq!(figures.lost.load(Ordering::Relaxed), 0);
        let mut refusals = Refusals { second: 7, written: DENIALS_PER_SECOND, left_out: 5 };
        assert_eq!(refusals.admit(Time::from_seconds(7)), None);
        assert_eq!(refusals.admit(Time::from_seconds(8)), Some(6));
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_the_next_event_tries_again() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, path) = (folder.path().join("inner"), folder.path().join("inner/audit.log"));
        fs::create_dir(&inner).unwrap();
        let log = open(&path, 200, 2);
        log.record(event("First", AuditOutcome::Success));
        log.flush();
        fs::rename(&inner, folder.path().join("away")).unwrap();
        // The target of the rotation is in the way.
        log.record(event("Second", AuditOutcome::Success));
        log.flush();
        assert_eq!(log.figures.lost.load(Ordering::Relaxed), 1);
        fs::create_dir(&inner).unwrap();
        log.record(event("Third", AuditOutcome::Success));
        log.flush();
        assert!(fs::read_to_string(&path).unwrap().contains("Third"));
        assert!(
            AuditLog::open(AuditSettings { path: inner, file_bytes: 1, files: 1 }, log.clock.clone())
                .is_err()
        );
    }
}
