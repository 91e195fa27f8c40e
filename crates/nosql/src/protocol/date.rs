//! RFC 1123 dates, the only kind a signature carries: `Thu, 27 Apr 2017 00:51:12 GMT`.
//!
//! Only this one form is read, as the service does; the two older HTTP date forms are refused. The weekday
//! must be a weekday's name but is not checked against the date: clients that get it wrong are harmless. The zone may also
//! be called `UTC`: the Go SDK names it so in `If-Modified-Since`.

use std::cell::RefCell;

use calendar::{MONTHS, WEEKDAYS, abbreviated, days_in_month, days_of, http_date};

const SECONDS_PER_DAY: u64 = 86_400;

/// The longest text that [`parse_again`] keeps.
const KEPT_BYTES: usize = 32;

thread_local! {
    /// The last text that was parsed, and its date.
    static LAST: RefCell<(String, u64)> = const { RefCell::new((String::new(), 0)) };
}

/// Parses as [`parse`] does, but returns the last result of this thread for the same text: most requests of one second have
/// the same date.
pub(crate) fn parse_again(text: &str) -> Option<u64> {
    LAST.with_borrow_mut(|(last, seconds)| {
        if text != last || text.is_empty() {
            let parsed = parse(text)?;
            if text.len() > KEPT_BYTES {
                return Some(parsed);
            }
            text.clone_into(last);
            *seconds = parsed;
        }
        Some(*seconds)
    })
}

/// Returns the Unix seconds of an RFC 1123 date, in any letter case; `None` if it is not one or lies before 1970.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let (weekday, rest) = text.trim().split_once(',')?;
    let rest = rest.strip_prefix(' ')?;
    position(&WEEKDAYS, weekday)?;
    let mut words = rest.split(' ');
    let day = i64::from(number(words.next()?, 1, 2)?);
    let month = position(&MONTHS, words.next()?)? as i64 + 1;
    let year = i64::from(number(words.next()?, 4, 4)?);
    let time = words.next()?;
    let zone = words.next()?;
    if !["gmt", "utc"].iter().any(|name| zone.eq_ignore_ascii_case(name)) || words.next().is_some() {
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
    let days = u64::try_from(days_of(year, month, day)).ok()?;
    Some(days * SECONDS_PER_DAY + u64::from(hour * 3600 + minute * 60 + second))
}

/// Formats the same date, for messages.
pub(crate) fn format(seconds: u64) -> String {
    http_date(seconds)
}

fn position(names: &[&str], name: &str) -> Option<usize> {
    names.iter().position(|candidate| abbreviated(candidate).eq_ignore_ascii_case(name))
}

fn number(text: &str, shortest: usize, longest: usize) -> Option<u32> {
    let digits = (shortest..=longest).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::{format, parse, parse_again};

    #[test]
    fn a_repeated_date_reads_the_same_and_no_other_one_does() {
        let texts = ["Thu, 27 Apr 2017 00:51:12 GMT", "Thu, 27 Apr 2017 00:51:13 GMT", "now", ""];
        let padded = format!("  {}  {}", texts[0], " ".repeat(20));
        for _ in 0..3 {
            for text in texts.into_iter().chain([padded.as_str()]) {
                for _ in 0..2 {
                    assert_eq!(parse_again(text), parse(text), "{text}");
                }
            }
        }
    }

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
        assert_eq!(format(u64::MAX), "Thu, 09 Nov 584554051223 07:00:15 GMT", "a time that was not meant");
        assert_eq!(parse("Thu, 1 Jan 1970 00:00:07 GMT"), Some(7), "one digit day");
        assert_eq!(parse("Thu, 27 Apr 2017 00:51:12 UTC"), Some(1_493_254_272), "as the Go SDK writes it");
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
