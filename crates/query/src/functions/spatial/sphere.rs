//! Directions from the earth's centre, and arcs between them.
//!
//! A place is the unit vector from the centre through it, an edge the part of the plane through the centre that lies
//! between two places, on the shorter side. Whether things meet, touch or contain each other is then a question of
//! signs of products; angles of latitude, poles and the date line do not occur.

use std::ops::{Add, Mul, Neg, Sub};

use super::surface::{Edge, SurfacePoint};

/// Places nearer than this are one: about half a millimetre.
pub(super) const SAME: f64 = 1e-10;

/// A direction, or any vector in its making.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Vector {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) z: f64,
}

impl Vector {
    pub(super) fn dot(self, other: Vector) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    pub(super) fn cross(self, other: Vector) -> Vector {
        Vector {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    pub(super) fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    /// Returns the direction of this vector; a vector of no length has none and stays.
    pub(super) fn unit(self) -> Vector {
        let length = self.length();
        if length > 0.0 { self * length.recip() } else { self }
    }

    /// Returns the chord between two directions: as good as the angle for telling which is nearer.
    pub(super) fn chord(self, other: Vector) -> f64 {
        (self - other).length()
    }

    /// Returns the normal of the plane through two directions and the centre, of twice the length of their product. Made of
    /// sum and difference it keeps its digits when they are close together.
    pub(super) fn normal(self, other: Vector) -> Vector {
        (self + other).cross(other - self)
    }

    /// Returns some direction at a right angle to this one.
    pub(super) fn aside(self) -> Vector {
        let axis = if self.z.abs() < 0.9 {
            Vector { x: 0.0, y: 0.0, z: 1.0 }
        } else {
            Vector { x: 1.0, y: 0.0, z: 0.0 }
        };
        self.cross(axis).unit()
    }
}

impl Add for Vector {
    type Output = Vector;

    fn add(self, other: Vector) -> Vector {
        Vector { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}

impl Sub for Vector {
    type Output = Vector;

    fn sub(self, other: Vector) -> Vector {
        Vector { x: self.x - other.x, y: self.y - other.y, z: self.z - other.z }
    }
}

impl Mul<f64> for Vector {
    type Output = Vector;

    fn mul(self, factor: f64) -> Vector {
        Vector { x: self.x * factor, y: self.y * factor, z: self.z * factor }
    }
}

impl Neg for Vector {
    type Output = Vector;

    fn neg(self) -> Vector {
        self * -1.0
    }
}

/// An arc between two different places that are not opposite each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arc {
    pub(super) start: Vector,
    pub(super) end: Vector,
    pub(super) normal: Vector,
    pub(super) middle: Vector,
    /// The chord from the middle to the ends: no place of the arc is further from the middle.
    pub(super) reach: f64,
}

impl Edge for Arc {
    type SurfacePoint = Vector;

    fn new(start: Vector, end: Vector) -> Arc {
        let middle = (start + end).unit();
        let reach = middle.chord(start);
        Arc { start, end, normal: start.normal(end).unit(), middle, reach }
    }

    fn start(&self) -> Vector {
        self.start
    }

    fn end(&self) -> Vector {
        self.end
    }

    fn nearest(&self, place: Vector) -> Vector {
        let flat = place - self.normal * self.normal.dot(place);
        let foot = flat.unit();
        let between =
            self.normal.dot(self.start.cross(foot)) >= 0.0 && self.normal.dot(foot.cross(self.end)) >= 0.0;
        // From the plane's own pole every place of the arc is equally near, and the foot has no direction.
        if between && flat.length() > SAME {
            foot
        } else if place.chord(self.start) <= place.chord(self.end) {
            self.start
        } else {
            self.end
        }
    }

    fn holds(&self, place: Vector) -> bool {
        place.chord(self.middle) <= self.reach + SAME && self.nearest(place).is_at(place)
    }

    fn may_meet(&self, other: &Arc) -> bool {
        self.middle.chord(other.middle) <= self.reach + other.reach + SAME
    }

    fn crossing(&self, other: &Arc) -> Option<Vector> {
        let apart = |edge: &Arc, by: &Arc| by.normal.dot(edge.start) * by.normal.dot(edge.end) < 0.0;
        if !apart(self, other) || !apart(other, self) {
            return None;
        }
        let place = self.normal.cross(other.normal).unit();
        // The planes meet on both sides of the earth; the arcs may each reach another one.
        let place = if place.dot(self.middle) > 0.0 { place } else { -place };
        (place.dot(other.middle) > 0.0).then_some(place)
    }

    fn span(&self) -> (f64, f64) {
        (self.middle.x - self.reach, self.middle.x + self.reach)
    }
}

/// Returns the area to the left of a closed line, as a part of the unit sphere: between 0 and 4 pi.
pub(super) fn area_to_the_left(corners: &[Vector]) -> f64 {
    let [apex, rest @ ..] = corners else { return 0.0 };
    let mut sum = 0.0;
    for pair in rest.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        // The product by differences: of three directions close together nothing else keeps its digits.
        let product = apex.dot((a - *apex).cross(b - *apex));
        sum += 2.0 * product.atan2(1.0 + apex.dot(a) + a.dot(b) + b.dot(*apex));
    }
    // So flat a ring has no left side, and least of all the whole earth for one.
    if sum.abs() < 1e-15 { 0.0 } else { sum.rem_euclid(4.0 * std::f64::consts::PI) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(x: f64, y: f64, z: f64) -> Vector {
        Vector { x, y, z }.unit()
    }

    #[test]
    fn arcs_meet_on_their_own_side_of_the_earth_only() {
        let equator = Arc::new(place(1.0, -0.5, 0.0), place(1.0, 0.5, 0.0));
        let meridian = Arc::new(place(1.0, 0.1, -0.5), place(1.0, 0.1, 0.5));
        let behind = Arc::new(place(-1.0, 0.1, -0.5), place(-1.0, 0.1, 0.5));
        let touching = Arc::new(place(1.0, 0.5, 0.0), place(1.0, 0.9, 0.3));
        assert!(equator.crossing(&meridian).is_some_and(|found| found.is_at(place(1.0, 0.1, 0.0))));
        assert!(equator.meets(&meridian) && meridian.meets(&equator));
        assert!(!equator.meets(&behind));
        assert!(equator.meets(&touching) && equator.crossing(&touching).is_none());
    }

    #[test]
    fn the_nearest_place_is_a_foot_or_an_end() {
        let edge = Arc::new(place(1.0, -0.5, 0.0), place(1.0, 0.5, 0.0));
        assert!(edge.nearest(place(1.0, 0.0, 0.7)).is_at(place(1.0, 0.0, 0.0)));
        assert!(edge.nearest(place(0.0, 1.0, 0.1)).is_at(edge.end));
        assert!(edge.holds(edge.nearest(place(0.0, 0.0, 1.0))), "all are equally near the pole");
        assert!(edge.holds(place(1.0, 0.2, 0.0)) && !edge.holds(place(-1.0, 0.2, 0.0)));
    }

    #[test]
    fn an_octant_is_an_eighth_of_the_sphere_and_its_inverse_the_rest() {
        let octant = [place(1.0, 0.0, 0.0), place(0.0, 1.0, 0.0), place(0.0, 0.0, 1.0)];
        let eighth = std::f64::consts::FRAC_PI_2;
        assert!((area_to_the_left(&octant) - eighth).abs() < 1e-12);
        let inverse = [octant[2], octant[1], octant[0]];
        assert!((area_to_the_left(&inverse) - 7.0 * eighth).abs() < 1e-12);
    }
}
