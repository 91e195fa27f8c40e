//! Property paths of container definitions: `/pk`, `/address/city`, `/"odd name"/x`.
//!
//! Not JSON pointers (those are in `pointer`): no escapes, no array indexes, and a segment may be quoted with `"` or
//! `'`, where a backslash takes the next character as it is. The text is kept as it was written, because clients get
//! their definition back; equality compares the segments.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::limits;
use crate::value::view::ValueRef;

/// A path from the root of a document to a property.
#[derive(Debug, Clone)]
pub struct Path {
    text: String,
    segments: Vec<String>,
}

impl Path {
    /// Reads a path. There is at least one segment and none is empty, unless quoted.
    pub fn parse(text: &str) -> Result<Path> {
        let invalid = |reason: &str| Error::invalid(format!("the path {text:?} is invalid: {reason}"));
        if text.len() > limits::PATH_BYTES {
            return Err(Error::invalid(format!("a path is longer than {} bytes", limits::PATH_BYTES)));
        }
        let mut segments = Vec::new();
        let mut rest = text.strip_prefix('/').ok_or_else(|| invalid("it must start with '/'"))?;
        loop {
            if segments.len() == limits::PATH_SEGMENTS {
                return Err(invalid("it has too many segments"));
            }
            let (segment, after) = match rest.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    quoted(&rest[1..], quote).ok_or_else(|| invalid("a quote is not closed"))?
                }
                Some('/') | None => return Err(invalid("a segment is empty")),
                Some(_) => {
                    let end = rest.find('/').unwrap_or(rest.len());
                    (rest[..end].to_owned(), &rest[end..])
                }
            };
            segments.push(segment);
            match after.strip_prefix('/') {
                Some(next) => rest = next,
                None if after.is_empty() => break,
                None => return Err(invalid("'/' must follow a closing quote")),
            }
        }
        Ok(Path { text: text.to_owned(), segments })
    }

    /// Returns the property names from the root on.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// Returns the text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the value at this path; `None` if a property is missing or its parent is not an object.
    pub fn read<'a>(&self, root: ValueRef<'a>) -> Option<ValueRef<'a>> {
        self.segments.iter().try_fold(root, |value, name| value.get(name))
    }
}

/// Returns the text up to the closing quote, and what follows the quote.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut segment = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => segment.push(chars.next()?.1),
            c if c == quote => return Some((segment, &text[at + c.len_utf8()..])),
            c => segment.push(c),
        }
    }
    None
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.segments == other.segments
    }
}

impl Eq for Path {}

impl std::hash::Hash for Path {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.segments.hash(state);
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Path {
    type Err = Error;

    fn from_str(text: &str) -> Result<Path> {
        Path::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_split_into_names() {
        for (text, names) in [
            ("/pk", &["pk"][..]),
            ("/a/b", &["a", "b"]),
            (r#"/"a b"/c"#, &["a b", "c"]),
            (r#"/'x/y'/"q\"r""#, &["x/y", "q\"r"]),
            ("/naïve-name", &["naïve-name"]),
            (r#"/"""#, &[""]),
        ] {
            let path = Path::parse(text).unwrap();
            assert_eq!(path.segments(), names, "{text}");
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn malformed_paths_say_what_is_wrong() {
        for (text, reason) in [
            ("", "must start with '/'"),
            ("pk", "must start with '/'"),
            ("/", "segment is empty"),
            ("/a//b", "segment is empty"),
            ("/a/", "segment is empty"),
            ("/\"a", "not closed"),
            ("/\"a\"b", "must follow"),
        ] {
            let error = Path::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(Path::parse(&"/a".repeat(129)).is_err());
        assert!(Path::parse(&"/a".repeat(128)).is_ok());
    }

    #[test]
    fn a_path_is_the_same_however_it_is_quoted() {
        assert_eq!(Path::parse("/a/b").unwrap(), Path::parse(r#"/"a"/'b'"#).unwrap());
    }
}
