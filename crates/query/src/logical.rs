//! A query that can be run: every name is a slot, every parameter a value, every function known.
//!
//! Evaluation happens in an environment of *slots*. Slot 0 of a top-level query is the item; each source of `FROM`
//! that is more than the item itself binds a further slot, and a subquery's sources continue behind those of the
//! queries around it, so that an inner expression reaches outer values by their slots.
//!
//! A query with aggregates or `GROUP BY` is evaluated in two phases. In the first its rows are those of its sources:
//! filter, keys and arguments see their slots. In the second its rows are the groups: `select` and `order` see, from
//! `group_slot` on, first the keys and then the results of the aggregates, and no source any more.
//!
//! ```text
//! SELECT t.name, COUNT(1) AS n, MAX(t.x) FROM c JOIN t IN c.tags GROUP BY t.name
//!
//! slot   0      1            group_slot   + 1        + 2
//!        item   t            t.name       COUNT(1)   MAX(t.x)
//!        '-- rows --'        '------------ groups ---------'
//! ```
//!
//! A [`Query`] is only created by [`crate::parse`], so its holder need not validate it again.

use document::{Path, Value};

use crate::functions::Entry;
use crate::functions::like::Like;
use crate::surface::Surface;
pub(crate) use crate::syntax::ast::SubqueryKind;

/// A checked `SELECT`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Whether the query reads items: `SELECT 1` does not and has one row.
    pub(crate) reads_items: bool,
    /// `FROM (SELECT ...)` where the rows inside depend on more than one item (`DISTINCT`, aggregates, an order, a
    /// window), or what a subquery asks the container for where there is no `FROM`. The query inside reads the items; here
    /// slot 0 stands for each of its rows in place of an item.
    pub(crate) nested: Option<Box<Query>>,
    /// The sources that bind slots beyond the item, in order. Each multiplies the rows before it.
    pub(crate) sources: Vec<Source>,
    /// The condition on a row.
    pub(crate) filter: Option<Expression>,
    /// The keys of `GROUP BY`.
    pub(crate) group_by: Vec<Expression>,
    /// The aggregates over the rows of each group. With any of them, or a `group_by`, rows are groups.
    pub(crate) aggregates: Vec<Aggregate>,
    /// The slot of the first group key; the aggregates follow the keys.
    pub(crate) group_slot: usize,
    /// The form of a result row.
    pub(crate) select: Projection,
    /// Whether equal rows are returned once.
    pub(crate) distinct: bool,
    /// The order of the rows.
    pub(crate) order: Order,
    /// Rows to skip at the beginning.
    pub(crate) skip: u64,
    /// The most rows to return: the smaller of `TOP` and `LIMIT`.
    pub(crate) take: Option<u64>,
    /// Distinguishes queries whose continuation positions differ in meaning; 0 inside of another query.
    pub(crate) resume_fingerprint: u64,
}

impl Query {
    /// Returns `true` if the query reads items.
    pub fn reads_items(&self) -> bool {
        self.reads_items
    }

    /// Returns `true` if the query only filters: its rows are whole items, in storage order.
    pub fn selects_items(&self) -> bool {
        let item = Expression::Path { slot: 0, segments: Vec::new() };
        self.reads_items
            && self.nested.is_none()
            && self.sources.is_empty()
            && !self.is_grouped()
            && self.select == Projection::Value(item)
            && !self.distinct
            && self.order == Order::None
            && self.skip == 0
            && self.take.is_none()
    }

    /// Returns a number that is equal for queries between which a continuation may be carried over: the same query in another
    /// layout, or the same `FROM` and `ORDER BY` where these alone decide positions. It is the same in every process.
    pub fn resume_fingerprint(&self) -> u64 {
        self.resume_fingerprint
    }

    /// Returns `true` if the query is ordered by `RANK`.
    pub fn is_ranked(&self) -> bool {
        matches!(self.order, Order::Rank(_))
    }

    /// Returns the number of `ORDER BY` keys.
    pub fn sort_keys(&self) -> usize {
        if let Order::Keys(keys) = &self.order { keys.len() } else { 0 }
    }

    /// Returns `true` if the rows of the query are groups. Without a `GROUP BY` there is exactly one group, even if
    /// there are no rows.
    pub(crate) fn is_grouped(&self) -> bool {
        !self.group_by.is_empty() || !self.aggregates.is_empty()
    }
}

/// A source of `FROM` that binds a slot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub(crate) slot: usize,
    /// Whether the slot stands for each element of the array, or for the value itself. An undefined value has no row
    /// in either case.
    pub(crate) iterates: bool,
    pub(crate) rows: Rows,
}

/// The origin of a source's rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rows {
    /// A value.
    Value(Expression),
    /// The rows of a subquery; `iterates` goes through each row that is an array.
    Subquery(Box<Query>),
}

/// The form of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Projection {
    /// The value itself; `SELECT *` is the slot of the only source. Undefined means no row.
    Value(Expression),
    /// An object of the members that are defined.
    Members(Vec<(String, Expression)>),
}

/// The order of the rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Order {
    /// In the order in which items arrive.
    None,
    /// By values, first key first.
    Keys(Vec<SortKey>),
    /// By the fused rank of scores, best first.
    Rank(Vec<Score>),
}

/// One key of `ORDER BY`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SortKey {
    pub(crate) value: Expression,
    pub(crate) descending: bool,
}

/// One component of `ORDER BY RANK`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Score {
    pub(crate) kind: ScoreKind,
    /// Its weight in `RRF`.
    pub(crate) weight: f64,
}

/// The measure of a component.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ScoreKind {
    /// `FullTextScore(path, keyword, ...)`: BM25, larger is better.
    FullText { text: Expression, keywords: Vec<String> },
    /// `VectorDistance(...)`; whether larger is better depends on the distance function.
    Vector { distance: Expression, larger_is_better: bool },
}

/// A function over the rows of a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aggregate {
    pub(crate) kind: AggregateKind,
    pub(crate) argument: Expression,
}

/// The aggregates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateKind {
    /// `AVG`
    Average,
    /// `COUNT`: of defined values
    Count,
    /// `COUNTIF`: of true values
    CountIf,
    /// `MAKELIST`
    MakeList,
    /// `MAKESET`
    MakeSet,
    /// `MAX`
    Max,
    /// `MIN`
    Min,
    /// `SUM`
    Sum,
}

/// A checked expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    /// A constant: a literal, a parameter, or anything computed from constants alone.
    Literal(Value),
    /// The constant `undefined`.
    Undefined,
    /// A path into the value of a slot; without segments the whole value.
    Path { slot: usize, segments: Vec<Segment> },
    /// A path into a computed value.
    Within { base: Box<Expression>, segments: Vec<Segment> },
    /// An element or member whose name is computed.
    Index { base: Box<Expression>, index: Box<Expression> },
    /// An array; undefined elements are left out.
    Array(Vec<Expression>),
    /// An object; undefined members are left out.
    Object(Vec<(String, Expression)>),
    /// `NOT a`.
    Not(Box<Expression>),
    /// `a AND b AND ...`.
    And(Vec<Expression>),
    /// `a OR b OR ...`.
    Or(Vec<Expression>),
    /// `a <= b`.
    Compare { operator: Comparison, left: Box<Expression>, right: Box<Expression> },
    /// `a + b - c`, from left to right; also the signs, as an operation with a constant. Flat, because texts may be
    /// long and evaluation recurses.
    Arithmetic { first: Box<Expression>, rest: Vec<(Arithmetic, Expression)> },
    /// `~ a`.
    BitNot(Box<Expression>),
    /// `a || b || ...`.
    Concat(Vec<Expression>),
    /// `a ?? b ?? ...`.
    Coalesce(Vec<Expression>),
    /// `a ? b : c` and `IIF(a, b, c)`.
    Conditional { condition: Box<Expression>, then: Box<Expression>, otherwise: Box<Expression> },
    /// `a IN (b, c)`.
    In { value: Box<Expression>, list: Vec<Expression> },
    /// `a IN (1, 2)`: only constants, in ascending order, each once and none undefined.
    InConstants { value: Box<Expression>, list: Vec<Value> },
    /// `a BETWEEN b AND c`, ends included.
    Between { value: Box<Expression>, low: Box<Expression>, high: Box<Expression> },
    /// `a LIKE 'constant'`.
    Like { value: Box<Expression>, pattern: Box<Like> },
    /// `a LIKE b` with a pattern that differs from row to row.
    LikeComputed { value: Box<Expression>, pattern: Box<Expression>, escape: Option<char> },
    /// A function with as many arguments as it takes.
    Call(&'static Entry, Vec<Expression>),
    /// A subquery, run for each row around it.
    Subquery { kind: SubqueryKind, query: Box<Query> },
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A member of an object.
    Name(String),
    /// An element of an array.
    Index(usize),
}

/// The comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
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
}

impl Comparison {
    /// Returns the operator that is true exactly where this one is false.
    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }

    /// Returns the operator that is equivalent after its operands are exchanged.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::NotEqual => Self::NotEqual,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }
}

/// The operators on numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    ShiftRightZero,
}

/// The settings of a container that extend the language.
#[derive(Debug, Clone, Default)]
pub struct Dialect {
    /// `computedProperties`: a name that queries may use, and the path or expression text that it stands for.
    pub computed: Vec<(String, String)>,
    /// The distance function of each vector embedding path.
    pub embeddings: Vec<(Path, String)>,
    /// `geospatialConfig`: the surface of the container's geometries.
    pub surface: Surface,
}
