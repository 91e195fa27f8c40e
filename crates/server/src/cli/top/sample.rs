//! One sample of a server: its metrics and its status at about the same time.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use hyper::Method;
use telemetry::{ParsedFamily, parse};
use tokio::time::Instant;

use crate::cli::status::Status;
use crate::client::{Client, Payload};

/// A sample.
pub(super) struct Sample {
    pub(super) taken: Instant,
    pub(super) status: Status,
    pub(super) metrics: Metrics,
}

impl Sample {
    pub(super) fn take(client: &mut Client) -> Result<Sample> {
        let page = client.call(&Method::GET, "/metrics", Payload::Nothing)?;
        let taken = Instant::now();
        let metrics = Metrics::read(&String::from_utf8_lossy(&page.body))?;
        Ok(Sample { taken, status: Status::read(client)?, metrics })
    }
}

/// An operation of an API.
pub(super) type Operation = (String, String);

/// The metrics of one operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) requests: f64,
    /// Requests that failed, of those.
    pub(super) failed: f64,
    pub(super) units: f64,
    /// The number of requests that took at most this many seconds, by bound, in ascending order.
    pub(super) durations: Vec<(f64, f64)>,
}

impl Figures {
    /// Returns the increase since an earlier sample.
    pub(super) fn since(&self, before: Option<&Figures>) -> Figures {
        let Some(before) = before else { return self.clone() };
        // The counters of a restarted server begin at zero.
        if before.requests > self.requests {
            return self.clone();
        }
        let earlier: BTreeMap<u64, f64> =
            before.durations.iter().map(|(bound, count)| (bound.to_bits(), *count)).collect();
        let newer = |(bound, count): &(f64, f64)| {
            (*bound, count - earlier.get(&bound.to_bits()).copied().unwrap_or_default())
        };
        Figures {
            requests: self.requests - before.requests,
            failed: self.failed - before.failed,
            units: self.units - before.units,
            durations: self.durations.iter().map(newer).collect(),
        }
    }

    /// Adds the metrics of another operation.
    pub(super) fn plus(mut self, other: &Figures) -> Figures {
        if self.durations.is_empty() {
            self.durations.clone_from(&other.durations);
        } else {
            for ((_, count), (_, more)) in self.durations.iter_mut().zip(&other.durations) {
                *count += more;
            }
        }
        self.requests += other.requests;
        self.failed += other.failed;
        self.units += other.units;
        self
    }

    /// Returns the bound within which a share of the requests was answered, in seconds; `None` if there was no request.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let all = self.durations.last().map(|(_, count)| *count).filter(|all| *all > 0.0)?;
        self.durations.iter().find(|(_, count)| *count >= all * share).map(|(bound, _)| *bound)
    }
}

/// The metrics used here.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) operations: BTreeMap<Operation, Figures>,
    /// All metrics without labels other than the API, summed over it.
    sums: BTreeMap<String, f64>,
}

impl Metrics {
    fn read(page: &str) -> Result<Metrics> {
        let families = parse(page).map_err(|wrong| anyhow!("the metrics cannot be read: {wrong}"))?;
        let mut metrics = Metrics::default();
        for family in &families {
            metrics.add(family);
        }
        Ok(metrics)
    }

    fn add(&mut self, family: &ParsedFamily) {
        for sample in &family.samples {
            let label = |name| sample.label(name).map(str::to_owned);
            let (Some(api), Some(operation)) = (label("api"), label("operation")) else {
                if sample.labels.iter().all(|(name, _)| name == "api") {
                    *self.sums.entry(sample.name.clone()).or_default() += sample.value;
                }
                continue;
            };
            let figures = self.operations.entry((api, operation)).or_default();
            match sample.name.as_str() {
                "bolide_requests_total" => {
                    figures.requests += sample.value;
                    if sample.label("outcome") != Some("ok") {
                        figures.failed += sample.value;
                    }
                }
                "bolide_request_units_total" => figures.units += sample.value,
                "bolide_request_duration_seconds_bucket" => {
                    let bound =
                        sample.label("le").and_then(|bound| bound.replace("+Inf", "inf").parse().ok());
                    figures.durations.extend(bound.map(|bound| (bound, sample.value)));
                }
                _ => {}
            }
        }
    }

    /// Returns a metric without labels; 0 if there is none.
    pub(super) fn figure(&self, name: &str) -> f64 {
        self.sums.get(name).copied().unwrap_or_default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::cli::top) const PAGE: &str = r#"# HELP bolide_requests_total x
# TYPE bolide_requests_total counter
bolide_requests_total{api="nosql",operation="Read",outcome="ok"} 90
bolide_requests_total{api="nosql",operation="Read",outcome="client_error"} 10
# HELP bolide_request_duration_seconds x
# TYPE bolide_request_duration_seconds histogram
bolide_request_duration_seconds_bucket{api="nosql",operation="Read",le="0.001"} 50
bolide_request_duration_seconds_bucket{api="nosql",operation="Read",le="0.01"} 99
bolide_request_duration_seconds_bucket{api="nosql",operation="Read",le="+Inf"} 100
bolide_request_duration_seconds_sum{api="nosql",operation="Read"} 1
bolide_request_duration_seconds_count{api="nosql",operation="Read"} 100
# HELP bolide_connections_open x
# TYPE bolide_connections_open gauge
bolide_connections_open{api="nosql"} 3
bolide_connections_open{api="mongodb"} 4
"#;

    #[test]
    fn metrics_become_figures_of_operations_and_sums() {
        let metrics = Metrics::read(PAGE).unwrap();
        let read = &metrics.operations[&("nosql".to_owned(), "Read".to_owned())];
        assert_eq!((read.requests, read.failed), (100.0, 10.0));
        assert_eq!(
            [0.5, 0.9, 0.99, 1.0].map(|share| read.quantile(share)),
            [0.001, 0.01, 0.01, f64::INFINITY].map(Some)
        );
        assert_eq!((metrics.figure("bolide_connections_open"), metrics.figure("nothing")), (7.0, 0.0));
        assert!(Metrics::read("nonsense").is_err());
    }

    #[test]
    fn only_what_came_between_two_looks_counts() {
        let earlier = Figures {
            requests: 10.0,
            failed: 1.0,
            units: 5.0,
            durations: vec![(0.1, 9.0), (f64::INFINITY, 10.0)],
        };
        let later = Figures {
            requests: 12.0,
            failed: 1.0,
            units: 7.5,
            durations: vec![(0.1, 11.0), (f64::INFINITY, 12.0)],
        };
        let new = later.since(Some(&earlier));
        assert_eq!((new.requests, new.failed, new.units), (2.0, 0.0, 2.5));
        assert_eq!(new.quantile(1.0), Some(0.1));
        assert_eq!(earlier.since(Some(&later)), earlier, "the server was restarted");
        assert_eq!(earlier.since(None), earlier);
        let twice = Figures::default().plus(&new).plus(&new);
        assert_eq!(
            (twice.requests, twice.units, twice.durations),
            (4.0, 5.0, vec![(0.1, 4.0), (f64::INFINITY, 4.0)])
        );
        assert_eq!(Figures::default().quantile(0.5), None);
    }
}
