//! Defects of expiry itself: rules, writes, the purge, queries, the index, the clock.

use super::{Bug, edit};

const SCHEMA_POLICIES: &str = "crates/engine/src/schema/policies.rs";
const EXPIRY: &str = "crates/engine/src/expiry/mod.rs";
const EXPIRY_CHANGE: &str = "crates/engine/src/expiry/change.rs";
const FOOTPRINT: &str = "crates/engine/src/entries/traces.rs";
const INDEX_FOOTPRINT: &str = "crates/engine/src/index/footprint.rs";
const WRITE: &str = "crates/engine/src/write/mod.rs";
const WRITE_CONTEXT: &str = "crates/engine/src/write/context.rs";
const PURGE: &str = "crates/engine/src/maintenance/purge/mod.rs";
const SWEEP: &str = "crates/engine/src/maintenance/purge/sweep.rs";
const COUNTERS: &str = "crates/engine/src/entries/counters.rs";
const GATE: &str = "crates/engine/src/access/gate.rs";
const INDEX_ENTRIES: &str = "crates/engine/src/index/index_footprint.rs";
const INDEX_BUILDS: &str = "crates/engine/src/index/build.rs";
const INDEX_BUILD: &str = "crates/engine/src/maintenance/index_build.rs";
const BY_STAMP: &str = "crates/engine/src/query/by_timestamp.rs";
const PAGES: &str = "crates/engine/src/query/pages.rs";
const TTL: &str = "crates/engine/src/expiry/ttl.rs";
const RUNNING: &str = "crates/storage/src/clock/running.rs";
const START: &str = "crates/storage/src/clock/start.rs";
const SLEW: &str = "crates/storage/src/clock/slew.rs";
const WRITER: &str = "crates/storage/src/writer.rs";

/// Defects of expiry.
pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "an item is still living at its deadline's instant",
        edits: &[edit(EXPIRY, "|through| place.base <= through)", "|through| place.base < through)")],
    },
    Bug {
        name: "a policy change forgets the cutoff",
        edits: &[edit(
            EXPIRY_CHANGE,
            "next.cutoffs.push(Cutoff { queue, through, before: sequence, term });",
            "let _ = term;",
        )],
    },
    Bug {
        name: "no cutoff for the rule of own ttl",
        edits: &[edit(
            EXPIRY_CHANGE,
            "for queue in self.queues() {\n            let Some((through, term)) = self.horizon",
            "for queue in [Queue::Inherit] {\n            let Some((through, term)) = self.horizon",
        )],
    },
    Bug {
        name: "a cutoff is forgotten before the purge has passed it",
        edits: &[edit(
            SWEEP,
            "Ok(expired_items.len() < room && removed == expired_items.len() && !swept.is_full())",
            "Ok(true)",
        )],
    },
    Bug {
        name: "own ttl ignored while D is -1",
        edits: &[edit(
            EXPIRY,
            "(Queue::Own, DefaultTtl::Never | DefaultTtl::Seconds(_)) => Some(0),",
            "(Queue::Own, DefaultTtl::Never) => None,\n            (Queue::Own, DefaultTtl::Seconds(_)) => Some(0),",
        )],
    },
    Bug {
        name: "a replace leaves the old queue entry",
        edits: &[edit(
            FOOTPRINT,
            "tx.remove(gone.keyspace, gone.key.clone());",
            "if gone.keyspace != Keyspace::Queue { tx.remove(gone.keyspace, gone.key.clone()); }",
        )],
    },
    Bug {
        name: "a replace leaves the old unique entry",
        edits: &[edit(
            FOOTPRINT,
            "tx.remove(gone.keyspace, gone.key.clone());",
            "if gone.keyspace != Keyspace::Unique { tx.remove(gone.keyspace, gone.key.clone()); }",
        )],
    },
    Bug {
        name: "a removal does not count down",
        edits: &[edit(FOOTPRINT, "counters::subtract(tx, &self.weight)?;", "")],
    },
    Bug {
        name: "expired items are counted up to the hour only",
        edits: &[edit(
            COUNTERS,
            "sums.push(whole_hours.plus(seconds).minus(beyond)?);",
            "let _ = (seconds, beyond);\n        sums.push(whole_hours);",
        )],
    },
    Bug {
        name: "an expired item keeps its unique value",
        edits: &[edit(
            WRITE_CONTEXT,
            "let found = self.gate.by_number(tx, holder)?;",
            "let found = self.gate.by_number(tx, holder)?;\n        if matches!(found, LookupResult::Expired(_)) { return Ok(ValueClaim::Taken); }",
        )],
    },
    Bug {
        name: "an expired item keeps its id",
        edits: &[edit(
            WRITE_CONTEXT,
            "let found = self.gate.by_id_key(tx, &id_key);",
            "let found = self.gate.by_id_key(tx, &id_key);\n        if matches!(found, Ok(LookupResult::Expired(_))) { return Err(self.schema.id_taken(body)); }",
        )],
    },
    Bug {
        name: "the purge removes entries that a living item has taken over",
        edits: &[
            edit(WRITE_CONTEXT, "self.schema.footprint_to_remove(expired)?.remove(tx)?;", ""),
            edit(FOOTPRINT, "if is_own {", "if is_own || !entry.key.is_empty() {"),
        ],
    },
    Bug {
        name: "the purge trusts a suspect clock",
        edits: &[
            edit(
                PURGE,
                "|| self.store.clock_status()?.suspect.is_some())",
                "|| self.store.clock_status().is_err())",
            ),
            edit(PURGE, "Ok(gate) if !tx.clock_is_suspect() && granted", "Ok(gate) if granted"),
            edit(GATE, "is_expired(header, tx.trusted_time())", "is_expired(header, tx.time())"),
        ],
    },
    Bug {
        name: "a write replaces an item that only a suspect clock calls expired",
        edits: &[edit(
            WRITE_CONTEXT,
            "self.gate.check_expired(tx, &expired.header)?;",
            "let _ = self.gate.check_expired(tx, &expired.header);",
        )],
    },
    Bug {
        name: "the purge's hand goes too far",
        edits: &[edit(
            SWEEP,
            "tx.put(keyspace, key, keys::behind_queue_entry(last)?);",
            "tx.put(keyspace, key, { let mut far = last.to_vec(); far[12] = far[12].saturating_add(16); far });",
        )],
    },
    Bug {
        name: "the purge takes a sequence",
        edits: &[edit(SWEEP, "swept.count(&item);", "swept.count(&item);\n        tx.next_sequence();")],
    },
    Bug {
        name: "a purged item stays in the feed",
        edits: &[edit(
            FOOTPRINT,
            "Keyspace::Unique => entry.is_stored(tx)?,",
            "Keyspace::Unique => entry.is_stored(tx)?,\n                Keyspace::Feed => false,",
        )],
    },
    Bug {
        name: "a replace leaves the old index entries",
        edits: &[edit(
            INDEX_ENTRIES,
            "Difference::Gone(old) => tx.remove(Keyspace::Index, old.key),",
            "Difference::Gone(_) => {}",
        )],
    },
    Bug {
        name: "index entries promise a longer life than the item has",
        edits: &[edit(INDEX_ENTRIES, "let kept = old.places.bounds(&self.places);", "let kept = true;")],
    },
    Bug {
        name: "the purge leaves the index entries",
        edits: &[edit(INDEX_FOOTPRINT, "self.index.remove(tx)", "let _ = self.index;\n        Ok(())")],
    },
    Bug {
        name: "items created during an index build are in no index",
        edits: &[edit(
            INDEX_BUILDS,
            "number <= self.through || number > self.until",
            "number <= self.through",
        )],
    },
    Bug {
        name: "an index serves before it is whole",
        edits: &[edit(INDEX_BUILD, "if built.items == 0 {", "if built.items <= limit {")],
    },
    Bug {
        name: "a replaced index is not cleared away",
        edits: &[edit(INDEX_BUILD, "state.clearing.extend(replaced);", "let _ = replaced;")],
    },
    Bug {
        name: "a ttl of 0 is accepted",
        edits: &[edit(TTL, "filter(|seconds| (1..=SECONDS_MAX)", "filter(|seconds| (0..=SECONDS_MAX)")],
    },
    Bug {
        name: "a batch drops what T5 refuses and commits the rest",
        edits: &[edit(
            WRITE,
            "operations.into_iter().enumerate().map(prepare).collect()",
            "operations.into_iter().enumerate().map(prepare).filter(|prepared| !matches!(prepared, \
             Err(BatchError { error: Error::InvalidTtl { .. }, .. }))).collect()",
        )],
    },
    Bug {
        name: "a replace does not restart the countdown",
        edits: &[edit(
            WRITE_CONTEXT,
            "let record = self.record(numbers.next_write(tx)?, Some(old), ttl, body)?;",
            "let mut record = self.record(numbers.next_write(tx)?, Some(old), ttl, body)?;\n        record.header.ts = old.header.ts;",
        )],
    },
    Bug {
        name: "a policy change is not durable",
        edits: &[edit(SCHEMA_POLICIES, "put(tx, Key::Policy(partition), next.encode());", "")],
    },
    Bug {
        name: "a query by _ts misses the last second",
        edits: &[edit(BY_STAMP, "from_seconds(to.saturating_add(1))", "from_seconds(to)")],
    },
    Bug {
        name: "an index entry of an expired item counts",
        edits: &[edit(GATE, "is_none_or(|through| place.base > through)", "is_none_or(|_| true)")],
    },
    Bug {
        name: "a token names the item that did not fit",
        edits: &[edit(
            PAGES,
            "match self.take(&mut run, &mut items, &chosen, &mut arriving, &mut progress)? {",
            "dealt_with = Some(arriving.position.clone());\n                        \
             match self.take(&mut run, &mut items, &chosen, &mut arriving, &mut progress)? {",
        )],
    },
    Bug {
        name: "the clock follows a set-back",
        edits: &[edit(RUNNING, "self.shown = slewed.max(wall.into());", "self.shown = wall.into();")],
    },
    Bug {
        name: "time falls over a crash",
        edits: &[edit(
            START,
            "Self::at(wall.max(durable.bound), boot, durable)",
            "Self::at(wall, boot, durable)",
        )],
    },
    Bug {
        // A step of the wall clock is shown within the bound without a commit, and a start goes by the line alone.
        name: "a step within the bound falls over a crash",
        edits: &[
            edit(RUNNING, "self.durable.limit(self.boot)", "Some(self.durable.bound)"),
            edit(
                RUNNING,
                "|| record.limit(self.boot).is_none_or(|limit| limit < now)",
                "|| record.boot.is_some_and(|line| Some(line.id) != self.boot.id)",
            ),
        ],
    },
    Bug {
        name: "every crash puts time ahead by a lease",
        edits: &[edit(START, "durable.limit(boot).unwrap_or(durable.bound)", "durable.bound")],
    },
    Bug {
        name: "time that is ahead does not slow down",
        edits: &[edit(SLEW, "elapsed.as_nanos() * 9)", "elapsed.as_nanos() * 10)")],
    },
    Bug {
        name: "time goes on after a commit of unknown outcome",
        edits: &[edit(
            WRITER,
            "                self.shared.stop(&error);\n                Err(error)",
            "                self.shared.stop(&error);\n                self.shared.clock.publish(self.committed.clock, None);\n                Err(error)",
        )],
    },
];
