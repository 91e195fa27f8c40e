//! Pages for people, below `/_explorer`: the door through which another front end answers on this port.
//!
//! Nothing is known here about what they show. Their bodies are read with the bounds that everybody's are, and only as far as
//! the pages let this caller send anything.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{Request, Response};
use transport::{Tenant, Work};

use crate::request::Channel;

/// The first segment of every page's path.
const PREFIX: &str = "/_explorer";

/// The root certificate, which has its place among the pages and is not one.
const CERTIFICATE: &str = "/_explorer/emulator.pem";

/// Whoever answers for the pages.
pub trait Pages: Send + Sync {
    /// How large a body this caller may send.
    fn body_bytes(&self, head: &Parts) -> usize;

    /// Who asks, if they have shown a key, and for what kind of work.
    fn visitor(&self, head: &Parts) -> Option<Visitor>;

    /// The answer to a request for which there is no place now: come back after so many milliseconds.
    fn refused(&self, retry_after_ms: u64) -> Response<Bytes>;

    /// Answers one request, which came through that; whatever happens, there is an answer.
    fn answer(
        &self,
        request: Request<Bytes>,
        channel: Option<Channel>,
    ) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send + '_>>;
}

/// A caller who has shown a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visitor {
    /// To whom the request is charged.
    pub tenant: Tenant,
    /// What kind of work the page is; none if it waits in no queue.
    pub work: Option<Work>,
}

/// An extension of answers whose bytes all answers share: they are counted with nothing.
#[derive(Debug, Clone, Copy)]
pub struct SharedBody;

/// Whether a path is that of a page.
pub(crate) fn is_page(path: &str) -> bool {
    let below = path.strip_prefix(PREFIX);
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) && path != CERTIFICATE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_below_the_prefix_is_a_page() {
        for page in ["/_explorer", "/_explorer/", "/_explorer/c/nosql/db/orders"] {
            assert!(is_page(page), "{page}");
        }
        for other in ["/", "/dbs", "/_explorers", "/_bolide/status", "/_explorer/emulator.pem"] {
            assert!(!is_page(other), "{other}");
        }
    }
}
