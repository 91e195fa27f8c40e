//! Comparison of values: as a query compares them, and as one total order.
//!
//! Numbers compare by value whether stored as integer or double, and exactly: an `i64` is never rounded to a double
//! first. Objects compare by their sorted members, so the order in which a client wrote them does not count.

use std::cmp::Ordering;

use crate::value::view::ValueRef;

/// Returns `true` if a query's `=` holds: same type, same value, `1` equal to `1.0`, members in any order.
pub fn equal(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::String(a), ValueRef::String(b)) => a == b,
        (ValueRef::Array(a), ValueRef::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b))
        }
        _ => total_order(Some(a), Some(b)).is_eq(),
    }
}

/// Returns how two values compare for a query's `<` and its like; `None`, which a query calls undefined, for different
/// types and for arrays and objects, which are equal or not but never less.
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>) -> Option<Ordering> {
    let ordered = match (a, b) {
        (ValueRef::Bool(_), ValueRef::Bool(_)) => true,
        (ValueRef::Array(_) | ValueRef::Object(_), _) => false,
        _ => rank(Some(a)) == rank(Some(b)),
    };
    ordered.then(|| total_order(Some(a), Some(b)))
}

/// Returns the total order of two values, undefined (`None`) included: undefined < null < false < true < numbers <
/// strings < arrays < objects.
///
/// Strings order by their UTF-8 bytes, arrays item by item, objects member by member after sorting by name. The
/// bytes of [`crate::encode_key`] sort the same way.
pub fn total_order(a: Option<ValueRef<'_>>, b: Option<ValueRef<'_>>) -> Ordering {
    let (Some(x), Some(y)) = (a, b) else { return rank(a).cmp(&rank(b)) };
    match (x, y) {
        (ValueRef::Int(x), ValueRef::Int(y)) => x.cmp(&y),
        (ValueRef::Double(x), ValueRef::Double(y)) => compare_doubles(x, y),
        (ValueRef::Int(x), ValueRef::Double(y)) => compare_mixed(x, y),
        (ValueRef::Double(x), ValueRef::Int(y)) => compare_mixed(y, x).reverse(),
        (ValueRef::String(x), ValueRef::String(y)) => x.as_bytes().cmp(y.as_bytes()),
        (ValueRef::Array(x), ValueRef::Array(y)) => {
            let mut pairs = x.iter().zip(y.iter()).map(|(x, y)| total_order(Some(x), Some(y)));
            pairs.find(|order| order.is_ne()).unwrap_or_else(|| x.len().cmp(&y.len()))
        }
        (ValueRef::Object(x), ValueRef::Object(y)) => {
            let (x, y) = (sorted_members(x), sorted_members(y));
            let mut pairs = x.iter().zip(&y).map(|(x, y)| {
                x.0.as_bytes().cmp(y.0.as_bytes()).then_with(|| total_order(Some(x.1), Some(y.1)))
            });
            pairs.find(|order| order.is_ne()).unwrap_or_else(|| x.len().cmp(&y.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Returns the members of an object by name, the form in which objects compare and encode.
pub(crate) fn sorted_members(object: crate::ObjectRef<'_>) -> Vec<(&str, ValueRef<'_>)> {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    members
}

fn rank(value: Option<ValueRef<'_>>) -> u8 {
    match value {
        None => 0,
        Some(ValueRef::Null) => 1,
        Some(ValueRef::Bool(false)) => 2,
        Some(ValueRef::Bool(true)) => 3,
        Some(ValueRef::Int(_) | ValueRef::Double(_)) => 4,
        Some(ValueRef::String(_)) => 5,
        Some(ValueRef::Array(_)) => 6,
        Some(ValueRef::Object(_)) => 7,
    }
}

/// Compares two doubles; zero and minus zero are one number. NaN never comes from a document; it sorts by its bits,
/// so that a tree that code has built has one order, too.
fn compare_doubles(a: f64, b: f64) -> Ordering {
    // Adding zero turns -0.0 into 0.0 and changes nothing else.
    (a + 0.0).total_cmp(&(b + 0.0))
}

fn compare_mixed(int: i64, double: f64) -> Ordering {
    if double.is_nan() {
        return 0.0_f64.total_cmp(&double);
    }
    if double >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    if double < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    // The whole part is exact as an i64 here; the fraction decides a tie.
    let whole = double.trunc();
    int.cmp(&(whole as i64)).then_with(|| compare_doubles(whole, double))
}
