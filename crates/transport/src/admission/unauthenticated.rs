//! Unauthenticated connections: the limits on what they may use, and which of them is evicted first.
//!
//! They have a small budget of their own and never use that of authenticated clients. There are three limits, and none
//! refuses a new connection, because every client is unauthenticated until its first signed request: beyond a limit the
//! connection that contributes most to it is evicted.
//!
//! | limit | evicted beyond it |
//! |---|---|
//! | bytes held for one connection ([`UNAUTHENTICATED_CONNECTION_BYTES`]) | that connection |
//! | bytes held for all of them ([`UNAUTHENTICATED_BYTES`]) | the one that holds most; of several, one that was sent no
//! answer, and of those the one that has held something for longest |
//! | connections from one address, an IPv6 /64 being one (`max-unauthenticated-connections`) | its oldest one that was
//! sent no answer, otherwise its oldest |
//!
//! The monitoring connections of drivers never authenticate. They are sent an answer to their hello, so they outlast
//! silent ones.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::UnauthenticatedStats;
use super::peer::Peer;
use super::pool::Pool;
use crate::tenant::Api;

/// The largest number of bytes held for one unauthenticated connection.
pub const UNAUTHENTICATED_CONNECTION_BYTES: usize = 256 * 1024;

/// The largest number of bytes held for all unauthenticated connections together.
pub const UNAUTHENTICATED_BYTES: usize = 16 * 1024 * 1024;

/// All unauthenticated connections.
#[derive(Debug)]
pub(super) struct UnauthenticatedConnections {
    of_address: usize,
    state: Mutex<State>,
    cut_off: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    connected: u64,
    /// How often a connection has begun to hold something.
    begun: u64,
    bytes: usize,
    unauthenticated: HashMap<u64, UnauthenticatedConnection>,
    /// The connections of each address, in the order of eviction.
    by_address: HashMap<IpAddr, BTreeSet<EvictionRank>>,
    /// The connections of each front end, in the order of eviction.
    by_api: HashMap<Api, BTreeSet<EvictionRank>>,
}

#[derive(Debug)]
struct UnauthenticatedConnection {
    api: Api,
    address: IpAddr,
    rank: EvictionRank,
    bytes: usize,
    /// Its position among the connections that hold something, in the order in which they began.
    held_since: u64,
    cut_off: Arc<Notify>,
}

/// The order of eviction: silent connections before answered ones, old ones before new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EvictionRank {
    is_answered: bool,
    number: u64,
}

/// The connection exceeds a limit, or was evicted before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OverLimit;

impl UnauthenticatedConnections {
    pub(super) fn new(of_address: usize) -> UnauthenticatedConnections {
        UnauthenticatedConnections {
            of_address: of_address.max(1),
            state: Mutex::default(),
            cut_off: AtomicU64::new(0),
        }
    }

    /// Registers a new connection.
    pub(super) fn enter(self: &Arc<Self>, answers: &Arc<Pool>, api: Api, address: IpAddr) -> Arc<Peer> {
        let (address, cut_off) = (network(address), Arc::new(Notify::new()));
        let mut state = self.state.lock();
        state.connected += 1;
        let rank = EvictionRank { is_answered: false, number: state.connected };
        let connection = UnauthenticatedConnection {
            api,
            address,
            rank,
            bytes: 0,
            held_since: 0,
            cut_off: Arc::clone(&cut_off),
        };
        state.insert(connection);
        if let Some(ranks) = state.by_address.get(&address).filter(|ranks| ranks.len() > self.of_address) {
            // The new connection is silent, too, but is not the one to evict.
            let first = ranks.iter().find(|other| other.number != rank.number).copied();
            self.cut(&mut state, first);
        }
        drop(state);
        Peer::new(Arc::clone(self), Arc::clone(answers), rank.number, cut_off)
    }

    /// Records that an answer was sent on the connection.
    pub(super) fn is_answered(&self, number: u64) {
        let mut state = self.state.lock();
        if let Some(mut connection) = state.remove(number) {
            connection.rank.is_answered = true;
            state.insert(connection);
        }
    }

    /// Removes a connection that was authenticated or has ended.
    pub(super) fn leave(&self, number: u64) {
        self.state.lock().remove(number);
    }

    /// Counts bytes held for a connection.
    pub(super) fn hold(&self, number: u64, bytes: usize) -> Result<(), OverLimit> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let connection = state.unauthenticated.get_mut(&number).ok_or(OverLimit)?;
        if connection.bytes == 0 {
            state.begun += 1;
            connection.held_since = state.begun;
        }
        connection.bytes += bytes;
        let (held, rank) = (connection.bytes, connection.rank);
        state.bytes += bytes;
        if held > UNAUTHENTICATED_CONNECTION_BYTES {
            self.cut(state, Some(rank));
        }
        while state.bytes > UNAUTHENTICATED_BYTES {
            // Of those that hold as much, not the one that has just begun: it would be closed because of all the earlier
            // ones.
            let most = state.unauthenticated.values().max_by_key(|connection| {
                (connection.bytes, Reverse((connection.rank.is_answered, connection.held_since)))
            });
            let most = most.map(|connection| connection.rank);
            self.cut(state, most);
        }
        if state.unauthenticated.contains_key(&number) { Ok(()) } else { Err(OverLimit) }
    }

    /// Releases counted bytes; has no effect if the connection was evicted or authenticated meanwhile.
    pub(super) fn release(&self, number: u64, bytes: usize) {
        let mut state = self.state.lock();
        if let Some(connection) = state.unauthenticated.get_mut(&number) {
            connection.bytes -= bytes;
            state.bytes -= bytes;
        }
    }

    /// Evicts the connection of this front end that has been silent longest, if there is one.
    pub(super) fn cut_off_oldest(&self, api: Api) -> bool {
        let mut state = self.state.lock();
        let first = state.by_api.get(&api).and_then(|ranks| ranks.first().copied());
        self.cut(&mut state, first);
        first.is_some()
    }

    pub(super) fn stats(&self) -> UnauthenticatedStats {
        let state = self.state.lock();
        let cut_off = self.cut_off.load(Ordering::Relaxed);
        UnauthenticatedStats { connections: state.unauthenticated.len(), bytes: state.bytes, cut_off }
    }

    fn cut(&self, state: &mut State, rank: Option<EvictionRank>) {
        if let Some(connection) = rank.and_then(|rank| state.remove(rank.number)) {
            self.cut_off.fetch_add(1, Ordering::Relaxed);
            connection.cut_off.notify_one();
        }
    }
}

impl State {
    fn insert(&mut self, connection: UnauthenticatedConnection) {
        self.by_address.entry(connection.address).or_default().insert(connection.rank);
        self.by_api.entry(connection.api).or_default().insert(connection.rank);
        self.bytes += connection.bytes;
        self.unauthenticated.insert(connection.rank.number, connection);
    }

    fn remove(&mut self, number: u64) -> Option<UnauthenticatedConnection> {
        let connection = self.unauthenticated.remove(&number)?;
        self.bytes -= connection.bytes;
        if let Some(ranks) = self.by_api.get_mut(&connection.api) {
            ranks.remove(&connection.rank);
        }
        if let Some(ranks) = self.by_address.get_mut(&connection.address) {
            ranks.remove(&connection.rank);
            if ranks.is_empty() {
                self.by_address.remove(&connection.address);
            }
        }
        Some(connection)
    }
}

/// Returns the part of the address that counts as one: an IPv6 /64 is what a provider assigns to one customer.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::admission::peer::CutOff;

    fn unauthenticated(of_address: usize) -> (Arc<UnauthenticatedConnections>, Arc<Pool>) {
        (Arc::new(UnauthenticatedConnections::new(of_address)), Pool::new(1000, Duration::ZERO))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    async fn is_cut_off(peer: &Peer) -> bool {
        tokio::time::timeout(Duration::from_millis(1), peer.cut_off()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn of_connections_that_hold_as_much_the_first_silent_one_is_evicted_and_no_newcomer() {
        const EACH: usize = 32 * 1024;
        let (unauthenticated, pool) = unauthenticated(10_000);
        let enter = || unauthenticated.enter(&pool, Api::Nosql, address("10.0.0.1"));
        let slow = enter();
        let crowd: Vec<_> = (0..UNAUTHENTICATED_BYTES / EACH).map(|_| enter()).collect();
        crowd[0].answered();
        let mut held: Vec<_> = crowd.iter().map(|peer| peer.hold(EACH).unwrap()).collect();
        let newcomers: Vec<_> = (0..20).map(|_| enter()).collect();
        for (newcomer, oldest) in newcomers.iter().zip(&crowd[1..]) {
            held.push(newcomer.hold(EACH).expect("a newcomer has room for its request"));
            assert!(is_cut_off(oldest).await);
        }
        assert!(!is_cut_off(&crowd[0]).await, "it was answered");
        held.push(slow.hold(EACH).expect("one that has waited before its request has room, too"));
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_from_one_address_evict_its_oldest_silent_one() {
        let (unauthenticated, pool) = unauthenticated(3);
        let enter = |text| unauthenticated.enter(&pool, Api::Nosql, address(text));
        let (answered, silent, other) = (enter("10.0.0.1"), enter("::ffff:10.0.0.1"), enter("10.0.0.2"));
        answered.answered();
        let third = enter("10.0.0.1");
        assert!(!is_cut_off(&silent).await);
        let fourth = enter("10.0.0.1");
        assert!(is_cut_off(&silent).await, "the oldest that has said nothing goes first");
        assert!(!is_cut_off(&answered).await && !is_cut_off(&other).await && !is_cut_off(&third).await);
        drop((third, fourth));
        let more = (enter("10.0.0.1"), enter("10.0.0.1"));
        assert_eq!(unauthenticated.stats().cut_off, 1, "those that left made room");
        let networks = ["2001:db8::1", "2001:db8::2:3", "2001:db8::4", "2001:db8:0:0:ffff::"].map(enter);
        assert!(is_cut_off(&networks[0]).await, "a /64 is one address");
        enter("2001:db8:0:1::1");
        assert_eq!(unauthenticated.stats().cut_off, 2);
        drop((answered, other, more, networks));
        assert_eq!(unauthenticated.stats(), UnauthenticatedStats { connections: 0, bytes: 0, cut_off: 2 });
        assert!(unauthenticated.state.lock().by_address.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_stays_where_all_others_of_its_address_have_been_answered() {
        let (unauthenticated, pool) = unauthenticated(2);
        let enter = || unauthenticated.enter(&pool, Api::Mongo, address("10.0.0.1"));
        let answered = [enter(), enter()];
        for peer in &answered {
            peer.answered();
        }
        let newcomer = enter();
        assert!(!is_cut_off(&newcomer).await);
        assert!(is_cut_off(&answered[0]).await, "the oldest goes");
        assert!(!is_cut_off(&answered[1]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_authenticated_connection_does_not_count_for_its_address() {
        let (unauthenticated, pool) = unauthenticated(1);
        let known = unauthenticated.enter(&pool, Api::Mongo, address("10.0.0.1"));
        known.authenticate(crate::Tenant::new(Api::Mongo, "user"));
        let _other = unauthenticated.enter(&pool, Api::Mongo, address("10.0.0.1"));
        assert!(!is_cut_off(&known).await);
        assert_eq!(unauthenticated.stats().connections, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unauthenticated_connection_that_holds_too_much_is_evicted_and_then_the_one_that_holds_most() {
        let (unauthenticated, pool) = unauthenticated(1000);
        let peers: Vec<Arc<Peer>> =
            (0..100).map(|_| unauthenticated.enter(&pool, Api::Nosql, address("10.0.0.1"))).collect();
        let held = peers[0].hold(UNAUTHENTICATED_CONNECTION_BYTES).unwrap();
        assert_eq!(peers[0].hold(1).unwrap_err(), CutOff);
        assert!(is_cut_off(&peers[0]).await);
        drop(held);
        assert_eq!(unauthenticated.stats().bytes, 0);
        let small = peers[1].hold(1000).unwrap();
        let most = peers[2].hold(UNAUTHENTICATED_CONNECTION_BYTES).unwrap();
        let held: Vec<_> =
            peers[3..].iter().map(|peer| peer.hold(UNAUTHENTICATED_CONNECTION_BYTES - 1)).collect();
        assert!(unauthenticated.stats().bytes <= UNAUTHENTICATED_BYTES);
        assert!(is_cut_off(&peers[2]).await, "it held most");
        assert!(!is_cut_off(&peers[1]).await, "a connection that holds little stays");
        assert!(pool.used() == 0, "the budget of authenticated clients is not used");
        drop((small, most, held));
        assert_eq!(unauthenticated.stats().bytes, 0);
    }
}
