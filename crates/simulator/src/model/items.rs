//! The effect of each operation on an item, computed by a scan over all items.

use super::history::ChangeKind;
use super::{
    Answer, BadTtl, Body, Change, Countdown, CountdownOrigin, Edit, Guard, Item, MAX_TTL, Model, Name, Stamp,
    Ttl,
};

impl Model {
    /// Applies one operation. Stamps for what it writes are taken from the front of `stamps`.
    pub(crate) fn apply(
        &mut self,
        name: &'static str,
        key: usize,
        change: &Change,
        countdown: Countdown,
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        let answer = self.apply_one(name, key, change, countdown, stamps);
        if answer.is_write() {
            self.commit(name);
        }
        answer
    }

    /// Counts a commit that has written or deleted items of a container.
    pub(super) fn commit(&mut self, name: &str) {
        if let Some(container) = self.containers.get_mut(name) {
            container.commits += 1;
        }
    }

    fn apply_one(
        &mut self,
        name: &'static str,
        key: usize,
        change: &Change,
        countdown: Countdown,
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        self.countdown = countdown;
        let Some(container) = self.containers.get_mut(name) else { return Answer::NoContainer };
        if countdown == Countdown::Keep {
            container.counted = container.counted.max(CountdownOrigin::Otherwise);
        }
        match change {
            Change::Create(body) => self.put(name, body, &Guard::None, PutMode::Create, stamps),
            Change::Upsert(body, guard) => self.put(name, body, guard, PutMode::Upsert, stamps),
            Change::Replace(which, body, guard) => self.replace(name, (key, which), body, guard, stamps),
            Change::Patch(which, edits, condition, guard) => {
                self.patch(name, (key, which), edits, *condition, guard, stamps)
            }
            Change::Delete(which, guard) => self.delete(name, (key, which), guard),
            Change::Read(which, guard) => match self.find(name, key, which) {
                Err(answer) => answer,
                Ok(index) => {
                    self.renew(name, index);
                    match guard {
                        Guard::NoneMatch(etag) if self.etag(name, index) == Some(etag) => Answer::NotModified,
                        _ => Answer::Read,
                    }
                }
            },
        }
    }

    /// Applies several operations under one key: all or nothing.
    pub(crate) fn apply_batch(
        &mut self,
        name: &'static str,
        key: usize,
        changes: &[Change],
        countdown: Countdown,
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        if !self.containers.contains_key(name) {
            return Answer::NoContainer;
        }
        // A batch with an invalid body is refused before any item is looked up.
        if let Some(index) = changes.iter().position(Change::has_bad_body) {
            return Answer::BatchFailed(index, Box::new(Answer::BadTtl));
        }
        let before = self.clone();
        let mut answers = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            let answer = self.apply_one(name, key, change, countdown, stamps);
            match answer {
                Answer::Created | Answer::Replaced | Answer::Deleted | Answer::Read | Answer::NotModified => {
                    answers.push(answer);
                }
                failure => {
                    *self = before;
                    return Answer::BatchFailed(index, Box::new(failure));
                }
            }
        }
        if answers.iter().any(Answer::is_write) {
            self.commit(name);
        }
        Answer::Batch(answers)
    }

    fn etag(&self, name: &str, index: usize) -> Option<&String> {
        self.containers[name].items[index].stamp.as_ref().map(|stamp| &stamp.etag)
    }

    /// Returns the live item of that name; a withheld one is not found either.
    pub(super) fn find(&self, name: &str, key: usize, which: &Name) -> Result<usize, Answer> {
        let container = &self.containers[name];
        let named = |item: &Item| {
            item.body.key == key
                && match which {
                    Name::Id(id) => item.body.id == *id,
                    Name::Number(number) => item.stamp.as_ref().is_some_and(|stamp| stamp.number == *number),
                }
        };
        let found = container.items.iter().position(|item| named(item) && self.is_visible(container, item));
        found.ok_or(Answer::NotFound)
    }

    fn guard(&self, name: &str, index: usize, guard: &Guard) -> Result<(), Answer> {
        match guard {
            Guard::Match(etag) if self.etag(name, index) != Some(etag) => Err(Answer::PreconditionFailed),
            _ => Ok(()),
        }
    }

    /// Checks that `/u` is free for this body: only living items hold it (T15); a withheld holder cannot be judged.
    fn check_unique(&self, name: &str, body: &Body, except: Option<usize>) -> Result<(), Answer> {
        let container = &self.containers[name];
        if !container.unique {
            return Ok(());
        }
        for (index, item) in container.items.iter().enumerate() {
            if Some(index) == except || item.body.key != body.key || item.body.unique != body.unique {
                continue;
            }
            if self.is_visible(container, item) {
                return Err(Answer::UniqueTaken);
            }
            if self.is_withheld(container, item) {
                return Err(Answer::ClockSuspect);
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        name: &'static str,
        body: &Body,
        guard: &Guard,
        mode: PutMode,
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        if matches!(body.ttl, Ttl::Bad(_)) {
            return Answer::BadTtl;
        }
        let which = Name::Id(body.id.clone());
        if let Ok(index) = self.find(name, body.key, &which) {
            return match mode {
                PutMode::Create => Answer::IdTaken,
                PutMode::Upsert => {
                    match self.guard(name, index, guard).and_then(|()| self.check_hold(name, index)) {
                        Err(answer) => answer,
                        Ok(()) => self.overwrite(name, index, body.clone(), stamps),
                    }
                }
            };
        }
        let container = &self.containers[name];
        let same_id = |item: &Item| item.body.key == body.key && item.body.id == body.id;
        if container.items.iter().any(|item| same_id(item) && self.is_withheld(container, item)) {
            return Answer::ClockSuspect;
        }
        if let Err(answer) = self.check_unique(name, body, None) {
            return answer;
        }
        let item = self.version(name, body.clone(), None, stamps);
        let container = self.containers.get_mut(name).expect("the caller looked it up");
        container.items.retain(|item| !same_id(item));
        container.items.push(item.clone());
        self.happen(name, ChangeKind::Created, None, Some(item));
        // An item that names its expiry may be expired when it is created.
        self.expire_overdue(name);
        Answer::Created
    }

    fn replace(
        &mut self,
        name: &'static str,
        (key, which): (usize, &Name),
        body: &Body,
        guard: &Guard,
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        if matches!(body.ttl, Ttl::Bad(_)) {
            return Answer::BadTtl;
        }
        let checked = self.find(name, key, which).and_then(|index| {
            self.guard(name, index, guard)?;
            self.check_hold(name, index)?;
            Ok(index)
        });
        let index = match checked {
            Err(answer) => return answer,
            Ok(index) => index,
        };
        if self.containers[name].items[index].body.id == body.id {
            return self.overwrite(name, index, body.clone(), stamps);
        }
        self.rename(name, index, body, stamps)
    }

    /// Replaces an item with another id: the new id must be free, as for a create.
    fn rename(&mut self, name: &'static str, index: usize, body: &Body, stamps: &mut Vec<Stamp>) -> Answer {
        let container = &self.containers[name];
        let same_id = |item: &Item| item.body.key == body.key && item.body.id == body.id;
        for other in container.items.iter().filter(|item| same_id(item)) {
            if self.is_visible(container, other) {
                return Answer::IdTaken;
            }
            if self.is_withheld(container, other) {
                return Answer::ClockSuspect;
            }
        }
        let version = container.items[index].version;
        if let Err(answer) = self.check_unique(name, body, Some(index)) {
            return answer;
        }
        let items = &mut self.containers.get_mut(name).expect("the caller looked it up").items;
        items.retain(|item| !same_id(item));
        let index = items.iter().position(|item| item.version == version).expect("it has another id");
        self.overwrite(name, index, body.clone(), stamps)
    }

    fn patch(
        &mut self,
        name: &'static str,
        (key, which): (usize, &Name),
        edits: &[Edit],
        condition: Option<i64>,
        guard: &Guard,
        stamps: &mut Vec<Stamp>,
    ) -> Answer {
        let index = match self.find(name, key, which) {
            Err(answer) => return answer,
            Ok(index) => index,
        };
        if let Err(answer) = self.guard(name, index, guard) {
            return answer;
        }
        let mut body = self.containers[name].items[index].body.clone();
        if condition.is_some_and(|number| number != body.number) {
            return Answer::PreconditionFailed;
        }
        for edit in edits {
            if !apply_edit(&mut body, edit) {
                return Answer::BadPatch;
            }
        }
        if matches!(body.ttl, Ttl::Bad(_)) {
            return Answer::BadTtl;
        }
        if let Err(answer) = self.check_hold(name, index) {
            return answer;
        }
        self.overwrite(name, index, body, stamps)
    }

    fn delete(&mut self, name: &str, (key, which): (usize, &Name), guard: &Guard) -> Answer {
        let index = match self.find(name, key, which) {
            Err(answer) => return answer,
            Ok(index) => index,
        };
        if let Err(answer) = self.guard(name, index, guard).and_then(|()| self.check_hold(name, index)) {
            return answer;
        }
        let items = &mut self.containers.get_mut(name).expect("the caller looked it up").items;
        let gone = items.remove(index);
        self.happen(name, ChangeKind::Deleted, Some(gone), None);
        Answer::Deleted
    }

    /// Replaces a live item with a new version: `_ts` is now, its countdown starts again (T9).
    fn overwrite(&mut self, name: &'static str, index: usize, body: Body, stamps: &mut Vec<Stamp>) -> Answer {
        if let Err(answer) = self.check_unique(name, &body, Some(index)) {
            return answer;
        }
        let before = self.containers[name].items[index].clone();
        let item = self.version(name, body, Some(&before), stamps);
        let items = &mut self.containers.get_mut(name).expect("the caller looked it up").items;
        let old = std::mem::replace(&mut items[index], item.clone());
        self.happen(name, ChangeKind::Replaced, Some(old), Some(item));
        self.expire_overdue(name);
        Answer::Replaced
    }

    /// Returns a new version. Without a stamp from an answer, its etag is unknown and not that of any version before.
    fn version(&mut self, name: &str, body: Body, before: Option<&Item>, stamps: &mut Vec<Stamp>) -> Item {
        self.versions += 1;
        let unknown = |number| Stamp { etag: String::new(), number, sequence: 0 };
        let number = before.and_then(|before| before.stamp.as_ref()).map(|stamp| stamp.number);
        let stamp = if stamps.is_empty() { number.map(unknown) } else { Some(stamps.remove(0)) };
        let container = &self.containers[name];
        let written_from = container.beginning(&body, self.now, before, self.countdown);
        Item {
            version: self.versions,
            counts_from: written_from,
            written_from,
            slides: container.makes_slide(&body),
            touched: false,
            expires_at: container.named_expiry(&body),
            body,
            ts: self.now,
            stamp,
            held: false,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum PutMode {
    Create,
    Upsert,
}

fn apply_edit(body: &mut Body, edit: &Edit) -> bool {
    match edit {
        Edit::SetTtl(ttl) => body.ttl = *ttl,
        Edit::RemoveTtl if body.ttl == Ttl::Absent => return false,
        Edit::RemoveTtl => body.ttl = Ttl::Absent,
        Edit::AddToTtl(more) => {
            body.ttl = match body.ttl {
                Ttl::Absent => from_number(*more),
                Ttl::Never => from_number(more - 1),
                Ttl::After(own) => from_number(own + more),
                Ttl::AfterPoint(own) => match from_number(own + more) {
                    Ttl::After(sum) => Ttl::AfterPoint(sum),
                    other => other,
                },
                Ttl::Bad(_) => return false,
            }
        }
        Edit::SetNumber(number) => body.number = *number,
        Edit::AddToNumber(more) => body.number += more,
        Edit::SetUnique(value) => body.unique = Some(*value),
    }
    true
}

fn from_number(number: i64) -> Ttl {
    match number {
        -1 => Ttl::Never,
        0 => Ttl::Bad(BadTtl::Zero),
        1..=MAX_TTL => Ttl::After(number),
        _ if number < 0 => Ttl::Bad(BadTtl::Negative),
        _ => Ttl::Bad(BadTtl::TooLarge),
    }
}
