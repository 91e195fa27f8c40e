//! From a filter to a condition, expression by expression.

use document::{Value, ValueRef};

use super::arrays;
use super::combine::{Binding, Draft, Found, ITEM, NOBODY, all, any};
use super::interval::{Interval, Standing};
use super::{Condition, Step};
use crate::evaluate::compare;
use crate::logical::{Comparison, Expression, Query, Segment};

/// The condition on an item that has a row in the answer, and whether it is exact.
pub(super) fn of_query(query: &Query) -> (Condition, bool) {
    if let Some(inner) = &query.nested {
        // What is said here is said of the rows of the query inside.
        return (of_query(inner).0, false);
    }
    let mut scope = Scope::new();
    let sources = arrays::enter(&mut scope, &query.sources);
    let filter = query.filter.as_ref().map_or(Found::constant(true), |filter| scope.holds(filter, true));
    let Found { draft, exact } = all([sources, filter]);
    (draft.into(), exact)
}

/// A place in the item that a slot stands for or that an expression names.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: Vec<Step>,
    pub(super) binding: Binding,
    /// Whether the path says it all: `c.a[3]` is one element, and the index knows only all of them.
    pub(super) exact: bool,
    /// Whether the elements on the way are known to exist: names of `JOIN` stand for elements that are there,
    /// `c.a[3]` may not be.
    pub(super) there: bool,
}

/// The slots that can be seen, and what they stand for; `None` is something computed.
pub(super) struct Scope {
    pub(super) slots: Vec<Option<Place>>,
    last_binding: Binding,
}

impl Scope {
    /// The item alone.
    pub(super) fn new() -> Scope {
        let item = Place { path: Vec::new(), binding: ITEM, exact: true, there: true };
        Scope { slots: vec![Some(item)], last_binding: ITEM }
    }

    /// A binding that nobody else has.
    pub(super) fn fresh(&mut self) -> Binding {
        self.last_binding += 1;
        self.last_binding
    }

    /// The place of a path expression, if it lies in the item.
    pub(super) fn place(&self, slot: usize, segments: &[Segment]) -> Option<Place> {
        let mut place = self.slots.get(slot)?.clone()?;
        for segment in segments {
            place.path.push(match segment {
                Segment::Name(name) => Step::Name(name.clone()),
                Segment::Index(_) => {
                    (place.binding, place.exact, place.there) = (NOBODY, false, false);
                    Step::Each
                }
            });
        }
        Some(place)
    }

    /// Where the expression is exactly `wanted`.
    pub(super) fn holds(&mut self, expression: &Expression, wanted: bool) -> Found {
        match expression {
            Expression::Literal(value) => Found::constant(value.as_bool() == Some(wanted)),
            Expression::Path { slot, segments } => {
                self.stands(*slot, segments, Standing::point(ValueRef::Bool(wanted)))
            }
            Expression::Not(inner) => self.holds(inner, !wanted),
            Expression::And(parts) if wanted => all(self.each(parts, wanted)),
            Expression::Or(parts) if !wanted => all(self.each(parts, wanted)),
            Expression::And(parts) | Expression::Or(parts) => any(self.each(parts, wanted)),
            Expression::Compare { operator, left, right } => {
                let operator = if wanted { *operator } else { operator.negated() };
                self.compares(operator, left, right)
            }
            Expression::In { value, list } => self.is_in(value, list, wanted),
            Expression::InConstants { value, list } => self.is_in_constants(value, list, wanted),
            Expression::Between { value, low, high } => self.between(value, low, high, wanted),
            Expression::Like { value, pattern } if wanted => {
                let found = self.value_stands(value, Standing::prefix(pattern.prefix()));
                if pattern.is_prefix_only() { found } else { found.at_most() }
            }
            // True or false only of texts.
            Expression::Like { value, .. } | Expression::LikeComputed { value, .. } => self.is_text(value),
            Expression::Coalesce(parts) => any(self.each(parts, wanted)).at_most(),
            Expression::Conditional { condition, then, otherwise } => {
                let first = all([self.holds(condition, true), self.holds(then, wanted)]);
                any([first, self.holds(otherwise, wanted)]).at_most()
            }
            Expression::Call(entry, arguments) => self.call(entry.name, arguments, wanted),
            Expression::Subquery { kind, query } => arrays::subquery(self, *kind, query, wanted),
            // What yields no boolean is never true or false.
            Expression::Undefined
            | Expression::Array(_)
            | Expression::Object(_)
            | Expression::Arithmetic { .. }
            | Expression::BitNot(_)
            | Expression::Concat(_) => Found::constant(false),
            Expression::Within { .. } | Expression::Index { .. } => Found::unknown(),
        }
    }

    fn each(&mut self, parts: &[Expression], wanted: bool) -> Vec<Found> {
        parts.iter().map(|part| self.holds(part, wanted)).collect()
    }

    /// Where a property of the item stands so.
    pub(super) fn stands(&mut self, slot: usize, segments: &[Segment], standing: Standing) -> Found {
        self.place(slot, segments).map_or_else(Found::unknown, |place| stands(place, standing))
    }

    /// The same for any expression; what is no property is not known.
    fn value_stands(&mut self, value: &Expression, standing: Standing) -> Found {
        match value {
            Expression::Path { slot, segments } => self.stands(*slot, segments, standing),
            _ => Found::unknown(),
        }
    }

    fn is_text(&mut self, value: &Expression) -> Found {
        self.value_stands(value, Standing::of_type(ValueRef::String(""))).at_most()
    }

    /// Where `left operator right` is true.
    fn compares(&mut self, operator: Comparison, left: &Expression, right: &Expression) -> Found {
        match (left, right) {
            (Expression::Undefined, _) | (_, Expression::Undefined) => Found::constant(false),
            (Expression::Literal(left), Expression::Literal(right)) => {
                Found::constant(compare(operator, left.view(), right.view()) == Some(true))
            }
            (Expression::Path { slot, segments }, Expression::Literal(value)) => {
                self.relates(operator, *slot, segments, value)
            }
            (Expression::Literal(value), Expression::Path { slot, segments }) => {
                self.relates(operator.mirrored(), *slot, segments, value)
            }
            (condition, Expression::Literal(Value::Bool(truth)))
            | (Expression::Literal(Value::Bool(truth)), condition)
                if is_condition(condition) =>
            {
                match operator {
                    Comparison::Equal => self.holds(condition, *truth),
                    Comparison::NotEqual => self.holds(condition, !*truth),
                    _ => Found::unknown(),
                }
            }
            _ => Found::unknown(),
        }
    }

    /// Where a property stands in this relation to a constant.
    fn relates(&mut self, operator: Comparison, slot: usize, segments: &[Segment], value: &Value) -> Found {
        match (operator, value) {
            (Comparison::Equal, Value::Array(_) | Value::Object(_)) => {
                let place = self.place(slot, segments);
                place.map_or_else(Found::unknown, |place| arrays::holds_value(place, value))
            }
            (Comparison::NotEqual, Value::Array(_) | Value::Object(_)) => {
                let place = self.place(slot, segments);
                place.map_or_else(Found::unknown, |place| arrays::holds_other(place, value))
            }
            // Arrays and objects have no order.
            (_, Value::Array(_) | Value::Object(_)) => Found::constant(false),
            (operator, scalar) => self.stands(slot, segments, Standing::compared(operator, scalar.view())),
        }
    }

    fn is_in(&mut self, value: &Expression, list: &[Expression], wanted: bool) -> Found {
        let operator = if wanted { Comparison::Equal } else { Comparison::NotEqual };
        let parts: Vec<Found> = list.iter().map(|item| self.compares(operator, value, item)).collect();
        if wanted { any(parts) } else { all(parts) }
    }

    fn is_in_constants(&mut self, value: &Expression, list: &[Value], wanted: bool) -> Found {
        let Expression::Path { slot, segments } = value else { return Found::unknown() };
        let is_scalar = |value: &&Value| !matches!(value, Value::Array(_) | Value::Object(_));
        let points = list.iter().filter(is_scalar).map(|value| Interval::point(value.view()));
        let scalars = Standing::scalars(points.collect());
        let Some(place) = self.place(*slot, segments) else { return Found::unknown() };
        let others = list.iter().filter(|value| !is_scalar(value));
        if !wanted {
            let scalars = stands(place.clone(), scalars.complement().intersect(&Standing::defined()));
            let others = others.map(|value| arrays::holds_other(place.clone(), value));
            return all(others.chain([scalars]));
        }
        let others = others.map(|value| arrays::holds_value(place.clone(), value));
        any(others.chain([stands(place.clone(), scalars)]))
    }

    fn between(&mut self, value: &Expression, low: &Expression, high: &Expression, wanted: bool) -> Found {
        if wanted {
            return all([
                self.compares(Comparison::GreaterOrEqual, value, low),
                self.compares(Comparison::LessOrEqual, value, high),
            ]);
        }
        any([self.compares(Comparison::Less, value, low), self.compares(Comparison::Greater, value, high)])
    }

    fn call(&mut self, name: &str, arguments: &[Expression], wanted: bool) -> Found {
        if let Some((standing, exact)) = type_check(name) {
            let [argument] = arguments else { return Found::unknown() };
            // A type check is true or false, never undefined.
            return match argument {
                Expression::Literal(_) | Expression::Undefined => Found::unknown(),
                argument if exact && wanted => self.value_stands(argument, standing),
                argument if exact => self.value_stands(argument, standing.complement()),
                argument if wanted => self.value_stands(argument, standing).at_most(),
                argument => {
                    let outside = self.value_stands(argument, standing.complement());
                    any([outside, self.value_stands(argument, standing).at_most()])
                }
            };
        }
        match (name, arguments) {
            ("STARTSWITH" | "STRINGEQUALS", [value, Expression::Literal(Value::String(text)), rest @ ..])
                if wanted
                    && rest.iter().all(|flag| matches!(flag, Expression::Literal(Value::Bool(false)))) =>
            {
                let standing = match name {
                    "STARTSWITH" => Standing::prefix(text),
                    _ => Standing::point(ValueRef::String(text)),
                };
                self.value_stands(value, standing)
            }
            // True or false only of texts.
            ("STARTSWITH" | "ENDSWITH" | "CONTAINS" | "STRINGEQUALS" | "REGEXMATCH", [value, ..]) => {
                self.is_text(value)
            }
            ("ARRAY_CONTAINS" | "ARRAY_CONTAINS_ANY" | "ARRAY_CONTAINS_ALL", [array, values @ ..])
                if wanted =>
            {
                arrays::contains(self, name, array, values)
            }
            _ => Found::unknown(),
        }
    }
}

/// The leaf for a place, or what the index knows of the array around it.
pub(super) fn stands(place: Place, standing: Standing) -> Found {
    let Place { path, binding, exact, there } = place;
    // No index has an entry for the item itself, and none is needed: it is an object, and an object has no elements.
    match path.first() {
        None => return Found::constant(standing.kinds.object),
        Some(Step::Each) => return Found::constant(standing.kinds.missing),
        Some(Step::Name(_)) => {}
    }
    if standing.is_nothing() {
        return Found::constant(false);
    }
    let Some(each) = path.iter().position(|step| *step == Step::Each) else {
        return Found { draft: Draft::Leaf { path, binding: ITEM, standing }, exact };
    };
    if standing.kinds.is_empty() {
        return Found { draft: Draft::Leaf { path, binding, standing }, exact };
    }
    // Only scalars are indexed behind `[]`; but there is an array, unless the element may be missing.
    if standing.kinds.missing && !there {
        return Found::unknown();
    }
    let array = Draft::Leaf { path: path[..each].to_vec(), binding: ITEM, standing: Standing::array() };
    Found { draft: array, exact: false }
}

/// What a type check says, and whether that is all it says.
fn type_check(name: &str) -> Option<(Standing, bool)> {
    let number = || Standing::of_type(ValueRef::Int(0));
    let text = || Standing::of_type(ValueRef::String(""));
    Some(match name {
        "IS_DEFINED" => (Standing::defined(), true),
        "IS_NULL" => (Standing::point(ValueRef::Null), true),
        "IS_BOOL" => (Standing::of_type(ValueRef::Bool(true)), true),
        "IS_NUMBER" => (number(), true),
        "IS_STRING" => (text(), true),
        "IS_ARRAY" => (Standing::array(), true),
        "IS_OBJECT" => (Standing::object(), true),
        "IS_PRIMITIVE" => (Standing::scalars(vec![Interval::all()]), true),
        "IS_INTEGER" | "IS_FINITE_NUMBER" => (number(), false),
        "IS_DATETIME" => (text(), false),
        _ => return None,
    })
}

/// Whether an expression can be nothing but true, false or undefined.
pub(crate) fn is_condition(expression: &Expression) -> bool {
    match expression {
        Expression::Not(_)
        | Expression::And(_)
        | Expression::Or(_)
        | Expression::Compare { .. }
        | Expression::In { .. }
        | Expression::InConstants { .. }
        | Expression::Between { .. }
        | Expression::Like { .. }
        | Expression::LikeComputed { .. } => true,
        Expression::Call(entry, _) => type_check(entry.name).is_some(),
        _ => false,
    }
}
