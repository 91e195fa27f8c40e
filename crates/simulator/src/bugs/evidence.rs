//! Defects of evidence (archive, deletion record) and of the MongoDB form (date rules, holds, watches).

use super::{Bug, edit};

const SWEEP: &str = "crates/engine/src/maintenance/purge/sweep.rs";
const REMOVAL: &str = "crates/engine/src/evidence/removal.rs";
const HISTORY_RECORD: &str = "crates/engine/src/feed/history/record.rs";
const EXPIRY_RECORD: &str = "crates/engine/src/evidence/expiry_record.rs";
const DELETIONS: &str = "crates/engine/src/evidence/deletions/events.rs";
const DELETION_LOG: &str = "crates/engine/src/evidence/deletions/log.rs";
const GUARD: &str = "crates/engine/src/schema/guard.rs";
const SETTLE: &str = "crates/engine/src/evidence/archive/settle.rs";
const HOLD: &str = "crates/engine/src/maintenance/hold.rs";
const COLLECTIONS: &str = "crates/engine/src/collection/catalog.rs";
const RULES: &str = "crates/engine/src/collection/index_changes.rs";
const WATCH: &str = "crates/engine/src/feed/watch/page.rs";
const DATES: &str = "crates/mql/src/index/ttl.rs";

/// Defects of the evidence of expired items, and of documents.
pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "the purge does not wait for the archive",
        edits: &[edit(
            SWEEP,
            "None if !leave.covers(number) => {",
            "None if !leave.covers(number) && false => {",
        )],
    },
    Bug {
        name: "what a write finds in its way gets no line",
        edits: &[edit(
            REMOVAL,
            "is_some_and(|directory| !is_archived(directory));",
            "is_some_and(|directory| !is_archived(directory) && expired.number.0 == 0);",
        )],
    },
    Bug {
        name: "in a held container expired items are removed when their names are taken",
        edits: &[edit(
            REMOVAL,
            "let waits = has_no_line || lifecycle.hold.is_some();",
            "let waits = has_no_line;",
        )],
    },
    Bug {
        name: "an archive line has another instant than that of the expiry",
        edits: &[edit(
            EXPIRY_RECORD,
            "cause.moment.time.max(from_seconds(expired.header.ts))",
            "cause.moment.time.saturating_sub(1).max(from_seconds(expired.header.ts))",
        )],
    },
    Bug {
        name: "the evidence of a lifted item names a rule that it was held against",
        edits: &[edit(
            EXPIRY_RECORD,
            "Some(_) => policy.cause_in_force(&expired.header),",
            "Some(_) => policy.cause(&expired.header),",
        )],
    },
    Bug {
        name: "an item written expired waits for the purge though its instant is told",
        edits: &[edit(
            HISTORY_RECORD,
            "on_arrival(tx, gate, new, |_| sequence)",
            "if is_kept(gate) { on_arrival(tx, gate, new, |_| sequence) } else { WriteEffect::Stays }",
        )],
    },
    Bug {
        name: "a purge is recorded twice",
        edits: &[edit(
            DELETIONS,
            "head.append(tx, partition, \"purged\", &members);",
            "head.append(tx, partition, \"purged\", &members);\n    head.append(tx, partition, \"purged\", &members);",
        )],
    },
    Bug {
        name: "what was moved aside goes without an entry in the record",
        edits: &[edit(
            REMOVAL,
            "if gate.policy.lifecycle.deletion_record {",
            "if gate.policy.lifecycle.deletion_record && key.is_empty() {",
        )],
    },
    Bug {
        name: "an entry of the record is chained to itself",
        edits: &[edit(
            DELETION_LOG,
            "self.hash = Sha256::digest(line.as_bytes()).into();",
            "self.hash = Sha256::digest(members.as_bytes()).into();",
        )],
    },
    Bug {
        name: "of an array of dates the first counts",
        edits: &[edit(DATES, "known.min(millis)", "known")],
    },
    Bug {
        name: "a date rule expires items before its index is complete",
        edits: &[edit(
            RULES,
            "if index.state == IndexState::Ready {",
            "if index.state == IndexState::Ready || index.number > 0 {",
        )],
    },
    Bug {
        name: "a collection with a held document gets another name",
        edits: &[edit(COLLECTIONS, "hold_note::check_partition(tx, before.partition.id)?;", "")],
    },
    Bug {
        name: "a lifted document has no dates any more",
        edits: &[edit(HOLD, "context.settle_lifted(&mut new)?;", "let _ = context;")],
    },
    Bug {
        name: "a watch reports what expired after the drop",
        edits: &[edit(
            WATCH,
            "feed.until.is_none_or(|until| event.position < until)",
            "feed.until.is_none_or(|until| event.position != until)",
        )],
    },
    Bug {
        name: "a collection is dropped with its expired documents",
        edits: &[
            edit(COLLECTIONS, "        self.settle(&Owner::Collection(self.current(collection)?))?;\n", ""),
            edit(
                SETTLE,
                "policy.lifecycle.archive.is_some() && has_expired(tx, partition.id, &policy, by)?",
                "policy.lifecycle.archive.is_some() && false && has_expired(tx, partition.id, &policy, by)?",
            ),
        ],
    },
    Bug {
        name: "evidence does not name the index whose rule has expired the item",
        edits: &[edit(EXPIRY_RECORD, "|index| json_text(index.spec.name()));", "|_| \"null\".to_owned());")],
    },
    Bug {
        name: "the guard lets a date rule expire many items unasked",
        edits: &[edit(
            RULES,
            "change_policies(tx, &[context.gate.partition], &changes, consent)?;",
            "change_policies(tx, &[context.gate.partition], &changes, { let _ = consent; Consent::Given })?;",
        )],
    },
    Bug {
        name: "a new date rule is forecast to expire no item",
        edits: &[edit(GUARD, "if unknown && living.items > 0 {", "if unknown && living.items > 1000 {")],
    },
];
