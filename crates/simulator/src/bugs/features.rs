//! Defects of features beside expiry: the feed of all versions, holds, forecasts, the pace of the purge.

use super::{Bug, edit};

const WRITE_CONTEXT: &str = "crates/engine/src/write/context.rs";
const PURGE: &str = "crates/engine/src/maintenance/purge/mod.rs";
const EXPIRY: &str = "crates/engine/src/expiry/mod.rs";
const EXPIRY_CHANGE: &str = "crates/engine/src/expiry/change.rs";
const HISTORY_RECORD: &str = "crates/engine/src/feed/history/record.rs";
const HISTORY_MERGE: &str = "crates/engine/src/feed/history/merge.rs";
const HISTORY_RETENTION: &str = "crates/engine/src/feed/history/retention.rs";
const HISTORY_READ: &str = "crates/engine/src/feed/history/read.rs";
const REMOVAL: &str = "crates/engine/src/evidence/removal.rs";
const HOLD: &str = "crates/engine/src/maintenance/hold.rs";
const GUARD: &str = "crates/engine/src/schema/guard.rs";
const FORECAST: &str = "crates/engine/src/maintenance/forecast.rs";
const BUDGET: &str = "crates/engine/src/catalog/budget.rs";
const PROMISE: &str = "crates/engine/src/maintenance/purge/retention.rs";
const WRITER: &str = "crates/storage/src/writer.rs";

/// Defects of feeds, holds, forecasts and budgets.
pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "what users were told is not synced, and what the purge did is",
        edits: &[edit(
            WRITER,
            "job.durability() == Durability::Buffered",
            "job.durability() != Durability::Buffered",
        )],
    },
    Bug {
        name: "the purge does not report an expiry",
        edits: &[edit(REMOVAL, "let work = history::expired(tx, gate, expired)?;", "let work = 0;")],
    },
    Bug {
        name: "a write that finds an expired item does not report its expiry",
        edits: &[edit(REMOVAL, "history::expired(tx, gate, expired)?;\n    settle(", "settle(")],
    },
    Bug {
        name: "an expiry is told as of its removal",
        edits: &[edit(
            HISTORY_RECORD,
            "let position = Position::of_expiry(moment, place.base, expired.number);",
            "let _ = (moment, place);\n    let position = Position::on_arrival(tx.trusted_time(), Sequence(0), expired.number);",
        )],
    },
    Bug {
        name: "a stricter rule forgets when items expired by the old one",
        edits: &[edit(
            EXPIRY_CHANGE,
            "|| changes && next.lifecycle.tells_instants()",
            "|| changes && next.cutoffs.len() == usize::MAX",
        )],
    },
    Bug {
        name: "a reader that ended within an instant is told the first of it again",
        edits: &[edit(
            HISTORY_MERGE,
            "let number = if is_same { after.number.0 } else { 0 };",
            "let number = if is_same { 1 } else { 0 };",
        )],
    },
    Bug {
        name: "the feed reports expiries that only a suspect clock knows",
        edits: &[edit(
            HISTORY_READ,
            "Ok(Barrier { trusted: tx.trusted_time(), sequence: tx.last_sequence() })",
            "Ok(Barrier { trusted: tx.time(), sequence: tx.last_sequence() })",
        )],
    },
    Bug {
        name: "a longer retention brings back what was gone",
        edits: &[edit(
            HISTORY_RETENTION,
            "State { floor: state.floor.max(trimmed), ..state }",
            "let _ = trimmed;\n            state",
        )],
    },
    Bug {
        name: "the feed is trimmed too early",
        edits: &[edit(
            HISTORY_RETENTION,
            "let end = kept_from.map(|position| Key::HistoryExpiry(gate.partition, position).encode().1);",
            "let end = kept_from.map(|_| Key::HistoryExpiry(gate.partition, keys::Position::behind(tx.trusted_time(), Sequence(0))).encode().1);",
        )],
    },
    Bug {
        name: "a held item can be deleted",
        edits: &[edit(
            WRITE_CONTEXT,
            "held::check_item(tx, &self.gate, old)?;\n        let write",
            "let write",
        )],
    },
    Bug {
        name: "a held item can be replaced",
        edits: &[edit(
            WRITE_CONTEXT,
            "held::check_item(tx, &self.gate, old)?;\n        if changes_id",
            "if changes_id",
        )],
    },
    Bug {
        name: "rules go on killing in a held container",
        edits: &[edit(EXPIRY, "_ if self.lifecycle.hold.is_some() => None,", "")],
    },
    Bug {
        name: "the purge removes the expired items of a held container",
        edits: &[edit(
            PURGE,
            "Ok(gate) if gate.policy.lifecycle.hold.is_some() => Ok(Swept::default()),",
            "",
        )],
    },
    Bug {
        name: "a lifted item falls to a rule that it was held against",
        edits: &[edit(
            HOLD,
            "if waits(gate, &new) {\n            return Ok(Lifted::Waits);\n        }\n",
            "",
        )],
    },
    Bug {
        name: "the purge's hand does not make way for a lifted item",
        edits: &[edit(
            HOLD,
            "is_some_and(|stands| *stands > *entry)",
            "is_some_and(|stands| stands.is_empty())",
        )],
    },
    Bug {
        name: "the guard counts expired items among the living",
        edits: &[edit(
            GUARD,
            "let living_now = counters::total(tx, *id)?.minus(expired)?;",
            "let living_now = counters::total(tx, *id)?;",
        )],
    },
    Bug {
        name: "a dry run counts items that have expired already",
        edits: &[edit(
            FORECAST,
            "expiring = expiring.plus(Count { tally: after.tally.minus(usage.expired)?, ..after });",
            "expiring = expiring.plus(after);",
        )],
    },
    Bug {
        name: "a forecast has an interval too many",
        edits: &[edit(FORECAST, "(1..=count).map(ends)", "(0..count).map(ends)")],
    },
    Bug {
        name: "a paused purge goes on",
        edits: &[edit(PURGE, "Ok(self.purge.paused.load(Ordering::Acquire) || ", "Ok(")],
    },
    Bug {
        name: "a purge on demand removes items of all containers",
        edits: &[edit(
            PURGE,
            "of.is_none_or(|owner| owner.partitions().iter().any(|own| own.id == partition.id))",
            "of.is_none_or(|owner| owner.partitions().iter().any(|own| own.id.0 > 0 && partition.id.0 > 0))",
        )],
    },
    Bug {
        name: "the purge spends what users need",
        edits: &[edit(
            BUDGET,
            "self.left_over = self.left_over.saturating_sub_unsigned(charge.0);",
            "self.balance = self.balance.saturating_sub_unsigned(charge.0);",
        )],
    },
    Bug {
        name: "the purge does not pay for what it does",
        edits: &[edit(PURGE, "budget.spend_left_over(swept.charge);", "let _ = swept.charge;")],
    },
    Bug {
        name: "a refused request is told to come back too early",
        edits: &[edit(
            BUDGET,
            "Err(Duration::from_secs(seconds).saturating_sub(into_second))",
            "Err(Duration::from_secs(seconds).saturating_sub(into_second * 2))",
        )],
    },
    Bug {
        name: "a promise does not make the purge urgent",
        edits: &[edit(
            PROMISE,
            "let max_wait_ms = u64::from(bound) * 1000 / 4;",
            "let max_wait_ms = u64::from(bound) * 1000 * 4;",
        )],
    },
];
