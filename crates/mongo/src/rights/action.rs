//! Actions: what commands do, by the names under which roles grant it.

macro_rules! actions {
    ($($action:ident $name:literal,)*) => {
        /// Something that a role may allow. Only actions that a command of this front end needs have a name here.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Action {
            $($action,)*
        }

        impl Action {
            /// All of them, by name.
            pub(crate) const ALL: &[Action] = &[$(Action::$action,)*];

            /// As privileges list it.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Action::$action => $name,)*
                }
            }
        }
    };
}

actions! {
    BypassDocumentValidation "bypassDocumentValidation",
    ChangeCustomData "changeCustomData",
    ChangePassword "changePassword",
    ChangeStream "changeStream",
    CollMod "collMod",
    CollStats "collStats",
    CreateCollection "createCollection",
    CreateIndex "createIndex",
    CreateUser "createUser",
    DbStats "dbStats",
    DropCollection "dropCollection",
    DropDatabase "dropDatabase",
    DropIndex "dropIndex",
    DropUser "dropUser",
    EnableProfiler "enableProfiler",
    Find "find",
    Fsync "fsync",
    GetCmdLineOpts "getCmdLineOpts",
    GetDefaultRwConcern "getDefaultRWConcern",
    GetLog "getLog",
    GetParameter "getParameter",
    GrantRole "grantRole",
    HostInfo "hostInfo",
    IndexStats "indexStats",
    Inprog "inprog",
    Insert "insert",
    KillAnyCursor "killAnyCursor",
    KillAnySession "killAnySession",
    KillOp "killop",
    ListCollections "listCollections",
    ListDatabases "listDatabases",
    ListIndexes "listIndexes",
    LogRotate "logRotate",
    Remove "remove",
    RenameCollectionSameDb "renameCollectionSameDB",
    ReplSetGetConfig "replSetGetConfig",
    ReplSetGetStatus "replSetGetStatus",
    RevokeRole "revokeRole",
    ServerStatus "serverStatus",
    SetParameter "setParameter",
    Top "top",
    Update "update",
    Validate "validate",
    ViewRole "viewRole",
    ViewUser "viewUser",
}
