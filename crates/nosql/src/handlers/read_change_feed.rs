//! `GET /docs` with `A-IM: Incremental Feed`: the latest version of what changed, in the order of writing.
//!
//! The etag of an answer is the position to go on from; 304 means that nothing has changed since. Clients poll
//! until they see it, so a page without items is never answered while there is more to come behind it.

use std::sync::Arc;

use engine::{Changes, Container, Engine, FeedStart, Scope};
use hyper::StatusCode;
use hyper::header::IF_MODIFIED_SINCE;

use crate::call::Call;
use crate::error::Error;
use crate::response::{Place, Reply};
use crate::{date, feed, headers};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    check_mode(call)?;
    call.check_session(&container)?;
    let (scope, range) = call.scope(&container)?;
    let (start, page) = (start(call)?, call.head.page()?);
    let handle = Arc::clone(&container);
    let changes = call.blocking(move |engine| read(engine, &handle, &scope, start, page.max_items)).await?;
    let place = Place { container: &container, range, sequence: changes.sequence };
    let reply = if changes.items.is_empty() {
        Reply::empty(StatusCode::NOT_MODIFIED)
    } else {
        Reply::json(StatusCode::OK, body(&container, &changes)).with(headers::ITEM_COUNT, changes.items.len())
    };
    Ok(reply.charged(changes.charge).placed(&place).etag(format!("\"{}\"", changes.continuation)))
}

fn check_mode(call: &Call) -> Result<(), Error> {
    let mode = call.head.text(&headers::A_IM).unwrap_or_default().trim();
    if mode.eq_ignore_ascii_case("Incremental Feed") {
        return Ok(());
    }
    if mode.eq_ignore_ascii_case("Full-Fidelity Feed") {
        return Err(Error::NotSupported(
            "the change feed of all versions and deletes (Full-Fidelity Feed) is".to_owned(),
        ));
    }
    Err(Error::BadRequest(format!("The header 'a-im' must be 'Incremental Feed', it is '{mode}'.")))
}

/// Where the client wants to begin. A position wins over a time, which clients go on sending with it.
fn start(call: &Call) -> Result<FeedStart, Error> {
    if let Some(position) = call.head.if_none_match().filter(|position| !position.is_empty()) {
        return Ok(match position.trim_matches('"') {
            "*" => FeedStart::Now,
            position => FeedStart::After(position.to_owned()),
        });
    }
    match call.head.text(&IF_MODIFIED_SINCE) {
        None => Ok(FeedStart::Beginning),
        Some(text) => date::parse(text).map(FeedStart::Time).ok_or_else(|| {
            Error::BadRequest(format!("The header 'if-modified-since' is not an RFC 1123 date: '{text}'."))
        }),
    }
}

/// Reads on past stretches in which nothing lives any more.
fn read(
    engine: &Engine,
    container: &Container,
    scope: &Scope,
    mut start: FeedStart,
    max_items: usize,
) -> Result<Changes, Error> {
    loop {
        let changes = engine.changes(container, scope, &start, max_items)?;
        let next = FeedStart::After(changes.continuation.clone());
        if !changes.items.is_empty() || start == next {
            return Ok(changes);
        }
        start = next;
    }
}

fn body(container: &Container, changes: &Changes) -> Vec<u8> {
    let mut body = Vec::new();
    feed::open(&mut body, &container.rid.to_string(), "Documents");
    for (index, item) in changes.items.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        item.write_json(&mut body);
        body.pop();
        body.extend_from_slice(format!(",\"_lsn\":{}}}", item.lsn()).as_bytes());
    }
    feed::close(&mut body, changes.items.len());
    body
}
