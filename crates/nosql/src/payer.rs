//! Who is charged for the answer to a request.
//!
//! Requests of several tenants may be in progress on one connection of HTTP/2, so an answer is charged to the tenant of its own
//! request. What was not authenticated is charged as the connection is: to whom was last authenticated on it, or to strangers.

use std::sync::Arc;

use transport::{Admission, Busy, CutOff, Held, Peer, Tenant};

use crate::limits::COUNTED_BYTES;
use crate::unread::Unread;

/// The payer for one request.
#[derive(Debug)]
pub(crate) struct Payer {
    /// The connection; none where the request came without one.
    pub(crate) peer: Option<Arc<Peer>>,
    /// Of this request.
    tenant: Option<Tenant>,
    reserved: Option<Held>,
}

impl Payer {
    pub(crate) fn new(peer: Option<Arc<Peer>>) -> Payer {
        Payer { peer, tenant: None, reserved: None }
    }

    /// The request is that tenant's.
    pub(crate) fn authenticate(&mut self, tenant: Tenant) {
        self.tenant = Some(tenant);
        if let Some(peer) = &self.peer {
            peer.authenticate(tenant);
        }
    }

    /// Takes room for the answer to a request of that tenant as long as the request can be refused.
    pub(crate) fn reserve(
        &mut self,
        admission: &Admission,
        tenant: Tenant,
        bytes: usize,
    ) -> Result<(), Busy> {
        if bytes > 0 {
            self.reserved = Some(admission.hold(tenant, bytes)?);
        }
        Ok(())
    }

    /// Counts the bytes of the answer, unless they were reserved; where there is no room for them the connection ends. A known
    /// peer that has little waiting is always answered something small, so that it hears why it is refused.
    pub(crate) fn hold(self, bytes: usize, unread: Option<&Arc<Unread>>) -> Result<Option<Held>, CutOff> {
        let peer = match (self.peer, self.reserved) {
            (Some(peer), None) => peer,
            (_, reserved) => return Ok(reserved),
        };
        let held = match self.tenant {
            Some(tenant) => peer.hold_for(tenant, bytes),
            None => peer.hold(bytes),
        };
        if let Ok(held) = held {
            return Ok(Some(held));
        }
        let waiting = unread.map_or(0, |unread| unread.waiting_bytes());
        if peer.tenant().is_some() && bytes + waiting < COUNTED_BYTES {
            return Ok(None);
        }
        peer.close();
        Err(CutOff)
    }
}
