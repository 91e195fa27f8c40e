//! Records beside the items: the feed of all versions, items that wait to be archived, deletion records, receipts of sessions.

use bson::RawDocument;
use document::Document;
use storage::{Direction, KeyRange, Keyspace};

use super::Inspection;
use super::catalog::Layout;
use super::finding::{Fix, Subject};
use super::items::strange;
use super::partition::CheckedPartition;
use crate::catalog::container::Api;
use crate::collection::{self, ReceiptEntry};
use crate::evidence::archive::unarchived::Unarchived;
use crate::evidence::deletions;
use crate::feed::history;
use crate::keys::{self, PartitionId};
use crate::types::error::Result;

const RECORDED_ONCE: &str = "it is recorded nowhere else; restore a backup";
const EVIDENCE: &str = "evidence is not repaired: a repair could hide tampering";

impl Inspection<'_> {
    /// Checks the feed of all versions of a partition, and items that wait to be archived.
    pub(super) fn history(&mut self, checked: &dyn CheckedPartition) -> Result<()> {
        let label = checked.label();
        let is_wanted = checked.policy(self.reader)?.lifecycle.history_minutes.is_some();
        self.history_of(checked.id(), &label, checked.api())?;
        match history::keeping(self.reader, checked.id()) {
            Ok(kept) if is_wanted == (kept == Some(true)) => {}
            Ok(_) => {
                let what = "its rules and its feed of all versions disagree on whether it is kept";
                self.book.refuse(Subject::History, &label, what, RECORDED_ONCE);
            }
            Err(error) => {
                self.book.refuse(Subject::History, &label, error.to_string(), RECORDED_ONCE);
            }
        }
        Ok(())
    }

    /// Checks that every entry of the history of a partition can be read.
    pub(super) fn history_of(&mut self, partition: PartitionId, label: &str, api: Api) -> Result<()> {
        let (reader, bson) = (self.reader, api == Api::MongoDb);
        let (mut events, all) = (0_u64, KeyRange::prefix(keys::partition(partition)));
        for entry in reader.scan(Keyspace::History, all, Direction::Forward) {
            let (key, value) = entry?;
            let read = match key.get(4).copied() {
                Some(keys::HISTORY_STATE) => continue,
                Some(keys::UNARCHIVED) if bson => Unarchived::<RawDocument>::decode(&key, &value).map(drop),
                Some(keys::UNARCHIVED) => Unarchived::<Document>::decode(&key, &value).map(drop),
                Some(keys::HISTORY_CHANGE | keys::HISTORY_EXPIRY) => {
                    events += 1;
                    if bson {
                        history::read_entry::<RawDocument>(&key, &value)
                    } else {
                        history::read_entry::<Document>(&key, &value)
                    }
                }
                _ => {
                    self.book.refuse(Subject::Key, label, strange(Keyspace::History, &key), super::LOST_HERE);
                    continue;
                }
            };
            if let Err(error) = read {
                self.book.refuse(Subject::History, label, error.to_string(), RECORDED_ONCE);
            }
        }
        if events > 0 && matches!(history::keeping(reader, partition), Ok(None)) {
            let what = format!("{events} events are recorded, and the state of their feed is missing");
            self.book.refuse(Subject::History, label, what, RECORDED_ONCE);
        }
        Ok(())
    }

    /// Checks that every deletion record is as it was written, and exists where its owner has switched it on.
    pub(super) fn deletions(&mut self, layout: &Layout) -> Result<()> {
        let reader = self.reader;
        for entry in reader.scan(Keyspace::Deletion, KeyRange::all(), Direction::Forward) {
            let (key, _) = entry?;
            match key.first().copied() {
                Some(keys::DELETION_HEAD) => {
                    let Ok(partition) = keys::deletion_head(&key) else {
                        self.strange_deletion(&key);
                        continue;
                    };
                    let place = format!("deletion record {}", partition.0);
                    match deletions::verify(reader, partition) {
                        Ok(Ok(())) => {}
                        Ok(Err(tampering)) => {
                            self.book.refuse(Subject::Deletion, &place, tampering.to_string(), EVIDENCE);
                        }
                        Err(error) if super::catalog::is_damage(&error) => {
                            self.book.refuse(Subject::Deletion, &place, error.to_string(), EVIDENCE);
                        }
                        Err(error) => return Err(error),
                    }
                }
                Some(keys::DELETION) => break,
                _ => self.strange_deletion(&key),
            }
        }
        let mut wanted = Vec::new();
        for checked in &layout.checked {
            if checked.policy(reader)?.lifecycle.deletion_record {
                wanted.push((checked.names(), checked.id()));
            }
        }
        for gap in deletions::gaps(reader, wanted)? {
            self.book.refuse(Subject::Deletion, "the deletion records", gap.to_string(), EVIDENCE);
        }
        Ok(())
    }

    fn strange_deletion(&mut self, key: &[u8]) {
        let what = strange(Keyspace::Deletion, key);
        self.book.refuse(Subject::Key, "the deletion records", what, super::LOST_HERE);
    }

    /// Checks that every receipt can be read, and that every session is kept until it may be forgotten.
    pub(super) fn receipts(&mut self) -> Result<()> {
        let reader = self.reader;
        for entry in reader.scan(Keyspace::Receipt, KeyRange::all(), Direction::Forward) {
            let (key, value) = entry?;
            let remove = Fix::Remove(Keyspace::Receipt, key.to_vec());
            let place = "the receipts of sessions";
            match collection::read_receipt(reader, &key, &value)? {
                ReceiptEntry::Whole => {}
                ReceiptEntry::Unremembered(note) => {
                    let fix = Fix::Put(Keyspace::Receipt, note, bytes::Bytes::new());
                    let what = "a session that would never be removed";
                    self.book.fix(Subject::Receipt, place, what, [fix])?;
                }
                ReceiptEntry::Stray => {
                    let what = "an entry of a session that was removed";
                    self.book.fix(Subject::Receipt, place, what, [remove])?;
                }
                ReceiptEntry::Damaged => {
                    let what = "an entry of a session cannot be read";
                    let reason = "a client that repeats its last write would run it twice";
                    self.book.refuse(Subject::Receipt, place, what, reason);
                }
            }
        }
        Ok(())
    }
}
