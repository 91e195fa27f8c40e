//! `indexingPolicy`: which paths a container indexes, and when.
//!
//! Clients may send a policy as sparse as `{}`; it is completed as the service completes it: mode, automatic, both
//! sets of paths, and `/"_etag"/?` excluded unless it is included. The old `indexes` lists inside included paths
//! (kind, type, precision) are accepted and dropped, as the service does: every index is a range index.

use document::{Object, Path, Value};

use super::index_path::IndexPath;
use super::spatial::SpatialIndex;
use crate::types::definition_error::{
    Result, invalid, list, malformed, members, optional, optional_list, quote, required, text, word,
};

const PATHS_MAX: usize = 1000;
const COMPOSITES_MAX: usize = 100;
const COMPOSITE_PATHS_MAX: usize = 8;
const SPATIAL_MAX: usize = 100;
/// The largest number of vector indexes, and of full-text indexes.
pub(super) const SEARCH_MAX: usize = 100;

/// When writes reach the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IndexingMode {
    /// With the write.
    #[default]
    Consistent,
    /// Some time after it.
    Lazy,
    /// There is no index.
    None,
}

impl IndexingMode {
    /// Returns the name in a definition.
    pub fn name(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Lazy => "lazy",
            Self::None => "none",
        }
    }
}

/// A complete, valid policy.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexingPolicy {
    /// When writes reach the index.
    pub mode: IndexingMode,
    /// Whether items are indexed without a request for each.
    pub automatic: bool,
    /// The indexed paths.
    pub included: Vec<IndexPath>,
    /// The paths that are not indexed.
    pub excluded: Vec<IndexPath>,
    /// Indexes over several paths at once.
    pub composites: Vec<Vec<CompositePath>>,
    /// Indexes over positions on the earth or in a plane.
    pub spatial: Vec<SpatialIndex>,
    /// Vector indexes, checked and stored as they came.
    pub vectors: Vec<Value>,
    /// Full-text indexes, checked and stored as they came.
    pub full_text: Vec<Value>,
}

/// One path of a composite index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositePath {
    /// The property.
    pub path: Path,
    /// Its direction.
    pub order: Order,
}

/// A direction of sorting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

impl Default for IndexingPolicy {
    fn default() -> Self {
        Self {
            mode: IndexingMode::Consistent,
            automatic: true,
            included: vec![IndexPath::root()],
            excluded: vec![IndexPath::etag()],
            composites: Vec::new(),
            spatial: Vec::new(),
            vectors: Vec::new(),
            full_text: Vec::new(),
        }
    }
}

impl IndexingPolicy {
    /// Reads the member `indexingPolicy`, as sparse as it may be.
    pub(crate) fn from_value(value: &Value) -> Result<Self> {
        let known = [
            "indexingMode",
            "automatic",
            "includedPaths",
            "excludedPaths",
            "compositeIndexes",
            "spatialIndexes",
            "vectorIndexes",
            "fullTextIndexes",
        ];
        let policy = members(value, "indexingPolicy", &known)?;
        let mode = mode(policy)?;
        let automatic = match optional(policy, "automatic") {
            None => mode != IndexingMode::None,
            Some(value) => value.as_bool().ok_or_else(|| malformed("automatic", "true or false", value))?,
        };
        if mode == IndexingMode::None && automatic {
            return Err(invalid("The indexing mode 'none' requires that 'automatic' is false."));
        }
        let (included, excluded) = paths(policy, mode)?;
        let composites = optional_list(policy, "compositeIndexes", COMPOSITES_MAX)?;
        let spatial = optional_list(policy, "spatialIndexes", SPATIAL_MAX)?;
        Ok(Self {
            mode,
            automatic,
            included,
            excluded,
            composites: composites.iter().map(composite).collect::<Result<_>>()?,
            spatial: spatial.iter().map(SpatialIndex::from_value).collect::<Result<_>>()?,
            vectors: optional_list(policy, "vectorIndexes", SEARCH_MAX)?.to_vec(),
            full_text: optional_list(policy, "fullTextIndexes", SEARCH_MAX)?.to_vec(),
        })
    }

    /// Returns the paths of the vector indexes.
    pub(crate) fn vector_paths(&self) -> impl Iterator<Item = Path> {
        self.vectors.iter().filter_map(super::search::path_of)
    }

    /// Returns the complete policy as clients know it.
    pub(crate) fn to_value(&self) -> Value {
        let paths = |paths: &[IndexPath]| paths.iter().map(path_entry).collect::<Vec<_>>();
        let mut policy = Object::new();
        policy.insert("indexingMode", self.mode.name());
        policy.insert("automatic", self.automatic);
        policy.insert("includedPaths", paths(&self.included));
        policy.insert("excludedPaths", paths(&self.excluded));
        for (name, entries) in [
            ("compositeIndexes", self.composites.iter().map(|paths| composite_value(paths)).collect()),
            ("spatialIndexes", self.spatial.iter().map(SpatialIndex::to_value).collect()),
            ("vectorIndexes", self.vectors.clone()),
            ("fullTextIndexes", self.full_text.clone()),
        ] {
            if !entries.is_empty() {
                policy.insert(name, entries);
            }
        }
        policy.into()
    }
}

fn mode(policy: &Object) -> Result<IndexingMode> {
    let Some(value) = optional(policy, "indexingMode") else { return Ok(IndexingMode::Consistent) };
    Ok(match word(value, "indexingMode", &["consistent", "lazy", "none"])? {
        "lazy" => IndexingMode::Lazy,
        "none" => IndexingMode::None,
        _ => IndexingMode::Consistent,
    })
}

/// Returns both sets of paths, completed.
fn paths(policy: &Object, mode: IndexingMode) -> Result<(Vec<IndexPath>, Vec<IndexPath>)> {
    let mut included = path_set(policy, "includedPaths", &["path", "indexes"])?;
    let mut excluded = path_set(policy, "excludedPaths", &["path"])?;
    if let Some(both) = included.iter().find(|path| excluded.contains(path)) {
        return Err(invalid(format!("The indexing path '{}' is both included and excluded.", both.as_str())));
    }
    if mode == IndexingMode::None {
        return Ok((included, excluded));
    }
    if !included.iter().chain(&excluded).any(IndexPath::is_root) {
        if !included.is_empty() {
            return Err(invalid(
                "The special mandatory indexing path '/*' is not provided in any of the path type sets. Please \
                 provide this path in one of the sets.",
            ));
        }
        included.push(IndexPath::root());
    }
    if !included.iter().chain(&excluded).any(|path| *path == IndexPath::etag()) {
        excluded.push(IndexPath::etag());
    }
    Ok((included, excluded))
}

fn path_set(policy: &Object, name: &str, known: &[&str]) -> Result<Vec<IndexPath>> {
    let mut paths: Vec<IndexPath> = Vec::new();
    for entry in optional_list(policy, name, PATHS_MAX)? {
        let entry = members(entry, name, known)?;
        optional_list(entry, "indexes", PATHS_MAX)?;
        let path = IndexPath::from_value(required(entry, "path")?)?;
        if paths.contains(&path) {
            return Err(invalid(format!(
                "The indexing path '{}' is given twice in '{name}'.",
                path.as_str()
            )));
        }
        paths.push(path);
    }
    Ok(paths)
}

fn path_entry(path: &IndexPath) -> Value {
    Value::Object([("path", path.as_str())].into_iter().collect())
}

fn composite(value: &Value) -> Result<Vec<CompositePath>> {
    let entries = list(value, "compositeIndexes", COMPOSITE_PATHS_MAX)?;
    if entries.len() < 2 {
        return Err(invalid(format!("A composite index has at least 2 paths: {}.", quote(value))));
    }
    let mut paths: Vec<CompositePath> = Vec::new();
    for entry in entries {
        let entry = members(entry, "compositeIndexes", &["path", "order"])?;
        let path = property_path(required(entry, "path")?, "The composite index")?;
        let order = match optional(entry, "order") {
            None => Order::Ascending,
            Some(order) => match word(order, "order", &["ascending", "descending"])? {
                "descending" => Order::Descending,
                _ => Order::Ascending,
            },
        };
        if paths.iter().any(|other| other.path == path) {
            return Err(invalid(format!("The path '{path}' is given twice in one composite index.")));
        }
        paths.push(CompositePath { path, order });
    }
    Ok(paths)
}

fn composite_value(paths: &[CompositePath]) -> Value {
    let entries = paths.iter().map(|entry| {
        let order = if entry.order == Order::Ascending { "ascending" } else { "descending" };
        Value::Object([("path", entry.path.as_str()), ("order", order)].into_iter().collect())
    });
    Value::Array(entries.collect())
}

/// Reads a path to one property, without a wildcard anywhere.
pub(super) fn property_path(value: &Value, owner: &str) -> Result<Path> {
    let text = text(value, "path")?;
    if text.split('/').any(|step| matches!(step, "*" | "?" | "[]")) {
        return Err(invalid(format!("{owner} has an invalid path '{text}': wildcards are not allowed.")));
    }
    Path::parse(text).map_err(|error| invalid(format!("{owner} has an invalid path: {error}.")))
}
