//! `uniqueKeyPolicy`: what no two living items of one partition key may share. Fixed at creation.

use document::{Object, Path, Value};

use crate::types::definition_error::{Result, invalid, list, members, optional_list, required, text};

const KEYS_MAX: usize = 10;
const PATHS_MAX: usize = 16;

/// One unique key: the values at all of these paths together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueKey {
    /// 1 to 16 paths.
    pub paths: Vec<Path>,
}

/// Reads `{"uniqueKeys":[{"paths":["/a","/b"]}]}`.
pub(super) fn from_value(value: &Value) -> Result<Vec<UniqueKey>> {
    let policy = members(value, "uniqueKeyPolicy", &["uniqueKeys"])?;
    let mut keys: Vec<UniqueKey> = Vec::new();
    for value in optional_list(policy, "uniqueKeys", KEYS_MAX)? {
        let key = unique_key(value)?;
        if keys.contains(&key) {
            return Err(invalid(format!(
                "The unique key {} is given twice.",
                crate::types::definition_error::quote(value)
            )));
        }
        keys.push(key);
    }
    Ok(keys)
}

fn unique_key(value: &Value) -> Result<UniqueKey> {
    let texts = list(required(members(value, "uniqueKeys", &["paths"])?, "paths")?, "paths", PATHS_MAX)?;
    if texts.is_empty() {
        return Err(invalid(format!("A unique key has 1 to {PATHS_MAX} paths, not 0.")));
    }
    let mut paths: Vec<Path> = Vec::new();
    for value in texts {
        let text = text(value, "paths")?;
        let path = Path::parse(text).map_err(|error| invalid(format!("The unique key policy: {error}.")))?;
        if text.split('/').any(|segment| matches!(segment, "*" | "?" | "[]")) {
            return Err(invalid(format!("The unique key path '{text}' must not have wildcards.")));
        }
        if paths.contains(&path) {
            return Err(invalid(format!("The unique key path '{text}' is given twice in one key.")));
        }
        paths.push(path);
    }
    Ok(UniqueKey { paths })
}

/// Returns the policy as clients know it.
pub(super) fn to_value(keys: &[UniqueKey]) -> Value {
    let keys = keys.iter().map(|key| {
        let paths = key.paths.iter().map(|path| Value::from(path.as_str())).collect::<Vec<_>>();
        Value::Object([("paths", paths)].into_iter().collect::<Object>())
    });
    Value::Object([("uniqueKeys", keys.collect::<Vec<_>>())].into_iter().collect())
}
