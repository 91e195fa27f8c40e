//! The next batch: dead items are read in a view, their lines appended and synced; then sweeps may have them.

use std::sync::Arc;

use bson::RawDocument;
use document::{Document, ItemNumber};
use storage::{Direction, Keyspace, Lanes, Read, Time, transact};

use super::state::{Batch, Contents};
use super::unarchived::{self, Unarchived};
use super::{ArchiveDirectory, ArchiveError, PurgeNews};
use crate::Engine;
use crate::container::Partition;
use crate::counters::Tally;
use crate::error::{Error, Result};
use crate::expiry::Policy;
use crate::gate::{Gate, View};
use crate::header::Record;
use crate::holder::Holder;
use crate::keys;
use crate::limits::{ARCHIVE_BATCH_BYTES, ARCHIVE_BATCH_ITEMS};
use crate::obituary::{CollectionKeeper, Keeper, Obituary, json_text};
use crate::purge::from_hand;

/// What a sweep may remove.
#[derive(Debug, Clone)]
pub(crate) enum Leave {
    /// All that is dead: the owner wants no archive.
    All,
    /// What a batch has.
    Archived(Arc<Batch>),
    /// Nothing before that time: the archive cannot be written.
    Nothing(Time),
}

impl Leave {
    /// Whether the policy of the sweep's transaction is the one that this was asked for.
    pub(crate) fn fits(&self, policy: &Policy) -> bool {
        match (self, &policy.lifecycle.archive) {
            (Leave::All, archive) => archive.is_none(),
            (Leave::Archived(batch), archive) => *archive == Some(batch.directory.clone()),
            (Leave::Nothing(_), archive) => archive.is_some(),
        }
    }

    /// Whether a dead item of a queue may be removed.
    pub(crate) fn covers(&self, number: ItemNumber) -> bool {
        match self {
            Leave::All => true,
            // A dead item has no other version any more.
            Leave::Archived(batch) => batch.contents.items.contains_key(&number),
            Leave::Nothing(_) => false,
        }
    }

    /// Why an expired item of a queue has no line and never will; none if it has one or waits for it.
    pub(crate) fn damage(&self, number: ItemNumber) -> Option<&str> {
        match self {
            Leave::Archived(batch) => batch.contents.damaged.get(&number).map(String::as_str),
            Leave::All | Leave::Nothing(_) => None,
        }
    }
}

impl Engine {
    /// Sees to it that what a sweep meets first is in the archive; says, too, how often the store was used for that.
    pub(crate) fn archive_ahead(&self, holder: &Holder, partition: &Partition) -> Result<(Leave, u64)> {
        let lifecycle = partition.policy.read().lifecycle.clone();
        let Some(directory) = lifecycle.archive else {
            partition.archive.forget();
            return Ok((Leave::All, 0));
        };
        let _turn = partition.archive.take_turn();
        let now = self.store.now()?;
        if let Some(retry_at) = partition.archive.waits_until(&directory, now) {
            return Ok((Leave::Nothing(retry_at), 0));
        }
        if let Some(batch) = partition.archive.batch(&directory) {
            return Ok((Leave::Archived(batch), 0));
        }
        if lifecycle.hold.is_some() {
            return Ok((Leave::Nothing(now), 0));
        }
        let lane = Lanes::one(u64::from(partition.id.0));
        // Whatever commits after this transaction has its time or a later one, so whoever is dead by then stays so.
        let trusted = transact(&*self.store, lane, |tx| Ok::<_, Error>(tx.trusted_time())).wait()?;
        let mut view = View::open(&*self.store, partition)?;
        view.gate.now = trusted;
        let collected = match holder {
            Holder::Container(container) => collect::<_, Document>(&view, &**container)?,
            Holder::Collection(collection) => {
                let indexes = collection.indexes();
                collect::<_, RawDocument>(&view, &CollectionKeeper { collection, indexes: &indexes })?
            }
        };
        // What is written meanwhile need not be kept for a view that nobody looks through.
        drop(view);
        Ok((self.write_batch(holder, partition, directory, collected)?, 2))
    }

    fn write_batch(
        &self,
        holder: &Holder,
        partition: &Partition,
        directory: ArchiveDirectory,
        collected: Collected,
    ) -> Result<Leave> {
        let Collected { lines, contents } = collected;
        let tally = Tally { items: contents.lines(), bytes: lines.len() as u64 };
        let now = self.store.now()?;
        let outcome = match &self.options.archive {
            _ if lines.is_empty() => Ok(()),
            Some(archive) => archive.append(&directory, now, &lines),
            None => Err(ArchiveError("this server has no archive: it was started without one".into())),
        };
        let container = || format!("{}/{}", holder.database(), holder.name());
        match outcome {
            Ok(()) => {
                let batch = Arc::new(Batch::new(directory, contents));
                if partition.archive.written(&batch, tally) {
                    self.news.tell(PurgeNews::GoesOn { container: container() });
                }
                Ok(Leave::Archived(batch))
            }
            Err(error) => {
                let (is_first, retry_at) = partition.archive.failed(&directory, &error, now);
                if is_first {
                    let error = error.to_string();
                    self.news.tell(PurgeNews::Waits { container: container(), error });
                }
                Ok(Leave::Nothing(retry_at))
            }
        }
    }
}

/// What the next batch will have.
#[derive(Default)]
struct Collected {
    lines: Vec<u8>,
    contents: Contents,
}

impl Collected {
    fn is_full(&self) -> bool {
        self.contents.len() >= ARCHIVE_BATCH_ITEMS || self.lines.len() >= ARCHIVE_BATCH_BYTES
    }

    fn add<K: Keeper>(&mut self, keeper: &K, obituary: &Obituary, body: &K::Body) {
        let parts = [
            r#"{"database":"#,
            &json_text(keeper.database()),
            r#","container":"#,
            &json_text(keeper.name()),
            ",",
            &obituary.members,
            r#","item":"#,
            &keeper.item_json(body),
            "}\n",
        ];
        for part in parts {
            self.lines.extend_from_slice(part.as_bytes());
        }
    }
}

/// What a sweep would meet first: what was moved aside, then the dead of each queue.
fn collect<K: Keeper<Body = B>, B: crate::header::Body>(view: &View, keeper: &K) -> Result<Collected> {
    let (reader, gate): (&dyn Read, &Gate) = (&*view.snapshot, &view.gate);
    let mut collected = Collected::default();
    // Mostly there is none, and a sum is found sooner than a range is searched.
    let has_aside = unarchived::sum(reader, gate.partition)?.items > 0;
    let aside = has_aside.then(|| unarchived::waiting(reader, gate.partition)).transpose()?;
    for entry in aside.into_iter().flatten() {
        if collected.is_full() {
            return Ok(collected);
        }
        let (key, value) = entry?;
        let (_, number) = keys::unarchived_entry(&key)?;
        match or_damage(Unarchived::<B>::decode(&key, &value))? {
            Ok(Unarchived { obituary, record }) => {
                collected.add(keeper, &obituary, &record.body);
                collected.contents.aside.push(key.to_vec());
            }
            Err(why) => drop(collected.contents.damaged_aside.insert(number, why)),
        }
    }
    for queue in gate.policy.queues() {
        let Some(through) = gate.policy.dead_through(queue, gate.now) else { continue };
        let range = from_hand(reader, gate.partition, queue, through)?;
        for entry in reader.scan(Keyspace::Queue, range, Direction::Forward) {
            if collected.is_full() {
                return Ok(collected);
            }
            let (_, number) = keys::queue_entry(&entry?.0)?;
            // Another rule may have killed it, too.
            if collected.contents.items.contains_key(&number) {
                continue;
            }
            let expired = dead(reader, gate, number)
                .and_then(|dead: Record<B>| Ok((Obituary::new(keeper, &gate.policy, &dead, None)?, dead)));
            match or_damage(expired)? {
                Ok((obituary, dead)) => {
                    collected.add(keeper, &obituary, &dead.body);
                    collected.contents.items.insert(number, dead.header.sequence);
                }
                Err(why) => drop(collected.contents.damaged.insert(number, why)),
            }
        }
    }
    Ok(collected)
}

/// What was read, or the damage that prevents it, with which the rest goes on; other errors are the caller's.
fn or_damage<T>(outcome: Result<T>) -> Result<std::result::Result<T, String>> {
    match outcome {
        Ok(read) => Ok(Ok(read)),
        Err(Error::Corrupt(why)) => Ok(Err(why)),
        Err(error) => Err(error),
    }
}

fn dead<B: crate::header::Body>(reader: &dyn Read, gate: &Gate, number: ItemNumber) -> Result<Record<B>> {
    gate.by_number(reader, number)?
        .expired()?
        .ok_or_else(|| Error::Corrupt(format!("item {} stands among the dead but is not one", number.0)))
}
