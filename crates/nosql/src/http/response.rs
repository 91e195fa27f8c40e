//! Responses: status, body, and the headers that SDKs read.
//!
//! Handlers make a [`Reply`]; [`finish`] adds what every answer carries, errors included: the charge, the
//! activity id and, once a container is known, its session token and place. A missing charge or an empty error
//! body breaks clients, so neither is left to handlers.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use engine::{Charge, Container, Engine, RangeLsn, SlidingRenewal};
use hyper::header::{CONTENT_TYPE, ETAG, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{HeaderMap, Response, StatusCode, Version};
use percent_encoding::{AsciiSet, CONTROLS, PercentEncode, utf8_percent_encode};

use crate::http::body::Body;
use crate::http::work::Work;
use crate::protocol::error::Error;
use crate::protocol::headers;
use crate::protocol::limits::UNAUTHENTICATED_MESSAGE_BYTES;
use crate::protocol::session;

/// The answer of a handler.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    body: Body,
    charge: Charge,
    headers: Headers,
    work: Option<Box<Work>>,
    /// Countdowns to restart once the read can no longer be refused (T33).
    renewals: Vec<SlidingRenewal>,
}

impl Reply {
    /// Creates an answer with a JSON body.
    pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let mut reply = Self::empty(status);
        reply.body = body.into().into();
        reply.headers.fix(CONTENT_TYPE, "application/json");
        reply
    }

    /// Creates an answer in the Prometheus text format.
    pub(crate) fn text(body: String) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = Bytes::from(body).into();
        reply.headers.fix(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
        reply
    }

    /// Creates an answer with a certificate.
    pub(crate) fn pem(body: Bytes) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = Body::Shared(Some(body));
        reply.headers.fix(CONTENT_TYPE, "application/x-pem-file");
        reply
    }

    /// Creates an answer of JSON lines.
    pub(crate) fn lines(body: impl Into<Bytes>) -> Self {
        Self::bytes("application/x-ndjson", body)
    }

    /// Creates an answer of another content type.
    pub(crate) fn bytes(kind: &'static str, body: impl Into<Bytes>) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = body.into().into();
        reply.headers.fix(CONTENT_TYPE, kind);
        reply
    }

    /// Creates an answer whose body is produced while it is sent.
    pub(crate) fn streamed(content_type: &'static str, body: Body) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = body;
        reply.headers.fix(CONTENT_TYPE, content_type);
        reply
    }

    /// Creates an answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        let (body, charge) = (Bytes::new().into(), Charge::MINIMUM);
        Self { status, body, charge, headers: Headers::default(), work: None, renewals: Vec::new() }
    }

    pub(crate) fn charged(mut self, charge: Charge) -> Self {
        self.charge = charge;
        self
    }

    pub(crate) fn charge(&self) -> Charge {
        self.charge
    }

    /// Returns the bytes to charge for the body.
    pub(crate) fn held_bytes(&self, version: Version) -> usize {
        self.body.held_bytes(version)
    }

    /// Attaches the work done, for the log of slow operations.
    pub(crate) fn worked(mut self, work: Work) -> Self {
        self.work = Some(Box::new(work));
        self
    }

    pub(crate) fn take_work(&mut self) -> Option<Box<Work>> {
        self.work.take()
    }

    /// Attaches countdowns that the read restarts.
    pub(crate) fn renewing(mut self, open_renewals: impl IntoIterator<Item = SlidingRenewal>) -> Self {
        self.renewals.extend(open_renewals);
        self
    }

    /// Restarts the countdowns and waits until that is durable: an answer must not promise what a crash could undo. If
    /// the store fails, the items are returned all the same, without the seconds left.
    pub(crate) async fn renewed(mut self, engine: &Arc<Engine>) -> Self {
        let open_renewals = std::mem::take(&mut self.renewals);
        if let [renewal] = &open_renewals[..] {
            if let Some(begun) = engine.renew(renewal) {
                self.set_seconds_left(begun.await.unwrap_or_default());
            }
        } else if !open_renewals.is_empty() {
            let engine = Arc::clone(engine);
            let _ = tokio::task::spawn_blocking(move || engine.renew_all(&open_renewals)).await;
        }
        self
    }

    /// Corrects the seconds left in the answer.
    fn set_seconds_left(&mut self, left: Option<u64>) {
        if self.headers.map.remove(headers::TTL_REMAINING).is_some()
            && let Some(left) = left
        {
            self.headers.set(headers::TTL_REMAINING, left);
        }
    }

    pub(crate) fn with(mut self, name: HeaderName, value: impl Display) -> Self {
        self.headers.set(name, value);
        self
    }

    pub(crate) fn etag(self, etag: impl Display) -> Self {
        self.with(ETAG, etag)
    }

    /// Sets the headers of an answer about items: container, range and session token.
    pub(crate) fn placed(mut self, place: &Place<'_>) -> Self {
        place.write(&mut self.headers);
        self
    }

    /// Sets the headers of an answer about a container, which has no session token.
    pub(crate) fn owned_by_database(self, database: &str) -> Self {
        self.with(headers::ALT_CONTENT_PATH, format_args!("dbs/{}", escaped(database)))
    }

    pub(crate) fn into_response(mut self, activity: &str) -> Response<Body> {
        self.headers.set(headers::REQUEST_CHARGE, self.charge);
        self.headers.common(activity);
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.map;
        response
    }
}

/// The origin of an answer in a container.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) container: &'a Container,
    /// The range, and the LSN that a session has seen with this answer.
    pub(crate) range: RangeLsn,
    /// The LSN of the item's last write, in an answer about one item.
    pub(crate) item: Option<u64>,
}

impl Place<'_> {
    fn write(&self, headers: &mut Headers) {
        let Place { container, range, item } = self;
        let path = (escaped(&container.database), escaped(container.name()));
        headers.set(headers::SESSION_TOKEN, session::token(*range));
        headers.set(headers::RANGE_ID, range.range);
        headers.set(headers::ALT_CONTENT_PATH, format_args!("dbs/{}/colls/{}", path.0, path.1));
        headers.set(headers::CONTENT_PATH, container.rid);
        // There is one replica: what it has is acknowledged and committed everywhere.
        let of_range = [
            headers::LSN,
            headers::LLSN,
            headers::QUORUM_LSN,
            headers::QUORUM_LLSN,
            headers::GLOBAL_COMMITTED_LSN,
        ];
        headers.number(of_range, range.lsn);
        if let Some(lsn) = item {
            headers.number([headers::ITEM_LSN, headers::ITEM_LLSN], *lsn);
        }
    }
}

/// Headers in the making. What is written for them lies in one piece of memory: an answer has some twenty.
#[derive(Debug)]
struct Headers {
    map: HeaderMap,
    text: BytesMut,
}

impl Default for Headers {
    fn default() -> Self {
        Self { map: HeaderMap::with_capacity(24), text: BytesMut::with_capacity(384) }
    }
}

impl Headers {
    /// Sets a header; text that no header can carry is left out rather than failing the request.
    fn set(&mut self, name: HeaderName, value: impl Display) {
        let written = write!(self.text, "{value}");
        let text = self.text.split().freeze();
        if let (Ok(()), Ok(value)) = (written, HeaderValue::from_maybe_shared(text)) {
            self.map.insert(name, value);
        }
    }

    /// Sets several headers to one number.
    fn number<const N: usize>(&mut self, names: [HeaderName; N], number: u64) {
        let value = HeaderValue::from(number);
        for name in names {
            self.map.insert(name, value.clone());
        }
    }

    fn fix(&mut self, name: HeaderName, value: &'static str) {
        self.map.insert(name, HeaderValue::from_static(value));
    }

    /// Sets the headers that every answer has.
    fn common(&mut self, activity: &str) {
        self.set(headers::ACTIVITY_ID, activity);
        self.fix(headers::GATEWAY_VERSION, "version=2.14.0");
        self.fix(headers::SERVICE_VERSION, concat!("version=", env!("CARGO_PKG_VERSION")));
        self.fix(headers::SCHEMA_VERSION, "1.18");
        self.fix(X_CONTENT_TYPE_OPTIONS, "nosniff");
    }
}

/// Sets the server's duration in milliseconds, which every answer has.
pub(crate) fn set_duration(headers: &mut HeaderMap, duration: Duration) {
    let text = format!("{:.3}", duration.as_secs_f64() * 1000.0);
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.insert(headers::REQUEST_DURATION, value);
    }
}

/// Completes the answer to a request, successful or not. `place` is where an error happened, if it got that far.
pub(crate) fn finish(
    result: Result<Reply, Error>,
    activity: &str,
    place: Option<Place<'_>>,
) -> Response<Body> {
    match result {
        Ok(reply) => reply.into_response(activity),
        Err(error) => failure(&error, activity, place, usize::MAX),
    }
}

/// Returns the answer to a refused request. It echoes little of the request: a client that leaves answers unread must
/// not decide how large they are.
pub(crate) fn refusal(error: &Error, activity: &str) -> Response<Body> {
    failure(error, activity, None, UNAUTHENTICATED_MESSAGE_BYTES)
}

/// Returns the beginning of a text, at most `bytes_max` bytes of it.
fn shortened(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    Cow::Owned(format!("{}… ({} bytes)", &text[..end], text.len()))
}

fn failure(
    error: &Error,
    activity: &str,
    place: Option<Place<'_>>,
    message_bytes_max: usize,
) -> Response<Body> {
    let wire = error.wire();
    if wire.status >= 500 {
        tracing::error!(activity, status = wire.status, "{error}");
    } else {
        tracing::debug!(activity, status = wire.status, "{error}");
    }
    let message = shortened(&wire.message, message_bytes_max);
    let message = format!("{message}\r\nActivityId: {activity}, bolide/{}", env!("CARGO_PKG_VERSION"));
    let body = error_body(wire.code, &message);
    let status = StatusCode::from_u16(wire.status).expect("the error table has only valid status codes");
    let mut reply =
        Reply::json(status, body).charged(error.charge()).with(headers::SUBSTATUS, wire.substatus);
    if let Some(wait) = error.retry_after_ms() {
        reply = reply.with(headers::RETRY_AFTER_MS, wait);
    }
    if let Some(place) = place {
        reply = reply.placed(&place);
    }
    reply.into_response(activity)
}

/// `{"code":…,"message":…}`.
fn error_body(code: &str, message: &str) -> String {
    use crate::protocol::json::{member, object, text};
    object([member("code", text(code)), member("message", text(message))]).to_json()
}

/// Names may hold any character, headers only printable ASCII; what does not fit is percent-encoded.
fn escaped(text: &str) -> PercentEncode<'_> {
    const UNSAFE: &AsciiSet = &CONTROLS.add(b'%');
    utf8_percent_encode(text, UNSAFE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_json_body_a_charge_and_a_substatus() {
        let response = finish(Err(Error::RangeGone("7".to_owned())), "abc", None);
        assert_eq!(response.status(), 410);
        assert_eq!(response.headers()[headers::SUBSTATUS], "1002");
        assert_eq!(response.headers()[headers::REQUEST_CHARGE], "1");
        assert_eq!(response.headers()[headers::ACTIVITY_ID], "abc");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    }

    #[test]
    fn a_throttled_request_is_told_when_to_retry() {
        let refused = engine::Error::TooManyRequests { retry_after_ms: 12 };
        let response = finish(Err(refused.into()), "abc", None);
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[headers::SUBSTATUS], "3200");
        assert_eq!(response.headers()[headers::RETRY_AFTER_MS], "12");
        assert_eq!(response.headers()[headers::REQUEST_CHARGE], "0.38");
    }

    #[test]
    fn a_duration_is_in_decimal_milliseconds() {
        for (duration, text) in [
            (Duration::from_micros(3551), "3.551"),
            (Duration::ZERO, "0.000"),
            (Duration::from_nanos(70_600), "0.071"),
            (Duration::from_secs(61), "61000.000"),
        ] {
            let mut map = HeaderMap::new();
            set_duration(&mut map, duration);
            assert_eq!(map[headers::REQUEST_DURATION], text);
        }
    }

    #[test]
    fn names_that_no_header_can_carry_are_escaped() {
        assert_eq!(escaped("dbs/a b/colls/c").to_string(), "dbs/a b/colls/c");
        assert_eq!(escaped("dbs/é\n%").to_string(), "dbs/%C3%A9%0A%25");
    }
}
