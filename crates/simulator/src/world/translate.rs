//! Conversion between the types of the model and of the engine.

use document::{Document, ItemNumber, ItemRid, Value, parse_json};
use engine::definition::ContainerDefinition;
use engine::{Container, Effect, Error, ItemName, Operation, Patch, Precondition};
use storage::Keyspace;

use super::SeenItem;
use crate::body;
use crate::model::{Answer, Change, Consent, Countdown, DefaultTtl, Edit, Guard, Indexing, Name, Stamp};
use crate::operation::CONTAINERS;

/// Returns the kind of an entry. Counters are distinguished by the byte after the partition: purge cursors stay when all
/// other entries are removed.
pub(crate) fn kind(keyspace: Keyspace, key: &[u8]) -> &'static str {
    match (keyspace, key.first(), key.get(4)) {
        (Keyspace::Counter, _, Some(0x10)) => "total",
        (Keyspace::Counter, _, Some(0x20)) => "bucket",
        (Keyspace::Counter, _, Some(0x30)) => "hand",
        (Keyspace::Counter, _, Some(0x40)) => "shape count",
        (Keyspace::Counter, _, Some(0x50)) => "shape",
        (Keyspace::Counter, _, Some(0x60)) => "held",
        (Keyspace::Counter, _, Some(0x80)) => "touch",
        (Keyspace::Catalog, Some(0x40), _) => "policy",
        (Keyspace::Catalog, Some(0x50), _) => "dropped",
        (Keyspace::Catalog, Some(0x70), _) => "index state",
        (Keyspace::Catalog, Some(0x80), _) => "index policy",
        _ => keyspace.name(),
    }
}

pub(crate) fn seen_item(name: &str, item: &engine::Item) -> Result<SeenItem, String> {
    Ok(SeenItem {
        body: body::from_document(name, &item.body)?,
        ts: item.ts,
        stamp: Stamp { etag: item.etag.to_string(), number: item.rid.number, sequence: item.sequence.0 },
        bytes: item.body.as_bytes().len() as u64,
    })
}

/// Returns an item out of the JSON of a query's row.
pub(crate) fn seen_row(name: &str, row: &[u8]) -> Result<SeenItem, String> {
    let mut item = parse_json(row).map_err(|error| error.to_string())?;
    let members = item.as_object_mut().ok_or("a row is no item")?;
    let mut system = |name: &str| members.remove(name).ok_or_else(|| format!("a row has no {name}"));
    let (rid, etag, ts) = (system("_rid")?, system("_etag")?, system("_ts")?);
    system("_self")?;
    system("_attachments")?;
    let etag = etag.as_str().unwrap_or_default().to_owned();
    let rid: ItemRid = rid.as_str().unwrap_or_default().parse().map_err(|_| "a row has no resource id")?;
    // The sequence is in the etag, from its low end.
    let part =
        |range: std::ops::Range<usize>| etag.get(range).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let sequence = || Some(part(1..9)? | part(10..14)? << 32 | part(15..19)? << 48);
    let sequence = sequence().ok_or("a row has no etag")?;
    let body = Document::from_value(&item).map_err(|error| error.to_string())?;
    Ok(SeenItem {
        body: body::from_document(name, &body)?,
        ts: ts.as_i64().unwrap_or_default().unsigned_abs(),
        stamp: Stamp { etag, number: rid.number, sequence },
        bytes: body.as_bytes().len() as u64,
    })
}

pub(crate) fn seen_default_ttl(container: &Container) -> DefaultTtl {
    match container.definition.default_ttl {
        engine::DefaultTtl::Off => DefaultTtl::Off,
        engine::DefaultTtl::Never => DefaultTtl::Never,
        engine::DefaultTtl::Seconds(seconds) => DefaultTtl::After(i64::from(seconds)),
    }
}

/// Returns the engine's value; none for values that T4 refuses.
pub(crate) fn engine_default_ttl(default_ttl: DefaultTtl) -> Option<engine::DefaultTtl> {
    match default_ttl {
        DefaultTtl::Off => Some(engine::DefaultTtl::Off),
        DefaultTtl::Never => Some(engine::DefaultTtl::Never),
        DefaultTtl::After(seconds) => u32::try_from(seconds).ok().map(engine::DefaultTtl::Seconds),
        DefaultTtl::Bad(_) => None,
    }
}

pub(crate) fn engine_countdown(countdown: Countdown) -> engine::Countdown {
    match countdown {
        Countdown::Restart => engine::Countdown::Restart,
        Countdown::Keep => engine::Countdown::Keep,
    }
}

pub(crate) fn engine_consent(consent: Consent) -> engine::Consent {
    match consent {
        Consent::NotGiven => engine::Consent::NotGiven,
        Consent::Given => engine::Consent::Given,
    }
}

pub(crate) fn parse_definition(
    name: &'static str,
    default_ttl: DefaultTtl,
    indexing: Indexing,
    feed: Option<u32>,
    base: bool,
) -> engine::Result<ContainerDefinition> {
    let text = body::definition(name, default_ttl, indexing, name == CONTAINERS[0], feed, base);
    let value = parse_json(text.as_bytes()).expect("the text is JSON");
    Ok(ContainerDefinition::from_value(&value)?)
}

pub(crate) fn operation(name: &'static str, change: &Change) -> engine::Result<Operation> {
    Ok(match change {
        Change::Create(body) => Operation::Create { body: body::to_document(name, body) },
        Change::Upsert(body, guard) => {
            Operation::Upsert { body: body::to_document(name, body), precondition: precondition(guard) }
        }
        Change::Replace(which, body, guard) => Operation::Replace {
            name: item_name(which),
            body: body::to_document(name, body),
            precondition: precondition(guard),
        },
        Change::Patch(which, edits, condition, guard) => Operation::Patch {
            name: item_name(which),
            patch: patch(edits, *condition)?,
            precondition: precondition(guard),
        },
        Change::Delete(which, guard) => {
            Operation::Delete { name: item_name(which), precondition: precondition(guard) }
        }
        Change::Read(which, guard) => {
            Operation::Read { name: item_name(which), precondition: precondition(guard) }
        }
    })
}

pub(crate) fn patch(edits: &[Edit], condition: Option<i64>) -> engine::Result<Patch> {
    let operations: Vec<String> = edits
        .iter()
        .map(|edit| match edit {
            Edit::SetTtl(ttl) => {
                let text = body::ttl_text(*ttl).unwrap_or_else(|| "null".to_owned());
                format!(r#"{{"op":"set","path":"/ttl","value":{text}}}"#)
            }
            Edit::RemoveTtl => r#"{"op":"remove","path":"/ttl"}"#.to_owned(),
            Edit::AddToTtl(more) => format!(r#"{{"op":"incr","path":"/ttl","value":{more}}}"#),
            Edit::SetNumber(number) => format!(r#"{{"op":"set","path":"/n","value":{number}}}"#),
            Edit::AddToNumber(more) => format!(r#"{{"op":"incr","path":"/n","value":{more}}}"#),
            Edit::SetUnique(value) => format!(r#"{{"op":"set","path":"/u","value":{value}}}"#),
        })
        .collect();
    let condition =
        condition.map(|n| format!(r#""condition":"from c where c.n = {n}","#)).unwrap_or_default();
    let text = format!(r#"{{{condition}"operations":[{}]}}"#, operations.join(","));
    let value: Value = parse_json(text.as_bytes()).expect("the text is JSON");
    Ok(Patch::from_value(&value)?)
}

pub(crate) fn item_name(name: &Name) -> ItemName {
    match name {
        Name::Id(id) => ItemName::Id(id.clone()),
        Name::Number(number) => ItemName::Number(ItemNumber(*number)),
    }
}

pub(crate) fn precondition(guard: &Guard) -> Precondition {
    match guard {
        Guard::None => Precondition::None,
        Guard::Match(etag) => Precondition::IfMatch(etag.clone()),
        Guard::Exists => Precondition::IfExists,
        Guard::NoneMatch(etag) => Precondition::IfNoneMatch(etag.clone()),
    }
}

pub(crate) fn effect(effect: Effect) -> Answer {
    match effect {
        Effect::Created => Answer::Created,
        Effect::Replaced => Answer::Replaced,
        Effect::Deleted => Answer::Deleted,
        Effect::Read => Answer::Read,
        Effect::NotModified => Answer::NotModified,
    }
}

pub(crate) fn answer_of(error: &Error) -> Answer {
    match error {
        Error::NotFound { .. } => Answer::NotFound,
        Error::OwnerNotFound { .. } => Answer::NoContainer,
        Error::Exists { .. } => Answer::IdTaken,
        Error::UniqueKeyTaken { .. } => Answer::UniqueTaken,
        Error::PreconditionFailed { .. } => Answer::PreconditionFailed,
        Error::InvalidTtl { .. } | Error::Definition(_) => Answer::BadTtl,
        Error::Patch(_) => Answer::BadPatch,
        Error::ClockSuspect { .. } => Answer::ClockSuspect,
        Error::Held { .. } => Answer::Held,
        Error::NotConfirmed { .. } => Answer::NotConfirmed,
        Error::HistoryGone => Answer::HistoryGone,
        Error::Unavailable(_) => Answer::Unavailable,
        other => Answer::Other(other.to_string()),
    }
}

/// Returns an error about the container itself: there "not found" means the container.
pub(crate) fn container_answer(error: &Error) -> Answer {
    match answer_of(error) {
        Answer::NotFound => Answer::NoContainer,
        answer => answer,
    }
}
