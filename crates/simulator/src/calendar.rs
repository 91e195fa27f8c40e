//! Dates as text, by the calendar's own rules, without the engine's code.

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the instant of a text like `2023-11-14T22:14:20.000Z`.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let years: u64 = (1970..year).map(days_of_year).sum();
    let days = years + (1..month).map(|month| days_of_month(year, month)).sum::<u64>() + day - 1;
    let seconds = days * 86_400 + number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    Some(seconds * 1000 + number(20, 23)?)
}

/// Returns the text of a second since 1970.
pub(crate) fn date_text(seconds: u64) -> String {
    let (mut days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut month) = (1970, 1);
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    while days >= days_of_month(year, month) {
        days -= days_of_month(year, month);
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.000Z", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_reads_and_writes_as_the_calendar_has_it() {
        assert_eq!(milliseconds("2023-11-14T22:13:20.007Z"), Some(1_700_000_000_007));
        for (text, seconds) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2024-02-29T00:00:00.000Z", 1_709_164_800),
            ("2023-11-14T22:13:20.000Z", 1_700_000_000),
        ] {
            assert_eq!((milliseconds(text), date_text(seconds).as_str()), (Some(seconds * 1000), text));
        }
    }
}
