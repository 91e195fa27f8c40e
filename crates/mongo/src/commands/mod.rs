//! The one table of what this front end understands, one file per command.
//!
//! A row says who may run a command, where, whether it writes, what it is in a transaction, and whether the audit log has it; the dispatcher does the rest.
//! `listCommands` shows this table.

#![allow(clippy::unused_async, reason = "all commands have one shape")]

mod abort_transaction;
pub(crate) mod aggregate;
mod authenticate;
pub(crate) mod build_info;
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
pub(crate) mod current_op;
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

use std::future::Future;
use std::pin::Pin;

use telemetry::OperationId;

use crate::call::Call;
use crate::error::Result;
use crate::reply::Reply;
use crate::rights::{self, Action, Need};

/// What a handler comes to.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Reply>> + Send + 'a>>;

/// Runs a command.
pub(crate) type Handler = for<'a> fn(&'a mut Call) -> Running<'a>;

/// Who may run a command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access {
    /// Everybody, also before authentication.
    Everybody,
    /// Whoever has authenticated, where that is required.
    Users,
    /// Whose roles allow this in the command's database.
    Database(Action),
    /// Whose roles allow this on the server.
    Cluster(Action),
    /// Whose roles allow what it needs, which depends on what it asks for.
    Asked(fn(&Call) -> Result<Vec<Need>>),
}

/// Where a command may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
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

/// What a command is in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InTransaction {
    /// It may be part of one.
    Allowed,
    /// It may be part of one that has begun.
    AllowedLater,
    /// It may not.
    Refused,
    /// It ends one.
    Ends,
}

/// Which of its runs the audit log has. Refusals of every command are in it besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audit {
    /// All: it changes something other than documents.
    Audited,
    /// The last step of an authentication that succeeds.
    SignIn,
    /// None: it reads, or is about documents and what is computed from them.
    Unaudited,
}

/// One row of the table.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Other spellings.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) access: Access,
    pub(crate) place: Place,
    pub(crate) effect: Effect,
    pub(crate) transaction: InTransaction,
    pub(crate) audit: Audit,
    /// What `listCommands` says about it.
    pub(crate) help: &'static str,
    pub(crate) run: Handler,
}

macro_rules! access {
    (Everybody) => {
        Access::Everybody
    };
    (Users) => {
        Access::Users
    };
    (Database $action:ident) => {
        Access::Database(Action::$action)
    };
    (Cluster $action:ident) => {
        Access::Cluster(Action::$action)
    };
    (Asked $needs:ident) => {
        Access::Asked(rights::$needs)
    };
}

macro_rules! commands {
    ($($module:ident $name:literal $([$($alias:literal),*])? $access:ident $(($what:ident))? $place:ident $effect:ident $transaction:ident $audit:ident $help:literal;)*) => {
        static COMMANDS: &[Command] = &[$(
            Command {
                name: $name,
                aliases: &[$($($alias),*)?],
                access: access!($access $($what)?),
                place: Place::$place,
                effect: Effect::$effect,
                transaction: InTransaction::$transaction,
                audit: Audit::$audit,
                help: $help,
                run: |call| Box::pin($module::run(call)),
            },
        )*];
    };
}

commands! {
    hello "hello" ["isMaster", "ismaster"] Everybody Anywhere Reads Refused Unaudited "says what this server is and can do";
    ping "ping" Everybody Anywhere Reads Refused Unaudited "answers";
    build_info "buildInfo" ["buildinfo"] Everybody Anywhere Reads Refused Unaudited "says which version this is";

    sasl_start "saslStart" Everybody Anywhere Reads Refused SignIn "begins an authentication";
    sasl_continue "saslContinue" Everybody Anywhere Reads Refused SignIn "goes on with an authentication";
    authenticate "authenticate" Everybody Anywhere Reads Refused Unaudited "authentication by certificate, which is not offered";
    logout "logout" Everybody Anywhere Reads Refused Unaudited "forgets who has authenticated on this connection";
    start_session "startSession" Users Anywhere Reads Refused Unaudited "makes a session";
    end_sessions "endSessions" Everybody Anywhere Reads Refused Unaudited "ends sessions";
    refresh_sessions "refreshSessions" Users Anywhere Reads Refused Unaudited "keeps sessions alive";
    kill_sessions "killSessions" Users Anywhere Reads Refused Unaudited "ends sessions and what runs in them";
    kill_all_sessions "killAllSessions" Cluster(KillAnySession) Anywhere Reads Refused Audited "ends the sessions of users and what runs in them";
    kill_all_sessions_by_pattern "killAllSessionsByPattern" Cluster(KillAnySession) Anywhere Reads Refused Audited "ends the sessions that fit and what runs in them";
    create_user "createUser" Asked(create_user) Anywhere Writes Refused Audited "makes a user";
    update_user "updateUser" Asked(update_user) Anywhere Writes Refused Audited "changes a user";
    drop_user "dropUser" Database(DropUser) Anywhere Writes Refused Audited "removes a user";
    drop_all_users_from_database "dropAllUsersFromDatabase" Database(DropUser) Anywhere Writes Refused Audited "removes all users of a database";
    grant_roles_to_user "grantRolesToUser" Asked(grant_roles) Anywhere Writes Refused Audited "gives roles to a user";
    revoke_roles_from_user "revokeRolesFromUser" Asked(revoke_roles) Anywhere Writes Refused Audited "takes roles from a user";
    users_info "usersInfo" Asked(users_info) Anywhere Reads Refused Unaudited "shows users";
    roles_info "rolesInfo" Asked(roles_info) Anywhere Reads Refused Unaudited "shows roles";

    server_status "serverStatus" Cluster(ServerStatus) Anywhere Reads Refused Unaudited "shows figures of this process";
    get_parameter "getParameter" Cluster(GetParameter) Anywhere Reads Refused Unaudited "shows parameters";
    set_parameter "setParameter" Cluster(SetParameter) Admin Reads Refused Audited "sets parameters";
    host_info "hostInfo" Cluster(HostInfo) Anywhere Reads Refused Unaudited "describes the machine";
    connection_status "connectionStatus" Everybody Anywhere Reads Refused Unaudited "says who has authenticated";
    whatsmyuri "whatsmyuri" Everybody Anywhere Reads Refused Unaudited "says which address the client has";
    get_log "getLog" Cluster(GetLog) Admin Reads Refused Unaudited "shows the last lines of the log";
    get_cmd_line_opts "getCmdLineOpts" Cluster(GetCmdLineOpts) Admin Reads Refused Unaudited "says how the server was started";
    list_commands "listCommands" Everybody Anywhere Reads Refused Unaudited "shows this table";
    top "top" Cluster(Top) Admin Reads Refused Unaudited "says how much collections are used";
    current_op "currentOp" Asked(current_op) Admin Reads Refused Unaudited "shows the commands that run";
    kill_op "killOp" Asked(kill_op) Admin Reads Refused Audited "stops a command that runs";
    repl_set_get_status "replSetGetStatus" Cluster(ReplSetGetStatus) Admin Reads Refused Unaudited "describes the replica set";
    repl_set_get_config "replSetGetConfig" Cluster(ReplSetGetConfig) Admin Reads Refused Unaudited "shows the configuration of the replica set";
    get_last_request_statistics "getLastRequestStatistics" Users Anywhere Reads Refused Unaudited "says what the previous command cost";
    get_default_rw_concern "getDefaultRWConcern" Cluster(GetDefaultRwConcern) Admin Reads Refused Unaudited "shows the concerns that hold by default";
    log_rotate "logRotate" Cluster(LogRotate) Admin Reads Refused Audited "begins a new page of the log";
    fsync "fsync" Cluster(Fsync) Admin Reads Refused Audited "makes everything durable";
    profile "profile" Database(EnableProfiler) Anywhere Reads Refused Unaudited "shows that the profiler is off";
    list_databases "listDatabases" Asked(list_databases) Admin Reads Refused Unaudited "lists databases";
    list_collections "listCollections" Asked(list_collections) Anywhere Reads Refused Unaudited "lists the collections of a database";
    create "create" Asked(create) Anywhere Writes Allowed Audited "makes a collection or a view";
    drop "drop" Database(DropCollection) Anywhere Writes Refused Audited "removes a collection";
    drop_database "dropDatabase" Database(DropDatabase) Anywhere Writes Refused Audited "removes a database";
    rename_collection "renameCollection" Asked(rename_collection) Admin Writes Refused Audited "gives a collection another name";
    list_indexes "listIndexes" Database(ListIndexes) Anywhere Reads Refused Unaudited "lists the indexes of a collection";
    create_indexes "createIndexes" Database(CreateIndex) Anywhere Writes Allowed Audited "makes indexes";
    drop_indexes "dropIndexes" ["deleteIndexes"] Database(DropIndex) Anywhere Writes Refused Audited "removes indexes";
    coll_mod "collMod" Asked(change_view) Anywhere Writes Refused Audited "changes a collection or an index";
    coll_stats "collStats" ["collstats"] Database(CollStats) Anywhere Reads Refused Unaudited "shows sizes of a collection";
    db_stats "dbStats" ["dbstats"] Database(DbStats) Anywhere Reads Refused Unaudited "shows sizes of a database";
    validate "validate" Database(Validate) Anywhere Reads Refused Unaudited "checks what is stored of a collection";
    custom_action "customAction" Asked(custom_action) Anywhere Writes Refused Audited "sets throughput, shard keys and indexes";
    search_indexes "createSearchIndexes" Database(CreateIndex) Anywhere Reads Refused Unaudited "search indexes, which are not offered";
    search_indexes "updateSearchIndex" Database(CreateIndex) Anywhere Reads Refused Unaudited "search indexes, which are not offered";
    search_indexes "dropSearchIndex" Database(DropIndex) Anywhere Reads Refused Unaudited "search indexes, which are not offered";
    insert "insert" Asked(insert) Anywhere Writes Allowed Unaudited "stores documents";
    find "find" Database(Find) Anywhere Reads Allowed Unaudited "finds documents";
    get_more "getMore" Asked(get_more) Anywhere Reads Allowed Unaudited "goes on with a cursor";
    kill_cursors "killCursors" Users Anywhere Reads AllowedLater Unaudited "closes cursors";
    update "update" Asked(update) Anywhere Writes Allowed Unaudited "changes documents";
    delete "delete" Database(Remove) Anywhere Writes Allowed Unaudited "deletes documents";
    find_and_modify "findAndModify" ["findandmodify"] Asked(find_and_modify) Anywhere Writes Allowed Unaudited "changes one document and shows it";
    bulk_write "bulkWrite" Asked(bulk_write) Admin Writes Allowed Unaudited "stores, changes and deletes documents of several collections";
    count "count" Database(Find) Anywhere Reads Refused Unaudited "counts documents";
    distinct "distinct" Database(Find) Anywhere Reads Allowed Unaudited "finds the different values of a field";
    aggregate "aggregate" Asked(aggregate) Anywhere Writes Allowed Unaudited "runs a pipeline";
    explain "explain" Asked(explain) Anywhere Reads Refused Unaudited "shows how a command would find its documents";
    commit_transaction "commitTransaction" Users Admin Writes Ends Unaudited "makes the writes of a transaction durable and seen";
    abort_transaction "abortTransaction" Users Admin Writes Ends Unaudited "forgets the writes of a transaction";
    configure_fail_point "configureFailPoint" Cluster(SetParameter) Admin Reads Refused Audited "makes commands fail, for tests";
}

/// All commands.
pub(crate) fn all() -> &'static [Command] {
    COMMANDS
}

/// A command's place among the operations that figures are kept of.
pub(crate) fn operation(command: &'static Command) -> OperationId {
    COMMANDS.element_offset(command).map_or(OperationId::UNKNOWN, OperationId)
}

/// The command of that name.
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
