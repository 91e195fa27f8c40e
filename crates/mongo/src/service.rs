//! What all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use bson::ObjectId;
use engine::Engine;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::auth::{AccountCredentials, Users};
use crate::clock::ClusterClock;
use crate::cursors::Cursors;
use crate::error::Result;
use crate::fail_points::FailPoints;
use crate::journal::Journal;
use crate::limits::LARGE_MESSAGES_BYTES;
use crate::operations::{Operations, Stop};
use crate::parameters::Parameters;
use crate::random;
use crate::session::{Session, SessionId, Sessions};
use crate::settings::{Authentication, Settings};
use crate::statistics::Statistics;
use crate::transactions::Transactions;
use crate::usage::UseByCollection;

/// Large messages are counted in pieces of this size.
pub(crate) const MESSAGE_PIECE_BYTES: usize = 4096;

/// The front end over one engine.
pub struct Service {
    pub(crate) engine: Arc<Engine>,
    pub(crate) settings: Settings,
    pub(crate) clock: ClusterClock,
    pub(crate) sessions: Sessions,
    pub(crate) operations: Arc<Operations>,
    pub(crate) statistics: Statistics,
    pub(crate) parameters: Parameters,
    pub(crate) fail_points: FailPoints,
    pub(crate) journal: Journal,
    pub(crate) usage: UseByCollection,
    pub(crate) cursors: Cursors,
    pub(crate) transactions: Transactions,
    pub(crate) started: Instant,
    /// Made anew with every process: what tells one from its successor.
    pub(crate) process: ObjectId,
    /// Room for large messages, in pieces.
    pub(crate) message_room: Semaphore,
    connections: AtomicI32,
    account: AccountCredentials,
    /// Counts the ids made for documents.
    ids: AtomicU32,
}

impl Service {
    /// A front end over that engine.
    pub fn new(engine: Arc<Engine>, settings: Settings) -> Service {
        let service = Service {
            engine,
            settings,
            clock: ClusterClock::default(),
            sessions: Sessions::default(),
            operations: Arc::default(),
            statistics: Statistics::default(),
            parameters: Parameters::default(),
            fail_points: FailPoints::default(),
            journal: Journal::default(),
            usage: UseByCollection::default(),
            cursors: Cursors::default(),
            transactions: Transactions::default(),
            ids: AtomicU32::new(random::number() as u32),
            started: Instant::now(),
            process: ObjectId(random::bytes()),
            message_room: Semaphore::new(LARGE_MESSAGES_BYTES / MESSAGE_PIECE_BYTES),
            connections: AtomicI32::new(0),
            account: AccountCredentials::default(),
        };
        if let Ok(now) = service.engine.now() {
            service.journal.say(now, &format!("started, version {}", env!("CARGO_PKG_VERSION")));
        }
        service
    }

    /// Whether everybody must authenticate.
    pub(crate) fn requires_authentication(&self) -> bool {
        self.settings.authentication == Authentication::Required
    }

    /// The door to all users.
    pub(crate) fn users(&self) -> Users<'_> {
        Users { engine: &self.engine, account: &self.settings.account, derived: &self.account }
    }

    /// A number for a new connection: positive, and the same again only after two thousand million others.
    pub(crate) fn next_connection(&self) -> i32 {
        self.connections.fetch_add(1, Ordering::Relaxed) % i32::MAX + 1
    }

    /// An id for a document: the time, this process, and a counter.
    pub(crate) fn object_id(&self, seconds: u32) -> ObjectId {
        let mut process = [0; 5];
        process.copy_from_slice(&self.process.0[4..9]);
        ObjectId::from_parts(seconds, process, self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// The session of that name, used just now. Whatever has outlived its time meanwhile is cleaned up.
    pub(crate) fn session(&self, id: SessionId) -> Result<Arc<Session>> {
        let (session, expired) = self.sessions.touch(id, Instant::now())?;
        for expired in expired {
            self.clean_up(&expired);
        }
        Ok(session)
    }

    /// Ends sessions and everything that belongs to them.
    pub(crate) fn end_sessions(&self, which: impl Fn(&SessionId) -> bool) {
        for session in self.sessions.end(which) {
            self.clean_up(&session);
        }
    }

    /// Ends what belonged to a session: commands that run for it, its cursors, its transaction.
    fn clean_up(&self, session: &Session) {
        self.operations.stop(|operation| operation.session.as_ref() == Some(&session.id), Stop::Killed);
        self.cursors.kill_of_session(&session.id);
        self.transactions.end(&session.id);
    }
}
