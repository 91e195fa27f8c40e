//! The versioned API: a client may promise to use nothing but what version 1 has.

use mql::Code;

use crate::commands::Command;
use crate::error::{Error, Result};
use crate::fields::Fields;

/// The commands of version 1.
const COMMANDS: [&str; 32] = [
    "abortTransaction",
    "aggregate",
    "authenticate",
    "bulkWrite",
    "collMod",
    "commitTransaction",
    "count",
    "create",
    "createIndexes",
    "delete",
    "distinct",
    "drop",
    "dropDatabase",
    "dropIndexes",
    "endSessions",
    "explain",
    "find",
    "findAndModify",
    "getMore",
    "hello",
    "insert",
    "killCursors",
    "killSessions",
    "listCollections",
    "listDatabases",
    "listIndexes",
    "logout",
    "ping",
    "refreshSessions",
    "saslContinue",
    "saslStart",
    "update",
];

/// Checks what the client has promised.
pub(crate) fn check(fields: Fields<'_>, command: &Command) -> Result<()> {
    let (strict, deprecation) = (fields.boolean("apiStrict")?, fields.boolean("apiDeprecationErrors")?);
    match fields.text("apiVersion")? {
        None if strict.is_some() || deprecation.is_some() => {
            let text = "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion";
            Err(Error::new(Code::API_VERSION_ERROR, text))
        }
        Some("1") if strict == Some(true) && !COMMANDS.contains(&command.name) => {
            let text =
                format!("Provided apiStrict:true, but the command {} is not in API Version 1", command.name);
            Err(Error::new(Code::API_STRICT_ERROR, text))
        }
        None | Some("1") => Ok(()),
        Some(_) => Err(Error::new(Code::API_VERSION_ERROR, "API version must be \"1\"")),
    }
}
