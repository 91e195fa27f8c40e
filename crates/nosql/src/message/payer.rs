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
    /// The tenant of this request.
    tenant: Option<Tenant>,
    reserved: Option<Held>,
}

impl Payer {
    pub(crate) fn new(peer: Option<Arc<Peer>>) -> Payer {
        Payer { peer, tenant: None, reserved: None }
    }

    /// Sets the tenant of the request.
    pub(crate) fn authenticate(&mut self, tenant: Tenant) {
        self.tenant = Some(tenant);
        if let Some(peer) = &self.peer {
            peer.authenticate(tenant);
        }
    }

    /// Reserves memory for the answer to a request of this tenant, while the request can still be refused.
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

    /// Charges the bytes of the answer as [`charge`](Self::charge) does; without memory for them the connection is closed.
    pub(crate) fn hold(mut self, bytes: usize, unread: Option<&Arc<Unread>>) -> Result<Option<Held>, CutOff> {
        let held = self.charge(bytes, unread);
        if let (Err(CutOff), Some(peer)) = (&held, &self.peer) {
            peer.close();
        }
        held
    }

    /// Charges the bytes of the answer, unless they were reserved. An authenticated client with few unread answers always
    /// gets small ones, so that it learns why it is refused.
    pub(crate) fn charge(
        &mut self,
        bytes: usize,
        unread: Option<&Arc<Unread>>,
    ) -> Result<Option<Held>, CutOff> {
        let peer = match (&self.peer, self.reserved.take()) {
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
        Err(CutOff)
    }
}
