//! The explorer: pages for people over an [`engine::Engine`], a third front end beside the two protocols.
//!
//! Everything is rendered here and sent whole; a little script adds countdowns, live figures and shortcuts, and the pages work
//! without it. No asset comes from elsewhere, nothing is inline, and every answer carries a policy that forbids both.
//!
//! The lifecycle of a request: [`Explorer::answer`] finds the session of its cookie (`session`), checks that a form was
//! sent by one of the explorer's own pages (`guard`), finds the handler (`routes`, one table) and puts its page into
//! the frame (`layout`). Handlers are in `pages`, one file for each subject; blocking work runs on other threads.
//!
//! It contains no rule about items, time or expiry. Documents of the MongoDB API are queried and written through its
//! own front end ([`Shell`]), so that views, validators and indexes apply as for a driver.

mod audited_action;
mod backends;
mod chart;
mod confirm;
mod failures;
mod fields;
mod format;
mod json;
mod pages;
mod routes;
mod session;
mod visit;

use std::net::IpAddr;
use std::sync::Arc;

use account::{Kind, Right};
use bytes::Bytes;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};

pub use audited_action::AuditedAction;
pub use backends::{Backends, OpenConnections, OpenConnectionsCount, Reply, SharedFile, Shell, Transport};

use crate::fields::Fields;
pub use crate::routes::Weight;
use crate::routes::{Audit, Effect, Route, RouteLookup};
use crate::session::{Session, Sessions};
use crate::visit::answer::{Answer, Fault};
use crate::visit::{Visit, answer, guard, layout};

/// The path below which all pages are.
const PREFIX: &str = "/_explorer";

/// The largest form without a session: a key and little else.
const UNAUTHENTICATED_BODY_BYTES: usize = 8 * 1024;

/// The largest form in a session: an item of the largest size, each byte of it escaped.
const BODY_BYTES: usize = 7 * 1024 * 1024;

/// The longest address of a page that is remembered during the sign-in; after a longer one the visitor begins at the
/// front page.
const NEXT_BYTES: usize = 1024;

/// The explorer.
pub struct Explorer {
    backends: Backends,
    sessions: Arc<Sessions>,
}

impl Explorer {
    /// Creates the explorer over these backends, without sessions.
    pub fn new(backends: Backends) -> Explorer {
        Explorer { backends, sessions: Arc::default() }
    }

    /// Returns the largest body for a request with this head.
    pub fn body_bytes(&self, head: &Parts) -> usize {
        match self.sessions.find(&head.headers, &self.backends.keys) {
            Some(_) => BODY_BYTES,
            None => UNAUTHENTICATED_BODY_BYTES,
        }
    }

    /// Returns the key of the request's session, if there is one.
    pub fn key(&self, head: &Parts) -> Option<Kind> {
        Some(self.sessions.find(&head.headers, &self.backends.keys)?.holder.kind)
    }

    /// Returns the kind of work of a page; `None` without a session, which gets the sign-in form, and for static files.
    /// A command of the MongoDB API waits in the queue of its own kind, so its page does not hold a permit here, too.
    pub fn weight(&self, head: &Parts) -> Option<Weight> {
        self.sessions.find(&head.headers, &self.backends.keys)?;
        let below = head.uri.path().strip_prefix(PREFIX)?.strip_prefix('/')?;
        let segments: Vec<String> = below.split('/').map(fields::decode_segment).collect();
        let RouteLookup::Route(route) = routes::find(&head.method, &segments) else { return None };
        match segments.get(1).map(String::as_str) {
            Some("mongodb") => Some(Weight::Brief),
            _ => Some(route.weight),
        }
    }

    /// Answers one request of that peer. Stores the action in `audited` before performing it, for a caller whose client may
    /// disconnect meanwhile.
    pub async fn answer(
        &self,
        request: Request<Bytes>,
        transport: Transport,
        peer: Option<IpAddr>,
        audited: &mut Option<AuditedAction>,
    ) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let is_head = head.method == Method::HEAD;
        let answer = self.find_answer(&head, &body, transport, peer, audited).await;
        if matches!(answer, Answer::Question(_)) {
            *audited = None;
        }
        let mut response = answer.into_response();
        if is_head {
            *response.body_mut() = Bytes::new();
        }
        response
    }

    async fn find_answer(
        &self,
        head: &Parts,
        body: &Bytes,
        transport: Transport,
        peer: Option<IpAddr>,
        audited: &mut Option<AuditedAction>,
    ) -> Answer {
        let path = head.uri.path();
        let Some(below) = path.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('/')) else {
            return Answer::Moved(format!("{PREFIX}/"));
        };
        if below == "index.html" {
            return Answer::Moved(format!("{PREFIX}/"));
        }
        if let Some(asset) = answer::asset(below) {
            return asset;
        }
        let segments: Vec<String> = below.split('/').map(fields::decode_segment).collect();
        let query = Fields::parse(head.uri.query().unwrap_or_default().as_bytes());
        if segments == ["sign-in"] {
            let form = Fields::parse(body);
            *audited =
                (head.method == Method::POST).then(|| AuditedAction::sign_in(&form, &self.backends.keys));
            return self.sign_in(head, &query, &form, transport, peer);
        }
        let (found, form) = (routes::find(&head.method, &segments), Fields::parse(body));
        let session = self.sessions.find(&head.headers, &self.backends.keys);
        let is_form = head.method == Method::POST;
        let action = is_form.then(|| AuditedAction::of(&found, &segments, &form, session.as_ref()));
        let Some(session) = session else {
            *audited = action;
            return unauthenticated_answer(head);
        };
        let found = match found {
            RouteLookup::Route(route) => route,
            RouteLookup::WrongMethod => return Fault::wrong_method().shown_to(None, &self.backends).await,
            RouteLookup::Nothing => {
                return Fault::not_found("This page").shown_to(Some(&session), &self.backends).await;
            }
        };
        if is_form {
            if let Err(fault) = check_form(head, found, &form, &session) {
                *audited = action;
                return fault.shown_to(Some(&session), &self.backends).await;
            }
            *audited = action.filter(|_| matches!(found.audit, Audit::Changes(_)));
            if segments == ["sign-out"] {
                self.sessions.end(&head.headers);
                return Answer::SignedOut { to: format!("{PREFIX}/sign-in"), transport };
            }
        }
        let sessions = Some(Arc::clone(&self.sessions));
        let visit = Visit { backends: self.backends.clone(), sessions, session, path: segments, query, form };
        match (found.run)(&visit).await {
            Ok(answer) => answer,
            Err(fault) => fault.shown_to(Some(&visit.session), &self.backends).await,
        }
    }

    /// Handles the sign-in form.
    fn sign_in(
        &self,
        head: &Parts,
        query: &Fields,
        form: &Fields,
        transport: Transport,
        peer: Option<IpAddr>,
    ) -> Answer {
        if head.method != Method::POST {
            let next = wanted_page(query);
            return pages::sign_in::form(next, None);
        }
        if !guard::is_from_here(head) {
            return pages::sign_in::form("", Some(pages::sign_in::Refusal::Elsewhere));
        }
        let next = wanted_page(form);
        match self.sessions.begin(form.text("key").unwrap_or_default().trim(), &self.backends.keys, peer) {
            Ok(cookie) => Answer::SignedIn { to: own_path(next), cookie, transport },
            Err(refusal) => {
                if matches!(refusal, session::Refused::Key) {
                    tracing::warn!(
                        ?peer,
                        "a sign-in to the explorer was refused: the key is not one of this account"
                    );
                }
                pages::sign_in::form(next, Some(refusal.into()))
            }
        }
    }
}

/// Refuses a form that another site made the browser send, and one that the key may not send.
fn check_form(head: &Parts, route: &Route, form: &Fields, session: &Session) -> Result<(), Fault> {
    guard::check_form(head, form, session)?;
    if route.effect == Effect::Writes && session.right() == Right::ReadOnly {
        return Err(Fault::read_only());
    }
    Ok(())
}

/// Returns the page of a request that admission control has refused, with how long to wait.
pub fn busy(retry_after_ms: u64) -> Response<Bytes> {
    let inner = maud::html! {
        section.fault {
            h1 { "Overloaded" }
            p { "The server is overloaded. Nothing was changed; reload the page in a moment." }
        }
    };
    let (status, markup) = (StatusCode::TOO_MANY_REQUESTS, layout::bare("Overloaded", &inner));
    let mut response = Answer::Page { status, markup }.into_response();
    let seconds = HeaderValue::from(retry_after_ms.div_ceil(1000).max(1));
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

/// Redirects a request without a session to the sign-in form, and back to its page afterwards.
fn unauthenticated_answer(head: &Parts) -> Answer {
    let fragment = head.headers.contains_key("x-fragment");
    if fragment || head.method == Method::POST {
        return pages::sign_in::form("", Some(pages::sign_in::Refusal::SessionOver));
    }
    let wanted = head.uri.path_and_query().map_or("", |wanted| wanted.as_str());
    if wanted.len() > NEXT_BYTES {
        return Answer::See(format!("{PREFIX}/sign-in"));
    }
    Answer::See(format!("{PREFIX}/sign-in?next={}", fields::encode(wanted)))
}

/// Returns the page to show after the sign-in. A text that is too long for an own page is not echoed: a client without
/// a session controls it.
fn wanted_page(fields: &Fields) -> &str {
    fields.text("next").filter(|next| next.len() <= NEXT_BYTES).unwrap_or_default()
}

/// Returns the page to go to after the sign-in: always an own page, whatever the form contains.
fn own_path(next: &str) -> String {
    let ours = next.starts_with("/_explorer/") && !next.contains(['\\', '\r', '\n']) && !next.contains("//");
    if ours { next.to_owned() } else { format!("{PREFIX}/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_behind_the_sign_in_leads_to_our_own_pages_only() {
        assert_eq!(own_path("/_explorer/clock"), "/_explorer/clock");
        for elsewhere in [
            "",
            "https://example.org/",
            "//example.org",
            "/_explorer//example.org",
            "/dbs",
            "/_explorer/\r\nx",
        ] {
            assert_eq!(own_path(elsewhere), "/_explorer/", "{elsewhere:?}");
        }
    }
}
