//! Boxes of longitudes and latitudes around lines, rings and circles on the globe.

/// Added around every box, in degrees, so that rounding never loses an edge.
const MARGIN: f64 = 1e-7;
/// How near to a pole longitudes no longer distinguish positions, in degrees.
const POLE_MARGIN: f64 = 1e-4;

pub(crate) type Position = (f64, f64);

/// A box of longitudes and latitudes, in degrees, that does not cross the 180th meridian.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoBox {
    /// The smallest longitude.
    pub west: f64,
    /// The smallest latitude.
    pub south: f64,
    /// The largest longitude.
    pub east: f64,
    /// The largest latitude.
    pub north: f64,
}

impl GeoBox {
    /// The whole world.
    pub const WORLD: GeoBox = GeoBox { west: -180.0, south: -90.0, east: 180.0, north: 90.0 };

    pub(crate) fn meets(&self, other: &GeoBox) -> bool {
        self.west <= other.east
            && other.west <= self.east
            && self.south <= other.north
            && other.south <= self.north
    }

    pub(crate) fn within(&self, other: &GeoBox) -> bool {
        other.west <= self.west
            && self.east <= other.east
            && other.south <= self.south
            && self.north <= other.north
    }
}

/// Returns the boxes around a line or a closed ring: two where it crosses the 180th meridian, the world where it goes around
/// a pole.
pub(crate) fn boxes_around(vertices: &[Position]) -> Vec<GeoBox> {
    let Some(&(first_longitude, first_latitude)) = vertices.first() else { return Vec::new() };
    let (mut west, mut east) = (first_longitude, first_longitude);
    let (mut south, mut north) = (first_latitude, first_latitude);
    // Longitudes without the jump at 180 degrees: each edge goes the short way.
    let mut longitude = first_longitude;
    for pair in vertices.windows(2) {
        let ((from, from_latitude), (to, to_latitude)) = (pair[0], pair[1]);
        let step = to - from;
        let step = if step > 180.0 {
            step - 360.0
        } else if step < -180.0 {
            step + 360.0
        } else {
            step
        };
        longitude += step;
        (west, east) = (west.min(longitude), east.max(longitude));
        (south, north) = (south.min(to_latitude), north.max(to_latitude));
        let (low, high) = arc_latitudes(from_latitude, to_latitude, step);
        (south, north) = (south.min(low), north.max(high));
    }
    let closed = vertices.len() > 2 && vertices.first() == vertices.last();
    let around_pole = closed && (longitude - first_longitude).abs() > 180.0;
    if around_pole || east - west >= 180.0 {
        return vec![GeoBox::WORLD];
    }
    let (south, north) = ((south - MARGIN).max(-90.0), (north + MARGIN).min(90.0));
    // All longitudes meet at a pole.
    if south <= POLE_MARGIN - 90.0 || north >= 90.0 - POLE_MARGIN {
        return split(-180.0, south, 180.0, north);
    }
    split(west - MARGIN, south, east + MARGIN, north)
}

/// Returns the boxes around a circle on the globe: centre in degrees, radius in radians.
pub(crate) fn boxes_around_circle(longitude: f64, latitude: f64, radius: f64) -> Vec<GeoBox> {
    let degrees = radius.to_degrees() + MARGIN;
    let (south, north) = (latitude - degrees, latitude + degrees);
    if !degrees.is_finite() || degrees >= 90.0 {
        return vec![GeoBox::WORLD];
    }
    if south <= -90.0 || north >= 90.0 {
        return vec![GeoBox { south: south.max(-90.0), north: north.min(90.0), ..GeoBox::WORLD }];
    }
    // The meridians that touch the circle do so off its centre's parallel.
    let reach =
        (degrees.to_radians().sin() / latitude.to_radians().cos()).min(1.0).asin().to_degrees() + MARGIN;
    split(longitude - reach, south, longitude + reach, north)
}

fn split(west: f64, south: f64, east: f64, north: f64) -> Vec<GeoBox> {
    let part = |west: f64, east: f64| GeoBox { west: west.max(-180.0), south, east: east.min(180.0), north };
    if east - west >= 360.0 {
        return vec![part(-180.0, 180.0)];
    }
    let mut parts = Vec::new();
    for turn in [-360.0, 0.0, 360.0] {
        let (west, east) = (west + turn, east + turn);
        if west <= 180.0 && east >= -180.0 {
            parts.push(part(west, east));
        }
    }
    parts
}

/// Returns the lowest and the highest latitude of the shortest way between two points, `step` degrees of longitude apart. It
/// runs nearer to the pole than both ends if its highest point lies between them.
fn arc_latitudes(from: f64, to: f64, step: f64) -> (f64, f64) {
    let (low, high) = (from.min(to), from.max(to));
    if step.abs() < 1e-9 {
        return (low, high);
    }
    // The highest latitude of the whole great circle bounds that of the part.
    let (a, b, step) = (from.to_radians(), to.to_radians(), step.to_radians());
    let x = a.cos() * b.cos() * step.sin();
    let across = (a.cos() * b.sin() - a.sin() * b.cos() * step.cos(), a.sin() * b.cos() * step.sin());
    let length = (x * x + across.0 * across.0 + across.1 * across.1).sqrt();
    if length < 1e-12 {
        return (-90.0, 90.0);
    }
    let highest = (x.abs() / length).min(1.0).acos().to_degrees();
    // Only the side that the arc bends to; an arc across the equator may do either.
    if low >= 0.0 {
        (low, high.max(highest))
    } else if high <= 0.0 {
        (low.min(-highest), high)
    } else {
        (low.min(-highest), high.max(highest))
    }
}
