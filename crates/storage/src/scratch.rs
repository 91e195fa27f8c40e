//! A private draft of the store: a snapshot with uncommitted writes over it that only their owner sees.
//!
//! A function that runs as a transaction can also run over a draft, to find out what it would do. Its writes are read
//! back through the draft and never reach the store. All reads see one time and one snapshot.

use crate::clock::Moment;
use crate::overlay::Overlay;
use crate::{ClockStatus, Direction, KeyRange, Keyspace, Read, Result, Scan, Snapshot, Transaction};
use bytes::Bytes;
use std::sync::Arc;

/// A snapshot and private writes over it.
pub struct Scratch {
    base: Arc<dyn Snapshot>,
    overlay: Overlay,
    moment: Moment,
    sequence: u64,
}

impl Scratch {
    /// Creates an empty draft over a snapshot, at a time. Functions take sequences after `sequence`, which should be
    /// beyond all in the snapshot; they have no meaning outside the draft.
    pub fn new(base: Arc<dyn Snapshot>, clock: ClockStatus, sequence: u64) -> Self {
        Self { base, overlay: Overlay::default(), moment: clock.into(), sequence }
    }

    /// Runs a function as if it were a transaction; an `Err` undoes its writes.
    pub fn run<R, E: From<crate::Error>>(
        &mut self,
        run: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let mut transaction = Transaction::new(&*self.base, &mut self.overlay, self.moment, self.sequence);
        match run(&mut transaction) {
            Ok(answer) => {
                self.sequence = transaction.keep()?;
                Ok(answer)
            }
            Err(error) => {
                transaction.drop_writes();
                Err(error)
            }
        }
    }

    /// Returns the bytes written so far, overwritten ones included.
    pub fn bytes(&self) -> usize {
        self.overlay.bytes()
    }
}

impl Read for Scratch {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>> {
        match self.overlay.get(keyspace, key) {
            Some(change) => Ok(change.clone()),
            None => self.base.get(keyspace, key),
        }
    }

    fn scan(&self, keyspace: Keyspace, range: KeyRange, direction: Direction) -> Scan<'_> {
        self.overlay.scan(&*self.base, keyspace, range, direction)
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;
    use crate::{
        ClockOptions, Direction, Error, KeyRange, Keyspace, Lanes, ManualClock, MemoryDisk, MemoryStore,
        Read, Result, Store, Time, transact,
    };
    use std::sync::Arc;

    #[test]
    fn only_a_draft_sees_its_own_writes() {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(9)));
        let store = MemoryStore::open(MemoryDisk::new(), ClockOptions::new(clock)).unwrap();
        let put = |key: &'static [u8]| {
            transact(&store, Lanes::all(), move |tx| -> Result<()> {
                tx.next_sequence();
                tx.put(Keyspace::Item, key, "stored");
                Ok(())
            })
        };
        put(b"a").wait().unwrap();
        let snapshot = store.snapshot().unwrap();
        let mut draft = Scratch::new(snapshot, store.clock_status().unwrap(), store.last_sequence());
        let written = draft.run(|tx| -> Result<u64> {
            tx.remove(Keyspace::Item, *b"a");
            tx.put(Keyspace::Item, *b"b", "draft");
            Ok(tx.next_sequence())
        });
        assert_eq!(written, Ok(2));
        let refused: Result<()> = draft.run(|tx| {
            tx.put(Keyspace::Item, *b"c", "refused");
            tx.next_sequence();
            Err(Error::Closed)
        });
        assert_eq!(refused, Err(Error::Closed));
        put(b"d").wait().unwrap();
        let keys = |reader: &dyn Read| -> Vec<Vec<u8>> {
            let scan = reader.scan(Keyspace::Item, KeyRange::all(), Direction::Forward);
            scan.map(|entry| entry.unwrap().0.to_vec()).collect()
        };
        assert_eq!(keys(&draft), [b"b"]);
        assert_eq!(keys(&*store.snapshot().unwrap()), [b"a", b"d"]);
        assert_eq!(draft.get(Keyspace::Item, b"b").unwrap().unwrap(), "draft");
        assert_eq!(draft.run(|tx| Ok::<_, Error>((tx.next_sequence(), tx.time()))).unwrap().0, 3);
    }
}
