//! JSON pointers (RFC 6901), the paths of patch operations: `/a/0/-`, with `~1` for `/` and `~0` for `~`.
//!
//! Whether a token is a name, an index or the position after the last item depends on the document, so a [`Token`]
//! can be read in all three ways.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::limits;
use crate::value::Value;

/// The position in a document to which an operation applies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pointer(Vec<Token>);

/// One step of a [`Pointer`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Token(String);

impl Token {
    /// Returns the step as the name of a member.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Returns the step as an index into an array: digits without leading zeros.
    pub fn index(&self) -> Option<usize> {
        let digits = self.0.bytes().all(|byte| byte.is_ascii_digit());
        let canonical = self.0 == "0" || !self.0.starts_with('0');
        if digits && canonical { self.0.parse().ok() } else { None }
    }

    /// Returns `true` if the step stands for the position after the last item of an array.
    pub fn is_append(&self) -> bool {
        self.0 == "-"
    }
}

impl Pointer {
    /// Reads a pointer. The empty text is the whole document.
    pub fn parse(text: &str) -> Result<Pointer> {
        let invalid = |reason: &str| Error::invalid(format!("the path {text:?} is invalid: {reason}"));
        if text.len() > limits::PATH_BYTES {
            return Err(Error::invalid(format!("a path is longer than {} bytes", limits::PATH_BYTES)));
        }
        if text.is_empty() {
            return Ok(Pointer(Vec::new()));
        }
        let tokens = text.strip_prefix('/').ok_or_else(|| invalid("it must start with '/'"))?;
        if tokens.split('/').count() > limits::PATH_SEGMENTS {
            return Err(invalid("it has too many segments"));
        }
        let tokens = tokens.split('/').map(|token| {
            unescape(token).map(Token).ok_or_else(|| invalid("'~' must be followed by '0' or '1'"))
        });
        Ok(Pointer(tokens.collect::<Result<_>>()?))
    }

    /// Returns the steps from the root on.
    pub fn tokens(&self) -> &[Token] {
        &self.0
    }

    /// Returns `true` if this is the whole document.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the last step and the steps before it; `None` for the whole document.
    pub fn split_last(&self) -> Option<(&Token, &[Token])> {
        self.0.split_last()
    }

    /// Returns `true` if `other` is this position or lies inside it.
    pub fn is_prefix_of(&self, other: &Pointer) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Returns the value at this position.
    pub fn get<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(root, |value, token| match value {
            Value::Object(object) => object.get(token.name()),
            Value::Array(items) => items.get(token.index()?),
            _ => None,
        })
    }

    /// Returns a mutable reference to the value at this position.
    pub fn get_mut<'a>(&self, root: &'a mut Value) -> Option<&'a mut Value> {
        step_into(root, &self.0)
    }

    /// Returns a mutable reference to the parent and the last step; `None` for the whole document or a missing parent.
    pub fn parent_mut<'a>(&self, root: &'a mut Value) -> Option<(&'a mut Value, &Token)> {
        let (last, parents) = self.split_last()?;
        Some((step_into(root, parents)?, last))
    }
}

fn step_into<'a>(root: &'a mut Value, tokens: &[Token]) -> Option<&'a mut Value> {
    tokens.iter().try_fold(root, |value, token| match value {
        Value::Object(object) => object.get_mut(token.name()),
        Value::Array(items) => items.get_mut(token.index()?),
        _ => None,
    })
}

fn unescape(token: &str) -> Option<String> {
    let mut name = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        name.push(match c {
            '~' => match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            c => c,
        });
    }
    Some(name)
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|token| write!(f, "/{}", token.0.replace('~', "~0").replace('/', "~1")))
    }
}

impl FromStr for Pointer {
    type Err = Error;

    fn from_str(text: &str) -> Result<Pointer> {
        Pointer::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_json;

    #[test]
    fn pointers_reach_into_objects_and_arrays() {
        let mut root = parse_json(br#"{"a":[1,{"b/c":2,"~":3}],"":4,"0":5}"#).unwrap();
        for (text, found) in [
            ("/a/0", Some(1)),
            ("/a/1/b~1c", Some(2)),
            ("/a/1/~0", Some(3)),
            ("/", Some(4)),
            ("/0", Some(5)),
            ("/a/01", None),
            ("/a/-", None),
            ("/a/2", None),
            ("/a/0/x", None),
            ("/missing", None),
        ] {
            let pointer = Pointer::parse(text).unwrap();
            assert_eq!(pointer.get(&root), found.map(Value::Int).as_ref(), "{text}");
            assert_eq!(pointer.get_mut(&mut root).cloned(), found.map(Value::Int), "{text}");
            assert_eq!(pointer.to_string(), text);
        }
    }

    #[test]
    fn malformed_pointers_are_refused() {
        for text in ["a", "/~", "/~2", "/a~"] {
            assert!(Pointer::parse(text).is_err(), "{text}");
        }
        assert!(Pointer::parse(&"/a".repeat(129)).is_err());
    }

    #[test]
    fn the_parent_is_found_although_the_place_is_missing() {
        let mut root = parse_json(br#"{"a":{"list":[]}}"#).unwrap();
        let pointer = Pointer::parse("/a/list/-").unwrap();
        let (parent, last) = pointer.parent_mut(&mut root).unwrap();
        assert!(last.is_append());
        assert_eq!(parent, &Value::Array(vec![]));
    }
}
