//! Filters: parsing, and matching documents.
//!
//! [`Filter::parse`] checks everything once; [`Filter::matches`] then reads documents in place. The parsed tree
//! ([`Filter::root`]) is public to the planner, which derives index bounds, and to upserts, which derive values.
//!
//! Three rules may be unexpected. Operators compare only within the operand's class of types: `$gt: 5` never finds a
//! string. A condition over an array holds if it holds for any item, each condition for itself. Negations are true
//! complements: `$ne` holds for what is missing, and for no array with an item that is equal.

mod bits;
mod explain;
mod explain_limits;
mod expr;
mod geo;
mod matching;
mod node;
mod parse;
mod schema;
mod text;
mod types;

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{ArrayRef, Collation, Document, DocumentRef, ValueRef};

pub use crate::regex::{Groups, Pattern, PatternBudget};
pub use bits::{BitRule, BitTest};
pub use explain::explain_filter;
pub(crate) use expr::equalities;
pub use geo::{GeoTest, Measure, Near};
pub(crate) use matching::MatchContext;
pub use node::{Comparison, Members, Node, Test, TypeSet};
pub(crate) use parse::is_truthy;
pub use schema::Schema;
pub use text::TextSearch;

use crate::context::Context;
use crate::error::Result;
use crate::path::FieldPath;
use crate::text::TextRules;

/// The settings with which a filter is parsed.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How strings compare.
    pub collation: Collation,
    /// The values of `let`, by name. Every part of a request shares them.
    pub variables: Arc<Document>,
    /// The rules of the collection's text index, if there is one: the input of `$text`.
    pub text: Option<Arc<TextRules>>,
    /// The budget for the regular expressions of the request.
    pub patterns: PatternBudget,
}

impl Settings {
    /// Compares as filters read with these settings do.
    pub fn compare(&self, left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
        if self.collation.is_simple() {
            return bson::compare(left, right);
        }
        self.collation.compare_values(left, right)
    }
}

/// A parsed filter.
#[derive(Debug, Clone)]
pub struct Filter {
    root: Node,
    settings: Settings,
}

impl Filter {
    /// Reads a filter.
    pub fn parse(filter: DocumentRef<'_>, settings: &Settings) -> Result<Filter> {
        Ok(Filter { root: parse::Parser { settings }.filter(filter)?, settings: settings.clone() })
    }

    /// Returns the filter that matches every document.
    pub fn everything() -> Filter {
        Filter { root: Node::And(Vec::new()), settings: Settings::default() }
    }

    /// Returns whether a document matches.
    pub fn matches(&self, document: DocumentRef<'_>, context: &Context) -> Result<bool> {
        self.root.matches(document, MatchContext { context, settings: &self.settings })
    }

    /// Returns the position of the array item by which a matching document matches: what `$` stands for. If several
    /// conditions are over arrays, the last one counts.
    pub fn position(&self, document: DocumentRef<'_>, context: &Context) -> Result<Option<usize>> {
        self.root.position(document, MatchContext { context, settings: &self.settings })
    }

    /// Returns the parsed tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns the condition that requires the nearest documents first, if there is one.
    pub fn near(&self) -> Option<&Near> {
        self.root.conjuncts().iter().find_map(|node| match node {
            Node::Field { test: Test::Near(near), .. } => Some(&**near),
            _ => None,
        })
    }

    /// Returns the search for words, if there is one.
    pub fn text(&self) -> Option<&TextSearch> {
        self.root.find(&|node| if let Node::Text(search) = node { Some(&**search) } else { None })
    }

    /// Returns `true` if the filter matches every document.
    pub fn is_everything(&self) -> bool {
        matches!(&self.root, Node::And(nodes) if nodes.is_empty()) || matches!(self.root, Node::True)
    }

    /// Returns the values that fields must equal for a document to match, for upserts. Only conditions that must hold
    /// count, so of `$or` only one with a single branch; `$in` and `$all` with a single value are equalities too.
    pub fn equalities(&self) -> Vec<(&FieldPath, ValueRef<'_>)> {
        let mut found = Vec::new();
        collect_equalities(&self.root, &mut found);
        found
    }
}

fn collect_equalities<'f>(node: &'f Node, found: &mut Vec<(&'f FieldPath, ValueRef<'f>)>) {
    match node {
        Node::And(nodes) => nodes.iter().for_each(|node| collect_equalities(node, found)),
        Node::Or(nodes) if nodes.len() == 1 => collect_equalities(&nodes[0], found),
        Node::Field { path, test: Test::Compare(Comparison::Equal, value) } => {
            found.push((path, value.view()));
        }
        Node::Field { path, test: Test::In(members) } => {
            if let ([value], []) = (members.values(), members.patterns()) {
                found.push((path, value.view()));
            }
        }
        _ => {}
    }
}

/// A condition on a single value: that of `$pull` and the like on items.
#[derive(Debug, Clone)]
pub struct Condition {
    root: Node,
    settings: Settings,
}

impl Condition {
    /// Reads operators, a regular expression, or a value to equal.
    pub fn parse(condition: ValueRef<'_>, settings: &Settings) -> Result<Condition> {
        Ok(Condition { root: parse::Parser { settings }.condition(condition)?, settings: settings.clone() })
    }

    /// Returns whether a value matches as if it were a field of a document: an array does if an item does.
    pub fn matches(&self, value: ValueRef<'_>, context: &Context) -> Result<bool> {
        self.root.matches_field(value, MatchContext { context, settings: &self.settings })
    }

    /// Returns whether a value matches by itself: items of an array are not examined.
    pub fn matches_exactly(&self, value: ValueRef<'_>, context: &Context) -> Result<bool> {
        self.root.matches_item(value, MatchContext { context, settings: &self.settings })
    }
}

/// A condition on the items of an array: `$elemMatch`.
#[derive(Debug, Clone)]
pub struct ElementFilter {
    test: Test,
    settings: Settings,
}

impl ElementFilter {
    /// Reads the operand of `$elemMatch`.
    pub fn parse(operand: ValueRef<'_>, settings: &Settings) -> Result<ElementFilter> {
        Ok(ElementFilter { test: parse::Parser { settings }.element(operand)?, settings: settings.clone() })
    }

    /// Returns the position of the first item that matches.
    pub fn first(&self, items: ArrayRef<'_>, context: &Context) -> Result<Option<usize>> {
        self.test
            .first_element(Some(ValueRef::Array(items)), MatchContext { context, settings: &self.settings })
    }
}

#[cfg(test)]
mod tests {
    use bson::Value;

    use super::*;

    fn operator(name: &str, value: impl Into<Value>) -> Value {
        Value::Document(Document::new().with(name, value))
    }

    fn filter(path: &str, value: impl Into<Value>) -> Filter {
        Filter::parse(Document::new().with(path, value).view(), &Settings::default()).unwrap()
    }

    fn items(values: &[i32]) -> Value {
        Value::Array(values.iter().map(|value| Value::Int32(*value)).collect())
    }

    #[test]
    fn the_position_is_that_of_the_last_condition_over_an_array() {
        let document = Document::new().with("a", items(&[1, 5, 9])).with("b", items(&[7, 8]));
        let position = |filter: &Filter| filter.position(document.view(), &Context::at(0)).unwrap();
        assert_eq!(position(&filter("a", 5)), Some(1));
        assert_eq!(position(&filter("a", operator("$elemMatch", operator("$gt", 5)))), Some(2));
        assert_eq!(position(&filter("a", operator("$exists", true))), None);
        let both = Document::new().with("a", 9).with("b", 8);
        assert_eq!(position(&Filter::parse(both.view(), &Settings::default()).unwrap()), Some(1));
    }

    #[test]
    fn equalities_are_what_must_hold() {
        let text = Document::new()
            .with("a", 1)
            .with("b", operator("$gt", 2))
            .with("$and", vec![Value::Document(Document::new().with("c", operator("$eq", 3)))])
            .with("$or", vec![Value::Document(Document::new().with("d", 4))])
            .with("e", operator("$in", items(&[5])))
            .with("f", operator("$in", items(&[5, 6])))
            .with("g", operator("$all", items(&[7])));
        let filter = Filter::parse(text.view(), &Settings::default()).unwrap();
        let found: Vec<String> = filter
            .equalities()
            .iter()
            .map(|(path, value)| format!("{path}={}", bson::shell_text(*value)))
            .collect();
        assert_eq!(found, ["a=1", "c=3", "d=4", "e=5", "g=7"]);
    }

    #[test]
    fn a_condition_is_asked_of_single_values() {
        let context = Context::at(0);
        let condition = Condition::parse(operator("$gt", 3).view(), &Settings::default()).unwrap();
        assert_eq!(condition.matches(ValueRef::Int32(4), &context), Ok(true));
        assert_eq!(condition.matches(items(&[1, 4]).view(), &context), Ok(true));
        assert_eq!(condition.matches_exactly(items(&[1, 4]).view(), &context), Ok(false));
        assert!(Filter::everything().is_everything());
    }
}
