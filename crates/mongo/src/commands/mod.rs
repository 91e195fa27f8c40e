//! The one table of what this front end understands, one file per command.
//!
//! A row names who may run a command, where, whether it writes, its role in a transaction, whether the audit log and
//! version 1 of the API have it, and in braces what is particular about it (`service::command`); the dispatcher does the
//! rest. `listCommands` shows this table. Nothing else in this crate decides by a command's name.

#![allow(clippy::unused_async, reason = "all commands have one shape")]

mod abort_transaction;
mod aggregate;
mod authenticate;
mod build_info;
mod bulk_write;
mod coll_mod;
mod coll_stats;
mod commit_transaction;
mod configure_fail_point;
mod connection_status;
mod count;
mod create;
mod create_indexes;
mod create_user;
mod current_op;
mod custom_action;
mod db_stats;
mod delete;
mod distinct;
mod drop;
mod drop_all_users_from_database;
mod drop_database;
mod drop_indexes;
mod drop_user;
mod end_sessions;
mod explain;
mod find;
mod find_and_modify;
mod fsync;
mod get_cmd_line_opts;
mod get_default_rw_concern;
mod get_last_request_statistics;
mod get_log;
mod get_more;
mod get_parameter;
mod grant_roles_to_user;
mod hello;
mod host_info;
mod insert;
mod kill_all_sessions;
mod kill_all_sessions_by_pattern;
mod kill_cursors;
mod kill_op;
mod kill_sessions;
mod list_collections;
mod list_commands;
mod list_databases;
mod list_indexes;
mod log_rotate;
mod logout;
#[cfg(test)]
mod named_elsewhere_tests;
pub(crate) mod needs;
mod ping;
mod profile;
mod refresh_sessions;
mod rename_collection;
mod repl_set_get_config;
mod repl_set_get_status;
mod revoke_roles_from_user;
mod roles_info;
mod sasl_continue;
mod sasl_start;
mod search_indexes;
mod server_status;
mod set_parameter;
mod start_session;
mod top;
mod update;
mod update_user;
mod users_info;
mod validate;
mod whatsmyuri;

use telemetry::OperationId;
use transport::Work;

use crate::diagnostics::operation_kind::OperationKind;
use crate::rights::Action;
use crate::service::command::{
    Access, ApiVersion, Audit, AuditDetails, Availability, CollectionName, Command, Effect,
    LastRequestStatistics, OpQuery, OutsideApi, QueryLog, RunsOn, SnapshotRead, TimeLimit, Traits,
};
use crate::session::InTransaction;

macro_rules! access {
    (Public) => {
        Access::Public
    };
    (Authenticated) => {
        Access::Authenticated
    };
    (Database $action:ident) => {
        Access::Database(Action::$action)
    };
    (Cluster $action:ident) => {
        Access::Cluster(Action::$action)
    };
    (Computed $needs:ident) => {
        Access::Computed(needs::$needs)
    };
}

macro_rules! commands {
    ($($module:ident $name:literal $([$($alias:literal),*])? $access:ident $(($what:ident))? $runs_on:ident $effect:ident $transaction:ident $audit:ident $api:ident $help:literal $({$($trait:ident: $value:expr,)*})?;)*) => {
        static COMMANDS: &[Command] = &[$(
            Command {
                name: $name,
                aliases: &[$($($alias),*)?],
                access: access!($access $($what)?),
                runs_on: RunsOn::$runs_on,
                effect: Effect::$effect,
                transaction: InTransaction::$transaction,
                audit: Audit::$audit,
                api: ApiVersion::$api,
                help: $help,
                traits: Traits { $($($trait: $value,)*)? ..Traits::USUAL },
                run: |call| Box::pin($module::run(call)),
            },
        )*];
    };
}

commands! {
    hello "hello" ["isMaster", "ismaster"] Public Anywhere Reads Refused Unaudited One "describes this server and what it supports" {
        op_query: OpQuery::Accepted,
    };
    ping "ping" Public Anywhere Reads Refused Unaudited One "checks that the server answers";
    build_info "buildInfo" ["buildinfo"] Public Anywhere Reads Refused Unaudited None "shows the version of the server";

    sasl_start "saslStart" Public Anywhere Reads Refused SignIn One "begins an authentication";
    sasl_continue "saslContinue" Public Anywhere Reads Refused SignIn One "continues an authentication";
    authenticate "authenticate" Public Anywhere Reads Refused Unaudited One "authentication by certificate, which is not offered";
    logout "logout" Public Anywhere Reads Refused Unaudited One "logs out of this connection";
    start_session "startSession" Authenticated Anywhere Reads Refused Unaudited None "starts a session";
    end_sessions "endSessions" Public Anywhere Reads Refused Unaudited One "ends sessions";
    refresh_sessions "refreshSessions" Authenticated Anywhere Reads Refused Unaudited One "renews sessions";
    kill_sessions "killSessions" Authenticated Anywhere Reads Refused Unaudited One "ends sessions and what runs in them";
    kill_all_sessions "killAllSessions" Cluster(KillAnySession) Anywhere Reads Refused Audited None "ends the sessions of users and what runs in them";
    kill_all_sessions_by_pattern "killAllSessionsByPattern" Cluster(KillAnySession) Anywhere Reads Refused Audited None "ends the sessions that match a pattern and what runs in them";
    create_user "createUser" Computed(create_user) Anywhere Writes Refused Audited None "creates a user" {
        audit_details: AuditDetails::Fields(&["roles"]),
    };
    update_user "updateUser" Computed(update_user) Anywhere Writes Refused Audited None "changes a user" {
        audit_details: AuditDetails::User,
    };
    drop_user "dropUser" Database(DropUser) Anywhere Writes Refused Audited None "deletes a user";
    drop_all_users_from_database "dropAllUsersFromDatabase" Database(DropUser) Anywhere Writes Refused Audited None "deletes all users of a database";
    grant_roles_to_user "grantRolesToUser" Computed(grant_roles) Anywhere Writes Refused Audited None "grants roles to a user" {
        audit_details: AuditDetails::Fields(&["roles"]),
    };
    revoke_roles_from_user "revokeRolesFromUser" Computed(revoke_roles) Anywhere Writes Refused Audited None "revokes roles from a user" {
        audit_details: AuditDetails::Fields(&["roles"]),
    };
    users_info "usersInfo" Computed(users_info) Anywhere Reads Refused Unaudited None "shows users";
    roles_info "rolesInfo" Computed(roles_info) Anywhere Reads Refused Unaudited None "shows roles";

    server_status "serverStatus" Cluster(ServerStatus) Anywhere Reads Refused Unaudited None "shows figures of this process";
    get_parameter "getParameter" Cluster(GetParameter) Anywhere Reads Refused Unaudited None "shows parameters";
    set_parameter "setParameter" Cluster(SetParameter) Admin Reads Refused Audited None "sets parameters" {
        audit_details: AuditDetails::Parameters,
    };
    host_info "hostInfo" Cluster(HostInfo) Anywhere Reads Refused Unaudited None "describes the machine";
    connection_status "connectionStatus" Public Anywhere Reads Refused Unaudited None "shows the authenticated users";
    whatsmyuri "whatsmyuri" Public Anywhere Reads Refused Unaudited None "shows the address of the client";
    get_log "getLog" Cluster(GetLog) Admin Reads Refused Unaudited None "shows the last lines of the log";
    get_cmd_line_opts "getCmdLineOpts" Cluster(GetCmdLineOpts) Admin Reads Refused Unaudited None "shows the options that the server was started with";
    list_commands "listCommands" Public Anywhere Reads Refused Unaudited None "lists the commands";
    top "top" Cluster(Top) Admin Reads Refused Unaudited None "shows how much each collection is used";
    current_op "currentOp" Computed(current_op) Admin Reads Refused Unaudited None "shows the running commands";
    kill_op "killOp" Computed(kill_op) Admin Reads Refused Audited None "stops a running command" {
        audit_details: AuditDetails::Fields(&["op"]),
    };
    repl_set_get_status "replSetGetStatus" Cluster(ReplSetGetStatus) Admin Reads Refused Unaudited None "describes the replica set";
    repl_set_get_config "replSetGetConfig" Cluster(ReplSetGetConfig) Admin Reads Refused Unaudited None "shows the configuration of the replica set";
    get_last_request_statistics "getLastRequestStatistics" Authenticated Anywhere Reads Refused Unaudited None "shows what the previous command cost" {
        last_request: LastRequestStatistics::NotRecorded,
    };
    get_default_rw_concern "getDefaultRWConcern" Cluster(GetDefaultRwConcern) Admin Reads Refused Unaudited None "shows the default read and write concerns";
    log_rotate "logRotate" Cluster(LogRotate) Admin Reads Refused Audited None "rotates the log";
    fsync "fsync" Cluster(Fsync) Admin Reads Refused Audited None "makes everything durable";
    profile "profile" Database(EnableProfiler) Anywhere Reads Refused Unaudited None "shows that the profiler is off";
    list_databases "listDatabases" Computed(list_databases) Admin Reads Refused Unaudited One "lists databases" {
        queue: Some(Work::Query),
        time_limit: TimeLimit::ClientAndOperator,
    };
    list_collections "listCollections" Computed(list_collections) Anywhere Reads Refused Unaudited One "lists the collections of a database" {
        queue: Some(Work::Query),
        time_limit: TimeLimit::ClientAndOperator,
    };
    create "create" Computed(create) Anywhere Writes Allowed Audited One "creates a collection or a view";
    drop "drop" Database(DropCollection) Anywhere Writes Refused Audited One "drops a collection";
    drop_database "dropDatabase" Database(DropDatabase) Anywhere Writes Refused Audited One "drops a database";
    rename_collection "renameCollection" Computed(rename_collection) Admin Writes Refused Audited None "renames a collection" {
        audit_details: AuditDetails::Fields(&["to", "dropTarget"]),
        collection: CollectionName::Namespace,
    };
    list_indexes "listIndexes" Database(ListIndexes) Anywhere Reads Refused Unaudited One "lists the indexes of a collection";
    create_indexes "createIndexes" Database(CreateIndex) Anywhere Writes Allowed Audited One "creates indexes" {
        audit_details: AuditDetails::NewIndexes,
        outside_api: OutsideApi::TextIndexes,
        queue: Some(Work::Query),
    };
    drop_indexes "dropIndexes" ["deleteIndexes"] Database(DropIndex) Anywhere Writes Refused Audited One "drops indexes" {
        audit_details: AuditDetails::Fields(&["index"]),
    };
    coll_mod "collMod" Computed(change_view) Anywhere Writes Refused Audited One "changes a collection or an index" {
        audit_details: AuditDetails::ChangedIndex,
    };
    coll_stats "collStats" ["collstats"] Database(CollStats) Anywhere Reads Refused Unaudited None "shows sizes of a collection" {
        queue: Some(Work::Query),
    };
    db_stats "dbStats" ["dbstats"] Database(DbStats) Anywhere Reads Refused Unaudited None "shows sizes of a database" {
        queue: Some(Work::Query),
    };
    validate "validate" Database(Validate) Anywhere Reads Refused Unaudited None "checks what is stored of a collection" {
        queue: Some(Work::Query),
    };
    custom_action "customAction" Computed(custom_action) Anywhere Writes Refused Audited None "sets throughput, shard keys and indexes" {
        audit_details: AuditDetails::FieldsAndIndexes(custom_action::SETTINGS),
        collection: CollectionName::Field("collection"),
    };
    search_indexes "createSearchIndexes" Database(CreateIndex) Anywhere Reads Refused Unaudited None "search indexes, which are not offered";
    search_indexes "updateSearchIndex" Database(CreateIndex) Anywhere Reads Refused Unaudited None "search indexes, which are not offered";
    search_indexes "dropSearchIndex" Database(DropIndex) Anywhere Reads Refused Unaudited None "search indexes, which are not offered";
    insert "insert" Computed(insert) Anywhere Writes Allowed Unaudited One "inserts documents" {
        kind: OperationKind::Insert,
        outside_api: OutsideApi::Fields(&["collectionUUID", "encryptionInformation"]),
        queue: Some(Work::Brief),
    };
    find "find" Database(Find) Anywhere Reads Allowed Unaudited One "finds documents" {
        explain: Some(explain::find),
        kind: OperationKind::Query,
        outside_api: OutsideApi::Fields(find::OUTSIDE_API),
        query_log: QueryLog::Queries,
        queue: Some(Work::Query),
        snapshot_read: SnapshotRead::Allowed,
        time_limit: TimeLimit::ClientAndOperator,
    };
    get_more "getMore" Computed(get_more) Anywhere Reads Allowed Unaudited One "returns the next batch of a cursor" {
        collection: CollectionName::Field("collection"),
        kind: OperationKind::GetMore,
        snapshot_read: SnapshotRead::Allowed,
        time_limit: TimeLimit::Handler,
    };
    kill_cursors "killCursors" Authenticated Anywhere Reads AllowedLater Unaudited One "closes cursors";
    update "update" Computed(update) Anywhere Writes Allowed Unaudited One "updates documents" {
        explain: Some(explain::update),
        kind: OperationKind::Update,
        outside_api: OutsideApi::Fields(&["collectionUUID", "encryptionInformation", "runtimeConstants"]),
        query_log: QueryLog::Queries,
        queue: Some(Work::Statement),
    };
    delete "delete" Database(Remove) Anywhere Writes Allowed Unaudited One "deletes documents" {
        explain: Some(explain::delete),
        kind: OperationKind::Delete,
        outside_api: OutsideApi::Fields(&["collectionUUID", "encryptionInformation", "runtimeConstants"]),
        query_log: QueryLog::Queries,
        queue: Some(Work::Statement),
    };
    find_and_modify "findAndModify" ["findandmodify"] Computed(find_and_modify) Anywhere Writes Allowed Unaudited One "updates or deletes one document and returns it" {
        explain: Some(explain::find_and_modify),
        outside_api: OutsideApi::Fields(find_and_modify::OUTSIDE_API),
        query_log: QueryLog::Queries,
        queue: Some(Work::Statement),
    };
    bulk_write "bulkWrite" Computed(bulk_write) Admin Writes Allowed Unaudited One "inserts, updates and deletes documents of several collections" {
        queue: Some(Work::Statement),
    };
    count "count" Database(Find) Anywhere Reads Refused Unaudited One "counts documents" {
        explain: Some(explain::count),
        query_log: QueryLog::Queries,
        queue: Some(Work::Query),
        time_limit: TimeLimit::ClientAndOperator,
    };
    distinct "distinct" Database(Find) Anywhere Reads Allowed Unaudited None "finds the distinct values of a field" {
        explain: Some(explain::distinct),
        query_log: QueryLog::Queries,
        queue: Some(Work::Query),
        snapshot_read: SnapshotRead::Allowed,
        time_limit: TimeLimit::ClientAndOperator,
    };
    aggregate "aggregate" Computed(aggregate) Anywhere Writes Allowed Unaudited One "runs a pipeline" {
        explain: Some(explain::aggregate),
        outside_api: OutsideApi::Fields(&["collectionUUID", "explain", "isMapReduceCommand", "runtimeConstants"]),
        query_log: QueryLog::Queries,
        queue: Some(Work::Query),
        snapshot_read: SnapshotRead::Allowed,
        time_limit: TimeLimit::ClientAndOperator,
    };
    explain "explain" Computed(explain) Anywhere Reads Refused Unaudited One "shows how a command would find its documents" {
        query_log: QueryLog::QueriesOfArgument,
        queue: Some(Work::Query),
        time_limit: TimeLimit::ClientAndOperator,
    };
    commit_transaction "commitTransaction" Authenticated Admin Writes Ends Unaudited One "commits a transaction";
    abort_transaction "abortTransaction" Authenticated Admin Writes Ends Unaudited One "aborts a transaction";
    configure_fail_point "configureFailPoint" Cluster(SetParameter) Admin Reads Refused Audited None "makes commands fail, for tests" {
        availability: Availability::TestCommands,
    };
}

/// All commands.
pub(crate) fn all() -> &'static [Command] {
    COMMANDS
}

/// Returns a command's id among the operations that metrics count.
pub(crate) fn operation(command: &'static Command) -> OperationId {
    COMMANDS.element_offset(command).map_or(OperationId::UNKNOWN, OperationId)
}

/// Returns the command of that name.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name || command.aliases.contains(&name))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn what_is_written_outside_of_transactions_is_audited() {
        let writes = |command: &&Command| command.effect == Effect::Writes;
        for command in COMMANDS.iter().filter(writes) {
            if command.transaction == InTransaction::Refused {
                assert_eq!(command.audit, Audit::Audited, "{}", command.name);
            }
        }
    }

    #[test]
    fn what_waits_in_a_queue_is_what_users_run() {
        let note_wait = |name| find(name).unwrap().traits.queue.is_some();
        assert_eq!(COMMANDS.iter().filter(|command| command.traits.queue.is_some()).count(), 16);
        for open in ["hello", "ping", "saslStart", "currentOp", "killOp", "serverStatus", "commitTransaction"]
        {
            assert!(!note_wait(open), "{open}");
        }
        assert!(!note_wait("getMore"), "it knows itself when it has work to do");
    }

    #[test]
    fn only_what_version_1_of_the_api_has_can_lack_something_of_it() {
        assert_eq!(COMMANDS.iter().filter(|command| command.api == ApiVersion::One).count(), 31);
        for command in COMMANDS.iter().filter(|command| command.api == ApiVersion::None) {
            assert_eq!(command.traits.outside_api, OutsideApi::Nothing, "{}", command.name);
        }
    }

    #[test]
    fn every_name_leads_to_one_command() {
        let mut seen = HashSet::new();
        for command in COMMANDS {
            for name in std::iter::once(&command.name).chain(command.aliases) {
                assert!(seen.insert(*name), "{name} stands twice in the table");
            }
            assert!(!command.help.is_empty(), "{}", command.name);
            assert_eq!(COMMANDS[operation(command).0].name, command.name);
        }
        assert!(find("Ping").is_none(), "names are case-sensitive");
        assert!(find("atlasVersion").is_none(), "shells take its absence for what it is");
    }
}
