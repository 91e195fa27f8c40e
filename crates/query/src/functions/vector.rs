//! `VECTORDISTANCE`: the similarity of two vectors.
//!
//! Numbers are computed as doubles whatever type the options name; the type only says what an index would store.
//! Cosine and dot product grow with similarity, the Euclidean distance shrinks; the executor turns that into an
//! order, and takes the function from the container's vector policy.

use document::{ArrayRef, Value, ValueRef};

use super::{Arg, Entry, bounds, number};
use crate::functions::context::Context;

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "VECTORDISTANCE", least: 2, most: 4, run: vector_distance },
    // The name that plans of fused ranks use.
    Entry { name: "_VECTORSCORE", least: 2, most: 4, run: vector_distance },
];

/// A measure of two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DistanceFunction {
    /// The cosine of the angle: 1 is most similar, -1 least.
    #[default]
    Cosine,
    /// The distance: 0 is most similar.
    Euclidean,
    /// The sum of products: larger is more similar.
    DotProduct,
}

impl DistanceFunction {
    /// Returns the function of that name, in letters of either case.
    pub fn from_name(name: &str) -> Option<DistanceFunction> {
        let named = |known: &str| name.eq_ignore_ascii_case(known);
        if named("cosine") {
            Some(DistanceFunction::Cosine)
        } else if named("euclidean") {
            Some(DistanceFunction::Euclidean)
        } else if named("dotproduct") {
            Some(DistanceFunction::DotProduct)
        } else {
            None
        }
    }
}

/// Returns the measure of two vectors; undefined for different lengths, for no elements, for elements that are not numbers and
/// where there is no finite result, as for the angle to a vector of zeros.
pub(crate) fn distance(function: DistanceFunction, a: ArrayRef<'_>, b: ArrayRef<'_>) -> Option<f64> {
    if a.len() != b.len() || a.is_empty() {
        return None;
    }
    let (mut products, mut squares_a, mut squares_b, mut squares_apart) = (0.0, 0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b.iter()) {
        let (a, b) = (a.as_f64()?, b.as_f64()?);
        products += a * b;
        squares_a += a * a;
        squares_b += b * b;
        squares_apart += (a - b) * (a - b);
    }
    let measure: f64 = match function {
        DistanceFunction::Cosine => products / (f64::sqrt(squares_a) * f64::sqrt(squares_b)),
        DistanceFunction::Euclidean => f64::sqrt(squares_apart),
        DistanceFunction::DotProduct => products,
    };
    measure.is_finite().then_some(measure)
}

/// Returns the function that options name: the default when they name none, undefined when they name what does not exist.
fn named_function(options: ValueRef<'_>) -> Option<DistanceFunction> {
    const DATA_TYPES: [&str; 4] = ["float32", "float16", "int8", "uint8"];
    let options = options.as_object()?;
    if let Some(data_type) = options.get("dataType") {
        let data_type = data_type.as_str()?;
        DATA_TYPES.iter().find(|known| known.eq_ignore_ascii_case(data_type))?;
    }
    options
        .get("distanceFunction")
        .map_or(Some(DistanceFunction::default()), |name| DistanceFunction::from_name(name.as_str()?))
}

/// Computes the distance. The third argument, whether to bypass an index, has no effect: there is no vector index.
fn vector_distance(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (a, b) = (arguments[0]?.as_array()?, arguments[1]?.as_array()?);
    if let Some(brute_force) = arguments.get(2) {
        (*brute_force)?.as_bool()?;
    }
    let function =
        arguments.get(3).map_or(Some(DistanceFunction::default()), |options| named_function((*options)?))?;
    bounds::walk(a.len().saturating_mul(16), context)?;
    number(distance(function, a, b)?)
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn measures() {
        check(&[
            ("VECTORDISTANCE", "[1, 0], [1, 0]", "1"),
            ("VECTORDISTANCE", "[1, 0], [0, 2]", "0"),
            ("VECTORDISTANCE", "[1, 0], [-3, 0]", "-1"),
            ("VECTORDISTANCE", "[1, 1], [1, 0], false", "0.7071067811865475"),
            ("VECTORDISTANCE", r#"[3, 4], [0, 0], true, {"distanceFunction": "euclidean"}"#, "5"),
            ("VECTORDISTANCE", r#"[1.5, 2], [2, -1], true, {"distanceFunction": "DotProduct"}"#, "1"),
            (
                "VECTORDISTANCE",
                r#"[1, 0], [2, 0], true, {"distanceFunction": "cosine", "dataType": "float32"}"#,
                "1",
            ),
            ("VECTORDISTANCE", "[1, 0], [2, 0], true, {}", "1"),
            ("VECTORDISTANCE", "[0, 0], [1, 0]", "undefined"),
            ("VECTORDISTANCE", "[1, 0], [1, 0, 0]", "undefined"),
            ("VECTORDISTANCE", "[], []", "undefined"),
            ("VECTORDISTANCE", r#"[1, "0"], [1, 0]"#, "undefined"),
            ("VECTORDISTANCE", "[1, null], [1, 0]", "undefined"),
            ("VECTORDISTANCE", "undefined, [1, 0]", "undefined"),
            ("VECTORDISTANCE", "[1], 1", "undefined"),
            ("VECTORDISTANCE", "[1], [1], 1", "undefined"),
            ("VECTORDISTANCE", "[1], [1], true, 1", "undefined"),
            ("VECTORDISTANCE", r#"[1], [1], true, {"distanceFunction": "manhattan"}"#, "undefined"),
            ("VECTORDISTANCE", r#"[1], [1], true, {"dataType": "text"}"#, "undefined"),
            ("VECTORDISTANCE", r#"[1e200], [1e200], true, {"distanceFunction": "dotproduct"}"#, "undefined"),
        ]);
    }
}
