//! A request path as decoded segments, and the part that a signature covers.
//!
//! Segments are split first and percent-decoded after, so an id may contain an encoded slash. Leading and trailing
//! slashes have no meaning. Resources have no parameters, so a question mark after an id belongs to it: some clients do
//! not escape it. Some do not escape a percent sign either, so that the address reads like another id; but they sign
//! the id itself, so the signature decides which [reading](ResourcePath::other_readings) is meant. There are two ways
//! of addressing: by name (`dbs/shop/colls/orders`) and by resource id (`dbs/AAAAAQ==/colls/AAAAAYAAAAE=`); the
//! signature, not the router, distinguishes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use percent_encoding::percent_decode_str;

use crate::protocol::error::Error;
use crate::protocol::limits::{PATH_BYTES, PATH_SEGMENTS};

/// The first segment of the admin API's paths.
pub(crate) const ADMIN_PREFIX: &str = "_bolide";

/// Decoded segments of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourcePath(Vec<String>);

impl ResourcePath {
    /// Returns the path of a request.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Error> {
        match with_question_mark(uri) {
            Some(raw) => Self::parse(&raw),
            None => Self::parse(uri.path()),
        }
    }

    /// Returns other readings of the same address, for clients that escape less, or that put parameters after a
    /// resource. Other readings end in another id; after a slash that id is an additional segment, and the route is
    /// that of an item.
    pub(crate) fn other_readings(uri: &Uri) -> impl Iterator<Item = Self> + use<> {
        let joined = with_question_mark(uri);
        // Some clients drop a question mark that nothing follows.
        let dropped = (uri.query().is_none() && ends_with_id(uri.path())).then(|| format!("{}?", uri.path()));
        let other = dropped.as_deref().or(joined.as_ref().map(|_| uri.path()));
        let other = other.and_then(|raw| Self::parse(raw).ok());
        let raw = joined.as_deref().unwrap_or_else(|| uri.path());
        let unescaped =
            raw.contains('%').then(|| Self::split(raw, |text| Ok(text.to_owned())).ok()).flatten();
        other.into_iter().chain(unescaped)
    }

    pub(crate) fn parse(raw: &str) -> Result<Self, Error> {
        Self::split(raw, decode)
    }

    /// Returns a path of names that are not escaped: a slash would be part of a name.
    pub(crate) fn of_names(segments: Vec<String>) -> Self {
        Self(segments)
    }

    fn split(raw: &str, read: impl Fn(&str) -> Result<String, Error>) -> Result<Self, Error> {
        if raw.len() > PATH_BYTES {
            return Err(Error::BadRequest(format!("the request path is longer than {PATH_BYTES} bytes")));
        }
        let trimmed = raw.trim_matches('/');
        if trimmed.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let segments: Result<Vec<String>, Error> =
            trimmed.split('/').take(PATH_SEGMENTS + 1).map(read).collect();
        Ok(Self(segments?))
    }

    pub(crate) fn segments(&self) -> &[String] {
        &self.0
    }

    /// Returns the segment at `index`, which the route guarantees.
    pub(crate) fn at(&self, index: usize) -> &str {
        self.0.get(index).map_or("", String::as_str)
    }

    /// Returns what master-key signatures contain for this path.
    pub(crate) fn signed(&self) -> Signed {
        let segments = &self.0;
        match segments.as_slice() {
            [] => Signed::named("", String::new()),
            [only] if only == "offers" => Signed::named("offers", String::new()),
            [first, rid] if first == "offers" => Signed::named("offers", rid.to_lowercase()),
            // A database or a container may have this name, too.
            [parent @ .., operations, _] if operations == "operations" && segments.len() == 6 => {
                Self::link("colls", parent)
            }
            [parent @ .., kind] if segments.len() % 2 == 1 => Self::link(kind, parent),
            whole => Self::link(&whole[whole.len() - 2], whole),
        }
    }

    fn link(kind: &str, path: &[String]) -> Signed {
        let rid = match path {
            [dbs, id, ..] if dbs == "dbs" && is_database_rid(id) => path.last().map(|rid| rid.to_lowercase()),
            _ => None,
        };
        Signed { kind: kind.to_lowercase(), link: path.join("/"), rid }
    }
}

/// Resource type and link of the string to sign.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Signed {
    pub(crate) kind: String,
    pub(crate) link: String,
    /// The other possible link, if the database segment could be a resource id. It covers one segment of the path, so
    /// it is accepted only where all of them are resource ids (`names`). A database *named* like one is not enough.
    pub(crate) rid: Option<String>,
}

impl Signed {
    fn named(kind: &str, link: String) -> Self {
        Self { kind: kind.to_owned(), link, rid: None }
    }
}

/// Returns the address of a resource whose id continues after a question mark. Ids contain no slash, so this reading
/// has as many segments as the address before the question mark, or one more if that ends with a slash.
fn with_question_mark(uri: &Uri) -> Option<String> {
    let (path, query) = (uri.path(), uri.query()?);
    (ends_with_id(path) && !query.contains('/')).then(|| format!("{path}?{query}"))
}

/// Returns whether the last segment of a raw path is an id; after a slash it is an empty one.
fn ends_with_id(path: &str) -> bool {
    let inner = path.trim_start_matches('/');
    inner.starts_with("dbs/") && inner.split('/').count().is_multiple_of(2)
}

fn decode(segment: &str) -> Result<String, Error> {
    let text = percent_decode_str(segment).decode_utf8();
    text.map(Into::into)
        .map_err(|_| Error::BadRequest("the request path is not UTF-8 once decoded".to_owned()))
}

/// Returns whether a segment has the form of a database's resource id: base64 of four bytes, `-` for `/`.
fn is_database_rid(segment: &str) -> bool {
    segment.len() == 8 && STANDARD.decode(segment.replace('-', "/")).is_ok_and(|bytes| bytes.len() == 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(raw: &str) -> (String, String, Option<String>) {
        let signed = ResourcePath::parse(raw).unwrap().signed();
        (signed.kind, signed.link, signed.rid)
    }

    #[test]
    fn the_signed_resource_follows_the_path() {
        for (raw, kind, link) in [
            ("/", "", ""),
            ("", "", ""),
            ("/dbs", "dbs", ""),
            ("/dbs/d", "dbs", "dbs/d"),
            ("/dbs/d/colls", "colls", "dbs/d"),
            ("/dbs/d/colls/c/docs/", "docs", "dbs/d/colls/c"),
            ("/dbs/d/colls/c/docs/x%20y", "docs", "dbs/d/colls/c/docs/x y"),
            ("/dbs/D/colls/C/docs/X", "docs", "dbs/D/colls/C/docs/X"),
            ("/dbs/d/colls/c/pkranges", "pkranges", "dbs/d/colls/c"),
            ("/offers", "offers", ""),
            ("/offers/AbC1", "offers", "abc1"),
            ("/dbs/d/colls/c/operations/partitionkeydelete", "colls", "dbs/d/colls/c"),
            ("/dbs/operations/colls", "colls", "dbs/operations"),
            ("/dbs/d/colls/operations/docs", "docs", "dbs/d/colls/operations"),
            ("/dbs/d%C3%A9/", "dbs", "dbs/dé"),
        ] {
            assert_eq!(signed(raw), (kind.to_owned(), link.to_owned(), None), "{raw}");
        }
    }

    #[test]
    fn resource_id_links_sign_the_last_id_in_lower_case() {
        for (raw, rid) in [
            ("/dbs/XqhgAA==", "xqhgaa=="),
            ("/dbs/XqhgAA==/colls/", "xqhgaa=="),
            ("/dbs/XqhgAA==/colls/XqhgAJ4o6iA=/docs", "xqhgaj4o6ia="),
            ("/dbs/Xqh-AA==/colls/XqhgAJ4o6iA=/docs/XqhgAJ4o6iABCT0AAAAABA==/", "xqhgaj4o6iabct0aaaaaba=="),
        ] {
            assert_eq!(signed(raw).2.as_deref(), Some(rid), "{raw}");
        }
    }

    #[test]
    fn a_question_mark_belongs_to_the_id_before_it() {
        let last = |text: &str| {
            let path = ResourcePath::of(&text.parse().unwrap()).unwrap();
            (path.segments().len(), path.segments().last().cloned().unwrap_or_default())
        };
        for (text, count, id) in [
            ("/dbs/d/colls/c/docs/a?b", 6, "a?b"),
            ("/dbs/d/colls/c/docs/a?", 6, "a?"),
            ("/dbs/d/colls/c/docs/?b", 6, "?b"),
            ("/dbs/d/colls/c/docs/a?b%20c?d=%3F", 6, "a?b c?d=?"),
            ("/dbs/d/colls/c/docs/a%3Fb", 6, "a?b"),
            ("/dbs/d/colls/c/docs?a=b", 5, "docs"),
            // No id has a slash, so these have query parameters.
            ("/dbs/d/colls/c/docs/a?x=b/c", 6, "a"),
            ("/dbs/d?/colls", 2, "d"),
            ("/_bolide/export?container=c", 2, "export"),
            ("//addresses/?$resolveFor=dbs", 1, "addresses"),
        ] {
            assert_eq!(last(text), (count, id.to_owned()), "{text}");
        }
    }

    #[test]
    fn an_address_that_escapes_less_reads_otherwise() {
        let others = |text: &str| -> Vec<String> {
            let uri = text.parse().unwrap();
            ResourcePath::other_readings(&uri).map(|path| path.segments().last().unwrap().clone()).collect()
        };
        let none: [&str; 0] = [];
        assert_eq!(others("/dbs/d/colls/c/docs/a"), ["a?"]);
        assert_eq!(others("/dbs/d/colls/c/docs/a%20b"), ["a b?", "a%20b"]);
        assert_eq!(others("/dbs/d/colls/c/docs"), none);
        assert_eq!(others("/dbs/d/colls/c/docs/"), ["?"]);
        assert_eq!(others("/dbs/d/colls/c/docs/a%20b?x=%41"), ["a b", "a%20b?x=%41"]);
        assert_eq!(others("/dbs/d/colls/c/docs?x=%41"), none);
    }

    #[test]
    fn broken_paths_are_refused() {
        assert!(ResourcePath::parse("/dbs/%FF%FE").is_err());
        assert!(ResourcePath::parse(&format!("/dbs/{}", "x".repeat(9000))).is_err());
        assert_eq!(ResourcePath::parse(&"/a".repeat(100)).unwrap().segments().len(), PATH_SEGMENTS + 1);
    }
}
