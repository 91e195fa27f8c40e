//! Feeds: the envelope around lists, queries over small lists, and paging through them.
//!
//! Databases, containers, offers and ranges are few, so their feeds are made whole, filtered and cut into pages
//! here. A page's token names the last resource shown; a feed that changes meanwhile neither repeats nor skips
//! what stays in it. Items have a feed of their own in the engine.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use document::Value;
use engine::{Charge, QueryMetrics};
use hyper::StatusCode;
use query::{Arrival, Context, Dialect, Flow, PageLimits, Run};

use crate::call::Call;
use crate::error::Error;
use crate::request::Verb;
use crate::response::Reply;
use crate::{activity, headers, query_request};

/// Answers a list or a query of control-plane resources, each an object with an `id`.
pub(crate) fn reply(
    call: &Call,
    parent: &str,
    envelope: &str,
    mut resources: Vec<Value>,
) -> Result<Reply, Error> {
    let query = match call.head.verb()? {
        Some(Verb::Query) => query_request::parse(call, &Dialect::default())?.query,
        _ => query::parse("SELECT * FROM r", &[], &Dialect::default())?,
    };
    let page = call.head.page()?;
    resources.sort_by(|a, b| id(a).cmp(id(b)));
    if let Some(token) = &page.continuation {
        let after = decode(token)?;
        resources.retain(|resource| id(resource) > after.as_str());
    }
    // What is more than a selection is computed from everything, so it comes on one page.
    let rows = if query.selects_items() { page.max_items } else { usize::MAX };
    let context = Context::new(call.engine().now()?.millis(), activity::numbers().0);
    let mut run = Run::new(&query, &context, Arrival::Any, None, PageLimits { rows, bytes: usize::MAX });
    let mut last = None;
    let mut more = false;
    for (number, resource) in resources.iter().enumerate() {
        match run.push(resource, number as u64).map_err(engine::Error::from)? {
            Flow::More => last = Some(id(resource)),
            Flow::Full => {
                more = true;
                break;
            }
            Flow::Enough => break,
        }
    }
    let rows = run.finish().map_err(engine::Error::from)?.rows;
    let body = enclose(parent, envelope, &rows);
    let (count, bytes) = (rows.len() as u64, body.len() as u64);
    let metrics = QueryMetrics {
        loaded_items: count,
        loaded_bytes: bytes,
        output_bytes: bytes,
        ..QueryMetrics::default()
    };
    let charge = Charge::query(&metrics, 1);
    let reply = Reply::json(StatusCode::OK, body).charged(charge).with(headers::ITEM_COUNT, rows.len());
    Ok(match last {
        Some(last) if more => reply.with(headers::CONTINUATION, URL_SAFE_NO_PAD.encode(last)),
        _ => reply,
    })
}

/// A whole feed of rows that are JSON already.
pub(crate) fn enclose(parent: &str, envelope: &str, rows: &[Vec<u8>]) -> Vec<u8> {
    let bytes: usize = rows.iter().map(|row| row.len() + 1).sum();
    let mut body = Vec::with_capacity(bytes + 100);
    open(&mut body, parent, envelope);
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(row);
    }
    close(&mut body, rows.len());
    body
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
