//! Bounding boxes of geographic conditions, by which an index narrows the search.

use super::shape::Shape;
use super::sphere::Vector;
use super::{EARTH_METRES, GeoPredicate, GeoTest, Measure, Near};
use crate::geo_box::{GeoBox, boxes_around, boxes_around_circle};

impl GeoTest {
    /// Returns boxes of which every matching geometry touches one; `None` if the condition is in the plane, where nothing
    /// lies on the globe.
    pub fn boxes(&self) -> Option<Vec<GeoBox>> {
        match &self.0 {
            GeoPredicate::Within(shape) | GeoPredicate::Intersects(shape) => Some(shape_boxes(shape)),
            GeoPredicate::WithinCap([longitude, latitude], radius) => {
                Some(boxes_around_circle(*longitude, *latitude, *radius))
            }
            GeoPredicate::WithinRegion(_) => None,
        }
    }
}

impl Near {
    /// Returns boxes of which every geometry that is near enough touches one; `None` if distances are computed in the
    /// plane.
    pub fn boxes(&self) -> Option<Vec<GeoBox>> {
        let radius = match self.measure {
            Measure::Plane => return None,
            Measure::Radians => self.most,
            Measure::Metres => self.most / EARTH_METRES,
        };
        Some(boxes_around_circle(self.point[0], self.point[1], radius))
    }
}

fn shape_boxes(shape: &Shape) -> Vec<GeoBox> {
    let degrees = |vector: &Vector| {
        let [x, y, z] = vector.0;
        (y.atan2(x).to_degrees(), z.clamp(-1.0, 1.0).asin().to_degrees())
    };
    let mut boxes = Vec::new();
    for point in &shape.points {
        boxes.extend(boxes_around(&[degrees(point)]));
    }
    for line in &shape.lines {
        boxes.extend(boxes_around(&line.iter().map(degrees).collect::<Vec<_>>()));
    }
    for area in &shape.areas {
        let vertices = area.outer.vertices();
        if area.outer.is_larger_part() {
            return vec![GeoBox::WORLD];
        }
        let closed: Vec<(f64, f64)> = vertices.iter().chain(vertices.first()).map(degrees).collect();
        boxes.extend(boxes_around(&closed));
    }
    boxes
}
