//! Receipts of the statements that sessions have run, so that a client that lost an answer may repeat a statement and it does not
//! run twice.
//!
//! A session numbers its writes. The receipt of a statement is written in the same commit as its changes; it is needed until the
//! session's next write. Nearly every write has one statement and a short answer, so these receipts are in the session's own
//! record, which is rewritten anyway: one entry for each write.
//!
//! ```text
//! receipt keyspace
//!   10 length u8, session                                    number i64, last use u64 (minutes), spilled u8,
//!                                                            then for each receipt: statement i32, answer
//!   20 length u8, session, number i64, statement i32         answer that does not fit into the record (its flag spilled is set)
//!   30 last use u64 (minutes), session                       empty: the order in which sessions are removed
//!   answer: 00, or 01 length u32 BSON
//! ```
//!
//! Sessions are removed half an hour after their last use, the timeout that clients get. This counts real time: a test clock that
//! is advanced by a year does not make a client's repetition a new write (T29).

use bson::RawDocument;
use bytes::Bytes;
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Time, Transaction, transact};

use crate::Engine;
use crate::types::error::{Error, Result};
use crate::types::limits::{RECEIPTS_INLINE_BYTES, SESSION_BYTES_MAX};

const SESSION: u8 = 0x10;
const SPILLED: u8 = 0x20;
const LAST_USE: u8 = 0x30;

/// How long a session is kept, and the precision of its last use.
const REMEMBERED_MINUTES: u64 = 30;
const MINUTE_MS: u64 = 60_000;
/// The most obsolete receipts that one write removes.
const CLEARED_MAX: usize = 128;

/// One statement of a session that must not run twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The session, as the front end tells sessions apart; up to 128 bytes.
    pub session: Vec<u8>,
    /// The session's number of the write.
    pub number: i64,
    /// The statement within it.
    pub statement: i32,
}

/// Statements of one write of a session, one for each document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipts {
    /// The session, as the front end tells sessions apart; up to 128 bytes.
    pub session: Vec<u8>,
    /// The session's number of the write.
    pub number: i64,
    /// The statement of each document.
    pub statements: Vec<i32>,
}

/// The answer of a statement.
type Answer = Option<RawDocument>;

/// The receipts of one session within a transaction.
pub(super) struct Ledger {
    session: Vec<u8>,
    number: i64,
    /// Minutes.
    last_use: Option<u64>,
    spilled: bool,
    inline: Vec<(i32, Answer)>,
    changed: bool,
}

impl Engine {
    /// Returns whether a statement has run and its receipt is kept.
    pub fn is_recorded(&self, receipt: &Receipt) -> Result<bool> {
        let snapshot = self.store.snapshot()?;
        let Some(bytes) = snapshot.get(Keyspace::Receipt, &session_key(&receipt.session))? else {
            return Ok(false);
        };
        let ledger = Ledger::decode(&receipt.session, &bytes)
            .ok_or_else(|| Error::Corrupt("the record of a session".into()))?;
        Ok(ledger.number == receipt.number && ledger.recorded(&*snapshot, receipt.statement)?.is_some())
    }
}

impl Ledger {
    /// Opens a session for a write of that number.
    pub(super) fn open(tx: &mut Transaction<'_>, session: &[u8], number: i64) -> Result<Ledger> {
        if session.len() > SESSION_BYTES_MAX {
            let (actual, limit) = (session.len(), SESSION_BYTES_MAX);
            return Err(Error::TooLarge { what: "the name of the session", actual, limit });
        }
        let session = session.to_vec();
        let fresh =
            Ledger { session, number, last_use: None, spilled: false, inline: Vec::new(), changed: false };
        let Some(bytes) = tx.get(Keyspace::Receipt, &session_key(&fresh.session))? else { return Ok(fresh) };
        let known = Ledger::decode(&fresh.session, &bytes)
            .ok_or_else(|| Error::Corrupt("the record of a session".into()))?;
        if number < known.number {
            return Err(Error::TooOld { number, last: known.number });
        }
        if number == known.number {
            return Ok(known);
        }
        let spilled = known.spilled && clear_spilled(tx, &known.session, CLEARED_MAX)? == CLEARED_MAX;
        Ok(Ledger { last_use: known.last_use, spilled, ..fresh })
    }

    /// Returns the answer of a statement, if it has run.
    pub(super) fn recorded(&self, reader: &dyn Read, statement: i32) -> Result<Option<Answer>> {
        if let Some((_, answer)) = self.inline.iter().find(|(known, _)| *known == statement) {
            return Ok(Some(answer.clone()));
        }
        if !self.spilled {
            return Ok(None);
        }
        let Some(bytes) = reader.get(Keyspace::Receipt, &self.spilled_key(statement))? else {
            return Ok(None);
        };
        let mut rest = bytes;
        let answer = take_answer(&mut rest).filter(|_| rest.is_empty());
        answer.map(Some).ok_or_else(|| Error::Corrupt("a receipt".into()))
    }

    /// Records the receipt of a statement that has run.
    pub(super) fn record(&mut self, tx: &mut Transaction<'_>, statement: i32, answer: Answer) {
        self.changed = true;
        let size = |answer: &Answer| 9 + answer.as_ref().map_or(0, |answer| answer.as_bytes().len());
        let taken: usize = self.inline.iter().map(|(_, answer)| size(answer)).sum();
        if taken + size(&answer) <= RECEIPTS_INLINE_BYTES {
            self.inline.push((statement, answer));
            return;
        }
        self.spilled = true;
        let mut value = Vec::new();
        put_answer(&mut value, &answer);
        tx.put(Keyspace::Receipt, self.spilled_key(statement), value);
    }

    /// Writes the session's record, if a receipt was recorded. Returns when the session may be removed, in the store's
    /// time, if that has changed.
    pub(super) fn close(self, tx: &mut Transaction<'_>) -> Option<Time> {
        if !self.changed {
            return None;
        }
        let minute = tx.real_time().millis() / MINUTE_MS;
        tx.put(Keyspace::Receipt, session_key(&self.session), self.encode(minute));
        if self.last_use == Some(minute) {
            return None;
        }
        if let Some(before) = self.last_use {
            tx.remove(Keyspace::Receipt, last_use_key(before, &self.session));
        }
        tx.put(Keyspace::Receipt, last_use_key(minute, &self.session), Vec::new());
        let advanced_ms = tx.time().millis() - tx.real_time().millis();
        Some(Time::from_millis(forgotten_at(minute)).plus_millis(advanced_ms))
    }

    fn spilled_key(&self, statement: i32) -> Vec<u8> {
        let mut key = named(SPILLED, &self.session);
        key.extend_from_slice(&self.number.to_be_bytes());
        key.extend_from_slice(&statement.to_be_bytes());
        key
    }

    fn encode(&self, minute: u64) -> Vec<u8> {
        let mut bytes = self.number.to_be_bytes().to_vec();
        bytes.extend_from_slice(&minute.to_be_bytes());
        bytes.push(u8::from(self.spilled));
        for (statement, answer) in &self.inline {
            bytes.extend_from_slice(&statement.to_be_bytes());
            put_answer(&mut bytes, answer);
        }
        bytes
    }

    fn decode(session: &[u8], bytes: &Bytes) -> Option<Ledger> {
        let (number, rest) = bytes.split_first_chunk()?;
        let (minute, rest) = rest.split_first_chunk()?;
        let (spilled, rest) = rest.split_first()?;
        let mut rest = bytes.slice_ref(rest);
        let mut inline = Vec::new();
        while let Some((statement, _)) = rest.split_first_chunk::<4>() {
            let statement = i32::from_be_bytes(*statement);
            rest = rest.slice(4..);
            inline.push((statement, take_answer(&mut rest)?));
        }
        rest.is_empty().then(|| Ledger {
            session: session.to_vec(),
            number: i64::from_be_bytes(*number),
            last_use: Some(u64::from_be_bytes(*minute)),
            spilled: *spilled != 0,
            inline,
            changed: false,
        })
    }
}

fn put_answer(out: &mut Vec<u8>, answer: &Answer) {
    match answer {
        None => out.push(0),
        Some(answer) => {
            out.push(1);
            out.extend_from_slice(&(answer.as_bytes().len() as u32).to_be_bytes());
            out.extend_from_slice(answer.as_bytes());
        }
    }
}

/// Takes an answer from the front of the bytes.
fn take_answer(bytes: &mut Bytes) -> Option<Answer> {
    match bytes.first()? {
        0 => {
            *bytes = bytes.slice(1..);
            Some(None)
        }
        1 => {
            let length = u32::from_be_bytes(*bytes.get(1..)?.first_chunk()?) as usize;
            let end = length.checked_add(5).filter(|end| *end <= bytes.len())?;
            let answer = RawDocument::from_stored(bytes.slice(5..end)).ok()?;
            *bytes = bytes.slice(end..);
            Some(Some(answer))
        }
        _ => None,
    }
}

fn named(tag: u8, session: &[u8]) -> Vec<u8> {
    [&[tag, session.len() as u8], session].concat()
}

fn session_key(session: &[u8]) -> Vec<u8> {
    named(SESSION, session)
}

fn last_use_key(minute: u64, session: &[u8]) -> Vec<u8> {
    [&[LAST_USE], &minute.to_be_bytes()[..], session].concat()
}

/// Returns when a session that was last used in a minute may be removed: milliseconds of real time.
fn forgotten_at(minute: u64) -> u64 {
    (minute.saturating_add(REMEMBERED_MINUTES + 1)).saturating_mul(MINUTE_MS)
}

/// Removes a session's receipts that have entries of their own; returns how many.
fn clear_spilled(tx: &mut Transaction<'_>, session: &[u8], limit: usize) -> Result<usize> {
    let range = KeyRange::prefix(named(SPILLED, session));
    let scan = tx.scan(Keyspace::Receipt, range, Direction::Forward).take(limit);
    let doomed = scan.map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>>>()?;
    let count = doomed.len();
    for key in doomed {
        tx.remove(Keyspace::Receipt, key.to_vec());
    }
    Ok(count)
}

/// The result of the integrity check of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReceiptEntry {
    /// It can be read, and belongs to a session.
    Whole,
    /// A session whose entry for its last use, with this key, is missing.
    Unremembered(Vec<u8>),
    /// It belongs to no session.
    Stray,
    /// It cannot be read.
    Damaged,
}

/// Checks an entry of a session.
pub(crate) fn read_receipt(reader: &dyn Read, key: &[u8], value: &Bytes) -> Result<ReceiptEntry> {
    let name = |rest: &[u8]| {
        let (length, rest) = rest.split_first()?;
        Some(rest.split_at_checked(usize::from(*length))?).map(|(name, rest)| (name.to_vec(), rest.len()))
    };
    Ok(match key.split_first() {
        Some((&SESSION, rest)) => {
            let ledger = name(rest).filter(|(_, behind)| *behind == 0);
            match ledger.and_then(|(session, _)| Ledger::decode(&session, value)) {
                Some(Ledger { session, last_use: Some(minute), .. }) => {
                    let note = last_use_key(minute, &session);
                    let is_there = reader.get(Keyspace::Receipt, &note)?.is_some();
                    if is_there { ReceiptEntry::Whole } else { ReceiptEntry::Unremembered(note) }
                }
                _ => ReceiptEntry::Damaged,
            }
        }
        Some((&SPILLED, rest)) => match name(rest).filter(|(_, behind)| *behind == 12) {
            Some((session, _)) => {
                let mut answer = value.clone();
                let is_whole = take_answer(&mut answer).is_some() && answer.is_empty();
                let has_session = reader.get(Keyspace::Receipt, &session_key(&session))?.is_some();
                match (is_whole, has_session) {
                    (false, _) => ReceiptEntry::Damaged,
                    (true, true) => ReceiptEntry::Whole,
                    (true, false) => ReceiptEntry::Stray,
                }
            }
            None => ReceiptEntry::Damaged,
        },
        Some((&LAST_USE, rest)) => match rest.split_first_chunk() {
            Some((minute, session)) => {
                let stored = reader.get(Keyspace::Receipt, &session_key(session))?;
                let last_use = stored.and_then(|bytes| Ledger::decode(session, &bytes)?.last_use);
                let is_last = last_use == Some(u64::from_be_bytes(*minute));
                if is_last { ReceiptEntry::Whole } else { ReceiptEntry::Stray }
            }
            None => ReceiptEntry::Damaged,
        },
        _ => ReceiptEntry::Damaged,
    })
}

/// The result of a step that removes sessions.
pub(crate) struct Forgotten {
    /// Entries removed.
    pub(crate) entries: u64,
    /// When there is more to do, in the store's time.
    pub(crate) next_due: Option<Time>,
}

impl Engine {
    /// Removes sessions that were not used for half an hour: at most about `limit` entries.
    pub(crate) fn forget_sessions(&self, limit: usize) -> Result<Forgotten> {
        let clock = self.store.clock_status()?;
        let real_now = clock.now.millis().saturating_sub(clock.advanced_ms);
        let first = first_to_forget(&*self.store.snapshot()?)?;
        let Some((minute, _)) = first else { return Ok(Forgotten { entries: 0, next_due: None }) };
        let due = Time::from_millis(forgotten_at(minute)).plus_millis(clock.advanced_ms);
        if forgotten_at(minute) > real_now {
            return Ok(Forgotten { entries: 0, next_due: Some(due) });
        }
        let limit = limit.max(1);
        let entries = transact(&*self.store, Lanes::all(), move |tx| forget(tx, limit)).wait()?;
        Ok(Forgotten { entries, next_due: Some(clock.now) })
    }
}

fn forget(tx: &mut Transaction<'_>, limit: usize) -> Result<u64> {
    let now = tx.real_time().millis();
    let mut removed = 0;
    while removed < limit {
        let Some((minute, session)) = first_to_forget(tx)? else { break };
        if forgotten_at(minute) > now {
            break;
        }
        let room = limit - removed;
        let cleared = clear_spilled(tx, &session, room)?;
        removed += cleared;
        if cleared == room {
            break;
        }
        tx.remove(Keyspace::Receipt, session_key(&session));
        tx.remove(Keyspace::Receipt, last_use_key(minute, &session));
        removed += 2;
    }
    Ok(removed as u64)
}

/// Returns the session whose last use is longest ago.
fn first_to_forget(reader: &dyn Read) -> Result<Option<(u64, Vec<u8>)>> {
    let range = KeyRange::prefix(vec![LAST_USE]);
    let Some(entry) = reader.scan(Keyspace::Receipt, range, Direction::Forward).next() else {
        return Ok(None);
    };
    let (key, _) = entry?;
    let parse = || {
        let (minute, session) = key.get(1..)?.split_first_chunk()?;
        Some((u64::from_be_bytes(*minute), session.to_vec()))
    };
    parse().map(Some).ok_or_else(|| Error::Corrupt("a note of a session's last use".into()))
}
