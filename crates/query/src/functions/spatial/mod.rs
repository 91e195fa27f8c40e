//! Functions of places on the earth or on a plane, given as `GeoJSON`: `Point`, `MultiPoint`, `LineString`, `Polygon` with
//! holes and `MultiPolygon`. A container names its surface (`geospatialConfig`): each surface has its own table of the same
//! functions. On a plane coordinates are any numbers, edges straight, distances and areas in the unit of the coordinates.
//! Of the earth:
//!
//! - The earth is the WGS-84 ellipsoid; distances are metres along great ellipses (`ellipsoid`), areas square metres.
//! - An edge is the shorter great ellipse between its ends, not a line on a map: from 10 degrees east to 20 degrees
//!   east at 50 degrees north it passes a little north of that parallel.
//! - A polygon lies to the left of its outer ring (`shape`).
//! - A boundary belongs to its shape: what touches intersects, and a place on a polygon's edge is within it.
//! - A value that is not a geometry, or a polygon that is not closed, makes the result undefined, except for the two
//!   validity functions. Only those two check whether rings cross themselves: it costs too much for each item, and a
//!   crossed ring still has a left and a right.

mod ellipsoid;
mod geojson;
mod globe;
mod plane;
mod relate;
mod shape;
mod sphere;
mod surface;
mod validity;

use document::{Object, Value, ValueRef};

use self::plane::Point;
use self::shape::Shape;
use self::sphere::Vector;
use self::surface::SurfacePoint;
use super::{Arg, Entry, number};
use crate::functions::context::Context;

/// The functions of places on the earth.
pub(crate) const TABLE: &[Entry] = &table::<Vector>();

/// The same functions of places on a plane.
pub(crate) const PLANAR: &[Entry] = &table::<Point>();

const fn table<P: SurfacePoint>() -> [Entry; 6] {
    [
        Entry { name: "ST_AREA", least: 1, most: 1, run: area::<P> },
        Entry { name: "ST_DISTANCE", least: 2, most: 2, run: distance::<P> },
        Entry { name: "ST_INTERSECTS", least: 2, most: 2, run: intersects::<P> },
        Entry { name: "ST_ISVALID", least: 1, most: 1, run: is_valid::<P> },
        Entry { name: "ST_ISVALIDDETAILED", least: 1, most: 1, run: is_valid_detailed::<P> },
        Entry { name: "ST_WITHIN", least: 2, most: 2, run: within::<P> },
    ]
}

fn shape<P: SurfacePoint>(argument: Arg<'_>, context: &Context) -> Option<Shape<P>> {
    geojson::read(argument?, context).ok()
}

fn both<P: SurfacePoint>(arguments: &[Arg<'_>], context: &Context) -> Option<(Shape<P>, Shape<P>)> {
    Some((shape(arguments[0], context)?, shape(arguments[1], context)?))
}

/// Returns the area of all polygons without their holes; positions and lines have none.
fn area<P: SurfacePoint>(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let shape: Shape<P> = shape(arguments[0], context)?;
    let mut sum = 0.0;
    for polygon in &shape.polygons {
        sum += P::area(&polygon.outer.corners);
        for hole in &polygon.holes {
            // The left of a hole's ring is outside the hole.
            let taken: Vec<P> = hole.corners.iter().rev().copied().collect();
            sum -= P::area(&taken);
        }
    }
    number(sum.max(0.0))
}

fn distance<P: SurfacePoint>(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (a, b) = both::<P>(arguments, context)?;
    number(relate::distance(&a, &b, context)?)
}

fn intersects<P: SurfacePoint>(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (a, b) = both::<P>(arguments, context)?;
    relate::intersects(&a, &b, context).map(Value::Bool)
}

fn within<P: SurfacePoint>(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (a, b) = both::<P>(arguments, context)?;
    relate::within(&a, &b, context).map(Value::Bool)
}

/// Returns why a value is no valid geometry, if so.
fn flaw<P: SurfacePoint>(value: ValueRef<'_>, context: &Context) -> Option<String> {
    match geojson::read::<P>(value, context) {
        Ok(shape) => validity::flaw(&shape, context),
        Err(reason) => Some(reason),
    }
}

fn is_valid<P: SurfacePoint>(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    Some(Value::Bool(flaw::<P>(arguments[0]?, context).is_none()))
}

fn is_valid_detailed<P: SurfacePoint>(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let flaw = flaw::<P>(arguments[0]?, context);
    let mut detailed = Object::new();
    detailed.insert("valid", flaw.is_none());
    if let Some(reason) = flaw {
        detailed.insert("reason", reason);
    }
    Some(Value::Object(detailed))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, call_in, call_on, check};
    use super::*;
    use crate::functions::context::Fault;
    use crate::surface::Surface;

    fn point(longitude: f64, latitude: f64) -> String {
        format!(r#"{{"type": "Point", "coordinates": [{longitude}, {latitude}]}}"#)
    }

    fn geometry(kind: &str, coordinates: &str) -> String {
        format!(r#"{{"type": "{kind}", "coordinates": {coordinates}}}"#)
    }

    /// Returns a box written counter-clockwise.
    fn square(west: f64, south: f64, east: f64, north: f64) -> String {
        format!("[[{west},{south}],[{east},{south}],[{east},{north}],[{west},{north}],[{west},{south}]]")
    }

    fn polygon(rings: &[String]) -> String {
        geometry("Polygon", &format!("[{}]", rings.join(",")))
    }

    #[track_caller]
    fn near(name: &str, arguments: &[&str], expected: f64, tolerance: f64) {
        let found = call(name, &arguments.join(",")).and_then(|value| value.as_f64()).unwrap();
        let error = (found - expected).abs() / expected.max(1.0);
        assert!(error <= tolerance, "{name} is {found}, not {expected}");
    }

    #[track_caller]
    fn holds(name: &str, a: &str, b: &str, expected: bool) {
        assert_eq!(call(name, &format!("{a}, {b}")), Some(Value::Bool(expected)), "{name}({a}, {b})");
    }

    #[test]
    fn distances_of_cities_are_those_of_the_ellipsoid() {
        // Geodesics between the cities by Vincenty's method.
        for (from, to, metres) in [
            ((-0.1278, 51.5074), (2.3522, 48.8566), 343_923.1),
            ((-74.006, 40.7128), (-118.2437, 34.0522), 3_944_422.2),
            ((151.2093, -33.8688), (174.7633, -36.8485), 2_160_508.8),
            ((139.6917, 35.6895), (-122.4194, 37.7749), 8_289_537.6),
        ] {
            near("ST_DISTANCE", &[&point(from.0, from.1), &point(to.0, to.1)], metres, 1e-5);
        }
        // What the service's documentation shows.
        let here = point(-122.117_581_139_535_35, 47.669_010_870_061_31);
        let office = point(-122.128_268_223_046_72, 47.639_802_393_357_18);
        near("ST_DISTANCE", &[&office, &here], 3_345.269_817_267_368, 1e-7);
        let research = point(-96.843_686_647_659_94, 46.812_977_943_146_63);
        near("ST_DISTANCE", &[&research, &here], 1_907_438.421_299_902, 1e-10);
    }

    #[test]
    fn distances_to_lines_and_areas_are_to_their_nearest_place() {
        let equator = geometry("LineString", "[[0,0],[10,0],[20,0]]");
        near("ST_DISTANCE", &[&point(5.0, 1.0), &equator], 110_574.0, 1e-4);
        near("ST_DISTANCE", &[&point(21.0, 0.0), &equator], 111_319.5, 1e-4);
        near("ST_DISTANCE", &[&point(7.0, 0.0), &equator], 0.0, 0.0);
        let area = polygon(&[square(0.0, 0.0, 10.0, 10.0)]);
        near("ST_DISTANCE", &[&point(5.0, 5.0), &area], 0.0, 0.0);
        near("ST_DISTANCE", &[&point(11.0, 0.0), &area], 111_319.5, 1e-4);
        near("ST_DISTANCE", &[&area, &polygon(&[square(11.0, -1.0, 12.0, 0.0)])], 111_319.5, 1e-4);
        near("ST_DISTANCE", &[&area, &polygon(&[square(5.0, 5.0, 12.0, 6.0)])], 0.0, 0.0);
        let ring = polygon(&[square(0.0, 0.0, 10.0, 10.0), square(4.0, 4.0, 6.0, 6.0)]);
        near("ST_DISTANCE", &[&point(5.0, 4.5), &ring], 55_223.0, 1e-4);
        let islands = geometry("MultiPoint", "[[30,0],[11,0]]");
        near("ST_DISTANCE", &[&islands, &area], 111_319.5, 1e-4);
        near("ST_DISTANCE", &[&geometry("LineString", "[[1,1],[1,1]]"), &point(1.0, 1.0)], 0.0, 0.0);
    }

    #[test]
    fn areas() {
        // What the service's documentation shows.
        near("ST_AREA", &[&polygon(&[square(31.8, -5.0, 32.0, -4.7)])], 735_970_283.052_261_4, 1e-9);
        let octant = geometry("Polygon", "[[[0,0],[90,0],[0,90],[0,0]]]");
        near("ST_AREA", &[&octant], 510_065_621_724_088.0 / 8.0, 1e-9);
        let clockwise = geometry("Polygon", "[[[0,0],[0,90],[90,0],[0,0]]]");
        near("ST_AREA", &[&clockwise], 510_065_621_724_088.0 * 7.0 / 8.0, 1e-9);
        near("ST_AREA", &[&polygon(&[square(-109.05, 37.0, -102.05, 41.0)])], 2.696e11, 2e-3);
        let hole = polygon(&[square(0.0, 0.0, 2.0, 2.0), square(0.5, 0.5, 1.5, 1.5)]);
        near("ST_AREA", &[&hole], 49_232_000_000.0 - 12_308_000_000.0, 1e-3);
        let garden = polygon(&[square(7.0, 50.0, 7.00001, 50.00001)]);
        near("ST_AREA", &[&garden], 0.717 * 1.1123, 1e-3);
        let two = geometry(
            "MultiPolygon",
            &format!("[[{}],[{}]]", square(0.0, 0.0, 1.0, 1.0), square(5.0, 0.0, 6.0, 1.0)),
        );
        near("ST_AREA", &[&two], 2.0 * 12_308_778_361.0, 1e-4);
        check(&[
            ("ST_AREA", r#"{"type": "Point", "coordinates": [1, 2]}"#, "0"),
            ("ST_AREA", r#"{"type": "LineString", "coordinates": [[1, 2], [3, 4]]}"#, "0"),
            ("ST_AREA", r#"{"type": "Polygon", "coordinates": [[[1, 2], [3, 4]]]}"#, "undefined"),
            ("ST_AREA", "undefined", "undefined"),
            ("ST_AREA", "[1]", "undefined"),
        ]);
    }

    #[test]
    fn places_and_lines_within_areas() {
        let area = polygon(&[square(31.8, -5.0, 32.0, -4.7)]);
        holds("ST_WITHIN", &point(31.9, -4.8), &area, true);
        holds("ST_WITHIN", &point(31.8, -4.8), &area, true);
        holds("ST_WITHIN", &point(31.7, -4.8), &area, false);
        holds("ST_WITHIN", &area, &point(31.9, -4.8), false);
        holds("ST_WITHIN", &point(1.0, 1.0), &point(1.0, 1.0), true);
        holds("ST_WITHIN", &geometry("MultiPoint", "[[31.9,-4.8],[31.7,-4.8]]"), &area, false);
        let ring = polygon(&[square(0.0, 0.0, 10.0, 10.0), square(4.0, 4.0, 6.0, 6.0)]);
        holds("ST_WITHIN", &point(5.0, 5.0), &ring, false);
        holds("ST_WITHIN", &point(4.0, 5.0), &ring, true);
        holds("ST_WITHIN", &geometry("LineString", "[[1,1],[9,1]]"), &ring, true);
        holds("ST_WITHIN", &geometry("LineString", "[[1,5],[9,5]]"), &ring, false);
        holds("ST_WITHIN", &geometry("LineString", "[[4,4],[6,6]]"), &ring, false);
        holds("ST_WITHIN", &geometry("LineString", "[[1,1],[11,1]]"), &ring, false);
        holds(
            "ST_WITHIN",
            &geometry("LineString", "[[2,0],[8,0]]"),
            &geometry("LineString", "[[0,0],[5,0],[9,0]]"),
            true,
        );
        let inverse = geometry("Polygon", "[[[0,0],[0,10],[10,10],[10,0],[0,0]]]");
        holds("ST_WITHIN", &point(5.0, 5.0), &inverse, false);
        holds("ST_WITHIN", &point(50.0, 5.0), &inverse, true);
    }

    #[test]
    fn areas_within_areas() {
        let area = polygon(&[square(0.0, 0.0, 10.0, 10.0)]);
        let ring = polygon(&[square(0.0, 0.0, 10.0, 10.0), square(4.0, 4.0, 6.0, 6.0)]);
        let small = polygon(&[square(4.5, 4.5, 5.5, 5.5)]);
        let around = polygon(&[square(3.0, 3.0, 7.0, 7.0)]);
        holds("ST_WITHIN", &area, &area, true);
        holds("ST_WITHIN", &small, &area, true);
        holds("ST_WITHIN", &area, &small, false);
        holds("ST_WITHIN", &small, &ring, false);
        holds("ST_WITHIN", &around, &area, true);
        holds("ST_WITHIN", &around, &ring, false);
        holds("ST_WITHIN", &ring, &area, true);
        holds("ST_WITHIN", &polygon(&[square(8.0, 8.0, 12.0, 9.0)]), &area, false);
        let two = geometry(
            "MultiPolygon",
            &format!("[[{}],[{}]]", square(0.0, 0.0, 10.0, 10.0), square(20.0, 0.0, 30.0, 10.0)),
        );
        holds("ST_WITHIN", &polygon(&[square(21.0, 1.0, 22.0, 2.0)]), &two, true);
        holds("ST_WITHIN", &polygon(&[square(5.0, 1.0, 22.0, 2.0)]), &two, false);
    }

    #[test]
    fn what_intersects() {
        let area = polygon(&[square(0.0, 0.0, 10.0, 10.0)]);
        let ring = polygon(&[square(0.0, 0.0, 10.0, 10.0), square(4.0, 4.0, 6.0, 6.0)]);
        let small = polygon(&[square(4.5, 4.5, 5.5, 5.5)]);
        holds("ST_INTERSECTS", &area, &small, true);
        holds("ST_INTERSECTS", &small, &ring, false);
        holds("ST_INTERSECTS", &area, &polygon(&[square(10.0, 0.0, 20.0, 10.0)]), true);
        holds("ST_INTERSECTS", &area, &polygon(&[square(10.1, 0.0, 20.0, 10.0)]), false);
        holds(
            "ST_INTERSECTS",
            &polygon(&[square(-5.0, 4.0, 15.0, 5.0)]),
            &polygon(&[square(4.0, -5.0, 5.0, 15.0)]),
            true,
        );
        holds("ST_INTERSECTS", &geometry("LineString", "[[-5,5],[15,5]]"), &area, true);
        holds("ST_INTERSECTS", &geometry("LineString", "[[4.5,5],[5.5,5]]"), &ring, false);
        holds(
            "ST_INTERSECTS",
            &geometry("LineString", "[[0,0],[10,10]]"),
            &geometry("LineString", "[[0,10],[10,0]]"),
            true,
        );
        holds(
            "ST_INTERSECTS",
            &geometry("LineString", "[[0,0],[1,1]]"),
            &geometry("LineString", "[[5,5],[0,9]]"),
            false,
        );
        holds("ST_INTERSECTS", &point(1.0, 1.0), &point(1.0, 1.000_001), false);
        holds("ST_INTERSECTS", &point(180.0, 5.0), &point(-180.0, 5.0), true);
        holds("ST_INTERSECTS", &point(0.0, 90.0), &point(77.0, 90.0), true);
        check(&[
            ("ST_INTERSECTS", r#"{"type": "Point", "coordinates": [1, 2]}, 1"#, "undefined"),
            ("ST_INTERSECTS", r#"undefined, {"type": "Point", "coordinates": [1, 2]}"#, "undefined"),
            (
                "ST_WITHIN",
                r#"{"type": "Point", "coordinates": [1, 2]}, {"type": "Circle", "coordinates": []}"#,
                "undefined",
            ),
            (
                "ST_DISTANCE",
                r#"{"type": "Point", "coordinates": [1, 92]}, {"type": "Point", "coordinates": [1, 2]}"#,
                "undefined",
            ),
            (
                "ST_DISTANCE",
                r#"{"type": "Point", "coordinates": [1, 2]}, {"type": "MultiPolygon", "coordinates": []}"#,
                "undefined",
            ),
        ]);
    }

    #[test]
    fn valid_and_not() {
        let open = "[[31.8,-5],[31.8,-4.7],[32,-4.7],[32,-5]]";
        for (shape, valid) in [
            (point(-84.388_761_943_453_23, 33.756_827_843_063_48), true),
            (point(31.9, -132.8), false),
            (point(181.0, 0.0), false),
            (geometry("Point", "[1]"), false),
            (geometry("Point", r#"["1", 2]"#), false),
            (geometry("Point", "[1, 2, 300]"), true),
            (geometry("LineString", "[[1,2]]"), false),
            (geometry("LineString", "[[1,2],[3,4]]"), true),
            (geometry("LineString", "[[0,10],[180,-10]]"), false),
            (geometry("Polygon", "[]"), false),
            (geometry("Polygon", &format!("[{open}]")), false),
            (geometry("Polygon", "[[[0,0],[1,1],[0,0],[0,0]]]"), false),
            (geometry("Polygon", "[[[0,0],[10,10],[10,0],[0,10],[0,0]]]"), false),
            (polygon(&[square(0.0, 0.0, 10.0, 10.0), square(4.0, 4.0, 6.0, 6.0)]), true),
            (polygon(&[square(0.0, 0.0, 10.0, 10.0), square(4.0, 4.0, 16.0, 6.0)]), false),
            (polygon(&[square(0.0, 0.0, 10.0, 10.0), square(14.0, 4.0, 16.0, 6.0)]), false),
            (geometry("MultiPolygon", "[]"), true),
            (
                geometry(
                    "MultiPolygon",
                    &format!("[[{}],[{}]]", square(0.0, 0.0, 1.0, 1.0), square(5.0, 0.0, 6.0, 1.0)),
                ),
                true,
            ),
            (
                geometry(
                    "MultiPolygon",
                    &format!("[[{}],[{}]]", square(0.0, 0.0, 9.0, 9.0), square(5.0, 1.0, 6.0, 2.0)),
                ),
                false,
            ),
            (geometry("Sphere", "[1, 2]"), false),
            ("5".to_owned(), false),
            ("{}".to_owned(), false),
        ] {
            assert_eq!(call("ST_ISVALID", &shape), Some(Value::Bool(valid)), "{shape}");
        }
        check(&[
            ("ST_ISVALID", "undefined", "undefined"),
            ("ST_ISVALIDDETAILED", "undefined", "undefined"),
            ("ST_ISVALIDDETAILED", r#"{"type": "Point", "coordinates": [1, 2]}"#, r#"{"valid":true}"#),
            (
                "ST_ISVALIDDETAILED",
                r#"{"type": "Point", "coordinates": [133.75, -184.38]}"#,
                r#"{"valid":false,"reason":"Latitude values must be between -90 and 90 degrees."}"#,
            ),
        ]);
        let detailed = call("ST_ISVALIDDETAILED", &geometry("Polygon", &format!("[{open}]"))).unwrap();
        assert!(
            detailed
                .get("reason")
                .and_then(Value::as_str)
                .unwrap()
                .contains("ring number 1 are not the same")
        );
    }

    #[test]
    fn large_shapes_are_paid_for() {
        let places: Vec<String> =
            (0..2_000).map(|n| format!("[{},{}]", f64::from(n) / 20.0, n % 2)).collect();
        let line = geometry("LineString", &format!("[{}]", places.join(",")));
        let context = Context::new(0, 1).with_budget(10_000);
        assert_eq!(call_in(&context, "ST_INTERSECTS", &format!("{line}, {line}")), None);
        assert_eq!(context.fault(), Some(Fault::OutOfBudget));
    }

    #[track_caller]
    fn planar(name: &str, arguments: &[&str], expected: &str) {
        let found = call_on(Surface::Plane, &Context::new(0, 1), name, &arguments.join(","));
        let found = found.map_or("undefined".to_owned(), |value| value.to_json());
        assert_eq!(found, expected, "{name}({})", arguments.join(", "));
    }

    #[test]
    fn distances_on_a_plane_are_those_of_pythagoras() {
        planar("ST_DISTANCE", &[&point(0.0, 0.0), &point(3.0, 4.0)], "5");
        planar("ST_DISTANCE", &[&point(1000.0, -2000.0), &point(1003.0, -1996.0)], "5");
        planar("ST_DISTANCE", &[&point(180.0, 0.0), &point(-180.0, 0.0)], "360");
        planar("ST_DISTANCE", &[&point(0.0, 90.0), &point(50.0, 90.0)], "50");
        let line = geometry("LineString", "[[0,0],[10,0],[10,10]]");
        planar("ST_DISTANCE", &[&point(5.0, 3.0), &line], "3");
        planar("ST_DISTANCE", &[&point(13.0, 14.0), &line], "5");
        let area = polygon(&[square(0.0, 0.0, 10.0, 10.0)]);
        planar("ST_DISTANCE", &[&point(5.0, 5.0), &area], "0");
        planar("ST_DISTANCE", &[&area, &polygon(&[square(13.0, 14.0, 20.0, 20.0)])], "5");
        let ring = polygon(&[square(0.0, 0.0, 10.0, 10.0), square(4.0, 4.0, 6.0, 6.0)]);
        planar("ST_DISTANCE", &[&point(5.0, 4.5), &ring], "0.5");
        planar("ST_DISTANCE", &[&geometry("MultiPoint", "[[300,0],[13,14]]"), &area], "5");
        planar("ST_DISTANCE", &[&geometry("LineString", "[[1,1],[1,1]]"), &point(1.0, 1.0)], "0");
        planar("ST_DISTANCE", &[&point(0.0, 0.0), "1"], "undefined");
    }

    #[test]
    fn areas_on_a_plane() {
        let clockwise = geometry("Polygon", "[[[0,0],[0,500],[400,500],[400,0],[0,0]]]");
        for shape in [polygon(&[square(0.0, 0.0, 400.0, 500.0)]), clockwise] {
            planar("ST_AREA", &[&shape], "200000");
        }
        planar("ST_AREA", &[&polygon(&[square(0.0, 0.0, 10.0, 10.0), square(4.0, 4.0, 6.0, 6.0)])], "96");
        let hole = geometry(
            "Polygon",
            &format!("[{},[[4,4],[4,6],[6,6],[6,4],[4,4]]]", square(0.0, 0.0, 10.0, 10.0)),
        );
        planar("ST_AREA", &[&hole], "96");
        planar("ST_AREA", &[&point(1.0, 1.0)], "0");
    }

    #[test]
    fn what_lies_within_and_what_meets_on_a_plane() {
        let area = polygon(&[square(1000.0, 1000.0, 1010.0, 1010.0)]);
        let inverse = geometry("Polygon", "[[[1000,1000],[1000,1010],[1010,1010],[1010,1000],[1000,1000]]]");
        for area in [&area, &inverse] {
            for (x, y, within) in [
                (1005.0, 1005.0, "true"),
                (1000.0, 1005.0, "true"),
                (1010.0, 1010.0, "true"),
                (1011.0, 1005.0, "false"),
                (999.0, 1010.0, "false"),
                (0.0, 0.0, "false"),
            ] {
                planar("ST_WITHIN", &[&point(x, y), area], within);
                planar("ST_INTERSECTS", &[area, &point(x, y)], within);
            }
        }
        // On the earth the edge in the north runs north of the parallel, and this place lies south of it.
        let wide = polygon(&[square(0.0, 0.0, 80.0, 50.0)]);
        holds("ST_WITHIN", &point(40.0, 51.0), &wide, true);
        planar("ST_WITHIN", &[&point(40.0, 51.0), &wide], "false");
        planar("ST_WITHIN", &[&point(40.0, 50.0), &wide], "true");
        let ring = polygon(&[square(0.0, 0.0, 10.0, 10.0), square(4.0, 4.0, 6.0, 6.0)]);
        for (shape, within, meets) in [
            (geometry("LineString", "[[1,1],[9,1]]"), "true", "true"),
            (geometry("LineString", "[[1,5],[9,5]]"), "false", "true"),
            (geometry("LineString", "[[4.5,5],[5.5,5]]"), "false", "false"),
            (polygon(&[square(4.5, 4.5, 5.5, 5.5)]), "false", "false"),
            (polygon(&[square(3.0, 3.0, 7.0, 7.0)]), "false", "true"),
            (polygon(&[square(1.0, 1.0, 2.0, 2.0)]), "true", "true"),
            (polygon(&[square(10.0, 0.0, 20.0, 10.0)]), "false", "true"),
            (polygon(&[square(10.1, 0.0, 20.0, 10.0)]), "false", "false"),
            (geometry("MultiPoint", "[[1,1],[11,1]]"), "false", "true"),
        ] {
            planar("ST_WITHIN", &[&shape, &ring], within);
            planar("ST_INTERSECTS", &[&shape, &ring], meets);
        }
    }

    #[test]
    fn valid_on_a_plane_are_all_coordinates_but_not_all_shapes() {
        for (shape, valid) in [
            (point(31.9, -132.8), "true"),
            (point(4e9, -1e12), "true"),
            (geometry("Point", "[1]"), "false"),
            (geometry("LineString", "[[0,10],[180,-10]]"), "true"),
            (polygon(&[square(-1000.0, -1000.0, 1000.0, 1000.0)]), "true"),
            (geometry("Polygon", "[[[0,0],[0,500],[500,500],[500,0],[0,0]]]"), "true"),
            (geometry("Polygon", "[[[0,0],[500,0],[500,500],[0,500]]]"), "false"),
            (geometry("Polygon", "[[[0,0],[500,500],[500,0],[0,500],[0,0]]]"), "false"),
            (polygon(&[square(0.0, 0.0, 500.0, 500.0), square(10.0, 10.0, 20.0, 20.0)]), "true"),
            (polygon(&[square(0.0, 0.0, 500.0, 500.0), square(10.0, 10.0, 900.0, 20.0)]), "false"),
            (polygon(&[square(0.0, 0.0, 500.0, 500.0), square(600.0, 10.0, 900.0, 20.0)]), "false"),
        ] {
            planar("ST_ISVALID", &[&shape], valid);
        }
        planar("ST_ISVALIDDETAILED", &[&point(133.75, -184.38)], r#"{"valid":true}"#);
    }
}
