//! Moments of the calendar: the parts of a date, weeks, and the units of milliseconds.
//!
//! The proleptic Gregorian calendar without leap seconds, for all years that milliseconds in 64 bits reach.

use ::calendar::{date_of, days_of, weekday};

pub(super) const SECOND: i64 = 1000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// A moment of local time, as its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    /// Milliseconds since midnight.
    pub(super) time: i64,
}

impl Date {
    /// Returns the parts of local milliseconds since 1970.
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

    /// Returns the day of the week, Monday being 1 and Sunday 7.
    pub(super) fn iso_weekday(self) -> i64 {
        weekday(self.days())
    }

    /// Returns the day of the year, beginning with 1.
    pub(super) fn day_of_year(self) -> i64 {
        self.days() - days_of(self.year, 1, 1) + 1
    }

    /// Returns the week of the year, 0 to 53: weeks begin on Sunday, and what is before the first Sunday is week 0.
    pub(super) fn week(self) -> i64 {
        (self.day_of_year() + 6 - self.iso_weekday() % 7) / 7
    }

    /// Returns the year and the week after ISO 8601: week 1 has the year's first Thursday.
    pub(super) fn iso_week(self) -> (i64, i64) {
        let thursday = self.days() + 4 - self.iso_weekday();
        let (year, ..) = date_of(thursday);
        (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
    }
}

/// Returns the days from 1970 to a day of a week after ISO 8601.
pub(super) fn days_of_iso_week(year: i64, week: i64, weekday_number: i64) -> i64 {
    // 4 January is always in week 1.
    let fourth = days_of(year, 1, 4);
    fourth - weekday(fourth) + (week - 1) * 7 + weekday_number
}

#[cfg(test)]
mod tests {
    use super::*;

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
