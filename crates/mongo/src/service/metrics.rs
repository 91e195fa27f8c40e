//! The metrics of this front end, and the outcome that each error code counts as.

use std::sync::Arc;
use std::time::Duration;

use engine::Charge;
use mql::Code;
use telemetry::{FrontEnd, Kind, MetricsSource, OperationId, Outcome, Page, Registry, RequestSummary};

use crate::protocol::error::Error;
use crate::service::Service;

/// The figures of this front end, and where they are kept together with those of others.
pub(crate) struct FrontEndMetrics {
    pub(crate) registry: Arc<Registry>,
    pub(crate) front_end: Arc<FrontEnd>,
}

impl FrontEndMetrics {
    /// Registers the front end with the names of its commands.
    pub(crate) fn new(
        registry: Arc<Registry>,
        commands: impl Iterator<Item = &'static str>,
    ) -> FrontEndMetrics {
        let front_end = registry.register("mongodb", commands);
        FrontEndMetrics { registry, front_end }
    }

    /// Counts a command that was refused before it ran.
    pub(crate) fn refused(&self, operation: OperationId, error: &Error, duration: Duration) {
        let charge_hundredths = Charge::MINIMUM.0;
        self.front_end
            .record(operation, &RequestSummary { outcome: outcome(error.code), duration, charge_hundredths });
    }

    /// Counts a command whose handler panicked.
    pub(crate) fn panicked(&self) {
        let error = Error::new(Code::INTERNAL_ERROR, "");
        self.refused(OperationId::UNKNOWN, &error, Duration::ZERO);
    }
}

/// Returns the outcome that an error code counts as.
pub(crate) fn outcome(code: Code) -> Outcome {
    match code {
        Code::AUTHENTICATION_FAILED => Outcome::Unauthorized,
        Code::UNAUTHORIZED => Outcome::Forbidden,
        Code::NAMESPACE_NOT_FOUND
        | Code::INDEX_NOT_FOUND
        | Code::CURSOR_NOT_FOUND
        | Code::USER_NOT_FOUND
        | Code::ROLE_NOT_FOUND
        | Code::NO_MATCHING_DOCUMENT
        | Code::NO_SUCH_TRANSACTION => Outcome::NotFound,
        Code::DUPLICATE_KEY
        | Code::WRITE_CONFLICT
        | Code::NAMESPACE_EXISTS
        | Code::INDEX_ALREADY_EXISTS
        | Code::INDEX_OPTIONS_CONFLICT
        | Code::INDEX_KEY_SPECS_CONFLICT
        | Code::TRANSACTION_TOO_OLD => Outcome::Conflict,
        Code::BSON_OBJECT_TOO_LARGE | Code::EXCEEDED_MEMORY_LIMIT | Code::QUERY_EXCEEDED_MEMORY_LIMIT => {
            Outcome::TooLarge
        }
        Code::TOO_MANY_REQUESTS => Outcome::Throttled,
        Code::MAX_TIME_MS_EXPIRED | Code::EXCEEDED_TIME_LIMIT | Code::TRANSACTION_EXCEEDED_LIFETIME => {
            Outcome::Timeout
        }
        Code::INTERRUPTED | Code::QUERY_PLAN_KILLED => Outcome::Abandoned,
        Code::HOST_UNREACHABLE
        | Code::SHUTDOWN_IN_PROGRESS
        | Code::INTERRUPTED_AT_SHUTDOWN
        | Code::NOT_WRITABLE_PRIMARY
        | Code::OUT_OF_DISK_SPACE
        | Code::TOO_MANY_LOGICAL_SESSIONS => Outcome::Unavailable,
        Code::INTERNAL_ERROR => Outcome::Failed,
        _ => Outcome::Invalid,
    }
}

impl MetricsSource for Service {
    fn write(&self, page: &mut Page) {
        let figures: [(_, _, usize); 5] = [
            ("bolide_mongo_cursors_open", "Open cursors of MongoDB clients.", self.cursors.figures().open),
            ("bolide_mongo_sessions_open", "Sessions of MongoDB clients.", self.sessions.count()),
            (
                "bolide_mongo_transactions_open",
                "Open transactions of MongoDB clients.",
                self.transactions.open_count(),
            ),
            ("bolide_mongo_commands_running", "Running MongoDB commands.", self.operations.list().len()),
            (
                "bolide_mongo_idle_bytes",
                "Bytes held by idle cursors and transactions of MongoDB clients.",
                self.shares.bytes(),
            ),
        ];
        for (name, help, count) in figures {
            page.plain(name, Kind::Gauge, help, count);
        }
        let counters = [
            (
                "bolide_mongo_idle_ended_total",
                "Idle cursors and transactions of MongoDB clients closed because their user held too much.",
                self.shares.ended.get(),
            ),
            (
                "bolide_mongo_authentication_failures_total",
                "Failed authentications of MongoDB clients.",
                self.wrong_proofs.get(),
            ),
        ];
        for (name, help, count) in counters {
            page.plain(name, Kind::Counter, help, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_outcomes() {
        for (code, expected) in [
            (Code::DUPLICATE_KEY, Outcome::Conflict),
            (Code::TOO_MANY_REQUESTS, Outcome::Throttled),
            (Code::OUT_OF_DISK_SPACE, Outcome::Unavailable),
            (Code::UNAUTHORIZED, Outcome::Forbidden),
            (Code::COMMAND_NOT_FOUND, Outcome::Invalid),
            (Code(40571), Outcome::Invalid),
        ] {
            assert_eq!(outcome(code), expected, "{code}");
        }
    }
}
