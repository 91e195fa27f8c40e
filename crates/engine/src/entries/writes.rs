//! Numbers the writes of one transaction: with sequences of the store and LSNs of a partition.

use storage::Transaction;

use super::counters;
use crate::keys::PartitionId;
use crate::types::error::Result;
use crate::types::events::{self, Events};
use crate::types::lsn::WriteNumber;

/// The writes of one transaction in one partition of a container.
#[derive(Debug)]
pub(crate) struct Writes {
    partition: PartitionId,
    events: Events,
    last: Option<WriteNumber>,
}

impl Writes {
    pub(crate) fn new(partition: PartitionId) -> Writes {
        Writes { partition, events: Events::default(), last: None }
    }
}

/// Gives numbers to the writes of one transaction.
pub(crate) trait NumberWrites {
    /// Numbers the next write.
    fn next_write(&mut self, tx: &mut Transaction<'_>) -> Result<WriteNumber>;
}

/// Writes of collections have no LSNs of their own.
impl NumberWrites for Events {
    fn next_write(&mut self, tx: &mut Transaction<'_>) -> Result<WriteNumber> {
        Ok(WriteNumber::uncounted(self.next(tx)))
    }
}

impl NumberWrites for Writes {
    /// The first write of a commit takes the partition's next LSN.
    fn next_write(&mut self, tx: &mut Transaction<'_>) -> Result<WriteNumber> {
        let sequence = self.events.next(tx);
        let commit = events::commit_of(sequence);
        let lsn = match self.last {
            Some(last) if events::commit_of(last.sequence) == commit => last.lsn,
            _ => counters::next_lsn(tx, self.partition, commit)?,
        };
        let number = WriteNumber { sequence, lsn };
        self.last = Some(number);
        Ok(number)
    }
}
