//! Whether every document that matches a filter is in a partial index.
//!
//! Simple on purpose: a condition of the index follows from a condition of the filter on the same path whose values all
//! pass it too. An implication that cannot be shown in this way counts as false.

use super::values::Reader;
use crate::filter::{Node, Test};
use crate::path::FieldPath;

/// Returns `true` if every document that passes all these conditions passes `partial`.
pub(super) fn all_imply(conditions: &[&Node], partial: &Node, reader: Reader<'_>) -> bool {
    let one_implies = || conditions.iter().any(|condition| implies(condition, partial, reader));
    match partial {
        Node::And(wanted) => wanted.iter().all(|wanted| all_imply(conditions, wanted, reader)),
        Node::Or(branches) => {
            one_implies() || branches.iter().any(|branch| all_imply(conditions, branch, reader))
        }
        Node::True => true,
        _ => one_implies(),
    }
}

/// Returns `true` if every document that passes `filter` passes `partial`.
fn implies(filter: &Node, partial: &Node, reader: Reader<'_>) -> bool {
    match partial {
        Node::True => true,
        Node::And(wanted) => wanted.iter().all(|wanted| implies(filter, wanted, reader)),
        _ if matches!(filter, Node::False) => true,
        _ => match filter {
            Node::And(given) => {
                given.iter().any(|given| implies(given, partial, reader))
                    || one_branch(filter, partial, reader)
            }
            Node::Or(given) => given.iter().all(|given| implies(given, partial, reader)),
            Node::Field { path, test } => match partial {
                Node::Field { path: wanted, test: wanted_test } => {
                    path == wanted && test_implies(test, wanted_test, reader)
                        || element_implies(path, test, wanted, wanted_test, reader)
                }
                _ => one_branch(filter, partial, reader),
            },
            _ => false,
        },
    }
}

fn one_branch(filter: &Node, partial: &Node, reader: Reader<'_>) -> bool {
    match partial {
        Node::Or(branches) => branches.iter().any(|branch| implies(filter, branch, reader)),
        _ => false,
    }
}

/// Returns `true` if a value that passes the one test exists only where one that passes the other does.
fn test_implies(given: &Test, wanted: &Test, reader: Reader<'_>) -> bool {
    if let Test::ElementValue(node) = given {
        // Its items are values at the path.
        let items = reader.items(node);
        return reader.leaves(wanted).is_some_and(|wanted| wanted.exact && items.is_within(&wanted.set));
    }
    // `$exists` applies to a field as a whole, the rest also to its items; and a field with items exists.
    let (Some(given_leaves), Some(wanted_leaves)) = (reader.leaves(given), reader.leaves(wanted)) else {
        return false;
    };
    if given_leaves.missing && !wanted_leaves.missing {
        return false;
    }
    if let (Test::Type(given), Test::Type(wanted)) = (given, wanted) {
        return given.kinds().all(|kind| wanted.contains(kind));
    }
    wanted_leaves.exact && given_leaves.set.is_within(&wanted_leaves.set)
}

/// Returns `true` if an `$elemMatch` on the fields of an item implies a condition on the paths below.
fn element_implies(
    path: &FieldPath,
    test: &Test,
    wanted: &FieldPath,
    wanted_test: &Test,
    reader: Reader<'_>,
) -> bool {
    let Test::ElementFields(node) = test else { return false };
    let below = path.len() < wanted.len() && path.is_prefix_of(wanted);
    if !below {
        return false;
    }
    let rest = FieldPath::of(wanted.names().skip(path.len()));
    implies(node, &Node::Field { path: rest, test: wanted_test.clone() }, reader)
}
