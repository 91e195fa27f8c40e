//! The tail of the feed: the latest writes, and, where all versions are kept, all changes including expiries.

use engine::{Barrier, Engine, EventKind, HistoryStart, Owner, Scope};
use maud::{Markup, html};
use storage::Time;

use crate::format;
use crate::pages::container;
use crate::visit::answer::{Answer, Fault};
use crate::visit::{Visit, link};

/// The number of lines.
const LINES: usize = 50;

/// How far back to look for lines, in seconds, until there are enough.
const WINDOWS: [u64; 6] = [1, 10, 60, 600, 3600, 86_400];

/// The largest number of pages read of a window.
const PAGES_MAX: usize = 40;
const PAGE_EVENTS: usize = 500;

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let inner = html! {
        div data-live=(link(&owner, "feed/live")) data-every="2" { (tail(visit, &owner).await?) }
    };
    visit.show(&format!("Feed of {}", owner.name()), Some(&owner), &inner).await
}

pub(crate) async fn live(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    Ok(Answer::Fragment(tail(visit, &owner).await?))
}

/// An event.
struct FeedEvent {
    kind: EventKind,
    at: Time,
    name: String,
    number: u64,
}

async fn tail(visit: &Visit, owner: &Owner) -> Result<Markup, Fault> {
    let (of, kept) = (owner.clone(), owner.lifecycle().history_minutes);
    let (latest, lines) = visit
        .engine(move |engine| {
            let lines = if kept.is_some() { Some(history(engine, &of)?) } else { None };
            Ok((engine.latest(&of, LINES)?, lines))
        })
        .await?;
    Ok(html! {
        @match (lines, kept) {
            (Some(lines), Some(minutes)) => {
                section.card {
                    h2 { "All versions and deletes" span.faint { " kept for " (format::span(u64::from(minutes) * 60)) } }
                    @if lines.is_empty() { p.faint { "No recent events." } }
                    table.list.events { tbody { @for line in &lines { (row(owner, line)) } } }
                }
            }
            _ => p.faint {
                "This container keeps only the latest versions: deletes and expiries are not recorded. "
                "With " code { "changeFeedPolicy" } " (NoSQL) or " code { "historyMinutes" } " (MongoDB) they are shown here."
            },
        }
        h2 { "Latest writes" }
        @if latest.items.is_empty() { p.faint { "Nothing lives here." } } @else { (container::table(owner, &latest)) }
    })
}

fn row(owner: &Owner, line: &FeedEvent) -> Markup {
    let (class, word) = match line.kind {
        EventKind::Create => ("create", "created"),
        EventKind::Replace => ("replace", "replaced"),
        EventKind::Delete => ("delete", "deleted"),
        EventKind::Expire => ("expire", "expired"),
    };
    let lives = matches!(line.kind, EventKind::Create | EventKind::Replace);
    html! {
        tr data-row[lives] {
            td { (format::utc(line.at)) }
            td { span.event.(class) { (word) } }
            td {
                @if lives { a href=(link(owner, &format!("item/{}", line.number))) { (line.name) } } @else { (line.name) }
            }
        }
    }
}

/// Returns the last lines, the newest first.
fn history(engine: &Engine, owner: &Owner) -> engine::Result<Vec<FeedEvent>> {
    let (barrier, now) = (engine.barrier()?, engine.now()?);
    let mut lines = Vec::new();
    for window in WINDOWS {
        let start = HistoryStart::At(now.minus_millis(window * 1000));
        lines = match since(engine, owner, &barrier, start) {
            // The feed is younger than that, or keeps less.
            Err(engine::Error::HistoryGone) => return since(engine, owner, &barrier, HistoryStart::Oldest),
            read => read?,
        };
        if lines.len() >= LINES {
            break;
        }
    }
    Ok(lines)
}

fn since(
    engine: &Engine,
    owner: &Owner,
    barrier: &Barrier,
    start: HistoryStart,
) -> engine::Result<Vec<FeedEvent>> {
    let mut lines = Vec::new();
    match owner {
        Owner::Container(container) => {
            for partition in &container.partitions {
                let mut from = start;
                for _ in 0..PAGES_MAX {
                    let page = engine.container_history(
                        container,
                        partition,
                        &Scope::default(),
                        barrier,
                        from,
                        PAGE_EVENTS,
                    )?;
                    lines.extend(page.events.iter().map(|event| {
                        let item = event.current.as_ref().or(event.previous.as_ref());
                        let name = item.map(|item| item.id().to_owned()).unwrap_or_default();
                        FeedEvent {
                            kind: event.kind,
                            at: event.position.time(),
                            name,
                            number: event.number.0,
                        }
                    }));
                    keep_last(&mut lines);
                    if !page.more {
                        break;
                    }
                    from = HistoryStart::After(page.next);
                }
            }
        }
        Owner::Collection(collection) => {
            let mut from = start;
            for _ in 0..PAGES_MAX {
                let page = engine.collection_history(collection, barrier, from, PAGE_EVENTS)?;
                lines.extend(page.events.iter().map(|event| {
                    let found = event.current.as_ref().or(event.previous.as_ref());
                    let id = found.and_then(|found| found.document.get("_id"));
                    let name = id.map(|id| bson::to_extended_json(id, true)).unwrap_or_default();
                    FeedEvent { kind: event.kind, at: event.position.time(), name, number: event.number.0 }
                }));
                keep_last(&mut lines);
                if !page.more {
                    break;
                }
                from = HistoryStart::After(page.next);
            }
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.at));
    Ok(lines)
}

fn keep_last(lines: &mut Vec<FeedEvent>) {
    lines.sort_by_key(|line| line.at);
    let surplus = lines.len().saturating_sub(LINES);
    lines.drain(..surplus);
}
