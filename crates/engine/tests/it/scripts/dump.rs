//! `dump KIND NAME`: the stored entries of a container or collection, one on each line, in the order of their keys.

use engine::Owner;
use storage::{Direction, KeyRange, Keyspace, Read};

use super::Answer;
use super::call::Call;
use super::decode::{Bytes, document_key, mark, queue, shape, stored};
use super::documents::or_none;
use super::labels::{Labels, count, instant};
use super::stage::Stage;

/// Describes one entry; `None` if it is not of the requested kind.
type Show = fn(&mut Context<'_>, &mut Bytes<'_>, &[u8]) -> Option<String>;

/// The kinds of entries: their keyspace, and how one is shown.
const KINDS: &[(&str, Keyspace, Show)] = &[
    ("items", Keyspace::Item, item),
    ("id", Keyspace::Id, id),
    ("unique", Keyspace::Unique, unique),
    ("queue", Keyspace::Queue, in_queue),
    ("index", Keyspace::Index, index),
    ("counters", Keyspace::Counter, counter),
    ("feed", Keyspace::Feed, feed),
    ("history", Keyspace::History, history),
];

struct Context<'a> {
    labels: &'a mut Labels,
    reader: &'a dyn Read,
    partition: u32,
    is_collection: bool,
}

pub(super) fn dump(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let (kind, owner) = (call.name, stage.owner(call.word())?);
    if kind == "policy" {
        return Ok(owner.partitions().iter().map(|partition| policy(stage, partition.id.0)).collect());
    }
    let known = KINDS.iter().find(|(name, ..)| *name == kind);
    let (_, keyspace, show) = known.unwrap_or_else(|| panic!("no kind of entries: {kind}"));
    let snapshot = stage.store().snapshot()?;
    let mut lines = Vec::new();
    for (at, partition) in owner.partitions().iter().enumerate() {
        let is_collection = matches!(owner, Owner::Collection(_));
        let partition = partition.id.0;
        let mut context = Context { labels: &mut stage.labels, reader: &*snapshot, partition, is_collection };
        let all = KeyRange::prefix(partition.to_be_bytes());
        let mut found = Vec::new();
        for entry in snapshot.scan(*keyspace, all, Direction::Forward) {
            let (key, value) = entry?;
            found.extend(show(&mut context, &mut Bytes(&key[4..]), &value));
        }
        if owner.partitions().len() > 1 && !found.is_empty() {
            lines.push(format!("partition {at}"));
        }
        lines.extend(found);
    }
    Ok(or_none(lines))
}

impl Context<'_> {
    fn item(&mut self, number: u64) -> String {
        self.labels.item(number)
    }

    /// The places of a shape, which lie in another keyspace.
    fn shape(&self, generation: u32, hash: &[u8]) -> String {
        let mut key = self.partition.to_be_bytes().to_vec();
        key.push(0x50);
        key.extend_from_slice(&generation.to_be_bytes());
        key.extend_from_slice(hash);
        let places = self.reader.get(Keyspace::Counter, &key).expect("readable");
        places.map_or_else(|| "an unknown shape".to_owned(), |places| shape(&places))
    }

    fn image(&mut self, bytes: &[u8]) -> String {
        let stored = stored(bytes);
        format!("{} {}", self.labels.version(stored.sequence), stored.body)
    }
}

fn item(context: &mut Context<'_>, key: &mut Bytes<'_>, value: &[u8]) -> Option<String> {
    let number = context.item(key.u64());
    let stored = stored(value);
    let version = context.labels.version(stored.sequence);
    Some(format!("item {number}: {version} {} {}", stored.header, stored.body))
}

fn id(context: &mut Context<'_>, key: &mut Bytes<'_>, value: &[u8]) -> Option<String> {
    let name = if context.is_collection {
        document_key(key.rest())
    } else {
        key.effective_key();
        let partition_key = key.partition_key();
        format!("{partition_key} {}", String::from_utf8_lossy(key.rest()))
    };
    Some(format!("{name} -> {}", context.item(Bytes(value).u64())))
}

fn unique(context: &mut Context<'_>, key: &mut Bytes<'_>, value: &[u8]) -> Option<String> {
    key.effective_key();
    let (partition_key, index) = (key.partition_key(), key.u8());
    let values = key.values(0);
    Some(format!("{partition_key} unique key {index}: {values} -> {}", context.item(Bytes(value).u64())))
}

fn in_queue(context: &mut Context<'_>, key: &mut Bytes<'_>, value: &[u8]) -> Option<String> {
    assert!(value.is_empty(), "a queue entry with a value");
    let (queue, base) = (queue(key.u16()), instant(key.ordered_time()));
    Some(format!("{queue} {base} {}", context.item(key.u64())))
}

fn index(context: &mut Context<'_>, key: &mut Bytes<'_>, value: &[u8]) -> Option<String> {
    let generation = key.u32();
    let place = if context.is_collection {
        let values = document_key(key.take(key.0.len() - 8));
        format!("index {generation}: {values}")
    } else {
        match key.u8() {
            1 => {
                let path = key.path();
                format!("{path} = {}", key.values(8))
            }
            2 => {
                let number = key.u16();
                format!("composite {number} = {}", key.values(8))
            }
            3 => format!("shape {}", context.shape(generation, key.take(16))),
            4 => "outlier".to_owned(),
            other => panic!("no kind of index entry: {other}"),
        }
    };
    Some(format!("{place} -> {}: {}", context.item(key.u64()), mark(value)))
}

fn counter(context: &mut Context<'_>, key: &mut Bytes<'_>, value: &[u8]) -> Option<String> {
    let kind = key.u8();
    let mut value = Bytes(value);
    let tally = |value: &mut Bytes<'_>| {
        let (items, bytes) = (value.u64(), value.u64());
        format!("{} of {}", count(items, "item"), count(bytes, "byte"))
    };
    Some(match kind {
        0x10 => format!("total: {}", tally(&mut value)),
        0x20 => {
            let (queue, grain) = (queue(key.u16()), key.u8());
            let grain = ["hour", "second", "millisecond"][usize::from(grain) - 1];
            format!("{queue} {grain} {}: {}", instant(key.ordered_time()), tally(&mut value))
        }
        0x30 => {
            let queue = queue(key.u16());
            // The key of a queue entry, or the first place behind one.
            let mut cursor = Bytes(&value.0[6..]);
            let base = instant(cursor.ordered_time());
            let (number, items) = (cursor.u64(), context.reader);
            let is_entry = items.get(Keyspace::Queue, value.0).expect("readable").is_some();
            let at = if is_entry { number } else { number.saturating_sub(1) };
            let place = if is_entry { "at" } else { "behind" };
            format!("{queue} cursor: {place} {base} {}", context.item(at))
        }
        0x40 => {
            let generation = key.u32();
            let shape = context.shape(generation, key.rest());
            format!("shape {shape}: {}", count(value.u64(), "item"))
        }
        // Shown where they are counted.
        0x50 => return None,
        0x60 => {
            let number = context.item(key.u64());
            let since = instant(value.u64() as i64);
            format!("hold on {number} since {since}: {}", String::from_utf8_lossy(value.rest()))
        }
        0x70 => format!("moved aside: {}", tally(&mut value)),
        0x80 => format!("touch of {}: counted from {}", context.item(key.u64()), instant(value.i64())),
        0x90 => format!("set aside {}: {}", context.item(key.u64()), String::from_utf8_lossy(value.rest())),
        other => panic!("no kind of counter: {other}"),
    })
}

fn feed(context: &mut Context<'_>, key: &mut Bytes<'_>, value: &[u8]) -> Option<String> {
    let version = context.labels.version(key.u64());
    let mut value = Bytes(value);
    let event = if value.u8() == 0 { "create" } else { "replace" };
    Some(format!("{version} {event} {}", context.item(value.u64())))
}

fn history(context: &mut Context<'_>, key: &mut Bytes<'_>, value: &[u8]) -> Option<String> {
    let mut value = Bytes(value);
    match key.u8() {
        0x10 => Some(if value.u8() == 1 { "kept".to_owned() } else { "given up".to_owned() }),
        0x20 => {
            let time = instant(key.ordered_time());
            let kind = value.u8();
            let number = context.item(value.u64());
            if kind == 5 {
                while value.u8() & 0x80 != 0 {}
                return Some(format!("{time} delete {number}: {}", context.image(value.rest())));
            }
            let length = value.u32() as usize;
            let images = [value.take(length), value.rest()];
            let images: Vec<_> = images
                .into_iter()
                .rev()
                .filter(|image| !image.is_empty())
                .map(|image| context.image(image))
                .collect();
            let kind = ["create", "replace", "delete", "update"][usize::from(kind) - 1];
            Some(format!("{time} {kind} {number}: {}", images.join(" => ")))
        }
        0x30 => {
            let time = instant(key.ordered_time());
            key.u64();
            let base = instant(key.ordered_time());
            let number = context.item(key.u64());
            Some(format!("{time} expire {number}, base {base}: {}", context.image(value.rest())))
        }
        0x40 => {
            let expired = instant(key.ordered_time());
            let number = context.item(key.u64());
            let length = value.u32() as usize;
            value.take(length);
            Some(format!("expired {expired}, moved aside {number}: {}", context.image(value.rest())))
        }
        other => panic!("no kind of entry: {other}"),
    }
}

/// The expiry policy of a partition: `D` and the cutoffs, and what follows them in words.
fn policy(stage: &mut Stage, partition: u32) -> String {
    let mut key = vec![0x40];
    key.extend_from_slice(&partition.to_be_bytes());
    let snapshot = stage.store().snapshot().expect("a snapshot");
    let value = snapshot.get(Keyspace::Catalog, &key).expect("readable").expect("a policy");
    let mut value = Bytes(&value);
    value.u64();
    let default = match value.u32() as i32 {
        0 => "off".to_owned(),
        seconds => seconds.to_string(),
    };
    let mut line = format!("defaultTtl={default}");
    for _ in 0..value.u16() {
        let (queue, through) = (queue(value.u16()), instant(value.i64()));
        value.u64();
        line += &format!("; cutoff: {queue} through {through}");
    }
    line
}
