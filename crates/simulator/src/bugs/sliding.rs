//! Defects of countdowns that reads restart (T33).

use super::{Bug, edit};

const TOUCH: &str = "crates/engine/src/access/renewal.rs";
const GATE: &str = "crates/engine/src/access/gate.rs";

/// Defects of sliding renewal.
pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "a touch leaves the item at its old place",
        edits: &[edit(TOUCH, "put_places(tx, number, &before, &after);", "")],
    },
    Bug {
        name: "a touch is not written down",
        edits: &[edit(
            TOUCH,
            "put(tx, Key::SlidingRenewal(gate.partition, number), renewed_at.to_be_bytes().to_vec());",
            "",
        )],
    },
    Bug {
        name: "the renewal of an item that looks expired is not looked up",
        edits: &[edit(GATE, "renewals::look_up(reader, self.partition, number, header)?;", "")],
    },
    Bug {
        name: "a write does not know that its item was touched",
        edits: &[edit(GATE, "renewals::look_up(reader, self.partition, number, &mut header)?;", "")],
    },
];
