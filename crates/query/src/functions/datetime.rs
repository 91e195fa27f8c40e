//! Functions of dates and times: text in ISO 8601, ticks of 100 nanoseconds, timestamps of milliseconds.
//!
//! Text is read in the forms that the service lists for `IS_DATETIME` and written in one,
//! `YYYY-MM-DDThh:mm:ss.fffffffZ`. Everything is UTC: a time with an offset, as clients store it that know one
//! (`1998-05-04T15:30:10+01:30`), is converted when it is read, and is no date to `IS_DATETIME`. The functions of
//! the current time give the request's time, the same for every item, so those with and without `STATIC` agree.
//! Ticks pass 2^53 for dates of our time; they stay exact because they never become doubles.

use document::Value;

use super::calendar::{self, DateTime, NANOSECONDS_PER_TICK, Part, TICKS_PER_MILLISECOND};
use super::datetime_format::format;
use super::{Arg, Entry, number, text};
use crate::functions::context::{Context, Fault};

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "AGO", least: 2, most: 2, run: ago },
    Entry { name: "DATETIMEADD", least: 3, most: 3, run: date_time_add },
    Entry { name: "DATETIMEBIN", least: 2, most: 4, run: date_time_bin },
    Entry { name: "DATETIMEDIFF", least: 3, most: 3, run: date_time_diff },
    Entry { name: "DATETIMEFORMAT", least: 2, most: 2, run: date_time_format },
    Entry { name: "DATETIMEFROMPARTS", least: 3, most: 7, run: date_time_from_parts },
    Entry { name: "DATETIMEPART", least: 2, most: 2, run: date_time_part },
    Entry { name: "DATETIMETOTICKS", least: 1, most: 1, run: |a, _| moment(a[0]).map(Value::Int) },
    Entry { name: "DATETIMETOTIMESTAMP", least: 1, most: 1, run: date_time_to_timestamp },
    Entry { name: "DAY", least: 1, most: 1, run: |a, _| part_of(Part::Day, moment(a[0])?) },
    Entry { name: "GETCURRENTDATETIME", least: 0, most: 0, run: |_, ctx| written(now(ctx)?) },
    Entry { name: "GETCURRENTDATETIMESTATIC", least: 0, most: 0, run: |_, ctx| written(now(ctx)?) },
    Entry { name: "GETCURRENTTICKS", least: 0, most: 0, run: |_, ctx| now(ctx).map(Value::Int) },
    Entry { name: "GETCURRENTTICKSSTATIC", least: 0, most: 0, run: |_, ctx| now(ctx).map(Value::Int) },
    Entry { name: "GETCURRENTTIMESTAMP", least: 0, most: 0, run: |_, ctx| number(ctx.now_millis as f64) },
    Entry {
        name: "GETCURRENTTIMESTAMPSTATIC",
        least: 0,
        most: 0,
        run: |_, ctx| number(ctx.now_millis as f64),
    },
    Entry { name: "MONTH", least: 1, most: 1, run: |a, _| part_of(Part::Month, moment(a[0])?) },
    Entry { name: "NOW", least: 0, most: 2, run: now_shifted },
    Entry { name: "TICKSTODATETIME", least: 1, most: 1, run: |a, _| written(a[0]?.as_i64()?) },
    Entry { name: "TIMESTAMPTODATETIME", least: 1, most: 1, run: timestamp_to_date_time },
    Entry { name: "YEAR", least: 1, most: 1, run: |a, _| part_of(Part::Year, moment(a[0])?) },
];

/// The longest text that a format may give.
const FORMATTED_BYTES: usize = 64 * 1024;

/// The earliest start of a bin of `DATETIMEBIN`: 1601-01-01.
const EARLIEST_BIN: i64 = -134_774 * calendar::TICKS_PER_DAY;

/// Reads a date or a date and time: `YYYY-MM-DD`, optionally `T` or a space and `hh:mm:ss`, optionally `.` and one
/// to seven digits, optionally `Z`. Gives ticks since 1970.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let bytes = bytes.strip_suffix(b"Z").unwrap_or(bytes);
    let (date, time) = bytes.split_at_checked(10)?;
    let mut parsed = DateTime {
        year: digits(&date[..4])?,
        month: digits(&date[5..7])?,
        day: digits(&date[8..])?,
        hour: 0,
        minute: 0,
        second: 0,
        fraction: 0,
    };
    if date[4] != b'-' || date[7] != b'-' {
        return None;
    }
    if !time.is_empty() {
        let (clock, fraction) = time.split_at_checked(9)?;
        if !matches!(clock[0], b'T' | b' ') || clock[3] != b':' || clock[6] != b':' {
            return None;
        }
        parsed.hour = digits(&clock[1..3])?;
        parsed.minute = digits(&clock[4..6])?;
        parsed.second = digits(&clock[7..])?;
        parsed.fraction = read_fraction(fraction)?;
    }
    parsed.ticks()
}

/// Reads what [`parse`] reads, and a time with an offset from UTC in place of the `Z`. Gives ticks since 1970.
fn parse_with_offset(text: &str) -> Option<i64> {
    let Some((local, minutes)) = split_offset(text) else { return parse(text) };
    let ticks = parse(local)? - minutes * calendar::TICKS_PER_MINUTE;
    (calendar::FIRST..=calendar::LAST).contains(&ticks).then_some(ticks)
}

/// Returns the time before `+hh:mm` or `-hh:mm`, and the offset in minutes.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    const SHORTEST: usize = "YYYY-MM-DDThh:mm:ss".len();
    let (local, offset) = text.split_at_checked(text.len().checked_sub("+hh:mm".len())?)?;
    let [sign, hours @ .., b':', _, _] = offset.as_bytes() else { return None };
    let (hours, minutes) = (digits(hours)?, digits(&offset.as_bytes()[4..])?);
    if local.len() < SHORTEST || local.ends_with('Z') || hours > 23 || minutes > 59 {
        return None;
    }
    match sign {
        b'+' => Some((local, hours * 60 + minutes)),
        b'-' => Some((local, -(hours * 60 + minutes))),
        _ => None,
    }
}

fn read_fraction(text: &[u8]) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let decimals = text.strip_prefix(b".")?;
    if !(1..=7).contains(&decimals.len()) {
        return None;
    }
    Some(digits(decimals)? * 10_i64.pow(7 - decimals.len() as u32))
}

/// Returns at most seven decimal digits as a number.
fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// Writes ticks as `YYYY-MM-DDThh:mm:ss.fffffffZ`; `None` outside the years 1 to 9999.
pub(crate) fn write(ticks: i64) -> Option<String> {
    let DateTime { year, month, day, hour, minute, second, fraction } = DateTime::of(ticks)?;
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z"))
}

fn written(ticks: i64) -> Option<Value> {
    write(ticks).map(Value::String)
}

fn moment(argument: Arg<'_>) -> Option<i64> {
    parse_with_offset(text(argument)?)
}

fn part(argument: Arg<'_>) -> Option<Part> {
    Part::from_name(text(argument)?)
}

fn now(ctx: &Context) -> Option<i64> {
    i64::try_from(ctx.now_millis).ok()?.checked_mul(TICKS_PER_MILLISECOND)
}

fn ago(arguments: &[Arg<'_>], ctx: &Context) -> Option<Value> {
    let count = arguments[1]?.as_i64()?.checked_neg()?;
    written(calendar::add(now(ctx)?, part(arguments[0])?, count)?)
}

fn now_shifted(arguments: &[Arg<'_>], ctx: &Context) -> Option<Value> {
    match arguments {
        [] => written(now(ctx)?),
        [unit, count] => written(calendar::add(now(ctx)?, part(*unit)?, (*count)?.as_i64()?)?),
        _ => None,
    }
}

fn date_time_add(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    let (unit, count) = (part(arguments[0])?, arguments[1]?.as_i64()?);
    written(calendar::add(moment(arguments[2])?, unit, count)?)
}

/// Rounds down to the beginning of a bin, counted from 1970 or from where the caller says. Months and years have no
/// fixed length and are not supported.
fn date_time_bin(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    let ticks = i128::from(moment(arguments[0])?);
    let length = part(arguments[1])?.nanoseconds()?;
    let count = arguments.get(2).map_or(Some(1), |count| (*count)?.as_i64())?;
    let origin = arguments.get(3).map_or(Some(0), |origin| moment(*origin))?;
    if count <= 0 || origin < EARLIEST_BIN {
        return None;
    }
    let per_tick = i128::from(NANOSECONDS_PER_TICK);
    let size = i128::from(length) * i128::from(count);
    let into_bin = ((ticks - i128::from(origin)) * per_tick).rem_euclid(size);
    written(i64::try_from((ticks * per_tick - into_bin).div_euclid(per_tick)).ok()?)
}

fn date_time_diff(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    let (start, end) = (moment(arguments[1])?, moment(arguments[2])?);
    let crossed = calendar::difference(part(arguments[0])?, start, end)?;
    i64::try_from(crossed).ok().map(Value::Int).or_else(|| number(crossed as f64))
}

fn date_time_format(arguments: &[Arg<'_>], ctx: &Context) -> Option<Value> {
    let (ticks, pattern) = (moment(arguments[0])?, text(arguments[1])?);
    if !ctx.spend(pattern.len() as u64 / 64 + 1) {
        return None;
    }
    let formatted = format(DateTime::of(ticks)?, pattern, FORMATTED_BYTES)?;
    if formatted.len() > FORMATTED_BYTES {
        ctx.fail(Fault::OutOfMemory { what: "the text of a date", limit: FORMATTED_BYTES });
        return None;
    }
    Some(Value::String(formatted))
}

fn date_time_from_parts(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    // Missing parts are zero; given ones must be whole numbers.
    let given = |index: usize| arguments.get(index).map_or(Some(0), |part| (*part)?.as_i64());
    let date = DateTime {
        year: given(0)?,
        month: given(1)?,
        day: given(2)?,
        hour: given(3)?,
        minute: given(4)?,
        second: given(5)?,
        fraction: given(6)?,
    };
    written(date.ticks()?)
}

fn date_time_part(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    part_of(part(arguments[0])?, moment(arguments[1])?)
}

fn part_of(part: Part, ticks: i64) -> Option<Value> {
    let date = DateTime::of(ticks)?;
    Some(Value::Int(match part {
        Part::Year => date.year,
        Part::Month => date.month,
        Part::Day => date.day,
        Part::Hour => date.hour,
        Part::Minute => date.minute,
        Part::Second => date.second,
        Part::Millisecond => date.fraction / TICKS_PER_MILLISECOND,
        Part::Microsecond => date.fraction / calendar::TICKS_PER_MICROSECOND,
        Part::Nanosecond => date.fraction * NANOSECONDS_PER_TICK,
    }))
}

/// Milliseconds since 1970; the fraction of a millisecond is truncated towards the past.
fn date_time_to_timestamp(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    Some(Value::Int(moment(arguments[0])?.div_euclid(TICKS_PER_MILLISECOND)))
}

fn timestamp_to_date_time(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    written(arguments[0]?.as_i64()?.checked_mul(TICKS_PER_MILLISECOND)?)
}

#[cfg(test)]
mod tests {
    use super::super::calendar::{FIRST, LAST, TICKS_PER_SECOND};
    use super::super::testing::check;
    use super::*;

    #[test]
    fn the_listed_forms_of_dates_are_read_and_no_others() {
        let noon = 14_320_368_000_000_000;
        for (given, ticks) in [
            ("1970-01-01", 0),
            ("1970-01-01Z", 0),
            ("2015-05-19T12:00:00", noon),
            ("2015-05-19 12:00:00", noon),
            ("2015-05-19 12:00:00Z", noon),
            ("2015-05-19T12:00:00.5", noon + TICKS_PER_SECOND / 2),
            ("2015-05-19T12:00:00.0000001Z", noon + 1),
            ("1969-12-31T23:59:59.9999999Z", -1),
            ("1601-01-01", EARLIEST_BIN),
            ("0001-01-01T00:00:00.0000000Z", FIRST),
            ("9999-12-31T23:59:59.9999999Z", LAST),
        ] {
            assert_eq!(parse(given), Some(ticks), "{given}");
        }
        for given in [
            "",
            "Z",
            "2015",
            "2015-05",
            "2015-05-1",
            "2015-5-19",
            "15-05-19",
            "2015/05/19",
            "+015-05-19",
            "0000-01-01",
            "2015-00-10",
            "2015-13-10",
            "2015-05-32",
            "2015-02-29",
            "1900-02-29",
            "2015-05-19T",
            "2015-05-19T12",
            "2015-05-19T12:00",
            "2015-05-19t12:00:00",
            "2015-05-19_12:00:00",
            "2015-05-19T24:00:00",
            "2015-05-19T12:60:00",
            "2015-05-19T12:00:60",
            "2015-05-19T12:00:00.",
            "2015-05-19T12:00:00.12345678",
            "2015-05-19T12:00:00,5",
            "2015-05-19T12:00:00ZZ",
            "2015-05-19T12:00:00+00:00",
            "2015-05-19T12:00:00z",
            " 2015-05-19",
            "2015-05-19é",
            "２015-05-19",
        ] {
            assert_eq!(parse(given), None, "{given}");
        }
    }

    #[test]
    fn times_with_an_offset_become_utc() {
        check(&[
            ("DATETIMEPART", r#""yyyy", "1998-05-04T15:30:10.1234564+01:30""#, "1998"),
            ("DATETIMEPART", r#""mm", "1998-05-04T15:30:10.1234564+01:30""#, "5"),
            ("DATETIMEPART", r#""dd", "1998-05-04T15:30:10.1234564+01:30""#, "4"),
            ("DATETIMEPART", r#""hh", "1998-05-04T15:30:10.1234564+01:30""#, "14"),
            ("DATETIMEPART", r#""mi", "1998-05-04T15:30:10.1234564+01:30""#, "0"),
            ("DATETIMEPART", r#""ss", "1998-05-04T15:30:10.1234564+01:30""#, "10"),
            ("DATETIMEPART", r#""ms", "1998-05-04T15:30:10.1234564+01:30""#, "123"),
            ("DATETIMEPART", r#""mcs", "1998-05-04T15:30:10.1234564+01:30""#, "123456"),
            ("DATETIMEPART", r#""ns", "1998-05-04T15:30:10.1234564+01:30""#, "123456400"),
            ("DAY", r#""1998-05-04T23:30:10-01:00""#, "5"),
            ("YEAR", r#""1998-01-01T00:30:00+00:31""#, "1997"),
            ("DATETIMEADD", r#""hh", 1, "1998-05-04 15:30:10+00:00""#, r#""1998-05-04T16:30:10.0000000Z""#),
            ("DATETIMETOTICKS", r#""1970-01-01T01:00:00+01:00""#, "0"),
            ("DATETIMEDIFF", r#""mi", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00-00:30""#, "30"),
            ("YEAR", r#""0001-01-01T00:00:00+00:01""#, "undefined"),
            ("YEAR", r#""9999-12-31T23:59:59-00:01""#, "undefined"),
            ("YEAR", r#""1998-05-04+01:30""#, "undefined"),
            ("YEAR", r#""1998-05-04T15:30+01:30""#, "undefined"),
            ("YEAR", r#""1998-05-04T15:30:10Z+01:30""#, "undefined"),
            ("YEAR", r#""1998-05-04T15:30:10+0130""#, "undefined"),
            ("YEAR", r#""1998-05-04T15:30:10+24:00""#, "undefined"),
            ("YEAR", r#""1998-05-04T15:30:10+01:60""#, "undefined"),
            ("YEAR", r#""1998-05-04T15:30:10*01:30""#, "undefined"),
            ("YEAR", r#""1998-05-04T15:30:10é1:30""#, "undefined"),
            ("IS_DATETIME", r#""1998-05-04T15:30:10+01:30""#, "false"),
        ]);
    }

    #[test]
    fn what_is_written_reads_as_it_was() {
        for ticks in [FIRST, EARLIEST_BIN, -1, 0, 1, 17_289_156_306_660_001, LAST] {
            assert_eq!(write(ticks).as_deref().and_then(parse), Some(ticks));
        }
        assert_eq!(write(LAST + 1), None);
    }

    #[test]
    fn arithmetic_on_dates() {
        check(&[
            (
                "DATETIMEADD",
                r#""yyyy", 1, "2020-07-03T00:00:00.0000000""#,
                r#""2021-07-03T00:00:00.0000000Z""#,
            ),
            ("DATETIMEADD", r#""mm", -1, "2020-07-03""#, r#""2020-06-03T00:00:00.0000000Z""#),
            ("DATETIMEADD", r#""ss", -25, "2020-07-03""#, r#""2020-07-02T23:59:35.0000000Z""#),
            ("DATETIMEADD", r#""month", 1, "2020-01-31T10:00:00Z""#, r#""2020-02-29T10:00:00.0000000Z""#),
            ("DATETIMEADD", r#""year", 1, "2020-02-29""#, r#""2021-02-28T00:00:00.0000000Z""#),
            ("DATETIMEADD", r#""d", 366, "2000-01-01""#, r#""2001-01-01T00:00:00.0000000Z""#),
            ("DATETIMEADD", r#""ns", 250, "2020-07-03""#, r#""2020-07-03T00:00:00.0000002Z""#),
            ("DATETIMEADD", r#""ns", -250, "2020-07-03""#, r#""2020-07-02T23:59:59.9999998Z""#),
            ("DATETIMEADD", r#""mcs", 1.0, "2020-07-03""#, r#""2020-07-03T00:00:00.0000010Z""#),
            ("DATETIMEADD", r#""yyyy", 1, "9999-01-01""#, "undefined"),
            ("DATETIMEADD", r#""d", -1, "0001-01-01""#, "undefined"),
            ("DATETIMEADD", r#""hh", 1.5, "2020-07-03""#, "undefined"),
            ("DATETIMEADD", r#""week", 1, "2020-07-03""#, "undefined"),
            ("DATETIMEADD", r#""yyyy", "1", "2020-07-03""#, "undefined"),
            ("DATETIMEADD", r#""yyyy", 1, undefined"#, "undefined"),
            ("DATETIMEADD", r#""yyyy", 9223372036854775807, "2020-07-03""#, "undefined"),
            ("DATETIMEDIFF", r#""day", "2020-01-01T01:02:03.1234527Z", "2020-01-03T01:02:03.1234567Z""#, "2"),
            (
                "DATETIMEDIFF",
                r#""yyyy", "2028-01-01T01:02:03.1234527Z", "2020-01-03T01:02:03.1234567Z""#,
                "-8",
            ),
            ("DATETIMEDIFF", r#""hh", "2020-01-01T01:00:00.1234527Z", "2020-01-01T01:59:59.1234567Z""#, "0"),
            ("DATETIMEDIFF", r#""hh", "2020-01-01T01:59:59", "2020-01-01T02:00:00""#, "1"),
            ("DATETIMEDIFF", r#""mm", "2019-02-04T16:00:00", "2018-03-05T05:00:00""#, "-11"),
            ("DATETIMEDIFF", r#""hh", "2019-02-04T16:00:00", "2018-03-05T05:00:00""#, "-8075"),
            ("DATETIMEDIFF", r#""ss", "2018-03-05T05:00:00", "2019-02-04T16:00:00""#, "29070000"),
            ("DATETIMEDIFF", r#""dd", "1969-12-31T23:00:00", "1970-01-01T01:00:00""#, "1"),
            ("DATETIMEDIFF", r#""ns", "2020-01-01", "2020-01-01T00:00:00.0000001""#, "100"),
            ("DATETIMEDIFF", r#""ns", "0001-01-01", "9999-12-31""#, "3.155378112e20"),
            ("DATETIMEDIFF", r#""dd", 1, "2020-01-01""#, "undefined"),
            ("DATETIMEBIN", r#""2021-01-08T18:35:00.0000000", "dd""#, r#""2021-01-08T00:00:00.0000000Z""#),
            ("DATETIMEBIN", r#""2021-01-08T18:35:00.0000000", "hh", 5"#, r#""2021-01-08T15:00:00.0000000Z""#),
            ("DATETIMEBIN", r#""2021-01-08T18:35:00.0000000", "dd", 7"#, r#""2021-01-07T00:00:00.0000000Z""#),
            (
                "DATETIMEBIN",
                r#""2021-01-08T18:35:00.0000000", "dd", 7, "1601-01-01T00:00:00.0000000""#,
                r#""2021-01-04T00:00:00.0000000Z""#,
            ),
            ("DATETIMEBIN", r#""1969-12-31T23:59:59", "hh""#, r#""1969-12-31T23:00:00.0000000Z""#),
            (
                "DATETIMEBIN",
                r#""1970-01-01T00:00:00.0000009", "ns", 250"#,
                r#""1970-01-01T00:00:00.0000007Z""#,
            ),
            ("DATETIMEBIN", r#""2021-01-08", "mm""#, "undefined"),
            ("DATETIMEBIN", r#""2021-01-08", "dd", 0"#, "undefined"),
            ("DATETIMEBIN", r#""2021-01-08", "dd", -1"#, "undefined"),
            ("DATETIMEBIN", r#""2021-01-08", "dd", 1.5"#, "undefined"),
            ("DATETIMEBIN", r#""2021-01-08", "dd", undefined"#, "undefined"),
            ("DATETIMEBIN", r#""2021-01-08", "dd", 1, "1600-12-31""#, "undefined"),
            ("DATETIMEBIN", r#""0001-01-01", "dd", 9223372036854775807"#, "undefined"),
        ]);
    }

    #[test]
    fn parts_of_dates_and_dates_of_parts() {
        check(&[
            ("DATETIMEPART", r#""yyyy", "2016-05-29T08:30:00.1301617""#, "2016"),
            ("DATETIMEPART", r#""Month", "2016-05-29T08:30:00.1301617""#, "5"),
            ("DATETIMEPART", r#""mi", "2016-05-29T08:30:00.1301617""#, "30"),
            ("DATETIMEPART", r#""ms", "2016-05-29T08:30:00.1301617""#, "130"),
            ("DATETIMEPART", r#""mcs", "2016-05-29T08:30:00.1301617""#, "130161"),
            ("DATETIMEPART", r#""ns", "2016-05-29T08:30:00.1301617""#, "130161700"),
            ("DATETIMEPART", r#""hh", "1969-12-31T23:00:00""#, "23"),
            ("DATETIMEPART", r#""", "2016-05-29""#, "undefined"),
            ("DATETIMEPART", r#""yyyy", "yesterday""#, "undefined"),
            ("DAY", r#""1989-03-03T12:12:12.1234567Z""#, "3"),
            ("MONTH", r#""2000-12-12T10:00:00""#, "12"),
            ("YEAR", r#""0001-01-01""#, "1"),
            ("YEAR", r#""9999-12-31""#, "9999"),
            ("YEAR", "2024", "undefined"),
            ("DATETIMEFROMPARTS", "2017, 4, 20", r#""2017-04-20T00:00:00.0000000Z""#),
            ("DATETIMEFROMPARTS", "2017, 4, 20, 13, 15, 20, 3456789", r#""2017-04-20T13:15:20.3456789Z""#),
            ("DATETIMEFROMPARTS", "2017, 4, 20, 13, 15", r#""2017-04-20T13:15:00.0000000Z""#),
            ("DATETIMEFROMPARTS", "2000, 2, 29", r#""2000-02-29T00:00:00.0000000Z""#),
            ("DATETIMEFROMPARTS", "1900, 2, 29", "undefined"),
            ("DATETIMEFROMPARTS", "-2000, -1, -1", "undefined"),
            ("DATETIMEFROMPARTS", "2017, 4, 20, 24", "undefined"),
            ("DATETIMEFROMPARTS", "2017, 4, 20, 0, 0, 0, 10000000", "undefined"),
            ("DATETIMEFROMPARTS", "2017, 4.5, 20", "undefined"),
            ("DATETIMEFROMPARTS", "2017, 4, undefined", "undefined"),
        ]);
    }

    #[test]
    fn ticks_and_timestamps() {
        check(&[
            ("DATETIMETOTICKS", r#""2015-05-19T12:00:00.0000000""#, "14320368000000000"),
            ("DATETIMETOTICKS", r#""9999-12-31T23:59:59.9999999Z""#, "2534023007999999999"),
            ("DATETIMETOTICKS", r#""0001-01-01""#, "-621355968000000000"),
            ("DATETIMETOTICKS", "null", "undefined"),
            ("TICKSTODATETIME", "15943368134575530", r#""2020-07-09T23:20:13.4575530Z""#),
            ("TICKSTODATETIME", "-1", r#""1969-12-31T23:59:59.9999999Z""#),
            ("TICKSTODATETIME", "2534023007999999999", r#""9999-12-31T23:59:59.9999999Z""#),
            ("TICKSTODATETIME", "2534023008000000000", "undefined"),
            ("TICKSTODATETIME", "0.5", "undefined"),
            ("TICKSTODATETIME", r#""0""#, "undefined"),
            ("DATETIMETOTIMESTAMP", r#""2015-05-19T12:00:00.0000000""#, "1432036800000"),
            ("DATETIMETOTIMESTAMP", r#""2020-07-09T23:20:13.4575530Z""#, "1594336813457"),
            ("DATETIMETOTIMESTAMP", r#""1969-12-31T23:59:59.9999Z""#, "-1"),
            ("DATETIMETOTIMESTAMP", "undefined", "undefined"),
            ("TIMESTAMPTODATETIME", "1597360794300", r#""2020-08-13T23:19:54.3000000Z""#),
            ("TIMESTAMPTODATETIME", "0", r#""1970-01-01T00:00:00.0000000Z""#),
            ("TIMESTAMPTODATETIME", "-11644473600000", r#""1601-01-01T00:00:00.0000000Z""#),
            ("TIMESTAMPTODATETIME", "9223372036854775807", "undefined"),
            ("TIMESTAMPTODATETIME", "1e300", "undefined"),
        ]);
    }

    #[test]
    fn the_current_time_is_the_requests() {
        check(&[
            ("GETCURRENTDATETIME", "", r#""2024-10-14T14:20:30.6660000Z""#),
            ("GETCURRENTDATETIMESTATIC", "", r#""2024-10-14T14:20:30.6660000Z""#),
            ("GETCURRENTTICKS", "", "17289156306660000"),
            ("GETCURRENTTICKSSTATIC", "", "17289156306660000"),
            ("GETCURRENTTIMESTAMP", "", "1728915630666"),
            ("GETCURRENTTIMESTAMPSTATIC", "", "1728915630666"),
            ("NOW", "", r#""2024-10-14T14:20:30.6660000Z""#),
            ("NOW", r#""yyyy", -1"#, r#""2023-10-14T14:20:30.6660000Z""#),
            ("NOW", r#""ms", 4"#, r#""2024-10-14T14:20:30.6700000Z""#),
            ("NOW", r#""yyyy""#, "undefined"),
            ("NOW", r#""ms", "4""#, "undefined"),
            ("AGO", r#""yyyy", 1"#, r#""2023-10-14T14:20:30.6660000Z""#),
            ("AGO", r#""yyyy", -1"#, r#""2025-10-14T14:20:30.6660000Z""#),
            ("AGO", r#""ss", 30"#, r#""2024-10-14T14:20:00.6660000Z""#),
            ("AGO", r#""ss", -9223372036854775808"#, "undefined"),
            ("AGO", "1, 1", "undefined"),
        ]);
    }
}
