//! Batch and bulk bodies: an array of operations in, an array of results of the same length out.
//!
//! Both requests look alike on the wire. A batch is atomic and has one partition key; a bulk request is many
//! independent operations that share a round trip, each with a key of its own.

use document::{Document, PartitionKey, ValueRef};
use engine::{Charge, Effect, Item, ItemName, Operation, Outcome, Patch, RangeLsn};
use query::Surface;

use crate::error::Error;
use crate::items;
use crate::request::precondition;

/// One operation of the request, or what is wrong with it.
pub(crate) struct Entry {
    pub(crate) key: Option<PartitionKey>,
    pub(crate) operation: Operation,
}

/// The operations of a request body, whose conditions compute on that surface. The outer error refuses the request, an inner
/// one its operation.
pub(crate) fn parse(body: &[u8], surface: Surface) -> Result<Vec<Result<Entry, Error>>, Error> {
    let body = Document::decode_body(body)?;
    let list = body
        .root()
        .as_array()
        .ok_or_else(|| Error::BadRequest("A batch request must be a JSON array of operations.".to_owned()))?;
    engine::check_batch_size(list.len())?;
    Ok(list.iter().map(|value| entry(value, surface)).collect())
}

fn entry(value: ValueRef<'_>, surface: Surface) -> Result<Entry, Error> {
    let text = |name: &str| value.get(name).and_then(ValueRef::as_str);
    let kind = text("operationType")
        .ok_or_else(|| Error::BadRequest("A batch operation needs a string 'operationType'.".to_owned()))?;
    let name = || {
        let id = text("id").or_else(|| value.get("resourceBody")?.get("id")?.as_str());
        let missing = || Error::BadRequest(format!("The batch operation '{kind}' needs a string 'id'."));
        id.map(|id| ItemName::Id(id.to_owned())).ok_or_else(missing)
    };
    let resource = || {
        let missing = || Error::BadRequest(format!("The batch operation '{kind}' needs a 'resourceBody'."));
        value.get("resourceBody").ok_or_else(missing)
    };
    let body = || Ok::<_, Error>(Document::from_view(resource()?)?);
    let precondition = precondition(text("ifMatch"), text("ifNoneMatch"));
    let operation = match kind.to_ascii_lowercase().as_str() {
        "create" => Operation::Create { body: body()? },
        "upsert" => Operation::Upsert { body: body()?, precondition },
        "replace" => Operation::Replace { name: name()?, body: body()?, precondition },
        "read" => Operation::Read { name: name()?, precondition },
        "delete" => Operation::Delete { name: name()?, precondition },
        "patch" => {
            let patch = Patch::from_value_on(&resource()?.to_value(), surface);
            let patch = patch.map_err(engine::Error::from)?;
            Operation::Patch { name: name()?, patch, precondition }
        }
        other => return Err(Error::BadRequest(format!("The batch operation type '{other}' is not known."))),
    };
    let key = text("partitionKey").map(PartitionKey::from_header).transpose()?;
    Ok(Entry { key, operation })
}

/// Results on their way to the wire.
pub(crate) struct Results {
    body: Vec<u8>,
    minimal: bool,
    /// How many bytes of resource bodies still fit.
    room: usize,
    full: bool,
    all_succeeded: bool,
    charge: Charge,
    /// The range that the answer is to name, if it was reached.
    wanted: Option<usize>,
    range: Option<RangeLsn>,
}

impl Results {
    /// `minimal` leaves written items out of the results, not read ones.
    pub(crate) fn new(minimal: bool) -> Self {
        Self {
            body: vec![b'['],
            minimal,
            room: usize::MAX,
            full: false,
            all_succeeded: true,
            charge: Charge::default(),
            wanted: None,
            range: None,
        }
    }

    /// The same; where operations were in several ranges, the answer names this one, if it was among them.
    pub(crate) fn preferring(self, range: Option<usize>) -> Self {
        Self { wanted: range, ..self }
    }

    /// Results whose resource bodies have at most `bytes` together. The first one that does not fit ends them all:
    /// from there on reads fail and writes have none.
    pub(crate) fn bounded(minimal: bool, bytes: usize) -> Self {
        Self { room: bytes, ..Self::new(minimal) }
    }

    /// Whether no further resource body will be taken.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) fn all_succeeded(&self) -> bool {
        self.all_succeeded
    }

    pub(crate) fn push(&mut self, result: &Result<Outcome, Error>) {
        match result {
            Ok(outcome) => self.success(outcome),
            Err(error) => self.failure(error),
        }
    }

    /// An operation that was not run, or was undone, because of another one.
    pub(crate) fn push_dependent(&mut self) {
        self.comma();
        self.all_succeeded = false;
        self.body.extend_from_slice(b"{\"statusCode\":424,\"requestCharge\":0}");
    }

    /// The body, whether every operation succeeded, the charge, and a range that an operation was in, with the highest LSN
    /// that was seen of it.
    pub(crate) fn finish(mut self) -> (Vec<u8>, bool, Charge, Option<RangeLsn>) {
        self.body.push(b']');
        (self.body, self.all_succeeded, self.charge, self.range)
    }

    /// Keeps one pair of all: a number of one range says nothing about another.
    fn reach(&mut self, reached: RangeLsn) {
        let kept = match self.range {
            Some(known) if known.range == reached.range => {
                RangeLsn { lsn: known.lsn.max(reached.lsn), ..known }
            }
            Some(known) if self.wanted != Some(reached.range) => known,
            Some(_) | None => reached,
        };
        self.range = Some(kept);
    }

    fn success(&mut self, outcome: &Outcome) {
        let start = self.body.len();
        self.comma();
        let status = items::status(outcome.effect).as_u16();
        self.text(&format!("{{\"statusCode\":{status},\"requestCharge\":{}", outcome.charge));
        if let Some(item) = &outcome.item {
            let etag = document::Value::String(item.etag.to_string()).to_json();
            self.text(&format!(",\"eTag\":{etag}"));
            let silent = self.minimal && outcome.effect != Effect::Read;
            if !silent && outcome.effect != Effect::NotModified {
                self.resource(item);
                if self.full && outcome.effect == Effect::Read {
                    self.body.truncate(start);
                    return self.failure(&Error::AnswerFull);
                }
            }
        }
        self.body.push(b'}');
        self.charge += outcome.charge;
        self.reach(outcome.range);
    }

    /// Writes an item if it fits.
    fn resource(&mut self, item: &Item) {
        if self.full {
            return;
        }
        let start = self.body.len();
        self.text(",\"resourceBody\":");
        item.write_json(&mut self.body);
        let bytes = self.body.len() - start;
        if bytes > self.room {
            self.full = true;
            self.body.truncate(start);
        } else {
            self.room -= bytes;
        }
    }

    fn failure(&mut self, error: &Error) {
        self.comma();
        self.all_succeeded = false;
        let wire = error.wire();
        let message = document::Value::String(wire.message).to_json();
        let charge = error.charge();
        let wait = error.retry_after_ms().map(|wait| format!("\"retryAfterMilliseconds\":{wait},"));
        // The two spellings of the substatus are read by different SDKs.
        self.text(&format!(
            "{{\"statusCode\":{},\"subStatusCode\":{},\"substatusCode\":{},\"requestCharge\":{charge},{}\"message\":{message}}}",
            wire.status,
            wire.substatus,
            wire.substatus,
            wait.unwrap_or_default()
        ));
        self.charge += charge;
    }

    fn comma(&mut self) {
        if self.body.len() > 1 {
            self.body.push(b',');
        }
    }

    fn text(&mut self, text: &str) {
        self.body.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_request_is_refused_for_its_shape_only() {
        for (body, part) in [
            ("[]", "has no operations"),
            ("{}", "JSON array"),
            (
                &format!("[{}]", vec!["{}"; 101].join(",")),
                "more operations than what is supported. It has 101",
            ),
        ] {
            let Err(error) = parse(body.as_bytes(), Surface::Globe) else { panic!("{body}") };
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn each_operation_is_refused_alone() {
        let body = r#"[{"operationType":"Create","resourceBody":{"id":"1"},"partitionKey":"[\"x\"]"},
            {"operationType":"Delete"}, {"operationType":"Fly"}, {}, 7,
            {"operationType":"Read","id":"1","partitionKey":"nonsense"},
            {"operationType":"delete","id":"1","ifMatch":"e"}]"#;
        let entries = parse(body.as_bytes(), Surface::Globe).unwrap();
        let good: Vec<bool> = entries.iter().map(Result::is_ok).collect();
        assert_eq!(good, [true, false, false, false, false, false, true]);
    }

    #[test]
    fn results_keep_their_number() {
        let mut results = Results::new(false);
        results.push_dependent();
        results.push(&Err(Error::RangeGone("7".to_owned())));
        let (body, all_succeeded, _, _) = results.finish();
        let value = document::parse_json(&body).unwrap();
        let list = value.as_array().unwrap();
        assert!(!all_succeeded);
        assert_eq!(list.len(), 2);
        assert_eq!(list[1].get("statusCode").and_then(document::Value::as_i64), Some(410));
        assert_eq!(list[1].get("subStatusCode").and_then(document::Value::as_i64), Some(1002));
    }
}
