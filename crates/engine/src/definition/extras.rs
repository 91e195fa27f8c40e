//! Properties of a container that are stored and returned and, except for `ttlPropertyPath` and `changeFeedPolicy`,
//! have no effect here. The shape of each is checked, so that nothing meaningless is stored.

use document::{Object, Path, Value};

use super::search;
use crate::expiry::ttl;
use crate::types::definition_error::{
    Result, invalid, list, malformed, members, optional, optional_list, required, text, word,
};

const COMPUTED_MAX: usize = 20;
/// More than a thousand years.
const RETENTION_MINUTES_MAX: i64 = i32::MAX as i64;
const ENCRYPTED_PATHS_MAX: usize = 1000;

/// The properties of this kind, in the order in which a definition lists them.
pub(super) const NAMES: [&str; 9] = [
    "analyticalStorageTtl",
    "ttlPropertyPath",
    "conflictResolutionPolicy",
    "geospatialConfig",
    "computedProperties",
    "changeFeedPolicy",
    "vectorEmbeddingPolicy",
    "fullTextPolicy",
    ENCRYPTION_POLICY,
];

pub(super) const ENCRYPTION_POLICY: &str = "clientEncryptionPolicy";

/// Returns the property as it is stored: checked, completed, or filled in where the service has a default.
pub(super) fn read(name: &str, value: Option<&Value>) -> Result<Option<Value>> {
    let Some(value) = value else {
        return Ok(match name {
            "conflictResolutionPolicy" => Some(conflict_resolution(&Value::Object(Object::new()))?),
            "geospatialConfig" => Some(geospatial(&Value::Object(Object::new()))?),
            _ => None,
        });
    };
    match name {
        "analyticalStorageTtl" => return ttl::analytical(value),
        "conflictResolutionPolicy" => return conflict_resolution(value).map(Some),
        "geospatialConfig" => return geospatial(value).map(Some),
        "ttlPropertyPath" => check_path(value)?,
        "computedProperties" => check_computed(value)?,
        "changeFeedPolicy" => check_change_feed(value)?,
        "vectorEmbeddingPolicy" => search::check_embeddings(value)?,
        "fullTextPolicy" => search::check_full_text(value)?,
        ENCRYPTION_POLICY => check_encryption(value)?,
        _ => {}
    }
    Ok(Some(value.clone()))
}

fn conflict_resolution(value: &Value) -> Result<Value> {
    let members = members(
        value,
        "conflictResolutionPolicy",
        &["mode", "conflictResolutionPath", "conflictResolutionProcedure"],
    )?;
    let mode = match optional(members, "mode") {
        None => "LastWriterWins",
        Some(value) => word(value, "mode", &["LastWriterWins", "Custom"])?,
    };
    let default_path = if mode == "LastWriterWins" { "/_ts" } else { "" };
    let mut policy = Object::new();
    policy.insert("mode", mode);
    for (name, default) in [("conflictResolutionPath", default_path), ("conflictResolutionProcedure", "")] {
        let given = optional(members, name).map(|value| text(value, name)).transpose()?;
        policy.insert(name, given.filter(|text| !text.is_empty()).unwrap_or(default));
    }
    Ok(policy.into())
}

fn geospatial(value: &Value) -> Result<Value> {
    let members = members(value, "geospatialConfig", &["type"])?;
    let kind = match optional(members, "type") {
        None => "Geography",
        Some(value) => word(value, "type", &["Geography", "Geometry"])?,
    };
    Ok(Value::Object([("type", kind)].into_iter().collect()))
}

/// Checks a path. An empty one removes an earlier one.
fn check_path(value: &Value) -> Result<()> {
    let path = text(value, "ttlPropertyPath")?;
    match path {
        "" => Ok(()),
        _ => Path::parse(path).map(drop).map_err(|error| invalid(format!("ttlPropertyPath: {error}."))),
    }
}

fn check_computed(value: &Value) -> Result<()> {
    let mut names = Vec::new();
    for value in list(value, "computedProperties", COMPUTED_MAX)? {
        let entry = members(value, "computedProperties", &["name", "query"])?;
        let name = text(required(entry, "name")?, "name")?;
        text(required(entry, "query")?, "query")?;
        if name.is_empty() || names.contains(&name) {
            return Err(invalid(format!("The computed property name '{name}' is empty or given twice.")));
        }
        names.push(name);
    }
    Ok(())
}

fn check_change_feed(value: &Value) -> Result<()> {
    let policy = members(value, "changeFeedPolicy", &["retentionDuration"])?;
    match optional(policy, "retentionDuration") {
        Some(minutes)
            if minutes.as_i64().is_none_or(|minutes| !(0..=RETENTION_MINUTES_MAX).contains(&minutes)) =>
        {
            Err(malformed("retentionDuration", "a number of minutes", minutes))
        }
        _ => Ok(()),
    }
}

/// Returns for how many minutes the feed keeps all versions and deletes, or `None` if it does not.
pub(super) fn history_minutes(change_feed_policy: &Value) -> Option<u32> {
    let minutes = change_feed_policy.get("retentionDuration")?.as_i64()?;
    u32::try_from(minutes).ok().filter(|minutes| *minutes > 0)
}

fn check_encryption(value: &Value) -> Result<()> {
    let policy = members(value, ENCRYPTION_POLICY, &["includedPaths", "policyFormatVersion"])?;
    for path in optional_list(policy, "includedPaths", ENCRYPTED_PATHS_MAX)? {
        path.as_object().ok_or_else(|| malformed("includedPaths", "an array of objects", path))?;
    }
    match optional(policy, "policyFormatVersion") {
        Some(version) if version.as_i64().is_none() => {
            Err(malformed("policyFormatVersion", "an integer", version))
        }
        _ => Ok(()),
    }
}

/// Refuses a policy that encrypts anything: there are no client encryption keys, so the key that it names is unknown, and
/// items would be stored in clear under a policy that says otherwise.
pub(super) fn check_encryption_keys(policy: Option<&Value>) -> Result<()> {
    let paths = policy.and_then(|policy| policy.get("includedPaths")).and_then(Value::as_array);
    let Some(entry) = paths.and_then(<[Value]>::first) else { return Ok(()) };
    let text = |name: &str| entry.get(name).map_or_else(|| "none".to_owned(), Value::to_json);
    Err(invalid(format!(
        "The client encryption key {} that '{ENCRYPTION_POLICY}' names for the path {} does not exist: client encryption \
         keys are not supported.",
        text("clientEncryptionKeyId"),
        text("path")
    )))
}
