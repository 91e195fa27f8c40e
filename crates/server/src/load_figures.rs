//! How busy the server is, for the page of metrics.

use std::sync::Arc;

use telemetry::{Kind, Observed, Page};
use transport::{Figures, Load, Work};

/// The load, as somebody who has figures of their own.
pub(crate) struct LoadFigures(pub(crate) Arc<Load>);

impl Observed for LoadFigures {
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
            "Bytes of requests and answers that are held.",
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
    }
}
