//! The permits of one kind of work and the wait queue for them, fair between tenants.
//!
//! A semaphore serves in the order of arrival, so a tenant that sends more gets more. Here each tenant has a queue of
//! its own, and three resources are shared out: permits and positions in the queue by [`Share`], and running time by
//! the order in which permits are granted.
//!
//! ```text
//!   permit free -> of the tenants whose share allows one more, the one that has used the least permit time -> its oldest waiter
//! ```
//!
//! Permit time is the sum over its permits of how long each was held. A tenant that returns from idleness starts level
//! with the least of the active ones, so it can neither accumulate credit nor be charged for the past (start-time fair
//! queueing).
//!
//! How long a request may wait depends on whether its tenant's queue is a burst or persistent. A queue that formed just
//! now may be waited out; one that has existed for the whole `max_wait` is more than the tenant gets done, and from
//! then on the limit is a tenth of it: then requests that get a permit have not waited long, and permits are never
//! idle.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::Busy;
use super::share::Share;
use super::starvation::Starvation;
use super::waiters::{WaitKind, Waiter, Waiters};
use crate::tenant::Tenant;

/// The largest number of waiting requests that can be refused, all tenants together.
pub(super) const WAITING_MAX: usize = 4096;

/// The divisor of the wait limit where a tenant's queue has existed for the whole limit; also of the time for which a request
/// that needs more than is free holds up others.
const SHORT_WAIT: u32 = 10;

/// Permits and the requests that wait for one.
#[derive(Debug)]
pub(super) struct WaitQueue {
    pub(super) limit: usize,
    max_wait: Duration,
    /// The origin of permit time.
    epoch: Instant,
    state: Mutex<State>,
    pub(super) shed: AtomicU64,
    pub(super) starvation: Starvation,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    waiting: usize,
    /// Those of the waiting requests that can be refused.
    refusable: usize,
    waiters: u64,
    /// Tenants that hold units or wait for some.
    tenants: HashMap<Tenant, Account>,
}

/// The units that a tenant holds and has used, and its waiting requests.
#[derive(Debug, Default)]
struct Account {
    held: usize,
    /// The permit time of released permits, and the tenant's starting value.
    used: Duration,
    /// The sum of the times when its permits were granted.
    began: Duration,
    waiting: Waiters,
}

/// Units held by a tenant, until this is dropped.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    queue: &'a WaitQueue,
    charge: Charge,
}

/// Units charged to a tenant, which [`WaitQueue::release`] takes back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Charge {
    pub(super) tenant: Tenant,
    units: usize,
    began: Duration,
}

impl WaitQueue {
    pub(super) fn new(permits: usize, max_wait: Duration, unready_after: Duration) -> WaitQueue {
        WaitQueue {
            limit: permits.max(1),
            max_wait,
            epoch: Instant::now(),
            state: Mutex::default(),
            shed: AtomicU64::new(0),
            starvation: Starvation::new(unready_after),
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.state.lock().taken
    }

    pub(super) fn waiting(&self) -> usize {
        self.state.lock().waiting
    }

    /// Takes this many units at once; returns an error if they do not become free in time.
    pub(super) async fn enter(&self, tenant: Tenant, units: usize) -> Result<Slot<'_>, Busy> {
        self.enter_within(tenant, units, self.max_wait).await
    }

    /// Takes units as [`enter`](Self::enter) does, and waits for at most `limit`.
    pub(super) async fn enter_within(
        &self,
        tenant: Tenant,
        units: usize,
        limit: Duration,
    ) -> Result<Slot<'_>, Busy> {
        let (waiting, max_wait) = match self.begin(tenant, units, WaitKind::Refusable) {
            Begun::Entered(slot) => return Ok(slot),
            Begun::Full => return Err(self.shed(tenant)),
            Begun::Waits(waiting, max_wait) => (waiting, max_wait),
        };
        match timeout(max_wait.min(limit), waiting.granted()).await {
            Ok(Some(slot)) => Ok(slot),
            Err(_) if limit < max_wait => {
                self.starvation.refused_early(self.held(tenant), limit, max_wait);
                Err(self.refuse())
            }
            Ok(None) | Err(_) => Err(self.shed(tenant)),
        }
    }

    /// Takes units as [`enter`](Self::enter) does, however long that takes and however many wait: as many as there are
    /// connections. They take no position from requests that can be refused. A wait that others would not have is counted as their refusal when it says whether the server is
    /// ready. `None` if the queue were gone.
    pub(super) async fn enter_unbounded(&self, tenant: Tenant, units: usize) -> Option<Slot<'_>> {
        let waiting = match self.begin(tenant, units, WaitKind::Unbounded) {
            Begun::Entered(slot) => return Some(slot),
            Begun::Full => return None,
            Begun::Waits(waiting, _) => waiting,
        };
        let (mut granted, mut wait) = (pin!(waiting.granted()), self.max_wait);
        loop {
            match timeout(wait, &mut granted).await {
                Ok(slot) => return slot,
                Err(_) => self.starve(tenant),
            }
            wait = self.max_wait / SHORT_WAIT;
        }
    }

    fn begin(&self, tenant: Tenant, units: usize, kind: WaitKind) -> Begun<'_> {
        let units = units.min(self.limit);
        let now = Instant::now();
        let mut state = self.state.lock();
        let free = self.limit - state.taken;
        let held = state.tenants.get(&tenant).map_or(0, |account| account.held);
        if state.waiting == 0 && Share::Most.allows(held, units, free) {
            let began = self.charge(&mut state, tenant, units, now);
            return Begun::Entered(Slot { queue: self, charge: Charge { tenant, units, began } });
        }
        let queued = state.tenants.get(&tenant).map_or(0, |account| account.waiting.refusable());
        let is_refusable = kind == WaitKind::Refusable;
        if is_refusable && !Share::Most.allows(queued, 1, WAITING_MAX.saturating_sub(state.refusable)) {
            return Begun::Full;
        }
        let (grant, granted) = oneshot::channel();
        state.waiters += 1;
        let number = state.waiters;
        state.waiting += 1;
        state.refusable += usize::from(is_refusable);
        let account = state.account(tenant, now - self.epoch);
        let since = account.waiting.push(Waiter { number, units, kind, grant }, now);
        let is_burst = now.duration_since(since) < self.max_wait;
        let max_wait = if is_burst { self.max_wait } else { self.max_wait / SHORT_WAIT };
        self.grant(&mut state, now);
        drop(state);
        Begun::Waits(Waiting { queue: self, tenant, number, units, granted, is_over: false }, max_wait)
    }

    /// Charges units to a tenant; returns the time, which is needed to release them.
    fn charge(&self, state: &mut State, tenant: Tenant, units: usize, now: Instant) -> Duration {
        let began = now - self.epoch;
        state.taken += units;
        let account = state.account(tenant, began);
        self.starvation.admitted(account.held);
        account.held += units;
        account.began += times(began, units);
        began
    }

    /// Grants free units to waiting requests. A request that comes first and needs more than is free is waited for, until
    /// it gives way.
    fn grant(&self, state: &mut State, now: Instant) {
        loop {
            let free = self.limit - state.taken;
            let Some((tenant, number, units)) = state.next_request(free, now - self.epoch) else { return };
            if units > free {
                return;
            }
            let Some(account) = state.tenants.get_mut(&tenant) else { return };
            let Some(waiter) = account.waiting.remove(number, units) else { return };
            state.left_queue(&waiter);
            let began = self.charge(state, tenant, units, now);
            // A waiter leaves the queue under the lock, so the receiver of one still in it exists.
            let _ = waiter.grant.send(began);
        }
    }

    /// Lets a request that has waited for a moment hold up no others.
    fn give_way(&self, tenant: Tenant, number: u64) {
        let mut state = self.state.lock();
        if let Some(account) = state.tenants.get_mut(&tenant) {
            account.waiting.give_way(number);
        }
        self.grant(&mut state, Instant::now());
    }

    /// Takes back what was charged.
    pub(super) fn release(&self, Charge { tenant, units, began }: Charge) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.taken -= units;
        if let Some(account) = state.tenants.get_mut(&tenant) {
            account.held -= units;
            account.began = account.began.saturating_sub(times(began, units));
            account.used += times((now - self.epoch).saturating_sub(began), units);
        }
        state.forget_idle(tenant);
        self.grant(&mut state, now);
    }

    fn held(&self, tenant: Tenant) -> usize {
        self.state.lock().tenants.get(&tenant).map_or(0, |account| account.held)
    }

    fn starve(&self, tenant: Tenant) {
        self.starvation.refused(self.held(tenant));
    }

    fn shed(&self, tenant: Tenant) -> Busy {
        self.starve(tenant);
        self.refuse()
    }

    fn refuse(&self) -> Busy {
        Busy::spread(self.shed.fetch_add(1, Ordering::Relaxed))
    }
}

fn times(duration: Duration, units: usize) -> Duration {
    duration.saturating_mul(u32::try_from(units).unwrap_or(u32::MAX))
}

impl State {
    /// Returns the tenant's account; a new one starts level with the least of the active ones.
    fn account(&mut self, tenant: Tenant, now: Duration) -> &mut Account {
        if !self.tenants.contains_key(&tenant) {
            let used =
                self.tenants.values().map(|account| account.permit_time(now)).min().unwrap_or_default();
            self.tenants.insert(tenant, Account { used, ..Account::default() });
        }
        self.tenants.entry(tenant).or_default()
    }

    /// Returns the request that comes next, of the tenants whose share allows it: its tenant, its number, and the units that
    /// it needs.
    fn next_request(&self, free: usize, now: Duration) -> Option<(Tenant, u64, usize)> {
        let next = self.tenants.iter().filter_map(|(tenant, account)| {
            let next = account.waiting.next(Share::Most.largest(account.held, free), free)?;
            Some((account.permit_time(now), next.number, *tenant, next.units))
        });
        let next = next.min_by_key(|(used, number, ..)| (*used, *number));
        next.map(|(_, number, tenant, units)| (tenant, number, units))
    }

    /// Counts a request that waits no longer.
    fn left_queue(&mut self, waiter: &Waiter) {
        self.waiting -= 1;
        self.refusable -= usize::from(waiter.kind == WaitKind::Refusable);
    }

    fn forget_idle(&mut self, tenant: Tenant) {
        if self.tenants.get(&tenant).is_some_and(|account| account.held == 0 && account.waiting.is_empty()) {
            self.tenants.remove(&tenant);
        }
    }
}

impl Account {
    fn permit_time(&self, now: Duration) -> Duration {
        self.used + times(now, self.held).saturating_sub(self.began)
    }
}

/// The result of a request for units.
enum Begun<'a> {
    Entered(Slot<'a>),
    Waits(Waiting<'a>, Duration),
    Full,
}

/// A waiting request. Dropped, it leaves the queue, or releases units that it was granted and did not take.
struct Waiting<'a> {
    queue: &'a WaitQueue,
    tenant: Tenant,
    number: u64,
    units: usize,
    granted: oneshot::Receiver<Duration>,
    /// Whether its units have been taken.
    is_over: bool,
}

impl<'a> Waiting<'a> {
    fn charge(&self, began: Duration) -> Charge {
        Charge { tenant: self.tenant, units: self.units, began }
    }

    async fn granted(mut self) -> Option<Slot<'a>> {
        let moment = self.queue.max_wait / SHORT_WAIT;
        let granted = if let Ok(granted) = timeout(moment, &mut self.granted).await {
            granted
        } else {
            self.queue.give_way(self.tenant, self.number);
            (&mut self.granted).await
        };
        let began = granted.ok()?;
        self.is_over = true;
        Some(Slot { queue: self.queue, charge: self.charge(began) })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.queue.state.lock();
        let Some(account) = state.tenants.get_mut(&self.tenant) else { return };
        if let Some(waiter) = account.waiting.remove(self.number, self.units) {
            state.left_queue(&waiter);
            state.forget_idle(self.tenant);
            self.queue.grant(&mut state, Instant::now());
            return;
        }
        drop(state);
        if let Ok(began) = self.granted.try_recv() {
            self.queue.release(self.charge(began));
        }
    }
}

impl Slot<'_> {
    /// Returns what is charged, without releasing it.
    pub(super) fn into_charge(self) -> Charge {
        let charge = self.charge;
        std::mem::forget(self);
        charge
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.queue.release(self.charge);
    }
}
