//! Reading the operands of geographical operators.

use bson::{ArrayRef, DocumentRef, ValueRef};

use super::plane::Region;
use super::read::{Pair, geo_json, number, pair, position};
use super::shape::Shape;
use super::{GeoPredicate, GeoTest, Measure, Near};
use crate::error::{Error, Result};
use crate::path::FieldPath;

/// Reads the operand of `$geoWithin`.
pub(in crate::filter) fn geo_within(operand: ValueRef<'_>) -> Result<GeoTest> {
    let (specifier, value) = specifier("$geoWithin", operand)?;
    let question = match specifier {
        "$geometry" => {
            let shape = geo_json(geometry(value)?)?;
            if shape.areas.is_empty() || !shape.points.is_empty() || !shape.lines.is_empty() {
                let text = bson::shell_text(operand);
                let message = format!("$geoWithin not supported with provided geometry: {text}");
                return Err(Error::bad_value(message));
            }
            GeoPredicate::Within(shape)
        }
        "$box" => {
            let ([x1, y1], [x2, y2]) = two_pairs(value).ok_or_else(|| {
                Error::bad_value("Point must be an array or object: $box needs two corners")
            })?;
            GeoPredicate::WithinRegion(Region::Box([x1.min(x2), y1.min(y2)], [x1.max(x2), y1.max(y2)]))
        }
        "$polygon" => {
            let vertices =
                pairs(value).ok_or_else(|| Error::bad_value("Polygon must be an array of points"))?;
            if vertices.len() < 3 {
                return Err(Error::bad_value("Polygon must have at least 3 points"));
            }
            GeoPredicate::WithinRegion(Region::Polygon(vertices))
        }
        "$center" => {
            let (centre, radius) = circle(value)?;
            GeoPredicate::WithinRegion(Region::Circle { centre, radius })
        }
        "$centerSphere" => {
            let (centre, radius) = circle(value)?;
            position(centre)
                .map_err(|_| Error::bad_value("Spherical distance requires a point within its bounds"))?;
            GeoPredicate::WithinCap(centre, radius)
        }
        _ => return Err(Error::bad_value(format!("Unknown geo specifier: {specifier}"))),
    };
    Ok(GeoTest(question))
}

/// Reads the operand of `$geoIntersects`.
pub(in crate::filter) fn geo_intersects(operand: ValueRef<'_>) -> Result<GeoTest> {
    let (specifier, value) = specifier("$geoIntersects", operand)?;
    if specifier == "$geometry" {
        let document = geometry(value)?;
        let shape = match pair(value).filter(|_| document.get("type").is_none()) {
            Some(place) => Shape::point(position(place)?),
            None => geo_json(document)?,
        };
        return Ok(GeoTest(GeoPredicate::Intersects(shape)));
    }
    let text = bson::shell_text(operand);
    Err(Error::bad_value(format!("$geoIntersects not supported with provided geometry: {text}")))
}

/// Reads `$near` (also spelled `$geoNear`) or `$nearSphere` with the options beside it. The point is a pair, or `GeoJSON`
/// in `$geometry` or without it; in `$geometry` a pair under names is a point on the sphere, too.
pub(in crate::filter) fn near(
    operator: &str,
    path: &FieldPath,
    operand: ValueRef<'_>,
    siblings: DocumentRef<'_>,
) -> Result<Near> {
    let sphere = operator == "$nearSphere";
    let of_sphere = operand.as_document().and_then(|document| {
        let bare = || document.get("type").filter(|kind| kind.as_str().is_some());
        document.get("$geometry").or_else(|| bare().map(|_| operand)).map(|point| (point, document))
    });
    let (point, measure, bounds) = if let Some((point, document)) = of_sphere {
        let message =
            format!("invalid point in geo near query $geometry argument: {}", bson::shell_text(operand));
        let point = sphere_point(point).ok_or_else(|| Error::bad_value(message))?;
        position(point)?;
        let bounds = if document.get("$geometry").is_some() { document } else { siblings };
        (point, Measure::Metres, bounds)
    } else {
        let message = format!("invalid argument in geo near query: {}", bson::shell_text(operand));
        let point = pair(operand).ok_or_else(|| Error::bad_value(message))?;
        if sphere {
            position(point)?;
        }
        (point, if sphere { Measure::Radians } else { Measure::Plane }, siblings)
    };
    // The older form may also have the distance as a third coordinate.
    let third = operand.as_array().and_then(|items| items.get(2)).and_then(number);
    let bound = |name: &str| match bounds.get(name) {
        None => Ok(None),
        Some(value) => match number(value) {
            Some(distance) if distance >= 0.0 => Ok(Some(distance)),
            Some(_) => Err(Error::bad_value(format!("{} must be non-negative", &name[1..]))),
            None => Err(Error::bad_value(format!("{} must be a number", &name[1..]))),
        },
    };
    let least = bound("$minDistance")?.unwrap_or(0.0);
    let most = bound("$maxDistance")?.or(third).unwrap_or(f64::INFINITY);
    Ok(Near::new(path.clone(), point, measure, least, most))
}

/// Returns the position of a `GeoJSON` point, or of two numbers under any names.
fn sphere_point(value: ValueRef<'_>) -> Option<Pair> {
    let document = value.as_document()?;
    match document.get("type").and_then(ValueRef::as_str) {
        Some("Point") => pair(document.get("coordinates")?),
        Some(_) => None,
        None => pair(value),
    }
}

fn specifier<'a>(operator: &str, operand: ValueRef<'a>) -> Result<(&'a str, ValueRef<'a>)> {
    let Some(document) = operand.as_document() else {
        return Err(Error::bad_value(format!("{operator} must be an object")));
    };
    let mut fields = document.iter().filter(|(name, _)| *name != "$uniqueDocs");
    fields
        .next()
        .ok_or_else(|| Error::bad_value(format!("{operator} geometry must be an object with a specifier")))
}

fn geometry(value: ValueRef<'_>) -> Result<DocumentRef<'_>> {
    value.as_document().ok_or_else(|| Error::bad_value("$geometry must be an object"))
}

fn pairs(value: ValueRef<'_>) -> Option<Vec<Pair>> {
    match value {
        ValueRef::Array(items) => items.iter().map(pair).collect(),
        ValueRef::Document(document) => document.iter().map(|(_, value)| pair(value)).collect(),
        _ => None,
    }
}

fn two_pairs(value: ValueRef<'_>) -> Option<(Pair, Pair)> {
    match pairs(value)?.as_slice() {
        [first, second] => Some((*first, *second)),
        _ => None,
    }
}

fn circle(value: ValueRef<'_>) -> Result<(Pair, f64)> {
    let items = value.as_array().map(|items: ArrayRef<'_>| (items.get(0), items.get(1), items.get(2)));
    let Some((Some(centre), Some(radius), None)) = items else {
        return Err(Error::bad_value("$center needs a point and a radius"));
    };
    let centre = pair(centre).ok_or_else(|| Error::bad_value("Point must be an array or object"))?;
    let radius = number(radius).filter(|radius| *radius >= 0.0);
    Ok((centre, radius.ok_or_else(|| Error::bad_value("radius must be a non-negative number"))?))
}
