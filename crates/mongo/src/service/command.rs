//! What a row of the table of commands says; the table itself is in `commands`.
//!
//! The columns are all that the rest of the crate knows of a command: nothing else decides by its name.

use std::future::Future;
use std::pin::Pin;

use transport::Work;

use crate::diagnostics::operation_kind::OperationKind;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::protocol::verbosity::Verbosity;
use crate::rights::{Action, Privilege};
use crate::service::call::Call;
use crate::session::InTransaction;

/// The future of a handler.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Reply>> + Send + 'a>>;

/// Runs a command.
pub(crate) type Handler = for<'a> fn(&'a mut Call) -> Running<'a>;

/// Explains a command.
pub(crate) type Explainer = fn(&Call, Verbosity) -> Result<Reply>;

/// What a client must have to run a command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access {
    /// Nothing: every client may, also before authentication.
    Public,
    /// An identity, where authentication is required.
    Authenticated,
    /// A role that grants this action on the command's database.
    Database(Action),
    /// A role that grants this action on the server.
    Cluster(Action),
    /// Roles that grant what this function computes from the request.
    Computed(fn(&Call) -> Result<Vec<Privilege>>),
}

/// Where a command may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunsOn {
    /// On any database.
    Anywhere,
    /// On `admin` alone.
    Admin,
}

/// What a command does to data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Reads,
    /// It may change something: it takes a write concern and gets a time of its own.
    Writes,
}

/// Which runs of a command the audit log records. It also records refusals of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audit {
    /// All: it changes something other than documents.
    Audited,
    /// The last step of an authentication that succeeds.
    SignIn,
    /// None: it reads, or is about documents and what is computed from them.
    Unaudited,
}

/// Whether version 1 of the API has a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiVersion {
    One,
    None,
}

/// What the audit log shows of a command besides its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditDetails {
    Nothing,
    /// These fields, which name settings and hold no secret.
    Fields(&'static [&'static str]),
    /// These fields, and when the indexes that it makes let documents expire.
    FieldsAndIndexes(&'static [&'static str]),
    /// The roles of the user, and whether the password changes.
    User,
    /// The parameters that it sets.
    Parameters,
    /// When the indexes that it makes let documents expire.
    NewIndexes,
    /// When the index that it changes lets documents expire.
    ChangedIndex,
}

/// Whether the server has a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    Always,
    /// Only with `--mongo-test-commands`.
    TestCommands,
}

/// Where a command names its collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CollectionName {
    /// Behind its own name.
    Argument,
    /// Behind its own name, with its database.
    Namespace,
    /// In this field.
    Field(&'static str),
}

/// Whether `getLastRequestStatistics` shows a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastRequestStatistics {
    Recorded,
    NotRecorded,
}

/// Whether a command may be sent as `OP_QUERY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpQuery {
    Accepted,
    Refused,
}

/// What the log of slow operations shows of a command's request. Fields of queries never hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryLog {
    Nothing,
    /// Its fields in which queries stand.
    Queries,
    /// Those of the command that is its argument.
    QueriesOfArgument,
}

/// Whether a command may read at a snapshot outside of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotRead {
    Allowed,
    Refused,
}

/// What limits the time of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// `maxTimeMS`.
    Client,
    /// `maxTimeMS` and the operator's limit on queries, whichever is shorter.
    ClientAndOperator,
    /// The handler: there `maxTimeMS` says how long to wait for changes.
    Handler,
}

/// What version 1 of the API does not have of a command that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutsideApi {
    Nothing,
    Fields(&'static [&'static str]),
    TextIndexes,
}

/// The columns in which most commands are alike.
pub(crate) struct Traits {
    pub(crate) audit_details: AuditDetails,
    pub(crate) availability: Availability,
    pub(crate) collection: CollectionName,
    /// Explains the command, if it can be explained.
    pub(crate) explain: Option<Explainer>,
    /// What it counts as in figures.
    pub(crate) kind: OperationKind,
    pub(crate) last_request: LastRequestStatistics,
    pub(crate) op_query: OpQuery,
    pub(crate) outside_api: OutsideApi,
    pub(crate) query_log: QueryLog,
    /// The queue in which the command waits until it may begin; none if it need not wait, or if the handler decides when it
    /// must.
    pub(crate) queue: Option<Work>,
    pub(crate) snapshot_read: SnapshotRead,
    pub(crate) time_limit: TimeLimit,
}

impl Traits {
    /// The columns of a command with nothing particular.
    pub(crate) const USUAL: Traits = Traits {
        audit_details: AuditDetails::Nothing,
        availability: Availability::Always,
        collection: CollectionName::Argument,
        explain: None,
        kind: OperationKind::Command,
        last_request: LastRequestStatistics::Recorded,
        op_query: OpQuery::Refused,
        outside_api: OutsideApi::Nothing,
        query_log: QueryLog::Nothing,
        queue: None,
        snapshot_read: SnapshotRead::Refused,
        time_limit: TimeLimit::Client,
    };
}

/// One row of the table.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Other spellings.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) access: Access,
    pub(crate) runs_on: RunsOn,
    pub(crate) effect: Effect,
    pub(crate) transaction: InTransaction,
    pub(crate) audit: Audit,
    pub(crate) api: ApiVersion,
    /// What `listCommands` says about it.
    pub(crate) help: &'static str,
    pub(crate) traits: Traits,
    pub(crate) run: Handler,
}
