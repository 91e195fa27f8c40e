//! How much `explain` shows.

use mql::Code;

use crate::protocol::error::{Error, Result};

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// The plan.
    Planner,
    /// Also what running it examines.
    Execution,
    /// Also for the plans that were not chosen.
    AllPlans,
}

impl Verbosity {
    /// Reads it; the most verbose if absent.
    pub(crate) fn parse(text: Option<&str>) -> Result<Verbosity> {
        match text {
            Some("queryPlanner") => Ok(Verbosity::Planner),
            Some("executionStats") => Ok(Verbosity::Execution),
            None | Some("allPlansExecution") => Ok(Verbosity::AllPlans),
            Some(other) => Err(Error::new(
                Code::BAD_VALUE,
                format!("Enumeration value '{other}' for field 'explain.verbosity' is not a valid value."),
            )),
        }
    }
}
