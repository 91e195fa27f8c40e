//! Days and dates, by arithmetic alone.
//!
//! The proleptic Gregorian calendar, in which a day is a number: how many days it is after 1970-01-01. What a moment is made
//! of (milliseconds, ticks, zones) and which years there are differs between the APIs and is not decided here.
//!
//! Days become dates by the usual trick of letting the year begin in March: the leap day is then the last one, and the lengths
//! of the months before it follow one linear formula. Counting runs in eras of 400 years, which all have the same days.

const DAYS_PER_ERA: i64 = 146_097;
/// From 0000-03-01, the beginning of an era, to 1970-01-01.
const ERA_TO_1970: i64 = 719_468;

/// The day of a date. The month may be past the year, the day past the month: both carry over.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let months = month - 1;
    let (year, month) = (year + months.div_euclid(12), months.rem_euclid(12) + 1);
    let year = if month <= 2 { year - 1 } else { year };
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * DAYS_PER_ERA + day_of_era - ERA_TO_1970 + day - 1
}

/// The year, month and day of a day.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + ERA_TO_1970;
    let day_of_era = days.rem_euclid(DAYS_PER_ERA);
    // Leap days before this one, taken out, leave years of 365 days.
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / (DAYS_PER_ERA - 1);
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + days.div_euclid(DAYS_PER_ERA) * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

/// How many days a month has.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of the week of a day, Monday being 1 and Sunday 7.
pub fn weekday(days: i64) -> i64 {
    // 1970-01-01 was a Thursday.
    (days + 3).rem_euclid(7) + 1
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
