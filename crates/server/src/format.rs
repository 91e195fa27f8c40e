//! Formats numbers for people: counts, sizes, times, tables. Scripts request JSON instead.

use std::fmt::Write;

/// Formats `1234567` as `1,234,567`.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count: `one thing`, `2 things`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Formats a size in the largest unit that leaves a digit before the point.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}

/// Formats a span in its two largest units.
pub(crate) fn span(seconds: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let mut text = String::new();
    let mut rest = seconds;
    for (name, length) in UNITS {
        if rest >= length && text.matches(' ').count() < 2 {
            let _ = write!(text, "{}{} {name}", if text.is_empty() { "" } else { " " }, rest / length);
            if text.matches(' ').count() >= 3 {
                break;
            }
            rest %= length;
        }
    }
    if text.is_empty() { "0 s".to_owned() } else { text }
}

/// Formats seconds since 1970 as a date.
pub(crate) fn date(seconds: u64) -> String {
    let days = i64::try_from(seconds / 86_400).unwrap_or(i64::MAX);
    let (year, month, day) = calendar::date_of(days);
    let of_day = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// The alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Formats rows under a head, each column as wide as its widest cell.
pub(crate) fn table(head: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(head[column].0.chars().count())
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let titles = head.iter().map(|(title, _)| (*title).to_owned()).collect();
    for row in std::iter::once(&titles).chain(rows) {
        let mut line = String::new();
        for ((cell, (_, lean)), width) in row.iter().zip(head).zip(&widths) {
            let gap = if line.is_empty() { "" } else { "  " };
            let _ = match lean {
                Align::Left => write!(line, "{gap}{cell:<width$}"),
                Align::Right => write!(line, "{gap}{cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_exact_enough() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "item"), counted(1000, "item")], ["1 item", "1,000 items"]);
        assert_eq!(
            [0, 1023, 1024, 1536, 1_048_575, 1_048_576, u64::MAX].map(bytes),
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "1.0 MiB", "16384.0 PiB"]
        );
        assert_eq!(
            [0, 59, 60, 61, 3600, 3661, 86_400, 90_061].map(span),
            ["0 s", "59 s", "1 min", "1 min 1 s", "1 h", "1 h 1 min", "1 d", "1 d 1 h"]
        );
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(1_795_611_917), "2026-11-25 13:05:17 UTC");
    }

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["long".to_owned(), "1,000".to_owned()]];
        let text = table(&[("name", Align::Left), ("n", Align::Right)], &rows);
        assert_eq!(text, "name      n\na         1\nlong  1,000\n");
    }
}
