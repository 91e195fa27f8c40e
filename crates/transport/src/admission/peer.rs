//! One connection: whether something on it was authenticated yet, which decides what its bytes are charged to.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::pool::{Charged, Pool};
use super::share::Share;
use super::strangers::Strangers;
use crate::tenant::Tenant;

/// The state of a connection that admission control knows.
#[derive(Debug)]
pub struct Peer {
    strangers: Arc<Strangers>,
    answers: Arc<Pool>,
    number: u64,
    standing: Mutex<Standing>,
    /// Woken when something is authenticated.
    reader: Mutex<Option<Waker>>,
    cut_off: Arc<Notify>,
}

/// How a connection stands with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It has not been answered yet.
    Silent,
    /// Nothing on it was authenticated.
    Stranger,
    /// The tenant of the last request that was authenticated.
    Known(Tenant),
}

/// There is no room for the answer: it must be dropped, and the connection closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutOff;

impl Peer {
    pub(super) fn new(
        strangers: Arc<Strangers>,
        answers: Arc<Pool>,
        number: u64,
        cut_off: Arc<Notify>,
    ) -> Arc<Peer> {
        let standing = Mutex::new(Standing::Silent);
        Arc::new(Peer { strangers, answers, number, standing, reader: Mutex::default(), cut_off })
    }

    /// Something on the connection was authenticated: from now on its bytes are that tenant's.
    pub fn authenticate(&self, tenant: Tenant) {
        let mut standing = self.standing.lock();
        if !matches!(*standing, Standing::Known(_)) {
            self.strangers.leave(self.number);
        }
        *standing = Standing::Known(tenant);
        drop(standing);
        if let Some(reader) = self.reader.lock().take() {
            reader.wake();
        }
    }

    /// Sets the waker that is called when something on the connection is authenticated, in place of the one before.
    pub fn wake_when_known(&self, waker: &Waker) {
        *self.reader.lock() = Some(waker.clone());
    }

    /// The tenant of what was last authenticated.
    pub fn tenant(&self) -> Option<Tenant> {
        match *self.standing.lock() {
            Standing::Known(tenant) => Some(tenant),
            Standing::Silent | Standing::Stranger => None,
        }
    }

    /// The connection is answered something.
    pub fn spoke(&self) {
        let mut standing = self.standing.lock();
        if *standing == Standing::Silent {
            *standing = Standing::Stranger;
            self.strangers.has_spoken(self.number);
        }
    }

    /// Counts bytes of a request that begins, where nothing was authenticated yet: the requests of a tenant have permits.
    pub fn begin(self: &Arc<Self>, bytes: usize) -> Result<Option<Held>, CutOff> {
        // As long as this is locked it stays a stranger.
        let standing = self.standing.lock();
        match *standing {
            Standing::Known(_) => Ok(None),
            Standing::Silent | Standing::Stranger => self.hold_stranger(bytes).map(Some),
        }
    }

    /// Counts bytes of an answer, or of a request, for as long as what this returns lives.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Result<Held, CutOff> {
        let standing = self.standing.lock();
        match *standing {
            Standing::Known(tenant) => self.hold_for(tenant, bytes),
            Standing::Silent | Standing::Stranger => self.hold_stranger(bytes),
        }
    }

    /// The same for a request of that tenant, whoever was authenticated on the connection since.
    pub fn hold_for(&self, tenant: Tenant, bytes: usize) -> Result<Held, CutOff> {
        self.answers.take(tenant, bytes, Share::Most).map(Held::of_tenant).map_err(|_| CutOff)
    }

    fn hold_stranger(self: &Arc<Self>, bytes: usize) -> Result<Held, CutOff> {
        match self.strangers.hold(self.number, bytes) {
            Ok(()) => Ok(Held(Holding::Stranger { peer: Arc::clone(self), bytes })),
            Err(_) => Err(CutOff),
        }
    }

    /// Ends when the connection is to be closed because it holds too much or strangers are too many.
    pub async fn cut_off(&self) {
        self.cut_off.notified().await;
    }

    /// Lets [`cut_off`](Peer::cut_off) end.
    pub fn close(&self) {
        self.cut_off.notify_one();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.strangers.leave(self.number);
    }
}

/// Bytes that are counted, until this is dropped.
#[derive(Debug)]
pub struct Held(Holding);

#[derive(Debug)]
enum Holding {
    Tenant { _charged: Charged },
    Stranger { peer: Arc<Peer>, bytes: usize },
}

impl Held {
    pub(super) fn of_tenant(charged: Charged) -> Held {
        Held(Holding::Tenant { _charged: charged })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Holding::Stranger { peer, bytes } = &self.0 {
            peer.strangers.give_back(peer.number, *bytes);
        }
    }
}
