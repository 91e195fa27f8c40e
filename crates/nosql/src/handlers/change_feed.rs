//! Bodies of change feed answers.
//!
//! An event of all versions and deletes, and a latest version if the client requests envelopes:
//!
//! ```text
//!   {"current": {…}, "metadata": {"lsn", "crts", "operationType", "previousImageLSN", …}, "previous": {…}}
//! ```
//!
//! A delete has no current item; its metadata names it, and `previous` is what it was. A replaced item has `previous` only in
//! containers whose setting `previousImages` is on: the service's own switch for it has no public name. An expiry is a delete with `"timeToLiveExpired": true`.

use std::io::Write as _;

use document::{Object, Value};
use engine::{Container, Event, EventKind, Item};

use crate::handlers::feed;

/// Encodes a page of latest versions.
pub(crate) fn latest(container: &Container, items: &[Item], in_envelopes: bool) -> Vec<u8> {
    page(container, items, |out, item| {
        if in_envelopes {
            out.extend_from_slice(b"{\"current\":");
        }
        item.write_json(out);
        out.pop();
        let lsn = item.lsn;
        let _ = write!(out, ",\"_lsn\":{lsn}}}");
        if in_envelopes {
            let _ = write!(out, ",\"metadata\":{{\"lsn\":{lsn},\"crts\":{}}}}}", item.ts);
        }
    })
}

/// Encodes a page of all versions and deletes. Deletes include the last version; replaces include the previous one only
/// if the container requires it.
pub(crate) fn all_versions(container: &Container, events: &[Event<Item>]) -> Vec<u8> {
    let shows_replaced = container.shows_previous_images();
    page(container, events, |out, event| {
        out.extend_from_slice(b"{\"current\":");
        match &event.current {
            Some(item) => item.write_json(out),
            None => out.extend_from_slice(b"{}"),
        }
        out.extend_from_slice(b",\"metadata\":");
        out.extend_from_slice(metadata(container, event).to_json().as_bytes());
        if let Some(item) = event.previous.as_ref().filter(|_| shows_replaced || event.current.is_none()) {
            out.extend_from_slice(b",\"previous\":");
            item.write_json(out);
        }
        out.push(b'}');
    })
}

fn metadata(container: &Container, event: &Event<Item>) -> Value {
    let number = |number: u64| Value::Int(number.cast_signed());
    let operation = match event.kind {
        EventKind::Create => "create",
        EventKind::Replace => "replace",
        EventKind::Delete | EventKind::Expire => "delete",
    };
    let mut metadata = Object::new();
    metadata.insert("lsn", number(event.lsn));
    metadata.insert("crts", number(event.position.time().seconds()));
    metadata.insert("operationType", operation);
    if let Some(lsn) = event.previous_lsn {
        metadata.insert("previousImageLSN", number(lsn));
    }
    if let (None, Some(previous)) = (&event.current, &event.previous) {
        metadata.insert("timeToLiveExpired", Value::Bool(event.kind == EventKind::Expire));
        metadata.insert("id", previous.id());
        metadata.insert("partitionKey", partition_key(container, previous));
    }
    metadata.into()
}

/// Returns the values of an item's partition key by their paths.
fn partition_key(container: &Container, item: &Item) -> Value {
    let mut values = Object::new();
    for path in &container.definition.partition_key.paths {
        if let Some(value) = path.read(item.body.root()) {
            values.insert(path.to_string().trim_start_matches('/'), value.to_value());
        }
    }
    values.into()
}

fn page<T>(container: &Container, entries: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) -> Vec<u8> {
    let mut body = Vec::new();
    feed::open(&mut body, &container.rid.to_string(), "Documents");
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        write(&mut body, entry);
    }
    feed::close(&mut body, entries.len());
    body
}
