//! The state of a partition's feed of all versions: from which instant on it is kept, and how far it was trimmed.

use document::Sequence;
use storage::{Read, Time, Transaction};

use crate::expiry::{Millis, Moment, Policy};
use crate::keys::{Key, PartitionId};
use crate::keys::{Position, millis};
use crate::types::error::{Error, Result};

const MINUTE_MS: Millis = 60_000;

/// The record of a partition's feed. It exists as long as anything of the feed does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    /// Whether the feed is kept; if not, what there is of it is being removed.
    pub(super) is_kept: bool,
    /// The feed was not kept before, or a change of the retention has removed what was before.
    pub(super) floor: Moment,
    /// The LSN of the last change that is not recorded any more.
    pub(super) lsn: u64,
    /// The last key that was trimmed of each stream; no entry lies before it. Empty if there is none.
    pub(super) trimmed_changes: Vec<u8>,
    pub(super) trimmed_expiries: Vec<u8>,
}

impl State {
    pub(super) fn load(reader: &(impl Read + ?Sized), partition: PartitionId) -> Result<Option<State>> {
        let (keyspace, key) = Key::HistoryState(partition).encode();
        reader.get(keyspace, &key)?.map(|bytes| State::decode(&bytes)).transpose()
    }

    pub(super) fn store(&self, tx: &mut Transaction<'_>, partition: PartitionId) {
        let (keyspace, key) = Key::HistoryState(partition).encode();
        tx.put(keyspace, key, self.encode());
    }

    /// Returns the position from which on the feed has all events, at a trusted time. Events older than the retention are
    /// hidden at once, whether or not they were trimmed.
    pub(super) fn kept_from(&self, policy: &Policy, trusted: Time) -> Position {
        let floor = Position { order: self.floor.sequence, ..Position::before(self.floor.time) };
        let retention = policy.lifecycle.history_minutes.map(|minutes| horizon(trusted, minutes));
        retention.map_or(floor, |horizon| floor.max(Position::before(horizon)))
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.is_kept)];
        out.extend_from_slice(&self.floor.time.to_be_bytes());
        out.extend_from_slice(&self.floor.sequence.0.to_be_bytes());
        out.extend_from_slice(&self.lsn.to_be_bytes());
        for key in [&self.trimmed_changes, &self.trimmed_expiries] {
            out.push(u8::try_from(key.len()).expect("a key of the feed is short"));
            out.extend_from_slice(key);
        }
        out
    }

    fn decode(bytes: &[u8]) -> Result<State> {
        let parse = || {
            let (kept, bytes) = bytes.split_first()?;
            let (time, bytes) = bytes.split_first_chunk()?;
            let (sequence, bytes) = bytes.split_first_chunk()?;
            let (lsn, bytes) = bytes.split_first_chunk()?;
            let (length, bytes) = bytes.split_first()?;
            let (changes, bytes) = bytes.split_at_checked(usize::from(*length))?;
            let (length, expiries) = bytes.split_first()?;
            let time = Millis::from_be_bytes(*time);
            (*kept < 2 && expiries.len() == usize::from(*length)).then(|| State {
                is_kept: *kept == 1,
                floor: Moment { time, sequence: Sequence(u64::from_be_bytes(*sequence)) },
                lsn: u64::from_be_bytes(*lsn),
                trimmed_changes: changes.to_vec(),
                trimmed_expiries: expiries.to_vec(),
            })
        };
        parse().ok_or_else(|| Error::Corrupt("the state of a feed of all versions".into()))
    }
}

/// Returns the time before which everything is past the retention.
pub(super) fn horizon(trusted: Time, minutes: u32) -> Millis {
    millis(trusted).saturating_sub(Millis::from(minutes) * MINUTE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t28_a_state_reads_back_and_a_cut_one_is_damage() {
        let floor = Moment { time: -5, sequence: Sequence(7) };
        let (trimmed_changes, trimmed_expiries) = (vec![1, 2, 3], Vec::new());
        let state = State { is_kept: true, floor, lsn: 9, trimmed_changes, trimmed_expiries };
        let bytes = state.encode();
        assert_eq!(State::decode(&bytes), Ok(state));
        for length in 0..bytes.len() {
            assert!(State::decode(&bytes[..length]).is_err(), "cut at {length}");
        }
        assert!(State::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
}
