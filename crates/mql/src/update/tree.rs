//! The operators of an update, sorted into a tree by their paths.
//!
//! The tree finds conflicts: two operators may share a part of their paths but not the end, and none may end within the
//! path of another. It is also the order in which operators apply and new fields appear: by name, numbers as numbers.
//!
//! ```text
//! {$set: {"a.b": 1, "a.c.$[x]": 2}, $inc: {d: 1}}        a -+- b    $set 1
//!                                                           +- c -- [x]    $set 2
//!                                                        d    $inc 1
//! ```
//!
//! Only a document shows which element `$` stands for, and which elements an array filter matches. Operators that meet in
//! one element are merged then, and may conflict.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::update::operator::Operator;
use crate::update::path::{Name, Part, UpdatePath};

/// A node of the tree.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Operators at fields of a document, or at elements by their positions.
    Fields(Fields),
    /// Operators at elements of an array by the array filter they pass; the empty name is every element.
    Elements(BTreeMap<String, Node>),
    /// An operator at the end of this path.
    Leaf(Arc<Operator>),
}

/// The operators at the fields of a document.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    pub(super) named: BTreeMap<Name, Node>,
    /// The operators at the element that the filter found.
    pub(super) matched: Option<Box<Node>>,
}

impl Fields {
    /// Adds an operator at the end of a path.
    pub(super) fn insert(&mut self, path: &UpdatePath, operator: Operator) -> Result<()> {
        let leaf = Node::Leaf(Arc::new(operator));
        let Some((Part::Name(name), rest)) = path.parts().split_first() else {
            return Err(conflict(path, 0));
        };
        if let Some(node) = insert_into(self.named.get_mut(name), path, rest, leaf)? {
            self.named.insert(name.clone(), node);
        }
        Ok(())
    }

    /// Returns the same with the operators at `$` moved to the position that it stands for.
    pub(super) fn with_matched(
        &self,
        position: Name,
        place: &str,
        context: &Context,
    ) -> Result<BTreeMap<Name, Node>> {
        let mut named = self.named.clone();
        if let Some(matched) = &self.matched {
            let merged = match named.get(&position) {
                Some(other) => merge(other, matched, &format!("{place}.{position}"), context)?,
                None => (**matched).clone(),
            };
            named.insert(position, merged);
        }
        Ok(named)
    }
}

impl Node {
    /// Returns the rest of the path of an operator that refuses paths into a number or a text, last name first.
    pub(super) fn needs_way(&self) -> Option<Vec<String>> {
        let below = |name: String, node: &Node| {
            let mut path = node.needs_way()?;
            path.push(name);
            Some(path)
        };
        match self {
            Node::Leaf(operator) => operator.needs_way().then(Vec::new),
            Node::Fields(fields) => {
                let named = fields.named.iter().find_map(|(name, node)| below(name.to_string(), node));
                named.or_else(|| below("$".to_owned(), fields.matched.as_deref()?))
            }
            Node::Elements(elements) => {
                elements.iter().find_map(|(identifier, node)| below(format!("$[{identifier}]"), node))
            }
        }
    }
}

/// Adds a leaf below a node that may exist; returns the new node if it does not.
fn insert_into(
    place: Option<&mut Node>,
    path: &UpdatePath,
    rest: &[Part],
    leaf: Node,
) -> Result<Option<Node>> {
    let depth = path.parts().len() - rest.len();
    let Some((part, behind)) = rest.split_first() else {
        return if place.is_some() { Err(conflict(path, depth)) } else { Ok(Some(leaf)) };
    };
    let mut fresh = None;
    let node = place.unwrap_or_else(|| {
        fresh.insert(match part {
            Part::Name(_) | Part::Matched => Node::Fields(Fields::default()),
            Part::Each(_) => Node::Elements(BTreeMap::new()),
        })
    });
    match (node, part) {
        (Node::Fields(fields), Part::Name(name)) => {
            if let Some(child) = insert_into(fields.named.get_mut(name), path, behind, leaf)? {
                fields.named.insert(name.clone(), child);
            }
        }
        (Node::Fields(fields), Part::Matched) => {
            if let Some(child) = insert_into(fields.matched.as_deref_mut(), path, behind, leaf)? {
                fields.matched = Some(Box::new(child));
            }
        }
        (Node::Elements(elements), Part::Each(identifier)) => {
            if let Some(child) = insert_into(elements.get_mut(identifier), path, behind, leaf)? {
                elements.insert(identifier.clone(), child);
            }
        }
        _ => return Err(conflict(path, depth)),
    }
    Ok(fresh)
}

fn conflict(path: &UpdatePath, depth: usize) -> Error {
    let message = format!("Updating the path '{path}' would create a conflict at '{}'", path.prefix(depth));
    Error::new(Code::CONFLICTING_UPDATE_OPERATORS, message)
}

/// Merges two nodes whose operators apply to one element.
pub(super) fn merge(one: &Node, other: &Node, place: &str, context: &Context) -> Result<Node> {
    match (one, other) {
        (Node::Fields(one), Node::Fields(other)) => {
            let named = merge_all(&one.named, &other.named, place, context)?;
            let matched = match (&one.matched, &other.matched) {
                (Some(one), Some(other)) => {
                    Some(Box::new(merge(one, other, &format!("{place}.$"), context)?))
                }
                (one, other) => one.clone().or_else(|| other.clone()),
            };
            Ok(Node::Fields(Fields { named, matched }))
        }
        (Node::Elements(one), Node::Elements(other)) => {
            Ok(Node::Elements(merge_all(one, other, place, context)?))
        }
        _ => {
            let message = format!("Update created a conflict at '{place}'");
            Err(Error::new(Code::CONFLICTING_UPDATE_OPERATORS, message))
        }
    }
}

fn merge_all<K: Ord + Clone + std::fmt::Display>(
    one: &BTreeMap<K, Node>,
    other: &BTreeMap<K, Node>,
    place: &str,
    context: &Context,
) -> Result<BTreeMap<K, Node>> {
    context.spend((one.len() + other.len()) as u64)?;
    let mut all = one.clone();
    for (key, node) in other {
        let merged = match one.get(key) {
            Some(known) => merge(known, node, &format!("{place}.{key}"), context)?,
            None => node.clone(),
        };
        all.insert(key.clone(), merged);
    }
    Ok(all)
}
