//! The account's keys as passwords: each is valid, with the rights of the key.
//!
//! All keys have the salt that the account's name has, so a client cannot tell how many there are, nor which it has. A proof is
//! checked against each of them.

use account::{Entry, Key, Kind};
use hmac::{Hmac, Mac};
use parking_lot::Mutex;
use sha2::Sha256;

use super::Principal;
use super::credential::{Credential, Mechanism};
use crate::protocol::random;
use crate::protocol::settings::Account;

/// What is kept of the keys between two authentications.
#[derive(Debug)]
pub(crate) struct AccountKeys {
    /// What salts are made from. Not from the keys as they are: a salt that changes with a key would reveal the account's name.
    secret: [u8; 32],
    /// The primary key as it was at the start.
    at_start: Option<Key>,
    /// The ring's generation at the start.
    generation: u64,
    derived: Mutex<Vec<Derived>>,
}

#[derive(Debug)]
struct Derived {
    mechanism: Mechanism,
    key: Key,
    credential: Credential,
}

impl AccountKeys {
    pub(crate) fn new(account: &Account) -> AccountKeys {
        let generation = account.keys.generation();
        let at_start = primary(account);
        let secret = at_start.as_ref().map_or_else(random::bytes, |key| {
            key.mac().chain_update("salts of names").finalize().into_bytes().into()
        });
        AccountKeys { secret, at_start, generation, derived: Mutex::default() }
    }

    /// Whether the primary key differs from the one at the start, so that the one published then is no longer valid.
    pub(crate) fn has_changed(&self, account: &Account) -> bool {
        if account.keys.generation() == self.generation {
            return false;
        }
        match (&self.at_start, primary(account)) {
            (Some(before), Some(now)) => !now.is(before.reveal()),
            (before, now) => before.is_some() != now.is_some(),
        }
    }

    /// Returns a salt that depends on a name alone and reveals nothing: used for the account and for users that do not exist.
    pub(crate) fn salt(&self, name: &str, mechanism: Mechanism) -> Vec<u8> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC takes keys of any length");
        let mac = mac.chain_update(mechanism.name()).chain_update([0]).chain_update(name);
        mac.finalize().into_bytes()[..mechanism.salt_bytes()].to_vec()
    }

    /// Returns the credentials that a proof is checked against, the most powerful key first. A derived credential is kept
    /// as long as its key is good.
    pub(crate) fn credentials(
        &self,
        account: &Account,
        mechanism: Mechanism,
    ) -> Vec<(Credential, Principal)> {
        let entries = account.keys.entries();
        let mut derived = self.derived.lock();
        derived.retain(|derived| entries.iter().any(|entry| entry.key.is(derived.key.reveal())));
        let credential = |Entry { kind, key, .. }: Entry| {
            let known = derived.iter().find(|it| it.mechanism == mechanism && it.key.is(key.reveal()));
            let credential = match known {
                Some(known) => known.credential.clone(),
                None => self.derive(account, mechanism, &key)?,
            };
            if known.is_none() {
                derived.push(Derived { mechanism, key: key.clone(), credential: credential.clone() });
            }
            Some((credential, Principal::Account(account::AuthenticatedKey { kind, key })))
        };
        entries.into_iter().filter_map(credential).collect()
    }

    fn derive(&self, account: &Account, mechanism: Mechanism, key: &Key) -> Option<Credential> {
        let (name, salt) = (&account.user, self.salt(&account.user, mechanism));
        let derive = || Credential::derive(mechanism, name, key.reveal(), salt, mechanism.iterations());
        tokio::task::block_in_place(derive)
    }
}

fn primary(account: &Account) -> Option<Key> {
    account.keys.entries().into_iter().find(|entry| entry.kind == Kind::Primary).map(|entry| entry.key)
}
