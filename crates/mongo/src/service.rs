//! What all connections share.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bson::ObjectId;
use engine::Engine;
use storage::Time;
use tokio::time::Instant;
use transport::Work;

use crate::access;
use crate::auth::{AccountKeys, Users};
use crate::clock::ClusterClock;
use crate::cursors::Cursors;
use crate::error::Result;
use crate::fail_points::FailPoints;
use crate::journal::Journal;
use crate::operations::{Operations, Stop};
use crate::parameters::{CURSOR_TIMEOUT, Parameters, TRANSACTION_LIFETIME};
use crate::random;
use crate::record::Traffic;
use crate::room::Common;
use crate::session::{SESSION_LIFETIME, Session, SessionId, Sessions};
use crate::settings::{Authentication, Settings};
use crate::shares::Shares;
use crate::statistics::{Counter, Statistics};
use crate::sweep::SweepAlarm;
use crate::transactions::Transactions;
use crate::usage::UseByCollection;

/// The front end over one engine.
pub struct Service {
    pub(crate) engine: Arc<Engine>,
    /// What the places have in common in which commands read and write.
    pub(crate) common: Arc<Common>,
    pub(crate) settings: Settings,
    pub(crate) clock: ClusterClock,
    pub(crate) sessions: Sessions,
    pub(crate) operations: Arc<Operations>,
    pub(crate) statistics: Statistics,
    pub(crate) traffic: Traffic,
    pub(crate) parameters: Parameters,
    pub(crate) fail_points: FailPoints,
    pub(crate) journal: Journal,
    pub(crate) usage: UseByCollection,
    /// What users hold between two requests.
    pub(crate) shares: Arc<Shares>,
    pub(crate) cursors: Arc<Cursors>,
    pub(crate) transactions: Transactions,
    pub(crate) started: Instant,
    /// The same by the engine's clock.
    pub(crate) started_at: Time,
    /// Made anew with every process: what tells one from its successor.
    pub(crate) process: ObjectId,
    connections: AtomicI32,
    /// Whether the shutdown has begun.
    stopping: AtomicBool,
    account_keys: AccountKeys,
    /// Wrong passwords since the start.
    pub(crate) wrong_proofs: Counter,
    /// When the background step is next due.
    pub(crate) sweep_alarm: SweepAlarm,
    /// Counts the ids made for documents.
    ids: AtomicU32,
}

impl Service {
    /// A front end over that engine. Its figures are on the registry's page from now on.
    pub fn new(engine: Arc<Engine>, settings: Settings) -> Arc<Service> {
        access::remove_leftovers(&engine);
        let statements = settings.admission.limit(Work::Statement);
        let shares = Shares::new(&settings.limits);
        let cursors = Arc::new(Cursors::new(&shares));
        let started_at = engine.now().unwrap_or(Time::from_seconds(0));
        let service = Arc::new(Service {
            account_keys: AccountKeys::new(&settings.account),
            common: Arc::new(Common::new(Arc::clone(&engine), statements)),
            engine,
            traffic: Traffic::new(Arc::clone(&settings.registry)),
            clock: ClusterClock::default(),
            sessions: Sessions::default(),
            operations: Arc::default(),
            statistics: Statistics::default(),
            parameters: Parameters::new(&settings.limits),
            fail_points: FailPoints::default(),
            journal: Journal::default(),
            usage: UseByCollection::default(),
            transactions: Transactions::new(&shares, &cursors),
            cursors,
            shares,
            settings,
            ids: AtomicU32::new(random::number() as u32),
            wrong_proofs: Counter::default(),
            sweep_alarm: SweepAlarm::default(),
            started: Instant::now(),
            started_at,
            process: ObjectId(random::bytes()),
            connections: AtomicI32::new(0),
            stopping: AtomicBool::new(false),
        });
        let observed: Weak<Service> = Arc::downgrade(&service);
        service.traffic.registry.observe(observed);
        service.journal.say(started_at, &format!("started, version {}", env!("CARGO_PKG_VERSION")));
        service
    }

    /// Whether everybody must authenticate.
    pub(crate) fn requires_authentication(&self) -> bool {
        match self.settings.authentication {
            Authentication::Required => true,
            Authentication::Optional => self.account_keys.has_changed(&self.settings.account),
        }
    }

    /// The door to all users.
    pub(crate) fn users(&self) -> Users<'_> {
        Users { engine: &self.engine, account: &self.settings.account, keys: &self.account_keys }
    }

    /// The shutdown begins: commands in flight come to their end, and what only waits ends at once. No open transaction can
    /// be committed any more, and writes may wait for its end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.transactions.end_all();
    }

    /// Whether the shutdown has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
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

    /// The session of that name, used just now.
    pub(crate) fn session(&self, id: SessionId) -> Result<Arc<Session>> {
        let now = Instant::now();
        let (session, expired) = self.sessions.touch(id, now)?;
        for expired in expired {
            self.clean_up(&expired);
        }
        self.sweep_alarm.set(now + SESSION_LIFETIME);
        Ok(session)
    }

    /// How long a cursor rests before it is closed.
    pub(crate) fn cursor_idle(&self) -> Duration {
        Duration::from_millis(self.parameters.get(CURSOR_TIMEOUT).unsigned_abs())
    }

    /// How long a transaction may last.
    pub(crate) fn transaction_lifetime(&self) -> Duration {
        Duration::from_secs(self.parameters.get(TRANSACTION_LIFETIME).unsigned_abs())
    }

    /// Ends sessions and everything that belongs to them.
    pub(crate) fn end_sessions(&self, which: impl Fn(&SessionId) -> bool) {
        for session in self.sessions.end(which) {
            self.clean_up(&session);
        }
    }

    /// Ends what belonged to a session: commands that run for it, its cursors, its transaction.
    pub(crate) fn clean_up(&self, session: &Session) {
        self.operations.stop(|operation| operation.session.as_ref() == Some(&session.id), Stop::Killed);
        self.cursors.kill_of_session(&session.id);
        self.transactions.end(&session.id);
    }
}
