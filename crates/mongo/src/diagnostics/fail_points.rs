//! Fail points: places at which a test suite makes commands fail. They exist with `--mongo-test-commands` only.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::{Document, DocumentRef, ValueRef};
use mql::Code;
use parking_lot::Mutex;

use crate::diagnostics::operation_kind::OperationKind;
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;

/// The longest time that a fail point may hold a command.
const BLOCK_MAX: Duration = Duration::from_mins(5);

/// Fail points by name.
#[derive(Debug, Default)]
pub(crate) struct FailPoints {
    set: Mutex<BTreeMap<Name, FailPoint>>,
}

/// The fail points that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// Chosen commands fail in a chosen way.
    FailCommand,
    /// A batch of a cursor fails once its cursor was found.
    FailGetMoreAfterCursorCheckout,
    /// Every command with a time limit exceeds it at once.
    MaxTimeAlwaysTimeOut,
    /// No command ever exceeds its time limit.
    MaxTimeNeverTimeOut,
    /// Retryable writes fail before they run, or the connection breaks after them.
    OnPrimaryTransactionalWrite,
}

impl Name {
    fn parse(name: &str) -> Result<Name> {
        match name {
            "failCommand" => Ok(Name::FailCommand),
            "failGetMoreAfterCursorCheckout" => Ok(Name::FailGetMoreAfterCursorCheckout),
            "maxTimeAlwaysTimeOut" => Ok(Name::MaxTimeAlwaysTimeOut),
            "maxTimeNeverTimeOut" => Ok(Name::MaxTimeNeverTimeOut),
            "onPrimaryTransactionalWrite" => Ok(Name::OnPrimaryTransactionalWrite),
            other => Err(Error::new(Code::FAIL_POINT_SET_FAILED, format!("{other} not found"))),
        }
    }
}

#[derive(Debug)]
struct FailPoint {
    mode: Mode,
    data: Failure,
    /// How often it has struck.
    count: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    AlwaysOn,
    /// So many times, then never again.
    Times(i64),
    /// Not so many times, then always.
    Skip(i64),
}

/// How a command fails.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure {
    commands: Vec<String>,
    application: Option<String>,
    namespace: Option<String>,
    pub(crate) error_code: Option<Code>,
    /// None leaves the labels to the server.
    pub(crate) labels: Option<Vec<String>>,
    pub(crate) close_connection: bool,
    pub(crate) write_concern_error: Option<Document>,
    pub(crate) block: Option<Duration>,
    /// Whether the cursor of a `getMore` was found before it failed.
    pub(crate) after_checkout: bool,
    /// The error of a retryable write before it runs; none lets it run.
    before_commit: Option<Code>,
    /// Whether the connection stays when a retryable write was struck.
    connection_stays: bool,
}

/// What becomes of a retryable write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RetryableFailure {
    /// It fails and is not done.
    Fails(Error),
    /// It is not done, and the client gets no answer.
    HangsBefore,
    /// It is done, and the client gets no answer.
    HangsAfter,
}

/// The command that a fail point may be meant for.
pub(crate) struct Candidate<'a> {
    pub(crate) command: &'a str,
    pub(crate) kind: OperationKind,
    pub(crate) application: Option<&'a str>,
    pub(crate) namespace: Option<String>,
}

impl FailPoints {
    /// `configureFailPoint`; returns how often it had struck.
    pub(crate) fn configure(&self, name: &str, fields: Fields<'_>) -> Result<i64> {
        let name = Name::parse(name)?;
        let mode = Mode::parse(fields.value("mode").unwrap_or(ValueRef::Null))?;
        let data = fields.document("data")?.map(Failure::parse).transpose()?.unwrap_or_default();
        let mut set = self.set.lock();
        let before = match mode {
            Some(mode) => set.insert(name, FailPoint { mode, data, count: 0 }),
            None => set.remove(&name),
        };
        Ok(before.map_or(0, |before| before.count))
    }

    /// Whether a fail point that has no data strikes now.
    pub(crate) fn strikes(&self, name: Name) -> bool {
        self.set.lock().get_mut(&name).is_some_and(FailPoint::strike)
    }

    /// Returns the failure of a retryable write, if a fail point strikes.
    pub(crate) fn retryable_failure(&self) -> Option<RetryableFailure> {
        let mut set = self.set.lock();
        let point = set.get_mut(&Name::OnPrimaryTransactionalWrite)?;
        if !point.strike() {
            return None;
        }
        match (point.data.before_commit, point.data.connection_stays) {
            (Some(code), true) => {
                let text = "Failing write via 'onPrimaryTransactionalWrite' failpoint";
                Some(RetryableFailure::Fails(Error::new(code, text)))
            }
            (Some(_), false) => Some(RetryableFailure::HangsBefore),
            (None, stays) => (!stays).then_some(RetryableFailure::HangsAfter),
        }
    }

    /// Returns the failure of a command, if a fail point strikes.
    pub(crate) fn failure(&self, candidate: &Candidate<'_>) -> Option<Failure> {
        let mut set = self.set.lock();
        if candidate.kind == OperationKind::GetMore
            && let Some(point) = set.get_mut(&Name::FailGetMoreAfterCursorCheckout)
            && point.strike()
        {
            return Some(Failure { after_checkout: true, ..point.data.clone() });
        }
        let point = set.get_mut(&Name::FailCommand)?;
        (point.data.is_meant_for(candidate) && point.strike()).then(|| point.data.clone())
    }
}

impl FailPoint {
    fn strike(&mut self) -> bool {
        let strikes = match &mut self.mode {
            Mode::AlwaysOn => true,
            Mode::Times(left) => {
                *left -= 1;
                *left >= 0
            }
            Mode::Skip(left) => {
                *left -= 1;
                *left < 0
            }
        };
        self.count += i64::from(strikes);
        strikes
    }
}

impl Mode {
    /// None switches the fail point off.
    fn parse(value: ValueRef<'_>) -> Result<Option<Mode>> {
        let wrong =
            || Error::new(Code::FAILED_TO_PARSE, "'mode' must be off, alwaysOn, {times: n} or {skip: n}");
        match value {
            ValueRef::String("off") => Ok(None),
            ValueRef::String("alwaysOn") => Ok(Some(Mode::AlwaysOn)),
            ValueRef::Document(mode) => {
                let mode = Fields::new("mode", mode);
                // Drivers send both, one of them 0; as in MongoDB `times` comes first.
                match (mode.count("times")?, mode.count("skip")?) {
                    (Some(times), _) => Ok(Some(Mode::Times(times as i64))),
                    (None, Some(skip)) => Ok(Some(Mode::Skip(skip as i64))),
                    (None, None) => Err(wrong()),
                }
            }
            _ => Err(wrong()),
        }
    }
}

impl Failure {
    fn parse(data: DocumentRef<'_>) -> Result<Failure> {
        let fields = Fields::new("data", data);
        let texts = |name| -> Result<Option<Vec<String>>> {
            let items = fields.array(name)?;
            Ok(items.map(|items| items.iter().filter_map(ValueRef::as_str).map(str::to_owned).collect()))
        };
        let blocks = fields.is_set("blockConnection")?;
        let block = fields.count("blockTimeMS")?.filter(|_| blocks);
        Ok(Failure {
            commands: texts("failCommands")?.unwrap_or_default(),
            application: fields.text("appName")?.map(str::to_owned),
            namespace: fields.text("namespace")?.map(str::to_owned),
            error_code: fields.integer("errorCode")?.map(|code| Code(code as i32)),
            labels: texts("errorLabels")?,
            close_connection: fields.is_set("closeConnection")?,
            write_concern_error: fields.document("writeConcernError")?.map(DocumentRef::to_document),
            before_commit: fields.integer("failBeforeCommitExceptionCode")?.map(|code| Code(code as i32)),
            connection_stays: fields.boolean("closeConnection")? == Some(false),
            block: block.map(|millis| Duration::from_millis(millis).min(BLOCK_MAX)),
            after_checkout: false,
        })
    }

    fn is_meant_for(&self, candidate: &Candidate<'_>) -> bool {
        self.commands.iter().any(|command| command == candidate.command)
            && self.application.as_deref().is_none_or(|name| candidate.application == Some(name))
            && self.namespace.as_ref().is_none_or(|name| candidate.namespace.as_ref() == Some(name))
    }

    /// Returns the error that the command fails with.
    pub(crate) fn error(&self) -> Option<Error> {
        let code = self.error_code?;
        let mut error = Error::new(code, "Failing command via 'failCommand' failpoint");
        error.labels.clone_from(self.labels.as_ref().unwrap_or(&Vec::new()));
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use bson::Value;

    use super::*;
    use crate::protocol::reply::list;

    fn set(points: &FailPoints, mode: impl Into<Value>, data: Document) -> i64 {
        let command = Document::new().with("mode", mode).with("data", data);
        points.configure("failCommand", Fields::new("configureFailPoint", command.view())).unwrap()
    }

    fn strikes(points: &FailPoints, command: &str, application: Option<&str>) -> bool {
        points
            .failure(&Candidate { command, kind: OperationKind::Command, application, namespace: None })
            .is_some()
    }

    #[test]
    fn a_fail_point_strikes_as_often_as_it_was_told() {
        let points = FailPoints::default();
        let data = Document::new().with("failCommands", list(["find"])).with("errorCode", 6);
        set(&points, Document::new().with("times", 2), data.clone());
        assert!(!strikes(&points, "insert", None));
        assert!(
            strikes(&points, "find", None)
                && strikes(&points, "find", None)
                && !strikes(&points, "find", None)
        );
        assert_eq!(set(&points, Document::new().with("skip", 1), data.clone()), 2);
        assert!(!strikes(&points, "find", None) && strikes(&points, "find", None));
        set(&points, "alwaysOn", data.with("appName", "x"));
        assert!(!strikes(&points, "find", None) && strikes(&points, "find", Some("x")));
        assert_eq!(set(&points, "off", Document::new()), 1);
        assert!(!strikes(&points, "find", Some("x")));
        let both = Document::new().with("times", 1).with("skip", 0);
        set(&points, both, Document::new().with("failCommands", list(["find"])));
        assert!(strikes(&points, "find", None) && !strikes(&points, "find", None), "times before skip");
    }

    #[test]
    fn unknown_points_and_modes_are_refused() {
        let points = FailPoints::default();
        let command = Document::new().with("mode", "sometimes");
        let fields = Fields::new("configureFailPoint", command.view());
        assert_eq!(points.configure("failCommand", fields).unwrap_err().code.0, 9);
        assert_eq!(points.configure("other", fields).unwrap_err().code.0, 94);
    }
}
