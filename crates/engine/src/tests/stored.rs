//! What a container of one partition stores, against what its items themselves call for: figures, index, queues, counters,
//! marks and renewal records.
//!
//! Which items have expired is decided in `expiry` and tested there; here the policy is taken for right.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Read};

use crate::Partition;
use crate::access::gate::View;
use crate::entries::counters::Tally;
use crate::entries::mark::Mark;
use crate::entries::renewals;
use crate::expiry::header::Record;
use crate::expiry::{Millis, QueuePosition};
use crate::keys::{self, Grain, Key};
use crate::tests::world::World;

impl World {
    pub(super) fn partition(&self) -> Arc<Partition> {
        Arc::clone(&self.current().partitions[0])
    }

    pub(super) fn now_ms(&self) -> Millis {
        self.engine.now().expect("a time").millis().cast_signed()
    }

    /// Checks that every figure, queue, counter and index answer is what the stored items call for.
    pub(super) fn check(&self) {
        let snapshot = self.engine.store.snapshot().expect("a snapshot");
        let partition = self.partition();
        let policy = Arc::clone(&partition.policy.read());
        let now = self.engine.now().expect("a time");
        let records = stored(&*snapshot, &partition);
        let (mut living, mut expired) = (Tally::default(), Tally::default());
        let mut kinds = [0; 3];
        for record in &records {
            let size = Tally { items: 1, bytes: record.size() };
            if policy.is_expired(&record.header, now) {
                expired = expired.plus(size);
            } else {
                living = living.plus(size);
                let kind = record.body.get("k").and_then(document::ValueRef::as_i64).expect("a number");
                kinds[usize::try_from(kind).expect("small")] += 1;
            }
        }
        let usage = self.engine.usage(&self.current()).expect("figures");
        assert_eq!((usage.living, usage.expired), (living, expired), "T18: {policy:?}");
        for (kind, expected) in kinds.iter().enumerate() {
            let found = self.ids(&format!("SELECT c.id FROM c WHERE c.k = {kind}")).len();
            assert_eq!(found, *expected, "T14: {policy:?}");
        }
        self.engine.check_index(&self.current()).expect("an index as the items call for");
        self.check_marks(&records);
        check_queues(&*snapshot, &partition, &records);
        check_buckets(&*snapshot, &partition, &records);
        check_renewals(&*snapshot, &partition, &records);
    }

    /// Checks that every index entry tells living items from expired ones.
    fn check_marks(&self, records: &[Record]) {
        let view = View::open(&*self.engine.store, &self.partition()).expect("a view");
        let is_expired = |record: &Record| view.gate.policy.is_expired(&record.header, view.gate.now);
        let expired: BTreeMap<u64, bool> =
            records.iter().map(|record| (record.number.0, is_expired(record))).collect();
        let range = KeyRange::prefix(keys::partition(self.partition().id));
        for entry in view.snapshot.scan(Keyspace::Index, range, Direction::Forward) {
            let (key, value) = entry.expect("readable");
            let number = u64::from_be_bytes(*key.last_chunk().expect("an item number"));
            let mark = Mark::decode(&value).expect("a mark");
            let living = view.is_living(ItemNumber(number), &mark).expect("readable");
            assert_eq!(living, !expired[&number], "T14: {mark:?} of item {number}");
        }
    }
}

/// Returns every stored item, living or expired.
pub(super) fn stored(reader: &dyn Read, partition: &Partition) -> Vec<Record> {
    let range = KeyRange::prefix(keys::partition(partition.id));
    let decode = |entry: storage::Result<(bytes::Bytes, bytes::Bytes)>| {
        let (key, value) = entry.expect("readable");
        let number = keys::item_number(&key).expect("an item's key");
        let mut record = Record::decode(number, &value).expect("an item");
        renewals::look_up(reader, partition.id, number, &mut record.header).expect("readable");
        record
    };
    reader.scan(Keyspace::Item, range, Direction::Forward).map(decode).collect()
}

/// Checks that the queues have the positions of the items and nothing else, and that no entry lies before a purge
/// cursor.
fn check_queues(reader: &dyn Read, partition: &Partition, records: &[Record]) {
    let expected: BTreeSet<Vec<u8>> =
        records.iter().flat_map(|record| queue_keys(partition, record)).collect();
    let range = KeyRange::prefix(keys::partition(partition.id));
    let found = reader.scan(Keyspace::Queue, range, Direction::Forward);
    let found: BTreeSet<Vec<u8>> = found.map(|entry| entry.expect("readable").0.to_vec()).collect();
    assert_eq!(found, expected);
    for queue in partition.policy.read().queues() {
        let (keyspace, key) = Key::PurgeCursor(partition.id, queue).encode();
        let Some(cursor) = reader.get(keyspace, &key).expect("readable") else { continue };
        let prefix = keys::queue_prefix(partition.id, queue);
        let first = found.iter().find(|key| key.starts_with(&prefix));
        assert!(
            first.is_none_or(|first| **first >= *cursor),
            "an entry of {queue:?} lies before the purge cursor"
        );
    }
}

fn queue_keys(partition: &Partition, record: &Record) -> Vec<Vec<u8>> {
    let places = record.header.expiry_positions().chain(record.header.stamp_position());
    let key = |QueuePosition { queue, base }| {
        Key::Queue { partition: partition.id, queue, base, number: record.number }.encode().1
    };
    places.map(key).collect()
}

/// Checks that the buckets are the sums over the items: no purged item is counted any more.
fn check_buckets(reader: &dyn Read, partition: &Partition, records: &[Record]) {
    let mut expected: BTreeMap<Vec<u8>, Tally> = BTreeMap::new();
    for record in records {
        for QueuePosition { queue, base } in record.header.expiry_positions() {
            for grain in [Grain::Hour, Grain::Second, Grain::Milli] {
                if grain == Grain::Milli && base.rem_euclid(1000) == 0 {
                    continue;
                }
                let start = base.div_euclid(grain.millis()).saturating_mul(grain.millis());
                let key = Key::Bucket { partition: partition.id, queue, grain, start }.encode().1;
                let sum = expected.entry(key).or_default();
                *sum = sum.plus(Tally { items: 1, bytes: record.size() });
            }
        }
    }
    let all = keys::partition(partition.id);
    let found: BTreeMap<Vec<u8>, Tally> = reader
        .scan(Keyspace::Counter, KeyRange::prefix([&all[..], &[0x20]].concat()), Direction::Forward)
        .map(|entry| entry.expect("readable"))
        .map(|(key, value)| (key.to_vec(), Tally::decode(&value).expect("a counter")))
        .collect();
    assert_eq!(found, expected);
}

/// Checks that renewal records lie beside items that exist, and nowhere else.
fn check_renewals(reader: &dyn Read, partition: &Partition, records: &[Record]) {
    let renewed_at = records.iter().filter(|record| record.header.renewed_at.is_some()).count();
    let range = KeyRange::prefix([&keys::partition(partition.id)[..], &[0x80]].concat());
    assert_eq!(reader.scan(Keyspace::Counter, range, Direction::Forward).count(), renewed_at);
}
