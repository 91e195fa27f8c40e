//! Checks the host name of requests while the server's key is public.
//!
//! On loopback with the emulator's key, every client that can connect may do everything, which is meant for the users
//! of this machine. A web page in their browser can connect as well: the owner of its site can point the site's name at
//! this machine (DNS rebinding), and then the browser takes this server for that site. The browser sends that name in
//! `Host`. So names that can be registered in the public DNS are refused, unless the operator allows them.

use std::net::{IpAddr, SocketAddr};

use hyper::header::HOST;
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

/// Suffixes of names that cannot be registered in the public DNS.
const PRIVATE: [&str; 5] = [".localhost", ".local", ".internal", ".test", ".home.arpa"];

/// The allowed host names.
#[derive(Debug)]
pub(crate) enum AllowedHosts {
    /// Any: the key is secret, and unknown to other sites.
    Any,
    /// Addresses, names that cannot be registered, and these.
    Private(Vec<String>),
}

impl AllowedHosts {
    /// Returns whether the request's host name is allowed. A request without one was not sent by a browser.
    pub(crate) fn allow(&self, request: &Parts) -> bool {
        let AllowedHosts::Private(more) = self else { return true };
        let is_ours = |given: &str| {
            if given.parse::<SocketAddr>().is_ok() {
                return true;
            }
            let host = given.parse::<Authority>().map(|name| name.host().to_lowercase()).unwrap_or_default();
            is_private(&host) || more.iter().any(|name| name.eq_ignore_ascii_case(&host))
        };
        let host = request.headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
        host.into_iter().chain(request.uri.authority().map(Authority::as_str)).all(is_ours)
    }
}

/// Returns whether the host is an address, a name without a dot, or has a private suffix.
fn is_private(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let named = !host.is_empty() && (!host.contains('.') || PRIVATE.iter().any(|end| host.ends_with(end)));
    address.is_ok() || named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(names: &AllowedHosts, host: &str) -> bool {
        let request = hyper::Request::builder().uri("/dbs").header(HOST, host).body(()).unwrap();
        names.allow(&request.into_parts().0)
    }

    #[test]
    fn a_public_host_name_is_refused_while_the_key_is_public() {
        let names = AllowedHosts::Private(vec!["db.example.org".to_owned()]);
        for ours in [
            "localhost:8081",
            "LOCALHOST",
            "127.0.0.1:8081",
            "[::1]:8081",
            "bolide:8081",
            "dev.localhost",
            "host.docker.internal:8081",
            "printer.local",
            "db.example.org:8081",
            "DB.example.org",
        ] {
            assert!(is_allowed(&names, ours), "{ours}");
        }
        for foreign in [
            "evil.example:8081",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "internal.com",
            "",
            "a b",
            "\u{e9}",
        ] {
            assert!(!is_allowed(&names, foreign), "{foreign}");
            assert!(is_allowed(&AllowedHosts::Any, foreign), "{foreign}");
        }
        let nameless = hyper::Request::builder().uri("/dbs").body(()).unwrap().into_parts().0;
        assert!(names.allow(&nameless));
        let by_authority = hyper::Request::builder().uri("http://evil.example/dbs").body(()).unwrap();
        assert!(!names.allow(&by_authority.into_parts().0));
    }
}
