//! Items on the wire: how a version is written, and whether a version that was read is whole.

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Bson, Value as BsonValue};
use serde_json::Value;

use crate::ledger::{Event, Version, fill};
use crate::times::ItemExpiry;

/// The `ttl` that a writer sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Inherited,
    Never,
    Seconds(i64),
}

impl Wanted {
    /// Returns the member, with a comma before it.
    fn member(self) -> String {
        match self {
            Wanted::Inherited => String::new(),
            Wanted::Never => ",\"ttl\":-1".to_owned(),
            Wanted::Seconds(seconds) => format!(",\"ttl\":{seconds}"),
        }
    }
}

/// Returns the body of a version.
pub fn body(id: &str, pk: &str, rev: u64, size: usize, wanted: Wanted) -> String {
    let (text, ttl, group) = (fill(rev, size), wanted.member(), rev % 100);
    format!(
        "{{\"id\":\"{id}\",\"pk\":\"{pk}\",\"rev\":{rev},\"twin\":{rev},\"made\":{rev},\"group\":{group},\
         \"fill\":\"{text}\"{ttl}}}"
    )
}

/// Returns a patch that turns the present version into this one.
pub fn patch(rev: u64, wanted: Wanted) -> String {
    let set = |name: &str, value: i128| format!("{{\"op\":\"set\",\"path\":\"/{name}\",\"value\":{value}}}");
    let mut operations = vec![set("rev", rev.into()), set("twin", rev.into())];
    match wanted {
        Wanted::Inherited => {}
        Wanted::Never => operations.push(set("ttl", -1)),
        Wanted::Seconds(seconds) => operations.push(set("ttl", seconds.into())),
    }
    format!("{{\"operations\":[{}]}}", operations.join(","))
}

/// Returns the version of an item that was seen live at `alive`; an error if it is not whole.
pub fn version(item: &Value, alive: i64) -> Result<Version> {
    let number = |name: &str| item[name].as_u64().with_context(|| format!("no number '{name}' in {item}"));
    let (rev, written) = (number("rev")?, number("_ts")? as i64);
    whole(rev, number("twin")?, number("made")?, item["fill"].as_str().unwrap_or_default())?;
    let expiry = match item.get("ttl") {
        None => ItemExpiry::Inherited(written),
        Some(ttl) => match ttl.as_i64().with_context(|| format!("a strange ttl in {item}"))? {
            -1 => ItemExpiry::Never,
            seconds => ItemExpiry::At(written + seconds),
        },
    };
    Ok(Version { rev, expiry, alive: alive.max(written) })
}

fn whole(rev: u64, twin: u64, made: u64, text: &str) -> Result<()> {
    ensure!(rev == twin, "half of version {rev} over half of version {twin}");
    ensure!(made <= rev && text == fill(made, text.len()), "version {rev} has not the text of {made}");
    Ok(())
}

/// Returns the item and the event of an envelope of the feed of all versions.
pub fn event(envelope: &Value) -> Result<(String, Event)> {
    let metadata = &envelope["metadata"];
    let rev = |image: &Value| image["rev"].as_u64();
    let (current, previous) = (rev(&envelope["current"]), rev(&envelope["previous"]));
    for image in [&envelope["current"], &envelope["previous"]] {
        if rev(image).is_some() {
            version(image, 0)?;
        }
    }
    let kind = metadata["operationType"].as_str().unwrap_or_default();
    let consistent = match kind {
        "create" => current.is_some() && previous.is_none(),
        "replace" => current.is_some() && previous.is_some(),
        "delete" => current.is_none() && previous.is_some(),
        _ => false,
    };
    ensure!(consistent, "an event that contradicts itself: {envelope}");
    let expired = metadata["timeToLiveExpired"].as_bool().unwrap_or(false);
    if let (true, Some(ttl)) = (expired, envelope["previous"]["ttl"].as_i64()) {
        let deadline = envelope["previous"]["_ts"].as_i64().unwrap_or(0) + ttl;
        ensure!(metadata["crts"].as_i64() >= Some(deadline), "an expiry before its time: {envelope}");
    }
    let id = envelope["current"]["id"].as_str().or(metadata["id"].as_str());
    let id = id.or(envelope["previous"]["id"].as_str()).context("an event without an id")?;
    Ok((id.to_owned(), Event { previous, current, expired }))
}

/// Returns a version as a document of the MongoDB API; it expires at `at` if that is given.
pub fn document(id: &str, rev: u64, size: usize, at: Option<i64>) -> Bson {
    let number = rev as i64;
    let document = Bson::new().text("_id", id).long("rev", number).long("twin", number).long("made", number);
    let document = document.text("fill", &fill(rev, size));
    match at {
        Some(at) => document.date("at", at * 1000),
        None => document,
    }
}

/// Returns the id and version of such a document.
pub fn document_version(document: &[u8], alive: i64) -> Result<(String, Version)> {
    let field = |name: &str| {
        let value = BsonValue::field(document, name)?;
        value.with_context(|| format!("a document without '{name}'"))
    };
    let number = |name: &str| Ok::<_, anyhow::Error>(field(name)?.number().unwrap_or(-1.0) as u64);
    let rev = number("rev")?;
    whole(rev, number("twin")?, number("made")?, field("fill")?.text().unwrap_or_default())?;
    let expiry = match BsonValue::field(document, "at")? {
        Some(BsonValue::Date(at)) => ItemExpiry::At(at / 1000),
        _ => ItemExpiry::Never,
    };
    let id = field("_id")?.text().context("an id that is no text")?.to_owned();
    Ok((id, Version { rev, expiry, alive }))
}
