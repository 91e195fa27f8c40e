//! All sessions that have not ended, and which of them ends for a new one.
//!
//! A user holds at most three quarters of what other users leave of all sessions (see `shares`). A user that holds its share
//! loses a session for each new one: the least recently used of its own that no command uses and that has no cursor and no
//! open transaction. Its client does not notice, since the next command in it creates it again. If there is none, the new
//! session is refused. Other users lose nothing.
//!
//! Every command passes here, so nothing that clients can repeat takes longer the more sessions there are: one order of all
//! sessions says which has expired, and one of each user's says which ends next.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use mql::Code;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::protocol::error::{Error, Result};
use crate::session::shares::{HeldKind, Refusal, Share, Shares, UserDigest};
use crate::session::sweep_result::SweepResult;
use crate::session::{SESSION_LIFETIME, Session, SessionId};

/// How many sessions are considered for replacement at most. Those that hold something are considered again after all
/// others of their user.
const CONSIDERED_MAX: usize = 64;

/// How many sessions of one user are listed or ended at once: every command waits for the lock meanwhile.
const STEP: usize = 1000;

/// All sessions that have not ended.
#[derive(Debug)]
pub(crate) struct Sessions {
    shares: Arc<Shares>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<SessionId, Entry>,
    /// In the order of their last uses.
    by_use: BTreeMap<u64, SessionId>,
    /// The sessions of each user, in the order in which they are replaced.
    by_turn: BTreeMap<(UserDigest, u64), [u8; 16]>,
    /// How many numbers have been given to uses and turns.
    numbers: u64,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    use_number: u64,
    turn: u64,
    share: Share,
}

impl Sessions {
    pub(crate) fn new(shares: &Arc<Shares>) -> Sessions {
        Sessions { shares: Arc::clone(shares), known: Mutex::default() }
    }

    /// Returns the session of that name, created if necessary, and marks it as used. Also returns the session that has ended
    /// for a new one, for the caller to clean up.
    pub(crate) fn touch(&self, id: SessionId, now: Instant) -> Result<(Arc<Session>, Option<Arc<Session>>)> {
        let mut known = self.known.lock();
        if let Some(session) = known.renew(&id, now) {
            return Ok((session, None));
        }
        let (share, replaced) = match self.shares.hold(HeldKind::Session, id.user) {
            Ok(share) => (share, None),
            Err(refusal) => {
                // The share goes over: a user whose share has shrunk meanwhile keeps what it has.
                let entry = known.take_replaceable(&id.user).ok_or_else(|| refused(refusal))?;
                (entry.share, Some(entry.session))
            }
        };
        Ok((known.insert(id, now, share), replaced))
    }

    /// Forgets the sessions that `which` selects.
    pub(crate) fn end(&self, which: impl Fn(&SessionId) -> bool) -> Vec<Arc<Session>> {
        let mut known = self.known.lock();
        let ids: Vec<SessionId> = known.by_id.keys().filter(|id| which(id)).cloned().collect();
        known.take(&ids)
    }

    /// Forgets the sessions with these ids.
    pub(crate) fn end_named(&self, ids: &[SessionId]) -> Vec<Arc<Session>> {
        ids.chunks(STEP).flat_map(|ids| self.known.lock().take(ids)).collect()
    }

    /// Forgets sessions that have exceeded their lifetime and that no command uses, at most so many.
    pub(crate) fn sweep(&self, now: Instant, most: usize) -> SweepResult<Arc<Session>> {
        let mut known = self.known.lock();
        let (mut expired, mut next_due) = (Vec::new(), None::<Instant>);
        for id in known.by_use.values() {
            let Some(Entry { session, .. }) = known.by_id.get(id) else { continue };
            // A session in use ends no earlier than its command. There are no more of these than connections.
            let used = if session.is_in_use() { now } else { *session.used.lock() };
            let due = used + SESSION_LIFETIME;
            if due <= now && expired.len() < most {
                expired.push(id.clone());
                continue;
            }
            next_due = Some(next_due.map_or(due, |next| next.min(due)));
            if !session.is_in_use() {
                break;
            }
        }
        SweepResult { expired: known.take(&expired), next_due }
    }

    /// Returns the ids of a user's sessions. One that is used meanwhile has another turn, and is found there.
    pub(crate) fn list_of(&self, user: &UserDigest) -> Vec<SessionId> {
        let (mut listed, mut seen, mut from) = (Vec::new(), HashSet::new(), 0);
        loop {
            let page: Vec<_> = self.known.lock().of_user(user, from).take(STEP).collect();
            let Some((last, _)) = page.last() else { return listed };
            from = last + 1;
            let new = page.into_iter().map(|(_, uuid)| uuid).filter(|uuid| seen.insert(*uuid));
            listed.extend(new.map(|uuid| SessionId { uuid, user: *user }));
        }
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.known.lock().by_id.len()
    }
}

impl Known {
    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Marks a known session as used, and returns it.
    fn renew(&mut self, id: &SessionId, now: Instant) -> Option<Arc<Session>> {
        let number = self.next_number();
        let entry = self.by_id.get_mut(id)?;
        self.by_use.remove(&entry.use_number);
        self.by_turn.remove(&(id.user, entry.turn));
        (entry.use_number, entry.turn) = (number, number);
        *entry.session.used.lock() = now;
        self.by_use.insert(number, id.clone());
        self.by_turn.insert((id.user, number), id.uuid);
        Some(Arc::clone(&entry.session))
    }

    fn insert(&mut self, id: SessionId, now: Instant, share: Share) -> Arc<Session> {
        let number = self.next_number();
        let session = Arc::new(Session { id: id.clone(), used: Mutex::new(now) });
        self.by_use.insert(number, id.clone());
        self.by_turn.insert((id.user, number), id.uuid);
        let entry = Entry { session: Arc::clone(&session), use_number: number, turn: number, share };
        self.by_id.insert(id, entry);
        session
    }

    fn remove(&mut self, id: &SessionId) -> Option<Entry> {
        let entry = self.by_id.remove(id)?;
        self.by_use.remove(&entry.use_number);
        self.by_turn.remove(&(id.user, entry.turn));
        Some(entry)
    }

    fn take(&mut self, ids: &[SessionId]) -> Vec<Arc<Session>> {
        ids.iter().filter_map(|id| self.remove(id)).map(|entry| entry.session).collect()
    }

    /// Returns the turns and names of a user's sessions from a turn on, in the order of their turns.
    fn of_user(&self, user: &UserDigest, from: u64) -> impl Iterator<Item = (u64, [u8; 16])> {
        let turns = self.by_turn.range((*user, from)..=(*user, u64::MAX));
        turns.map(|(&(_, turn), &uuid)| (turn, uuid))
    }

    /// Takes out the session of a user that a new one may replace.
    fn take_replaceable(&mut self, user: &UserDigest) -> Option<Entry> {
        for _ in 0..CONSIDERED_MAX {
            let (turn, uuid) = self.of_user(user, 0).next()?;
            let id = SessionId { uuid, user: *user };
            let number = self.next_number();
            let entry = self.by_id.get_mut(&id)?;
            if !entry.session.is_in_use() && !entry.session.holds_something() {
                return self.remove(&id);
            }
            entry.turn = number;
            self.by_turn.remove(&(*user, turn));
            self.by_turn.insert((*user, number), uuid);
        }
        None
    }
}

/// Returns the error for one session too many.
fn refused(refusal: Refusal) -> Error {
    let text = match refusal {
        Refusal::All(most) => format!("cannot add session to the cache: there are {most} already"),
        Refusal::User(own) => format!(
            "cannot add session to the cache: this user has {own} already, and a user holds at most three quarters of what \
             others leave; those that are in use, or have cursors or transactions, are not replaced"
        ),
    };
    Error::new(Code::TOO_MANY_LOGICAL_SESSIONS, text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::limits::Limits;

    fn sessions(most: usize) -> Sessions {
        Sessions::new(&Shares::new(&Limits { sessions: most, ..Limits::default() }))
    }

    fn id(byte: u8) -> SessionId {
        of(0, byte)
    }

    fn of(user: u8, byte: u8) -> SessionId {
        SessionId { uuid: [byte; 16], user: [user; 32] }
    }

    /// Which sessions of a user there are, in the order of their turns.
    fn left(sessions: &Sessions, user: u8) -> Vec<u8> {
        sessions.list_of(&[user; 32]).iter().map(|id| id.uuid[0]).collect()
    }

    #[test]
    fn a_session_is_remembered_for_half_an_hour_after_its_last_use() {
        let sessions = sessions(100);
        let start = Instant::now();
        let at = |minutes| start + Duration::from_mins(minutes);
        let touch = |byte, minutes| drop(sessions.touch(id(byte), at(minutes)).unwrap());
        let sweep = |minutes| {
            let SweepResult { expired, next_due } = sessions.sweep(at(minutes), 100);
            (expired.iter().map(|session| session.id.uuid[0]).collect::<Vec<_>>(), next_due)
        };
        assert_eq!(sweep(0), (vec![], None));
        touch(1, 0);
        touch(1, 20);
        touch(2, 20);
        touch(2, 49);
        touch(3, 50);
        assert_eq!(sweep(49), (vec![], Some(at(50))));
        assert_eq!(sweep(50), (vec![1], Some(at(79))));
        assert_eq!(sessions.count(), 2);
        assert_eq!(sessions.end(|id| id.uuid[0] == 2).len(), 1);
        assert_eq!(sessions.count(), 1);
    }

    #[test]
    fn a_session_that_a_command_uses_for_long_is_not_due_before_a_lifetime_has_passed() {
        let sessions = sessions(100);
        let start = Instant::now();
        let (used, _) = sessions.touch(id(1), start).unwrap();
        let later = start + 2 * SESSION_LIFETIME;
        let sweep_result = sessions.sweep(later, 100);
        assert!(sweep_result.expired.is_empty());
        assert_eq!(
            sweep_result.next_due,
            Some(later + SESSION_LIFETIME),
            "the step does not run again and again"
        );
        drop(used);
        assert_eq!(sessions.sweep(later, 100).expired.len(), 1);
    }

    #[test]
    fn a_user_at_its_share_loses_its_own_session_that_was_not_used_for_longest() {
        let (sessions, now) = (sessions(8), Instant::now());
        let touch = |user, byte| sessions.touch(of(user, byte), now).map(|(_, replaced)| replaced.is_some());
        for byte in 1..=6 {
            assert_eq!(touch(1, byte), Ok(false));
        }
        assert_eq!(touch(1, 1), Ok(false), "it is known, and the last that was used");
        assert_eq!((touch(1, 7), touch(1, 8)), (Ok(true), Ok(true)));
        assert_eq!(left(&sessions, 1), [4, 5, 6, 1, 7, 8]);
        assert_eq!((touch(2, 1), touch(2, 2), touch(2, 3)), (Ok(false), Ok(false), Ok(true)));
        assert_eq!(left(&sessions, 2), [2, 3], "the other user has three quarters of what is left");
        assert_eq!(left(&sessions, 1).len(), 6, "and takes none from the first");
        assert_eq!(sessions.end_named(&[of(1, 4), of(2, 2), of(2, 3), of(2, 4)]).len(), 3);
        assert_eq!((touch(1, 9), sessions.count()), (Ok(false), 6), "there is room again");
    }

    #[test]
    fn a_session_that_is_in_use_or_holds_something_is_not_replaced() {
        let (sessions, now) = (sessions(4), Instant::now());
        let (used, _) = sessions.touch(id(1), now).unwrap();
        let hold = sessions.touch(id(2), now).unwrap().0.hold();
        sessions.touch(id(3), now).unwrap();
        for byte in 4..=200 {
            let (_, replaced) = sessions.touch(id(byte), now).unwrap();
            assert_eq!(replaced.unwrap().id, id(byte - 1));
        }
        let last = sessions.touch(id(200), now).unwrap().0;
        let refused = sessions.touch(id(201), now).unwrap_err();
        assert_eq!(refused.code, Code::TOO_MANY_LOGICAL_SESSIONS);
        assert!(sessions.touch(of(1, 1), now).is_ok(), "another user's session is not refused");
        assert!(
            sessions.sweep(now + SESSION_LIFETIME, 10).expired.iter().any(|it| it.id == id(2)),
            "it expires"
        );
        drop((used, hold, last));
        assert!(sessions.touch(id(201), now).is_ok());
    }

    /// Both take several steps, and a session that is used between them is neither missed nor listed twice.
    #[test]
    fn many_sessions_are_listed_and_ended_in_steps() {
        let (sessions, now) = (sessions(10_000), Instant::now());
        let number = |number: usize| SessionId {
            uuid: std::array::from_fn(|at| if at < 8 { number.to_be_bytes()[at] } else { 0 }),
            user: [0; 32],
        };
        for at in 0..5 * STEP / 2 {
            sessions.touch(number(at), now).unwrap();
        }
        sessions.touch(of(1, 1), now).unwrap();
        for at in (0..STEP).rev() {
            sessions.touch(number(at), now).unwrap();
        }
        let mut listed = sessions.list_of(&[0; 32]);
        assert_eq!((listed.len(), &listed[listed.len() - 1]), (5 * STEP / 2, &number(0)));
        assert_eq!(sessions.end_named(&listed).len(), listed.len());
        listed.sort_by_key(|id| id.uuid);
        listed.dedup();
        assert_eq!((listed.len(), sessions.count()), (5 * STEP / 2, 1));
    }

    /// With all of a user's sessions in use, a further one costs no more than a few looks.
    #[test]
    fn sessions_that_are_not_replaced_are_considered_in_turns() {
        let (sessions, now) = (sessions(1000), Instant::now());
        let number = |number: u16| SessionId {
            uuid: std::array::from_fn(|at| if at < 2 { number.to_be_bytes()[at] } else { 0 }),
            user: [0; 32],
        };
        let mut holds: Vec<_> =
            (0..750).map(|at| Some(sessions.touch(number(at), now).unwrap().0.hold())).collect();
        assert!(sessions.touch(number(900), now).is_err());
        holds[700] = None;
        let refusals = (0..1000).take_while(|_| sessions.touch(number(900), now).is_err()).count();
        assert!((1..750 / CONSIDERED_MAX + 1).contains(&refusals), "{refusals}");
        assert_eq!(sessions.count(), 750);
    }
}
