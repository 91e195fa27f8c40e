//! Commands for containers and collections: making them, their policy, holds.

use document::{ItemNumber, Object, Path, Value, parse_json};
use engine::{
    ArchiveDirectory, CollectionDefinition, Consent, ContainerDefinition, HeldItem, ItemAddress, Lifecycle,
    Owner, Precondition,
};

use super::Answer;
use super::call::Call;
use super::documents::or_none;
use super::items::{address, key_option};
use super::labels::time;
use super::stage::Stage;

/// JSON, or a bare word as text.
fn value(text: &str) -> Value {
    parse_json(text.as_bytes()).unwrap_or_else(|_| Value::String(text.into()))
}

pub(super) fn store(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    stage.partitions = call.take_count("partitions").expect("how many partitions") as u32;
    stage.restart();
    Ok(Vec::new())
}

/// Members of a definition from options: `key=/a,/b`, `unique=/a,/b` (several parted by `;`), and members as they are.
fn definition(call: &mut Call<'_>) -> engine::Result<ContainerDefinition> {
    let mut members = Object::new();
    members.insert("id", call.name);
    let paths: Vec<Value> = call.take("key").unwrap_or("/id").split(',').map(Value::from).collect();
    let mut key = Object::new();
    key.insert("kind", if paths.len() > 1 { "MultiHash" } else { "Hash" });
    key.insert("paths", Value::Array(paths));
    key.insert("version", Value::Int(2));
    members.insert("partitionKey", Value::Object(key));
    if let Some(unique) = call.take("unique") {
        let one = |paths: &str| {
            let paths = paths.split(',').map(Value::from).collect();
            Value::Object(Object::from_iter([("paths".to_owned(), Value::Array(paths))]))
        };
        let keys = Value::Array(unique.split(';').map(one).collect());
        members
            .insert("uniqueKeyPolicy", Value::Object(Object::from_iter([("uniqueKeys".to_owned(), keys)])));
    }
    for (name, text) in call.take_all() {
        members.insert(name, value(text));
    }
    Ok(ContainerDefinition::from_value(&Value::Object(members))?)
}

pub(super) fn container(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let definition = definition(call)?;
    let database = stage.engine().database("db")?;
    stage.engine().create_container(&database, definition, None)?;
    Ok(Vec::new())
}

pub(super) fn collection(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    stage.engine().create_collection("db", call.name, CollectionDefinition::default(), None)?;
    Ok(Vec::new())
}

/// Sets a lifecycle setting; returns false if the name is not one.
fn set_lifecycle(lifecycle: &mut Lifecycle, name: &str, text: &str) -> bool {
    let off = text == "off";
    let number = || (!off).then(|| text.parse().unwrap_or_else(|_| panic!("{name}={text}: no number")));
    match name {
        "history" => lifecycle.history_minutes = number(),
        "previousImages" => lifecycle.previous_images = !off,
        "maxPurgeDelay" => lifecycle.max_purge_delay = number(),
        "maxInstantExpiry" => lifecycle.max_instant_expiry = number(),
        "archive" => lifecycle.archive = ArchiveDirectory::parse(text).filter(|_| !off),
        "record" => lifecycle.deletion_record = !off,
        "expireAtPath" => lifecycle.expire_at_path = Path::parse(text).ok().filter(|_| !off),
        "sliding" => lifecycle.sliding = !off,
        _ => return false,
    }
    true
}

/// Changes members of the definition and settings of the lifecycle; `off` takes one away.
pub(super) fn policy(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let consent = if call.take("consent").is_some() { Consent::Given } else { Consent::NotGiven };
    let owner = stage.owner(call.name)?;
    let mut lifecycle = owner.lifecycle();
    let options = call.take_all();
    let (settings, members): (Vec<_>, Vec<_>) =
        options.into_iter().partition(|(name, text)| set_lifecycle(&mut lifecycle, name, text));
    if !settings.is_empty() {
        stage.engine().change_lifecycle_with(&owner, consent, |current| *current = lifecycle)?;
    }
    if members.is_empty() {
        return Ok(Vec::new());
    }
    let container = stage.container(call.name)?;
    let mut definition = container.definition.to_value();
    let object = definition.as_object_mut().expect("a definition is an object");
    for (name, text) in members {
        match text {
            "off" if name == "ttlPropertyPath" => drop(object.insert(name, "")),
            "off" => drop(object.remove(name)),
            _ => drop(object.insert(name, value(text))),
        }
    }
    let definition = ContainerDefinition::from_value(&definition)?;
    stage.engine().replace_container_with(&container, definition, &Precondition::None, consent)?;
    Ok(Vec::new())
}

pub(super) fn drop_owner(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    if call.name == "db" {
        let database = stage.engine().database("db")?;
        stage.engine().delete_database(&database, &Precondition::None)?;
        return Ok(Vec::new());
    }
    match stage.owner(call.name)? {
        Owner::Container(container) => stage.engine().delete_container(&container, &Precondition::None)?,
        Owner::Collection(collection) => stage.engine().drop_collection(&collection)?,
    }
    Ok(Vec::new())
}

/// Holds an item, or all of the container.
pub(super) fn hold(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let reason = call.take("reason").unwrap_or("case").trim_matches('"').to_owned();
    let owner = stage.owner(call.name)?;
    let key = key_option(call);
    if call.is_at_end() {
        stage.engine().change_lifecycle(&owner, |lifecycle| lifecycle.hold = Some(reason))?;
    } else {
        let address = address(&owner, key, call.word());
        stage.engine().hold_item(&owner, &address, &reason)?;
    }
    Ok(Vec::new())
}

pub(super) fn lift(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let owner = stage.owner(call.name)?;
    let key = key_option(call);
    if call.is_at_end() {
        stage.engine().change_lifecycle(&owner, |lifecycle| lifecycle.hold = None)?;
    } else {
        let address = address(&owner, key, call.word());
        stage.engine().lift_item(&owner, &address)?;
    }
    Ok(Vec::new())
}

pub(super) fn held(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let after = call.take("after").map(|label| ItemNumber(stage.labels.number(label)));
    let held = stage.engine().held_items(&stage.owner(call.name)?, after)?;
    let show = |address: &ItemAddress| match address {
        ItemAddress::Id(key, id) => format!("{} {id}", key.to_json()),
        ItemAddress::DocumentId(_) => address.to_extended_json().expect("a document"),
    };
    let line =
        |item: &HeldItem| format!("{} since {}: {}", show(&item.address), time(item.since), item.reason);
    Ok(or_none(held.iter().map(line).collect()))
}
