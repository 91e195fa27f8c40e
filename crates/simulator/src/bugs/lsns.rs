//! LSNs that are counted wrong (decision 0027).

use super::{Bug, edit};

const CODEC: &str = "crates/engine/src/history/codec.rs";
const COUNTERS: &str = "crates/engine/src/counters.rs";
const LSN: &str = "crates/engine/src/lsn.rs";
const WRITE: &str = "crates/engine/src/write.rs";

pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "the LSN of a range follows the store's sequence",
        edits: &[edit(COUNTERS, "let next = last.saturating_add(1);", "let next = commit.max(last);")],
    },
    Bug {
        name: "each operation of a batch takes an LSN",
        edits: &[edit(
            LSN,
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
            "counted.known_lsn.raise(outcome.range.lsn);",
            "let _ = (&counted, outcome.range.lsn);",
        )],
    },
    Bug {
        name: "the feed tells of a delete by the number of its commit",
        edits: &[edit(CODEC, "if write.behind() == 0 {", "if write.behind() < u64::MAX {")],
    },
];
