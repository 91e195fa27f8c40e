//! The note of a hold on an item: since when it is held, and why (T31).

use storage::{Direction, KeyRange, Keyspace, Read, Time, Transaction};

use crate::catalog::{load_policy, put};
use crate::expiry::header::Record;
use crate::keys::{self, Key, PartitionId};
use crate::types::error::{Error, Result};

/// Refuses to remove or rename a container or collection that is held, or that has a held item.
pub(crate) fn check_partition(tx: &Transaction<'_>, partition: PartitionId) -> Result<()> {
    if let Some(reason) = load_policy(tx, partition)?.lifecycle.hold {
        return Err(Error::Held { what: "the container", reason });
    }
    let holds = KeyRange::prefix(keys::holds(partition));
    match tx.scan(Keyspace::Counter, holds, Direction::Forward).next().transpose()? {
        Some((_, note)) => {
            Err(Error::Held { what: "an item in it", reason: HoldNote::decode(&note)?.reason })
        }
        None => Ok(()),
    }
}

/// Returns whether these bytes are the note of a hold.
pub(crate) fn is_note(value: &[u8]) -> bool {
    HoldNote::decode(value).is_ok()
}

/// Returns the note for a held item whose own note was lost.
pub(crate) fn lost_note(now: Time) -> Vec<u8> {
    [&now.millis().to_be_bytes()[..], b"reason and start of this hold were lost; it was repaired"].concat()
}

/// The content of a note: since when, and why.
pub(crate) struct HoldNote {
    pub(crate) since: Time,
    pub(crate) reason: String,
}

impl HoldNote {
    /// Reads the note of an item, if it is held.
    pub(crate) fn of<B>(
        tx: &Transaction<'_>,
        partition: PartitionId,
        record: &Record<B>,
    ) -> Result<Option<HoldNote>> {
        if !record.header.held {
            return Ok(None);
        }
        let (keyspace, key) = Key::Held(partition, record.number).encode();
        let missing = || Error::Corrupt(format!("item {} is held without a note", record.number.0));
        HoldNote::decode(&tx.get(keyspace, &key)?.ok_or_else(missing)?).map(Some)
    }

    /// Writes why an item is held. Another reason does not change since when.
    pub(crate) fn renew<B>(
        tx: &mut Transaction<'_>,
        partition: PartitionId,
        now: Time,
        record: &Record<B>,
        reason: &str,
    ) -> Result<()> {
        let since = HoldNote::of(tx, partition, record)?.map_or(now, |note| note.since);
        let value = [&since.millis().to_be_bytes(), reason.as_bytes()].concat();
        put(tx, Key::Held(partition, record.number), value);
        Ok(())
    }

    pub(crate) fn decode(value: &[u8]) -> Result<HoldNote> {
        let parse = || {
            let (since, reason) = value.split_first_chunk()?;
            let since = Time::from_millis(u64::from_be_bytes(*since));
            Some(HoldNote { since, reason: str::from_utf8(reason).ok()?.to_owned() })
        };
        parse().ok_or_else(|| Error::Corrupt("the note of a hold".into()))
    }
}
