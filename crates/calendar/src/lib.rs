//! Days and dates by arithmetic alone, and the English names of months and weekdays.
//!
//! The proleptic Gregorian calendar, in which a day is a number: how many days it is after 1970-01-01. What a moment is made
//! of (milliseconds, ticks, zones) and which years are valid differs between the APIs and is not decided here.
//!
//! The conversion lets the year begin in March: the leap day is then the last day of the year, and the lengths of the months
//! before it follow one linear formula. Years are counted in eras of 400, all of which have the same number of days.

/// The English names of the months, January first.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The English names of the days of the week, in the order of [`weekday`]: Monday first.
pub const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01, the beginning of an era, to 1970-01-01.
const ERA_TO_1970: i64 = 719_468;

/// Returns the day number of a date. A month beyond 12 and a day beyond its month carry over.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let months = month - 1;
    let (year, month) = (year + months.div_euclid(12), months.rem_euclid(12) + 1);
    let year = if month <= 2 { year - 1 } else { year };
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * DAYS_PER_ERA + day_of_era - ERA_TO_1970 + day - 1
}

/// Returns the year, month and day of a day number.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + ERA_TO_1970;
    let day_of_era = days.rem_euclid(DAYS_PER_ERA);
    // Without the leap days before it, every year has 365 days.
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / (DAYS_PER_ERA - 1);
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + days.div_euclid(DAYS_PER_ERA) * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

/// Returns the number of days in a month.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the day of the week of a day number: Monday is 1, Sunday 7.
pub fn weekday(days: i64) -> i64 {
    // 1970-01-01 was a Thursday.
    (days + 3).rem_euclid(7) + 1
}

/// Returns the first three letters of the name of a month or weekday: `Jan`, `Mon`.
pub fn abbreviated(name: &str) -> &str {
    &name[..3]
}

/// Returns whether a text is the name of a month or weekday, whole or abbreviated, in any case.
pub fn is_name(text: &str, name: &str) -> bool {
    text.eq_ignore_ascii_case(name) || text.eq_ignore_ascii_case(abbreviated(name))
}

/// Formats seconds since 1970 as an HTTP date: `Thu, 27 Apr 2017 00:51:12 GMT`.
pub fn http_date(unix_seconds: u64) -> String {
    const SECONDS_PER_DAY: u64 = 86_400;
    let (days, second) = ((unix_seconds / SECONDS_PER_DAY) as i64, unix_seconds % SECONDS_PER_DAY);
    let (year, month, day) = date_of(days);
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        abbreviated(WEEKDAYS[weekday(days) as usize - 1]),
        abbreviated(MONTHS[month as usize - 1]),
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_follows_the_one_before() {
        let mut expected = (-401, 1, 1);
        let mut expected_weekday = weekday(days_of(-401, 1, 1));
        for days in days_of(-401, 1, 1)..days_of(10_000, 1, 1) {
            let (year, month, day) = expected;
            assert_eq!(date_of(days), expected);
            assert_eq!(days_of(year, month, day), days);
            assert_eq!(weekday(days), expected_weekday);
            expected = match (day < days_in_month(year, month), month) {
                (true, _) => (year, month, day + 1),
                (false, 12) => (year + 1, 1, 1),
                (false, _) => (year, month + 1, 1),
            };
            expected_weekday = expected_weekday % 7 + 1;
        }
        assert_eq!(expected, (10_000, 1, 1));
    }

    #[test]
    fn known_days_are_where_they_belong() {
        for (date, days, day_of_week) in [
            ((1970, 1, 1), 0, 4),
            ((1, 1, 1), -719_162, 1),
            ((1969, 12, 31), -1, 3),
            ((2000, 2, 29), 11_016, 2),
            ((9999, 12, 31), 2_932_896, 5),
        ] {
            let (year, month, day) = date;
            assert_eq!((days_of(year, month, day), weekday(days)), (days, day_of_week), "{date:?}");
        }
        assert_eq!([1900, 2000, 2023, 2024].map(|year| days_in_month(year, 2)), [28, 29, 28, 29]);
    }

    #[test]
    fn months_and_days_carry_over() {
        for (past, date) in [
            ((2023, 13, 1), (2024, 1, 1)),
            ((2024, 0, 31), (2023, 12, 31)),
            ((2024, -11, 1), (2023, 1, 1)),
            ((2024, 2, 30), (2024, 3, 1)),
            ((2024, 3, 0), (2024, 2, 29)),
        ] {
            assert_eq!(date_of(days_of(past.0, past.1, past.2)), date, "{past:?}");
        }
    }

    #[test]
    fn names_are_known_whole_and_abbreviated() {
        let named = |text: &str| MONTHS.iter().position(|name| is_name(text, name));
        assert_eq!(
            [named("august"), named("AUG"), named("au"), named("augu")],
            [Some(7), Some(7), None, None]
        );
        assert_eq!(WEEKDAYS.map(abbreviated), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]);
    }

    #[test]
    fn http_dates_are_those_of_the_calendar() {
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(1_794_778_449), "Sun, 15 Nov 2026 21:34:09 GMT");
    }

    /// The first and the last millisecond that 64 bits reach.
    #[test]
    fn the_ends_of_time_have_dates() {
        for millis in [i64::MIN, i64::MAX] {
            let days = millis.div_euclid(86_400_000);
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), days);
        }
    }
}
