//! The WGS-84 ellipsoid.
//!
//! Distances run along great ellipses, the sections of the ellipsoid with a plane through its centre, which is also
//! what edges are. Against the shortest line of all, the geodesic, that is longer by a few parts in a hundred million
//! over continents, and by 0.2 % at most, between places opposite each other near the equator; the distances that
//! the service documents are met to less than a millimetre. A sphere of any radius would be off by up to 0.5 %.
//!
//! Areas are taken on the sphere of the same surface after moving each latitude so that areas stay what they are
//! (authalic latitudes).

use super::sphere::{Vector, area_to_the_left};

/// The radius of the equator, in metres.
const EQUATOR: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
/// The distance of a pole from the centre.
const POLE: f64 = EQUATOR * (1.0 - FLATTENING);
/// The square of the eccentricity.
const ECCENTRICITY_2: f64 = FLATTENING * (2.0 - FLATTENING);

/// Returns the direction of a place given in degrees.
pub(super) fn direction(longitude: f64, latitude: f64) -> Vector {
    let (longitude, latitude) = (longitude.to_radians(), latitude.to_radians());
    let (sin, cos) = latitude.sin_cos();
    Vector { x: cos * longitude.cos(), y: cos * longitude.sin(), z: (1.0 - ECCENTRICITY_2) * sin }.unit()
}

/// Returns the place where a direction leaves the ellipsoid, in metres from the centre.
pub(super) fn surface(direction: Vector) -> Vector {
    let Vector { x, y, z } = direction;
    direction * (x.hypot(y) / EQUATOR).hypot(z / POLE).recip()
}

/// Returns the length of the great ellipse between two places, in metres.
pub(super) fn distance(from: Vector, to: Vector) -> f64 {
    let normal = from.normal(to);
    // Opposite places have many planes; the one through the poles holds the shortest way.
    let normal = if normal.length() > 1e-15 { normal.unit() } else { from.aside() };
    if from.chord(to) < 1e-15 {
        return 0.0;
    }
    // The ellipse's long axis lies in the equator's plane, its short one at a right angle.
    let long = Vector { x: -normal.y, y: normal.x, z: 0.0 };
    let long = if long.length() > 1e-15 { long.unit() } else { Vector { x: 1.0, y: 0.0, z: 0.0 } };
    let short = normal.cross(long);
    let half_short = surface(short).length();
    let angle = |place: Vector| (place.dot(short) / half_short).atan2(place.dot(long) / EQUATOR);
    let (start, end) = (angle(from), angle(to));
    let span = (end - start).rem_euclid(std::f64::consts::TAU);
    if span <= std::f64::consts::PI {
        ellipse_length(half_short, start, span)
    } else {
        ellipse_length(half_short, end, std::f64::consts::TAU - span)
    }
}

/// Returns the length of an ellipse from an angle over a span, by Gauss's quadrature: the curve is so nearly a circle that
/// eight places give all digits.
fn ellipse_length(half_short: f64, start: f64, span: f64) -> f64 {
    const NODES: [(f64, f64); 4] = [
        (0.183_434_642_495_649_8, 0.362_683_783_378_362),
        (0.525_532_409_916_329, 0.313_706_645_877_887_3),
        (0.796_666_477_413_626_7, 0.222_381_034_453_374_5),
        (0.960_289_856_497_536_3, 0.101_228_536_290_376_3),
    ];
    let speed = |angle: f64| (EQUATOR * angle.sin()).hypot(half_short * angle.cos());
    let (middle, half) = (start + span / 2.0, span / 2.0);
    let sum: f64 = NODES
        .iter()
        .map(|(node, weight)| weight * (speed(middle - half * node) + speed(middle + half * node)))
        .sum();
    sum * half
}

/// Returns the area to the left of a closed line, in square metres.
pub(super) fn area(corners: &[Vector]) -> f64 {
    let of_pole = swollen(1.0);
    let authalic = |place: &Vector| {
        let sine = place.z / place.z.hypot((1.0 - ECCENTRICITY_2) * place.x.hypot(place.y));
        let z = swollen(sine) / of_pole;
        let around = Vector { x: place.x, y: place.y, z: 0.0 }.unit() * (1.0 - z * z).max(0.0).sqrt();
        Vector { z, ..around }
    };
    let corners: Vec<Vector> = corners.iter().map(authalic).collect();
    area_to_the_left(&corners) * EQUATOR * EQUATOR * of_pole / 2.0
}

/// Returns the area between the equator and the latitude of that sine, for one radian of longitude and an equator of radius
/// one, twice.
fn swollen(sine: f64) -> f64 {
    let e = ECCENTRICITY_2.sqrt();
    (1.0 - ECCENTRICITY_2) * (sine / (1.0 - ECCENTRICITY_2 * sine * sine) + (e * sine).atanh() / e)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kilometres(from: (f64, f64), to: (f64, f64)) -> f64 {
        distance(direction(from.0, from.1), direction(to.0, to.1)) / 1000.0
    }

    #[test]
    fn quarters_of_the_meridian_and_the_equator_have_their_known_lengths() {
        assert!((kilometres((0.0, 0.0), (0.0, 90.0)) - 10_001.965_729).abs() < 1e-6);
        assert!((kilometres((10.0, 0.0), (100.0, 0.0)) - 10_018.754_171).abs() < 1e-6);
        assert!((kilometres((0.0, 90.0), (0.0, -90.0)) - 20_003.931_459).abs() < 1e-6);
        assert!((kilometres((0.0, 0.0), (180.0, 0.0)) - 20_003.931_459).abs() < 40.0);
        assert!(kilometres((7.0, 50.0), (7.0, 50.0)).abs() < 1e-12);
    }

    #[test]
    fn the_date_line_is_no_border() {
        let across = kilometres((179.5, -17.0), (-179.5, -17.0));
        let elsewhere = kilometres((10.0, -17.0), (11.0, -17.0));
        assert!((across - elsewhere).abs() < 1e-6);
    }

    #[test]
    fn a_hemisphere_is_half_the_surface_of_the_earth() {
        let equator: Vec<Vector> = (0..8).map(|step| direction(f64::from(step) * 45.0, 0.0)).collect();
        assert!((area(&equator) / 1e6 - 510_065_621.724 / 2.0).abs() < 1.0);
    }
}
