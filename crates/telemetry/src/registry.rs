//! All front ends in one place, and the part of the metrics page that is about them and about the process.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::audit::AuditSink;
use crate::front_end::{Figures, FrontEnd};
use crate::page::{Kind, Page};
use crate::slow::SlowLog;

/// Figures of this process, as its operating system tells them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Process {
    /// Memory in use.
    pub resident_bytes: u64,
    /// Memory in all.
    pub virtual_bytes: u64,
    /// Time of processors, of users and of the system.
    pub cpu_seconds: f64,
    /// Files and sockets that are open.
    pub open_files: u64,
    /// As many may be open.
    pub open_files_max: u64,
    /// When it began, in seconds since 1970.
    pub started_seconds: f64,
}

/// Somebody who has figures of their own and tells them when a page is written.
pub trait Observed: Send + Sync {
    /// Writes them.
    fn write(&self, page: &mut Page);
}

/// The registry.
pub struct Registry {
    front_ends: Mutex<Vec<Arc<FrontEnd>>>,
    /// They hold the registry, so it does not hold them.
    observed: Mutex<Vec<Weak<dyn Observed>>>,
    process: Option<fn() -> Process>,
    slow: SlowLog,
    audit: Option<Arc<dyn AuditSink>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Registry").field("slow", &self.slow).finish_non_exhaustive()
    }
}

impl Default for Registry {
    /// One that knows nothing of its process and logs nothing.
    fn default() -> Registry {
        Registry::new(None, SlowLog::off())
    }
}

impl Registry {
    /// An empty one.
    pub fn new(process: Option<fn() -> Process>, slow: SlowLog) -> Registry {
        Registry { front_ends: Mutex::default(), observed: Mutex::default(), process, slow, audit: None }
    }

    /// The same, with an audit log.
    #[must_use]
    pub fn with_audit(self, audit: Arc<dyn AuditSink>) -> Registry {
        Registry { audit: Some(audit), ..self }
    }

    /// The audit log, if there is one.
    pub fn audit(&self) -> Option<&dyn AuditSink> {
        self.audit.as_deref()
    }

    /// Takes in a front end with the names of its operations.
    pub fn register(
        &self,
        api: &'static str,
        operations: impl IntoIterator<Item = &'static str>,
    ) -> Arc<FrontEnd> {
        let front_end = Arc::new(FrontEnd::new(api, operations));
        self.front_ends.lock().push(Arc::clone(&front_end));
        front_end
    }

    /// Asks somebody for their figures whenever a page is written, for as long as they are there.
    pub fn observe(&self, observed: Weak<dyn Observed>) {
        self.observed.lock().push(observed);
    }

    /// The log of slow operations.
    pub fn slow(&self) -> &SlowLog {
        &self.slow
    }

    /// Writes everything that is known here.
    pub fn write(&self, page: &mut Page) {
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        page.family("bolide_build_info", Kind::Gauge, "1, with the version of this server.")
            .sample(&version, 1);
        let front_ends = self.front_ends.lock().clone();
        requests(page, &front_ends);
        connections(page, &front_ends);
        if let Some(process) = self.process {
            write_process(page, &process());
        }
        let observed: Vec<_> = self.observed.lock().iter().filter_map(Weak::upgrade).collect();
        for observed in observed {
            observed.write(page);
        }
    }
}

fn requests(page: &mut Page, front_ends: &[Arc<FrontEnd>]) {
    let all = || {
        front_ends
            .iter()
            .flat_map(|front_end| front_end.used().map(move |figures| (front_end.api(), figures)))
    };
    let labels = |api, figures: &Figures| [("api", api), ("operation", figures.name)];
    let help = "Requests that were answered, by operation and by what they came to.";
    let mut family = page.family("bolide_requests_total", Kind::Counter, help);
    for (api, figures) in all() {
        for (outcome, count) in figures.outcomes() {
            let [api, operation] = labels(api, figures);
            family.sample(&[api, operation, ("outcome", outcome.name())], count);
        }
    }
    let help = "How long the server took for them, without waiting for the client.";
    let mut family = page.family("bolide_request_duration_seconds", Kind::Histogram, help);
    for (api, figures) in all() {
        family.histogram(&labels(api, figures), &figures.durations());
    }
    let mut family =
        page.family("bolide_request_units_total", Kind::Counter, "Request units that they cost.");
    for (api, figures) in all() {
        let hundredths = figures.charge_hundredths();
        family.sample(&labels(api, figures), format_args!("{}.{:02}", hundredths / 100, hundredths % 100));
    }
    by_api(
        page,
        front_ends,
        &[("bolide_slow_operations_total", Kind::Counter, "Operations slower than slow-ms.", FrontEnd::slow)],
    );
}

fn connections(page: &mut Page, front_ends: &[Arc<FrontEnd>]) {
    by_api(
        page,
        front_ends,
        &[
            (
                "bolide_connections_open",
                Kind::Gauge,
                "Connections that are open.",
                FrontEnd::connections_open,
            ),
            (
                "bolide_connections_total",
                Kind::Counter,
                "Connections that were accepted.",
                FrontEnd::connections_opened,
            ),
            (
                "bolide_connections_refused_total",
                Kind::Counter,
                "Connections that were closed at once because there were too many.",
                FrontEnd::connections_refused,
            ),
            (
                "bolide_received_bytes_total",
                Kind::Counter,
                "Bytes that came from clients.",
                FrontEnd::received_bytes,
            ),
            ("bolide_sent_bytes_total", Kind::Counter, "Bytes that went to clients.", FrontEnd::sent_bytes),
        ],
    );
}

type Row = (&'static str, Kind, &'static str, fn(&FrontEnd) -> u64);

fn by_api(page: &mut Page, front_ends: &[Arc<FrontEnd>], rows: &[Row]) {
    for (name, kind, help, figure) in rows {
        let mut family = page.family(name, *kind, help);
        for front_end in front_ends {
            family.sample(&[("api", front_end.api())], figure(front_end));
        }
    }
}

/// Under the names that every exporter of process figures gives them, so that common dashboards show them.
fn write_process(page: &mut Page, process: &Process) {
    let Process { resident_bytes, virtual_bytes, cpu_seconds, open_files, open_files_max, started_seconds } =
        process;
    page.plain("process_resident_memory_bytes", Kind::Gauge, "Memory in use.", resident_bytes);
    page.plain("process_virtual_memory_bytes", Kind::Gauge, "Memory in all.", virtual_bytes);
    page.plain(
        "process_cpu_seconds_total",
        Kind::Counter,
        "Time of processors, of users and of the system.",
        cpu_seconds,
    );
    page.plain("process_open_fds", Kind::Gauge, "Files and sockets that are open.", open_files);
    page.plain("process_max_fds", Kind::Gauge, "As many may be open.", open_files_max);
    page.plain(
        "process_start_time_seconds",
        Kind::Gauge,
        "When the process began, since 1970.",
        started_seconds,
    );
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::front_end::{Ending, OperationId};
    use crate::outcome::Outcome;
    use crate::parse;

    #[test]
    fn a_page_says_what_was_recorded_and_is_well_formed() {
        let registry = Registry::new(Some(Process::default), SlowLog::off());
        let (one, two) = (registry.register("one", ["Read", "Write"]), registry.register("two", ["find"]));
        let ending = |outcome, millis, charge_hundredths| Ending {
            outcome,
            duration: Duration::from_millis(millis),
            charge_hundredths,
        };
        one.record(OperationId(0), &ending(Outcome::Ok, 3, 105));
        one.record(OperationId(0), &ending(Outcome::NotFound, 30_000, 100));
        two.record(OperationId::UNKNOWN, &ending(Outcome::Invalid, 0, 0));
        let _open = two.connected();
        one.refused_connection();
        let mut page = Page::default();
        registry.write(&mut page);
        let text = page.finish();
        let families = parse(&text).unwrap();
        for line in [
            r#"bolide_requests_total{api="one",operation="Read",outcome="ok"} 1"#,
            r#"bolide_requests_total{api="one",operation="Read",outcome="not_found"} 1"#,
            r#"bolide_requests_total{api="two",operation="unknown",outcome="invalid"} 1"#,
            r#"bolide_request_duration_seconds_bucket{api="one",operation="Read",le="0.0025"} 0"#,
            r#"bolide_request_duration_seconds_bucket{api="one",operation="Read",le="0.005"} 1"#,
            r#"bolide_request_duration_seconds_bucket{api="one",operation="Read",le="10"} 1"#,
            r#"bolide_request_duration_seconds_bucket{api="one",operation="Read",le="+Inf"} 2"#,
            r#"bolide_request_duration_seconds_sum{api="one",operation="Read"} 30.003000000"#,
            r#"bolide_request_units_total{api="one",operation="Read"} 2.05"#,
            r#"bolide_connections_open{api="two"} 1"#,
            r#"bolide_connections_refused_total{api="one"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in {text}");
        }
        assert!(!text.contains("Write"), "what was never asked for is not told");
        assert!(families.iter().any(|family| family.name == "process_open_fds"));
    }
}
