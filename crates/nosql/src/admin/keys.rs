//! `GET` and `POST /_bolide/keys`: lists the account keys, and replaces them while the server runs.
//!
//! A new key is returned once; afterwards only its fingerprint is shown.

use account::{Entry, KeySource, Kind, Right};
use document::Value;

use super::{reply, single_member};
use crate::handlers::call::Call;
use crate::message::fields::Field;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, parse_object, text};

/// Lists every kind of key, null for those that are not set.
pub(crate) async fn list(call: &Call) -> Result<Reply, Error> {
    let entries = call.keys().entries();
    Ok(reply(&object(Kind::ALL.into_iter().map(|kind| {
        let entry = entries.iter().find(|entry| entry.kind == kind);
        member(kind.name(), entry.map_or(Value::Null, shown))
    }))))
}

/// Generates a new key. The old one is refused from the next request on.
pub(crate) async fn change(call: &Call) -> Result<Reply, Error> {
    let body = parse_object(&call.body)?;
    let kind = match single_member(&body) {
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
    Ok(reply(&answer).with(Field::CacheControl, "no-store"))
}

fn shown(entry: &Entry) -> Value {
    let (origin, setting) = match entry.source {
        KeySource::Setting(setting) => ("setting", Some(setting)),
        KeySource::WellKnown => ("wellKnown", None),
        KeySource::Generated => ("made", None),
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
