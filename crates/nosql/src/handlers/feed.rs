//! Feeds: the envelope around lists, queries over small lists, and paging through them.
//!
//! Databases, containers, offers and ranges are few, so their feeds are made whole, filtered and cut into pages
//! here. A page's token names the last resource shown and is bound to the list; a feed that changes meanwhile neither repeats nor skips
//! what stays in it. Items have a feed of their own in the engine.

use document::{Value, fingerprint};
use engine::{Charge, QueryMetrics};
use hyper::StatusCode;
use query::{Arrival, Context, Dialect, Flow, PageLimits, Query, Run};

use crate::handlers::call::Call;
use crate::handlers::query_request;
use crate::message::fields::Field;
use crate::message::reply::Reply;
use crate::message::request::Verb;
use crate::protocol::activity;
use crate::protocol::error::Error;

/// Kind and version of a list's token.
const KIND: &[u8] = &[0x4C, 1];

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
    let binding = binding(parent, envelope, &query);
    resources.sort_by(|a, b| id(a).cmp(id(b)));
    if let Some(token) = &page.continuation {
        let after = read_token(token, binding)?;
        resources.retain(|resource| id(resource) > after.as_str());
    }
    // Anything but a selection is computed from all rows, so it is returned on one page.
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
    let reply = Reply::json(StatusCode::OK, body).charged(charge).item_count(rows.len());
    Ok(match last {
        Some(last) if more => reply.with(Field::Continuation, token(last, binding)),
        _ => reply,
    })
}

/// Encodes a complete feed of rows that are JSON already.
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

/// Returns what a page's token is bound to: the list, and the query over it.
fn binding(parent: &str, envelope: &str, query: &Query) -> u64 {
    let query = query.resume_fingerprint().to_be_bytes();
    fingerprint(&[parent.as_bytes(), b"/", envelope.as_bytes(), b"/", &query].concat())
}

/// Returns the token of a page: kind and version, binding, the last id.
fn token(last: &str, binding: u64) -> String {
    engine::encode_token([KIND, &binding.to_be_bytes(), last.as_bytes()].concat())
}

fn read_token(text: &str, binding: u64) -> Result<String, engine::Error> {
    let wrong = |why| engine::Error::InvalidContinuation { why };
    let read = || {
        let bytes = engine::decode_token(text)?;
        let (given, last) = bytes.strip_prefix(KIND)?.split_first_chunk()?;
        Some((u64::from_be_bytes(*given), String::from_utf8(last.to_vec()).ok()?))
    };
    let (given, last) = read().ok_or_else(|| wrong("it was cut or changed, or is no token of a list"))?;
    if given == binding { Ok(last) } else { Err(wrong("it was given for another list or query")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_list_and_refused_when_cut_or_changed() {
        let query = |text: &str| query::parse(text, &[], &Dialect::default()).unwrap();
        let all = query("SELECT * FROM r");
        let ours = binding("rid", "Users", &all);
        let text = token("größe?/ \u{1F600}", ours);
        assert_eq!(read_token(&text, ours).as_deref(), Ok("größe?/ \u{1F600}"));
        assert!(read_token(&text, binding("rid", "Users", &query("select  * from r"))).is_ok());
        for other in [
            binding("rid", "Databases", &all),
            binding("other", "Users", &all),
            binding("rid", "Users", &query("SELECT * FROM r WHERE r.id > 'a'")),
        ] {
            assert!(read_token(&text, other).is_err());
        }
        for at in 0..text.len() {
            assert!(read_token(&text[..at], ours).is_err(), "cut at {at}");
            for other in ["A", "b", "7", "-", "_"].into_iter().filter(|other| *other != &text[at..=at]) {
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                assert!(read_token(&changed, ours).is_err(), "{changed}");
            }
        }
        // Earlier tokens were the id in base64.
        assert!(read_token("b25l", ours).is_err());
    }
}
