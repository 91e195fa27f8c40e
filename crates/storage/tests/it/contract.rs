//! The contract, on every store; and random steps on both, compared one by one.

use crate::support::{Bench, get, list, put, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use storage::{
    Direction, Error, KeyRange, Keyspace, Lanes, Read, SLOT_BITS, Snapshot, Store, Transaction, transact,
    watermark,
};

const SEEDS: u64 = 12;
const STEPS: usize = 150;

#[test]
fn stores_agree_on_random_steps() {
    for seed in 0..SEEDS {
        let mut pair = Bench::both().map(Walker::new);
        let mut random = fastrand::Rng::with_seed(seed);
        for step in 0..STEPS {
            let plan = random.u64(..);
            let [memory, embedded] = pair.each_mut().map(|walker| walker.step(plan));
            assert_eq!(memory, embedded, "seed {seed}, step {step}");
        }
    }
}

/// A store, and the snapshots of it that are kept open across writes.
struct Walker {
    bench: Bench,
    held: Vec<Arc<dyn Snapshot>>,
}

impl Walker {
    fn new(bench: Bench) -> Self {
        Self { bench, held: Vec::new() }
    }

    /// Performs the steps of `plan` and returns the results.
    fn step(&mut self, plan: u64) -> Vec<String> {
        let mut random = fastrand::Rng::with_seed(plan);
        match random.u8(..100) {
            0..60 => self.transact(plan),
            60..75 => self.look(&mut random),
            75..83 => {
                self.held.push(self.bench.store().snapshot().unwrap());
                vec!["held".to_owned()]
            }
            83..88 => {
                self.held.pop();
                vec!["let go".to_owned()]
            }
            88..94 => {
                self.bench.pass(Duration::from_millis(random.u64(..20_000)));
                vec![format!("{:?}", self.bench.store().clock_status())]
            }
            94..97 => vec![format!("{:?}", self.bench.store().advance_clock(random.u64(..100)))],
            _ => {
                self.held.clear();
                self.bench.reopen();
                vec![format!("{:?} {}", self.bench.store().now(), self.bench.store().last_sequence())]
            }
        }
    }

    fn transact(&self, plan: u64) -> Vec<String> {
        let outcome = run(self.bench.store(), move |transaction| job(plan, transaction));
        vec![format!("{outcome:?} {}", self.bench.store().last_sequence())]
    }

    fn look(&self, random: &mut fastrand::Rng) -> Vec<String> {
        let newest = self.bench.store().snapshot().unwrap();
        let snapshots: Vec<_> = self.held.iter().chain([&newest]).collect();
        let (keyspace, range, direction) = (keyspace(random), range(random), direction(random));
        let key = key(random);
        let look = |snapshot: &&Arc<dyn Snapshot>| {
            let read: &dyn Read = snapshot.as_ref() as &dyn Snapshot;
            let entries = list(read, keyspace, range.clone(), direction);
            let numbered = NUMBERED.map(|keyspace| list(read, keyspace, KeyRange::prefix([0, 0]), direction));
            format!("{:?} {entries:?} {numbered:?}", read.get(keyspace, &key))
        };
        snapshots.iter().map(look).collect()
    }
}

/// A random job: writes, reads of its own writes, expectations, parts that fail by themselves, and an end that commits,
/// fails or panics.
fn job(plan: u64, transaction: &mut Transaction<'_>) -> Result<Vec<String>, Error> {
    let mut random = fastrand::Rng::with_seed(!plan);
    let told = steps(&mut random, transaction, 2);
    assert!(random.u8(..20) > 0, "as planned");
    told
}

fn steps(random: &mut fastrand::Rng, tx: &mut Transaction<'_>, parts: u8) -> Result<Vec<String>, Error> {
    let mut told = vec![format!("{:?} {:?}", tx.time(), tx.trusted_time())];
    for _ in 0..random.u8(..12) {
        let (keyspace, key) = (keyspace(random), key(random));
        match random.u8(..15) {
            11..14 => put_numbered(random, tx)?,
            14 => remove_numbered(random, tx)?,
            0..4 => tx.put(keyspace, key, vec![random.u8(..); random.usize(..9)]),
            4..6 => tx.remove(keyspace, key),
            6 => told.push(format!("{}", tx.next_sequence())),
            7 => told.push(format!("{:?}", tx.get(keyspace, &key))),
            8 => {
                let (range, direction) = (range(random), direction(random));
                told.push(format!("{:?}", list(tx, keyspace, range, direction)));
            }
            9 if parts > 0 => told.push(format!("{:?}", attempt(random, tx, parts - 1))),
            _ => told.push(format!("{:?}", tx.expect(keyspace, &key, None))),
        }
    }
    if random.u8(..10) == 0 { Err(Error::Conflict { keyspace: "none" }) } else { Ok(told) }
}

/// The keyspaces whose keys end with a number.
const NUMBERED: [Keyspace; 4] = [Keyspace::Item, Keyspace::Index, Keyspace::Queue, Keyspace::Feed];

fn prefix(random: &mut fastrand::Rng) -> [u8; 4] {
    [0, 0, 0, random.u8(..2)]
}

/// Puts an entry above the watermark of its prefix.
fn put_numbered(random: &mut fastrand::Rng, tx: &mut Transaction<'_>) -> Result<(), Error> {
    let prefix = prefix(random);
    let number = watermark(tx, prefix)? + random.u64(..20);
    while tx.last_sequence() < number >> SLOT_BITS {
        tx.next_sequence();
    }
    let keyspace = NUMBERED[random.usize(..4)];
    // Keys of items and of the feed are a prefix and a number and nothing else.
    let between = if [Keyspace::Item, Keyspace::Feed].contains(&keyspace) { Vec::new() } else { key(random) };
    tx.put(keyspace, [&prefix[..], &between, &number.to_be_bytes()].concat(), vec![random.u8(..)]);
    Ok(())
}

/// Removes what is below a number, and sets the watermark there or lower.
fn remove_numbered(random: &mut fastrand::Rng, tx: &mut Transaction<'_>) -> Result<(), Error> {
    let prefix = prefix(random);
    let below = watermark(tx, prefix)? + random.u64(..15);
    for keyspace in NUMBERED {
        let entries = tx.scan(keyspace, KeyRange::prefix(prefix), Direction::Forward);
        let keys = entries.map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>, Error>>()?;
        let is_below =
            |key: &[u8]| key.last_chunk().is_some_and(|number| u64::from_be_bytes(*number) < below);
        keys.iter().filter(|key| is_below(key)).for_each(|key| tx.remove(keyspace, key.to_vec()));
    }
    tx.set_watermark(prefix, below.saturating_sub(random.u64(..3)))
}

/// A part of a job. If it fails, everything is as before it.
fn attempt(random: &mut fastrand::Rng, tx: &mut Transaction<'_>, parts: u8) -> Result<Vec<String>, Error> {
    let state = |tx: &Transaction<'_>| {
        let all = [Keyspace::Item, Keyspace::Index, Keyspace::Queue];
        let entries = all.map(|keyspace| list(tx, keyspace, KeyRange::all(), Direction::Forward));
        (entries, tx.last_sequence())
    };
    let before = state(tx);
    let outcome = tx.attempt(|tx| {
        let told = steps(random, tx, parts)?;
        assert!(random.u8(..20) > 0, "as planned");
        if random.bool() { Err(Error::Conflict { keyspace: "part" }) } else { Ok(told) }
    });
    if outcome.is_err() {
        assert_eq!(state(tx), before, "a part that fails leaves no trace");
    }
    outcome
}

fn keyspace(random: &mut fastrand::Rng) -> Keyspace {
    [Keyspace::Item, Keyspace::Index, Keyspace::Queue][random.usize(..3)]
}

fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    (0..random.usize(1..4)).map(|_| [0, 1, 0x7F, 0xFE, 0xFF][random.usize(..5)]).collect()
}

fn direction(random: &mut fastrand::Rng) -> Direction {
    if random.bool() { Direction::Forward } else { Direction::Backward }
}

fn range(random: &mut fastrand::Rng) -> KeyRange {
    let range = match random.u8(..4) {
        0 => KeyRange::all(),
        1 => KeyRange::prefix(key(random)),
        2 => KeyRange::from(key(random)),
        _ => KeyRange::between(key(random), key(random)),
    };
    match random.u8(..4) {
        0 => range.after(key(random)),
        1 => range.before(key(random)),
        _ => range,
    }
}

#[test]
fn a_transaction_reads_its_own_writes_and_commits_them_together() {
    for bench in Bench::both() {
        put(bench.store(), "b", "old").unwrap();
        let seen = run(bench.store(), |transaction| {
            transaction.put(Keyspace::Item, "a", "1");
            transaction.put(Keyspace::Item, "c", "3");
            transaction.remove(Keyspace::Item, "b");
            Ok(list(transaction, Keyspace::Item, KeyRange::all(), Direction::Backward))
        });
        assert_eq!(seen.unwrap(), [r#"b"c"=b"3""#, r#"b"a"=b"1""#]);
        assert_eq!([get(bench.store(), "a"), get(bench.store(), "b")], [Some("1".to_owned()), None]);
    }
}

#[test]
fn a_failed_job_leaves_no_trace_and_gives_its_sequences_back() {
    for bench in Bench::both() {
        put(bench.store(), "a", "1").unwrap();
        let failed: Result<(), Error> = run(bench.store(), |transaction| {
            transaction.next_sequence();
            transaction.put(Keyspace::Item, "a", "2");
            transaction.remove(Keyspace::Item, "a");
            Err(Error::Conflict { keyspace: "mine" })
        });
        assert_eq!(failed, Err(Error::Conflict { keyspace: "mine" }));
        let panicked: Result<(), Error> = run(bench.store(), |transaction| {
            transaction.put(Keyspace::Item, "a", "3");
            panic!("as planned");
        });
        assert!(matches!(panicked, Err(Error::Internal { message }) if message.contains("as planned")));
        assert_eq!(get(bench.store(), "a").as_deref(), Some("1"));
        let sequence = run(bench.store(), |transaction| Ok(transaction.next_sequence()));
        assert_eq!((sequence, bench.store().last_sequence()), (Ok(1), 1));
    }
}

#[test]
fn a_snapshot_stays_as_it_was() {
    for bench in Bench::both() {
        put(bench.store(), "a", "1").unwrap();
        let before = bench.store().snapshot().unwrap();
        let mut scan = before.scan(Keyspace::Item, KeyRange::all(), Direction::Forward);
        put(bench.store(), "a", "2").unwrap();
        put(bench.store(), "b", "2").unwrap();
        assert_eq!(scan.next().unwrap().unwrap().1, "1");
        assert!(scan.next().is_none());
        assert_eq!(before.get(Keyspace::Item, b"b"), Ok(None));
        assert_eq!(get(bench.store(), "a").as_deref(), Some("2"));
    }
}

#[test]
fn expectations_name_the_keyspace_that_differs() {
    for bench in Bench::both() {
        put(bench.store(), "a", "1").unwrap();
        let expect = |value: Option<&'static [u8]>| {
            run(bench.store(), move |transaction| transaction.expect(Keyspace::Item, b"a", value))
        };
        assert_eq!(expect(Some(b"1")), Ok(()));
        assert_eq!(expect(Some(b"2")), Err(Error::Conflict { keyspace: "item" }));
        assert_eq!(expect(None), Err(Error::Conflict { keyspace: "item" }));
    }
}

#[test]
fn entries_that_no_store_can_hold_fail_their_job_alone() {
    for bench in Bench::both() {
        for key in [vec![], vec![7; storage::MAX_KEY_BYTES + 1]] {
            let failed = run(bench.store(), move |transaction| {
                transaction.put(Keyspace::Item, "a", "1");
                transaction.put(Keyspace::Item, key, "1");
                Ok(())
            });
            assert!(matches!(failed, Err(Error::Internal { .. })));
        }
        assert_eq!(get(bench.store(), "a"), None);
        let longest = vec![7; storage::MAX_KEY_BYTES];
        let kept = run(bench.store(), move |transaction| {
            transaction.put(Keyspace::Item, longest, "1");
            Ok(())
        });
        assert_eq!(kept, Ok(()));
    }
}

#[test]
fn jobs_of_many_threads_run_one_at_a_time_in_the_order_of_each() {
    for bench in Bench::both() {
        let store = bench.store();
        std::thread::scope(|scope| {
            for thread in 0..8_u8 {
                scope.spawn(move || {
                    let tickets: Vec<_> = (0..50_u8).map(|number| append(store, thread, number)).collect();
                    for ticket in tickets {
                        ticket.wait().unwrap();
                    }
                });
            }
        });
        let log = store.snapshot().unwrap();
        let entries: Vec<_> = log
            .scan(Keyspace::Feed, KeyRange::all(), Direction::Forward)
            .map(|entry| entry.unwrap().1.to_vec())
            .collect();
        assert_eq!((entries.len(), store.last_sequence()), (400, 400));
        for thread in 0..8_u8 {
            let numbers: Vec<u8> =
                entries.iter().filter(|entry| entry[0] == thread).map(|entry| entry[1]).collect();
            assert_eq!(numbers, (0..50).collect::<Vec<u8>>());
        }
    }
}

fn append(store: &dyn Store, thread: u8, number: u8) -> storage::Ticket<Result<(), Error>> {
    transact(store, Lanes::one(u64::from(thread)), move |transaction| {
        let sequence = transaction.next_sequence();
        transaction.put(Keyspace::Feed, sequence.to_be_bytes(), vec![thread, number]);
        Ok(())
    })
}

#[test]
fn a_job_that_calls_its_own_store_is_refused_instead_of_waiting_for_itself() {
    for bench in Bench::both() {
        bench.pass(Duration::from_mins(1));
        let bench = Arc::new(bench);
        let inner = Arc::clone(&bench);
        let refused = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&refused);
        let outcome = run(bench.store(), move |_| {
            let nested = put(inner.store(), "a", "1");
            seen.store(matches!(nested, Err(Error::Internal { .. })), Ordering::Relaxed);
            Ok(())
        });
        assert_eq!(outcome, Ok(()));
        assert!(refused.load(Ordering::Relaxed));
    }
}

#[test]
fn a_closed_store_refuses_everything_and_closing_again_is_fine() {
    for bench in Bench::both() {
        let store = bench.store();
        put(store, "a", "1").unwrap();
        assert_eq!((store.close(), store.close()), (Ok(()), Ok(())));
        assert_eq!(put(store, "a", "2"), Err(Error::Closed));
        assert_eq!(store.snapshot().err(), Some(Error::Closed));
        assert_eq!(store.now(), Err(Error::Closed));
    }
}

#[test]
fn an_unused_store_writes_nothing() {
    for mut bench in Bench::both() {
        assert_eq!(bench.store().stats().commits, 0);
        bench.reopen();
        let failed: Result<(), Error> = run(bench.store(), |_| Err(Error::Closed));
        assert_eq!(failed, Err(Error::Closed));
        // The failed job was shown a time, so only the lease remains.
        assert_eq!((bench.store().stats().commits, bench.store().stats().jobs), (1, 1));
    }
}
