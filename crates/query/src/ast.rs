//! The query as written: what the parser found, with the place of everything, before any name is looked up.
//!
//! The tree is flat where the language is: `a OR b OR c` is one node with three children. So the height of a
//! tree is bounded by the parser's nesting limit and not by the length of the text, and later walks over it may
//! recurse without a care.

use document::Value;

use crate::lexer::Span;
pub(crate) use crate::logical::{Comparison, Segment};

/// A whole query.
#[derive(Debug)]
pub(crate) struct Statement {
    /// The name the items go by in the rest of the query.
    pub(crate) alias: String,
    /// The `WHERE` expression.
    pub(crate) filter: Option<Node>,
}

/// An expression and its place in the text.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) span: Span,
}

/// The forms of an expression.
#[derive(Debug)]
pub(crate) enum NodeKind {
    /// A string, number, boolean or null.
    Literal(Value),
    /// The literal `undefined`.
    Undefined,
    /// `@name`, with the `@`.
    Parameter(String),
    /// A name followed by member accesses.
    Path { root: String, segments: Vec<Segment> },
    /// `[a, b]`.
    Array(Vec<Node>),
    /// `{"a": x, b: y}`.
    Object(Vec<(String, Node)>),
    /// `NOT a`.
    Not(Box<Node>),
    /// `a AND b AND ...`, at least two.
    And(Vec<Node>),
    /// `a OR b OR ...`, at least two.
    Or(Vec<Node>),
    /// `a <= b`.
    Compare { operator: Comparison, left: Box<Node>, right: Box<Node> },
    /// `a IN (b, c)`.
    In { value: Box<Node>, list: Vec<Node> },
    /// `a BETWEEN b AND c`.
    Between { value: Box<Node>, low: Box<Node>, high: Box<Node> },
    /// `F(a, b)`.
    Call { name: String, arguments: Vec<Node> },
}
