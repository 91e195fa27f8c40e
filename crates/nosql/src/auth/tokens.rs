//! Resource tokens: the `_token` of a permission, which stands in for the account key where the key must not go.
//!
//! A token is `type=resource&ver=1.0&sig=<mac>;<payload>;`, both parts base64. The payload contains only the
//! permission's resource id and the token's expiry: the rights are looked up in the permission at every use, so that
//! changing or deleting it takes effect at once. The signing key is derived from the account key that the permission
//! was read with, so a token's signature never signs a request and the other way round, and a new account key ends the
//! tokens of the old one. Like the dates of signatures, expiry uses real time and not the store's clock.

use account::{AuthenticatedKey, Key, Keyring, Right};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use document::PermissionRid;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::protocol::date;
use crate::protocol::error::Error;

/// The version of the payload's format, part of the derivation: changing it invalidates all older tokens.
const PURPOSE: &[u8] = b"bolide resource token 1";

/// The contents of a verified token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) permission: PermissionRid,
    expires_seconds: u64,
}

/// Creates a token for the permission with this resource id, signed with a key derived from the account key.
pub(crate) fn mint(key: &Key, permission: &str, expires_seconds: u64) -> String {
    let payload = format!("{permission} {expires_seconds}");
    let signature = STANDARD.encode(mac(key, payload.as_bytes()).finalize().into_bytes());
    format!("type=resource&ver=1.0&sig={signature};{};", STANDARD.encode(payload))
}

/// Verifies the text after `sig=`; returns `None` if no key that may sign tokens signed it.
pub(crate) fn open(keys: &Keyring, text: &str) -> Option<(Claim, AuthenticatedKey)> {
    let (signature, payload) = text.strip_suffix(';').unwrap_or(text).split_once(';')?;
    let (signature, payload) = (STANDARD.decode(signature).ok()?, STANDARD.decode(payload).ok()?);
    let signer = keys.find(|key| mac(key, &payload).verify_slice(&signature).is_ok())?;
    let (permission, expires) = std::str::from_utf8(&payload).ok()?.split_once(' ')?;
    let claim = Claim { permission: permission.parse().ok()?, expires_seconds: expires.parse().ok()? };
    (signer.right() == Right::ReadWrite).then_some((claim, signer))
}

fn mac(account: &Key, payload: &[u8]) -> Hmac<Sha256> {
    let mut derived = account.mac();
    derived.update(PURPOSE);
    let derived = derived.finalize().into_bytes();
    let mut mac = Hmac::new_from_slice(&derived).expect("HMAC takes keys of any length");
    mac.update(payload);
    mac
}

impl Claim {
    pub(crate) fn check_expiry(&self, now_seconds: u64) -> Result<(), Error> {
        if now_seconds < self.expires_seconds {
            return Ok(());
        }
        Err(Error::Forbidden(format!(
            "The resource token is not valid at the current time. Token expiry time: {}. Current server time: {}.",
            date::format(self.expires_seconds),
            date::format(now_seconds),
        )))
    }
}

#[cfg(test)]
mod tests {
    use account::Kind;
    use document::UserRid;

    use super::*;

    const PERMISSION: PermissionRid = PermissionRid { user: UserRid { database: 1, user: 2 }, number: 3 };

    fn key(secret: &str) -> Key {
        Key::parse(&STANDARD.encode(secret)).unwrap()
    }

    fn ring(secret: &str) -> Keyring {
        Keyring::of(key(secret))
    }

    fn minted(key: &Key) -> String {
        let token = mint(key, &PERMISSION.to_string(), 100);
        token.strip_prefix("type=resource&ver=1.0&sig=").unwrap().to_owned()
    }

    fn opened(keys: &Keyring, token: &str) -> Option<Claim> {
        open(keys, token).map(|(claim, _)| claim)
    }

    #[test]
    fn a_token_says_what_was_put_in_until_it_expires() {
        let token = minted(&key("secret"));
        let claim = opened(&ring("secret"), &token).unwrap();
        assert_eq!(claim, Claim { permission: PERMISSION, expires_seconds: 100 });
        assert_eq!(opened(&ring("secret"), token.trim_end_matches(';')).as_ref(), Some(&claim));
        assert!(claim.check_expiry(99).is_ok());
        assert!(matches!(claim.check_expiry(100), Err(Error::Forbidden(_))));
    }

    #[test]
    fn no_token_that_this_key_did_not_sign_opens() {
        let ours = ring("secret");
        let token = minted(&key("secret"));
        assert_eq!(opened(&ring("other"), &token), None);
        let (signature, _) = token.split_once(';').unwrap();
        let later = STANDARD.encode(format!("{PERMISSION} 999"));
        for forged in
            [format!("{signature};{later};"), format!(";{later};"), format!("{signature};;"), String::new()]
        {
            assert_eq!(opened(&ours, &forged), None, "{forged}");
        }
        assert_eq!(opened(&ours, &format!("{token}{token}")), None);
        // The account key itself signs no tokens.
        let payload = format!("{PERMISSION} 100");
        let mut mac = key("secret").mac();
        mac.update(payload.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        assert_eq!(opened(&ours, &format!("{signature};{};", STANDARD.encode(payload))), None);
    }

    #[test]
    fn a_token_is_valid_as_long_as_the_key_that_signed_it() {
        let keys = ring("secret");
        let second = keys.regenerate(Kind::Secondary).unwrap();
        let (first, second) = (minted(&key("secret")), minted(&second));
        assert!(opened(&keys, &first).is_some() && opened(&keys, &second).is_some());
        keys.regenerate(Kind::Secondary).unwrap();
        assert!(opened(&keys, &first).is_some());
        assert_eq!(opened(&keys, &second), None);
    }

    #[test]
    fn a_read_only_key_signs_no_tokens() {
        let keys = ring("secret");
        let reader = keys.regenerate(Kind::PrimaryReadonly).unwrap();
        assert_eq!(opened(&keys, &minted(&reader)), None);
    }
}
