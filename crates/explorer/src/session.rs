//! Sessions. They use real time, whatever the store's clock shows (T29).
//!
//! A session is identified by 256 random bits in a cookie, of which only a digest is kept. It keeps the key that it
//! began with and checks it again at each request: a replaced key ends its sessions. Failed attempts are limited for
//! each client (`failures`).

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use account::{AuthenticatedKey, Key, Keyring, Right};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::HeaderMap;
use hyper::header::COOKIE;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::failures::Failures;

/// The cookie's name.
pub(crate) const COOKIE_NAME: &str = "bolide-explorer";

/// The idle time after which a session ends.
const IDLE: Duration = Duration::from_mins(30);

/// The longest duration of a session.
const LIFE: Duration = Duration::from_hours(12);

/// The largest number of sessions; beyond it, the least recently used one ends.
const SESSIONS_MAX: usize = 256;

/// The longest key that is checked.
const KEY_BYTES_MAX: usize = 1024;

/// All sessions.
#[derive(Default)]
pub(crate) struct Sessions {
    known: Mutex<HashMap<[u8; 32], Kept>>,
    failures: Mutex<Failures>,
}

struct Kept {
    key: Key,
    csrf: String,
    begun: Instant,
    used: Instant,
}

impl Kept {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.used) >= IDLE || now.duration_since(self.begun) >= LIFE
    }
}

/// The session of a request.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// The key, and what it allows.
    pub(crate) holder: AuthenticatedKey,
    /// The secret in every form of this session.
    pub(crate) csrf: String,
}

impl Session {
    /// Returns the rights of the key.
    pub(crate) fn right(&self) -> Right {
        self.holder.right()
    }
}

/// Why a sign-in was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The key is not one of the account's.
    Key,
    /// Too many wrong keys were tried.
    TooMany,
}

impl Sessions {
    /// Begins a session of that peer and returns the cookie's value.
    pub(crate) fn begin(&self, key: &str, keys: &Keyring, peer: Option<IpAddr>) -> Result<String, Refused> {
        let now = Instant::now();
        if self.failures.lock().are_too_many(peer, now) {
            return Err(Refused::TooMany);
        }
        let Some(holder) = keys.authenticate(key).filter(|_| key.len() <= KEY_BYTES_MAX) else {
            self.failures.lock().add(peer, now);
            return Err(Refused::Key);
        };
        let (token, csrf) = (random_text(), random_text());
        let mut known = self.known.lock();
        known.retain(|_, kept| !kept.is_over(now));
        if known.len() >= SESSIONS_MAX {
            let oldest = known.iter().min_by_key(|(_, kept)| kept.used).map(|(digest, _)| *digest);
            oldest.map(|digest| known.remove(&digest));
        }
        known.insert(digest(&token), Kept { key: holder.key, csrf, begun: now, used: now });
        Ok(token)
    }

    /// Returns the session of a request, if it has a valid one.
    pub(crate) fn find(&self, headers: &HeaderMap, keys: &Keyring) -> Option<Session> {
        let digest = digest(cookie(headers)?);
        let now = Instant::now();
        let mut known = self.known.lock();
        let kept = known.get_mut(&digest)?;
        let Some(holder) = keys.authenticate(kept.key.reveal()).filter(|_| !kept.is_over(now)) else {
            known.remove(&digest);
            return None;
        };
        kept.used = now;
        Some(Session { holder, csrf: kept.csrf.clone() })
    }

    /// Returns the number of valid sessions that began with a key.
    pub(crate) fn count(&self, key: &Key) -> u64 {
        let now = Instant::now();
        let known = self.known.lock();
        known.values().filter(|kept| !kept.is_over(now) && kept.key.is(key.reveal())).count() as u64
    }

    /// Ends the session of a request.
    pub(crate) fn end(&self, headers: &HeaderMap) {
        if let Some(token) = cookie(headers) {
            self.known.lock().remove(&digest(token));
        }
    }
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    pairs
        .flat_map(|text| text.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(COOKIE_NAME)?.strip_prefix('='))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Returns 256 random bits as text.
fn random_text() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use account::{Entry, KeySource, Kind, NoKeyStore};

    use super::*;
    use crate::failures;

    const RIGHT: &str = "cmlnaHQ=";

    fn ring() -> Keyring {
        let key = Key::parse(RIGHT).unwrap();
        Keyring::new([Entry { kind: Kind::Primary, key, source: KeySource::Generated }], NoKeyStore)
    }

    fn with_cookie(token: &str) -> HeaderMap {
        let value = format!("other=1; {COOKIE_NAME}={token}");
        HeaderMap::from_iter([(COOKIE, value.parse().unwrap())])
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_it_rests_and_at_the_end_of_its_life() {
        let (sessions, keys) = (Sessions::default(), ring());
        let headers = with_cookie(&sessions.begin(RIGHT, &keys, None).unwrap());
        for _ in 0..30 {
            tokio::time::advance(Duration::from_mins(20)).await;
            assert!(sessions.find(&headers, &keys).is_some());
        }
        for _ in 0..6 {
            tokio::time::advance(Duration::from_mins(20)).await;
            sessions.find(&headers, &keys);
        }
        assert!(sessions.find(&headers, &keys).is_none(), "twelve hours are over");

        let headers = with_cookie(&sessions.begin(RIGHT, &keys, None).unwrap());
        tokio::time::advance(IDLE).await;
        assert!(sessions.find(&headers, &keys).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_was_replaced_ends_its_sessions() {
        let (sessions, keys) = (Sessions::default(), ring());
        let headers = with_cookie(&sessions.begin(RIGHT, &keys, None).unwrap());
        assert_eq!(sessions.find(&headers, &keys).map(|session| session.right()), Some(Right::ReadWrite));
        keys.regenerate(Kind::Secondary).unwrap();
        assert!(sessions.find(&headers, &keys).is_some(), "another key was replaced");
        keys.regenerate(Kind::Primary).unwrap();
        assert!(sessions.find(&headers, &keys).is_none());
        assert!(sessions.known.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_keys_are_bounded_and_sessions_too() {
        let (sessions, keys) = (Sessions::default(), ring());
        for _ in 0..failures::FAILURES_MAX {
            assert_eq!(sessions.begin("wrong", &keys, None), Err(Refused::Key));
        }
        assert_eq!(sessions.begin(RIGHT, &keys, None), Err(Refused::TooMany));
        let neighbour = Some(IpAddr::from([192, 0, 2, 1]));
        assert!(sessions.begin(RIGHT, &keys, neighbour).is_ok(), "no client waits for another's failures");
        tokio::time::advance(failures::WINDOW).await;
        let first = with_cookie(&sessions.begin(RIGHT, &keys, None).unwrap());
        for _ in 0..SESSIONS_MAX {
            tokio::time::advance(Duration::from_millis(1)).await;
            sessions.begin(RIGHT, &keys, None).unwrap();
        }
        assert!(sessions.find(&first, &keys).is_none());
        assert_eq!(sessions.known.lock().len(), SESSIONS_MAX);
    }
}
