//! LSNs that are counted wrong (decision 0027).

use super::{Bug, edit};

const ENTRIES_WRITES: &str = "crates/engine/src/entries/writes.rs";
const CODEC: &str = "crates/engine/src/feed/history/codec.rs";
const COUNTERS: &str = "crates/engine/src/entries/counters.rs";
const WRITE: &str = "crates/engine/src/write/mod.rs";

pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "the LSN of a range follows the store's sequence",
        edits: &[edit(COUNTERS, "let next = last.saturating_add(1);", "let next = commit.max(last);")],
    },
    Bug {
        name: "each operation of a batch takes an LSN",
        edits: &[edit(
            ENTRIES_WRITES,
            "Some(last) if events::commit_of(last.sequence) == commit => last.lsn,",
            "Some(last) if last.lsn == u64::MAX => last.lsn,",
        )],
    },
    Bug {
        name: "an empty container forgets its LSN",
        edits: &[edit(COUNTERS, "if self == Total::default() {", "if self.tally == Tally::default() {")],
    },
    Bug {
        name: "a write that was answered does not raise the LSN",
        edits: &[edit(
            WRITE,
            "counted.known_lsn.raise(sum_up(outcome).1)",
            "{ let _ = (&counted, sum_up(outcome)); }",
        )],
    },
    Bug {
        name: "the feed tells of a delete by the number of its commit",
        edits: &[edit(CODEC, "if write.behind() == 0 {", "if write.behind() < u64::MAX {")],
    },
];
