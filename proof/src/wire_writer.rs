//! A writer of the MongoDB API: inserts, updates, replacements and deletes of documents of its own, some of which expire by
//! a TTL index on a date, and transactions of several of them.

use anyhow::{Context, Result, bail, ensure};
use bolide_bench::client::{Bson, Value, WireClient, message};
use fastrand::Rng;

use crate::items;
use crate::ledger::{Attempt, Change, Entry, Presence, Version};
use crate::times::{ItemExpiry, Span};
use crate::world::{DATABASE, World};
use crate::writer::{Item, Step};

const ITEMS: usize = 20;
/// Documents of a transaction, at most.
const TOGETHER: usize = 5;
/// The server's label of a transaction without effect.
const AGAIN: &str = "TransientTransactionError";

#[derive(Clone)]
pub struct WireWriter {
    pub items: Vec<Item>,
    pub acknowledged: u64,
    /// Transactions that were committed.
    pub transactions: u64,
    /// Its session, of which each transaction has a number of its own.
    session: [u8; 16],
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
    pub fn new(number: usize, mut random: Rng) -> WireWriter {
        let item = |at| Item { id: format!("m{number}-{at}"), entry: Entry::default() };
        let session = random.u128(..).to_le_bytes();
        let items = (0..ITEMS).map(item).collect();
        WireWriter { items, acknowledged: 0, transactions: 0, session, random }
    }

    /// Does one step.
    pub fn step(&mut self, world: &World, wire: &mut WireClient) -> Result<Step> {
        let mut free: Vec<usize> =
            (0..self.items.len()).filter(|at| self.items[*at].entry.attempt.is_none()).collect();
        if free.len() > 1 && self.random.u8(..5) == 0 {
            self.random.shuffle(&mut free);
            free.truncate(self.random.usize(2..=TOGETHER));
            return self.transaction(world, wire, &free);
        }
        let Some(&at) = self.random.choice(&free) else { return Ok(Step::Answered) };
        let act = match self.random.u8(..8) {
            0..3 => Act::Insert,
            3..5 => Act::Set,
            5..7 => Act::Replace,
            _ => Act::Delete,
        };
        let (rev, size) = (world.number(), self.random.usize(20..400));
        let before = world.now();
        let expires = (self.random.u8(..3) == 0).then(|| before.high + self.random.i64(2..60));
        let Item { id, entry } = &mut self.items[at];
        let change = if act == Act::Delete { Change::Delete } else { Change::Put(rev) };
        let may_expire = expires.is_some() || act == Act::Set;
        entry.attempts(Attempt { change, group: world.number(), may_expire });
        let Ok(answer) = wire.exchange(&message(DATABASE, command(act, id, rev, size, expires))) else {
            return Ok(Step::Lost);
        };
        let answer = Outcome::of(answer)?;
        if let Outcome::Refused(why) = answer {
            return Ok(Step::Refused(503, why));
        }
        let now = Span { low: before.low, high: world.now().high };
        let presence = entry.presence(&world.date_rules, now);
        judge(entry, act, rev, expires, presence, &answer).with_context(|| {
            format!("{act:?} of {id} answered {answer:?} ({presence:?} at {now:?}, {entry:?})")
        })?;
        self.acknowledged += u64::from(answer == Outcome::Done(1));
        Ok(Step::Answered)
    }

    /// Changes several documents together, and commits or aborts: after an abort, and whenever no commit was sent, nothing
    /// may have changed.
    fn transaction(&mut self, world: &World, wire: &mut WireClient, chosen: &[usize]) -> Result<Step> {
        let number = world.number();
        let mut changes = Vec::new();
        for &at in chosen {
            let (rev, size) = (world.number(), self.random.usize(20..400));
            let expires = (self.random.u8(..3) == 0).then(|| world.now().high + self.random.i64(2..60));
            let Item { id, entry } = &self.items[at];
            let stays = entry.version.is_some_and(|version| version.expiry == ItemExpiry::Never);
            let (command, version) = if stays && self.random.bool() {
                (command(Act::Delete, id, rev, size, expires), None)
            } else {
                let expiry = expires.map_or(ItemExpiry::Never, ItemExpiry::At);
                (upsert(id, rev, size, expires), Some(Version { rev, expiry, alive: i64::MIN }))
            };
            let mut command = self.within(command, number);
            if changes.is_empty() {
                command = command.bool("startTransaction", true);
            }
            let Ok(answer) = wire.exchange(&message(DATABASE, command)) else { return Ok(Step::Lost) };
            match Outcome::of(answer)? {
                Outcome::Done(1) => changes.push((at, version, expires.is_some())),
                Outcome::Refused(why) if why.contains(AGAIN) => return Ok(Step::Answered),
                Outcome::Refused(why) => return Ok(Step::Refused(503, why)),
                other => bail!("a change of {id} in a transaction was answered {other:?} ({entry:?})"),
            }
        }
        if self.random.u8(..4) == 0 {
            let abort = self.within(Bson::new().int("abortTransaction", 1), number);
            return Ok(wire.exchange(&message("admin", abort)).map_or(Step::Lost, |_| Step::Answered));
        }
        self.commit(wire, number, &changes)
    }

    /// Ends a transaction with these changes: each document's version, if any, and whether it may expire.
    fn commit(
        &mut self,
        wire: &mut WireClient,
        number: u64,
        changes: &[(usize, Option<Version>, bool)],
    ) -> Result<Step> {
        let change = |version: Option<Version>| version.map_or(Change::Delete, |it| Change::Put(it.rev));
        for &(at, version, may_expire) in changes {
            let attempt = Attempt { change: change(version), group: number, may_expire };
            self.items[at].entry.attempts(attempt);
        }
        let commit = self.within(Bson::new().int("commitTransaction", 1), number);
        let Ok(answer) = wire.exchange(&message("admin", commit)) else { return Ok(Step::Lost) };
        if Value::field(answer, "ok")?.and_then(|ok| ok.number()) != Some(1.0) {
            let why = String::from_utf8_lossy(answer).into_owned();
            if !why.contains(AGAIN) {
                return Ok(Step::Refused(503, why));
            }
            // A document was purged meanwhile.
            changes.iter().for_each(|(at, ..)| self.items[*at].entry.refused());
            return Ok(Step::Answered);
        }
        for &(at, version, _) in changes {
            self.items[at].entry.acknowledged(change(version), version);
        }
        self.acknowledged += changes.len() as u64;
        self.transactions += 1;
        Ok(Step::Answered)
    }

    /// Returns a command as a part of the transaction of that number.
    fn within(&self, command: Bson, number: u64) -> Bson {
        // A document of one field: a UUID of 16 bytes, which is of kind 5 and subtype 4.
        let session =
            [&[30, 0, 0, 0, 5], b"id\0".as_slice(), &[16, 0, 0, 0, 4], &self.session, &[0]].concat();
        command.raw("lsid", &session).long("txnNumber", number as i64).bool("autocommit", false)
    }
}

/// Returns a replacement of the document, or its insert.
fn upsert(id: &str, rev: u64, size: usize, expires: Option<i64>) -> Bson {
    let statement = Bson::new()
        .document("q", Bson::new().text("_id", id))
        .document("u", items::document(id, rev, size, expires))
        .bool("upsert", true);
    Bson::new().text("update", "c").array("updates", [statement.finish()])
}

/// The outcome of a command.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// So many documents matched.
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

fn command(act: Act, id: &str, rev: u64, size: usize, expires: Option<i64>) -> Bson {
    let filter = || Bson::new().text("_id", id);
    let update = |change: Bson| {
        let statement = Bson::new().document("q", filter()).document("u", change);
        Bson::new().text("update", "c").array("updates", [statement.finish()])
    };
    match act {
        Act::Insert => {
            let document = items::document(id, rev, size, expires).finish();
            Bson::new().text("insert", "c").array("documents", [document])
        }
        Act::Replace => update(items::document(id, rev, size, expires)),
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
    expires: Option<i64>,
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
            // Sets only the numbers: the date stays.
            let expiry = entry.version.map_or(ItemExpiry::Never, |version| version.expiry);
            entry.acknowledged(Change::Put(rev), Some(Version { rev, expiry, alive: i64::MIN }));
        }
        _ => {
            let expiry = expires.map_or(ItemExpiry::Never, ItemExpiry::At);
            entry.acknowledged(Change::Put(rev), Some(Version { rev, expiry, alive: i64::MIN }));
        }
    }
    Ok(())
}
