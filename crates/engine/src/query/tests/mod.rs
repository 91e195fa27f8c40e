//! Random items, indexing policies, queries and choices: an answer never depends on the plan.
//!
//! A query is generated as a tree ([`generate`], [`tree`]), printed, and executed in every way there is: over the
//! whole container, a partition key or a range, in pages of any size, and through its plan as a client joins it
//! ([`client`]). Every choice depends on numbers ([`super::tuning::Tuning`]), and here they are small and random, so
//! that a few dozen items exercise every plan.
//!
//! ```text
//!  tree --print--> text --+--> engine, page after page ------------+--> the same rows
//!    |                    +--> plan --> ranges --> client ---------+
//!    |                    +--> query::Run over a plain listing ----+
//!    +------ evaluate over the items as they were written ---------+
//! ```
//!
//! Seeds are those of the harness of model tests, and can be chosen as there. The steps are not: here they are the pages
//! of a query.

mod client;
mod conditions;
mod container;
mod evaluate;
mod generate;
mod join;
mod json;
mod places;
mod resume;
mod subqueries;
mod tree;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use document::{ItemRid, Value, parse_json};
use query::{Arrival, Context, PageLimits, Query, Run};

use super::tuning::Tuning;
use crate::Scope;
use crate::tests::model_test::each_seed;
use client::{Client, Manner};
use evaluate::{expected, most_rows};
use json::{Digits, Json, Lists, Spelling, spelled};
use tree::{Expr, Projection, Rows, Select, Source};
use world::{STEPS_MAX, World};

/// Seeds of one run of the tests, unless the environment says otherwise.
const SEEDS: u64 = 32;

/// Queries of one seed, between changes of the world.
const ROUNDS: usize = 4;
const QUERIES: usize = 12;

/// Lets time pass, the policy change or the purge run.
fn turn(world: &mut World, round: usize) {
    match round {
        1 => world.clock.advance(Duration::from_secs(15)),
        2 => world.change_policy(),
        3 => world.drain(),
        _ => {}
    }
}

/// Reads all pages of a query, each with its own choices, some of them twice.
fn read(world: &mut World, query: &Query, scope: &Scope) -> Vec<String> {
    let (mut rows, mut token, size) = (Vec::new(), None::<String>, world.random.usize(1..12));
    for _ in 0..STEPS_MAX {
        let page = |world: &mut World| {
            let tuning = world.tuning();
            world
                .page(Some(query), scope, size, token.as_deref(), tuning)
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let mut read = page(world);
        if world.random.u8(..8) == 0 {
            // The token was kept and is used again.
            read = page(world);
        }
        assert!(read.rows.len() <= size);
        rows.extend(read.rows.into_iter().map(|row| String::from_utf8(row).expect("UTF-8")));
        token = read.continuation;
        if token.is_none() {
            return rows;
        }
    }
    panic!("a query does not end");
}

/// Returns what the crate `query` finds over a plain listing, without an index, in as few pages as there are.
fn run(world: &World, query: &Query, scope: &Scope) -> Vec<String> {
    let tuning = Tuning { probe: 0, lookups: 0, ..Tuning::default() };
    let items = world.page(None, scope, 10_000, None, tuning).expect("a listing").rows;
    let context = Context::new(0, 1);
    let mut items: Vec<(u64, Value)> = items.iter().map(|row| numbered(row)).collect();
    items.sort_by_key(|(number, _)| *number);
    let (mut rows, mut resume) = (Vec::new(), None);
    for _ in 0..STEPS_MAX {
        let limits = PageLimits { rows: 100_000, bytes: usize::MAX };
        let mut run = Run::new(query, &context, Arrival::Any, resume, limits);
        for (number, item) in &items {
            if run.push(item, *number).expect("no fault") == query::Flow::Enough {
                break;
            }
        }
        let answer = run.finish().expect("no fault");
        rows.extend(answer.rows.into_iter().map(|row| String::from_utf8(row).expect("UTF-8")));
        resume = answer.resume;
        if resume.is_none() {
            return rows;
        }
    }
    panic!("a query over a listing does not end");
}

fn json(rows: &[String]) -> Vec<Json> {
    rows.iter().map(|row| serde_json::from_str(row).expect("JSON")).collect()
}

/// Returns an item of a listing, with its number.
fn numbered(row: &[u8]) -> (u64, Value) {
    let item = parse_json(row).expect("a row is JSON");
    let rid: ItemRid =
        item.get("_rid").and_then(Value::as_str).expect("a row is an item").parse().expect("a rid");
    (rid.number, item)
}

/// Returns how exactly two answers to a query must agree.
fn spelling(select: &Select, text: &str) -> Spelling {
    let digits = if text.contains("SUM(") || text.contains("AVG(") { Digits::Twelve } else { Digits::All };
    let collects = select.from.is_empty() || text.contains("MAKELIST(") || text.contains("MAKESET(");
    Spelling { digits, lists: if collects { Lists::Collected } else { Lists::Ordered } }
}

/// Returns whether any spelling of equal numbers may represent a group, a distinct row or an element.
fn takes_any_spelling(text: &str) -> bool {
    let words = ["DISTINCT", "MIN(", "MAX(", "SUM(", "AVG(", "GROUP BY", "MAKELIST(", "MAKESET("];
    words.iter().any(|word| text.contains(word))
}

/// T14: rows are the same by every plan, before and after an expiry, before and after the purge.
#[test]
fn t14_an_answer_does_not_depend_on_the_way_to_it() {
    let mut asked = 0;
    each_seed(SEEDS, |seed| {
        let mut world = World::new(seed);
        for round in 0..ROUNDS {
            turn(&mut world, round);
            assert_listing(&world);
            for _ in 0..QUERIES {
                let select = world.query();
                let (text, scope) = (select.to_string(), world.scope());
                let query = world.parse(&text);
                let spelling = spelling(&select, &text);
                let about = |world: &World| format!("{text} in {scope:?} of {}", world.about());
                let mut rows = read(&mut world, &query, &scope);
                asked += 1;
                if let Err(wrong) = expected(&select, &world.living(&scope)).check(&json(&rows), spelling) {
                    panic!("{wrong}: {} gives {rows:?}", about(&world));
                }
                if select.takes_any() {
                    continue;
                }
                let mut listed = run(&world, &query, &scope);
                for list in [&mut rows, &mut listed] {
                    if takes_any_spelling(&text) || spelling.lists == Lists::Collected {
                        *list = json(list).iter().map(|row| spelled(row, spelling)).collect();
                    }
                    if !select.has_told_order() {
                        list.sort();
                    }
                }
                assert_eq!(rows, listed, "{}", about(&world));
            }
        }
    });
    eprintln!("{asked} queries asked");
}

/// Checks that a listing shows what was written and has not expired.
fn assert_listing(world: &World) {
    let listed = json(&run(world, &world.parse("SELECT * FROM c"), &Scope::default()));
    let living = world.living(&Scope::default());
    let [listed, living] = [listed, living].map(|items| {
        let mut items: Vec<String> = items.iter().map(Json::to_string).collect();
        items.sort();
        items
    });
    assert_eq!(listed, living);
}

/// T14: a client that joins the ranges' rows by the plan has the same rows, and its reading ends.
#[test]
fn t14_a_joined_answer_is_the_answer_and_ends() {
    let (mut joined, mut resumed) = (0, 0);
    let seeds = each_seed(SEEDS, |seed| {
        let mut world = World::new(seed + 2000);
        for round in 0..ROUNDS {
            turn(&mut world, round);
            for _ in 0..QUERIES {
                let select = world.query();
                let text = select.to_string();
                let (page_rows, manner) = match world.random.u8(..4) {
                    0 | 1 => (1, Manner::Plain),
                    2 => (world.random.usize(1..12), Manner::Varied),
                    _ => (world.random.usize(1..12), Manner::Resumed),
                };
                let Some(mut client) = Client::new(&world, &text, page_rows, manner) else { continue };
                if (manner, page_rows) == (Manner::Plain, 1) {
                    let scopes = client.scopes();
                    let sent = scopes.iter().map(|scope| most_rows(&select, &world.living(scope)));
                    client.requests_max = sent.sum::<usize>() + 2 * client.ranges() + 2;
                }
                let rows = client.rows(&mut world, |_| {});
                let about = format!("{text} over {} ranges of {}", client.ranges(), world.about());
                if let Err(wrong) =
                    expected(&select, &world.living(&Scope::default())).check(&rows, spelling(&select, &text))
                {
                    panic!("{wrong}: {about} gives {}", Json::from(rows));
                }
                joined += 1;
                resumed += client.resumed;
            }
        }
    });
    eprintln!("{joined} queries joined, resumed {resumed} times behind a row");
    assert!(seeds < SEEDS || resumed > 0);
}

/// Returns a query of whole items, in some order or none.
fn items_query(world: &mut World) -> Select {
    world.parameters.clear();
    let from = vec![Source { name: "c", rows: Rows::Container }];
    let mut select = Select::new(Projection::Star, from);
    select.filter = Some(world.filter(&[("c", generate::Kind::Item)], 1));
    let key = |name| Expr::Path("c", vec![tree::Step::Name(name)]);
    select.order_by = match world.random.u8(..7) {
        0 => vec![(key("a"), false)],
        1 => vec![(key("a"), true)],
        2 => vec![(key("n"), false), (key("a"), false)],
        3 => vec![(key("_ts"), false)],
        4 if !world.has_large_items => vec![(Expr::Path("c", Vec::new()), world.random.bool())],
        _ => Vec::new(),
    };
    select
}

/// Returns the items that a query of whole items shows now, by id.
fn matching(world: &World, select: &Select) -> BTreeMap<String, Json> {
    let rows = expected(select, &world.living(&Scope::default())).into_rows();
    rows.iter().map(|item| (id(item), Json::clone(item))).collect()
}

fn id(item: &Json) -> String {
    item["id"].as_str().expect("an item has an id").to_owned()
}

/// T14, T16: an item that is living and unchanged throughout is found exactly once, whatever happens between two pages;
/// expired items are not returned.
#[test]
fn t16_pages_neither_repeat_nor_lose_what_stays() {
    each_seed(SEEDS, |seed| {
        let mut world = World::new(seed + 1000);
        for _ in 0..6 {
            let select = items_query(&mut world);
            let text = select.to_string();
            let query = world.parse(&text);
            let mut staying = matching(&world, &select);
            let (mut seen, mut token, size) = (Vec::new(), None::<String>, world.random.usize(1..6));
            for page in 0.. {
                assert!(page < STEPS_MAX, "{text} does not end");
                let tuning = world.tuning();
                let page = world.page(Some(&query), &Scope::default(), size, token.as_deref(), tuning);
                let page = page.unwrap_or_else(|error| panic!("{text}: {error}"));
                let living = matching(&world, &select);
                for row in &page.rows {
                    let item: Json = serde_json::from_slice(row).expect("JSON");
                    assert_eq!(living.get(&id(&item)), Some(&item), "{text}: shown and should not be");
                    seen.push(item);
                }
                token = page.continuation;
                if token.is_none() {
                    break;
                }
                world.interfere();
                let living = matching(&world, &select);
                staying.retain(|id, item| living.get(id) == Some(item));
            }
            assert_once(&staying, &seen, &format!("{text} of {}", world.about()));
        }
    });
}

/// T14, T16: the same for a client that joins the rows of several ranges.
#[test]
fn t16_a_joined_answer_neither_repeats_nor_loses_what_stays() {
    each_seed(SEEDS, |seed| {
        let mut world = World::new(seed + 3000);
        for _ in 0..6 {
            let select = items_query(&mut world);
            let text = select.to_string();
            let size = world.random.usize(1..4);
            let mut client =
                Client::new(&world, &text, size, Manner::Varied).expect("a plan for every client");
            let mut staying = matching(&world, &select);
            let mut versions = staying.values().cloned().collect::<Vec<_>>();
            let seen = client.rows(&mut world, |world| {
                world.interfere();
                let living = matching(world, &select);
                staying.retain(|id, item| living.get(id) == Some(item));
                versions.extend(living.into_values());
            });
            let about = format!("{text} over {} ranges of {}", client.ranges(), world.about());
            for item in &seen {
                assert!(versions.contains(item), "{about}: {item} never matched while it was read");
            }
            assert_once(&staying, &seen, &about);
        }
    });
}

fn assert_once(staying: &BTreeMap<String, Json>, seen: &[Json], about: &str) {
    for (id, item) in staying {
        let times = seen.iter().filter(|shown| *shown == item).count();
        assert_eq!(times, 1, "{about}: {id} was shown {times} times");
    }
}
