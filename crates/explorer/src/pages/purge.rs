//! The purge of all containers: its backlog and its rate, pause and resume.

use engine::{Count, Engine, Owner, PaceStatus, PurgeFigures};
use maud::{Markup, html};

use crate::confirm::{Question, are};
use crate::format;
use crate::pages::home::tile;
use crate::visit::answer::{Answer, Fault};
use crate::visit::layout::csrf;
use crate::visit::{Visit, link};

/// Steps of a purge on demand, and items of each.
const STEPS: usize = 1000;
const STEP_ITEMS: usize = 10_000;

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let paused = visit.backends.engine.purge_status().paused;
    let inner = html! {
        h1 { "Purge" }
        p { "Expired items are invisible at once. The purge removes their bytes in the background and yields to requests." }
        div data-live="/_explorer/purge/live" data-every="2" { (figures(visit).await?) }
        @if visit.may_write() {
            form.row method="post" {
                (csrf(visit))
                @if paused { button.primary name="do" value="resume" { "Resume" } }
                @else {
                    button name="do" value="now" { "Purge now" }
                    button name="do" value="pause" { "Pause" }
                }
            }
        }
    };
    visit.show("Purge", None, &inner).await
}

pub(crate) async fn live(visit: &Visit) -> Result<Answer, Fault> {
    Ok(Answer::Fragment(figures(visit).await?))
}

async fn figures(visit: &Visit) -> Result<Markup, Fault> {
    let (status, all, now) = visit
        .engine(|engine| Ok((engine.purge_status(), engine.purge_figures_of_all()?, engine.now()?)))
        .await?;
    let sum = all.iter().map(|(_, figures)| *figures).fold(PurgeFigures::default(), PurgeFigures::plus);
    let waiting: Vec<_> = all.iter().filter(|(_, it)| it.backlog.items > 0 || it.purged.items > 0).collect();
    Ok(html! {
        div.tiles data-now=(now.millis()) {
            (tile("Backlog", &format::count(sum.backlog.items), &format::bytes(sum.backlog.bytes)))
            (tile("Oldest waits", &sum.oldest_expiry.map_or("–".to_owned(), |expired| format::span(now.millis_since(expired) / 1000)), "since its expiry"))
            div.tile {
                span.label { "Purged" }
                b data-rate=(status.purged_items) { (format::count(status.purged_items)) }
                span.faint.rate { "in " (format::count(status.passes)) " passes" }
            }
            (tile("Expiring", &format!("{}/s", format::count(status.pace.expiring_per_second)), &outlook(&status.pace)))
            @if sum.set_aside > 0 {
                (tile("Set aside", &format::count(sum.set_aside), "damaged; bolide check names them"))
            }
            (tile("Next step", &status.next_due.map_or("none".to_owned(), |due| next(due.millis_since(now))), if status.paused { "paused" } else { "as rules stand" }))
        }
        @if !waiting.is_empty() {
            section.card {
                table.list {
                    thead { tr { th { "Container" } th.number { "Backlog" } th.number { "Bytes" } th.number { "Purged" } th { "Last pass" } } }
                    tbody {
                        @for (owner, figures) in waiting {
                            tr data-row {
                                td { a href=(link(owner, "timeline")) { (owner.database()) " / " (owner.name()) } }
                                td.number { (format::count(figures.backlog.items)) }
                                td.number { (format::bytes(figures.backlog.bytes)) }
                                td.number { (format::count(figures.purged.items)) }
                                td { @if let Some(pass) = figures.last_pass { (format::utc(pass)) } }
                            }
                        }
                    }
                }
            }
        }
    })
}

/// Describes how the backlog will develop.
fn outlook(pace: &PaceStatus) -> String {
    match pace.drained_in_seconds {
        _ if pace.is_capacity_short => "more than can be purged: the backlog grows".to_owned(),
        Some(0) => "the purge keeps up".to_owned(),
        Some(seconds) => format!("drained in {}", format::span(seconds)),
        None => "the backlog grows".to_owned(),
    }
}

/// Formats the time until something is due.
pub(crate) fn next(millis: u64) -> String {
    if millis == 0 { "now".to_owned() } else { format!("in {}", format::span(millis.div_ceil(1000))) }
}

pub(crate) async fn steer(visit: &Visit) -> Result<Answer, Fault> {
    let said = match visit.form.text("do") {
        Some("pause") => {
            visit.backends.engine.pause_purge(true);
            "paused"
        }
        Some("resume") => {
            visit.backends.engine.pause_purge(false);
            "resumed"
        }
        Some("now") => {
            if let Some(page) = ask(visit, None, "/_explorer/purge".to_owned()).await? {
                return Ok(page);
            }
            purge_now(visit, None).await?;
            "purged"
        }
        _ => return Err(Fault::wrong("Nothing was asked for.")),
    };
    Ok(Answer::See(format!("/_explorer/purge?said={said}")))
}

/// Asks whether waiting items are to be removed now, in one container or in all; `None` if the visitor has confirmed it.
pub(crate) async fn ask(visit: &Visit, owner: Option<Owner>, back: String) -> Result<Option<Answer>, Fault> {
    let of = owner.clone();
    let figures = move |engine: &Engine| {
        if let Some(owner) = &of {
            return engine.purge_figures(owner);
        }
        let all = engine.purge_figures_of_all()?;
        Ok(all.into_iter().map(|(_, figures)| figures).fold(PurgeFigures::default(), PurgeFigures::plus))
    };
    let backlog = Count { tally: visit.engine(figures).await?.backlog, exact: true };
    let place = owner.as_ref().map_or("all containers".to_owned(), |owner| format!("'{}'", owner.name()));
    let question = Question {
        title: format!("Purge {place} now"),
        effects: vec![format!(
            "{} removed from the store for good. They have expired, and no request sees them.",
            are(backlog, ["is", "are"])
        )],
        // Items that have expired since are removed as well, and are invisible to all requests anyway.
        number: None,
        button: "Purge now",
        back,
    };
    question.ask(visit, owner.as_ref()).await
}

/// Runs steps until nothing is due, in one container or in all.
pub(crate) async fn purge_now(visit: &Visit, owner: Option<Owner>) -> Result<(), Fault> {
    if visit.backends.engine.purge_status().paused {
        return Err(Fault::wrong("The purge is paused: resume it first."));
    }
    let purge = move |engine: &Engine| {
        engine.retry_archives(owner.as_ref())?;
        for _ in 0..STEPS {
            let report = engine.purge_at_once(owner.as_ref(), STEP_ITEMS)?;
            let now = engine.now()?;
            if report.next_due.is_none_or(|due| due > now) {
                break;
            }
        }
        Ok(engine.clock_status()?.suspect.is_some())
    };
    if visit.engine(purge).await? {
        return Err(Fault::wrong(
            "The clock is suspect: nothing is destroyed until it is accepted or rejected.",
        ));
    }
    Ok(())
}
