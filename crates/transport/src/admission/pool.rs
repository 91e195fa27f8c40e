//! A bounded number of bytes shared by tenants: for answers until their clients have received them.
//!
//! Every byte is charged to a tenant before it is held. Beyond the tenant's [share](super::share) the pool refuses, so
//! the total never exceeds the capacity, except for a single answer that is larger than all of it. The caller drops a
//! refused answer, and closes the connection where the protocol has no error for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::Busy;
use super::share::Share;
use super::starvation::Starvation;
use crate::tenant::Tenant;

/// A pool of bytes shared by tenants.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) capacity: usize,
    state: Mutex<State>,
    pub(super) refused: AtomicU64,
    pub(super) starvation: Starvation,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    held: HashMap<Tenant, usize>,
}

/// Bytes charged to a tenant, until this is dropped.
#[derive(Debug)]
pub(super) struct Charged {
    pool: Arc<Pool>,
    tenant: Tenant,
    bytes: usize,
}

impl Pool {
    pub(super) fn new(capacity: usize, unready_after: Duration) -> Arc<Pool> {
        Arc::new(Pool {
            capacity,
            state: Mutex::default(),
            refused: AtomicU64::new(0),
            starvation: Starvation::new(unready_after),
        })
    }

    pub(super) fn used(&self) -> usize {
        self.state.lock().used
    }

    /// Returns an error if the tenant could not take this many bytes now.
    pub(super) fn check(&self, tenant: Tenant, bytes: usize, share: Share) -> Result<(), Busy> {
        let state = self.state.lock();
        if self.allows(&state, tenant, bytes, share) { Ok(()) } else { Err(self.refuse(&state, tenant)) }
    }

    /// Charges bytes within the tenant's share.
    pub(super) fn take(
        self: &Arc<Self>,
        tenant: Tenant,
        bytes: usize,
        share: Share,
    ) -> Result<Charged, Busy> {
        let mut state = self.state.lock();
        if !self.allows(&state, tenant, bytes, share) {
            return Err(self.refuse(&state, tenant));
        }
        self.starvation.admitted(state.held(tenant));
        state.used += bytes;
        *state.held.entry(tenant).or_default() += bytes;
        drop(state);
        Ok(Charged { pool: Arc::clone(self), tenant, bytes })
    }

    /// A request larger than the capacity may take all of it.
    fn allows(&self, state: &State, tenant: Tenant, bytes: usize, share: Share) -> bool {
        let free = self.capacity.saturating_sub(state.used);
        share.allows(state.held(tenant), bytes.min(self.capacity), free)
    }

    fn refuse(&self, state: &State, tenant: Tenant) -> Busy {
        self.starvation.refused(state.held(tenant));
        Busy::spread(self.refused.fetch_add(1, Ordering::Relaxed))
    }
}

impl State {
    fn held(&self, tenant: Tenant) -> usize {
        self.held.get(&tenant).copied().unwrap_or_default()
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        state.used -= self.bytes;
        if let Some(held) = state.held.get_mut(&self.tenant) {
            *held -= self.bytes;
            if *held == 0 {
                state.held.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenant::Api;

    #[test]
    fn a_greedy_tenant_leaves_room_and_the_capacity_is_never_exceeded() {
        let pool = Pool::new(1000, Duration::ZERO);
        let (greedy, other) = (Tenant::new(Api::Nosql, 1), Tenant::new(Api::Mongo, 1));
        let mut held = Vec::new();
        while let Ok(charged) = pool.take(greedy, 100, Share::Most) {
            held.push(charged);
        }
        assert_eq!(pool.used(), 700);
        assert!(pool.check(greedy, 100, Share::Half).is_err());
        let last = pool.take(other, 300, Share::Half);
        assert!(last.is_ok() && pool.take(other, 1, Share::Most).is_err());
        assert_eq!(pool.used(), 1000);
        drop((held, last));
        assert_eq!(pool.used(), 0);
        assert!(pool.state.lock().held.is_empty());
        let all = pool.take(other, 5000, Share::Half);
        assert!(all.is_ok(), "one that is larger than all there is goes alone");
        assert!(pool.take(greedy, 1, Share::Most).is_err());
    }
}
