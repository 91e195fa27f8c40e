//! Regions of the plane, for the older operators: boxes, polygons and circles. Their edges belong to them.

use super::read::Pair;

/// A region of the plane.
#[derive(Debug, Clone)]
pub(super) enum Region {
    /// Lower left and upper right.
    Box(Pair, Pair),
    Circle {
        centre: Pair,
        radius: f64,
    },
    /// The vertices; the last is joined to the first.
    Polygon(Vec<Pair>),
}

impl Region {
    /// Returns `true` if a point is within, or on the edge.
    pub(super) fn contains(&self, point: Pair) -> bool {
        match self {
            Region::Box([left, bottom], [right, top]) => {
                (*left..=*right).contains(&point[0]) && (*bottom..=*top).contains(&point[1])
            }
            Region::Circle { centre, radius } => is_on_disc(*centre, *radius, point),
            Region::Polygon(vertices) => polygon_contains(vertices, point),
        }
    }
}

/// Returns `true` if a point is on a disc, or on its rim as far as numbers can tell: subtracting coordinates loses digits
/// that a small radius has.
fn is_on_disc(centre: Pair, radius: f64, point: Pair) -> bool {
    let largest = centre.iter().chain(&point).fold(radius, |most, part| most.max(part.abs()));
    distance(centre, point) <= radius + 2.0 * f64::EPSILON * largest
}

/// Returns the distance of two points of the plane.
pub(super) fn distance(from: Pair, to: Pair) -> f64 {
    (from[0] - to[0]).hypot(from[1] - to[1])
}

/// Counts how often a ray to the right crosses the edges.
fn polygon_contains(vertices: &[Pair], [x, y]: Pair) -> bool {
    let mut inside = false;
    let next = vertices.iter().cycle().skip(1);
    for ([x1, y1], [x2, y2]) in vertices.iter().zip(next) {
        let turn = (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1);
        let within = (x1.min(*x2)..=x1.max(*x2)).contains(&x) && (y1.min(*y2)..=y1.max(*y2)).contains(&y);
        if turn == 0.0 && within {
            return true;
        }
        if (*y1 > y) != (*y2 > y) && ((turn > 0.0) == (y2 > y1)) {
            inside = !inside;
        }
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_belong_to_regions() {
        let polygon = Region::Polygon(vec![[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [2.0, 1.0], [0.0, 4.0]]);
        for (point, expected) in [
            ([1.0, 1.0], true),
            ([2.0, 0.5], true),
            ([2.0, 3.0], false),
            ([4.0, 2.0], true),
            ([2.0, 0.0], true),
            ([5.0, 1.0], false),
            ([-1.0, 0.0], false),
            ([0.0, 4.0], true),
        ] {
            assert_eq!(polygon.contains(point), expected, "{point:?}");
        }
        assert!(Region::Box([0.0, 0.0], [1.0, 1.0]).contains([1.0, 0.0]));
        assert!(!Region::Box([0.0, 0.0], [1.0, 1.0]).contains([1.1, 0.0]));
        assert!(Region::Circle { centre: [0.0, 0.0], radius: 5.0 }.contains([3.0, 4.0]));
        let small = Region::Circle { centre: [5.0, 52.0], radius: 0.0001 };
        assert!(small.contains([5.0, 52.0001]) && small.contains([5.0001, 52.0]));
        assert!(!small.contains([5.0, 52.000_100_001]));
    }
}
