//! Walks over the tree of the text.

use std::borrow::Cow;

use super::call::aggregate_kind;
use crate::syntax::ast::{Node, NodeKind, Step};

/// Visits the expressions directly inside of one, those of subqueries excepted.
pub(super) fn each_child<'n>(node: &'n Node, visit: &mut dyn FnMut(&'n Node)) {
    match &node.kind {
        NodeKind::Literal(_)
        | NodeKind::Undefined
        | NodeKind::Parameter(_)
        | NodeKind::Name(_)
        | NodeKind::Subquery { .. }
        | NodeKind::Placeholder(_) => {}
        NodeKind::Path { base, steps } => {
            visit(base);
            for step in steps {
                if let Step::Index(index) = step {
                    visit(index);
                }
            }
        }
        NodeKind::Array(items) | NodeKind::Call { arguments: items, .. } => items.iter().for_each(visit),
        NodeKind::Object(members) => members.iter().for_each(|(_, member)| visit(member)),
        NodeKind::Unary { operand, .. } => visit(operand),
        NodeKind::Chain { first, rest } => {
            visit(first);
            for (_, operand) in rest {
                visit(operand);
            }
        }
        NodeKind::Conditional { condition, then, otherwise } => {
            for part in [condition, then, otherwise] {
                visit(part);
            }
        }
        NodeKind::In { value, list, .. } => {
            visit(value);
            list.iter().for_each(visit);
        }
        NodeKind::Between { value, low, high, .. } => {
            for part in [value, low, high] {
                visit(part);
            }
        }
        NodeKind::Like { value, pattern, .. } => {
            visit(value);
            visit(pattern);
        }
    }
}

/// Returns `true` if an aggregate stands anywhere in the expression, subqueries excepted.
pub(crate) fn has_aggregate(node: &Node) -> bool {
    let mut found = is_aggregate(node);
    each_child(node, &mut |child| found = found || has_aggregate(child));
    found
}

/// Returns `true` if an aggregate or a subquery stands anywhere in the expression.
pub(crate) fn has_aggregate_or_subquery(node: &Node) -> bool {
    let mut found = is_aggregate(node) || matches!(node.kind, NodeKind::Subquery { .. });
    each_child(node, &mut |child| found = found || has_aggregate_or_subquery(child));
    found
}

/// Returns `true` if this is the call of an aggregate.
pub(super) fn is_aggregate(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Call { name, udf: false, .. } if aggregate_kind(&name.text).is_some())
}

/// Returns the name of a select list's member that has no alias: the last part of a path.
pub(crate) fn natural_name(node: &Node) -> Option<&str> {
    match &node.kind {
        NodeKind::Name(name) => Some(name),
        NodeKind::Path { steps, .. } => match steps.last()? {
            Step::Dot(name) => Some(&name.text),
            Step::Index(Node { kind: NodeKind::Literal(value), .. }) => value.as_str(),
            Step::Index(_) => None,
        },
        _ => None,
    }
}

/// Returns `true` if the expression has the form of a path: a name and constant steps.
pub(super) fn is_path(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Name(_) => true,
        NodeKind::Path { base, steps } => {
            matches!(base.kind, NodeKind::Name(_))
                && steps.iter().all(|step| match step {
                    Step::Dot(_) => true,
                    Step::Index(index) => {
                        matches!(index.kind, NodeKind::Literal(_) | NodeKind::Parameter(_))
                    }
                })
        }
        _ => false,
    }
}

/// Returns the path that an expression stands for: itself, or for `{"t": c.text}.t` the member, `c.text`.
pub(super) fn as_path(node: &Node) -> Option<Cow<'_, Node>> {
    if is_path(node) {
        return Some(Cow::Borrowed(node));
    }
    let NodeKind::Path { base, steps } = &node.kind else { return None };
    let NodeKind::Object(members) = &base.kind else { return None };
    let (first, rest) = steps.split_first()?;
    let name = match first {
        Step::Dot(name) => name.text.as_str(),
        Step::Index(Node { kind: NodeKind::Literal(name), .. }) => name.as_str()?,
        Step::Index(_) => return None,
    };
    let (_, member) = members.iter().rfind(|(known, _)| known.text == name)?;
    if rest.is_empty() {
        return as_path(member);
    }
    let kind = match &member.kind {
        NodeKind::Path { base, steps } => {
            NodeKind::Path { base: base.clone(), steps: steps.iter().chain(rest).cloned().collect() }
        }
        _ => NodeKind::Path { base: Box::new(member.clone()), steps: rest.to_vec() },
    };
    let path = Node { kind, span: node.span };
    as_path(&path).map(|path| Cow::Owned(path.into_owned()))
}
