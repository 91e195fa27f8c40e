//! `GeoJSON` in: shapes, or the reason why a value is none.
//!
//! Places have longitude first, in degrees; what follows the latitude is ignored, as is a `crs` member: all is
//! WGS-84.

use document::{ArrayRef, ValueRef};

use super::ellipsoid::direction;
use super::shape::{Polygon, Ring, Shape, opposite};
use super::sphere::Vector;
use crate::context::Context;

/// Reads a geometry.
pub(super) fn read(value: ValueRef<'_>, context: &Context) -> Result<Shape, String> {
    let kind = value.get("type").and_then(ValueRef::as_str);
    let coordinates = value.get("coordinates").and_then(ValueRef::as_array);
    let (Some(kind), Some(coordinates)) = (kind, coordinates) else {
        return Err("A geometry must be an object with a type and an array of coordinates.".to_owned());
    };
    let mut shape = Shape::default();
    match kind {
        "Point" => shape.points.push(place(coordinates)?),
        "MultiPoint" => shape.points = places(coordinates, context)?,
        "LineString" => shape.lines.push(line(coordinates, context)?),
        "Polygon" => shape.polygons.push(polygon(coordinates, context)?),
        "MultiPolygon" => {
            for rings in coordinates.iter() {
                shape.polygons.push(polygon(array(rings)?, context)?);
            }
        }
        other => return Err(format!("The geometry type {other:?} is not supported.")),
    }
    Ok(shape)
}

fn array(value: ValueRef<'_>) -> Result<ArrayRef<'_>, String> {
    value
        .as_array()
        .ok_or_else(|| "Coordinates must be arrays of numbers, nested as the type wants.".to_owned())
}

fn place(coordinates: ArrayRef<'_>) -> Result<Vector, String> {
    let mut numbers = coordinates.iter().map(ValueRef::as_f64);
    let (Some(Some(longitude)), Some(Some(latitude))) = (numbers.next(), numbers.next()) else {
        return Err("A position must have at least two numbers, longitude and latitude.".to_owned());
    };
    if numbers.any(|number| number.is_none()) {
        return Err("A position must hold numbers only.".to_owned());
    }
    if !(-90.0..=90.0).contains(&latitude) {
        return Err("Latitude values must be between -90 and 90 degrees.".to_owned());
    }
    if !(-180.0..=180.0).contains(&longitude) {
        return Err("Longitude values must be between -180 and 180 degrees.".to_owned());
    }
    Ok(direction(longitude, latitude))
}

fn places(coordinates: ArrayRef<'_>, context: &Context) -> Result<Vec<Vector>, String> {
    if !context.spend(coordinates.len() as u64 / 8 + 1) {
        return Err("The query has done all it may.".to_owned());
    }
    coordinates.iter().map(|position| place(array(position)?)).collect()
}

/// Places in a row, each different from the one before.
fn chain(mut places: Vec<Vector>) -> Result<Vec<Vector>, String> {
    places.dedup_by(|next, previous| next.is_at(*previous));
    if places.windows(2).any(|pair| opposite(pair[0], pair[1])) {
        return Err("An edge must not join positions on opposite sides of the earth.".to_owned());
    }
    Ok(places)
}

fn line(coordinates: ArrayRef<'_>, context: &Context) -> Result<Vec<Vector>, String> {
    let places = places(coordinates, context)?;
    if places.len() < 2 {
        return Err("A LineString must have at least two positions.".to_owned());
    }
    chain(places)
}

fn polygon(coordinates: ArrayRef<'_>, context: &Context) -> Result<Polygon, String> {
    let mut rings =
        coordinates.iter().enumerate().map(|(index, positions)| ring(positions, index + 1, context));
    let Some(outer) = rings.next() else {
        return Err("A Polygon must have at least one ring.".to_owned());
    };
    Ok(Polygon::new(outer?, rings.collect::<Result<_, _>>()?))
}

fn ring(positions: ValueRef<'_>, number: usize, context: &Context) -> Result<Ring, String> {
    let positions = array(positions)?;
    let places = places(positions, context)?;
    if places.len() < 4 {
        return Err(format!(
            "The Polygon input is not valid because the ring number {number} has fewer than four positions."
        ));
    }
    let (first, last) = (places[0], places[places.len() - 1]);
    if !first.is_at(last) {
        return Err(format!(
            "The Polygon input is not valid because the start and end points of the ring number {number} are not the \
             same. Each ring of a polygon must have the same start and end points."
        ));
    }
    let mut corners = chain(places)?;
    corners.pop();
    if corners.len() < 3 {
        return Err(format!(
            "The Polygon input is not valid because the ring number {number} does not surround an area."
        ));
    }
    Ok(Ring::new(corners))
}
