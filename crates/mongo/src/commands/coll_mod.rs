//! `collMod`.

use std::sync::Arc;

use bson::{Document, DocumentRef, RawDocument, Value, ValueRef};
use engine::Consent;
use engine::collection::{Collection, CollectionDefinition, CollectionIndex, IndexList};
use mql::Code;
use mql::filter::{Filter, Settings};

use crate::access::catalog;
use crate::change_stream;
use crate::protocol::error::{CONFIRM_EXPIRY, Error, Result};
use crate::protocol::fields::{Fields, truth};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

use super::create::{check_view, one_of};
use super::create_indexes::build;
use super::drop_indexes::by_key;

const KNOWN: &[&str] = &[
    "collMod",
    "index",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "changeStreamPreAndPostImages",
    "expireAfterSeconds",
    "cappedSize",
    "cappedMax",
    "timeseries",
    CONFIRM_EXPIRY,
];

/// Options of the collection itself that can be changed.
const OPTIONS: &[&str] = &[
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "changeStreamPreAndPostImages",
];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(KNOWN)?;
    for name in ["expireAfterSeconds", "timeseries", "cappedSize", "cappedMax"] {
        if fields.value(name).is_some() {
            let text = format!(
                "'{name}' is for time-series, clustered or capped collections only, which are not supported"
            );
            return Err(Error::new(Code::INVALID_OPTIONS, text));
        }
    }
    let name = call.collection()?;
    catalog::refuse_system(&call.database, name)?;
    let Some(collection) = call.executor.find_collection(&call.database, name) else {
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, "ns does not exist"));
    };
    change_options(call, &collection, fields)?;
    let Some(index) = fields.document("index")? else { return Ok(Reply::ok()) };
    catalog::refuse_view(&collection)?;
    change_index(call, &collection, Fields::new("collMod.index", index), fields.consent()?)
}

fn change_options(call: &Call, collection: &Arc<Collection>, fields: Fields<'_>) -> Result<()> {
    change_stream::check_images(fields)?;
    if let Some(rules) = fields.document("validator")? {
        Filter::parse(rules, &Settings::default())?;
    }
    one_of(fields, "validationLevel", &["off", "strict", "moderate"])?;
    one_of(fields, "validationAction", &["error", "warn"])?;
    let (on, pipeline) = (fields.value("viewOn").is_some(), fields.value("pipeline").is_some());
    if on != pipeline || (on && catalog::view(collection).is_none()) {
        let text = "'viewOn' and 'pipeline' can only be changed together, and of a view";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    if on {
        check_view(call, fields)?;
    }
    let mut options = collection.definition.options.to_document();
    for name in OPTIONS {
        if let Some(value) = fields.value(name) {
            options.insert(*name, value.to_value());
        }
    }
    let options = RawDocument::from_document(&options);
    if options != collection.definition.options {
        let definition = CollectionDefinition { options, ..collection.definition.clone() };
        let changed = call.engine.change_collection(collection, definition, collection.throughput())?;
        change_stream::keep_images(&call.engine, changed)?;
    }
    Ok(())
}

fn invalid(text: &str) -> Error {
    Error::new(Code::INVALID_OPTIONS, text)
}

/// Changes an index: its number of seconds, or whether it is hidden (T26, T27). Takes effect at once.
fn change_index(
    call: &Call,
    collection: &Arc<Collection>,
    fields: Fields<'_>,
    consent: Consent,
) -> Result<Reply> {
    fields.only(&["name", "keyPattern", "hidden", "expireAfterSeconds", "unique", "prepareUnique"])?;
    for name in ["unique", "prepareUnique"] {
        if fields.value(name).is_some() {
            return Err(Error::not_supported(format!("the option '{name}' of collMod")));
        }
    }
    let (seconds, hidden) = (fields.value("expireAfterSeconds"), fields.value("hidden"));
    if seconds.is_none() && hidden.is_none() {
        return Err(invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field"));
    }
    let list = collection.indexes();
    let index = find(&list, fields, collection)?;
    let mut spec = (*index.spec).clone();
    let mut reply = Document::new();
    if let Some(seconds) = seconds {
        spec = spec.with_expire_after_seconds(seconds)?;
        if let Some(old) = index.spec.expire_after_seconds() {
            reply.push("expireAfterSeconds_old", i64::from(old));
        }
        let new = spec.expire_after_seconds().map_or(Value::Null, |new| Value::Int64(new.into()));
        reply.push("expireAfterSeconds_new", new);
    }
    if let Some(hidden) = hidden {
        let hidden =
            truth(hidden).ok_or_else(|| Error::new(Code::TYPE_MISMATCH, "'hidden' must be a boolean"))?;
        if index.spec.is_id() {
            return Err(Error::bad_value("can't hide _id index"));
        }
        reply.push("hidden_old", index.spec.is_hidden());
        reply.push("hidden_new", hidden);
        spec = spec.with_hidden(hidden)?;
    }
    let number = call.engine.change_index_with(collection, index.number, spec, consent)?;
    build(call, collection, &[number])?;
    Ok(reply.into())
}

fn find<'a>(list: &'a IndexList, fields: Fields<'_>, collection: &Collection) -> Result<&'a CollectionIndex> {
    let missing = |shown: String| {
        let text = format!("cannot find index {shown} for ns {}", collection.namespace());
        Error::new(Code::INDEX_NOT_FOUND, text)
    };
    match (fields.text("name")?, fields.document("keyPattern")?) {
        (Some(_), Some(_)) => Err(invalid("Cannot specify both key pattern and name.")),
        (None, None) => Err(invalid("Must specify either index name or key pattern.")),
        (Some(name), None) => list.named(name).ok_or_else(|| missing(name.to_owned())),
        (None, Some(key)) => by_key(list, key).map_err(|error| match error.code {
            Code::INDEX_NOT_FOUND => missing(shown(key)),
            _ => error,
        }),
    }
}

fn shown(key: DocumentRef<'_>) -> String {
    bson::shell_text(ValueRef::Document(key))
}
