//! Partition keys: how a container defines them, what a client sends, what an item holds.
//!
//! A key has one part per path. A part is a scalar or undefined (the property is missing); numbers are doubles,
//! so `1` and `1.0` name the same partition, and `-0` is `0`. Two keys are equal exactly if their encoded bytes
//! are, and equal keys have equal effective keys; everything that routes or stores relies on that.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::error::{Error, Result};
use crate::key;
use crate::limits;
use crate::order::total_order;
use crate::path::Path;
use crate::value::json::parse_json;
use crate::value::view::ValueRef;
use crate::value::{Object, Value};

/// How the parts of a key become its effective key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionKeyKind {
    /// One path, one hash.
    Hash,
    /// One to three paths, each level hashed on its own, so that a prefix of the key is a range.
    MultiHash,
}

/// Which hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashVersion {
    /// 32 bits, strings count up to their first 100 characters.
    V1,
    /// 128 bits of everything.
    V2,
}

/// The partition key of a container: fixed when it is created.
#[derive(Debug, Clone)]
pub struct PartitionKeyDefinition {
    /// The paths of the parts in an item.
    pub paths: Vec<Path>,
    /// Whether the key is flat or hierarchical.
    pub kind: PartitionKeyKind,
    /// The hash version, if the definition names one: clients get it back as they sent it.
    pub version: Option<HashVersion>,
    /// Whether the container was created without a key and this one stands in for it.
    pub system_key: bool,
}

impl PartitionKeyDefinition {
    /// Reads the JSON form `{"paths":[…],"kind":"Hash","version":2}`.
    ///
    /// Without `kind` it is `Hash`. Without `version` a `Hash` is of version 1 and stays without; a `MultiHash` gets version 2,
    /// the only one that it has: clients refuse a `MultiHash` without it.
    pub fn from_value(value: &Value) -> Result<PartitionKeyDefinition> {
        let object = value.as_object().ok_or_else(|| {
            Error::invalid(format!("partitionKey must be an object, but is of type {}", value.type_name()))
        })?;
        let kind = match object.get("kind") {
            None | Some(Value::Null) => PartitionKeyKind::Hash,
            Some(Value::String(kind)) if kind.eq_ignore_ascii_case("Hash") => PartitionKeyKind::Hash,
            Some(Value::String(kind)) if kind.eq_ignore_ascii_case("MultiHash") => {
                PartitionKeyKind::MultiHash
            }
            Some(other) => {
                return Err(Error::invalid(format!(
                    "the partition key kind {} is not supported; use \"Hash\" or \"MultiHash\"",
                    other.to_json()
                )));
            }
        };
        let version = read_version(object, kind)?;
        let paths = read_paths(object, kind)?;
        let system_key = object.get("systemKey").and_then(Value::as_bool).unwrap_or(false);
        Ok(PartitionKeyDefinition { paths, kind, version, system_key })
    }

    /// Refuses paths that a new container cannot have. Containers that were made before this was checked keep theirs.
    pub fn check_new_paths(&self) -> Result<()> {
        let flawed = |path: &Path| first_flaw(path.as_str()).map(|at| unacceptable(path.as_str(), at));
        self.paths.iter().find_map(flawed).map_or(Ok(()), Err)
    }

    /// Returns the hash that keys are made with; without a version it is the first.
    pub fn hash_version(&self) -> HashVersion {
        self.version.unwrap_or(HashVersion::V1)
    }

    /// Returns the JSON form, always with `kind`.
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        let paths = self.paths.iter().map(|path| path.as_str().into()).collect::<Vec<Value>>();
        object.insert("paths", paths);
        object.insert("kind", if self.kind == PartitionKeyKind::Hash { "Hash" } else { "MultiHash" });
        if let Some(version) = self.version {
            object.insert("version", if version == HashVersion::V1 { 1 } else { 2 });
        }
        if self.system_key {
            object.insert("systemKey", true);
        }
        object.into()
    }
}

/// Two definitions are equal if they make the same keys: one without a version is of version 1.
impl PartialEq for PartitionKeyDefinition {
    fn eq(&self, other: &PartitionKeyDefinition) -> bool {
        let shape = |it: &PartitionKeyDefinition| (it.kind, it.hash_version(), it.system_key);
        self.paths == other.paths && shape(self) == shape(other)
    }
}

impl Eq for PartitionKeyDefinition {}

fn read_version(object: &Object, kind: PartitionKeyKind) -> Result<Option<HashVersion>> {
    match (object.get("version"), kind) {
        (None | Some(Value::Null), PartitionKeyKind::Hash) => Ok(None),
        (None | Some(Value::Null), PartitionKeyKind::MultiHash) => Ok(Some(HashVersion::V2)),
        (Some(version), kind) => match version_number(version) {
            Some(1) if kind == PartitionKeyKind::Hash => Ok(Some(HashVersion::V1)),
            Some(1) => Err(Error::invalid("a partition key of kind MultiHash must have version 2")),
            Some(2) => Ok(Some(HashVersion::V2)),
            _ => Err(Error::invalid(format!(
                "the partition key version {} is not supported; use 1 or 2",
                version.to_json()
            ))),
        },
    }
}

/// Returns the number of a version; the Java client writes the name that it has for it.
fn version_number(version: &Value) -> Option<i64> {
    match version.as_str() {
        Some("V1") => Some(1),
        Some("V2") => Some(2),
        _ => version.as_i64(),
    }
}

fn read_paths(object: &Object, kind: PartitionKeyKind) -> Result<Vec<Path>> {
    let texts = object.get("paths").and_then(Value::as_array).ok_or_else(|| {
        Error::invalid("the partition key definition must have an array of strings named \"paths\"")
    })?;
    let most = if kind == PartitionKeyKind::Hash { 1 } else { limits::KEY_PARTS };
    if texts.is_empty() || texts.len() > most {
        let rule = if most == 1 { "exactly 1 path" } else { "1 to 3 paths" };
        // The message begins as the service's does: clients match it.
        let many = if texts.len() > most { "Too many partition key paths: " } else { "" };
        return Err(Error::invalid(format!(
            "{many}a partition key of this kind has {rule}, not {}",
            texts.len()
        )));
    }
    let mut paths: Vec<Path> = Vec::with_capacity(texts.len());
    for text in texts {
        let text = text.as_str().ok_or_else(|| {
            Error::invalid(format!("a partition key path must be a string, not {}", text.to_json()))
        })?;
        let is_wildcard = |segment: &str| matches!(segment, "*" | "?" | "[]");
        let path = match Path::parse(text) {
            Ok(path) if !text.split('/').any(is_wildcard) => path,
            _ => return Err(unacceptable(text, first_flaw(text).unwrap_or(text.chars().count()))),
        };
        if paths.contains(&path) {
            return Err(Error::invalid(format!("the partition key path {text:?} is given twice")));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// Returns the service's message for a path that a partition key cannot have: clients match it.
fn unacceptable(path: &str, position: usize) -> Error {
    Error::invalid(format!(
        "The partition key component definition path '{path}' could not be accepted, failed near position '{position}'. \
         Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character."
    ))
}

/// Returns the first character of a path, counted from 0, that a new container cannot have there; its length if more was
/// expected.
///
/// A name is made of letters, digits, `_`, `-` and `$`; any other is written in quotes. Blanks are passed over, so that
/// what follows one in the middle of a name is what cannot be accepted.
fn first_flaw(path: &str) -> Option<usize> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
    let mut characters = path.chars().enumerate().peekable();
    let end = path.chars().count();
    loop {
        match characters.next() {
            Some((_, '/')) => {}
            Some((at, _)) => return Some(at),
            None => return Some(end),
        }
        match characters.next() {
            Some((_, quote @ ('"' | '\''))) => loop {
                match characters.next() {
                    Some((_, '\\')) => drop(characters.next()),
                    Some((_, c)) if c == quote => break,
                    Some(_) => {}
                    None => return Some(end),
                }
            },
            Some((_, c)) if plain(c) => while characters.next_if(|(_, c)| plain(*c)).is_some() {},
            Some((at, _)) => return Some(at),
            None => return Some(end),
        }
        // A path that ends here has no flaw.
        characters.peek()?;
        while characters.next_if(|(_, c)| c.is_whitespace()).is_some() {}
    }
}

/// One part of a key.
#[derive(Debug, Clone)]
pub enum KeyPart {
    /// The item has no such property.
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number, as a double.
    Number(f64),
    /// Text.
    String(String),
}

impl KeyPart {
    /// Returns the part as a value; `None` is undefined.
    pub fn view(&self) -> Option<ValueRef<'_>> {
        match self {
            KeyPart::Undefined => None,
            KeyPart::Null => Some(ValueRef::Null),
            KeyPart::Bool(b) => Some(ValueRef::Bool(*b)),
            KeyPart::Number(n) => Some(ValueRef::Double(*n)),
            KeyPart::String(s) => Some(ValueRef::String(s)),
        }
    }

    /// Returns the part a value stands for; arrays and objects stand for none.
    pub fn from_view(value: Option<ValueRef<'_>>) -> Result<KeyPart> {
        match value {
            None => Ok(KeyPart::Undefined),
            Some(ValueRef::Null) => Ok(KeyPart::Null),
            Some(ValueRef::Bool(b)) => Ok(KeyPart::Bool(b)),
            // Adding zero turns -0.0 into 0.0.
            Some(ValueRef::Int(i)) => Ok(KeyPart::Number(i as f64)),
            Some(ValueRef::Double(d)) => Ok(KeyPart::Number(d + 0.0)),
            Some(ValueRef::String(s)) if s.len() > limits::KEY_PART_BYTES => Err(Error::invalid(format!(
                "a partition key value of {} bytes is longer than the limit of {} bytes",
                s.len(),
                limits::KEY_PART_BYTES
            ))),
            Some(ValueRef::String(s)) => Ok(KeyPart::String(s.to_owned())),
            Some(other @ (ValueRef::Array(_) | ValueRef::Object(_))) => Err(Error::invalid(format!(
                "a partition key value must be a string, number, boolean or null, not an {}",
                other.type_name()
            ))),
        }
    }
}

impl Ord for KeyPart {
    fn cmp(&self, other: &KeyPart) -> Ordering {
        total_order(self.view(), other.view())
    }
}

impl PartialOrd for KeyPart {
    fn partial_cmp(&self, other: &KeyPart) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for KeyPart {
    fn eq(&self, other: &KeyPart) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for KeyPart {}

impl Hash for KeyPart {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            KeyPart::Undefined | KeyPart::Null => {}
            KeyPart::Bool(b) => b.hash(state),
            KeyPart::Number(n) => (n + 0.0).to_bits().hash(state),
            KeyPart::String(s) => s.hash(state),
        }
    }
}

/// A partition key, or the first levels of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionKey(Vec<KeyPart>);

impl PartitionKey {
    /// Creates a key of these parts.
    pub fn new(parts: Vec<KeyPart>) -> PartitionKey {
        PartitionKey(parts)
    }

    /// Reads the JSON array that clients send: `["x"]`, `[5.5]`, `[{}]` for undefined, `[]` for no key at all.
    pub fn from_header(text: &str) -> Result<PartitionKey> {
        let invalid =
            |reason: String| Error::invalid(format!("the partition key {text} is invalid: {reason}"));
        if let Some(part) = lone_string(text) {
            return Ok(PartitionKey(vec![KeyPart::from_view(Some(ValueRef::String(part)))?]));
        }
        let value = parse_json(text.as_bytes()).map_err(|error| invalid(error.to_string()))?;
        let items = value.as_array().ok_or_else(|| invalid("it must be a JSON array".to_owned()))?;
        if items.len() > limits::KEY_PARTS {
            return Err(invalid(format!("it has {} parts, more than {}", items.len(), limits::KEY_PARTS)));
        }
        let parts = items.iter().map(|item| match item {
            Value::Object(object) if object.is_empty() => Ok(KeyPart::Undefined),
            other => KeyPart::from_view(Some(other.view())),
        });
        Ok(PartitionKey(parts.collect::<Result<_>>()?))
    }

    /// Returns the key of an item: the value at each path. It is undefined where the value is missing, and also where it is
    /// an array or object: the service accepts such an item, under the undefined key.
    pub fn extract(definition: &PartitionKeyDefinition, item: ValueRef<'_>) -> Result<PartitionKey> {
        let is_scalar = |value: &ValueRef<'_>| value.as_array().is_none() && value.as_object().is_none();
        let parts = definition.paths.iter().map(|path| {
            KeyPart::from_view(path.read(item).filter(is_scalar))
                .map_err(|error| Error::invalid(format!("the item's partition key at {path}: {error}")))
        });
        Ok(PartitionKey(parts.collect::<Result<_>>()?))
    }

    /// Returns `true` if an item's key starts with these parts (or is this key), and if the item has a valid key.
    pub fn is_prefix_of_item(&self, definition: &PartitionKeyDefinition, item: ValueRef<'_>) -> bool {
        let is_scalar = |value: &ValueRef<'_>| value.as_array().is_none() && value.as_object().is_none();
        let mut parts = self.0.iter();
        let is_same = |path: &Path| match (path.read(item).filter(is_scalar), parts.next()) {
            (Some(ValueRef::String(text)), Some(KeyPart::String(part))) => text == part,
            (value, None) => KeyPart::from_view(value).is_ok(),
            (value, Some(part)) => KeyPart::from_view(value).is_ok_and(|found| found == *part),
        };
        definition.paths.iter().all(is_same) && parts.next().is_none()
    }

    /// Returns the key as the definition wants it for one item: one part per path. The empty key stands for undefined
    /// in a container made without a key. A key that does not fit is returned as the error.
    pub fn complete(
        self,
        definition: &PartitionKeyDefinition,
    ) -> std::result::Result<PartitionKey, PartitionKey> {
        if self.is_empty() && definition.system_key {
            return Ok(PartitionKey(vec![KeyPart::Undefined; definition.paths.len()]));
        }
        if self.len() == definition.paths.len() { Ok(self) } else { Err(self) }
    }

    /// Returns the parts in the order of the paths.
    pub fn parts(&self) -> &[KeyPart] {
        &self.0
    }

    /// Returns the number of parts.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are none: `[]`.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if `other` starts with these parts (or is this key).
    pub fn is_prefix_of(&self, other: &PartitionKey) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Returns the JSON array that [`PartitionKey::from_header`] reads; whole numbers print as integers.
    pub fn to_json(&self) -> String {
        let items = self.0.iter().map(|part| match (part, part.view()) {
            (KeyPart::Number(n), Some(view)) if n.abs() < 1e15 => {
                view.as_i64().map_or(Value::Double(*n), Value::Int)
            }
            (_, view) => view.map_or_else(|| Value::Object(Object::new()), ValueRef::to_value),
        });
        Value::Array(items.collect()).to_json()
    }

    /// Appends bytes that sort as the keys do, end by themselves and tell keys apart: a part count, then the
    /// parts as [`crate::encode_key`] writes them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_prefix(self.len(), out);
    }

    /// Appends the common prefix of all encoded keys of `full_len` parts that start with this key.
    pub fn encode_prefix(&self, full_len: usize, out: &mut Vec<u8>) {
        debug_assert!(full_len <= limits::KEY_PARTS, "a key has at most three parts");
        out.push(full_len as u8);
        for part in &self.0 {
            key::encode_key(part.view(), out);
        }
    }

    /// Reads a key back from [`PartitionKey::encode`], and what follows it.
    pub fn decode(bytes: &[u8]) -> Result<(PartitionKey, &[u8])> {
        let (&count, mut rest) =
            bytes.split_first().ok_or_else(|| Error::corrupt("a partition key is cut short"))?;
        if usize::from(count) > limits::KEY_PARTS {
            return Err(Error::corrupt(format!("a partition key claims {count} parts")));
        }
        let mut parts = Vec::with_capacity(count.into());
        for _ in 0..count {
            let (value, after) = key::decode_key(rest)?;
            let part = KeyPart::from_view(value.as_ref().map(Value::view))
                .map_err(|error| Error::corrupt(error.to_string()))?;
            parts.push(part);
            rest = after;
        }
        Ok((PartitionKey(parts), rest))
    }
}

/// Returns the string of a JSON array of one string without escapes, as nearly every key is sent. Reading it as any JSON
/// takes several times as long.
fn lone_string(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("[\"")?.strip_suffix("\"]")?;
    let is_plain = |byte: u8| byte >= b' ' && !matches!(byte, b'"' | b'\\');
    inner.bytes().all(is_plain).then_some(inner)
}

impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl FromIterator<KeyPart> for PartitionKey {
    fn from_iter<I: IntoIterator<Item = KeyPart>>(parts: I) -> PartitionKey {
        PartitionKey(parts.into_iter().collect())
    }
}
