//! The required length of keys where other machines can reach the server.
//!
//! On loopback any key is accepted, because tests and emulators use short ones and only this machine can connect.
//! Generated keys have 512 bits.

use std::net::SocketAddr;

use account::Key;
use anyhow::{Result, bail};

/// The smallest number of bits of a key on an address that other machines can reach.
const BITS_MIN: usize = 256;

/// Returns the first address that other machines can reach.
pub(crate) fn reachable(listen: &[Option<SocketAddr>]) -> Option<SocketAddr> {
    listen.iter().flatten().find(|address| !address.ip().is_loopback()).copied()
}

/// Refuses a key that is too short for an address that other machines can reach; `what` names the key. The error
/// contains nothing of the key.
pub(crate) fn check(key: &Key, what: &str, reachable: Option<SocketAddr>) -> Result<()> {
    let bits = key.bits();
    match reachable {
        Some(listen) if bits < BITS_MIN => bail!(
            "{what} has {bits} bits, which can be guessed, so it is refused on {listen}, which others can reach; a key needs at \
             least {BITS_MIN} bits there: make one with 'openssl rand -base64 32'"
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_are_for_loopback_only() {
        let address = |text: &str| Some(text.parse::<SocketAddr>().unwrap());
        let (local, open) = (address("127.0.0.1:1"), address("0.0.0.0:2"));
        for (listen, expected) in [
            (vec![local, None], None),
            (vec![local, address("[::1]:3")], None),
            (vec![local, open], open),
            (vec![address("[::]:3"), local], address("[::]:3")),
        ] {
            assert_eq!(reachable(&listen), expected);
        }
        let key = |bytes: usize| {
            use std::fmt::Write as _;
            // "AAAA" is base64 of three bytes; the rest is padded.
            let mut text = "AAAA".repeat(bytes / 3);
            let _ = write!(text, "{}", ["", "AA==", "AAA="][bytes % 3]);
            Key::parse(&text).unwrap()
        };
        for (bytes, is_refused) in [(1, true), (31, true), (32, false), (64, false)] {
            assert_eq!(key(bytes).bits(), bytes * 8);
            assert!(check(&key(bytes), "the key", local.filter(|_| false)).is_ok());
            let outcome = check(&key(bytes), "the setting 'key'", open);
            assert_eq!(outcome.is_err(), is_refused, "{bytes}");
        }
        let text = check(&key(1), "the setting 'key'", open).unwrap_err().to_string();
        assert!(text.starts_with("the setting 'key' has 8 bits"), "{text}");
        assert!(text.contains("0.0.0.0:2") && text.contains("openssl rand -base64 32"), "{text}");
        assert!(!text.contains("AA=="), "{text}");
    }
}
