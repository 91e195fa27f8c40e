//! Resource tokens: the `_token` of a permission, which stands in for the account key where the key must not go.
//!
//! A token is `type=resource&ver=1.0&sig=<mac>;<payload>;`, both parts base64. The payload names the permission by its
//! resource id and says until when the token is good, and no more: what is granted stands in the permission, which
//! is looked up at every use, so that changing or deleting it takes effect at once. The signing key is derived from
//! the account key, so a token's signature is never good for a request and the other way round. Like the dates of
//! signatures, expiry is judged by real time and not by the store's clock.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use document::PermissionRid;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::date;
use crate::error::Error;

/// Changes when the payload's form does, which ends all tokens of the older form.
const PURPOSE: &[u8] = b"bolide resource token 1";

/// Signs and checks tokens.
#[derive(Clone)]
pub(crate) struct TokenKey(Hmac<Sha256>);

/// What a token says once its signature was found good.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) permission: PermissionRid,
    expires_seconds: u64,
}

impl TokenKey {
    /// The key for tokens that belongs to an account key.
    pub(crate) fn derive(account: &Hmac<Sha256>) -> Self {
        let mut mac = account.clone();
        mac.update(PURPOSE);
        let bytes = mac.finalize().into_bytes();
        Self(Hmac::new_from_slice(&bytes).expect("HMAC takes keys of any length"))
    }

    /// A token for the permission of that resource id.
    pub(crate) fn mint(&self, permission: &str, expires_seconds: u64) -> String {
        let payload = format!("{permission} {expires_seconds}");
        let mut mac = self.0.clone();
        mac.update(payload.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        format!("type=resource&ver=1.0&sig={signature};{};", STANDARD.encode(payload))
    }

    /// Reads what stands behind `sig=`; nothing if this key did not sign it.
    pub(crate) fn open(&self, text: &str) -> Option<Claim> {
        let (signature, payload) = text.strip_suffix(';').unwrap_or(text).split_once(';')?;
        let (signature, payload) = (STANDARD.decode(signature).ok()?, STANDARD.decode(payload).ok()?);
        let mut mac = self.0.clone();
        mac.update(&payload);
        mac.verify_slice(&signature).ok()?;
        let (permission, expires) = std::str::from_utf8(&payload).ok()?.split_once(' ')?;
        Some(Claim { permission: permission.parse().ok()?, expires_seconds: expires.parse().ok()? })
    }
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
    use super::*;
    use document::UserRid;

    const PERMISSION: PermissionRid = PermissionRid { user: UserRid { database: 1, user: 2 }, number: 3 };

    fn key(secret: &[u8]) -> TokenKey {
        TokenKey::derive(&Hmac::new_from_slice(secret).unwrap())
    }

    fn minted(key: &TokenKey) -> String {
        let token = key.mint(&PERMISSION.to_string(), 100);
        token.strip_prefix("type=resource&ver=1.0&sig=").unwrap().to_owned()
    }

    #[test]
    fn a_token_says_what_was_put_in_until_it_expires() {
        let key = key(b"secret");
        let token = minted(&key);
        let claim = key.open(&token).unwrap();
        assert_eq!(claim, Claim { permission: PERMISSION, expires_seconds: 100 });
        assert_eq!(key.open(token.trim_end_matches(';')), Some(claim));
        let claim = key.open(&token).unwrap();
        assert!(claim.check_expiry(99).is_ok());
        assert!(matches!(claim.check_expiry(100), Err(Error::Forbidden(_))));
    }

    #[test]
    fn no_token_that_this_key_did_not_sign_opens() {
        let ours = key(b"secret");
        let token = minted(&ours);
        assert_eq!(key(b"other").open(&token), None);
        let (signature, _) = token.split_once(';').unwrap();
        let later = STANDARD.encode(format!("{PERMISSION} 999"));
        for forged in
            [format!("{signature};{later};"), format!(";{later};"), format!("{signature};;"), String::new()]
        {
            assert_eq!(ours.open(&forged), None, "{forged}");
        }
        assert_eq!(ours.open(&format!("{token}{token}")), None);
        // The account key itself signs no tokens.
        let account = TokenKey(Hmac::new_from_slice(b"secret").unwrap());
        assert_eq!(ours.open(&minted(&account)), None);
    }
}
