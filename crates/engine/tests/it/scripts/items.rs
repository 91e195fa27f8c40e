//! Commands that write and read items of containers. Those that collections have as well lead to `documents.rs`.

use std::sync::Arc;

use document::{Document, ItemNumber, PartitionKey, Value, ValueRef, parse_json};
use engine::{
    Container, Countdown, Effect, ItemAddress, ItemName, Operation, Outcome, Owner, Patch, Precondition,
};

use super::call::{Call, split_word};
use super::labels::{count, instant};
use super::stage::{Stage, describe};
use super::{Answer, documents};

/// `key=["a"]`.
pub(super) fn key_option(call: &mut Call<'_>) -> Option<PartitionKey> {
    let key = call.take("key")?;
    Some(PartitionKey::from_header(key).unwrap_or_else(|error| panic!("key={key}: {error}")))
}

/// The key of an item that is named by its id alone: the id itself where the container is partitioned by `/id`, undefined else.
fn key_of_id(container: &Container, id: &str) -> PartitionKey {
    let by_id =
        matches!(container.definition.partition_key.paths.as_slice(), [path] if path.as_str() == "/id");
    let text = if by_id { format!("[{}]", Value::String(id.into()).to_json()) } else { "[{}]".to_owned() };
    PartitionKey::from_header(&text).expect("a valid key")
}

/// An item as operators name it.
pub(super) fn address(owner: &Owner, key: Option<PartitionKey>, word: &str) -> ItemAddress {
    match owner {
        Owner::Container(container) => {
            ItemAddress::Id(key.unwrap_or_else(|| key_of_id(container, word)), word.to_owned())
        }
        Owner::Collection(_) => ItemAddress::from_extended_json(word).expect("an _id in Extended JSON"),
    }
}

fn body(text: &str) -> engine::Result<Document> {
    Ok(Document::from_json(text.as_bytes())?)
}

/// The id inside a body.
fn id_in(text: &str) -> String {
    let id = parse_json(text.as_bytes()).expect("JSON").get("id").and_then(Value::as_str).map(str::to_owned);
    id.unwrap_or_default()
}

/// `if=v1`, `if=exists`, `unless=v1`, `unless=exists`.
fn precondition(stage: &Stage, container: &Container, call: &mut Call<'_>) -> Precondition {
    let etag = |label: &str| {
        let sequence = stage.labels.sequence(label);
        stage
            .tokens
            .get(&format!("etag {} {sequence}", container.rid))
            .expect("a version that was shown")
            .clone()
    };
    match (call.take("if"), call.take("unless")) {
        (Some("exists"), _) => Precondition::IfExists,
        (Some(label), _) => Precondition::IfMatch(etag(label)),
        (None, Some("exists")) => Precondition::IfAbsent,
        (None, Some(label)) => Precondition::IfNoneMatch(etag(label)),
        (None, None) => Precondition::None,
    }
}

/// A name: an id, or an item's label.
fn name(stage: &Stage, word: &str) -> ItemName {
    if word.starts_with('#') {
        ItemName::Number(ItemNumber(stage.labels.number(word)))
    } else {
        ItemName::Id(word.to_owned())
    }
}

fn countdown(call: &mut Call<'_>) -> Countdown {
    if call.take("countdown") == Some("keep") { Countdown::Keep } else { Countdown::Restart }
}

/// Runs one operation, as a front end does.
fn write(
    stage: &mut Stage,
    container: &Arc<Container>,
    call: &mut Call<'_>,
    key: Option<PartitionKey>,
    operation: Operation,
) -> Answer {
    let countdown = countdown(call);
    let cost = call.take("cost").is_some();
    let outcome = stage.engine().write_with(container, key, operation, countdown).wait()?;
    Ok(vec![show(stage, container, &outcome, cost)])
}

/// An outcome in a line.
fn show(stage: &mut Stage, container: &Container, outcome: &Outcome, cost: bool) -> String {
    let effect = match outcome.effect {
        Effect::Created => "created",
        Effect::Replaced => "replaced",
        Effect::Deleted => "deleted",
        Effect::Read => "read",
        Effect::NotModified => "not modified",
    };
    let mut line = effect.to_owned();
    if let Some(item) = &outcome.item {
        let sequence = item.sequence.0;
        stage.tokens.insert(format!("etag {} {sequence}", container.rid), item.etag.to_string());
        let (number, version) = (stage.labels.item(item.rid.number), stage.labels.version(sequence));
        line += &format!(" {number} {version}");
    }
    if let Some(left) = outcome.seconds_left {
        line += &format!(", expires in {left}s");
    }
    if cost {
        line += &format!(", {:.2} RU", outcome.charge.units());
    }
    line
}

pub(super) fn create(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    match stage.owner(call.name)? {
        Owner::Collection(collection) => documents::create(stage, &collection, call.rest()),
        Owner::Container(container) => {
            let (key, body) = (key_option(call), body(call.rest())?);
            write(stage, &container, call, key, Operation::Create { body })
        }
    }
}

/// Creates or replaces.
pub(super) fn put(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    match stage.owner(call.name)? {
        Owner::Collection(collection) => documents::put(stage, &collection, call.rest(), true),
        Owner::Container(container) => {
            let precondition = precondition(stage, &container, call);
            let (key, body) = (key_option(call), body(call.rest())?);
            write(stage, &container, call, key, Operation::Upsert { body, precondition })
        }
    }
}

/// Puts an item for each number: `fill c from=1 to=9 {"id":"$n"}`.
pub(super) fn fill(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let (from, to) = (call.take_count("from").unwrap_or(1), call.take_count("to").expect("to=how many"));
    for number in from..=to {
        let text = call.rest().replace("$n", &number.to_string());
        match stage.owner(call.name)? {
            Owner::Collection(collection) => drop(documents::create(stage, &collection, &text)?),
            Owner::Container(container) => {
                let operation = Operation::Create { body: body(&text)? };
                let outcome = stage.engine().write(&container, None, operation).wait()?;
                show(stage, &container, &outcome, false);
            }
        }
    }
    Ok(vec![format!("created {}", count((to + 1 - from) as u64, "item"))])
}

/// Replaces the item of the body's id, or that of `old=`.
pub(super) fn replace(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    match stage.owner(call.name)? {
        Owner::Collection(collection) => documents::put(stage, &collection, call.rest(), false),
        Owner::Container(container) => {
            let precondition = precondition(stage, &container, call);
            let old = call.take("old").map_or_else(|| id_in(call.rest()), str::to_owned);
            let (name, key, body) = (name(stage, &old), key_option(call), body(call.rest())?);
            write(stage, &container, call, key, Operation::Replace { name, body, precondition })
        }
    }
}

pub(super) fn patch(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let container = stage.container(call.name)?;
    let precondition = precondition(stage, &container, call);
    let key = key_option(call);
    let id = call.word();
    let patch = Patch::from_value(&parse_json(call.rest().as_bytes()).expect("JSON"))?;
    let (name, key) = (name(stage, id), key.unwrap_or_else(|| key_of_id(&container, id)));
    write(stage, &container, call, Some(key), Operation::Patch { name, patch, precondition })
}

pub(super) fn delete(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    match stage.owner(call.name)? {
        Owner::Collection(collection) => documents::delete(stage, &collection, call.rest()),
        Owner::Container(container) => {
            let precondition = precondition(stage, &container, call);
            let key = key_option(call);
            let id = call.word();
            let (name, key) = (name(stage, id), key.unwrap_or_else(|| key_of_id(&container, id)));
            write(stage, &container, call, Some(key), Operation::Delete { name, precondition })
        }
    }
}

/// A point read, with the renewal of the countdown that it asks for; `renewal=no` leaves that out.
pub(super) fn get(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let container = match stage.owner(call.name)? {
        Owner::Collection(collection) => return documents::get(stage, &collection, call.rest()),
        Owner::Container(container) => container,
    };
    let precondition = precondition(stage, &container, call);
    let (renewals, cost) = (call.take("touch").is_none(), call.take("cost").is_some());
    let whole = call.take("whole").is_some();
    let key = key_option(call);
    let id = call.word();
    let key = key.unwrap_or_else(|| key_of_id(&container, id));
    let outcome = stage.engine().read(&container, &key, &name(stage, id), &precondition)?;
    if let Some(begun) =
        outcome.renewal.as_ref().filter(|_| renewals).and_then(|renewal| stage.engine().renew(renewal))
    {
        begun.wait()?;
    }
    let mut line = show(stage, &container, &outcome, cost);
    if let Some(item) = outcome.item.filter(|_| outcome.effect == Effect::Read) {
        line += &format!(", written {}", instant(item.ts as i64 * 1000));
        line += &format!(": {}", if whole { system(stage, &item) } else { item.body.to_json() });
    }
    Ok(vec![line])
}

/// An item with its system properties, their values by their labels.
fn system(stage: &mut Stage, item: &engine::Item) -> String {
    let (number, version) = (stage.labels.item(item.rid.number), stage.labels.version(item.sequence.0));
    let text = String::from_utf8(item.to_json()).expect("JSON is text");
    let etag = Value::String(item.etag.to_string()).to_json();
    text.replace(&item.self_link(), "SELF")
        .replace(&item.rid.to_string(), &number)
        .replace(&etag, &format!("\"{version}\""))
        .replace(&format!("\"_ts\":{}", item.ts), &format!("\"_ts\":\"{}\"", instant(item.ts as i64 * 1000)))
}

/// Several operations in one commit, one on each line below: `create {..}`, `put {..}`, `replace {..}`, `patch ID [..]`,
/// `delete ID`, `get ID`.
pub(super) fn batch(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let container = stage.container(call.name)?;
    let key = key_option(call).expect("key=");
    let countdown = countdown(call);
    let mut operations = Vec::new();
    for line in &call.block {
        let (verb, rest) = split_word(line);
        let (id, patch) = split_word(rest);
        let precondition = Precondition::None;
        operations.push(match verb {
            "create" => Operation::Create { body: body(rest)? },
            "put" => Operation::Upsert { body: body(rest)?, precondition },
            "replace" => {
                Operation::Replace { name: name(stage, &id_in(rest)), body: body(rest)?, precondition }
            }
            "patch" => {
                let patch = Patch::from_value(&parse_json(patch.as_bytes()).expect("JSON"))?;
                Operation::Patch { name: name(stage, id), patch, precondition }
            }
            "delete" => Operation::Delete { name: name(stage, id), precondition },
            "get" => Operation::Read { name: name(stage, id), precondition },
            _ => panic!("no operation of a batch: {line}"),
        });
    }
    match stage.engine().batch_with(&container, &key, operations, countdown).wait() {
        Ok(outcomes) => Ok(outcomes.iter().map(|outcome| show(stage, &container, outcome, false)).collect()),
        Err(failure) => {
            let index = failure.index.map_or("all".to_owned(), |index| format!("operation {}", index + 1));
            Ok(vec![format!("{index}: {}", describe(&failure.error))])
        }
    }
}

/// Deletes all items of a partition key.
pub(super) fn empty(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let container = stage.container(call.name)?;
    let key = key_option(call).expect("key=");
    let cost = call.take("cost").is_some();
    let emptied = stage.engine().delete_partition(&container, &key)?;
    let cost = if cost { format!(", {:.2} RU", emptied.charge.units()) } else { String::new() };
    Ok(vec![format!("deleted {}{cost}", count(emptied.items, "item"))])
}

/// The id of a body, for lists.
pub(super) fn id_of(body: &Document) -> String {
    body.get("id").and_then(ValueRef::as_str).unwrap_or_default().to_owned()
}
