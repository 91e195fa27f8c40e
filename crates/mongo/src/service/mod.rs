//! What all connections share.

pub(crate) mod call;
pub(crate) mod command;
pub(crate) mod connection;
pub(crate) mod metrics;
pub(crate) mod operations;
pub(crate) mod parameters;
pub(crate) mod sweep;

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bson::ObjectId;
use engine::Engine;
use storage::Time;
use tokio::time::Instant;

use crate::access;
use crate::access::executor::SharedState;
use crate::auth::{AccountKeys, Principal, Users};
use crate::diagnostics::fail_points::FailPoints;
use crate::diagnostics::recent_log::RecentLog;
use crate::diagnostics::statistics::{Counter, Statistics};
use crate::diagnostics::usage::UseByCollection;
use crate::protocol::cancellation::CancelReason;
use crate::protocol::clock::ClusterClock;
use crate::protocol::error::Result;
use crate::protocol::random;
use crate::protocol::settings::{Authentication, Settings};
use crate::rights::Rights;
use crate::service::connection::Connection;
use crate::service::metrics::FrontEndMetrics;
use crate::service::operations::{Operation, Operations};
use crate::service::parameters::{CURSOR_TIMEOUT, Parameters, TRANSACTION_LIFETIME};
use crate::service::sweep::SweepTimer;
use crate::session::cursors::Cursors;
use crate::session::shares::{Shares, UserDigest};
use crate::session::transactions::Transactions;
use crate::session::{SESSION_LIFETIME, Session, SessionId, Sessions};

/// The front end over one engine.
pub struct Service {
    pub(crate) engine: Arc<Engine>,
    /// What the executors of all commands share.
    pub(crate) shared: Arc<SharedState>,
    pub(crate) settings: Settings,
    pub(crate) clock: ClusterClock,
    pub(crate) sessions: Sessions,
    pub(crate) operations: Arc<Operations>,
    pub(crate) statistics: Statistics,
    pub(crate) metrics: FrontEndMetrics,
    pub(crate) parameters: Parameters,
    pub(crate) fail_points: FailPoints,
    pub(crate) recent_log: RecentLog,
    pub(crate) usage: UseByCollection,
    /// What users hold between two requests.
    pub(crate) shares: Arc<Shares>,
    pub(crate) cursors: Arc<Cursors>,
    pub(crate) transactions: Transactions,
    pub(crate) started: Instant,
    /// The same by the engine's clock.
    pub(crate) started_at: Time,
    /// New in every process: distinguishes it from its successor.
    pub(crate) process: ObjectId,
    connections: AtomicI32,
    /// Whether the shutdown has begun.
    stopping: AtomicBool,
    account_keys: AccountKeys,
    /// Wrong passwords since the start.
    pub(crate) wrong_proofs: Counter,
    /// When the background step is next due.
    pub(crate) sweep_timer: SweepTimer,
    /// Counts the ids made for documents.
    ids: AtomicU32,
}

impl Service {
    /// Makes a front end over that engine with these commands. Its figures are on the registry's page from now on.
    pub(crate) fn with_commands(
        engine: Arc<Engine>,
        settings: Settings,
        commands: impl Iterator<Item = &'static str>,
    ) -> Arc<Service> {
        access::remove_leftovers(&engine);
        let shares = Shares::new(&settings.limits);
        let cursors = Arc::new(Cursors::new(&shares));
        let operations: Arc<Operations> = Arc::default();
        let started_at = engine.now().unwrap_or(Time::from_seconds(0));
        let service = Arc::new(Service {
            account_keys: AccountKeys::new(&settings.account),
            shared: Arc::new(SharedState::new(Arc::clone(&engine))),
            engine,
            metrics: FrontEndMetrics::new(Arc::clone(&settings.registry), commands),
            clock: ClusterClock::default(),
            sessions: Sessions::new(&shares),
            statistics: Statistics::default(),
            parameters: Parameters::new(&settings.limits),
            fail_points: FailPoints::default(),
            recent_log: RecentLog::default(),
            usage: UseByCollection::default(),
            transactions: Transactions::new(&shares, &cursors, operations.stop_in_transaction()),
            operations,
            cursors,
            shares,
            settings,
            ids: AtomicU32::new(random::number() as u32),
            wrong_proofs: Counter::default(),
            sweep_timer: SweepTimer::default(),
            started: Instant::now(),
            started_at,
            process: ObjectId(random::bytes()),
            connections: AtomicI32::new(0),
            stopping: AtomicBool::new(false),
        });
        let observed: Weak<Service> = Arc::downgrade(&service);
        service.metrics.registry.add_source(observed);
        service.recent_log.push(started_at, &format!("started, version {}", env!("CARGO_PKG_VERSION")));
        service
    }

    /// Whether clients must authenticate.
    pub(crate) fn requires_authentication(&self) -> bool {
        match self.settings.authentication {
            Authentication::Required => true,
            Authentication::Optional => self.account_keys.has_changed(&self.settings.account),
        }
    }

    /// Returns the access to all users.
    pub(crate) fn users(&self) -> Users<'_> {
        Users { engine: &self.engine, account: &self.settings.account, keys: &self.account_keys }
    }

    /// Returns the rights of a connection at this moment. Roles and keys are looked up for every command, so that a change
    /// of them, or the end of a user, holds from the next command on.
    pub(crate) fn rights(&self, connection: &Connection) -> Result<Rights> {
        let Some(identity) = connection.client.lock().identity.clone() else {
            let open = !self.requires_authentication();
            return Ok(if open { Rights::Everything } else { Rights::Nothing });
        };
        match identity.principal {
            Principal::Account(holder) => {
                let holder = self.settings.account.keys.authenticate(holder.key.reveal());
                Ok(holder.map_or(Rights::Nothing, |holder| Rights::of_key(holder.right())))
            }
            // A user of the same name that was made later is another user.
            Principal::User(id) => {
                let user = self.users().find(&identity.user, &identity.database)?;
                let user = user.filter(|user| user.id == id);
                Ok(user.map_or(Rights::Nothing, |user| Rights::Roles(user.roles.into())))
            }
        }
    }

    /// Begins the shutdown: running commands finish, and commands that only wait end at once. No open transaction can
    /// commit any more, and writes that wait for one may wait for its end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.transactions.end_all();
    }

    /// Whether the shutdown has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Returns a number for a new connection: positive, and the same again only after two thousand million others.
    pub(crate) fn next_connection(&self) -> i32 {
        self.connections.fetch_add(1, Ordering::Relaxed) % i32::MAX + 1
    }

    /// Returns an id for a document: the time, this process, and a counter.
    pub(crate) fn object_id(&self, seconds: u32) -> ObjectId {
        let mut process = [0; 5];
        process.copy_from_slice(&self.process.0[4..9]);
        ObjectId::from_parts(seconds, process, self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the session of that name, used just now.
    pub(crate) fn session(&self, id: SessionId) -> Result<Arc<Session>> {
        let now = Instant::now();
        let (session, replaced) = self.sessions.touch(id, now)?;
        if let Some(replaced) = replaced {
            // It was not in use and held nothing. A command may have begun it again meanwhile, with a transaction.
            self.transactions.forget_ended(&replaced.id);
        }
        self.sweep_timer.set(now + SESSION_LIFETIME);
        Ok(session)
    }

    /// Ends the largest idle cursors and transactions of a user, as long as the user holds more bytes than its share; a
    /// transaction counts with its cursors and ends with them. Those in use are left alone, and checked again when their
    /// request has ended.
    pub(crate) fn make_room(&self, user: &UserDigest) {
        while !self.shares.grant(user) {
            let cursor = self.cursors.largest_idle(user);
            let transaction = self.transactions.largest_idle(user, &self.cursors.bytes_in_transactions(user));
            let in_transaction = transaction.as_ref().map_or(0, |(_, _, bytes)| *bytes);
            let ended = match (cursor, transaction) {
                (Some((id, in_cursor)), _) if in_cursor >= in_transaction => self.cursors.evict(id),
                (_, Some((session, number, _))) => self.transactions.evict(&session, number),
                (_, None) => return,
            };
            if ended {
                self.shares.ended.add(1);
            }
        }
    }

    /// Returns how long a cursor may be idle before it is closed.
    pub(crate) fn cursor_idle(&self) -> Duration {
        Duration::from_millis(self.parameters.get(CURSOR_TIMEOUT).unsigned_abs())
    }

    /// Returns how long a transaction may last.
    pub(crate) fn transaction_lifetime(&self) -> Duration {
        Duration::from_secs(self.parameters.get(TRANSACTION_LIFETIME).unsigned_abs())
    }

    /// Ends what belonged to a session that has been forgotten: commands that run for it, its cursors, its transaction. What
    /// it does not have is not searched for: clients may end thousands of sessions at once.
    pub(crate) fn clean_up(&self, session: &Arc<Session>) {
        if session.is_in_use() {
            let is_meant = |operation: &Operation| operation.session.as_ref() == Some(&session.id);
            self.operations.stop(is_meant, CancelReason::Killed);
        }
        if session.holds_something() {
            self.cursors.kill_of_session(&session.id);
        }
        self.transactions.end(&session.id);
    }

    /// Cleans up after sessions that have been forgotten.
    pub(crate) fn clean_up_all(&self, sessions: &[Arc<Session>]) {
        for session in sessions {
            self.clean_up(session);
        }
    }
}
