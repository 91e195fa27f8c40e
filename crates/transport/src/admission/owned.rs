//! Permits that do not borrow their admission control, for work that gives its permit back while it waits for other work.
//!
//! A request that waits for another one must hold no permit meanwhile: the other one may be waiting for that permit. It keeps
//! its memory, so only so many may be paused at once, and no tenant has all of these positions.

use std::sync::Arc;

use super::pool::Charged;
use super::queue::Charge;
use super::share::Share;
use super::{Admission, Busy, Permit, Work};
use crate::tenant::Tenant;

/// How many permits may be paused at once, all tenants together.
pub(super) const PAUSED_MAX: usize = 32;

/// A permit for one piece of work.
#[derive(Debug)]
pub struct OwnedPermit {
    admission: Arc<Admission>,
    work: Work,
    charge: Charge,
    /// The charge for an answer that does not exist yet.
    _page: Option<Charged>,
}

/// The permit of work that waits for other work and holds none meanwhile.
#[derive(Debug)]
pub struct PausedPermit {
    admission: Arc<Admission>,
    tenant: Tenant,
    work: Work,
    /// Its position among those that are paused.
    position: Charged,
}

impl Admission {
    /// Returns a permit as [`enter`](Admission::enter) does.
    pub async fn enter_owned(self: &Arc<Self>, tenant: Tenant, work: Work) -> Result<OwnedPermit, Busy> {
        let permit = self.enter(tenant, work).await?;
        Ok(OwnedPermit::of(permit, self, work))
    }

    /// Returns a permit as [`enter_unbounded`](Admission::enter_unbounded) does.
    pub async fn enter_owned_unbounded(self: &Arc<Self>, tenant: Tenant, work: Work) -> Option<OwnedPermit> {
        let permit = self.enter_unbounded(tenant, work).await?;
        Some(OwnedPermit::of(permit, self, work))
    }
}

impl OwnedPermit {
    fn of(permit: Permit<'_>, admission: &Arc<Admission>, work: Work) -> OwnedPermit {
        let Permit { slot, _page: page } = permit;
        OwnedPermit { admission: Arc::clone(admission), work, charge: slot.into_charge(), _page: page }
    }

    /// Gives the permit back until the work continues; returns it if its tenant has its share of those that are paused.
    pub fn pause(self) -> Result<PausedPermit, OwnedPermit> {
        let (admission, tenant) = (Arc::clone(&self.admission), self.charge.tenant);
        match admission.paused.take(tenant, 1, Share::Most) {
            Ok(position) => Ok(PausedPermit { admission, tenant, work: self.work, position }),
            Err(_) => Err(self),
        }
    }
}

impl Drop for OwnedPermit {
    fn drop(&mut self) {
        self.admission.queue(self.work).release(self.charge);
    }
}

impl PausedPermit {
    /// Takes a permit again, however long that takes: work that has begun is not refused. It counts among the paused no more.
    pub async fn resume(self) -> Option<OwnedPermit> {
        drop(self.position);
        self.admission.enter_owned_unbounded(self.tenant, self.work).await
    }
}
