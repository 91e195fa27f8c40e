//! Shapes on a surface, and which places belong to them.
//!
//! A ring's inside is what lies to its left. On the earth an outer ring written clockwise stands for everything but the
//! region it seems to surround, as the service documents; a hole takes away the smaller side of its ring whichever way
//! it is written, because both ways are common. On a plane the direction has no meaning.

use super::surface::{Edge, SurfacePoint};

/// A geometry: its places, lines and areas.
#[derive(Debug)]
pub(super) struct Shape<P: SurfacePoint> {
    pub(super) points: Vec<P>,
    pub(super) lines: Vec<Vec<P>>,
    pub(super) polygons: Vec<Polygon<P>>,
}

/// An area with holes.
#[derive(Debug)]
pub(super) struct Polygon<P: SurfacePoint> {
    pub(super) outer: Ring<P>,
    pub(super) holes: Vec<Ring<P>>,
}

/// A closed line. The last corner is not the first again.
#[derive(Debug)]
pub(super) struct Ring<P: SurfacePoint> {
    pub(super) corners: Vec<P>,
    /// Distinguishes its sides.
    pub(super) orientation: P::Orientation,
}

/// Where a place lies with regard to an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Inside,
    Boundary,
    Outside,
}

impl<P: SurfacePoint> Default for Shape<P> {
    fn default() -> Self {
        Shape { points: Vec::new(), lines: Vec::new(), polygons: Vec::new() }
    }
}

impl<P: SurfacePoint> Shape<P> {
    /// Returns every place that was written down.
    pub(super) fn corners(&self) -> impl Iterator<Item = P> {
        let rings = self.rings().flat_map(|ring| ring.corners.iter());
        self.points.iter().chain(self.lines.iter().flatten()).chain(rings).copied()
    }

    /// Returns every edge of lines and rings.
    pub(super) fn edges(&self) -> impl Iterator<Item = P::Edge> {
        let lines = self.lines.iter().flat_map(|line| edges_of(line));
        lines.chain(self.rings().flat_map(Ring::edges))
    }

    pub(super) fn rings(&self) -> impl Iterator<Item = &Ring<P>> {
        self.polygons.iter().flat_map(Polygon::rings)
    }

    /// Returns `true` if a place belongs to the shape, its boundary included.
    pub(super) fn covers(&self, place: P) -> bool {
        self.points.iter().any(|point| point.is_at(place))
            || self
                .lines
                .iter()
                .any(|line| edges_of(line).any(|edge| edge.holds(place)) || line[0].is_at(place))
            || self.polygons.iter().any(|polygon| polygon.side(place) != Side::Outside)
    }
}

/// Returns the edges between places in a row.
pub(super) fn edges_of<P: SurfacePoint>(places: &[P]) -> impl Iterator<Item = P::Edge> {
    places.windows(2).map(|pair| P::Edge::new(pair[0], pair[1]))
}

impl<P: SurfacePoint> Polygon<P> {
    /// Creates an area of rings of at least three corners each, none of which is the one before it again.
    pub(super) fn new(outer: Vec<P>, holes: Vec<Vec<P>>) -> Self {
        let holes = holes.into_iter().map(|corners| Ring::new(P::hole(corners)));
        Polygon { outer: Ring::new(P::outer(outer)), holes: holes.collect() }
    }

    pub(super) fn rings(&self) -> impl Iterator<Item = &Ring<P>> {
        std::iter::once(&self.outer).chain(&self.holes)
    }

    /// Returns the side of a position. The inside is on the left of every ring.
    pub(super) fn side(&self, place: P) -> Side {
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

impl<P: SurfacePoint> Ring<P> {
    pub(super) fn new(corners: Vec<P>) -> Self {
        let orientation = P::orientation(&corners);
        Ring { corners, orientation }
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = P::Edge> {
        ring_edges(&self.corners)
    }

    /// Returns where a place lies; the left is inside.
    pub(super) fn side(&self, place: P) -> Side {
        if self.edges().any(|edge| edge.holds(place)) {
            return Side::Boundary;
        }
        if place.is_left_of(self) { Side::Inside } else { Side::Outside }
    }
}

/// Returns the edges of a closed line.
pub(super) fn ring_edges<P: SurfacePoint>(corners: &[P]) -> impl Iterator<Item = P::Edge> {
    let closing = corners.last().zip(corners.first());
    edges_of(corners).chain(closing.map(|(last, first)| P::Edge::new(*last, *first)))
}
