//! Commands that read the change feeds and the evidence of purged items.

use document::{Value, parse_json};
use engine::collection::LivingDocument;
use engine::{Event, EventKind, FeedStart, HistoryPage, HistoryStart, Item, Owner, Scope};

use super::Answer;
use super::call::Call;
use super::documents::or_none;
use super::items::{id_of, key_option};
use super::labels::{START_SECONDS, duration, time};
use super::stage::Stage;

/// The feed of latest versions: `from=start` (the default), `now`, `next`, or `+5s` for what was written after that second.
pub(super) fn feed(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let container = stage.container(call.name)?;
    let name = format!("feed {}", call.name);
    let start = match call.take("from").unwrap_or("start") {
        "start" => FeedStart::Beginning,
        "now" => FeedStart::Now,
        "next" => FeedStart::After(stage.tokens.get(&name).expect("a page before").clone()),
        since if since.starts_with('+') => FeedStart::Time(START_SECONDS + duration(&since[1..]) / 1000),
        token => FeedStart::After(token.to_owned()),
    };
    let scope = Scope { key: key_option(call), range: None };
    let page = stage.engine().changes(&container, &scope, &start, call.take_count("max").unwrap_or(100))?;
    stage.tokens.insert(name, page.continuation);
    let show = |item: &Item| item.body.to_json();
    let mut lines = or_none(page.items.iter().map(show).collect());
    if page.more {
        lines.push("more to come".to_owned());
    }
    Ok(lines)
}

/// The feed of all versions and deletes: `from=start` (the default: the oldest event that is kept), `now` or `next`.
pub(super) fn history(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let name = call.name.to_owned();
    let start = match call.take("from").unwrap_or("start") {
        "start" => HistoryStart::Oldest,
        "now" => HistoryStart::Now,
        place => HistoryStart::After(stage.positions[&format!("{name} {place}")]),
    };
    let scope = Scope { key: key_option(call), range: None };
    let max = call.take_count("max").unwrap_or(100);
    let place = call.take("as").unwrap_or("next");
    let barrier = stage.engine().barrier()?;
    let (next, mut lines, more) = match stage.owner(&name)? {
        Owner::Container(container) => {
            let partition = &container.partitions[0];
            let page =
                stage.engine().container_history(&container, partition, &scope, &barrier, start, max)?;
            told(&page, &|item: &Item| (id_of(&item.body), item.body.to_json()))
        }
        Owner::Collection(collection) => {
            let page = stage.engine().collection_history(&collection, &barrier, start, max)?;
            told(&page, &|found: &LivingDocument| {
                let text =
                    bson::to_extended_json(bson::Value::Document(found.document.to_document()).view(), true);
                (super::documents::id_of(found), text)
            })
        }
    };
    stage.positions.insert(format!("{name} {place}"), next);
    if more {
        lines.push("more to come".to_owned());
    }
    Ok(or_none(lines))
}

fn told<I>(
    page: &HistoryPage<I>,
    show: &dyn Fn(&I) -> (String, String),
) -> (engine::Position, Vec<String>, bool) {
    let line = |event: &Event<I>| {
        let kind = match event.kind {
            EventKind::Create => "create",
            EventKind::Replace => "replace",
            EventKind::Delete => "delete",
            EventKind::Expire => "expire",
        };
        let images: Vec<_> = [&event.previous, &event.current].into_iter().flatten().map(show).collect();
        let id = images.first().map_or_else(String::new, |(id, _)| id.clone());
        let images: Vec<_> = images.into_iter().map(|(_, text)| text).collect();
        format!("{} {kind} {id} {}", time(event.position.time()), images.join(" => "))
    };
    (page.next, page.events.iter().map(line).collect(), page.more)
}

/// The lines of an archive, `full=yes` and `full=no` make it fail and work again.
pub(super) fn archive(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    if let Some(full) = call.take("full") {
        stage.archive.set_full(call.name, full == "yes");
        return Ok(Vec::new());
    }
    Ok(or_none(stage.archive.lines(call.name).iter().map(|line| evidence(line)).collect()))
}

/// Returns the part of a line of evidence about its item, without numbers and hashes.
fn evidence(line: &str) -> String {
    let line = parse_json(line.as_bytes()).expect("a line is JSON");
    let show = |name: &str| line.get(name).map(|value| format!("{name}={}", value.to_json()));
    let names = ["event", "id", "expired", "rule", "seconds", "from", "sliding"];
    let item = line.get("item").map(|item| format!("item={}", without_system(item)));
    names.iter().filter_map(|name| show(name)).chain(item).collect::<Vec<_>>().join(" ")
}

fn without_system(item: &Value) -> String {
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        for name in engine::SYSTEM_PROPERTIES {
            members.remove(name);
        }
    }
    item.to_json()
}

/// The deletion record of a container.
pub(super) fn deletions(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let mut lines = Vec::new();
    for log in stage.engine().deletion_logs_of(&stage.owner(call.name)?)? {
        let page = stage.engine().deletion_page(log.log, 0)?;
        let text = String::from_utf8(page.lines).expect("lines are text");
        lines.extend(text.lines().map(evidence));
    }
    Ok(or_none(lines))
}
