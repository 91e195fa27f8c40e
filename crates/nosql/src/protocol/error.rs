//! The one map from errors to the wire: status, substatus, code, message.
//!
//! The engine's errors are grouped by remedy, clients expect status codes; nothing else in this crate translates
//! between the two. Wording that SDKs or their tests rely on is the service's. Every error has a JSON body, because
//! JavaScript clients always parse it.

use document::Value;
use engine::Charge;
use transport::Busy;

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The engine refused or failed.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// A body, key, id or path was refused.
    #[error(transparent)]
    Document(#[from] document::Error),
    /// A query was refused.
    #[error(transparent)]
    Query(#[from] query::Error),
    /// The request is wrong in some other way.
    #[error("{0}")]
    BadRequest(String),
    /// No valid credentials.
    #[error("{0}")]
    Unauthorized(String),
    /// Valid credentials that do not suffice.
    #[error("{0}")]
    Forbidden(String),
    /// No such path.
    #[error("no resource has the path '{0}'")]
    NoRoute(String),
    /// The path exists, the verb does not.
    #[error("{0}")]
    WrongVerb(String),
    /// A feature of the service that Bolide does not have yet.
    #[error("{0} not supported yet")]
    NotSupported(String),
    /// The body is larger than any request may be.
    #[error("the request body is too large")]
    BodyTooLarge,
    /// The body did not arrive in time.
    #[error("the request body did not arrive in time")]
    BodyTimeout,
    /// A page of a query took too long.
    #[error(
        "the query took longer than {0} seconds, which is all that this server gives one page ('max-query-time')"
    )]
    QueryTimeout(u64),
    /// The client's own deadline has passed. Nothing was changed.
    #[error("the time that the client gives this request passed before there was an answer")]
    ClientTimeout,
    /// The connection broke while the body was arriving.
    #[error("the request body could not be read: {0}")]
    BodyBroken(String),
    /// A purge on demand that cannot run now.
    #[error("the purge cannot run now: {0}")]
    PurgeStopped(&'static str),
    /// A key of the account was not changed.
    #[error(transparent)]
    Keys(#[from] account::Error),
    /// The answer to a bulk request has no space for this read.
    #[error("the answer to this request has no room for another item; read it in a request of its own")]
    AnswerFull,
    /// A partition key range that does not exist.
    #[error("partition key range '{0}' does not exist")]
    RangeGone(String),
    /// The item of a bulk operation lies in another range than the one that the request names. Nothing was done.
    #[error(
        "the partition key of this operation is in partition key range '{own}', and the request names range '{named}'"
    )]
    OtherRange {
        /// The range of the item.
        own: usize,
        /// The range that the request names.
        named: usize,
    },
    /// The client has seen a later state than this server has.
    #[error("the read session is not available for the input session token")]
    SessionNotAvailable,
    /// The container with this name is not the one the client expects.
    #[error("container resource id '{given}' does not match '{current}'")]
    ContainerRecreated {
        /// The id that the client sent.
        given: String,
        /// The current id.
        current: String,
    },
    /// A query over several partition keys whose rows the client has to join. The message is the service's.
    #[error(
        "The provided cross partition query can not be directly served by the gateway. This is a first chance (internal) \
         exception that all newer clients will know how to handle gracefully. This exception is traced, but unless you \
         see it bubble up as an exception (which only happens on older SDK clients), then you can safely ignore this \
         message."
    )]
    NeedsPlan {
        /// The plan that the client would get on request, as JSON text.
        plan: String,
    },
    /// The server is overloaded.
    #[error("the server has more to do than it can, try again in {retry_after_ms} ms")]
    Busy {
        /// When to retry.
        retry_after_ms: u64,
    },
    /// A handler panicked; the log says where.
    #[error("internal error")]
    Panicked,
}

/// The parts of an error that are sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) status: u16,
    pub(crate) substatus: u32,
    pub(crate) code: &'static str,
    /// The message, without the activity id that is appended.
    pub(crate) message: String,
}

const KEY_MISMATCH: &str = "Partition key provided either doesn't correspond to definition in the collection or \
                            doesn't match partition key field values specified in the document.";
/// Both wordings of the service: its backend's, and its gateway's older one.
const MISSING: &str = "Resource Not Found. Entity with the specified id does not exist in the system.";
const EXISTS: &str = "Entity with the specified id already exists in the system.";

/// Bolide's substatus: a change would expire more items at once than the owner allows (T30).
const NOT_CONFIRMED: u32 = 9030;

/// Bolide's substatus: a hold forbids it (T31).
const HELD: u32 = 9031;

impl From<Busy> for Error {
    fn from(Busy { retry_after_ms }: Busy) -> Self {
        Self::Busy { retry_after_ms }
    }
}

impl Error {
    /// Returns how long a throttled client should wait.
    pub(crate) fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Engine(engine::Error::TooManyRequests { retry_after_ms })
            | Self::Busy { retry_after_ms } => Some(*retry_after_ms),
            _ => None,
        }
    }

    /// Returns what a client needs besides the message: the member `additionalErrorInfo` of the answer.
    pub(crate) fn additional_info(&self) -> Option<&str> {
        match self {
            Self::NeedsPlan { plan } => Some(plan),
            _ => None,
        }
    }

    /// Returns the charge of the refused request.
    pub(crate) fn charge(&self) -> Charge {
        if self.retry_after_ms().is_some() { Charge::THROTTLED } else { Charge::MINIMUM }
    }

    pub(crate) fn wire(&self) -> Wire {
        match self {
            Self::Engine(error) => engine_wire(error),
            Self::Document(error) if error.is_corrupt() => internal(&error.to_string()),
            Self::Document(error) => bad_request(&error.to_string()),
            Self::Query(error) => query_wire(error),
            Self::BadRequest(message) => bad_request(message),
            Self::Unauthorized(message) => plain(401, 0, "Unauthorized", message),
            Self::Forbidden(message) => plain(403, 0, "Forbidden", message),
            Self::NoRoute(_) => errors(404, 0, "NotFound", &self.to_string()),
            Self::WrongVerb(message) => errors(405, 0, "MethodNotAllowed", message),
            Self::NotSupported(_) => errors(400, 0, "NotSupported", &self.to_string()),
            Self::BodyTooLarge => errors(413, 0, "RequestEntityTooLarge", "Request size is too large"),
            Self::BodyTimeout | Self::QueryTimeout(_) | Self::ClientTimeout => {
                errors(408, 0, "RequestTimeout", &self.to_string())
            }
            Self::BodyBroken(_) => bad_request(&self.to_string()),
            Self::PurgeStopped(_) | Self::Keys(account::Error::SetByOperator { .. }) => {
                errors(409, 0, "Conflict", &self.to_string())
            }
            Self::Keys(account::Error::NotSaved(_)) => internal(&self.to_string()),
            Self::AnswerFull => errors(413, 3402, "RequestEntityTooLarge", &self.to_string()),
            Self::RangeGone(_) | Self::OtherRange { .. } => errors(410, 1002, "Gone", &self.to_string()),
            Self::SessionNotAvailable => errors(
                404,
                1002,
                "NotFound",
                "The read session is not available for the input session token.",
            ),
            Self::ContainerRecreated { .. } => errors(400, 1024, "BadRequest", &self.to_string()),
            Self::NeedsPlan { .. } => plain(400, 1004, "BadRequest", &self.to_string()),
            Self::Busy { .. } => too_many_requests(&self.to_string()),
            Self::Panicked => internal("the request failed; the server's log has the details"),
        }
    }
}

fn engine_wire(error: &engine::Error) -> Wire {
    use engine::Error as E;
    match error {
        E::NotFound { what } => errors(404, 0, "NotFound", &format!("{MISSING} ({what})")),
        E::OwnerNotFound { what } => {
            errors(404, 1003, "NotFound", &format!("Owner resource does not exist. ({what})"))
        }
        E::Exists { what } => errors(409, 0, "Conflict", &format!("{EXISTS} ({what})")),
        E::UniqueKeyTaken { paths } => {
            errors(409, 0, "Conflict", &format!("Unique index constraint violation. (paths {paths})"))
        }
        E::PreconditionFailed { what } => errors(
            412,
            0,
            "PreconditionFailed",
            &format!("One of the specified pre-condition is not met. ({what})"),
        ),
        E::Invalid { message } => bad_request(message),
        E::InvalidContinuation { why } => bad_request(&format!("Invalid Continuation Token ({why})")),
        E::InvalidTtl { text } => bad_request(&format!(
            "The input ttl '{text}' is invalid. Ensure to provide a nonzero positive integer less than or equal to \
             '2147483647', or '-1' which means never expire."
        )),
        E::KeyMismatch { .. } => errors(400, 1001, "BadRequest", KEY_MISMATCH),
        E::TooLarge { .. } => {
            errors(413, 0, "RequestEntityTooLarge", &format!("Request size is too large ({error})"))
        }
        E::NotSupported { .. } => errors(400, 0, "NotSupported", &error.to_string()),
        E::Query(error) => query_wire(error),
        E::Fault(fault) => bad_request(&fault.to_string()),
        E::Definition(error) => bad_request(&error.to_string()),
        E::Patch(error) => bad_request(&error.to_string()),
        E::Held { .. } => errors(403, HELD, "Forbidden", &error.to_string()),
        E::NotConfirmed { .. } => errors(
            403,
            NOT_CONFIRMED,
            "Forbidden",
            &format!(
                "{error}. Send the header '{}: true' to go on.",
                crate::protocol::headers::CONFIRM_EXPIRY
            ),
        ),
        E::TooManyRequests { .. } => too_many_requests(&error.to_string()),
        E::ClockSuspect { .. } | E::Unarchived | E::NoRoom(_) | E::Unavailable(_) => {
            errors(503, 0, "ServiceUnavailable", &error.to_string())
        }
        E::HistoryGone => bad_request("You must read the change feed from within the retention period."),
        E::Cancelled => errors(408, 0, "RequestTimeout", &error.to_string()),
        // Containers know none of these.
        E::DuplicateKey { .. } | E::Conflict { .. } | E::TooOld { .. } | E::Language(_) => {
            internal(&error.to_string())
        }
        E::Corrupt(_) => internal(&error.to_string()),
    }
}

/// Query errors are JSON inside the message: each with its place, where there is one, and the service's own number.
fn query_wire(error: &query::Error) -> Wire {
    if *error == query::Error::ComposedAggregate {
        // An error of the planner, which has neither position nor number.
        return bad_request(&error.to_string());
    }
    let reports = error.reports().iter().map(report).collect::<Vec<_>>().join(",");
    Wire {
        status: 400,
        substatus: 0,
        code: "BadRequest",
        message: format!("Message: {{\"errors\":[{reports}]}}"),
    }
}

fn report(report: &query::Report) -> String {
    let location = report
        .location
        .map(|(start, end)| format!("\"location\":{{\"start\":{start},\"end\":{end}}},"))
        .unwrap_or_default();
    let code = match report.code {
        query::Code::Text(text) => quoted(text),
        query::Code::Number(number) => number.to_string(),
    };
    format!("{{\"severity\":\"Error\",{location}\"code\":{code},\"message\":{}}}", quoted(&report.message))
}

fn bad_request(message: &str) -> Wire {
    errors(400, 0, "BadRequest", message)
}

/// An error that SDKs retry after a pause. 503 would make them look for another region.
fn too_many_requests(message: &str) -> Wire {
    errors(429, 3200, "TooManyRequests", &format!("Request rate is large. ({message})"))
}

fn internal(message: &str) -> Wire {
    errors(500, 0, "InternalServerError", message)
}

/// The data plane's form: a JSON object inside the text.
fn errors(status: u16, substatus: u32, code: &'static str, text: &str) -> Wire {
    Wire { status, substatus, code, message: format!("Message: {{\"Errors\":[{}]}}", quoted(text)) }
}

/// The gateway's form: just the text.
fn plain(status: u16, substatus: u32, code: &'static str, text: &str) -> Wire {
    Wire { status, substatus, code, message: text.to_owned() }
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_json()
}

#[cfg(test)]
mod tests {
    use engine::Error as E;

    use super::*;

    fn text() -> String {
        "x".to_owned()
    }

    /// The whole wire of every error, as clients see it. A change here is a change of the protocol.
    #[test]
    #[expect(clippy::too_many_lines, reason = "one table, one row each")]
    fn the_map_is_what_clients_rely_on() {
        let syntax = query::Error::Syntax { start: 9, end: 12, near: "FRM".to_owned() };
        let missing = query::Error::Refused(vec![
            query::Report { location: Some((1, 5)), code: query::Code::Text("SC2001"), message: text() },
            query::Report { location: None, code: query::Code::Number(2206), message: text() },
        ]);
        let twice = query::Error::DuplicateParameter { name: "@a".to_owned() };
        let composed = query::Error::ComposedAggregate;
        let large = E::TooLarge { what: "the item", actual: 9, limit: 8 };
        let mismatch = E::KeyMismatch { given: text(), expected: text() };
        let table = [
            (
                E::NotFound { what: text() }.into(),
                "404/0 NotFound Resource Not Found. Entity with the specified id does not exist in the system. (x)",
            ),
            (
                E::OwnerNotFound { what: text() }.into(),
                "404/1003 NotFound Owner resource does not exist. (x)",
            ),
            (
                E::Exists { what: text() }.into(),
                "409/0 Conflict Entity with the specified id already exists in the system. (x)",
            ),
            (
                E::UniqueKeyTaken { paths: "/a".to_owned() }.into(),
                "409/0 Conflict Unique index constraint violation. (paths /a)",
            ),
            (
                E::PreconditionFailed { what: text() }.into(),
                "412/0 PreconditionFailed One of the specified pre-condition is not met. (x)",
            ),
            (E::Invalid { message: text() }.into(), "400/0 BadRequest x"),
            (E::InvalidContinuation { why: "x" }.into(), "400/0 BadRequest Invalid Continuation Token (x)"),
            (
                E::InvalidTtl { text: "null".to_owned() }.into(),
                "400/0 BadRequest The input ttl 'null' is invalid. Ensure to provide a nonzero positive integer less than or equal to '2147483647', or '-1' which means never expire.",
            ),
            (
                mismatch.into(),
                "400/1001 BadRequest Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document.",
            ),
            (
                large.into(),
                "413/0 RequestEntityTooLarge Request size is too large (the item is 9, the limit is 8)",
            ),
            (E::NotSupported { what: text() }.into(), "400/0 NotSupported x is not supported"),
            (
                E::Held { what: "the item", reason: text() }.into(),
                "403/9031 Forbidden the item is under a hold (x) and cannot be changed or deleted",
            ),
            (
                E::NotConfirmed { what: text() }.into(),
                "403/9030 Forbidden the change is not confirmed: x. Send the header 'x-bolide-confirm-expiry: true' to go on.",
            ),
            (
                E::TooManyRequests { retry_after_ms: 7 }.into(),
                "429/3200 TooManyRequests Request rate is large. (the request rate is larger than the provisioned throughput, try again in 7 ms)",
            ),
            (
                E::ClockSuspect { what: "x" }.into(),
                "503/0 ServiceUnavailable the clock is suspect: an operator must accept or reject the time before x",
            ),
            (
                E::Unarchived.into(),
                "503/0 ServiceUnavailable its expired items are not in the archive yet, so it cannot be dropped",
            ),
            (E::NoRoom(text()).into(), "503/0 ServiceUnavailable x"),
            (E::Unavailable(text()).into(), "503/0 ServiceUnavailable the store is unavailable: x"),
            (
                E::HistoryGone.into(),
                "400/0 BadRequest You must read the change feed from within the retention period.",
            ),
            (E::Cancelled.into(), "408/0 RequestTimeout the request was cancelled"),
            (E::Corrupt(text()).into(), "500/0 InternalServerError the store is damaged: x"),
            (document::Error::Invalid { message: text() }.into(), "400/0 BadRequest x"),
            (
                document::Error::Corrupt { message: text() }.into(),
                "500/0 InternalServerError corrupt stored bytes: x",
            ),
            (Error::BadRequest(text()), "400/0 BadRequest x"),
            (Error::Unauthorized(text()), "401/0 Unauthorized x"),
            (Error::Forbidden(text()), "403/0 Forbidden x"),
            (Error::NoRoute("/x".to_owned()), "404/0 NotFound no resource has the path '/x'"),
            (Error::WrongVerb(text()), "405/0 MethodNotAllowed x"),
            (Error::NotSupported("users are".to_owned()), "400/0 NotSupported users are not supported yet"),
            (Error::BodyTooLarge, "413/0 RequestEntityTooLarge Request size is too large"),
            (Error::BodyTimeout, "408/0 RequestTimeout the request body did not arrive in time"),
            (
                Error::QueryTimeout(7),
                "408/0 RequestTimeout the query took longer than 7 seconds, which is all that this server gives one page \
                 ('max-query-time')",
            ),
            (Error::BodyBroken(text()), "400/0 BadRequest the request body could not be read: x"),
            (
                Error::OtherRange { own: 2, named: 1 },
                "410/1002 Gone the partition key of this operation is in partition key range '2', and the request names \
                 range '1'",
            ),
            (Error::RangeGone("7".to_owned()), "410/1002 Gone partition key range '7' does not exist"),
            (
                Error::AnswerFull,
                "413/3402 RequestEntityTooLarge the answer to this request has no room for another item; read it in a \
                 request of its own",
            ),
            (
                account::Error::SetByOperator { kind: account::Kind::Primary, setting: "key" }.into(),
                "409/0 Conflict the primary key is set by the setting 'key': change it there and restart the server; a key file is also read again on SIGHUP",
            ),
            (
                account::Error::NotSaved(std::io::Error::other("x")).into(),
                "500/0 InternalServerError the new key could not be saved, and the old one stays valid: x",
            ),
            (Error::PurgeStopped("why"), "409/0 Conflict the purge cannot run now: why"),
            (
                Error::SessionNotAvailable,
                "404/1002 NotFound The read session is not available for the input session token.",
            ),
            (
                Error::ContainerRecreated { given: text(), current: "y".to_owned() },
                "400/1024 BadRequest container resource id 'x' does not match 'y'",
            ),
            (
                Error::NeedsPlan { plan: text() },
                "400/1004 BadRequest The provided cross partition query can not be directly served by the gateway. This is a \
                 first chance (internal) exception that all newer clients will know how to handle gracefully. This exception \
                 is traced, but unless you see it bubble up as an exception (which only happens on older SDK clients), then \
                 you can safely ignore this message.",
            ),
            (
                Error::Busy { retry_after_ms: 7 },
                "429/3200 TooManyRequests Request rate is large. (the server has more to do than it can, try again in 7 ms)",
            ),
            (
                Error::Panicked,
                "500/0 InternalServerError the request failed; the server's log has the details",
            ),
            (
                syntax.clone().into(),
                r#"400/0 BadRequest {"errors":[{"severity":"Error","location":{"start":9,"end":12},"code":"SC1001","message":"Syntax error, incorrect syntax near 'FRM'."}]}"#,
            ),
            (
                E::Query(syntax).into(),
                r#"400/0 BadRequest {"errors":[{"severity":"Error","location":{"start":9,"end":12},"code":"SC1001","message":"Syntax error, incorrect syntax near 'FRM'."}]}"#,
            ),
            (
                missing.into(),
                r#"400/0 BadRequest {"errors":[{"severity":"Error","location":{"start":1,"end":5},"code":"SC2001","message":"x"},{"severity":"Error","code":2206,"message":"x"}]}"#,
            ),
            (
                twice.into(),
                r#"400/0 BadRequest {"errors":[{"severity":"Error","code":"SC9002","message":"the parameter '@a' was given more than once"}]}"#,
            ),
            (
                composed.into(),
                "400/0 BadRequest Compositions of aggregates and other expressions are not allowed.",
            ),
        ];
        for (error, expected) in table {
            let wire = error.wire();
            let message = wire.message.strip_prefix("Message: ").unwrap_or(&wire.message);
            let message = message
                .strip_prefix("{\"Errors\":[\"")
                .and_then(|rest| rest.strip_suffix("\"]}"))
                .unwrap_or(message);
            let shown = format!("{}/{} {} {message}", wire.status, wire.substatus, wire.code);
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn text_in_messages_stays_valid_json() {
        let wire = Error::BadRequest("a \"quoted\"\nline".to_owned()).wire();
        let json = wire.message.strip_prefix("Message: ").unwrap();
        let value = document::parse_json(json.as_bytes()).unwrap();
        assert_eq!(
            value.get("Errors").and_then(|errors| errors.as_array()?[0].as_str()),
            Some("a \"quoted\"\nline")
        );
    }
}
