//! Feeds: the envelope around lists, queries over small lists, and paging through them.
//!
//! Databases, containers, offers and ranges are few, so their feeds are made whole, filtered and cut into pages
//! here. A page's token names the last resource shown; a feed that changes meanwhile neither repeats nor skips
//! what stays in it. Items have a feed of their own in the engine.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use document::Value;
use engine::{Charge, Container};
use hyper::StatusCode;
use query::{Context, Dialect, Query};

use crate::call::Call;
use crate::error::Error;
use crate::limits::QUERY_PARAMETERS;
use crate::request::Verb;
use crate::response::Reply;
use crate::{headers, json};

/// Answers a list or a query of control-plane resources, each an object with an `id`.
pub(crate) fn reply(
    call: &Call,
    parent: &str,
    envelope: &str,
    mut resources: Vec<Value>,
) -> Result<Reply, Error> {
    if call.head.verb()? == Some(Verb::Query) {
        let query = query(call)?;
        let context = Context::new(0, 1);
        resources.retain(|resource| query.matches(resource, &context));
    }
    resources.sort_by(|a, b| id(a).cmp(id(b)));
    let page = call.head.page()?;
    if let Some(token) = &page.continuation {
        let after = decode(token)?;
        resources.retain(|resource| id(resource) > after.as_str());
    }
    let more = resources.len() > page.max_items;
    resources.truncate(page.max_items);
    let mut body = Vec::new();
    open(&mut body, parent, envelope);
    for (index, resource) in resources.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        document::write_json(resource.view(), &mut body);
    }
    close(&mut body, resources.len());
    let charge = Charge::list(resources.len() as u64, body.len() as u64);
    let reply = Reply::json(StatusCode::OK, body).charged(charge).with(headers::ITEM_COUNT, resources.len());
    Ok(match resources.last() {
        Some(last) if more => reply.with(headers::CONTINUATION, URL_SAFE_NO_PAD.encode(id(last))),
        _ => reply,
    })
}

/// The query in a request's body.
pub(crate) fn query(call: &Call) -> Result<Query, Error> {
    let (text, parameters) = query_text(call)?;
    let query = query::parse(&text, &parameters, &Dialect::default())?;
    if query.selects_items() {
        return Ok(query);
    }
    Err(Error::BadRequest("A query over these resources can select them, and no more.".to_owned()))
}

/// The query over a container's items in a request's body.
pub(crate) fn item_query(call: &Call, container: &Container) -> Result<Query, Error> {
    let (text, parameters) = query_text(call)?;
    Ok(query::parse(&text, &parameters, &container.definition.dialect())?)
}

/// A query over all partitions is expensive in the service, so clients must say that they mean it: by a header,
/// or by naming a range; or they name the partition key, beside the query or in it.
pub(crate) fn check_reach(call: &Call, container: &Container, query: &Query) -> Result<(), Error> {
    let head = &call.head;
    let narrow =
        head.partition_key()?.is_some() || head.effective_range()?.is_some() || head.range_id().is_some();
    if narrow || head.flag(&headers::CROSS_PARTITION)? {
        return Ok(());
    }
    if query.access(&container.definition.partition_key).keys.is_some() {
        return Ok(());
    }
    Err(Error::BadRequest(format!(
        "Cross partition query is required but disabled. Please set {} to true, specify {}, or revise your query to \
         avoid this exception.",
        headers::CROSS_PARTITION,
        headers::PARTITION_KEY
    )))
}

/// The query's text and parameters. How long the text may be is `query`'s business, whatever form it came in.
fn query_text(call: &Call) -> Result<(String, Vec<(String, Value)>), Error> {
    if call.head.has_bare_query() {
        let text = std::str::from_utf8(&call.body);
        let text = text.map_err(|_| Error::BadRequest("The query text is not UTF-8.".to_owned()))?;
        return Ok((text.to_owned(), Vec::new()));
    }
    let body = json::parse_object(&call.body)?;
    if body.get("resumeFilter").is_some_and(|filter| !filter.is_null()) {
        return Err(Error::BadRequest("resuming an ORDER BY query by 'resumeFilter' is".to_owned()));
    }
    let text = json::string_member(&body, "query")?;
    Ok((text.to_owned(), parameters(&body)?))
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

/// Begins `{"_rid":…,"<envelope>":[`.
pub(crate) fn open(out: &mut Vec<u8>, parent: &str, envelope: &str) {
    out.extend_from_slice(b"{\"_rid\":\"");
    out.extend_from_slice(parent.as_bytes());
    out.extend_from_slice(b"\",\"");
    out.extend_from_slice(envelope.as_bytes());
    out.extend_from_slice(b"\":[");
}

/// Ends with `],"_count":n}`.
pub(crate) fn close(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(b"],\"_count\":");
    out.extend_from_slice(count.to_string().as_bytes());
    out.push(b'}');
}

fn id(resource: &Value) -> &str {
    resource.get("id").and_then(Value::as_str).unwrap_or_default()
}

fn decode(token: &str) -> Result<String, Error> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| Error::BadRequest("The continuation token is invalid.".to_owned()))
}
