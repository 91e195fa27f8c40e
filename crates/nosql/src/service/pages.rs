//! The interface of the explorer, whose pages below `/_explorer` another front end serves on this port.
//!
//! This module knows nothing of their contents. Their bodies have the same limits as all others, and are read only as
//! far as the pages allow this caller.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{Request, Response};
use transport::{Tenant, Work};

use crate::message::request::Channel;

/// The first segment of every page's path.
const PREFIX: &str = "/_explorer";

/// The path of the root certificate, which is below that of the pages and is not one.
const CERTIFICATE: &str = "/_explorer/emulator.pem";

/// A provider of pages.
pub trait Pages: Send + Sync {
    /// Returns the largest body this caller may send.
    fn body_bytes(&self, head: &Parts) -> usize;

    /// Returns the authenticated caller and the kind of work, if there is one.
    fn visitor(&self, head: &Parts) -> Option<Visitor>;

    /// Returns the answer to a refused request, with the time to retry in milliseconds.
    fn refused(&self, retry_after_ms: u64) -> Response<Bytes>;

    /// Answers one request, which came by that channel; there always is an answer.
    fn answer(
        &self,
        request: Request<Bytes>,
        channel: Option<Channel>,
    ) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send + '_>>;
}

/// An authenticated caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visitor {
    /// The tenant to which the request is charged.
    pub tenant: Tenant,
    /// The kind of work of the page; `None` if it waits in no queue.
    pub work: Option<Work>,
}

/// An extension of answers whose bytes are shared: they are not charged.
#[derive(Debug, Clone, Copy)]
pub struct SharedBody;

/// Returns whether a path is that of a page.
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
