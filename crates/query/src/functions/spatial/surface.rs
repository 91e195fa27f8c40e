//! The interface of a surface: the earth (`globe`) or a plane (`plane`).
//!
//! Reading, containment, distance and validity are written once over these two traits; a container's `geospatialConfig`
//! decides which table of functions a query gets, so that constants, filters and conditions of patches all agree.

use std::fmt::Debug;

use super::shape::Ring;

/// A place on a surface.
pub(super) trait SurfacePoint: Copy + Debug + 'static {
    /// The line between two places.
    type Edge: Edge<SurfacePoint = Self>;
    /// Computed once for each ring, to distinguish its sides.
    type Orientation: Debug;

    /// Returns the place of two coordinates, or why there is none.
    fn at(first: f64, second: f64) -> Result<Self, String>;

    /// Returns why no edge joins two places, if so.
    fn unjoinable(self, other: Self) -> Option<&'static str>;

    /// Returns `true` if both are one place.
    fn is_at(self, other: Self) -> bool;

    /// Returns a cheap measure that grows with the distance.
    fn apart(self, other: Self) -> f64;

    /// Returns the distance, in metres or in the plane's own unit.
    fn distance(self, other: Self) -> f64;

    /// Returns the place in the middle.
    fn midway(self, other: Self) -> Self;

    /// Returns the corners of an outer ring, in the direction that has the area to its left.
    fn outer(corners: Vec<Self>) -> Vec<Self>;

    /// Returns the corners of a hole, in the direction that has what it leaves to its left.
    fn hole(corners: Vec<Self>) -> Vec<Self>;

    /// Computes the value that distinguishes the sides of a ring of at least three corners.
    fn orientation(corners: &[Self]) -> Self::Orientation;

    /// Returns `true` if a place off the line lies to the left of a ring.
    fn is_left_of(self, ring: &Ring<Self>) -> bool;

    /// Returns the area to the left of a closed line, in square metres or in the plane's own unit.
    fn area(corners: &[Self]) -> f64;
}

/// A line between two different places.
pub(super) trait Edge {
    type SurfacePoint: SurfacePoint;

    fn new(start: Self::SurfacePoint, end: Self::SurfacePoint) -> Self;

    fn start(&self) -> Self::SurfacePoint;

    fn end(&self) -> Self::SurfacePoint;

    /// Returns the place of the edge nearest to a place.
    fn nearest(&self, place: Self::SurfacePoint) -> Self::SurfacePoint;

    /// Returns `true` if a place lies on the edge.
    fn holds(&self, place: Self::SurfacePoint) -> bool;

    /// Returns `true` if the edges are near enough that they could meet.
    fn may_meet(&self, other: &Self) -> bool;

    /// Returns where the edges cross at a place that is an end of neither.
    fn crossing(&self, other: &Self) -> Option<Self::SurfacePoint>;

    /// Returns the least and the greatest that the edge can have along one axis.
    fn span(&self) -> (f64, f64);

    /// Returns `true` if the edges have a place in common.
    fn meets(&self, other: &Self) -> bool {
        self.may_meet(other)
            && (self.holds(other.start())
                || self.holds(other.end())
                || other.holds(self.start())
                || other.holds(self.end())
                || self.crossing(other).is_some())
    }

    /// Appends the places where another edge divides this one.
    fn cuts(&self, other: &Self, places: &mut Vec<Self::SurfacePoint>) {
        if !self.may_meet(other) {
            return;
        }
        places.extend([other.start(), other.end()].into_iter().filter(|end| self.holds(*end)));
        places.extend(self.crossing(other));
    }
}
