//! An answer on its way out: status, body, and the headers that SDKs read.
//!
//! Handlers make a [`Reply`]; [`finish`] adds what every answer carries, errors included: the charge, the
//! activity id and, once a container is known, its session token and place. A missing charge or an empty error
//! body breaks clients, so neither is left to handlers.

use std::fmt::Display;

use bytes::Bytes;
use engine::{Charge, Container};
use hyper::header::{CONTENT_TYPE, ETAG, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::body::Body;
use crate::error::Error;
use crate::record::Work;
use crate::{headers, session};

/// What a handler answers.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    body: Body,
    charge: Charge,
    headers: HeaderMap,
    work: Option<Box<Work>>,
}

impl Reply {
    /// An answer with a JSON body.
    pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let mut reply = Self::empty(status);
        reply.body = body.into().into();
        reply.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        reply
    }

    /// An answer in plain text, in the form that Prometheus reads.
    pub(crate) fn text(body: String) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = Bytes::from(body).into();
        reply
            .headers
            .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"));
        reply
    }

    /// A certificate.
    pub(crate) fn pem(body: String) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = Bytes::from(body).into();
        reply.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-pem-file"));
        reply
    }

    /// An answer of JSON lines.
    pub(crate) fn lines(body: impl Into<Bytes>) -> Self {
        Self::bytes("application/x-ndjson", body)
    }

    /// An answer of some other content type.
    pub(crate) fn bytes(kind: &'static str, body: impl Into<Bytes>) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = body.into().into();
        reply.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        reply
    }

    /// An answer whose body is made while it is sent.
    pub(crate) fn streamed(content_type: &'static str, body: Body) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = body;
        reply.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        reply
    }

    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        let (body, headers) = (Bytes::new().into(), HeaderMap::with_capacity(24));
        Self { status, body, charge: Charge::MINIMUM, headers, work: None }
    }

    pub(crate) fn charged(mut self, charge: Charge) -> Self {
        self.charge = charge;
        self
    }

    pub(crate) fn charge(&self) -> Charge {
        self.charge
    }

    /// Beside the answer goes what it took, for the log of slow operations.
    pub(crate) fn worked(mut self, work: Work) -> Self {
        self.work = Some(Box::new(work));
        self
    }

    pub(crate) fn take_work(&mut self) -> Option<Box<Work>> {
        self.work.take()
    }

    pub(crate) fn with(mut self, name: HeaderName, value: impl Display) -> Self {
        set(&mut self.headers, name, &value.to_string());
        self
    }

    pub(crate) fn etag(self, etag: impl Display) -> Self {
        self.with(ETAG, etag)
    }

    /// The headers of an answer about items: whose they are, where they lie, and how far the session is.
    pub(crate) fn placed(mut self, place: &Place<'_>) -> Self {
        place.write(&mut self.headers);
        self
    }

    /// The headers of an answer about a container, which does not take part in sessions.
    pub(crate) fn owned_by_database(self, database: &str) -> Self {
        self.with(headers::ALT_CONTENT_PATH, escaped(&format!("dbs/{database}")))
    }

    pub(crate) fn into_response(mut self, activity: &str) -> Response<Body> {
        set(&mut self.headers, headers::REQUEST_CHARGE, &self.charge.to_string());
        common(&mut self.headers, activity);
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// Where in a container an answer comes from.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) container: &'a Container,
    /// Position of the physical partition in the container.
    pub(crate) range: usize,
    /// The sequence a session has seen with this answer.
    pub(crate) sequence: u64,
}

impl Place<'_> {
    fn write(&self, map: &mut HeaderMap) {
        let range = self.range.to_string();
        let path = format!("dbs/{}/colls/{}", self.container.database, self.container.name());
        set(map, headers::SESSION_TOKEN, &session::token(&range, self.sequence));
        set(map, headers::RANGE_ID, &range);
        set(map, headers::ALT_CONTENT_PATH, &escaped(&path));
        set(map, headers::CONTENT_PATH, &self.container.rid.to_string());
        let lsn = HeaderValue::from(self.sequence);
        for name in [
            headers::LSN,
            headers::ITEM_LSN,
            headers::LLSN,
            headers::ITEM_LLSN,
            headers::QUORUM_LSN,
            headers::QUORUM_LLSN,
            headers::GLOBAL_COMMITTED_LSN,
        ] {
            map.insert(name, lsn.clone());
        }
    }
}

/// The answer to a request, whichever way it ended. `place` is where an error happened, if it got that far.
pub(crate) fn finish(
    result: Result<Reply, Error>,
    activity: &str,
    place: Option<Place<'_>>,
) -> Response<Body> {
    match result {
        Ok(reply) => reply.into_response(activity),
        Err(error) => failure(&error, activity, place),
    }
}

fn failure(error: &Error, activity: &str, place: Option<Place<'_>>) -> Response<Body> {
    let wire = error.wire();
    if wire.status >= 500 {
        tracing::error!(activity, status = wire.status, "{error}");
    } else {
        tracing::debug!(activity, status = wire.status, "{error}");
    }
    let message = format!("{}\r\nActivityId: {activity}, bolide/{}", wire.message, env!("CARGO_PKG_VERSION"));
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
    use crate::json::{member, object, text};
    object([member("code", text(code)), member("message", text(message))]).to_json()
}

fn common(map: &mut HeaderMap, activity: &str) {
    set(map, headers::ACTIVITY_ID, activity);
    map.insert(headers::GATEWAY_VERSION, HeaderValue::from_static("version=2.14.0"));
    map.insert(
        headers::SERVICE_VERSION,
        HeaderValue::from_static(concat!("version=", env!("CARGO_PKG_VERSION"))),
    );
    map.insert(headers::SCHEMA_VERSION, HeaderValue::from_static("1.18"));
}

/// Sets a header; text that no header can carry is left out rather than failing the request.
fn set(map: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        map.insert(name, value);
    }
}

/// Names may hold any character, headers only printable ASCII; what does not fit is percent-encoded.
fn escaped(text: &str) -> String {
    const UNSAFE: &AsciiSet = &CONTROLS.add(b'%');
    utf8_percent_encode(text, UNSAFE).to_string()
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
    fn who_is_refused_for_its_rate_is_told_when_to_come_back() {
        let refused = engine::Error::TooManyRequests { retry_after_ms: 12 };
        let response = finish(Err(refused.into()), "abc", None);
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[headers::SUBSTATUS], "3200");
        assert_eq!(response.headers()[headers::RETRY_AFTER_MS], "12");
        assert_eq!(response.headers()[headers::REQUEST_CHARGE], "0.38");
    }

    #[test]
    fn names_that_no_header_can_carry_are_escaped() {
        assert_eq!(escaped("dbs/a b/colls/c"), "dbs/a b/colls/c");
        assert_eq!(escaped("dbs/é\n%"), "dbs/%C3%A9%0A%25");
    }
}
