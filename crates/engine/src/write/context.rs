//! The one write path of items: insert, replace, delete and rewrite inside a transaction, for containers and collections.
//!
//! ```text
//!   draft ------> claim the id and the unique values -> number -> footprint -> merge with the old one -> history
//!   (outside)     expired holders are removed
//! ```
//!
//! A write that finds an expired item, under its own id or under a unique value that it claims, removes that item with every
//! entry in the same commit (T15): the caller does not see it, and the purge has nothing left to do.
//!
//! Every claim comes before the first put, so a refused write leaves nothing in its transaction except the removal of expired
//! items. An [`ItemSchema`] has what containers and collections do differently.

use std::cell::Cell;
use std::collections::BTreeSet;

use document::ItemNumber;
use storage::{Time, Transaction};

use super::held;
use super::schema::{Draft, ItemSchema};
use crate::access::gate::{Gate, LookupResult};
use crate::definition::OwnTtl;
use crate::entries::set_aside;
use crate::entries::traces::Traces;
use crate::entries::writes::NumberWrites;
use crate::evidence::removal;
use crate::expiry::Countdown;
use crate::expiry::header::{Header, Record};
use crate::feed::history::{self, Manner, WriteEffect};
use crate::types::alarm::Alarm;
use crate::types::charge::Charge;
use crate::types::error::{Error, Result};
use crate::types::lsn::WriteNumber;

/// The write path of one partition inside a transaction.
pub(crate) struct WriteContext<S> {
    pub(crate) gate: Gate,
    pub(crate) schema: S,
    /// What a write does to the countdown of the item that it replaces.
    pub(crate) countdown: Countdown,
    /// Items that the same transaction rewrites: their current unique values do not count.
    pub(crate) rewritten: BTreeSet<ItemNumber>,
    /// When background work is due: the first of the items written here expires, or the feed must be trimmed.
    due: Cell<Option<Time>>,
}

/// The outcome of the claim of a unique value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueClaim {
    /// The value is free.
    Granted,
    /// A living item has it.
    Taken,
    /// The item that has it does not exist.
    HolderMissing,
}

/// The result of a delete.
pub(crate) struct Deleted {
    pub(crate) write: WriteNumber,
    pub(crate) charge: Charge,
    /// Its work, in entries.
    pub(crate) work: usize,
}

impl<S: ItemSchema> WriteContext<S> {
    /// Returns the write path of a transaction behind a gate.
    pub(crate) fn new(gate: Gate, schema: S) -> WriteContext<S> {
        let (rewritten, due) = (BTreeSet::new(), Cell::new(None));
        WriteContext { gate, schema, countdown: Countdown::Restart, rewritten, due }
    }

    /// Ends the writes of a transaction: stores notes about the indexes, and wakes the background work if it is due earlier.
    pub(crate) fn finish(&self, tx: &mut Transaction<'_>, alarm: &Alarm) {
        self.schema.store_notes(tx);
        if let Some(due) = self.due.get() {
            self.schema.partition().next_due.not_after(due);
            alarm.set(due);
        }
    }

    /// Writes a new item. An error if a living item has its id or one of its unique values.
    pub(crate) fn insert(
        &self,
        tx: &mut Transaction<'_>,
        numbers: &mut impl NumberWrites,
        Draft { body, ttl, extracted }: Draft<S>,
    ) -> Result<(Record<S::Body>, Charge)> {
        self.claim_id(tx, &body)?;
        let mut extracted = self.schema.refresh(extracted, &body, None)?;
        self.schema.claim_unique_values(self, tx, (&body, &extracted), None)?;
        let record = self.record(numbers.next_write(tx)?, None, ttl, body)?;
        let traces = Traces::new(self.gate.partition, &record);
        let footprint = self.schema.footprint(traces, &record, &mut extracted)?;
        let charge = Charge::write(record.size(), footprint.index.terms());
        footprint.insert(tx)?;
        self.keep_version(tx, None, &record, Manner::Whole)?;
        self.schema.note_written(&record, &extracted)?;
        Ok((record, charge))
    }

    /// Writes another version of a living item.
    pub(crate) fn replace(
        &self,
        tx: &mut Transaction<'_>,
        numbers: &mut impl NumberWrites,
        old: &Record<S::Body>,
        Draft { body, ttl, extracted }: Draft<S>,
        manner: Manner,
    ) -> Result<(Record<S::Body>, Charge)> {
        let changes_id = self.schema.changes_id(&old.body, &body)?;
        held::check_item(tx, &self.gate, old)?;
        if changes_id {
            self.claim_id(tx, &body)?;
        }
        let mut extracted = self.schema.refresh(extracted, &body, Some(old))?;
        let mut stored = self.schema.extract_stored(old);
        self.schema.claim_unique_values(self, tx, (&body, &extracted), Some((old.number, &stored)))?;
        let record = self.record(numbers.next_write(tx)?, Some(old), ttl, body)?;
        let traces = |record| Traces::new(self.gate.partition, record);
        let footprint = self.schema.footprint(traces(&record), &record, &mut extracted)?;
        let before = self.schema.footprint(traces(old), old, &mut stored)?;
        let charge = Charge::replace(old.size(), record.size(), footprint.index.changed_terms(&before.index));
        footprint.replace(before, tx)?;
        self.keep_version(tx, Some(old), &record, manner)?;
        self.schema.note_written(&record, &extracted)?;
        Ok((record, charge))
    }

    /// Deletes a living item.
    pub(crate) fn delete(
        &self,
        tx: &mut Transaction<'_>,
        numbers: &mut impl NumberWrites,
        old: &Record<S::Body>,
    ) -> Result<Deleted> {
        held::check_item(tx, &self.gate, old)?;
        let write = numbers.next_write(tx)?;
        let footprint = self.schema.footprint_to_remove(old)?;
        let (charge, entries) = (Charge::write(old.size(), footprint.index.terms()), footprint.entries());
        footprint.remove(tx)?;
        let work = entries + history::deleted(tx, &self.gate, write, old);
        self.note_due(history::look_again(&self.gate, self.gate.now));
        Ok(Deleted { write, charge, work })
    }

    /// Replaces the header of a version. Clients see no new version.
    pub(crate) fn rewrite(
        &self,
        tx: &mut Transaction<'_>,
        old: &Record<S::Body>,
        new: &Record<S::Body>,
    ) -> Result<()> {
        let before = self.schema.stored_footprint(old)?;
        self.schema.stored_footprint(new)?.replace(before, tx)
    }

    /// Gives a stored item whose hold is lifted its queue positions back.
    pub(crate) fn settle_lifted(&self, record: &mut Record<S::Body>) -> Result<()> {
        let Record { header, body, .. } = record;
        self.gate.policy.settle_lifted(header, body, |rule| self.schema.date(rule, body))
    }

    /// Returns the version that a body becomes now (T9), as a replacement of an old one or as a new item.
    fn record(
        &self,
        write: WriteNumber,
        old: Option<&Record<S::Body>>,
        ttl: OwnTtl,
        body: S::Body,
    ) -> Result<Record<S::Body>> {
        let number = old.map_or(ItemNumber(write.sequence.0), |old| old.number);
        let mut header = Header::numbered(write, self.gate.now.seconds(), ttl);
        let before = (self.countdown, old.map(|old| &old.header));
        self.gate.policy.settle(&mut header, &body, before, |rule| self.schema.date(rule, &body))?;
        Ok(Record { number, header, body })
    }

    /// Claims the id of a body: removes an expired holder; a living one is a conflict.
    fn claim_id(&self, tx: &mut Transaction<'_>, body: &S::Body) -> Result<()> {
        let id_key = self.schema.id_key(body)?;
        let found = self.gate.by_id_key(tx, &id_key);
        match self.claim_from(tx, found.map_err(|error| error.at_item(self.schema.item_name(body)))?)? {
            ValueClaim::Taken => Err(self.schema.id_taken(body)),
            ValueClaim::Granted | ValueClaim::HolderMissing => Ok(()),
        }
    }

    /// Claims a unique value that an item has: an expired item is removed; a living one other than `own`, or than those that the
    /// transaction rewrites, keeps it.
    pub(crate) fn claim_value(
        &self,
        tx: &mut Transaction<'_>,
        holder: ItemNumber,
        own: Option<ItemNumber>,
    ) -> Result<ValueClaim> {
        if Some(holder) == own || self.rewritten.contains(&holder) {
            return Ok(ValueClaim::Granted);
        }
        let found = self.gate.by_number(tx, holder)?;
        self.claim_from(tx, found)
    }

    fn claim_from(&self, tx: &mut Transaction<'_>, found: LookupResult<S::Body>) -> Result<ValueClaim> {
        match found {
            LookupResult::Living(_) => Ok(ValueClaim::Taken),
            LookupResult::Expired(holder) => {
                self.remove_expired(tx, &holder)?;
                Ok(ValueClaim::Granted)
            }
            LookupResult::Damaged(holder) => {
                self.gate.check_expired(tx, &holder.header)?;
                Ok(ValueClaim::Granted)
            }
            LookupResult::Absent => Ok(ValueClaim::HolderMissing),
        }
    }

    /// Removes an expired item with every entry. It takes no sequence, so no client can see when it was removed, or by what.
    ///
    /// A damaged item that cannot be removed stays as it is, and the write takes over its id and values all the same (T15): no entry
    /// leads to it any more, and a later removal keeps the new item's entries. The purge sets it aside and reports it.
    fn remove_expired(&self, tx: &mut Transaction<'_>, expired: &Record<S::Body>) -> Result<()> {
        self.gate.check_expired(tx, &expired.header)?;
        let removed = set_aside::attempt(tx, |tx| {
            let (source, partition) = (self.schema.source(), self.schema.partition());
            let due = removal::by_write(tx, &self.gate, source, partition, expired)?;
            self.schema.footprint_to_remove(expired)?.remove(tx)?;
            Ok(due)
        })?;
        if let Ok(due) = removed {
            self.note_due(due);
        }
        Ok(())
    }

    /// Records a version where all versions are kept; a version that has already expired is removed at once.
    fn keep_version(
        &self,
        tx: &mut Transaction<'_>,
        old: Option<&Record<S::Body>>,
        new: &Record<S::Body>,
        manner: Manner,
    ) -> Result<()> {
        self.note_due(self.gate.policy.expiry_time(&new.header));
        self.note_due(history::look_again(&self.gate, self.gate.now));
        match history::written(tx, &self.gate, old, new, manner) {
            WriteEffect::Stays => Ok(()),
            WriteEffect::ExpiredOnArrival => self.remove_on_arrival(tx, new, new),
        }
    }

    /// Removes an item that is overdue as `arrived`; the store has it as `stored`.
    pub(crate) fn remove_on_arrival(
        &self,
        tx: &mut Transaction<'_>,
        stored: &Record<S::Body>,
        arrived: &Record<S::Body>,
    ) -> Result<()> {
        let (source, partition) = (self.schema.source(), self.schema.partition());
        self.note_due(removal::on_arrival(tx, &self.gate, source, partition, arrived)?);
        self.schema.footprint_to_remove(stored)?.remove(tx)
    }

    /// Notes that background work of the partition is due then.
    pub(crate) fn note_due(&self, due: Option<Time>) {
        self.due.set(self.due.get().into_iter().chain(due).min());
    }
}

/// Returns the error about an entry that leads to no item.
pub(crate) fn missing_holder(number: ItemNumber) -> Error {
    Error::Corrupt(format!("an index entry of item {}, which is not there", number.0))
}
