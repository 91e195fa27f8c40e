//! Counts wrong keys for each client: one that tries many has to wait, without affecting others.
//!
//! Keys are far too long to be guessed; the limit only reduces noise. A peer is an IPv4 address, or an IPv6 network of the
//! size that one customer has. All clients without a known address are one peer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use tokio::time::Instant;

/// How many wrong keys a client may try in [`WINDOW`].
pub(crate) const FAILURES_MAX: usize = 20;
pub(crate) const WINDOW: Duration = Duration::from_mins(1);

/// The largest number of peers remembered; beyond it, the one whose last failure is the oldest is forgotten.
const PEERS_MAX: usize = 1024;

/// The recent wrong keys of each client.
#[derive(Default)]
pub(crate) struct Failures {
    by_peer: HashMap<Option<IpAddr>, Vec<Instant>>,
}

impl Failures {
    /// Returns whether this client has tried too many.
    pub(crate) fn are_too_many(&mut self, peer: Option<IpAddr>, now: Instant) -> bool {
        let Some(times) = self.by_peer.get_mut(&network(peer)) else { return false };
        times.retain(|time| now.duration_since(*time) < WINDOW);
        times.len() >= FAILURES_MAX
    }

    /// Records a wrong key.
    pub(crate) fn add(&mut self, peer: Option<IpAddr>, now: Instant) {
        let peer = network(peer);
        if self.by_peer.len() >= PEERS_MAX && !self.by_peer.contains_key(&peer) {
            let oldest = self.by_peer.iter().min_by_key(|(_, times)| times.last().copied());
            oldest.map(|(peer, _)| *peer).map(|peer| self.by_peer.remove(&peer));
        }
        self.by_peer.entry(peer).or_default().push(now);
    }
}

/// Returns the address, or the network that belongs to the same customer.
fn network(peer: Option<IpAddr>) -> Option<IpAddr> {
    peer.map(|address| match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn each_peer_has_its_own_measure_and_gets_it_back() {
        let mut failures = Failures::default();
        for _ in 0..FAILURES_MAX {
            assert!(!failures.are_too_many(Some(ip("192.0.2.1")), Instant::now()));
            failures.add(Some(ip("192.0.2.1")), Instant::now());
        }
        for same in ["192.0.2.1", "::ffff:192.0.2.1"] {
            assert!(failures.are_too_many(Some(ip(same)), Instant::now()), "{same}");
        }
        for other in [Some(ip("192.0.2.2")), Some(ip("2001:db8::1")), None] {
            assert!(!failures.are_too_many(other, Instant::now()), "{other:?}");
        }
        tokio::time::advance(WINDOW).await;
        assert!(!failures.are_too_many(Some(ip("192.0.2.1")), Instant::now()));
    }

    #[test]
    fn neighbours_in_a_network_are_one_peer() {
        assert_eq!(network(Some(ip("2001:db8:1:2::7"))), network(Some(ip("2001:db8:1:2:ffff::8"))));
        assert_ne!(network(Some(ip("2001:db8:1:2::7"))), network(Some(ip("2001:db8:1:3::7"))));
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_peers_are_remembered() {
        let mut failures = Failures::default();
        for number in 0..2 * PEERS_MAX as u32 {
            tokio::time::advance(Duration::from_millis(1)).await;
            failures.add(Some(IpAddr::V4(number.into())), Instant::now());
        }
        assert_eq!(failures.by_peer.len(), PEERS_MAX);
        assert!(failures.by_peer.contains_key(&Some(IpAddr::V4((2 * PEERS_MAX as u32 - 1).into()))));
    }
}
