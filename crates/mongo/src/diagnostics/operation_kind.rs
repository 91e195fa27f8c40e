//! Kinds of operations, as `opcounters`, `top` and `currentOp` distinguish them, each in its own words.

/// What a command counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Insert,
    Query,
    Update,
    Delete,
    GetMore,
    Command,
}

impl OperationKind {
    /// All kinds, in the order in which `opcounters` lists them.
    pub(crate) const ALL: [OperationKind; 6] = [
        OperationKind::Insert,
        OperationKind::Query,
        OperationKind::Update,
        OperationKind::Delete,
        OperationKind::GetMore,
        OperationKind::Command,
    ];

    /// Returns the name in `opcounters` of `serverStatus`.
    pub(crate) fn in_counters(self) -> &'static str {
        match self {
            OperationKind::Insert => "insert",
            OperationKind::Query => "query",
            OperationKind::Update => "update",
            OperationKind::Delete => "delete",
            OperationKind::GetMore => "getmore",
            OperationKind::Command => "command",
        }
    }

    /// Returns the name in the totals of `top`.
    pub(crate) fn in_top(self) -> &'static str {
        match self {
            OperationKind::Insert => "insert",
            OperationKind::Query => "queries",
            OperationKind::Update => "update",
            OperationKind::Delete => "remove",
            OperationKind::GetMore => "getmore",
            OperationKind::Command => "commands",
        }
    }

    /// Returns the name in an entry of `currentOp`.
    pub(crate) fn in_current_op(self) -> &'static str {
        match self {
            OperationKind::Delete => "remove",
            other => other.in_counters(),
        }
    }

    /// Returns the array of a command's statements, each of which counts as one operation; none if the command is one.
    pub(crate) fn statements(self) -> Option<&'static str> {
        match self {
            OperationKind::Insert => Some("documents"),
            OperationKind::Update => Some("updates"),
            OperationKind::Delete => Some("deletes"),
            OperationKind::Query | OperationKind::GetMore | OperationKind::Command => None,
        }
    }

    /// Whether it writes, for the lock times of `top`.
    pub(super) fn writes(self) -> bool {
        matches!(self, OperationKind::Insert | OperationKind::Update | OperationKind::Delete)
    }
}
