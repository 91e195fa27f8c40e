//! Geographic keys: cells of a grid over longitude and latitude.
//!
//! The world is one cell; each cell has four children, halves of it in both directions. A point's key is its cell at the
//! deepest level, a shape's keys are a few cells that together cover the box around it. A cell is written as its way from
//! the world, one byte per level and a zero at the end, so that all cells within one are those that begin like it.
//!
//! Keys only narrow a search: the executor checks the filter again.

use bson::{ArrayRef, DocumentRef, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::geo_box::{GeoBox, Position, boxes_around};
use crate::path::{Arrays, FieldPath};

/// How deep cells go: about two metres at the equator.
const LEVEL_MAX: usize = 24;
/// How many cells one box is covered with, give or take three.
const CELLS_PER_BOX: usize = 8;
/// How many positions one geometry may have.
const POSITIONS_MAX: usize = 1_000_000;

/// A cell: its way from the world, one digit from 1 to 4 per level.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cell(Vec<u8>);

impl Cell {
    fn children(&self, bounds: &GeoBox) -> [(Cell, GeoBox); 4] {
        let (middle, equator) =
            (f64::midpoint(bounds.west, bounds.east), f64::midpoint(bounds.south, bounds.north));
        let child = |digit: u8| {
            let mut way = self.0.clone();
            way.push(digit);
            let (west, east) = if digit % 2 == 1 { (bounds.west, middle) } else { (middle, bounds.east) };
            let (south, north) = if digit <= 2 { (bounds.south, equator) } else { (equator, bounds.north) };
            (Cell(way), GeoBox { west, south, east, north })
        };
        [child(1), child(2), child(3), child(4)]
    }

    fn key(&self) -> Vec<u8> {
        [self.0.as_slice(), &[0]].concat()
    }
}

/// Returns the spans of pieces of keys such that every geometry touching these boxes has one of them: half-open, in order.
/// A span holds everything that begins with one of its pieces: after a piece follow the other parts of the key and the
/// number of the item.
pub(super) fn spans(boxes: &[GeoBox]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut spans = Vec::new();
    for cell in boxes.iter().flat_map(cover) {
        // All cells within it, and itself.
        let mut upper = cell.0.clone();
        match upper.last_mut() {
            Some(last) => *last += 1,
            None => upper.push(5),
        }
        spans.push((cell.0.clone(), upper));
        // The cells that contain it, each by itself.
        for length in 0..cell.0.len() {
            let outer = &cell.0[..length];
            spans.push(([outer, &[0]].concat(), [outer, &[1]].concat()));
        }
    }
    spans.sort();
    spans.dedup();
    spans
}

/// Returns a few cells that cover a box.
fn cover(bounds: &GeoBox) -> Vec<Cell> {
    let mut cells = vec![(Cell(Vec::new()), GeoBox::WORLD)];
    for _ in 0..LEVEL_MAX {
        let mut finer = Vec::new();
        for (cell, extent) in &cells {
            if extent.within(bounds) {
                finer.push((cell.clone(), *extent));
            } else {
                finer.extend(cell.children(extent).into_iter().filter(|(_, child)| child.meets(bounds)));
            }
        }
        if finer.len() > CELLS_PER_BOX || finer == cells {
            break;
        }
        cells = finer;
    }
    cells.into_iter().map(|(cell, _)| cell).collect()
}

/// Returns the pieces of keys of a geographic field; none if the field is missing or null.
pub(super) fn cells_of_field(
    path: &FieldPath,
    document: DocumentRef<'_>,
    context: &Context,
) -> Result<Vec<Vec<u8>>> {
    let mut boxes = Vec::new();
    path.any(document, Arrays::Whole, context, &mut |leaf| {
        match leaf.value {
            None | Some(ValueRef::Null | ValueRef::Undefined) => {}
            Some(value) => boxes_of(value, &mut boxes).map_err(|reason| {
                let shown = bson::shell_text(ValueRef::Document(document));
                Error::location(16755, format!("Can't extract geo keys: {shown} {reason}"))
            })?,
        }
        Ok(false)
    })?;
    let mut cells: Vec<Vec<u8>> = boxes.iter().flat_map(cover).map(|cell| cell.key()).collect();
    cells.sort_unstable();
    cells.dedup();
    Ok(cells)
}

type Read<T> = std::result::Result<T, String>;

/// Returns the boxes around everything in a stored value: a geometry, a pair of numbers, or an array of these.
pub(super) fn boxes_of(value: ValueRef<'_>, out: &mut Vec<GeoBox>) -> Read<()> {
    match value {
        ValueRef::Document(geometry) if geometry.get("type").is_some_and(|kind| kind.as_str().is_some()) => {
            geometry_boxes(geometry, 0, out)
        }
        ValueRef::Document(pair) => {
            // An old form: two numbers under any names, longitude first.
            let mut numbers = pair.iter().map(|(_, value)| number(value));
            match (numbers.next().flatten(), numbers.next().flatten()) {
                (Some(longitude), Some(latitude)) => point(longitude, latitude, out),
                _ => Err("Point must only contain numeric elements".into()),
            }
        }
        ValueRef::Array(items) => match items.get(0) {
            None => Err("Point must be an array or object".into()),
            Some(first) if first.is_number() => {
                let (longitude, latitude) = position(value)?;
                point(longitude, latitude, out)
            }
            Some(_) => items.iter().try_for_each(|item| match item {
                ValueRef::Array(pair) if !pair.get(0).is_some_and(ValueRef::is_number) => {
                    Err("Point must only contain numeric elements".into())
                }
                item => boxes_of(item, out),
            }),
        },
        _ => Err("geo element must be an array or object".into()),
    }
}

fn geometry_boxes(geometry: DocumentRef<'_>, depth: usize, out: &mut Vec<GeoBox>) -> Read<()> {
    let kind = geometry.get("type").and_then(ValueRef::as_str).unwrap_or("");
    // With its own reference system a polygon may be the larger part of the globe.
    if geometry.get("crs").is_some() {
        out.push(GeoBox::WORLD);
    }
    if kind == "GeometryCollection" {
        let Some(ValueRef::Array(members)) = geometry.get("geometries") else {
            return Err("GeometryCollection geometries must be an array".into());
        };
        if depth > 0 {
            return Err("GeometryCollections cannot be nested".into());
        }
        return members.iter().try_for_each(|member| match member {
            ValueRef::Document(member) => geometry_boxes(member, depth + 1, out),
            _ => Err("Element of \"geometries\" must be an object".into()),
        });
    }
    let coordinates = geometry.get("coordinates").ok_or("GeoJSON coordinates must be an array")?;
    match kind {
        "Point" => {
            let (longitude, latitude) = position(coordinates)?;
            point(longitude, latitude, out)
        }
        "LineString" => line(each(coordinates)?, out),
        "Polygon" => polygon(each(coordinates)?, out),
        "MultiPoint" => each(coordinates)?.iter().try_for_each(|item| {
            let (longitude, latitude) = position(item)?;
            point(longitude, latitude, out)
        }),
        "MultiLineString" => each(coordinates)?.iter().try_for_each(|item| line(each(item)?, out)),
        "MultiPolygon" => each(coordinates)?.iter().try_for_each(|item| polygon(each(item)?, out)),
        other => {
            let shown: String = other.chars().take(100).collect();
            Err(format!("unknown GeoJSON type: {shown}"))
        }
    }
}

fn each(value: ValueRef<'_>) -> Read<ArrayRef<'_>> {
    value.as_array().ok_or_else(|| "GeoJSON coordinates must be an array of coordinates".into())
}

fn number(value: ValueRef<'_>) -> Option<f64> {
    super::as_double(&value.to_value()).filter(|number| number.is_finite())
}

fn position(value: ValueRef<'_>) -> Read<Position> {
    let ValueRef::Array(items) = value else { return Err("Point must be an array or object".into()) };
    let mut numbers = items.iter().map(number);
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(longitude), Some(latitude)) => checked(longitude, latitude),
        _ => Err("Point must only contain numeric elements".into()),
    }
}

fn checked(longitude: f64, latitude: f64) -> Read<Position> {
    if (-180.0..=180.0).contains(&longitude) && (-90.0..=90.0).contains(&latitude) {
        return Ok((longitude, latitude));
    }
    Err(format!("longitude/latitude is out of bounds, lng: {longitude} lat: {latitude}"))
}

fn point(longitude: f64, latitude: f64, out: &mut Vec<GeoBox>) -> Read<()> {
    let (longitude, latitude) = checked(longitude, latitude)?;
    out.extend(boxes_around(&[(longitude, latitude)]));
    Ok(())
}

fn positions(items: ArrayRef<'_>) -> Read<Vec<Position>> {
    let found: Vec<Position> = items.iter().take(POSITIONS_MAX + 1).map(position).collect::<Read<_>>()?;
    if found.len() > POSITIONS_MAX {
        return Err(format!("a geometry may have at most {POSITIONS_MAX} positions"));
    }
    Ok(found)
}

fn line(items: ArrayRef<'_>, out: &mut Vec<GeoBox>) -> Read<()> {
    let vertices = positions(items)?;
    if vertices.len() < 2 {
        return Err("GeoJSON LineString must have at least 2 vertices".into());
    }
    out.extend(boxes_around(&vertices));
    Ok(())
}

fn polygon(rings: ArrayRef<'_>, out: &mut Vec<GeoBox>) -> Read<()> {
    if rings.is_empty() {
        return Err("Polygon has no loops.".into());
    }
    for (number, ring) in rings.iter().enumerate() {
        let ValueRef::Array(items) = ring else {
            return Err("Polygon coordinates must be an array of arrays".into());
        };
        let vertices = positions(items)?;
        if vertices.first() != vertices.last() {
            return Err("Loop is not closed".into());
        }
        if vertices.len() < 4 {
            return Err("Loop must have at least 3 different vertices".into());
        }
        // Holes lie within the outer ring.
        if number == 0 {
            out.extend(boxes_around(&vertices));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bson::parse_extended_json;

    use super::*;
    use crate::geo_box::boxes_around_circle;

    fn boxes(json: &str) -> Read<Vec<GeoBox>> {
        let value = parse_extended_json(json).expect(json);
        let mut out = Vec::new();
        boxes_of(value.view(), &mut out).map(|()| out)
    }

    fn holds(boxes: &[GeoBox], longitude: f64, latitude: f64) -> bool {
        let spot = GeoBox { west: longitude, south: latitude, east: longitude, north: latitude };
        boxes.iter().any(|bounds| spot.within(bounds))
    }

    #[test]
    fn shapes_have_boxes() {
        assert!(holds(&boxes("[10, 20]").expect("a point"), 10.0, 20.0));
        assert!(holds(&boxes(r#"{"lng": 10, "lat": 20}"#).expect("a point"), 10.0, 20.0));
        assert!(holds(
            &boxes(r#"[[1, 2], {"type":"Point","coordinates":[3, 4]}]"#).expect("points"),
            3.0,
            4.0
        ));
        let across = boxes(r#"{"type":"LineString","coordinates":[[179, 0],[-179, 1]]}"#).expect("a line");
        assert!(holds(&across, 179.5, 0.5) && holds(&across, -179.5, 0.5) && !holds(&across, 0.0, 0.5));
        let long = boxes(r#"{"type":"LineString","coordinates":[[-60, 50],[60, 50]]}"#).expect("a line");
        assert!(holds(&long, 0.0, 66.0), "the short way runs north: {long:?}");
        let pole = r#"{"type":"Polygon","coordinates":[[[0,80],[90,80],[180,80],[-90,80],[0,80]]]}"#;
        assert!(holds(&boxes(pole).expect("a polygon"), 45.0, 90.0));
        for wrong in [
            "5",
            "[]",
            "[1]",
            "[\"a\", 1]",
            "[200, 0]",
            "[0, 91]",
            r#"{"type":"Circle","coordinates":[0,0]}"#,
            r#"{"type":"Point"}"#,
            r#"{"type":"LineString","coordinates":[[0,0]]}"#,
            r#"{"type":"Polygon","coordinates":[[[0,0],[1,1],[2,0]]]}"#,
            r#"{"a":"x","b":1}"#,
        ] {
            assert!(boxes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_lies_in_a_box_is_found_by_its_spans() {
        let found = |searched: &[GeoBox], stored: &[GeoBox]| {
            let spans = spans(searched);
            stored.iter().flat_map(cover).any(|cell| {
                let key = cell.key();
                spans.iter().any(|(lower, upper)| *lower <= key && key < *upper)
            })
        };
        let paris = boxes("[2.35, 48.85]").expect("a point");
        let berlin = boxes("[13.4, 52.5]").expect("a point");
        let europe = vec![GeoBox { west: -10.0, south: 35.0, east: 40.0, north: 70.0 }];
        let near_paris = boxes_around_circle(2.3, 48.8, 10.0 / 6371.0);
        assert!(found(&europe, &paris) && found(&paris, &europe));
        assert!(found(&near_paris, &paris) && !found(&near_paris, &berlin));
        assert!(found(&[GeoBox::WORLD], &berlin) && found(&berlin, &[GeoBox::WORLD]));
        assert!(boxes_around_circle(179.99, 0.0, 0.01).len() == 2);
    }
}
