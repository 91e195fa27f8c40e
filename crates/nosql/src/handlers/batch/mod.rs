//! Batch and bulk bodies: operations in, as many results out.
//!
//! Both requests look alike on the wire. A batch is atomic and has one partition key; a bulk request is many independent
//! operations that share a round trip, each with a key of its own. Bodies have one of two forms, and the answer has that of its
//! request: an array of JSON objects ([`json`]), or `HybridRow` ([`rows`]), which the .NET client sends and reads.

mod json;
mod results;
mod rows;

use document::{Document, PartitionKey};
use engine::{ItemName, Operation, Patch};
use hybridrow::OperationKind;
use query::Surface;

use crate::message::request::precondition;
use crate::protocol::error::Error;

pub(crate) use results::Results;

/// The form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    HybridRow,
}

impl Form {
    pub(crate) fn of(body: &[u8]) -> Form {
        if hybridrow::is_hybrid_row(body) { Form::HybridRow } else { Form::Json }
    }
}

/// One operation of the request.
pub(crate) struct Entry {
    pub(crate) key: Option<PartitionKey>,
    pub(crate) operation: Operation,
    pub(crate) preference: Preference,
}

/// The preferences of an operation for its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preference {
    /// A write has no body.
    pub(crate) minimal: bool,
    /// A read whose `ifMatch` holds is answered "not modified", without a body: the service does so in batches.
    pub(crate) not_modified: bool,
}

/// An operation as written in a request, in either form.
struct Given<'a> {
    kind: OperationKind,
    id: Option<&'a str>,
    body: Option<Document>,
    /// The partition key as in the header of a point operation.
    key: Option<&'a str>,
    if_match: Option<&'a str>,
    if_none_match: Option<&'a str>,
    minimal: bool,
}

/// Returns the operations of a request body, whose conditions use the geometry of that surface. The outer error refuses the
/// request, an inner one its operation.
pub(crate) fn parse(body: &[u8], surface: Surface) -> Result<Vec<Result<Entry, Error>>, Error> {
    match Form::of(body) {
        Form::Json => json::parse(body, surface),
        Form::HybridRow => rows::parse(body, surface),
    }
}

impl Given<'_> {
    fn entry(self, surface: Surface) -> Result<Entry, Error> {
        let Given { kind, id, body, key, if_match, if_none_match, minimal } = self;
        let in_body = body.as_ref().and_then(|body| body.root().get("id")?.as_str());
        let name = id.or(in_body).map(|id| ItemName::Id(id.to_owned()));
        let name = name
            .ok_or_else(|| Error::BadRequest(format!("The batch operation '{kind}' needs a string 'id'.")));
        let body = body.ok_or_else(|| {
            Error::BadRequest(format!("The batch operation '{kind}' needs a 'resourceBody'."))
        });
        let precondition = precondition(if_match, if_none_match);
        let operation = match kind {
            OperationKind::Create => Operation::Create { body: body? },
            OperationKind::Upsert => Operation::Upsert { body: body?, precondition },
            OperationKind::Replace => Operation::Replace { name: name?, body: body?, precondition },
            OperationKind::Read => Operation::Read { name: name?, precondition },
            OperationKind::Delete => Operation::Delete { name: name?, precondition },
            OperationKind::Patch => {
                let patch = Patch::from_value_on(&body?.root().to_value(), surface);
                Operation::Patch { name: name?, patch: patch.map_err(engine::Error::from)?, precondition }
            }
        };
        let key = key.map(PartitionKey::from_header).transpose()?;
        let not_modified = kind == OperationKind::Read && if_match.is_some();
        Ok(Entry { key, operation, preference: Preference { minimal, not_modified } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_request_is_refused_for_its_shape_only() {
        for (body, part) in [
            ("[]", "has no operations"),
            ("{}", "JSON array of operations, this is of type object"),
            ("", "This one is empty"),
            ("x", "or HybridRow, whose first byte is 0x81. This one begins with the byte 0x78 (invalid JSON"),
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
}
