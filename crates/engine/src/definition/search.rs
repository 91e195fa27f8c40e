//! Vectors and full text: `vectorEmbeddingPolicy`, `fullTextPolicy`, and the indexes over them.
//!
//! This module runs no search. The policies are stored and returned, and refused where the service refuses them, in its
//! wording where clients depend on it.

use document::{Object, Path, Value};

use super::indexing::{SEARCH_MAX, property_path};
use crate::types::definition_error::{
    DefinitionError, Result, invalid, list, malformed, members, optional, optional_list, required, text,
};

const DIMENSIONS_MAX: i64 = 4096;
const QUANTIZATION_BYTES_MAX: i64 = 512;
/// Languages by their tags and by the numbers that Windows has for them, which clients write as text.
const LANGUAGES: [(&str, &str); 7] = [
    ("en-US", "1033"),
    ("de-DE", "1031"),
    ("es-ES", "3082"),
    ("fr-FR", "1036"),
    ("it-IT", "1040"),
    ("pt-BR", "1046"),
    ("pt-PT", "2070"),
];

/// Checks `vectorEmbeddingPolicy`.
pub(super) fn check_embeddings(policy: &Value) -> Result<()> {
    let entries = members(policy, "vectorEmbeddingPolicy", &["vectorEmbeddings"])?;
    let mut paths: Vec<Path> = Vec::new();
    for value in optional_list(entries, "vectorEmbeddings", SEARCH_MAX)? {
        if value.get("embeddingSource").is_some_and(|source| !source.is_null()) {
            return Err(DefinitionError::NotSupported { member: "embeddingSource".to_owned() });
        }
        let known = ["path", "dataType", "dimensions", "distanceFunction", "embeddingSource"];
        let entry = members(value, "vectorEmbeddings", &known)?;
        let path = property_path(required(entry, "path")?, "The Vector Embedding Policy")?;
        one_of(entry, "dataType", "DataType", &["float32", "float16", "int8", "uint8"])?;
        one_of(entry, "distanceFunction", "DistanceFunction", &["cosine", "euclidean", "dotproduct"])?;
        check_dimensions(required(entry, "dimensions")?)?;
        if paths.contains(&path) {
            return Err(invalid(format!("The Vector Embedding Policy has the path {path} twice.")));
        }
        paths.push(path);
    }
    Ok(())
}

fn one_of(entry: &Object, member: &str, label: &str, words: &[&str]) -> Result<()> {
    let given = text(required(entry, member)?, member)?;
    if words.iter().any(|word| word.eq_ignore_ascii_case(given)) {
        return Ok(());
    }
    Err(invalid(format!(
        "The Vector Embedding Policy has an invalid {label}:{given}. Accepted are {}.",
        words.join(", ")
    )))
}

fn check_dimensions(value: &Value) -> Result<()> {
    let dimensions = value.as_i64().ok_or_else(|| malformed("dimensions", "an integer", value))?;
    let (relation, bound) = match dimensions {
        ..1 => ("less than the minimum", 1),
        1..=DIMENSIONS_MAX => return Ok(()),
        _ => ("more than the maximum", DIMENSIONS_MAX),
    };
    Err(invalid(format!(
        "The Vector Embedding Policy has Dimensions:{dimensions} which is {relation} supported value:{bound}."
    )))
}

/// Checks `vectorIndexes` against the embeddings they index.
pub(super) fn check_vector_indexes(indexes: &[Value], embeddings: Option<&Value>) -> Result<()> {
    for value in indexes {
        let known = [
            "path",
            "type",
            "quantizerType",
            "quantizationByteSize",
            "indexingSearchListSize",
            "vectorIndexShardKey",
        ];
        let entry = members(value, "vectorIndexes", &known)?;
        let path = property_path(required(entry, "path")?, "The Vector Indexing Policy")?;
        let embedding = entry_at(embeddings.and_then(|policy| policy.get("vectorEmbeddings")), &path);
        let Some(embedding) = embedding else {
            return Err(invalid(format!(
                "The Vector Indexing Policy's path::{path} not matching in Embedding's path."
            )));
        };
        let kind = text(required(entry, "type")?, "type")?;
        if !["flat", "quantizedFlat", "diskANN"].iter().any(|known| known.eq_ignore_ascii_case(kind)) {
            return Err(invalid(format!("The Vector Indexing Policy's Index Type::{kind} is invalid.")));
        }
        if let Some(quantizer) = optional(entry, "quantizerType") {
            crate::types::definition_error::word(quantizer, "quantizerType", &["product", "spherical"])?;
        }
        let dimensions = embedding.get("dimensions").and_then(Value::as_i64).unwrap_or(1);
        let most = dimensions.min(QUANTIZATION_BYTES_MAX);
        check_range(entry, "quantizationByteSize", "QuantizationByteSize", 1, most)?;
        check_range(entry, "indexingSearchListSize", "IndexingSearchListSize", 25, 500)?;
        if let Some(shards) = optional(entry, "vectorIndexShardKey") {
            check_shards(shards)?;
        }
    }
    Ok(())
}

fn check_range(entry: &Object, member: &str, label: &str, least: i64, most: i64) -> Result<()> {
    let Some(value) = optional(entry, member) else { return Ok(()) };
    let number = value.as_i64().ok_or_else(|| malformed(member, "an integer", value))?;
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(invalid(format!(
        "The Vector Indexing Policy parameter {label} value :: {number} is out of range. The allowed range is between \
         {least} and {most}."
    )))
}

fn check_shards(value: &Value) -> Result<()> {
    let shards = list(value, "vectorIndexShardKey", SEARCH_MAX)?;
    for shard in shards {
        let path = text(shard, "vectorIndexShardKey")?;
        if Path::parse(path).is_err() {
            return Err(invalid(format!("The Vector Indexing Policy has an invalid Shard Path: {path}.")));
        }
    }
    if shards.len() > 1 {
        return Err(invalid(format!(
            "The number of shard paths defined in the Vector Indexing Policy: {} exceeds the maximum: 1.",
            shards.len()
        )));
    }
    Ok(())
}

/// Checks `fullTextPolicy`.
pub(super) fn check_full_text(policy: &Value) -> Result<()> {
    let policy = members(policy, "fullTextPolicy", &["defaultLanguage", "fullTextPaths"])?;
    check_language(policy, "defaultLanguage")?;
    for value in optional_list(policy, "fullTextPaths", SEARCH_MAX)? {
        let entry = members(value, "fullTextPaths", &["path", "language"])?;
        let path = text(required(entry, "path")?, "path")?;
        if Path::parse(path).is_err() {
            return Err(invalid(format!(
                "The Full Text Policy contains an invalid Path: {path}. A path starts with '/'."
            )));
        }
        check_language(entry, "language")?;
    }
    Ok(())
}

fn check_language(object: &Object, member: &str) -> Result<()> {
    let Some(value) = optional(object, member) else { return Ok(()) };
    let language = text(value, member)?;
    if LANGUAGES.iter().any(|(tag, number)| tag.eq_ignore_ascii_case(language) || *number == language) {
        return Ok(());
    }
    Err(invalid(format!(
        "The Full Text Policy contains an unsupported language {language}. Supported languages are: {}.",
        LANGUAGES.map(|(tag, _)| tag).join(", ")
    )))
}

/// Checks `fullTextIndexes` against the policy that has the language of each path.
pub(super) fn check_full_text_indexes(indexes: &[Value], policy: Option<&Value>) -> Result<()> {
    for value in indexes {
        let entry = members(value, "fullTextIndexes", &["path"])?;
        let path = property_path(required(entry, "path")?, "The Full Text Indexing Policy")?;
        if entry_at(policy.and_then(|policy| policy.get("fullTextPaths")), &path).is_none() {
            return Err(invalid(format!(
                "The Full Text Indexing Policy's path::{path} not matching in the Full Text Policy's paths."
            )));
        }
    }
    Ok(())
}

/// Returns the entry for this path in a list of `{"path": ...}`.
pub(super) fn entry_at<'v>(entries: Option<&'v Value>, path: &Path) -> Option<&'v Value> {
    entries?.as_array()?.iter().find(|entry| path_of(entry).as_ref() == Some(path))
}

/// Returns the path of an entry.
pub(super) fn path_of(entry: &Value) -> Option<Path> {
    Path::parse(entry.get("path")?.as_str()?).ok()
}
