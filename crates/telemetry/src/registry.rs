//! The registry of all front ends, and the part of the metrics page about them and the process.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::audit::AuditSink;
use crate::front_end::{FrontEnd, OperationMetrics};
use crate::page::{Kind, Page};
use crate::slow::SlowLog;

/// Metrics of this process, as reported by the operating system.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Process {
    /// Resident memory.
    pub resident_bytes: u64,
    /// Virtual memory.
    pub virtual_bytes: u64,
    /// Processor time, of user and system.
    pub cpu_seconds: f64,
    /// Open files and sockets.
    pub open_files: u64,
    /// The limit of open files.
    pub open_files_max: u64,
    /// The start time, in seconds since 1970.
    pub started_seconds: f64,
}

/// A component with metrics of its own, which are collected when a page is written.
pub trait MetricsSource: Send + Sync {
    /// Writes its metrics.
    fn write(&self, page: &mut Page);
}

/// The registry.
pub struct Registry {
    front_ends: Mutex<Vec<Arc<FrontEnd>>>,
    /// Weak references: the components hold the registry.
    sources: Mutex<Vec<Weak<dyn MetricsSource>>>,
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
    /// Returns a registry without process metrics and without a log.
    fn default() -> Registry {
        Registry::new(None, SlowLog::off())
    }
}

impl Registry {
    /// Creates an empty registry.
    pub fn new(process: Option<fn() -> Process>, slow: SlowLog) -> Registry {
        Registry { front_ends: Mutex::default(), sources: Mutex::default(), process, slow, audit: None }
    }

    /// Adds an audit log.
    #[must_use]
    pub fn with_audit(self, audit: Arc<dyn AuditSink>) -> Registry {
        Registry { audit: Some(audit), ..self }
    }

    /// Returns the audit log, if there is one.
    pub fn audit(&self) -> Option<&dyn AuditSink> {
        self.audit.as_deref()
    }

    /// Registers a front end with the names of its operations.
    pub fn register(
        &self,
        api: &'static str,
        operations: impl IntoIterator<Item = &'static str>,
    ) -> Arc<FrontEnd> {
        let front_end = Arc::new(FrontEnd::new(api, operations));
        self.front_ends.lock().push(Arc::clone(&front_end));
        front_end
    }

    /// Returns the number of open connections of a front end; 0 if there is none of that name.
    pub fn connections_open(&self, api: &str) -> u64 {
        let front_ends = self.front_ends.lock();
        front_ends.iter().filter(|it| it.api() == api).map(|it| it.connections_open()).sum()
    }

    /// Adds a source of metrics, used for every page as long as it exists.
    pub fn add_source(&self, source: Weak<dyn MetricsSource>) {
        self.sources.lock().push(source);
    }

    /// Returns the log of slow operations.
    pub fn slow(&self) -> &SlowLog {
        &self.slow
    }

    /// Writes all metrics.
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
        let sources: Vec<_> = self.sources.lock().iter().filter_map(Weak::upgrade).collect();
        for source in sources {
            source.write(page);
        }
    }
}

fn requests(page: &mut Page, front_ends: &[Arc<FrontEnd>]) {
    let all = || {
        front_ends.iter().flat_map(|front_end| {
            front_end.used().map(move |operation_metrics| (front_end.api(), operation_metrics))
        })
    };
    let labels =
        |api, operation_metrics: &OperationMetrics| [("api", api), ("operation", operation_metrics.name)];
    let help = "Answered requests, by operation and outcome.";
    let mut family = page.family("bolide_requests_total", Kind::Counter, help);
    for (api, operation_metrics) in all() {
        for (outcome, count) in operation_metrics.outcomes() {
            let [api, operation] = labels(api, operation_metrics);
            family.sample(&[api, operation, ("outcome", outcome.name())], count);
        }
    }
    let help = "Duration of requests, without waiting for the client.";
    let mut family = page.family("bolide_request_duration_seconds", Kind::Histogram, help);
    for (api, operation_metrics) in all() {
        family.histogram(&labels(api, operation_metrics), &operation_metrics.durations());
    }
    let mut family = page.family("bolide_request_units_total", Kind::Counter, "Request units charged.");
    for (api, operation_metrics) in all() {
        let hundredths = operation_metrics.charge_hundredths();
        family.sample(
            &labels(api, operation_metrics),
            format_args!("{}.{:02}", hundredths / 100, hundredths % 100),
        );
    }
    by_api(
        page,
        front_ends,
        &[(
            "bolide_slow_operations_total",
            Kind::Counter,
            "Operations that took slow-ms or longer.",
            FrontEnd::slow,
        )],
    );
}

fn connections(page: &mut Page, front_ends: &[Arc<FrontEnd>]) {
    by_api(
        page,
        front_ends,
        &[
            ("bolide_connections_open", Kind::Gauge, "Open connections.", FrontEnd::connections_open),
            (
                "bolide_connections_total",
                Kind::Counter,
                "Accepted connections.",
                FrontEnd::connections_opened,
            ),
            (
                "bolide_connections_refused_total",
                Kind::Counter,
                "Connections refused because there were too many.",
                FrontEnd::connections_refused,
            ),
            (
                "bolide_received_bytes_total",
                Kind::Counter,
                "Bytes received from clients.",
                FrontEnd::received_bytes,
            ),
            ("bolide_sent_bytes_total", Kind::Counter, "Bytes sent to clients.", FrontEnd::sent_bytes),
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

/// Writes the process metrics under their usual names, so that common dashboards show them.
fn write_process(page: &mut Page, process: &Process) {
    let Process { resident_bytes, virtual_bytes, cpu_seconds, open_files, open_files_max, started_seconds } =
        process;
    page.plain("process_resident_memory_bytes", Kind::Gauge, "Resident memory.", resident_bytes);
    page.plain("process_virtual_memory_bytes", Kind::Gauge, "Virtual memory.", virtual_bytes);
    page.plain("process_cpu_seconds_total", Kind::Counter, "Processor time, user and system.", cpu_seconds);
    page.plain("process_open_fds", Kind::Gauge, "Open files and sockets.", open_files);
    page.plain("process_max_fds", Kind::Gauge, "Limit of open files and sockets.", open_files_max);
    page.plain(
        "process_start_time_seconds",
        Kind::Gauge,
        "Start time of the process, since 1970.",
        started_seconds,
    );
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::front_end::{OperationId, RequestSummary};
    use crate::outcome::Outcome;
    use crate::parse;

    #[test]
    fn a_page_says_what_was_recorded_and_is_well_formed() {
        let registry = Registry::new(Some(Process::default), SlowLog::off());
        let (one, two) = (registry.register("one", ["Read", "Write"]), registry.register("two", ["find"]));
        let summary = |outcome, millis, charge_hundredths| RequestSummary {
            outcome,
            duration: Duration::from_millis(millis),
            charge_hundredths,
        };
        one.record(OperationId(0), &summary(Outcome::Ok, 3, 105));
        one.record(OperationId(0), &summary(Outcome::NotFound, 30_000, 100));
        two.record(OperationId::UNKNOWN, &summary(Outcome::Invalid, 0, 0));
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
