//! The admission state of one connection: until a request on it is authenticated its bytes are charged to the budget of
//! unauthenticated connections, then to the tenant.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::pool::{Charged, Pool};
use super::share::Share;
use super::unauthenticated::UnauthenticatedConnections;
use crate::tenant::Tenant;

/// The state of a connection in admission control.
#[derive(Debug)]
pub struct Peer {
    unauthenticated: Arc<UnauthenticatedConnections>,
    answers: Arc<Pool>,
    number: u64,
    auth_state: Mutex<AuthState>,
    /// Woken when a request is authenticated.
    reader: Mutex<Option<Waker>>,
    cut_off: Arc<Notify>,
}

/// Whether a connection is authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuthState {
    /// Nothing was authenticated, and no answer was sent.
    Silent,
    /// Nothing was authenticated, but an answer was sent.
    Unauthenticated,
    /// The tenant of the last authenticated request.
    Authenticated(Tenant),
}

/// There is no memory for the answer: it must be dropped, and the connection closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutOff;

impl Peer {
    pub(super) fn new(
        unauthenticated: Arc<UnauthenticatedConnections>,
        answers: Arc<Pool>,
        number: u64,
        cut_off: Arc<Notify>,
    ) -> Arc<Peer> {
        let auth_state = Mutex::new(AuthState::Silent);
        Arc::new(Peer { unauthenticated, answers, number, auth_state, reader: Mutex::default(), cut_off })
    }

    /// Marks the connection as authenticated: from now on its bytes are charged to this tenant.
    pub fn authenticate(&self, tenant: Tenant) {
        let mut auth_state = self.auth_state.lock();
        if !matches!(*auth_state, AuthState::Authenticated(_)) {
            self.unauthenticated.leave(self.number);
        }
        *auth_state = AuthState::Authenticated(tenant);
        drop(auth_state);
        if let Some(reader) = self.reader.lock().take() {
            reader.wake();
        }
    }

    /// Sets the waker to call when a request on the connection is authenticated, replacing the previous one.
    pub fn wake_when_authenticated(&self, waker: &Waker) {
        *self.reader.lock() = Some(waker.clone());
    }

    /// Returns the tenant of the last authenticated request.
    pub fn tenant(&self) -> Option<Tenant> {
        match *self.auth_state.lock() {
            AuthState::Authenticated(tenant) => Some(tenant),
            AuthState::Silent | AuthState::Unauthenticated => None,
        }
    }

    /// Records that an answer was sent on the connection.
    pub fn answered(&self) {
        let mut auth_state = self.auth_state.lock();
        if *auth_state == AuthState::Silent {
            *auth_state = AuthState::Unauthenticated;
            self.unauthenticated.is_answered(self.number);
        }
    }

    /// Counts bytes of a request that begins on an unauthenticated connection: requests of a tenant have permits.
    pub fn begin(self: &Arc<Self>, bytes: usize) -> Result<Option<Held>, CutOff> {
        // The connection cannot be authenticated while this is locked.
        let auth_state = self.auth_state.lock();
        match *auth_state {
            AuthState::Authenticated(_) => Ok(None),
            AuthState::Silent | AuthState::Unauthenticated => self.hold_unauthenticated(bytes).map(Some),
        }
    }

    /// Counts bytes of an answer, or of a request, until the result is dropped.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Result<Held, CutOff> {
        let auth_state = self.auth_state.lock();
        match *auth_state {
            AuthState::Authenticated(tenant) => self.hold_for(tenant, bytes),
            AuthState::Silent | AuthState::Unauthenticated => self.hold_unauthenticated(bytes),
        }
    }

    /// Counts bytes of a request of this tenant, even if another one has been authenticated on the connection since.
    pub fn hold_for(&self, tenant: Tenant, bytes: usize) -> Result<Held, CutOff> {
        self.answers.take(tenant, bytes, Share::Most).map(Held::of_tenant).map_err(|_| CutOff)
    }

    fn hold_unauthenticated(self: &Arc<Self>, bytes: usize) -> Result<Held, CutOff> {
        match self.unauthenticated.hold(self.number, bytes) {
            Ok(()) => Ok(Held(Holding::UnauthenticatedConnection { peer: Arc::clone(self), bytes })),
            Err(_) => Err(CutOff),
        }
    }

    /// Completes when the connection must be closed because it was evicted or closed by [`close`](Peer::close).
    pub async fn cut_off(&self) {
        self.cut_off.notified().await;
    }

    /// Lets [`cut_off`](Peer::cut_off) complete.
    pub fn close(&self) {
        self.cut_off.notify_one();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.unauthenticated.leave(self.number);
    }
}

/// Counted bytes, until this is dropped.
#[derive(Debug)]
pub struct Held(Holding);

#[derive(Debug)]
enum Holding {
    Tenant { _charged: Charged },
    UnauthenticatedConnection { peer: Arc<Peer>, bytes: usize },
}

impl Held {
    pub(super) fn of_tenant(charged: Charged) -> Held {
        Held(Holding::Tenant { _charged: charged })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Holding::UnauthenticatedConnection { peer, bytes } = &self.0 {
            peer.unauthenticated.release(peer.number, *bytes);
        }
    }
}
