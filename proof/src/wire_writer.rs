//! A writer of the MongoDB API: inserts, updates, replacements and deletes of documents of its own, some of which die by
//! a TTL index on a date.

use anyhow::{Context, Result, bail, ensure};
use bolide_bench::client::{Bson, Value, WireClient, message};
use fastrand::Rng;

use crate::items;
use crate::ledger::{Attempt, Change, Entry, Presence, Version};
use crate::times::{Death, Span};
use crate::world::{DATABASE, World};
use crate::writer::{Item, Step};

const ITEMS: usize = 20;

#[derive(Clone)]
pub struct WireWriter {
    pub items: Vec<Item>,
    pub acknowledged: u64,
    random: Rng,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Insert,
    Set,
    Replace,
    Delete,
}

impl WireWriter {
    pub fn new(number: usize, random: Rng) -> WireWriter {
        let item = |at| Item { id: format!("m{number}-{at}"), entry: Entry::default() };
        WireWriter { items: (0..ITEMS).map(item).collect(), acknowledged: 0, random }
    }

    /// Does one thing.
    pub fn step(&mut self, world: &World, wire: &mut WireClient) -> Result<Step> {
        let free: Vec<usize> =
            (0..self.items.len()).filter(|at| self.items[*at].entry.attempt.is_none()).collect();
        let Some(&at) = self.random.choice(&free) else { return Ok(Step::Answered) };
        let act = match self.random.u8(..8) {
            0..3 => Act::Insert,
            3..5 => Act::Set,
            5..7 => Act::Replace,
            _ => Act::Delete,
        };
        let (rev, size) = (world.number(), self.random.usize(20..400));
        let before = world.now();
        let dies = (self.random.u8(..3) == 0).then(|| before.high + self.random.i64(2..60));
        let Item { id, entry } = &mut self.items[at];
        let change = if act == Act::Delete { Change::Delete } else { Change::Put(rev) };
        let mortal = dies.is_some() || act == Act::Set;
        entry.attempts(Attempt { change, group: world.number(), mortal });
        let Ok(answer) = wire.exchange(&message(DATABASE, command(act, id, rev, size, dies))) else {
            return Ok(Step::Lost);
        };
        let answer = Outcome::of(answer)?;
        if let Outcome::Refused(why) = answer {
            return Ok(Step::Refused(503, why));
        }
        let now = Span { low: before.low, high: world.now().high };
        let presence = entry.presence(&world.date_rules, now);
        judge(entry, act, rev, dies, presence, &answer).with_context(|| {
            format!("{act:?} of {id} answered {answer:?} ({presence:?} at {now:?}, {entry:?})")
        })?;
        self.acknowledged += u64::from(answer == Outcome::Done(1));
        Ok(Step::Answered)
    }
}

/// What a command came to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// So many documents were met.
    Done(u64),
    Duplicate,
    Refused(String),
}

impl Outcome {
    fn of(answer: &[u8]) -> Result<Outcome> {
        let number = |document: &[u8], name: &str| {
            Ok::<_, anyhow::Error>(Value::field(document, name)?.and_then(|value| value.number()))
        };
        let told = || String::from_utf8_lossy(answer).into_owned();
        if number(answer, "ok")? != Some(1.0) {
            return Ok(Outcome::Refused(told()));
        }
        if let Some(errors) = Value::field(answer, "writeErrors")?.and_then(|errors| errors.bytes()) {
            let first = Value::field(errors, "0")?.and_then(|first| first.bytes()).context("no error")?;
            return Ok(match number(first, "code")? {
                Some(11000.0) => Outcome::Duplicate,
                _ => Outcome::Refused(told()),
            });
        }
        Ok(Outcome::Done(number(answer, "n")?.context("no count")? as u64))
    }
}

fn command(act: Act, id: &str, rev: u64, size: usize, dies: Option<i64>) -> Bson {
    let filter = || Bson::new().text("_id", id);
    let update = |change: Bson| {
        let statement = Bson::new().document("q", filter()).document("u", change);
        Bson::new().text("update", "c").array("updates", [statement.finish()])
    };
    match act {
        Act::Insert => {
            let document = items::document(id, rev, size, dies).finish();
            Bson::new().text("insert", "c").array("documents", [document])
        }
        Act::Replace => update(items::document(id, rev, size, dies)),
        Act::Set => {
            let set = Bson::new().long("rev", rev as i64).long("twin", rev as i64);
            update(Bson::new().document("$set", set))
        }
        Act::Delete => {
            let statement = Bson::new().document("q", filter()).int("limit", 1);
            Bson::new().text("delete", "c").array("deletes", [statement.finish()])
        }
    }
}

fn judge(
    entry: &mut Entry,
    act: Act,
    rev: u64,
    dies: Option<i64>,
    presence: Presence,
    outcome: &Outcome,
) -> Result<()> {
    let possible = |expected: Presence| presence == expected || presence == Presence::Either;
    let right = match (act, outcome) {
        (Act::Insert, Outcome::Duplicate) | (Act::Set | Act::Replace | Act::Delete, Outcome::Done(1)) => {
            possible(Presence::There)
        }
        (Act::Insert, Outcome::Done(1)) | (Act::Set | Act::Replace | Act::Delete, Outcome::Done(0)) => {
            possible(Presence::Gone)
        }
        _ => bail!("unexpected"),
    };
    ensure!(right, "cannot be");
    match (act, outcome) {
        (_, Outcome::Duplicate) => entry.refused(),
        (_, Outcome::Done(0)) => {
            entry.refused();
            entry.seen_gone();
        }
        (Act::Delete, _) => entry.acknowledged(Change::Delete, None),
        (Act::Set, _) => {
            // Only the numbers are set: the date stays.
            let death = entry.version.map_or(Death::Never, |version| version.death);
            entry.acknowledged(Change::Put(rev), Some(Version { rev, death, alive: i64::MIN }));
        }
        _ => {
            let death = dies.map_or(Death::Never, Death::At);
            entry.acknowledged(Change::Put(rev), Some(Version { rev, death, alive: i64::MIN }));
        }
    }
    Ok(())
}
