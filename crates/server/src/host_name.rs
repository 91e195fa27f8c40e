//! Host names in certificates.

use rustls::pki_types::ServerName;

/// Returns whether a certificate can be issued for the name: a host name, possibly with a wildcard, or an address.
pub(crate) fn is_valid(name: &str) -> bool {
    parse(name).is_some()
}

/// Parses a name as a client would request it.
pub(crate) fn parse(name: &str) -> Option<ServerName<'static>> {
    let host = name.strip_prefix("*.").map(|domain| format!("any.{domain}"));
    ServerName::try_from(host.unwrap_or_else(|| name.to_owned())).ok()
}
