//! Instants as ISO 8601 texts.

use calendar::{date_of, days_in_month, days_of};

const DAY_MILLIS: i64 = 86_400_000;

/// `1970-01-01T00:00:00.000Z`; the year has at least four digits and a sign where it needs one.
pub fn format_date(millis: i64) -> String {
    let (days, rest) = (millis.div_euclid(DAY_MILLIS), millis.rem_euclid(DAY_MILLIS));
    let (year, month, day) = date_of(days);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    let sign = if year < 0 { "-" } else { "" };
    let year = year.unsigned_abs();
    format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
}

/// Reads `YYYY-MM-DDTHH:MM:SS[.fff](Z|+HH[:]MM)`; digits past the millisecond are dropped.
pub fn parse_date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if !text.is_ascii() || bytes.len() < 20 {
        return None;
    }
    let number = |from: usize, digits: usize| -> Option<i64> {
        let part = text.get(from..from + digits)?;
        part.bytes().all(|digit| digit.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|(at, separator)| bytes[*at] != *separator) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    if !(1..=12).contains(&month)
        || day < 1
        || day > days_in_month(year, month)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let (millis, zone) = fraction(text.get(19..)?)?;
    let seconds = days_of(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1000 + millis - zone_minutes(zone)? * 60_000)
}

/// Returns the milliseconds behind the point, and what follows the digits.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(text) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 {
        return None;
    }
    let millis = text.bytes().take(end).chain(std::iter::repeat(b'0')).take(3);
    Some((millis.fold(0, |millis, digit| millis * 10 + i64::from(digit - b'0')), &text[end..]))
}

fn zone_minutes(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = zone[1..].chars().filter(|byte| *byte != ':').collect();
    if digits.len() != 4 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (digits[..2].parse().ok()?, digits[2..].parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(format_date(millis), text);
            assert_eq!(parse_date(text), Some(millis));
        }
        assert_eq!(parse_date("2012-12-24T12:15:30.5+0200"), Some(1_356_344_130_500));
        assert_eq!(parse_date("2012-12-24T12:15:30+02:00"), Some(1_356_344_130_000));
        assert!(format_date(i64::MIN).starts_with("-292275055-05-16"));
        assert!(format_date(i64::MAX).starts_with("292278994-08-17"));
    }

    #[test]
    fn wrong_dates_are_refused() {
        for text in [
            "",
            "2012-12-24",
            "2012-13-24T12:15:30Z",
            "2013-02-29T12:15:30Z",
            "2012-12-24T24:15:30Z",
            "2012-12-24T12:15:30",
            "2012-12-24T12:15:30.Z",
            "2012-12-24 12:15:30Z",
            "2012-12-24T12:15:30+2",
            "2012-12-24T12:15:30+99:99",
            "２012-12-24T12:15:30Z",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }
}
