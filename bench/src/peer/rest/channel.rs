//! The versions of HTTP, with and without TLS.

use anyhow::Result;

use crate::peer::http::Http;
use crate::peer::http2::Http2;
use crate::peer::socket::Trust;

pub(in crate::peer) enum Channel {
    One(Http),
    Two(Box<Http2>),
}

impl Channel {
    /// Opens a connection of HTTP/1.1, inside TLS if there is a trust.
    pub(in crate::peer) fn one(address: &str, trust: Option<&Trust>) -> Result<Channel> {
        Ok(Channel::One(Http::connect(address, trust)?))
    }

    /// Opens a connection of HTTP/2.
    pub(in crate::peer) fn two(address: &str) -> Result<Channel> {
        Ok(Channel::Two(Box::new(Http2::connect(address)?)))
    }

    /// Sends a whole request in the form of HTTP/1.1 and reads the whole answer; returns its status.
    pub(super) fn exchange(&mut self, request: &str) -> Result<u16> {
        match self {
            Channel::One(http) => http.exchange(request.as_bytes()),
            Channel::Two(http) => http.exchange(request),
        }
    }

    /// Returns a header of the last answer, by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        match self {
            Channel::One(http) => http.header(name),
            Channel::Two(http) => http.header(name),
        }
    }

    pub(super) fn body(&self) -> &[u8] {
        match self {
            Channel::One(http) => http.body(),
            Channel::Two(http) => http.body(),
        }
    }
}
