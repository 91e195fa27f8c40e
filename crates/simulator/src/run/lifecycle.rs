//! Time, the purge, the end of a process and the start of the next.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use engine::PurgeReport;
use storage::{Time, WallClock};

use crate::check;
use crate::clock::{ClockReading, ClockRequest, RestartKind};
use crate::coverage::CoveragePoint;
use crate::model::Model;
use crate::operation::{CONTAINERS, Fault};
use crate::run::{Ending, ProcessEnd, Run, Unknown, read};
use crate::world::{Seen, World};

/// More purge steps than any run can need.
const DRAIN_STEPS_MAX: usize = 10_000;
const DRAIN_LIMIT: usize = 16;
/// How often all entries of a store are checked. A wrong entry stays wrong, so it is found a few steps later.
const STORE_STEPS: u64 = 4;
const TWIN_STORE_STEPS: u64 = 16;

impl Run {
    /// Reads both clocks, which must show the time of the model of the clock.
    pub(crate) fn look(&mut self) -> Result<(), String> {
        let (main, twin) = (self.main.look()?, self.twin.look()?);
        if main != twin {
            return Err(format!("invariant 8: the clock shows {main:?}, and without purge {twin:?}"));
        }
        let mut expected = self.clock.look(read(&self.machine));
        if self.poisoned {
            // Time stays, but the wall clock may become suspect all the same; that is not recorded any more.
            expected.suspect = main.suspect;
        }
        if main != expected {
            return Err(format!("T34: the clock shows {main:?}, should show {expected:?}"));
        }
        self.truth.see(self.machine.wall().millis());
        self.truth.check(main.now_ms - main.advanced_ms, self.main.is_poisoned())?;
        let suspect_now = main.suspect && !self.shown.suspect;
        self.situation.coverage.reach_if(suspect_now, CoveragePoint::SuspectWhileRunning);
        let is_behind = self.machine.wall().millis() < main.now_ms - main.advanced_ms;
        self.situation.coverage.reach_if(suspect_now && is_behind, CoveragePoint::SuspectBehind);
        if suspect_now {
            self.recorded = !self.main.is_poisoned();
        }
        self.show(main);
        Ok(())
    }

    fn show(&mut self, shown: ClockReading) {
        self.shown = shown;
        self.model.see(shown.now_ms, shown.trusted_ms, shown.suspect);
    }

    /// Lets time pass between two requests.
    pub(crate) fn pass(&mut self, ms: u64) -> Result<(), String> {
        self.advance(ms);
        self.look()
    }

    /// Lets time pass on all clocks.
    pub(crate) fn advance(&mut self, ms: u64) {
        self.machine.advance(Duration::from_millis(ms));
        self.truth.pass(ms);
    }

    /// Returns the time shown, without the test clock's advance.
    pub(crate) fn raw_ms(&self) -> u64 {
        self.shown.now_ms - self.shown.advanced_ms
    }

    /// Runs a step that is about the clock only.
    pub(crate) fn watch(
        &mut self,
        fault: Option<Fault>,
        asked: ClockRequest,
        act: impl Fn(&mut World) -> Result<(), String>,
    ) -> Result<Ending, String> {
        let (main, twin, struck) = self.perform(fault, act);
        if main != twin {
            return Err(format!("invariant 8: the clock answers {main:?}, and without purge {twin:?}"));
        }
        if self.poisoned {
            return Ok(Ending::Running);
        }
        match fault {
            Some(Fault::Crash { .. }) if struck => {
                Ok(Ending::Ended(ProcessEnd { forks: vec![self.model.clone()], asked, certain: false }))
            }
            Some(Fault::Fail { kept, .. }) if struck => match (asked, main) {
                (ClockRequest::Nothing, _) | (_, Err(_)) => {
                    self.unknown = kept.then_some(Unknown { after: None, asked });
                    Ok(Ending::Running)
                }
                (_, Ok(())) => Err("a clock command was acknowledged although its commit failed".to_owned()),
            },
            _ => {
                main?;
                self.clock.obey(read(&self.machine), asked);
                self.look()?;
                Ok(self.crash_if(fault))
            }
        }
    }

    /// Runs one step of the purge.
    pub(crate) fn purge(&mut self, limit: usize, fault: Option<Fault>) -> Result<Ending, String> {
        let (backlog, commits) = (self.main.backlog(), self.main.commits());
        let held = self.held_backlogs();
        let report = match self.perform_purge(fault, |world| world.purge(limit))? {
            ControlFlow::Continue(report) => report,
            ControlFlow::Break(ending) => return Ok(ending),
        };
        let left = self.main.backlog();
        self.note(|_| format!("       purged {}, {left} left", report.purged_items));
        if backlog != left + report.purged_items {
            let purged = report.purged_items;
            return Err(format!("the purge removed {purged} of {backlog} expired items and left {left}"));
        }
        let did_something = report.purged_items > 0 || self.main.commits() != commits;
        if self.shown.suspect && did_something {
            return Err("T34: the purge did something although the clock is suspect".to_owned());
        }
        if self.paused && did_something {
            return Err("T23: the purge did something although it is paused".to_owned());
        }
        self.situation.coverage.reach_if(self.paused && backlog > 0, CoveragePoint::PurgePaused);
        let waits = self.full.iter().any(|name| self.drop_waits_for_the_purge(name));
        self.situation.coverage.reach_if(waits && left > 0, CoveragePoint::ArchiveFull);
        if held != self.held_backlogs() {
            return Err("T31: the purge removed expired items of a held container".to_owned());
        }
        if self.situation.nothing_to_purge && self.main.commits() != commits {
            return Err("T19: the purge wrote something although nothing has ever expired".to_owned());
        }
        self.situation.purged(report.purged_items, left);
        Ok(self.crash_if(fault))
    }

    /// Performs work of the purge and returns its report, or how the run goes on if it was interrupted or the store is
    /// poisoned.
    pub(crate) fn perform_purge(
        &mut self,
        fault: Option<Fault>,
        work: impl Fn(&mut World) -> Result<Option<PurgeReport>, String>,
    ) -> Result<ControlFlow<Ending, PurgeReport>, String> {
        let (report, _, struck) = self.perform(fault, work);
        if struck {
            self.situation.coverage.reach(CoveragePoint::CrashInsidePurge);
            let forks = vec![self.model.clone()];
            let end = ProcessEnd { forks, asked: ClockRequest::Nothing, certain: self.recorded };
            return Ok(ControlFlow::Break(Ending::Ended(end)));
        }
        if self.poisoned {
            return Ok(ControlFlow::Break(Ending::Running));
        }
        Ok(ControlFlow::Continue(report?.unwrap_or_default()))
    }

    /// Checks that the expired items of held containers stay: neither the purge nor a write to their ids removes them
    /// (T31).
    fn check_held_expired(&mut self) -> Result<(), String> {
        let held = self.held_backlogs().into_iter();
        let held: BTreeMap<_, _> = held.map(|(name, left, _)| (name, left)).collect();
        let before = std::mem::replace(&mut self.held_expired, held);
        let lost =
            |(name, left): (&&'static str, &u64)| before.get(*name).is_some_and(|expired| left < expired);
        match self.held_expired.iter().find(|it| lost(*it)) {
            Some((name, left)) => {
                Err(format!("T31: of {} expired items in held {name} {left} are there", before[name]))
            }
            None => Ok(()),
        }
    }

    /// Returns the expired items of held containers, which stay as they are.
    fn held_backlogs(&self) -> Vec<(&'static str, u64, Option<u64>)> {
        let mut backlogs = self.main.backlogs();
        backlogs.retain(|(name, ..)| self.model.containers.get(name).is_some_and(|inside| inside.hold));
        backlogs
    }

    /// Runs the purge until it has nothing left to do; then the store has the entries of the living items and no others
    /// (T22).
    pub(crate) fn drain(&mut self, fault: Option<Fault>) -> Result<Ending, String> {
        if self.poisoned || self.paused || self.shown.suspect || !self.full.is_empty() {
            return self.purge(DRAIN_LIMIT, fault);
        }
        for _ in 0..DRAIN_STEPS_MAX {
            let commits = self.main.commits();
            let (report, _, struck) = self.perform(fault, |world| world.purge(DRAIN_LIMIT));
            if struck {
                self.situation.coverage.reach(CoveragePoint::CrashInsidePurge);
                let forks = vec![self.model.clone()];
                return Ok(Ending::Ended(ProcessEnd { forks, asked: ClockRequest::Nothing, certain: true }));
            }
            let report = report?.unwrap_or_default();
            if report.next_due.is_some_and(|due| due.millis() <= self.shown.now_ms) {
                continue;
            }
            if self.main.commits() != commits {
                // The last bits of bookkeeping may be written in a step that finds nothing; the next must be idle (T19).
                continue;
            }
            self.check_drained(report.next_due.map(Time::seconds))?;
            return Ok(self.crash_if(fault));
        }
        Err("the purge does not end".to_owned())
    }

    fn check_drained(&mut self, next_due: Option<u64>) -> Result<(), String> {
        self.situation.coverage.reach(CoveragePoint::Drained);
        let deadlines = self.model.containers.iter().flat_map(|(name, container)| {
            self.model.visible(name).into_iter().filter_map(|item| container.deadline(item))
        });
        // Earlier is allowed: an item that was removed or lives longer by now may have scheduled a look that finds
        // nothing.
        if let Some(expected) = deadlines.min()
            && next_due.is_none_or(|next_due| next_due > expected)
        {
            return Err(format!(
                "T19: the purge is next due at {next_due:?}, but an item expires at {expected}"
            ));
        }
        let is_held = |name: &str| self.model.containers[name].hold;
        let backlogs = self.main.backlogs();
        if let Some((name, left, _)) = backlogs.iter().find(|(name, left, _)| *left > 0 && !is_held(name)) {
            return Err(format!("T22: the purge is done and {left} expired items of {name} are left"));
        }
        if backlogs.iter().any(|(name, ..)| is_held(name)) {
            // What was expired before the hold may be there or not.
            self.situation.coverage.reach(CoveragePoint::DrainedUnderHold);
            return Ok(());
        }
        self.situation.purged(0, 0);
        self.check_evidence(true)?;
        self.main.check_store()?;
        check::compare_raw(&self.model, &self.main.raw()?)
    }

    /// Restarts the process, in order or by a crash.
    pub(crate) fn restart(
        &mut self,
        clean: bool,
        (over, down_ms): (RestartKind, u64),
        drift_ms: i64,
        fault: Option<Fault>,
    ) -> Result<Ending, String> {
        self.leave();
        let mut clean = clean && !self.poisoned;
        if clean {
            self.situation.coverage.reach(CoveragePoint::RestartClean);
            let (main, twin, struck) = self.perform(fault, World::stop);
            if main != twin {
                return Err(format!("invariant 8: closed with {main:?}, and without purge {twin:?}"));
            }
            clean = !struck;
            if clean {
                main?;
            }
        }
        self.main.crash();
        self.twin.crash();
        match over {
            RestartKind::Process => self.advance(down_ms),
            RestartKind::Machine => {
                self.machine.reboot(Duration::from_millis(down_ms));
                self.truth.reboot(down_ms);
            }
        }
        self.situation.coverage.reach_if(over == RestartKind::Machine, CoveragePoint::Rebooted);
        let wall = self.machine.wall();
        let drifted = if drift_ms < 0 {
            wall.minus_millis(drift_ms.unsigned_abs())
        } else {
            wall.plus_millis(drift_ms.unsigned_abs())
        };
        self.machine.set_wall(drifted);
        let process_end = self.process_end();
        self.start_next_process(process_end, clean, over)?;
        Ok(Ending::Running)
    }

    /// Returns the end of a process between two steps: if a commit had failed, the next process may find it all the
    /// same.
    fn process_end(&mut self) -> ProcessEnd {
        let mut forks = vec![self.model.clone()];
        let unknown = self.unknown.take();
        self.situation.coverage.reach_if(unknown.is_some(), CoveragePoint::FailedCommitKept);
        let asked = unknown.as_ref().map_or(ClockRequest::Nothing, |unknown| unknown.asked);
        let certain = self.recorded && unknown.is_none();
        forks.extend(unknown.and_then(|unknown| unknown.after));
        ProcessEnd { forks, asked, certain }
    }

    /// Crashes the process and starts another at once.
    pub(crate) fn crash_and_restart(&mut self, process_end: ProcessEnd) -> Result<(), String> {
        self.leave();
        self.situation
            .coverage
            .reach_if(self.situation.backlog > 0, CoveragePoint::CrashBetweenExpiryAndPurge);
        self.main.crash();
        self.twin.crash();
        self.start_next_process(process_end, false, RestartKind::Process)
    }

    fn leave(&mut self) {
        self.paused = false;
        self.readers.values_mut().for_each(|reader| reader.crashed = true);
        let backlog = self.main.backlog();
        self.situation.restarting(&self.model, backlog, self.shown.suspect);
    }

    /// Starts a process and finds out which state the last one left.
    fn start_next_process(
        &mut self,
        process_end: ProcessEnd,
        clean: bool,
        over: RestartKind,
    ) -> Result<(), String> {
        self.main.start()?;
        self.twin.start()?;
        let (main, twin) = (self.main.look()?, self.twin.look()?);
        if main != twin {
            return Err(format!("invariant 8: the clock restarts at {main:?}, and without purge {twin:?}"));
        }
        let machine = read(&self.machine);
        if clean {
            let expected = self.clock.restart_clean(machine, over);
            if main != expected {
                return Err(format!("T34: the clock restarts at {main:?}, should at {expected:?}"));
            }
        } else {
            self.clock.restart_after_crash(machine, over, main, process_end.asked, process_end.certain)?;
        }
        self.truth.see(machine.wall_ms);
        self.truth.check(main.now_ms - main.advanced_ms, false)?;
        self.situation.coverage.reach_if(main.suspect && !self.shown.suspect, CoveragePoint::SuspectAtStart);
        let undone = self.main.undone();
        self.situation.coverage.reach_if(undone > self.undone, CoveragePoint::CrashUndidAPurge);
        self.undone = undone;
        self.recorded = true;
        self.poisoned = false;
        self.shown = main;
        self.choose(process_end.forks)
    }

    /// Chooses the fork that the store is in after a crash. If the sequence has moved, the unacknowledged change is in the
    /// store, and the fork that has it is tried first: the change may have expired meanwhile, and then both fit.
    fn choose(&mut self, forks: Vec<Model>) -> Result<(), String> {
        let kept = self.main.sequence() > self.sequence;
        let several = forks.len() > 1;
        let mut numbered: Vec<_> = forks.into_iter().enumerate().collect();
        if kept {
            numbered.reverse();
        }
        let mut misfits = Vec::new();
        for (number, mut fork) in numbered {
            fork.see(self.shown.now_ms, self.shown.trusted_ms, self.shown.suspect);
            let seen = self.main.observe(&ids_of(&fork))?;
            match check::compare(&fork, &seen) {
                Ok(()) => {
                    let reach = if number == 0 {
                        CoveragePoint::CrashLostCommit
                    } else {
                        CoveragePoint::CrashKeptCommit
                    };
                    self.situation.coverage.reach_if(several, reach);
                    self.model = fork;
                    return Ok(());
                }
                Err(error) => misfits.push(error),
            }
        }
        Err(format!("after the restart: {}", misfits.join("; and for the other outcome: ")))
    }

    /// Finishes index builds in both worlds: the plan of a query depends on which index is complete.
    fn finish_indexes(&mut self) -> Result<(), String> {
        for world in [&self.main, &self.twin] {
            while world.index_step(DRAIN_LIMIT)? {
                // A build that is under way leaves nothing wrong behind at any moment.
                world.check_store()?;
            }
        }
        Ok(())
    }

    /// Ends a step: checks time, then the whole visible state.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        let healthy = !self.poisoned;
        self.poisoned = self.main.is_poisoned();
        if !self.poisoned && !self.twin.is_poisoned() {
            self.finish_indexes()?;
        }
        if self.poisoned != self.twin.is_poisoned() {
            return Err("invariant 8: only one of the worlds takes no writes".to_owned());
        }
        if self.poisoned && self.main.look().is_err() {
            // The lease on time has run out and cannot be renewed: nothing more can be asked of this process.
            let process_end = self.process_end();
            self.crash_and_restart(process_end)?;
        } else if self.poisoned && healthy {
            self.clock.hold(read(&self.machine));
        }
        self.look()?;
        self.poisoned = self.main.is_poisoned();
        self.check()
    }

    /// Compares the world with the model and with the twin.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        let ids = ids_of(&self.model);
        let (main, twin) = (self.main.observe(&ids)?, self.twin.observe(&ids)?);
        check::compare(&self.model, &main)?;
        if self.situation.steps.is_multiple_of(STORE_STEPS) {
            self.main.check_store()?;
        }
        if self.situation.steps.is_multiple_of(TWIN_STORE_STEPS) {
            self.twin.check_store()?;
        }
        for stamp in check::learn(&mut self.model, &main) {
            self.etags.insert(stamp.etag);
            self.numbers.insert(stamp.number);
        }
        if main != twin {
            return Err(format!("invariant 8: seen {main:?}, and without purge {twin:?}"));
        }
        if main.sequence < self.sequence {
            return Err(format!("the sequence fell from {} to {}", self.sequence, main.sequence));
        }
        self.sequence = main.sequence;
        self.check_lsns(&main)?;
        if !self.poisoned {
            self.audit_histories()?;
        }
        self.check_evidence(false)?;
        let hidden: usize = CONTAINERS.iter().map(|name| self.model.withheld(name)).sum();
        let expired = self.model.expired_versions.len() + hidden;
        let backlog = self.main.backlog();
        if backlog > expired as u64 {
            return Err(format!("T18: {backlog} expired items are counted, {expired} have ever expired"));
        }
        self.check_held_expired()?;
        self.situation.after(&self.model, backlog);
        Ok(())
    }
}

impl Run {
    /// Checks that no LSN falls, not even when a container is created again under the same name, and that none is ahead of the
    /// store's sequence.
    fn check_lsns(&mut self, seen: &Seen) -> Result<(), String> {
        for (name, container) in &seen.containers {
            let (known, stored) = container.lsns;
            let before = self.lsns.insert(name, stored).unwrap_or_default();
            if stored < before || known != stored || stored > seen.sequence {
                let sequence = seen.sequence;
                return Err(format!("{name}: LSN {known}, stored {stored}, after {before} at {sequence}"));
            }
        }
        Ok(())
    }
}

/// Returns every name in the model, living or expired, by container.
fn ids_of(model: &Model) -> BTreeMap<&'static str, Vec<(usize, String)>> {
    let names = model.containers.iter().map(|(name, container)| {
        let ids = container.items.iter().map(|item| (item.body.key, item.body.id.clone())).collect();
        (*name, ids)
    });
    names.collect()
}
