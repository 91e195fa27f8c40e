//! Requests over HTTP, from head and body to the response.
//!
//! The body is read only for a request that has a route and a valid signature, so unauthenticated clients cannot make
//! the server buffer anything.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Body as HttpBody;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, Version};
use tokio::time::timeout;
use transport::{Busy, CatchPanic, Held, Peer, Permit};

use crate::auth::Refusal;
use crate::http::answer::{into_response, set_duration};
use crate::http::framing::Ambiguous;
use crate::http::head;
use crate::message::body::Body;
use crate::message::payer::Payer;
use crate::message::reply::{finish, refusal};
use crate::message::unread::Unread;
use crate::protocol::activity;
use crate::protocol::error::Error;
use crate::protocol::limits::{DRAIN_BYTES, REFUSED_BYTES, REFUSED_TIMEOUT, STREAM_BYTES};
use crate::service::pages::{self, Pages, SharedBody, Visitor};
use crate::service::record::Record;
use crate::service::routes::{self, Beside};
use crate::service::{Admitted, Service, UNAUTHENTICATED_RETRY_MS, tell_refusal};

/// The answer to a request under a host name that may belong to another site.
const NOT_OUR_NAME: &str = "the name in 'Host' is none of this server's, which the public key opens; name it in 'tls-name', \
                            or give the server a key of its own";

impl Service {
    /// Answers one request; there always is an answer.
    pub(crate) async fn respond(&self, request: Request<impl Arriving>) -> Response<Body> {
        let mut record = Record::new(&self.traffic);
        let version = request.version();
        let connection = request.extensions();
        let mut payer =
            Payer::new(connection.get::<Arc<Peer>>().cloned(), connection.get::<Arc<Unread>>().cloned());
        let activity = activity::of(request.headers());
        let mut answer = self.answer(request, &activity, &mut payer, &mut record).await;
        let duration = record.end(answer.status(), &activity);
        set_duration(answer.headers_mut(), duration);
        if let Some(peer) = &payer.peer {
            peer.answered();
        }
        answer.map(|body| body.counted(version, payer))
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
        activity: &str,
        payer: &mut Payer,
        record: &mut Record,
    ) -> Response<Body> {
        let version = request.version();
        let (parts, body) = request.into_parts();
        if let Err(error) = check_clear(&parts) {
            let passed = pass_over(body).await;
            return close_after(
                passed.max(Passed::InPart),
                version,
                into_response(finish(Err(error), activity, None), activity),
            );
        }
        let pages = self.pages.as_ref().filter(|_| pages::is_page(parts.uri.path()));
        if pages.is_some() {
            record.operation = Beside::Page.operation();
        }
        if !self.names.allow(&parts) {
            return refuse_host(parts, activity, record);
        }
        if let Some(pages) = pages {
            return self.page(&**pages, parts, body, payer, activity).await;
        }
        let mut head = match head::head(parts) {
            Ok(head) => head,
            Err(error) => return refused(&error, activity),
        };
        if let Some(reply) = self.probe(&head) {
            record.operation = Beside::Probe.operation();
            return into_response(reply, activity);
        }
        if head.path.segments() == ["addresses"] {
            record.operation = Beside::Addresses.operation();
            let addresses = self.direct.addresses(&self.authenticator, self.tls.is_some(), &head, payer);
            return match addresses {
                Ok(reply) => into_response(reply, activity),
                Err(error) => {
                    let refusal = Refusal::from(error);
                    tell_refusal(record, &head, &refusal);
                    refused(&refusal.error, activity)
                }
            };
        }
        if head.path.segments() == ["metrics"] && head.method == Method::GET {
            record.operation = Beside::Metrics.operation();
            return into_response(finish(self.metrics(head, payer).await, activity, None), activity);
        }
        let (route, pass) = match self.admit(&mut head, record) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                tell_refusal(record, &head, &refusal);
                return refuse(&refusal.error, body, activity, version).await;
            }
        };
        payer.authenticate(pass.tenant());
        self.perform(Admitted { route, pass, head }, body, activity, payer, record).await
    }

    /// Receives the body of an admitted request and runs it, if there is memory for both.
    async fn perform(
        &self,
        admitted: Admitted,
        body: impl Arriving,
        activity: &str,
        payer: &mut Payer,
        record: &mut Record,
    ) -> Response<Body> {
        let (limit, version) = (self.body_limit(&admitted), admitted.head.version());
        let announced = announced_bytes(&body, limit);
        let _room = match self.find_room(&admitted, announced, Duration::MAX).await {
            Ok(room) => room,
            Err(error) => return refuse(&error, body, activity, version).await,
        };
        let reply = match self.read_body(body, limit).await {
            Ok(body) => self.run(admitted, body, activity, payer, record).await,
            Err(error) => finish(Err(error), activity, None),
        };
        into_response(reply, activity)
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
            Err(error) => return into_response(finish(Err(error), activity, None), activity),
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
            Err(_) => into_response(finish(Err(Error::Panicked), activity, None), activity),
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
            let announced = announced_bytes(body, limit);
            let room = self.reserve(visitor.tenant, visitor.work, announced, Duration::MAX).await?;
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

/// Refuses requests that a proxy before the server might take for another request, or for one to another name.
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

/// Refuses a request under a host name that may belong to another site.
fn refuse_host(parts: Parts, activity: &str, record: &mut Record) -> Response<Body> {
    let head = match head::head(parts) {
        Ok(head) => head,
        Err(error) => return refused(&error, activity),
    };
    if let Ok(route) = head.verb().and_then(|verb| routes::find(verb, &head.path)) {
        record.operation = route.operation();
    }
    let refusal = Refusal::from(Error::Forbidden(NOT_OUR_NAME.to_owned()));
    tell_refusal(record, &head, &refusal);
    refused(&refusal.error, activity)
}

/// Answers what is refused before its body is read.
async fn refuse(error: &Error, body: impl Arriving, activity: &str, version: Version) -> Response<Body> {
    close_after(pass_over(body).await, version, refused(error, activity))
}

fn refused(error: &Error, activity: &str) -> Response<Body> {
    into_response(refusal(error, activity), activity)
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
