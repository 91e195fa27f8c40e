//! The HTTP form of a request's head.

use hyper::HeaderMap;
use hyper::http::request::Parts;

use crate::message::options::{bad_value, is_known};
use crate::message::request::Head;
use crate::protocol::error::Error;
use crate::protocol::headers;
use crate::protocol::path::ResourcePath;

/// Reads the head of a request.
pub(crate) fn head(parts: Parts) -> Result<Head, Error> {
    let path = ResourcePath::of(&parts.uri)?;
    check_text(&parts.headers)?;
    let Parts { method, uri, version, headers, extensions, .. } = parts;
    let channel = extensions.get().copied();
    Ok(Head::of_http((method, uri, version), path, headers, channel))
}

/// Refuses known headers that are not UTF-8. An activity id is only echoed: one that cannot be is replaced.
fn check_text(map: &HeaderMap) -> Result<(), Error> {
    let matters = |name| is_known(name) && *name != headers::ACTIVITY_ID;
    for (name, value) in map {
        if std::str::from_utf8(value.as_bytes()).is_err() && matters(name) {
            return Err(bad_value(name, &String::from_utf8_lossy(value.as_bytes()), "UTF-8 text"));
        }
    }
    Ok(())
}
