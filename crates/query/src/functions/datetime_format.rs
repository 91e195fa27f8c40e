//! Dates as text of any shape: the patterns of `DATETIMEFORMAT`.
//!
//! A run of one letter stands for a part of the date, in the manner of .NET's patterns; any other character stands
//! for itself, and so does every character after a backslash.
//!
//! ```text
//! d dd ddd dddd    day, with two digits, name of the weekday short and long
//! M MM MMM MMMM    month, with two digits, its name short and long
//! y yy yyy yyyy    year of the century, with two digits, whole year with at least so many digits
//! H HH  h hh       hour of 24, of 12
//! m mm  s ss       minute, second
//! t tt             A or P, AM or PM
//! f ... fffffff    digits of the second's fraction
//! F ... FFFFFFF    the same without zeros at the end
//! ```
//!
//! A full stop before an empty `FFF` stays, other than in .NET: the service's documentation shows it so.

use std::fmt::Write as _;

use calendar::{MONTHS, WEEKDAYS, abbreviated};

use super::calendar::DateTime;

/// The longest run of one letter that is accepted.
const WIDTH_MAX: usize = 64;

/// Returns the date in the shape of the pattern; `None` when the pattern ends in a backslash, wants more than seven digits
/// of a fraction, or has an endless run of a letter. A result longer than `limit` is truncated somewhere after it.
pub(crate) fn format(date: DateTime, pattern: &str, limit: usize) -> Option<String> {
    let mut out = String::new();
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        if out.len() > limit {
            break;
        }
        if letter == '\\' {
            out.push(rest.next()?);
            continue;
        }
        let mut width = 1;
        if "dMyHhmstfF".contains(letter) {
            let after = rest.as_str().trim_start_matches(letter);
            width += rest.as_str().len() - after.len();
            rest = after.chars();
        }
        if width > WIDTH_MAX {
            return None;
        }
        write_part(date, letter, width, &mut out)?;
    }
    Some(out)
}

fn write_part(date: DateTime, letter: char, width: usize, out: &mut String) -> Option<()> {
    // `DateTime` counts from Sunday, the table from Monday.
    let weekday = WEEKDAYS[(date.weekday() + 6) % 7];
    let month = MONTHS[date.month as usize - 1];
    match (letter, width) {
        ('d', 1 | 2) => padded(date.day, width, out),
        ('d', 3) => out.push_str(abbreviated(weekday)),
        ('d', _) => out.push_str(weekday),
        ('M', 1 | 2) => padded(date.month, width, out),
        ('M', 3) => out.push_str(abbreviated(month)),
        ('M', _) => out.push_str(month),
        ('y', 1 | 2) => padded(date.year % 100, width, out),
        ('y', _) => padded(date.year, width, out),
        ('H', _) => padded(date.hour, width.min(2), out),
        ('h', _) => padded((date.hour + 11) % 12 + 1, width.min(2), out),
        ('m', _) => padded(date.minute, width.min(2), out),
        ('s', _) => padded(date.second, width.min(2), out),
        ('t', _) => {
            let name = if date.hour < 12 { "AM" } else { "PM" };
            out.push_str(&name[..width.min(2)]);
        }
        ('f' | 'F', 1..=7) => {
            let digits = format!("{:07}", date.fraction);
            let digits = &digits[..width];
            out.push_str(if letter == 'F' { digits.trim_end_matches('0') } else { digits });
        }
        ('f' | 'F', _) => return None,
        _ => out.push(letter),
    }
    Some(())
}

fn padded(number: i64, width: usize, out: &mut String) {
    write!(out, "{number:0width$}").expect("text takes all that is written");
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, call_in, check};
    use super::WIDTH_MAX;
    use crate::functions::context::{Context, Fault};

    #[test]
    fn patterns() {
        check(&[
            ("DATETIMEFORMAT", r#""2024-10-10 14:40:20", "yyyyMMdd""#, r#""20241010""#),
            (
                "DATETIMEFORMAT",
                r#""2024-10-10 14:40:20", "yyyy-MM-dd [HH:mm:ss]""#,
                r#""2024-10-10 [14:40:20]""#,
            ),
            (
                "DATETIMEFORMAT",
                r#""2024-10-10 14:40:20", "To\\da\\y i\\s: yyyy-MM-ddTHH:mm:ss.fff""#,
                r#""Today is: 2024-10-10T14:40:20.000""#,
            ),
            ("DATETIMEFORMAT", r#""2024-10-10 14:40:20", "HH:mm:ss.FFF""#, r#""14:40:20.""#),
            ("DATETIMEFORMAT", r#""2024-10-10T14:40:20.1200000", "fffffff F FFFF f""#, r#""1200000 1 12 1""#),
            (
                "DATETIMEFORMAT",
                r#""2024-02-29T00:05:09", "d/M/y h:m:s t, ddd dddd""#,
                r#""29/2/24 12:5:9 A, Thu Thursday""#,
            ),
            (
                "DATETIMEFORMAT",
                r#""2009-09-01T12:00:00", "yy yyy yyyyy MMM MMMM hh tt""#,
                r#""09 2009 02009 Sep September 12 PM""#,
            ),
            ("DATETIMEFORMAT", r#""0001-01-01", "yyyy ddd""#, r#""0001 Mon""#),
            ("DATETIMEFORMAT", r#""9999-12-31", "dddd""#, r#""Friday""#),
            ("DATETIMEFORMAT", r#""2024-02-29", "é 'q' Z""#, r#""é 'q' Z""#),
            ("DATETIMEFORMAT", r#""2024-02-29", """#, r#""""#),
            ("DATETIMEFORMAT", r#""2024-02-29", "ffffffff""#, "undefined"),
            ("DATETIMEFORMAT", r#""2024-02-29", "yyyy\\""#, "undefined"),
            ("DATETIMEFORMAT", r#""2024-02-30", "yyyy""#, "undefined"),
            ("DATETIMEFORMAT", r#""2024-02-29", 1"#, "undefined"),
            ("DATETIMEFORMAT", r#"undefined, "yyyy""#, "undefined"),
        ]);
    }

    #[test]
    fn a_pattern_cannot_grow_without_bound() {
        let context = Context::new(0, 1);
        let arguments = format!(r#""2024-02-28", "{}""#, "dddd ".repeat(20_000));
        assert_eq!(call_in(&context, "DATETIMEFORMAT", &arguments), None);
        assert!(matches!(context.fault(), Some(Fault::OutOfMemory { .. })));
        for letter in ["y", "d", "H", "t"] {
            let format =
                |width| call("DATETIMEFORMAT", &format!(r#""2024-02-28", "{}""#, letter.repeat(width)));
            assert!(format(WIDTH_MAX).is_some());
            assert_eq!(format(WIDTH_MAX + 1), None);
            assert_eq!(format(70_000), None);
        }
    }
}
