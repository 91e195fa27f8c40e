//! Determines the tenant to charge for an answer.
//!
//! One HTTP/2 connection may carry requests of several tenants, so an answer is charged to the tenant of its own
//! request. Unauthenticated requests are charged like their connection: to the tenant last authenticated on it, or to
//! the budget of unauthenticated connections.

use std::sync::Arc;

use transport::{Admission, Busy, CutOff, Held, Peer, Tenant};

use crate::message::unread::Unread;
use crate::protocol::limits::COUNTED_BYTES;

/// The payer for one request.
#[derive(Debug)]
pub(crate) struct Payer {
    /// The connection; `None` for a request without one.
    pub(crate) peer: Option<Arc<Peer>>,
    /// Its answers that wait for the client, if that is watched.
    pub(crate) unread: Option<Arc<Unread>>,
    /// The tenant of this request.
    tenant: Option<Tenant>,
    charge: Charge,
}

/// The charge for the answer before it is sent.
#[derive(Debug)]
enum Charge {
    /// None yet: it is charged when it is sent.
    Open,
    Held(Held),
    /// None: it is sent without a charge.
    Waived,
}

impl Payer {
    pub(crate) fn new(peer: Option<Arc<Peer>>, unread: Option<Arc<Unread>>) -> Payer {
        Payer { peer, unread, tenant: None, charge: Charge::Open }
    }

    /// Sets the tenant of the request.
    pub(crate) fn authenticate(&mut self, tenant: Tenant) {
        self.tenant = Some(tenant);
        if let Some(peer) = &self.peer {
            peer.authenticate(tenant);
        }
    }

    /// Charges the bytes of the answer to a request of this tenant, while the request can still be refused.
    pub(crate) fn reserve(
        &mut self,
        admission: &Admission,
        tenant: Tenant,
        bytes: usize,
    ) -> Result<(), Busy> {
        if bytes > 0 {
            self.charge = match admission.hold(tenant, bytes) {
                Ok(held) => Charge::Held(held),
                Err(_) if self.passes(bytes) => Charge::Waived,
                Err(busy) => return Err(busy),
            };
        }
        Ok(())
    }

    /// Charges the bytes of the answer as [`charge`](Self::charge) does; without memory for them the connection is closed.
    pub(crate) fn hold(mut self, bytes: usize) -> Result<Option<Held>, CutOff> {
        let held = self.charge(bytes);
        if let (Err(CutOff), Some(peer)) = (&held, &self.peer) {
            peer.close();
        }
        held
    }

    /// Charges the bytes of the answer, unless they were reserved before it was made.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<Option<Held>, CutOff> {
        let peer = match (std::mem::replace(&mut self.charge, Charge::Open), &self.peer) {
            (Charge::Held(held), _) => return Ok(Some(held)),
            (Charge::Waived, _) | (Charge::Open, None) => return Ok(None),
            (Charge::Open, Some(peer)) => peer,
        };
        let held = match self.tenant {
            Some(tenant) => peer.hold_for(tenant, bytes),
            None => peer.hold(bytes),
        };
        match held {
            Ok(held) => Ok(Some(held)),
            Err(CutOff) if self.passes(bytes) => Ok(None),
            Err(CutOff) => Err(CutOff),
        }
    }

    /// Returns whether an answer of that size needs no memory: an authenticated client with few unread answers always gets
    /// small ones, so that it learns the reason of a refusal.
    fn passes(&self, bytes: usize) -> bool {
        let waiting = self.unread.as_ref().map_or(0, |unread| unread.waiting_bytes());
        let is_known = self.peer.as_ref().is_some_and(|peer| peer.tenant().is_some());
        is_known && bytes + waiting < COUNTED_BYTES
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use transport::{Api, Bounds};

    use super::*;

    #[test]
    fn a_small_answer_without_memory_passes_as_long_as_few_are_unread() {
        let admission = Admission::new(Bounds { held_bytes: 1000, ..Bounds::default() });
        let tenant = Tenant::new(Api::Nosql, "key");
        let unread = Unread::new(Duration::from_mins(1));
        let peer = admission.peer(Api::Nosql, Ipv4Addr::LOCALHOST.into());
        let mut payer = Payer::new(Some(Arc::clone(&peer)), Some(Arc::clone(&unread)));
        payer.authenticate(tenant);
        let _full = peer.hold(500).expect("all there is");
        for bytes in [1, COUNTED_BYTES - 1] {
            payer.reserve(&admission, tenant, bytes).expect("it is small");
            let _waits = unread.mark(COUNTED_BYTES);
            assert!(payer.charge(bytes).expect("it was decided").is_none());
            payer.reserve(&admission, tenant, bytes).expect_err("much is unread");
        }
        payer.reserve(&admission, tenant, COUNTED_BYTES).expect_err("it is large");
    }
}
