//! Checks that a form was sent by one of the explorer's own pages: by the origin that the browser reports, and by the
//! session's own secret.

use hyper::header::{HOST, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use subtle::ConstantTimeEq;

use crate::fields::Fields;
use crate::session::Session;
use crate::visit::answer::Fault;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The field of every form.
pub(crate) const CSRF: &str = "csrf";

/// Refuses a form that another site made the browser send.
pub(crate) fn check_form(head: &Parts, form: &Fields, session: &Session) -> Result<(), Fault> {
    let given = form.text(CSRF).unwrap_or_default();
    let same = bool::from(given.as_bytes().ct_eq(session.csrf.as_bytes()));
    if same && is_from_here(head) { Ok(()) } else { Err(Fault::not_our_form()) }
}

/// Returns whether the browser reports no other origin than the explorer's own pages. Those send no referrer, so their
/// origin is `null`, as that of any page may be: then only the session's secret decides.
pub(crate) fn is_from_here(head: &Parts) -> bool {
    let text = |name: &HeaderName| head.headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let site_is_ours = text(&SEC_FETCH_SITE).is_none_or(|site| matches!(site, "same-origin" | "none"));
    let Some(origin) = text(&ORIGIN) else { return site_is_ours };
    let host = text(&HOST).or_else(|| head.uri.authority().map(Authority::as_str)).unwrap_or_default();
    let named = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    site_is_ours && (origin == "null" || named.is_some_and(|named| named.eq_ignore_ascii_case(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pairs: &[(&'static str, &'static str)]) -> bool {
        let mut request = hyper::Request::builder().uri("/_explorer/");
        for (name, value) in pairs {
            request = request.header(*name, *value);
        }
        is_from_here(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn what_browsers_say_of_an_origin_is_heard() {
        assert!(said(&[]));
        assert!(said(&[("host", "localhost:8081"), ("origin", "http://localhost:8081")]));
        assert!(said(&[("host", "a"), ("origin", "https://a"), ("sec-fetch-site", "same-origin")]));
        assert!(said(&[("sec-fetch-site", "none")]));
        assert!(!said(&[("sec-fetch-site", "cross-site")]));
        assert!(!said(&[("sec-fetch-site", "same-site")]));
        assert!(!said(&[("host", "localhost:8081"), ("origin", "http://evil.example")]));
        assert!(said(&[("host", "localhost:8081"), ("origin", "null"), ("sec-fetch-site", "same-origin")]));
        assert!(!said(&[("host", "localhost:8081"), ("origin", "null"), ("sec-fetch-site", "cross-site")]));
        assert!(!said(&[("host", "a"), ("origin", "http://a"), ("sec-fetch-site", "cross-site")]));
    }
}
