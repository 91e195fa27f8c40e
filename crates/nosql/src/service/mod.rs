//! The lifecycle of a request: route, authenticate, read the body, run the handler, finish the answer.
//!
//! The body is read only for a request that has a route and a valid signature, so unauthenticated clients cannot make
//! the server buffer anything. A panic in a handler fails only its own request, with 500.

pub(crate) mod audit;
pub(crate) mod direct_mode;
pub(crate) mod listener;
pub(crate) mod metrics;
pub(crate) mod over_direct;
pub(crate) mod over_http;
pub(crate) mod pages;
pub(crate) mod readiness;
pub(crate) mod record;
pub(crate) mod routes;
mod trust;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use account::Keyring;
use bytes::Bytes;
use engine::Engine;
use hyper::{Method, StatusCode};
use telemetry::{FrontEnd, Registry};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use transport::{Admission, Busy, CatchPanic, Permit, ServerConfig, Tenant, Threads, Work};

use self::direct_mode::{DirectMode, DirectSettings};
use self::metrics::Reader;
use self::pages::Pages;
use crate::admin;
use crate::auth::{Authenticator, Pass, Refusal, WallSeconds, names, tenant};
use crate::handlers::admin_hooks::AdminHooks;
use crate::handlers::call::{Call, RequestContext, place};
use crate::handlers::route::Route;
use crate::http::host_check::AllowedHosts;
use crate::message::connections::Connections;
use crate::message::payer::Payer;
use crate::message::reply::{Reply, finish};
use crate::message::request::{Head, Verb};
use crate::protocol::consistency::AccountSettings;
use crate::protocol::error::Error;
use crate::protocol::limits::{BATCH_FRAMING_BYTES, COUNTED_BYTES, Limits, METRICS_PAGES, METRICS_WAITING};
use crate::service::record::{Record, Traffic};

/// The retry delay for a refused unauthenticated client.
pub(crate) const UNAUTHENTICATED_RETRY_MS: u64 = 1000;

/// An authenticated and authorized request, before its body.
pub(crate) struct Admitted {
    pub(crate) route: &'static Route,
    pub(crate) pass: Pass,
    pub(crate) head: Head,
}

/// The front end over one engine.
pub struct Service {
    authenticator: Authenticator,
    limits: Limits,
    traffic: Arc<Traffic>,
    admission: Arc<Admission>,
    names: AllowedHosts,
    /// Permits to make a page of metrics, which needs no key,
    figures: Semaphore,
    /// and to wait for one.
    figures_waiting: Semaphore,
    tls: Option<Tls>,
    hooks: Arc<AdminHooks>,
    pages: Option<Arc<dyn Pages>>,
    direct: DirectMode,
    connections: Arc<Connections>,
    threads: Arc<Threads>,
    account: Arc<AccountSettings>,
}

/// The TLS configuration.
pub struct Tls {
    /// The certificate and how to use it.
    pub config: Arc<ServerConfig>,
    /// The certificate that clients should trust, PEM. It is public: `/_explorer/emulator.pem`.
    pub root: Bytes,
}

impl Service {
    /// Creates a front end that authenticates by `keys` and checks signatures' dates by `wall_seconds`. Its metrics are
    /// kept in `registry`, and its metrics page shows all of those.
    pub fn new(
        engine: Arc<Engine>,
        keys: Keyring,
        wall_seconds: WallSeconds,
        limits: Limits,
        registry: Arc<Registry>,
    ) -> Self {
        let is_public = keys.entries().iter().any(|entry| entry.key.is_public());
        let names = if is_public { AllowedHosts::Private(Vec::new()) } else { AllowedHosts::Any };
        let authenticator = Authenticator::new(engine, keys, wall_seconds);
        let connections = Arc::new(Connections::new(&registry));
        Self {
            authenticator,
            limits,
            traffic: Arc::new(Traffic::new(registry)),
            admission: Arc::default(),
            names,
            figures: Semaphore::new(METRICS_PAGES),
            figures_waiting: Semaphore::new(METRICS_WAITING),
            tls: None,
            hooks: Arc::default(),
            pages: None,
            direct: DirectMode::new(DirectSettings::default()),
            connections,
            threads: Arc::default(),
            account: Arc::default(),
        }
    }

    /// Sets the admission control, which other front ends may share.
    #[must_use]
    pub fn with_admission(self, admission: Arc<Admission>) -> Self {
        Self { admission, ..self }
    }

    /// Sets the hooks of the admin API.
    #[must_use]
    pub fn with_admin_hooks(self, hooks: AdminHooks) -> Self {
        Self { hooks: Arc::new(hooks), ..self }
    }

    /// Allows these host names, too. They matter while the key is public.
    #[must_use]
    pub fn with_host_names(mut self, more: Vec<String>) -> Self {
        if let AllowedHosts::Private(names) = &mut self.names {
            *names = more;
        }
        self
    }

    /// Adds TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the settings of direct mode. It is on by default.
    #[must_use]
    pub fn with_direct(self, settings: DirectSettings) -> Self {
        Self { direct: DirectMode::new(settings), ..self }
    }

    /// Sets what the account document says of this server. Clients take its address from there, so its host is allowed.
    #[must_use]
    pub fn with_account(mut self, account: AccountSettings) -> Self {
        let address = account.public_address.as_deref().and_then(|address| address.rsplit_once(':'));
        if let (AllowedHosts::Private(names), Some((host, _))) = (&mut self.names, address) {
            names.push(host.to_owned());
        }
        self.account = Arc::new(account);
        self
    }

    /// Adds the explorer's pages below `/_explorer`.
    #[must_use]
    pub fn with_pages(mut self, pages: Arc<dyn Pages>) -> Self {
        self.pages = Some(pages);
        self
    }

    pub(crate) fn tls(&self) -> Option<&Arc<ServerConfig>> {
        self.tls.as_ref().map(|tls| &tls.config)
    }

    pub(crate) fn front_end(&self) -> &Arc<FrontEnd> {
        &self.traffic.front_end
    }

    pub(crate) fn direct(&self) -> &DirectMode {
        &self.direct
    }

    /// Returns the counter of open connections.
    pub fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// Returns the largest body that the request may have.
    pub(crate) fn body_limit(&self, Admitted { route, head, .. }: &Admitted) -> usize {
        match route.verb {
            _ if head.is_for_operators() => admin::body_bytes(head),
            Verb::Batch => self.limits.body_bytes + BATCH_FRAMING_BYTES,
            _ => self.limits.body_bytes,
        }
    }

    /// Reserves memory for the body of a request, and checks that there is some for its answer. Waits no longer than
    /// `max_wait`, or the client. Requests of operators do not wait under overload.
    pub(crate) async fn find_room(
        &self,
        Admitted { route, pass, head }: &Admitted,
        body_bytes: usize,
        max_wait: Duration,
    ) -> Result<Option<Permit<'_>>, Error> {
        if head.is_for_operators() {
            return Ok(None);
        }
        within(head.remaining(), self.reserve(pass.tenant(), route.work(), body_bytes, max_wait)).await
    }

    /// Checks for memory for the answer of queued work, and reserves memory for a body that is large or may become so.
    async fn reserve(
        &self,
        tenant: Tenant,
        work: Option<Work>,
        body_bytes: usize,
        max_wait: Duration,
    ) -> Result<Option<Permit<'_>>, Busy> {
        if let Some(work) = work {
            self.admission.check_memory(tenant, work)?;
        }
        if body_bytes < COUNTED_BYTES {
            return Ok(None);
        }
        Ok(Some(self.admission.receive_within(tenant, body_bytes, max_wait).await?))
    }

    /// Runs a request whose body has arrived.
    pub(crate) async fn run(
        &self,
        Admitted { route, pass, head }: Admitted,
        body: Bytes,
        activity: &str,
        payer: &mut Payer,
        record: &mut Record,
    ) -> Reply {
        let (tenant, version, is_operators) = (pass.tenant(), head.version(), head.is_for_operators());
        let work = route.work().filter(|_| !is_operators);
        let context = RequestContext {
            hooks: Arc::clone(&self.hooks),
            query_timeout: self.limits.query_timeout,
            threads: Arc::clone(&self.threads),
            connections: Arc::clone(&self.connections),
            account: Arc::clone(&self.account),
        };
        if let Err(refusal) = pass.check_body(&head.method, &body) {
            tell_refusal(record, &head, &refusal);
            return self.refuse(&head, refusal.error, activity);
        }
        if let Err(error) = head.check_form() {
            return self.refuse(&head, error, activity);
        }
        let call = Call::new(pass, head, body, context);
        if !call.body.is_empty() {
            record.restart();
        }
        // Work without a permit has no limit.
        let remaining = call.head.remaining().filter(|_| work.is_some());
        let mut result = match within(remaining, self.enter(tenant, work)).await {
            Ok(_permit) => CatchPanic::new((route.run)(&call)).await.unwrap_or(Err(Error::Panicked)),
            Err(error) => {
                call.look_up_container();
                Err(error)
            }
        };
        // The size of a read's answer is known only afterwards. It has changed nothing.
        if let Ok(reply) = &result
            && !is_operators
            && route.verb.is_read()
        {
            let reserved = payer.reserve(&self.admission, tenant, reply.held_bytes(version));
            result = reserved.map_err(Error::from).and(result);
        }
        // The request can no longer be refused, so effects that a refused one must not have happen now.
        if let Ok(reply) = result {
            result = Ok(reply.renewed(call.engine()).await);
        }
        record.note(&mut result);
        // Only an error needs it, and finding it reads the partition key again.
        let place = if result.is_err() { call.place() } else { None };
        let reply = finish(result, activity, place);
        record.keep(call);
        reply
    }

    /// Returns the answer to an admitted request that is refused before it runs. It names the request's range.
    pub(crate) fn refuse(&self, head: &Head, error: Error, activity: &str) -> Reply {
        let container = names::items_of(self.authenticator.engine(), &head.path);
        let place = container.as_deref().and_then(|container| place(head, container, None));
        finish(Err(error), activity, place)
    }

    /// Returns a permit to work, if one is needed.
    async fn enter(&self, tenant: Tenant, work: Option<Work>) -> Result<Option<Permit<'_>>, Busy> {
        match work {
            Some(work) => Ok(Some(self.admission.enter(tenant, work).await?)),
            None => Ok(None),
        }
    }

    /// Authenticates and authorizes a request, before its body is read.
    pub(crate) fn admit(
        &self,
        head: &mut Head,
        record: &mut Record,
    ) -> Result<(&'static Route, Pass), Refusal> {
        if head.is_for_operators() {
            let pass = self.authenticator.admit_operator(head)?;
            let route = routes::find_admin(head.verb()?, &head.path)?;
            record.admitted(route, &pass, head);
            return Ok((route, pass));
        }
        let verb = head.verb()?;
        let of_other_reading = || head.other_readings().find_map(|path| routes::find(verb, &path).ok());
        let route = routes::find(verb, &head.path).or_else(|error| of_other_reading().ok_or(error))?;
        record.operation = route.operation();
        let pass = self.authenticator.admit(head)?;
        // The signature may have selected another reading of the address, which may have another route.
        let route = routes::find(verb, &head.path)?;
        record.admitted(route, &pass, head);
        Ok((route, pass))
    }

    /// Answers `/alive`, `/ready` and the root certificate, which require no key.
    fn probe(&self, head: &Head) -> Option<Reply> {
        let path = &head.path;
        match (path.segments().len(), path.at(0), path.at(1)) {
            (2, "_explorer", "emulator.pem") if matches!(head.method, Method::GET | Method::HEAD) => {
                self.tls.as_ref().map(|tls| Reply::pem(tls.root.clone()))
            }
            (1, "alive", _) => Some(Reply::json(StatusCode::OK, "{\"alive\":true}")),
            (1, "ready", _) => Some(readiness::probe(self.authenticator.engine(), &self.admission)),
            _ => None,
        }
    }

    /// Answers `/metrics`: sums without a key, metrics by container with any key.
    async fn metrics(&self, head: Head, payer: &mut Payer) -> Result<Reply, Error> {
        let holder = self.authenticator.bearer(&head);
        if let Some(holder) = &holder {
            payer.authenticate(tenant(holder.kind));
        }
        let reader = if holder.is_some() { Reader::Operator } else { Reader::Unauthenticated };
        // A head may have 64 KiB, and many requests may wait.
        drop(head);
        let Ok(waiting) = self.figures_waiting.try_acquire() else {
            return Err(Busy { retry_after_ms: UNAUTHENTICATED_RETRY_MS }.into());
        };
        let _one = self.figures.acquire().await;
        drop(waiting);
        let (engine, registry) =
            (Arc::clone(self.authenticator.engine()), Arc::clone(&self.traffic.registry));
        let page = tokio::task::spawn_blocking(move || metrics::page(&engine, &registry, reader)).await;
        page.map_err(|_| Error::Panicked)?.map(Reply::text)
    }
}

/// Limits a wait to the time that the client waits for its answer.
async fn within<T>(
    remaining: Option<Duration>,
    waiting: impl Future<Output = Result<T, Busy>>,
) -> Result<T, Error> {
    match remaining {
        Some(remaining) => timeout(remaining, waiting).await.map_err(|_| Error::ClientTimeout)?,
        None => waiting.await,
    }
    .map_err(Error::from)
}

/// Logs a refused request for operators. The line contains nothing of the credentials, and a client's text cannot begin
/// another line.
pub(crate) fn tell_refusal(record: &mut Record, head: &Head, refusal: &Refusal) {
    let Some(why) = refusal.denial() else { return };
    record.refused(head, refusal);
    let path = head.path.segments().join("/");
    let peer = head.channel.map(|channel| channel.peer);
    tracing::info!(?peer, "refused {} {path:?} with {}: {why:?}", head.method, refusal.error.wire().status);
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::task::Poll;

    use account::{Key, Kind};
    use http_body_util::Full;
    use hyper::{Request, Version};
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};
    use transport::Api;

    use super::*;
    use crate::http;
    use crate::protocol::limits::STREAM_BYTES;

    fn service() -> Service {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).unwrap());
        let engine = Arc::new(Engine::open(store).unwrap());
        let keys = Keyring::of(Key::parse("c2VjcmV0").unwrap());
        Service::new(engine, keys, Arc::new(|| 1_700_000_000), Limits::default(), Arc::default())
    }

    #[test]
    fn the_host_of_the_public_address_is_allowed_while_the_key_is_public() {
        let allows = |public_address: Option<&str>| {
            let service = Service { names: AllowedHosts::Private(Vec::new()), ..service() };
            let public_address = public_address.map(str::to_owned);
            let service = service.with_account(AccountSettings { public_address, ..Default::default() });
            let request = Request::get("/").header("host", "db.example.org:443").body(()).unwrap();
            service.names.allow(&request.into_parts().0)
        };
        assert!(allows(Some("db.example.org:443")));
        assert!(!allows(Some("db.example.com:443")) && !allows(None));
    }

    fn head(method: &Method, path: &str, headers: &[(&str, &str)]) -> Head {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        http::head::head(request.body(()).unwrap().into_parts().0).unwrap()
    }

    /// The charge for unauthenticated requests matches their actual memory.
    #[test]
    fn a_request_that_is_worked_on_takes_no_more_than_it_is_counted_with() {
        let service = service();
        let bytes = std::mem::size_of_val(&service.respond(Request::new(Full::new(Bytes::new()))));
        assert!(bytes <= crate::protocol::limits::REQUEST_BYTES, "{bytes} bytes");
    }

    /// Requests of several keys may be in progress on one connection.
    #[tokio::test]
    async fn an_answer_is_charged_to_the_key_of_its_own_request() {
        let load = Arc::new(Admission::default());
        let service = service().with_admission(Arc::clone(&load));
        let peer = load.peer(Api::Nosql, Ipv4Addr::LOCALHOST.into());
        let request = Request::get("/metrics").version(Version::HTTP_2).extension(Arc::clone(&peer));
        let request = request.header("authorization", "Bearer c2VjcmV0").body(Full::new(Bytes::new()));
        let permits = service.figures.acquire_many(METRICS_PAGES as u32).await;
        let mut answer = std::pin::pin!(service.respond(request.unwrap()));
        assert!(poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await.is_pending());
        let other = tenant(Kind::PrimaryReadonly);
        peer.authenticate(other);
        drop(permits);
        let answer = answer.await;
        let held = load.held_bytes();
        assert!(held > STREAM_BYTES, "{held}");
        let free = load.held_bytes_max() / 2 - held;
        assert!(load.hold(other, free).is_ok(), "a tenant that holds nothing may take all that is free");
        drop(answer);
        assert_eq!(load.held_bytes(), 0);
    }

    /// Two pages of metrics are made at once, some requests wait for that, and a further one is told to come back.
    #[tokio::test]
    async fn requests_for_metrics_wait_up_to_a_number_and_are_refused_beyond() {
        let service = service();
        let ask = || {
            let request = Request::get("/metrics").body(Full::new(Bytes::new())).unwrap();
            Box::pin(service.respond(request))
        };
        let permits = service.figures.acquire_many(METRICS_PAGES as u32).await;
        let mut waiting: Vec<_> = (0..METRICS_WAITING).map(|_| ask()).collect();
        for answer in &mut waiting {
            assert!(poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await.is_pending());
        }
        let refused = ask().await;
        assert_eq!((METRICS_WAITING, refused.status().as_u16()), (64, 429));
        assert!(refused.headers().contains_key("x-ms-retry-after-ms"));
        drop(permits);
        for answer in waiting {
            assert_eq!(answer.await.status(), 200);
        }
    }

    /// Requests every row of the tables in every way: without a valid key none is admitted.
    #[test]
    fn no_route_admits_an_unauthenticated_client() {
        let service = service();
        let mut record = Record::new(&service.traffic);
        let meanings = [
            [("x-none", "")],
            [("a-im", "Incremental feed")],
            [("x-ms-documentdb-isquery", "true")],
            [("x-ms-cosmos-is-query-plan-request", "true")],
            [("x-ms-cosmos-is-batch-request", "true")],
            [("x-ms-documentdb-is-upsert", "true")],
        ];
        let wrong = [
            "Bearer d3Jvbmc=",
            "type=master&ver=1.0&sig=d3Jvbmc=",
            "type=resource&ver=1.0&sig=x",
            "",
            "Bearer ",
        ];
        let date = ("x-ms-date", "Tue, 14 Nov 2023 22:13:20 GMT");
        let mut refused = 0;
        for path in routes::example_paths() {
            for method in
                [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE]
            {
                for meaning in &meanings {
                    for authorization in wrong {
                        let headers = [meaning[0], date, ("authorization", authorization)];
                        let mut head = head(&method, &path, &headers);
                        match service.admit(&mut head, &mut record) {
                            Err(Refusal { error: Error::Unauthorized(_), who: None }) => refused += 1,
                            Err(Refusal { error: Error::WrongVerb(_), .. }) => {}
                            Err(other) => panic!("{method} {path}: {other:?}"),
                            Ok(_) => panic!("{method} {path} admits a client that sends '{authorization}'"),
                        }
                        assert!(service.probe(&head).is_none(), "{path}");
                    }
                }
            }
        }
        assert!(refused > 1000, "{refused}");
        let open = |path| service.probe(&head(&Method::GET, path, &[])).is_some();
        assert!(open("/alive") && open("/ready") && !open("/"), "these are open to every client");
    }
}
