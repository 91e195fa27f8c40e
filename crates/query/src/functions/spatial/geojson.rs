//! Parsing of `GeoJSON` into shapes.
//!
//! A place has two coordinates, on the earth longitude and latitude in degrees; what follows them is ignored, as is a
//! `crs` member: the container says what surface it is, and the earth is WGS-84.

use document::{ArrayRef, ValueRef};

use super::shape::{Polygon, Shape};
use super::surface::SurfacePoint;
use crate::functions::context::Context;

/// Reads a geometry.
pub(super) fn read<P: SurfacePoint>(value: ValueRef<'_>, context: &Context) -> Result<Shape<P>, String> {
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

fn place<P: SurfacePoint>(coordinates: ArrayRef<'_>) -> Result<P, String> {
    let mut numbers = coordinates.iter().map(ValueRef::as_f64);
    let (Some(Some(first)), Some(Some(second))) = (numbers.next(), numbers.next()) else {
        return Err("A position must have at least two numbers, longitude and latitude.".to_owned());
    };
    if numbers.any(|number| number.is_none()) {
        return Err("A position must hold numbers only.".to_owned());
    }
    P::at(first, second)
}

fn places<P: SurfacePoint>(coordinates: ArrayRef<'_>, context: &Context) -> Result<Vec<P>, String> {
    if !context.spend(coordinates.len() as u64 / 8 + 1) {
        return Err("The query has done all it may.".to_owned());
    }
    coordinates.iter().map(|position| place(array(position)?)).collect()
}

/// Returns the positions of a line without repetitions of the one before.
fn chain<P: SurfacePoint>(mut places: Vec<P>) -> Result<Vec<P>, String> {
    places.dedup_by(|next, previous| next.is_at(*previous));
    match places.windows(2).find_map(|pair| pair[0].unjoinable(pair[1])) {
        None => Ok(places),
        Some(reason) => Err(reason.to_owned()),
    }
}

fn line<P: SurfacePoint>(coordinates: ArrayRef<'_>, context: &Context) -> Result<Vec<P>, String> {
    let places = places(coordinates, context)?;
    if places.len() < 2 {
        return Err("A LineString must have at least two positions.".to_owned());
    }
    chain(places)
}

fn polygon<P: SurfacePoint>(coordinates: ArrayRef<'_>, context: &Context) -> Result<Polygon<P>, String> {
    let mut rings =
        coordinates.iter().enumerate().map(|(index, positions)| ring(positions, index + 1, context));
    let Some(outer) = rings.next() else {
        return Err("A Polygon must have at least one ring.".to_owned());
    };
    Ok(Polygon::new(outer?, rings.collect::<Result<_, _>>()?))
}

/// Returns the corners of a ring, the first of them not again at the end.
fn ring<P: SurfacePoint>(
    positions: ValueRef<'_>,
    number: usize,
    context: &Context,
) -> Result<Vec<P>, String> {
    let positions = array(positions)?;
    let places: Vec<P> = places(positions, context)?;
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
    Ok(corners)
}
