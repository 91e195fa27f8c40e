//! Transactions of sessions: one at a time each, known by the session's number for it.
//!
//! A transaction begins with its first command, sees one snapshot and one time, and ends with `commitTransaction`, with
//! `abortTransaction`, with the first statement that fails, with its session, or when its time is over. What it has written
//! is invisible to others before it commits; a commit that meets documents which have changed or expired since the snapshot
//! conflicts, and the client tries the whole transaction again (T16). Its cursors end with it, however it ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mql::Code;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::access::executor::{Executor, OpenTransaction, SharedState, Turns};
use crate::protocol::cancellation::{CancelReason, Cancellation};
use crate::protocol::error::{Error, Result, TRANSIENT_TRANSACTION};
use crate::protocol::limits::IDLE_BASE_BYTES;
use crate::session::cursors::{Cursors, TransactionCursors};
use crate::session::shares::{HeldKind, Refusal, Share, Shares, UserDigest};
use crate::session::sweep_result::SweepResult;
use crate::session::{SessionHold, SessionId};

/// Stops the running commands that are part of a transaction or end it, except for the one that is named.
pub(crate) type StopCommands =
    Box<dyn Fn(&SessionId, i64, CancelReason, Option<&Cancellation>) + Send + Sync>;

/// The last transaction of each session.
pub(crate) struct Transactions {
    shares: Arc<Shares>,
    cursors: Arc<Cursors>,
    stop_commands: StopCommands,
    by_session: Mutex<HashMap<SessionId, Transaction>>,
}

struct Transaction {
    number: i64,
    state: State,
    /// When it is too old to go on.
    until: Instant,
    /// Held by the command that works in it or commits it: a second commit meanwhile waits for the outcome.
    turns: Turns,
}

pub(crate) enum State {
    Open {
        opened: Arc<OpenTransaction>,
        share: Share,
        /// Held to be dropped with the transaction.
        _cursors: TransactionCursors,
        _session: SessionHold,
    },
    Committed,
    Aborted,
    /// Aborted because its user held too many bytes.
    Evicted,
}

/// A transaction that was ended: its session, its number, and what it held.
pub(crate) type Ended = (SessionId, i64, State);

/// What `commitTransaction` finds.
pub(crate) enum Commit {
    /// A transaction that is to be committed; it counts as aborted until [`Transactions::committed`].
    Open(Arc<OpenTransaction>),
    /// One that is committed already: asking again is a success.
    Done,
}

impl Transactions {
    pub(crate) fn new(
        shares: &Arc<Shares>,
        cursors: &Arc<Cursors>,
        stop_commands: StopCommands,
    ) -> Transactions {
        Transactions {
            shares: Arc::clone(shares),
            cursors: Arc::clone(cursors),
            stop_commands,
            by_session: Mutex::default(),
        }
    }

    /// Returns the executor of a command that is part of a transaction. The transaction begins, and holds its session, if the
    /// command is its first.
    pub(crate) fn executor(
        &self,
        shared: &Arc<SharedState>,
        session: &SessionId,
        number: i64,
        starts: Option<SessionHold>,
        lifetime: Duration,
    ) -> Result<Executor> {
        let starts = starts.map(|session| (session, lifetime));
        let opened = self.enter(shared, session, number, starts)?;
        Ok(Executor::new(shared, Some(opened)))
    }

    fn enter(
        &self,
        shared: &Arc<SharedState>,
        session: &SessionId,
        number: i64,
        starts: Option<(SessionHold, Duration)>,
    ) -> Result<Arc<OpenTransaction>> {
        let mut known = self.by_session.lock();
        let last = known.get(session).map(|transaction| transaction.number);
        if let Some(last) = last.filter(|last| *last > number) {
            return Err(too_old(number, last));
        }
        if let Some((hold, lifetime)) = starts {
            if last == Some(number) {
                let text = format!("Given transaction number {number} is already in use");
                return Err(Error::location(50911, text));
            }
            let share = match self.shares.hold(HeldKind::Transaction, session.user) {
                Ok(share) => share,
                Err(refusal) => {
                    drop(known);
                    return Err(self.full(refusal));
                }
            };
            let opened = Arc::new(OpenTransaction::begin(shared)?);
            let cursors = self.cursors.of_transaction(session, number);
            let opening = Arc::clone(&opened);
            let state = State::Open { opened: opening, share, _cursors: cursors, _session: hold };
            let until = Instant::now() + lifetime;
            let new = Transaction { number, state, until, turns: Arc::clone(&opened.turns) };
            let ended = known.insert(session.clone(), new);
            drop(known);
            if let Some(ended) = &ended {
                self.stop(session, ended.number, &ended.state, CancelReason::TransactionAborted, None);
            }
            // Dropping what it made takes a while: no other command waits for it.
            drop(ended);
            return Ok(opened);
        }
        let transaction = known.get_mut(session).filter(|transaction| transaction.number == number);
        let transaction = transaction.ok_or_else(|| none(number))?;
        let expired = transaction.expire(Instant::now());
        let opened = transaction.opened(number);
        drop(known);
        if let Some(expired) = &expired {
            self.stop(session, number, expired, CancelReason::TransactionExpired, None);
        }
        drop(expired);
        opened
    }

    /// Returns the error for one too many; the client tries again, and by then expired ones are gone.
    fn full(&self, refusal: Refusal) -> Error {
        drop(self.sweep(Instant::now(), usize::MAX));
        let text = match refusal {
            Refusal::All(most) => format!("too many transactions are open: {most}"),
            Refusal::User(own) => format!(
                "this user has {own} transactions open already: a user holds at most three quarters of what others leave of \
                 'mongo-max-transactions'"
            ),
        };
        Error::new(Code::OPERATION_FAILED, text).with_label(TRANSIENT_TRANSACTION)
    }

    /// Counts a transaction for what it holds, at the end of one of its commands.
    pub(crate) fn measure(&self, session: &SessionId, number: i64) {
        if let Some(Transaction { number: known, state: State::Open { opened, share, .. }, .. }) =
            self.by_session.lock().get_mut(session)
            && *known == number
            && let Some(bytes) = opened.bytes()
        {
            share.set_bytes(IDLE_BASE_BYTES + bytes);
        }
    }

    /// Returns the transaction of a user that is idle and holds the most, and how much, with what its cursors hold.
    pub(crate) fn largest_idle(
        &self,
        user: &UserDigest,
        in_cursors: &HashMap<SessionId, usize>,
    ) -> Option<(SessionId, i64, usize)> {
        let known = self.by_session.lock();
        let own = known.iter().filter(|(session, _)| session.user == *user);
        let idle = own.filter(|(_, transaction)| transaction.is_idle());
        let idle = idle.filter_map(|(session, transaction)| match &transaction.state {
            State::Open { share, .. } => {
                let bytes = share.bytes() + in_cursors.get(session).copied().unwrap_or_default();
                Some((session, transaction.number, bytes))
            }
            State::Committed | State::Aborted | State::Evicted => None,
        });
        let largest = idle.max_by_key(|(_, _, bytes)| *bytes);
        largest.map(|(session, number, bytes)| (session.clone(), number, bytes))
    }

    /// Aborts a transaction to free memory; false if it is not open any more, or a command works in it.
    pub(crate) fn evict(&self, session: &SessionId, number: i64) -> bool {
        let mut known = self.by_session.lock();
        let transaction = known.get_mut(session).filter(|transaction| transaction.number == number);
        let idle = transaction.filter(|transaction| transaction.is_idle());
        let ended = idle.map(|idle| std::mem::replace(&mut idle.state, State::Evicted));
        drop(known);
        ended.is_some()
    }

    /// Whether a transaction is open.
    pub(crate) fn is_open(&self, session: &SessionId, number: i64) -> bool {
        let known = self.by_session.lock();
        let transaction = known.get(session).filter(|transaction| transaction.number == number);
        transaction.is_some_and(|transaction| matches!(transaction.state, State::Open { .. }))
    }

    /// Returns an error unless a transaction is open.
    pub(crate) fn check_open(&self, session: &SessionId, number: i64) -> Result<()> {
        let known = self.by_session.lock();
        let transaction = known.get(session).filter(|transaction| transaction.number == number);
        transaction.ok_or_else(|| none(number))?.opened(number).map(drop)
    }

    /// Returns the turns of a transaction; none if the session knows no transaction of that number.
    pub(crate) fn turns(&self, session: &SessionId, number: i64) -> Option<Turns> {
        let known = self.by_session.lock();
        let transaction = known.get(session).filter(|transaction| transaction.number == number)?;
        Some(Arc::clone(&transaction.turns))
    }

    /// Takes the transaction that is to be committed, by the command that has the turn.
    pub(crate) fn commit(&self, session: &SessionId, number: i64) -> Result<Commit> {
        let mut known = self.by_session.lock();
        let transaction = known.get_mut(session).filter(|transaction| transaction.number == number);
        let transaction = transaction.ok_or_else(|| none(number))?;
        let mut ended = transaction.expire(Instant::now());
        let found = match &transaction.state {
            State::Committed => Ok(Commit::Done),
            State::Aborted => Err(aborted(number)),
            State::Evicted => Err(evicted(number)),
            State::Open { opened, .. } => {
                let opened = Arc::clone(opened);
                ended = Some(std::mem::replace(&mut transaction.state, State::Aborted));
                Ok(Commit::Open(opened))
            }
        };
        drop(known);
        drop(ended);
        found
    }

    /// Remembers that a transaction is committed.
    pub(crate) fn committed(&self, session: &SessionId, number: i64) {
        if let Some(transaction) = self.by_session.lock().get_mut(session)
            && transaction.number == number
        {
            transaction.state = State::Committed;
        }
    }

    /// Aborts a transaction and stops the commands that work in it or wait for their turn, except for the one that aborts it.
    /// Returns what was open, or an error if there is none that could be aborted.
    pub(crate) fn abort(
        &self,
        session: &SessionId,
        number: i64,
        by: &Cancellation,
    ) -> Result<Arc<OpenTransaction>> {
        let mut known = self.by_session.lock();
        match known.get_mut(session).filter(|transaction| transaction.number == number) {
            None => Err(none(number)),
            Some(Transaction { state: State::Committed, .. }) => Err(Error::new(
                Code::TRANSACTION_COMMITTED,
                format!("Transaction {number} has been committed."),
            )),
            Some(Transaction { state: State::Aborted, .. }) => Err(aborted(number)),
            Some(Transaction { state: State::Evicted, .. }) => Err(evicted(number)),
            Some(transaction) => {
                let ended = std::mem::replace(&mut transaction.state, State::Aborted);
                drop(known);
                self.stop(session, number, &ended, CancelReason::TransactionAborted, Some(by));
                match ended {
                    State::Open { opened, .. } => Ok(opened),
                    State::Committed | State::Aborted | State::Evicted => Err(none(number)),
                }
            }
        }
    }

    /// Stops the commands that work in a transaction that has ended, or wait for their turn: they hold what it holds.
    fn stop(
        &self,
        session: &SessionId,
        number: i64,
        ended: &State,
        why: CancelReason,
        except: Option<&Cancellation>,
    ) {
        // What is not in use is not searched for: clients may end many at once.
        if matches!(ended, State::Open { opened, .. } if Arc::strong_count(opened) > 1) {
            (self.stop_commands)(session, number, why, except);
        }
    }

    /// Forgets the last transaction of a session unless it is open.
    pub(crate) fn forget_ended(&self, session: &SessionId) {
        let mut known = self.by_session.lock();
        if known.get(session).is_some_and(|transaction| !matches!(transaction.state, State::Open { .. })) {
            known.remove(session);
        }
    }

    /// Aborts what a session has open, and forgets it.
    pub(crate) fn end(&self, session: &SessionId) {
        let ended = self.by_session.lock().remove(session);
        drop(ended);
    }

    /// Aborts transactions that have exceeded their lifetime, at most so many, and stops the commands that work in them.
    pub(crate) fn sweep(&self, now: Instant, most: usize) -> SweepResult<Ended> {
        let mut known = self.by_session.lock();
        let end = |(session, transaction): (&SessionId, &mut Transaction)| {
            let number = transaction.number;
            transaction.expire(now).map(|state| (session.clone(), number, state))
        };
        let expired: Vec<Ended> = known.iter_mut().filter_map(end).take(most).collect();
        let open = known.values().filter(|transaction| matches!(transaction.state, State::Open { .. }));
        let next_due = open.map(|transaction| transaction.until).min();
        drop(known);
        for (session, number, ended) in &expired {
            self.stop(session, *number, ended, CancelReason::TransactionExpired, None);
        }
        SweepResult { expired, next_due }
    }

    /// Aborts all that are open.
    pub(crate) fn end_all(&self) {
        let ended: Vec<Transaction> = self.by_session.lock().drain().map(|(_, ended)| ended).collect();
        drop(ended);
    }

    /// Returns how many are open.
    pub(crate) fn open_count(&self) -> usize {
        let known = self.by_session.lock();
        known.values().filter(|transaction| matches!(transaction.state, State::Open { .. })).count()
    }
}

impl Transaction {
    /// Whether it is open and no command works in it: a command would share its ownership.
    fn is_idle(&self) -> bool {
        matches!(&self.state, State::Open { opened, .. } if Arc::strong_count(opened) == 1)
    }

    /// Aborts it if it has exceeded its lifetime; then returns what it was.
    #[must_use = "letting it go takes a while: first of all the lock is given back"]
    fn expire(&mut self, now: Instant) -> Option<State> {
        let is_over = matches!(self.state, State::Open { .. }) && now >= self.until;
        is_over.then(|| std::mem::replace(&mut self.state, State::Aborted))
    }

    fn opened(&self, number: i64) -> Result<Arc<OpenTransaction>> {
        match &self.state {
            State::Open { opened, .. } => Ok(Arc::clone(opened)),
            State::Committed => Err(Error::new(
                Code::TRANSACTION_COMMITTED,
                format!("Transaction {number} has been committed."),
            )),
            State::Aborted => Err(aborted(number)),
            State::Evicted => Err(evicted(number)),
        }
    }
}

fn too_old(number: i64, last: i64) -> Error {
    let text = format!(
        "Cannot start transaction {number} on session because a newer transaction {last} has already started."
    );
    Error::new(Code::TRANSACTION_TOO_OLD, text)
}

/// Returns the error for an unknown transaction.
pub(crate) fn none(number: i64) -> Error {
    let text = format!("Given transaction number {number} does not match any in-progress transactions.");
    Error::new(Code::NO_SUCH_TRANSACTION, text).with_label(TRANSIENT_TRANSACTION)
}

fn aborted(number: i64) -> Error {
    let text = format!("Transaction {number} has been aborted.");
    Error::new(Code::NO_SUCH_TRANSACTION, text).with_label(TRANSIENT_TRANSACTION)
}

fn evicted(number: i64) -> Error {
    let text = format!(
        "Transaction {number} has been aborted: the idle cursors and transactions of this user held more than its share of \
         'mongo-idle-memory', and this one held the most."
    );
    Error::new(Code::NO_SUCH_TRANSACTION, text).with_label(TRANSIENT_TRANSACTION)
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use bson::RawDocument;
    use engine::Engine;
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};

    use super::*;
    use crate::protocol::limits::Limits;
    use crate::session::cursors::Cursor;
    use crate::session::cursors::tests::cursor;

    const SESSION: SessionId = SessionId { uuid: [1; 16], user: [0; 32] };
    const MINUTE: Duration = Duration::from_mins(1);

    /// No transaction yet, and the cursors that they will have.
    fn transactions(limits: &Limits) -> (Transactions, Arc<Cursors>) {
        let shares = Shares::new(limits);
        let cursors = Arc::new(Cursors::new(&shares));
        (Transactions::new(&shares, &cursors, Box::new(|_, _, _, _| ())), cursors)
    }

    /// As the first command of a transaction, of a session that nothing else looks at.
    const STARTS: Option<SessionHold> = Some(SessionHold(Weak::new()));

    fn shared() -> Arc<SharedState> {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).unwrap());
        Arc::new(SharedState::new(Arc::new(Engine::open(store).unwrap())))
    }

    #[tokio::test(start_paused = true)]
    async fn a_collection_made_in_a_transaction_goes_with_it_when_its_time_is_over() {
        let shared = shared();
        let engine = Arc::clone(&shared.engine);
        let (transactions, _) = transactions(&Limits::default());
        let session = SessionId { uuid: [1; 16], user: [0; 32] };
        let minute = Duration::from_mins(1);
        let executor = transactions.executor(&shared, &session, 1, STARTS, minute).unwrap();
        crate::access::catalog::for_write(&executor, "db", "c").unwrap();
        drop(executor);
        let until = Instant::now() + minute;
        assert_eq!(transactions.sweep(until - Duration::from_secs(1), 10).next_due, Some(until));
        assert!(engine.collection("db", "c").is_some());
        assert_eq!(transactions.sweep(until, 10).next_due, None);
        assert!(engine.collection("db", "c").is_none());
        assert!(engine.collection_database("db").is_none());
        // The next transaction of the session ends the one before it.
        let executor = transactions.executor(&shared, &session, 2, STARTS, minute).unwrap();
        crate::access::catalog::definition(RawDocument::default())
            .and_then(|definition| Ok(executor.create_collection("db", "d", definition)?))
            .unwrap();
        drop(executor);
        transactions.executor(&shared, &session, 3, STARTS, minute).unwrap();
        assert!(engine.collection("db", "d").is_none());
    }

    /// Ends the first transaction of the session.
    type End = fn(&Transactions, &Arc<SharedState>);

    #[tokio::test]
    async fn cursors_end_with_their_transaction_however_it_ends() {
        let ends: [(&str, Duration, End); 10] = [
            ("it is aborted", MINUTE, |them, _| {
                them.abort(&SESSION, 1, &Cancellation::default()).unwrap();
            }),
            ("it is committed", MINUTE, |them, _| drop(them.commit(&SESSION, 1).unwrap())),
            ("it is evicted", MINUTE, |them, _| assert!(them.evict(&SESSION, 1))),
            ("its session ends", MINUTE, |them, _| them.end(&SESSION)),
            ("the server stops", MINUTE, |them, _| them.end_all()),
            ("the next one begins", MINUTE, |them, shared| {
                them.executor(shared, &SESSION, 2, STARTS, MINUTE).unwrap();
            }),
            ("a sweep finds it expired", Duration::ZERO, |them, _| drop(them.sweep(Instant::now(), 1))),
            ("a statement finds it expired", Duration::ZERO, |them, shared| {
                assert!(them.executor(shared, &SESSION, 1, None, MINUTE).is_err());
            }),
            ("its commit finds it expired", Duration::ZERO, |them, _| {
                assert!(them.commit(&SESSION, 1).is_err());
            }),
            ("one too many finds it expired", Duration::ZERO, |them, shared| {
                let other = SessionId { uuid: [2; 16], ..SESSION };
                assert!(them.executor(shared, &other, 1, STARTS, MINUTE).is_err());
            }),
        ];
        for (how, lifetime, end) in ends {
            let shared = shared();
            let (transactions, cursors) = transactions(&Limits { transactions: 2, ..Limits::default() });
            let full = SessionId { uuid: [3; 16], ..SESSION };
            if lifetime.is_zero() {
                transactions.executor(&shared, &full, 1, STARTS, MINUTE).unwrap();
            }
            transactions.executor(&shared, &SESSION, 1, STARTS, lifetime).unwrap();
            for transaction in [Some(1), Some(1), None] {
                cursors.keep(Cursor { transaction, ..cursor(1, false) }, MINUTE).unwrap();
            }
            end(&transactions, &shared);
            assert!(!transactions.is_open(&SESSION, 1), "{how}");
            assert_eq!(cursors.figures().open, 1, "{how}: the one of no transaction stays");
        }
    }

    /// A command may begin a session again, with a transaction, before it is cleaned up after the one that was replaced.
    #[tokio::test]
    async fn what_is_forgotten_of_a_replaced_session_is_not_open() {
        let shared = shared();
        let (transactions, _) = transactions(&Limits::default());
        transactions.executor(&shared, &SESSION, 1, STARTS, MINUTE).unwrap();
        transactions.forget_ended(&SESSION);
        assert!(transactions.is_open(&SESSION, 1));
        transactions.abort(&SESSION, 1, &Cancellation::default()).unwrap();
        assert!(transactions.turns(&SESSION, 1).is_some());
        transactions.forget_ended(&SESSION);
        assert!(transactions.turns(&SESSION, 1).is_none());
    }

    /// What a command works in is not evicted, and keeps its cursors.
    #[tokio::test]
    async fn a_transaction_in_use_keeps_its_cursors() {
        let shared = shared();
        let (transactions, cursors) = transactions(&Limits::default());
        let executor = transactions.executor(&shared, &SESSION, 1, STARTS, MINUTE).unwrap();
        cursors.keep(Cursor { transaction: Some(1), ..cursor(1, false) }, MINUTE).unwrap();
        assert!(!transactions.evict(&SESSION, 1));
        assert_eq!((transactions.is_open(&SESSION, 1), cursors.figures().open), (true, 1));
        drop(executor);
        assert!(transactions.evict(&SESSION, 1));
        assert_eq!((transactions.is_open(&SESSION, 1), cursors.figures().open), (false, 0));
    }

    /// Dropping an expired transaction takes a while; other sessions must not wait for that.
    #[test]
    fn no_caller_waits_while_an_expired_transaction_ends() {
        let shared = shared();
        let (transactions, _) = transactions(&Limits::default());
        let session = SessionId { uuid: [1; 16], user: [0; 32] };
        for (number, commits) in [(1, false), (2, true)] {
            let executor = transactions.executor(&shared, &session, number, STARTS, Duration::ZERO).unwrap();
            crate::access::catalog::for_write(&executor, "db", "c").unwrap();
            drop(executor);
            std::thread::scope(|scope| {
                let others_go_on = shared.provisional.stand_still(|| {
                    scope.spawn(|| {
                        let refused = if commits {
                            transactions.commit(&session, number).is_err()
                        } else {
                            transactions.enter(&shared, &session, number, None).is_err()
                        };
                        assert!(refused);
                    });
                    loop {
                        let Some(known) = transactions.by_session.try_lock_for(Duration::from_secs(20))
                        else {
                            break false;
                        };
                        if matches!(known[&session].state, State::Aborted) {
                            break true;
                        }
                        drop(known);
                        std::thread::yield_now();
                    }
                });
                assert!(others_go_on, "number {number}");
            });
            assert!(shared.engine.collection("db", "c").is_none());
        }
    }
}
