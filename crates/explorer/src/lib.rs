//! The explorer: pages for people over an [`engine::Engine`], a third front end beside the two protocols.
//!
//! Everything is rendered here and sent whole; a little script adds countdowns, live figures and shortcuts, and the pages work
//! without it. No asset comes from elsewhere, nothing is inline, and every answer carries a policy that forbids both.
//!
//! The life of a request: [`Explorer::answer`] finds the session of its cookie (`session`), checks that a form came from one of
//! our own pages (`guard`), finds the handler (`routes`, one table) and puts its page into the frame (`layout`). Handlers are
//! in `pages`, one file for each subject; whatever may block runs beside the workers.
//!
//! No rule about items, time or expiry lives here. Documents of the MongoDB API are queried and written through its own front
//! end ([`Shell`]), so that views, validators and indexes mean here what they mean to a driver.

mod answer;
mod chart;
mod confirm;
mod deed;
mod doors;
mod failures;
mod fields;
mod format;
mod guard;
mod json;
mod layout;
mod pages;
mod routes;
mod session;
mod visit;

use std::net::IpAddr;
use std::sync::Arc;

use account::{Keyring, Kind, Right};
use bytes::Bytes;
use engine::Engine;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};

pub use deed::Deed;
pub use doors::{Reply, Shell, Transport};

use crate::answer::{Answer, Fault};
use crate::fields::Fields;
pub use crate::routes::Weight;
use crate::routes::{Effect, Found};
use crate::session::Sessions;
use crate::visit::Visit;

/// Where all pages are.
const PREFIX: &str = "/_explorer";

/// The largest form of somebody who has not signed in: a key and little else.
const STRANGER_BODY_BYTES: usize = 8 * 1024;

/// The largest form of somebody who has: an item of the largest size, each byte of it escaped.
const BODY_BYTES: usize = 7 * 1024 * 1024;

/// The longest address of a page that is remembered over the sign-in; from a longer one the visitor begins at the front page.
const NEXT_BYTES: usize = 1024;

/// An extension of answers whose bytes are ours and the same for all visitors: they take no memory of their own.
#[derive(Debug, Clone, Copy)]
pub struct SharedFile;

/// What the explorer works with.
#[derive(Clone)]
pub struct Doors {
    /// The data.
    pub engine: Arc<Engine>,
    /// Who may come in.
    pub keys: Keyring,
    /// The MongoDB front end; without it collections can be looked at, and nothing more.
    pub shell: Option<Arc<dyn Shell>>,
}

/// The pages.
pub struct Explorer {
    doors: Doors,
    sessions: Arc<Sessions>,
}

impl Explorer {
    /// Pages over these doors. Nobody is signed in.
    pub fn new(doors: Doors) -> Explorer {
        Explorer { doors, sessions: Arc::default() }
    }

    /// How large a body whoever sends this head may send.
    pub fn body_bytes(&self, head: &Parts) -> usize {
        match self.sessions.find(&head.headers, &self.doors.keys) {
            Some(_) => BODY_BYTES,
            None => STRANGER_BODY_BYTES,
        }
    }

    /// The key that the sender of this head has signed in with, if they have.
    pub fn key(&self, head: &Parts) -> Option<Kind> {
        Some(self.sessions.find(&head.headers, &self.doors.keys)?.holder.kind)
    }

    /// How much work the page of this head is; none for strangers, who are shown the way in, and for files of ours. A command
    /// of the MongoDB API waits in the queue of its own kind, so its page does not hold a permit there, too.
    pub fn weight(&self, head: &Parts) -> Option<Weight> {
        self.sessions.find(&head.headers, &self.doors.keys)?;
        let below = head.uri.path().strip_prefix(PREFIX)?.strip_prefix('/')?;
        let segments: Vec<String> = below.split('/').map(fields::decode_segment).collect();
        let Found::Route(route) = routes::find(&head.method, &segments) else { return None };
        match segments.get(1).map(String::as_str) {
            Some("mongodb") => Some(Weight::Brief),
            _ => Some(route.weight),
        }
    }

    /// Answers one request of that peer. What it does stands in `deed` before it is done, for a caller whose client may leave
    /// in the middle.
    pub async fn answer(
        &self,
        request: Request<Bytes>,
        transport: Transport,
        peer: Option<IpAddr>,
        deed: &mut Option<Deed>,
    ) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let is_head = head.method == Method::HEAD;
        let answer = self.find_answer(&head, &body, transport, peer, deed).await;
        if matches!(answer, Answer::Question(_)) {
            *deed = None;
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
        deed: &mut Option<Deed>,
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
            *deed = (head.method == Method::POST).then(|| Deed::sign_in(&form, &self.doors.keys));
            return self.sign_in(head, &query, &form, transport, peer);
        }
        let Some(session) = self.sessions.find(&head.headers, &self.doors.keys) else {
            return strangers_answer(head);
        };
        let found = match routes::find(&head.method, &segments) {
            Found::Route(route) => route,
            Found::WrongMethod => return Fault::wrong_method().shown_to(None, &self.doors).await,
            Found::Nothing => {
                return Fault::not_found("This page").shown_to(Some(&session), &self.doors).await;
            }
        };
        let form = Fields::parse(body);
        if head.method == Method::POST {
            if let Err(fault) = guard::check_form(head, &form, &session) {
                return fault.shown_to(Some(&session), &self.doors).await;
            }
            *deed = Deed::of(found, &segments, &form, &session);
            if segments == ["sign-out"] {
                self.sessions.end(&head.headers);
                return Answer::SignedOut { to: format!("{PREFIX}/sign-in"), transport };
            }
            if found.effect == Effect::Writes && session.right() == Right::ReadOnly {
                return Fault::read_only().shown_to(Some(&session), &self.doors).await;
            }
        }
        let sessions = Some(Arc::clone(&self.sessions));
        let visit = Visit { doors: self.doors.clone(), sessions, session, path: segments, query, form };
        match (found.run)(&visit).await {
            Ok(answer) => answer,
            Err(fault) => fault.shown_to(Some(&visit.session), &self.doors).await,
        }
    }

    /// The way in: the form, and what was sent with it.
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
        match self.sessions.begin(form.text("key").unwrap_or_default().trim(), &self.doors.keys, peer) {
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

/// Returns the page of a request that admission control has refused, with how long to wait.
pub fn busy(retry_after_ms: u64) -> Response<Bytes> {
    let inner = maud::html! {
        section.fault {
            h1 { "Too much to do" }
            p { "The server has more to do than it can. Nothing was done; load the page again in a moment." }
        }
    };
    let (status, markup) = (StatusCode::TOO_MANY_REQUESTS, layout::bare("Too much to do", &inner));
    let mut response = Answer::Page { status, markup }.into_response();
    let seconds = HeaderValue::from(retry_after_ms.div_ceil(1000).max(1));
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

/// Whoever is not signed in is shown the way in, and comes back where they wanted to go.
fn strangers_answer(head: &Parts) -> Answer {
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

/// The page that is wanted behind the sign-in. What is too long for one of ours is not sent back: strangers decide what is in
/// it.
fn wanted_page(fields: &Fields) -> &str {
    fields.text("next").filter(|next| next.len() <= NEXT_BYTES).unwrap_or_default()
}

/// The page to go to behind the sign-in: one of ours, whatever the form says.
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
