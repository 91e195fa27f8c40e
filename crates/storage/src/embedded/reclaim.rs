//! Reclaims space that only closed snapshots needed: by itself, fjall checks which snapshots are closed only when a memtable is full.
//!
//! Until then the space stays taken: the files of dropped tables, and entries whose watermarks are not settled. A purge with
//! watermarks writes so little that it fills no memtable, least of all while writes are refused because the disk is full. So the
//! compaction thread makes fjall check, which writes nothing.

use std::time::{Duration, Instant};

use lsm_tree::AbstractTree;

use super::database::Database;

/// The first pause before a check; doubled while a check settles no watermark, because a snapshot stays open.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// The number of closed snapshots after which fjall checks.
const SNAPSHOTS: usize = 10_000;

/// The schedule of the checks.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    next: Option<Next>,
}

#[derive(Debug)]
struct Next {
    due: Instant,
    pause: Duration,
    /// The generation of the watermarks at the last check.
    generation: u64,
}

impl Reclaim {
    /// Returns the time until the next check; `None` if no space waits.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        self.next.as_ref().map(|next| next.due.saturating_duration_since(now))
    }

    /// Makes fjall check if that is due.
    pub(super) fn step(&mut self, database: &Database, now: Instant) {
        if database.watermarks.are_settled() && !database.covered_tables.have_files() {
            self.next = None;
            return;
        }
        let generation = database.watermarks.generation();
        let pause = match &self.next {
            None => PAUSE_MIN,
            Some(next) if now < next.due => return,
            Some(next) => {
                database.forget_old_snapshots();
                if next.generation == generation { (next.pause * 2).min(PAUSE_MAX) } else { PAUSE_MIN }
            }
        };
        self.next = Some(Next { due: now + pause, pause, generation });
    }
}

impl Database {
    /// Makes fjall check which snapshots are open, and drop what none of them needs.
    fn forget_old_snapshots(&self) {
        self.refresh_snapshot();
        let (fjall, _) = self.own();
        (0..SNAPSHOTS).for_each(|_| drop(fjall.snapshot()));
        for keyspace in self.opened_keyspaces() {
            let mut versions = keyspace.tree.get_version_history_lock();
            if let Err(error) = versions.maintenance(keyspace.path(), self.oldest_snapshot()) {
                log::warn!("old lists of tables cannot be removed: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::throttle::instant;
    use super::super::watermark_tests::{Bench, PREFIX, ascending};
    use super::{PAUSE_MAX, PAUSE_MIN, Reclaim};
    use crate::Keyspace;

    /// Returns a store in which a table is covered, and which receives no more writes.
    fn quiet(directory: &tempfile::TempDir) -> Bench {
        let mut bench = Bench::open(directory.path());
        for half in [0..50, 50..100] {
            bench.table(Keyspace::Item, half.map(|number| ascending(PREFIX, number)));
        }
        bench.raise(PREFIX, 50);
        bench
    }

    #[test]
    fn t24_a_store_that_nothing_is_written_to_gives_space_back_and_writes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let bench = quiet(&directory);
        let keyspace = bench.database.opened_keyspace(Keyspace::Item).unwrap();
        let files = || std::fs::read_dir(keyspace.path().join("tables")).unwrap().count();
        let journal = || bench.database.sizes().1;
        let (before, mut reclaim, began) = (journal(), Reclaim::default(), instant());
        let mut step = |seconds: u64| {
            let now = began + Duration::from_secs(seconds);
            reclaim.step(&bench.database, now);
            bench.compact();
            reclaim.pause(now)
        };
        assert_eq!((step(0), bench.stored_in(Keyspace::Item)), (Some(PAUSE_MIN), 100));
        step(1);
        assert_eq!((bench.stored_in(Keyspace::Item), files()), (50, 2), "dropped, but the file is there");
        step(3);
        assert_eq!(files(), 1);
        assert_eq!(step(4), None, "nothing is left to do");
        assert_eq!(journal(), before);
    }

    #[test]
    fn an_open_snapshot_is_waited_for_with_growing_pauses() {
        let directory = tempfile::tempdir().unwrap();
        let mut bench = quiet(&directory);
        let held = bench.snapshot();
        bench.raise(PREFIX, 51);
        let (mut reclaim, mut now) = (Reclaim::default(), instant());
        let mut step = || {
            reclaim.step(&bench.database, now);
            bench.compact();
            let pause = reclaim.pause(now).unwrap_or_default();
            now += pause;
            pause
        };
        let longest = (0..20).map(|_| step()).max();
        assert_eq!(longest, Some(PAUSE_MAX));
        drop(held);
        (0..3).for_each(|_| _ = step());
        assert_eq!(step(), Duration::ZERO, "nothing waits");
        assert_eq!(bench.stored_in(Keyspace::Item), 50);
    }
}
