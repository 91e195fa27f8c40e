//! Records a request while it runs: for metrics, and for the log of slow operations.
//!
//! A request whose client disconnects is dropped in the middle; that is recorded as well, also in the audit log,
//! because work it has begun on another thread continues. A log line is built only for a slow request.

use std::sync::Arc;
use std::time::Duration;

use engine::{Charge, IndexUse};
use hyper::StatusCode;
use telemetry::{FrontEnd, OperationId, Outcome, Registry, RequestSummary, SlowOperation, Texts};
use tokio::time::Instant;

use crate::auth::{Pass, Refusal};
use crate::handlers::call::Call;
use crate::handlers::query_request;
use crate::handlers::route::Route;
use crate::message::connections::API;
use crate::message::reply::Reply;
use crate::message::request::{Head, Verb};
use crate::message::work::Work;
use crate::protocol::error::Error;
use crate::service::audit::{self, Audited};
use crate::service::routes;

/// The metrics of this front end, and the registry of all.
pub(crate) struct Traffic {
    pub(crate) registry: Arc<Registry>,
    pub(crate) front_end: Arc<FrontEnd>,
}

impl Traffic {
    pub(crate) fn new(registry: Arc<Registry>) -> Traffic {
        let front_end = registry.register(API, routes::names());
        Traffic { registry, front_end }
    }
}

/// A request in progress.
pub(crate) struct Record {
    traffic: Arc<Traffic>,
    pub(crate) operation: OperationId,
    started: Instant,
    charge: Charge,
    work: Option<Box<Work>>,
    call: Option<Call>,
    audited: Option<Audited>,
    ended: bool,
}

impl Record {
    pub(crate) fn new(traffic: &Arc<Traffic>) -> Record {
        Record {
            traffic: Arc::clone(traffic),
            operation: OperationId::UNKNOWN,
            started: Instant::now(),
            charge: Charge::MINIMUM,
            work: None,
            call: None,
            audited: None,
            ended: false,
        }
    }

    /// Records the route and the sender of an admitted request.
    pub(crate) fn admitted(&mut self, route: &'static Route, pass: &Pass, head: &Head) {
        self.operation = route.operation();
        self.audited = Audited::begin(&self.traffic.registry, route, pass, head);
    }

    /// Records a request that is refused for its credentials or rights. The route of an admin request is not known yet:
    /// its key is checked first.
    pub(crate) fn refused(&mut self, head: &Head, refusal: &Refusal) {
        let route = head.verb().and_then(|verb| routes::find_admin(verb, &head.path));
        let operation = route.map_or_else(|_| self.traffic.front_end.name(self.operation), Route::name);
        audit::refused(&self.traffic.registry, operation, head, refusal);
        // One request has one line.
        self.audited = None;
    }

    /// Restarts the duration when the body has arrived: the client's time for it does not count.
    pub(crate) fn restart(&mut self) {
        self.started = Instant::now();
    }

    /// Records the handler's result.
    pub(crate) fn note(&mut self, result: &mut Result<Reply, Error>) {
        match result {
            Ok(reply) => {
                self.charge = reply.charge();
                self.work = reply.take_work();
            }
            Err(error) => self.charge = error.charge(),
        }
    }

    /// Keeps the request, in case it was slow.
    pub(crate) fn keep(&mut self, call: Call) {
        self.call = Some(call);
    }

    /// Counts the answer, and logs it if it was slow. Returns the duration.
    pub(crate) fn end(mut self, status: StatusCode, activity: &str) -> Duration {
        self.ended = true;
        let status = status.as_u16();
        if let Some(audited) = self.audited.take() {
            audited.end(self.call.as_ref().map_or(&[], |call| &call.body), Some(status));
        }
        let now = Instant::now();
        let duration = now.duration_since(self.started);
        let summary = self.summary(Outcome::of_status(status), duration);
        let Traffic { registry, front_end } = &*self.traffic;
        front_end.record(self.operation, &summary);
        registry.slow().record(front_end, self.operation, &summary, now.into_std(), |texts| SlowOperation {
            status: Some(status.into()),
            activity: Some(activity.to_owned()),
            ..self.describe(texts)
        });
        duration
    }

    fn summary(&self, outcome: Outcome, duration: Duration) -> RequestSummary {
        let charge_hundredths = if routes::is_charged(self.operation) { self.charge.0 } else { 0 };
        RequestSummary { outcome, duration, charge_hundredths }
    }

    fn describe(&self, texts: Texts) -> SlowOperation {
        let metrics = self.work.as_ref().map(|work| work.metrics);
        let place = |kind: &str, at: usize| {
            let path = &self.call.as_ref()?.head.path;
            (path.at(at) == kind && !path.at(at + 1).is_empty()).then(|| path.at(at + 1).to_owned())
        };
        SlowOperation {
            database: place("dbs", 0),
            container: place("colls", 2),
            items_examined: metrics.map(|metrics| metrics.loaded_items),
            index_entries_examined: metrics.map(|metrics| metrics.index_entries),
            items_returned: metrics.map(|metrics| metrics.output_items),
            plan: self.work.as_ref().map(|work| plan(&work.index)),
            query: self.call.as_ref().and_then(|call| query(call, texts)),
            ..SlowOperation::default()
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(audited) = self.audited.take() {
            audited.end(&[], None);
        }
        if !self.ended {
            let summary = self.summary(Outcome::Abandoned, self.started.elapsed());
            self.traffic.front_end.record(self.operation, &summary);
        }
    }
}

/// Describes the indexes used, and those that would have helped.
fn plan(index: &IndexUse) -> String {
    let list = |single: &[String], composite: &[Vec<String>]| {
        let composite = composite.iter().map(|paths| format!("({})", paths.join(", ")));
        single.iter().cloned().chain(composite).collect::<Vec<_>>().join(", ")
    };
    let used = list(&index.utilized_single, &index.utilized_composite);
    let potential = list(&index.potential_single, &index.potential_composite);
    let mut text = if used.is_empty() { "no index".to_owned() } else { format!("index {used}") };
    if !potential.is_empty() {
        text.push_str("; would help: ");
        text.push_str(&potential);
    }
    text
}

/// Returns the text of a query; with values only if configured.
fn query(call: &Call, texts: Texts) -> Option<String> {
    if !matches!(call.head.verb(), Ok(Some(Verb::Query | Verb::Plan))) {
        return None;
    }
    let question = query_request::read(call).ok()?;
    match texts {
        Texts::Shapes => Some(query::shape(&question.text)),
        Texts::Whole => {
            let given =
                question.parameters.iter().map(|(name, value)| format!(" {name}={}", value.to_json()));
            Some(question.text.clone() + &given.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use account::{EMULATOR_KEY, Key, Keyring};
    use bytes::Bytes;
    use engine::Engine;
    use http_body_util::Full;
    use hyper::Request;
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};
    use telemetry::{AuditOutcome, MemoryAuditSink};

    use super::*;
    use crate::{Limits, Service};

    /// A service with that key, its keys, and its audit log.
    fn service(key: &str) -> (Service, Keyring, Arc<MemoryAuditSink>) {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).unwrap());
        let engine = Arc::new(Engine::open(store).unwrap());
        let keys = Keyring::of(Key::parse(key).unwrap());
        let log = Arc::<MemoryAuditSink>::default();
        let registry = Arc::new(Registry::default().with_audit(Arc::clone(&log) as _));
        let service =
            Service::new(engine, keys.clone(), Arc::new(|| 1_700_000_000), Limits::default(), registry);
        (service, keys, log)
    }

    #[tokio::test]
    async fn a_request_under_a_foreign_host_name_is_in_the_audit_log() {
        let (service, _, log) = service(EMULATOR_KEY);
        for (path, action) in [("/dbs", "ListDatabases"), ("/_bolide/status", "AdminReadStatus")] {
            let request = Request::get(path).header("host", "evil.example").body(Full::new(Bytes::new()));
            let answer = service.respond(request.unwrap()).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path}");
            let event = log.events().pop().unwrap();
            assert_eq!((event.action.as_str(), event.target.as_deref()), (action, Some(path)));
            assert_eq!((event.who, event.outcome, event.status), (None, AuditOutcome::Denied, Some(403)));
        }
        assert_eq!(log.events().len(), 2);
    }

    #[test]
    fn a_change_whose_client_has_left_is_in_the_audit_log() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().max_blocking_threads(1).build();
        let (service, keys, log) = service("c2VjcmV0");
        let request = Request::post("/_bolide/keys")
            .header("authorization", "Bearer c2VjcmV0")
            .body(Full::new(Bytes::from_static(br#"{"regenerate":"secondary"}"#)))
            .unwrap();
        runtime.unwrap().block_on(async {
            // The only thread for blocking work is occupied, so the change waits for it.
            let (release, taken) = std::sync::mpsc::channel::<()>();
            tokio::task::spawn_blocking(move || taken.recv());
            {
                let mut answer = pin!(service.respond(request));
                assert!(poll_fn(|context| Poll::Ready(answer.as_mut().poll(context).is_pending())).await);
            }
            drop(release);
            tokio::task::spawn_blocking(|| ()).await.unwrap();
        });
        assert_eq!(keys.entries().len(), 2, "the change goes on without its client");
        let events = log.events();
        let [event] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((event.action.as_str(), event.outcome), ("AdminRegenerateKey", AuditOutcome::Abandoned));
        assert_eq!((event.who.is_some(), event.status), (true, None));
    }

    #[test]
    fn a_plan_names_what_was_used_and_what_would_help() {
        assert_eq!(plan(&IndexUse::default()), "no index");
        let index = IndexUse {
            utilized_single: vec!["/a/?".to_owned()],
            utilized_composite: vec![vec!["/a ASC".to_owned(), "/b DESC".to_owned()]],
            potential_single: vec!["/c/?".to_owned()],
            ..IndexUse::default()
        };
        assert_eq!(plan(&index), "index /a/?, (/a ASC, /b DESC); would help: /c/?");
    }
}
