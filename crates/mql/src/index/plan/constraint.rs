//! The constraint of a filter on one field of an index.
//!
//! A constraint is a set of keys of which every matching document has at least one. Two such sets on one field may be met
//! by two different items of an array, so they are only intersected where the index has never seen an array; otherwise the
//! better one is taken. The same goes for two fields below one array, unless one `$elemMatch` has conditions on both and no
//! further array contains both: of `{a: {$elemMatch: {"b.x": 1, "b.y": 1}}}` two items of `b` may each meet one half.

use super::set::Set;
use super::values::Reader;
use crate::filter::{Node, Test};
use crate::path::FieldPath;

/// The known facts about the keys of one field.
#[derive(Debug, Clone)]
pub(super) struct Constraint {
    /// Every matching document has a key in it.
    pub(super) set: Set,
    /// Every document with a key in it matches, as far as this field is concerned.
    pub(super) exact: bool,
    /// The keys in it are those of existing fields, be they null.
    pub(super) present: bool,
    /// The `$elemMatch` that it comes from, and those around it.
    pub(super) groups: Vec<Group>,
}

/// An `$elemMatch`: all of its conditions hold for one item of the array that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    /// The address of its conditions, which identifies it.
    node: usize,
    /// How many names of the field's path lead to the array.
    depth: usize,
}

impl Constraint {
    /// Returns `true` if one key meets both constraints wherever a document does: one `$elemMatch` has conditions on both,
    /// at the last array that may contain both fields.
    pub(super) fn joins(&self, other: &Constraint, common_names: usize) -> bool {
        self.groups.iter().any(|group| group.depth >= common_names && other.groups.contains(group))
    }
}

/// A field of an index, and how to read conditions on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) path: &'a FieldPath,
    /// How many names of the path have been followed, within an `$elemMatch`.
    pub(super) within: usize,
    pub(super) reader: Reader<'a>,
    /// Whether the index has seen arrays.
    pub(super) multikey: bool,
}

impl Field<'_> {
    /// Numbers in a path are positions for some documents and names for others: nothing is known about missing values.
    fn has_position(self) -> bool {
        self.path.components().iter().any(|component| component.index().is_some())
    }

    fn is_at(self, path: &FieldPath) -> bool {
        let own = &self.path.components()[self.within..];
        own == path.components()
    }

    /// Returns the constraint of a condition on the field; `None` if there is none.
    pub(super) fn constraint(self, node: &Node) -> Option<Constraint> {
        match node {
            Node::And(nodes) => self.all(nodes.iter()),
            Node::Or(nodes) => self.any(nodes),
            Node::Nor(nodes) => {
                let found = nodes.iter().map(|node| self.negated(node)).collect::<Vec<_>>();
                self.merged(found, nodes.len())
            }
            Node::Not(inner) => self.negated(inner),
            Node::Field { path, test } => self.field(path, test),
            Node::False => Some(Constraint { set: Set::empty(), exact: true, present: true, groups: vec![] }),
            _ => None,
        }
    }

    /// Returns the constraint of several conditions that all have to hold.
    pub(super) fn all<'n>(self, nodes: impl Iterator<Item = &'n Node>) -> Option<Constraint> {
        let found: Vec<Option<Constraint>> = nodes.map(|node| self.constraint(node)).collect();
        let count = found.len();
        self.merged(found, count)
    }

    fn merged(self, found: Vec<Option<Constraint>>, conditions: usize) -> Option<Constraint> {
        let found: Vec<Constraint> = found.into_iter().flatten().collect();
        let complete = found.len() == conditions;
        if self.multikey {
            let single = found.len() == 1 && complete;
            let best = found.into_iter().min_by_key(|constraint| constraint.set.rank())?;
            return Some(Constraint { exact: best.exact && single, ..best });
        }
        let present = found.iter().any(|constraint| constraint.present);
        let exact = complete && found.iter().all(|constraint| constraint.exact);
        let groups = if found.len() == 1 { found[0].groups.clone() } else { Vec::new() };
        if found.is_empty() {
            return None;
        }
        let sets = found.into_iter().map(|constraint| constraint.set).collect();
        let (set, whole) = Set::intersection_of(sets);
        Some(Constraint { set, exact: exact && whole, present, groups })
    }

    fn any(self, nodes: &[Node]) -> Option<Constraint> {
        let branches: Vec<Constraint> =
            nodes.iter().map(|node| self.constraint(node)).collect::<Option<_>>()?;
        Some(Constraint {
            exact: branches.iter().all(|branch| branch.exact),
            present: branches.iter().all(|branch| branch.present),
            groups: Vec::new(),
            set: Set::union(branches.into_iter().map(|branch| branch.set)),
        })
    }

    fn field(self, path: &FieldPath, test: &Test) -> Option<Constraint> {
        if let Test::ElementFields(node) = test {
            return self.element(path, node);
        }
        if !self.is_at(path) {
            return None;
        }
        let keys = self.reader.keys(test)?;
        // A path that ends at a position finds the item there, and the test does not apply to its items.
        if self.has_position() && (keys.missing || matches!(test, Test::ElementValue(_) | Test::Exists)) {
            return None;
        }
        let exact = keys.exact && !self.has_position() && self.is_certain(&keys.set);
        Some(Constraint { exact, present: !keys.missing, groups: Vec::new(), set: keys.set })
    }

    /// Returns `true` if keys of this set always stand for an existing value: the key of an empty array is that of
    /// undefined, and below an array null may stand for an item without any fields.
    fn is_certain(self, set: &Set) -> bool {
        use bson::Kind;
        !set.meets(&Set::class(Kind::Undefined))
            && (self.path.len() == 1 || !set.meets(&Set::class(Kind::Null)))
    }

    /// Returns the constraint of a negation: all keys but those of the negated condition. Every document in the index
    /// has a key.
    fn negated(self, node: &Node) -> Option<Constraint> {
        let Node::Field { path, test } = node else {
            return match node {
                Node::Not(inner) => self.constraint(inner),
                Node::Or(nodes) => {
                    let found = nodes.iter().map(|node| self.negated(node)).collect::<Vec<_>>();
                    self.merged(found, nodes.len())
                }
                Node::And(nodes) if nodes.len() == 1 => self.negated(&nodes[0]),
                _ => None,
            };
        };
        if !self.is_at(path) || self.has_position() {
            return None;
        }
        if matches!(test, Test::Exists) {
            let null = Set::class(bson::Kind::Null);
            return Some(Constraint { set: null, exact: false, present: false, groups: Vec::new() });
        }
        let held = self.field(path, test).filter(|constraint| constraint.exact)?;
        // One key outside does not mean that all are, unless there is only one.
        let exact = !self.multikey && self.path.len() == 1;
        Some(Constraint { set: held.set.complement(), exact, present: false, groups: Vec::new() })
    }

    /// Returns the constraint of an `$elemMatch` on the fields of an item: a condition on one item holds for the keys made
    /// from it.
    fn element(self, path: &FieldPath, node: &Node) -> Option<Constraint> {
        let own = &self.path.components()[self.within..];
        if path.is_empty() || !own.starts_with(path.components()) || self.has_position() {
            return None;
        }
        let inner = Field { within: self.within + path.len(), ..self };
        let mut constraint = inner.constraint(node)?;
        constraint.groups.push(Group { node: std::ptr::from_ref(node).addr(), depth: inner.within });
        Some(Constraint { exact: false, ..constraint })
    }
}

/// Returns the constraints of those `$elemMatch` among these from which another constraint comes.
pub(super) fn of_groups<'n>(
    field: Field<'_>,
    nodes: impl Iterator<Item = &'n Node>,
    known: &Constraint,
) -> Vec<Constraint> {
    let is_known = |node: &Node| match node {
        Node::Field { test: Test::ElementFields(inner), .. } => {
            let address = std::ptr::from_ref::<Node>(inner).addr();
            known.groups.iter().any(|group| group.node == address)
        }
        _ => false,
    };
    nodes.filter(|node| is_known(node)).filter_map(|node| field.constraint(node)).collect()
}
