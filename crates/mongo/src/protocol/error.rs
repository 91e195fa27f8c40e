//! The one map from errors to the wire: code, name, message, labels.
//!
//! The engine's errors say what the caller can do, those of the language have codes; nothing else in this crate translates
//! between the two. Wording that drivers, tools or their tests look for is MongoDB's; the rest is ours.

use bson::{Document, RawDocument, Value, ValueRef};
use mql::Code;
use transport::Busy;

use crate::protocol::reply::{Reply, list};

/// A result with this crate's error.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A driver may run the whole transaction again.
pub(crate) const TRANSIENT_TRANSACTION: &str = "TransientTransactionError";
/// A driver may resume the change stream where it was.
pub(crate) const RESUMABLE_CHANGE_STREAM: &str = "ResumableChangeStreamError";
/// The server has too much to do.
const SYSTEM_OVERLOADED: &str = "SystemOverloadedError";
/// Nothing was done, and a driver may try again.
const RETRYABLE: &str = "RetryableError";
/// A driver may send the write again.
pub(crate) const RETRYABLE_WRITE: &str = "RetryableWriteError";

/// The field of a command that allows any number of items to expire at once by it (T30).
pub(crate) const CONFIRM_EXPIRY: &str = "bolideConfirmExpiry";

const WRITE_CONFLICT: &str = "Caused by :: Write conflict during plan execution and yielding is disabled. :: Please retry your \
                              operation or multi-document transaction.";

/// Why a command failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Error {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// What drivers decide by: whether to try again, above all.
    pub(crate) labels: Vec<String>,
    /// Whether no labels may be added any more.
    pub(crate) labels_are_final: bool,
    /// Fields of this error alone, such as `keyPattern`.
    pub(crate) extra: Document,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
            labels: Vec::new(),
            labels_are_final: false,
            extra: Document::new(),
        }
    }

    pub(crate) fn bad_value(message: impl Into<String>) -> Error {
        Error::new(Code::BAD_VALUE, message)
    }

    /// Returns the error for something that is known and not supported.
    pub(crate) fn not_supported(what: impl std::fmt::Display) -> Error {
        Error::new(Code::COMMAND_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// The command panicked.
    pub(crate) fn panicked() -> Error {
        Error::new(Code::INTERNAL_ERROR, "the command failed; the server's log has the details")
    }

    pub(crate) fn location(code: i32, message: impl Into<String>) -> Error {
        Error::new(Code(code), message)
    }

    #[must_use]
    pub(crate) fn with_label(mut self, label: &str) -> Error {
        if !self.labels.iter().any(|known| known == label) {
            self.labels.push(label.to_owned());
        }
        self
    }

    /// Makes the labels final, whatever the code.
    #[must_use]
    pub(crate) fn with_final_labels(self) -> Error {
        Error { labels_are_final: true, ..self }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Error {
        self.extra.push(name, value);
        self
    }

    /// Returns the error of an engine's error on a collection: for a taken key, with the wording that clients parse.
    pub(crate) fn in_namespace(error: engine::Error, namespace: &str) -> Error {
        match error {
            engine::Error::DuplicateKey { index, pattern, value } => {
                Error::duplicate_key(Some(namespace), &index, &pattern, &value)
            }
            other => other.into(),
        }
    }

    fn duplicate_key(
        namespace: Option<&str>,
        index: &str,
        pattern: &RawDocument,
        value: &RawDocument,
    ) -> Error {
        let place = namespace.map_or_else(String::new, |namespace| format!(" collection: {namespace}"));
        let shown = bson::shell_text(ValueRef::Document(value.view()));
        let text = format!("E11000 duplicate key error{place} index: {index} dup key: {shown}");
        Error::new(Code::DUPLICATE_KEY, text)
            .with("keyPattern", pattern.to_document())
            .with("keyValue", value.to_document())
    }

    /// Returns the whole answer of a command that failed.
    pub(crate) fn finish(&self, more: &Document) -> RawDocument {
        Reply::from(Document::new()).finish(0.0, [&self.fields(more)])
    }

    fn fields(&self, more: &Document) -> Document {
        let mut fields = Document::new()
            .with("errmsg", self.message.as_str())
            .with("code", self.code.0)
            .with("codeName", self.code.name());
        for (name, value) in self.extra.iter() {
            fields.push(name, value.clone());
        }
        if !self.labels.is_empty() {
            fields.push("errorLabels", list(self.labels.iter().map(String::as_str)));
        }
        for (name, value) in more.iter() {
            fields.push(name, value.clone());
        }
        fields
    }
}

impl From<mql::Error> for Error {
    fn from(error: mql::Error) -> Error {
        Error::new(error.code, error.message)
    }
}

impl From<bson::Error> for Error {
    fn from(error: bson::Error) -> Error {
        let code = match error {
            bson::Error::Malformed(_) => Code::INVALID_BSON,
            bson::Error::TooDeep => Code::OVERFLOW,
            bson::Error::Text(_) => Code::FAILED_TO_PARSE,
            bson::Error::Unsupported(_) => Code::BAD_VALUE,
        };
        Error::new(code, error.to_string())
    }
}

/// Returns the error for a command beyond its rate. Applications look for `RetryAfterMs` in the text; drivers that know the
/// labels wait and try again by themselves.
fn throttled(retry_after_ms: u64) -> Error {
    let text = format!(
        "Error={}, RetryAfterMs={retry_after_ms}, Details='Request rate is large. The provisioned throughput is spent.'",
        Code::TOO_MANY_REQUESTS.0
    );
    overloaded(Error::new(Code::TOO_MANY_REQUESTS, text), retry_after_ms)
}

/// Nothing was done. Drivers of any age try a command again that failed with this code; newer ones wait first.
impl From<Busy> for Error {
    fn from(Busy { retry_after_ms }: Busy) -> Error {
        let text = format!(
            "Error={}, RetryAfterMs={retry_after_ms}, Details='The server has more to do than it can.'",
            Code::EXCEEDED_TIME_LIMIT.0
        );
        overloaded(Error::new(Code::EXCEEDED_TIME_LIMIT, text), retry_after_ms)
    }
}

/// Adds the labels and the field that tell newer drivers when to come back.
fn overloaded(error: Error, retry_after_ms: u64) -> Error {
    error
        .with_label(SYSTEM_OVERLOADED)
        .with_label(RETRYABLE)
        .with("baseBackoffMS", i64::try_from(retry_after_ms).unwrap_or(i64::MAX))
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Error {
        use engine::Error as E;
        let text = error.to_string();
        match error {
            E::NotFound { .. } | E::OwnerNotFound { .. } => Error::new(Code::NAMESPACE_NOT_FOUND, text),
            E::Exists { .. } => Error::new(Code::NAMESPACE_EXISTS, text),
            E::UniqueKeyTaken { .. } => Error::new(Code::DUPLICATE_KEY, text),
            E::PreconditionFailed { .. } => Error::new(Code::WRITE_CONFLICT, text),
            E::Invalid { .. }
            | E::InvalidContinuation { .. }
            | E::InvalidTtl { .. }
            | E::KeyMismatch { .. }
            | E::Definition(_)
            | E::Patch(_) => Error::bad_value(text),
            E::TooLarge { .. } => Error::new(Code::BSON_OBJECT_TOO_LARGE, text),
            E::NotSupported { .. } => Error::new(Code::COMMAND_NOT_SUPPORTED, text),
            E::DuplicateKey { index, pattern, value } => Error::duplicate_key(None, &index, &pattern, &value),
            E::Conflict { .. } => {
                Error::new(Code::WRITE_CONFLICT, WRITE_CONFLICT).with_label(TRANSIENT_TRANSACTION)
            }
            E::TooOld { number, last } => Error::new(
                Code::TRANSACTION_TOO_OLD,
                format!(
                    "Retryable write with txnNumber {number} is prohibited on this session because a newer retryable \
                         write with txnNumber {last} has already started on this session."
                ),
            ),
            E::Language(error) => error.into(),
            E::Held { .. } => Error::new(Code::ILLEGAL_OPERATION, text),
            E::NotConfirmed { .. } => Error::new(
                Code::ILLEGAL_OPERATION,
                format!("{text}. Add '{CONFIRM_EXPIRY}: true' to the command to go on."),
            ),
            E::TooManyRequests { retry_after_ms } => throttled(retry_after_ms),
            E::Query(_) | E::Fault(_) | E::ClockSuspect { .. } | E::Unarchived => {
                Error::new(Code::OPERATION_FAILED, text)
            }
            E::HistoryGone => {
                let text = "Resume of change stream was not possible, as the resume point may no longer be in the history.";
                Error::new(Code::CHANGE_STREAM_HISTORY_LOST, text).with_label("NonResumableChangeStreamError")
            }
            E::Cancelled => Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"),
            E::NoRoom(_) => Error::new(Code::OUT_OF_DISK_SPACE, text),
            E::Unavailable(_) | E::Corrupt(_) => Error::new(Code::INTERNAL_ERROR, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What clients see of each error, as a table. A change here is a change for every client.
    #[test]
    fn golden_table_of_engine_errors() {
        use engine::Error as E;
        let what = || "collection 'a.b'".to_owned();
        let rows = [
            (E::NotFound { what: what() }, 26, "NamespaceNotFound"),
            (E::OwnerNotFound { what: what() }, 26, "NamespaceNotFound"),
            (E::Exists { what: what() }, 48, "NamespaceExists"),
            (E::UniqueKeyTaken { paths: "/a".into() }, 11000, "DuplicateKey"),
            (E::PreconditionFailed { what: what() }, 112, "WriteConflict"),
            (E::Invalid { message: "no".into() }, 2, "BadValue"),
            (E::InvalidContinuation { why: "no" }, 2, "BadValue"),
            (E::InvalidTtl { text: "\"x\"".into() }, 2, "BadValue"),
            (E::TooLarge { what: "document", actual: 2, limit: 1 }, 10334, "BSONObjectTooLarge"),
            (E::NotSupported { what: what() }, 115, "CommandNotSupported"),
            (E::Conflict { what: what() }, 112, "WriteConflict"),
            (E::TooOld { number: 1, last: 2 }, 225, "TransactionTooOld"),
            (E::Language(mql::Error::failed_to_parse("x")), 9, "FailedToParse"),
            (E::Held { what: "the item", reason: what() }, 20, "IllegalOperation"),
            (E::NotConfirmed { what: what() }, 20, "IllegalOperation"),
            (E::TooManyRequests { retry_after_ms: 9 }, 16500, "TooManyRequests"),
            (E::ClockSuspect { what: "this" }, 96, "OperationFailed"),
            (E::Unarchived, 96, "OperationFailed"),
            (E::HistoryGone, 286, "ChangeStreamHistoryLost"),
            (E::Cancelled, 50, "MaxTimeMSExpired"),
            (E::NoRoom("full".into()), 14031, "OutOfDiskSpace"),
            (E::Unavailable("stopped".into()), 1, "InternalError"),
            (E::Corrupt("bits".into()), 1, "InternalError"),
        ];
        for (error, code, name) in rows {
            let shown = error.to_string();
            let error = Error::from(error);
            assert_eq!((error.code.0, error.code.name().as_str()), (code, name), "{shown}");
        }
    }

    #[test]
    fn a_throttled_request_is_told_when_to_retry() {
        let error = Error::from(engine::Error::TooManyRequests { retry_after_ms: 34 });
        assert!(
            error.message.contains("RetryAfterMs=34, ") && error.message.contains("Request rate is large")
        );
        assert_eq!(error.labels, ["SystemOverloadedError", "RetryableError"]);
        assert_eq!(error.extra.get("baseBackoffMS"), Some(&Value::Int64(34)));
    }

    #[test]
    fn a_taken_key_is_said_as_clients_parse_it() {
        let raw = |document: &Document| RawDocument::from_document(document);
        let error = engine::Error::DuplicateKey {
            index: "a_1".into(),
            pattern: raw(&Document::new().with("a", 1)),
            value: raw(&Document::new().with("a", "x")),
        };
        let error = Error::in_namespace(error, "db.c");
        assert_eq!(
            error.message,
            "E11000 duplicate key error collection: db.c index: a_1 dup key: { a: \"x\" }"
        );
        assert_eq!(error.extra.get("keyPattern"), Some(&Document::new().with("a", 1).into()));
        assert_eq!(error.extra.get("keyValue"), Some(&Document::new().with("a", "x").into()));
    }

    #[test]
    fn an_error_has_the_shape_that_drivers_read() {
        let error =
            Error::new(Code::WRITE_CONFLICT, "again").with_label(TRANSIENT_TRANSACTION).with("extra", 1);
        let reply = error.finish(&Document::new().with("operationTime", 5)).to_document();
        let expected = Document::new()
            .with("ok", 0.0)
            .with("errmsg", "again")
            .with("code", 112)
            .with("codeName", "WriteConflict")
            .with("extra", 1)
            .with("errorLabels", list([TRANSIENT_TRANSACTION]))
            .with("operationTime", 5);
        assert_eq!(reply, expected);
        assert_eq!(Error::location(40415, "x").code.name(), "Location40415");
    }
}
