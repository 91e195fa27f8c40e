//! Writes the next batch: expired items are read in a view, and their lines are appended and synced. Then sweeps may
//! remove them.

use std::sync::Arc;

use bson::RawDocument;
use document::{Document, ItemNumber};
use storage::{Direction, Keyspace, Lanes, Read, Time, transact};

use super::unarchived::{self, Unarchived};
use super::{ArchiveError, PurgeNews};
use crate::Engine;
use crate::access::gate::{Gate, View};
use crate::catalog::archive_state::{Batch, Contents};
use crate::catalog::container::Partition;
use crate::catalog::owner::Owner;
use crate::entries::counters::Tally;
use crate::entries::queues::from_cursor;
use crate::evidence::expiry_record::{CollectionSource, EvidenceSource, ExpiryRecord, json_text};
use crate::expiry::ArchiveDirectory;
use crate::expiry::Policy;
use crate::expiry::header::Record;
use crate::keys;
use crate::types::error::{Error, Result};
use crate::types::limits::{ARCHIVE_BATCH_BYTES, ARCHIVE_BATCH_ITEMS};

/// The items that a sweep may remove.
#[derive(Debug, Clone)]
pub(crate) enum Removable {
    /// Everything that has expired: the owner wants no archive.
    All,
    /// The items of a batch.
    Archived(Arc<Batch>),
    /// Nothing before that time: the archive cannot be written.
    Nothing(Time),
}

impl Removable {
    /// Returns whether this was computed for the policy that the sweep's transaction sees.
    pub(crate) fn fits(&self, policy: &Policy) -> bool {
        match (self, &policy.lifecycle.archive) {
            (Removable::All, archive) => archive.is_none(),
            (Removable::Archived(batch), archive) => *archive == Some(batch.directory.clone()),
            (Removable::Nothing(_), archive) => archive.is_some(),
        }
    }

    /// Returns whether an expired item of a queue may be removed.
    pub(crate) fn covers(&self, number: ItemNumber) -> bool {
        match self {
            Removable::All => true,
            // An expired item gets no new version, so its number is enough.
            Removable::Archived(batch) => batch.contents.items.contains_key(&number),
            Removable::Nothing(_) => false,
        }
    }

    /// Returns why an expired item of a queue has no line and never will, or `None` if it has one or waits for it.
    pub(crate) fn damage(&self, number: ItemNumber) -> Option<&str> {
        match self {
            Removable::Archived(batch) => batch.contents.damaged.get(&number).map(String::as_str),
            Removable::All | Removable::Nothing(_) => None,
        }
    }
}

impl Engine {
    /// Archives what the next sweep would remove first. Returns what the sweep may remove, and how often the store
    /// was used for that.
    pub(crate) fn archive_ahead(&self, owner: &Owner, partition: &Partition) -> Result<(Removable, u64)> {
        let lifecycle = partition.policy.read().lifecycle.clone();
        let Some(directory) = lifecycle.archive else {
            partition.archive.forget();
            return Ok((Removable::All, 0));
        };
        let _turn = partition.archive.take_turn();
        let now = self.store.now()?;
        if let Some(retry_at) = partition.archive.waits_until(&directory, now) {
            return Ok((Removable::Nothing(retry_at), 0));
        }
        if let Some(batch) = partition.archive.batch(&directory) {
            return Ok((Removable::Archived(batch), 0));
        }
        if lifecycle.hold.is_some() {
            return Ok((Removable::Nothing(now), 0));
        }
        let lane = Lanes::one(u64::from(partition.id.0));
        // Whatever commits after this transaction has its time or a later one, so an item that has expired by then
        // stays expired.
        let trusted = transact(&*self.store, lane, |tx| Ok::<_, Error>(tx.trusted_time())).wait()?;
        let mut view = View::open(&*self.store, partition)?;
        view.gate.now = trusted;
        let collected = match owner {
            Owner::Container(container) => collect::<_, Document>(&view, &**container)?,
            Owner::Collection(collection) => {
                let (collection, indexes) = (Arc::clone(collection), collection.indexes());
                collect::<_, RawDocument>(&view, &CollectionSource { collection, indexes })?
            }
        };
        // The view is not needed any more, and must not hold back what is written meanwhile.
        drop(view);
        Ok((self.write_batch(owner, partition, directory, collected)?, 2))
    }

    fn write_batch(
        &self,
        owner: &Owner,
        partition: &Partition,
        directory: ArchiveDirectory,
        collected: Collected,
    ) -> Result<Removable> {
        let Collected { lines, contents } = collected;
        let tally = Tally { items: contents.lines(), bytes: lines.len() as u64 };
        let now = self.store.now()?;
        let outcome = match &self.options.archive {
            _ if lines.is_empty() => Ok(()),
            Some(archive) => archive.append(&directory, now, &lines),
            None => Err(ArchiveError("this server has no archive: it was started without one".into())),
        };
        let container = || format!("{}/{}", owner.database(), owner.name());
        match outcome {
            Ok(()) => {
                let batch = Arc::new(Batch::new(directory, contents));
                if partition.archive.written(&batch, tally) {
                    self.news.tell(PurgeNews::GoesOn { container: container() });
                }
                Ok(Removable::Archived(batch))
            }
            Err(error) => {
                let (is_first, retry_at) = partition.archive.failed(&directory, &error, now);
                if is_first {
                    let error = error.to_string();
                    self.news.tell(PurgeNews::Waits { container: container(), error });
                }
                Ok(Removable::Nothing(retry_at))
            }
        }
    }
}

/// The contents of the next batch.
#[derive(Default)]
struct Collected {
    lines: Vec<u8>,
    contents: Contents,
}

impl Collected {
    fn is_full(&self) -> bool {
        self.contents.len() >= ARCHIVE_BATCH_ITEMS || self.lines.len() >= ARCHIVE_BATCH_BYTES
    }

    fn add<K: EvidenceSource>(&mut self, source: &K, expiry_record: &ExpiryRecord, body: &K::Body) {
        let parts = [
            r#"{"database":"#,
            &json_text(source.database()),
            r#","container":"#,
            &json_text(source.name()),
            ",",
            &expiry_record.members,
            r#","item":"#,
            &source.item_json(body),
            "}\n",
        ];
        for part in parts {
            self.lines.extend_from_slice(part.as_bytes());
        }
    }
}

/// Collects what a sweep would remove first: items that were moved aside, then the expired items of each queue.
fn collect<K: EvidenceSource<Body = B>, B: crate::expiry::header::Body>(
    view: &View,
    source: &K,
) -> Result<Collected> {
    let (reader, gate): (&dyn Read, &Gate) = (&*view.snapshot, &view.gate);
    let mut collected = Collected::default();
    // Mostly there is none, and reading the sum is cheaper than searching the range.
    let has_aside = unarchived::sum(reader, gate.partition)?.items > 0;
    let aside = has_aside.then(|| unarchived::waiting(reader, gate.partition)).transpose()?;
    for entry in aside.into_iter().flatten() {
        if collected.is_full() {
            return Ok(collected);
        }
        let (key, value) = entry?;
        let (_, number) = keys::unarchived_entry(&key)?;
        match or_damage(Unarchived::<B>::decode(&key, &value))? {
            Ok(Unarchived { expiry_record, record }) => {
                collected.add(source, &expiry_record, &record.body);
                collected.contents.aside.push(key.to_vec());
            }
            Err(why) => drop(collected.contents.damaged_aside.insert(number, why)),
        }
    }
    for queue in gate.policy.queues() {
        let Some(through) = gate.policy.expired_through(queue, gate.now) else { continue };
        let range = from_cursor(reader, gate.partition, queue, through)?;
        for entry in reader.scan(Keyspace::Queue, range, Direction::Forward) {
            if collected.is_full() {
                return Ok(collected);
            }
            let (_, number) = keys::queue_entry(&entry?.0)?;
            // The item may have expired by another rule as well.
            if collected.contents.items.contains_key(&number) {
                continue;
            }
            let expired = expired_items(reader, gate, number).and_then(|expired_items: Record<B>| {
                Ok((ExpiryRecord::new(source, &gate.policy, &expired_items, None)?, expired_items))
            });
            match or_damage(expired)? {
                Ok((expiry_record, expired_items)) => {
                    collected.add(source, &expiry_record, &expired_items.body);
                    collected.contents.items.insert(number, expired_items.header.sequence);
                }
                Err(why) => drop(collected.contents.damaged.insert(number, why)),
            }
        }
    }
    Ok(collected)
}

/// Returns what was read, or the damage that prevents it, so that the rest can continue; other errors are returned to
/// the caller.
fn or_damage<T>(outcome: Result<T>) -> Result<std::result::Result<T, String>> {
    match outcome {
        Ok(read) => Ok(Ok(read)),
        Err(Error::Corrupt(why)) => Ok(Err(why)),
        Err(error) => Err(error),
    }
}

fn expired_items<B: crate::expiry::header::Body>(
    reader: &dyn Read,
    gate: &Gate,
    number: ItemNumber,
) -> Result<Record<B>> {
    gate.by_number(reader, number)?.expired()?.ok_or_else(|| {
        Error::Corrupt(format!(
            "item {} has an entry in an expired prefix, but is missing or has not expired",
            number.0
        ))
    })
}
