//! When a command may begin: the queue that its kind of work waits in, for all front ends of the server together.
//!
//! Greetings, authentication and what operators look in with wait in none. Neither does what belongs to a transaction that has
//! begun: it holds what others wait for.

use transport::{Permit, Work};

use crate::call::Call;
use crate::commands::InTransaction;
use crate::error::Result;
use crate::service::Service;
use crate::session::Numbered;

/// The line of a command, if it has one. `getMore` knows itself when it has work to do.
fn line(command: &str) -> Option<Work> {
    match command {
        "insert" => Some(Work::Brief),
        "update" | "delete" | "findAndModify" | "bulkWrite" => Some(Work::Statement),
        "find" | "aggregate" | "count" | "distinct" | "explain" | "createIndexes" | "collStats"
        | "dbStats" | "validate" => Some(Work::Query),
        _ => None,
    }
}

/// Waits until the command may begin; an error that clients try again after if there is too much to do.
pub(crate) async fn wait<'a>(call: &Call, service: &'a Service) -> Result<Option<Permit<'a>>> {
    let goes_on = matches!(call.numbered, Some(Numbered::Transaction { starts: false, .. }));
    let ends = call.command.transaction == InTransaction::Ends;
    let Some(work) = line(call.command.name).filter(|_| !goes_on && !ends) else { return Ok(None) };
    Ok(Some(service.settings.admission.enter(call.connection.tenant(), work).await?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands;

    #[test]
    fn what_has_a_line_is_a_command_that_users_run() {
        let lined: Vec<&str> =
            commands::all().iter().map(|command| command.name).filter(|name| line(name).is_some()).collect();
        assert_eq!(lined.len(), 14, "a name in the list is no command: {lined:?}");
        for open in ["hello", "ping", "saslStart", "currentOp", "killOp", "serverStatus", "commitTransaction"]
        {
            assert!(line(open).is_none(), "{open}");
        }
    }
}
