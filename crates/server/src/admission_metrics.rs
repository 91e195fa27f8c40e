//! Metrics of admission control.

use std::sync::Arc;

use telemetry::{Kind, MetricsSource, Page};
use transport::{Admission, UnauthenticatedStats, Work, WorkStats};

/// A source of metrics for admission control.
pub(crate) struct AdmissionMetrics(pub(crate) Arc<Admission>);

impl MetricsSource for AdmissionMetrics {
    fn write(&self, page: &mut Page) {
        let all = Work::ALL.map(|work| (work.name(), self.0.stats(work)));
        let mut by_work = |name, kind, help, figure: fn(&WorkStats) -> u64| {
            let mut family = page.family(name, kind, help);
            for (work, figures) in &all {
                family.sample(&[("work", work)], figure(figures));
            }
        };
        by_work("bolide_load_working", Kind::Gauge, "Running requests, by kind of work.", |it| {
            it.working as u64
        });
        by_work("bolide_load_waiting", Kind::Gauge, "Requests waiting for a permit.", |it| it.waiting as u64);
        by_work(
            "bolide_load_shed_total",
            Kind::Counter,
            "Requests refused because they got no permit in time; clients may retry them.",
            |it| it.shed,
        );
        page.plain(
            "bolide_held_bytes",
            Kind::Gauge,
            "Bytes held of requests and answers of authenticated clients.",
            self.0.held_bytes(),
        );
        page.plain(
            "bolide_held_bytes_max",
            Kind::Gauge,
            "Bytes that may be held before requests are refused (request-memory).",
            self.0.held_bytes_max(),
        );
        page.plain(
            "bolide_held_bytes_shed_total",
            Kind::Counter,
            "Requests refused because too many bytes were held; clients may retry them.",
            self.0.refused_for_bytes(),
        );
        write_unauthenticated(page, &self.0.unauthenticated());
    }
}

/// Writes the metrics of unauthenticated connections, for one version also under their former names.
fn write_unauthenticated(page: &mut Page, stats: &UnauthenticatedStats) {
    let metrics = [
        (
            ["bolide_unauthenticated_connections", "bolide_strangers_connections"],
            Kind::Gauge,
            "Unauthenticated connections.",
            stats.connections as u64,
        ),
        (
            ["bolide_unauthenticated_bytes", "bolide_strangers_bytes"],
            Kind::Gauge,
            "Bytes held for unauthenticated connections.",
            stats.bytes as u64,
        ),
        (
            ["bolide_unauthenticated_cut_off_total", "bolide_strangers_cut_off_total"],
            Kind::Counter,
            "Unauthenticated connections closed because they held too much or were too many.",
            stats.cut_off,
        ),
    ];
    for ([name, former], kind, help, value) in metrics {
        page.plain(name, kind, help, value);
        page.plain(former, kind, &format!("Former name of {name}."), value);
    }
}
