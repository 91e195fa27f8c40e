//! Checks watermarks: a store that leaves the single removals out must not hide an entry that was not removed (T22).

use storage::{Direction, KeyRange, Keyspace, SLOT_BITS, Store, WATERMARK, watermark};

/// The keyspaces that watermarks apply to, and that of the items whose entries they hide.
const KEYSPACES: [Keyspace; 4] = [Keyspace::Item, Keyspace::Index, Keyspace::Queue, Keyspace::Feed];

/// A partition and a number.
const SHORTEST: usize = 12;

/// Checks a store that makes every removal: it has no entry below a watermark, and every number above it was given before, because a
/// store drops tables by the last number given when they were written.
pub(super) fn check(store: &dyn Store) -> Result<(), String> {
    let snapshot = store.snapshot().map_err(|error| error.to_string())?;
    for entry in snapshot.scan(Keyspace::Catalog, KeyRange::prefix([WATERMARK]), Direction::Forward) {
        let (key, _) = entry.map_err(|error| error.to_string())?;
        let partition: [u8; 4] = key[1..].try_into().map_err(|_| "a watermark's key of wrong length")?;
        let below = watermark(&*snapshot, partition).map_err(|error| error.to_string())?;
        for keyspace in KEYSPACES {
            for entry in snapshot.scan(keyspace, KeyRange::prefix(partition), Direction::Forward) {
                let (key, _) = entry.map_err(|error| error.to_string())?;
                let number = key.last_chunk().map_or(0, |number| u64::from_be_bytes(*number));
                let name = keyspace.name();
                if number < below {
                    return Err(format!("T22: {name} {key:?} lies below the watermark {below}"));
                }
                if key.len() < SHORTEST || number >> SLOT_BITS > store.last_sequence() {
                    return Err(format!("T22: {name} {key:?} has a number that was not given"));
                }
            }
        }
    }
    Ok(())
}
