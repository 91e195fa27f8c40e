//! The entries and items that a query reads: answers from the index alone, orders from the index, and both after a mass expiry.

use engine::{Error, QueryRequest, ResumeFilter, Scope};

use crate::world::{World, ids, key, parse, value};

/// Many items, enough that a probe calls them many; every second one expires after a while.
const ITEMS: usize = 600;
/// Longer than a restart takes from the clock.
const WHILE: u64 = 1000;

fn crowd(policy: &str) -> World {
    let world = World::new();
    world.container(&format!(r#","defaultTtl":-1,"indexingPolicy":{policy}"#));
    for n in 0..ITEMS {
        let ttl = if n % 2 == 0 { format!(r#","ttl":{WHILE}"#) } else { String::new() };
        let (shuffled, group) = ((n * 7) % ITEMS, n % 3);
        let text = format!(
            r#""id":"{n:03}","n":{n},"word":"w{shuffled:03}","g":{group},"tags":["t{group}","all"]{ttl}"#
        );
        world.create(["a", "b"][n % 2], &text).expect("created");
    }
    world
}

fn rows(world: &World, query: &str) -> Vec<String> {
    world.rows(query, 100)
}

/// T14, T16: right after half of all items expired at once, with the purge paused and after it.
#[test]
fn t14_t16_counts_groups_and_orders_after_a_mass_expiry() {
    let world = crowd("{}");
    for (query, before, after) in [
        ("SELECT VALUE COUNT(1) FROM c", "600", "300"),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.n >= 300", "300", "150"),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.g = 1", "200", "100"),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.g = 1 AND c.n >= 300", "100", "50"),
        ("SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, 'all')", "600", "300"),
        ("SELECT VALUE COUNT(1) FROM c WHERE NOT IS_DEFINED(c.ttl)", "300", "300"),
        ("SELECT VALUE MAX(c.word) FROM c", "\"w599\"", "\"w599\""),
        ("SELECT VALUE MIN(c.n) FROM c", "0", "1"),
        ("SELECT DISTINCT VALUE c.g FROM c", "0 1 2", "0 1 2"),
        (
            "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g",
            r#"{"g":0,"n":200} {"g":1,"n":200} {"g":2,"n":200}"#,
            r#"{"g":0,"n":100} {"g":1,"n":100} {"g":2,"n":100}"#,
        ),
        ("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n", "0 1 2", "1 3 5"),
        ("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", "599 598 597", "599 597 595"),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 2", "10 11", "21 23"),
    ] {
        assert_eq!(rows(&world, query).join(" "), before, "{query}");
        let (metrics, found) = {
            let twin = crowd("{}");
            twin.pass(WHILE);
            let found = rows(&twin, query).join(" ");
            let unpurged = twin.page(Some(query), 100, None);
            assert_eq!(twin.drain(), 300);
            let purged = twin.page(Some(query), 100, None);
            assert_eq!(
                (&unpurged.rows, unpurged.metrics, unpurged.charge, &unpurged.continuation),
                (&purged.rows, purged.metrics, purged.charge, &purged.continuation),
                "{query}"
            );
            (purged.metrics, found)
        };
        assert_eq!(found, after, "{query}");
        if query.contains("COUNT(1) FROM c") && !query.contains("c.g,") {
            assert_eq!(metrics.loaded_items, 0, "{query} is answered from the index alone");
        }
    }
}

#[test]
fn the_index_spares_loading() {
    let world = crowd("{}");
    for (query, loaded, output) in [
        ("SELECT * FROM c WHERE c.n = 77", 1, 1),
        ("SELECT * FROM c WHERE c.n >= 77 AND c.n < 80 AND c.g = 2", 3, 1),
        ("SELECT * FROM c WHERE c.id = '077'", 1, 1),
        ("SELECT * FROM c WHERE c.id = '077' AND c.pk = 'b'", 1, 1),
        ("SELECT * FROM c WHERE STARTSWITH(c.word, 'w00')", 10, 10),
        ("SELECT VALUE c.n FROM c WHERE c.n > 590", 0, 9),
        ("SELECT VALUE c.word FROM c ORDER BY c.word DESC", 0, 100),
        ("SELECT * FROM c ORDER BY c.word", 100, 100),
        ("SELECT * FROM c WHERE c.word > 'w595' ORDER BY c.word", 4, 4),
        ("SELECT * FROM c WHERE c.missing = 1", 0, 0),
        ("SELECT VALUE SUM(c.n) FROM c", 0, 1),
        ("SELECT VALUE MAX(c._ts) FROM c", 0, 1),
        ("SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.word, '9')", 0, 1),
        ("SELECT VALUE COUNT(1) FROM c WHERE c._ts > 5", 0, 1),
        ("SELECT VALUE x FROM c JOIN x IN c.tags WHERE x = 't1' AND c.n < 5", 5, 2),
    ] {
        let page = world.page(Some(query), 100, None);
        let metrics = page.metrics;
        assert_eq!((metrics.loaded_items, metrics.output_items), (loaded, output), "{query}");
    }
}

#[test]
fn a_composite_index_serves_an_order_and_what_comes_before_it() {
    let policy = r#"{"compositeIndexes":[[{"path":"/g"},{"path":"/n","order":"descending"}]]}"#;
    let world = crowd(policy);
    for (query, first, used) in [
        ("SELECT VALUE c.n FROM c WHERE c.g = 1 ORDER BY c.n DESC", "598 595 592", true),
        ("SELECT VALUE c.n FROM c ORDER BY c.g, c.n DESC", "597 594 591", true),
        ("SELECT VALUE c.n FROM c ORDER BY c.g DESC, c.n", "2 5 8", true),
        ("SELECT VALUE c.n FROM c ORDER BY c.g, c.n", "0 3 6", false),
    ] {
        let page = world.page(Some(query), 3, None);
        let rows: Vec<_> = page.rows.iter().map(|row| String::from_utf8_lossy(row)).collect();
        assert_eq!(rows.join(" "), first, "{query}");
        let composite = vec!["/g ASC".to_owned(), "/n DESC".to_owned()];
        assert_eq!(page.index.utilized_composite.contains(&composite), used, "{query}");
        assert_eq!(page.index.potential_composite.is_empty(), used, "{query}");
        assert!(page.metrics.loaded_items <= 4 || !used, "{query}: {:?}", page.metrics);
    }
}

#[test]
fn t14_a_composite_index_counts_ranges_within_a_partition_key_without_reading_items() {
    for order in ["ascending", "descending"] {
        let world = crowd(&format!(
            r#"{{"compositeIndexes":[[{{"path":"/pk"}},{{"path":"/n","order":"{order}"}},{{"path":"/word"}}]]}}"#
        ));
        let composite = |page: &engine::QueryPage| page.index.utilized_composite.len();
        let scope = Scope { key: Some(key("a")), range: None };
        let counted = |condition: &str, expected: usize| {
            let text = format!("SELECT VALUE COUNT(1) FROM c WHERE {condition}");
            let page = world.page_in(&scope, Some(&text), 10, None);
            assert_eq!(page.rows, [expected.to_string().into_bytes()], "{order}: {condition}");
            assert_eq!((page.metrics.loaded_items, composite(&page)), (0, 1), "{order}: {condition}");
        };
        // The items of the key have even numbers and expire; those of the other key are never counted.
        for (condition, before) in [
            ("c.n < 400", 200),
            ("c.n <= 400", 201),
            ("c.n > 400", 99),
            ("c.n >= 400", 100),
            ("c.n > 100 AND c.n < 200", 49),
            ("c.n < 100 OR c.n >= 500", 100),
            ("c.n = 7", 0),
            ("c.n = 8", 1),
            ("c.pk = 'a' AND c.n < 400", 200),
        ] {
            counted(condition, before);
        }
        counted("c.n = 8 AND c.word >= 'w05' AND c.word < 'w06'", 1);
        world.pass(WHILE - 1);
        counted("c.n < 400", 200);
        world.pass(1);
        counted("c.n < 400", 0);
        world.create("a", r#""id":"late","n":3.5"#).expect("created");
        counted("c.n < 400", 1);
        world.drain();
        counted("c.n < 400", 1);
    }
}

/// What the index does not tell apart is read: long texts, arrays and objects. What has no value in a path is in no range.
#[test]
fn a_composite_index_reads_the_items_that_it_does_not_tell_apart() {
    for order in ["ascending", "descending"] {
        let world = World::new();
        world.container(&format!(
            r#","indexingPolicy":{{"compositeIndexes":[[{{"path":"/k","order":"{order}"}},{{"path":"/v","order":"{order}"}}]]}}"#
        ));
        let text = |end: &str| format!(r#""{}{end}""#, "z".repeat(200));
        let values = [
            &*text("a"),
            &*text("b"),
            &*text("c"),
            r#""zz""#,
            "[1]",
            "{}",
            "null",
            "true",
            "5",
            "5.0",
            "-1e300",
        ];
        for (n, value) in values.iter().enumerate() {
            world.create("k", &format!(r#""id":"{n}","k":1,"v":{value}"#)).expect("created");
        }
        world.create("k", r#""id":"none","k":1"#).expect("created");
        world.create("k", r#""id":"other","k":2,"v":5"#).expect("created");
        for (condition, expected, loaded) in [
            (format!("c.v > {}", text("a")), "2", 3),
            (format!("c.v = {}", text("b")), "1", 3),
            (format!("c.v >= {}", text("")), "3", 3),
            ("c.v >= 'z'".to_owned(), "4", 3),
            ("STARTSWITH(c.v, 'zz')".to_owned(), "4", 3),
            ("c.v > 'zz'".to_owned(), "3", 3),
            ("c.v < 'zz'".to_owned(), "0", 0),
            ("c.v = 5".to_owned(), "2", 0),
            ("c.v < 6".to_owned(), "3", 0),
            ("c.v >= -1e300 AND c.v < 5".to_owned(), "1", 0),
            ("c.v > false".to_owned(), "1", 0),
            ("c.v = null".to_owned(), "1", 0),
        ] {
            let query = format!("SELECT VALUE COUNT(1) FROM c WHERE c.k = 1 AND {condition}");
            let page = world.page(Some(&query), 10, None);
            assert_eq!(page.rows, [expected.as_bytes()], "{order}: {condition}");
            assert_eq!(page.metrics.loaded_items, loaded, "{order}: {condition}");
            assert_eq!(page.index.utilized_composite.len(), 1, "{order}: {condition}");
        }
    }
}

/// Items of a range that a composite index lists are read alone, page after page, although each of the two parts has many.
#[test]
fn a_composite_index_lists_few_items_of_two_large_parts() {
    let world = crowd(r#"{"compositeIndexes":[[{"path":"/g"},{"path":"/n"}]]}"#);
    let query = "SELECT VALUE c.n FROM c WHERE c.g = 1 AND c.n >= 100 AND c.n < 200";
    let page = world.page(Some(query), 100, None);
    let expected: Vec<String> = (100..200).filter(|n| n % 3 == 1).map(|n| n.to_string()).collect();
    assert_eq!((page.metrics.loaded_items, page.index.utilized_composite.len()), (expected.len() as u64, 1));
    for size in [1, 7, 100] {
        assert_eq!(world.rows(query, size), expected, "by {size}");
    }
    // A smaller part than the index lists is preferred.
    let page = world.page(Some("SELECT * FROM c WHERE c.g = 1 AND c.n >= 100 AND c.id = '100'"), 100, None);
    assert_eq!((page.metrics.loaded_items, page.index.utilized_composite.len()), (1, 0));
    let sum = world.page(Some("SELECT VALUE SUM(c.n) FROM c WHERE c.g = 1 AND c.n < 10"), 10, None);
    assert_eq!((sum.rows.concat(), sum.metrics.loaded_items), (b"12".to_vec(), 3));
}

/// A composite index does not distinguish arrays, objects and long texts: after a page that ends among them, the next one
/// reads all of them again.
#[test]
fn pages_of_a_composite_order_end_among_arrays_objects_and_long_texts() {
    let world = World::new();
    world.container(r#","indexingPolicy":{"compositeIndexes":[[{"path":"/v"},{"path":"/n"}]]}"#);
    let text = |end: &str| format!(r#""{}{end}""#, "z".repeat(200));
    let (arrays, objects) = (["[2]", "[1]", "[]"], [r#"{"k":2}"#, r#"{"k":1}"#, "{}"]);
    let texts = [text("c"), text("b"), text("a")];
    let values = texts.iter().map(String::as_str).chain(arrays).chain(objects);
    for (n, value) in values.enumerate() {
        world.create("k", &format!(r#""id":"{n}","v":{value},"n":{n}"#)).expect("created");
    }
    for (order, expected) in [("c.v, c.n", "2 1 0 5 4 3 8 7 6"), ("c.v DESC, c.n DESC", "6 7 8 3 4 5 0 1 2")]
    {
        let query = format!("SELECT VALUE c.n FROM c ORDER BY {order}");
        let page = world.page(Some(&query), 1, None);
        assert_eq!(page.index.utilized_composite.len(), 1, "{query}");
        for size in [1, 2, 4] {
            assert_eq!(world.rows(&query, size).join(" "), expected, "{query} by {size}");
        }
    }
}

#[test]
fn the_report_names_what_was_used_and_what_would_help() {
    let world = crowd(r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/word/?"}]}"#);
    let page = world.page(Some("SELECT * FROM c WHERE c.n = 5 AND c.word = 'w035'"), 10, None);
    assert_eq!(page.index.utilized_single, ["/n/?"]);
    assert_eq!(page.index.potential_single, ["/word/?"]);
    let page = world.page(Some("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 't1') AND c.n = 1"), 10, None);
    assert_eq!(page.index.utilized_single, ["/n/?"]);
    assert_eq!(page.metrics.output_items, 1);
}

/// Every kind of position stays valid over a restart.
#[test]
fn a_token_outlives_a_restart() {
    for query in [
        "SELECT * FROM c",
        "SELECT * FROM c WHERE c.g = 1",
        "SELECT * FROM c WHERE c.n > 10",
        "SELECT * FROM c WHERE c.pk = 'a'",
        "SELECT * FROM c WHERE c._ts > 5",
        "SELECT * FROM c ORDER BY c.word DESC",
        "SELECT * FROM c ORDER BY c._ts DESC",
        "SELECT * FROM c ORDER BY c.g, c.n",
    ] {
        let mut world = crowd("{}");
        let whole = ids(&world.page(Some(query), 1000, None));
        let first = world.page(Some(query), 7, None);
        world.restart();
        let second = world.page(Some(query), 1000, first.continuation.clone());
        assert_eq!([ids(&first), ids(&second)].concat(), whole, "{query}");
        assert_eq!(second.continuation, None, "{query}");
    }
}

/// Sort keys that are far too long for a token are read from their items again.
#[test]
fn pages_end_at_values_of_any_length() {
    let world = World::new();
    world.container("");
    for n in 0..7 {
        let text = format!("{}{}", "z".repeat(20_000), (n * 3) % 7);
        world.create("k", &format!(r#""id":"{n}","text":"{text}","deep":[["{text}"]]"#)).expect("created");
    }
    for (order, expected) in [
        ("c.text", "0 5 3 1 6 4 2"),
        ("c.text DESC", "2 4 6 1 3 5 0"),
        ("c.deep", "0 5 3 1 6 4 2"),
        ("c.nothing, c.text", "0 5 3 1 6 4 2"),
    ] {
        let query = format!("SELECT VALUE c.id FROM c ORDER BY {order}");
        for size in [1, 2, 3] {
            let found = world.rows(&query, size).join(" ").replace('"', "");
            assert_eq!(found, expected, "{query} by {size}");
        }
        let page = world.page(Some(&query), 2, None);
        assert!(page.continuation.is_some_and(|token| token.len() < 4000), "{query}");
    }
}

#[test]
fn a_token_of_another_query_is_refused() {
    let world = crowd("{}");
    let first = world.page(Some("SELECT * FROM c WHERE c.n > 10"), 1, None);
    for other in [Some("SELECT * FROM c WHERE c.n > 11"), Some("SELECT * FROM c ORDER BY c.n"), None] {
        let query = other.map(parse);
        let continuation = first.continuation.clone();
        let request = QueryRequest { continuation, ..QueryRequest::new(query.as_ref(), 1) };
        let refused = world.engine.query(&world.current(), &request);
        assert!(matches!(refused, Err(Error::InvalidContinuation { .. })), "{other:?}");
    }
}

/// T16: computed values stay, but items that expired between two pages are not returned.
#[test]
fn t16_what_expires_between_two_pages_is_not_sent() {
    for query in
        ["SELECT * FROM c WHERE c.n >= 0", "SELECT * FROM c ORDER BY c.n", "SELECT * FROM c WHERE c.g < 5"]
    {
        let world = crowd("{}");
        let mut page = world.page(Some(query), 100, None);
        let mut seen = ids(&page).len();
        world.pass(WHILE);
        while let Some(token) = page.continuation {
            page = world.page(Some(query), 100, Some(token));
            assert!(ids(&page).iter().all(|id| id.parse::<u32>().expect("a number") % 2 == 1), "{query}");
            seen += page.rows.len();
        }
        assert_eq!(seen, 100 + 250, "{query}");
    }
}

/// A client may begin an ordered query at a row that it has.
#[test]
fn a_resume_filter_begins_at_or_behind_a_row() {
    let world = crowd("{}");
    let query = parse("SELECT VALUE c.n FROM c ORDER BY c.g DESC");
    let sorted = world.page(Some("SELECT * FROM c ORDER BY c.g DESC"), 1000, None).rows;
    let item = value(std::str::from_utf8(&sorted[205]).expect("JSON"));
    let rid: document::ItemRid =
        item.get("_rid").and_then(document::Value::as_str).expect("a rid").parse().expect("a rid");
    let number = Some(document::ItemNumber(rid.number));
    for (number, exclude, expected) in
        [(number, false, 205), (number, true, 206), (None, false, 200), (None, true, 400)]
    {
        let values = vec![item.get("g").cloned()];
        let resume_filter = Some(ResumeFilter { values, number, exclude });
        let request = QueryRequest { resume_filter, ..QueryRequest::new(Some(&query), 1) };
        let page = world.engine.query(&world.current(), &request).expect("a page");
        let first = value(std::str::from_utf8(&sorted[expected]).expect("JSON"));
        let first = first.get("n").map(document::Value::to_json).map(String::into_bytes);
        assert_eq!(page.rows.first(), first.as_ref(), "{number:?} {exclude}");
    }
    let unsorted = parse("SELECT * FROM c");
    let resume_filter = Some(ResumeFilter { values: vec![None], number: None, exclude: false });
    let request = QueryRequest { resume_filter, ..QueryRequest::new(Some(&unsorted), 1) };
    assert!(matches!(world.engine.query(&world.current(), &request), Err(Error::Invalid { .. })));
}

#[test]
fn a_cancelled_query_ends() {
    let world = crowd("{}");
    let query = parse("SELECT VALUE SUM(LENGTH(c.word)) FROM c WHERE c.n + 1 > 0");
    let request = QueryRequest::new(Some(&query), 1);
    request.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(world.engine.query(&world.current(), &request), Err(Error::Cancelled)));
}

/// All its work is evaluation: the ten billion rows of one item.
#[test]
fn a_cancelled_join_within_an_item_ends() {
    let world = World::new();
    world.container("");
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    world.create("a", &format!(r#""id":"1","n":[{}]"#, numbers.join(","))).expect("created");
    let joins = ["a", "b", "d", "e", "f"].map(|name| format!("JOIN {name} IN c.n")).join(" ");
    let query = parse(&format!("SELECT VALUE COUNT(1) FROM c {joins}"));
    let request = QueryRequest::new(Some(&query), 1);
    request.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(world.engine.query(&world.current(), &request), Err(Error::Cancelled)));
}

#[test]
fn a_partition_key_beside_the_query_narrows_it() {
    let world = crowd("{}");
    let scope = Scope { key: Some(key("a")), range: None };
    let count = world.page_in(&scope, Some("SELECT VALUE COUNT(1) FROM c WHERE c.g = 1"), 10, None);
    assert_eq!((count.rows, count.metrics.loaded_items), (vec![b"100".to_vec()], 0));
    let page = world.page_in(&scope, Some("SELECT VALUE c.n FROM c WHERE c.g = 1 ORDER BY c.n"), 2, None);
    assert_eq!(page.rows, [b"4".to_vec(), b"10".to_vec()]);
}

/// A count within a partition key costs no more than the items of that key, however many others its filter admits.
#[test]
fn a_count_within_a_partition_key_does_not_walk_through_the_container() {
    let world = crowd("{}");
    for n in 0..20 {
        world.create("few", &format!(r#""id":"few {n}","n":{n}"#)).expect("created");
    }
    let scope = Scope { key: Some(key("few")), range: None };
    let page = world.page_in(&scope, Some("SELECT VALUE COUNT(1) FROM c WHERE c.n < 500"), 10, None);
    assert_eq!(page.rows, [b"20"]);
    let looked_at = page.metrics.index_entries + page.metrics.loaded_items;
    assert!(looked_at <= 60, "20 items of the key, and {looked_at} entries and items were looked at");
}

/// T14: adjacent items are read by a scan, which skips other and expired items.
#[test]
fn t14_items_that_lie_side_by_side_are_read_as_those_that_lie_apart() {
    // Side by side, a few apart, far apart, and in bunches.
    let patterns: [fn(usize) -> bool; 4] = [|_| true, |n| n % 3 == 0, |n| n % 7 == 0, |n| n % 40 < 13];
    for (at, is_wanted) in patterns.into_iter().enumerate() {
        let world = World::new();
        world.container(r#","defaultTtl":-1"#);
        for n in 0..300 {
            let ttl = if n % 2 == 0 { format!(r#","ttl":{WHILE}"#) } else { String::new() };
            let text = format!(r#""id":"{n}","wanted":{}{ttl}"#, is_wanted(n));
            world.create("a", &text).expect("created");
        }
        let read = || {
            let page = world.page(Some("SELECT * FROM c WHERE c.wanted = true"), 300, None);
            assert_eq!(page.metrics.loaded_items, page.rows.len() as u64);
            ids(&page)
        };
        let those = |remain: fn(usize) -> bool| -> Vec<String> {
            (0..300).filter(|n| is_wanted(*n) && remain(*n)).map(|n| n.to_string()).collect()
        };
        world.pass(WHILE - 1);
        assert_eq!(read(), those(|_| true), "pattern {at}");
        world.pass(1);
        assert_eq!(read(), those(|n| n % 2 == 1), "pattern {at}");
        world.drain();
        assert_eq!(read(), those(|n| n % 2 == 1), "pattern {at}");
    }
}

/// T14: a number of entries that a query has counted serves the next one, but not at the second in which one of them
/// expires, nor after a write or a change of the rules.
#[test]
fn t14_what_a_query_has_counted_is_forgotten_when_an_entry_expires() {
    let mut world = crowd("{}");
    for n in 0..20 {
        world.create("few", &format!(r#""id":"few {n}","n":{n}"#)).expect("created");
    }
    let scope = Scope { key: Some(key("few")), range: None };
    let text = Some("SELECT VALUE COUNT(1) FROM c WHERE c.n >= 100 AND c.n < 150");
    let loaded = |world: &World| {
        let page = world.page_in(&scope, text, 10, None);
        assert_eq!(page.rows, [b"0"]);
        page.metrics.loaded_items
    };
    // 50 entries of the range are many beside 20 items, 25 are not: then they are compared with those of the key.
    assert_eq!([loaded(&world), loaded(&world)], [20, 20]);
    world.pass(WHILE - 1);
    assert_eq!([loaded(&world), loaded(&world)], [20, 20]);
    world.pass(1);
    assert_eq!([loaded(&world), loaded(&world)], [0, 0]);
    for n in (101..150).step_by(2).take(20) {
        world.create("c", &format!(r#""id":"more {n}","n":{n}"#)).expect("created");
    }
    assert_eq!([loaded(&world), loaded(&world)], [20, 20]);
    world.restart();
    assert_eq!([loaded(&world), loaded(&world)], [20, 20]);
    for n in (101..150).step_by(2).take(20) {
        world.delete("c", &format!("more {n}")).expect("deleted");
    }
    assert_eq!([loaded(&world), loaded(&world)], [0, 0]);
    for n in (101..150).step_by(2).take(20) {
        world.create("c", &format!(r#""id":"more {n}","n":{n}"#)).expect("created");
    }
    assert_eq!([loaded(&world), loaded(&world)], [20, 20]);
    // Lets all expire that have no time to live of their own, but those of the key.
    world.pass(WHILE);
    for n in 0..20 {
        world.upsert("few", &format!(r#""id":"few {n}","n":{n}"#)).expect("replaced");
    }
    assert_eq!([loaded(&world), loaded(&world)], [20, 20]);
    world.set_default(Some(WHILE.cast_signed()));
    assert_eq!([loaded(&world), loaded(&world)], [0, 0]);
}

#[test]
fn a_brief_query_answers_as_any_other_or_not_at_all() {
    let world = crowd("{}");
    for (text, is_brief) in [
        ("SELECT * FROM c WHERE c.n = 77", true),
        ("SELECT * FROM c WHERE c.n >= 77 AND c.n < 90 ORDER BY c.n", true),
        ("SELECT * FROM c WHERE c.n = 'missing'", true),
        ("SELECT * FROM c WHERE CONTAINS(c.word, 'w')", false),
        ("SELECT * FROM c", false),
    ] {
        let query = parse(text);
        let request = QueryRequest::new(Some(&query), 1000);
        let brief = world.engine.query_briefly(&world.current(), &request);
        assert_eq!(brief.is_some(), is_brief, "{text}");
        if let Some(brief) = brief {
            let page = world.engine.query(&world.current(), &request).expect("an answer");
            assert_eq!(
                (brief.rows, brief.charge, brief.metrics),
                (page.rows, page.charge, page.metrics),
                "{text}"
            );
        }
    }
}
