//! Clients that do not trust the server's certificate.
//!
//! A client in direct mode that does not trust the certificate ends its connection after the handshake without sending
//! anything, and asks for addresses again; half a minute later its user reads that the service is not available. If the
//! answer to the second question is an error, the user reads it at once. Other clients must not get that error: health
//! checks, too, end connections after the handshake, and many clients may share an address.
//!
//! Ends of connections, and trusting clients, are known by address alone. Questions are known by the client: only a client
//! that has got an answer, and that insists on fresh addresses because it cannot use those, gets the error.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The entries of each table at most.
const ENTRIES_MAX: usize = 1024;

/// How long a question and the ends after it are remembered.
const LIFE: Duration = Duration::from_mins(1);

/// The largest age of silent handshakes that count.
const RECENT: Duration = Duration::from_secs(10);

/// The number of silent handshakes that arouse suspicion.
const SILENT_ENDS: usize = 2;

/// How many ends of an address are remembered, to find regular ones.
const REMEMBERED: usize = 6;

/// The known facts about the clients.
#[derive(Debug, Default)]
pub(crate) struct Trust(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// When handshakes ended silently, the latest last, by address.
    silent_ends: Table<IpAddr, Vec<Instant>>,
    /// The addresses from which a client opened a connection in direct mode, and so trusts the certificate.
    trusting: Table<IpAddr, ()>,
    /// When a client asked for addresses and got them.
    asked: Table<Asking, Option<Instant>>,
}

/// A client that asks for addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Asking {
    address: IpAddr,
    /// The hash of the client's own id, if it sends one.
    id: Option<u64>,
}

/// Why a client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It may never have asked.
    Any,
    /// It insists on fresh addresses, because it cannot use those that it has.
    ForcedRefresh,
}

impl Asking {
    pub(crate) fn new(address: IpAddr, id: Option<&str>) -> Asking {
        let hash = |id: &str| {
            let mut hasher = DefaultHasher::new();
            id.hash(&mut hasher);
            hasher.finish()
        };
        Asking { address, id: id.map(hash) }
    }
}

impl Trust {
    /// Records that a handshake was finished, or refused for the certificate, and that nothing followed.
    pub(crate) fn ended_silently(&self, address: IpAddr) {
        let now = Instant::now();
        let mut known = self.0.lock();
        let ends = known.silent_ends.entry(address, now);
        if ends.last().is_some_and(|last| *last + LIFE <= now) {
            ends.clear();
        }
        if ends.len() == REMEMBERED {
            ends.remove(0);
        }
        ends.push(now);
    }

    /// Records that a connection in direct mode was opened.
    pub(crate) fn context_came(&self, address: IpAddr) {
        self.0.lock().trusting.entry(address, Instant::now());
    }

    /// Records a request for addresses, and returns whether it comes from a client that does not trust the certificate.
    pub(crate) fn asks(&self, client: Asking, reason: Reason) -> bool {
        let now = Instant::now();
        let mut known = self.0.lock();
        let asked = known.asked.entry(client, now).replace(now).filter(|asked| *asked + LIFE > now);
        reason == Reason::ForcedRefresh
            && asked.is_some_and(|asked| known.is_suspect(client.address, asked, now))
    }
}

impl Known {
    /// Only ends after an answer with addresses count: those of a health check come without a question.
    fn is_suspect(&self, address: IpAddr, asked: Instant, now: Instant) -> bool {
        let Some(ends) = self.silent_ends.get(&address) else { return false };
        let since = |end: &&Instant| **end >= asked && now.duration_since(**end) <= RECENT;
        ends.iter().filter(since).count() >= SILENT_ENDS
            && !is_regular(ends)
            && self.trusting.get(&address).is_none()
    }
}

/// Returns whether the last ends came at about equal intervals, as those of a health check do.
fn is_regular(ends: &[Instant]) -> bool {
    let gaps: Vec<Duration> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (Some(least), Some(most)) = (gaps.iter().min(), gaps.iter().max()) else { return false };
    gaps.len() >= 3 && *least > Duration::from_millis(200) && *most < *least * 3 / 2
}

/// A table of limited size: a new entry replaces the one that was not used for longest, which is then forgotten.
#[derive(Debug)]
struct Table<K, V>(HashMap<K, (Instant, V)>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Copy + Eq + Hash, V: Default> Table<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key).map(|(_, value)| value)
    }

    /// Returns the entry of a key, and marks it as used.
    fn entry(&mut self, key: K, now: Instant) -> &mut V {
        if self.0.len() >= ENTRIES_MAX && !self.0.contains_key(&key) {
            let oldest = self.0.iter().min_by_key(|(_, (touched, _))| *touched).map(|(key, _)| *key);
            oldest.map(|key| self.0.remove(&key));
        }
        let (touched, value) = self.0.entry(key).or_insert_with(|| (now, V::default()));
        *touched = now;
        value
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::time::advance;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const SECOND: Duration = Duration::from_secs(1);

    /// Repeats the question of a client that can use none of its addresses; returns whether it is refused.
    fn is_refused(trust: &Trust, id: &str) -> bool {
        trust.asks(Asking::new(HERE, Some(id)), Reason::ForcedRefresh)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_ends_its_handshakes_without_a_word_is_told_why() {
        for id in [None, Some("client")] {
            let trust = Trust::default();
            let asks = |reason| trust.asks(Asking::new(HERE, id), reason);
            assert!(!asks(Reason::ForcedRefresh), "the first question is answered");
            trust.ended_silently(HERE);
            assert!(!asks(Reason::ForcedRefresh), "one end may be chance");
            trust.ended_silently(HERE);
            advance(SECOND / 10).await;
            trust.ended_silently(HERE);
            assert!(asks(Reason::ForcedRefresh));
            advance(11 * SECOND).await;
            assert!(!asks(Reason::ForcedRefresh), "it may have learned since");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_insist_is_not_told() {
        let trust = Trust::default();
        let asks = |reason| trust.asks(Asking::new(HERE, Some("client")), reason);
        assert!(!asks(Reason::Any));
        for _ in 0..2 {
            trust.ended_silently(HERE);
            trust.ended_silently(HERE);
            assert!(!asks(Reason::Any), "it asks for another container");
        }
        trust.ended_silently(HERE);
        trust.ended_silently(HERE);
        assert!(asks(Reason::ForcedRefresh));
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_new_clients_behind_one_address_the_one_is_told_that_was_answered_before_the_ends() {
        let trust = Trust::default();
        assert!(!is_refused(&trust, "one that does not trust"));
        trust.ended_silently(HERE);
        trust.ended_silently(HERE);
        assert!(!is_refused(&trust, "one that comes now"));
        assert!(is_refused(&trust, "one that does not trust"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_health_check_beside_a_healthy_client_arouses_no_suspicion() {
        let trust = Trust::default();
        for second in 0..60 {
            trust.ended_silently(HERE);
            advance(SECOND).await;
            if second % 7 == 0 {
                assert!(!is_refused(&trust, "client"), "after {second} s");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_health_check_each_second_accuses_no_client_that_comes_back_after_a_kill() {
        // A killed server has forgotten everything. Its client is back at any moment between the checks and asks twice, for two
        // containers, before it has opened a connection.
        for back_ms in (0..6000).step_by(50) {
            let trust = Trust::default();
            for elapsed_ms in (0..30_000).step_by(50) {
                if elapsed_ms % 1000 == 0 {
                    trust.ended_silently(HERE);
                }
                let is_asking = elapsed_ms == back_ms || elapsed_ms == back_ms + 400;
                if is_asking || (elapsed_ms > back_ms && elapsed_ms % 7000 == 0) {
                    assert!(
                        !is_refused(&trust, "client"),
                        "back after {back_ms} ms, asks after {elapsed_ms} ms"
                    );
                }
                if elapsed_ms == back_ms + 600 {
                    trust.context_came(HERE);
                }
                advance(SECOND / 20).await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_clients_behind_one_address_the_trusting_one_is_not_refused() {
        let trust = Trust::default();
        assert!(!is_refused(&trust, "trusting"));
        trust.context_came(HERE);
        for second in 0..120 {
            assert!(!is_refused(&trust, "other"), "after {second} s");
            trust.ended_silently(HERE);
            trust.ended_silently(HERE);
            advance(SECOND).await;
            assert!(!is_refused(&trust, "trusting"), "after {second} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_from_which_a_client_trusts_is_never_suspect() {
        let trust = Trust::default();
        trust.context_came(HERE);
        for _ in 0..10 {
            assert!(!is_refused(&trust, "client"));
            trust.ended_silently(HERE);
            trust.ended_silently(HERE);
            advance(3 * LIFE).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_addresses_takes_no_more_memory_and_leaves_those_that_come_after_it() {
        let trust = Trust::default();
        for number in 0..5000_u32 {
            let address = IpAddr::V4(number.into());
            trust.ended_silently(address);
            trust.context_came(address);
            trust.asks(Asking::new(address, Some("client")), Reason::Any);
            advance(SECOND / 1000).await;
        }
        {
            let known = trust.0.lock();
            assert_eq!(
                [known.silent_ends.0.len(), known.trusting.0.len(), known.asked.0.len()],
                [ENTRIES_MAX; 3]
            );
        }
        assert!(!is_refused(&trust, "client"));
        trust.ended_silently(HERE);
        trust.ended_silently(HERE);
        assert!(is_refused(&trust, "client"), "a full table does not silence the advice");
        trust.context_came(HERE);
        trust.ended_silently(HERE);
        trust.ended_silently(HERE);
        assert!(!is_refused(&trust, "client"), "nor does it forget a connection of now");
    }
}
