//! `GET` and `POST /_bolide/keys`: which keys the account has, and new ones in their place while the server runs.
//!
//! A key is shown once, to whoever asked for it to be made; from then on only its fingerprint is.

use account::{Entry, Kind, Origin, Right};
use document::Value;
use hyper::header::CACHE_CONTROL;

use super::{reply, wish};
use crate::call::Call;
use crate::error::Error;
use crate::json::{member, object, parse_object, text};
use crate::response::Reply;

/// Every kind of key, null where there is none.
pub(crate) async fn list(call: &Call) -> Result<Reply, Error> {
    let entries = call.keys().entries();
    Ok(reply(&object(Kind::ALL.into_iter().map(|kind| {
        let entry = entries.iter().find(|entry| entry.kind == kind);
        member(kind.name(), entry.map_or(Value::Null, shown))
    }))))
}

/// Makes a new key. The one that was there is refused from the next request on.
pub(crate) async fn change(call: &Call) -> Result<Reply, Error> {
    let body = parse_object(&call.body)?;
    let kind = match wish(&body) {
        Some(("regenerate", Value::String(name))) => Kind::named(name),
        _ => None,
    };
    let kind = kind.ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name).join("|");
        Error::BadRequest(format!(
            "The body must be {{\"regenerate\": \"{names}\"}} with one of these names, and nothing else."
        ))
    })?;
    let keys = call.keys().clone();
    let key = call.blocking(move |_| Ok(keys.regenerate(kind)?)).await?;
    tracing::warn!(
        "the {} key of the account was replaced; the new one is {}",
        kind.name(),
        key.fingerprint()
    );
    let answer = object([
        member("kind", text(kind.name())),
        member("key", text(key.reveal())),
        member("fingerprint", text(key.fingerprint())),
    ]);
    Ok(reply(&answer).with(CACHE_CONTROL, "no-store"))
}

fn shown(entry: &Entry) -> Value {
    let (origin, setting) = match entry.origin {
        Origin::Given(setting) => ("setting", Some(setting)),
        Origin::WellKnown => ("wellKnown", None),
        Origin::Made => ("made", None),
    };
    object([
        member(
            "right",
            text(match entry.kind.right() {
                Right::ReadWrite => "readWrite",
                Right::ReadOnly => "readOnly",
            }),
        ),
        member("origin", text(origin)),
        member("setting", setting.map_or(Value::Null, text)),
        member("fingerprint", text(entry.key.fingerprint())),
    ])
}
