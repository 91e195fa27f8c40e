//! An expression that can be evaluated: every name known, every parameter replaced by its value.
//!
//! The only way to get one is through [`crate::parse`] or [`crate::parse_filter`], so whoever holds one need not
//! ask whether it makes sense.

use document::Value;

use crate::ast::{Comparison, Segment};
use crate::function::Function;

/// A checked expression over one item.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A constant: a literal, a parameter, or an array or object of constants.
    Literal(Value),
    /// The constant `undefined`.
    Undefined,
    /// A property of the item; no segments mean the whole item.
    Path(Vec<Segment>),
    /// An array with at least one part that is not constant.
    Array(Vec<Expression>),
    /// An object with at least one part that is not constant; names differ.
    Object(Vec<(String, Expression)>),
    /// `NOT a`.
    Not(Box<Expression>),
    /// `a AND b AND ...`.
    And(Vec<Expression>),
    /// `a OR b OR ...`.
    Or(Vec<Expression>),
    /// `a <= b`.
    Compare {
        /// Which comparison.
        operator: Comparison,
        /// Its left operand.
        left: Box<Expression>,
        /// Its right operand.
        right: Box<Expression>,
    },
    /// `a IN (b, c)`.
    In {
        /// What is looked for.
        value: Box<Expression>,
        /// Among these.
        list: Vec<Expression>,
    },
    /// `a BETWEEN b AND c`, ends included.
    Between {
        /// What is compared.
        value: Box<Expression>,
        /// The lower end.
        low: Box<Expression>,
        /// The upper end.
        high: Box<Expression>,
    },
    /// A function with as many arguments as it takes.
    Call(Function, Vec<Expression>),
}
