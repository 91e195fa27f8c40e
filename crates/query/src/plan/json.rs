//! A plan as clients read it.

use document::{Object, Value};

use super::hybrid::HybridInfo;
use super::info::{Distinct, QueryInfo, SortOrder, aggregate_name};
use super::{Plan, Work};

/// The version of the form, the only one that clients know.
const VERSION: i64 = 2;

impl Plan {
    /// Returns the body of the answer to a request for a plan.
    pub fn to_value(&self) -> Value {
        let ranges = self.ranges.iter().map(super::QueryRange::to_value).collect::<Vec<_>>();
        let mut plan = Object::new();
        plan.insert("partitionedQueryExecutionInfoVersion", VERSION);
        match &self.work {
            Work::Merge(info) => {
                plan.insert("queryInfo", query_info(info));
                plan.insert("queryRanges", ranges);
                plan.insert("hybridSearchQueryInfo", Value::Null);
            }
            Work::Fuse(info) => {
                plan.insert("queryRanges", ranges);
                plan.insert("hybridSearchQueryInfo", hybrid_info(info));
            }
        }
        plan.into()
    }
}

fn query_info(info: &QueryInfo) -> Value {
    let distinct = match info.distinct {
        Distinct::None => "None",
        Distinct::Ordered => "Ordered",
        Distinct::Unordered => "Unordered",
    };
    let orders = info.order_by.iter().map(|(order, _)| match order {
        SortOrder::Ascending => "Ascending",
        SortOrder::Descending => "Descending",
    });
    let aggregate = |kind: Option<_>| kind.map_or(Value::Null, |kind| aggregate_name(kind).into());
    let by_alias: Object =
        info.aliases.iter().map(|(alias, kind)| (alias.clone(), aggregate(*kind))).collect();
    let distinct_count = info
        .distinct_count_alias
        .as_deref()
        .map_or(Value::Null, |alias| Object::from_iter([("dCountAlias", Value::from(alias))]).into());
    let members: Object = [
        ("distinctType", distinct.into()),
        ("top", count(info.top)),
        ("offset", count(info.offset)),
        ("limit", count(info.limit)),
        ("orderBy", texts(orders)),
        ("orderByExpressions", texts(info.order_by.iter().map(|(_, text)| text.as_str()))),
        ("groupByExpressions", texts(info.group_by.iter().map(String::as_str))),
        ("groupByAliases", texts(info.aliases.iter().map(|(alias, _)| alias.as_str()))),
        ("aggregates", texts(info.aggregate.map(aggregate_name).into_iter())),
        ("groupByAliasToAggregateType", by_alias.into()),
        ("rewrittenQuery", info.rewritten_query.as_str().into()),
        ("hasSelectValue", info.has_select_value.into()),
        ("dCountInfo", distinct_count),
        ("hasNonStreamingOrderBy", info.has_non_streaming_order_by.into()),
    ]
    .into_iter()
    .collect();
    members.into()
}

fn hybrid_info(info: &HybridInfo) -> Value {
    let components = info.components.iter().map(query_info).collect::<Vec<_>>();
    let weights = info.weights.iter().copied().map(Value::Double).collect::<Vec<_>>();
    let members: Object = [
        ("globalStatisticsQuery", info.statistics_query.as_str().into()),
        ("componentQueryInfos", components.into()),
        ("componentWithoutPayloadQueryInfos", Value::Array(Vec::new())),
        ("projectionQueryInfo", Value::Null),
        ("componentWeights", weights.into()),
        ("skip", count(info.skip)),
        ("take", count(info.take)),
        ("requiresGlobalStatistics", info.requires_statistics.into()),
    ]
    .into_iter()
    .collect();
    members.into()
}

fn texts<'a>(texts: impl Iterator<Item = &'a str>) -> Value {
    Value::Array(texts.map(Value::from).collect())
}

/// Counts end at [`COUNT_MAX`](super::rewrite::COUNT_MAX), where they come from and where they are computed.
fn count(count: Option<u64>) -> Value {
    count.and_then(|count| i64::try_from(count).ok()).map_or(Value::Null, Value::Int)
}
