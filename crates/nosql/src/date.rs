//! RFC 1123 dates, the only kind a signature carries: `Thu, 27 Apr 2017 00:51:12 GMT`.
//!
//! Only this one form is read, as the service does; the two older HTTP date forms are refused. The weekday
//! must be a weekday's name but is not checked against the date: clients that get it wrong are harmless.

const WEEKDAYS: [&str; 7] = ["thu", "fri", "sat", "sun", "mon", "tue", "wed"];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const SECONDS_PER_DAY: u64 = 86_400;

/// Unix seconds of an RFC 1123 date, any letter case; `None` if it is not one or lies before 1970.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let (weekday, rest) = text.trim().split_once(", ")?;
    position(&WEEKDAYS, weekday)?;
    let mut words = rest.split(' ');
    let day = number(words.next()?, 1, 2)?;
    let month = position(&MONTHS, words.next()?)? as u64 + 1;
    let year = number(words.next()?, 4, 4)?;
    let time = words.next()?;
    if !words.next()?.eq_ignore_ascii_case("gmt") || words.next().is_some() {
        return None;
    }
    let mut clock = time.split(':');
    let (hour, minute, second) =
        (number(clock.next()?, 2, 2)?, number(clock.next()?, 2, 2)?, number(clock.next()?, 2, 2)?);
    if clock.next().is_some() || hour > 23 || minute > 59 || second > 60 || year < 1970 {
        return None;
    }
    if day == 0 || day > days_in_month(year, month) {
        return None;
    }
    Some(days_before(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second)
}

/// The same date as text, for messages.
pub(crate) fn format(seconds: u64) -> String {
    let days = seconds / SECONDS_PER_DAY;
    let (mut year, mut left) = (1970, days);
    while left >= days_in_year(year) {
        left -= days_in_year(year);
        year += 1;
    }
    let mut month = 1;
    while left >= days_in_month(year, month) {
        left -= days_in_month(year, month);
        month += 1;
    }
    let second = seconds % SECONDS_PER_DAY;
    format!(
        "{}, {:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        capital(WEEKDAYS[(days % 7) as usize]),
        left + 1,
        capital(MONTHS[(month - 1) as usize]),
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn position(names: &[&str], name: &str) -> Option<usize> {
    names.iter().position(|candidate| candidate.eq_ignore_ascii_case(name))
}

fn number(text: &str, shortest: usize, longest: usize) -> Option<u64> {
    let digits = (shortest..=longest).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

fn capital(word: &str) -> String {
    let mut text = word.to_owned();
    text[..1].make_ascii_uppercase();
    text
}

fn leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in_year(year: u64) -> u64 {
    365 + u64::from(leap(year))
}

fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let past = year - 1;
    let leap_days = past / 4 - past / 100 + past / 400 - (1969 / 4 - 1969 / 100 + 1969 / 400);
    let months: u64 = (1..month).map(|earlier| days_in_month(year, earlier)).sum();
    (year - 1970) * 365 + leap_days + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::{format, parse};

    #[test]
    fn known_dates_read_and_print_back() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 27 Apr 2017 00:51:12 GMT", 1_493_254_272),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
            ("Fri, 31 Dec 2100 00:00:00 GMT", 4_133_894_400),
        ] {
            assert_eq!(parse(text), Some(seconds), "{text}");
            assert_eq!(parse(&text.to_lowercase()), Some(seconds), "{text} in lower case");
            assert_eq!(format(seconds), text);
        }
        assert_eq!(parse("Thu, 1 Jan 1970 00:00:07 GMT"), Some(7), "one digit day");
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "now",
            "1493254272",
            "Thursday, 27-Apr-17 00:51:12 GMT",
            "Thu Apr 27 00:51:12 2017",
            "Thu, 27 Apr 2017 00:51:12",
            "Thu, 27 Apr 2017 00:51:12 CET",
            "Thu, 27 Apr 2017 24:00:00 GMT",
            "Thu, 31 Apr 2017 00:00:00 GMT",
            "Wed, 29 Feb 2017 00:00:00 GMT",
            "Thu, 27 Apr 2017 00:51:12 GMT more",
            "Thu, 27 Apr 99999 00:51:12 GMT",
            "Thu, 01 Jan 1969 00:00:00 GMT",
            "Xyz, 27 Apr 2017 00:51:12 GMT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
