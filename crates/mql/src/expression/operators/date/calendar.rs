//! The calendar: days and the parts of a date, by arithmetic alone.
//!
//! The proleptic Gregorian calendar without leap seconds, for all years that milliseconds in 64 bits reach. The year is
//! counted from March, so that the leap day is its last, in eras of 400 years.

pub(super) const SECOND: i64 = 1000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

const DAYS_PER_ERA: i64 = 146_097;
/// From the beginning of an era, 0000-03-01, to 1970-01-01.
const ERA_TO_1970: i64 = 719_468;

/// A moment of local time, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    /// Milliseconds since midnight.
    pub(super) time: i64,
}

impl Date {
    /// The parts of local milliseconds since 1970.
    pub(super) fn of(local: i64) -> Date {
        let (year, month, day) = date_of(local.div_euclid(DAY));
        Date { year, month, day, time: local.rem_euclid(DAY) }
    }

    /// Days since 1970.
    pub(super) fn days(self) -> i64 {
        days_of(self.year, self.month, self.day)
    }

    /// Local milliseconds since 1970, if they fit.
    pub(super) fn local(self) -> Option<i64> {
        // The first day of all begins before the first millisecond.
        i64::try_from(i128::from(self.days()) * i128::from(DAY) + i128::from(self.time)).ok()
    }

    /// The day of the week, Monday being 1 and Sunday 7.
    pub(super) fn iso_weekday(self) -> i64 {
        weekday(self.days())
    }

    /// The day of the year, beginning with 1.
    pub(super) fn day_of_year(self) -> i64 {
        self.days() - days_of(self.year, 1, 1) + 1
    }

    /// The week of the year, 0 to 53: weeks begin on Sunday, and what is before the first Sunday is week 0.
    pub(super) fn week(self) -> i64 {
        (self.day_of_year() + 6 - self.iso_weekday() % 7) / 7
    }

    /// The year and the week after ISO 8601: week 1 has the year's first Thursday.
    pub(super) fn iso_week(self) -> (i64, i64) {
        let thursday = self.days() + 4 - self.iso_weekday();
        let (year, ..) = date_of(thursday);
        (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
    }
}

/// The day of the week of days since 1970, Monday being 1 and Sunday 7.
pub(super) fn weekday(days: i64) -> i64 {
    // 1970-01-01 was a Thursday.
    (days + 3).rem_euclid(7) + 1
}

/// The days from 1970 to a day of a week after ISO 8601.
pub(super) fn days_of_iso_week(year: i64, week: i64, weekday_number: i64) -> i64 {
    // 4 January is always in week 1.
    let fourth = days_of(year, 1, 4);
    fourth - weekday(fourth) + (week - 1) * 7 + weekday_number
}

/// The days from 1970-01-01 to a date. The month may be past the year, the day past the month: both carry over.
pub(super) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let months = month - 1;
    let (year, month) = (year + months.div_euclid(12), months.rem_euclid(12) + 1);
    let year = if month <= 2 { year - 1 } else { year };
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * DAYS_PER_ERA + day_of_era - ERA_TO_1970 + day - 1
}

/// The year, month and day that many days after 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
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
pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    days_of(year, month + 1, 1) - days_of(year, month, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_follows_the_one_before() {
        let mut expected = (1895, 1, 1);
        for days in days_of(1895, 1, 1)..days_of(2305, 1, 1) {
            let (year, month, day) = expected;
            assert_eq!(date_of(days), expected);
            assert_eq!(days_of(year, month, day), days);
            expected = match (day < days_in_month(year, month), month) {
                (true, _) => (year, month, day + 1),
                (false, 12) => (year + 1, 1, 1),
                (false, _) => (year, month + 1, 1),
            };
        }
        assert_eq!(date_of(0), (1970, 1, 1));
    }

    #[test]
    fn weeks_and_years_as_iso_8601_has_them() {
        for (date, iso, week, weekday) in [
            ((2005, 1, 1), (2004, 53), 0, 6),
            ((2007, 12, 31), (2008, 1), 52, 1),
            ((2008, 12, 28), (2008, 52), 52, 7),
            ((2010, 1, 3), (2009, 53), 1, 7),
            ((2017, 1, 1), (2016, 52), 1, 7),
        ] {
            let (year, month, day) = date;
            let date = Date { year, month, day, time: 0 };
            assert_eq!((date.iso_week(), date.week(), date.iso_weekday()), (iso, week, weekday), "{date:?}");
            assert_eq!(days_of_iso_week(iso.0, iso.1, weekday), date.days());
        }
    }

    #[test]
    fn the_ends_of_time_have_parts() {
        for millis in [i64::MIN, i64::MAX, -1, 0] {
            assert_eq!(Date::of(millis).local(), Some(millis));
        }
    }
}
