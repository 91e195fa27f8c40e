//! What the feed of all versions keeps of a commit: called by every write, and by whoever removes a dead item.
//!
//! Nothing is written where the policy, as the transaction sees it, asks for no feed. Who dies on arrival is told wherever
//! anybody asks for instants of death: a feed, an archive or a deletion record.

use document::Sequence;
use storage::{Time, Transaction};

use super::codec::{self, ChangeKind};
use super::position::Position;
use super::read::Manner;
use super::state::State;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::gate::Gate;
use crate::header::{Body, Record};
use crate::keys::Key;
use crate::lsn::WriteNumber;

/// What becomes of an item that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays.
    Stays,
    /// It is overdue already, and its expiry is recorded: whoever wrote it removes it at once. So nothing in a queue has died
    /// before it was written, and deaths are in the order of the queue.
    DeadOnArrival,
}

/// So many bytes of an image are as much work as an entry.
const ENTRY_BYTES: usize = 4096;

/// Trimming waits so long for more, so that it does not run for each event.
const TRIM_PAUSE_MS: u64 = 60_000;

/// Records that an item was created, or replaced another version.
pub(crate) fn written<B: Body>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    old: Option<&Record<B>>,
    new: &Record<B>,
    manner: Manner,
) -> Fate {
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

/// Records the expiry of an item whose hold is lifted and that is overdue: it dies now, however old its base is.
pub(crate) fn lifted<B: Body>(tx: &mut Transaction<'_>, gate: &Gate, item: &Record<B>) -> Fate {
    on_arrival(tx, gate, item, |tx| Events::default().next(tx))
}

/// Who is overdue when it comes under the rules dies now, and does not wait for the purge if anybody is told when: header and
/// policy do not know the instant at which it came. A feed tells of it at a sequence, which is asked for only then.
fn on_arrival<B: Body>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    item: &Record<B>,
    sequence: impl FnOnce(&mut Transaction<'_>) -> Sequence,
) -> Fate {
    let time = tx.trusted_time();
    if !gate.policy.lifecycle.tells_instants() || !gate.policy.is_dead(&item.header, time) {
        return Fate::Stays;
    }
    if is_kept(gate) {
        let sequence = sequence(tx);
        put_expiry(tx, gate, Position::on_arrival(time, sequence, item.number), item);
    }
    Fate::DeadOnArrival
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

/// Records that an item has expired, at the instant at which it did. Whoever removes a dead item calls it in the same
/// transaction; it returns how many entries' worth of work it was.
pub(crate) fn expired<B: Body>(tx: &mut Transaction<'_>, gate: &Gate, dead: &Record<B>) -> Result<usize> {
    if !is_kept(gate) {
        return Ok(0);
    }
    let Some((moment, place)) = gate.policy.end_of(&dead.header) else {
        return Err(Error::Corrupt(format!("item {} is removed as dead and has not died", dead.number.0)));
    };
    let position = Position::of_expiry(moment, place.base, dead.number);
    let state = State::load(tx, gate.partition)?.ok_or_else(no_state)?;
    // What the feed does not tell any more is not put back into it behind the trimming.
    if position < state.kept_from(&gate.policy, tx.trusted_time()) {
        return Ok(0);
    }
    Ok(put_expiry(tx, gate, position, dead))
}

/// When what is recorded now is due to be trimmed; none if nothing is recorded.
pub(crate) fn look_again(gate: &Gate, now: Time) -> Option<Time> {
    gate.policy.lifecycle.history_minutes.map(|minutes| trim_due(now, minutes))
}

/// When an event of `time` is due to be trimmed.
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

fn put_expiry<B: Body>(tx: &mut Transaction<'_>, gate: &Gate, at: Position, dead: &Record<B>) -> usize {
    put_event(tx, Key::HistoryExpiry(gate.partition, at), dead.encode())
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
    use crate::header::Header;
    use crate::keys::PartitionId;

    /// Whoever removes many items ends a transaction by how much it has written, images included.
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
