//! The expiry timeline: who dies when, as rules and items stand; what waits for the purge, and how fast it goes.

use engine::{DefaultTtl, Engine, Forecast, Holder, Interval, Tally};
use maud::{Markup, html};
use storage::Time;

use crate::answer::{Answer, Fault};
use crate::chart::{Bar, histogram};
use crate::format;
use crate::layout::csrf;
use crate::pages::home::tile;
use crate::pages::purge;
use crate::visit::{Visit, link};

/// A stretch of time in bars: how many of the engine's intervals make one, and how many bars there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    word: &'static str,
    name: &'static str,
    interval: Interval,
    /// The engine's intervals in one bar.
    group: usize,
    bars: usize,
    /// Every so many bars stand on the axis.
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

    /// The one of two that goes further.
    pub(crate) fn longer(self, other: Range) -> Range {
        let length = |range: Range| range.bar_seconds() * range.bars as u64;
        if length(other) > length(self) { other } else { self }
    }

    /// Who dies in it, as rules stand or under another default.
    pub(crate) fn forecast(
        self,
        engine: &Engine,
        holder: &Holder,
        default_ttl: Option<DefaultTtl>,
    ) -> engine::Result<Forecast> {
        match default_ttl {
            None => engine.forecast(holder, self.interval, self.count()),
            Some(ttl) => engine.forecast_if(holder, ttl, self.interval, self.count()),
        }
    }

    fn bar_seconds(self) -> u64 {
        self.interval.seconds() * self.group as u64
    }

    /// What the bars of a forecast show; what dies at once comes first, if it is told.
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

/// The range that was asked for, or the shortest that shows most of those who will die.
pub(crate) fn forecast(
    engine: &Engine,
    holder: &Holder,
    wanted: Option<&str>,
    default_ttl: Option<DefaultTtl>,
) -> engine::Result<(Range, Forecast)> {
    let of = |range: Range| range.forecast(engine, holder, default_ttl);
    if let Some(range) = RANGES.iter().find(|range| Some(range.word) == wanted) {
        return Ok((*range, of(*range)?));
    }
    for range in RANGES {
        let forecast = of(range)?;
        let shown: u64 = forecast.intervals.iter().map(|tally| tally.items).sum();
        if (shown > 0 && shown >= forecast.later.items.saturating_mul(4)) || range == RANGES[RANGES.len() - 1]
        {
            let nobody = shown == 0 && forecast.later.items == 0;
            return if nobody { Ok((RANGES[0], of(RANGES[0])?)) } else { Ok((range, forecast)) };
        }
    }
    unreachable!("the last range is taken")
}

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let holder = visit.holder()?;
    let wanted = visit.query.filled("range").unwrap_or_default();
    let live = link(&holder, &format!("timeline/live?range={}", crate::fields::encode(wanted)));
    let inner = html! {
        div.timeline data-live=(live) data-every="2" { (figures(visit, &holder).await?) }
        @if visit.may_write() {
            form.row method="post" action=(link(&holder, "purge")) {
                (csrf(visit))
                button type="submit" { "Purge this container now" }
            }
        }
    };
    visit.show(&format!("Timeline of {}", holder.name()), Some(&holder), &inner).await
}

pub(crate) async fn live(visit: &Visit) -> Result<Answer, Fault> {
    let holder = visit.holder()?;
    Ok(Answer::Fragment(figures(visit, &holder).await?))
}

pub(crate) async fn purge(visit: &Visit) -> Result<Answer, Fault> {
    let holder = visit.holder()?;
    let back = link(&holder, "timeline");
    if let Some(page) = purge::ask(visit, Some(holder.clone()), back).await? {
        return Ok(page);
    }
    purge::purge_now(visit, Some(holder.clone())).await?;
    Ok(Answer::See(link(&holder, "timeline?said=purged")))
}

async fn figures(visit: &Visit, holder: &Holder) -> Result<Markup, Fault> {
    let wanted = visit.query.filled("range").map(str::to_owned);
    let of = holder.clone();
    let ((range, forecast), purge, usage) = visit
        .engine(move |engine| {
            let forecast = forecast(engine, &of, wanted.as_deref(), None)?;
            Ok((forecast, engine.purge_figures(&of)?, engine.usage_of(&of)?))
        })
        .await?;
    let now = forecast.now;
    let dying: u64 = forecast.intervals.iter().map(|tally| tally.items).sum();
    Ok(html! {
        section.card.chart data-now=(now.millis()) {
            div.row {
                h2 { "Expiry timeline" }
                nav.ranges aria-label="Range" {
                    @for choice in RANGES {
                        a href=(link(holder, &format!("timeline?range={}", choice.word)))
                            aria-current=[(choice == range).then_some("true")] { (choice.name) }
                    }
                }
            }
            (histogram(&format!("Items that die in the next {}", range.name.to_lowercase()), &range.bars(&forecast, None)))
            p.legend {
                b { (format::items(dying)) } " in this range"
                " · " b { (format::count(forecast.later.items)) } " later"
                " · " b { (format::count(forecast.never.items)) } " never"
                @if !forecast.exact { " · items under several rules are counted under each" }
            }
        }
        div.tiles {
            (tile("Living", &format::count(usage.living.items), &format::bytes(usage.living.bytes)))
            (tile("Backlog", &format::count(purge.backlog.items), &format::bytes(purge.backlog.bytes)))
            (tile("Oldest waits", &purge.oldest_death.map_or("–".to_owned(), |died| format::span(now.millis_since(died) / 1000)), "since its death"))
            div.tile {
                span.label { "Purged" }
                b data-rate=(purge.purged.items) { (format::count(purge.purged.items)) }
                span.faint.rate { (format::bytes(purge.purged.bytes)) }
            }
            (tile("Next death", &next_death(purge.next_due, now), "or look of the purge"))
        }
    })
}

fn next_death(due: Option<Time>, now: Time) -> String {
    due.map_or("none".to_owned(), |due| purge::next(due.millis_since(now)))
}
