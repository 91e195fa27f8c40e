//! Dropped collections whose feed can still be read.
//!
//! Their policy is removed from the catalog, so no request writes to them. It is kept in their own record, because the
//! instants of expiry follow from it. When the feed is past its retention they become ordinary dropped partitions.

use std::sync::Arc;

use document::Sequence;
use storage::{Time, Transaction};

use super::containers::close_partition;
use crate::Engine;
use crate::catalog::collection::Collection;
use crate::catalog::retired::Retired;
use crate::catalog::{put, remove};
use crate::feed::watch::log;
use crate::keys::Key;
use crate::keys::Position;
use crate::types::error::Result;

/// Takes a watched collection out of use. Its entries stay for as long as its feed can be read.
pub(crate) fn retire(
    tx: &mut Transaction<'_>,
    collection: &Arc<Collection>,
    sequence: Sequence,
) -> Result<Arc<Retired>> {
    let id = collection.partition.id;
    let dropped = Position::of_change(tx.trusted_time(), sequence);
    let retired = Retired { collection: Arc::clone(collection), dropped };
    let policy = close_partition(tx, &collection.partition)?;
    put(tx, Key::Retired(id), retired.encode(&policy));
    Ok(Arc::new(retired))
}

impl Engine {
    /// Releases retired collections whose retention is over and old entries of the log. Returns how many, and when
    /// the next one is due.
    pub(crate) fn release_retired(&self, limit: usize) -> Result<(u64, Option<Time>)> {
        let now = self.store.now()?;
        let is_due = |retired: &Arc<Retired>| retired.due() <= now;
        let log_due = || log::trim_due(&*self.store.snapshot()?);
        let mut entries = 0;
        if self.catalog().retired.values().any(is_due) || log_due()?.is_some_and(|due| due <= now) {
            let _change = self.changes.lock();
            let due: Vec<_> = self.catalog().retired.values().filter(|it| is_due(it)).cloned().collect();
            let ids: Vec<_> = due.iter().map(|retired| retired.collection.partition.id).collect();
            let doomed = ids.clone();
            entries += self.change(move |tx| {
                for id in doomed {
                    remove(tx, Key::Retired(id));
                    put(tx, Key::Dropped(id), Vec::new());
                }
                log::trim(tx, limit)
            })?;
            self.update(|catalog| catalog.retired.retain(|id, _| !ids.contains(id)));
        }
        let retired = self.catalog().retired.values().map(|retired| retired.due()).min();
        Ok((entries, retired.into_iter().chain(log_due()?).min()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use storage::{ClockOptions, ManualClock, MemoryStore};

    use super::*;
    use crate::{CollectionDefinition, Watch};

    /// Holds also where no collection was dropped, so that nothing is retired.
    #[test]
    fn t28_the_log_of_watched_collections_is_trimmed_when_it_is_too_old() {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let engine = Engine::open(Arc::new(store)).expect("an engine");
        engine.watch(&Watch::Database("db".into())).expect("watched");
        for name in ["a", "b"] {
            engine.create_collection("db", name, CollectionDefinition::default(), None).expect("made");
        }
        let due = log::trim_due(&*engine.store.snapshot().expect("a snapshot")).expect("a log");
        let due = due.expect("two were made");
        let next_due = engine.purge_step(100).expect("a step").next_due;
        assert!(next_due.is_some_and(|next| next <= due), "{next_due:?}");
        clock.advance(Duration::from_millis(due.millis_since(engine.now().expect("a time"))));
        assert_eq!(engine.release_retired(1), Ok((1, Some(due))), "bounded");
        assert_eq!(engine.release_retired(100), Ok((1, None)));
        assert_eq!(engine.release_retired(100), Ok((0, None)));
    }
}
