//! The geometries of `GeoJSON`, as points, lines and areas on the sphere: containment, intersection, distance.

use super::sphere::{Ring, Side, Vector, arcs_cross, arcs_meet};
use crate::context::Context;
use crate::error::Result;

/// A geometry of any kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    pub(super) points: Vec<Vector>,
    pub(super) lines: Vec<Vec<Vector>>,
    pub(super) areas: Vec<Area>,
}

/// A polygon: a loop with holes.
#[derive(Debug, Clone)]
pub(super) struct Area {
    pub(super) outer: Ring,
    pub(super) holes: Vec<Ring>,
}

type Arc = (Vector, Vector);

impl Shape {
    /// Returns a single point.
    pub(super) fn point(point: Vector) -> Shape {
        Shape { points: vec![point], ..Shape::default() }
    }

    /// Returns whether all of another shape lies within the areas of this one.
    pub(super) fn contains(&self, other: &Shape, context: &Context) -> Result<bool> {
        for point in &other.points {
            if !self.covers_point(*point, context)? {
                return Ok(false);
            }
        }
        for line in &other.lines {
            let arcs = line.windows(2).map(|pair| (pair[0], pair[1]));
            if !any(&self.areas, |area| area.contains(line, &arcs, context))? {
                return Ok(false);
            }
        }
        for inner in &other.areas {
            let within = |area: &Area| {
                let holes_clear = area
                    .holes
                    .iter()
                    .all(|hole| hole.vertices().iter().all(|vertex| inner.side(*vertex) != Side::Inside));
                Ok(holes_clear && area.contains(inner.outer.vertices(), &inner.outer.edges(), context)?)
            };
            if !any(&self.areas, within)? {
                return Ok(false);
            }
        }
        Ok(!self.areas.is_empty())
    }

    /// Returns whether two shapes have a point in common.
    pub(super) fn intersects(&self, other: &Shape, context: &Context) -> Result<bool> {
        let meets = |shape: &Shape, other: &Shape| {
            for point in shape.some_points() {
                if other.touches_point(point, context)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        if meets(self, other)? || meets(other, self)? {
            return Ok(true);
        }
        for (a, b) in self.arcs() {
            for (number, (c, d)) in other.arcs().enumerate() {
                if number % 16 == 0 {
                    context.spend(16)?;
                }
                if arcs_meet(a, b, c, d) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the distance to a point, as an angle; `None` if the shape is empty.
    pub(super) fn distance(&self, point: Vector, context: &Context) -> Result<Option<f64>> {
        if self.covers_point(point, context)? {
            return Ok(Some(0.0));
        }
        let points = self.points.iter().map(|other| point.angle(*other));
        let arcs = self.arcs().map(|(from, to)| point.angle_to_arc(from, to));
        Ok(points.chain(arcs).reduce(f64::min))
    }

    /// Returns `true` if all of it is within a distance of a point. This holds for edges too, as long as the circle is no
    /// more than half the sphere.
    pub(super) fn is_near(&self, point: Vector, angle: f64) -> bool {
        let vertices = self.points.iter().copied().chain(self.arcs().flat_map(|(from, to)| [from, to]));
        let mut some = false;
        for vertex in vertices {
            some = true;
            if point.angle(vertex) > angle {
                return false;
            }
        }
        some
    }

    fn covers_point(&self, point: Vector, context: &Context) -> Result<bool> {
        any(&self.areas, |area| {
            context.spend(area.outer.vertices().len() as u64)?;
            Ok(area.side(point) != Side::Outside)
        })
    }

    fn touches_point(&self, point: Vector, context: &Context) -> Result<bool> {
        context.spend(self.points.len() as u64)?;
        if self.points.contains(&point) || self.covers_point(point, context)? {
            return Ok(true);
        }
        any(&self.lines, |line| {
            context.spend(line.len() as u64)?;
            Ok(line.windows(2).any(|pair| arcs_meet(pair[0], pair[1], point, point)))
        })
    }

    /// Returns a point of each part: if parts meet and no edges do, one is within the other.
    fn some_points(&self) -> impl Iterator<Item = Vector> + '_ {
        let lines = self.lines.iter().filter_map(|line| line.first());
        let areas = self.areas.iter().filter_map(|area| area.outer.vertices().first());
        self.points.iter().chain(lines).chain(areas).copied()
    }

    fn arcs(&self) -> impl Iterator<Item = Arc> + '_ {
        let lines = self.lines.iter().flat_map(|line| line.windows(2).map(|pair| (pair[0], pair[1])));
        lines.chain(self.areas.iter().flat_map(Area::edges))
    }
}

fn any<T>(items: &[T], mut test: impl FnMut(&T) -> Result<bool>) -> Result<bool> {
    for item in items {
        if test(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Area {
    fn edges(&self) -> impl Iterator<Item = Arc> + '_ {
        self.outer.edges().chain(self.holes.iter().flat_map(Ring::edges))
    }

    fn side(&self, point: Vector) -> Side {
        let outer = self.outer.side(point);
        if outer != Side::Inside {
            return outer;
        }
        for hole in &self.holes {
            match hole.side(point) {
                Side::Inside => return Side::Outside,
                Side::Edge => return Side::Edge,
                Side::Outside => {}
            }
        }
        Side::Inside
    }

    /// Returns whether a line lies within: its vertices do, and it does not leave in between.
    fn contains(
        &self,
        vertices: &[Vector],
        arcs: &(impl Iterator<Item = Arc> + Clone),
        context: &Context,
    ) -> Result<bool> {
        for vertex in vertices {
            context.spend(self.outer.vertices().len() as u64)?;
            if self.side(*vertex) == Side::Outside {
                return Ok(false);
            }
        }
        for (c, d) in self.edges() {
            for (number, (a, b)) in arcs.clone().enumerate() {
                if number % 16 == 0 {
                    context.spend(16)?;
                }
                if arcs_cross(a, b, c, d) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
