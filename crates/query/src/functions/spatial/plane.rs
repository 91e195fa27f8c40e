//! Places on a plane: any two coordinates, straight edges, distances and areas in the unit of the coordinates.
//!
//! On a plane a ring cannot stand for everything outside of it, so it surrounds the same area whichever way it is
//! written. Two places are one if their coordinates agree to about twelve digits: what is computed, such as a crossing,
//! is compared with what was written down.

use super::shape::Ring;
use super::surface::{Edge, SurfacePoint};

/// Digits that coordinates are compared with, as a part of the largest that takes part.
const SAME: f64 = 1e-12;

/// A place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    x: f64,
    y: f64,
}

impl Point {
    /// Its largest coordinate.
    fn size(self) -> f64 {
        self.x.abs().max(self.y.abs())
    }

    fn minus(self, other: Point) -> Point {
        Point { x: self.x - other.x, y: self.y - other.y }
    }

    /// Returns a number that is positive if `other` points to the left of this direction.
    fn cross(self, other: Point) -> f64 {
        self.x * other.y - self.y * other.x
    }
}

/// Returns twice the area that corners surround, positive if they do so counter-clockwise.
fn doubled_area(corners: &[Point]) -> f64 {
    let [apex, rest @ ..] = corners else { return 0.0 };
    rest.windows(2).map(|pair| pair[0].minus(*apex).cross(pair[1].minus(*apex))).sum()
}

fn reversed_if(reverse: bool, mut corners: Vec<Point>) -> Vec<Point> {
    if reverse {
        corners.reverse();
    }
    corners
}

impl SurfacePoint for Point {
    type Edge = Segment;
    /// Whether the corners go counter-clockwise.
    type Orientation = bool;

    fn at(first: f64, second: f64) -> Result<Point, String> {
        if first.is_finite() && second.is_finite() {
            return Ok(Point { x: first, y: second });
        }
        Err("Coordinates must be finite numbers.".to_owned())
    }

    fn unjoinable(self, _: Point) -> Option<&'static str> {
        None
    }

    fn is_at(self, other: Point) -> bool {
        self.distance(other) <= SAME * self.size().max(other.size())
    }

    fn apart(self, other: Point) -> f64 {
        self.distance(other)
    }

    fn distance(self, other: Point) -> f64 {
        (self.x - other.x).hypot(self.y - other.y)
    }

    fn midway(self, other: Point) -> Point {
        Point { x: f64::midpoint(self.x, other.x), y: f64::midpoint(self.y, other.y) }
    }

    fn outer(corners: Vec<Point>) -> Vec<Point> {
        reversed_if(doubled_area(&corners) < 0.0, corners)
    }

    fn hole(corners: Vec<Point>) -> Vec<Point> {
        reversed_if(doubled_area(&corners) > 0.0, corners)
    }

    fn orientation(corners: &[Point]) -> bool {
        doubled_area(corners) > 0.0
    }

    /// A ray from the place to the right crosses a ring an odd number of times if the ring surrounds the place. A corner
    /// on the ray counts as above it, so it is crossed once or not at all.
    fn is_left_of(self, ring: &Ring<Point>) -> bool {
        let crosses = |edge: &Segment| {
            let (start, end) = (edge.start.minus(self), edge.end.minus(self));
            let rises = start.y < 0.0;
            rises == (end.y >= 0.0) && rises == (start.cross(end) > 0.0)
        };
        let surrounded = ring.edges().filter(crosses).count() % 2 == 1;
        surrounded == ring.orientation
    }

    fn area(corners: &[Point]) -> f64 {
        doubled_area(corners) / 2.0
    }
}

/// A straight line between two places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    start: Point,
    end: Point,
}

impl Segment {
    /// Returns how far a place may be from the line and still lie on it.
    fn tolerance(&self, place: Point) -> f64 {
        SAME * self.start.size().max(self.end.size()).max(place.size())
    }

    /// Returns on which side of the line a place lies: 1 left, -1 right, 0 on it.
    fn side(&self, place: Point) -> f64 {
        let along = self.end.minus(self.start);
        let across = along.cross(place.minus(self.start));
        let length = along.x.hypot(along.y);
        if across.abs() <= self.tolerance(place) * length { 0.0 } else { across.signum() }
    }

    /// Returns the least and the greatest of two coordinates.
    fn ordered(one: f64, other: f64) -> (f64, f64) {
        (one.min(other), one.max(other))
    }
}

impl Edge for Segment {
    type SurfacePoint = Point;

    fn new(start: Point, end: Point) -> Segment {
        Segment { start, end }
    }

    fn start(&self) -> Point {
        self.start
    }

    fn end(&self) -> Point {
        self.end
    }

    fn nearest(&self, place: Point) -> Point {
        let (along, to) = (self.end.minus(self.start), place.minus(self.start));
        let length = along.x.hypot(along.y);
        // Divided step by step, so that squares of large coordinates do not overflow.
        let share =
            ((along.x / length) * (to.x / length) + (along.y / length) * (to.y / length)).clamp(0.0, 1.0);
        match share {
            share if share <= 0.0 => self.start,
            share if share >= 1.0 => self.end,
            share => Point { x: self.start.x + along.x * share, y: self.start.y + along.y * share },
        }
    }

    fn holds(&self, place: Point) -> bool {
        self.nearest(place).distance(place) <= self.tolerance(place)
    }

    fn may_meet(&self, other: &Segment) -> bool {
        let tolerance = self.tolerance(other.start).max(other.tolerance(self.start));
        let overlap =
            |one: (f64, f64), other: (f64, f64)| one.0 <= other.1 + tolerance && other.0 <= one.1 + tolerance;
        overlap(self.span(), other.span())
            && overlap(
                Segment::ordered(self.start.y, self.end.y),
                Segment::ordered(other.start.y, other.end.y),
            )
    }

    fn crossing(&self, other: &Segment) -> Option<Point> {
        let between = |edge: &Segment, by: &Segment| by.side(edge.start) * by.side(edge.end) < 0.0;
        if !between(self, other) || !between(other, self) {
            return None;
        }
        let (along, across) = (self.end.minus(self.start), other.end.minus(other.start));
        let share = other.start.minus(self.start).cross(across) / along.cross(across);
        Some(Point { x: self.start.x + along.x * share, y: self.start.y + along.y * share })
    }

    fn span(&self) -> (f64, f64) {
        Segment::ordered(self.start.x, self.end.x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, y: f64) -> Point {
        Point { x, y }
    }

    fn edge(from: (f64, f64), to: (f64, f64)) -> Segment {
        Segment::new(point(from.0, from.1), point(to.0, to.1))
    }

    #[test]
    fn the_nearest_place_is_a_foot_or_an_end() {
        let line = edge((0.0, 0.0), (10.0, 0.0));
        for (place, nearest) in [
            (point(3.0, 4.0), point(3.0, 0.0)),
            (point(-3.0, 4.0), point(0.0, 0.0)),
            (point(13.0, -4.0), point(10.0, 0.0)),
        ] {
            assert_eq!(line.nearest(place), nearest);
        }
        assert!(line.holds(point(0.1 + 0.2, 0.0)) && !line.holds(point(3.0, 1e-9)));
        assert!(!line.holds(point(10.1, 0.0)));
    }

    #[test]
    fn edges_cross_touch_or_miss() {
        let diagonal = edge((0.0, 0.0), (10.0, 10.0));
        assert_eq!(diagonal.crossing(&edge((0.0, 10.0), (10.0, 0.0))), Some(point(5.0, 5.0)));
        let touching = edge((5.0, 5.0), (9.0, 0.0));
        assert!(diagonal.crossing(&touching).is_none() && diagonal.meets(&touching));
        assert!(!diagonal.meets(&edge((5.0, 4.0), (9.0, 0.0))));
        assert!(!diagonal.meets(&edge((11.0, 11.0), (12.0, 12.0))));
        assert!(diagonal.meets(&edge((5.0, 5.0), (12.0, 12.0))), "they run along each other");
    }

    #[test]
    fn a_ring_surrounds_the_same_area_whichever_way_it_is_written() {
        let square =
            [point(1000.0, -500.0), point(1002.0, -500.0), point(1002.0, -498.0), point(1000.0, -498.0)];
        for corners in [square.to_vec(), square.iter().rev().copied().collect()] {
            let corners = Point::outer(corners);
            assert!((Point::area(&corners) - 4.0).abs() < 1e-9);
            let ring = Ring::new(corners);
            assert!(point(1001.0, -499.0).is_left_of(&ring));
            assert!(!point(999.0, -498.0).is_left_of(&ring) && !point(999.0, -500.0).is_left_of(&ring));
            assert!(!point(0.0, 0.0).is_left_of(&ring) && !point(1001.0, -497.0).is_left_of(&ring));
        }
    }
}
