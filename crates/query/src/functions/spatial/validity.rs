//! Validity of shapes: rings that cross themselves or each other.

use super::shape::{Polygon, Shape, Side};
use super::surface::{Edge, SurfacePoint};
use crate::functions::context::Context;

/// An edge and its ring.
struct RingEdge<E> {
    edge: E,
    polygon: usize,
    ring: usize,
    /// Its place in the ring, and how many edges the ring has.
    place: usize,
    of: usize,
}

/// Returns the first flaw, if the shape has one. If the budget is used up, the context has the fault and the result is
/// meaningless.
pub(super) fn flaw<P: SurfacePoint>(shape: &Shape<P>, context: &Context) -> Option<String> {
    crossing(shape, context).or_else(|| nesting(shape, context))
}

/// Returns an error for rings that meet where they must not. Edges are sorted along one axis, so that only those are
/// compared which overlap there.
fn crossing<P: SurfacePoint>(shape: &Shape<P>, context: &Context) -> Option<String> {
    let mut edges = Vec::new();
    for (polygon, area) in shape.polygons.iter().enumerate() {
        for (ring, line) in area.rings().enumerate() {
            let of = line.corners.len();
            edges.extend(line.edges().enumerate().map(|(place, edge)| RingEdge {
                edge,
                polygon,
                ring,
                place,
                of,
            }));
        }
    }
    edges.sort_by(|a, b| begin(a).total_cmp(&begin(b)));
    for (index, one) in edges.iter().enumerate() {
        let (_, end) = one.edge.span();
        let overlapping = edges[index + 1..].iter().take_while(|other| begin(other) <= end);
        let mut compared = 0_u64;
        let found = overlapping.inspect(|_| compared += 1).find(|other| disturbs(one, other));
        if let Some(other) = found {
            return Some(describe(one, other));
        }
        if !context.spend(compared / 16 + 1) {
            return None;
        }
    }
    None
}

fn begin<E: Edge>(owned: &RingEdge<E>) -> f64 {
    owned.edge.span().0
}

/// Returns `true` if two edges meet in a way that a valid shape does not have.
fn disturbs<E: Edge>(one: &RingEdge<E>, other: &RingEdge<E>) -> bool {
    if (one.polygon, one.ring) != (other.polygon, other.ring) {
        // Rings may touch, but not cross or run along each other.
        let along = [other.edge.start(), other.edge.end()].iter().filter(|end| one.edge.holds(**end)).count()
            + [one.edge.start(), one.edge.end()].iter().filter(|end| other.edge.holds(**end)).count();
        let shared = one.edge.start().is_at(other.edge.start())
            || one.edge.start().is_at(other.edge.end())
            || one.edge.end().is_at(other.edge.start())
            || one.edge.end().is_at(other.edge.end());
        return one.edge.crossing(&other.edge).is_some() || along > if shared { 2 } else { 1 };
    }
    let (first, second) = if one.place < other.place { (one, other) } else { (other, one) };
    let follows = second.place == first.place + 1;
    let closes = first.place == 0 && second.place == first.of - 1;
    if follows || closes {
        // Neighbours share a corner and nothing else.
        let (before, after) = if follows { (first, second) } else { (second, first) };
        return before.edge.holds(after.edge.end()) || after.edge.holds(before.edge.start());
    }
    one.edge.meets(&other.edge)
}

fn describe<E>(one: &RingEdge<E>, other: &RingEdge<E>) -> String {
    if one.polygon != other.polygon {
        return "The MultiPolygon input is not valid because two of its polygons overlap.".to_owned();
    }
    if one.ring != other.ring {
        return format!(
            "The Polygon input is not valid because the rings number {} and {} cross each other.",
            one.ring.min(other.ring) + 1,
            one.ring.max(other.ring) + 1
        );
    }
    format!("The Polygon input is not valid because the ring number {} crosses itself.", one.ring + 1)
}

/// Holes outside their polygon, polygons inside others.
fn nesting<P: SurfacePoint>(shape: &Shape<P>, context: &Context) -> Option<String> {
    let size: u64 = shape.corners().count() as u64;
    let rings = shape.rings().count() as u64;
    if rings < 2 || !context.spend(size.saturating_mul(rings) / 16 + 1) {
        return None;
    }
    for polygon in &shape.polygons {
        for (index, hole) in polygon.holes.iter().enumerate() {
            if hole.corners.iter().any(|corner| polygon.outer.side(*corner) == Side::Outside) {
                return Some(format!(
                    "The Polygon input is not valid because the ring number {} lies outside the first ring.",
                    index + 2
                ));
            }
        }
    }
    let inside = |polygon: &Polygon<P>, other: &Polygon<P>| {
        polygon.outer.corners.iter().any(|corner| other.side(*corner) == Side::Inside)
    };
    for (index, polygon) in shape.polygons.iter().enumerate() {
        let others = shape.polygons[index + 1..].iter();
        if others.into_iter().any(|other| inside(polygon, other) || inside(other, polygon)) {
            return Some(
                "The MultiPolygon input is not valid because two of its polygons overlap.".to_owned(),
            );
        }
    }
    None
}
