//! Waiting, where fjall offers nothing to wait for; and resting, so that merging keeps up with writing.
//!
//! Whoever writes faster than tables are merged fills the first level with runs. At 30 of them fjall halts all writes until a
//! merge has taken them in, and with so many to merge that takes seconds. So the writer rests after each commit as soon as there
//! are some: the more runs and the more entries, the longer. Many waits of milliseconds take the place of a few of seconds.

use super::database::Database;
use lsm_tree::AbstractTree;
use std::time::Duration;

/// More runs than these are too many: those that are merged at once, and as many that come meanwhile.
const CROWDED_RUNS: usize = 8;
/// The rest for each entry and each run that is too much. With 18 runs that is about what it takes to merge the entry.
const REST: Duration = Duration::from_nanos(500);
/// The longest rest after a commit.
const MAX_REST: Duration = Duration::from_millis(100);

/// A moment, for flushes and file locks.
pub(super) fn pause() {
    sleep(Duration::from_millis(1));
}

/// The runs in the first level of the keyspace that has most.
fn runs(database: &Database) -> usize {
    database.made().map(|keyspace| keyspace.tree.l0_run_count()).max().unwrap_or_default()
}

/// Whether the writer rests after commits.
pub(super) fn is_crowded(database: &Database) -> bool {
    runs(database) > CROWDED_RUNS
}

/// Lets the writer rest after a commit of so many entries.
pub(super) fn rest_after(database: &Database, entries: usize) {
    match rest(runs(database), entries) {
        Duration::ZERO => {}
        rest => sleep(rest),
    }
}

fn rest(runs: usize, entries: usize) -> Duration {
    let times = runs.saturating_sub(CROWDED_RUNS).saturating_mul(entries);
    REST.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX)).min(MAX_REST)
}

#[expect(
    clippy::disallowed_methods,
    reason = "fjall's flushes, its merges and file locks offer nothing to wait for"
)]
fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

#[cfg(test)]
mod tests {
    use super::rest;
    use std::time::Duration;

    #[test]
    fn the_writer_rests_the_longer_the_more_there_is_to_merge() {
        let cases = [
            (0, 1000, 0),
            (8, 1_000_000, 0),
            (9, 1000, 500),
            (18, 1000, 5_000),
            (29, 1000, 10_500),
            (29, 1_000_000, 100_000),
            (usize::MAX, usize::MAX, 100_000),
        ];
        for (runs, entries, micros) in cases {
            assert_eq!(rest(runs, entries), Duration::from_micros(micros), "{runs} runs, {entries} entries");
        }
    }
}
