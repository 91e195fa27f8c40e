//! The queue, the writer thread, its tickets and the clock under a model checker: `cargo test model` in `proof/model`.
//!
//! Each test runs a few threads again and again, each time in another order, and the order may change at every lock,
//! counter and condition. The checker reports a thread that waits forever as a deadlock. The disk is a map, so that
//! only the order makes a difference; orders come from fixed seeds, at random and by priorities (PCT), which finds the
//! rare ones.

use super::queue::{self, Queue};
use crate::clock::Command;
use crate::overlay::Overlay;
use crate::record::StoreRecord;
use crate::sync::{JoinHandle, Mutex};
use crate::ticket::ticket;
use crate::writer::{Backend, Shared, Wait, Work, Writer};
use crate::{
    Backup, ClockOptions, ClockStatus, Direction, Durability, Error, Job, KeyRange, Keyspace, Lanes,
    ManualClock, Read, Result, Scan, Scrubbed, Snapshot, Stats, Store, Time, WallClock, transact,
};
use bytes::Bytes;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Runner, future, thread};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Orders that are tried, of each kind: some bugs appear in one of a thousand.
const ORDERS: usize = 3000;
/// Changes of priority in one order.
const DEPTH: usize = 3;
const SEED: u64 = 7;

const START: Time = Time::from_seconds(1_800_000_000);

/// Runs a test in many orders.
fn in_many_orders(test: fn()) {
    Runner::new(RandomScheduler::new_from_seed(SEED, ORDERS), shuttle::Config::default()).run(test);
    Runner::new(PctScheduler::new_from_seed(SEED, DEPTH, ORDERS), shuttle::Config::default()).run(test);
}

type Map = BTreeMap<Bytes, Bytes>;

/// Every change that became durable, and the failure to inject.
#[derive(Clone)]
struct Disk {
    map: Arc<Mutex<Map>>,
    /// Commits until one fails; `None` for never.
    until_failure: Option<u64>,
    failure: Failure,
}

#[derive(Clone, Copy)]
enum Failure {
    Error,
    Panic,
}

impl Disk {
    fn good() -> Self {
        Self { map: Arc::default(), until_failure: None, failure: Failure::Error }
    }

    fn failing(until_failure: u64, failure: Failure) -> Self {
        Self { until_failure: Some(until_failure), failure, ..Self::good() }
    }

    /// Returns the numbers that are durable.
    fn numbers(&self) -> Vec<u64> {
        self.map.lock().keys().map(|key| number(key)).collect()
    }
}

impl Backend for Disk {
    fn base(&self) -> Result<Box<dyn Read>> {
        Ok(Box::new(State(self.map.lock().clone())))
    }

    fn commit(&mut self, overlay: Overlay, _: &StoreRecord, _: Durability) -> Result<()> {
        if let Some(left) = &mut self.until_failure {
            if *left == 0 {
                match self.failure {
                    Failure::Error => return Err(Error::io("commit", &"no space")),
                    Failure::Panic => std::panic::resume_unwind(Box::new("out of luck")),
                }
            }
            *left -= 1;
        }
        let changes = overlay.into_changes().filter_map(|(_, key, change)| Some((key, change?)));
        self.map.lock().extend(changes);
        Ok(())
    }
}

/// The map at one point in time.
struct State(Map);

impl Snapshot for State {}

impl Read for State {
    fn get(&self, _: Keyspace, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(&self, _: Keyspace, _: KeyRange, _: Direction) -> Scan<'_> {
        Box::new(self.0.iter().map(|(key, value)| Ok((key.clone(), value.clone()))))
    }
}

/// The embedded store with a map as its disk.
struct Model {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
    disk: Disk,
}

impl Model {
    fn start(disk: Disk, clock: &Arc<ManualClock>) -> Arc<Self> {
        let options = ClockOptions::new(Arc::clone(clock) as Arc<dyn WallClock>);
        let shared = Shared::start(None, options).unwrap();
        let writer = Writer::new(disk.clone(), StoreRecord::default(), Arc::clone(&shared));
        let queue = Arc::new(Queue::default());
        let thread = queue::start(Arc::clone(&queue), writer, Arc::clone(&shared)).unwrap();
        Arc::new(Self { shared, queue, thread: Mutex::new(Some(thread)), disk })
    }

    fn new(disk: Disk) -> Arc<Self> {
        Self::start(disk, &Arc::new(ManualClock::new(START)))
    }

    /// Puts the next number with its time; resolves to the number.
    fn count(&self) -> crate::Ticket<Result<u64>> {
        transact(self, Lanes::all(), |tx| {
            let next = tx.scan(Keyspace::Item, KeyRange::all(), Direction::Forward).count() as u64 + 1;
            tx.put(Keyspace::Item, next.to_be_bytes(), tx.time().millis().to_be_bytes().to_vec());
            Ok(next)
        })
    }
}

fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

/// The methods that the tests call. The clock's part repeats that of the embedded store.
impl Store for Model {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(State(self.disk.map.lock().clone())))
    }

    fn submit(&self, _: Lanes, job: Box<dyn Job>) {
        self.queue.push(Work::Job(job));
    }

    fn last_sequence(&self) -> u64 {
        self.shared.last_sequence()
    }

    fn commits(&self) -> u64 {
        self.shared.commits()
    }

    fn clock_status(&self) -> Result<ClockStatus> {
        self.shared.status(|wait| {
            let (resolver, ticket) = ticket();
            let work = Work::Clock(Command::Renew, resolver);
            match wait {
                Wait::Yes => {
                    self.queue.push(work);
                    ticket.wait()
                }
                Wait::No => {
                    self.queue.offer(work);
                    Ok(())
                }
            }
        })
    }

    fn close(&self) -> Result<()> {
        let Some(thread) = self.thread.lock().take() else { return Ok(()) };
        let (resolver, ticket) = ticket();
        self.queue.close(Work::Clock(Command::Close, resolver));
        let stored = ticket.wait();
        thread.join().unwrap();
        self.shared.stop(&Error::Closed);
        stored
    }

    fn accept_clock(&self) -> Result<ClockStatus> {
        unreachable!("no test asks")
    }

    fn reject_clock(&self) -> Result<ClockStatus> {
        unreachable!("no test asks")
    }

    fn advance_clock(&self, _: u64) -> Result<Time> {
        unreachable!("no test asks")
    }

    fn stats(&self) -> Stats {
        unreachable!("no test asks")
    }

    fn operations(&self) -> u64 {
        unreachable!("no test asks")
    }

    fn scrub(&self, _: &[Keyspace]) -> Result<Scrubbed> {
        unreachable!("no test asks")
    }

    fn backup(&self) -> Result<Backup> {
        unreachable!("no test asks")
    }
}

#[test]
fn acknowledged_writes_are_visible_and_no_caller_waits_forever() {
    in_many_orders(|| {
        let model = Model::new(Disk::good());
        let writers = [0, 1, 2].map(|writer| {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                // Together more than the queue takes, so that some wait for space.
                let tickets = [model.count(), model.count()];
                // One by blocking, one by awaiting.
                let numbers = tickets.map(|ticket| match writer {
                    0 => future::block_on(ticket).unwrap(),
                    _ => ticket.wait().unwrap(),
                });
                assert!(numbers[0] < numbers[1], "jobs run in the order of submission");
                let snapshot = model.snapshot().unwrap();
                for number in numbers {
                    let found = snapshot.get(Keyspace::Item, &number.to_be_bytes()).unwrap();
                    assert!(found.is_some(), "{number} was answered and is not there");
                }
                numbers
            })
        });
        let mut numbers: Vec<u64> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6], "each saw what those before it did");
        model.close().unwrap();
    });
}

#[test]
fn a_dropped_ticket_delays_no_other_job() {
    in_many_orders(|| {
        let model = Model::new(Disk::good());
        let other = Arc::clone(&model);
        let hasty = thread::spawn(move || drop([other.count(), other.count()]));
        model.count().wait().unwrap();
        hasty.join().unwrap();
        model.close().unwrap();
        assert_eq!(model.disk.numbers(), [1, 2, 3]);
    });
}

fn failures(failure: Failure) {
    let model = Model::new(Disk::failing(1, failure));
    let writers = [0, 1].map(|_| {
        let model = Arc::clone(&model);
        thread::spawn(move || {
            let mut answers = Vec::new();
            for _ in 0..2 {
                answers.push(model.count().wait());
            }
            assert!(answers[0].is_ok() || answers[1].is_err(), "nothing is answered after a failure");
            answers
        })
    });
    let answers: Vec<Result<u64>> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    let mut acknowledged: Vec<u64> = answers.iter().flatten().copied().collect();
    acknowledged.sort_unstable();
    assert_eq!(model.disk.numbers(), acknowledged, "durable is what was acknowledged, and nothing else");
    assert!(answers.len() - acknowledged.len() >= 1 || model.commits() == 1);
    assert_eq!(model.count().wait().is_err(), model.shared.poison().is_some());
    let _ = model.close();
}

#[test]
fn a_failed_commit_fails_waiting_and_later_jobs() {
    in_many_orders(|| failures(Failure::Error));
}

#[test]
fn a_panicking_commit_fails_waiting_and_later_jobs() {
    in_many_orders(|| failures(Failure::Panic));
}

#[test]
fn closing_answers_every_job_correctly() {
    in_many_orders(|| {
        let model = Model::new(Disk::good());
        let writers = [0, 1].map(|_| {
            let model = Arc::clone(&model);
            thread::spawn(move || [model.count(), model.count()].map(|ticket| ticket.wait().ok()))
        });
        model.close().unwrap();
        assert_eq!(model.count().wait(), Err(Error::Closed));
        let acknowledged = writers.into_iter().flat_map(|writer| writer.join().unwrap()).flatten();
        let mut acknowledged: Vec<u64> = acknowledged.collect();
        acknowledged.sort_unstable();
        assert_eq!(model.disk.numbers(), acknowledged);
    });
}

/// A reader has a state and a time; a write that is not in the state must not have an earlier time, and one that is in
/// it must not have a later one.
#[test]
fn t13_a_state_and_its_time_belong_together() {
    in_many_orders(|| {
        let clock = Arc::new(ManualClock::new(START));
        // The clock advances with every reading, and soon beyond its lease.
        clock.set_step(Duration::from_millis(1500));
        let model = Model::start(Disk::good(), &clock);
        let writer = {
            let model = Arc::clone(&model);
            thread::spawn(move || [0; 4].map(|_| model.count().wait().unwrap()))
        };
        let mut before = Time::ZERO;
        let seen = [0; 6].map(|_| {
            let (sequence, snapshot, now) = model.snapshot_now().unwrap();
            assert!(now >= before && sequence == 0, "time does not go back");
            before = now;
            let keys = snapshot.scan(Keyspace::Item, KeyRange::all(), Direction::Forward);
            (keys.map(|entry| number(&entry.unwrap().0)).max().unwrap_or(0), now)
        });
        writer.join().unwrap();
        for (key, value) in model
            .snapshot()
            .unwrap()
            .scan(Keyspace::Item, KeyRange::all(), Direction::Forward)
            .map(Result::unwrap)
        {
            let written = Time::from_millis(number(&value));
            for (last, now) in seen {
                match number(&key) <= last {
                    true => assert!(written <= now, "seen before it was written"),
                    false => assert!(written >= now, "{now:?} was shown, and {written:?} written afterwards"),
                }
            }
        }
        model.close().unwrap();
    });
}
