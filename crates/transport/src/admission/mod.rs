//! Admission control: limits how much a server does and holds at once, for all front ends together.
//!
//! A server that accepts all work gets slower for all clients, until none of them waits for its answers any more. So
//! each kind of work has a number of permits and a [wait queue](queue) with a time limit. A request that gets no permit
//! in time is refused and told when to retry, which costs a fraction of the work; the others are served as fast as
//! ever.
//!
//! ```text
//!   connection -> unauthenticated: its own limits until a request on it is authenticated (unauthenticated.rs)
//!   request    -> memory for the answer? -> wait for memory for a large body -> wait for a permit -> work -> answer
//!                        | no                        | too long, or too many wait   |            | no memory: closed
//!                        +-----------------------> Busy <---------------------------+
//! ```
//!
//! Everything is charged to a [`Tenant`], and no tenant can hold all of any resource ([`share`]): a greedy key is
//! refused while the work of another continues. Half of `request-memory` is for large bodies being received, half for
//! answers being sent. Unauthenticated connections are charged to neither, but to their [own budget](unauthenticated).
//!
//! Requests answered by computation alone, point reads above all, wait in no queue: refusing one would cost about as
//! much.

mod owned;
mod peer;
mod pool;
mod queue;
mod share;
mod starvation;
mod unauthenticated;
mod waiters;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

pub use owned::{OwnedPermit, PausedPermit};
pub use peer::{CutOff, Held, Peer};
use pool::{Charged, Pool};
use queue::{Slot, WaitQueue};
use share::Share;
use unauthenticated::UnauthenticatedConnections;
pub use unauthenticated::{UNAUTHENTICATED_BYTES, UNAUTHENTICATED_CONNECTION_BYTES};

use crate::tenant::{Api, Tenant};

/// The memory charged for a running query, for its future answer: a page. Less where all queries together would take
/// more than a quarter of the memory for answers, which a tenant that holds its share leaves free.
const PAGE_BYTES: usize = 4 << 20;

/// The unit in which memory for large bodies is granted.
const PIECE_BYTES: usize = 4096;

/// The shortest and the longest time after which a refused client is told to retry. Retries are spread between the two,
/// so that clients do not come back together.
const RETRY_AFTER_MS: (u64, u64) = (100, 500);

/// How long a new connection waits for the permit of an evicted one, which is released as soon as its task runs.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(1);

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Single writes and small requests: they mostly wait for their commit, and many commit together.
    Brief,
    /// Requests that may search for documents, change them and wait for the commit.
    Statement,
    /// Requests that read many documents: each occupies a processor while it runs.
    Query,
}

impl Work {
    /// All kinds.
    pub const ALL: [Work; 3] = [Work::Brief, Work::Statement, Work::Query];

    /// Returns the name used by metrics.
    pub fn name(self) -> &'static str {
        match self {
            Work::Brief => "brief",
            Work::Statement => "statement",
            Work::Query => "query",
        }
    }
}

/// The limits of admission control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Permits for [`Work::Brief`].
    pub brief: usize,
    /// Permits for [`Work::Statement`].
    pub statements: usize,
    /// Permits for [`Work::Query`].
    pub queries: usize,
    /// How long a request waits for a permit.
    pub max_wait: Duration,
    /// The largest total size of requests and answers of authenticated clients held at once, half of it for each.
    pub held_bytes: usize,
    /// The largest number of connections.
    pub connections: usize,
    /// The largest number of unauthenticated connections from one address.
    pub unauthenticated_per_address: usize,
    /// How long a server must refuse tenants that hold nothing before it is no longer ready.
    pub unready_after: Duration,
}

impl Default for Bounds {
    /// Returns limits that suit a small machine.
    fn default() -> Bounds {
        Bounds {
            brief: 1000,
            statements: 64,
            queries: 8,
            max_wait: Duration::from_secs(5),
            held_bytes: 512 * 1024 * 1024,
            connections: Semaphore::MAX_PERMITS,
            unauthenticated_per_address: 2048,
            unready_after: Duration::from_secs(5),
        }
    }
}

/// A refusal: the server is overloaded, and the request had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// When to retry.
    pub retry_after_ms: u64,
}

impl Busy {
    fn spread(count: u64) -> Busy {
        let (least, most) = RETRY_AFTER_MS;
        // An odd step visits every value before it repeats the first.
        Busy { retry_after_ms: least + count.wrapping_mul(67) % (most - least) }
    }
}

/// The admission control of a server.
#[derive(Debug)]
pub struct Admission {
    queues: [WaitQueue; Work::ALL.len()],
    /// Memory for large bodies being received; a unit is a piece.
    bodies: WaitQueue,
    /// Memory for answers of authenticated clients.
    answers: Arc<Pool>,
    /// Positions of work that waits for other work without its permit.
    paused: Arc<Pool>,
    unauthenticated: Arc<UnauthenticatedConnections>,
    /// The memory charged for the answer of a query until its size is known.
    page_bytes: usize,
    connections: Arc<Semaphore>,
}

impl Default for Admission {
    fn default() -> Admission {
        Admission::new(Bounds::default())
    }
}

impl Admission {
    /// Creates admission control for an idle server.
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
            paused: Pool::new(owned::PAUSED_MAX, bounds.unready_after),
            unauthenticated: Arc::new(UnauthenticatedConnections::new(bounds.unauthenticated_per_address)),
            page_bytes: PAGE_BYTES.min(bounds.held_bytes / 8 / bounds.queries.max(1)),
            connections: Arc::new(Semaphore::new(bounds.connections.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Returns a permit for work of this kind, once there is also memory for the answer: requests that waited together
    /// had all found some when they arrived.
    pub async fn enter(&self, tenant: Tenant, work: Work) -> Result<Permit<'_>, Busy> {
        let slot = self.queue(work).enter(tenant, 1).await?;
        self.check_memory(tenant, work)?;
        let page = match work {
            Work::Query => Some(self.answers.take(tenant, self.page_bytes, Share::Half)?),
            Work::Brief | Work::Statement => None,
        };
        Ok(Permit { slot, _page: page })
    }

    /// Returns a permit for work that continues an earlier request, however long that takes: it is not refused.
    pub async fn enter_unbounded(&self, tenant: Tenant, work: Work) -> Option<Permit<'_>> {
        let slot = self.queue(work).enter_unbounded(tenant, 1).await?;
        Some(Permit { slot, _page: None })
    }

    /// Returns memory for an announced large body.
    pub async fn receive(&self, tenant: Tenant, bytes: usize) -> Result<Permit<'_>, Busy> {
        self.receive_within(tenant, bytes, Duration::MAX).await
    }

    /// Returns memory as [`receive`](Self::receive) does, and waits for it for at most `limit`. Refusals after a shorter wait
    /// count for [`starved`](Self::starved) when their waits add up to that of others.
    pub async fn receive_within(
        &self,
        tenant: Tenant,
        bytes: usize,
        limit: Duration,
    ) -> Result<Permit<'_>, Busy> {
        let slot = self.bodies.enter_within(tenant, bytes.div_ceil(PIECE_BYTES), limit).await?;
        Ok(Permit { slot, _page: None })
    }

    /// Returns memory as [`receive`](Self::receive) does, however long that takes: for protocols that cannot answer
    /// before everything is read.
    pub async fn receive_unbounded(&self, tenant: Tenant, bytes: usize) -> Option<Permit<'_>> {
        let slot = self.bodies.enter_unbounded(tenant, bytes.div_ceil(PIECE_BYTES)).await?;
        Some(Permit { slot, _page: None })
    }

    /// Returns a permit for one more connection of a front end, taken from its own `permits` and from those of the
    /// server. If all are taken, the unauthenticated connection of that front end that has been silent longest is
    /// evicted; `None` if there is none.
    pub async fn connect(&self, api: Api, permits: &Arc<Semaphore>) -> Option<ConnectionPermit> {
        let is_full = permits.available_permits() == 0 || self.connections.available_permits() == 0;
        if is_full && !self.unauthenticated.cut_off_oldest(api) {
            return None;
        }
        let both = async {
            let of_front_end = Arc::clone(permits).acquire_owned().await.ok()?;
            let of_server = Arc::clone(&self.connections).acquire_owned().await.ok()?;
            Some(ConnectionPermit { _permits: [of_front_end, of_server] })
        };
        timeout(EVICTION_TIMEOUT, both).await.ok()?
    }

    /// Registers a connection from this address, unauthenticated until [`Peer::authenticate`].
    pub fn peer(&self, api: Api, address: IpAddr) -> Arc<Peer> {
        self.unauthenticated.enter(&self.answers, api, address)
    }

    /// Returns an error if there is no memory for one more answer to work of this kind, however small. Large answers
    /// are those of queries: they leave half to other work of the same tenant.
    pub fn check_memory(&self, tenant: Tenant, work: Work) -> Result<(), Busy> {
        let share = if work == Work::Query { Share::Half } else { Share::Most };
        self.answers.check(tenant, 1, share)
    }

    /// Charges bytes of an answer to this tenant until the result is dropped.
    pub fn hold(&self, tenant: Tenant, bytes: usize) -> Result<Held, Busy> {
        Ok(Held::of_tenant(self.answers.take(tenant, bytes, Share::Most)?))
    }

    /// Returns the bytes held of requests and answers of authenticated clients, bodies in whole pieces.
    pub fn held_bytes(&self) -> usize {
        self.bodies.taken() * PIECE_BYTES + self.answers.used()
    }

    /// Returns how many bytes may be held before work is refused.
    pub fn held_bytes_max(&self) -> usize {
        self.bodies.limit * PIECE_BYTES + self.answers.capacity
    }

    /// Returns the number of requests refused because too many bytes were held.
    pub fn refused_for_bytes(&self) -> u64 {
        self.bodies.shed.load(Ordering::Relaxed) + self.answers.refused.load(Ordering::Relaxed)
    }

    /// Returns how much work of this kind may run at once.
    pub fn limit(&self, work: Work) -> usize {
        self.queue(work).limit
    }

    /// Returns how much work of this kind runs, waits, and was refused since the start.
    pub fn stats(&self, work: Work) -> WorkStats {
        let queue = self.queue(work);
        WorkStats {
            working: queue.taken(),
            waiting: queue.waiting(),
            shed: queue.shed.load(Ordering::Relaxed),
        }
    }

    /// Returns the statistics of unauthenticated connections.
    pub fn unauthenticated(&self) -> UnauthenticatedStats {
        self.unauthenticated.stats()
    }

    /// Returns the resource that tenants holding nothing have been refused for so long that the server is not ready,
    /// and for how long.
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

/// Statistics of one kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkStats {
    /// Requests with a permit.
    pub working: usize,
    /// Requests waiting for one.
    pub waiting: usize,
    /// Requests refused.
    pub shed: u64,
}

/// Statistics of unauthenticated connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnauthenticatedStats {
    /// Open connections.
    pub connections: usize,
    /// Bytes held for them.
    pub bytes: usize,
    /// Connections evicted because of a limit.
    pub cut_off: u64,
}

/// A permit for a connection.
#[derive(Debug)]
pub struct ConnectionPermit {
    /// Of the front end, and of the server.
    _permits: [OwnedSemaphorePermit; 2],
}

/// A permit for one piece of work, or to receive one body.
#[derive(Debug)]
pub struct Permit<'a> {
    slot: Slot<'a>,
    /// The charge for an answer that does not exist yet.
    _page: Option<Charged>,
}

#[cfg(test)]
mod large_bodies;
#[cfg(test)]
mod tests;
