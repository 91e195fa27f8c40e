//! The part of a plan about one query: the work that remains for the client after each partition has done its own.

use crate::logical::AggregateKind;

/// How a client can find equal rows of several partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distinct {
    /// It need not find them.
    #[default]
    None,
    /// Equal rows follow each other.
    Ordered,
    /// Equal rows may be far apart.
    Unordered,
}

/// A direction of `ORDER BY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortOrder {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// The client's work on the rows that the partitions return.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueryInfo {
    /// Which rows are to be dropped as repeated.
    pub distinct: Distinct,
    /// How many rows to show at most, by `TOP`.
    pub top: Option<u64>,
    /// How many rows to leave out.
    pub offset: Option<u64>,
    /// How many rows to show at most, by `LIMIT`.
    pub limit: Option<u64>,
    /// The keys to merge by, with the text of each.
    pub order_by: Vec<(SortOrder, String)>,
    /// The text of each key of `GROUP BY`.
    pub group_by: Vec<String>,
    /// The aggregate of a `SELECT VALUE`.
    pub aggregate: Option<AggregateKind>,
    /// The members of a grouped or aggregated row, with the aggregate of those that have one.
    pub aliases: Vec<(String, Option<AggregateKind>)>,
    /// The query to send to each partition; empty for the original one.
    pub rewritten_query: String,
    /// Whether rows are bare values.
    pub has_select_value: bool,
    /// Whether a partition's rows come in an order that cannot be merged row by row.
    pub has_non_streaming_order_by: bool,
    /// The member that shows how many distinct rows there are; empty for the bare number.
    pub distinct_count_alias: Option<String>,
}

impl QueryInfo {
    /// Returns `true` if a member of the rows is an aggregate.
    pub(super) fn has_named_aggregates(&self) -> bool {
        self.aliases.iter().any(|(_, kind)| kind.is_some())
    }
}

/// Returns the wire's name of an aggregate.
pub(super) fn aggregate_name(kind: AggregateKind) -> &'static str {
    match kind {
        AggregateKind::Average => "Average",
        AggregateKind::Count => "Count",
        AggregateKind::CountIf => "CountIf",
        AggregateKind::MakeList => "MakeList",
        AggregateKind::MakeSet => "MakeSet",
        AggregateKind::Max => "Max",
        AggregateKind::Min => "Min",
        AggregateKind::Sum => "Sum",
    }
}
