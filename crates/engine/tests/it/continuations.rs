//! The queries with which a saved continuation token may be used: the same order, or exactly the same query; no others.

use document::EffectiveRange;
use engine::{Error, Precondition, QueryPage, QueryRequest, Scope};

use crate::world::{World, key, parse};

/// Policies under which an order comes from an index, from a composite one, or is made in memory.
const POLICIES: [&str; 3] = [
    "{}",
    r#"{"compositeIndexes":[[{"path":"/g"},{"path":"/n","order":"descending"}]]}"#,
    r#"{"excludedPaths":[{"path":"/*"}]}"#,
];

const ITEMS: usize = 24;

/// Items whose `n` is unique and whose `g` is not; every third expires after 100 seconds.
fn world(policy: &str) -> World {
    let world = World::of_partitions(3);
    world.container(&format!(r#","defaultTtl":-1,"indexingPolicy":{policy}"#));
    for n in 0..ITEMS {
        let ttl = if n % 3 == 0 { r#","ttl":100"# } else { "" };
        let (shuffled, group) = ((n * 7) % ITEMS, n % 4);
        let text = format!(r#""id":"{n:02}","n":{shuffled},"g":{group},"tags":[3,1,2]{ttl}"#);
        world.create(["x", "y", "z", "w"][n % 4], &text).expect("created");
    }
    world
}

fn ask(world: &World, scope: &Scope, query: &str, token: Option<String>) -> Result<QueryPage, Error> {
    let query = parse(query);
    let request =
        QueryRequest { scope: scope.clone(), continuation: token, ..QueryRequest::new(Some(&query), 5) };
    world.engine.query(&world.current(), &request)
}

fn texts(page: &QueryPage) -> Vec<String> {
    page.rows.iter().map(|row| String::from_utf8(row.clone()).expect("JSON is text")).collect()
}

/// Returns all rows, each page requested by the next of several forms of the query.
fn in_turn(world: &World, forms: &[String]) -> Vec<String> {
    let (mut rows, mut token) = (Vec::new(), None);
    for form in forms.iter().cycle() {
        let page =
            ask(world, &Scope::default(), form, token).unwrap_or_else(|error| panic!("{form}: {error}"));
        rows.extend(texts(&page));
        token = page.continuation;
        if token.is_none() {
            return rows;
        }
    }
    rows
}

fn is_refused(answer: &Result<QueryPage, Error>) -> bool {
    matches!(answer, Err(Error::InvalidContinuation { .. }))
}

#[test]
fn an_order_goes_on_whatever_filter_and_layout_the_next_page_has() {
    for policy in POLICIES {
        let world = world(policy);
        for (from, order) in [
            ("c", "c.n"),
            ("c", "c.n DESC"),
            ("c", "c.g"),
            ("c", "c.g, c.n DESC"),
            ("c", "c.g DESC, c.n"),
            ("c", "c.missing"),
            ("c JOIN t IN c.tags", "c.g"),
            ("c JOIN t IN c.tags", "t DESC"),
        ] {
            let row = if from == "c" { "[c.g, c.n]" } else { "[c.g, c.n, t]" };
            let plain = format!("SELECT VALUE {row} FROM {from} ORDER BY {order}");
            let forms = [
                plain.clone(),
                format!("SELECT VALUE {row} FROM {from} WHERE (true) ORDER BY {order}"),
                format!(
                    "select value {row}\nfrom {from} where ((c.n >= 0)) -- all of them\norder by {order}"
                ),
                format!("SELECT VALUE {row} FROM {from} WHERE c.g < 1000 ORDER BY {order}"),
            ];
            assert_eq!(in_turn(&world, &forms), world.rows(&plain, 1000), "{plain} under {policy}");
        }
    }
}

/// A client that merges ranges sends this: a filter after the value that it has reached, with the token of the page before.
#[test]
fn a_filter_behind_the_position_loses_and_repeats_nothing() {
    for policy in POLICIES {
        let world = world(policy);
        let whole = world.rows("SELECT VALUE c.n FROM c ORDER BY c.n", 1000);
        let first = ask(&world, &Scope::default(), "SELECT VALUE c.n FROM c WHERE true ORDER BY c.n", None);
        let first = first.expect("a page");
        assert_eq!(texts(&first), whole[..5]);
        for (filter, rest) in [("c.n >= 2", &whole[5..]), ("c.n > 4", &whole[5..]), ("c.n >= 9", &whole[9..])]
        {
            let mut rows = Vec::new();
            let mut token = first.continuation.clone();
            while token.is_some() {
                let text = format!("SELECT VALUE c.n FROM c WHERE ({filter}) ORDER BY c.n");
                let page = ask(&world, &Scope::default(), &text, token).expect("a page");
                rows.extend(texts(&page));
                token = page.continuation;
            }
            assert_eq!(rows, rest, "{filter} under {policy}");
        }
    }
}

/// A position among the rows of one item counts all of them: another filter must not move it.
#[test]
fn rows_of_one_item_are_counted_whatever_the_filter_leaves_of_them() {
    for policy in POLICIES {
        let world = World::new();
        world.container(&format!(r#","indexingPolicy":{policy}"#));
        world.create("x", r#""id":"1","n":1,"tags":[10,11,12,13,14,15,16,17]"#).expect("created");
        let text =
            |filter: &str| format!("SELECT VALUE t FROM c JOIN t IN c.tags WHERE {filter} ORDER BY c.n");
        let even = ask(&world, &Scope::default(), &text("t % 2 = 0 AND t < 16"), None).expect("a page");
        assert_eq!((texts(&even).join(" "), even.continuation.is_some()), ("10 12 14".to_owned(), false));
        let five = ask(&world, &Scope::default(), &text("t != 11"), None).expect("a page");
        assert_eq!(texts(&five).join(" "), "10 12 13 14 15");
        let rest = ask(&world, &Scope::default(), &text("true"), five.continuation).expect("a page");
        assert_eq!(texts(&rest).join(" "), "16 17", "{policy}");
    }
}

/// T14, T16: what expires between two pages is not sent, with the filter of the first page or another.
#[test]
fn t14_t16_a_resumed_order_shows_nothing_that_has_expired() {
    for policy in POLICIES {
        let world = world(policy);
        let first =
            ask(&world, &Scope::default(), "SELECT VALUE c.n FROM c ORDER BY c.n", None).expect("a page");
        world.pass(100);
        let living = world.rows("SELECT VALUE c.n FROM c ORDER BY c.n", 1000);
        assert_eq!(living.len(), ITEMS - ITEMS / 3);
        let expected: Vec<_> =
            living.into_iter().filter(|n| n.parse::<usize>().is_ok_and(|n| n >= 5)).collect();
        for purged in [false, true] {
            let mut rows = Vec::new();
            let mut token = first.continuation.clone();
            while token.is_some() {
                let text = "SELECT VALUE c.n FROM c WHERE c.n > 4 ORDER BY c.n";
                let page = ask(&world, &Scope::default(), text, token).expect("a page");
                rows.extend(texts(&page));
                token = page.continuation;
            }
            assert_eq!(rows, expected, "purged: {purged}, under {policy}");
            world.drain();
        }
    }
}

#[test]
fn a_token_of_another_order_or_query_is_refused() {
    let world = world("{}");
    let all = Scope::default();
    for (given, asked) in [
        ("SELECT * FROM c ORDER BY c.n", "SELECT * FROM c ORDER BY c.n DESC"),
        ("SELECT * FROM c ORDER BY c.n", "SELECT * FROM c ORDER BY c.g"),
        ("SELECT * FROM c ORDER BY c.n", "SELECT * FROM c"),
        ("SELECT * FROM c ORDER BY c.n", "SELECT TOP 20 * FROM c ORDER BY c.n"),
        ("SELECT * FROM c ORDER BY c.n", "SELECT t FROM c JOIN t IN c.tags ORDER BY c.n"),
        ("SELECT * FROM c", "SELECT * FROM c ORDER BY c.n"),
        ("SELECT * FROM c", "SELECT * FROM c WHERE c.n >= 0"),
        ("SELECT * FROM c WHERE c.n > 1", "SELECT * FROM c WHERE c.n > 2"),
        ("SELECT TOP 20 * FROM c ORDER BY c.n", "SELECT TOP 20 * FROM c WHERE c.n > 2 ORDER BY c.n"),
        (
            "SELECT * FROM c ORDER BY c.n OFFSET 1 LIMIT 20",
            "SELECT * FROM c WHERE true ORDER BY c.n OFFSET 1 LIMIT 20",
        ),
        ("SELECT DISTINCT c.n FROM c ORDER BY c.n", "SELECT DISTINCT c.n FROM c WHERE true ORDER BY c.n"),
        ("SELECT DISTINCT c.n FROM c", "SELECT DISTINCT c.n FROM c WHERE true"),
        (
            "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
            "SELECT c.n, COUNT(1) AS k FROM c WHERE true GROUP BY c.n",
        ),
    ] {
        let page = ask(&world, &all, given, None).expect("a page");
        let token = page.continuation.expect("more than a page");
        assert!(is_refused(&ask(&world, &all, asked, Some(token.clone()))), "{given} then {asked}");
        // The same query in another layout goes on.
        let other =
            given.replace(' ', "\n  ").replace("SELECT", "select").replace("FROM", "-- the rest\nfrom");
        assert!(ask(&world, &all, &other, Some(token)).is_ok(), "{other}");
    }
}

#[test]
fn a_token_is_of_one_container_and_one_part_of_it() {
    let world = world("{}");
    let partitions = world.current().partitions.clone();
    let range = |at: usize| Scope { key: None, range: Some(partitions[at].range.clone()) };
    let scopes = [
        Scope::default(),
        range(0),
        range(1),
        Scope { key: Some(key("x")), range: None },
        Scope { key: Some(key("y")), range: None },
    ];
    for query in ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.n", "SELECT DISTINCT VALUE c.n FROM c"] {
        let mut given = 0;
        for (at, scope) in scopes.iter().enumerate() {
            let Some(token) = ask(&world, scope, query, None).expect("a page").continuation else { continue };
            given += 1;
            for (other_at, other) in scopes.iter().enumerate() {
                let answer = ask(&world, other, query, Some(token.clone()));
                assert_eq!(is_refused(&answer), at != other_at, "{query} from {scope:?} in {other:?}");
            }
        }
        assert!(given >= 4, "{given} tokens of {query}");
        // The whole range is the same as the whole container.
        let whole = Scope { key: None, range: Some(EffectiveRange::all()) };
        let token = ask(&world, &Scope::default(), query, None).expect("a page").continuation;
        assert!(ask(&world, &whole, query, token.clone()).is_ok(), "{query}");
    }
    // A container that is created again under its name is another one.
    let query = "SELECT * FROM c ORDER BY c.n";
    let token = ask(&world, &Scope::default(), query, None).expect("a page").continuation;
    world.engine.delete_container(&world.current(), &Precondition::None).expect("deleted");
    world.container("");
    assert!(is_refused(&ask(&world, &Scope::default(), query, token)));
}
