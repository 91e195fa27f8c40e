//! Verification after a restart: the server has exactly the acknowledged state, and the feeds agree.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Client, WireClient};
use fastrand::Rng;

use crate::ledger::{Entry, Presence, Settled, Version};
use crate::process::Server;
use crate::times::{Rules, Span};
use crate::wire_writer::WireWriter;
use crate::world::{self, CONTAINERS, FeedState, WITH_FEED, World};
use crate::writer::{Item, Writer};

/// All writers, and the events of the feeds.
pub struct Writers {
    pub writers: Vec<Writer>,
    pub wire_writers: Vec<WireWriter>,
    pub told: [FeedState; WITH_FEED.len()],
}

/// Whether the state is compared with the feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feeds {
    Compared,
    /// The consumer did not read all the time.
    LeftAlone,
}

impl Writers {
    /// Creates this many writers of each API, and one more of the NoSQL API for the disturber.
    pub fn new(writers: usize, wire_writers: usize, random: &mut Rng) -> Writers {
        Writers {
            writers: (0..=writers).map(|number| Writer::new(number, random.fork())).collect(),
            wire_writers: (0..wire_writers).map(|number| WireWriter::new(number, random.fork())).collect(),
            told: Default::default(),
        }
    }

    fn items_mut(&mut self) -> impl Iterator<Item = &mut Item> {
        let nosql = self.writers.iter_mut().flat_map(|writer| writer.items.iter_mut().flatten());
        nosql.chain(self.wire_writers.iter_mut().flat_map(|writer| &mut writer.items))
    }

    /// Starts recording the time of each acknowledged state.
    pub fn remember(&mut self) {
        self.items_mut().for_each(|item| item.entry.begin_past());
    }

    /// Stops recording.
    pub fn forget(&mut self) {
        self.items_mut().for_each(|item| item.entry.past = None);
    }

    /// Returns the acknowledged state of all writers at a moment.
    pub fn as_of(&self, moment: f64) -> Writers {
        let (writers, wire_writers) = (self.writers.clone(), self.wire_writers.clone());
        let mut then = Writers { writers, wire_writers, told: Default::default() };
        then.items_mut().for_each(|item| item.entry = item.entry.as_of(moment));
        then
    }

    /// Returns the number of writes that were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        let nosql: u64 = self.writers.iter().map(|writer| writer.acknowledged).sum();
        nosql + self.wire_writers.iter().map(|writer| writer.acknowledged).sum::<u64>()
    }

    /// Returns the number of transactions of several documents that were acknowledged so far.
    pub fn transactions(&self) -> u64 {
        self.wire_writers.iter().map(|writer| writer.transactions).sum()
    }

    /// Returns `true` if a write is in flight.
    pub fn is_writing(&self) -> bool {
        let nosql = self.writers.iter().flat_map(|writer| writer.items.iter().flatten());
        let wire = self.wire_writers.iter().flat_map(|writer| &writer.items);
        nosql.chain(wire).any(|item| item.entry.attempt.is_some())
    }
}

/// The figures of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    pub items: u64,
    pub events: u64,
    /// Writes of unknown outcome that turned out to be made, and not to be made.
    pub made: u64,
    pub not_made: u64,
}

/// Whether writes that belong together were made together.
#[derive(Default)]
pub struct Groups(HashMap<u64, bool>);

impl Groups {
    fn settle(&mut self, group: u64, settled: Settled) -> Result<()> {
        match settled {
            Settled::Made => self.add(group, true),
            Settled::NotMade => self.add(group, false),
            Settled::Nothing | Settled::Unknown(_) => Ok(()),
        }
    }

    pub fn add(&mut self, group: u64, made: bool) -> Result<()> {
        let before = *self.0.entry(group).or_insert(made);
        ensure!(before == made, "a part of a batch or of a transaction was made and another was not");
        Ok(())
    }
}

/// Compares the ledger with a server without concurrent writes.
pub fn everything(
    world: &World,
    server: &Server,
    all_writers: &mut Writers,
    feeds: Feeds,
) -> Result<Compared> {
    let mut compared = Compared::default();
    let mut client = Client::connect(&server.address)?;
    world.read_clock(&mut client)?;
    world.settle_policy(&mut client)?;
    let mut groups = Groups::default();
    for (at, name) in CONTAINERS.iter().enumerate() {
        let low = world.read_clock(&mut client)?;
        let mut found = world::living(&mut client, name, low)?;
        let now = Span { low, high: world.read_clock(&mut client)? };
        let rules = world.rules[at].lock().clone();
        let mut settled = Vec::new();
        for item in all_writers.writers.iter_mut().flat_map(|writer| &mut writer.items[at]) {
            let outcome = settle(item, found.remove(&item.id), &rules, now, &mut groups, &mut compared)
                .with_context(|| format!("item {} in {name}", item.id))?;
            settled.push(outcome);
        }
        ensure!(found.is_empty(), "no writer wrote these items of {name}: {found:?}");
        let told = WITH_FEED.iter().position(|with| *with == at && feeds == Feeds::Compared);
        if let Some(told) = told.map(|at| &mut all_writers.told[at]) {
            world::follow(&mut client, name, told).with_context(|| format!("the feed of {name}"))?;
            let now = Span { low, high: world.read_clock(&mut client)? };
            let items = all_writers.writers.iter_mut().flat_map(|writer| &mut writer.items[at]);
            for (item, settled) in items.zip(settled) {
                let events = told.events.remove(&item.id).unwrap_or_default();
                compared.events += events.len() as u64;
                item.entry
                    .compare_feed(&events, settled, &rules, now)
                    .with_context(|| format!("item {} in the feed of {name}: {events:?}", item.id))?;
            }
            ensure!(told.events.is_empty(), "the feed of {name} tells of others: {:?}", told.events);
        } else {
            all_writers.writers.iter_mut().flat_map(|writer| &mut writer.items[at]).for_each(forget_changes);
        }
    }
    documents(world, server, &mut client, &mut all_writers.wire_writers, &mut compared)?;
    all_writers.writers.iter_mut().for_each(Writer::tidy);
    sample(world, &mut client, all_writers)?;
    Ok(compared)
}

fn forget_changes(item: &mut Item) {
    item.entry.changes.clear();
}

fn settle(
    item: &mut Item,
    found: Option<Version>,
    rules: &Rules,
    now: Span,
    groups: &mut Groups,
    compared: &mut Compared,
) -> Result<Settled> {
    let Entry { attempt, .. } = item.entry;
    let settled = item.entry.settle(found, rules, now)?;
    if let Some(attempt) = attempt {
        groups.settle(attempt.group, settled)?;
    }
    compared.items += 1;
    compared.made += u64::from(settled == Settled::Made);
    compared.not_made += u64::from(settled == Settled::NotMade);
    Ok(settled)
}

fn documents(
    world: &World,
    server: &Server,
    client: &mut Client,
    writers: &mut [WireWriter],
    compared: &mut Compared,
) -> Result<()> {
    let mut wire = WireClient::connect(&server.mongo)?;
    let low = world.read_clock(client)?;
    let mut found = world::living_documents(&mut wire, low)?;
    let now = Span { low, high: world.read_clock(client)? };
    let mut groups = Groups::default();
    for item in writers.iter_mut().flat_map(|writer| &mut writer.items) {
        let found = found.remove(&item.id);
        settle(item, found, &world.date_rules, now, &mut groups, compared)
            .with_context(|| format!("document {}", item.id))?;
        forget_changes(item);
    }
    ensure!(found.is_empty(), "no writer wrote these documents: {found:?}");
    Ok(())
}

/// Reads an item of each writer in each container by its id: the feed is not the only way to it.
fn sample(world: &World, client: &mut Client, all_writers: &mut Writers) -> Result<()> {
    for (at, name) in CONTAINERS.iter().enumerate() {
        for writer in &all_writers.writers {
            let Some(item) = fastrand::choice(&writer.items[at]) else { continue };
            let low = world.read_clock(client)?;
            let answer = client.read(name, &writer.pk(), &item.id)?;
            let now = Span { low, high: world.read_clock(client)? };
            let presence = item.entry.presence(&world.rules[at].lock(), now);
            let right = match answer.status {
                200 => presence != Presence::Gone,
                404 => presence != Presence::There,
                _ => false,
            };
            ensure!(right, "{} of {name} read by id: {} ({presence:?})", item.id, answer.status);
        }
    }
    Ok(())
}
