//! A request's head as types: the meaning of each header is defined here, once.
//!
//! Header text is untrusted and clients disagree about spelling (`True`, `true`), so handlers never look at
//! headers themselves. Unknown headers are ignored, as the service does; known ones with a value that means
//! nothing are refused, and so are known ones that are not text: a condition that cannot be read is not a
//! condition that was not given.

use std::net::SocketAddr;

use document::{EffectiveKey, EffectiveRange, PartitionKey};
use engine::{Consent, Countdown, Precondition, Throughput};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Method, Uri, Version};

use crate::http::throughput;
use crate::protocol::error::Error;
use crate::protocol::headers;
use crate::protocol::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, TOKEN_SECONDS, TOKEN_SECONDS_DEFAULT};
use crate::protocol::path::ResourcePath;
use crate::protocol::session::Session;

/// The operation: an HTTP method, or one of the meanings that headers give to POST and GET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    /// GET with `A-IM`.
    ChangeFeed,
    Post,
    /// POST with `x-ms-documentdb-is-upsert`.
    Upsert,
    /// POST of a query.
    Query,
    /// POST that requests the plan of a query.
    Plan,
    /// POST of a batch or bulk request.
    Batch,
    Put,
    Patch,
    Delete,
}

/// The channel of a request, as its listener reports it.
#[derive(Debug, Clone, Copy)]
pub struct Channel {
    /// The address of the client.
    pub peer: SocketAddr,
    /// Whether it uses TLS.
    pub secure: bool,
}

/// The size and start of a page.
#[derive(Debug, Clone)]
pub(crate) struct PageRequest {
    /// The largest number of items.
    pub(crate) max_items: usize,
    /// The token of the previous page.
    pub(crate) continuation: Option<String>,
}

/// A request without its body.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) path: ResourcePath,
    uri: Uri,
    pub(crate) version: Version,
    headers: HeaderMap,
    pub(crate) channel: Option<Channel>,
}

impl Head {
    pub(crate) fn new(parts: Parts) -> Result<Self, Error> {
        let path = ResourcePath::of(&parts.uri)?;
        check_text(&parts.headers)?;
        let Parts { method, uri, version, headers, extensions, .. } = parts;
        Ok(Self { method, path, uri, version, headers, channel: extensions.get().copied() })
    }

    /// Returns other readings of the address.
    pub(crate) fn other_readings(&self) -> impl Iterator<Item = ResourcePath> + use<> {
        ResourcePath::other_readings(&self.uri)
    }

    /// Returns the text after `?`.
    pub(crate) fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// Returns the address the client used for this server, with scheme and trailing slash.
    pub(crate) fn origin(&self) -> Option<String> {
        let authority = match self.uri.authority() {
            Some(authority) => authority.clone(),
            None => self.headers.get(HOST)?.to_str().ok()?.parse::<Authority>().ok()?,
        };
        let secure = self.channel.is_some_and(|channel| channel.secure);
        let secure = secure || self.uri.scheme_str() == Some("https");
        let scheme = if secure { "https" } else { "http" };
        (!authority.as_str().contains('@')).then(|| format!("{scheme}://{authority}/"))
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the verb, or `None` for a method the protocol does not define.
    pub(crate) fn verb(&self) -> Result<Option<Verb>, Error> {
        Ok(Some(match self.method {
            Method::GET | Method::HEAD if self.headers.contains_key(&headers::A_IM) => Verb::ChangeFeed,
            Method::GET | Method::HEAD => Verb::Get,
            Method::POST => self.post()?,
            Method::PUT => Verb::Put,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => return Ok(None),
        }))
    }

    fn post(&self) -> Result<Verb, Error> {
        Ok(if self.flag(&headers::IS_QUERY_PLAN)? {
            Verb::Plan
        } else if self.flag(&headers::IS_QUERY)? || self.has_query_body() {
            Verb::Query
        } else if self.flag(&headers::IS_BATCH)? {
            Verb::Batch
        } else if self.flag(&headers::IS_UPSERT)? {
            Verb::Upsert
        } else {
            Verb::Post
        })
    }

    fn has_query_body(&self) -> bool {
        let kind = self.text(&CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        kind.starts_with("application/query+json") || kind.starts_with("application/sql")
    }

    /// Returns whether the body is the bare query text, without JSON around it.
    pub(crate) fn has_bare_query(&self) -> bool {
        self.text(&CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase().starts_with("application/sql")
    }

    /// Returns a header as text.
    pub(crate) fn text(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
    }

    /// Returns a boolean header, ignoring case; absent or empty is false.
    pub(crate) fn flag(&self, name: &HeaderName) -> Result<bool, Error> {
        match self.text(name).map(str::trim) {
            None | Some("") => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(bad_value(name, text, "true or false")),
        }
    }

    pub(crate) fn partition_key(&self) -> Result<Option<PartitionKey>, Error> {
        let text = self.text(&headers::PARTITION_KEY);
        Ok(text.map(PartitionKey::from_header).transpose()?)
    }

    /// Returns the partition key of an operation that requires one.
    pub(crate) fn required_partition_key(&self) -> Result<PartitionKey, Error> {
        self.partition_key()?.ok_or_else(|| {
            Error::BadRequest("PartitionKey value must be supplied for this operation.".to_owned())
        })
    }

    /// Returns the condition on the current version; `If-Match` takes precedence over `If-None-Match`.
    pub(crate) fn precondition(&self) -> Precondition {
        let etag = |name| self.text(&name).map(str::trim).filter(|text| !text.is_empty());
        precondition(etag(IF_MATCH), etag(IF_NONE_MATCH))
    }

    /// Returns `If-None-Match`, for feeds that have an etag of their own.
    pub(crate) fn if_none_match(&self) -> Option<&str> {
        self.text(&IF_NONE_MATCH).map(str::trim)
    }

    /// Returns whether a write's answer may omit the item.
    pub(crate) fn wants_minimal(&self) -> bool {
        let prefer = self.text(&headers::PREFER).unwrap_or_default().to_ascii_lowercase();
        let populate = self.text(&headers::CONTENT_RESPONSE).unwrap_or_default();
        prefer.replace(' ', "").contains("return=minimal") || populate.eq_ignore_ascii_case("false")
    }

    /// Checks headers that are valid but have no effect in a single store.
    pub(crate) fn check_hints(&self) -> Result<(), Error> {
        let directives = ["include", "exclude", "default"];
        self.one_of(&headers::INDEXING_DIRECTIVE, &directives)?;
        let levels = ["strong", "boundedstaleness", "session", "eventual", "consistentprefix"];
        self.one_of(&headers::CONSISTENCY, &levels)
    }

    /// Returns the client's session, which this read must not fall behind.
    pub(crate) fn session(&self) -> Result<Option<Session>, Error> {
        let Some(text) = self.text(&headers::SESSION_TOKEN) else { return Ok(None) };
        let session = Session::parse(text)?;
        let level = self.text(&headers::CONSISTENCY).unwrap_or("session");
        let binding = !["eventual", "consistentprefix"].iter().any(|weak| level.eq_ignore_ascii_case(weak));
        Ok(binding.then_some(session))
    }

    pub(crate) fn intended_rid(&self) -> Option<&str> {
        self.text(&headers::INTENDED_RID).map(str::trim).filter(|rid| !rid.is_empty())
    }

    /// Returns the range a request is meant for; some clients prefix the container's id and a comma.
    pub(crate) fn range_id(&self) -> Option<&str> {
        let text = self.text(&headers::RANGE_ID)?.trim();
        Some(text.rsplit(',').next().unwrap_or(text)).filter(|id| !id.is_empty())
    }

    /// Returns a range of effective partition keys, from the headers for feed ranges.
    pub(crate) fn effective_range(&self) -> Result<Option<EffectiveRange>, Error> {
        let (start, end) = (self.text(&headers::START_EPK), self.text(&headers::END_EPK));
        if start.is_none() && end.is_none() {
            return Ok(None);
        }
        if let Some(kind) = self.text(&headers::READ_KEY_TYPE)
            && !kind.eq_ignore_ascii_case("EffectivePartitionKeyRange")
        {
            return Err(bad_value(&headers::READ_KEY_TYPE, kind, "EffectivePartitionKeyRange"));
        }
        let key = |text: &str| text.trim().to_ascii_uppercase().parse::<EffectiveKey>();
        Ok(Some(EffectiveRange::new(key(start.unwrap_or(""))?, key(end.unwrap_or("FF"))?)))
    }

    /// Returns the size and start of the page.
    pub(crate) fn page(&self) -> Result<PageRequest, Error> {
        let continuation = self
            .text(&headers::CONTINUATION)
            .filter(|token| !token.is_empty() && !is_of_the_service(token))
            .map(str::to_owned);
        Ok(PageRequest { max_items: self.max_items()?, continuation })
    }

    fn max_items(&self) -> Result<usize, Error> {
        let Some(text) = self.text(&headers::MAX_ITEM_COUNT) else { return Ok(PAGE_ITEMS_DEFAULT) };
        match text.trim().parse::<i64>() {
            // The Java client asks for pages of 0 rows where the query's own TOP is 0.
            Ok(-1 | 0) => Ok(PAGE_ITEMS_DEFAULT),
            Ok(count) if count > 0 => {
                Ok(usize::try_from(count).unwrap_or(PAGE_ITEMS_MAX).min(PAGE_ITEMS_MAX))
            }
            _ => Err(bad_value(&headers::MAX_ITEM_COUNT, text, "-1, 0 or a positive integer")),
        }
    }

    /// Returns the throughput requested for a new database or container.
    pub(crate) fn throughput(&self) -> Result<Option<Throughput>, Error> {
        throughput::from_headers(self.text(&headers::THROUGHPUT), self.text(&headers::AUTOPILOT))
    }

    /// Returns whether the request may expire any number of items at once (T30).
    pub(crate) fn consent(&self) -> Result<Consent, Error> {
        Ok(if self.flag(&headers::CONFIRM_EXPIRY)? { Consent::Given } else { Consent::NotGiven })
    }

    /// Returns the effect of this request's writes on countdowns (T33).
    pub(crate) fn countdown(&self) -> Result<Countdown, Error> {
        Ok(if self.flag(&headers::KEEP_EXPIRY)? { Countdown::Keep } else { Countdown::Restart })
    }

    /// Returns the requested lifetime of resource tokens in the answer.
    pub(crate) fn token_life_seconds(&self) -> Result<u64, Error> {
        let Some(text) = self.text(&headers::EXPIRY_SECONDS) else { return Ok(TOKEN_SECONDS_DEFAULT) };
        let seconds = text.trim().parse().ok().filter(|seconds| TOKEN_SECONDS.contains(seconds));
        let range = || format!("{} to {} seconds", TOKEN_SECONDS.start(), TOKEN_SECONDS.end());
        seconds.ok_or_else(|| bad_value(&headers::EXPIRY_SECONDS, text, &range()))
    }

    /// Returns a parameter of the query string, not decoded: the admin API's parameters are numbers and words.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.query()?.split('&');
        pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn one_of(&self, name: &HeaderName, words: &[&str]) -> Result<(), Error> {
        match self.text(name).map(str::trim) {
            None | Some("") => Ok(()),
            Some(text) if words.iter().any(|word| word.eq_ignore_ascii_case(text)) => Ok(()),
            Some(text) => Err(bad_value(name, text, &words.join(", "))),
        }
    }
}

/// Refuses known headers that are not UTF-8. An activity id is only echoed: one that cannot be is replaced.
fn check_text(map: &HeaderMap) -> Result<(), Error> {
    let standard = [CONTENT_TYPE, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH];
    let matters =
        |name| (headers::is_known(name) || standard.contains(name)) && *name != headers::ACTIVITY_ID;
    for (name, value) in map {
        if std::str::from_utf8(value.as_bytes()).is_err() && matters(name) {
            return Err(bad_value(name, &String::from_utf8_lossy(value.as_bytes()), "UTF-8 text"));
        }
    }
    Ok(())
}

/// Returns the condition that two etags express; a star stands for any version.
pub(crate) fn precondition(if_match: Option<&str>, if_none_match: Option<&str>) -> Precondition {
    match (if_match, if_none_match) {
        (Some("*"), _) => Precondition::IfExists,
        (Some(etag), _) => Precondition::IfMatch(etag.to_owned()),
        (None, Some("*")) => Precondition::IfAbsent,
        (None, Some(etag)) => Precondition::IfNoneMatch(etag.to_owned()),
        (None, None) => Precondition::None,
    }
}

fn bad_value(name: &HeaderName, text: &str, expected: &str) -> Error {
    let shown: String = text.chars().take(100).collect();
    Error::BadRequest(format!(
        "The value '{shown}' specified for the header '{name}' is invalid: expected {expected}."
    ))
}
/// Returns whether a continuation token comes from the service, such as `-RID:~a0NP#RT:1#TRC:2`. A client that sends a
/// stored one starts over: the item in it never existed here.
fn is_of_the_service(token: &str) -> bool {
    matches!(token.split_at_checked(5), Some(("-RID:" | "+RID:", rest)) if rest.contains("#RT:"))
}
