//! The versioned API: a client may restrict itself to what version 1 has.

use bson::{ArrayRef, DocumentRef, ValueRef};
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::service::command::{ApiVersion, Command, OutsideApi};

/// Stages that version 1 does not have. `$collStats` it has, but only to count.
const OTHER_STAGES: [&str; 14] = [
    "$currentOp",
    "$indexStats",
    "$listCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSearchIndexes",
    "$listSessions",
    "$planCacheStats",
    "$querySettings",
    "$queryStats",
    "$search",
    "$searchMeta",
    "$shardedDataDistribution",
    "$vectorSearch",
];

/// Checks the command against the version of the API that the client has asked for.
pub(crate) fn check(fields: Fields<'_>, command: &Command) -> Result<()> {
    let (strict, deprecation) = (fields.boolean("apiStrict")?, fields.boolean("apiDeprecationErrors")?);
    match fields.text("apiVersion")? {
        None if strict.is_some() || deprecation.is_some() => {
            let text = "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion";
            Err(Error::new(Code::API_VERSION_ERROR, text))
        }
        Some("1") if strict == Some(true) && command.api == ApiVersion::None => {
            let text =
                format!("Provided apiStrict:true, but the command {} is not in API Version 1", command.name);
            Err(Error::new(Code::API_STRICT_ERROR, text))
        }
        Some("1") if strict == Some(true) => {
            check_fields(fields, command)?;
            check_stages(fields)
        }
        None | Some("1") => Ok(()),
        Some(_) => Err(Error::new(Code::API_VERSION_ERROR, "API version must be \"1\"")),
    }
}

/// Refuses fields of a command, and kinds of index, that version 1 does not have.
fn check_fields(fields: Fields<'_>, command: &Command) -> Result<()> {
    let (other, indexes) = match command.traits.outside_api {
        OutsideApi::Nothing => return Ok(()),
        OutsideApi::Fields(other) => (other, None),
        OutsideApi::TextIndexes => (&[][..], fields.document.get("indexes").and_then(ValueRef::as_array)),
    };
    if let Some((name, _)) = fields.document.iter().find(|(name, _)| other.contains(name)) {
        let text = format!("BSON field '{}.{name}' is not allowed with apiStrict:true.", command.name);
        return Err(Error::new(Code::API_STRICT_ERROR, text));
    }
    let keys = indexes.into_iter().flat_map(|indexes| indexes.iter().collect::<Vec<_>>());
    let keys = keys.filter_map(|index| index.as_document()?.get("key")?.as_document());
    if keys.into_iter().any(|key| key.iter().any(|(_, kind)| kind.as_str() == Some("text"))) {
        let text = "text indexes are not in API Version 1";
        return Err(Error::new(Code::API_STRICT_ERROR, text));
    }
    Ok(())
}

/// Refuses stages of a pipeline that version 1 does not have, in the pipelines within it too.
fn check_stages(fields: Fields<'_>) -> Result<()> {
    let mut pipelines: Vec<ArrayRef<'_>> =
        fields.document.get("pipeline").and_then(ValueRef::as_array).into_iter().collect();
    while let Some(stages) = pipelines.pop() {
        for (name, argument) in stages.iter().filter_map(|stage| stage.as_document()?.iter().next()) {
            let options = argument.as_document();
            let counts = |options: DocumentRef<'_>| options.iter().all(|(name, _)| name == "count");
            let is_other = match name {
                "$collStats" => !options.is_some_and(counts),
                name => OTHER_STAGES.contains(&name),
            };
            if is_other {
                let text = format!("Provided apiStrict:true, but {name} is not in API Version 1");
                return Err(Error::new(Code::API_STRICT_ERROR, text));
            }
            pipelines.extend(options.into_iter().flat_map(|options| inner_pipelines(name, options)));
        }
    }
    Ok(())
}

/// Returns the pipelines within a stage.
fn inner_pipelines<'a>(stage: &str, options: DocumentRef<'a>) -> Vec<ArrayRef<'a>> {
    let is_pipeline = |name: &str| match stage {
        "$lookup" | "$unionWith" => name == "pipeline",
        "$facet" => true,
        _ => false,
    };
    let pipelines = options.iter().filter(|(name, _)| is_pipeline(name));
    pipelines.filter_map(|(_, pipeline)| pipeline.as_array()).collect()
}
