//! By which names this server may be called while everybody knows its key.
//!
//! On loopback with the emulator's key, whoever can connect may do everything; that is meant for people on this machine. A page
//! of a stranger in their browser can connect as well: the name of its own site leads to this machine if its owner wants it to
//! (DNS rebinding), and then the browser takes us for that site. It tells us so in `Host`. A name that anybody can own in the
//! public DNS is refused, unless the operator says that it is ours.

use std::net::{IpAddr, SocketAddr};

use hyper::header::HOST;
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

/// Endings of names that nobody can own in the public DNS.
const PRIVATE: [&str; 5] = [".localhost", ".local", ".internal", ".test", ".home.arpa"];

/// The names.
#[derive(Debug)]
pub(crate) enum Names {
    /// Any: the key is a secret, which no stranger's page has.
    Any,
    /// Addresses, names that nobody can own, and these.
    Private(Vec<String>),
}

impl Names {
    /// Whether a request came under one of them. One that gives no name was not sent by a browser.
    pub(crate) fn allow(&self, request: &Parts) -> bool {
        let Names::Private(more) = self else { return true };
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

/// An address, a name without a dot, or one below an ending that is nobody's.
fn is_private(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let named = !host.is_empty() && (!host.contains('.') || PRIVATE.iter().any(|end| host.ends_with(end)));
    address.is_ok() || named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(names: &Names, host: &str) -> bool {
        let request = hyper::Request::builder().uri("/dbs").header(HOST, host).body(()).unwrap();
        names.allow(&request.into_parts().0)
    }

    #[test]
    fn a_strangers_name_is_none_of_ours_while_everybody_knows_the_key() {
        let names = Names::Private(vec!["db.example.org".to_owned()]);
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
        for strangers in [
            "evil.example:8081",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "internal.com",
            "",
            "a b",
            "\u{e9}",
        ] {
            assert!(!is_allowed(&names, strangers), "{strangers}");
            assert!(is_allowed(&Names::Any, strangers), "{strangers}");
        }
        let nameless = hyper::Request::builder().uri("/dbs").body(()).unwrap().into_parts().0;
        assert!(names.allow(&nameless));
        let by_authority = hyper::Request::builder().uri("http://evil.example/dbs").body(()).unwrap();
        assert!(!names.allow(&by_authority.into_parts().0));
    }
}
