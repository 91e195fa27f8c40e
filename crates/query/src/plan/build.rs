//! Constructors of syntax tree nodes that rewritten queries add.

use document::Value;

use super::info::SortOrder;
use crate::syntax::ast::{Binary, Name, Node, NodeKind, SelectItem, Span, Step};

/// The score of a row that has none: worse than every score. Six digits are what the service writes.
pub(super) const WORST: f64 = 1.79769e308;

/// The span of added nodes, to which no error refers.
const NOWHERE: Span = Span { start: 0, end: 0 };

pub(super) fn node(kind: NodeKind) -> Node {
    Node { kind, span: NOWHERE }
}

pub(super) fn name(text: impl Into<String>) -> Name {
    Name { text: text.into(), span: NOWHERE }
}

pub(super) fn identifier(text: &str) -> Node {
    node(NodeKind::Name(text.to_owned()))
}

pub(super) fn literal(value: impl Into<Value>) -> Node {
    node(NodeKind::Literal(value.into()))
}

/// Returns `source.member`.
pub(super) fn member(source: &str, member: &str) -> Node {
    let steps = vec![Step::Dot(name(member))];
    node(NodeKind::Path { base: Box::new(identifier(source)), steps })
}

pub(super) fn call(function: &str, arguments: Vec<Node>) -> Node {
    node(NodeKind::Call { name: name(function), udf: false, arguments })
}

pub(super) fn array(items: Vec<Node>) -> Node {
    node(NodeKind::Array(items))
}

pub(super) fn object<S: Into<String>>(members: impl IntoIterator<Item = (S, Node)>) -> Node {
    node(NodeKind::Object(members.into_iter().map(|(key, member)| (name(key), member)).collect()))
}

/// Returns `{"item": e}`, the form in which values that may be undefined are sent.
pub(super) fn item(value: Node) -> Node {
    object([("item", value)])
}

pub(super) fn binary(left: Node, operator: Binary, right: Node) -> Node {
    node(NodeKind::Chain { first: Box::new(left), rest: vec![(operator, right)] })
}

/// Returns a distance as a merge key: a missing one comes last, as it does from the server.
pub(super) fn distance(value: Node, order: SortOrder) -> Node {
    let worst = match order {
        SortOrder::Ascending => WORST,
        SortOrder::Descending => -WORST,
    };
    binary(value, Binary::Coalesce, literal(worst))
}

/// Returns `e AS alias`.
pub(super) fn aliased(value: Node, alias: &str) -> SelectItem {
    SelectItem { node: value, alias: Some(name(alias)) }
}

/// Returns `{documentdb-<text>}`, a placeholder that clients replace.
pub(super) fn placeholder(text: &str) -> Node {
    node(NodeKind::Placeholder(format!("documentdb-{text}")))
}
