//! The home page: databases, containers and collections of both APIs, with current statistics.

use engine::{Api, Engine, Forecast, Interval, Owner, PurgeFigures, Tally, Usage};
use maud::{Markup, html};

use crate::OpenConnections;
use crate::format;
use crate::visit::answer::{Answer, Fault};
use crate::visit::{Visit, api_name, link};

/// For how many containers to forecast the next day: each costs a few sums of counters.
const FORECASTS_MAX: usize = 200;

/// The number of hours in the small charts.
const HOURS: usize = 24;

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let inner = html! {
        div.row {
            h1 { "Databases" }
            a.button.primary href="/_explorer/new" { "New container" }
        }
        div data-live="/_explorer/live" data-every="4" { (figures(visit).await?) }
    };
    visit.show("Databases", None, &inner).await
}

/// Returns the part of the page that updates itself.
pub(crate) async fn live(visit: &Visit) -> Result<Answer, Fault> {
    Ok(Answer::Fragment(figures(visit).await?))
}

/// A container or collection, with its statistics.
struct Row {
    owner: Owner,
    usage: Usage,
    figures: PurgeFigures,
    day: Option<Forecast>,
}

fn rows(engine: &Engine) -> engine::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (owner, figures) in engine.purge_figures_of_all()? {
        let usage = engine.usage_of(&owner)?;
        let day = if rows.len() < FORECASTS_MAX {
            Some(engine.forecast(&owner, Interval::Hour, HOURS)?)
        } else {
            None
        };
        rows.push(Row { owner, usage, figures, day });
    }
    rows.sort_by_key(|row| {
        (row.owner.api() == Api::MongoDb, row.owner.database().to_owned(), row.owner.name().to_owned())
    });
    Ok(rows)
}

async fn figures(visit: &Visit) -> Result<Markup, Fault> {
    let (rows, clock, empty) = visit
        .engine(|engine| {
            let mut of_collections = engine.collection_databases();
            // A database with nothing but system collections is not empty, and not shown.
            of_collections.retain(|database| engine.collections(&database.name).is_empty());
            let all = engine.databases().into_iter().chain(of_collections);
            let names: Vec<_> = all.map(|database| (database.api, database.name.clone())).collect();
            Ok((rows(engine)?, engine.clock_status()?, names))
        })
        .await?;
    let living = rows.iter().fold(Tally::default(), |sum, row| sum.plus(row.usage.living));
    let expired = rows.iter().fold(Tally::default(), |sum, row| sum.plus(row.usage.expired));
    let purged: u64 = rows.iter().map(|row| row.figures.purged.items).sum();
    let day: u64 = rows.iter().filter_map(|row| row.day.as_ref()).map(expiring).sum();
    let empty = empty.into_iter().filter(|(api, name)| {
        !rows.iter().any(|row| row.owner.api() == *api && row.owner.database() == name)
    });
    let empty: Vec<_> = empty.collect();
    Ok(html! {
        div.tiles data-now=(clock.now.millis()) {
            (tile("Living", &format::count(living.items), &format::bytes(living.bytes)))
            (tile("Expire within a day", &format::count(day), "under the current rules"))
            (tile("Backlog", &format::count(expired.items), &format::bytes(expired.bytes)))
            (tile("Purged", &format::count(purged), "since the start"))
            (connections((visit.backends.connections)()))
        }
        @if rows.is_empty() {
            section.card.empty {
                h2 { "Nothing here yet" }
                p { "Create a container with a time to live, add items, and watch them expire." }
                p { a.button.primary href="/_explorer/new" { "Create the first container" } }
            }
        } @else { (table(&rows)) }
        @if !empty.is_empty() {
            p.faint {
                "Without containers: "
                @for (at, (api, name)) in empty.iter().enumerate() {
                    @if at > 0 { ", " }
                    (name) " (" (api_name(*api)) ")"
                }
            }
        }
    })
}

fn connections(open: OpenConnections) -> Markup {
    let OpenConnections { http, direct, mongodb } = open;
    let [http_text, direct_text, mongodb_text] = [http, direct, mongodb].map(format::count);
    let by_protocol = format!("{http_text} HTTP, {direct_text} direct, {mongodb_text} MongoDB");
    tile("Connections", &format::count(http + direct + mongodb), &by_protocol)
}

fn table(rows: &[Row]) -> Markup {
    html! {
        section.card {
            table.list {
                thead { tr {
                    th { "Container" } th { "API" } th { "Time to live" } th.number { "Living" } th.number { "Size" }
                    th.number { "Backlog" } th { "The next 24 hours" }
                } }
                tbody {
                    @for row in rows {
                        tr data-row {
                            td { a href=(link(&row.owner, "")) { span.faint { (row.owner.database()) " / " } (row.owner.name()) } }
                            td { (api_name(row.owner.api())) }
                            td { (format::ttl(row.owner.default_ttl())) @if row.owner.lifecycle().hold.is_some() { " " span.badge.warn { "on hold" } } }
                            td.number { (format::count(row.usage.living.items)) }
                            td.number { (format::bytes(row.usage.living.bytes)) }
                            td.number { (format::count(row.figures.backlog.items)) }
                            td { @if let Some(day) = &row.day { a.spark href=(link(&row.owner, "timeline")) { (spark(day)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn expiring(day: &Forecast) -> u64 {
    day.intervals.iter().map(|tally| tally.items).sum()
}

/// Draws a day in 24 small bars.
fn spark(day: &Forecast) -> Markup {
    let highest = day.intervals.iter().map(|tally| tally.items).max().unwrap_or(0);
    let label = format!("{} expire within a day", format::items(expiring(day)));
    html! {
        svg.sparkline viewBox="0 0 120 20" role="img" aria-label=(label) {
            title { (label) }
            line x1="0" x2="120" y1="19.5" y2="19.5" {}
            @if highest > 0 {
                @for (at, tally) in day.intervals.iter().enumerate().filter(|(_, tally)| tally.items > 0) {
                    @let tall = (u128::from(tally.items) * 18 / u128::from(highest)).max(2);
                    rect x=(at * 5) y=(20 - tall) width="4" height=(tall) {}
                }
            }
        }
        span.faint.small { (format::count(expiring(day))) }
    }
}

/// Shows a number with its name.
pub(crate) fn tile(name: &str, figure: &str, beside: &str) -> Markup {
    html! { div.tile { span.label { (name) } b { (figure) } span.faint { (beside) } } }
}
