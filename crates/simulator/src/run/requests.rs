//! Requests of clients: each goes to the world and to its twin, then to the model, and all three must agree.

use crate::check;
use crate::clock::ClockRequest;
use crate::coverage::CoveragePoint;
use crate::model::{
    Answer, Change, Consent, Countdown, DefaultTtl, Guard, Indexing, Item, Model, Name, Stamp,
};
use crate::operation::{Fault, Filter, QueryScope};
use crate::run::{Ending, ProcessEnd, Run, Unknown};
use crate::world::{Reply, SeenItem, World};

const PAGES_MAX: usize = 200;

impl Run {
    /// Does the same in both worlds, under the same fault; returns whether the fault hit the first.
    pub(crate) fn perform<T>(&mut self, fault: Option<Fault>, act: impl Fn(&mut World) -> T) -> (T, T, bool) {
        let one = |world: &mut World| {
            if let Some(fault) = fault {
                world.plan(fault);
            }
            let result = act(world);
            (result, fault.is_some() && world.has_struck())
        };
        let (main, struck) = one(&mut self.main);
        let (twin, _) = one(&mut self.twin);
        (main, twin, struck)
    }

    /// Executes a request that may change something.
    pub(crate) fn write(
        &mut self,
        fault: Option<Fault>,
        act: impl Fn(&mut World) -> Reply,
        apply: impl Fn(&mut Model, &mut Vec<Stamp>) -> Answer,
    ) -> Result<Ending, String> {
        let before = self.main.sequence();
        let keeps = std::mem::take(&mut self.countdown) == Countdown::Keep;
        let (main, twin, struck) = self.perform(fault, act);
        if main != twin {
            return Err(format!("invariant 8: answered {main:?}, and without purge {twin:?}"));
        }
        main.figures.iter().for_each(|(charge, _)| self.main.charged(*charge));
        self.note(|_| format!("       {:?}", main.answer));
        if self.poisoned || struck && matches!(fault, Some(Fault::Fail { .. })) {
            self.situation.coverage.reach(CoveragePoint::CommitFailed);
            if main.answer.is_write() {
                return Err(format!("a store that takes no writes answered {:?}", main.answer));
            }
            if struck && matches!(fault, Some(Fault::Fail { kept: true, .. })) {
                let mut after = self.model.clone();
                apply(&mut after, &mut Vec::new());
                self.unknown = Some(Unknown { after: Some(after), asked: ClockRequest::Nothing });
            }
            return Ok(Ending::Running);
        }
        if struck {
            let mut after = self.model.clone();
            apply(&mut after, &mut Vec::new());
            let forks = vec![self.model.clone(), after];
            return Ok(Ending::Ended(ProcessEnd { forks, asked: ClockRequest::Nothing, certain: true }));
        }
        let mut stamps = main.stamps();
        let expected = apply(&mut self.model, &mut stamps);
        if expected != main.answer {
            return Err(format!("answered {:?}, should be {expected:?}", main.answer));
        }
        // A countdown that continues needs rules of its own, which are created before the item is looked up.
        let may_move = main.answer.may_take_a_sequence() || keeps;
        if !may_move && self.main.sequence() != before {
            return Err(format!("the sequence moved although nothing was written: {:?}", main.answer));
        }
        self.check_reply(&main)?;
        self.situation.answered(&main.answer);
        self.answered_under_hold(&main.answer);
        Ok(self.crash_if(fault))
    }

    /// Returns the ending of a step whose fault, if any, is a crash directly after it.
    pub(crate) fn crash_if(&self, fault: Option<Fault>) -> Ending {
        match fault {
            Some(Fault::Crash { .. }) => {
                let forks = vec![self.model.clone()];
                Ending::Ended(ProcessEnd { forks, asked: ClockRequest::Nothing, certain: self.recorded })
            }
            Some(Fault::Fail { .. }) | None => Ending::Running,
        }
    }

    /// Checks that etags are new, that a version keeps its item's number and a new item has a new one, and that `_ts` is now.
    fn check_reply(&mut self, reply: &Reply) -> Result<(), String> {
        for ((answer, item), left) in reply.items.iter().zip(&reply.left) {
            let written = answer.is_write();
            if written && !self.etags.insert(item.stamp.etag.clone()) {
                return Err(format!("etag {} was given twice", item.stamp.etag));
            }
            let fresh = self.numbers.insert(item.stamp.number);
            if (*answer == Answer::Created) != fresh {
                return Err(format!("{answer:?} with item number {}", item.stamp.number));
            }
            self.check_left(item, written, *left)?;
            if written && item.ts != self.model.now {
                return Err(format!("T9: written at {} with _ts {}", self.model.now, item.ts));
            }
        }
        Ok(())
    }

    /// Checks the seconds that an item has left, begun ones included, against the rules (T33).
    fn check_left(&self, item: &SeenItem, written: bool, left: Option<u64>) -> Result<(), String> {
        let known = |other: &&Item| other.stamp.as_ref().is_some_and(|stamp| *stamp == item.stamp);
        let items = self.model.containers.values().map(|inside| (inside, inside.items.iter().find(known)));
        let Some((inside, item)) = items.into_iter().find_map(|(inside, item)| Some((inside, item?))) else {
            // A later operation of its batch has taken its place.
            return Ok(());
        };
        let mut item = item.clone();
        if written {
            // A read that follows in the same batch may have restarted it: what was answered to the write stands.
            item.counts_from = item.written_from;
        }
        let remaining = |second: u64| (second * 1000).saturating_sub(self.shown.now_ms).div_ceil(1000);
        let expected = inside.deadline(&item).map(remaining);
        if left == expected {
            Ok(())
        } else {
            Err(format!("T33: {left:?} seconds are left, should be {expected:?}"))
        }
    }

    /// Executes one operation on one item.
    pub(crate) fn change(
        &mut self,
        container: &'static str,
        key: usize,
        change: &Change,
        countdown: Countdown,
        fault: Option<Fault>,
    ) -> Result<Ending, String> {
        self.situation.change(&self.model, container, key, change);
        let oldest = self.situation.steps.is_multiple_of(2);
        // The effect of a crash could not be observed: a restarted countdown, until it is over; or only the rules that a
        // kept countdown needs. So the crash follows the commit.
        let apart = matches!(change, Change::Read(..)) || countdown == Countdown::Keep;
        self.countdown = countdown;
        self.situation.counting(&self.model, container, key, change, countdown);
        let ending = self.write(
            fault.filter(|_| !apart),
            |world| world.change(container, key, change, countdown, oldest),
            |model, stamps| model.apply(container, key, change, countdown, stamps),
        )?;
        if apart { Ok(self.crash_if(fault)) } else { Ok(ending) }
    }

    /// Executes a transactional batch.
    pub(crate) fn batch(
        &mut self,
        container: &'static str,
        key: usize,
        changes: &[Change],
        countdown: Countdown,
        fault: Option<Fault>,
    ) -> Result<Ending, String> {
        self.countdown = countdown;
        let reads = changes.iter().any(|change| matches!(change, Change::Read(..)));
        let apart = reads || countdown == Countdown::Keep;
        let ending = self.write(
            fault.filter(|_| !apart),
            |world| world.batch(container, key, changes, countdown),
            |model, stamps| model.apply_batch(container, key, changes, countdown, stamps),
        )?;
        if apart { Ok(self.crash_if(fault)) } else { Ok(ending) }
    }

    /// Reads the item of a late write while the write is being prepared.
    pub(crate) fn read_before(
        &mut self,
        container: &'static str,
        key: usize,
        change: &Change,
    ) -> Result<(), String> {
        let Some(id) = change.id() else { return Ok(()) };
        let read = Change::Read(Name::Id(id.to_owned()), Guard::None);
        self.change(container, key, &read, Countdown::Restart, None).map(drop)
    }

    /// Writes through the handle of a deleted container.
    pub(crate) fn write_to_deleted(
        &mut self,
        container: &'static str,
        key: usize,
        change: &Change,
    ) -> Result<Ending, String> {
        if matches!(change, Change::Read(..)) {
            return Ok(Ending::Running);
        }
        let (main, twin, _) = self.perform(None, |world| world.write_to_deleted(container, key, change));
        if main != twin {
            return Err(format!(
                "invariant 8: a deleted container's handle answered {main:?}, and without purge {twin:?}"
            ));
        }
        let Some(reply) = main else { return Ok(Ending::Running) };
        self.situation.coverage.reach(CoveragePoint::HandleOfADeletedContainer);
        match reply.answer {
            Answer::NoContainer | Answer::BadTtl | Answer::Unavailable => Ok(Ending::Running),
            answer => Err(format!("a write into a deleted container was answered {answer:?}")),
        }
    }

    /// Deletes a container. If it has an archive, its expired items are archived first: whether that has to be done depends
    /// on the purge, so it is not requested while it cannot be, and a crash follows it.
    pub(crate) fn delete_container(
        &mut self,
        container: &'static str,
        fault: Option<Fault>,
    ) -> Result<Ending, String> {
        let waits = self.drop_waits_for_the_purge(container);
        if waits && (self.paused || self.shown.suspect || !self.full.is_empty()) {
            return Ok(Ending::Running);
        }
        self.consumers.remove(container);
        self.readers.retain(|(name, _), _| *name != container);
        self.auditors.remove(container);
        self.situation.container_deleted(container);
        let before = self.model.clone();
        let ending = self.write(
            fault.filter(|_| !waits),
            |world| world.delete_container(container),
            |model, _| model.delete_container(container),
        )?;
        if !waits {
            return Ok(ending);
        }
        if !self.model.containers.contains_key(container) && !self.poisoned {
            self.check_archive_of_dropped(&before, container)?;
        }
        Ok(self.crash_if(fault))
    }

    /// Changes `defaultTtl`.
    pub(crate) fn set_default_ttl(
        &mut self,
        container: &'static str,
        default_ttl: DefaultTtl,
        consent: Consent,
        fault: Option<Fault>,
    ) -> Result<Ending, String> {
        self.dry_run(container, default_ttl)?;
        self.situation.policy(&self.model, container, default_ttl);
        let indexing = self.model.containers.get(container).map(|inside| inside.indexing).unwrap_or_default();
        self.write(
            fault,
            |world| world.redefine(container, default_ttl, indexing, consent),
            |model, _| model.set_default_ttl(container, default_ttl, consent),
        )
    }

    /// Changes the indexing policy, with writes between the steps in which it is built. The rest of the build is done when the
    /// step is settled.
    pub(crate) fn reindex(
        &mut self,
        container: &'static str,
        indexing: Indexing,
        changes: &[(usize, Change)],
        limit: usize,
        fault: Option<Fault>,
    ) -> Result<Ending, String> {
        let default_ttl = self.model.containers.get(container).map_or(DefaultTtl::Off, |it| it.default_ttl);
        self.write(
            None,
            |world| world.redefine(container, default_ttl, indexing, Consent::NotGiven),
            |model, _| model.set_indexing(container, indexing),
        )?;
        for (key, change) in changes {
            if !self.poisoned {
                let (main, twin, struck) = self.perform(fault, |world| world.index_step(limit));
                if struck {
                    self.situation.coverage.reach(CoveragePoint::CrashInsideIndexBuild);
                    let forks = vec![self.model.clone()];
                    return Ok(Ending::Ended(ProcessEnd {
                        forks,
                        asked: ClockRequest::Nothing,
                        certain: self.recorded,
                    }));
                }
                self.situation.coverage.reach_if(main?, CoveragePoint::WriteDuringIndexBuild);
                twin?;
            }
            self.change(container, *key, change, Countdown::Restart, None)?;
            self.main.check_store()?;
            self.twin.check_store()?;
        }
        Ok(self.crash_if(fault))
    }

    /// Runs a query page by page: each item that is living throughout is returned exactly once, and none that has expired when
    /// its page is requested (T16).
    pub(crate) fn query(
        &mut self,
        container: &'static str,
        filter: &Filter,
        scope: QueryScope,
        page: usize,
        between_ms: u64,
    ) -> Result<(), String> {
        if !self.model.containers.contains_key(container) {
            return Ok(());
        }
        self.summary(container, filter, scope)?;
        let mut awaited = self.matching(container, filter, scope);
        let mut received: Vec<u64> = Vec::new();
        let mut continuation = None;
        for _ in 0..PAGES_MAX {
            let ask = |world: &mut World| world.page(container, filter, scope, page, continuation.clone());
            let (main, twin, _) = self.perform(None, ask);
            if main != twin {
                return Err(format!("invariant 8: a page is {main:?}, and without purge {twin:?}"));
            }
            let answer = main.map_err(|answer| format!("a query failed: {answer:?}"))?;
            let living = self.matching(container, filter, scope);
            for item in &answer.items {
                let visible = self.model.visible(container);
                let expected = visible
                    .iter()
                    .find(|other| other.body.key == item.body.key && other.body.id == item.body.id)
                    .filter(|other| living.contains(&other.version))
                    .ok_or_else(|| format!("found and should not be: {item:?}"))?;
                check::compare_item(expected, item)?;
                if received.contains(&expected.version) {
                    return Err(format!("found twice: {item:?}"));
                }
                received.push(expected.version);
            }
            awaited.retain(|version| living.contains(version));
            continuation = answer.continuation;
            if continuation.is_none() {
                break;
            }
            if between_ms > 0 && !self.poisoned {
                let before = self.model.visible(container).len();
                self.pass(between_ms)?;
                self.situation
                    .coverage
                    .reach_if(self.model.visible(container).len() < before, CoveragePoint::PageAfterAnExpiry);
            }
        }
        match awaited.iter().find(|version| !received.contains(version)) {
            _ if continuation.is_some() => Err("a query does not end".to_owned()),
            Some(lost) => Err(format!("lives throughout and was not found: version {lost}")),
            None => Ok(()),
        }
    }

    /// Continues a consumer of the feed: it gets the living items written since, oldest first, none twice.
    pub(crate) fn read_feed(&mut self, container: &'static str, max_items: usize) -> Result<(), String> {
        if !self.model.containers.contains_key(container) {
            return Ok(());
        }
        let (token, after) = self.consumers.get(container).cloned().unwrap_or_default();
        let ask = |world: &mut World| world.changes(container, token.clone(), max_items);
        let (main, twin, _) = self.perform(None, ask);
        if main != twin {
            return Err(format!("invariant 8: the feed gives {main:?}, and without purge {twin:?}"));
        }
        let page = main.map_err(|answer| format!("the feed failed: {answer:?}"))?;
        let visible = self.model.visible(container);
        let sequence = |item: &&Item| item.stamp.as_ref().map_or(0, |stamp| stamp.sequence);
        let mut news: Vec<&Item> = visible.into_iter().filter(|item| sequence(item) > after).collect();
        news.sort_by_key(sequence);
        if page.items.len() < news.len().min(max_items) || page.items.len() > news.len() {
            return Err(format!(
                "{} changes of {} are shown: {:?}",
                page.items.len(),
                news.len(),
                page.items
            ));
        }
        for (item, expected) in page.items.iter().zip(news) {
            check::compare_item(expected, item)?;
        }
        let after = page.items.last().map_or(after, |item| item.stamp.sequence);
        self.consumers.insert(container, (page.continuation, after));
        Ok(())
    }

    /// Checks that counts, sums and orders are those of the live items (T14).
    fn summary(&mut self, container: &'static str, filter: &Filter, scope: QueryScope) -> Result<(), String> {
        let (main, twin, _) = self.perform(None, |world: &mut World| world.summary(container, filter, scope));
        if main != twin {
            return Err(format!("invariant 8: a summary is {main:?}, and without purge {twin:?}"));
        }
        let (rows, _) = main.map_err(|answer| format!("a summary failed: {answer:?}"))?;
        let visible = self.model.visible(container);
        let matching = visible.into_iter().filter(|item| check::belongs(item, filter, scope));
        let mut numbers: Vec<i64> = matching.map(|item| item.body.number).collect();
        numbers.sort_by(|one, other| other.cmp(one));
        let ordered = numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
        let expected = [numbers.len().to_string(), numbers.iter().sum::<i64>().to_string(), ordered];
        if rows == expected { Ok(()) } else { Err(format!("T14: {rows:?} should be {expected:?}")) }
    }

    fn matching(&self, container: &str, filter: &Filter, scope: QueryScope) -> Vec<u64> {
        let visible = self.model.visible(container);
        let matching = visible.into_iter().filter(|item| check::belongs(item, filter, scope));
        matching.map(|item| item.version).collect()
    }
}
