//! Names that certificates can be for.

use rustls::pki_types::ServerName;

/// Whether a certificate can be for it: a host name, perhaps of all hosts of a domain, or an address.
pub(crate) fn is_valid(name: &str) -> bool {
    parse(name).is_some()
}

/// A name as a client would ask for it.
pub(crate) fn parse(name: &str) -> Option<ServerName<'static>> {
    let host = name.strip_prefix("*.").map(|domain| format!("any.{domain}"));
    ServerName::try_from(host.unwrap_or_else(|| name.to_owned())).ok()
}
