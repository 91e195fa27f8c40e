//! The answers of handlers, and the headers of every answer.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY,
    RETRY_AFTER, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use maud::{Markup, html};
use sha2::{Digest, Sha256};

use crate::backends::Transport;
use crate::backends::{Backends, SharedFile};
use crate::session::{COOKIE_NAME, Session};
use crate::visit::Visit;
use crate::visit::layout;

/// No external and no inline content, no embedding in frames, forms only to the explorer.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const STYLE: &str = include_str!("../../assets/style.css");
const SCRIPT: &str = include_str!("../../assets/script.js");
const ICON: &str = include_str!("../../assets/icon.svg");

/// The result of a request.
pub(crate) enum Answer {
    /// A whole page.
    Page { status: StatusCode, markup: Markup },
    /// A page that asks for confirmation.
    Question(Markup),
    /// A part of a page, for the script.
    Fragment(Markup),
    /// A redirect to another page: the action is done.
    See(String),
    /// The page has moved permanently.
    Moved(String),
    /// A session has begun: sets its cookie and redirects.
    SignedIn { to: String, cookie: String, transport: Transport },
    /// The session has ended: removes its cookie and redirects.
    SignedOut { to: String, transport: Transport },
    /// A static file.
    Asset { kind: &'static str, text: &'static str },
}

impl Answer {
    pub(crate) fn page(markup: Markup) -> Answer {
        Answer::Page { status: StatusCode::OK, markup }
    }

    /// Marks the page as one that asks for confirmation.
    pub(crate) fn asking(self) -> Answer {
        match self {
            Answer::Page { markup, .. } => Answer::Question(markup),
            other => other,
        }
    }

    pub(crate) fn into_response(self) -> Response<Bytes> {
        let (status, kind, body) = match &self {
            Answer::Page { status, markup } => (*status, "text/html; charset=utf-8", copied(&markup.0)),
            Answer::Question(markup) | Answer::Fragment(markup) => {
                (StatusCode::OK, "text/html; charset=utf-8", copied(&markup.0))
            }
            Answer::See(_) | Answer::SignedIn { .. } | Answer::SignedOut { .. } => {
                (StatusCode::SEE_OTHER, "text/plain; charset=utf-8", Bytes::new())
            }
            Answer::Moved(_) => (StatusCode::PERMANENT_REDIRECT, "text/plain; charset=utf-8", Bytes::new()),
            Answer::Asset { kind, text } => (StatusCode::OK, *kind, Bytes::from_static(text.as_bytes())),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let mut set = |name: HeaderName, text: &str| {
            if let Ok(value) = HeaderValue::from_str(text) {
                response.headers_mut().insert(name, value);
            }
        };
        set(CONTENT_TYPE, kind);
        set(CONTENT_SECURITY_POLICY, POLICY);
        set(X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(REFERRER_POLICY, "no-referrer");
        set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
        set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
        let cache = if matches!(self, Answer::Asset { .. }) {
            "private, max-age=31536000, immutable"
        } else {
            "no-store"
        };
        set(CACHE_CONTROL, cache);
        if status == StatusCode::TOO_MANY_REQUESTS {
            set(RETRY_AFTER, "60");
        }
        match &self {
            Answer::See(to) | Answer::Moved(to) => set(LOCATION, to),
            Answer::SignedIn { to, cookie: value, transport } => {
                set(LOCATION, to);
                set(SET_COOKIE, &cookie(value, *transport, ""));
            }
            Answer::SignedOut { to, transport } => {
                set(LOCATION, to);
                set(SET_COOKIE, &cookie("", *transport, "; Max-Age=0"));
            }
            Answer::Page { .. } | Answer::Question(_) | Answer::Fragment(_) | Answer::Asset { .. } => {}
        }
        if matches!(self, Answer::Asset { .. }) {
            response.extensions_mut().insert(SharedFile);
        }
        response
    }
}

fn copied(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn cookie(value: &str, transport: Transport, more: &str) -> String {
    let secure = if transport == Transport::Tls { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={value}; Path=/_explorer; HttpOnly; SameSite=Strict{secure}{more}")
}

/// Returns a static file.
pub(crate) fn asset(name: &str) -> Option<Answer> {
    let (kind, text) = match name {
        "style.css" => ("text/css; charset=utf-8", STYLE),
        "script.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return None,
    };
    Some(Answer::Asset { kind, text })
}

/// Returns an identifier of the static files' version, so that browsers may cache them.
pub(crate) fn assets_version() -> String {
    let digest = Sha256::new().chain_update(STYLE).chain_update(SCRIPT).chain_update(ICON).finalize();
    URL_SAFE_NO_PAD.encode(&digest[..6])
}

/// Why the requested page cannot be shown.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    title: &'static str,
    pub(crate) text: String,
}

impl Fault {
    fn new(status: StatusCode, title: &'static str, text: impl Into<String>) -> Fault {
        Fault { status, title, text: text.into() }
    }

    pub(crate) fn not_found(what: &str) -> Fault {
        let text = format!("{what} does not exist. It may have been deleted, or it has expired.");
        Fault::new(StatusCode::NOT_FOUND, "Not here", text)
    }

    /// Creates a fault for a wrong request; the text explains what is expected.
    pub(crate) fn wrong(text: impl Into<String>) -> Fault {
        Fault::new(StatusCode::BAD_REQUEST, "That cannot be done", text)
    }

    pub(crate) fn wrong_method() -> Fault {
        Fault::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "That cannot be done",
            "This page does not take that method.",
        )
    }

    pub(crate) fn read_only() -> Fault {
        let text =
            "You are signed in with a read-only key: look as much as you like, but nothing is changed.";
        Fault::new(StatusCode::FORBIDDEN, "Read-only", text)
    }

    pub(crate) fn not_our_form() -> Fault {
        let text =
            "The form was not sent from a page of this session. Go back, load the page again and repeat.";
        Fault::new(StatusCode::FORBIDDEN, "Not done", text)
    }

    pub(crate) fn panicked() -> Fault {
        let text = "Something went wrong here. The server's log has the details.";
        Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "An error of ours", text)
    }

    /// Returns the fault as a page, in the frame if there is a session.
    pub(crate) async fn shown_to(self, session: Option<&Session>, backends: &Backends) -> Answer {
        let Fault { status, title, text } = self;
        let inner = html! {
            section.fault {
                h1 { (title) }
                p { (text) }
                p { a href="/_explorer/" { "All databases" } }
            }
        };
        let Some(session) = session else {
            return Answer::Page { status, markup: layout::bare(title, &inner) };
        };
        let visit = Visit::plain(backends, session);
        match layout::frame(&visit, title, None, &inner).await {
            Ok(markup) => Answer::Page { status, markup },
            Err(_) => Answer::Page { status, markup: layout::bare(title, &inner) },
        }
    }
}

impl From<engine::Error> for Fault {
    fn from(error: engine::Error) -> Fault {
        use engine::Error as E;
        let (status, title) = match &error {
            E::NotFound { .. } | E::OwnerNotFound { .. } => (StatusCode::NOT_FOUND, "Not here"),
            E::Exists { .. } | E::UniqueKeyTaken { .. } | E::Conflict { .. } => {
                (StatusCode::CONFLICT, "That cannot be done")
            }
            E::PreconditionFailed { .. } => (StatusCode::PRECONDITION_FAILED, "The item has changed"),
            E::Held { .. } => (StatusCode::LOCKED, "Held"),
            E::Corrupt(_) | E::NoRoom(_) | E::Unavailable(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "The store cannot do that now")
            }
            _ => (StatusCode::BAD_REQUEST, "That cannot be done"),
        };
        Fault::new(status, title, sentence(&error.to_string()))
    }
}

/// Formats a message as a sentence: a capital first, a full stop last.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    let rest = letters.as_str();
    let stop = if rest.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{rest}{stop}")
}
