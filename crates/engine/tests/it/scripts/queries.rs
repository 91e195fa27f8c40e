//! Commands that read: SQL queries with their charges and work, counts, figures, forecasts.

use std::sync::Arc;

use engine::{Container, DefaultTtl, Interval, Owner, QueryPage, QueryRequest, Scope, Tally};
use query::{Dialect, Query, Stamps};

use super::Answer;
use super::call::Call;
use super::documents::{self, or_none};
use super::items::key_option;
use super::labels::{count as counted, instant};
use super::stage::Stage;

fn parse(container: &Container, text: &str) -> Query {
    let dialect = Dialect { ..container.definition.dialect() };
    query::parse(text, &[], &dialect).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The rows; an item as the user stored it, without system properties.
fn rows(page: &QueryPage) -> Vec<String> {
    page.rows.iter().map(|row| shown(String::from_utf8(row.clone()).expect("JSON is text"))).collect()
}

fn shown(row: String) -> String {
    let mut value = document::parse_json(row.as_bytes()).expect("a row is JSON");
    match value.as_object_mut() {
        Some(members) if members.contains("_rid") && members.contains("_self") => {
            for name in engine::SYSTEM_PROPERTIES {
                members.remove(name);
            }
            value.to_json()
        }
        _ => row,
    }
}

/// `key=["a"]` a logical partition or the prefix of a key, `range=["a"]` the range of its effective keys.
fn scope(container: &Container, call: &mut Call<'_>) -> Scope {
    let range = call.take("range").map(|key| {
        let key = document::PartitionKey::from_header(key).expect("a key");
        key.effective_range(&container.definition.partition_key)
    });
    Scope { key: key_option(call), range }
}

/// Prints one page of a query: its rows, its charge, and its plan. `from=next` continues with the next page.
pub(super) fn query(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let container = stage.container(call.name)?;
    let name = format!("query {}", call.name);
    let continuation = match call.take("from") {
        None => None,
        Some("next") => Some(stage.tokens.get(&name).expect("a page before that was not the last").clone()),
        Some(token) => Some(token.trim_matches('"').to_owned()),
    };
    let scope = scope(&container, call);
    let (max_items, brief) = (call.take_count("max").unwrap_or(1000), call.take("brief").is_some());
    let renewals = call.take("touch").is_none();
    let query = (!call.is_at_end()).then(|| parse(&container, call.rest()));
    let request = QueryRequest { scope, continuation, ..QueryRequest::new(query.as_ref(), max_items) };
    let page = stage.engine().query(&container, &request)?;
    for renewal in page.renewals.iter().filter(|_| renewals) {
        if let Some(begun) = stage.engine().renew(renewal) {
            begun.wait()?;
        }
    }
    let mut lines = or_none(rows(&page));
    if brief {
        lines = vec![lines.join(" ")];
    } else {
        lines.push(work(&page, page.continuation.is_some()));
        lines.extend(query.map(|query| way(&container, &query, &page)));
    }
    match page.continuation {
        Some(token) => drop(stage.tokens.insert(name, token)),
        None => drop(stage.tokens.remove(&name)),
    }
    Ok(lines)
}

/// Describes the charge of a page, and the living items and entries that it read.
fn work(page: &QueryPage, more: bool) -> String {
    let metrics = page.metrics;
    let entries = match metrics.index_entries {
        1 => "1 index entry".to_owned(),
        entries => format!("{entries} index entries"),
    };
    let more = if more { ", more to come" } else { "" };
    format!(
        "-- {:.2} RU, {entries}, {} loaded{more}",
        page.charge.units(),
        counted(metrics.loaded_items, "item")
    )
}

/// Describes the plan: the keys, ids and `_ts` that the filter admits, and the indexes that were used or would have helped.
fn way(container: &Container, query: &Query, page: &QueryPage) -> String {
    let access = query.access(&container.definition.partition_key);
    let bound = |bound: Option<u64>| bound.map(|bound| instant(bound as i64 * 1000)).unwrap_or_default();
    let mut parts = Vec::new();
    if access.is_nothing() {
        parts.push("nothing can match".to_owned());
    }
    if let Some(ids) = access.ids.filter(|ids| !ids.is_empty()) {
        parts.push(format!("ids {}", ids.join(" ")));
    }
    if let Some(keys) = access.keys.filter(|keys| !keys.is_empty()) {
        parts.push(format!(
            "keys {}",
            keys.iter().map(document::PartitionKey::to_json).collect::<Vec<_>>().join(" ")
        ));
    }
    if access.stamps != Stamps::default() {
        parts.push(format!("_ts {}..={}", bound(access.stamps.from), bound(access.stamps.to)));
    }
    let composites = |names: &[Vec<String>]| names.iter().map(|paths| paths.join(", ")).collect::<Vec<_>>();
    let (used, missing) = (&page.index.utilized_single, &page.index.potential_single);
    let (used_composites, missing_composites) =
        (composites(&page.index.utilized_composite), composites(&page.index.potential_composite));
    for (what, names) in [
        ("index", used),
        ("composite index", &used_composites),
        ("index would help:", missing),
        ("composite index would help:", &missing_composites),
    ] {
        if !names.is_empty() {
            parts.push(format!("{what} {}", names.join(" and ")));
        }
    }
    if parts.is_empty() {
        parts.push("everything".to_owned());
    }
    format!("-- by {}", parts.join("; "))
}

/// Prints only the plan of a query.
pub(super) fn plan(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let container = stage.container(call.name)?;
    let scope = scope(&container, call);
    let query = parse(&container, call.rest());
    let page =
        stage.engine().query(&container, &QueryRequest { scope, ..QueryRequest::new(Some(&query), 1000) })?;
    Ok(vec![way(&container, &query, &page)])
}

/// Ids on one line: of a query's items, or of all in the order of their creation.
pub(super) fn ids(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let ids = match stage.owner(call.name)? {
        Owner::Collection(collection) => {
            documents::all(stage, &collection, false)?.iter().map(documents::id_of).collect()
        }
        Owner::Container(container) => {
            let scope = scope(&container, call);
            let text = if call.is_at_end() { "SELECT * FROM c" } else { call.rest() };
            let query = parse(&container, text);
            all_ids(stage, &container, &query, scope)?
        }
    };
    Ok(vec![or_none(ids).join(" ")])
}

fn all_ids(
    stage: &Stage,
    container: &Arc<Container>,
    query: &Query,
    scope: Scope,
) -> engine::Result<Vec<String>> {
    let page =
        stage.engine().query(container, &QueryRequest { scope, ..QueryRequest::new(Some(query), 1000) })?;
    let id = |row: &String| {
        let item = document::parse_json(row.as_bytes()).expect("a row is JSON");
        item.get("id").and_then(document::Value::as_str).expect("a row is an item").to_owned()
    };
    Ok(rows(&page).iter().map(id).collect())
}

/// Prints how many items are living. A count from the index, a scan of the items and the counters must agree.
pub(super) fn count(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let owner = stage.owner(call.name)?;
    let usage = stage.engine().usage_of(&owner)?;
    let seen = match &owner {
        Owner::Collection(collection) => documents::all(stage, collection, false)?.len(),
        Owner::Container(container) => {
            let ids =
                all_ids(stage, container, &parse(container, "SELECT * FROM c"), Scope::default())?.len();
            let query = parse(container, "SELECT VALUE COUNT(1) FROM c");
            let page = stage.engine().query(container, &QueryRequest::new(Some(&query), 1))?;
            assert_eq!(rows(&page), [ids.to_string()], "COUNT and the items differ");
            ids
        }
    };
    assert_eq!(usage.living.items, seen as u64, "the counters and the items differ");
    Ok(vec![seen.to_string()])
}

fn tally(tally: Tally) -> String {
    format!("{} of {}", counted(tally.items, "item"), counted(tally.bytes, "byte"))
}

/// Prints the figures of living items, and of expired ones that are not purged.
pub(super) fn usage(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let usage = stage.engine().usage_of(&stage.owner(call.name)?)?;
    Ok(vec![format!("living {}; expired {}", tally(usage.living), tally(usage.expired))])
}

fn default_ttl(text: &str) -> DefaultTtl {
    match text {
        "off" => DefaultTtl::Off,
        "-1" => DefaultTtl::Never,
        seconds => DefaultTtl::Seconds(seconds.parse().expect("seconds")),
    }
}

/// `forecast c every=minute count=3`, under another `defaultTtl` if one is given.
pub(super) fn forecast(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let interval = match call.take("every").unwrap_or("minute") {
        "minute" => Interval::Minute,
        "hour" => Interval::Hour,
        "day" => Interval::Day,
        other => panic!("no interval: {other}"),
    };
    let (count, owner) = (call.take_count("count").unwrap_or(3), stage.owner(call.name)?);
    let forecast = match call.take("defaultTtl") {
        Some(ttl) => stage.engine().forecast_if(&owner, default_ttl(ttl), interval, count)?,
        None => stage.engine().forecast(&owner, interval, count)?,
    };
    let items: Vec<_> = forecast.intervals.iter().map(|tally| tally.items.to_string()).collect();
    Ok(vec![format!(
        "overdue {}; then {}; later {}; never {}{}",
        forecast.overdue.items,
        items.join(" "),
        forecast.later.items,
        forecast.never.items,
        if forecast.exact { "" } else { "; upper bounds" }
    )])
}

pub(super) fn dry_run(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let ttl = default_ttl(call.take("defaultTtl").expect("defaultTtl="));
    let run = stage.engine().dry_run(&stage.owner(call.name)?, ttl)?;
    let exact = if run.expiring.exact { "" } else { ", an upper bound" };
    Ok(vec![format!("{} of {} would expire{exact}", run.expiring.tally.items, run.living.items)])
}
