//! Access to a store below the engine, for tests that damage it: its entries, and changes that the engine never
//! makes.

use storage::{Direction, KeyRange, Keyspace, Lanes, Store, Transaction, transact};

use crate::Error;
use crate::keys::{self, PartitionId};

/// Keys and values of a partition in one keyspace.
pub(crate) fn entries(
    store: &dyn Store,
    keyspace: Keyspace,
    partition: PartitionId,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let snapshot = store.snapshot().expect("a snapshot");
    let all = KeyRange::prefix(keys::partition(partition));
    let scan = snapshot.scan(keyspace, all, Direction::Forward);
    scan.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).expect("reads")).collect()
}

/// Commits a change to the entries themselves.
pub(crate) fn change(store: &dyn Store, change: impl FnOnce(&mut Transaction<'_>) + Send + 'static) {
    let run = move |tx: &mut Transaction<'_>| {
        change(tx);
        Ok::<_, Error>(())
    };
    transact(store, Lanes::all(), run).wait().expect("committed");
}
