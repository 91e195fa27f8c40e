//! Kinds of scripts by the segment of a path.

use document::ScriptKind;

/// Returns the kind of script of a path segment, and its envelope.
pub(crate) fn script_kind(segment: &str) -> Option<(ScriptKind, &'static str)> {
    match segment {
        "sprocs" => Some((ScriptKind::StoredProcedure, "StoredProcedures")),
        "triggers" => Some((ScriptKind::Trigger, "Triggers")),
        "udfs" => Some((ScriptKind::Function, "UserDefinedFunctions")),
        _ => None,
    }
}
