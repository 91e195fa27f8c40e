//! The earth as a surface: places are directions from its centre, edges are arcs.
//!
//! Seen from a place, a ring turns once around to the left when it separates the place, on its left, from the place
//! opposite on the earth; once to the right in the contrary case; and not at all when both are on one side. Then the way
//! to a place whose side is known, the *anchor*, decides, by how often it crosses the ring.

use std::f64::consts::{PI, TAU};

use super::ellipsoid;
use super::shape::{Ring, ring_edges};
use super::sphere::{Arc, SAME, Vector, area_to_the_left};
use super::surface::{Edge, SurfacePoint};

impl SurfacePoint for Vector {
    type Edge = Arc;
    /// A place off the line and whether it lies to the left.
    type Orientation = Option<(Vector, bool)>;

    fn at(longitude: f64, latitude: f64) -> Result<Vector, String> {
        if !(-90.0..=90.0).contains(&latitude) {
            return Err("Latitude values must be between -90 and 90 degrees.".to_owned());
        }
        if !(-180.0..=180.0).contains(&longitude) {
            return Err("Longitude values must be between -180 and 180 degrees.".to_owned());
        }
        Ok(ellipsoid::direction(longitude, latitude))
    }

    fn unjoinable(self, other: Vector) -> Option<&'static str> {
        // Nearly antipodal positions have no unique shortest edge.
        let opposite = self.chord(-other) < 1e-9 * PI;
        opposite.then_some("An edge must not join positions on opposite sides of the earth.")
    }

    fn is_at(self, other: Vector) -> bool {
        self.chord(other) <= SAME
    }

    fn apart(self, other: Vector) -> f64 {
        ellipsoid::surface(self).chord(ellipsoid::surface(other))
    }

    fn distance(self, other: Vector) -> f64 {
        ellipsoid::distance(self, other)
    }

    fn midway(self, other: Vector) -> Vector {
        (self + other).unit()
    }

    fn outer(corners: Vec<Vector>) -> Vec<Vector> {
        corners
    }

    fn hole(mut corners: Vec<Vector>) -> Vec<Vector> {
        if area_to_the_left(&corners) < TAU {
            corners.reverse();
        }
        corners
    }

    /// Returns a position just left of an edge whose side the winding number decides. Some edges of a ring around half the
    /// earth have none.
    fn orientation(corners: &[Vector]) -> Option<(Vector, bool)> {
        const TRIES: usize = 16;
        let step = corners.len().div_ceil(TRIES);
        ring_edges(corners).step_by(step).find_map(|edge| {
            let anchor = (edge.middle + edge.normal * (edge.reach / 128.0)).unit();
            let turns = turns(corners, anchor);
            (turns != 0).then_some((anchor, turns > 0))
        })
    }

    fn is_left_of(self, ring: &Ring<Vector>) -> bool {
        match (turns(&ring.corners, self), ring.orientation) {
            (1.., _) => true,
            (..=-1, _) => false,
            (0, Some((anchor, inside))) => inside != crossed_oddly(&ring.corners, self, anchor),
            (0, None) => area_to_the_left(&ring.corners) >= TAU,
        }
    }

    fn area(corners: &[Vector]) -> f64 {
        ellipsoid::area(corners)
    }
}

/// Returns how often a ring goes around a place, to the left.
fn turns(corners: &[Vector], place: Vector) -> i32 {
    let seen = |corner: Vector| {
        let away = corner - place;
        away - place * place.dot(away)
    };
    let Some(last) = corners.last() else { return 0 };
    let mut before = seen(*last);
    let mut sum = 0.0;
    for corner in corners {
        let now = seen(*corner);
        sum += place.dot(before.cross(now)).atan2(before.dot(now));
        before = now;
    }
    (sum / TAU).round() as i32
}

/// Returns `true` if the way between two places off a ring crosses it an odd number of times.
fn crossed_oddly(corners: &[Vector], from: Vector, to: Vector) -> bool {
    if from.dot(to) < -0.5 {
        // The way would be long, or ambiguous between antipodal positions: go by a third one.
        let across = from.normal(to);
        let by = if across.length() > 0.1 { across.unit() } else { from.aside() };
        return crossed_oddly(corners, from, by) != crossed_oddly(corners, by, to);
    }
    let (normal, middle) = (from.normal(to), (from + to).unit());
    let reach = from.dot(middle);
    // A corner exactly on the way counts as left of it for both its edges, so it is crossed once or not at all.
    let left = |corner: Vector| normal.dot(corner) >= 0.0;
    let crosses = |edge: &Arc| {
        if left(edge.start()) == left(edge.end()) {
            return false;
        }
        let place = normal.cross(edge.normal).unit();
        let place = if place.dot(edge.middle) > 0.0 { place } else { -place };
        place.dot(middle) >= reach
    };
    ring_edges(corners).filter(crosses).count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::super::ellipsoid::direction;
    use super::super::shape::Side;
    use super::*;

    fn ring(places: &[(f64, f64)]) -> Ring<Vector> {
        Ring::new(places.iter().map(|(longitude, latitude)| direction(*longitude, *latitude)).collect())
    }

    fn inside(ring: &Ring<Vector>, longitude: f64, latitude: f64) -> bool {
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
