//! Geographic conditions: `$geoWithin`, `$geoIntersects`, `$near`, `$nearSphere`.
//!
//! `GeoJSON` lies on the sphere. The older pairs of coordinates lie in a plane for `$box`, `$polygon`, `$center` and `$near`, and on
//! the sphere, as longitude and latitude, for everything else.

mod bounds;
mod parse;
mod plane;
mod read;
mod shape;
mod sphere;

use bson::{DocumentRef, ValueRef};

pub(super) use parse::{geo_intersects, geo_within, near};

use crate::context::Context;
use crate::error::Result;
use crate::path::{Arrays, FieldPath};
use plane::Region;
use read::{Pair, position, stored_pair, stored_shape};
use shape::Shape;

/// The radius of the earth for distances in metres.
const EARTH_METRES: f64 = 6_378_100.0;

/// A geographic condition on one value.
#[derive(Debug, Clone)]
pub struct GeoTest(GeoPredicate);

#[derive(Debug, Clone)]
enum GeoPredicate {
    /// All of it is within an area.
    Within(Shape),
    /// It is a point within a region of the plane.
    WithinRegion(Region),
    /// All of it is within a distance of a point, in radians.
    WithinCap(Pair, f64),
    /// Some of it is where the shape is.
    Intersects(Shape),
}

impl GeoTest {
    /// Returns whether a value is a geometry that meets the condition.
    pub(super) fn matches(&self, value: ValueRef<'_>, context: &Context) -> Result<bool> {
        match &self.0 {
            GeoPredicate::WithinRegion(region) => {
                Ok(stored_pair(value).is_some_and(|pair| region.contains(pair)))
            }
            GeoPredicate::Within(area) => match stored_shape(value) {
                Some(shape) => area.contains(&shape, context),
                None => Ok(false),
            },
            GeoPredicate::WithinCap(centre, radius) => {
                let (Some(shape), Ok(centre)) = (stored_shape(value), position(*centre)) else {
                    return Ok(false);
                };
                Ok(shape.is_near(centre, *radius))
            }
            GeoPredicate::Intersects(other) => match stored_shape(value) {
                Some(shape) => other.intersects(&shape, context),
                None => Ok(false),
            },
        }
    }
}

/// `$near` and `$nearSphere`: documents by their distance from a point, the nearest first.
#[derive(Debug, Clone)]
pub struct Near {
    path: FieldPath,
    point: Pair,
    measure: Measure,
    least: f64,
    most: f64,
}

/// The unit of distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// In the plane, in the units of the coordinates.
    Plane,
    /// On the sphere, in radians.
    Radians,
    /// On the earth, in metres.
    Metres,
}

impl Near {
    /// Distances from a point, for `$geoNear`: the bounds are in the units of the measure.
    pub fn new(path: FieldPath, point: [f64; 2], measure: Measure, least: f64, most: f64) -> Near {
        Near { path, point, measure, least, most }
    }

    /// Returns the field with the points.
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// Returns the measure of distances.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Returns the distance of the nearest point in a document; `None` if there is none, or none within the bounds.
    pub fn distance(&self, document: DocumentRef<'_>, context: &Context) -> Result<Option<f64>> {
        let mut nearest: Option<f64> = None;
        self.path.any(document, Arrays::Expand, context, &mut |leaf| {
            let Some(value) = leaf.value else { return Ok(false) };
            if let Some(distance) = self.value_distance(value, context)?
                && nearest.is_none_or(|nearest| distance < nearest)
            {
                nearest = Some(distance);
            }
            Ok(false)
        })?;
        Ok(nearest)
    }

    /// Returns the distance of a value, if it is a point within the bounds.
    pub(super) fn value_distance(&self, value: ValueRef<'_>, context: &Context) -> Result<Option<f64>> {
        let distance = match self.measure {
            Measure::Plane => stored_pair(value).map(|pair| plane::distance(self.point, pair)),
            Measure::Radians | Measure::Metres => {
                let (Some(shape), Ok(point)) = (stored_shape(value), position(self.point)) else {
                    return Ok(None);
                };
                let metres = if self.measure == Measure::Metres { EARTH_METRES } else { 1.0 };
                shape.distance(point, context)?.map(|angle| angle * metres)
            }
        };
        Ok(distance.filter(|distance| (self.least..=self.most).contains(distance)))
    }
}
