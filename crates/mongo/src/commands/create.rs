//! `create`.

use bson::{Document, RawDocument, ValueRef};
use mql::Code;
use mql::filter::{Filter, Settings};

use crate::access::catalog;
use crate::change_stream;
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::service::call::{Call, check_collection};

const KNOWN: &[&str] = &[
    "create",
    "capped",
    "size",
    "max",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "collation",
    "timeseries",
    "clusteredIndex",
    "expireAfterSeconds",
    "changeStreamPreAndPostImages",
    "storageEngine",
    "indexOptionDefaults",
    "idIndex",
    "encryptedFields",
    "autoIndexId",
    "temp",
];

/// Options that are part of a collection; no other option has anything to keep.
const KEPT: &[&str] = &[
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "collation",
    "changeStreamPreAndPostImages",
];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(KNOWN)?;
    let name = call.collection()?;
    catalog::refuse_system(&call.database, name)?;
    check(call, fields)?;
    let options = options(fields);
    if let Some(existing) = call.executor.find_collection(&call.database, name) {
        return same_or_conflict(&existing, &options);
    }
    match call.executor.create_collection(&call.database, name, catalog::definition(options)?) {
        Ok(made) => {
            change_stream::keep_images(&call.engine, made)?;
            Ok(Reply::ok())
        }
        Err(engine::Error::Exists { .. }) => Err(exists(&format!("{}.{name}", call.database))),
        Err(error) => Err(error.into()),
    }
}

/// Succeeds if the existing collection is what the client asks for.
fn same_or_conflict(existing: &engine::Collection, options: &RawDocument) -> Result<Reply> {
    let same = existing.definition.options.to_document() == options.to_document();
    if same { Ok(Reply::ok()) } else { Err(exists(&existing.namespace())) }
}

fn exists(namespace: &str) -> Error {
    let text = format!("namespace {namespace} already exists, but with different options");
    Error::new(Code::NAMESPACE_EXISTS, text)
}

fn options(fields: Fields<'_>) -> RawDocument {
    let kept = fields
        .document
        .iter()
        .filter(|(name, value)| KEPT.contains(name) && !matches!(value, ValueRef::Null));
    RawDocument::from_document(&kept.map(|(name, value)| (name, value.to_value())).collect::<Document>())
}

fn check(call: &Call, fields: Fields<'_>) -> Result<()> {
    let clustered = fields.value("timeseries").is_some() || fields.value("clusteredIndex").is_some();
    if fields.value("expireAfterSeconds").is_some() && !clustered {
        let text = "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    for name in ["timeseries", "clusteredIndex", "encryptedFields"] {
        if fields.value(name).is_some() {
            return Err(Error::not_supported(format!("the option '{name}' of create")));
        }
    }
    if fields.is_set("capped")? {
        return Err(Error::not_supported("a capped collection"));
    }
    if let Some(collation) = fields.document("collation")? {
        bson::Collation::parse(collation)?;
    }
    change_stream::check_images(fields)?;
    if let Some(rules) = fields.document("validator")? {
        Filter::parse(rules, &Settings::default())?;
    }
    one_of(fields, "validationLevel", &["off", "strict", "moderate"])?;
    one_of(fields, "validationAction", &["error", "warn"])?;
    match (fields.text("viewOn")?, fields.array("pipeline")?) {
        (Some(on), _) => {
            check_collection(&call.database, on)?;
            check_view(call, fields)?;
            if fields.value("validator").is_some() {
                return Err(Error::new(Code::INVALID_OPTIONS, "a view cannot have a validator"));
            }
            Ok(())
        }
        (None, Some(_)) => {
            Err(Error::new(Code::INVALID_OPTIONS, "'pipeline' requires 'viewOn' to also be specified"))
        }
        (None, None) => Ok(()),
    }
}

pub(super) fn one_of(fields: Fields<'_>, name: &str, known: &[&str]) -> Result<()> {
    match fields.text(name)? {
        Some(value) if !known.contains(&value) => Err(Error::bad_value(format!(
            "Enumeration value '{value}' for field '{}.{name}' is not a valid value.",
            fields.owner
        ))),
        _ => Ok(()),
    }
}

/// Refuses a view whose stages write, or that reads itself.
pub(super) fn check_view(call: &Call, fields: Fields<'_>) -> Result<()> {
    let stages = call.documents("pipeline")?.unwrap_or_default();
    let on = fields.text("viewOn")?.unwrap_or_default();
    let pipeline = catalog::parse_view(&call.database, on, &stages)?;
    if pipeline.writes().is_some() || pipeline.change_stream().is_some() {
        let text = "the pipeline of a view cannot have $out, $merge or $changeStream";
        return Err(Error::new(Code::OPTION_NOT_SUPPORTED_ON_VIEW, text));
    }
    catalog::check_cycles(&call.engine, &call.database, call.collection()?, on, &pipeline)
}
