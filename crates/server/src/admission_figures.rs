//! How busy the server is, for the page of metrics.

use std::sync::Arc;

use telemetry::{Kind, Observed, Page};
use transport::{Admission, Figures, Work};

/// Admission control, as a part of the server that has figures.
pub(crate) struct AdmissionFigures(pub(crate) Arc<Admission>);

impl Observed for AdmissionFigures {
    fn write(&self, page: &mut Page) {
        let all = Work::ALL.map(|work| (work.name(), self.0.figures(work)));
        let mut by_work = |name, kind, help, figure: fn(&Figures) -> u64| {
            let mut family = page.family(name, kind, help);
            for (work, figures) in &all {
                family.sample(&[("work", work)], figure(figures));
            }
        };
        by_work("bolide_load_working", Kind::Gauge, "Requests that are worked on, by kind of work.", |it| {
            it.working as u64
        });
        by_work("bolide_load_waiting", Kind::Gauge, "Requests that wait for their turn.", |it| {
            it.waiting as u64
        });
        by_work(
            "bolide_load_shed_total",
            Kind::Counter,
            "Requests that were refused, to be sent again, because their turn did not come.",
            |it| it.shed,
        );
        page.plain(
            "bolide_held_bytes",
            Kind::Gauge,
            "Bytes of requests and answers of authenticated clients that are held.",
            self.0.held_bytes(),
        );
        page.plain(
            "bolide_held_bytes_max",
            Kind::Gauge,
            "As many may be held before requests are refused (request-memory).",
            self.0.held_bytes_max(),
        );
        page.plain(
            "bolide_held_bytes_shed_total",
            Kind::Counter,
            "Requests that were refused, to be sent again, because too many bytes were held.",
            self.0.refused_for_bytes(),
        );
        let strangers = self.0.strangers();
        page.plain(
            "bolide_strangers_connections",
            Kind::Gauge,
            "Connections on which nothing was authenticated yet.",
            strangers.connections,
        );
        page.plain("bolide_strangers_bytes", Kind::Gauge, "Bytes that are held for them.", strangers.bytes);
        page.plain(
            "bolide_strangers_cut_off_total",
            Kind::Counter,
            "Such connections that were closed because they held too much or were too many.",
            strangers.cut_off,
        );
    }
}
