//! The expiry timeline: what expires when under the current rules; the purge's backlog and rate.

use engine::{DefaultTtl, Engine, Forecast, Interval, Owner, Tally};
use maud::{Markup, html};
use storage::Time;

use crate::chart::{Bar, histogram};
use crate::format;
use crate::pages::home::tile;
use crate::pages::purge;
use crate::visit::answer::{Answer, Fault};
use crate::visit::layout::csrf;
use crate::visit::{Visit, link};

/// A range of time in bars: how many of the engine's intervals make one, and how many bars there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    word: &'static str,
    name: &'static str,
    interval: Interval,
    /// The engine's intervals in one bar.
    group: usize,
    bars: usize,
    /// The distance of labels on the axis, in bars.
    tick: usize,
}

pub(crate) const RANGES: [Range; 6] = [
    Range { word: "hour", name: "Hour", interval: Interval::Minute, group: 1, bars: 60, tick: 10 },
    Range { word: "day", name: "Day", interval: Interval::Minute, group: 30, bars: 48, tick: 8 },
    Range { word: "week", name: "Week", interval: Interval::Hour, group: 4, bars: 42, tick: 6 },
    Range { word: "month", name: "Month", interval: Interval::Hour, group: 12, bars: 60, tick: 10 },
    Range { word: "year", name: "Year", interval: Interval::Day, group: 7, bars: 52, tick: 8 },
    Range { word: "decade", name: "10 years", interval: Interval::Week, group: 10, bars: 52, tick: 10 },
];

impl Range {
    fn count(self) -> usize {
        self.group * self.bars
    }

    /// Returns the longer of two ranges.
    pub(crate) fn longer(self, other: Range) -> Range {
        let length = |range: Range| range.bar_seconds() * range.bars as u64;
        if length(other) > length(self) { other } else { self }
    }

    /// Forecasts expiry in the range, under the current rules or another default.
    pub(crate) fn forecast(
        self,
        engine: &Engine,
        owner: &Owner,
        default_ttl: Option<DefaultTtl>,
    ) -> engine::Result<Forecast> {
        match default_ttl {
            None => engine.forecast(owner, self.interval, self.count()),
            Some(ttl) => engine.forecast_if(owner, ttl, self.interval, self.count()),
        }
    }

    fn bar_seconds(self) -> u64 {
        self.interval.seconds() * self.group as u64
    }

    /// Returns the bars of a forecast; items that expire at once come first, if given.
    pub(crate) fn bars(self, forecast: &Forecast, at_once: Option<Tally>) -> Vec<Bar> {
        let from = forecast.now;
        let mut bars = Vec::with_capacity(self.bars + 1);
        bars.extend(at_once.map(|tally| Bar {
            label: "at once".to_owned(),
            tick: Some("now".to_owned()),
            tally,
            urgent: true,
        }));
        for (at, group) in forecast.intervals.chunks(self.group).enumerate() {
            let tally = group.iter().fold(Tally::default(), |sum, tally| sum.plus(*tally));
            let begins = at as u64 * self.bar_seconds();
            let start = from.plus_millis(begins * 1000);
            let label = format!(
                "{} to {} UTC",
                format::utc(start),
                format::utc(start.plus_millis(self.bar_seconds() * 1000))
            );
            let on_axis = at.is_multiple_of(self.tick) && (at > 0 || at_once.is_none());
            let tick = on_axis
                .then(|| if at == 0 { "now".to_owned() } else { format!("+{}", format::span(begins)) });
            bars.push(Bar { label, tick, tally, urgent: false });
        }
        bars
    }
}

/// Returns the requested range, or the shortest that shows most of the items that will expire.
pub(crate) fn forecast(
    engine: &Engine,
    owner: &Owner,
    wanted: Option<&str>,
    default_ttl: Option<DefaultTtl>,
) -> engine::Result<(Range, Forecast)> {
    let of = |range: Range| range.forecast(engine, owner, default_ttl);
    if let Some(range) = RANGES.iter().find(|range| Some(range.word) == wanted) {
        return Ok((*range, of(*range)?));
    }
    for range in RANGES {
        let forecast = of(range)?;
        let shown: u64 = forecast.intervals.iter().map(|tally| tally.items).sum();
        if (shown > 0 && shown >= forecast.later.items.saturating_mul(4)) || range == RANGES[RANGES.len() - 1]
        {
            let is_empty = shown == 0 && forecast.later.items == 0;
            return if is_empty { Ok((RANGES[0], of(RANGES[0])?)) } else { Ok((range, forecast)) };
        }
    }
    unreachable!("the last range is taken")
}

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let wanted = visit.query.filled("range").unwrap_or_default();
    let live = link(&owner, &format!("timeline/live?range={}", crate::fields::encode(wanted)));
    let inner = html! {
        div.timeline data-live=(live) data-every="2" { (figures(visit, &owner).await?) }
        @if visit.may_write() {
            form.row method="post" action=(link(&owner, "purge")) {
                (csrf(visit))
                button type="submit" { "Purge this container now" }
            }
        }
    };
    visit.show(&format!("Timeline of {}", owner.name()), Some(&owner), &inner).await
}

pub(crate) async fn live(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    Ok(Answer::Fragment(figures(visit, &owner).await?))
}

pub(crate) async fn purge(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let back = link(&owner, "timeline");
    if let Some(page) = purge::ask(visit, Some(owner.clone()), back).await? {
        return Ok(page);
    }
    purge::purge_now(visit, Some(owner.clone())).await?;
    Ok(Answer::See(link(&owner, "timeline?said=purged")))
}

async fn figures(visit: &Visit, owner: &Owner) -> Result<Markup, Fault> {
    let wanted = visit.query.filled("range").map(str::to_owned);
    let of = owner.clone();
    let ((range, forecast), purge, usage) = visit
        .engine(move |engine| {
            let forecast = forecast(engine, &of, wanted.as_deref(), None)?;
            Ok((forecast, engine.purge_figures(&of)?, engine.usage_of(&of)?))
        })
        .await?;
    let now = forecast.now;
    let expiring: u64 = forecast.intervals.iter().map(|tally| tally.items).sum();
    Ok(html! {
        section.card.chart data-now=(now.millis()) {
            div.row {
                h2 { "Expiry timeline" }
                nav.ranges aria-label="Range" {
                    @for choice in RANGES {
                        a href=(link(owner, &format!("timeline?range={}", choice.word)))
                            aria-current=[(choice == range).then_some("true")] { (choice.name) }
                    }
                }
            }
            (histogram(&format!("Items that expire in the next {}", range.name.to_lowercase()), &range.bars(&forecast, None)))
            p.legend {
                b { (format::items(expiring)) } " in this range"
                " · " b { (format::count(forecast.later.items)) } " later"
                " · " b { (format::count(forecast.never.items)) } " never"
                @if !forecast.exact { " · items under several rules are counted under each" }
            }
        }
        div.tiles {
            (tile("Living", &format::count(usage.living.items), &format::bytes(usage.living.bytes)))
            (tile("Backlog", &format::count(purge.backlog.items), &format::bytes(purge.backlog.bytes)))
            (tile("Oldest waits", &purge.oldest_expiry.map_or("–".to_owned(), |expired| format::span(now.millis_since(expired) / 1000)), "since its expiry"))
            div.tile {
                span.label { "Purged" }
                b data-rate=(purge.purged.items) { (format::count(purge.purged.items)) }
                span.faint.rate { (format::bytes(purge.purged.bytes)) }
            }
            (tile("Next expiry", &next_expiry(purge.next_due, now), "or step of the purge"))
        }
    })
}

fn next_expiry(due: Option<Time>, now: Time) -> String {
    due.map_or("none".to_owned(), |due| purge::next(due.millis_since(now)))
}
