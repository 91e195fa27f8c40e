//! Derivation of a condition from a filter, expression by expression.

use document::{Value, ValueRef};

use super::arrays;
use super::combine::{Binding, DerivedCondition, Draft, ITEM, UNBOUND, all, any};
use super::interval::{Interval, ValueSet};
use super::{Condition, Step};
use crate::evaluate::compare;
use crate::logical::{Comparison, Expression, Query, Segment};

/// Returns the condition on items that have a row in the result, and whether it is exact.
pub(super) fn of_query(query: &Query) -> (Condition, bool) {
    if let Some(inner) = &query.nested {
        // The filter of this query is on the rows of the inner query.
        return (of_query(inner).0, false);
    }
    let mut scope = Scope::new();
    let sources = arrays::enter(&mut scope, &query.sources);
    let filter =
        query.filter.as_ref().map_or(DerivedCondition::constant(true), |filter| scope.holds(filter, true));
    let DerivedCondition { draft, exact } = all([sources, filter]);
    (draft.into(), exact)
}

/// A path into the item that a slot stands for or that an expression names.
#[derive(Debug, Clone)]
pub(super) struct ItemPath {
    pub(super) path: Vec<Step>,
    pub(super) binding: Binding,
    /// Whether the path is exact: `c.a[3]` is one element, and the index only knows all of them.
    pub(super) exact: bool,
    /// Whether the elements on the way are known to exist: those of names of `JOIN` do, `c.a[3]` may not.
    pub(super) present: bool,
}

/// The visible slots and the paths that they stand for; `None` is a computed value.
pub(super) struct Scope {
    pub(super) slots: Vec<Option<ItemPath>>,
    last_binding: Binding,
}

impl Scope {
    /// Creates the scope of the item alone.
    pub(super) fn new() -> Scope {
        let item = ItemPath { path: Vec::new(), binding: ITEM, exact: true, present: true };
        Scope { slots: vec![Some(item)], last_binding: ITEM }
    }

    /// Returns an unused binding.
    pub(super) fn new_binding(&mut self) -> Binding {
        self.last_binding += 1;
        self.last_binding
    }

    /// Returns the path into the item of a path expression, if it is one.
    pub(super) fn item_path(&self, slot: usize, segments: &[Segment]) -> Option<ItemPath> {
        let mut place = self.slots.get(slot)?.clone()?;
        for segment in segments {
            place.path.push(match segment {
                Segment::Name(name) => Step::Name(name.clone()),
                Segment::Index(_) => {
                    (place.binding, place.exact, place.present) = (UNBOUND, false, false);
                    Step::Each
                }
            });
        }
        Some(place)
    }

    /// Returns the condition under which the expression is exactly `wanted`.
    pub(super) fn holds(&mut self, expression: &Expression, wanted: bool) -> DerivedCondition {
        match expression {
            Expression::Literal(value) => DerivedCondition::constant(value.as_bool() == Some(wanted)),
            Expression::Path { slot, segments } => {
                self.property_in(*slot, segments, ValueSet::point(ValueRef::Bool(wanted)))
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
                let found = self.value_in(value, ValueSet::prefix(pattern.prefix()));
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
            // An expression that yields no boolean is never true or false.
            Expression::Undefined
            | Expression::Array(_)
            | Expression::Object(_)
            | Expression::Arithmetic { .. }
            | Expression::BitNot(_)
            | Expression::Concat(_) => DerivedCondition::constant(false),
            Expression::Within { .. } | Expression::Index { .. } => DerivedCondition::unknown(),
        }
    }

    fn each(&mut self, parts: &[Expression], wanted: bool) -> Vec<DerivedCondition> {
        parts.iter().map(|part| self.holds(part, wanted)).collect()
    }

    /// Returns the condition that a property of the item is in a set of values.
    pub(super) fn property_in(
        &mut self,
        slot: usize,
        segments: &[Segment],
        values: ValueSet,
    ) -> DerivedCondition {
        self.item_path(slot, segments).map_or_else(DerivedCondition::unknown, |place| leaf(place, values))
    }

    /// Returns the condition that an expression is in a set of values; it is unknown for anything but a property.
    fn value_in(&mut self, value: &Expression, values: ValueSet) -> DerivedCondition {
        match value {
            Expression::Path { slot, segments } => self.property_in(*slot, segments, values),
            _ => DerivedCondition::unknown(),
        }
    }

    fn is_text(&mut self, value: &Expression) -> DerivedCondition {
        self.value_in(value, ValueSet::of_type(ValueRef::String(""))).at_most()
    }

    /// Returns the condition under which `left operator right` is true.
    fn compares(&mut self, operator: Comparison, left: &Expression, right: &Expression) -> DerivedCondition {
        match (left, right) {
            (Expression::Undefined, _) | (_, Expression::Undefined) => DerivedCondition::constant(false),
            (Expression::Literal(left), Expression::Literal(right)) => {
                DerivedCondition::constant(compare(operator, left.view(), right.view()) == Some(true))
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
                    _ => DerivedCondition::unknown(),
                }
            }
            _ => DerivedCondition::unknown(),
        }
    }

    /// Returns the condition under which a property has this relation to a constant.
    fn relates(
        &mut self,
        operator: Comparison,
        slot: usize,
        segments: &[Segment],
        value: &Value,
    ) -> DerivedCondition {
        match (operator, value) {
            (Comparison::Equal, Value::Array(_) | Value::Object(_)) => {
                let place = self.item_path(slot, segments);
                place.map_or_else(DerivedCondition::unknown, |place| arrays::holds_value(place, value))
            }
            (Comparison::NotEqual, Value::Array(_) | Value::Object(_)) => {
                let place = self.item_path(slot, segments);
                place.map_or_else(DerivedCondition::unknown, |place| arrays::holds_other(place, value))
            }
            // Arrays and objects have no order.
            (_, Value::Array(_) | Value::Object(_)) => DerivedCondition::constant(false),
            (operator, scalar) => {
                self.property_in(slot, segments, ValueSet::compared(operator, scalar.view()))
            }
        }
    }

    fn is_in(&mut self, value: &Expression, list: &[Expression], wanted: bool) -> DerivedCondition {
        let operator = if wanted { Comparison::Equal } else { Comparison::NotEqual };
        let parts: Vec<DerivedCondition> =
            list.iter().map(|item| self.compares(operator, value, item)).collect();
        if wanted { any(parts) } else { all(parts) }
    }

    fn is_in_constants(&mut self, value: &Expression, list: &[Value], wanted: bool) -> DerivedCondition {
        let Expression::Path { slot, segments } = value else { return DerivedCondition::unknown() };
        let is_scalar = |value: &&Value| !matches!(value, Value::Array(_) | Value::Object(_));
        let points = list.iter().filter(is_scalar).map(|value| Interval::point(value.view()));
        let scalars = ValueSet::scalars(points.collect());
        let Some(place) = self.item_path(*slot, segments) else { return DerivedCondition::unknown() };
        let others = list.iter().filter(|value| !is_scalar(value));
        if !wanted {
            let scalars = leaf(place.clone(), scalars.complement().intersect(&ValueSet::defined()));
            let others = others.map(|value| arrays::holds_other(place.clone(), value));
            return all(others.chain([scalars]));
        }
        let others = others.map(|value| arrays::holds_value(place.clone(), value));
        any(others.chain([leaf(place.clone(), scalars)]))
    }

    fn between(
        &mut self,
        value: &Expression,
        low: &Expression,
        high: &Expression,
        wanted: bool,
    ) -> DerivedCondition {
        if wanted {
            return all([
                self.compares(Comparison::GreaterOrEqual, value, low),
                self.compares(Comparison::LessOrEqual, value, high),
            ]);
        }
        any([self.compares(Comparison::Less, value, low), self.compares(Comparison::Greater, value, high)])
    }

    fn call(&mut self, name: &str, arguments: &[Expression], wanted: bool) -> DerivedCondition {
        if let Some((values, exact)) = type_check(name) {
            let [argument] = arguments else { return DerivedCondition::unknown() };
            // A type check is true or false, never undefined.
            return match argument {
                Expression::Literal(_) | Expression::Undefined => DerivedCondition::unknown(),
                argument if exact && wanted => self.value_in(argument, values),
                argument if exact => self.value_in(argument, values.complement()),
                argument if wanted => self.value_in(argument, values).at_most(),
                argument => {
                    let outside = self.value_in(argument, values.complement());
                    any([outside, self.value_in(argument, values).at_most()])
                }
            };
        }
        match (name, arguments) {
            ("STARTSWITH" | "STRINGEQUALS", [value, Expression::Literal(Value::String(text)), rest @ ..])
                if wanted
                    && rest.iter().all(|flag| matches!(flag, Expression::Literal(Value::Bool(false)))) =>
            {
                let values = match name {
                    "STARTSWITH" => ValueSet::prefix(text),
                    _ => ValueSet::point(ValueRef::String(text)),
                };
                self.value_in(value, values)
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
            _ => DerivedCondition::unknown(),
        }
    }
}

/// Returns the leaf for a path, or what the index has of the array around it.
pub(super) fn leaf(place: ItemPath, values: ValueSet) -> DerivedCondition {
    let ItemPath { path, binding, exact, present } = place;
    // No index has an entry for the item itself, and none is needed: it is an object, and an object has no elements.
    match path.first() {
        None => return DerivedCondition::constant(values.kinds.object),
        Some(Step::Each) => return DerivedCondition::constant(values.kinds.missing),
        Some(Step::Name(_)) => {}
    }
    if values.is_nothing() {
        return DerivedCondition::constant(false);
    }
    let Some(each) = path.iter().position(|step| *step == Step::Each) else {
        return DerivedCondition { draft: Draft::Leaf { path, binding: ITEM, values }, exact };
    };
    if values.kinds.is_empty() {
        return DerivedCondition { draft: Draft::Leaf { path, binding, values }, exact };
    }
    // Only scalars are indexed behind `[]`; but there is an array, unless the element may be missing.
    if values.kinds.missing && !present {
        return DerivedCondition::unknown();
    }
    let array = Draft::Leaf { path: path[..each].to_vec(), binding: ITEM, values: ValueSet::array() };
    DerivedCondition { draft: array, exact: false }
}

/// Returns the values that pass a type check, and whether the check is exact.
fn type_check(name: &str) -> Option<(ValueSet, bool)> {
    let number = || ValueSet::of_type(ValueRef::Int(0));
    let text = || ValueSet::of_type(ValueRef::String(""));
    Some(match name {
        "IS_DEFINED" => (ValueSet::defined(), true),
        "IS_NULL" => (ValueSet::point(ValueRef::Null), true),
        "IS_BOOL" | "IS_BOOLEAN" => (ValueSet::of_type(ValueRef::Bool(true)), true),
        "IS_NUMBER" => (number(), true),
        "IS_STRING" => (text(), true),
        "IS_ARRAY" => (ValueSet::array(), true),
        "IS_OBJECT" => (ValueSet::object(), true),
        "IS_PRIMITIVE" => (ValueSet::scalars(vec![Interval::all()]), true),
        "IS_INTEGER" | "IS_FINITE_NUMBER" => (number(), false),
        "IS_DATETIME" => (text(), false),
        _ => return None,
    })
}

/// Returns `true` if an expression can be nothing but true, false or undefined.
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
