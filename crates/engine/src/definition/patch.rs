//! Partial updates: up to ten operations on one item, all of them or none.
//!
//! A patch is checked in three steps, each as early as possible: its form when it is read, its paths against the
//! container's partition key, and whether the operations fit when it is applied to an item. Whether the result is
//! still a valid item (its `ttl`, its size) is checked where every write is.

use document::{PartitionKeyDefinition, Path, Pointer, Token, Value};
use query::{Query, Surface};

use crate::expiry::item::SYSTEM_PROPERTIES;
pub use crate::types::patch_error::PatchError;

/// The limit of the service.
const OPERATIONS_MAX: usize = 10;

/// How many characters of an offending value a message repeats.
const QUOTED_CHARS: usize = 200;

/// A checked list of operations and the condition under which they apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// 1 to 10 operations, applied in order.
    pub operations: Vec<PatchOperation>,
    /// The item must match this filter.
    pub condition: Option<Box<Query>>,
}

/// One operation; every pointer names something below the root.
#[derive(Debug, Clone, PartialEq)]
pub enum PatchOperation {
    /// Sets a property, or inserts into an array.
    Add {
        /// The target; `-` is the end of an array.
        path: Pointer,
        /// The value.
        value: Value,
    },
    /// Sets a property, or replaces an array's item.
    Set {
        /// The target.
        path: Pointer,
        /// The value.
        value: Value,
    },
    /// Replaces what is there.
    Replace {
        /// The target.
        path: Pointer,
        /// The value.
        value: Value,
    },
    /// Removes what is there; an array's later items move up.
    Remove {
        /// The target.
        path: Pointer,
    },
    /// Adds to a number, or sets a property that is not there.
    Increment {
        /// The target.
        path: Pointer,
        /// The amount.
        amount: Number,
    },
    /// Removes a value and adds it elsewhere.
    Move {
        /// The source.
        from: Pointer,
        /// The target.
        path: Pointer,
    },
}

/// An amount to increment by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A whole number.
    Int(i64),
    /// Any other.
    Double(f64),
}

type Result<T> = std::result::Result<T, PatchError>;

impl Patch {
    /// Reads `[operation, ...]` or `{"operations": [...], "condition": "from c where ..."}`.
    pub fn from_value(value: &Value) -> Result<Self> {
        Self::from_value_on(value, Surface::default())
    }

    /// Reads the same for a container whose geometries are on that surface, which a condition may use.
    pub fn from_value_on(value: &Value, surface: Surface) -> Result<Self> {
        let (operations, condition) = match value {
            Value::Array(operations) => (operations.as_slice(), None),
            Value::Object(members) => {
                check_members(value, &["operations", "condition"])?;
                let operations = members.get("operations").and_then(Value::as_array);
                let operations = operations.ok_or_else(|| malformed("'operations' must be an array"))?;
                (operations, members.get("condition").filter(|condition| !condition.is_null()))
            }
            other => {
                return Err(malformed(format!("it must be an array or an object, not {}", quote(other))));
            }
        };
        if operations.is_empty() || operations.len() > OPERATIONS_MAX {
            let count = operations.len();
            return Err(malformed(format!("it has {count} operations; 1 to {OPERATIONS_MAX} are allowed")));
        }
        let numbered = operations.iter().enumerate();
        let operations = numbered.map(|(at, value)| PatchOperation::from_value(at + 1, value));
        Ok(Self {
            operations: operations.collect::<Result<_>>()?,
            condition: condition
                .map(|condition| read_condition(condition, surface))
                .transpose()?
                .map(Box::new),
        })
    }

    /// Refuses operations that would change the partition key: on its paths, above them or below them.
    pub fn check_paths(&self, key: &PartitionKeyDefinition) -> Result<()> {
        for (at, operation) in self.operations.iter().enumerate() {
            for pointer in operation.pointers() {
                if let Some(path) = key.paths.iter().find(|path| overlaps(pointer, path)) {
                    return Err(PatchError::Protected {
                        index: at + 1,
                        path: pointer.to_string(),
                        reason: format!("it is part of the partition key '{path}'"),
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns the item after all operations; the caller has checked the condition.
    pub fn apply(&self, item: &Value) -> Result<Value> {
        let mut root = item.clone();
        for (at, operation) in self.operations.iter().enumerate() {
            operation.apply(&mut root).map_err(|reason| PatchError::Inapplicable {
                index: at + 1,
                operation: operation.name(),
                path: operation.pointers().next().map(ToString::to_string).unwrap_or_default(),
                reason,
            })?;
        }
        Ok(root)
    }
}

impl PatchOperation {
    fn from_value(index: usize, value: &Value) -> Result<Self> {
        check_members(value, &["op", "path", "value", "from"])?;
        let text = |name: &str| {
            let member = value.get(name).and_then(Value::as_str);
            member.ok_or_else(|| malformed(format!("operation {index} must have a string '{name}'")))
        };
        let pointer = |name: &str| read_pointer(index, text(name)?);
        let path = pointer("path")?;
        let given = || {
            let given = value.get("value").cloned();
            given.ok_or_else(|| malformed(format!("operation {index} must have a 'value'")))
        };
        Ok(match text("op")? {
            "add" => Self::Add { path, value: given()? },
            "set" => Self::Set { path, value: given()? },
            "replace" => Self::Replace { path, value: given()? },
            "remove" => Self::Remove { path },
            "incr" | "increment" => match given()? {
                Value::Int(amount) => Self::Increment { path, amount: Number::Int(amount) },
                Value::Double(amount) => Self::Increment { path, amount: Number::Double(amount) },
                other => {
                    let found = quote(&other);
                    return Err(malformed(format!(
                        "operation {index} increments by {found}, which is no number"
                    )));
                }
            },
            "move" => {
                let from = pointer("from")?;
                if from != path && from.is_prefix_of(&path) {
                    return Err(malformed(format!(
                        "operation {index} moves '{from}' into itself, to '{path}'"
                    )));
                }
                Self::Move { from, path }
            }
            other => {
                let known = "add, set, replace, remove, incr, move";
                let found = quote(&Value::from(other));
                return Err(malformed(format!(
                    "operation {index} has the unknown 'op' {found}; known are {known}"
                )));
            }
        })
    }

    /// Returns the targets of an operation, the one that errors name first.
    fn pointers(&self) -> impl Iterator<Item = &Pointer> {
        let (first, second) = match self {
            Self::Add { path, .. }
            | Self::Set { path, .. }
            | Self::Replace { path, .. }
            | Self::Remove { path }
            | Self::Increment { path, .. } => (path, None),
            Self::Move { from, path } => (path, Some(from)),
        };
        std::iter::once(first).chain(second)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Add { .. } => "add",
            Self::Set { .. } => "set",
            Self::Replace { .. } => "replace",
            Self::Remove { .. } => "remove",
            Self::Increment { .. } => "incr",
            Self::Move { .. } => "move",
        }
    }

    fn apply(&self, root: &mut Value) -> Applied<()> {
        match self {
            Self::Add { path, value } => add(root, path, value.clone()),
            Self::Set { path, value } => match parent(root, path)? {
                PatchTarget::Member(object, name) => {
                    object.insert(name, value.clone());
                    Ok(())
                }
                PatchTarget::Item(items, token) => {
                    let index = existing(items, token)?;
                    items[index] = value.clone();
                    Ok(())
                }
            },
            Self::Replace { path, value } => {
                *path.get_mut(root).ok_or("nothing is there to be replaced")? = value.clone();
                Ok(())
            }
            Self::Remove { path } => take(root, path).map(drop),
            Self::Increment { path, amount } => increment(root, path, *amount),
            Self::Move { from, path } => {
                let value = take(root, from).map_err(|reason| format!("from '{from}': {reason}"))?;
                add(root, path, value)
            }
        }
    }
}

/// The error is the end of a sentence; the caller adds the path and the operation.
type Applied<T> = std::result::Result<T, String>;

/// A target inside its parent.
enum PatchTarget<'v, 'p> {
    Member(&'v mut document::Object, &'p str),
    Item(&'v mut Vec<Value>, &'p Token),
}

fn parent<'v, 'p>(root: &'v mut Value, path: &'p Pointer) -> Applied<PatchTarget<'v, 'p>> {
    match path.parent_mut(root) {
        None => Err("the place it would be in does not exist".to_owned()),
        Some((Value::Object(object), token)) => Ok(PatchTarget::Member(object, token.name())),
        Some((Value::Array(items), token)) => Ok(PatchTarget::Item(items, token)),
        Some((other, _)) => {
            Err(format!("the place it would be in is a {}, not an object or array", other.type_name()))
        }
    }
}

fn existing(items: &[Value], token: &Token) -> Applied<usize> {
    match token.index() {
        Some(index) if index < items.len() => Ok(index),
        _ => Err(format!("'{}' is not the index of one of the {} items", token.name(), items.len())),
    }
}

fn add(root: &mut Value, path: &Pointer, value: Value) -> Applied<()> {
    match parent(root, path)? {
        PatchTarget::Member(object, name) => {
            object.insert(name, value);
        }
        PatchTarget::Item(items, token) if token.is_append() => items.push(value),
        PatchTarget::Item(items, token) => match token.index() {
            Some(index) if index <= items.len() => items.insert(index, value),
            _ => return Err(format!("'{}' is not an index from 0 to {} or '-'", token.name(), items.len())),
        },
    }
    Ok(())
}

fn take(root: &mut Value, path: &Pointer) -> Applied<Value> {
    match parent(root, path)? {
        PatchTarget::Member(object, name) => object.remove(name).ok_or_else(|| "nothing is there".to_owned()),
        PatchTarget::Item(items, token) => {
            let index = existing(items, token)?;
            Ok(items.remove(index))
        }
    }
}

fn increment(root: &mut Value, path: &Pointer, amount: Number) -> Applied<()> {
    if let Some(number) = path.get_mut(root) {
        *number = sum(number, amount)?;
        return Ok(());
    }
    match parent(root, path)? {
        PatchTarget::Member(object, name) => {
            object.insert(name, amount);
            Ok(())
        }
        PatchTarget::Item(items, token) => existing(items, token).map(drop),
    }
}

/// Adds two numbers. Whole numbers stay whole as long as they fit 64 bits; beyond that the sum is a double.
fn sum(number: &Value, amount: Number) -> Applied<Value> {
    if let (Value::Int(number), Number::Int(amount)) = (number, amount)
        && let Some(sum) = number.checked_add(amount)
    {
        return Ok(Value::Int(sum));
    }
    let number = number.as_f64().ok_or_else(|| format!("a {} is there, not a number", number.type_name()))?;
    let sum = number
        + match amount {
            Number::Int(amount) => amount as f64,
            Number::Double(amount) => amount,
        };
    if sum.is_finite() { Ok(Value::Double(sum)) } else { Err("the sum is too large for a number".to_owned()) }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(number) => Self::Int(number),
            Number::Double(number) => Self::Double(number),
        }
    }
}

/// Reads a pointer to something below the root that belongs to the user.
fn read_pointer(index: usize, text: &str) -> Result<Pointer> {
    let pointer = Pointer::parse(text).map_err(|error| malformed(format!("operation {index}: {error}")))?;
    let Some(first) = pointer.tokens().first() else {
        return Err(malformed(format!("operation {index} must have a path below the root")));
    };
    let reason = match first.name() {
        "id" => "an item keeps its id",
        name if SYSTEM_PROPERTIES.contains(&name) => "it is a property of the system",
        _ => return Ok(pointer),
    };
    Err(PatchError::Protected { index, path: text.to_owned(), reason: reason.to_owned() })
}

/// Returns whether one of the two is inside the other, or both are the same.
fn overlaps(pointer: &Pointer, path: &Path) -> bool {
    pointer.tokens().iter().zip(path.segments()).all(|(token, segment)| token.name() == segment)
}

fn read_condition(value: &Value, surface: Surface) -> Result<Query> {
    let text = value.as_str().ok_or_else(|| malformed("'condition' must be a string"))?;
    query::parse_filter(text, &[], surface).map_err(PatchError::Condition)
}

fn check_members(value: &Value, known: &[&str]) -> Result<()> {
    let Some(object) = value.as_object() else {
        return Err(malformed(format!("an operation must be an object, not {}", quote(value))));
    };
    match object.iter().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let name = quote(&Value::from(name));
            Err(malformed(format!("the property {name} is unknown; known are {}", known.join(", "))))
        }
    }
}

fn malformed(message: impl Into<String>) -> PatchError {
    PatchError::Malformed { message: message.into() }
}

fn quote(value: &Value) -> String {
    let text = value.to_json();
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use document::parse_json;

    use super::*;

    fn json(text: &str) -> Value {
        parse_json(text.as_bytes()).unwrap()
    }

    fn patched(item: &str, operations: &str) -> std::result::Result<String, String> {
        let patch = Patch::from_value(&json(operations)).map_err(|error| error.to_string())?;
        patch.apply(&json(item)).map(|item| item.to_json()).map_err(|error| error.to_string())
    }

    #[test]
    fn operations_do_what_they_say() {
        for (item, operation, expected) in [
            (r#"{"a":1}"#, r#"{"op":"add","path":"/b","value":2}"#, r#"{"a":1,"b":2}"#),
            (r#"{"a":1,"b":0}"#, r#"{"op":"add","path":"/a","value":null}"#, r#"{"a":null,"b":0}"#),
            (r#"{"a":[1,2]}"#, r#"{"op":"add","path":"/a/1","value":9}"#, r#"{"a":[1,9,2]}"#),
            (r#"{"a":[1,2]}"#, r#"{"op":"add","path":"/a/2","value":9}"#, r#"{"a":[1,2,9]}"#),
            (r#"{"a":[1,2]}"#, r#"{"op":"add","path":"/a/-","value":9}"#, r#"{"a":[1,2,9]}"#),
            (r#"{"a":{}}"#, r#"{"op":"set","path":"/a/b","value":{"c":1}}"#, r#"{"a":{"b":{"c":1}}}"#),
            (r#"{"a":[1,2]}"#, r#"{"op":"set","path":"/a/1","value":9}"#, r#"{"a":[1,9]}"#),
            (r#"{"a":1}"#, r#"{"op":"replace","path":"/a","value":[]}"#, r#"{"a":[]}"#),
            (r#"{"a":[1,2]}"#, r#"{"op":"replace","path":"/a/0","value":9}"#, r#"{"a":[9,2]}"#),
            (r#"{"a":1,"b":2}"#, r#"{"op":"remove","path":"/a"}"#, r#"{"b":2}"#),
            (r#"{"a":[1,2,3]}"#, r#"{"op":"remove","path":"/a/0"}"#, r#"{"a":[2,3]}"#),
            (r#"{"a/b":{"~":1}}"#, r#"{"op":"remove","path":"/a~1b/~0"}"#, r#"{"a/b":{}}"#),
            (r#"{"a":1}"#, r#"{"op":"move","from":"/a","path":"/b"}"#, r#"{"b":1}"#),
            (r#"{"a":1,"b":2}"#, r#"{"op":"move","from":"/a","path":"/b"}"#, r#"{"b":1}"#),
            (r#"{"a":[1,2],"b":3}"#, r#"{"op":"move","from":"/b","path":"/a/0"}"#, r#"{"a":[3,1,2]}"#),
            (r#"{"a":1}"#, r#"{"op":"move","from":"/a","path":"/a"}"#, r#"{"a":1}"#),
            (r#"{"ttl":5}"#, r#"{"op":"set","path":"/ttl","value":-1}"#, r#"{"ttl":-1}"#),
        ] {
            assert_eq!(patched(item, &format!("[{operation}]")).as_deref(), Ok(expected), "{operation}");
        }
    }

    #[test]
    fn incrementing_keeps_whole_numbers_whole_while_they_fit() {
        for (number, amount, expected) in [
            ("1", "2", "3"),
            ("1", "-2", "-1"),
            ("1", "0.5", "1.5"),
            ("1.5", "1", "2.5"),
            ("1.0", "1", "2.0"),
            ("9223372036854775807", "1", "9223372036854775808.0"),
            ("9007199254740993", "1", "9007199254740994"),
        ] {
            let operations = format!(r#"[{{"op":"incr","path":"/n","value":{amount}}}]"#);
            let result = patched(&format!(r#"{{"n":{number}}}"#), &operations).unwrap();
            assert_eq!(json(&result), json(&format!(r#"{{"n":{expected}}}"#)), "{number} + {amount}");
        }
        let create = r#"[{"op":"increment","path":"/n","value":2.5}]"#;
        assert_eq!(patched("{}", create).as_deref(), Ok(r#"{"n":2.5}"#));
        for (item, reason) in [
            (r#"{"n":"1"}"#, "a string is there"),
            (r#"{"n":null}"#, "a null is there"),
            (r#"{"n":1.7976931348623157e308}"#, "too large"),
        ] {
            let error = patched(item, r#"[{"op":"incr","path":"/n","value":1e308}]"#).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn operations_that_do_not_fit_say_which_and_why() {
        for (operation, reason) in [
            (
                r#"{"op":"add","path":"/x/y","value":1}"#,
                "add at '/x/y' is not possible, the place it would be in does",
            ),
            (r#"{"op":"add","path":"/n/y","value":1}"#, "is a number, not an object or array"),
            (r#"{"op":"add","path":"/list/3","value":1}"#, "'3' is not an index from 0 to 2 or '-'"),
            (r#"{"op":"add","path":"/list/01","value":1}"#, "'01' is not an index"),
            (r#"{"op":"set","path":"/list/2","value":1}"#, "'2' is not the index of one of the 2 items"),
            (r#"{"op":"set","path":"/list/-","value":1}"#, "'-' is not the index"),
            (
                r#"{"op":"replace","path":"/x","value":1}"#,
                "replace at '/x' is not possible, nothing is there",
            ),
            (r#"{"op":"remove","path":"/x"}"#, "remove at '/x' is not possible, nothing is there"),
            (r#"{"op":"remove","path":"/list/2"}"#, "'2' is not the index"),
            (r#"{"op":"incr","path":"/list/2","value":1}"#, "'2' is not the index"),
            (
                r#"{"op":"move","from":"/x","path":"/y"}"#,
                "move at '/y' is not possible, from '/x': nothing is there",
            ),
        ] {
            let operations = format!(r#"[{{"op":"add","path":"/first","value":1}},{operation}]"#);
            let error = patched(r#"{"n":1,"list":[1,2]}"#, &operations).unwrap_err();
            assert!(error.starts_with("For Operation(2): ") && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn malformed_patches_are_refused_by_name() {
        let eleven = format!("[{}]", [r#"{"op":"remove","path":"/a"}"#; 11].join(","));
        for (patch, reason) in [
            ("5", "must be an array or an object"),
            ("[]", "0 operations"),
            (eleven.as_str(), "11 operations"),
            ("{}", "'operations' must be an array"),
            (r#"{"operations":[],"conditions":""}"#, r#""conditions" is unknown"#),
            ("[1]", "must be an object, not 1"),
            (r#"[{"path":"/a"}]"#, "operation 1 must have a string 'op'"),
            (r#"[{"op":"add","path":"/a"}]"#, "operation 1 must have a 'value'"),
            (r#"[{"op":"copy","path":"/a"}]"#, r#"unknown 'op' "copy""#),
            (r#"[{"op":"add","value":1}]"#, "string 'path'"),
            (r#"[{"op":"add","path":"a","value":1}]"#, "must start with '/'"),
            (r#"[{"op":"add","path":"","value":1}]"#, "below the root"),
            (r#"[{"op":"move","path":"/a"}]"#, "string 'from'"),
            (r#"[{"op":"move","from":"/a","path":"/a/b"}]"#, "into itself"),
            (r#"[{"op":"incr","path":"/a","value":"1"}]"#, "which is no number"),
            (r#"[{"op":"remove","path":"/a","x":1}]"#, r#""x" is unknown"#),
            (r#"[{"op":"set","path":"/id","value":1}]"#, "keeps its id"),
            (r#"[{"op":"set","path":"/_ts","value":1}]"#, "property of the system"),
            (r#"[{"op":"move","from":"/_etag","path":"/a"}]"#, "property of the system"),
        ] {
            let error = Patch::from_value(&json(patch)).unwrap_err().to_string();
            assert!(error.contains(reason), "{patch}: {error}");
        }
    }

    #[test]
    fn the_partition_key_cannot_be_patched_from_above_or_below() {
        let key = PartitionKeyDefinition::from_value(&json(
            r#"{"paths":["/tenant","/a/b"],"kind":"MultiHash","version":2}"#,
        ))
        .unwrap();
        for (path, allowed) in [
            ("/tenant", false),
            ("/a", false),
            ("/a/b", false),
            ("/a/b/c", false),
            ("/a/c", true),
            ("/b", true),
            ("/tenants", true),
        ] {
            for operation in [
                format!(r#"[{{"op":"set","path":"{path}","value":1}}]"#),
                format!(r#"[{{"op":"move","from":"{path}","path":"/other"}}]"#),
            ] {
                let checked = Patch::from_value(&json(&operation)).unwrap().check_paths(&key);
                assert_eq!(checked.is_ok(), allowed, "{operation}: {checked:?}");
            }
        }
    }

    #[test]
    fn a_condition_is_a_filter() {
        let patch = |condition: &str| {
            Patch::from_value(&json(&format!(
                r#"{{"condition":{condition},"operations":[{{"op":"remove","path":"/a"}}]}}"#
            )))
        };
        let condition = patch(r#""from c where c.a = 1""#).unwrap().condition.unwrap();
        assert!(condition.matches(&json(r#"{"a":1}"#), &query::Context::new(0, 1)));
        assert!(!condition.matches(&json(r#"{"a":2}"#), &query::Context::new(0, 1)));
        assert_eq!(patch("null").unwrap().condition, None);
        assert!(matches!(patch(r#""c.a = 1""#), Err(PatchError::Condition(query::Error::Syntax { .. }))));
        assert!(matches!(patch("5"), Err(PatchError::Malformed { .. })));
    }
}
