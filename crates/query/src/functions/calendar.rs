//! The calendar: days, ticks and the parts of a date, by arithmetic alone.
//!
//! A moment is a number of ticks, 100 nanoseconds each, since 1970-01-01T00:00:00Z. The calendar is the proleptic
//! Gregorian one in UTC, years 1 to 9999, without leap seconds: what the service prints with seven digits of a
//! second. Every function that could leave those years says so with `None`.
//!
//! Days become dates by the usual trick of letting the year begin in March: the leap day is then the last one, and
//! the lengths of the months before it follow one linear formula. Counting runs in eras of 400 years.

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

const DAYS_PER_ERA: i64 = 146_097;
/// From 0000-03-01, the beginning of an era, to 1970-01-01.
const ERA_TO_1970: i64 = 719_468;

/// A moment taken apart.
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
    /// The parts of a moment inside the calendar.
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

    /// The moment, if there is such a date and such a time of day.
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

    /// The day of the week, Sunday being 0.
    pub(crate) fn weekday(self) -> usize {
        // 1970-01-01 was a Thursday.
        (days_of(self.year, self.month, self.day) + 4).rem_euclid(7) as usize
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
    /// The part of that name or abbreviation, in letters of either case.
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

    /// How many nanoseconds the part lasts; none for months and years, which have no one length.
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

/// A moment `count` parts later. A day that the month reached does not have becomes that month's last day.
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

/// How many boundaries of the part lie between two moments; negative when the end comes first.
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

/// The days from 1970-01-01 to a date.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * DAYS_PER_ERA + day_of_era - ERA_TO_1970
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

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_calendar_follows_the_one_before() {
        let mut expected = (1, 1, 1);
        for days in FIRST.div_euclid(TICKS_PER_DAY)..=LAST.div_euclid(TICKS_PER_DAY) {
            assert_eq!(date_of(days), expected);
            let (year, month, day) = expected;
            assert_eq!(days_of(year, month, day), days);
            expected = if day < days_in_month(year, month) {
                (year, month, day + 1)
            } else if month < 12 {
                (year, month + 1, 1)
            } else {
                (year + 1, 1, 1)
            };
        }
        assert_eq!(expected, (10_000, 1, 1));
    }

    #[test]
    fn the_ends_of_the_calendar_are_its_first_and_last_tick() {
        assert_eq!(DateTime::of(FIRST).and_then(DateTime::ticks), Some(FIRST));
        assert_eq!(DateTime::of(LAST).and_then(DateTime::ticks), Some(LAST));
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
