//! An answer as types: status, body, charge, and the fields that clients read.
//!
//! Handlers make a [`Reply`]; [`finish`] adds what every answer carries, errors included: once a container is known, its
//! session token and place. An empty error body breaks clients, so it is not left to handlers. A codec writes the reply.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use engine::{Charge, Container, Engine, RangeLsn, SlidingRenewal};
use hyper::{StatusCode, Version};
use percent_encoding::{AsciiSet, CONTROLS, PercentEncode, utf8_percent_encode};

use crate::message::body::Body;
use crate::message::fields::{Field, FieldValue, Fields};
use crate::message::work::Work;
use crate::protocol::error::Error;
use crate::protocol::limits::UNAUTHENTICATED_MESSAGE_BYTES;
use crate::protocol::session;

/// The answer of a handler.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    body: Body,
    charge: Charge,
    fields: Fields,
    work: Option<Box<Work>>,
    /// Countdowns to restart once the read can no longer be refused (T33).
    renewals: Vec<SlidingRenewal>,
}

impl Reply {
    /// Creates an answer with a JSON body.
    pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let mut reply = Self::empty(status);
        reply.body = body.into().into();
        reply.fields.set(Field::ContentType, FieldValue::Static("application/json"));
        reply
    }

    /// Creates an answer in the Prometheus text format.
    pub(crate) fn text(body: String) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = Bytes::from(body).into();
        reply.fields.set(Field::ContentType, FieldValue::Static("text/plain; version=0.0.4; charset=utf-8"));
        reply
    }

    /// Creates an answer with a certificate.
    pub(crate) fn pem(body: Bytes) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = Body::Shared(Some(body));
        reply.fields.set(Field::ContentType, FieldValue::Static("application/x-pem-file"));
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
        reply.fields.set(Field::ContentType, FieldValue::Static(kind));
        reply
    }

    /// Creates an answer whose body is produced while it is sent.
    pub(crate) fn streamed(content_type: &'static str, body: Body) -> Self {
        let mut reply = Self::empty(StatusCode::OK);
        reply.body = body;
        reply.fields.set(Field::ContentType, FieldValue::Static(content_type));
        reply
    }

    /// Creates an answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        let (body, charge) = (Bytes::new().into(), Charge::MINIMUM);
        Self { status, body, charge, fields: Fields::default(), work: None, renewals: Vec::new() }
    }

    /// Removes the body.
    pub(crate) fn without_body(self) -> Self {
        Self { body: Bytes::new().into(), ..self }
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
        if self.fields.remove(Field::TtlRemaining)
            && let Some(left) = left
        {
            self.fields.set(Field::TtlRemaining, FieldValue::Number(left));
        }
    }

    /// Sets a field to a text.
    pub(crate) fn with(mut self, field: Field, value: impl Display) -> Self {
        self.fields.text(field, value);
        self
    }

    /// Sets a field to a number.
    pub(crate) fn number(mut self, field: Field, value: u64) -> Self {
        self.fields.set(field, FieldValue::Number(value));
        self
    }

    /// Sets the number of items in a feed.
    pub(crate) fn item_count(self, count: usize) -> Self {
        self.number(Field::ItemCount, count as u64)
    }

    pub(crate) fn etag(self, etag: impl Display) -> Self {
        self.with(Field::Etag, etag)
    }

    /// Sets the fields of an answer about items: container, range and session token.
    pub(crate) fn placed(mut self, place: &ReplyOrigin<'_>) -> Self {
        place.write(&mut self.fields);
        self
    }

    /// Sets the fields of an answer about a container, which has no session token.
    pub(crate) fn owned_by_database(self, database: &str) -> Self {
        self.with(Field::OwnerPath, format_args!("dbs/{}", escaped(database)))
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the parts that a codec writes: the status, the fields and the body.
    pub(crate) fn into_parts(self) -> (StatusCode, Fields, Body) {
        (self.status, self.fields, self.body)
    }
}

/// The origin of an answer in a container.
#[derive(Debug)]
pub(crate) struct ReplyOrigin<'a> {
    pub(crate) container: &'a Container,
    /// The range, and the LSN that a session has seen with this answer.
    pub(crate) range: RangeLsn,
    /// The LSN of the item's last write, in an answer about one item.
    pub(crate) item: Option<u64>,
}

impl ReplyOrigin<'_> {
    fn write(&self, fields: &mut Fields) {
        let ReplyOrigin { container, range, item } = self;
        let path = (escaped(&container.database), escaped(container.name()));
        fields.text(Field::SessionToken, session::token(*range));
        fields.text(Field::RangeId, range.range);
        fields.text(Field::OwnerPath, format_args!("dbs/{}/colls/{}", path.0, path.1));
        fields.text(Field::OwnerRid, container.rid);
        fields.set(Field::Lsn, FieldValue::Number(range.lsn));
        if let Some(lsn) = item {
            fields.set(Field::ItemLsn, FieldValue::Number(*lsn));
        }
    }
}

/// Completes the answer to a request, successful or not. `place` is where an error happened, if it got that far.
pub(crate) fn finish(result: Result<Reply, Error>, activity: &str, place: Option<ReplyOrigin<'_>>) -> Reply {
    match result {
        Ok(reply) => reply,
        Err(error) => failure(&error, activity, place, usize::MAX),
    }
}

/// Returns the answer to a refused request. It echoes little of the request: a client that leaves answers unread must
/// not decide how large they are.
pub(crate) fn refusal(error: &Error, activity: &str) -> Reply {
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

fn failure(error: &Error, activity: &str, place: Option<ReplyOrigin<'_>>, message_bytes_max: usize) -> Reply {
    let wire = error.wire();
    if wire.status >= 500 {
        tracing::error!(activity, status = wire.status, "{error}");
    } else {
        tracing::debug!(activity, status = wire.status, "{error}");
    }
    let message = shortened(&wire.message, message_bytes_max);
    let message = format!("{message}\r\nActivityId: {activity}, bolide/{}", env!("CARGO_PKG_VERSION"));
    let body = error_body(wire.code, &message, error.additional_info());
    let status = StatusCode::from_u16(wire.status).expect("the error table has only valid status codes");
    let mut reply =
        Reply::json(status, body).charged(error.charge()).number(Field::Substatus, wire.substatus.into());
    if let Some(wait) = error.retry_after_ms() {
        reply = reply.number(Field::RetryAfterMs, wait);
    }
    match place {
        Some(place) => reply.placed(&place),
        None => reply,
    }
}

/// `{"code":…,"message":…}`, and `"additionalErrorInfo":…` if there is any.
fn error_body(code: &str, message: &str, additional: Option<&str>) -> String {
    use crate::protocol::json::{member, object, text};
    let additional = additional.map(|info| member("additionalErrorInfo", text(info)));
    object([member("code", text(code)), member("message", text(message))].into_iter().chain(additional))
        .to_json()
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
    fn names_that_no_header_can_carry_are_escaped() {
        assert_eq!(escaped("dbs/a b/colls/c").to_string(), "dbs/a b/colls/c");
        assert_eq!(escaped("dbs/é\n%").to_string(), "dbs/%C3%A9%0A%25");
    }
}
