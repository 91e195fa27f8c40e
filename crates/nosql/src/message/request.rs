//! A request's head as types: the meaning of each option is defined here, once, whichever codec brought it.

use std::net::SocketAddr;
use std::time::Duration;

use document::{EffectiveKey, EffectiveRange, PartitionKey};
use engine::{Consent, Countdown, Precondition, Throughput};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Method, Uri, Version};
use tokio::time::Instant;

use crate::message::options::{Flag, Options, TextOption, TypedOptions, bad_option};
use crate::message::throughput;
use crate::protocol::consistency::Consistency;
use crate::protocol::error::Error;
use crate::protocol::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, TOKEN_SECONDS, TOKEN_SECONDS_DEFAULT};
use crate::protocol::path::{ADMIN_PREFIX, ResourcePath};
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

impl Verb {
    /// Returns whether it changes nothing.
    pub(crate) fn is_read(self) -> bool {
        match self {
            Verb::Get | Verb::ChangeFeed | Verb::Query | Verb::Plan => true,
            Verb::Post | Verb::Upsert | Verb::Batch | Verb::Put | Verb::Patch | Verb::Delete => false,
        }
    }
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
    /// The HTTP method, which signatures cover; in direct mode, the one that the operation stands for.
    pub(crate) method: Method,
    pub(crate) path: ResourcePath,
    pub(crate) channel: Option<Channel>,
    carrier: Carrier,
    options: Options,
}

/// The parts of a request that only one of the protocols has.
#[derive(Debug)]
enum Carrier {
    Http { uri: Uri, version: Version },
    Direct { verb: Verb, deadline: Option<Instant>, range: Option<usize> },
}

impl Head {
    /// Creates the head of an HTTP request.
    pub(crate) fn of_http(
        (method, uri, version): (Method, Uri, Version),
        path: ResourcePath,
        headers: HeaderMap,
        channel: Option<Channel>,
    ) -> Head {
        let carrier = Carrier::Http { uri, version };
        Head { method, path, channel, carrier, options: Options::Headers(headers) }
    }

    /// Creates the head of a request in direct mode.
    pub(crate) fn of_direct(
        (method, verb): (Method, Verb),
        path: ResourcePath,
        options: TypedOptions,
        channel: Channel,
        remaining: Option<Duration>,
        range: Option<usize>,
    ) -> Head {
        let deadline = remaining.map(|remaining| Instant::now() + remaining);
        let (carrier, options) = (Carrier::Direct { verb, deadline, range }, Options::Typed(options));
        Head { method, path, channel: Some(channel), carrier, options }
    }

    /// Returns how long the client still waits for the answer, if it said so.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        match self.carrier {
            Carrier::Http { .. } => None,
            Carrier::Direct { deadline, .. } => deadline.map(|at| at.duration_since(Instant::now())),
        }
    }

    /// Returns the range whose address the request was sent to, if it was sent to one.
    pub(crate) fn addressed_range(&self) -> Option<usize> {
        match self.carrier {
            Carrier::Http { .. } => None,
            Carrier::Direct { range, .. } => range,
        }
    }

    /// Returns other readings of the address; names in tokens have one reading.
    pub(crate) fn other_readings(&self) -> impl Iterator<Item = ResourcePath> + use<> {
        let uri = match &self.carrier {
            Carrier::Http { uri, .. } => Some(uri),
            Carrier::Direct { .. } => None,
        };
        uri.map(ResourcePath::other_readings).into_iter().flatten()
    }

    /// Returns the text after `?`.
    pub(crate) fn query(&self) -> Option<&str> {
        match &self.carrier {
            Carrier::Http { uri, .. } => uri.query(),
            Carrier::Direct { .. } => None,
        }
    }

    /// Returns the version of HTTP whose framing the answer has; answers in direct mode are multiplexed like those of
    /// HTTP/2.
    pub(crate) fn version(&self) -> Version {
        match self.carrier {
            Carrier::Http { version, .. } => version,
            Carrier::Direct { .. } => Version::HTTP_2,
        }
    }

    /// Returns the host and port the client used for this server.
    pub(crate) fn authority(&self) -> Option<Authority> {
        let Carrier::Http { uri, .. } = &self.carrier else { return None };
        let given = match uri.authority() {
            Some(authority) => authority.clone(),
            None => self.text(TextOption::Host)?.parse().ok()?,
        };
        (!given.as_str().contains('@')).then_some(given)
    }

    /// Returns the address the client used for this server, with scheme and trailing slash.
    pub(crate) fn origin(&self) -> Option<String> {
        Some(format!("{}://{}/", self.scheme(), self.authority()?))
    }

    /// Returns the scheme of the address that the client used.
    pub(crate) fn scheme(&self) -> &'static str {
        let is_https =
            matches!(&self.carrier, Carrier::Http { uri, .. } if uri.scheme_str() == Some("https"));
        let secure = is_https || self.channel.is_some_and(|channel| channel.secure);
        if secure { "https" } else { "http" }
    }

    /// Returns the verb, or `None` for a method the protocol does not define.
    pub(crate) fn verb(&self) -> Result<Option<Verb>, Error> {
        if let Carrier::Direct { verb, .. } = self.carrier {
            return Ok(Some(verb));
        }
        Ok(Some(match self.method {
            Method::GET | Method::HEAD if self.feed_mode().is_some() => Verb::ChangeFeed,
            Method::GET | Method::HEAD => Verb::Get,
            Method::POST => self.post()?,
            Method::PUT => Verb::Put,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => return Ok(None),
        }))
    }

    fn post(&self) -> Result<Verb, Error> {
        Ok(if self.flag(Flag::IsQueryPlan)? {
            Verb::Plan
        } else if self.flag(Flag::IsQuery)? || self.has_query_body() {
            Verb::Query
        } else if self.flag(Flag::IsBatch)? {
            Verb::Batch
        } else if self.flag(Flag::IsUpsert)? {
            Verb::Upsert
        } else {
            Verb::Post
        })
    }

    fn has_query_body(&self) -> bool {
        let kind = self.text(TextOption::ContentType).unwrap_or_default().to_ascii_lowercase();
        kind.starts_with("application/query+json") || kind.starts_with("application/sql")
    }

    /// Returns whether the body is the bare query text, without JSON around it.
    pub(crate) fn has_bare_query(&self) -> bool {
        let kind = self.text(TextOption::ContentType).unwrap_or_default();
        kind.to_ascii_lowercase().starts_with("application/sql")
    }

    /// Returns whether the request is for the admin API.
    pub(crate) fn is_for_operators(&self) -> bool {
        self.path.at(0) == ADMIN_PREFIX
    }

    /// Returns an option as text.
    pub(crate) fn text(&self, option: TextOption) -> Option<&str> {
        self.options.text(option)
    }

    /// Returns a flag; absent or empty is false.
    pub(crate) fn flag(&self, flag: Flag) -> Result<bool, Error> {
        self.options.flag(flag)
    }

    /// Returns the mode of the change feed that the request is about.
    pub(crate) fn feed_mode(&self) -> Option<&str> {
        self.text(TextOption::AIm)
    }

    pub(crate) fn partition_key(&self) -> Result<Option<PartitionKey>, Error> {
        let text = self.text(TextOption::PartitionKey);
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
        let etag = |option| self.text(option).map(str::trim).filter(|text| !text.is_empty());
        precondition(etag(TextOption::IfMatch), etag(TextOption::IfNoneMatch))
    }

    /// Returns `If-None-Match`, for feeds that have an etag of their own.
    pub(crate) fn if_none_match(&self) -> Option<&str> {
        self.text(TextOption::IfNoneMatch).map(str::trim)
    }

    /// Returns whether a write's answer may omit the item.
    pub(crate) fn wants_minimal(&self) -> bool {
        let prefer = self.text(TextOption::Prefer).unwrap_or_default().to_ascii_lowercase();
        let populate = self.text(TextOption::ContentResponse).unwrap_or_default();
        prefer.replace(' ', "").contains("return=minimal") || populate.eq_ignore_ascii_case("false")
    }

    /// Checks headers that are valid but have no effect in a single store.
    pub(crate) fn check_hints(&self) -> Result<(), Error> {
        let directives = ["include", "exclude", "default"];
        self.options.one_of(TextOption::IndexingDirective, &directives)?;
        let levels = Consistency::ALL.map(Consistency::name);
        self.options.one_of(TextOption::Consistency, &levels)
    }

    /// Returns the consistency level that the request asks for, if it does.
    pub(crate) fn consistency(&self) -> Option<Consistency> {
        self.text(TextOption::Consistency).and_then(Consistency::parse)
    }

    /// Returns the client's session, which this read must not fall behind: none if its level, or else that of the account, is
    /// weaker than sessions.
    pub(crate) fn session(&self, of_account: Option<Consistency>) -> Result<Option<Session>, Error> {
        let Some(text) = self.text(TextOption::SessionToken) else { return Ok(None) };
        let session = Session::parse(text)?;
        let level = self.consistency().or(of_account);
        let is_weak = level.is_some_and(|level| Consistency::Session.is_stronger_than(level));
        Ok((!is_weak).then_some(session))
    }

    pub(crate) fn intended_rid(&self) -> Option<&str> {
        self.text(TextOption::IntendedRid).map(str::trim).filter(|rid| !rid.is_empty())
    }

    /// Returns the range a request is meant for; some clients prefix the container's id and a comma.
    pub(crate) fn range_id(&self) -> Option<&str> {
        let text = self.text(TextOption::RangeId)?.trim();
        Some(text.rsplit(',').next().unwrap_or(text)).filter(|id| !id.is_empty())
    }

    /// Returns a range of effective partition keys, from the headers for feed ranges.
    pub(crate) fn effective_range(&self) -> Result<Option<EffectiveRange>, Error> {
        let (start, end) = (self.text(TextOption::StartEpk), self.text(TextOption::EndEpk));
        if start.is_none() && end.is_none() {
            return Ok(None);
        }
        if let Some(kind) = self.text(TextOption::ReadKeyType)
            && !kind.eq_ignore_ascii_case("EffectivePartitionKeyRange")
        {
            return Err(bad_option(TextOption::ReadKeyType, kind, "EffectivePartitionKeyRange"));
        }
        let key = |text: &str| text.trim().to_ascii_uppercase().parse::<EffectiveKey>();
        Ok(Some(EffectiveRange::new(key(start.unwrap_or(""))?, key(end.unwrap_or("FF"))?)))
    }

    /// Returns the size and start of the page.
    pub(crate) fn page(&self) -> Result<PageRequest, Error> {
        let continuation = self
            .text(TextOption::Continuation)
            .filter(|token| !token.is_empty() && !is_of_the_service(token))
            .map(str::to_owned);
        Ok(PageRequest { max_items: self.max_items()?, continuation })
    }

    fn max_items(&self) -> Result<usize, Error> {
        let Some(text) = self.text(TextOption::MaxItemCount) else { return Ok(PAGE_ITEMS_DEFAULT) };
        match text.trim().parse::<i64>() {
            // The Java client requests pages of 0 rows where the query's own TOP is 0.
            Ok(-1 | 0) => Ok(PAGE_ITEMS_DEFAULT),
            Ok(count) if count > 0 => {
                Ok(usize::try_from(count).unwrap_or(PAGE_ITEMS_MAX).min(PAGE_ITEMS_MAX))
            }
            _ => Err(bad_option(TextOption::MaxItemCount, text, "-1, 0 or a positive integer")),
        }
    }

    /// Returns the throughput requested for a new database or container.
    pub(crate) fn throughput(&self) -> Result<Option<Throughput>, Error> {
        throughput::from_headers(self.text(TextOption::Throughput), self.text(TextOption::Autopilot))
    }

    /// Returns whether the request may expire any number of items at once (T30).
    pub(crate) fn consent(&self) -> Result<Consent, Error> {
        Ok(if self.flag(Flag::ConfirmExpiry)? { Consent::Given } else { Consent::NotGiven })
    }

    /// Returns the effect of this request's writes on countdowns (T33).
    pub(crate) fn countdown(&self) -> Result<Countdown, Error> {
        Ok(if self.flag(Flag::KeepExpiry)? { Countdown::Keep } else { Countdown::Restart })
    }

    /// Returns the requested lifetime of resource tokens in the answer.
    pub(crate) fn token_life_seconds(&self) -> Result<u64, Error> {
        let Some(text) = self.text(TextOption::ExpirySeconds) else { return Ok(TOKEN_SECONDS_DEFAULT) };
        let seconds = text.trim().parse().ok().filter(|seconds| TOKEN_SECONDS.contains(seconds));
        let range = || format!("{} to {} seconds", TOKEN_SECONDS.start(), TOKEN_SECONDS.end());
        seconds.ok_or_else(|| bad_option(TextOption::ExpirySeconds, text, &range()))
    }

    /// Returns a parameter of the query string, not decoded: the admin API's parameters are numbers and words.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.query()?.split('&');
        pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    }
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

/// Returns whether a continuation token comes from the service, such as `-RID:~a0NP#RT:1#TRC:2`. A client that sends a
/// stored one starts over: the item in it never existed here.
fn is_of_the_service(token: &str) -> bool {
    matches!(token.split_at_checked(5), Some(("-RID:" | "+RID:", rest)) if rest.contains("#RT:"))
}
