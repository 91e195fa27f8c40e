//! A short workload under enforced throughput: users that spend their whole budget, and a purge that uses what they leave
//! (T20, T24).
//!
//! Every request must be admitted or refused as the ledger computes it, to the millisecond, and likewise in a twin without
//! purge: a purge never causes a refusal. The purge removes no more expired items than the left-over units pay for, some while
//! there are units, none while there are none; unless a retention promise is near.
//!
//! Creates are the only writes, so that the cost of a deletion is known: it is that of the creation.

mod ledger;
mod machine;

use std::sync::Arc;
use std::time::Duration;

use storage::{ManualClock, Time, WallClock};

use crate::coverage::{Coverage, CoveragePoint};
use crate::workload::{SeedResult, run_steps};
use ledger::Ledger;
use machine::{Machine, Outcome};

/// The cost of the smallest write: no item can be removed for less.
const LEAST: u64 = 500;
/// The cost of a request that fails.
const FAILED: u64 = 100;

/// An item.
#[derive(Debug, Clone, Copy)]
struct ExpiringItem {
    number: u64,
    expires_ms: u64,
    cost: u64,
}

struct Workload {
    random: fastrand::Rng,
    clock: Arc<ManualClock>,
    main: Machine,
    twin: Machine,
    ledger: Ledger,
    /// Living items, and expired ones that are not purged.
    items: Vec<ExpiringItem>,
    /// `maxPurgeDelay`
    bound_ms: Option<u64>,
    names: u64,
    /// Whether a miss was reported since the start.
    missed: bool,
    coverage: Coverage,
    trace: Vec<String>,
}

/// Runs the workload of a seed; returns its result.
pub(crate) fn run(seed: u64, steps: usize) -> SeedResult {
    run_steps("under enforced throughput", Workload::new(seed), steps, Workload::step, |life| {
        (life.trace, life.coverage)
    })
}

impl Workload {
    fn new(seed: u64) -> Result<Workload, String> {
        let mut random = fastrand::Rng::with_seed(!seed);
        let clock =
            Arc::new(ManualClock::new(Time::from_millis(1_700_000_000_000 + random.u64(..3_600_000))));
        let (units, bursts) = (random.u32(4..9) * 100, random.u8(..3) == 0);
        let main = Machine::new(clock.clone(), units, bursts)?;
        let twin = Machine::new(clock.clone(), units, bursts)?;
        Ok(Workload {
            random,
            clock,
            main,
            twin,
            ledger: Ledger::new(units, bursts),
            items: Vec::new(),
            bound_ms: None,
            names: 0,
            missed: false,
            coverage: Coverage::default(),
            trace: Vec::new(),
        })
    }

    fn real_ms(&self) -> u64 {
        self.clock.boot_time().as_millis() as u64
    }

    /// Returns the time by which items expire; after a crash it may be ahead of the machine's.
    fn now_ms(&self) -> Result<u64, String> {
        let (main, twin) = (self.main.now_ms()?, self.twin.now_ms()?);
        if main == twin { Ok(main) } else { Err(format!("T34: it is {main}, and without purge {twin}")) }
    }

    fn note(&mut self, text: impl Into<String>) {
        let (now, text) = (self.real_ms(), text.into());
        self.trace.push(format!("     {:>7}.{:03} {text}", now / 1000, now % 1000));
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.u8(..20) {
            0..5 => {
                let padding = if self.random.u8(..3) == 0 { self.random.usize(..30_000) } else { 10 };
                self.create(padding)?;
            }
            5..7 => self.fail()?,
            7..9 => self.storm()?,
            9..14 => self.pass(),
            14..17 => self.purge()?,
            17 => self.promise()?,
            18 => self.look_at_promises()?,
            _ => self.restart()?,
        }
        self.ledger.begin(self.real_ms());
        // Both worlds are asked, because the first query begins a budget.
        let (main, _) = (self.main.left_over(), self.twin.left_over());
        let expected = self.ledger.left_over(self.real_ms());
        if main != expected {
            return Err(format!("T20: {main} units are left over, should be {expected}"));
        }
        Ok(())
    }

    fn pass(&mut self) {
        let ms = match self.random.u8(..4) {
            0 => self.random.u64(1..300),
            1 => 1000 - self.real_ms() % 1000,
            2 => self.random.u64(1000..4000),
            _ => self.random.u64(1..20_000),
        };
        self.clock.advance(Duration::from_millis(ms));
        self.note(format!("wait {ms} ms"));
    }

    /// Sends a request, which must be admitted or refused as the ledger computes it.
    fn request(&mut self, act: impl Fn(&Machine) -> Outcome) -> Result<Option<(u64, u64)>, String> {
        let (main, twin) = (act(&self.main), act(&self.twin));
        if main != twin {
            return Err(format!("invariant 8: answered {main:?}, and without purge {twin:?}"));
        }
        let now = self.real_ms();
        self.ledger.begin(now);
        let expected = self.ledger.wait_ms(now);
        self.note(format!("{main:?}"));
        match (main, expected) {
            (Outcome::Refused(wait), Some(expected)) if wait == expected => {
                self.coverage.reach(CoveragePoint::Throttled);
                Ok(None)
            }
            (Outcome::Done { number, cost }, None) => {
                self.ledger.pay(now, cost);
                Ok(Some((number, cost)))
            }
            (Outcome::Failed, None) => {
                self.ledger.pay(now, FAILED);
                Ok(None)
            }
            (outcome, expected) => Err(format!("answered {outcome:?}, should wait {expected:?} ms")),
        }
    }

    fn create(&mut self, padding: usize) -> Result<(), String> {
        self.names += 1;
        let (name, ttl) = (self.names, self.random.u64(1..12));
        let body = machine::expiring(name, ttl, padding);
        if let Some((number, cost)) = self.request(|machine| machine.create(body.clone()))? {
            let expires_ms = (self.now_ms()? / 1000 + ttl) * 1000;
            self.items.push(ExpiringItem { number, expires_ms, cost });
        }
        Ok(())
    }

    /// Reads an item that was never written.
    fn fail(&mut self) -> Result<(), String> {
        self.request(Machine::read_nothing).map(drop)
    }

    /// Sends requests until one is refused, then waits for the time in the refusal.
    fn storm(&mut self) -> Result<(), String> {
        for _ in 0..200 {
            let now = self.real_ms();
            let padding = self.random.usize(30_000..90_000);
            self.create(padding)?;
            if let Some(wait) = self.ledger.wait_ms(now) {
                self.fail()?;
                if self.random.bool() {
                    self.clock.advance(Duration::from_millis(wait));
                    self.coverage.reach(CoveragePoint::WaitedAsTold);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the expired items that are not purged, in the order in which they expired.
    fn expired_items(&self) -> Result<Vec<ExpiringItem>, String> {
        let now = self.now_ms()?;
        let mut expired: Vec<_> = self.items.iter().filter(|item| item.expires_ms <= now).copied().collect();
        expired.sort_by_key(|item| (item.expires_ms, item.number));
        Ok(expired)
    }

    fn purge(&mut self) -> Result<(), String> {
        let (now, limit, expired) = (self.real_ms(), self.random.usize(1..40), self.expired_items()?);
        self.ledger.begin(now);
        let left_over = self.ledger.left_over(now);
        let max_wait = self.bound_ms.map(|bound| bound / 4);
        let oldest = expired.first().map(|item| item.expires_ms);
        let time = self.now_ms()?;
        let urgent = max_wait.zip(oldest).is_some_and(|(max_wait, oldest)| oldest + max_wait <= time);
        let report = self.main.purge(limit)?;
        let purged = report.purged_items as usize;
        self.note(format!(
            "purge of {limit}: {purged} of {}, {left_over} units left over, urgent: {urgent}",
            expired.len()
        ));
        let affordable =
            if urgent { expired.len() } else { (left_over.div_ceil(LEAST) as usize).min(expired.len()) };
        let most = affordable.min(limit);
        if purged > most || purged == 0 && most > 0 || report.urgent != urgent {
            return Err(format!("T20: {purged} were purged, at most {most} should have been: {report:?}"));
        }
        if !urgent && left_over == 0 && !expired.is_empty() && !report.out_of_units {
            return Err(format!("T20: the purge has no units and does not say so: {report:?}"));
        }
        let gone: Vec<ExpiringItem> = expired.iter().take(purged).copied().collect();
        if !urgent {
            self.ledger.purge(now, gone.iter().map(|item| item.cost).sum());
        }
        self.items.retain(|item| !gone.iter().any(|gone| gone.number == item.number));
        self.coverage.reach_if(urgent && left_over == 0 && purged > 0, CoveragePoint::PurgeUrgent);
        self.coverage
            .reach_if(!urgent && left_over == 0 && !expired.is_empty(), CoveragePoint::PurgeWithoutUnits);
        self.coverage
            .reach_if(!urgent && purged > 0 && purged < expired.len(), CoveragePoint::PurgeOnLeftOvers);
        let backlog = self.main.backlog()?;
        if backlog != (expired.len() - purged) as u64 {
            return Err(format!(
                "T18: {backlog} expired items are left, {purged} of {} were purged",
                expired.len()
            ));
        }
        Ok(())
    }

    fn promise(&mut self) -> Result<(), String> {
        let seconds = [None, Some(4), Some(20)][self.random.usize(..3)];
        self.note(format!("maxPurgeDelay {seconds:?}"));
        self.bound_ms = seconds.map(|seconds| u64::from(seconds) * 1000);
        self.main.promise(seconds)?;
        self.twin.promise(seconds)
    }

    /// Checks that a broken promise is reported, and only then.
    fn look_at_promises(&mut self) -> Result<(), String> {
        let missed = self.main.look_at_promises()?;
        let (oldest, time) = (self.expired_items()?.first().map(|item| item.expires_ms), self.now_ms()?);
        let broken = self.bound_ms.zip(oldest).is_some_and(|(bound, oldest)| oldest + bound <= time);
        self.note(format!("promises: told {missed}, broken {broken}"));
        if broken && !missed && !self.missed {
            return Err("T24: a promise was broken and is not reported".to_owned());
        }
        if missed && self.bound_ms.is_none() {
            return Err("T24: a promise that was not made is reported as broken".to_owned());
        }
        self.missed |= missed;
        self.coverage.reach_if(missed, CoveragePoint::PromiseBroken);
        Ok(())
    }

    fn restart(&mut self) -> Result<(), String> {
        self.note("restart");
        self.main.restart()?;
        self.twin.restart()?;
        self.ledger.forget();
        self.missed = false;
        self.coverage.reach(CoveragePoint::BudgetForgotten);
        Ok(())
    }
}
