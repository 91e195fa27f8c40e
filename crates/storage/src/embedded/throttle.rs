//! Waits by polling, where fjall offers no signal, and delays that let compaction keep up with writing.
//!
//! A writer faster than compaction fills the first level with runs. At 30 of them fjall halts all writes until a
//! compaction has merged them, and with so many that takes seconds. So the writer waits after each commit as soon as
//! runs pile up: the more runs and the more entries, the longer. Many waits of milliseconds replace a few of seconds.

use super::database::Database;
use lsm_tree::AbstractTree;
use std::time::{Duration, Instant};

/// The number of runs without a delay: those merged at once, and as many that arrive meanwhile.
const UNTHROTTLED_RUNS: usize = 8;
/// The delay for each entry and each run above [`UNTHROTTLED_RUNS`]. With 18 runs that is about the time it takes to
/// merge the entry.
const DELAY: Duration = Duration::from_nanos(500);
/// The longest delay after a commit.
const MAX_DELAY: Duration = Duration::from_millis(100);

/// Waits a millisecond, for flushes and file locks.
pub(super) fn pause() {
    sleep(Duration::from_millis(1));
}

/// Returns the number of runs in the first level of the keyspace that has most.
fn runs(database: &Database) -> usize {
    database.opened_keyspaces().map(|keyspace| keyspace.tree.l0_run_count()).max().unwrap_or_default()
}

/// Returns whether the writer is delayed after commits.
pub(super) fn is_throttled(database: &Database) -> bool {
    runs(database) > UNTHROTTLED_RUNS
}

/// Delays the writer after a commit of this many entries.
pub(super) fn throttle_after(database: &Database, entries: usize) {
    match delay(runs(database), entries) {
        Duration::ZERO => {}
        delay => sleep(delay),
    }
}

fn delay(runs: usize, entries: usize) -> Duration {
    let times = runs.saturating_sub(UNTHROTTLED_RUNS).saturating_mul(entries);
    DELAY.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX)).min(MAX_DELAY)
}

/// Returns the present instant of the machine. The store's clock does not apply to how long its threads work and wait.
#[expect(clippy::disallowed_methods, reason = "the store's clock is another")]
pub(super) fn instant() -> Instant {
    Instant::now()
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
    use super::delay;
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
            assert_eq!(delay(runs, entries), Duration::from_micros(micros), "{runs} runs, {entries} entries");
        }
    }
}
