//! The query as written: what the parser found, with the place of everything, before any name is looked up.
//!
//! The tree is flat where the language is: `a OR b OR c` is one node with three children, and so is `a + b - c`. So
//! the height of a tree is bounded by the parser's nesting limit and not by the length of the text, and later walks
//! over it may recurse.

use document::Value;

/// A piece of the text, in bytes; an error shows it in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// The first byte.
    pub(crate) start: usize,
    /// Behind the last byte.
    pub(crate) end: usize,
}

/// A `SELECT` with all its clauses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub(crate) distinct: bool,
    /// `TOP n`: an integer literal or a parameter.
    pub(crate) top: Option<Node>,
    pub(crate) select: Select,
    /// The sources of `FROM`, joined from left to right; none without the clause.
    pub(crate) from: Vec<Source>,
    pub(crate) filter: Option<Node>,
    pub(crate) group_by: Vec<Node>,
    pub(crate) order_by: Option<OrderBy>,
    /// `OFFSET o LIMIT l`: integer literals or parameters.
    pub(crate) window: Option<(Node, Node)>,
    /// The whole `SELECT`, without the parentheses around a subquery.
    pub(crate) span: Span,
}

/// The form of a row of the answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Select {
    /// `*`, and where it stands.
    Star(Span),
    /// `VALUE e`.
    Value(Node),
    /// `e [AS name], ...`, at least one.
    List(Vec<SelectItem>),
}

/// One member of a select list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SelectItem {
    pub(crate) node: Node,
    pub(crate) alias: Option<Name>,
}

/// A name and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// One source of `FROM`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    /// `name IN collection`: the name stands for each element of an array. Without it the collection is one row.
    pub(crate) iterates: bool,
    pub(crate) collection: Collection,
    /// The name of the rows; a path without one is known by its last part.
    pub(crate) alias: Option<Name>,
}

/// Where a source takes its rows from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Collection {
    /// The container, a source before this one, or a place inside one.
    Path { root: Name, steps: Vec<PathStep> },
    /// `( SELECT ... )`.
    Subquery(Box<Query>),
}

/// A constant step of a path in `FROM`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PathStep {
    /// `.name`
    Dot(String),
    /// `["name"]`
    Bracket(String),
    /// `[3]`
    Index(u64),
}

/// `ORDER BY`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OrderBy {
    /// `ORDER BY RANK`: the keys are scoring functions.
    pub(crate) rank: bool,
    /// At least one.
    pub(crate) keys: Vec<SortKey>,
    pub(crate) span: Span,
}

/// One key of `ORDER BY`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SortKey {
    pub(crate) node: Node,
    /// As written; none means ascending, or the scoring function's natural order.
    pub(crate) direction: Option<Direction>,
}

/// A direction as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

/// An expression and its place in the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    /// Without the parentheses around it.
    pub(crate) span: Span,
}

/// The forms of an expression. Parentheses leave no trace but in the tree's form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeKind {
    /// A string, number, boolean or null.
    Literal(Value),
    /// The literal `undefined`.
    Undefined,
    /// `@name`, with the `@`.
    Parameter(String),
    /// A name that stands alone or before the first dot.
    Name(String),
    /// `e.a["b"][c + 1]`: the base is no `Path` itself; at least one step.
    Path { base: Box<Node>, steps: Vec<Step> },
    /// `[a, b]`.
    Array(Vec<Node>),
    /// `{"a": x, b: y}`.
    Object(Vec<(Name, Node)>),
    /// `NOT a`, `- a`, `+ a`, `~ a`. A sign directly before a number belongs to the literal.
    Unary { operator: Unary, operand: Box<Node> },
    /// `a + b - c`: operators of one level of precedence, applied from left to right; at least one. Also `AND` and
    /// `OR`, each in a chain of its own, and `??`.
    Chain { first: Box<Node>, rest: Vec<(Binary, Node)> },
    /// `a ? b : c`.
    Conditional { condition: Box<Node>, then: Box<Node>, otherwise: Box<Node> },
    /// `a [NOT] IN (b, c)`, at least one in the list.
    In { negated: bool, value: Box<Node>, list: Vec<Node> },
    /// `a [NOT] BETWEEN b AND c`.
    Between { negated: bool, value: Box<Node>, low: Box<Node>, high: Box<Node> },
    /// `a [NOT] LIKE b [ESCAPE 'c']`.
    Like { negated: bool, value: Box<Node>, pattern: Box<Node>, escape: Option<Name> },
    /// `F(a, b)`, or `udf.F(a, b)`.
    Call { name: Name, udf: bool, arguments: Vec<Node> },
    /// `( SELECT ... )`, `EXISTS ( SELECT ... )` and their like.
    Subquery { kind: SubqueryKind, query: Box<Query> },
    /// `{name}`: a placeholder of the service's rewritten queries, without its braces.
    Placeholder(String),
}

/// One step of a path in an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// `.name`
    Dot(Name),
    /// `[e]`; a string or number literal for a constant name or place.
    Index(Node),
}

/// The use of a subquery's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubqueryKind {
    /// `( SELECT ... )`: the one row.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// All rows as an array.
    Array,
    /// Whether all rows are true.
    All,
    /// The first row.
    First,
    /// The last row.
    Last,
}

/// Operators before one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    /// `NOT`
    Not,
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
}

/// Operators between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    /// `??`
    Coalesce,
    /// `OR`
    Or,
    /// `AND`
    And,
    /// `||`
    Concat,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `&`
    BitAnd,
    /// `=`
    Equal,
    /// `!=` and `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `>>>`
    ShiftRightZero,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}
