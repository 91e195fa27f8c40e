//! `customAction`: the service's own commands, for throughput, shard keys and whole sets of indexes.
//!
//! Throughput is stored and shown; requests are held to it only where the server enforces it. A shard key must be in
//! every document and cannot change; all documents of a collection lie in one partition all the same.

use std::sync::Arc;

use bson::{Document, RawDocument};
use engine::collection::{Collection, CollectionDefinition};
use engine::{Consent, Throughput};
use mql::Code;
use mql::index::IndexSpec;
use mql::path::FieldPath;

use crate::access::catalog;
use crate::protocol::error::{CONFIRM_EXPIRY, Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::service::call::{Call, check_collection};

use super::create_indexes;

/// The fields of all actions but the collection and its indexes.
pub(super) const SETTINGS: &[&str] = &["customAction", "offerThroughput", "autoScaleSettings", "shardKey"];

/// The largest throughput of a collection without a shard key.
const UNSHARDED_MAX: i64 = 10_000;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let outcome = act(call);
    // The service's documentation spells the message this way; drivers read the other.
    outcome.map_err(|error| {
        let text = error.message.clone();
        error.with("errMsg", text)
    })
}

fn act(call: &Call) -> Result<Reply> {
    let fields = call.fields();
    match fields.required("customAction", fields.text("customAction")?)? {
        "CreateDatabase" => create_database(call, fields),
        "UpdateDatabase" => update_database(call, fields),
        "GetDatabase" => get_database(call, fields),
        "CreateCollection" => create_collection(call, fields),
        "UpdateCollection" => update_collection(call, fields),
        "GetCollection" => get_collection(call, fields),
        other @ "GetChangeStreamTokens" => Err(Error::not_supported(format!("the custom action '{other}'"))),
        other => Err(Error::bad_value(format!("unknown custom action '{other}'"))),
    }
}

fn create_database(call: &Call, fields: Fields<'_>) -> Result<Reply> {
    fields.only(&["customAction", "offerThroughput", "autoScaleSettings"])?;
    match call.engine.create_collection_database(&call.database, throughput(fields)?) {
        Ok(_) => Ok(Reply::ok()),
        Err(engine::Error::Exists { .. }) => {
            let text = format!("database '{}' already exists", call.database);
            Err(Error::new(Code::NAMESPACE_EXISTS, text))
        }
        Err(error) => Err(error.into()),
    }
}

fn update_database(call: &Call, fields: Fields<'_>) -> Result<Reply> {
    fields.only(&["customAction", "offerThroughput", "autoScaleSettings"])?;
    call.engine.change_collection_database(&call.database, Some(required_throughput(fields)?))?;
    Ok(Reply::ok())
}

fn get_database(call: &Call, fields: Fields<'_>) -> Result<Reply> {
    fields.only(&["customAction"])?;
    let database = call.engine.collection_database(&call.database).ok_or_else(|| {
        let text = format!("database '{}' does not exist", call.database);
        Error::new(Code::NAMESPACE_NOT_FOUND, text)
    })?;
    Ok(with_throughput(Document::new().with("database", database.name.as_str()), database.throughput())
        .into())
}

fn create_collection(call: &Call, fields: Fields<'_>) -> Result<Reply> {
    fields.only(&[
        "customAction",
        "collection",
        "offerThroughput",
        "autoScaleSettings",
        "shardKey",
        "indexes",
    ])?;
    let name = named(call, fields)?;
    catalog::refuse_system(&call.database, name)?;
    let throughput = throughput(fields)?;
    let shard_key = fields.text("shardKey")?;
    if let Some(path) = shard_key {
        FieldPath::parse(path)?;
    }
    let rate = fields.integer("offerThroughput")?.unwrap_or(0);
    if rate > UNSHARDED_MAX && shard_key.is_none() {
        return Err(Error::bad_value(format!("a throughput above {UNSHARDED_MAX} requires a shardKey")));
    }
    let specs = call.documents("indexes")?.map(|specs| create_indexes::with_id(&specs, None)).transpose()?;
    let definition = CollectionDefinition {
        shard_key: shard_key.map(str::to_owned),
        ..catalog::definition(RawDocument::default())?
    };
    let created = call.engine.create_collection(&call.database, name, definition, throughput);
    let collection = created.map_err(|error| match error {
        engine::Error::Exists { .. } => {
            let text = format!("namespace {}.{name} already exists", call.database);
            Error::new(Code::NAMESPACE_EXISTS, text)
        }
        error => error.into(),
    })?;
    if let Some(specs) = specs.filter(|specs| !specs.is_empty()) {
        call.engine.create_indexes(&collection, specs)?;
    }
    Ok(Reply::ok())
}

fn update_collection(call: &Call, fields: Fields<'_>) -> Result<Reply> {
    fields.only(&[
        "customAction",
        "collection",
        "offerThroughput",
        "autoScaleSettings",
        "indexes",
        CONFIRM_EXPIRY,
    ])?;
    let name = named(call, fields)?;
    catalog::refuse_system(&call.database, name)?;
    let collection = call.executor.find_collection(&call.database, name);
    let collection = collection.ok_or_else(|| catalog::missing(&call.database, name))?;
    catalog::refuse_view(&collection)?;
    let (throughput, consent) = (throughput(fields)?, fields.consent()?);
    let specs = call.documents("indexes")?;
    let specs = specs.map(|specs| create_indexes::with_id(&specs, Some(&collection))).transpose()?;
    if throughput.is_none() && specs.is_none() {
        return Err(Error::bad_value("UpdateCollection needs a throughput or indexes"));
    }
    // Checks what can be refused first.
    if let Some(specs) = specs {
        replace_indexes(call, &collection, specs, consent)?;
    }
    if throughput.is_some() {
        call.engine.change_collection(&collection, collection.definition.clone(), throughput)?;
    }
    Ok(Reply::ok())
}

/// Gives a collection another set of indexes. If one of the new indexes cannot be built, restores the previous set.
fn replace_indexes(
    call: &Call,
    collection: &Arc<Collection>,
    specs: Vec<IndexSpec>,
    consent: Consent,
) -> Result<()> {
    let before = collection.indexes();
    let before = before.iter().filter(|index| !index.spec.is_id()).map(|index| (*index.spec).clone());
    let before: Vec<IndexSpec> = before.collect();
    let replaced = call.engine.replace_indexes(collection, specs, consent);
    let numbers = replaced.map_err(|error| Error::in_namespace(error, &collection.namespace()))?;
    let built = create_indexes::build(call, collection, &numbers);
    // A command that was only stopped leaves the rest to the background; an index that cannot be is not in the list any more.
    let list = collection.indexes();
    if built.is_err() && numbers.iter().any(|number| list.get(*number).is_none()) {
        let numbers = call.engine.replace_indexes(collection, before, Consent::Given)?;
        create_indexes::build(call, collection, &numbers)?;
    }
    built
}

fn get_collection(call: &Call, fields: Fields<'_>) -> Result<Reply> {
    fields.only(&["customAction", "collection"])?;
    let collection: Arc<Collection> = catalog::existing(&call.engine, &call.database, named(call, fields)?)?;
    let mut reply = Document::new()
        .with("database", collection.database.as_str())
        .with("collection", collection.name.as_str());
    if let Some(path) = &collection.definition.shard_key {
        reply.push("shardKeyDefinition", Document::new().with(path.as_str(), "hashed"));
    }
    Ok(with_throughput(reply, collection.throughput()).into())
}

fn named<'a>(call: &Call, fields: Fields<'a>) -> Result<&'a str> {
    check_collection(&call.database, fields.required("collection", fields.text("collection")?)?)
}

fn with_throughput(reply: Document, throughput: Option<Throughput>) -> Document {
    let number = |rate: u32| i32::try_from(rate).unwrap_or(i32::MAX);
    match throughput {
        None => reply,
        Some(Throughput::Manual(rate)) => reply.with("provisionedThroughput", number(rate)),
        Some(Throughput::Autoscale { max, .. }) => {
            reply.with("autoScaleSettings", Document::new().with("maxThroughput", number(max)))
        }
    }
}

fn throughput(fields: Fields<'_>) -> Result<Option<Throughput>> {
    let rate = |number: i64| u32::try_from(number).unwrap_or(0);
    match (fields.integer("offerThroughput")?, fields.document("autoScaleSettings")?) {
        (Some(_), Some(_)) => {
            Err(Error::bad_value("offerThroughput and autoScaleSettings cannot be given together"))
        }
        (Some(number), None) => Ok(Some(Throughput::Manual(rate(number)).check()?)),
        (None, Some(settings)) => {
            let settings = Fields::new("autoScaleSettings", settings);
            let max = settings.required("maxThroughput", settings.integer("maxThroughput")?)?;
            Ok(Some(Throughput::autoscale(rate(max)).check()?))
        }
        (None, None) => Ok(None),
    }
}

fn required_throughput(fields: Fields<'_>) -> Result<Throughput> {
    throughput(fields)?.ok_or_else(|| Error::bad_value("offerThroughput or autoScaleSettings must be given"))
}
