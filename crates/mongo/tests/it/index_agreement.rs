//! Random filters over random documents, with every kind of index and without: reads, updates and deletes find the same
//! documents whether a plan uses an index or scans everything (`{$natural: 1}`).

use std::collections::BTreeSet;
use std::fmt::Write;

use bson::{Document, Value};
use fastrand::Rng;
use tokio::net::TcpStream;

use crate::client::{Client, Server, inner, json};

/// Key, options. The wildcard index excludes fields that the others cannot index.
const INDEXES: &[(&str, &str)] = &[
    (r#"{"g": "2dsphere"}"#, ""),
    (r#"{"g": "2dsphere", "k": 1}"#, ""),
    (r#"{"k": 1, "g": "2dsphere"}"#, ""),
    (r#"{"g": "2dsphere"}"#, r#", "partialFilterExpression": {"k": {"$gte": 2}}"#),
    (r#"{"g": "2dsphere"}"#, r#", "sparse": true"#),
    (r#"{"k": 1}"#, ""),
    (r#"{"k": -1, "s": 1}"#, ""),
    (r#"{"k": 1}"#, r#", "sparse": true"#),
    (r#"{"s": 1}"#, r#", "partialFilterExpression": {"k": {"$gt": 1}}"#),
    (r#"{"s": 1}"#, r#", "collation": {"locale": "en", "strength": 2}"#),
    (r#"{"s": "hashed"}"#, ""),
    (r#"{"l": 1}"#, ""),
    (r#"{"l": -1, "k": 1}"#, ""),
    (r#"{"a.b.x": 1, "a.b.y": 1}"#, ""),
    (r#"{"a.c": 1, "a.b.x": -1}"#, ""),
    (r#"{"a.b.x": 1}"#, ""),
    (r#"{"$**": 1}"#, ""),
    (r#"{"t": "text", "k": 1}"#, ""),
];

fn place(random: &mut Rng) -> (i32, i32) {
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

/// A rectangle or a triangle, now and then with a hole.
fn rings(random: &mut Rng) -> String {
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
    format!("[{}]", ring(&corners))
}

fn geometry(random: &mut Rng) -> String {
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

fn document(id: usize, random: &mut Rng) -> String {
    let mut text = format!(r#"{{"_id": {id}, "n": 0"#);
    let mut field = |name: &str, value: String| write!(text, r#", "{name}": {value}"#).unwrap();
    if random.u8(..8) > 0 {
        field("g", stored_geometry(random));
    }
    if random.u8(..6) > 0 {
        field("k", random.i32(0..5).to_string());
    }
    let word = |random: &mut Rng| format!("\"{}\"", random.choice(["a", "A", "b", "ab", "é"]).unwrap());
    if random.bool() {
        field("s", word(random));
        field("t", word(random));
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

fn geo_condition(random: &mut Rng) -> String {
    match random.u8(..5) {
        0 | 1 => {
            let (x, y) = place(random);
            format!(
                r#"{{"$geoIntersects": {{"$geometry": {{"type": "Point", "coordinates": [{x}, {y}]}}}}}}"#
            )
        }
        2 => format!(r#"{{"$geoIntersects": {{"$geometry": {}}}}}"#, geometry(random)),
        3 => format!(
            r#"{{"$geoWithin": {{"$geometry": {{"type": "Polygon", "coordinates": {}}}}}}}"#,
            rings(random)
        ),
        _ => {
            let (x, y) = place(random);
            format!(r#"{{"$geoWithin": {{"$centerSphere": [[{x}, {y}], 0.0{}]}}}}"#, random.u8(1..20))
        }
    }
}

fn condition(random: &mut Rng) -> String {
    let (one, other) = (random.i32(0..4), random.i32(0..4));
    match random.u8(..13) {
        0..=4 => format!(r#""g": {}"#, geo_condition(random)),
        5 => format!(r#""k": {one}"#),
        6 => format!(r#""k": {{"$gte": {one}}}"#),
        7 => format!(r#""s": "{}""#, random.choice(["a", "A", "b"]).unwrap()),
        8 => format!(r#""l": {{"$gte": {one}, "$lte": {other}}}"#),
        9 => format!(r#""a": {{"$elemMatch": {{"b.x": {one}, "b.y": {other}}}}}"#),
        10 => format!(r#""a.b": {{"$elemMatch": {{"x": {one}, "y": {other}}}}}"#),
        11 => format!(r#""a": {{"$elemMatch": {{"c": {one}, "b": {{"$elemMatch": {{"x": {other}}}}}}}}}"#),
        _ => format!(r#""a.b.x": {one}, "a.b.y": {{"$ne": {other}}}"#),
    }
}

fn filter(random: &mut Rng) -> String {
    match random.u8(..5) {
        0 => format!(r#"{{"$or": [{{{}}}, {{{}}}]}}"#, condition(random), condition(random)),
        1 => format!(r#"{{"$and": [{{{}}}, {{{}}}]}}"#, condition(random), condition(random)),
        _ => format!("{{{}}}", condition(random)),
    }
}

async fn ids(client: &mut Client<TcpStream>, filter: &str, options: &str) -> BTreeSet<i32> {
    let command = format!(
        r#"{{"find": "c", "filter": {filter}, "projection": {{"_id": 1}}, "batchSize": 1000{options}}}"#
    );
    let reply = client.done("db", json(&command)).await;
    let found = inner(&reply, "cursor.firstBatch").as_array().unwrap();
    let id = |row: &Value| match row.as_document().and_then(|row| row.get("_id")) {
        Some(Value::Int32(id)) => *id,
        other => panic!("no _id but {other:?}"),
    };
    let all: Vec<i32> = found.iter().map(id).collect();
    let once: BTreeSet<i32> = all.iter().copied().collect();
    assert_eq!(all.len(), once.len(), "each once: {filter}");
    once
}

const NATURAL: &str = r#", "hint": {"$natural": 1}"#;

/// A collection with documents and some of the indexes.
async fn fill(client: &mut Client<TcpStream>, random: &mut Rng) -> Vec<String> {
    client.on("db", json(r#"{"drop": "c"}"#)).await;
    client.done("db", json(r#"{"create": "c"}"#)).await;
    let mut made = Vec::new();
    for (number, (key, options)) in INDEXES.iter().enumerate() {
        if random.u8(..3) > 0 {
            continue;
        }
        let index = format!(r#"{{"key": {key}, "name": "i{number}"{options}}}"#);
        // Some cannot exist beside each other.
        let reply =
            client.on("db", json(&format!(r#"{{"createIndexes": "c", "indexes": [{index}]}}"#))).await;
        if reply.get("ok") == Some(&Value::Double(1.0)) {
            made.push(index);
        }
    }
    let documents: Vec<String> = (0..60).map(|id| document(id, random)).collect();
    // A document that one of the indexes cannot take is refused and left out.
    let insert = format!(r#"{{"insert": "c", "ordered": false, "documents": [{}]}}"#, documents.join(", "));
    client.done("db", json(&insert)).await;
    made
}

fn number(reply: &Document, name: &str) -> usize {
    match reply.get(name) {
        Some(Value::Int32(number)) => *number as usize,
        other => panic!("no '{name}' but {other:?}"),
    }
}

/// The seed that `BOLIDE_SEED` names, else the same in every run.
fn seeded() -> Rng {
    let seed = std::env::var("BOLIDE_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    println!("seed {seed}");
    Rng::with_seed(seed)
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_find_the_same_with_and_without_indexes() {
    let mut random = seeded();
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut matched = 0;
    for _ in 0..25 {
        let indexes = fill(&mut client, &mut random).await;
        for _ in 0..40 {
            let filter = filter(&mut random);
            let expected = ids(&mut client, &filter, NATURAL).await;
            matched += usize::from(!expected.is_empty());
            assert_eq!(ids(&mut client, &filter, "").await, expected, "{filter} {indexes:#?}");
            if random.u8(..4) == 0 {
                let update = format!(
                    r#"{{"update": "c", "updates": [{{"q": {filter}, "u": {{"$inc": {{"n": 1}}}}, "multi": true}}]}}"#
                );
                let reply = client.done("db", json(&update)).await;
                assert_eq!(number(&reply, "n"), expected.len(), "{filter} {indexes:#?}");
            }
        }
        let filter = filter(&mut random);
        let expected = ids(&mut client, &filter, NATURAL).await;
        let delete = format!(r#"{{"delete": "c", "deletes": [{{"q": {filter}, "limit": 0}}]}}"#);
        let reply = client.done("db", json(&delete)).await;
        assert_eq!(number(&reply, "n"), expected.len(), "{filter} {indexes:#?}");
        assert_eq!(ids(&mut client, &filter, NATURAL).await, BTreeSet::new());
    }
    assert!(matched > 300, "only {matched} of 1000 filters matched anything");
}

#[tokio::test(flavor = "multi_thread")]
async fn near_finds_all_that_lies_within_its_distance() {
    let mut random = seeded();
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut matched = 0;
    for _ in 0..10 {
        client.on("db", json(r#"{"drop": "c"}"#)).await;
        let index = r#"{"createIndexes": "c", "indexes": [{"key": {"g": "2dsphere"}, "name": "g"}]}"#;
        client.done("db", json(index)).await;
        let documents: Vec<String> = (0..60).map(|id| document(id, &mut random)).collect();
        let insert =
            format!(r#"{{"insert": "c", "ordered": false, "documents": [{}]}}"#, documents.join(", "));
        client.done("db", json(&insert)).await;
        for _ in 0..20 {
            let ((x, y), tenths) = (place(&mut random), random.u8(1..20));
            let within =
                format!(r#"{{"g": {{"$geoWithin": {{"$centerSphere": [[{x}, {y}], 0.0{tenths}]}}}}}}"#);
            let metres = format!("0.0{tenths}").parse::<f64>().unwrap() * 6_378_100.0 + 0.001;
            let near = format!(
                r#"{{"g": {{"$near": {{"$geometry": {{"type": "Point", "coordinates": [{x}, {y}]}}, "$maxDistance": {metres}}}}}}}"#
            );
            let within = ids(&mut client, &within, NATURAL).await;
            let near = ids(&mut client, &near, "").await;
            assert!(within.is_subset(&near), "{within:?} not in {near:?} of [{x}, {y}] {metres}");
            matched += usize::from(!within.is_empty());
        }
    }
    assert!(matched > 40, "only {matched} of 200 circles held anything");
}
