//! A value of a JSON file together with its path, for messages.

use std::fmt::Display;

use anyhow::{Result, anyhow};
use document::Value;

/// A value and its path.
pub(super) struct Node<'a> {
    /// The path, such as `$.databases[0].id`.
    pub(super) path: String,
    pub(super) value: &'a Value,
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Node<'a> {
        Node { path: "$".to_owned(), value }
    }

    /// Returns an error about this value.
    pub(super) fn wrong(&self, why: impl Display) -> anyhow::Error {
        anyhow!("{}: {why}", self.path)
    }

    /// Refuses a value that is not an object, or has unknown members.
    pub(super) fn only(&self, known: &[&str]) -> Result<()> {
        let members = self.value.as_object().ok_or_else(|| self.wrong("it must be an object"))?;
        match members.iter().find(|(name, _)| !known.contains(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let name: String = name.chars().take(100).collect();
                Err(self.wrong(format!("'{name}' is not known here; known are: {}", known.join(", "))))
            }
        }
    }

    pub(super) fn member(&self, name: &str) -> Option<Node<'a>> {
        let value = self.value.get(name)?;
        Some(Node { path: format!("{}.{name}", self.path), value })
    }

    pub(super) fn required(&self, name: &str) -> Result<Node<'a>> {
        self.member(name).ok_or_else(|| self.wrong(format!("'{name}' is missing")))
    }

    /// Returns the values of a list; an empty one if there is no such member.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Node<'a>>> {
        let Some(node) = self.member(name) else { return Ok(Vec::new()) };
        let values = node.value.as_array().ok_or_else(|| node.wrong("it must be a list"))?;
        let element = |(position, value)| Node { path: format!("{}[{position}]", node.path), value };
        Ok(values.iter().enumerate().map(element).collect())
    }

    pub(super) fn text(&self) -> Result<&'a str> {
        self.value.as_str().ok_or_else(|| self.wrong("it must be text"))
    }
}
