//! Shapes on the earth, and which places belong to them.
//!
//! A ring's inside is what lies to its left: an outer ring written clockwise stands for everything but the region it
//! seems to surround, as the service documents. A hole takes away the smaller side of its ring whichever way it is
//! written, because both ways are common.

use std::f64::consts::{PI, TAU};

use super::sphere::{Edge, Vector, area_to_the_left};

/// A geometry: its places, lines and areas.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) points: Vec<Vector>,
    pub(super) lines: Vec<Vec<Vector>>,
    pub(super) polygons: Vec<Polygon>,
}

/// An area with holes.
#[derive(Debug)]
pub(super) struct Polygon {
    pub(super) outer: Ring,
    pub(super) holes: Vec<Ring>,
}

/// A closed line. The last corner is not the first again.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) corners: Vec<Vector>,
    /// A place off the line and whether it lies to the left.
    anchor: Option<(Vector, bool)>,
}

/// Where a place lies with regard to an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Inside,
    Boundary,
    Outside,
}

impl Shape {
    /// Every place that was written down.
    pub(super) fn corners(&self) -> impl Iterator<Item = Vector> {
        let rings = self.rings().flat_map(|ring| ring.corners.iter());
        self.points.iter().chain(self.lines.iter().flatten()).chain(rings).copied()
    }

    /// Every edge of lines and rings.
    pub(super) fn edges(&self) -> impl Iterator<Item = Edge> {
        let lines = self.lines.iter().flat_map(|line| edges_of(line));
        lines.chain(self.rings().flat_map(Ring::edges))
    }

    pub(super) fn rings(&self) -> impl Iterator<Item = &Ring> {
        self.polygons.iter().flat_map(Polygon::rings)
    }

    /// Whether a place belongs to the shape, its boundary included.
    pub(super) fn covers(&self, place: Vector) -> bool {
        self.points.iter().any(|point| point.is_at(place))
            || self
                .lines
                .iter()
                .any(|line| edges_of(line).any(|edge| edge.holds(place)) || line[0].is_at(place))
            || self.polygons.iter().any(|polygon| polygon.side(place) != Side::Outside)
    }
}

/// The edges between places in a row.
pub(super) fn edges_of(places: &[Vector]) -> impl Iterator<Item = Edge> {
    places.windows(2).map(|pair| Edge::new(pair[0], pair[1]))
}

impl Polygon {
    pub(super) fn new(outer: Ring, holes: Vec<Ring>) -> Polygon {
        let outward = |hole: Ring| {
            let around_hole = hole.area_to_the_left() < TAU;
            if around_hole { Ring::new(hole.corners.into_iter().rev().collect()) } else { hole }
        };
        Polygon { outer, holes: holes.into_iter().map(outward).collect() }
    }

    pub(super) fn rings(&self) -> impl Iterator<Item = &Ring> {
        std::iter::once(&self.outer).chain(&self.holes)
    }

    /// Inside is what every ring has to its left.
    pub(super) fn side(&self, place: Vector) -> Side {
        let mut side = Side::Inside;
        for ring in self.rings() {
            match ring.side(place) {
                Side::Outside => return Side::Outside,
                Side::Boundary => side = Side::Boundary,
                Side::Inside => {}
            }
        }
        side
    }
}

impl Ring {
    /// A ring of at least three corners, none of which is the one before it again.
    pub(super) fn new(corners: Vec<Vector>) -> Ring {
        let mut ring = Ring { corners, anchor: None };
        ring.anchor = ring.find_anchor();
        ring
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = Edge> {
        let last = self.corners.len() - 1;
        edges_of(&self.corners).chain(std::iter::once(Edge::new(self.corners[last], self.corners[0])))
    }

    pub(super) fn area_to_the_left(&self) -> f64 {
        area_to_the_left(&self.corners)
    }

    /// Where a place lies; the left is inside.
    ///
    /// Seen from the place, the ring turns once around to the left when it separates the place, on its left, from the
    /// place opposite on the earth; once to the right in the contrary case; and not at all when both are on one side.
    /// Then the way to a place whose side is known decides, by how often it crosses the ring.
    pub(super) fn side(&self, place: Vector) -> Side {
        if self.edges().any(|edge| edge.holds(place)) {
            return Side::Boundary;
        }
        let inside = match (self.turns(place), self.anchor) {
            (1.., _) => true,
            (..=-1, _) => false,
            (0, Some((anchor, inside))) => inside != self.crossed_oddly(place, anchor),
            (0, None) => self.area_to_the_left() >= TAU,
        };
        if inside { Side::Inside } else { Side::Outside }
    }

    /// How often the ring goes around a place, to the left.
    fn turns(&self, place: Vector) -> i32 {
        let seen = |corner: Vector| {
            let away = corner - place;
            away - place * place.dot(away)
        };
        let mut before = seen(self.corners[self.corners.len() - 1]);
        let mut sum = 0.0;
        for corner in &self.corners {
            let now = seen(*corner);
            sum += place.dot(before.cross(now)).atan2(before.dot(now));
            before = now;
        }
        (sum / TAU).round() as i32
    }

    /// A place just left of an edge, if turning tells its side. Of a ring that goes around half the earth some do not.
    fn find_anchor(&self) -> Option<(Vector, bool)> {
        const TRIES: usize = 16;
        let step = self.corners.len().div_ceil(TRIES);
        self.edges().step_by(step).find_map(|edge| {
            let anchor = (edge.middle + edge.normal * (edge.reach / 128.0)).unit();
            let turns = self.turns(anchor);
            (turns != 0).then_some((anchor, turns > 0))
        })
    }

    /// Whether the way between two places off the ring crosses it an odd number of times.
    fn crossed_oddly(&self, from: Vector, to: Vector) -> bool {
        if from.dot(to) < -0.5 {
            // The way would be long, or undecided between places opposite each other: go by a third.
            let across = from.normal(to);
            let by = if across.length() > 0.1 { across.unit() } else { from.aside() };
            return self.crossed_oddly(from, by) != self.crossed_oddly(by, to);
        }
        let (normal, middle) = (from.normal(to), (from + to).unit());
        let reach = from.dot(middle);
        // A corner exactly on the way counts as left of it for both its edges, so it is crossed once or not at all.
        let left = |corner: Vector| normal.dot(corner) >= 0.0;
        let crosses = |edge: &Edge| {
            if left(edge.start) == left(edge.end) {
                return false;
            }
            let place = normal.cross(edge.normal).unit();
            let place = if place.dot(edge.middle) > 0.0 { place } else { -place };
            place.dot(middle) >= reach
        };
        self.edges().filter(crosses).count() % 2 == 1
    }
}

/// Whether two places are so nearly opposite that no edge between them is the shorter one.
pub(super) fn opposite(a: Vector, b: Vector) -> bool {
    a.chord(-b) < 1e-9 * PI
}

#[cfg(test)]
mod tests {
    use super::super::ellipsoid::direction;
    use super::*;

    fn ring(places: &[(f64, f64)]) -> Ring {
        Ring::new(places.iter().map(|(longitude, latitude)| direction(*longitude, *latitude)).collect())
    }

    fn inside(ring: &Ring, longitude: f64, latitude: f64) -> bool {
        ring.side(direction(longitude, latitude)) == Side::Inside
    }

    #[test]
    fn the_left_of_a_ring_is_its_inside() {
        let square = [(10.0, 10.0), (20.0, 10.0), (20.0, 20.0), (10.0, 20.0)];
        let forward = ring(&square);
        let backward = ring(&square.iter().rev().copied().collect::<Vec<_>>());
        for (longitude, latitude, within) in [
            (15.0, 15.0, true),
            (10.5, 10.5, true),
            (25.0, 15.0, false),
            (15.0, 9.0, false),
            (-165.0, -15.0, false),
            (0.0, 90.0, false),
            (15.0, -90.0, false),
        ] {
            assert_eq!(inside(&forward, longitude, latitude), within, "{longitude} {latitude}");
            assert_eq!(inside(&backward, longitude, latitude), !within, "{longitude} {latitude}");
        }
        assert_eq!(forward.side(direction(10.0, 15.0)), Side::Boundary);
        assert_eq!(forward.side(direction(20.0, 20.0)), Side::Boundary);
    }

    #[test]
    fn a_cap_around_a_pole_and_a_box_over_the_date_line() {
        let cap = ring(&[(0.0, 60.0), (90.0, 60.0), (180.0, 60.0), (-90.0, 60.0)]);
        assert!(inside(&cap, 33.0, 89.0) && inside(&cap, 0.0, 90.0));
        assert!(!inside(&cap, 33.0, 20.0) && !inside(&cap, 0.0, -90.0));
        let date_line = ring(&[(170.0, -10.0), (-170.0, -10.0), (-170.0, 10.0), (170.0, 10.0)]);
        assert!(inside(&date_line, 180.0, 0.0) && inside(&date_line, -175.0, 5.0));
        assert!(!inside(&date_line, 0.0, 0.0));
    }

    #[test]
    fn a_strip_more_than_half_around_the_earth_holds_places_opposite_each_other() {
        let there = (-10..=10).map(|step| (f64::from(step) * 10.0, -5.0));
        let back = (-10..=10).rev().map(|step| (f64::from(step) * 10.0, 5.0));
        let strip = ring(&there.chain(back).collect::<Vec<_>>());
        for (longitude, within) in [(-95.0, true), (85.0, true), (0.0, true), (180.0, false), (110.0, false)]
        {
            assert_eq!(inside(&strip, longitude, 0.0), within, "{longitude}");
        }
        assert!(!inside(&strip, 0.0, 40.0) && !inside(&strip, 90.0, -40.0));
    }

    #[test]
    fn small_rings_keep_their_digits() {
        let metre = 1e-5;
        let garden =
            ring(&[(7.0, 50.0), (7.0 + metre, 50.0), (7.0 + metre, 50.0 + metre), (7.0, 50.0 + metre)]);
        assert!(inside(&garden, 7.0 + metre / 2.0, 50.0 + metre / 2.0));
        assert!(!inside(&garden, 7.0 - metre / 10.0, 50.0 + metre / 2.0));
    }
}
