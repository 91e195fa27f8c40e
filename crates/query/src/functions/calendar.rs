//! Instants: ticks, the parts of a date, and conversion between them.
//!
//! An instant is a number of ticks, 100 nanoseconds each, since 1970-01-01T00:00:00Z. The calendar is the proleptic
//! Gregorian one in UTC, years 1 to 9999, without leap seconds: what the service prints with seven digits of a
//! second. A function whose result would leave those years returns `None`.

use ::calendar::{date_of, days_in_month, days_of, weekday};

pub(crate) const TICKS_PER_MICROSECOND: i64 = 10;
pub(crate) const TICKS_PER_MILLISECOND: i64 = 10_000;
pub(crate) const TICKS_PER_SECOND: i64 = 10_000_000;
pub(crate) const TICKS_PER_MINUTE: i64 = 60 * TICKS_PER_SECOND;
pub(crate) const TICKS_PER_HOUR: i64 = 60 * TICKS_PER_MINUTE;
pub(crate) const TICKS_PER_DAY: i64 = 24 * TICKS_PER_HOUR;
pub(crate) const NANOSECONDS_PER_TICK: i64 = 100;

/// The first moment of year 1.
pub(crate) const FIRST: i64 = -719_162 * TICKS_PER_DAY;
/// The last moment of year 9999.
pub(crate) const LAST: i64 = 2_932_897 * TICKS_PER_DAY - 1;

/// The parts of an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DateTime {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    /// Ticks into the second.
    pub(crate) fraction: i64,
}

impl DateTime {
    /// Returns the parts of an instant within the calendar.
    pub(crate) fn of(ticks: i64) -> Option<DateTime> {
        if !(FIRST..=LAST).contains(&ticks) {
            return None;
        }
        let (year, month, day) = date_of(ticks.div_euclid(TICKS_PER_DAY));
        let time = ticks.rem_euclid(TICKS_PER_DAY);
        Some(DateTime {
            year,
            month,
            day,
            hour: time / TICKS_PER_HOUR,
            minute: time / TICKS_PER_MINUTE % 60,
            second: time / TICKS_PER_SECOND % 60,
            fraction: time % TICKS_PER_SECOND,
        })
    }

    /// Returns the moment, if there is such a date and such a time of day.
    pub(crate) fn ticks(self) -> Option<i64> {
        let valid = (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
            && (0..TICKS_PER_SECOND).contains(&self.fraction);
        valid.then(|| {
            days_of(self.year, self.month, self.day) * TICKS_PER_DAY
                + self.hour * TICKS_PER_HOUR
                + self.minute * TICKS_PER_MINUTE
                + self.second * TICKS_PER_SECOND
                + self.fraction
        })
    }

    /// Returns the day of the week, Sunday being 0.
    pub(crate) fn weekday(self) -> usize {
        weekday(days_of(self.year, self.month, self.day)) as usize % 7
    }
}

/// A part of a date or a time that functions name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl Part {
    /// Returns the part of that name or abbreviation, in letters of either case.
    pub(crate) fn from_name(name: &str) -> Option<Part> {
        const NAMES: &[(Part, &[&str])] = &[
            (Part::Year, &["year", "yyyy", "yy"]),
            (Part::Month, &["month", "mm", "m"]),
            (Part::Day, &["day", "dd", "d"]),
            (Part::Hour, &["hour", "hh"]),
            (Part::Minute, &["minute", "mi", "n"]),
            (Part::Second, &["second", "ss", "s"]),
            (Part::Millisecond, &["millisecond", "ms"]),
            (Part::Microsecond, &["microsecond", "mcs"]),
            (Part::Nanosecond, &["nanosecond", "ns"]),
        ];
        let spelled = |spellings: &[&str]| spellings.iter().any(|known| known.eq_ignore_ascii_case(name));
        NAMES.iter().find(|(_, spellings)| spelled(spellings)).map(|(part, _)| *part)
    }

    /// Returns the number of nanoseconds the part lasts; none for months and years, which have no one length.
    pub(crate) fn nanoseconds(self) -> Option<i64> {
        let ticks = match self {
            Part::Year | Part::Month => return None,
            Part::Day => TICKS_PER_DAY,
            Part::Hour => TICKS_PER_HOUR,
            Part::Minute => TICKS_PER_MINUTE,
            Part::Second => TICKS_PER_SECOND,
            Part::Millisecond => TICKS_PER_MILLISECOND,
            Part::Microsecond => TICKS_PER_MICROSECOND,
            Part::Nanosecond => return Some(1),
        };
        Some(ticks * NANOSECONDS_PER_TICK)
    }
}

/// Returns a moment `count` parts later. A day that the month reached does not have becomes that month's last day.
pub(crate) fn add(ticks: i64, part: Part, count: i64) -> Option<i64> {
    let sum = match part.nanoseconds() {
        Some(length) => {
            let nanoseconds = i128::from(count) * i128::from(length);
            let moved = i128::from(ticks) + nanoseconds / i128::from(NANOSECONDS_PER_TICK);
            i64::try_from(moved).ok()?
        }
        None => add_months(ticks, if part == Part::Year { count.checked_mul(12)? } else { count })?,
    };
    (FIRST..=LAST).contains(&sum).then_some(sum)
}

fn add_months(ticks: i64, count: i64) -> Option<i64> {
    let mut date = DateTime::of(ticks)?;
    let months = (date.year * 12 + date.month - 1).checked_add(count)?;
    date.year = months.div_euclid(12);
    date.month = months.rem_euclid(12) + 1;
    if !(1..=9999).contains(&date.year) {
        return None;
    }
    date.day = date.day.min(days_in_month(date.year, date.month));
    date.ticks()
}

/// Returns how many boundaries of the part lie between two moments; negative when the end comes first.
pub(crate) fn difference(part: Part, start: i64, end: i64) -> Option<i128> {
    let Some(length) = part.nanoseconds() else {
        let (start, end) = (DateTime::of(start)?, DateTime::of(end)?);
        let years = end.year - start.year;
        let crossed = if part == Part::Year { years } else { years * 12 + end.month - start.month };
        return Some(crossed.into());
    };
    let since =
        |ticks: i64| (i128::from(ticks) * i128::from(NANOSECONDS_PER_TICK)).div_euclid(i128::from(length));
    Some(since(end) - since(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_calendar_are_its_first_and_last_tick() {
        assert_eq!(DateTime::of(FIRST).and_then(DateTime::ticks), Some(FIRST));
        assert_eq!(DateTime::of(LAST).and_then(DateTime::ticks), Some(LAST));
        assert_eq!(FIRST, days_of(1, 1, 1) * TICKS_PER_DAY);
        assert_eq!(LAST + 1, days_of(10_000, 1, 1) * TICKS_PER_DAY);
        assert_eq!(DateTime::of(FIRST - 1), None);
        assert_eq!(DateTime::of(LAST + 1), None);
        assert_eq!(DateTime::of(i64::MIN), None);
    }

    #[test]
    fn sums_that_leave_the_calendar_or_the_numbers_are_none() {
        for part in [Part::Year, Part::Month, Part::Day, Part::Second, Part::Microsecond] {
            assert_eq!(add(0, part, i64::MAX), None, "{part:?}");
            assert_eq!(add(0, part, i64::MIN), None, "{part:?}");
        }
        assert_eq!(add(LAST, Part::Microsecond, 1), None);
        assert_eq!(add(FIRST, Part::Month, -1), None);
    }
}
