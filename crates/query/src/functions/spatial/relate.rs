//! Relations between two shapes: intersection, containment, distance.
//!
//! Every pair of edges may be compared, so the work is charged before it is done.

use super::shape::{Shape, Side};
use super::surface::{Edge, SurfacePoint};
use crate::functions::context::Context;

/// Returns whether the shapes have a place in common; `None` when finding out costs more than is left.
pub(super) fn intersects<P: SurfacePoint>(a: &Shape<P>, b: &Shape<P>, context: &Context) -> Option<bool> {
    pay(a, b, context)?;
    // Shapes whose boundaries do not meet are apart, or one holds all corners of the other.
    if a.corners().any(|place| b.covers(place)) || b.corners().any(|place| a.covers(place)) {
        return Some(true);
    }
    let edges: Vec<P::Edge> = b.edges().collect();
    Some(a.edges().any(|edge| edges.iter().any(|other| edge.meets(other))))
}

/// Returns whether all of the first shape belongs to the second, whose boundary counts.
pub(super) fn within<P: SurfacePoint>(a: &Shape<P>, b: &Shape<P>, context: &Context) -> Option<bool> {
    pay(a, b, context)?;
    if a.corners().next().is_none() || (!a.polygons.is_empty() && b.polygons.is_empty()) {
        return Some(false);
    }
    if !a.corners().all(|place| b.covers(place)) {
        return Some(false);
    }
    let edges: Vec<P::Edge> = b.edges().collect();
    for edge in a.edges() {
        if !holds_edge(b, &edge, &edges, context)? {
            return Some(false);
        }
    }
    // The boundary is contained; a hole, or the outside, may still lie inside the area.
    let amid = |place: P| a.polygons.iter().any(|polygon| polygon.side(place) == Side::Inside);
    Some(!b.rings().flat_map(|ring| ring.corners.iter()).any(|corner| amid(*corner)))
}

/// Returns whether a shape holds an edge whose ends it holds: cut wherever it meets an edge of the shape, the middle of each
/// piece tells about the whole piece.
fn holds_edge<P: SurfacePoint>(
    shape: &Shape<P>,
    edge: &P::Edge,
    edges: &[P::Edge],
    context: &Context,
) -> Option<bool> {
    let mut cuts = vec![edge.start(), edge.end()];
    for other in edges {
        edge.cuts(other, &mut cuts);
    }
    if !context.spend((cuts.len() as u64 * edges.len() as u64) / 16 + 1) {
        return None;
    }
    cuts.sort_by(|a, b| edge.start().apart(*a).total_cmp(&edge.start().apart(*b)));
    let mut pieces = cuts.windows(2).filter(|piece| !piece[0].is_at(piece[1]));
    Some(pieces.all(|piece| shape.covers(piece[0].midway(piece[1]))))
}

/// Returns the distance between the nearest places of two shapes. Shapes without places have none.
///
/// Edges come nearest to each other at an end of one of them. On the earth, where on an edge that is, is found as on a
/// sphere and measured on the ellipsoid: the place may be off a little, the distance is not.
pub(super) fn distance<P: SurfacePoint>(a: &Shape<P>, b: &Shape<P>, context: &Context) -> Option<f64> {
    let (mut best, mut nearest) = (f64::INFINITY, None);
    let mut consider = |from: P, to: P| {
        let apart = from.apart(to);
        if apart < best {
            (best, nearest) = (apart, Some((from, to)));
        }
    };
    if intersects(a, b, context)? {
        return Some(0.0);
    }
    for (one, other) in [(a, b), (b, a)] {
        let edges: Vec<P::Edge> = other.edges().collect();
        for corner in one.corners() {
            for edge in &edges {
                consider(corner, edge.nearest(corner));
            }
            // A line whose positions are all equal has no edge.
            for place in other.points.iter().chain(other.lines.iter().map(|line| &line[0])) {
                consider(corner, *place);
            }
        }
    }
    nearest.map(|(from, to)| from.distance(to))
}

fn pay<P: SurfacePoint>(a: &Shape<P>, b: &Shape<P>, context: &Context) -> Option<()> {
    let (a, b) = (a.corners().count() as u64, b.corners().count() as u64);
    context.spend(a.saturating_mul(b) / 16 + 1).then_some(())
}
