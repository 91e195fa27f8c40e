//! The labels of errors by which drivers decide whether to try again, and the error of a stopped command.

use bson::{Document, Value};
use mql::Code;

use crate::diagnostics::operation_kind::OperationKind;
use crate::protocol::cancellation::{CancelReason, Cancellation};
use crate::protocol::error::{Error, RESUMABLE_CHANGE_STREAM, RETRYABLE_WRITE, TRANSIENT_TRANSACTION};
use crate::service::call::Call;
use crate::session::{InTransaction, TxnNumber};

/// Whether a driver may send a write again that failed with this code: the server was not available, rather than unwilling.
fn is_retryable(code: Code) -> bool {
    matches!(
        code,
        Code::HOST_UNREACHABLE
            | Code::HOST_NOT_FOUND
            | Code::NETWORK_TIMEOUT
            | Code::SHUTDOWN_IN_PROGRESS
            | Code::READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET
            | Code::PRIMARY_STEPPED_DOWN
            | Code::EXCEEDED_TIME_LIMIT
            | Code::SOCKET_EXCEPTION
            | Code::NOT_WRITABLE_PRIMARY
            | Code::INTERRUPTED_AT_SHUTDOWN
            | Code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE
            | Code::NOT_PRIMARY_NO_SECONDARY_OK
            | Code::NOT_PRIMARY_OR_SECONDARY
    )
}

/// Whether a driver may run a transaction again that failed with this code.
fn is_transient(code: Code) -> bool {
    is_retryable(code)
        || matches!(
            code,
            Code::LOCK_TIMEOUT
                | Code::WRITE_CONFLICT
                | Code::SNAPSHOT_UNAVAILABLE
                | Code::NO_SUCH_TRANSACTION
                | Code::PREPARED_TRANSACTION_IN_PROGRESS
        )
}

/// Whether a driver resumes a change stream that failed with this code, from the position it has.
fn is_resumable(code: Code) -> bool {
    is_retryable(code)
        || matches!(
            code,
            Code::FAILED_TO_SATISFY_READ_PREFERENCE | Code::STALE_EPOCH | Code::RETRY_CHANGE_STREAM
        )
}

/// Whether the client may send the command again by its number.
fn is_repeatable(call: &Call) -> bool {
    matches!(call.txn_number, Some(TxnNumber::Retryable { .. }))
        || call.command.transaction == InTransaction::Ends
}

/// Adds the labels by which drivers decide whether to try again.
pub(super) fn labelled(error: Error, call: &Call) -> Error {
    if error.labels_are_final {
        return error;
    }
    let in_transaction = matches!(call.txn_number, Some(TxnNumber::Transaction { .. }));
    if is_repeatable(call) && is_retryable(error.code) {
        error.with_label(RETRYABLE_WRITE)
    } else if in_transaction && is_transient(error.code) {
        error.with_label(TRANSIENT_TRANSACTION)
    } else {
        error
    }
}

/// Adds the label by which drivers resume a change stream, if the failure is temporary; they look at it in change streams
/// only.
pub(super) fn resumable(error: Error, call: &Call) -> Error {
    if call.command.traits.kind == OperationKind::GetMore && is_resumable(error.code) {
        error.with_label(RESUMABLE_CHANGE_STREAM)
    } else {
        error
    }
}

pub(super) fn concern_labels(error: &Document, call: &Call) -> Option<Vec<String>> {
    let Some(Value::Int32(code)) = error.get("code") else { return None };
    (is_repeatable(call) && is_retryable(Code(*code))).then(|| vec![RETRYABLE_WRITE.to_owned()])
}

/// Makes the error of a stopped command say why it was stopped.
pub(super) fn explain_stop(error: Error, cancellation: &Cancellation) -> Error {
    match (error.code, cancellation.reason()) {
        (Code::MAX_TIME_MS_EXPIRED, Some(CancelReason::Killed)) => {
            Error::new(Code::INTERRUPTED, "operation was interrupted")
        }
        (Code::MAX_TIME_MS_EXPIRED, Some(CancelReason::TransactionExpired)) => {
            let text = "operation was interrupted because the transaction exceeded the configured \
                        'transactionLifetimeLimitSeconds'";
            Error::new(Code::TRANSACTION_EXCEEDED_LIFETIME, text).with_label(TRANSIENT_TRANSACTION)
        }
        (Code::MAX_TIME_MS_EXPIRED, Some(CancelReason::TransactionAborted)) => {
            let text = "operation was interrupted because its transaction has been aborted";
            Error::new(Code::NO_SUCH_TRANSACTION, text).with_label(TRANSIENT_TRANSACTION)
        }
        _ => error,
    }
}
