//! The lifecycle of a request: route, authenticate, read the body, run the handler, finish the answer.
//!
//! The body is read only for a request that has a route and a valid signature, so unauthenticated clients cannot make
//! the server buffer anything. A panic in a handler fails only its own request, with 500.

pub(crate) mod audit;
pub(crate) mod listener;
pub(crate) mod metrics;
pub(crate) mod pages;
pub(crate) mod readiness;
pub(crate) mod record;
pub(crate) mod routes;

use std::sync::Arc;

use account::Keyring;
use bytes::{Bytes, BytesMut};
use engine::Engine;
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Body as HttpBody;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};
use telemetry::{FrontEnd, Registry};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use transport::{Admission, Busy, Held, Peer, Permit, ServerConfig, Tenant, Work};

use self::metrics::Reader;
use self::pages::{Pages, SharedBody, Visitor};
use crate::admin;
use crate::auth::{Gate, Pass, WallSeconds, tenant};
use crate::handlers::admin_hooks::AdminHooks;
use crate::handlers::call::{Call, RequestContext};
use crate::handlers::route::Route;
use crate::http::body::Body;
use crate::http::catch::CatchPanic;
use crate::http::framing::Ambiguous;
use crate::http::host_check::AllowedHosts;
use crate::http::payer::Payer;
use crate::http::request::{Head, Verb};
use crate::http::response::{Reply, finish, refusal, set_duration};
use crate::http::unread::Unread;
use crate::protocol::activity;
use crate::protocol::error::Error;
use crate::protocol::limits::{
    BATCH_FRAMING_BYTES, COUNTED_BYTES, DRAIN_BYTES, Limits, METRICS_PAGES, METRICS_WAITING, REFUSED_BYTES,
    REFUSED_TIMEOUT, STREAM_BYTES,
};
use crate::service::record::{Record, Traffic};
use crate::service::routes::Beside;

/// The answer to a request under a host name that may belong to another site.
const NOT_OUR_NAME: &str = "the name in 'Host' is none of this server's, which everybody's key opens; name it in 'tls-name', \
                            or give the server a key of its own";

/// The answer to a client in direct mode, whatever its credentials: the .NET client shows it verbatim, where a "not
/// found" would be taken for an empty account.
const GATEWAY_MODE: &str = "this server is reached in gateway mode: set ConnectionMode = ConnectionMode.Gateway in \
                            CosmosClientOptions (.NET), or call gatewayMode() of CosmosClientBuilder (Java)";

/// The retry delay for a refused unauthenticated client.
const UNAUTHENTICATED_RETRY_MS: u64 = 1000;

/// The front end over one engine.
pub struct Service {
    gate: Gate,
    limits: Limits,
    traffic: Traffic,
    admission: Arc<Admission>,
    names: AllowedHosts,
    /// Permits to have a page of figures made, which needs no key,
    figures: Semaphore,
    /// and to wait for one.
    figures_waiting: Semaphore,
    tls: Option<Tls>,
    hooks: Arc<AdminHooks>,
    pages: Option<Arc<dyn Pages>>,
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
        let gate = Gate::new(engine, keys, wall_seconds);
        Self {
            gate,
            limits,
            traffic: Traffic::new(registry),
            admission: Arc::default(),
            names,
            figures: Semaphore::new(METRICS_PAGES),
            figures_waiting: Semaphore::new(METRICS_WAITING),
            tls: None,
            hooks: Arc::default(),
            pages: None,
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

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// Answers one request; whatever happens, there is an answer.
    pub(crate) async fn respond(&self, request: Request<impl Arriving>) -> Response<Body> {
        let mut record = Record::new(&self.traffic);
        let version = request.version();
        let unread = request.extensions().get::<Arc<Unread>>().cloned();
        let mut payer = Payer::new(request.extensions().get::<Arc<Peer>>().cloned());
        let mut answer = self.answer(request, &mut payer, &mut record).await;
        let duration = record.end(&answer);
        set_duration(answer.headers_mut(), duration);
        if let Some(peer) = &payer.peer {
            peer.answered();
        }
        answer.map(|body| body.counted(version, payer, unread.as_ref()))
    }

    /// Answers a complete request, without a connection. Used only by fuzz targets.
    pub async fn answer_whole(&self, request: Request<Full<Bytes>>) -> Response<Bytes> {
        let (head, body) = self.respond(request).await.into_parts();
        let body = body.collect().await.map_or_else(|_| Bytes::new(), Collected::to_bytes);
        Response::from_parts(head, body)
    }

    async fn answer(
        &self,
        request: Request<impl Arriving>,
        payer: &mut Payer,
        record: &mut Record<'_>,
    ) -> Response<Body> {
        let (activity, version) = (activity::of(request.headers()), request.version());
        let (parts, body) = request.into_parts();
        if let Err(error) = check_clear(&parts) {
            let passed = pass_over(body).await;
            return close_after(passed.max(Passed::InPart), version, finish(Err(error), &activity, None));
        }
        if !self.names.allow(&parts) {
            return refusal(&Error::Forbidden(NOT_OUR_NAME.to_owned()), &activity);
        }
        if let Some(pages) = self.pages.as_ref().filter(|_| pages::is_page(parts.uri.path())) {
            record.operation = Beside::Page.operation();
            return self.page(&**pages, parts, body, payer, &activity).await;
        }
        let mut head = match Head::new(parts) {
            Ok(head) => head,
            Err(error) => return refusal(&error, &activity),
        };
        if let Some(reply) = self.probe(&head) {
            record.operation = Beside::Probe.operation();
            return reply.into_response(&activity);
        }
        if head.path.segments() == ["addresses"] {
            return refusal(&Error::BadRequest(GATEWAY_MODE.to_owned()), &activity);
        }
        if head.path.segments() == ["metrics"] && head.method == Method::GET {
            record.operation = Beside::Metrics.operation();
            return finish(self.metrics(head, payer).await, &activity, None);
        }
        let (route, pass) = match self.admit(&mut head, record) {
            Ok(admitted) => admitted,
            Err(error) => {
                tell_refusal(record, &head, &error);
                return refuse(&error, body, &activity, version).await;
            }
        };
        payer.authenticate(pass.tenant());
        self.perform((route, pass), head, body, &activity, payer, record).await
    }

    /// Runs an admitted request, if there is memory and a permit for it.
    async fn perform(
        &self,
        (route, pass): (&'static Route, Pass),
        head: Head,
        body: impl Arriving,
        activity: &str,
        payer: &mut Payer,
        record: &mut Record<'_>,
    ) -> Response<Body> {
        let (tenant, version) = (pass.tenant(), head.version);
        // Operators must get in while there is too much to do.
        let is_operators = head.path.at(0) == admin::PREFIX;
        let limit = match route.verb {
            _ if is_operators => admin::body_bytes(&head),
            Verb::Batch => self.limits.body_bytes + BATCH_FRAMING_BYTES,
            _ => self.limits.body_bytes,
        };
        let work = route.work().filter(|_| !is_operators);
        let found = if is_operators { Ok(None) } else { self.find_room(tenant, work, &body, limit).await };
        let _room = match found {
            Ok(room) => room,
            Err(busy) => return refuse(&busy.into(), body, activity, version).await,
        };
        let context =
            RequestContext { hooks: Arc::clone(&self.hooks), query_timeout: self.limits.query_timeout };
        let body = self.read_body(body, limit).await;
        match body.and_then(|body| Call::new(pass, head, body, context)) {
            Ok(call) => {
                if !call.body.is_empty() {
                    record.restart();
                }
                let mut result = match self.enter(tenant, work).await {
                    Ok(_permit) => {
                        CatchPanic::new((route.run)(&call)).await.unwrap_or_else(|_| Err(Error::Panicked))
                    }
                    Err(busy) => Err(busy.into()),
                };
                // The size of a read is known only afterwards. It has changed nothing.
                if let Ok(reply) = &result
                    && !is_operators
                    && work != Some(Work::Brief)
                {
                    let reserved = payer.reserve(&self.admission, tenant, reply.held_bytes(version));
                    result = reserved.map_err(Error::from).and(result);
                }
                // The request can no longer be refused, so effects that a refused one must not have happen now.
                if let Ok(reply) = result {
                    result = Ok(reply.renewed(call.engine()).await);
                }
                record.note(&mut result);
                let answer = finish(result, activity, call.place());
                record.keep(call);
                answer
            }
            Err(error) => finish(Err(error), activity, None),
        }
    }

    /// Checks for memory for the answer of queued work, and reserves memory for a body that is large or may become so.
    async fn find_room(
        &self,
        tenant: Tenant,
        work: Option<Work>,
        body: &impl Arriving,
        limit: usize,
    ) -> Result<Option<Permit<'_>>, Busy> {
        if let Some(work) = work {
            self.admission.check_memory(tenant, work)?;
        }
        let announced = announced_bytes(body, limit);
        if announced < COUNTED_BYTES {
            return Ok(None);
        }
        Ok(Some(self.admission.receive(tenant, announced).await?))
    }

    /// Returns a permit to work, if one is needed.
    async fn enter(&self, tenant: Tenant, work: Option<Work>) -> Result<Option<Permit<'_>>, Busy> {
        match work {
            Some(work) => Ok(Some(self.admission.enter(tenant, work).await?)),
            None => Ok(None),
        }
    }

    /// Authenticates and authorizes a request, before its body is read.
    fn admit(&self, head: &mut Head, record: &mut Record<'_>) -> Result<(&'static Route, Pass), Error> {
        if head.path.at(0) == admin::PREFIX {
            let pass = self.gate.admit_operator(head.headers())?;
            let route = routes::find_admin(head.verb()?, &head.path)?;
            record.admitted(route, &pass, head);
            return Ok((route, pass));
        }
        let verb = head.verb()?;
        let of_other_reading = || head.other_readings().find_map(|path| routes::find(verb, &path).ok());
        let route = routes::find(verb, &head.path).or_else(|error| of_other_reading().ok_or(error))?;
        record.operation = route.operation();
        let pass = self.gate.admit(head)?;
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
            (1, "ready", _) => Some(readiness::probe(self.gate.engine(), &self.admission)),
            _ => None,
        }
    }

    /// Answers `/metrics`: sums without a key, metrics by container with any key.
    async fn metrics(&self, head: Head, payer: &mut Payer) -> Result<Reply, Error> {
        let holder = self.gate.bearer(head.headers());
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
        let (engine, registry) = (Arc::clone(self.gate.engine()), Arc::clone(&self.traffic.registry));
        let page = tokio::task::spawn_blocking(move || metrics::page(&engine, &registry, reader)).await;
        page.map_err(|_| Error::Panicked)?.map(Reply::text)
    }

    /// Answers a page of [`Pages`]. A body that this caller may not send is not kept, so unauthenticated clients cannot
    /// make the server buffer anything; and a page waits in the queue of its kind of work like any other request.
    async fn page(
        &self,
        pages: &dyn Pages,
        head: Parts,
        body: impl Arriving,
        payer: &mut Payer,
        activity: &str,
    ) -> Response<Body> {
        let channel = head.extensions.get().copied();
        let (version, limit, visitor) = (head.version, pages.body_bytes(&head), pages.visitor(&head));
        let refused = |Busy { retry_after_ms }: Busy| pages.refused(retry_after_ms).map(Body::from);
        let _room = match self.find_page_room(visitor, payer, &body, limit).await {
            Ok(room) => room,
            Err(busy) => return close_after(pass_over(body).await, version, refused(busy)),
        };
        let body = match self.read_body(body, limit).await {
            Ok(body) => body,
            Err(error) => return finish(Err(error), activity, None),
        };
        let permit = match visitor {
            Some(visitor) => self.enter(visitor.tenant, visitor.work).await,
            None => Ok(None),
        };
        let _permit = match permit {
            Ok(permit) => permit,
            Err(busy) => return refused(busy),
        };
        match CatchPanic::new(pages.answer(Request::from_parts(head, body), channel)).await {
            Ok(answer) if answer.extensions().get::<SharedBody>().is_some() => {
                answer.map(|body| Body::Shared(Some(body).filter(|body| !body.is_empty())))
            }
            Ok(answer) => answer.map(Body::from),
            Err(_) => finish(Err(Error::Panicked), activity, None),
        }
    }

    /// Reserves memory for a page's request: of its tenant, or from the budget of unauthenticated connections.
    async fn find_page_room(
        &self,
        visitor: Option<Visitor>,
        payer: &mut Payer,
        body: &impl Arriving,
        limit: usize,
    ) -> Result<PageRoom<'_>, Busy> {
        if let Some(visitor) = visitor {
            payer.authenticate(visitor.tenant);
            let room = self.find_room(visitor.tenant, visitor.work, body, limit).await?;
            return Ok(PageRoom { _tenant: room, _unauthenticated: None });
        }
        let bytes = STREAM_BYTES + announced_bytes(body, limit);
        let held = payer.peer.as_ref().map(|peer| peer.hold(bytes)).transpose();
        let held = held.map_err(|_| Busy { retry_after_ms: UNAUTHENTICATED_RETRY_MS })?;
        Ok(PageRoom { _tenant: None, _unauthenticated: held })
    }

    async fn read_body(&self, body: impl Arriving, limit: usize) -> Result<Bytes, Error> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let read = self.collect(body, limit);
        timeout(self.limits.body_timeout, read).await.map_err(|_| Error::BodyTimeout)?
    }

    /// Reads the whole body. A too large one is read a while longer and discarded, so that a client which sends
    /// everything before it reads receives the refusal.
    async fn collect(&self, mut body: impl Arriving, limit: usize) -> Result<Bytes, Error> {
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        let mut total = 0;
        while let Some(frame) =
            timeout(self.limits.body_pause_timeout, body.frame()).await.map_err(|_| Error::BodyTimeout)?
        {
            let frame = frame.map_err(|error| Error::BodyBroken(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            total += data.len();
            if total > DRAIN_BYTES.max(limit) {
                return Err(Error::BodyTooLarge);
            }
            if total > limit {
                rest = BytesMut::new();
                first = Bytes::new();
            } else if first.is_empty() {
                first = data;
            } else {
                if rest.is_empty() {
                    rest.extend_from_slice(&first);
                }
                rest.extend_from_slice(&data);
            }
        }
        if total > limit {
            return Err(Error::BodyTooLarge);
        }
        Ok(if rest.is_empty() { first } else { rest.freeze() })
    }
}

/// The memory reserved for the request of a page.
struct PageRoom<'a> {
    _tenant: Option<Permit<'a>>,
    _unauthenticated: Option<Held>,
}

/// Returns the announced length of a body, up to the limit.
fn announced_bytes(body: &impl Arriving, limit: usize) -> usize {
    if body.is_end_stream() {
        return 0;
    }
    body.size_hint().upper().map_or(limit, |bytes| (bytes as usize).min(limit))
}

/// The body of a request being received.
pub(crate) trait Arriving: HttpBody<Data = Bytes, Error: std::fmt::Display> + Send + Unpin {}

impl<B: HttpBody<Data = Bytes, Error: std::fmt::Display> + Send + Unpin> Arriving for B {}

/// Refuses what a proxy before the server might take for another request, or for one to another name.
fn check_clear(head: &Parts) -> Result<(), Error> {
    let what = if head.extensions.get::<Ambiguous>().is_some() {
        "the request says twice where it ends ('Content-Length' beside 'Transfer-Encoding'), or a line of its head ends without a \
         carriage return"
    } else if head.headers.get_all(HOST).iter().count() > 1 {
        "the request has more than one 'Host' header"
    } else {
        return Ok(());
    };
    Err(Error::BadRequest(what.to_owned()))
}

/// Logs a refused request for operators. The line contains nothing of the credentials, and a client's text cannot begin
/// another line.
fn tell_refusal(record: &Record<'_>, head: &Head, error: &Error) {
    record.refused(head, error);
    if let Error::Unauthorized(why) | Error::Forbidden(why) = error {
        let path = head.path.segments().join("/");
        let peer = head.channel.map(|channel| channel.peer);
        tracing::info!(?peer, "refused {} {path:?} with {}: {why:?}", head.method, error.wire().status);
    }
}

/// Answers what is refused before its body is read.
async fn refuse(error: &Error, body: impl Arriving, activity: &str, version: Version) -> Response<Body> {
    close_after(pass_over(body).await, version, refusal(error, activity))
}

/// Makes the client not reuse a connection some of whose bytes were not read.
fn close_after(passed: Passed, version: Version, mut answer: Response<Body>) -> Response<Body> {
    if passed == Passed::InPart && version <= Version::HTTP_11 {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// Discards the body of a refused request as far as it arrives at once. A connection closed with unread bytes is reset,
/// and a client that sends head and body separately would lose the answer. A connection on which more may arrive is
/// closed all the same, and its client must be told not to reuse it.
async fn pass_over(mut body: impl Arriving) -> Passed {
    let mut left = REFUSED_BYTES;
    let drop_frames = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return Passed::InPart;
            }
        }
        Passed::Whole
    };
    timeout(REFUSED_TIMEOUT, drop_frames).await.unwrap_or(Passed::InPart)
}

/// How much of a refused body was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Passed {
    Whole,
    InPart,
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::net::Ipv4Addr;
    use std::task::Poll;

    use account::{Key, Kind};
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};
    use transport::Api;

    use super::*;

    fn service() -> Service {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).unwrap());
        let engine = Arc::new(Engine::open(store).unwrap());
        let keys = Keyring::of(Key::parse("c2VjcmV0").unwrap());
        Service::new(engine, keys, Arc::new(|| 1_700_000_000), Limits::default(), Arc::default())
    }

    fn head(method: &Method, path: &str, headers: &[(&str, &str)]) -> Head {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Head::new(request.body(()).unwrap().into_parts().0).unwrap()
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

    /// Requests every row of the tables in every way: without a valid key none is admitted.
    #[test]
    fn no_route_admits_a_stranger() {
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
                            Err(Error::Unauthorized(_)) => refused += 1,
                            Err(Error::WrongVerb(_)) => {}
                            Err(other) => panic!("{method} {path}: {other}"),
                            Ok(_) => panic!("{method} {path} admits whoever sends '{authorization}'"),
                        }
                        assert!(service.probe(&head).is_none(), "{path}");
                    }
                }
            }
        }
        assert!(refused > 1000, "{refused}");
        let open = |path| service.probe(&head(&Method::GET, path, &[])).is_some();
        assert!(open("/alive") && open("/ready") && !open("/"), "these are open to everybody");
    }
}
