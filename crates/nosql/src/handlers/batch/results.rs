//! The results of a batch or bulk request, in the form of the request.

use engine::{Charge, Effect, Item, Outcome, RangeLsn};
use hybridrow::{OperationResult, ResultStream};

use super::{Form, Preference};
use crate::handlers::items;
use crate::protocol::error::Error;

/// The results so far.
pub(crate) struct Results {
    output: Output,
    /// Whether writes return no body, whatever the operation prefers.
    minimal: bool,
    /// The bytes left for resource bodies.
    room: usize,
    full: bool,
    all_succeeded: bool,
    charge: Charge,
    /// The first range that an operation reached, with the highest LSN seen of it.
    range: Option<RangeLsn>,
}

/// The bytes of the answer.
enum Output {
    Json(Vec<u8>),
    HybridRow(ResultStream),
}

/// The result of one operation.
struct Shown<'a> {
    status: u16,
    substatus: u32,
    charge: Charge,
    etag: Option<&'a str>,
    body: Option<&'a [u8]>,
    retry_after_ms: Option<u64>,
    /// The message of an error.
    message: Option<String>,
}

impl Shown<'_> {
    fn new(status: u16, charge: Charge) -> Self {
        Self { status, substatus: 0, charge, etag: None, body: None, retry_after_ms: None, message: None }
    }
}

impl Results {
    /// `minimal` leaves written items out of the results, not read ones.
    pub(crate) fn new(form: Form, minimal: bool) -> Self {
        let output = match form {
            Form::Json => Output::Json(vec![b'[']),
            Form::HybridRow => Output::HybridRow(ResultStream::default()),
        };
        Self {
            output,
            minimal,
            room: usize::MAX,
            full: false,
            all_succeeded: true,
            charge: Charge::default(),
            range: None,
        }
    }

    /// Creates results whose resource bodies have at most `bytes` together. The first one that does not fit is the
    /// last: from there on reads fail and writes return no body.
    pub(crate) fn bounded(form: Form, minimal: bool, bytes: usize) -> Self {
        Self { room: bytes, ..Self::new(form, minimal) }
    }

    /// Returns whether no further resource body is accepted.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) fn all_succeeded(&self) -> bool {
        self.all_succeeded
    }

    pub(crate) fn push(&mut self, result: &Result<Outcome, Error>, preference: Preference) {
        match result {
            Ok(outcome) => self.success(outcome, preference),
            Err(error) => self.failure(error),
        }
    }

    /// Adds an operation that was not run, or was undone, because of another one.
    pub(crate) fn push_dependent(&mut self) {
        self.all_succeeded = false;
        self.output.push(&Shown::new(424, Charge::default()));
    }

    /// Returns the body, whether every operation succeeded, the charge, and the first range that an operation reached, with
    /// the highest LSN seen of it.
    pub(crate) fn finish(self) -> (Vec<u8>, bool, Charge, Option<RangeLsn>) {
        (self.output.finish(), self.all_succeeded, self.charge, self.range)
    }

    /// Keeps one pair of range and number: the number of one range means nothing in another.
    fn reach(&mut self, reached: RangeLsn) {
        let kept = match self.range {
            Some(known) if known.range == reached.range => {
                RangeLsn { lsn: known.lsn.max(reached.lsn), ..known }
            }
            Some(known) => known,
            None => reached,
        };
        self.range = Some(kept);
    }

    fn success(&mut self, outcome: &Outcome, preference: Preference) {
        let effect = if preference.not_modified { Effect::NotModified } else { outcome.effect };
        let silent = (self.minimal || preference.minimal) && effect != Effect::Read;
        let body = match &outcome.item {
            Some(item) if !silent && effect != Effect::NotModified => self.body(item),
            _ => None,
        };
        if self.full && body.is_none() && effect == Effect::Read {
            return self.failure(&Error::AnswerFull);
        }
        // The service counts an unmodified item as a reason for "multi-status".
        self.all_succeeded &= effect != Effect::NotModified;
        self.output.push(&Shown {
            etag: outcome.item.as_ref().map(|item| item.etag.to_string()).as_deref(),
            body: body.as_deref(),
            ..Shown::new(items::status(effect).as_u16(), outcome.charge)
        });
        self.charge += outcome.charge;
        self.reach(outcome.range);
    }

    /// Returns the bytes of an item if they fit.
    fn body(&mut self, item: &Item) -> Option<Vec<u8>> {
        if self.full {
            return None;
        }
        let mut body = Vec::new();
        item.write_json(&mut body);
        self.full = body.len() > self.room;
        if self.full {
            return None;
        }
        self.room -= body.len();
        Some(body)
    }

    fn failure(&mut self, error: &Error) {
        self.all_succeeded = false;
        let (wire, charge) = (error.wire(), error.charge());
        self.output.push(&Shown {
            substatus: wire.substatus,
            retry_after_ms: error.retry_after_ms(),
            message: Some(wire.message),
            ..Shown::new(wire.status, charge)
        });
        self.charge += charge;
    }
}

impl Output {
    fn push(&mut self, shown: &Shown<'_>) {
        match self {
            Output::Json(text) => push_json(text, shown),
            Output::HybridRow(stream) => stream.push(&OperationResult {
                status: i32::from(shown.status),
                substatus: Some(shown.substatus as i32),
                etag: shown.etag,
                resource_body: shown.body,
                retry_after_ms: shown.retry_after_ms.map(|wait| u32::try_from(wait).unwrap_or(u32::MAX)),
                charge: Some(shown.charge.0 as f64 / 100.0),
            }),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Output::Json(mut text) => {
                text.push(b']');
                text
            }
            Output::HybridRow(stream) => stream.finish(),
        }
    }
}

fn push_json(text: &mut Vec<u8>, shown: &Shown<'_>) {
    let quoted = |text: &str| document::Value::String(text.to_owned()).to_json();
    let Shown { status, substatus, charge, .. } = shown;
    text.extend_from_slice(if text.len() > 1 { b",{" } else { b"{" });
    let mut member = |member: &str| text.extend_from_slice(member.as_bytes());
    member(&format!("\"statusCode\":{status},\"requestCharge\":{charge}"));
    if let Some(etag) = shown.etag {
        member(&format!(",\"eTag\":{}", quoted(etag)));
    }
    if let Some(wait) = shown.retry_after_ms {
        member(&format!(",\"retryAfterMilliseconds\":{wait}"));
    }
    if let Some(message) = &shown.message {
        // Different SDKs read the two spellings of the substatus.
        let message = quoted(message);
        member(&format!(
            ",\"subStatusCode\":{substatus},\"substatusCode\":{substatus},\"message\":{message}"
        ));
    }
    if let Some(body) = shown.body {
        member(",\"resourceBody\":");
        text.extend_from_slice(body);
    }
    text.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_number() {
        let mut results = Results::new(Form::Json, false);
        results.push_dependent();
        results.push(&Err(Error::RangeGone("7".to_owned())), Preference::default());
        let (body, all_succeeded, _, _) = results.finish();
        let value = document::parse_json(&body).unwrap();
        let list = value.as_array().unwrap();
        assert!(!all_succeeded);
        assert_eq!(list.len(), 2);
        assert_eq!(list[1].get("statusCode").and_then(document::Value::as_i64), Some(410));
        assert_eq!(list[1].get("subStatusCode").and_then(document::Value::as_i64), Some(1002));
    }
}
