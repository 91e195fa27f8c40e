//! A writer of the NoSQL API: it runs random operations on its own items, again and again, and keeps the ledger. It does
//! not know whether its client speaks HTTP or direct mode.

use anyhow::{Context, Result, bail, ensure};
use bolide_bench::client::Answer;
use fastrand::Rng;
use serde_json::Value;

use crate::item_client::{Act, ItemClient, ItemRequest};
use crate::items::{self, Wanted};
use crate::ledger::{Attempt, Change, Entry, Presence};
use crate::times::{ItemExpiry, Span};
use crate::world::{BULK, CONTAINERS, POLICY, World};

/// Items of a writer in each container.
const ITEMS: usize = 12;
/// Items that are written in one batch.
const BATCH: usize = 6;

/// An item of a writer.
#[derive(Clone, Debug)]
pub struct Item {
    pub id: String,
    pub entry: Entry,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Answered,
    /// The server takes no writes, with its reason.
    Refused(u16, String),
    /// The connection is lost, and with it the outcome; or the server stops, and has done nothing.
    Lost,
}

/// The status by which a stopping server tells clients in direct mode that nothing was done.
pub const GONE: u16 = 410;

/// One writer with its items.
#[derive(Clone)]
pub struct Writer {
    pub items: [Vec<Item>; CONTAINERS.len()],
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// The number of further items, from which they get their names.
    made: u64,
    number: usize,
    random: Rng,
}

impl Writer {
    pub fn new(number: usize, random: Rng) -> Writer {
        let item = |at| Item { id: format!("w{number}-{at}"), entry: Entry::default() };
        let items = std::array::from_fn(|_| (0..ITEMS).map(item).collect());
        Writer { items, acknowledged: 0, made: 0, number, random }
    }

    pub fn pk(&self) -> String {
        format!("p{}", self.number)
    }

    /// Does one step.
    pub fn step(&mut self, world: &World, client: &mut dyn ItemClient) -> Result<Step> {
        let container = self.random.usize(..CONTAINERS.len());
        if self.random.u8(..8) == 0 {
            return self.batch(world, client, container);
        }
        let settled: Vec<usize> =
            (0..self.items[container].len()).filter(|at| self.is_free(container, *at)).collect();
        let Some(&at) = self.random.choice(&settled) else { return Ok(Step::Answered) };
        let act = match self.random.u8(..10) {
            0..2 => Act::Create,
            2..5 => Act::Upsert,
            5..7 => Act::Replace,
            7..9 => Act::Patch,
            _ => Act::Delete,
        };
        self.one(world, client, container, at, act)
    }

    /// Returns `true` if none of its writes on that item is in flight.
    fn is_free(&self, container: usize, at: usize) -> bool {
        self.items[container][at].entry.attempt.is_none()
    }

    fn wanted(&mut self, container: usize) -> Wanted {
        match self.random.u8(..10) {
            0..3 => Wanted::Seconds(self.random.i64(2..60)),
            3 => Wanted::Never,
            4 if container == POLICY => Wanted::Never,
            _ => Wanted::Inherited,
        }
    }

    fn size(&mut self, container: usize) -> usize {
        if container == BULK { self.random.usize(500..4000) } else { self.random.usize(20..300) }
    }

    fn one(
        &mut self,
        world: &World,
        client: &mut dyn ItemClient,
        container: usize,
        at: usize,
        act: Act,
    ) -> Result<Step> {
        let (rev, size, wanted) = (world.number(), self.size(container), self.wanted(container));
        let (pk, id) = (self.pk(), self.items[container][at].id.clone());
        let change = if act == Act::Delete { Change::Delete } else { Change::Put(rev) };
        // A patch leaves the ttl as it is, whatever that was.
        let may_expire = container == POLICY || act == Act::Patch || wanted != Wanted::Inherited;
        let entry = &mut self.items[container][at].entry;
        entry.attempts(Attempt { change, group: world.number(), may_expire });
        let before = world.now();
        let body = match act {
            Act::Patch => items::patch(rev, wanted),
            Act::Delete => String::new(),
            _ => items::body(&id, &pk, rev, size, wanted),
        };
        let container_name = CONTAINERS[container];
        let request =
            ItemRequest { act, container: container_name, pk: &pk, id: &id, if_match: None, body: &body };
        let Ok(answer) = client.item(&request) else { return Ok(Step::Lost) };
        if answer.status == GONE {
            entry.refused();
            return Ok(Step::Lost);
        }
        let now = Span { low: before.low, high: world.now().high };
        if answer.status >= 500 {
            return Ok(Step::Refused(answer.status, answer.body));
        }
        let presence = entry.presence(&world.rules[container].lock(), now);
        judge(entry, act, rev, presence, &answer).with_context(|| {
            let entry = format!("{entry:?}");
            format!("{act:?} of {id} in {container_name} ({presence:?} at {now:?}, {entry})")
        })?;
        self.acknowledged += u64::from(answer.status < 300);
        Ok(Step::Answered)
    }

    /// Upserts and deletes of several items that happen together.
    fn batch(&mut self, world: &World, client: &mut dyn ItemClient, container: usize) -> Result<Step> {
        let now = world.now();
        let group = world.number();
        let mut chosen: Vec<usize> = (0..ITEMS).filter(|at| self.is_free(container, *at)).collect();
        self.random.shuffle(&mut chosen);
        chosen.truncate(BATCH);
        if chosen.is_empty() {
            return Ok(Step::Answered);
        }
        let mut operations = Vec::new();
        for &at in &chosen {
            let (rev, size, wanted) = (world.number(), self.size(container), self.wanted(container));
            let (pk, Item { id, entry }) = (self.pk(), self.items[container][at].clone());
            let stays = entry.version.is_some_and(|version| version.expiry == ItemExpiry::Never);
            let there = stays && entry.presence(&world.rules[container].lock(), now) == Presence::There;
            let (change, operation) = if there && self.random.bool() {
                (Change::Delete, format!("{{\"operationType\":\"Delete\",\"id\":\"{id}\"}}"))
            } else {
                (Change::Put(rev), upsert_of(&items::body(&id, &pk, rev, size, wanted)))
            };
            operations.push(operation);
            let may_expire = container == POLICY || wanted != Wanted::Inherited;
            self.items[container][at].entry.attempts(Attempt { change, group, may_expire });
        }
        self.send_batch(client, container, &chosen, &operations)
    }

    /// Returns a hundred new items that expire after so many seconds.
    pub fn crowd(&mut self, world: &World, client: &mut dyn ItemClient, seconds: i64) -> Result<Step> {
        let group = world.number();
        let first = self.items[BULK].len();
        let mut operations = Vec::new();
        for _ in 0..100 {
            let rev = world.number();
            self.made += 1;
            let id = format!("w{}-crowd-{}", self.number, self.made);
            operations.push(upsert_of(&items::body(&id, &self.pk(), rev, 400, Wanted::Seconds(seconds))));
            let past = self.items[BULK][0].entry.past.is_some().then(Vec::new);
            let mut entry = Entry { past, ..Entry::default() };
            entry.attempts(Attempt { change: Change::Put(rev), group, may_expire: true });
            self.items[BULK].push(Item { id, entry });
        }
        let chosen: Vec<usize> = (first..first + 100).collect();
        self.send_batch(client, BULK, &chosen, &operations)
    }

    fn send_batch(
        &mut self,
        client: &mut dyn ItemClient,
        container: usize,
        chosen: &[usize],
        operations: &[String],
    ) -> Result<Step> {
        let operations = format!("[{}]", operations.join(","));
        let Ok(answer) = client.batch(CONTAINERS[container], &self.pk(), &operations) else {
            return Ok(Step::Lost);
        };
        if answer.status == GONE {
            chosen.iter().for_each(|at| self.items[container][*at].entry.refused());
            return Ok(Step::Lost);
        }
        if answer.status >= 500 {
            return Ok(Step::Refused(answer.status, answer.body));
        }
        if answer.status == 207 && answer.body.contains("\"statusCode\":503") {
            // One operation could not look for its item, so none was made.
            return Ok(Step::Refused(503, answer.body));
        }
        let answer = answer.expect(200)?;
        let results: Vec<Value> = serde_json::from_str(&answer.body)?;
        ensure!(results.len() == chosen.len(), "{} results of {} operations", results.len(), chosen.len());
        for (&at, result) in chosen.iter().zip(&results) {
            let entry = &mut self.items[container][at].entry;
            let attempt = entry.attempt.context("every operation was noted")?;
            let version = match attempt.change {
                Change::Delete => None,
                Change::Put(_) => Some(items::version(&result["resourceBody"], i64::MIN)?),
            };
            entry.acknowledged(attempt.change, version);
        }
        self.acknowledged += chosen.len() as u64;
        Ok(Step::Answered)
    }

    /// Forgets items of `crowd` that are gone.
    pub fn tidy(&mut self) {
        for items in &mut self.items {
            let mut at = 0;
            items.retain(|item| {
                at += 1;
                at <= ITEMS || item.entry.version.is_some() || item.entry.attempt.is_some()
            });
        }
    }
}

fn upsert_of(body: &str) -> String {
    format!("{{\"operationType\":\"Upsert\",\"resourceBody\":{body}}}")
}

/// Checks that the answer is right for an item that exists or not, and records what follows from it.
fn judge(entry: &mut Entry, act: Act, rev: u64, presence: Presence, answer: &Answer) -> Result<()> {
    let possible = |expected: Presence| presence == expected || presence == Presence::Either;
    let right = match (act, answer.status) {
        (Act::Create | Act::Upsert, 201) | (Act::Replace | Act::Patch | Act::Delete, 404) => {
            possible(Presence::Gone)
        }
        (Act::Create, 409) | (Act::Upsert | Act::Replace | Act::Patch, 200) | (Act::Delete, 204) => {
            possible(Presence::There)
        }
        _ => bail!("unexpected answer {}: {}", answer.status, answer.body),
    };
    ensure!(right, "answer {} cannot be: {}", answer.status, answer.body);
    match answer.status {
        404 => {
            entry.refused();
            entry.seen_gone();
        }
        409 => entry.refused(),
        204 => entry.acknowledged(Change::Delete, None),
        _ => {
            let version = items::version(&serde_json::from_str(&answer.body)?, i64::MIN)?;
            ensure!(version.rev == rev, "version {} was answered for {rev}", version.rev);
            entry.acknowledged(Change::Put(rev), Some(version));
        }
    }
    Ok(())
}
