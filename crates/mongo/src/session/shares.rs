//! What users hold between two requests: sessions, cursors, transactions, and the memory of the last two.
//!
//! Admission control does not bound these, since nothing runs. Each is limited for all users together, and one rule shares
//! it: **a user holds at most three quarters of what the others leave.**
//!
//! ```text
//!   of 10,000 cursors    alone 7,500    a second user beside it 1,875    a third 469    a fourth 117 ...
//! ```
//!
//! So a user that takes all it can leaves something to the next one, whichever comes first, and a server with one user
//! loses no more than a quarter. No user loses anything because of others: a share only bounds what is added.
//!
//! Cursors and transactions are refused beyond a share; a new session replaces one of the same user (`sessions`). Bytes cannot be, as they are known only when a request
//! has ended: then the server ends the largest idle one of the same user (`Service::make_room`). Until that has brought the
//! user within its share, its excess takes nothing from the shares of others: they see the bytes that were *granted*.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::diagnostics::statistics::Counter;
use crate::protocol::limits::Limits;

/// The digest of a user; zeros for clients that have not authenticated.
pub(crate) type UserDigest = [u8; 32];

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldKind {
    Cursor,
    Session,
    Transaction,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amounts {
    cursors: usize,
    sessions: usize,
    transactions: usize,
    bytes: usize,
    /// The bytes that reduce the shares of others: those held when that was last within the share, or fewer.
    granted: usize,
}

impl Amounts {
    fn of(&mut self, what: HeldKind) -> &mut usize {
        match what {
            HeldKind::Cursor => &mut self.cursors,
            HeldKind::Session => &mut self.sessions,
            HeldKind::Transaction => &mut self.transactions,
        }
    }
}

#[derive(Debug, Default)]
struct Totals {
    all: Amounts,
    by_user: HashMap<UserDigest, Amounts>,
}

/// What all users hold.
#[derive(Debug)]
pub(crate) struct Shares {
    most: Amounts,
    held: Mutex<Totals>,
    /// Cursors and transactions that were ended because of what their user held.
    pub(crate) ended: Counter,
}

/// Why a user may hold no further cursor, session or transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There are as many as there may be.
    All(usize),
    /// The user has this many, which is its share.
    User(usize),
}

/// Returns what a user may hold if others hold that much: three quarters of what they leave, and one at least as long as there is one.
fn share(most: usize, others: usize) -> usize {
    let left = most.saturating_sub(others);
    left - left / 4
}

impl Shares {
    pub(crate) fn new(limits: &Limits) -> Arc<Shares> {
        let most = Amounts {
            cursors: limits.cursors,
            sessions: limits.sessions,
            transactions: limits.transactions,
            bytes: limits.idle_bytes,
            granted: limits.idle_bytes,
        };
        Arc::new(Shares { most, held: Mutex::default(), ended: Counter::default() })
    }

    /// Counts one more for a user, until the returned value is dropped.
    pub(crate) fn hold(self: &Arc<Self>, what: HeldKind, user: UserDigest) -> Result<Share, Refusal> {
        let mut held = self.held.lock();
        let (most, all) = (*{ self.most }.of(what), *held.all.of(what));
        let own = *held.by_user.entry(user).or_default().of(what);
        let refusal = if all >= most {
            Some(Refusal::All(most))
        } else {
            (own >= share(most, all - own)).then_some(Refusal::User(own))
        };
        if let Some(refusal) = refusal {
            held.forget_if_empty(&user);
            return Err(refusal);
        }
        *held.all.of(what) += 1;
        *held.by_user.entry(user).or_default().of(what) += 1;
        Ok(Share { shares: Arc::clone(self), what, user, bytes: 0 })
    }

    /// Grants a user the bytes that it holds; false if they are more than its share.
    pub(crate) fn grant(&self, user: &UserDigest) -> bool {
        let mut held = self.held.lock();
        let Totals { all, by_user } = &mut *held;
        let Some(own) = by_user.get_mut(user) else { return true };
        let others = all.granted - own.granted;
        let fits = own.bytes <= share(self.most.granted, others);
        if fits {
            own.granted = own.bytes;
            all.granted = others + own.granted;
        }
        fits
    }

    /// Bytes that rest in cursors and transactions.
    pub(crate) fn bytes(&self) -> usize {
        self.held.lock().all.bytes
    }
}

impl Totals {
    /// Replaces bytes that a user holds by others. Additional bytes have yet to be granted; fewer are given back at once.
    fn set_bytes(&mut self, user: &UserDigest, from: usize, to: usize) {
        self.all.bytes = self.all.bytes - from + to;
        let own = self.by_user.entry(*user).or_default();
        own.bytes = own.bytes - from + to;
        let given_back = own.granted.saturating_sub(own.bytes);
        own.granted -= given_back;
        self.all.granted -= given_back;
    }

    fn forget_if_empty(&mut self, user: &UserDigest) {
        if self.by_user.get(user) == Some(&Amounts::default()) {
            self.by_user.remove(user);
        }
    }
}

/// A cursor, a session or a transaction, as it counts.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    what: HeldKind,
    user: UserDigest,
    bytes: usize,
}

impl Share {
    /// Returns how many bytes it counts for.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts it for so many bytes from now on.
    pub(crate) fn set_bytes(&mut self, bytes: usize) {
        self.shares.held.lock().set_bytes(&self.user, self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.shares.held.lock();
        held.set_bytes(&self.user, self.bytes, 0);
        *held.all.of(self.what) -= 1;
        if let Some(own) = held.by_user.get_mut(&self.user) {
            *own.of(self.what) -= 1;
        }
        held.forget_if_empty(&self.user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(cursors: usize, idle_bytes: usize) -> Arc<Shares> {
        Shares::new(&Limits { cursors, idle_bytes, ..Limits::default() })
    }

    /// Takes as many as there are for a user.
    fn take_all(shares: &Arc<Shares>, user: u8) -> Vec<Share> {
        std::iter::from_fn(|| shares.hold(HeldKind::Cursor, [user; 32]).ok()).collect()
    }

    #[test]
    fn a_user_holds_three_quarters_of_what_others_leave() {
        let shares = shares(10_000, 0);
        let held: Vec<Vec<Share>> = (0..4).map(|user| take_all(&shares, user)).collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [7_500, 1_875, 469, 117]);
        assert_eq!(shares.hold(HeldKind::Cursor, [0; 32]).unwrap_err(), Refusal::User(7_500));
        drop(held);
        assert_eq!(take_all(&shares, 9).len(), 7_500, "everything was given back");
        assert!(shares.held.lock().by_user.is_empty(), "and nothing is remembered");
    }

    #[test]
    fn one_user_alone_has_all_of_a_small_number() {
        for (most, alone) in [(1, 1), (2, 2), (3, 3), (4, 3), (8, 6)] {
            assert_eq!(take_all(&shares(most, 0), 1).len(), alone, "of {most}");
        }
    }

    #[test]
    fn bytes_are_shared_by_the_same_rule() {
        let shares = shares(100, 1_000);
        let mut first = shares.hold(HeldKind::Cursor, [1; 32]).unwrap();
        let mut second = shares.hold(HeldKind::Transaction, [2; 32]).unwrap();
        first.set_bytes(750);
        assert!(shares.grant(&[1; 32]));
        first.set_bytes(751);
        assert!(!shares.grant(&[1; 32]));
        first.set_bytes(750);
        second.set_bytes(189);
        assert!(!shares.grant(&[2; 32]) && shares.bytes() == 939);
        drop(first);
        assert!(shares.grant(&[2; 32]) && shares.bytes() == 189);
    }

    #[test]
    fn what_a_user_holds_in_excess_takes_nothing_from_others() {
        let shares = shares(100, 1_000);
        let mut small = shares.hold(HeldKind::Cursor, [1; 32]).unwrap();
        let mut greedy = shares.hold(HeldKind::Cursor, [2; 32]).unwrap();
        small.set_bytes(50);
        greedy.set_bytes(10_000);
        assert!(shares.grant(&[1; 32]) && !shares.grant(&[2; 32]));
        greedy.set_bytes(712);
        assert!(shares.grant(&[2; 32]), "three quarters of the 950 that are left");
        small.set_bytes(300);
        assert!(!shares.grant(&[1; 32]), "what was granted counts");
        drop((small, greedy));
        assert!(shares.held.lock().all == Amounts::default());
    }
}
