//! Random queries over random documents, with every kind of index and without: reads, updates and deletes find the same
//! documents whether a plan uses an index or scans everything (`{$natural: 1}`), under collations too, in the same order
//! where one is asked for; and searches for words find what the words say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use bson::{Document, Value, to_extended_json};
use fastrand::Rng;
use tokio::net::TcpStream;

use crate::client::{Client, Server, inner, json, text, whole};
use crate::random_documents::{document, geometry, place, rings};

/// Key, options.
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
    (r#"{"s": -1}"#, r#", "collation": {"locale": "en", "strength": 1}, "sparse": true"#),
    (r#"{"k": 1, "s": -1}"#, r#", "collation": {"locale": "en", "strength": 2}"#),
    (r#"{"s": "hashed"}"#, ""),
    (r#"{"s": "hashed"}"#, r#", "collation": {"locale": "en", "strength": 2}"#),
    (r#"{"l": 1}"#, ""),
    (r#"{"l": -1, "k": 1}"#, ""),
    (r#"{"a.b.x": 1, "a.b.y": 1}"#, ""),
    (r#"{"a.c": 1, "a.b.x": -1}"#, ""),
    (r#"{"a.b.x": 1}"#, ""),
    (r#"{"$**": 1}"#, ""),
    (
        r#"{"$**": 1}"#,
        r#", "collation": {"locale": "en", "strength": 2}, "wildcardProjection": {"s": 1, "k": 1}"#,
    ),
    (r#"{"t": "text", "k": 1}"#, r#", "default_language": "none""#),
    (r#"{"k": 1, "t": "text"}"#, r#", "default_language": "none""#),
];

/// What the comparison of strings disregards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folding {
    Nothing,
    Case,
    CaseAndDiacritics,
}

impl Folding {
    fn of(self, text: &str) -> String {
        match self {
            Folding::Nothing => text.to_owned(),
            Folding::Case => text.to_lowercase(),
            Folding::CaseAndDiacritics => text.to_lowercase().replace('é', "e").replace('ü', "u"),
        }
    }
}

const COLLATIONS: [(&str, Folding); 3] = [
    (r#"{"locale": "en", "strength": 2}"#, Folding::Case),
    (r#"{"locale": "en", "strength": 1}"#, Folding::CaseAndDiacritics),
    (r#"{"locale": "simple"}"#, Folding::Nothing),
];

const SORTS: [&str; 12] = [
    r#"{"_id": -1}"#,
    r#"{"k": 1}"#,
    r#"{"k": -1}"#,
    r#"{"k": -1, "s": 1}"#,
    r#"{"k": 1, "s": -1}"#,
    r#"{"s": 1}"#,
    r#"{"s": -1, "_id": 1}"#,
    r#"{"l": 1}"#,
    r#"{"l": -1, "k": 1}"#,
    r#"{"l": 1, "k": -1}"#,
    r#"{"a.b.x": 1, "a.b.y": 1}"#,
    r#"{"a.c": -1, "a.b.x": 1}"#,
];

/// What is searched for, and whether it is found in a text that has been folded.
type Search = (&'static str, fn(&str) -> bool);

const SEARCHES: [Search; 5] = [
    ("red", |text| has(text, "red")),
    ("BLUE grun", |text| has(text, "blue") || has(text, "grun")),
    (r#"\"red blue\""#, |text| text.contains("red blue")),
    ("red -blue", |text| has(text, "red") && !has(text, "blue")),
    ("nothing", |_| false),
];

fn has(text: &str, word: &str) -> bool {
    text.split(' ').any(|each| each == word)
}

/// A filter, and how it compares strings.
struct Query {
    /// The filter without its search.
    rest: String,
    search: Option<Search>,
    collation: Option<(&'static str, Folding)>,
}

impl Query {
    fn filter(&self) -> String {
        match self.search {
            None => self.rest.clone(),
            Some((words, _)) => {
                format!(r#"{{"$text": {{"$search": "{words}"}}, "$and": [{}]}}"#, self.rest)
            }
        }
    }

    /// Returns the option of a command that names the collation.
    fn collation(&self) -> String {
        self.collation.map_or_else(String::new, |(collation, _)| format!(r#", "collation": {collation}"#))
    }

    fn folding(&self) -> Folding {
        self.collation.map_or(Folding::Nothing, |(_, folding)| folding)
    }
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
    let mut word = || random.choice(["a", "A", "b", "é", "E"]).unwrap();
    let words = (word(), word());
    match random.u8(..20) {
        0..=3 => format!(r#""g": {}"#, geo_condition(random)),
        4 => format!(r#""k": {{"$gte": 2}}, "g": {}"#, geo_condition(random)),
        5 => format!(r#""k": {one}"#),
        6 => format!(r#""k": {{"$gte": {one}}}"#),
        7 => format!(r#""s": "{}""#, words.0),
        8 => format!(r#""s": {{"$gt": "{}"}}"#, words.0),
        9 => format!(r#""s": {{"$gte": "{}", "$lt": "{}"}}"#, words.0, words.1),
        10 => format!(r#""s": {{"$in": ["{}", "{}", null]}}"#, words.0, words.1),
        11 => format!(r#""s": {{"$regex": "^{}"}}"#, words.0),
        12 => format!(r#""s": {{"$ne": "{}"}}"#, words.0),
        13 => format!(r#""s": "{}", "k": {{"$gt": {}}}"#, words.0, one.max(1)),
        14 => format!(r#""k": {one}, "s": {{"$lte": "{}"}}"#, words.0),
        15 => format!(r#""l": {{"$gte": {one}, "$lte": {other}}}"#),
        16 => format!(r#""a": {{"$elemMatch": {{"b.x": {one}, "b.y": {other}}}}}"#),
        17 => format!(r#""a.b": {{"$elemMatch": {{"x": {one}, "y": {other}}}}}"#),
        18 => format!(r#""a": {{"$elemMatch": {{"c": {one}, "b": {{"$elemMatch": {{"x": {other}}}}}}}}}"#),
        _ => format!(r#""a.b.x": {one}, "a.b.y": {{"$ne": {other}}}"#),
    }
}

fn filter(random: &mut Rng) -> String {
    match random.u8(..6) {
        0 => "{}".to_owned(),
        1 => format!(r#"{{"$or": [{{{}}}, {{{}}}]}}"#, condition(random), condition(random)),
        2 => format!(r#"{{"$and": [{{{}}}, {{{}}}]}}"#, condition(random), condition(random)),
        _ => format!("{{{}}}", condition(random)),
    }
}

/// A query that the indexes permit: a search needs a text index, and one that begins with `k` needs its value.
fn query(random: &mut Rng, made: &Made) -> Query {
    let collation = if random.bool() { random.choice(COLLATIONS) } else { None };
    let rest = filter(random);
    // Text indexes compare without a collation.
    let text = made.text.filter(|_| random.u8(..4) == 0);
    let search = text.and_then(|_| random.choice(SEARCHES));
    match text {
        Some(Text::BehindK) => {
            let rest = format!(r#"{{"k": {}, "$and": [{rest}]}}"#, random.i32(0..4));
            Query { rest, search, collation: None }
        }
        Some(Text::First) => Query { rest, search, collation: None },
        None => Query { rest, search, collation },
    }
}

const NATURAL: &str = r#", "hint": {"$natural": 1}"#;

/// Returns the rows that a find shows.
async fn rows(client: &mut Client<TcpStream>, filter: &str, options: &str) -> Vec<Document> {
    let command = format!(r#"{{"find": "c", "filter": {filter}, "batchSize": 1000{options}}}"#);
    let reply = client.done("db", json(&command)).await;
    let found = inner(&reply, "cursor.firstBatch").as_array().unwrap();
    let rows: Vec<_> = found.iter().map(|row| row.as_document().unwrap().clone()).collect();
    let once: BTreeSet<i64> = rows.iter().map(id).collect();
    assert_eq!(rows.len(), once.len(), "each once: {command}");
    rows
}

fn id(row: &Document) -> i64 {
    whole(inner(row, "_id"))
}

async fn ids(client: &mut Client<TcpStream>, filter: &str, options: &str) -> BTreeSet<i64> {
    rows(client, filter, options).await.iter().map(id).collect()
}

/// Returns what a query must find: what a scan of everything finds, and of that what the search is found in.
async fn expected(client: &mut Client<TcpStream>, query: &Query) -> BTreeSet<i64> {
    let natural = format!("{NATURAL}{}", query.collation());
    let rows = rows(client, &query.rest, &natural).await;
    let is_found = |row: &&Document| {
        let said = row.get("t").and_then(Value::as_str).unwrap_or_default();
        query.search.is_none_or(|(_, is_found)| is_found(&Folding::CaseAndDiacritics.of(said)))
    };
    rows.iter().filter(is_found).map(id).collect()
}

/// Compares the order of what a query finds, a part of it, with that of a scan. Of documents that are equal in the order any
/// may come first.
async fn compare_order(client: &mut Client<TcpStream>, random: &mut Rng, query: &Query, all: &BTreeSet<i64>) {
    let sort = random.choice(SORTS).unwrap();
    let mut options =
        format!(r#", "sort": {sort}, "projection": {{"key": {{"$meta": "sortKey"}}}}{}"#, query.collation());
    let skip = random.usize(..4);
    let limit = random.choice([0, 1, 5, 20]).unwrap();
    if random.bool() {
        write!(options, r#", "skip": {skip}, "limit": {limit}"#).unwrap();
    }
    let keys = |rows: &[Document]| -> Vec<String> {
        rows.iter().map(|row| query.folding().of(&to_extended_json(inner(row, "key").view(), true))).collect()
    };
    let found = rows(client, &query.filter(), &options).await;
    assert!(found.iter().map(id).all(|id| all.contains(&id)), "{} {options}", query.filter());
    if query.search.is_none() {
        let expected = rows(client, &query.rest, &format!("{options}{NATURAL}")).await;
        assert_eq!(keys(&found), keys(&expected), "{} {options}", query.rest);
    } else {
        // All of them in order tell which part it is.
        let ids: Vec<String> = all.iter().map(ToString::to_string).collect();
        let those = format!(r#"{{"_id": {{"$in": [{}]}}}}"#, ids.join(", "));
        let expected = rows(client, &those, &format!("{options}{NATURAL}")).await;
        assert_eq!(keys(&found), keys(&expected), "{} {options}", query.filter());
    }
}

/// What a search needs.
#[derive(Debug, Clone, Copy)]
enum Text {
    First,
    /// The value of `k`.
    BehindK,
}

/// The indexes of a collection.
#[derive(Debug, Default)]
struct Made {
    indexes: Vec<String>,
    text: Option<Text>,
}

/// A collection with documents and some of the indexes.
async fn fill(client: &mut Client<TcpStream>, random: &mut Rng) -> Made {
    client.on("db", json(r#"{"drop": "c"}"#)).await;
    client.done("db", json(r#"{"create": "c"}"#)).await;
    let mut made = Made::default();
    let mut order: Vec<usize> = (0..INDEXES.len()).collect();
    random.shuffle(&mut order);
    for number in order {
        if random.u8(..3) > 0 {
            continue;
        }
        let (key, options) = INDEXES[number];
        let index = format!(r#"{{"key": {key}, "name": "{number}"{options}}}"#);
        // Some cannot exist beside each other.
        let reply =
            client.on("db", json(&format!(r#"{{"createIndexes": "c", "indexes": [{index}]}}"#))).await;
        if reply.get("ok") != Some(&Value::Double(1.0)) {
            continue;
        }
        if key.contains(r#""text""#) {
            made.text = Some(if key.starts_with(r#"{"k""#) { Text::BehindK } else { Text::First });
        }
        made.indexes.push(index);
    }
    let documents: Vec<String> = (0..60).map(|id| document(id, random)).collect();
    // A document that one of the indexes cannot take is refused and left out.
    let insert = format!(r#"{{"insert": "c", "ordered": false, "documents": [{}]}}"#, documents.join(", "));
    client.done("db", json(&insert)).await;
    made
}

/// Adds how often each index was used.
async fn add_uses(client: &mut Client<TcpStream>, uses: &mut BTreeMap<String, i64>) {
    let command = r#"{"aggregate": "c", "pipeline": [{"$indexStats": {}}], "cursor": {}}"#;
    let reply = client.done("db", json(command)).await;
    for row in inner(&reply, "cursor.firstBatch").as_array().unwrap() {
        let row = row.as_document().unwrap();
        *uses.entry(text(row, "name").to_owned()).or_default() += whole(inner(row, "accesses.ops"));
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
    let (mut matched, mut searched, mut uses) = (0, 0, BTreeMap::new());
    for _ in 0..30 {
        let made = fill(&mut client, &mut random).await;
        println!("{:#?}", made.indexes);
        for _ in 0..40 {
            let query = query(&mut random, &made);
            let (filter, collation) = (query.filter(), query.collation());
            let all = expected(&mut client, &query).await;
            matched += usize::from(!all.is_empty());
            searched += usize::from(!all.is_empty() && query.search.is_some());
            assert_eq!(ids(&mut client, &filter, &collation).await, all, "{filter}{collation} {made:#?}");
            compare_order(&mut client, &mut random, &query, &all).await;
            if random.u8(..4) == 0 {
                let update = format!(
                    r#"{{"update": "c", "updates": [{{"q": {filter}, "u": {{"$inc": {{"n": 1}}}}, "multi": true{collation}}}]}}"#
                );
                let reply = client.done("db", json(&update)).await;
                assert_eq!(whole(inner(&reply, "n")), all.len() as i64, "{filter}{collation} {made:#?}");
            }
        }
        let query = query(&mut random, &made);
        let (filter, collation) = (query.filter(), query.collation());
        let all = expected(&mut client, &query).await;
        let delete = format!(r#"{{"delete": "c", "deletes": [{{"q": {filter}, "limit": 0{collation}}}]}}"#);
        let reply = client.done("db", json(&delete)).await;
        assert_eq!(whole(inner(&reply, "n")), all.len() as i64, "{filter}{collation} {made:#?}");
        assert_eq!(expected(&mut client, &query).await, BTreeSet::new());
        add_uses(&mut client, &mut uses).await;
    }
    assert!(matched > 400, "only {matched} of 1200 filters matched anything");
    assert!(searched > 20, "only {searched} searches found anything");
    for (number, index) in INDEXES.iter().enumerate() {
        let count = uses.get(&number.to_string()).copied().unwrap_or_default();
        assert!(count > 0, "the index {index:?} was never used");
    }
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
