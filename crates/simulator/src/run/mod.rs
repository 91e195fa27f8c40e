//! One seed from beginning to end: the world, its twin without purge and the model, step by step side by side.
//!
//! After each step the visible state of the world is compared with the model (`check`), and with the twin: the same
//! answers, sequences, charges and session figures although no purge has ever run there (invariant 8).
//!
//! A crash during a commit forks the model, because the commit was not acknowledged: one fork has the change, the other
//! does not. The state read after the restart decides; if neither fork fits, the seed has failed.

mod evidence;
mod history;
mod lifecycle;
mod owner;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use storage::{ManualClock, Time, WallClock};

use crate::clock::{Clock, ClockReading, ClockRequest, Machine};
use crate::coverage::CoveragePoint;
use crate::model::{Countdown, Model};
use crate::operation::{
    CONTAINERS, ClockStep, Fault, Generator, GeneratorView, OwnerStep, Planned, PurgeObstacles, Step,
};
use crate::real_time::RealTime;
use crate::situation::Situation;
use crate::world::{Purging, World};
use history::Reader;

/// The failure of a seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The step.
    pub step: usize,
    /// The difference.
    pub message: String,
}

/// The state of the process after a step.
pub(crate) enum Ending {
    /// It runs.
    Running,
    /// It has ended.
    Ended(ProcessEnd),
}

/// How a process ended.
pub(crate) struct ProcessEnd {
    /// The states that it may have left behind.
    pub(crate) forks: Vec<Model>,
    /// The request to the clock, which may have been done.
    pub(crate) asked: ClockRequest,
    /// Whether it is known if a suspicion is on disk.
    pub(crate) certain: bool,
}

/// A commit that failed and may be found by the next process.
pub(crate) struct Unknown {
    /// The state with it, if it changes one.
    pub(crate) after: Option<Model>,
    /// Its request to the clock.
    pub(crate) asked: ClockRequest,
}

/// A run in progress.
pub(crate) struct Run {
    generator: Generator,
    pub(crate) model: Model,
    pub(crate) situation: Situation,
    pub(crate) clock: Clock,
    pub(crate) truth: RealTime,
    pub(crate) shown: ClockReading,
    pub(crate) machine: Arc<ManualClock>,
    pub(crate) main: World,
    pub(crate) twin: World,
    /// A commit has failed and no write is taken until a restart.
    pub(crate) poisoned: bool,
    /// That commit, if the next process may find it.
    pub(crate) unknown: Option<Unknown>,
    /// How many commits crashes have undone so far.
    pub(crate) undone: u64,
    /// Whether a suspicion, if there is one, is known to be on disk.
    pub(crate) recorded: bool,
    /// The last sequence seen; it never falls.
    pub(crate) sequence: u64,
    /// The last LSN seen of each container; it never falls either.
    pub(crate) lsns: BTreeMap<&'static str, u64>,
    /// Every etag so far: none occurs twice.
    pub(crate) etags: BTreeSet<String>,
    /// Every item number so far.
    pub(crate) numbers: BTreeSet<u64>,
    /// The position of the consumer of each container's feed: its token, and the sequence that it has read up to.
    pub(crate) consumers: BTreeMap<&'static str, (Option<String>, u64)>,
    /// The positions of the readers of the feeds of all versions, by container and partition key.
    pub(crate) readers: BTreeMap<(&'static str, Option<usize>), Reader>,
    /// The positions of the readers that read a whole feed after every step.
    pub(crate) auditors: BTreeMap<&'static str, Reader>,
    /// An operator has stopped the purge.
    pub(crate) paused: bool,
    /// The effect of the current request on a countdown.
    pub(crate) countdown: Countdown,
    /// The containers whose archive is full.
    pub(crate) full: Vec<&'static str>,
    /// The number of expired items in each held container.
    pub(crate) held_expired: BTreeMap<&'static str, u64>,
    steps: usize,
    trace: Option<Vec<String>>,
}

impl Run {
    /// Creates a fresh machine for this seed.
    pub(crate) fn new(seed: u64, traced: bool) -> Result<Run, String> {
        let mut generator = Generator::new(seed);
        let machine = Arc::new(ManualClock::new(Time::from_millis(generator.start_ms())));
        let test_clock = generator.test_clock;
        let main = World::new(machine.clone(), test_clock, Purging::On)?;
        let twin = World::new(machine.clone(), test_clock, Purging::Off)?;
        let mut run = Run {
            generator,
            model: Model::default(),
            situation: Situation::default(),
            clock: Clock::new(read(&machine)),
            truth: RealTime::new(machine.wall().millis()),
            shown: ClockReading::default(),
            machine,
            main,
            twin,
            poisoned: false,
            unknown: None,
            undone: 0,
            recorded: true,
            sequence: 0,
            lsns: BTreeMap::new(),
            etags: BTreeSet::new(),
            numbers: BTreeSet::new(),
            consumers: BTreeMap::new(),
            readers: BTreeMap::new(),
            auditors: BTreeMap::new(),
            paused: false,
            full: Vec::new(),
            held_expired: BTreeMap::new(),
            countdown: Countdown::Restart,
            steps: 0,
            trace: traced.then(Vec::new),
        };
        run.look()?;
        run.check()?;
        Ok(run)
    }

    /// Takes so many steps.
    pub(crate) fn take_steps(&mut self, steps: usize) -> Result<(), Failure> {
        for _ in 0..steps {
            self.steps += 1;
            self.step().map_err(|message| Failure { step: self.steps, message })?;
        }
        Ok(())
    }

    /// Returns how many steps were begun.
    pub(crate) fn steps_taken(&self) -> usize {
        self.steps
    }

    /// Returns the lines written so far.
    pub(crate) fn into_trace(self) -> Vec<String> {
        self.trace.unwrap_or_default()
    }

    pub(crate) fn note(&mut self, line: impl FnOnce(&Run) -> String) {
        let line = self.trace.is_some().then(|| line(self));
        if let Some(trace) = &mut self.trace {
            trace.extend(line);
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let ClockReading { now_ms, suspect, .. } = self.shown;
        let obstacles = PurgeObstacles { paused: self.paused, full: !self.full.is_empty() };
        let sight = GeneratorView { now_ms, suspect, poisoned: self.poisoned, obstacles };
        let Planned { step, fault } = self.generator.next(&self.model, sight);
        let fault = fault.filter(|fault| !self.poisoned && is_possible(*fault, &step));
        self.note(|run| {
            let (number, now) = (run.steps, run.shown.now_ms);
            let fault = fault.map(|fault| format!("  with {fault:?}")).unwrap_or_default();
            format!("{number:>4} {}.{:03} {step:?}{fault}", now / 1000, now % 1000)
        });
        if let Ending::Ended(process_end) = self.execute(step, fault)? {
            self.crash_and_restart(process_end)?;
        }
        self.settle()?;
        if let Some(trace) = &mut self.trace {
            trace.push(self.main.digest()?.line());
        }
        Ok(())
    }

    fn execute(&mut self, step: Step, fault: Option<Fault>) -> Result<Ending, String> {
        match step {
            Step::Change { container, key, change, countdown } => {
                self.change(container, key, &change, countdown, fault)
            }
            Step::Late { container, key, change, wait_ms } => {
                self.read_before(container, key, &change)?;
                if !self.poisoned {
                    self.pass(wait_ms)?;
                }
                self.situation.late(&self.model, container, key, &change);
                self.change(container, key, &change, Countdown::Restart, fault)
            }
            Step::DeletedHandle { container, key, change } => self.write_to_deleted(container, key, &change),
            Step::Batch { container, key, changes, countdown } => {
                self.batch(container, key, &changes, countdown, fault)
            }
            Step::DeletePartition { container, key } => {
                self.situation.partition(&self.model, container, key);
                self.write(
                    fault,
                    |world| world.delete_partition(container, key),
                    |model, _| model.delete_partition(container, key),
                )
            }
            Step::Query { container, filter, scope, page, between_ms } => {
                self.query(container, &filter, scope, page, between_ms)?;
                Ok(self.crash_if(fault))
            }
            Step::ReadFeed { container, max_items } => {
                self.read_feed(container, max_items)?;
                Ok(self.crash_if(fault))
            }
            Step::SetDefaultTtl { container, default_ttl, consent } => {
                self.set_default_ttl(container, default_ttl, consent, fault)
            }
            Step::Reindex { container, indexing, changes, limit } => {
                self.reindex(container, indexing, &changes, limit, fault)
            }
            Step::CreateContainer { container, default_ttl, feed, base } => {
                let unique = container == CONTAINERS[0];
                let ending = self.write(
                    fault,
                    |world| world.create_container(container, default_ttl, feed, base),
                    |model, _| model.create_container(container, default_ttl, unique, feed, base),
                )?;
                self.situation.container_made(container, feed);
                Ok(ending)
            }
            Step::DeleteContainer { container } => self.delete_container(container, fault),
            Step::Owner(step) => self.owner_step(&step, fault),
            Step::Clock(step) => self.clock_step(step, fault),
            Step::Purge { limit } => self.purge(limit, fault),
            Step::Drain => self.drain(fault),
            Step::Restart { clean, over, down_ms, drift_ms } => {
                self.restart(clean, (over, down_ms), drift_ms, fault)
            }
        }
    }

    /// Executes a step about time.
    fn clock_step(&mut self, step: ClockStep, fault: Option<Fault>) -> Result<Ending, String> {
        let look = |world: &mut World| world.look().map(drop);
        match step {
            ClockStep::Wait { ms } => self.advance(ms),
            ClockStep::SetBack { ms } => {
                self.machine.set_wall(self.machine.wall().minus_millis(ms));
                self.situation.coverage.reach(CoveragePoint::ClockBackward);
            }
            ClockStep::SetForward { ms } => {
                self.machine.set_wall(self.machine.wall().plus_millis(ms));
                self.situation.coverage.reach(CoveragePoint::ClockForward);
            }
            ClockStep::Correct => {
                self.machine.set_wall(Time::from_millis(self.truth.real_ms()));
                self.situation
                    .coverage
                    .reach_if(self.truth.real_ms() < self.raw_ms(), CoveragePoint::ClockSlewed);
            }
            ClockStep::AdvanceTestClock { seconds } => {
                self.situation.coverage.reach(CoveragePoint::TestClockAdvanced);
                return self
                    .watch(fault, ClockRequest::Advance(seconds), |world| world.advance_clock(seconds));
            }
            ClockStep::Accept => {
                self.situation.coverage.reach_if(self.shown.suspect, CoveragePoint::ClockAccepted);
                // A wall clock that has come back takes the leap back, as a rejection does: readers start over.
                self.consumers.clear();
                return self.watch(fault, ClockRequest::Accept, |world| world.judge_clock(true));
            }
            ClockStep::Reject => {
                self.situation.coverage.reach_if(self.shown.suspect, CoveragePoint::ClockRejected);
                // Items that the leap hid become visible again, and readers may have passed them: they start over.
                self.consumers.clear();
                self.truth.reject();
                return self.watch(fault, ClockRequest::Reject, |world| world.judge_clock(false));
            }
        }
        self.watch(fault, ClockRequest::Nothing, look)
    }
}

/// Returns the machine's clocks as the model of the clock takes them.
pub(crate) fn read(machine: &ManualClock) -> Machine {
    Machine { wall_ms: machine.wall().millis(), boot_ms: machine.boot_time().as_millis() as u64 }
}

/// Returns which faults make sense with which step. A purge that fails for good would let the twin, which has none, go on
/// alone.
fn is_possible(fault: Fault, step: &Step) -> bool {
    match step {
        Step::Purge { .. }
        | Step::Drain
        | Step::Query { .. }
        | Step::ReadFeed { .. }
        | Step::Owner(
            OwnerStep::ReadHistory { .. }
            | OwnerStep::Forecast { .. }
            | OwnerStep::Pause { .. }
            | OwnerStep::FillArchive { .. }
            | OwnerStep::PurgeNow { .. },
        )
        | Step::Reindex { .. } => {
            matches!(fault, Fault::Crash { .. })
        }
        Step::Restart { clean, .. } => *clean && matches!(fault, Fault::Crash { .. }),
        Step::DeletedHandle { .. } => false,
        _ => true,
    }
}
