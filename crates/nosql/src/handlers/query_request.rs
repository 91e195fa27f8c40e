//! The query in a request's body: its text, its parameters, and the resume filter of a client that merges.

use document::{ItemNumber, ItemRid, Value};
use engine::{Container, ResumeFilter};
use query::{Dialect, Query};

use crate::handlers::call::Call;
use crate::handlers::plan_query;
use crate::message::options::{Flag, TextOption};
use crate::protocol::error::Error;
use crate::protocol::gateway::Gateway;
use crate::protocol::json;
use crate::protocol::limits::QUERY_PARAMETERS;

/// A parsed query.
pub(crate) struct QueryRequest {
    pub(crate) query: Query,
    /// Where to resume in the query's order, for a client that merges several ranges.
    pub(crate) resume_filter: Option<ResumeFilter>,
}

/// The contents of the body, before parsing.
pub(crate) struct Question {
    pub(crate) text: String,
    /// Names with their `@`.
    pub(crate) parameters: Vec<(String, Value)>,
    resume_filter: Option<ResumeFilter>,
}

/// Reads and parses the query of a request.
pub(crate) fn parse(call: &Call, dialect: &Dialect) -> Result<QueryRequest, Error> {
    let Question { text, parameters, resume_filter } = read(call)?;
    Ok(QueryRequest { query: query::parse(&text, &parameters, dialect)?, resume_filter })
}

/// Reads the query of a request. The `query` crate limits the length of its text, in both forms.
pub(crate) fn read(call: &Call) -> Result<Question, Error> {
    if call.head.has_bare_query() {
        let text = std::str::from_utf8(&call.body);
        let text = text.map_err(|_| Error::BadRequest("The query text is not UTF-8.".to_owned()))?;
        return Ok(Question { text: text.to_owned(), parameters: Vec::new(), resume_filter: None });
    }
    let body = json::parse_object(&call.body)?;
    Ok(Question {
        text: json::string_member(&body, "query")?.to_owned(),
        parameters: parameters(&body)?,
        resume_filter: resume_filter(&body)?,
    })
}

fn parameters(body: &Value) -> Result<Vec<(String, Value)>, Error> {
    let list = match body.get("parameters") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= QUERY_PARAMETERS => list,
        Some(Value::Array(_)) => {
            return Err(Error::BadRequest(format!("A query has at most {QUERY_PARAMETERS} parameters.")));
        }
        Some(_) => return Err(Error::BadRequest("The query's 'parameters' must be an array.".to_owned())),
    };
    let one = |parameter: &Value| {
        let name = json::string_member(parameter, "name")?.to_owned();
        let value = parameter.get("value").cloned();
        let value =
            value.ok_or_else(|| Error::BadRequest(format!("The query parameter '{name}' has no value.")))?;
        Ok((name, value))
    };
    list.iter().map(one).collect()
}

/// `{"value":[…],"rid":"…","exclude":false}`: the last values of the sort keys and the last item.
fn resume_filter(body: &Value) -> Result<Option<ResumeFilter>, Error> {
    let filter = match body.get("resumeFilter") {
        None | Some(Value::Null) => return Ok(None),
        Some(filter) => filter,
    };
    let wrong = || {
        Error::BadRequest(format!(
            "The 'resumeFilter' {} is invalid; accepted is {{\"value\":[...],\"rid\":\"...\",\"exclude\":true}}.",
            filter.to_json()
        ))
    };
    let values = filter.get("value").and_then(Value::as_array).ok_or_else(wrong)?;
    let values = values.iter().map(resume_value).collect::<Result<Vec<_>, Error>>()?;
    let number = match filter.get("rid") {
        None | Some(Value::Null) => None,
        Some(Value::String(rid)) => Some(ItemNumber(rid.parse::<ItemRid>().map_err(|_| wrong())?.number)),
        Some(_) => return Err(wrong()),
    };
    let exclude = match filter.get("exclude") {
        None | Some(Value::Null) => false,
        Some(exclude) => exclude.as_bool().ok_or_else(wrong)?,
    };
    Ok(Some(ResumeFilter { values, number, exclude }))
}

/// Parses the value of one sort key: a scalar as it is, undefined as an empty array.
///
/// An array or an object is sent as `{"type":"array","low":…,"high":…}`, a hash that clients of the service compute.
/// Arrays and objects are not sorted by it here, so there is no position to resume from: used as a value, it would
/// repeat rows forever or lose them.
fn resume_value(value: &Value) -> Result<Option<Value>, Error> {
    match value {
        Value::Array(items) if items.is_empty() => Ok(None),
        Value::Object(hash) if ["type", "low", "high"].iter().all(|name| hash.contains(name)) => Err(
            Error::BadRequest("ORDER BY over arrays or objects cannot be resumed across ranges.".to_owned()),
        ),
        Value::Array(_) | Value::Object(_) => Err(Error::BadRequest(format!(
            "The value {} in the 'resumeFilter' is invalid; accepted are null, booleans, numbers, strings, and [] for \
             undefined.",
            value.to_json()
        ))),
        scalar => Ok(Some(scalar.clone())),
    }
}

/// Checks that a query over all partitions is intended, as in the service, where it is expensive: by a header, or by
/// naming a range; otherwise it must name the partition key, beside the query or in it. A strict gateway also refuses
/// one whose rows the client has to join.
pub(crate) fn check_reach(call: &Call, container: &Container, query: &Query) -> Result<(), Error> {
    let head = &call.head;
    let narrow =
        head.partition_key()?.is_some() || head.effective_range()?.is_some() || head.range_id().is_some();
    let definition = &container.definition.partition_key;
    if narrow || definition.system_key {
        return Ok(());
    }
    if !head.flag(Flag::CrossPartition)? && query.access(definition).keys.is_none() {
        return Err(Error::BadRequest(format!(
            // The service's words. In direct mode such queries are always enabled.
            "Cross partition query is required but disabled. Please set {} to true, specify {}, or revise your query \
             to avoid this exception.",
            Flag::CrossPartition.header(),
            TextOption::PartitionKey.header()
        )));
    }
    match call.account().gateway {
        Gateway::Lenient => Ok(()),
        Gateway::Strict => refuse_join(call, container),
    }
}

/// Refuses a query over several partition keys whose rows the client has to join, as the service's gateway does, however
/// many ranges the container has. Clients that can join rows then go by the plan in the answer, or request it.
fn refuse_join(call: &Call, container: &Container) -> Result<(), Error> {
    let plan = plan_query::plan(call, container)?;
    if plan.is_within_one_key() || plan.features.is_empty() {
        return Ok(());
    }
    if plan.has_named_aggregates() {
        // The service's words; it gives no plan with them, nor a substatus.
        let message = "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.";
        return Err(Error::BadRequest(message.to_owned()));
    }
    Err(Error::NeedsPlan { plan: plan.to_value().to_json() })
}
