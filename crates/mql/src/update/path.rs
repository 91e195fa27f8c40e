//! The paths of an update: dotted names, and three placeholders for elements of an array.
//!
//! `$` is the element that the filter found, `$[]` every element, `$[name]` those that the array filter of that name
//! matches. All three need an array before them, so none may come first.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::error::{Code, Error, Result};

/// Most parts of a path: deeper than any document.
const PARTS_MAX: usize = 200;

/// Where an operator applies.
#[derive(Debug, Clone)]
pub(super) struct UpdatePath {
    text: String,
    parts: Vec<Part>,
}

/// One part of such a path.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// A field, or an element by its position.
    Name(Name),
    /// `$`.
    Matched,
    /// `$[name]`; with an empty name `$[]`.
    Each(String),
}

/// The name of a field, which may also be the position of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    text: Arc<str>,
    index: Option<usize>,
}

impl Name {
    pub(super) fn new(text: &str) -> Name {
        let canonical = text == "0" || !text.starts_with('0');
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // A number beyond all arrays is a position nevertheless, but too far to pad to.
        let index = (canonical && digits).then(|| text.parse().unwrap_or(usize::MAX));
        Name { text: text.into(), index }
    }

    pub(super) fn of_index(index: usize) -> Name {
        Name { text: index.to_string().into(), index: Some(index) }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the position in an array.
    pub(super) fn index(&self) -> Option<usize> {
        self.index
    }
}

/// The order in which new fields come: numbers by their value, before everything else.
impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        match (self.index, other.index) {
            (Some(_), Some(_)) => {
                self.text.len().cmp(&other.text.len()).then_with(|| self.text.cmp(&other.text))
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => self.text.cmp(&other.text),
        }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl UpdatePath {
    /// Reads a path as an operator names it.
    pub(super) fn parse(text: &str) -> Result<UpdatePath> {
        if text.is_empty() {
            return Err(Error::new(Code::EMPTY_FIELD_NAME, "An empty update path is not valid."));
        }
        let names: Vec<&str> = text.split('.').take(PARTS_MAX + 1).collect();
        if names.len() > PARTS_MAX {
            return Err(Error::new(
                Code::OVERFLOW,
                format!("an update path has more than {PARTS_MAX} parts"),
            ));
        }
        if names.iter().any(|name| name.is_empty()) {
            let message =
                format!("The update path '{text}' contains an empty field name, which is not allowed.");
            return Err(Error::new(Code::EMPTY_FIELD_NAME, message));
        }
        let path = UpdatePath { text: text.to_owned(), parts: names.into_iter().map(Part::parse).collect() };
        path.check_places()?;
        Ok(path)
    }

    fn check_places(&self) -> Result<()> {
        let text = &self.text;
        if self.parts.iter().filter(|part| matches!(part, Part::Matched)).count() > 1 {
            let message = format!("Too many positional (i.e. '$') elements found in path '{text}'");
            return Err(Error::bad_value(message));
        }
        let first = match self.parts.first() {
            Some(Part::Matched) => "positional (i.e. '$')",
            Some(Part::Each(_)) => "array filter identifier (i.e. '$[<id>]')",
            Some(Part::Name(_)) | None => return Ok(()),
        };
        Err(Error::bad_value(format!("Cannot have {first} element in the first position in path '{text}'")))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the first so many parts as text.
    pub(super) fn prefix(&self, parts: usize) -> &str {
        let end =
            self.text.match_indices('.').nth(parts.saturating_sub(1)).map_or(self.text.len(), |(at, _)| at);
        &self.text[..end]
    }

    /// Returns the names, if there is no placeholder among them.
    pub(super) fn names(&self) -> Option<Vec<&Name>> {
        let names = self.parts.iter().map(|part| match part {
            Part::Name(name) => Some(name),
            Part::Matched | Part::Each(_) => None,
        });
        names.collect()
    }
}

impl fmt::Display for UpdatePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl Part {
    fn parse(text: &str) -> Part {
        if text == "$" {
            return Part::Matched;
        }
        match text.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']')) {
            Some(identifier) => Part::Each(identifier.to_owned()),
            None => Part::Name(Name::new(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_one_order() {
        let mut names = ["b", "10", "a", "9", "2a", "01", "99999999999999999999999"].map(Name::new);
        names.sort();
        assert_eq!(
            names.each_ref().map(Name::as_str),
            ["9", "10", "99999999999999999999999", "01", "2a", "a", "b"]
        );
    }

    #[test]
    fn a_prefix_is_cut_at_a_dot() {
        let path = UpdatePath::parse("a.b.$[].c").expect("a path");
        assert_eq!([1, 2, 3, 4].map(|parts| path.prefix(parts)), ["a", "a.b", "a.b.$[]", "a.b.$[].c"]);
        assert!(path.names().is_none());
    }

    #[test]
    fn the_words_for_elements_have_their_places() {
        for (path, code) in [
            ("", 56),
            ("a.", 56),
            (".a", 56),
            ("a..b", 56),
            ("$", 2),
            ("$.a", 2),
            ("$[]", 2),
            ("$[x].a", 2),
            ("a.$.b.$", 2),
        ] {
            let refused = UpdatePath::parse(path).expect_err(path);
            assert_eq!(refused.code, Code(code), "{path}");
        }
        for path in ["a", "a.$", "a.$.b", "a.$[].b.$[x]", "a.$.b.$[]", "$a", "a.$b", "a.$[", "a.0.01"] {
            assert!(UpdatePath::parse(path).is_ok(), "{path}");
        }
        assert!(UpdatePath::parse(&"a.".repeat(300)).is_err());
    }
}
