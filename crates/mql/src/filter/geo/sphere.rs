//! Points, arcs and loops on the unit sphere.
//!
//! Everything is a vector from the centre, so there are no poles and no date line. Edges are great circles. A loop's inside is
//! the smaller of the two parts into which it divides the sphere, unless the client asked for the one on its left.

use std::f64::consts::PI;

/// How close to an edge a point counts as being on it, in radians: some micrometres on the ground.
const TOLERANCE: f64 = 1e-12;

/// A point on the sphere, as a vector of length one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Vector(pub(super) [f64; 3]);

impl Vector {
    /// Returns the point at a longitude and a latitude.
    pub(super) fn from_degrees(longitude: f64, latitude: f64) -> Vector {
        let (longitude, latitude) = (longitude.to_radians(), latitude.to_radians());
        Vector([latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()])
    }

    /// Returns the vector in steps of a ten-billionth of the radius, less than a millimetre: equal for equal points.
    pub(super) fn rounded(self) -> [i64; 3] {
        self.0.map(|part| (part * 1e10).round() as i64)
    }

    fn dot(self, other: Vector) -> f64 {
        self.0.iter().zip(other.0).map(|(left, right)| left * right).sum()
    }

    fn cross(self, other: Vector) -> Vector {
        let part = |one: usize, two: usize| self.0[one] * other.0[two] - self.0[two] * other.0[one];
        Vector([part(1, 2), part(2, 0), part(0, 1)])
    }

    fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    /// Returns the angle between two points: their distance on the unit sphere.
    pub(super) fn angle(self, other: Vector) -> f64 {
        self.cross(other).length().atan2(self.dot(other))
    }

    /// Returns the distance to the nearest point of an arc.
    pub(super) fn angle_to_arc(self, from: Vector, to: Vector) -> f64 {
        let normal = from.cross(to);
        let length = normal.length();
        let ends = self.angle(from).min(self.angle(to));
        if length < TOLERANCE {
            return ends;
        }
        // Between the two planes through the ends, the foot of the perpendicular is on the arc.
        let beside = normal.cross(from).dot(self) >= 0.0 && to.cross(normal).dot(self) >= 0.0;
        if beside { (normal.dot(self) / length).clamp(-1.0, 1.0).asin().abs() } else { ends }
    }
}

/// Returns `true` if two arcs have a point in common.
pub(super) fn arcs_meet(a: Vector, b: Vector, c: Vector, d: Vector) -> bool {
    arcs_cross(a, b, c, d)
        || a.angle_to_arc(c, d) < TOLERANCE
        || b.angle_to_arc(c, d) < TOLERANCE
        || c.angle_to_arc(a, b) < TOLERANCE
        || d.angle_to_arc(a, b) < TOLERANCE
}

/// Returns `true` if two arcs cross at a point that is inside both: the ends of each are on different sides of the other,
/// and the turns around all four ends go the same way, which rules out the point opposite.
pub(super) fn arcs_cross(a: Vector, b: Vector, c: Vector, d: Vector) -> bool {
    let (first, second) = (a.cross(b), c.cross(d));
    let acb = -first.dot(c);
    let bda = first.dot(d);
    let cbd = -second.dot(b);
    let dac = second.dot(a);
    let clear = [acb, bda, cbd, dac].iter().all(|side| side.abs() > TOLERANCE * TOLERANCE);
    clear && acb * bda > 0.0 && acb * cbd > 0.0 && acb * dac > 0.0
}

/// The position of a point relative to a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Inside,
    Edge,
    Outside,
}

/// A closed line. The inside is on its left.
#[derive(Debug, Clone)]
pub(super) struct Ring {
    /// Without the first repeated at the end.
    vertices: Vec<Vector>,
}

/// The part of the sphere that a loop encloses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Winding {
    /// The smaller one.
    Smaller,
    /// The one on the left of the line.
    Left,
}

impl Ring {
    /// Creates a loop through points, the last joined to the first.
    pub(super) fn new(mut vertices: Vec<Vector>, winding: Winding) -> Ring {
        if winding == Winding::Smaller && signed_area(&vertices) < 0.0 {
            vertices.reverse();
        }
        Ring { vertices }
    }

    pub(super) fn vertices(&self) -> &[Vector] {
        &self.vertices
    }

    /// Returns `true` if the inside is more than half of the sphere.
    pub(super) fn is_larger_part(&self) -> bool {
        signed_area(&self.vertices) < 0.0
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = (Vector, Vector)> + Clone {
        let next = self.vertices.iter().cycle().skip(1);
        self.vertices.iter().copied().zip(next.copied())
    }

    /// Returns the side of a point, by the winding number of the loop around it: one turn to the left if the point is
    /// inside, one to the right if the antipodal point is, none otherwise.
    pub(super) fn side(&self, point: Vector) -> Side {
        let mut turn = 0.0;
        for (from, to) in self.edges() {
            if point.angle_to_arc(from, to) < TOLERANCE {
                return Side::Edge;
            }
            let (to_from, to_to) = (point.cross(from), point.cross(to));
            turn += point.dot(to_from.cross(to_to)).atan2(to_from.dot(to_to));
        }
        if turn > PI { Side::Inside } else { Side::Outside }
    }
}

/// Returns the area on the left of a loop, or that on its right as a negative number, whichever is smaller.
fn signed_area(vertices: &[Vector]) -> f64 {
    let Some((first, rest)) = vertices.split_first() else { return 0.0 };
    let area: f64 = rest
        .windows(2)
        .map(|pair| {
            let (second, third) = (pair[0], pair[1]);
            let volume = first.dot(second.cross(third));
            let sum = 1.0 + first.dot(second) + second.dot(third) + third.dot(*first);
            2.0 * volume.atan2(sum)
        })
        .sum();
    let whole = 4.0 * PI;
    let area = area.rem_euclid(whole);
    if area > whole / 2.0 { area - whole } else { area }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(points: &[(f64, f64)], winding: Winding) -> Ring {
        Ring::new(points.iter().map(|(x, y)| Vector::from_degrees(*x, *y)).collect(), winding)
    }

    #[test]
    fn a_loop_encloses_the_smaller_part() {
        let square = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)];
        let reversed: Vec<(f64, f64)> = square.iter().rev().copied().collect();
        for points in [&square[..], &reversed] {
            let ring = ring(points, Winding::Smaller);
            let side = |x, y| ring.side(Vector::from_degrees(x, y));
            assert_eq!(side(5.0, 5.0), Side::Inside);
            assert_eq!(side(15.0, 5.0), Side::Outside);
            assert_eq!(side(-175.0, -5.0), Side::Outside, "the point opposite to one inside");
            assert_eq!(side(0.0, 5.0), Side::Edge);
            assert_eq!(side(10.0, 10.0), Side::Edge);
        }
        let outside = ring(&reversed, Winding::Left);
        assert_eq!(outside.side(Vector::from_degrees(5.0, 5.0)), Side::Outside);
    }

    #[test]
    fn poles_and_the_date_line_are_nothing_special() {
        let pole = ring(&[(0.0, 80.0), (120.0, 80.0), (-120.0, 80.0)], Winding::Smaller);
        assert_eq!(pole.side(Vector::from_degrees(45.0, 90.0)), Side::Inside);
        assert_eq!(pole.side(Vector::from_degrees(0.0, 70.0)), Side::Outside);
        let pacific =
            ring(&[(170.0, -10.0), (-170.0, -10.0), (-170.0, 10.0), (170.0, 10.0)], Winding::Smaller);
        assert_eq!(pacific.side(Vector::from_degrees(179.0, 0.0)), Side::Inside);
        assert_eq!(pacific.side(Vector::from_degrees(-179.0, 0.0)), Side::Inside);
        assert_eq!(pacific.side(Vector::from_degrees(0.0, 0.0)), Side::Outside);
    }

    #[test]
    fn distances_and_crossings() {
        let at = Vector::from_degrees;
        assert!((at(0.0, 0.0).angle(at(90.0, 0.0)) - PI / 2.0).abs() < 1e-15);
        let distance = at(5.0, 3.0).angle_to_arc(at(0.0, 0.0), at(10.0, 0.0));
        assert!((distance - 3.0_f64.to_radians()).abs() < 1e-12);
        let beyond = at(13.0, 0.0).angle_to_arc(at(0.0, 0.0), at(10.0, 0.0));
        assert!((beyond - 3.0_f64.to_radians()).abs() < 1e-12);
        assert!(arcs_cross(at(0.0, -5.0), at(0.0, 5.0), at(-5.0, 0.0), at(5.0, 0.0)));
        assert!(!arcs_cross(at(0.0, -5.0), at(0.0, 5.0), at(1.0, 0.0), at(5.0, 0.0)));
        assert!(!arcs_cross(at(0.0, -5.0), at(0.0, 5.0), at(175.0, 0.0), at(-175.0, 0.0)));
        assert!(arcs_meet(at(0.0, 0.0), at(0.0, 5.0), at(0.0, 0.0), at(5.0, 0.0)));
    }
}
