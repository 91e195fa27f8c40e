//! Random steps with watermarks, flushes, rounds of compaction and restarts, against a model: the visible entries are those that were
//! written and neither removed nor covered, whatever merges and drops do to the tables.

use super::watermark_tests::{Bench, number};
use crate::watermark::{self, COVERED, Prefix, RANGES};
use crate::{Direction, Durability, KeyRange, Keyspace, Read};
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 3;
const STEPS: usize = 60;
const PREFIXES: [Prefix; 3] = [[0, 0, 0, 7], [0, 0, 0, 8], [0, 0, 1, 0]];

type Entries = BTreeSet<(usize, Vec<u8>)>;

#[derive(Default)]
struct Model {
    entries: Entries,
    below: BTreeMap<Prefix, u64>,
}

impl Model {
    /// Writes entries of new items and new entries of old ones.
    fn write(&mut self, bench: &mut Bench, random: &mut fastrand::Rng) {
        let mut changes = Vec::new();
        for _ in 0..random.usize(1..30) {
            let prefix = PREFIXES[random.usize(..PREFIXES.len())];
            let below = self.below.get(&prefix).copied().unwrap_or(0);
            let at = random.usize(..COVERED.len());
            let is_range = RANGES.contains(&COVERED[at]);
            if random.u8(..3) == 0 {
                bench.sequence += random.u64(1..2500);
            }
            let mut given = number(bench.sequence) | random.u64(..128);
            if random.bool() && !is_range {
                given = random.u64(below..=given.max(below));
            }
            if given < below || watermark::sequence_of(given) > bench.sequence {
                continue;
            }
            // Ascending, as the entries of a time are, or in any order.
            let order = if random.bool() { bench.sequence } else { random.u64(..) };
            let between = if is_range { Vec::new() } else { order.to_be_bytes().to_vec() };
            let key = [&prefix[..], &between, &given.to_be_bytes()].concat();
            changes.push((COVERED[at], key.clone(), Some(vec![1])));
            self.entries.insert((at, key));
        }
        bench.commit(random_durability(random), &changes);
    }

    fn remove(&mut self, bench: &mut Bench, random: &mut fastrand::Rng) {
        let doomed: Vec<_> = self.entries.iter().filter(|_| random.u8(..8) == 0).cloned().collect();
        let changes: Vec<_> = doomed.iter().map(|(at, key)| (COVERED[*at], key.clone(), None)).collect();
        self.entries.retain(|entry| !doomed.contains(entry));
        bench.commit(random_durability(random), &changes);
    }

    fn raise(&mut self, bench: &mut Bench, random: &mut fastrand::Rng) {
        let prefix = PREFIXES[random.usize(..PREFIXES.len())];
        let known = self.below.get(&prefix).copied().unwrap_or(0);
        let end = number(bench.sequence + 1);
        let below = if random.u8(..3) == 0 { end } else { random.u64(known..=end) };
        let is_covered = |(_, key): &&(usize, Vec<u8>)| {
            watermark::place(key).is_some_and(|(of, number)| of == prefix && number < below)
        };
        let doomed: Vec<_> = self.entries.iter().filter(is_covered).cloned().collect();
        let mut changes: Vec<_> = doomed.iter().map(|(at, key)| (COVERED[*at], key.clone(), None)).collect();
        self.entries.retain(|entry| !doomed.contains(entry));
        changes.push((Keyspace::Catalog, watermark::key(prefix), Some(below.to_be_bytes().to_vec())));
        self.below.insert(prefix, below);
        bench.commit(random_durability(random), &changes);
    }
}

fn random_durability(random: &mut fastrand::Rng) -> Durability {
    if random.bool() { Durability::Sync } else { Durability::Buffered }
}

/// What a reader sees, by scans in both directions.
fn visible(reader: &dyn Read) -> Entries {
    let scan = |direction| -> Entries {
        let of = |(at, keyspace)| {
            let ranges = PREFIXES.map(KeyRange::prefix).map(|range| reader.scan(keyspace, range, direction));
            ranges.into_iter().flatten().map(move |entry| (at, entry.unwrap().0.to_vec())).collect::<Vec<_>>()
        };
        COVERED.into_iter().enumerate().flat_map(of).collect()
    };
    let forward = scan(Direction::Forward);
    assert_eq!(forward, scan(Direction::Backward));
    forward
}

#[test]
fn t22_nothing_but_what_is_covered_is_ever_lost() {
    let mut dropped = 0;
    for seed in 0..SEEDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = tempfile::tempdir().unwrap();
        let (mut bench, mut model) = (Bench::open(directory.path()), Model::default());
        let mut held = None;
        for step in 0..STEPS {
            match random.u8(..20) {
                0..8 => model.write(&mut bench, &mut random),
                8..10 => model.remove(&mut bench, &mut random),
                10..12 => model.raise(&mut bench, &mut random),
                12..15 => bench.database.flush().unwrap(),
                15..18 => {
                    let before = bench.tables();
                    bench.round();
                    dropped += before.difference(&bench.tables()).count();
                }
                18 => held = Some((bench.snapshot(), model.entries.clone())),
                _ => {
                    held = None;
                    drop(bench);
                    bench = Bench::open(directory.path());
                }
            }
            assert_eq!(visible(&bench.snapshot()), model.entries, "seed {seed}, step {step}");
            if let Some((snapshot, entries)) = &held {
                assert_eq!(visible(snapshot), *entries, "seed {seed}, step {step}, an older snapshot");
            }
        }
    }
    assert!(dropped > 0, "tables are dropped or merged");
}
