//! Conditions on what lies in arrays: `JOIN`, `EXISTS`, `ARRAY_CONTAINS`, and equality with whole arrays and objects.
//!
//! The index has the scalars of all elements of an array under one path, so it knows that *some* element has a value.
//! A row of `JOIN` is some element; what `AND` says of one row may be said of the item piece by piece, which is a
//! superset; only where a single piece remains is it exact.

use document::Value;

use super::combine::{Draft, Found, NOBODY, all, any};
use super::filter::{Place, Scope, stands};
use super::interval::Standing;
use super::{Step, is_single};
use crate::logical::{Expression, Projection, Query, Rows, Source, SubqueryKind};

/// Values inside a constant array or object that are looked up; the rest is left to the filter.
const VALUES_MAX: usize = 16;

/// Binds the slots of `FROM` and says what must be there for a row.
pub(super) fn enter(scope: &mut Scope, sources: &[Source]) -> Found {
    let mut found = Vec::new();
    for source in sources {
        let row = match &source.rows {
            Rows::Value(Expression::Path { slot, segments }) => scope.place(*slot, segments),
            Rows::Value(_) => None,
            Rows::Subquery(query) => inside(scope, query, |scope, sources, filter| {
                found.extend([sources, filter]);
                projected(scope, &query.select)
            }),
        };
        let row = row.map(|row| {
            let (row, there) = bind(scope, row, source.iterates);
            found.push(there);
            row
        });
        scope.slots.resize(source.slot, None);
        scope.slots.push(row);
    }
    if sources.is_empty() { Found::constant(true) } else { all(found).at_most() }
}

/// What a slot stands for whose rows are the values in a place, and what must be there for a row.
fn bind(scope: &mut Scope, mut row: Place, iterates: bool) -> (Place, Found) {
    let standing = if iterates { Standing::array() } else { Standing::defined() };
    let there = if is_single(&row.path) { stands(row.clone(), standing) } else { Found::unknown() };
    if iterates {
        row.path.push(Step::Each);
    }
    if !is_single(&row.path) {
        // Within its row a name is one value, whatever it was before.
        row.binding = scope.fresh();
    }
    row.there = true;
    (row, there)
}

/// The place of a subquery's rows.
fn projected(scope: &Scope, select: &Projection) -> Option<Place> {
    match select {
        Projection::Value(Expression::Path { slot, segments }) => scope.place(*slot, segments),
        _ => None,
    }
}

/// Goes into a subquery and tells what its sources and its filter must hold for it to have a row; its slots are seen
/// only meanwhile.
fn inside<T>(scope: &mut Scope, query: &Query, look: impl FnOnce(&mut Scope, Found, Found) -> T) -> T {
    let outer = scope.slots.clone();
    let sources = enter(scope, &query.sources);
    let filter = query.filter.as_ref().map_or(Found::constant(true), |filter| scope.holds(filter, true));
    let answer = if query.nested.is_some() || (!query.aggregates.is_empty() && query.group_by.is_empty()) {
        // Aggregates of no rows are a row.
        look(scope, Found::unknown(), Found::unknown())
    } else if query.take == Some(0) {
        look(scope, Found::constant(false), Found::constant(false))
    } else {
        look(scope, sources, filter)
    };
    scope.slots = outer;
    answer
}

/// Where a subquery is exactly `wanted`.
pub(super) fn subquery(scope: &mut Scope, kind: SubqueryKind, query: &Query, wanted: bool) -> Found {
    if kind != SubqueryKind::Exists || !wanted {
        return Found::unknown();
    }
    inside(scope, query, |scope, sources, filter| {
        let element = only_element(scope, query);
        let about_it = matches!(
            (&filter.draft, element),
            (Draft::Leaf { binding, .. }, Some(element)) if *binding == element.binding && element.exact
        );
        // A fitting element is a row, and it says already that there is an array.
        if about_it && filter.exact { filter } else { all([sources, filter]).at_most() }
    })
}

/// The element that `EXISTS (SELECT ... FROM x IN c.a WHERE ...)` looks for, if that is all the subquery does.
fn only_element(scope: &Scope, query: &Query) -> Option<Place> {
    let [source @ Source { iterates: true, rows: Rows::Value(_), .. }] = query.sources.as_slice() else {
        return None;
    };
    let is_defined = match &query.select {
        Projection::Value(Expression::Literal(_)) | Projection::Members(_) => true,
        Projection::Value(Expression::Path { slot, segments }) => *slot == source.slot && segments.is_empty(),
        Projection::Value(_) => false,
    };
    let plain = query.skip == 0 && !query.is_grouped() && query.nested.is_none();
    if is_defined && plain { scope.slots.get(source.slot)?.clone() } else { None }
}

/// Where `ARRAY_CONTAINS(array, values...)` and its like are true.
pub(super) fn contains(scope: &mut Scope, name: &str, array: &Expression, values: &[Expression]) -> Found {
    match (array, values) {
        (Expression::Path { slot, segments }, _) => {
            let Some(mut element) = scope.place(*slot, segments) else { return Found::unknown() };
            element.path.push(Step::Each);
            element.binding = NOBODY;
            in_array(name, &element, values)
        }
        // A list of constants: the other way to write `IN`.
        (Expression::Literal(Value::Array(list)), [Expression::Path { slot, segments }])
            if name == "ARRAY_CONTAINS" =>
        {
            let Some(place) = scope.place(*slot, segments) else { return Found::unknown() };
            any(list.iter().map(|value| equals(place.clone(), value)))
        }
        _ => Found::unknown(),
    }
}

fn in_array(name: &str, element: &Place, values: &[Expression]) -> Found {
    let one = |value: &Expression| match value {
        Expression::Literal(value) => equals(element.clone(), value),
        _ => Found::unknown(),
    };
    match (name, values) {
        // With a flag only some members of an object need to be equal, those that are given.
        ("ARRAY_CONTAINS", [value] | [value, Expression::Literal(Value::Bool(_))]) => one(value),
        ("ARRAY_CONTAINS_ANY", values) => any(values.iter().map(one)).at_most(),
        ("ARRAY_CONTAINS_ALL", values) => all(values.iter().map(one)).at_most(),
        _ => Found::unknown(),
    }
}

fn equals(place: Place, value: &Value) -> Found {
    match value {
        Value::Array(_) | Value::Object(_) => holds_value(place, value),
        scalar => stands(place, Standing::point(scalar.view())),
    }
}

/// The type of a constant array or object.
fn shape(value: &Value) -> Standing {
    if matches!(value, Value::Array(_)) { Standing::array() } else { Standing::object() }
}

/// Where a place holds something, but not this array or object.
pub(super) fn holds_other(place: Place, value: &Value) -> Found {
    let shape = shape(value);
    let another_type = shape.complement().intersect(&Standing::defined());
    any([stands(place.clone(), another_type), stands(place, shape).at_most()])
}

/// Where a place holds this array or object, or at least what is in it.
pub(super) fn holds_value(place: Place, value: &Value) -> Found {
    let mut found = Vec::new();
    if is_single(&place.path) {
        found.push(stands(place.clone(), shape(value)));
    }
    gather(place, value, &mut found);
    all(found).at_most()
}

fn gather(place: Place, value: &Value, found: &mut Vec<Found>) {
    let within = |step: Step| {
        let mut within = place.clone();
        if step == Step::Each {
            within.binding = NOBODY;
        }
        within.path.push(step);
        within
    };
    match value {
        Value::Array(items) => {
            for item in items.iter().take(VALUES_MAX) {
                gather(within(Step::Each), item, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter().take(VALUES_MAX) {
                gather(within(Step::Name(name.to_owned())), member, found);
            }
        }
        scalar if found.len() < VALUES_MAX => found.push(stands(place, Standing::point(scalar.view()))),
        _ => {}
    }
}
