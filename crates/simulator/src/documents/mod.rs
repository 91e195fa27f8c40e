//! A short workload of the MongoDB form: documents with dates, several rules that are added, changed and dropped (T26, T27),
//! holds, renaming and drops, a watch over all of it (T28), the guard (T30), and evidence of the expired items (T32).
//!
//! As for containers there is a twin without purge, and a model without queues; a crash during a commit forks the
//! model, and the state read after the restart decides.

mod bson_form;
mod evidence;
mod generator;
mod machine;
mod model;
mod types;
mod watcher;

use std::sync::Arc;
use std::time::Duration;

use storage::{ManualClock, Time};

use crate::coverage::{Coverage, CoveragePoint};
use crate::model::{Consent, Evidence};
use crate::workload::{SeedResult, run_steps};
use generator::{Generator, Step};
use machine::Machine;
use model::Model;
use types::{Answer, Request, Rule};
use watcher::Watcher;

struct Workload {
    draw: Generator,
    clock: Arc<ManualClock>,
    main: Machine,
    twin: Machine,
    model: Model,
    archive_is_full: bool,
    watcher: Option<Watcher>,
    coverage: Coverage,
    trace: Vec<String>,
}

/// Runs the workload of a seed; returns its result.
pub(crate) fn run(seed: u64, steps: usize) -> SeedResult {
    run_steps("in collections", Workload::new(seed), steps, Workload::step, |life| {
        (life.trace, life.coverage)
    })
}

impl Workload {
    fn new(seed: u64) -> Result<Workload, String> {
        let mut draw = Generator::new(seed);
        let clock = Arc::new(ManualClock::new(Time::from_millis(draw.start_ms())));
        let (main, twin) = (Machine::new(clock.clone())?, Machine::new(clock.clone())?);
        let mut life = Workload {
            draw,
            clock,
            main,
            twin,
            model: Model::default(),
            archive_is_full: false,
            watcher: None,
            coverage: Coverage::default(),
            trace: Vec::new(),
        };
        life.look()?;
        if life.draw.is_watched() {
            life.watcher = Some(Watcher::begin(&life.main, &life.twin)?);
        }
        Ok(life)
    }

    fn step(&mut self) -> Result<(), String> {
        let step = self.draw.next(&self.model, self.archive_is_full);
        let now = self.model.now_ms;
        self.trace.push(format!("     {}.{:03} {step:?}", now / 1000, now % 1000));
        match step {
            Step::Request { name, request, crash } => self.request(name, &request, crash)?,
            Step::Wait { ms } => self.clock.advance(Duration::from_millis(ms)),
            Step::AddRule { name, field, rule, consent, meanwhile } => {
                self.add_rule(name, field, rule, consent, meanwhile)?;
            }
            Step::FillArchive { full } => {
                self.archive_is_full = full;
                self.main.fill_archive(full)?;
                self.twin.fill_archive(full)?;
            }
            Step::Purge { limit } => self.purge(limit)?,
            Step::Drain => self.drain()?,
            Step::Restart => self.restart(vec![self.model.clone()])?,
            Step::Watch { max_items } => self.read_watch(max_items)?,
        }
        self.look()?;
        self.check()?;
        self.trace.push(self.main.digest()?.line());
        Ok(())
    }

    /// Reads the clocks of both worlds, which must agree, and sets the model's.
    fn look(&mut self) -> Result<(), String> {
        let (main, twin) = (self.main.now_ms()?, self.twin.now_ms()?);
        if main != twin || main < self.model.now_ms {
            return Err(format!("it is {main}, without purge {twin}, and was {}", self.model.now_ms));
        }
        self.model.see(main);
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        let (main, twin) = (self.main.observe()?, self.twin.observe()?);
        let expected = self.model.expected();
        if main != expected {
            return Err(format!("seen is {main:?}, should be {expected:?}"));
        }
        if main != twin {
            return Err(format!("invariant 8: seen is {main:?}, and without purge {twin:?}"));
        }
        self.check_evidence(false)?;
        match &self.watcher {
            Some(watcher) => watcher.audit(&self.main, &self.twin, &self.model, &mut self.coverage),
            None => Ok(()),
        }
    }

    /// Sends a request to both worlds and the model; `crash` hits its first commit, which is kept or not.
    fn request(&mut self, name: &'static str, request: &Request, crash: Option<bool>) -> Result<(), String> {
        if let Some(kept) = crash {
            self.main.plan_crash(kept);
            self.twin.plan_crash(kept);
        }
        let (main, twin) = (self.main.request(name, request), self.twin.request(name, request));
        if main != twin {
            return Err(format!("invariant 8: answered {main:?}, and without purge {twin:?}"));
        }
        self.trace.push(format!("       {main:?}"));
        if crash.is_some() && self.main.has_crashed() | self.twin.has_crashed() {
            let mut after = self.model.clone();
            after.apply(name, request);
            return self.restart(vec![self.model.clone(), after]);
        }
        let (before, had_expired) = (self.model.clone(), self.model.expired_versions.len());
        let expected = self.model.apply(name, request);
        if main != expected {
            return Err(format!("answered {main:?}, should be {expected:?}"));
        }
        self.cover(name, request, &main, &before, self.model.expired_versions.len() > had_expired);
        match (request, main) {
            (Request::Drop, Answer::Written) => self.check_archive_of_dropped(&before, name),
            _ => Ok(()),
        }
    }

    /// Adds a rule, with other requests while its index is built.
    fn add_rule(
        &mut self,
        name: &'static str,
        field: usize,
        rule: Rule,
        consent: Consent,
        meanwhile: Vec<Request>,
    ) -> Result<(), String> {
        // In an empty collection the rule may be in force at once: that depends on the purge.
        let lives = !self.model.living(name).is_empty();
        let main = self.main.add_rule(name, field, rule, consent);
        let twin = self.twin.add_rule(name, field, rule, consent);
        let expected = self.model.add_rule(name, field, rule, consent);
        if main != twin || main != expected {
            return Err(format!("a rule is {main:?}, without purge {twin:?}, should be {expected:?}"));
        }
        if main == Answer::NotConfirmed {
            self.coverage.reach(CoveragePoint::DocumentRefusedByGuard);
            return Ok(());
        }
        for request in meanwhile.into_iter().filter(|_| lives) {
            self.coverage.reach(CoveragePoint::WriteDuringRuleBuild);
            self.request(name, &request, None)?;
            let built = (self.main.build(name, field, 1)?, self.twin.build(name, field, 1)?);
            if built.0 || built.1 {
                break;
            }
        }
        for machine in [&self.main, &self.twin] {
            while !machine.build(name, field, 10)? {}
        }
        let had_expired = self.model.expired_versions.len();
        self.model.enforce(name, field);
        let expires_some = self.model.expired_versions.len() > had_expired;
        self.coverage.reach_if(expires_some, CoveragePoint::NewRuleExpires);
        Ok(())
    }

    fn purge(&mut self, limit: usize) -> Result<(), String> {
        let before = self.main.backlog()?;
        let purged = self.main.purge(limit)?.purged_items;
        let after = self.main.backlog()?;
        let gone: u64 = before.iter().map(|(name, count)| count - after[name]).sum();
        let touched = before.iter().any(|(name, count)| {
            self.model.collections.get(name).is_some_and(|inside| inside.hold) && after[name] != *count
        });
        if gone != purged || touched {
            return Err(format!("the purge says {purged}; {before:?} became {after:?}"));
        }
        self.coverage.reach_if(purged > 0, CoveragePoint::DocumentsPurged);
        Ok(())
    }

    fn drain(&mut self) -> Result<(), String> {
        let now = self.model.now_ms;
        while self.main.purge(16)?.next_due.is_some_and(|due| due.millis() <= now) {}
        for (name, left) in self.main.backlog()? {
            let collection = &self.model.collections[name];
            let stuck = self.archive_is_full && collection.evidence.contains_key(&Evidence::Archive);
            self.coverage.reach_if(left > 0 && stuck, CoveragePoint::DocumentArchiveFull);
            if left > 0 && !collection.hold && !stuck {
                return Err(format!("T22: the purge is done and {left} documents of {name} are left"));
            }
        }
        self.check_evidence(true)?;
        self.main.check()?;
        self.twin.check()
    }

    /// Crashes the process; the store must hold one of the states that it may have left.
    fn restart(&mut self, forks: Vec<Model>) -> Result<(), String> {
        let sequence = self.main.sequence();
        self.main.restart()?;
        self.twin.restart()?;
        let now = self.main.now_ms()?;
        let seen = self.main.observe()?;
        // If the sequence has moved, the unacknowledged change is there; it may have expired meanwhile.
        let mut forks = forks;
        if self.main.sequence() > sequence {
            forks.reverse();
        }
        let mut misfits = Vec::new();
        for mut fork in forks {
            fork.see(now);
            let expected = fork.expected();
            if expected == seen {
                self.model = fork;
                self.coverage.reach(CoveragePoint::CrashAmongDocuments);
                return Ok(());
            }
            misfits.push(expected);
        }
        Err(format!("after the restart is seen {seen:?}, should be one of {misfits:?}"))
    }

    fn read_watch(&mut self, max_items: usize) -> Result<(), String> {
        match &mut self.watcher {
            Some(watcher) => {
                watcher.go_on(&self.main, &self.twin, &self.model, max_items, &mut self.coverage)
            }
            None => Ok(()),
        }
    }

    /// Counts the situations that a request reached.
    fn cover(&mut self, name: &str, request: &Request, answer: &Answer, before: &Model, expired_some: bool) {
        let coverage = &mut self.coverage;
        coverage.reach_if(*answer == Answer::Held, CoveragePoint::DocumentRefusedByHold);
        coverage.reach_if(*answer == Answer::NotConfirmed, CoveragePoint::DocumentRefusedByGuard);
        coverage.reach_if(*answer == Answer::Same, CoveragePoint::UpdateThatChangesNothing);
        let several = before.collections.get(name).is_some_and(|it| it.rules.iter().flatten().count() > 1);
        let has_expired =
            before.collections.get(name).is_some_and(|it| it.items.len() > before.living(name).len());
        match request {
            Request::Insert(_) | Request::Change { .. } => {
                coverage.reach_if(expired_some, CoveragePoint::WrittenExpired);
                coverage.reach_if(several, CoveragePoint::SeveralDateRules);
            }
            Request::ChangeRule(..) => {
                coverage.reach_if(expired_some, CoveragePoint::ChangedRuleExpires);
                coverage.reach_if(has_expired, CoveragePoint::RuleChangedOverExpired);
            }
            Request::DropRule(_) => coverage.reach_if(has_expired, CoveragePoint::RuleDroppedOverExpired),
            Request::LiftItem(_) | Request::HoldCollection(false, _) => {
                coverage.reach_if(expired_some, CoveragePoint::DocumentLiftExpires);
            }
            Request::Rename(_) => {
                coverage.reach_if(*answer == Answer::Written, CoveragePoint::CollectionRenamed);
            }
            Request::Drop => coverage.reach_if(*answer == Answer::Written, CoveragePoint::CollectionDropped),
            _ => {}
        }
    }
}
