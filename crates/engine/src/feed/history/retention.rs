//! The retention of the feed of all versions: where the feed begins, and the trimming of older events.
//!
//! Events past the retention are not shown from that instant on, whether or not they were trimmed: so a longer
//! retention does not show them again. Trimming is a part of a partition's sweep, and bounded as the sweep is.

use bytes::Bytes;
use document::Sequence;
use storage::{Direction, KeyRange, Keyspace, Read, Time, Transaction};

use super::codec;
use super::record::trim_due;
use super::state::{State, horizon};
use crate::access::gate::Gate;
use crate::entries::counters;
use crate::expiry::{Moment, Policy};
use crate::keys::{self, Key, PartitionId};
use crate::types::error::Result;
use crate::types::events;
use crate::types::limits::{HISTORY_TRIM_BYTES, HISTORY_TRIM_ENTRIES};
use keys::millis;

/// Keeps the feed's state in step with a change of policy at `sequence`.
pub(crate) fn follow(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    before: &Policy,
    after: &Policy,
    sequence: Sequence,
) -> Result<()> {
    let (old, new) = (before.lifecycle.history_minutes, after.lifecycle.history_minutes);
    if old == new {
        return Ok(());
    }
    let now = tx.trusted_time();
    let begun = State {
        is_kept: true,
        floor: Moment { time: millis(now), sequence },
        lsn: counters::lsn(tx, partition)?.unwrap_or(events::commit_of(sequence)),
        trimmed_changes: Vec::new(),
        trimmed_expiries: Vec::new(),
    };
    let state = match (State::load(tx, partition)?, old, new) {
        (Some(state), Some(minutes), Some(_)) => {
            let trimmed = Moment { time: horizon(now, minutes), sequence: Sequence(0) };
            State { floor: state.floor.max(trimmed), ..state }
        }
        // The rest of an earlier feed is still to be trimmed.
        (Some(State { trimmed_changes, trimmed_expiries, .. }), _, Some(_)) => {
            State { trimmed_changes, trimmed_expiries, ..begun }
        }
        (Some(state), _, None) => State { is_kept: false, ..state },
        (None, _, Some(_)) => begun,
        (None, _, None) => return Ok(()),
    };
    state.store(tx, partition);
    Ok(())
}

/// The result of one step of trimming.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Trimmed {
    /// Entries removed.
    pub(crate) entries: u64,
    /// When there is more to trim.
    pub(crate) next_due: Option<Time>,
}

/// Removes some of the events past the retention.
pub(crate) fn trim(tx: &mut Transaction<'_>, gate: &Gate) -> Result<Trimmed> {
    let Some(mut state) = State::load(tx, gate.partition)? else { return Ok(Trimmed::default()) };
    let kept_from = state.is_kept.then(|| state.kept_from(&gate.policy, tx.trusted_time()));
    let mut room = TrimBudget { entries: HISTORY_TRIM_ENTRIES, bytes: HISTORY_TRIM_BYTES };
    let end = kept_from.map(|position| Key::HistoryChange(gate.partition, position).encode().1);
    let changes = keys::history_changes(gate.partition);
    if let Some((key, value)) = trim_stream(tx, &mut state.trimmed_changes, changes, end, &mut room)? {
        state.lsn = state.lsn.max(codec::lsn_of_change(&key, &value)?);
    }
    let end = kept_from.map(|position| Key::HistoryExpiry(gate.partition, position).encode().1);
    let expiries = keys::history_expiries(gate.partition);
    trim_stream(tx, &mut state.trimmed_expiries, expiries, end, &mut room)?;

    let entries = (HISTORY_TRIM_ENTRIES - room.entries) as u64;
    if room.is_used_up() {
        state.store(tx, gate.partition);
        return Ok(Trimmed { entries, next_due: Some(tx.time()) });
    }
    if !state.is_kept {
        let (keyspace, key) = Key::HistoryState(gate.partition).encode();
        tx.remove(keyspace, key);
        return Ok(Trimmed { entries, next_due: None });
    }
    if entries > 0 {
        state.store(tx, gate.partition);
    }
    Ok(Trimmed { entries, next_due: next_due(tx, gate, &state)? })
}

/// How much one transaction may still trim.
struct TrimBudget {
    entries: usize,
    bytes: usize,
}

impl TrimBudget {
    fn is_used_up(&self) -> bool {
        self.entries == 0 || self.bytes == 0
    }
}

/// Trims one stream up to `end`, or all of it. Returns the last key that was removed.
fn trim_stream(
    tx: &mut Transaction<'_>,
    trimmed: &mut Vec<u8>,
    stream: Vec<u8>,
    end: Option<Vec<u8>>,
    room: &mut TrimBudget,
) -> Result<Option<(Bytes, Bytes)>> {
    let mut range = stream_from(stream, trimmed);
    if let Some(end) = end {
        range = range.before(end);
    }
    if range.is_empty() {
        return Ok(None);
    }
    let (mut doomed, mut last) = (Vec::new(), None);
    for entry in tx.scan(Keyspace::History, range, Direction::Forward) {
        if room.is_used_up() {
            break;
        }
        let (key, value) = entry?;
        room.entries -= 1;
        room.bytes = room.bytes.saturating_sub(value.len());
        doomed.push(key.to_vec());
        last = Some((key, value));
    }
    for key in doomed {
        tx.remove(Keyspace::History, key);
    }
    if let Some((key, _)) = &last {
        *trimmed = key.to_vec();
    }
    Ok(last)
}

/// Returns a stream behind the part that was trimmed.
pub(super) fn stream_from(stream: Vec<u8>, trimmed: &[u8]) -> KeyRange {
    let range = KeyRange::prefix(stream);
    if trimmed.is_empty() { range } else { range.after(trimmed.to_vec()) }
}

/// Returns when the first remaining event is due.
fn next_due(reader: &dyn Read, gate: &Gate, state: &State) -> Result<Option<Time>> {
    let Some(minutes) = gate.policy.lifecycle.history_minutes else { return Ok(None) };
    let mut first: Option<Time> = None;
    let streams = [
        (keys::history_changes(gate.partition), &state.trimmed_changes),
        (keys::history_expiries(gate.partition), &state.trimmed_expiries),
    ];
    for (stream, trimmed) in streams {
        let range = stream_from(stream, trimmed);
        if let Some(entry) = reader.scan(Keyspace::History, range, Direction::Forward).next() {
            let time = keys::history_position(&entry?.0)?.time();
            first = first.into_iter().chain([time]).min();
        }
    }
    Ok(first.map(|time| trim_due(time, minutes)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use document::{Document, parse_json};
    use storage::{ClockOptions, ManualClock, MemoryStore};

    use super::*;
    use crate::{ContainerDefinition, Engine, Operation, Owner};

    fn entries(engine: &Engine) -> usize {
        let snapshot = engine.store.snapshot().expect("a snapshot");
        snapshot.scan(Keyspace::History, KeyRange::all(), Direction::Forward).count()
    }

    #[test]
    fn t28_what_is_too_old_is_trimmed_in_time_and_a_feed_that_ended_leaves_nothing() {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let engine = Engine::open(Arc::new(store)).expect("an engine");
        let database = engine.create_database("db", None).expect("a database");
        let text = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1,
            "changeFeedPolicy":{"retentionDuration":1}}"#;
        let definition = parse_json(text.as_bytes()).expect("valid JSON");
        let definition = ContainerDefinition::from_value(&definition).expect("valid");
        let container = engine.create_container(&database, definition, None).expect("a container");
        let create = |id: &str| {
            let body = format!(r#"{{"id":"{id}","pk":"p","ttl":5}}"#);
            let body = Document::from_json(body.as_bytes()).expect("valid JSON");
            engine.write(&container, None, Operation::Create { body }).wait().expect("created");
        };
        let step = || engine.purge_step(1000).expect("a step");
        create("a");
        create("b");
        clock.advance(Duration::from_secs(10));
        let due = step().next_due.expect("a time to trim");
        assert_eq!(entries(&engine), 5, "two changes, two expiries, the state");
        assert_eq!(due, Time::from_seconds(1_700_000_120), "a retention and a pause after the first of them");

        clock.advance(Duration::from_secs(50));
        create("c");
        clock.advance(Duration::from_mins(1));
        let report = step();
        assert_eq!((report.other_entries, entries(&engine)), (4, 3), "the newest change and expiry are left");
        let owner = Owner::Container(Arc::clone(&container));
        engine.change_lifecycle(&owner, |lifecycle| lifecycle.history_minutes = None).expect("a change");
        assert_eq!((step().next_due, entries(&engine)), (None, 0));
    }
}
