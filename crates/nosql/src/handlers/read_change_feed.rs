//! `GET /docs` with `A-IM`: changes in the order of writing. `Incremental Feed` has the latest version of each item
//! that has not expired, `Full-Fidelity Feed` all versions and deletes (T28).
//!
//! The etag of an answer is the position to continue from; 304 means that nothing has changed since. Clients poll until
//! they see it, so a page without items is never returned while more changes follow.

use std::sync::Arc;

use engine::{Changes, Charge, Container, Engine, FeedStart, History, HistoryFrom, RangeLsn, Scope};
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::change_feed;
use crate::message::options::TextOption;
use crate::message::reply::{Reply, ReplyOrigin};
use crate::protocol::date;
use crate::protocol::error::Error;

/// The wire format in which every change comes in an envelope.
const ENVELOPES: &str = "2021-09-15";

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let mode = Mode::of(call)?;
    call.check_session(&container)?;
    let scope = call.scope(&container)?;
    let max_items = call.head.page()?.max_items;
    let handle = Arc::clone(&container);
    let page = match mode {
        Mode::Latest => {
            let start = start(call)?;
            let in_envelopes = call.head.text(TextOption::ChangeFeedWireFormat) == Some(ENVELOPES);
            call.blocking(move |engine| {
                let changes = read_latest(engine, &handle, &scope, start, max_items)?;
                Ok(Page::of_changes(&handle, &changes, in_envelopes))
            })
            .await?
        }
        Mode::AllVersions => {
            let from = history_from(call)?;
            call.blocking(move |engine| {
                let history = read_all_versions(engine, &handle, &scope, from, max_items)?;
                Ok(Page::of_history(&handle, &history))
            })
            .await?
        }
    };
    let place = ReplyOrigin { container: &container, range: page.range, item: None };
    let reply = match page.items {
        0 => Reply::empty(StatusCode::NOT_MODIFIED),
        _ => Reply::json(StatusCode::OK, page.body),
    };
    // The .NET client parses the count of an empty page too.
    let reply = reply.item_count(page.items);
    Ok(reply.charged(page.charge).placed(&place).etag(format!("\"{}\"", page.continuation)))
}

enum Mode {
    Latest,
    AllVersions,
}

impl Mode {
    fn of(call: &Call) -> Result<Mode, Error> {
        let mode = call.head.feed_mode().unwrap_or_default().trim();
        let is = |known: &str| mode.eq_ignore_ascii_case(known);
        match () {
            () if is("Incremental Feed") => Ok(Mode::Latest),
            () if is("Full-Fidelity Feed") => Ok(Mode::AllVersions),
            () => Err(Error::BadRequest(format!(
                "The mode of a change feed ('a-im') must be 'Incremental Feed' or 'Full-Fidelity Feed', it is '{mode}'."
            ))),
        }
    }
}

/// A page in either mode.
struct Page {
    body: Vec<u8>,
    items: usize,
    continuation: String,
    charge: Charge,
    range: RangeLsn,
}

impl Page {
    fn of_changes(container: &Container, changes: &Changes, in_envelopes: bool) -> Page {
        Page {
            body: change_feed::latest(container, &changes.items, in_envelopes),
            items: changes.items.len(),
            continuation: changes.continuation.clone(),
            charge: changes.charge,
            range: changes.range,
        }
    }

    fn of_history(container: &Container, history: &History) -> Page {
        Page {
            body: change_feed::all_versions(container, &history.events),
            items: history.events.len(),
            continuation: history.continuation.clone(),
            charge: history.charge,
            range: history.range,
        }
    }
}

/// Returns the position in the request: the etag of an earlier answer, or `*`.
fn position(call: &Call) -> Option<&str> {
    let position = call.head.if_none_match().filter(|position| !position.is_empty());
    position.map(|position| position.trim_matches('"'))
}

/// Returns where the feed begins. A position takes precedence over a time, which clients keep sending beside it.
fn start(call: &Call) -> Result<FeedStart, Error> {
    match (position(call), call.head.text(TextOption::IfModifiedSince)) {
        (Some("*"), _) => Ok(FeedStart::Now),
        (Some(position), _) => Ok(FeedStart::After(position.to_owned())),
        (None, None) => Ok(FeedStart::Beginning),
        (None, Some(text)) => date::parse(text).map(FeedStart::Time).ok_or_else(|| {
            Error::BadRequest(format!(
                "The start of a change feed ('if-modified-since') is not an RFC 1123 date: '{text}'."
            ))
        }),
    }
}

/// Returns where the feed of all versions begins: as in the service, neither at its beginning nor at a time.
fn history_from(call: &Call) -> Result<HistoryFrom, Error> {
    match position(call) {
        Some("*") => Ok(HistoryFrom::Now),
        Some(position) => Ok(HistoryFrom::After(position.to_owned())),
        None => Err(Error::BadRequest(
            "The change feed of all versions and deletes is read from now on (If-None-Match: *) or from a \
             continuation; neither from the beginning nor from a time."
                .to_owned(),
        )),
    }
}

/// Skips stretches in which all items have expired.
fn read_latest(
    engine: &Engine,
    container: &Container,
    scope: &Scope,
    mut start: FeedStart,
    max_items: usize,
) -> Result<Changes, Error> {
    let mut charge = Charge::default();
    loop {
        let changes = engine.changes(container, scope, &start, max_items)?;
        charge += changes.charge;
        if !changes.items.is_empty() || !changes.more {
            return Ok(Changes { charge, ..changes });
        }
        start = FeedStart::After(changes.continuation);
    }
}

/// Skips stretches without changes in this scope.
fn read_all_versions(
    engine: &Engine,
    container: &Container,
    scope: &Scope,
    mut from: HistoryFrom,
    max_items: usize,
) -> Result<History, Error> {
    let mut charge = Charge::default();
    loop {
        let history = engine.history(container, scope, &from, max_items)?;
        charge += history.charge;
        if !history.events.is_empty() || !history.more {
            return Ok(History { charge, ..history });
        }
        from = HistoryFrom::After(history.continuation);
    }
}
