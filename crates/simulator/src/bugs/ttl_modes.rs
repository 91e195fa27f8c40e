//! Defects of the TTL modes (T33): where countdowns begin, and how long they last.

use super::{Bug, edit};

const COUNTING: &str = "crates/engine/src/expiry/ttl_mode.rs";
const TOUCH: &str = "crates/engine/src/access/renewal.rs";
const EXPIRY: &str = "crates/engine/src/expiry/mod.rs";

/// Defects of the TTL modes.
pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "a write that keeps the countdown begins it again",
        edits: &[edit(
            COUNTING,
            "(Countdown::Keep, Some(before)) => Some(before.counts_from()),",
            "(Countdown::Keep, Some(_)) => property(),",
        )],
    },
    Bug {
        name: "the base property is not read",
        edits: &[edit(
            COUNTING,
            "and_then(|path| body.seconds_at(path));",
            "and_then(|path| body.seconds_at(path)).filter(|seconds| *seconds == 0);",
        )],
    },
    Bug {
        name: "the rules of TTL modes do not follow defaultTtl",
        edits: &[edit(
            COUNTING,
            "DateRule::INHERITED => rule.delay_ms = inherited,",
            "DateRule::INHERITED => rule.delay_ms = rule.delay_ms.or(inherited),",
        )],
    },
    Bug {
        name: "a read restarts what only a write may",
        edits: &[edit(
            TOUCH,
            "let is_due = policy.lifecycle.sliding\n        && header.slides()",
            "let is_due = header.slides()",
        )],
    },
    Bug {
        name: "a begun second is not among those that are left",
        edits: &[edit(
            EXPIRY,
            "saturating_sub(now.millis()).div_ceil(1000)",
            "saturating_sub(now.millis()) / 1000",
        )],
    },
];
