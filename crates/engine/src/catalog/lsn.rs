//! LSNs of partitions: the values that clients see, and the first ones in a store of an older version.

use crate::Engine;
use crate::catalog::container::Partition;
use crate::entries::counters;
use crate::keys::PartitionId;
use crate::types::error::Result;
use crate::types::lsn::RangeLsn;

impl Partition {
    /// Returns the LSN of the range: all commits up to it are in every snapshot that is taken from now on.
    pub fn lsn(&self) -> u64 {
        self.known_lsn.get()
    }

    /// Returns the range at that LSN.
    pub fn range_lsn(&self) -> RangeLsn {
        RangeLsn { range: self.index, lsn: self.lsn() }
    }

    /// Returns the range at an LSN that is about to be shown: it is in the store, though its commit may not be
    /// acknowledged yet.
    pub(crate) fn show(&self, lsn: u64) -> RangeLsn {
        self.known_lsn.raise(lsn);
        RangeLsn { range: self.index, lsn }
    }
}

impl Engine {
    /// Starts to count LSNs in the partitions of a store that an older version has written.
    pub(crate) fn adopt_uncounted(&self) -> Result<()> {
        let catalog = self.catalog();
        let uncounted = catalog.partitions().map(|(_, partition)| partition).filter(|it| it.lsn() == 0);
        let uncounted: Vec<_> = uncounted.cloned().collect();
        if uncounted.is_empty() {
            return Ok(());
        }
        let ids: Vec<PartitionId> = uncounted.iter().map(|partition| partition.id).collect();
        let lsn = self.change(move |tx| {
            let lsn = tx.last_sequence();
            for id in ids {
                counters::begin_lsns(tx, id, lsn)?;
            }
            // A full disk must not prevent a store from being opened.
            tx.use_reserve();
            Ok(lsn)
        })?;
        for partition in uncounted {
            partition.known_lsn.raise(lsn);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use document::{Document, PartitionKey, parse_json};
    use storage::{
        ClockOptions, CrashMode, Direction, KeyRange, Keyspace, ManualClock, MemoryDisk, MemoryStore, Read,
        Store, Time, Transaction,
    };

    use super::*;
    use crate::entries::counters::Total;
    use crate::expiry::header::{Header, Record};
    use crate::keys::Key;
    use crate::types::events;
    use crate::{Container, ContainerDefinition, FeedStart, ItemName, Operation, Precondition, Scope};

    fn open(disk: &MemoryDisk) -> (Arc<MemoryStore>, crate::Result<Engine>) {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::open(disk.clone(), ClockOptions::new(clock)).expect("a store");
        let store = Arc::new(store);
        (Arc::clone(&store), Engine::open(store))
    }

    fn container(engine: &Engine, name: &str) -> Arc<Container> {
        let database = engine.database("db").expect("made");
        engine.container(&database, name).expect("made")
    }

    fn write(engine: &Engine, name: &str, id: &str) -> (u64, RangeLsn) {
        let body = Document::from_json(format!(r#"{{"id":"{id}","pk":"p"}}"#).as_bytes()).expect("JSON");
        let operation = Operation::Upsert { body, precondition: Precondition::None };
        let outcome = engine.write(&container(engine, name), None, operation).wait().expect("written");
        (outcome.item.expect("an item").lsn, outcome.range)
    }

    /// Rewrites the entries as format 7 had them: no LSN in totals, headers and recorded deletes.
    fn make_older(engine: &Engine) {
        let catalog = engine.catalog();
        let ids: Vec<_> = catalog.partitions().map(|(_, partition)| partition.id).collect();
        let strip = move |tx: &mut Transaction<'_>| {
            for id in ids {
                let (keyspace, key) = Key::Total(id).encode();
                let total = Total::decode(&tx.get(keyspace, &key)?.expect("a total"))?;
                match total.tally.items {
                    0 => tx.remove(keyspace, key),
                    _ => tx.put(keyspace, key, total.tally.encode()),
                }
                let all = KeyRange::prefix(crate::keys::partition(id));
                let items = tx.scan(Keyspace::Item, all, Direction::Forward);
                for (key, value) in items.collect::<storage::Result<Vec<_>>>()? {
                    let record = Record::<Document>::decode(crate::keys::item_number(&key)?, &value)?;
                    let lsn = events::commit_of(record.header.sequence);
                    let header = Header { lsn, ..record.header.clone() };
                    tx.put(Keyspace::Item, key.to_vec(), Record { header, ..record }.encode());
                }
            }
            Ok(())
        };
        engine.change(strip).expect("stripped");
    }

    fn older_store() -> MemoryDisk {
        let disk = MemoryDisk::new();
        let engine = open(&disk).1.expect("an engine");
        let database = engine.create_database("db", None).expect("made");
        for name in ["a", "b", "empty"] {
            let text = format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"]}}}}"#);
            let value = parse_json(text.as_bytes()).expect("JSON");
            let definition = ContainerDefinition::from_value(&value).expect("valid");
            engine.create_container(&database, definition, None).expect("made");
        }
        for n in 0..5 {
            write(&engine, "a", &format!("a{n}"));
            write(&engine, "b", &format!("b{n}"));
        }
        make_older(&engine);
        disk
    }

    #[test]
    fn partitions_of_an_older_store_begin_at_its_last_sequence_and_its_items_show_their_commits() {
        let disk = older_store();
        let (store, engine) = open(&disk);
        let engine = engine.expect("it is taken over");
        let last = store.last_sequence();
        for (_, partition) in engine.catalog().partitions() {
            assert_eq!(partition.lsn(), last, "no token that a client holds is ahead");
        }
        let page = engine.changes(&container(&engine, "a"), &Scope::default(), &FeedStart::Beginning, 9);
        let page = page.expect("a page");
        assert_eq!((page.items.len(), page.range.lsn), (5, last));
        assert!(page.items.iter().all(|item| item.lsn == events::commit_of(item.sequence)));
        assert_eq!(write(&engine, "a", "new"), (last + 1, RangeLsn { range: 0, lsn: last + 1 }));
        assert_eq!(write(&engine, "b", "new").0, last + 1, "which was the third commit since");
        assert_eq!(write(&engine, "empty", "new").0, last + 1);
        assert_eq!(write(&engine, "a", "a0").0, last + 2);
        assert!(engine.check().expect("a report").is_sound());
        drop((store, engine));
        let engine = open(&disk).1.expect("it opens again");
        assert_eq!(container(&engine, "a").partitions[0].lsn(), last + 2, "it is taken over once");
        let key = PartitionKey::from_header(r#"["p"]"#).expect("a key");
        let name = ItemName::Id("a0".to_owned());
        let read = engine.read(&container(&engine, "a"), &key, &name, &Precondition::None).expect("there");
        assert_eq!((read.item.expect("an item").lsn, read.range.lsn), (last + 2, last + 2));
    }

    #[test]
    fn a_crash_while_an_older_store_is_taken_over_leaves_it_older_or_newer() {
        for mode in [CrashMode::BeforeCommit, CrashMode::AfterCommit] {
            let disk = older_store();
            disk.crash_after(0, mode);
            let (store, engine) = open(&disk);
            assert!(engine.is_err(), "{mode:?}: it crashed");
            drop(store);
            disk.clear_faults();
            let (store, engine) = open(&disk);
            let engine = engine.expect("it is taken over");
            let last = store.last_sequence();
            assert!(engine.catalog().partitions().all(|(_, partition)| partition.lsn() == last), "{mode:?}");
            assert!(engine.check().expect("a report").is_sound(), "{mode:?}");
        }
    }

    #[test]
    fn a_store_that_is_not_taken_over_yet_is_sound() {
        let disk = older_store();
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::open(disk, ClockOptions::new(clock)).expect("a store");
        let report = crate::maintenance::check::check(&store, &mut |_| ()).expect("a report");
        assert!(report.is_sound(), "{:#?}", report.told);
    }

    #[test]
    fn a_total_reads_back_with_and_without_its_lsn() {
        for lsn in [None, Some(0), Some(u64::MAX)] {
            let total = Total { lsn, ..Total::default() };
            let bytes = Bytes::from(total.encode());
            assert_eq!(bytes.len(), if lsn.is_some() { 24 } else { 16 });
            assert_eq!(Total::decode(&bytes), Ok(total));
        }
        for length in [0, 8, 15, 17, 23, 25] {
            assert!(Total::decode(&vec![0; length]).is_err(), "{length}");
        }
    }
}
