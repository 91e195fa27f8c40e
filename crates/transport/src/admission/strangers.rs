//! Connections on which nothing was authenticated yet: what they may take of the server, and which of them goes first.
//!
//! They have a small budget of their own and never touch that of authenticated clients. Three bounds hold, and none refuses a
//! newcomer, because an honest client is a stranger too until its first signed request: where there is too much, the stranger
//! that is most in the way is cut off.
//!
//! | bound | beyond it goes |
//! |---|---|
//! | bytes held for one connection ([`STRANGER_BYTES`]) | that connection |
//! | bytes held for all of them ([`STRANGERS_BYTES`]) | the one that holds most |
//! | connections of one address, an IPv6 /64 being one (`max-strangers`) | its oldest one that has said nothing, else its oldest |
//!
//! A driver's monitoring connections never authenticate. They say hello, so they outlast silent ones.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::StrangerFigures;
use super::peer::Peer;
use super::pool::Pool;
use crate::tenant::Api;

/// Bytes that are held for one connection on which nothing was authenticated.
pub const STRANGER_BYTES: usize = 256 * 1024;

/// Bytes that are held for all of them together.
pub const STRANGERS_BYTES: usize = 16 * 1024 * 1024;

/// All connections on which nothing was authenticated.
#[derive(Debug)]
pub(super) struct Strangers {
    of_address: usize,
    state: Mutex<State>,
    cut_off: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    connected: u64,
    bytes: usize,
    strangers: HashMap<u64, Stranger>,
    /// The order in which connections of an address go.
    by_address: HashMap<IpAddr, BTreeSet<Rank>>,
    /// The same for each front end.
    by_api: HashMap<Api, BTreeSet<Rank>>,
}

#[derive(Debug)]
struct Stranger {
    api: Api,
    address: IpAddr,
    rank: Rank,
    bytes: usize,
    cut_off: Arc<Notify>,
}

/// Silent connections before those that have been answered, old ones before new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    has_spoken: bool,
    number: u64,
}

/// The connection holds too much, or was cut off before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMuch;

impl Strangers {
    pub(super) fn new(of_address: usize) -> Strangers {
        Strangers { of_address: of_address.max(1), state: Mutex::default(), cut_off: AtomicU64::new(0) }
    }

    /// Enters a new connection.
    pub(super) fn enter(self: &Arc<Self>, answers: &Arc<Pool>, api: Api, address: IpAddr) -> Arc<Peer> {
        let (address, cut_off) = (network(address), Arc::new(Notify::new()));
        let mut state = self.state.lock();
        state.connected += 1;
        let rank = Rank { has_spoken: false, number: state.connected };
        let stranger = Stranger { api, address, rank, bytes: 0, cut_off: Arc::clone(&cut_off) };
        state.insert(stranger);
        if let Some(ranks) = state.by_address.get(&address).filter(|ranks| ranks.len() > self.of_address) {
            // The newcomer has said nothing either, and is not the one that goes.
            let first = ranks.iter().find(|other| other.number != rank.number).copied();
            self.cut(&mut state, first);
        }
        drop(state);
        Peer::new(Arc::clone(self), Arc::clone(answers), rank.number, cut_off)
    }

    /// The connection was answered something.
    pub(super) fn has_spoken(&self, number: u64) {
        let mut state = self.state.lock();
        if let Some(mut stranger) = state.remove(number) {
            stranger.rank.has_spoken = true;
            state.insert(stranger);
        }
    }

    /// The connection is a stranger no longer, or has ended.
    pub(super) fn leave(&self, number: u64) {
        self.state.lock().remove(number);
    }

    /// Counts bytes that are held for a connection.
    pub(super) fn hold(&self, number: u64, bytes: usize) -> Result<(), TooMuch> {
        let mut state = self.state.lock();
        let stranger = state.strangers.get_mut(&number).ok_or(TooMuch)?;
        stranger.bytes += bytes;
        let (held, rank) = (stranger.bytes, stranger.rank);
        state.bytes += bytes;
        if held > STRANGER_BYTES {
            self.cut(&mut state, Some(rank));
        }
        while state.bytes > STRANGERS_BYTES {
            let most = state.strangers.values().max_by_key(|stranger| stranger.bytes);
            let most = most.map(|stranger| stranger.rank);
            self.cut(&mut state, most);
        }
        if state.strangers.contains_key(&number) { Ok(()) } else { Err(TooMuch) }
    }

    /// What was counted is held no longer; nothing where the connection was cut off or is known by now.
    pub(super) fn give_back(&self, number: u64, bytes: usize) {
        let mut state = self.state.lock();
        if let Some(stranger) = state.strangers.get_mut(&number) {
            stranger.bytes -= bytes;
            state.bytes -= bytes;
        }
    }

    /// Cuts off the stranger of that front end that has been silent for longest, if there is one.
    pub(super) fn cut_off_oldest(&self, api: Api) -> bool {
        let mut state = self.state.lock();
        let first = state.by_api.get(&api).and_then(|ranks| ranks.first().copied());
        self.cut(&mut state, first);
        first.is_some()
    }

    pub(super) fn figures(&self) -> StrangerFigures {
        let state = self.state.lock();
        let cut_off = self.cut_off.load(Ordering::Relaxed);
        StrangerFigures { connections: state.strangers.len(), bytes: state.bytes, cut_off }
    }

    fn cut(&self, state: &mut State, rank: Option<Rank>) {
        if let Some(stranger) = rank.and_then(|rank| state.remove(rank.number)) {
            self.cut_off.fetch_add(1, Ordering::Relaxed);
            stranger.cut_off.notify_one();
        }
    }
}

impl State {
    fn insert(&mut self, stranger: Stranger) {
        self.by_address.entry(stranger.address).or_default().insert(stranger.rank);
        self.by_api.entry(stranger.api).or_default().insert(stranger.rank);
        self.bytes += stranger.bytes;
        self.strangers.insert(stranger.rank.number, stranger);
    }

    fn remove(&mut self, number: u64) -> Option<Stranger> {
        let stranger = self.strangers.remove(&number)?;
        self.bytes -= stranger.bytes;
        if let Some(ranks) = self.by_api.get_mut(&stranger.api) {
            ranks.remove(&stranger.rank);
        }
        if let Some(ranks) = self.by_address.get_mut(&stranger.address) {
            ranks.remove(&stranger.rank);
            if ranks.is_empty() {
                self.by_address.remove(&stranger.address);
            }
        }
        Some(stranger)
    }
}

/// What counts as one address: an IPv6 /64 is what one customer of a provider gets.
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

    fn strangers(of_address: usize) -> (Arc<Strangers>, Arc<Pool>) {
        (Arc::new(Strangers::new(of_address)), Pool::new(1000, Duration::ZERO))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    async fn is_cut_off(peer: &Peer) -> bool {
        tokio::time::timeout(Duration::from_millis(1), peer.cut_off()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_of_an_address_cost_its_oldest_silent_one_its_place() {
        let (strangers, pool) = strangers(3);
        let enter = |text| strangers.enter(&pool, Api::Nosql, address(text));
        let (spoke, silent, other) = (enter("10.0.0.1"), enter("::ffff:10.0.0.1"), enter("10.0.0.2"));
        spoke.spoke();
        let third = enter("10.0.0.1");
        assert!(!is_cut_off(&silent).await);
        let fourth = enter("10.0.0.1");
        assert!(is_cut_off(&silent).await, "the oldest that has said nothing goes first");
        assert!(!is_cut_off(&spoke).await && !is_cut_off(&other).await && !is_cut_off(&third).await);
        drop((third, fourth));
        let more = (enter("10.0.0.1"), enter("10.0.0.1"));
        assert_eq!(strangers.figures().cut_off, 1, "those that left made room");
        let networks = ["2001:db8::1", "2001:db8::2:3", "2001:db8::4", "2001:db8:0:0:ffff::"].map(enter);
        assert!(is_cut_off(&networks[0]).await, "a /64 is one address");
        enter("2001:db8:0:1::1");
        assert_eq!(strangers.figures().cut_off, 2);
        drop((spoke, other, more, networks));
        assert_eq!(strangers.figures(), StrangerFigures { connections: 0, bytes: 0, cut_off: 2 });
        assert!(strangers.state.lock().by_address.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_stays_where_all_others_of_its_address_have_been_answered() {
        let (strangers, pool) = strangers(2);
        let enter = || strangers.enter(&pool, Api::Mongo, address("10.0.0.1"));
        let answered = [enter(), enter()];
        for peer in &answered {
            peer.spoke();
        }
        let newcomer = enter();
        assert!(!is_cut_off(&newcomer).await);
        assert!(is_cut_off(&answered[0]).await, "the oldest goes");
        assert!(!is_cut_off(&answered[1]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_known_does_not_count_for_its_address() {
        let (strangers, pool) = strangers(1);
        let known = strangers.enter(&pool, Api::Mongo, address("10.0.0.1"));
        known.authenticate(crate::Tenant::new(Api::Mongo, "user"));
        let _stranger = strangers.enter(&pool, Api::Mongo, address("10.0.0.1"));
        assert!(!is_cut_off(&known).await);
        assert_eq!(strangers.figures().connections, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_that_holds_too_much_is_cut_off_and_then_the_one_that_holds_most() {
        let (strangers, pool) = strangers(1000);
        let peers: Vec<Arc<Peer>> =
            (0..100).map(|_| strangers.enter(&pool, Api::Nosql, address("10.0.0.1"))).collect();
        let held = peers[0].hold(STRANGER_BYTES).unwrap();
        assert_eq!(peers[0].hold(1).unwrap_err(), CutOff);
        assert!(is_cut_off(&peers[0]).await);
        drop(held);
        assert_eq!(strangers.figures().bytes, 0);
        let small = peers[1].hold(1000).unwrap();
        let most = peers[2].hold(STRANGER_BYTES).unwrap();
        let held: Vec<_> = peers[3..].iter().map(|peer| peer.hold(STRANGER_BYTES - 1)).collect();
        assert!(strangers.figures().bytes <= STRANGERS_BYTES);
        assert!(is_cut_off(&peers[2]).await, "it held most");
        assert!(!is_cut_off(&peers[1]).await, "who holds little stays");
        assert!(pool.used() == 0, "what is for authenticated clients is not touched");
        drop((small, most, held));
        assert_eq!(strangers.figures().bytes, 0);
    }
}
