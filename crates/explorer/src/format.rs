//! Numbers, sizes, times and spans as people read them.

use engine::DefaultTtl;
use maud::{Markup, html};
use storage::Time;

const UNITS: [(u64, &str); 5] = [(31_536_000, "y"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];

/// `12,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 item`, `2 items`.
pub(crate) fn items(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "item" } else { "items" })
}

/// `1.5 KiB`.
pub(crate) fn bytes(number: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let mut size = number as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(size < 100.0);
    format!("{size:.digits$} {}", units[unit])
}

/// `2 d 4 h`: the two largest units.
pub(crate) fn span(seconds: u64) -> String {
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (length, unit) in UNITS {
        if rest >= length {
            parts.push(format!("{} {unit}", count(rest / length)));
            rest %= length;
        } else if !parts.is_empty() {
            break;
        }
        if parts.len() == 2 {
            break;
        }
    }
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

/// `2026-11-15 18:30:05`.
pub(crate) fn utc(time: Time) -> String {
    let seconds = time.seconds();
    let (year, month, day) = calendar::date_of(i64::try_from(seconds / 86_400).unwrap_or(i64::MAX / 86_400));
    let of_day = seconds % 86_400;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// Formats a default time to live.
pub(crate) fn ttl(ttl: DefaultTtl) -> String {
    match ttl {
        DefaultTtl::Off => "off".to_owned(),
        DefaultTtl::Never => "own ttl only".to_owned(),
        DefaultTtl::Seconds(seconds) => span(seconds.into()),
    }
}

/// Shows the countdown of an item: the time left, and its share of the item's lifetime.
pub(crate) fn countdown(ts: u64, expiry: Option<Time>, held: bool, now: Time) -> Markup {
    let Some(expiry) = expiry else {
        return html! { span.countdown.never { @if held { "held" } @else { "never" } } };
    };
    let left = expiry.millis_since(now);
    let whole = expiry.millis_since(Time::from_seconds(ts)).max(left).max(1);
    html! {
        span.countdown data-expiry=(expiry.millis()) title=(format!("expires at {} UTC", utc(expiry))) {
            span.left { (span(left.div_ceil(1000))) }
            progress max=(whole) value=(left.min(whole)) aria-hidden="true" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_people_write_them() {
        let shown = [0, 999, 1000, 1_234_567].map(count);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 1023, 1024, 1536, 5 << 20, 200 << 30].map(bytes),
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "5.0 MiB", "200 GiB"]
        );
        assert_eq!(
            [0, 59, 60, 3661, 90_061, 31_536_000, 2_147_483_647].map(span),
            ["0 s", "59 s", "1 m", "1 h 1 m", "1 d 1 h", "1 y", "68 y 35 d"]
        );
        assert_eq!(utc(Time::from_seconds(1_763_231_405)), "2025-11-15 18:30:05");
    }
}
