//! The paths of an indexing policy: `/a/?` (the value at `a`), `/a/*` (everything below `a`), `/a/[]/b/?` (through
//! the items of an array), `/"odd name"/?`.
//!
//! Not [`document::Path`], which names one property and has neither wildcards nor a last step that says what is
//! meant.

use document::Value;
use document::limits::{PATH_BYTES, PATH_SEGMENTS};

use crate::types::definition_error::{Result, invalid};

/// A set of places in an item.
#[derive(Debug, Clone)]
pub struct IndexPath {
    text: String,
    /// The steps down from the root.
    pub steps: Vec<Step>,
    /// What the path covers at its end.
    pub reach: Reach,
}

/// One step down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Enters a property.
    Property(String),
    /// Into every item of an array.
    Items,
}

/// The last step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// `?`: the scalar there.
    Scalar,
    /// `*`: everything below.
    Subtree,
}

impl IndexPath {
    /// Parses a path. `/` is an old way to write `/*`.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > PATH_BYTES {
            return Err(invalid(format!("An indexing path is longer than {PATH_BYTES} bytes.")));
        }
        if matches!(text, "/" | "/*") {
            return Ok(Self::root());
        }
        let refuse = |position: usize, reason: &str| {
            invalid(format!(
                "The indexing path '{text}' could not be accepted, failed near position '{position}': {reason}."
            ))
        };
        let mut steps = Vec::new();
        let mut position = 0;
        loop {
            if !text[position..].starts_with('/') {
                return Err(refuse(position, "every step starts with '/', and the last one is '?' or '*'"));
            }
            position += 1;
            if steps.len() == PATH_SEGMENTS {
                return Err(refuse(position, "the path has too many steps"));
            }
            match &text[position..] {
                "?" if steps.is_empty() => {
                    return Err(refuse(position, "the root itself has no scalar value"));
                }
                "?" => return Ok(Self { text: text.to_owned(), steps, reach: Reach::Scalar }),
                "*" => return Ok(Self { text: text.to_owned(), steps, reach: Reach::Subtree }),
                rest => {
                    let (step, length) = step(rest).map_err(|reason| refuse(position, reason))?;
                    steps.push(step);
                    position += length;
                }
            }
        }
    }

    /// Reads the member `path` of an entry.
    pub(super) fn from_value(value: &Value) -> Result<Self> {
        Self::parse(crate::types::definition_error::text(value, "path")?)
    }

    /// Returns `/*`, the whole item.
    pub fn root() -> Self {
        Self { text: "/*".to_owned(), steps: Vec::new(), reach: Reach::Subtree }
    }

    /// Returns `/"_etag"/?`, which no container indexes by default.
    pub fn etag() -> Self {
        let steps = vec![Step::Property("_etag".to_owned())];
        Self { text: "/\"_etag\"/?".to_owned(), steps, reach: Reach::Scalar }
    }

    /// Returns whether this is the whole item.
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for IndexPath {
    /// Compares what is meant, not how it is quoted.
    fn eq(&self, other: &Self) -> bool {
        self.steps == other.steps && self.reach == other.reach
    }
}

/// Returns the step at the start of `text`, and how many bytes it takes.
fn step(text: &str) -> std::result::Result<(Step, usize), &'static str> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
    let Some(quote) = quote else {
        let name = &text[..text.find('/').unwrap_or(text.len())];
        return match name {
            "" => Err("a step is empty"),
            "[]" => Ok((Step::Items, 2)),
            "?" | "*" => Err("'?' and '*' stand only at the end"),
            _ if name.contains(['"', '\'', '*', '?', '[', ']']) => {
                Err("a name with special characters must be quoted")
            }
            _ => Ok((Step::Property(name.to_owned()), name.len())),
        };
    };
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next().ok_or("a quote is not closed")?.1),
            c if c == quote => return Ok((Step::Property(name), at + 1)),
            c => name.push(c),
        }
    }
    Err("a quote is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_step_by_step() {
        let property = |name: &str| Step::Property(name.to_owned());
        for (text, steps, reach) in [
            ("/*", vec![], Reach::Subtree),
            ("/", vec![], Reach::Subtree),
            ("/a/?", vec![property("a")], Reach::Scalar),
            ("/a/b/*", vec![property("a"), property("b")], Reach::Subtree),
            ("/a/[]/b/?", vec![property("a"), Step::Items, property("b")], Reach::Scalar),
            ("/\"a b\"/'c/d'/?", vec![property("a b"), property("c/d")], Reach::Scalar),
            ("/\"q\\\"*\"/*", vec![property("q\"*")], Reach::Subtree),
            ("/a-b/?", vec![property("a-b")], Reach::Scalar),
        ] {
            let path = IndexPath::parse(text).unwrap();
            assert_eq!((path.steps, path.reach), (steps, reach), "{text}");
        }
        assert_eq!(IndexPath::parse("/_etag/?").unwrap(), IndexPath::etag());
    }

    #[test]
    fn malformed_paths_say_where_and_why() {
        for (text, position, reason) in [
            ("", 0, "starts with '/'"),
            ("a/?", 0, "starts with '/'"),
            ("/a", 2, "the last one is '?' or '*'"),
            ("/a/", 3, "empty"),
            ("//?", 1, "empty"),
            ("/?", 1, "root"),
            ("/a/?/b/?", 3, "only at the end"),
            ("/*/b/?", 1, "only at the end"),
            ("/\"a/?", 1, "not closed"),
            ("/\"a\"b/?", 4, "starts with '/'"),
            ("/a*b/?", 1, "quoted"),
        ] {
            let error = IndexPath::parse(text).unwrap_err().to_string();
            assert!(
                error.contains(&format!("position '{position}'")) && error.contains(reason),
                "{text}: {error}"
            );
        }
        assert!(IndexPath::parse(&format!("{}/?", "/a".repeat(200))).is_err());
        assert!(IndexPath::parse(&format!("/{}/?", "a".repeat(10_000))).is_err());
    }
}
