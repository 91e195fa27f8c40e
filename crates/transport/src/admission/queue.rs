//! Permits of one kind of work and the queue of those who wait for one, fair between tenants.
//!
//! A semaphore serves in the order of arrival, so a tenant that sends much gets much. Here each tenant has a queue of its own,
//! and three things are shared out: permits and places in the queue by [`Share`], and running time by the order in which
//! permits are given.
//!
//! ```text
//!   permit free -> of the tenants whose share allows one more, the one that has used the least permit time -> its oldest waiter
//! ```
//!
//! Permit time is the sum over its permits of how long each was held. A tenant that comes back from idleness starts level with
//! the least of those that are active, so it can neither save up nor be made to pay for the past (start-time fair queueing).
//!
//! How long a request may wait depends on whether its tenant's queue is a burst or a state. A queue that came up just now is
//! waited out; one that has stood for the whole `max_wait` is more than the tenant gets done, and from there on a tenth of it
//! is all: then requests that get a permit have not waited long, and permits are never idle.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::Busy;
use super::share::Share;
use super::starvation::Starvation;
use crate::tenant::Tenant;

/// How many requests may wait at once, all tenants together.
pub(super) const WAITING_MAX: usize = 4096;

/// Where a tenant's queue has stood for the whole wait, this part of it is all that is waited.
const SHORT_WAIT: u32 = 10;

/// Permits and those who wait for one.
#[derive(Debug)]
pub(super) struct WaitQueue {
    pub(super) limit: usize,
    max_wait: Duration,
    /// What permit time is measured from.
    epoch: Instant,
    state: Mutex<State>,
    pub(super) shed: AtomicU64,
    pub(super) starvation: Starvation,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    waiting: usize,
    waiters: u64,
    /// Tenants that hold or wait for something.
    tenants: HashMap<Tenant, Account>,
}

/// What a tenant holds, has used and waits for.
#[derive(Debug, Default)]
struct Account {
    held: usize,
    /// Permit time of permits that were given back, and where the tenant started.
    used: Duration,
    /// When its permits were taken, added up.
    began: Duration,
    waiting: VecDeque<Waiter>,
    /// Since when one of its requests has been waiting all the time.
    crowded_since: Option<Instant>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    units: usize,
    /// Says when its units were taken.
    grant: oneshot::Sender<Duration>,
}

/// Units of a tenant, until this is dropped.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    queue: &'a WaitQueue,
    tenant: Tenant,
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

    /// So many units at once; an error if they do not become free in time.
    pub(super) async fn enter(&self, tenant: Tenant, units: usize) -> Result<Slot<'_>, Busy> {
        let (waiting, max_wait) = match self.begin(tenant, units, WAITING_MAX) {
            Begun::Entered(slot) => return Ok(slot),
            Begun::Full => return Err(self.shed(tenant)),
            Begun::Waits(waiting, max_wait) => (waiting, max_wait),
        };
        match timeout(max_wait, waiting.granted()).await {
            Ok(Some(slot)) => Ok(slot),
            Ok(None) | Err(_) => Err(self.shed(tenant)),
        }
    }

    /// The same, however long it takes, and however many wait: as many as there are connections. None if the queue were gone.
    pub(super) async fn enter_in_the_end(&self, tenant: Tenant, units: usize) -> Option<Slot<'_>> {
        match self.begin(tenant, units, usize::MAX / 8) {
            Begun::Entered(slot) => Some(slot),
            Begun::Full => None,
            Begun::Waits(waiting, _) => waiting.granted().await,
        }
    }

    fn begin(&self, tenant: Tenant, units: usize, waiting_max: usize) -> Begun<'_> {
        let units = units.min(self.limit);
        let now = Instant::now();
        let mut state = self.state.lock();
        let free = self.limit - state.taken;
        let held = state.tenants.get(&tenant).map_or(0, |account| account.held);
        if state.waiting == 0 && Share::Most.allows(held, units, free) {
            let began = self.charge(&mut state, tenant, units, now);
            return Begun::Entered(Slot { queue: self, tenant, units, began });
        }
        let queued = state.tenants.get(&tenant).map_or(0, |account| account.waiting.len());
        if !Share::Most.allows(queued, 1, waiting_max.saturating_sub(state.waiting)) {
            return Begun::Full;
        }
        let (grant, granted) = oneshot::channel();
        state.waiters += 1;
        let number = state.waiters;
        state.waiting += 1;
        let account = state.account(tenant, now - self.epoch);
        account.waiting.push_back(Waiter { number, units, grant });
        let since = *account.crowded_since.get_or_insert(now);
        let is_burst = now.duration_since(since) < self.max_wait;
        let max_wait = if is_burst { self.max_wait } else { self.max_wait / SHORT_WAIT };
        self.grant(&mut state, now);
        drop(state);
        Begun::Waits(Waiting { queue: self, tenant, number, units, granted, is_over: false }, max_wait)
    }

    /// Charges units to a tenant; returns since when, which they are given back with.
    fn charge(&self, state: &mut State, tenant: Tenant, units: usize, now: Instant) -> Duration {
        let began = now - self.epoch;
        state.taken += units;
        let account = state.account(tenant, began);
        self.starvation.admitted(account.held);
        account.held += units;
        account.began += times(began, units);
        began
    }

    /// Gives what is free to those who wait. One that needs more than is free, and comes first, is waited for: otherwise small
    /// ones would keep it waiting for ever.
    fn grant(&self, state: &mut State, now: Instant) {
        while let Some(tenant) = state.next_tenant(self.limit - state.taken, now - self.epoch) {
            let free = self.limit - state.taken;
            let Some(account) = state.tenants.get_mut(&tenant) else { return };
            if account.waiting.front().is_none_or(|waiter| waiter.units > free) {
                return;
            }
            let Some(waiter) = account.waiting.pop_front() else { return };
            account.leave_crowd();
            state.waiting -= 1;
            let began = self.charge(state, tenant, waiter.units, now);
            // A waiter leaves the queue under the lock, so one that is in it is there to hear this.
            let _ = waiter.grant.send(began);
        }
    }

    fn give_back(&self, tenant: Tenant, units: usize, began: Duration) {
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

    fn shed(&self, tenant: Tenant) -> Busy {
        let held = self.state.lock().tenants.get(&tenant).map_or(0, |account| account.held);
        self.starvation.refused(held);
        Busy::spread(self.shed.fetch_add(1, Ordering::Relaxed))
    }
}

fn times(duration: Duration, units: usize) -> Duration {
    duration.saturating_mul(u32::try_from(units).unwrap_or(u32::MAX))
}

impl State {
    /// The tenant's account; a new one starts level with the least of the active ones.
    fn account(&mut self, tenant: Tenant, now: Duration) -> &mut Account {
        if !self.tenants.contains_key(&tenant) {
            let used =
                self.tenants.values().map(|account| account.permit_time(now)).min().unwrap_or_default();
            self.tenants.insert(tenant, Account { used, ..Account::default() });
        }
        self.tenants.entry(tenant).or_default()
    }

    /// The tenant whose oldest waiter comes next, of those whose share allows it.
    fn next_tenant(&self, free: usize, now: Duration) -> Option<Tenant> {
        let next = self.tenants.iter().filter_map(|(tenant, account)| {
            let first = account.waiting.front()?;
            let wanted = first.units.min(free);
            let is_allowed = wanted == 0 || Share::Most.allows(account.held, wanted, free);
            is_allowed.then(|| (account.permit_time(now), first.number, *tenant))
        });
        next.min_by_key(|(used, number, _)| (*used, *number)).map(|(_, _, tenant)| tenant)
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

    fn leave_crowd(&mut self) {
        if self.waiting.is_empty() {
            self.crowded_since = None;
        }
    }
}

/// How a request fares that wants units.
enum Begun<'a> {
    Entered(Slot<'a>),
    Waits(Waiting<'a>, Duration),
    Full,
}

/// A request that waits. Dropped, it leaves the queue, or gives back what it was granted and did not take.
struct Waiting<'a> {
    queue: &'a WaitQueue,
    tenant: Tenant,
    number: u64,
    units: usize,
    granted: oneshot::Receiver<Duration>,
    /// Whether its units have become a slot.
    is_over: bool,
}

impl<'a> Waiting<'a> {
    async fn granted(mut self) -> Option<Slot<'a>> {
        let began = (&mut self.granted).await.ok()?;
        self.is_over = true;
        Some(Slot { queue: self.queue, tenant: self.tenant, units: self.units, began })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.queue.state.lock();
        let Some(account) = state.tenants.get_mut(&self.tenant) else { return };
        if let Some(position) = account.waiting.iter().position(|waiter| waiter.number == self.number) {
            account.waiting.remove(position);
            account.leave_crowd();
            state.waiting -= 1;
            state.forget_idle(self.tenant);
            self.queue.grant(&mut state, Instant::now());
            return;
        }
        drop(state);
        if let Ok(began) = self.granted.try_recv() {
            self.queue.give_back(self.tenant, self.units, began);
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.queue.give_back(self.tenant, self.units, self.began);
    }
}
