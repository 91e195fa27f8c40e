//! Admission control: how much a server does and holds at once, all front ends together, and what becomes of the rest.
//!
//! A server that takes on everything gets slower for all clients, until none waits for its answers any more. So each kind of
//! work has a number of permits and a [queue](queue), whose wait ends. A request without a permit in time is refused and told
//! when to come back, which costs a fraction of the work; the others are served as fast as ever.
//!
//! ```text
//!   connection -> stranger: bounds of its own until something on it is authenticated (strangers)
//!   request    -> room for the answer? -> wait for room for a large body -> wait for a permit -> work -> answer
//!                        | no                        | too long, or too many wait   |            | no room: closed
//!                        +-----------------------> Busy <---------------------------+
//! ```
//!
//! Everything is charged to a [`Tenant`], and no tenant can hold all of anything ([`share`]): a greedy key is refused while
//! another one's work goes on. Half of `request-memory` is for large bodies on their way in, half for answers on their way out.
//! What was not authenticated is charged to neither, but to [strangers].
//!
//! What is answered by computing on the spot, a point read above all, waits in no queue: to refuse it would cost about as much.

mod peer;
mod pool;
mod queue;
mod share;
mod starvation;
mod strangers;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

pub use peer::{CutOff, Held, Peer};
use pool::{Charged, Pool};
use queue::{Slot, WaitQueue};
use share::Share;
use strangers::Strangers;
pub use strangers::{STRANGER_BYTES, STRANGERS_BYTES};

use crate::tenant::{Api, Tenant};

/// What a query is counted with while it works, for the answer that it will have: a page. Less where all of them together would
/// take more than a quarter of the room for answers, which a tenant that holds its share leaves free.
const PAGE_BYTES: usize = 4 << 20;

/// Room for large bodies is given out in pieces of so many bytes.
const PIECE_BYTES: usize = 4096;

/// The shortest and the longest time after which a refused client is told to come back. They are spread between the two, so
/// that they do not come together.
const RETRY_AFTER_MS: (u64, u64) = (100, 500);

/// How long a new connection waits for the permit of one that was cut off, which is given back as soon as its task runs.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(1);

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Single writes and small things: mostly it waits for its commit, and many commit together.
    Brief,
    /// What may look for documents, change them and wait for the commit.
    Statement,
    /// What reads many documents: it takes a processor for as long as it lasts.
    Query,
}

impl Work {
    /// All of them.
    pub const ALL: [Work; 3] = [Work::Brief, Work::Statement, Work::Query];

    /// As metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            Work::Brief => "brief",
            Work::Statement => "statement",
            Work::Query => "query",
        }
    }
}

/// How much is done at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Work of [`Work::Brief`].
    pub brief: usize,
    /// Work of [`Work::Statement`].
    pub statements: usize,
    /// Work of [`Work::Query`].
    pub queries: usize,
    /// How long a request waits for a permit.
    pub max_wait: Duration,
    /// Bytes of requests and answers of authenticated clients that are held at once, half of it for each.
    pub held_bytes: usize,
    /// Connections in all.
    pub connections: usize,
    /// Connections of one address on which nothing was authenticated yet.
    pub strangers_of_address: usize,
    /// After how long a server that refuses tenants which hold nothing is not ready any more.
    pub unready_after: Duration,
}

impl Default for Bounds {
    /// What suits a small machine.
    fn default() -> Bounds {
        Bounds {
            brief: 1000,
            statements: 64,
            queries: 8,
            max_wait: Duration::from_secs(5),
            held_bytes: 512 * 1024 * 1024,
            connections: Semaphore::MAX_PERMITS,
            strangers_of_address: 2048,
            unready_after: Duration::from_secs(5),
        }
    }
}

/// There is too much to do. Nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// When to come back.
    pub retry_after_ms: u64,
}

impl Busy {
    fn spread(count: u64) -> Busy {
        let (least, most) = RETRY_AFTER_MS;
        // An odd step visits every value before it comes back to the first.
        Busy { retry_after_ms: least + count.wrapping_mul(67) % (most - least) }
    }
}

/// What a server is doing.
#[derive(Debug)]
pub struct Admission {
    queues: [WaitQueue; Work::ALL.len()],
    /// Large bodies that are being received; a unit is a piece.
    bodies: WaitQueue,
    /// Answers of authenticated clients.
    answers: Arc<Pool>,
    strangers: Arc<Strangers>,
    /// What the answer of a query is taken for until it is known.
    page_bytes: usize,
    connections: Arc<Semaphore>,
}

impl Default for Admission {
    fn default() -> Admission {
        Admission::new(Bounds::default())
    }
}

impl Admission {
    /// A server that does nothing yet.
    pub fn new(bounds: Bounds) -> Admission {
        let queue = |permits| WaitQueue::new(permits, bounds.max_wait, bounds.unready_after);
        Admission {
            queues: Work::ALL.map(|work| match work {
                Work::Brief => queue(bounds.brief),
                Work::Statement => queue(bounds.statements),
                Work::Query => queue(bounds.queries),
            }),
            bodies: queue(bounds.held_bytes / 2 / PIECE_BYTES),
            answers: Pool::new(bounds.held_bytes / 2, bounds.unready_after),
            strangers: Arc::new(Strangers::new(bounds.strangers_of_address)),
            page_bytes: PAGE_BYTES.min(bounds.held_bytes / 8 / bounds.queries.max(1)),
            connections: Arc::new(Semaphore::new(bounds.connections.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// A permit for work of that kind, once there is also room for the answer: requests that waited together all found room
    /// when they came.
    pub async fn enter(&self, tenant: Tenant, work: Work) -> Result<Permit<'_>, Busy> {
        let slot = self.queue(work).enter(tenant, 1).await?;
        self.check_room(tenant, work)?;
        let page = match work {
            Work::Query => Some(self.answers.take(tenant, self.page_bytes, Share::Half)?),
            Work::Brief | Work::Statement => None,
        };
        Ok(Permit { _slot: slot, _page: page })
    }

    /// A permit for what goes on with work that has begun, however long it takes: it is not refused.
    pub async fn enter_in_the_end(&self, tenant: Tenant, work: Work) -> Option<Permit<'_>> {
        let slot = self.queue(work).enter_in_the_end(tenant, 1).await?;
        Some(Permit { _slot: slot, _page: None })
    }

    /// Room for a large body that was announced.
    pub async fn receive(&self, tenant: Tenant, bytes: usize) -> Result<Permit<'_>, Busy> {
        let slot = self.bodies.enter(tenant, bytes.div_ceil(PIECE_BYTES)).await?;
        Ok(Permit { _slot: slot, _page: None })
    }

    /// The same, however long it takes: where nothing can be answered before everything is read.
    pub async fn receive_in_the_end(&self, tenant: Tenant, bytes: usize) -> Option<Permit<'_>> {
        let slot = self.bodies.enter_in_the_end(tenant, bytes.div_ceil(PIECE_BYTES)).await?;
        Some(Permit { _slot: slot, _page: None })
    }

    /// Returns a permit for one more connection of a front end, of its own `permits` and of those of the server. Where all are
    /// taken, the stranger of that front end that has been silent for longest is cut off; `None` if there is no stranger.
    pub async fn connect(&self, api: Api, permits: &Arc<Semaphore>) -> Option<ConnectionPermit> {
        let is_full = permits.available_permits() == 0 || self.connections.available_permits() == 0;
        if is_full && !self.strangers.cut_off_oldest(api) {
            return None;
        }
        let both = async {
            let of_front_end = Arc::clone(permits).acquire_owned().await.ok()?;
            let of_server = Arc::clone(&self.connections).acquire_owned().await.ok()?;
            Some(ConnectionPermit { _permits: [of_front_end, of_server] })
        };
        timeout(EVICTION_TIMEOUT, both).await.ok()?
    }

    /// A connection of that address, a stranger until it is [known](Peer::authenticate).
    pub fn peer(&self, api: Api, address: IpAddr) -> Arc<Peer> {
        self.strangers.enter(&self.answers, api, address)
    }

    /// Returns an error if there is no room for one more answer to that kind of work, however small. Large answers are those of
    /// queries: they leave half to other work of the same tenant.
    pub fn check_room(&self, tenant: Tenant, work: Work) -> Result<(), Busy> {
        let share = if work == Work::Query { Share::Half } else { Share::Most };
        self.answers.check(tenant, 1, share)
    }

    /// Counts bytes of an answer of that tenant for as long as what this returns lives.
    pub fn hold(&self, tenant: Tenant, bytes: usize) -> Result<Held, Busy> {
        Ok(Held::of_tenant(self.answers.take(tenant, bytes, Share::Most)?))
    }

    /// Bytes of requests and answers of authenticated clients that are held, bodies in whole pieces.
    pub fn held_bytes(&self) -> usize {
        self.bodies.taken() * PIECE_BYTES + self.answers.used()
    }

    /// As many may be held before work is refused.
    pub fn held_bytes_max(&self) -> usize {
        self.bodies.limit * PIECE_BYTES + self.answers.capacity
    }

    /// Requests refused because too many bytes were held.
    pub fn refused_for_bytes(&self) -> u64 {
        self.bodies.shed.load(Ordering::Relaxed) + self.answers.refused.load(Ordering::Relaxed)
    }

    /// How much work of that kind is done at once.
    pub fn limit(&self, work: Work) -> usize {
        self.queue(work).limit
    }

    /// How much work is done, how much waits, and how much was refused since the start.
    pub fn figures(&self, work: Work) -> Figures {
        let queue = self.queue(work);
        Figures { working: queue.taken(), waiting: queue.waiting(), shed: queue.shed.load(Ordering::Relaxed) }
    }

    /// What is held and was cut off of connections on which nothing was authenticated.
    pub fn strangers(&self) -> StrangerFigures {
        self.strangers.figures()
    }

    /// Returns what tenants that hold nothing have been refused for so long that the server is not ready, and for how long.
    pub fn starved(&self) -> Option<(&'static str, Duration)> {
        let queues = Work::ALL.map(|work| (work.name(), &self.queue(work).starvation));
        let bytes = [("request body", &self.bodies.starvation), ("answer", &self.answers.starvation)];
        let all = queues.into_iter().chain(bytes);
        all.filter_map(|(name, starvation)| Some((name, starvation.lasts()?))).max_by_key(|(_, lasts)| *lasts)
    }

    fn queue(&self, work: Work) -> &WaitQueue {
        &self.queues[work as usize]
    }
}

/// Figures of one kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Has a permit.
    pub working: usize,
    /// Waits for one.
    pub waiting: usize,
    /// Was refused.
    pub shed: u64,
}

/// Figures of connections on which nothing was authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrangerFigures {
    /// How many there are.
    pub connections: usize,
    /// Bytes that are held for them.
    pub bytes: usize,
    /// How many were cut off because of a bound.
    pub cut_off: u64,
}

/// The right to be connected.
#[derive(Debug)]
pub struct ConnectionPermit {
    /// Of the front end, and of the server.
    _permits: [OwnedSemaphorePermit; 2],
}

/// The right to do one piece of work, or to receive one body.
#[derive(Debug)]
pub struct Permit<'a> {
    _slot: Slot<'a>,
    /// An answer that is not made yet.
    _page: Option<Charged>,
}

#[cfg(test)]
mod tests;
