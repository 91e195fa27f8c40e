//! The comparison of the model with the observed state, after every step.

use std::collections::{BTreeMap, BTreeSet};

use crate::body;
use crate::model::{
    Answer, Container, CountdownOrigin, FeedPosition, Indexing, Item, Model, Stamp, Ttl, TtlModes,
};
use crate::operation::{CONTAINERS, Filter, QueryScope};
use crate::world::{Raw, Seen, SeenContainer, SeenItem, SeenSettings};

/// Compares every answer with the model's: no living item is lost, no expired item is visible, every figure is exact.
pub(crate) fn compare(model: &Model, seen: &Seen) -> Result<(), String> {
    for name in CONTAINERS {
        match (model.containers.get(name), seen.containers.get(name)) {
            (None, None) => {}
            (Some(expected), Some(seen)) => compare_container(model, name, expected, seen)?,
            (expected, _) => {
                let should = if expected.is_some() { "should exist" } else { "should not exist" };
                return Err(format!("container {name} {should}"));
            }
        }
    }
    Ok(())
}

fn compare_container(
    model: &Model,
    name: &str,
    expected: &Container,
    seen: &SeenContainer,
) -> Result<(), String> {
    if expected.default_ttl != seen.default_ttl {
        return Err(format!("{name}: D is {:?}, should be {:?}", seen.default_ttl, expected.default_ttl));
    }
    if let Some(first) = expected.first_lsn {
        let should = first + expected.commits;
        if seen.lsns != (should, should) {
            return Err(format!("{name}: its LSN is {:?}, should be {should}", seen.lsns));
        }
    }
    let visible = model.visible(name);
    compare_settings(expected, &visible, &seen.lifecycle_settings)
        .map_err(|error| format!("{name}: {error}"))?;
    for item in &seen.items {
        match visible.iter().find(|other| same_place(other, item)) {
            None => return Err(format!("{name}: listed and should not be: {item:?} at {}", model.now)),
            Some(expected) => compare_item(expected, item).map_err(|error| format!("{name}: {error}"))?,
        }
    }
    if let Some(lost) = visible.iter().find(|item| !seen.items.iter().any(|seen| same_place(item, seen))) {
        return Err(format!("{name}: lives and is not listed: {lost:?} at {}", model.now));
    }
    if seen.items.len() != visible.len() {
        return Err(format!("{name}: {} items listed, {} live", seen.items.len(), visible.len()));
    }
    let bytes: u64 = seen.items.iter().map(|item| item.bytes).sum();
    if (seen.usage_items, seen.usage_bytes) != (visible.len() as u64, bytes) {
        return Err(format!(
            "{name}: T18: usage says {} items of {} bytes, {} items of {bytes} bytes live",
            seen.usage_items,
            seen.usage_bytes,
            visible.len()
        ));
    }
    compare_feed(&visible, &seen.feed.items).map_err(|error| format!("{name}: the feed: {error}"))?;
    for ((key, id), answer) in &seen.reads {
        let lives = visible.iter().any(|item| item.body.key == *key && item.body.id == *id);
        let expected = if lives { Answer::Read } else { Answer::NotFound };
        if *answer != expected {
            return Err(format!("{name}: a read of {key}/{id} gives {answer:?}, should give {expected:?}"));
        }
    }
    Ok(())
}

/// Checks that the settings of an owner are in force.
fn compare_settings(container: &Container, visible: &[&Item], seen: &SeenSettings) -> Result<(), String> {
    let held = visible.iter().filter(|item| item.held);
    let mut held: Vec<_> = held.map(|item| (item.body.key, item.body.id.clone())).collect();
    held.sort();
    let feed = container.feed.as_ref().map(|feed| feed.minutes);
    let evidence = container.evidence.keys().copied().collect();
    let TtlModes { base, absolute, sliding, .. } = container.ttl_modes;
    let expected = SeenSettings {
        hold: container.hold,
        feed,
        guard: container.guard,
        ttl_modes: (base, absolute, sliding),
        evidence,
        held,
    };
    if *seen == expected { Ok(()) } else { Err(format!("in force is {seen:?}, should be {expected:?}")) }
}

/// Checks that the feed returns every living item once, in the order of writing (T14).
fn compare_feed(visible: &[&Item], feed: &[SeenItem]) -> Result<(), String> {
    if feed.len() != visible.len() {
        return Err(format!("{} changes are shown, {} items live", feed.len(), visible.len()));
    }
    for item in feed {
        let expected = visible.iter().find(|other| same_place(other, item));
        compare_item(expected.ok_or_else(|| format!("shows {item:?}"))?, item)?;
    }
    match feed.windows(2).find(|pair| pair[0].stamp.sequence >= pair[1].stamp.sequence) {
        Some(pair) => Err(format!("out of order: {pair:?}")),
        None => Ok(()),
    }
}

fn same_place(item: &Item, seen: &SeenItem) -> bool {
    item.body.key == seen.body.key && item.body.id == seen.body.id
}

/// Compares one item with the model's version of it.
pub(crate) fn compare_item(expected: &Item, seen: &SeenItem) -> Result<(), String> {
    let stamp_differs = expected.stamp.as_ref().is_some_and(|stamp| !stamp.admits(&seen.stamp));
    if expected.body != seen.body || expected.ts != seen.ts || stamp_differs {
        return Err(format!("seen {seen:?}, should be {expected:?}"));
    }
    Ok(())
}

/// Takes over the stamps of versions whose write was cut off by a crash, and returns them.
pub(crate) fn learn(model: &mut Model, seen: &Seen) -> Vec<Stamp> {
    let mut learnt = Vec::new();
    for (name, container) in &mut model.containers {
        let Some(seen) = seen.containers.get(name) else { continue };
        container.first_lsn.get_or_insert(seen.lsns.1.saturating_sub(container.commits));
        for item in container.items.iter_mut().filter(|item| is_unknown(item)) {
            if let Some(seen) = seen.items.iter().find(|seen| same_place(item, seen) && item.ts == seen.ts) {
                item.stamp = Some(seen.stamp.clone());
                learnt.push(seen.stamp.clone());
            }
        }
    }
    learnt
}

fn is_unknown(item: &Item) -> bool {
    item.stamp.as_ref().is_none_or(|stamp| stamp.etag.is_empty())
}

/// Returns `true` if an item belongs into the answer of a query.
pub(crate) fn belongs(item: &Item, filter: &Filter, scope: QueryScope) -> bool {
    let in_scope = match scope {
        QueryScope::Everywhere => true,
        QueryScope::Key(key) => item.body.key == key,
        QueryScope::Prefix => item.body.key < 2,
    };
    in_scope
        && match filter {
            Filter::All => true,
            Filter::Id(id) => item.body.id == *id,
            Filter::NumberFrom(number) => item.body.number >= *number,
            Filter::Stamp(from, to) => (*from..=*to).contains(&item.ts),
        }
}

/// Returns the entries of a store whose purge has nothing left to do: exactly those of the living items (T22).
pub(crate) fn expected_raw(model: &Model) -> BTreeMap<&'static str, u64> {
    let mut entries: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut add = |kind, count: usize| *entries.entry(kind).or_default() += count as u64;
    for (name, container) in &model.containers {
        let living = model.visible(name);
        add("policy", 1);
        add("index state", 1);
        add("index policy", usize::from(container.indexing != Indexing::None));
        // It counts the commits of the container, too, so it stays when the items are removed.
        add("total", 1);
        let (mut buckets, mut shapes) = (BTreeSet::new(), BTreeSet::new());
        for item in &living {
            let (entries, shape) = indexed(name, container.indexing, item);
            add("index", entries);
            shapes.extend(shape);
            add("item", 1);
            add("id", 1);
            add("feed", 1);
            add("unique", usize::from(container.unique));
            add("held", usize::from(item.held));
            add("touch", usize::from(item.touched));
            let (queues, base) = match item.body.ttl {
                // It is in no queue by which it could expire.
                _ if item.held => (1, None),
                Ttl::Absent => (1, Some(("inherit", item.ts))),
                Ttl::After(own) | Ttl::AfterPoint(own) => (2, Some(("own", item.ts + own.unsigned_abs()))),
                Ttl::Never | Ttl::Bad(_) => (1, None),
            };
            add("queue", queues);
            if let Some((queue, second)) = base {
                buckets.insert((queue, "second", second));
                buckets.insert((queue, "hour", second / 3600));
            }
        }
        add("bucket", buckets.len());
        add("shape", shapes.len());
        add("shape count", shapes.len());
    }
    entries
}

/// How many properties make up an item's key, and which of the others it has.
type Shape = (usize, [bool; 4]);

/// Returns how many index entries an item has, and what of it makes up its shape.
fn indexed(container: &str, indexing: Indexing, item: &Item) -> (usize, Option<Shape>) {
    let key_parts = body::key_parts(container, item.body.key);
    let (has_ttl, has_unique) = (item.body.ttl != Ttl::Absent, item.body.unique.is_some());
    // Every property is a scalar; `id`, `n` and `pad` are always there; one entry says what shape the item has.
    let (has_base, has_gone) = (item.body.base.is_some(), item.body.gone.is_some());
    let optional = [has_ttl, has_unique, has_base, has_gone];
    let all = 4 + key_parts + optional.iter().filter(|is_there| **is_there).count();
    let shape = Some((key_parts, optional));
    match indexing {
        Indexing::Everything => (all, shape),
        Indexing::OnlyNumber => (3, Some((0, [false; 4]))),
        Indexing::NoPadding => (all - 1, shape),
        Indexing::Composite => (all + 2, shape),
        Indexing::None => (0, None),
    }
}

/// Every kind of entry except the purge cursors, which stay where they are.
const KINDS: [&str; 16] = [
    "item",
    "id",
    "unique",
    "queue",
    "feed",
    "index",
    "total",
    "bucket",
    "shape",
    "shape count",
    "held",
    "touch",
    "policy",
    "index state",
    "index policy",
    "dropped",
];

/// Compares a drained store, entry kind by entry kind.
pub(crate) fn compare_raw(model: &Model, raw: &Raw) -> Result<(), String> {
    let expected = expected_raw(model);
    let ttl_modes =
        model.containers.values().any(|container| container.counted > CountdownOrigin::FromWrites);
    for kind in KINDS {
        if ttl_modes && ["queue", "bucket"].contains(&kind) {
            // Which queues there are besides is the engine's choice.
            continue;
        }
        let count = |entries: &BTreeMap<&'static str, u64>| entries.get(kind).copied().unwrap_or_default();
        let (should, are) = (count(&expected), count(&raw.entries));
        if should != are {
            return Err(format!(
                "T22: the drained store holds {are} {kind} entries, the living need {should}"
            ));
        }
    }
    compare_history_entries(model, raw.entries.get("history").copied().unwrap_or_default())
}

/// The trimming of entries that a feed does not return any more may be delayed to batch it.
const TRIM_PAUSE_MS: u64 = 60_000;

/// Checks the recorded events of feeds: all that they return, and few that they do not return any more.
fn compare_history_entries(model: &Model, are: u64) -> Result<(), String> {
    let (mut least, mut most) = (0, 0);
    for feed in model.containers.values().filter_map(|container| container.feed.as_ref()) {
        let told = feed.kept_from(model.trusted_ms);
        let recorded = FeedPosition { time_ms: told.time_ms.saturating_sub(TRIM_PAUSE_MS), turn: 0 };
        let since = |place| feed.events.iter().filter(|event| event.place >= place).count() as u64;
        (least, most) = (least + 1 + since(told), most + 1 + since(recorded));
    }
    if (least..=most).contains(&are) {
        return Ok(());
    }
    Err(format!("T28: the drained store holds {are} entries of feeds, should hold {least} to {most}"))
}
