//! Reading geometries: `GeoJSON`, and the older pairs of coordinates.

use bson::{ArrayRef, DocumentRef, ValueRef};

use super::shape::{Area, Shape};
use super::sphere::{Ring, Vector, Winding};
use crate::error::{Error, Result};

/// A point of a plane, or a longitude and a latitude.
pub(super) type Pair = [f64; 2];

/// The reference system in which the inside of a polygon is on the left of its line.
const STRICT_WINDING: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";
const LONGITUDE_LATITUDE: [&str; 2] = ["urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326"];

/// Kinds of geometry.
pub(super) const KINDS: [&str; 7] =
    ["Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection"];

/// How often collections may be nested.
const COLLECTION_DEPTH: usize = 16;

/// Returns a number as coordinates have them.
pub(super) fn number(value: ValueRef<'_>) -> Option<f64> {
    let number = match value {
        ValueRef::Double(number) => number,
        ValueRef::Int32(number) => number.into(),
        ValueRef::Int64(number) => number as f64,
        ValueRef::Decimal128(number) => number.to_f64(),
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// Returns a pair of coordinates: `[x, y]`, or a document whose first two fields are numbers.
pub(super) fn pair(value: ValueRef<'_>) -> Option<Pair> {
    let (x, y) = match value {
        ValueRef::Array(items) => (items.get(0)?, items.get(1)?),
        ValueRef::Document(document) => {
            let mut fields = document.iter().map(|(_, value)| value);
            (fields.next()?, fields.next()?)
        }
        _ => return None,
    };
    Some([number(x)?, number(y)?])
}

/// Returns the coordinates of a point, in any stored form.
pub(super) fn stored_pair(value: ValueRef<'_>) -> Option<Pair> {
    match value {
        ValueRef::Document(document) if document.get("type").and_then(ValueRef::as_str) == Some("Point") => {
            pair(document.get("coordinates")?)
        }
        other => pair(other),
    }
}

/// Returns a shape on the sphere, in any stored form; `None` if it is none.
pub(super) fn stored_shape(value: ValueRef<'_>) -> Option<Shape> {
    match value {
        ValueRef::Document(document) if document.get("type").and_then(ValueRef::as_str).is_some() => {
            read(document, Origin::Stored).ok()
        }
        other => position(pair(other)?).ok().map(Shape::point),
    }
}

/// Where a shape comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A query: lines that close on themselves are refused.
    Query,
    /// A document. Its keys in indexes were made from the shape as stored, so its meaning must not change.
    Stored,
}

/// Reads `GeoJSON` of a query.
pub(super) fn geo_json(document: DocumentRef<'_>) -> Result<Shape> {
    read(document, Origin::Query)
}

fn read(document: DocumentRef<'_>, origin: Origin) -> Result<Shape> {
    let winding = winding(document)?;
    let mut shape = Shape::default();
    add(document, (winding, origin), COLLECTION_DEPTH, &mut shape)?;
    Ok(shape)
}

fn winding(document: DocumentRef<'_>) -> Result<Winding> {
    let Some(crs) = document.get("crs") else { return Ok(Winding::Smaller) };
    let properties = crs.as_document().and_then(|crs| crs.get("properties")).and_then(ValueRef::as_document);
    match properties.and_then(|properties| properties.get("name")).and_then(ValueRef::as_str) {
        Some(STRICT_WINDING) => Ok(Winding::Left),
        Some(name) if LONGITUDE_LATITUDE.contains(&name) => Ok(Winding::Smaller),
        Some(name) => Err(Error::bad_value(format!("Unknown CRS name: {name}"))),
        None => Err(Error::bad_value(
            "GeoJSON CRS must have field \"properties\" which is an object and has a name",
        )),
    }
}

fn add(document: DocumentRef<'_>, how: (Winding, Origin), depth: usize, shape: &mut Shape) -> Result<()> {
    let kind = document.get("type").and_then(ValueRef::as_str).unwrap_or_default();
    if kind == "GeometryCollection" {
        let members = document.get("geometries").and_then(ValueRef::as_array);
        let members = members.filter(|members| !members.is_empty() && depth > 0);
        let members = members
            .ok_or_else(|| Error::bad_value("GeometryCollection geometries must be a nonempty array"))?;
        for member in members.iter() {
            let member = member
                .as_document()
                .ok_or_else(|| Error::bad_value("GeometryCollection member must be an object"))?;
            add(member, how, depth - 1, shape)?;
        }
        return Ok(());
    }
    if !KINDS.contains(&kind) {
        return Err(Error::bad_value(format!(
            "unknown GeoJSON type: {}",
            bson::shell_text(ValueRef::Document(document))
        )));
    }
    let coordinates = document.get("coordinates").and_then(ValueRef::as_array);
    let coordinates =
        coordinates.ok_or_else(|| Error::bad_value("GeoJSON coordinates must be an array of coordinates"))?;
    match kind {
        "Point" => shape.points.push(coordinate(ValueRef::Array(coordinates))?),
        "MultiPoint" => shape.points.extend(line(coordinates, 1)?),
        "LineString" => shape.lines.push(line(coordinates, 2)?),
        "Polygon" => shape.areas.push(area(coordinates, how)?),
        _ => {
            for part in coordinates.iter() {
                let part =
                    part.as_array().ok_or_else(|| Error::bad_value("GeoJSON coordinates must be arrays"))?;
                match kind {
                    "MultiLineString" => shape.lines.push(line(part, 2)?),
                    _ => shape.areas.push(area(part, how)?),
                }
            }
            if coordinates.is_empty() {
                return Err(Error::bad_value(format!("{kind} coordinates must have at least 1 element")));
            }
        }
    }
    Ok(())
}

fn coordinate(value: ValueRef<'_>) -> Result<Vector> {
    let ValueRef::Array(_) = value else {
        return Err(Error::bad_value("GeoJSON coordinates must be an array"));
    };
    let pair = pair(value).ok_or_else(|| Error::bad_value("Point must only contain numeric elements"))?;
    position(pair)
}

/// Returns a longitude and a latitude, if they are within their bounds.
pub(super) fn position([longitude, latitude]: Pair) -> Result<Vector> {
    if longitude.abs() > 180.0 || latitude.abs() > 90.0 {
        let message = format!("longitude/latitude is out of bounds, lng: {longitude} lat: {latitude}");
        return Err(Error::bad_value(message));
    }
    Ok(Vector::from_degrees(longitude, latitude))
}

fn line(coordinates: ArrayRef<'_>, least: usize) -> Result<Vec<Vector>> {
    let vertices = coordinates.iter().map(coordinate).collect::<Result<Vec<_>>>()?;
    if vertices.len() < least {
        return Err(Error::bad_value(format!("GeoJSON coordinates must have at least {least} elements")));
    }
    Ok(vertices)
}

fn area(coordinates: ArrayRef<'_>, (winding, origin): (Winding, Origin)) -> Result<Area> {
    let mut rings = Vec::new();
    for ring in coordinates.iter() {
        let ring = ring.as_array().ok_or_else(|| Error::bad_value("Polygon coordinates must be an array"))?;
        let mut vertices = line(ring, 1)?;
        if vertices.len() < 4 {
            return Err(Error::bad_value("Loop must have at least 3 different vertices"));
        }
        if vertices.first() != vertices.last() {
            let text = bson::shell_text(ValueRef::Array(ring));
            return Err(Error::bad_value(format!("Loop is not closed: {text}")));
        }
        vertices.pop();
        vertices.dedup();
        if vertices.len() < 3 {
            return Err(Error::bad_value("Loop must have at least 3 different vertices"));
        }
        if origin == Origin::Query {
            check_loop(&vertices, ring)?;
        }
        // A hole is always the smaller part.
        let winding = if rings.is_empty() { winding } else { Winding::Smaller };
        rings.push(Ring::new(vertices, winding));
    }
    let mut rings = rings.into_iter();
    let outer = rings.next().ok_or_else(|| Error::bad_value("Polygon has no loops."))?;
    Ok(Area { outer, holes: rings.collect() })
}

/// Refuses a loop that comes back to one of its vertices, or that goes from one side of the globe to the opposite one, for
/// which there is no shortest way. All of a pole is one vertex.
fn check_loop(vertices: &[Vector], ring: ArrayRef<'_>) -> Result<()> {
    let mut places: Vec<[i64; 3]> = vertices.iter().map(|vertex| vertex.rounded()).collect();
    let opposite =
        |[left, right]: [&[i64; 3]; 2]| left.iter().zip(right).all(|(left, right)| *left == -*right);
    let last = places.last().into_iter().zip(places.first()).map(|(last, first)| [last, first]);
    let edges = places.windows(2).map(|edge| [&edge[0], &edge[1]]);
    let through_the_middle = edges.chain(last).any(opposite);
    places.sort_unstable();
    if through_the_middle || places.windows(2).any(|pair| pair[0] == pair[1]) {
        let what =
            if through_the_middle { "has an edge between opposite points" } else { "has duplicate vertices" };
        let text = bson::shell_text(ValueRef::Array(ring));
        return Err(Error::bad_value(format!("Loop is not valid: it {what}: {text}")));
    }
    Ok(())
}
