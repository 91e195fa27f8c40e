//! Random documents: geometries, words, arrays, and fields that are missing.

use std::fmt::Write;

use fastrand::Rng;

/// What the field `t` says. Its words are found without regard to case and diacritics.
const TEXTS: [&str; 8] = ["red", "Red", "blue", "red blue", "Blue red", "grün", "grun red", "yellow"];

pub(crate) fn place(random: &mut Rng) -> (i32, i32) {
    // Few points, so that vertices, edges and borders meet; some beside the 180th meridian and near a pole.
    match random.u8(..10) {
        0 => (if random.bool() { 179 } else { -179 }, random.i32(-3..4)),
        1 => (random.i32(-180..180), random.i32(80..88)),
        _ => (random.i32(0..12), random.i32(0..12)),
    }
}

fn pair((longitude, latitude): (i32, i32)) -> String {
    format!("[{longitude}, {latitude}]")
}

fn line(random: &mut Rng) -> String {
    let from = place(random);
    let to = (from.0.clamp(-170, 170) + random.i32(1..6), (from.1 + random.i32(-3..4)).clamp(-88, 88));
    format!("[{}, {}]", pair((from.0.clamp(-170, 170), from.1)), pair(to))
}

/// A rectangle or a triangle; every other rectangle that is wide enough has a hole.
pub(crate) fn rings(random: &mut Rng) -> String {
    let (west, south) = place(random);
    let west = west.clamp(-170, 165);
    let (east, north) = (west + random.i32(2..9), (south + random.i32(2..9)).min(89));
    let mut corners = vec![(west, south), (east, south), (east, north), (west, north)];
    if random.bool() {
        corners.remove(random.usize(..4));
    }
    corners.push(corners[0]);
    let ring = |corners: &[(i32, i32)]| {
        let corners: Vec<String> = corners.iter().map(|corner| pair(*corner)).collect();
        format!("[{}]", corners.join(", "))
    };
    // The sides of a hole keep a degree from those of the rectangle, which are arcs of great circles.
    let is_wide = corners.len() == 5 && east - west > 2 && north - south > 2;
    if is_wide && random.bool() {
        let (west, south, east, north) = (west + 1, south + 1, east - 1, north - 1);
        let hole = [(west, south), (west, north), (east, north), (east, south), (west, south)];
        return format!("[{}, {}]", ring(&corners), ring(&hole));
    }
    format!("[{}]", ring(&corners))
}

pub(crate) fn geometry(random: &mut Rng) -> String {
    let several = |random: &mut Rng, one: fn(&mut Rng) -> String| {
        let all: Vec<String> = (0..random.usize(1..4)).map(|_| one(random)).collect();
        format!("[{}]", all.join(", "))
    };
    let (kind, coordinates) = match random.u8(..7) {
        0 => ("Point", pair(place(random))),
        1 => ("LineString", line(random)),
        2 | 3 => ("Polygon", rings(random)),
        4 => ("MultiPoint", several(random, |random| pair(place(random)))),
        5 => ("MultiLineString", several(random, line)),
        _ => ("MultiPolygon", several(random, rings)),
    };
    format!(r#"{{"type": "{kind}", "coordinates": {coordinates}}}"#)
}

fn stored_geometry(random: &mut Rng) -> String {
    match random.u8(..8) {
        0 => pair(place(random)),
        1 => format!(
            r#"{{"type": "GeometryCollection", "geometries": [{}, {}]}}"#,
            geometry(random),
            geometry(random)
        ),
        _ => geometry(random),
    }
}

pub(crate) fn document(id: usize, random: &mut Rng) -> String {
    let mut text = format!(r#"{{"_id": {id}, "n": 0"#);
    let mut field = |name: &str, value: String| write!(text, r#", "{name}": {value}"#).unwrap();
    if random.u8(..8) > 0 {
        field("g", stored_geometry(random));
    }
    if random.u8(..6) > 0 {
        field("k", random.i32(0..5).to_string());
    }
    if random.u8(..4) > 0 {
        field("s", format!("\"{}\"", random.choice(["a", "A", "b", "ab", "é", "É", "e"]).unwrap()));
    }
    if random.u8(..4) > 0 {
        field("t", format!("\"{}\"", random.choice(TEXTS).unwrap()));
    }
    let number = |random: &mut Rng| random.i32(0..4).to_string();
    let list = |random: &mut Rng, one: &mut dyn FnMut(&mut Rng) -> String| {
        let all: Vec<String> = (0..random.usize(..4)).map(|_| one(random)).collect();
        format!("[{}]", all.join(", "))
    };
    match random.u8(..3) {
        0 => field("l", list(random, &mut |random| number(random))),
        1 => field("l", number(random)),
        _ => {}
    }
    let mut leaf = |random: &mut Rng| match random.u8(..3) {
        0 => format!(r#"{{"x": {}}}"#, number(random)),
        1 => format!(r#"{{"y": {}}}"#, number(random)),
        _ => format!(r#"{{"x": {}, "y": {}}}"#, number(random), number(random)),
    };
    let mut item = |random: &mut Rng| {
        let b = if random.bool() { list(random, &mut leaf) } else { leaf(random) };
        format!(r#"{{"b": {b}, "c": {}}}"#, number(random))
    };
    let a = if random.bool() { list(random, &mut item) } else { item(random) };
    field("a", a);
    text.push('}');
    text
}

#[test]
fn some_rectangles_have_holes() {
    let mut random = Rng::with_seed(1);
    let all: Vec<String> = (0..100).map(|_| rings(&mut random)).collect();
    let with_holes = all.iter().filter(|rings| rings.contains("]], [[")).count();
    assert!((10..60).contains(&with_holes), "{with_holes} of 100: {all:?}");
}
