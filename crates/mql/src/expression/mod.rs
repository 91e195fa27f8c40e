//! The aggregation expression language: `{$add: ["$price", 1]}` parsed once, then evaluated against documents.
//!
//! ```text
//! BSON -> parse (names, arity, variables checked; constants folded) -> Node -> evaluate(Scope, Context) -> a value, or nothing
//! ```
//!
//! A value may be *missing*, which is not null: a field path that leads nowhere, `$$REMOVE`. Evaluation gives `None` for it.
//! Arguments are borrowed from the document where they can be; only what an operator makes is owned.
//!
//! Operators are in `operators/`, one file and one table per group. An operator over evaluated arguments is a plain
//! function; an operator that binds variables or evaluates only some arguments parses its own argument and is a
//! [`node::Special`].
//!
//! Work is bounded: the context counts every step, and the result of an operator is bounded by the size and the depth of a
//! document.

mod node;
pub(crate) mod number;
mod operand;
#[allow(clippy::unnecessary_wraps, reason = "the rows of one table have one signature")]
mod operators;
mod parse;
mod path;
mod scope;
mod table;

use std::sync::Arc;

use bson::{Value, ValueRef};

use crate::context::Context;
use crate::error::Result;

pub(crate) use operand::measure;
pub(crate) use scope::check_writable as check_variable_name;
pub use scope::{Scope, Variables};

use node::Node;
use parse::Parser;

/// An expression that is known to be well-formed. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Expression(Arc<Node>);

impl Expression {
    /// Returns `true` if there is an operator of that name.
    pub(crate) fn is_operator(name: &str) -> bool {
        table::find(name).is_some()
    }

    /// Parses any value: a string beginning with `$` is a field path or a variable, a document beginning with `$` an operator,
    /// everything else stands for itself. `variables` are the names that may be used beside the system's own.
    pub fn parse(value: ValueRef<'_>, variables: &Variables) -> Result<Expression> {
        Ok(Expression(Arc::new(Parser::new(variables).operand(value)?)))
    }

    /// Returns an expression that is always the same value.
    pub fn constant(value: impl Into<Value>) -> Expression {
        Expression(Arc::new(Node::Constant(Some(value.into()))))
    }

    /// Returns the value for a document, or `None` if it is missing.
    pub fn evaluate(&self, scope: &Scope<'_>, context: &Context) -> Result<Option<Value>> {
        Ok(self.0.evaluate(scope, context)?.into_value())
    }

    /// Returns whether the value counts as true: missing, null, false and zero do not.
    pub fn is_true(&self, scope: &Scope<'_>, context: &Context) -> Result<bool> {
        Ok(self.0.evaluate(scope, context)?.is_true())
    }

    /// Returns `true` if the value does not depend on the document, the variables, time or randomness.
    pub fn is_constant(&self) -> bool {
        self.as_constant().is_some()
    }

    /// Returns the value of a constant expression; the inner `None` is the missing value.
    pub fn as_constant(&self) -> Option<Option<&Value>> {
        if let Node::Constant(value) = &*self.0 { Some(value.as_ref()) } else { None }
    }

    /// Returns `true` if the value depends on nothing but known variables.
    pub(crate) fn is_given(&self, is_known: &dyn Fn(&str) -> bool) -> bool {
        self.0.is_given(is_known)
    }
}

#[cfg(test)]
mod tests {
    use bson::Document;

    use super::*;

    fn evaluate(expression: &Value, document: &Document) -> Result<Option<Value>> {
        let scope = Scope::root(document.view());
        Expression::parse(expression.view(), &Variables::none())?.evaluate(&scope, &Context::at(7))
    }

    fn operator(name: &str, argument: impl Into<Value>) -> Value {
        Value::Document(Document::new().with(name, argument))
    }

    #[test]
    fn fields_variables_and_operators() {
        let document = Document::new().with("a", 2).with("b", Document::new().with("c", 3));
        let sum = operator("$add", vec!["$a".into(), "$b.c".into(), 1.into()]);
        assert_eq!(evaluate(&sum, &document), Ok(Some(Value::Int32(6))));
        assert_eq!(evaluate(&"$$REMOVE".into(), &document), Ok(None));
        assert_eq!(evaluate(&"$$NOW".into(), &document), Ok(Some(Value::DateTime(7))));
        let inner = Document::new().with("vars", Document::new().with("x", sum)).with("in", "$$x");
        assert_eq!(evaluate(&operator("$let", inner), &document), Ok(Some(Value::Int32(6))));
        let error = evaluate(&"$$x".into(), &document).expect_err("unknown");
        assert_eq!((error.code.0, error.message.as_str()), (17276, "Use of undefined variable: x"));
        let error = evaluate(&operator("$eq", 1), &document).expect_err("arity");
        assert_eq!(error.message, "Expression $eq takes exactly 2 arguments. 1 were passed in.");
    }

    /// Each level doubles the result of the inner one: it is refused before memory is exhausted.
    #[test]
    fn growth_is_bounded() {
        let mut expression = Value::from("$a");
        for _ in 0..60 {
            let twice = vec![Value::from("$$x"), Value::from("$$x")];
            let vars = Document::new().with("x", expression);
            expression = operator("$let", Document::new().with("vars", vars).with("in", twice));
        }
        let error = evaluate(&expression, &Document::new().with("a", "text")).expect_err("too large");
        assert_eq!(error.code, crate::Code::BSON_OBJECT_TOO_LARGE);
    }
}
