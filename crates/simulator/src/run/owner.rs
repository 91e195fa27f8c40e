//! Steps of owners and operators: holds, settings, forecasts, dry runs, and the purge on demand.

use std::ops::ControlFlow;

use engine::Interval;

use crate::coverage::CoveragePoint;
use crate::model::{Answer, Consent, CountdownOrigin, DefaultTtl, Item, SettingChange};
use crate::operation::{Fault, Filter, OwnerStep, QueryScope};
use crate::run::{Ending, Run};
use crate::world::{Figures, World};

impl Run {
    /// Runs a step of an owner or operator.
    pub(crate) fn owner_step(&mut self, step: &OwnerStep, fault: Option<Fault>) -> Result<Ending, String> {
        match step {
            OwnerStep::SettingChange { container, change, consent } => {
                self.change_setting(container, *change, *consent, fault)
            }
            OwnerStep::HoldItem { container, key, id, hold } => {
                self.hold_item(container, *key, id, *hold, fault)
            }
            OwnerStep::ReadHistory { container, key, max_items } => {
                self.read_history(container, *key, *max_items)?;
                Ok(self.crash_if(fault))
            }
            OwnerStep::Forecast { container, interval, count } => {
                self.forecast(container, *interval, *count)?;
                Ok(self.crash_if(fault))
            }
            OwnerStep::Pause { paused } => {
                self.paused = *paused;
                self.main.pause(*paused);
                self.twin.pause(*paused);
                Ok(self.crash_if(fault))
            }
            OwnerStep::FillArchive { container, full } => {
                self.fill_archive(container, *full)?;
                Ok(self.crash_if(fault))
            }
            OwnerStep::PurgeNow { container, limit } => self.purge_now(*container, *limit, fault),
        }
    }

    fn change_setting(
        &mut self,
        container: &'static str,
        change: SettingChange,
        consent: Consent,
        fault: Option<Fault>,
    ) -> Result<Ending, String> {
        self.situation.change_setting(&self.model, container, change);
        let living = self.model.visible(container).len();
        let ending = self.write(
            fault,
            |world| world.change_setting(container, change, consent),
            |model, _| model.change_setting(container, change, consent),
        )?;
        let expired_some =
            change == SettingChange::Hold(false) && self.model.visible(container).len() < living;
        self.situation.coverage.reach_if(expired_some, CoveragePoint::LiftExpires);
        Ok(ending)
    }

    fn hold_item(
        &mut self,
        container: &'static str,
        key: usize,
        id: &str,
        hold: bool,
        fault: Option<Fault>,
    ) -> Result<Ending, String> {
        let figures = |run: &Run| {
            let visible = run.model.visible(container);
            (visible.len(), visible.iter().filter(|item| item.held).count())
        };
        let before = figures(self);
        let ending = if hold {
            let act = |world: &mut World| world.hold_item(container, key, id, true);
            self.write(fault, act, |model, _| model.hold_item(container, key, id))?
        } else {
            // Where the purge was not yet, a lift lets it run first: the same commit is not the same step in both worlds. So
            // a crash comes behind it.
            let act = |world: &mut World| world.hold_item(container, key, id, false);
            self.write(None, act, |model, _| model.lift_item(container, key, id))?;
            self.crash_if(fault)
        };
        let after = figures(self);
        self.situation.coverage.reach_if(after.1 > before.1, CoveragePoint::ItemHeld);
        let lifted = after.1 < before.1;
        self.situation.coverage.reach_if(lifted && after.0 < before.0, CoveragePoint::LiftExpires);
        self.situation.coverage.reach_if(lifted && after.0 == before.0, CoveragePoint::LiftKeeps);
        Ok(ending)
    }

    /// Checks that the dry run returns what another `defaultTtl` would expire (T30).
    pub(crate) fn dry_run(&mut self, container: &'static str, default_ttl: DefaultTtl) -> Result<(), String> {
        if !self.model.containers.contains_key(container) || matches!(default_ttl, DefaultTtl::Bad(_)) {
            return Ok(());
        }
        let (main, twin, _) = self.perform(None, |world| world.dry_run(container, default_ttl));
        let exact = self.model.containers[container].counted < CountdownOrigin::Named;
        if exact && main != twin {
            return Err(format!("invariant 8: a dry run is {main:?}, and without purge {twin:?}"));
        }
        if self.model.containers[container].counted == CountdownOrigin::Named {
            return Ok(());
        }
        let sizes = self.sizes(container)?;
        let doomed = self.model.would_expire(container, default_ttl);
        let sum = |which: &dyn Fn(&Item) -> bool| total(&sizes, which);
        let expected = (sum(&|_| true), sum(&|item| doomed.contains(&item.version)));
        self.situation.coverage.reach_if(!doomed.is_empty(), CoveragePoint::DryRunExpires);
        if main.as_ref() == Ok(&expected) {
            return Ok(());
        }
        Err(format!("T30: a dry run is {main:?}, should be {expected:?}"))
    }

    /// Checks a forecast of expiries.
    fn forecast(&mut self, container: &'static str, interval: Interval, count: usize) -> Result<(), String> {
        let Some(inside) = self.model.containers.get(container).cloned() else { return Ok(()) };
        let (main, twin, _) = self.perform(None, |world| world.forecast(container, interval, count));
        let (main, mut twin) = (main?, twin?);
        if inside.counted == CountdownOrigin::Named {
            // An item that expires by two rules is counted under each.
            return Ok(());
        }
        twin.overdue = main.overdue;
        if main != twin {
            return Err(format!("invariant 8: a forecast is {main:?}, and without purge {twin:?}"));
        }
        let sizes = self.sizes(container)?;
        let (now, length) = (self.shown.now_ms, interval.seconds() * 1000);
        let slot = |item: &Item| {
            inside
                .deadline(item)
                .map(|second| usize::try_from((second * 1000 - now - 1) / length).unwrap_or(count))
        };
        let expected: Vec<Figures> =
            (0..count).map(|at| total(&sizes, &|item| slot(item) == Some(at))).collect();
        let later = total(&sizes, &|item| slot(item).is_some_and(|at| at >= count));
        let never = total(&sizes, &|item| slot(item).is_none());
        self.situation
            .coverage
            .reach_if(expected.iter().any(|expiring| expiring.0 > 0), CoveragePoint::ExpiryForecast);
        if (&main.intervals, main.later, main.never) != (&expected, later, never) || !main.exact {
            return Err(format!("T30: a forecast is {main:?}, should be {expected:?}, {later:?}, {never:?}"));
        }
        Ok(())
    }

    /// Returns the living items of a container, with their bytes.
    fn sizes(&self, container: &'static str) -> Result<Vec<(Item, u64)>, String> {
        let page = self.main.page(container, &Filter::All, QueryScope::Everywhere, 1000, None);
        let page = page.map_err(|answer| format!("a listing failed: {answer:?}"))?;
        let visible = self.model.visible(container);
        let sized = |item: &&Item| {
            let same =
                page.items.iter().find(|seen| seen.body.key == item.body.key && seen.body.id == item.body.id);
            ((*item).clone(), same.map_or(0, |seen| seen.bytes))
        };
        Ok(visible.iter().map(sized).collect())
    }

    /// Runs the purge on demand, which removes what it reports, and only of its container (T23).
    fn purge_now(
        &mut self,
        container: Option<&'static str>,
        limit: usize,
        fault: Option<Fault>,
    ) -> Result<Ending, String> {
        if container.is_some_and(|name| !self.model.containers.contains_key(name)) {
            return Ok(Ending::Running);
        }
        let before = self.main.backlogs();
        let purged = match self.perform_purge(fault, |world| world.purge_now(container, limit))? {
            ControlFlow::Continue(report) => report.purged_items,
            ControlFlow::Break(ending) => return Ok(ending),
        };
        let mut gone = 0;
        for ((name, before, _), (_, after, _)) in before.into_iter().zip(self.main.backlogs()) {
            gone += before - after;
            let untouchable = self.paused
                || self.shown.suspect
                || self.model.containers[name].hold
                || container.is_some_and(|wanted| wanted != name);
            if untouchable && before != after {
                return Err(format!("T23: a purge on demand of {container:?} touched {name}"));
            }
        }
        self.situation.coverage.reach_if(purged > 0, CoveragePoint::PurgedOnDemand);
        if gone == purged {
            Ok(self.crash_if(fault))
        } else {
            Err(format!("T23: {gone} are gone, {purged} were purged"))
        }
    }

    /// Counts the effects of a hold for coverage.
    pub(crate) fn answered_under_hold(&mut self, answer: &Answer) {
        let refused = match answer {
            Answer::BatchFailed(_, reason) => **reason == Answer::Held,
            other => *other == Answer::Held,
        };
        self.situation.coverage.reach_if(refused, CoveragePoint::RefusedByHold);
        self.situation.coverage.reach_if(*answer == Answer::NotConfirmed, CoveragePoint::RefusedByGuard);
    }
}

fn total(sizes: &[(Item, u64)], which: &dyn Fn(&Item) -> bool) -> Figures {
    let chosen = sizes.iter().filter(|(item, _)| which(item));
    chosen.fold((0, 0), |(items, bytes), (_, size)| (items + 1, bytes + size))
}
