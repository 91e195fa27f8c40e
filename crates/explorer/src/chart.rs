//! Histograms as SVG: drawn here, coloured by the stylesheet, read aloud by their titles.

use engine::Tally;
use maud::{Markup, html};

use crate::format;

const WIDTH: u64 = 960;
const HEIGHT: u64 = 220;
const LEFT: u64 = 56;
const BOTTOM: u64 = 26;
const TOP: u64 = 12;

/// A bar: its time, formatted, and its items.
pub(crate) struct Bar {
    pub(crate) label: String,
    /// The label on the axis; most bars have none.
    pub(crate) tick: Option<String>,
    pub(crate) tally: Tally,
    /// Whether it shows items that expire at once.
    pub(crate) urgent: bool,
}

/// Draws a histogram of items.
pub(crate) fn histogram(title: &str, bars: &[Bar]) -> Markup {
    let highest = bars.iter().map(|bar| bar.tally.items).max().unwrap_or(0);
    let top = nice(highest);
    let (plot_width, plot_height) = (WIDTH - LEFT - 8, HEIGHT - TOP - BOTTOM);
    let slots = bars.len().max(1) as u64;
    let x = |at: u64| LEFT + at * plot_width / slots;
    let floor = TOP + plot_height;
    let height = |items: u64| {
        let share = u128::from(items) * u128::from(plot_height) / u128::from(top.max(1));
        // Any nonzero value is visible.
        (share as u64).max(u64::from(items > 0) * 2)
    };
    html! {
        svg.histogram viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            title { (title) }
            @for part in 0..=4_u64 {
                @let y = floor - part * plot_height / 4;
                line.grid x1=(LEFT) x2=(WIDTH - 8) y1=(y) y2=(y) {}
                @if part == 0 || top >= 4 || part == 4 {
                    text.scale x=(LEFT - 8) y=(y + 4) text-anchor="end" { (short(top * part / 4)) }
                }
            }
            @for (at, bar) in bars.iter().enumerate() {
                @let at = at as u64;
                @let (from, to) = (x(at), x(at + 1));
                @let gap = u64::from(to - from > 4);
                @let tall = height(bar.tally.items);
                g.bar.urgent[bar.urgent].empty[bar.tally.items == 0] {
                    title { (bar.label) ": " (format::items(bar.tally.items)) ", " (format::bytes(bar.tally.bytes)) }
                    rect.hit x=(from) y=(TOP) width=(to - from) height=(plot_height) {}
                    rect.fill x=(from + gap) y=(floor - tall) width=((to - from).saturating_sub(2 * gap).max(1)) height=(tall) rx="2" {}
                }
                @if let Some(tick) = &bar.tick {
                    text.tick x=(from) y=(HEIGHT - 8) { (tick) }
                }
            }
        }
    }
}

/// Two parts of a whole, side by side: what stays, and what goes.
pub(crate) fn share(staying: u64, going: u64) -> Markup {
    let whole = u128::from(staying) + u128::from(going);
    let width = (u128::from(going) * u128::from(WIDTH)).checked_div(whole).unwrap_or(0) as u64;
    let width = width.max(u64::from(going > 0) * 3);
    html! {
        svg.share viewBox=(format!("0 0 {WIDTH} 18")) preserveAspectRatio="none" role="img"
            aria-label=(format!("{going} of {whole} go")) {
            rect.stays x="0" y="0" width=(WIDTH) height="18" rx="4" {}
            rect.goes x="0" y="0" width=(width) height="18" rx="4" {}
        }
    }
}

/// Returns a round number at or above another.
fn nice(number: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for step in [1, 2, 4, 8] {
            if unit.saturating_mul(step) >= number {
                return unit.saturating_mul(step);
            }
        }
        match unit.checked_mul(10) {
            Some(next) => unit = next,
            None => return u64::MAX,
        }
    }
}

/// `12k`, for an axis.
fn short(number: u64) -> String {
    match number {
        0..=9_999 => format::count(number),
        10_000..=999_999 => format!("{}k", number / 1000),
        _ => format!("{:.1}M", number as f64 / 1_000_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_height_fits_and_what_is_there_is_seen() {
        for highest in [0, 1, 3, 5, 9, 11, 100, 12_345, u64::MAX] {
            assert!(nice(highest) >= highest.max(1), "{highest}");
        }
        let bars: Vec<Bar> = [0, 1, 1_000_000]
            .into_iter()
            .map(|items| Bar {
                label: "<b>".to_owned(),
                tick: None,
                tally: Tally { items, bytes: items },
                urgent: false,
            })
            .collect();
        let drawn = histogram("t", &bars).0;
        assert_eq!(drawn.matches("rect class=\"fill\"").count(), 3);
        assert!(drawn.contains("height=\"2\""), "one item among a million is seen");
        assert!(!drawn.contains("<b>"));
    }
}
