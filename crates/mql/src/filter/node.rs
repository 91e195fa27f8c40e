//! The parsed form of a filter: a tree of conditions, which the planner and upserts read too.

use bson::{Kind, Value};

use super::bits::BitTest;
use super::geo::{GeoTest, Near};
use super::schema::Schema;
use super::text::TextSearch;
use crate::expression::Expression;
use crate::path::{Arrays, FieldPath};
use crate::regex::Pattern;

/// A condition on a document.
#[derive(Debug, Clone)]
pub enum Node {
    /// All hold. Without any, true.
    And(Vec<Node>),
    /// One holds at least.
    Or(Vec<Node>),
    /// None holds.
    Nor(Vec<Node>),
    /// It does not hold: `$not`, `$ne`, `$nin`, `$exists: false`.
    Not(Box<Node>),
    /// Something that the path finds passes the test.
    Field {
        /// Where to look; empty within the operators of an `$elemMatch`, where it stands for the item itself.
        path: FieldPath,
        /// The test of the values there.
        test: Test,
    },
    /// An expression over the document is true: `$expr`.
    Expr {
        /// The expression.
        expression: Expression,
        /// Conditions on fields that hold wherever it is true, for indexes.
        implied: Vec<Node>,
    },
    /// The document conforms to this schema: `$jsonSchema`.
    Schema(Box<Schema>),
    /// The document contains the words of this search: `$text`.
    Text(Box<TextSearch>),
    /// A random part of all documents.
    SampleRate(f64),
    /// Always.
    True,
    /// Never.
    False,
}

/// A test of one value.
#[derive(Debug, Clone)]
pub enum Test {
    /// `$eq`, `$lt`, `$lte`, `$gt`, `$gte`, or a plain value.
    Compare(Comparison, Value),
    /// `$in`.
    In(Members),
    /// There is a value.
    Exists,
    /// `$type`.
    Type(TypeSet),
    /// `$regex`, or a plain regular expression.
    Pattern(Pattern),
    /// `$mod`: divided by the first, the second remains.
    Mod(i64, i64),
    /// `$bitsAllSet` and its sisters.
    Bits(BitTest),
    /// `$geoWithin`, `$geoIntersects`.
    Geo(Box<GeoTest>),
    /// `$near`, `$nearSphere`: there is a point within the bounds. The caller sorts the nearest first.
    Near(Box<Near>),
    /// `$size`: an array of exactly that many items.
    Size(i64),
    /// `$elemMatch` with conditions on the fields of an item.
    ElementFields(Box<Node>),
    /// `$elemMatch` with operators on an item itself; the paths in it are empty.
    ElementValue(Box<Node>),
}

/// The relation of a value to the operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The operand of `$in`.
#[derive(Debug, Clone, Default)]
pub struct Members {
    /// Values, in their order, each once.
    pub(super) values: Vec<Value>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) null: bool,
}

impl Members {
    /// Returns the values, in their order, each once.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns the regular expressions.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }
}

/// Some of the types of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TypeSet(u32);

impl TypeSet {
    /// All four types of numbers.
    pub const NUMBERS: TypeSet =
        TypeSet(bit(Kind::Double) | bit(Kind::Int32) | bit(Kind::Int64) | bit(Kind::Decimal128));

    /// Returns `true` if the set contains that type.
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & bit(kind) != 0
    }

    /// Adds the types of another set.
    #[must_use]
    pub fn with(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 | other.0)
    }

    /// Returns all types in the set.
    pub fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

impl From<Kind> for TypeSet {
    fn from(kind: Kind) -> TypeSet {
        TypeSet(bit(kind))
    }
}

/// Codes run from 1 to 19, apart from the two keys.
const fn bit(kind: Kind) -> u32 {
    match kind {
        Kind::MinKey => 1,
        Kind::MaxKey => 1 << 31,
        other => 1 << other as u32,
    }
}

impl Test {
    /// Returns how an array at the end of the path counts for this test.
    pub fn arrays(&self) -> Arrays {
        match self {
            Test::Exists | Test::Size(_) | Test::ElementFields(_) | Test::ElementValue(_) => Arrays::Whole,
            _ => Arrays::Expand,
        }
    }

    /// Returns `true` if this is an `$elemMatch`.
    pub(super) fn is_element(&self) -> bool {
        matches!(self, Test::ElementFields(_) | Test::ElementValue(_))
    }
}

impl Node {
    /// Returns the opposite.
    pub(super) fn negated(self) -> Node {
        Node::Not(Box::new(self))
    }

    /// Returns the conjunction of all of them, in its simplest form.
    pub(super) fn all(mut nodes: Vec<Node>) -> Node {
        if nodes.len() == 1 { nodes.pop().unwrap_or(Node::True) } else { Node::And(nodes) }
    }

    /// Counts the nodes that pass a test, including those within `$elemMatch`.
    pub(super) fn count(&self, is_such: &dyn Fn(&Node) -> bool) -> usize {
        let below = match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                nodes.iter().map(|node| node.count(is_such)).sum()
            }
            Node::Not(node) => node.count(is_such),
            Node::Field { test: Test::ElementFields(node) | Test::ElementValue(node), .. } => {
                node.count(is_such)
            }
            _ => 0,
        };
        below + usize::from(is_such(self))
    }

    /// Returns the first node of a kind outside of negations and `$elemMatch`.
    pub(super) fn find<'n, T>(&'n self, pick: &dyn Fn(&'n Node) -> Option<&'n T>) -> Option<&'n T> {
        match self {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().find_map(|node| node.find(pick)),
            other => pick(other),
        }
    }

    /// Returns the conditions that follow from the node beside itself.
    pub(crate) fn implied(&self) -> &[Node] {
        match self {
            Node::Expr { implied, .. } => implied,
            _ => &[],
        }
    }

    /// Returns the conditions that all hold, whether there is one or many.
    pub fn conjuncts(&self) -> &[Node] {
        match self {
            Node::And(nodes) => nodes,
            other => std::slice::from_ref(other),
        }
    }
}
