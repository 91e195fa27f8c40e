//! Records the changes of a commit for the feed of all versions: called by every write, and by every removal of an
//! expired item.
//!
//! Nothing is written where the policy, as the transaction sees it, asks for no feed. Items that expire as they are
//! written are recorded wherever instants of expiry are reported: by a feed, an archive or a deletion record.

use document::Sequence;
use storage::{Time, Transaction};

use super::codec::{self, ChangeKind};
use super::read::Manner;
use super::state::State;
use crate::access::gate::Gate;
use crate::expiry::header::{Body, Record};
use crate::keys::Key;
use crate::keys::Position;
use crate::types::error::{Error, Result};
use crate::types::events::Events;
use crate::types::lsn::WriteNumber;

/// The effect of a write on its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteEffect {
    /// It stays.
    Stays,
    /// It is overdue already, and its expiry is recorded: the transaction that wrote it also removes it. So no entry
    /// of a queue has an instant before its write, and instants are in the order of the queue.
    ExpiredOnArrival,
}

/// The bytes of an image that count as much as one entry.
const ENTRY_BYTES: usize = 4096;

/// How long trimming waits for more events, so that it does not run for each of them.
const TRIM_PAUSE_MS: u64 = 60_000;

/// Records that an item was created, or replaced another version.
pub(crate) fn written<B: Body>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    old: Option<&Record<B>>,
    new: &Record<B>,
    manner: Manner,
) -> WriteEffect {
    let sequence = new.header.sequence;
    if is_kept(gate) {
        let kind = match (old, manner) {
            (None, _) => ChangeKind::Create,
            (Some(_), Manner::Whole) => ChangeKind::Replace,
            (Some(_), Manner::Parts) => ChangeKind::Update,
        };
        put_change(tx, gate, sequence, codec::encode(kind, new, old));
    }
    on_arrival(tx, gate, new, |_| sequence)
}

/// Records the expiry of an item that is overdue when its hold is lifted: it expires now, however old its base is.
pub(crate) fn lifted<B: Body>(tx: &mut Transaction<'_>, gate: &Gate, item: &Record<B>) -> WriteEffect {
    on_arrival(tx, gate, item, |tx| Events::default().next(tx))
}

/// Records the expiry of an item that is overdue when it comes under the rules. It expires now, and does not wait for
/// the purge where instants of expiry are reported: header and policy do not have the instant at which it came under
/// the rules. Only a feed needs a sequence, which is taken only for it.
fn on_arrival<B: Body>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    item: &Record<B>,
    sequence: impl FnOnce(&mut Transaction<'_>) -> Sequence,
) -> WriteEffect {
    let time = tx.trusted_time();
    if !gate.policy.lifecycle.tells_instants() || !gate.policy.is_expired(&item.header, time) {
        return WriteEffect::Stays;
    }
    if is_kept(gate) {
        let sequence = sequence(tx);
        put_expiry(tx, gate, Position::on_arrival(time, sequence, item.number), item);
    }
    WriteEffect::ExpiredOnArrival
}

/// Records that an item was deleted. Returns how many entries' worth of work it was.
pub(crate) fn deleted<B: Body>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    write: WriteNumber,
    old: &Record<B>,
) -> usize {
    if !is_kept(gate) {
        return 0;
    }
    put_change(tx, gate, write.sequence, codec::encode_delete(write, old))
}

/// Records that an item has expired, at its instant. The code that removes an expired item calls it in the same
/// transaction. Returns how many entries' worth of work it was.
pub(crate) fn expired<B: Body>(tx: &mut Transaction<'_>, gate: &Gate, expired: &Record<B>) -> Result<usize> {
    if !is_kept(gate) {
        return Ok(0);
    }
    let Some((moment, place)) = gate.policy.expiry_of(&expired.header) else {
        return Err(Error::Corrupt(format!(
            "item {} is being removed as expired, but has not expired",
            expired.number.0
        )));
    };
    let position = Position::of_expiry(moment, place.base, expired.number);
    let state = State::load(tx, gate.partition)?.ok_or_else(no_state)?;
    // An event that is too old for the feed is not added to the trimmed part.
    if position < state.kept_from(&gate.policy, tx.trusted_time()) {
        return Ok(0);
    }
    Ok(put_expiry(tx, gate, position, expired))
}

/// Returns when what is recorded now is due to be trimmed, or `None` if nothing is recorded.
pub(crate) fn look_again(gate: &Gate, now: Time) -> Option<Time> {
    gate.policy.lifecycle.history_minutes.map(|minutes| trim_due(now, minutes))
}

/// Returns when an event of `time` is due to be trimmed.
pub(super) fn trim_due(time: Time, minutes: u32) -> Time {
    time.plus_millis(u64::from(minutes) * 60_000 + TRIM_PAUSE_MS)
}

pub(super) fn no_state() -> Error {
    Error::Corrupt("a feed of all versions without its state".into())
}

fn is_kept(gate: &Gate) -> bool {
    gate.policy.lifecycle.history_minutes.is_some()
}

fn put_change(tx: &mut Transaction<'_>, gate: &Gate, sequence: Sequence, value: bytes::Bytes) -> usize {
    let position = Position::of_change(tx.trusted_time(), sequence);
    put_event(tx, Key::HistoryChange(gate.partition, position), value)
}

fn put_expiry<B: Body>(tx: &mut Transaction<'_>, gate: &Gate, at: Position, expired: &Record<B>) -> usize {
    put_event(tx, Key::HistoryExpiry(gate.partition, at), expired.encode())
}

fn put_event(tx: &mut Transaction<'_>, key: Key<'_>, value: bytes::Bytes) -> usize {
    let work = 1 + value.len() / ENTRY_BYTES;
    let (keyspace, key) = key.encode();
    tx.put(keyspace, key, value);
    work
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use document::{Document, ItemNumber};
    use storage::{ClockOptions, Lanes, ManualClock, MemoryStore, transact};

    use super::*;
    use crate::definition::{DefaultTtl, OwnTtl};
    use crate::expiry::Policy;
    use crate::expiry::header::Header;
    use crate::keys::PartitionId;

    /// A transaction that removes many items is limited by how much it writes, images included.
    #[test]
    fn an_image_is_as_much_work_as_it_has_bytes() {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(100)));
        let store = MemoryStore::new(ClockOptions::new(clock)).expect("a store");
        let work = |bytes: usize, history_minutes: Option<u32>| {
            let mut policy = Policy::new(DefaultTtl::Off);
            policy.lifecycle.history_minutes = history_minutes;
            let text = format!(r#"{{"id":"x","text":"{}"}}"#, "x".repeat(bytes));
            let body = Document::from_json(text.as_bytes()).expect("JSON");
            let header = Header::new(Sequence(9), 5, OwnTtl::Absent);
            let record = Record { number: ItemNumber(1), header, body };
            let deleted = move |tx: &mut Transaction<'_>| {
                let gate = Gate { partition: PartitionId(1), policy: Arc::new(policy), now: tx.time() };
                Ok::<_, Error>(deleted(tx, &gate, WriteNumber::uncounted(Sequence(10)), &record))
            };
            transact(&store, Lanes::one(1), deleted).wait().expect("recorded")
        };
        assert_eq!((work(10, None), work(10, Some(5))), (0, 1));
        assert_eq!(work(100 * ENTRY_BYTES, Some(5)), 101);
    }
}
