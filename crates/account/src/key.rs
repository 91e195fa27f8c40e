//! One account key: base64 text in configuration and passwords, bytes in signatures.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The length of a generated key, the same as in Azure.
const RANDOM_BYTES: usize = 64;

/// The key that every Cosmos DB emulator shares.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// A key, ready for use. Clones share it.
#[derive(Clone)]
pub struct Key(Arc<Secret>);

struct Secret {
    text: String,
    bytes: usize,
    mac: Hmac<Sha256>,
    digest: [u8; 32],
}

/// A key that is not base64 of at least one byte.
#[derive(Debug, thiserror::Error)]
#[error("the account key must be base64 text of at least one byte")]
pub struct BadKey;

impl Key {
    /// Parses the base64 text of a key; surrounding whitespace is ignored.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let text = text.trim();
        let bytes = STANDARD.decode(text).map_err(|_| BadKey)?;
        if bytes.is_empty() {
            return Err(BadKey);
        }
        let mac = Hmac::new_from_slice(&bytes).map_err(|_| BadKey)?;
        Ok(Self(Arc::new(Secret {
            text: text.to_owned(),
            bytes: bytes.len(),
            mac,
            digest: Sha256::digest(text).into(),
        })))
    }

    /// Generates a random key.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).expect("the operating system has random bytes");
        Self::parse(&STANDARD.encode(bytes)).expect("this is base64 of many bytes")
    }

    /// Returns the secret text, for its owner, for the key file and for password checks.
    pub fn reveal(&self) -> &str {
        &self.0.text
    }

    /// Returns the length in bits.
    pub fn bits(&self) -> usize {
        self.0.bytes * 8
    }

    /// Returns whether the key is publicly known.
    pub fn is_public(&self) -> bool {
        self.0.text == EMULATOR_KEY
    }

    /// Returns a signature to be created or verified with this key.
    pub fn mac(&self) -> Hmac<Sha256> {
        self.0.mac.clone()
    }

    /// Returns whether `text` is this key. Compares digests rather than the texts, so that the time taken does not even
    /// reveal the key's length.
    pub fn is(&self, text: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(text).into();
        digest.ct_eq(&self.0.digest).into()
    }

    /// Returns an identifier that does not reveal the key: the first hexadecimal digits of the text's SHA-256.
    pub fn fingerprint(&self) -> String {
        let [a, b, c, d, ..] = self.0.digest;
        format!("{:08x}", u32::from_be_bytes([a, b, c, d]))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_not_base64_are_refused() {
        for text in ["", "  ", "not base64!", "AAA"] {
            assert!(Key::parse(text).is_err(), "{text}");
        }
        let key = Key::parse(" c2VjcmV0\n").unwrap();
        assert_eq!(key.reveal(), "c2VjcmV0");
        assert!(key.is("c2VjcmV0"));
        for other in ["other", "", "c2VjcmV0 ", "C2VjcmV0"] {
            assert!(!key.is(other), "{other}");
        }
    }

    #[test]
    fn a_fingerprint_is_the_beginning_of_the_digest_that_sha256sum_prints() {
        assert_eq!(Key::parse("c2VjcmV0").unwrap().fingerprint(), "1c1185e0");
    }

    #[test]
    fn debug_shows_nothing_of_the_key() {
        let shown = format!("{:?}", Key::parse("c2VjcmV0").unwrap());
        assert_eq!(shown, "Key(..)");
    }

    #[test]
    fn random_keys_are_as_long_as_the_services_and_differ() {
        let (one, two) = (Key::random(), Key::random());
        assert_eq!((one.reveal().len(), one.bits()), (88, 512));
        assert_ne!(one.reveal(), two.reveal());
    }
}
