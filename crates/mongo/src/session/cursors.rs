//! Cursors: results that clients fetch batch by batch.
//!
//! A cursor is idle between two requests and holds nothing of the store: no snapshot, no lock. It belongs to the client that opened
//! it and is taken out while a request uses it, so that two requests never share one. Idle cursors are closed after ten
//! minutes, and their number is bounded, with a share for each user (see `shares`).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bson::RawDocument;
use mql::Code;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::access::PipelineCursor;
use crate::change_stream::Stream;
use crate::diagnostics::statistics::Counter;
use crate::protocol::error::{Error, Result, TRANSIENT_TRANSACTION};
use crate::protocol::limits::IDLE_BASE_BYTES;
use crate::protocol::random;
use crate::rights::Privilege;
use crate::session::shares::{HeldKind, Refusal, Share, Shares, UserDigest};
use crate::session::sweep_result::SweepResult;
use crate::session::{Owner, SessionHold, SessionId};

/// A result that is not finished.
pub(crate) struct Cursor {
    /// The full name of the collection, as replies give it.
    pub(crate) namespace: String,
    pub(crate) owner: Owner,
    /// Held as long as the cursor is open, if it belongs to a session.
    pub(crate) _session: Option<SessionHold>,
    pub(crate) rest: Remaining,
    /// Kept open however long it is not used.
    pub(crate) keep: bool,
    /// The transaction it was opened in.
    pub(crate) transaction: Option<i64>,
    /// The rest of the `maxTimeMS` of the command that opened it. The time between two requests does not count.
    pub(crate) time_left: Option<Duration>,
    /// The privileges that its owner needs to continue it: those that opening it needed.
    pub(crate) needs: Arc<[Privilege]>,
    /// How many bytes the command that opened it counts for.
    pub(crate) command_bytes: usize,
}

impl Cursor {
    /// Returns how many bytes it holds, roughly.
    fn bytes(&self) -> usize {
        let rest = match &self.rest {
            Remaining::List(documents) => documents.iter().map(|document| document.as_bytes().len()).sum(),
            Remaining::Pipeline(pipeline_cursor) => pipeline_cursor.bytes(),
            Remaining::Changes(stream) => stream.bytes(),
        };
        IDLE_BASE_BYTES + self.command_bytes + rest
    }
}

/// What is still to come.
pub(crate) enum Remaining {
    /// Documents that have been computed.
    List(VecDeque<RawDocument>),
    /// Documents that are computed on request.
    Pipeline(Box<PipelineCursor>),
    /// Changes that are to come.
    Changes(Box<Stream>),
}

enum Slot {
    Resting {
        cursor: Box<Cursor>,
        since: Instant,
        share: Share,
    },
    /// A request uses it. If it was closed meanwhile, it is not put back.
    InUse {
        owner: Owner,
        transaction: Option<i64>,
        killed: bool,
        share: Share,
    },
}

/// How many cursors closed to free memory are remembered, so that their clients learn why.
const EVICTED_MAX: usize = 1024;

/// All cursors.
pub(crate) struct Cursors {
    shares: Arc<Shares>,
    slots: Mutex<HashMap<i64, Slot>>,
    /// Those that were closed last to free memory.
    evicted: Mutex<VecDeque<i64>>,
    /// Those that were closed because they were not used.
    pub(crate) timed_out: Counter,
}

/// Figures for `serverStatus`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CursorFigures {
    pub(crate) open: usize,
    pub(crate) kept: usize,
}

impl Cursors {
    pub(crate) fn new(shares: &Arc<Shares>) -> Cursors {
        Cursors {
            shares: Arc::clone(shares),
            slots: Mutex::default(),
            evicted: Mutex::default(),
            timed_out: Counter::default(),
        }
    }

    /// Keeps a cursor under a new id: random, so that no client finds another's by counting, and positive.
    pub(crate) fn keep(&self, cursor: Cursor, idle: Duration) -> Result<i64> {
        let now = Instant::now();
        let hold = || self.shares.hold(HeldKind::Cursor, cursor.owner.user);
        let mut slots = self.slots.lock();
        let share = hold().or_else(|_| {
            self.timed_out.add(stale(&mut slots, now, idle, usize::MAX).len() as u64);
            hold()
        });
        let mut share = share.map_err(|refusal| refused(refusal, cursor.transaction.is_some()))?;
        share.set_bytes(cursor.bytes());
        let id = loop {
            let id = (random::number() >> 1) as i64;
            if id != 0 && !slots.contains_key(&id) {
                break id;
            }
        };
        slots.insert(id, Slot::Resting { cursor: Box::new(cursor), since: now, share });
        Ok(id)
    }

    /// Returns the idle cursor of a user that holds the most, and how much; of several the one that has been idle for the longest
    /// time. Cursors of transactions are left out: they end with their transaction.
    pub(crate) fn largest_idle(&self, user: &UserDigest) -> Option<(i64, usize)> {
        let slots = self.slots.lock();
        let own = slots.iter().filter_map(|(id, slot)| match slot {
            Slot::Resting { cursor, share, since }
                if cursor.owner.user == *user && cursor.transaction.is_none() =>
            {
                Some((*id, share.bytes(), Reverse(*since)))
            }
            Slot::Resting { .. } | Slot::InUse { .. } => None,
        });
        own.max_by_key(|(_, bytes, since)| (*bytes, *since)).map(|(id, bytes, _)| (id, bytes))
    }

    /// Returns how many bytes the cursors of a user's transactions hold, by session: each has one transaction at a time.
    pub(crate) fn bytes_in_transactions(&self, user: &UserDigest) -> HashMap<SessionId, usize> {
        let mut bytes = HashMap::new();
        for slot in self.slots.lock().values() {
            if let Slot::Resting { cursor, share, .. } = slot
                && cursor.transaction.is_some()
                && let Owner { session: Some(session), user: owner } = &cursor.owner
                && owner == user
            {
                *bytes.entry(session.clone()).or_default() += share.bytes();
            }
        }
        bytes
    }

    /// Closes an idle cursor, to free memory; false if it is gone.
    pub(crate) fn evict(&self, id: i64) -> bool {
        let mut slots = self.slots.lock();
        if !matches!(slots.get(&id), Some(Slot::Resting { .. })) {
            return false;
        }
        let evicted = slots.remove(&id);
        drop(slots);
        drop(evicted);
        let mut known = self.evicted.lock();
        known.truncate(EVICTED_MAX - 1);
        known.push_front(id);
        true
    }

    /// Returns the rights that are needed to continue an idle cursor.
    pub(crate) fn needs(&self, id: i64) -> Vec<Privilege> {
        match self.slots.lock().get(&id) {
            Some(Slot::Resting { cursor, .. }) => cursor.needs.to_vec(),
            Some(Slot::InUse { .. }) | None => Vec::new(),
        }
    }

    /// Takes a cursor out for a request.
    pub(crate) fn take(&self, id: i64, idle: Duration) -> Result<Box<Cursor>> {
        let mut slots = self.slots.lock();
        if slots.get(&id).is_some_and(|slot| is_stale(slot, Instant::now(), idle)) {
            slots.remove(&id);
            self.timed_out.add(1);
        }
        match slots.remove(&id) {
            Some(Slot::Resting { cursor, share, .. }) => {
                let (owner, transaction) = (cursor.owner.clone(), cursor.transaction);
                slots.insert(id, Slot::InUse { owner, transaction, killed: false, share });
                Ok(cursor)
            }
            Some(in_use) => {
                slots.insert(id, in_use);
                Err(Error::location(12051, format!("cursor id {id} is already in use")))
            }
            None => Err(self.not_found(id)),
        }
    }

    fn not_found(&self, id: i64) -> Error {
        let text = if self.evicted.lock().contains(&id) {
            format!(
                "cursor id {id} was closed: the idle cursors and transactions of this user held more than its share of \
                 'mongo-idle-memory', and this one held the most"
            )
        } else {
            format!("cursor id {id} not found")
        };
        Error::new(Code::CURSOR_NOT_FOUND, text)
    }

    /// Puts a cursor back after a request, unless it was closed meanwhile.
    pub(crate) fn put_back(&self, id: i64, cursor: Box<Cursor>) -> bool {
        let mut slots = self.slots.lock();
        let Some(Slot::InUse { killed: false, mut share, .. }) = slots.remove(&id) else { return false };
        share.set_bytes(cursor.bytes());
        slots.insert(id, Slot::Resting { cursor, since: Instant::now(), share });
        true
    }

    /// Whether a cursor that was taken has been closed meanwhile.
    pub(crate) fn is_killed(&self, id: i64) -> bool {
        !matches!(self.slots.lock().get(&id), Some(Slot::InUse { killed: false, .. }))
    }

    /// Forgets a cursor that was taken and is finished.
    pub(crate) fn finish(&self, id: i64) {
        self.slots.lock().remove(&id);
    }

    /// Closes a cursor of that user, or of any if none is given; false if there is no such cursor.
    pub(crate) fn kill(&self, id: i64, user: Option<&[u8; 32]>) -> bool {
        let is_meant = |owner: &Owner| user.is_none_or(|user| owner.user == *user);
        let mut slots = self.slots.lock();
        match slots.get_mut(&id) {
            Some(Slot::InUse { owner, killed, .. }) if is_meant(owner) => {
                *killed = true;
                true
            }
            Some(Slot::Resting { cursor, .. }) if is_meant(&cursor.owner) => slots.remove(&id).is_some(),
            _ => false,
        }
    }

    /// Closes the cursors of a session.
    pub(crate) fn kill_of_session(&self, session: &SessionId) {
        self.kill_all(|owner, _| owner.session.as_ref() == Some(session));
    }

    /// Returns the cursors that a transaction has, and will have.
    pub(crate) fn of_transaction(self: &Arc<Self>, session: &SessionId, number: i64) -> TransactionCursors {
        TransactionCursors { cursors: Arc::clone(self), session: session.clone(), number }
    }

    fn kill_all(&self, which: impl Fn(&Owner, Option<i64>) -> bool) {
        self.slots.lock().retain(|_, slot| match slot {
            Slot::Resting { cursor, .. } => !which(&cursor.owner, cursor.transaction),
            Slot::InUse { owner, transaction, killed, .. } => {
                *killed |= which(owner, *transaction);
                true
            }
        });
    }

    /// Closes cursors that have been idle for that time, at most so many.
    pub(crate) fn sweep(&self, now: Instant, idle: Duration, most: usize) -> SweepResult<Cursor> {
        let mut slots = self.slots.lock();
        let expired = stale(&mut slots, now, idle, most);
        self.timed_out.add(expired.len() as u64);
        let due = |slot: &Slot| match slot {
            Slot::Resting { cursor, .. } if cursor.keep => None,
            Slot::Resting { since, .. } => Some(*since + idle),
            // It is put back now at the earliest.
            Slot::InUse { .. } => Some(now + idle),
        };
        SweepResult { expired, next_due: slots.values().filter_map(due).min() }
    }

    /// Returns how many there are.
    pub(crate) fn figures(&self) -> CursorFigures {
        let slots = self.slots.lock();
        let kept = |slot: &&Slot| matches!(slot, Slot::Resting { cursor, .. } if cursor.keep);
        CursorFigures { open: slots.len(), kept: slots.values().filter(kept).count() }
    }
}

/// The cursors of an open transaction. Dropping it closes them, so that they end with the transaction, however it ends.
pub(crate) struct TransactionCursors {
    cursors: Arc<Cursors>,
    session: SessionId,
    number: i64,
}

impl Drop for TransactionCursors {
    fn drop(&mut self) {
        self.cursors.kill_all(|owner, transaction| {
            owner.session.as_ref() == Some(&self.session) && transaction == Some(self.number)
        });
    }
}

/// Returns the error for one cursor too many. It ends the cursor's transaction, which the client then retries.
fn refused(refusal: Refusal, in_transaction: bool) -> Error {
    let text = match refusal {
        Refusal::All(most) => format!("{most} cursors are open already"),
        Refusal::User(own) => format!(
            "this user has {own} cursors open already: a user holds at most three quarters of what others leave of \
             'mongo-max-cursors'"
        ),
    };
    let error = Error::new(Code::OPERATION_FAILED, text);
    if in_transaction { error.with_label(TRANSIENT_TRANSACTION) } else { error }
}

fn is_stale(slot: &Slot, now: Instant, idle: Duration) -> bool {
    matches!(slot, Slot::Resting { cursor, since, .. } if !cursor.keep && now.duration_since(*since) >= idle)
}

/// Takes out cursors that have been idle for that time, at most so many.
fn stale(slots: &mut HashMap<i64, Slot>, now: Instant, idle: Duration, most: usize) -> Vec<Cursor> {
    let cursor = |(_, slot)| match slot {
        Slot::Resting { cursor, .. } => Some(*cursor),
        Slot::InUse { .. } => None,
    };
    slots.extract_if(|_, slot| is_stale(slot, now, idle)).filter_map(cursor).take(most).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::protocol::limits::Limits;

    const IDLE_MAX: Duration = Duration::from_mins(10);

    fn cursors() -> Cursors {
        Cursors::new(&Shares::new(&Limits::default()))
    }

    fn session(byte: u8) -> SessionId {
        SessionId { uuid: [byte; 16], user: [0; 32] }
    }

    pub(crate) fn cursor(byte: u8, keep: bool) -> Cursor {
        let owner = Owner { session: Some(session(byte)), user: [0; 32] };
        let rest = Remaining::List(VecDeque::new());
        Cursor {
            namespace: "db.coll".into(),
            owner,
            _session: None,
            rest,
            keep,
            transaction: None,
            time_left: None,
            needs: Arc::default(),
            command_bytes: 0,
        }
    }

    fn code(result: Result<Box<Cursor>>) -> Option<i32> {
        result.err().map(|error| error.code.0)
    }

    #[tokio::test]
    async fn a_cursor_is_used_by_one_request_at_a_time() {
        let cursors = cursors();
        let id = cursors.keep(cursor(1, false), IDLE_MAX).unwrap();
        let taken = cursors.take(id, IDLE_MAX).unwrap();
        assert_eq!(code(cursors.take(id, IDLE_MAX)), Some(12051));
        assert!(cursors.put_back(id, taken));
        let taken = cursors.take(id, IDLE_MAX).unwrap();
        assert!(cursors.kill(id, Some(&[0; 32])));
        assert!(!cursors.put_back(id, taken), "killed while in use");
        assert_eq!(code(cursors.take(id, IDLE_MAX)), Some(43));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_cursors_are_closed_unless_they_are_to_be_kept() {
        let cursors = cursors();
        let idle = cursors.keep(cursor(1, false), IDLE_MAX).unwrap();
        let kept = cursors.keep(cursor(1, true), IDLE_MAX).unwrap();
        tokio::time::advance(IDLE_MAX + Duration::from_secs(1)).await;
        assert_eq!(code(cursors.take(idle, IDLE_MAX)), Some(43));
        assert_eq!(cursors.timed_out.get(), 1);
        let sweep_result = cursors.sweep(Instant::now(), IDLE_MAX, 10);
        assert!(sweep_result.expired.is_empty() && sweep_result.next_due.is_none());
        assert_eq!(cursors.figures(), CursorFigures { open: 1, kept: 1 });
        assert!(!cursors.kill(kept, Some(&[1; 32])), "another user's");
        assert!(cursors.kill(kept, Some(&[0; 32])));
    }

    #[tokio::test]
    async fn a_session_takes_its_cursors_along() {
        let cursors = cursors();
        let (mine, other) = (
            cursors.keep(cursor(1, false), IDLE_MAX).unwrap(),
            cursors.keep(cursor(2, false), IDLE_MAX).unwrap(),
        );
        cursors.kill_of_session(&session(1));
        assert!(!cursors.kill(mine, Some(&[0; 32])) && cursors.kill(other, Some(&[0; 32])));
    }

    #[tokio::test]
    async fn cursors_of_transactions_count_with_them() {
        let cursors = cursors();
        let part =
            |byte, command_bytes| Cursor { transaction: Some(1), command_bytes, ..cursor(byte, false) };
        for cursor in [part(1, 5000), part(1, 300), part(2, 7000)] {
            cursors.keep(cursor, IDLE_MAX).unwrap();
        }
        let alone = cursors.keep(cursor(1, false), IDLE_MAX).unwrap();
        assert_eq!(cursors.largest_idle(&[0; 32]), Some((alone, IDLE_BASE_BYTES)));
        let bytes = cursors.bytes_in_transactions(&[0; 32]);
        assert_eq!(
            (bytes[&session(1)], bytes[&session(2)]),
            (2 * IDLE_BASE_BYTES + 5300, IDLE_BASE_BYTES + 7000)
        );
        assert!(cursors.bytes_in_transactions(&[1; 32]).is_empty(), "another user's");
    }
}
