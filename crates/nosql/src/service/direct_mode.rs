//! Direct mode as a whole: its settings, and the addresses that clients request by HTTP.
//!
//! A client in direct mode asks for the addresses of a partition's replicas, and sends its requests there. Both addresses
//! that it gets are this server, on the port of the request: with one alone, clients at strong consistency would ask again
//! for each read. The path of an address begins with the range, because requests repeat the path and Java names the range
//! in no other way.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use document::{ContainerRid, Value};
use engine::Container;
use hyper::StatusCode;
use percent_encoding::percent_decode_str;

use crate::auth::{Authenticator, names};
use crate::message::options::{Flag, TextOption};
use crate::message::payer::Payer;
use crate::message::reply::Reply;
use crate::message::request::Head;
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, text};
use crate::protocol::path::Signed;
use crate::service::trust::{Asking, Reason, Trust};

/// The settings of direct mode.
#[derive(Debug, Clone, Default)]
pub struct DirectSettings {
    /// Whether addresses are refused, so that clients must use the gateway mode.
    pub is_off: bool,
    /// Host and port under which clients reach the server; otherwise those of their own request.
    pub public_address: Option<String>,
}

/// The state of direct mode.
#[derive(Debug)]
pub(crate) struct DirectMode {
    pub(crate) settings: DirectSettings,
    pub(crate) trust: Trust,
}

/// The id of the range that stands for databases and containers.
const MASTER: &str = "M";

/// The clients' own setting, for the messages below: the .NET client shows them to its user word for word, and a "not found"
/// alone would look like an empty account.
macro_rules! use_the_gateway {
    ($why:literal) => {
        concat!(
            $why,
            "; or use the gateway mode: set ConnectionMode = ConnectionMode.Gateway in CosmosClientOptions (.NET), or call \
             gatewayMode() of CosmosClientBuilder (Java)"
        )
    };
}

const OFF: &str = use_the_gateway!("direct mode is off on this server ('direct')");
const NO_TLS: &str = use_the_gateway!("direct mode needs TLS, which this server does not have");
const NO_HOST: &str = use_the_gateway!(
    "the request has no valid Host header, so the server cannot name its address ('public-address')"
);
const LITERAL: &str = use_the_gateway!(
    "clients in direct mode take no IPv6 literal for an address: use a host name, or set 'public-address'"
);
const NOT_TRUSTED: &str = use_the_gateway!(
    "this client ends its connections in direct mode right after the TLS handshake, as clients do that do not trust the \
     server's certificate: let it trust the root certificate, which is at /_explorer/emulator.pem and in 'bolide cert' \
     (SSL_CERT_FILE for .NET on Linux, the trust store for Java); an HttpClient of your own that trusts it is not enough"
);

impl DirectMode {
    pub(crate) fn new(settings: DirectSettings) -> DirectMode {
        DirectMode { settings, trust: Trust::default() }
    }

    /// Answers a request for the addresses of partitions. Any valid key or resource token suffices.
    pub(crate) fn addresses(
        &self,
        authenticator: &Authenticator,
        has_tls: bool,
        head: &Head,
        payer: &mut Payer,
    ) -> Result<Reply, Error> {
        let refused = |why: &str| Err(Error::BadRequest(why.to_owned()));
        if self.settings.is_off {
            return refused(OFF);
        }
        let question = Question::parse(head.query().unwrap_or_default())?;
        let container = question.container(authenticator);
        payer.authenticate(authenticator.admit_to_addresses(head, &question.signed(container.as_deref()))?);
        if !has_tls {
            return refused(NO_TLS);
        }
        let host = self.host(head)?;
        if let Some(channel) = head.channel {
            let client = Asking::new(channel.peer.ip(), head.text(TextOption::ClientId));
            let is_forced = head.flag(Flag::ForceRefresh)?;
            let reason = if is_forced { Reason::ForcedRefresh } else { Reason::Any };
            if self.trust.asks(client, reason) {
                return refused(NOT_TRUSTED);
            }
        }
        let ranges = question.ranges(container.as_deref())?;
        Ok(Reply::json(StatusCode::OK, document(&host, &ranges).to_json()))
    }

    /// Returns host and port under which the client reaches this server.
    fn host(&self, head: &Head) -> Result<String, Error> {
        if let Some(public) = &self.settings.public_address {
            return Ok(public.clone());
        }
        let bad = |why: &str| Error::BadRequest(why.to_owned());
        let authority = head.authority().ok_or_else(|| bad(NO_HOST))?;
        if authority.host().starts_with('[') {
            return Err(bad(LITERAL));
        }
        let is_secure = head.channel.is_some_and(|channel| channel.secure);
        let port = authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        Ok(format!("{}:{port}", authority.host()))
    }
}

/// The question of a client: the addresses of the master partition, or of ranges of a container.
#[derive(Debug, PartialEq, Eq)]
struct Question {
    /// Database and container as the client names them; `None` for the master partition.
    container: Option<(String, String)>,
    /// The ranges; all of them if it names none.
    ranges: Option<Vec<String>>,
}

impl Question {
    /// Parses the query of the request. Its parameters have any order.
    fn parse(query: &str) -> Result<Question, Error> {
        let decoded = |text| percent_decode_str(text).decode_utf8_lossy();
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let given: HashMap<Cow<'_, str>, Cow<'_, str>> =
            pairs.map(|(name, value)| (decoded(name), decoded(value))).collect();
        let protocol = given.get("$filter").map_or("", |filter| filter.trim());
        let asked = protocol.rsplit(' ').next().unwrap_or_default();
        if !protocol.is_empty() && asked != "rntbd" {
            return Err(Error::BadRequest(format!(
                "there are addresses for the protocol rntbd alone, not '{asked}'"
            )));
        }
        let target = given.get("$resolveFor").map_or("", |target| target.trim_matches('/'));
        let container = match target.split('/').collect::<Vec<_>>()[..] {
            ["dbs"] => None,
            ["dbs", database, "colls", container, ..] => Some((database.to_owned(), container.to_owned())),
            _ => {
                return Err(Error::BadRequest(format!(
                    "'$resolveFor' must be 'dbs' or 'dbs/…/colls/…/docs', it is '{}'",
                    target.chars().take(200).collect::<String>()
                )));
            }
        };
        let ranges = given.get("$partitionKeyRangeIds");
        let ranges = ranges.map(|ids| ids.split(',').map(|id| id.trim().to_owned()).collect());
        Ok(Question { container, ranges })
    }

    /// Returns the container in question, if it exists. Clients mostly name it by its resource id.
    fn container(&self, authenticator: &Authenticator) -> Option<Arc<Container>> {
        let (database, name) = self.container.as_ref()?;
        let engine = authenticator.engine();
        let by_rid = || engine.container_by_rid(name.parse::<ContainerRid>().ok()?).ok();
        let by_name = || names::container(engine, &*names::database(engine, database).ok()?, name).ok();
        by_rid().or_else(by_name)
    }

    /// Returns the forms that clients sign: the type of the documents and the bare resource id, or the names of the
    /// container.
    fn signed(&self, found: Option<&Container>) -> Vec<Signed> {
        let Some((database, name)) = &self.container else {
            return vec![Signed { kind: "dbs".to_owned(), link: String::new(), rid: None }];
        };
        let of_docs = |link| Signed { kind: "docs".to_owned(), link, rid: Some(name.to_lowercase()) };
        let named = found.map(|it| of_docs(format!("dbs/{}/colls/{}", it.database, it.name())));
        let given = [of_docs(format!("dbs/{database}/colls/{name}")), of_docs(name.clone())];
        given.into_iter().chain(named).collect()
    }

    /// Returns the ids of the ranges in question; those that do not exist are left out.
    fn ranges(&self, container: Option<&Container>) -> Result<Vec<String>, Error> {
        let Some((_, name)) = &self.container else { return Ok(vec![MASTER.to_owned()]) };
        let missing = || engine::Error::NotFound { what: format!("container '{name}'") };
        let all =
            container.ok_or_else(missing)?.partitions.iter().map(|partition| partition.index.to_string());
        let is_asked = |id: &String| self.ranges.as_ref().is_none_or(|asked| asked.contains(id));
        Ok(all.filter(is_asked).collect())
    }
}

/// Returns the answer. Two of its names are misspelled in the protocol.
fn document(host: &str, ranges: &[String]) -> Value {
    let replicas = |range: &String| {
        [("1p", true), ("2s", false)].map(|(replica, is_primary)| {
            let uri = format!("rntbd://{host}/{range}/{replica}/");
            object([
                member("isPrimary", Value::Bool(is_primary)),
                member("protocol", text("rntbd")),
                member("logicalUri", text(&uri)),
                member("physcialUri", text(&uri)),
                member("partitionIndex", text(format!("{range}@1"))),
                member("partitionKeyRangeId", text(range)),
            ])
        })
    };
    let all: Vec<Value> = ranges.iter().flat_map(replicas).collect();
    let count = Value::Int(all.len() as i64);
    object([member("_rid", text("")), member("_count", count), member("Addresss", Value::Array(all))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_in_any_order_and_spelling() {
        let master = Question { container: None, ranges: None };
        let of_ranges = |ids: &[&str]| Question {
            container: Some(("AAAAAQ==".to_owned(), "AAAAAYAAAAE=".to_owned())),
            ranges: Some(ids.iter().map(|id| (*id).to_owned()).collect()),
        };
        for (query, expected) in [
            ("$resolveFor=dbs&$filter=protocol%20eq%20rntbd", &master),
            ("%24filter=protocol%20eq%20rntbd&%24resolveFor=dbs", &master),
            ("$resolveFor=dbs", &master),
            (
                "$resolveFor=dbs%2fAAAAAQ==%2fcolls%2fAAAAAYAAAAE=%2fdocs&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0",
                &of_ranges(&["0"]),
            ),
            (
                "$partitionKeyRangeIds=0%2C2&$filter=protocol+eq%20rntbd&$resolveFor=%2Fdbs%2FAAAAAQ%3D%3D%2Fcolls%2FAAAAAYAAAAE%3D%2Fdocs%2F",
                &of_ranges(&["0", "2"]),
            ),
        ] {
            assert_eq!(&Question::parse(query).unwrap(), expected, "{query}");
        }
        for (query, part) in [
            ("$resolveFor=dbs&$filter=protocol%20eq%20https", "'https'"),
            ("$resolveFor=colls", "'colls'"),
            ("", "'$resolveFor'"),
        ] {
            let error = Question::parse(query).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
