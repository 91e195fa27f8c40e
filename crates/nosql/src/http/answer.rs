//! The HTTP form of an answer.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::header::{HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{HeaderMap, Response};

use crate::message::body::Body;
use crate::message::fields::FieldValue;
use crate::message::reply::Reply;
use crate::protocol::headers;

/// The headers that every answer has, beside those of its own.
const FIXED: [(HeaderName, HeaderValue); 4] = [
    (headers::GATEWAY_VERSION, HeaderValue::from_static("version=2.14.0")),
    (headers::SERVICE_VERSION, HeaderValue::from_static(concat!("version=", env!("CARGO_PKG_VERSION")))),
    (headers::SCHEMA_VERSION, HeaderValue::from_static("1.18")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// Writes an answer. Text that no header can carry is left out rather than failing the request.
pub(crate) fn into_response(reply: Reply, activity: &str) -> Response<Body> {
    let mut map = HeaderMap::with_capacity(24);
    let mut text = BytesMut::with_capacity(64);
    let charge = reply.charge();
    let (status, fields, body) = reply.into_parts();
    for (field, value) in fields {
        let Ok(value) = header_value(value) else { continue };
        let (last, others) = field.headers().split_last().expect("every field has a header");
        for name in others {
            map.insert(name.clone(), value.clone());
        }
        map.insert(last.clone(), value);
    }
    let _ = write!(text, "{charge}");
    let charge = text.split().freeze();
    text.extend_from_slice(activity.as_bytes());
    for (name, text) in [(headers::REQUEST_CHARGE, charge), (headers::ACTIVITY_ID, text.freeze())] {
        if let Ok(value) = HeaderValue::from_maybe_shared(text) {
            map.insert(name, value);
        }
    }
    map.extend(FIXED);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = map;
    response
}

fn header_value(value: FieldValue) -> Result<HeaderValue, hyper::header::InvalidHeaderValue> {
    match value {
        FieldValue::Number(number) => Ok(HeaderValue::from(number)),
        FieldValue::Static(text) => Ok(HeaderValue::from_static(text)),
        FieldValue::Text(text) => HeaderValue::from_maybe_shared::<Bytes>(text),
    }
}

/// Sets the server's duration in milliseconds, which every answer has.
pub(crate) fn set_duration(headers: &mut HeaderMap, duration: Duration) {
    // Formatting a float takes several times as long.
    let micros = (duration.as_nanos() + 500) / 1000;
    let text = format!("{}.{:03}", micros / 1000, micros % 1000);
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.insert(headers::REQUEST_DURATION, value);
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::CONTENT_TYPE;

    use super::*;
    use crate::message::reply::finish;
    use crate::protocol::error::Error;

    #[test]
    fn every_error_has_a_json_body_a_charge_and_a_substatus() {
        let response = into_response(finish(Err(Error::RangeGone("7".to_owned())), "abc", None), "abc");
        assert_eq!(response.status(), 410);
        assert_eq!(response.headers()[headers::SUBSTATUS], "1002");
        assert_eq!(response.headers()[headers::REQUEST_CHARGE], "1");
        assert_eq!(response.headers()[headers::ACTIVITY_ID], "abc");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    }

    #[test]
    fn a_throttled_request_is_told_when_to_retry() {
        let refused = engine::Error::TooManyRequests { retry_after_ms: 12 };
        let response = into_response(finish(Err(refused.into()), "abc", None), "abc");
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[headers::SUBSTATUS], "3200");
        assert_eq!(response.headers()[headers::RETRY_AFTER_MS], "12");
        assert_eq!(response.headers()[headers::REQUEST_CHARGE], "0.38");
    }

    #[test]
    fn a_duration_is_in_decimal_milliseconds() {
        for (duration, text) in [
            (Duration::from_micros(3551), "3.551"),
            (Duration::ZERO, "0.000"),
            (Duration::from_nanos(70_600), "0.071"),
            (Duration::from_nanos(70_499), "0.070"),
            (Duration::from_nanos(999_999), "1.000"),
            (Duration::from_micros(10_020), "10.020"),
            (Duration::from_secs(61), "61000.000"),
        ] {
            let mut map = HeaderMap::new();
            set_duration(&mut map, duration);
            assert_eq!(map[headers::REQUEST_DURATION], text);
        }
    }
}
