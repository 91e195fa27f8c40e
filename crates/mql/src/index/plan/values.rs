//! The values that pass a test, and the keys of which a matching document has at least one.

use bson::{Collation, Extent, Kind, Value, ValueRef};

use super::set::Set;
use crate::filter::{Comparison, Members, Node, Pattern, Test};

/// The values that pass a test, each by itself.
#[derive(Debug, Clone)]
pub(super) struct Leaves {
    pub(super) set: Set,
    /// Whether a missing value passes.
    pub(super) missing: bool,
    /// Whether exactly these pass; otherwise some of them may not.
    pub(super) exact: bool,
}

impl Leaves {
    fn exactly(set: Set) -> Leaves {
        Leaves { set, missing: false, exact: true }
    }

    fn at_most(set: Set) -> Leaves {
        Leaves { set, missing: false, exact: false }
    }
}

/// How strings compare, on both sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) index: &'a Collation,
    pub(super) query: &'a Collation,
}

impl Reader<'_> {
    /// Returns `true` if the index orders a value as the filter compares it.
    fn agrees_on(self, value: &Value) -> bool {
        let has_text = matches!(
            value,
            Value::String(_)
                | Value::Symbol(_)
                | Value::Document(_)
                | Value::Array(_)
                | Value::JavaScriptWithScope { .. }
        );
        !has_text || self.index == self.query
    }

    /// Returns the values that pass a test; `None` if nothing is known.
    pub(super) fn leaves(self, test: &Test) -> Option<Leaves> {
        Some(match test {
            Test::Compare(comparison, operand) => self.compared(*comparison, operand),
            Test::In(members) => self.members(members),
            Test::Exists => Leaves::exactly(Set::full()),
            Test::Type(types) => Leaves::at_most(Set::union(types.kinds().map(Set::class))),
            Test::Pattern(pattern) => Leaves::at_most(self.pattern(pattern)),
            Test::Mod(..) => Leaves::at_most(Set::class(Kind::Double)),
            Test::Bits(_) => {
                Leaves::at_most(Set::union([Set::class(Kind::Double), Set::class(Kind::Binary)]))
            }
            Test::Size(_) => Leaves::at_most(Set::class(Kind::Array)),
            _ => return None,
        })
    }

    fn compared(self, comparison: Comparison, operand: &Value) -> Leaves {
        let missing = match operand.kind() {
            Kind::Null => {
                matches!(comparison, Comparison::Equal | Comparison::LessOrEqual | Comparison::GreaterOrEqual)
            }
            Kind::MinKey => matches!(comparison, Comparison::Greater | Comparison::GreaterOrEqual),
            Kind::MaxKey => matches!(comparison, Comparison::Less | Comparison::LessOrEqual),
            _ => false,
        };
        Leaves { missing, ..self.compared_values(comparison, operand) }
    }

    fn compared_values(self, comparison: Comparison, operand: &Value) -> Leaves {
        let class = Set::class(operand.kind());
        if !self.agrees_on(operand) {
            return Leaves::at_most(class);
        }
        let exact = bson::encode_key(operand.view(), self.index, &mut Vec::new()) == Extent::Whole;
        // Ordered against a number, NaN is neither less nor greater; as an operand it only equals itself.
        let nan = matches!(operand, Value::Double(number) if number.is_nan())
            || matches!(operand, Value::Decimal128(number) if number.is_nan());
        let strict = matches!(comparison, Comparison::Less | Comparison::Greater);
        if comparison == Comparison::Equal || nan && !strict {
            return Leaves { set: Set::point(operand.view(), self.index), missing: false, exact };
        }
        if nan {
            return Leaves::exactly(Set::empty());
        }
        let side = match comparison {
            Comparison::Less | Comparison::LessOrEqual => Set::up_to(operand.view(), self.index, !strict),
            _ => Set::down_to(operand.view(), self.index, !strict),
        };
        let set = match operand.kind() {
            // These compare with everything.
            Kind::MinKey | Kind::MaxKey => side,
            kind if kind.is_number() => {
                let numbers = Set::down_to(ValueRef::Double(f64::NEG_INFINITY), self.index, true);
                side.intersection(&class).intersection(&numbers)
            }
            _ => side.intersection(&class),
        };
        Leaves { set, missing: false, exact }
    }

    fn members(self, members: &Members) -> Leaves {
        let values: Vec<Leaves> =
            members.values().iter().map(|value| self.compared(Comparison::Equal, value)).collect();
        let exact = members.patterns().is_empty() && values.iter().all(|value| value.exact);
        let missing = values.iter().any(|value| value.missing);
        let patterns = members.patterns().iter().map(|pattern| self.pattern(pattern));
        let set = Set::union(values.into_iter().map(|value| value.set).chain(patterns));
        Leaves { set, missing, exact }
    }

    /// Returns the strings that may match, and the regular expression itself as a value.
    fn pattern(self, pattern: &Pattern) -> Set {
        let strings = match pattern.prefix() {
            Some(prefix) if self.index.is_simple() => Set::beginning_with(prefix),
            _ => Set::class(Kind::String),
        };
        let itself = Value::Regex(bson::Regex {
            pattern: pattern.pattern().to_owned(),
            options: pattern.options().to_owned(),
        });
        Set::union([strings, Set::point(itself.view(), &Collation::simple())])
    }

    /// Returns the items of an array that pass conditions on the item itself. The paths in the node are empty.
    pub(super) fn items(self, node: &Node) -> Set {
        self.item_leaves(node).set
    }

    fn item_leaves(self, node: &Node) -> Leaves {
        let unknown = || Leaves::at_most(Set::full());
        match node {
            Node::And(nodes) => {
                let all: Vec<Leaves> = nodes.iter().map(|node| self.item_leaves(node)).collect();
                let exact = all.iter().all(|one| one.exact);
                let (set, whole) = Set::intersection_of(all.into_iter().map(|one| one.set).collect());
                Leaves { set, missing: false, exact: exact && whole }
            }
            Node::Or(nodes) => {
                let branches: Vec<Leaves> = nodes.iter().map(|node| self.item_leaves(node)).collect();
                let exact = branches.iter().all(|branch| branch.exact);
                Leaves {
                    set: Set::union(branches.into_iter().map(|branch| branch.set)),
                    missing: false,
                    exact,
                }
            }
            Node::Not(inner) => match self.item_leaves(inner) {
                leaves if leaves.exact => Leaves::exactly(leaves.set.complement()),
                _ => unknown(),
            },
            Node::Field { test, .. } => self.leaves(test).unwrap_or_else(unknown),
            _ => unknown(),
        }
    }

    /// Returns the keys of which a document has one if a value at the path passes the test; `None` if nothing is known.
    ///
    /// A key stands for a value or for an item of an array, so where an array as a whole may pass, only equality helps: an
    /// array that equals another begins with the same item.
    pub(super) fn keys(self, test: &Test) -> Option<Leaves> {
        let arrays = Set::class(Kind::Array);
        let equal = |operand: &Value| match operand {
            Value::Array(items) if self.agrees_on(operand) => {
                let first = items.first().map_or(ValueRef::Undefined, Value::view);
                let set = Set::union([Set::point(operand.view(), self.index), Set::point(first, self.index)]);
                Some(Leaves::at_most(set))
            }
            Value::Array(_) => None,
            operand => Some(self.compared(Comparison::Equal, operand)),
        };
        match test {
            Test::Compare(Comparison::Equal, operand) => equal(operand),
            // An array of nothing but such a key is on the right side of it as well, while its item is not.
            Test::Compare(_, Value::MinKey | Value::MaxKey) => None,
            Test::In(members) => {
                let mut leaves = self.members(members);
                if leaves.set.meets(&arrays) {
                    let points: Option<Vec<Leaves>> = members.values().iter().map(equal).collect();
                    let patterns = members.patterns().iter().map(|pattern| self.pattern(pattern));
                    leaves.set = Set::union(points?.into_iter().map(|leaves| leaves.set).chain(patterns));
                    leaves.exact = false;
                }
                Some(leaves)
            }
            Test::Exists => Some(Leaves::at_most(Set::full())),
            Test::ElementValue(node) => Some(Leaves::at_most(self.items(node))),
            test => {
                let leaves = self.leaves(test)?;
                if leaves.set.meets(&arrays) { None } else { Some(leaves) }
            }
        }
    }
}
