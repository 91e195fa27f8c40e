//! Functions that make texts out of texts. Arguments of another type give undefined; positions and lengths count
//! UTF-16 units (see [`super::utf16`]).
//!
//! Letters change case one by one: what would become two letters (`ß`) stays, so that case never changes a length.

use document::{Value, ValueRef};

use super::{Arg, Entry, bounds, text, utf16};
use crate::functions::context::Context;

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "CONCAT", least: 2, most: usize::MAX, run: concat },
    Entry { name: "LEFT", least: 2, most: 2, run: left },
    Entry { name: "LENGTH", least: 1, most: 1, run: length },
    Entry { name: "LOWER", least: 1, most: 1, run: lower },
    Entry { name: "LTRIM", least: 1, most: 2, run: trim_left },
    Entry { name: "REPLACE", least: 3, most: 3, run: replace },
    Entry { name: "REPLICATE", least: 2, most: 2, run: replicate },
    Entry { name: "REVERSE", least: 1, most: 1, run: reverse },
    Entry { name: "RIGHT", least: 2, most: 2, run: right },
    Entry { name: "RTRIM", least: 1, most: 2, run: trim_right },
    Entry { name: "STRINGJOIN", least: 2, most: 2, run: join },
    Entry { name: "STRINGSPLIT", least: 2, most: 2, run: split },
    Entry { name: "SUBSTRING", least: 3, most: 3, run: substring },
    Entry { name: "TRIM", least: 1, most: 2, run: trim_both },
    Entry { name: "UPPER", least: 1, most: 1, run: upper },
];

/// Longest result of `REPLICATE`, in units.
const REPLICATED_UNITS: f64 = 10_000.0;

fn concat(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let pieces: Vec<&str> = arguments.iter().copied().map(text).collect::<Option<_>>()?;
    bounds::make(pieces.iter().map(|piece| piece.len()).sum(), context)?;
    Some(Value::String(pieces.concat()))
}

fn length(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let text = text(arguments[0])?;
    bounds::walk(text.len(), context)?;
    Some(Value::Int(utf16::length(text) as i64))
}

fn left(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    cut(text(arguments[0])?, 0, arguments[1]?.as_i64()?, context)
}

fn right(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (text, count) = (text(arguments[0])?, arguments[1]?.as_i64()?);
    let length = utf16::length(text) as i64;
    cut(text, length.saturating_sub(count).max(0), length, context)
}

fn substring(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    cut(text(arguments[0])?, arguments[1]?.as_i64()?, arguments[2]?.as_i64()?, context)
}

/// Returns a part of a text. What lies outside the text is empty, not undefined. Fractions never get here.
fn cut(text: &str, start: i64, count: i64, context: &Context) -> Option<Value> {
    bounds::walk(text.len(), context)?;
    Some(Value::String(match (usize::try_from(start), usize::try_from(count)) {
        (Ok(start), Ok(count)) => utf16::slice(text, start, count),
        _ => String::new(),
    }))
}

fn lower(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let text = text(arguments[0])?;
    bounds::walk(text.len(), context)?;
    let only = |character: char| only(character.to_lowercase()).unwrap_or(character);
    let plain = text.is_ascii();
    Some(Value::String(if plain { text.to_ascii_lowercase() } else { text.chars().map(only).collect() }))
}

fn upper(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let text = text(arguments[0])?;
    bounds::walk(text.len(), context)?;
    Some(Value::String(upper_text(text)))
}

/// Returns a text in capitals; also what texts are compared by when case does not count.
pub(super) fn upper_text(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_uppercase() } else { text.chars().map(upper_character).collect() }
}

/// Returns a letter as capital, if that is one letter.
pub(super) fn upper_character(character: char) -> char {
    only(character.to_uppercase()).unwrap_or(character)
}

fn only(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next();
    first.filter(|_| characters.next().is_none())
}

fn trim_left(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    trim(arguments, context, |text, stripped| text.trim_start_matches(stripped))
}

fn trim_right(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    trim(arguments, context, |text, stripped| text.trim_end_matches(stripped))
}

fn trim_both(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    trim(arguments, context, |text, stripped| text.trim_matches(stripped))
}

/// Strips white space, or any of the second argument's characters in any order.
fn trim(
    arguments: &[Arg<'_>],
    context: &Context,
    strip: for<'a> fn(&'a str, &dyn Fn(char) -> bool) -> &'a str,
) -> Option<Value> {
    let text = text(arguments[0])?;
    bounds::walk(text.len(), context)?;
    let Some(set) = arguments.get(1) else {
        return Some(strip(text, &char::is_whitespace).into());
    };
    let set = super::text(*set)?;
    bounds::walk(set.len(), context)?;
    let mut set: Vec<char> = set.chars().collect();
    set.sort_unstable();
    Some(strip(text, &|character| set.binary_search(&character).is_ok()).into())
}

fn replace(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (text, old, new) = (text(arguments[0])?, text(arguments[1])?, text(arguments[2])?);
    if old.is_empty() {
        return None;
    }
    bounds::walk(text.len(), context)?;
    let count = text.matches(old).count();
    bounds::make((text.len() - count * old.len()).saturating_add(count.saturating_mul(new.len())), context)?;
    Some(Value::String(text.replace(old, new)))
}

fn replicate(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (text, count) = (text(arguments[0])?, arguments[1]?.as_f64()?);
    bounds::walk(text.len(), context)?;
    if count < 0.0 {
        return None;
    }
    let units = utf16::length(text) as f64 * count.trunc();
    let count = if text.is_empty() { 0 } else { count as usize };
    (units <= REPLICATED_UNITS).then(|| Value::String(text.repeat(count)))
}

/// Reverses a text by characters: the halves of a surrogate pair are not swapped.
fn reverse(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let text = text(arguments[0])?;
    bounds::walk(text.len(), context)?;
    Some(Value::String(text.chars().rev().collect()))
}

fn join(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (items, separator) = (arguments[0]?.as_array()?, text(arguments[1])?);
    bounds::walk(items.len(), context)?;
    let pieces: Vec<&str> = items.iter().map(ValueRef::as_str).collect::<Option<_>>()?;
    let separators = separator.len().saturating_mul(pieces.len().saturating_sub(1));
    let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
    bounds::make(length.saturating_add(separators), context)?;
    Some(Value::String(pieces.join(separator)))
}

/// Splits a text. An empty separator separates nothing.
fn split(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (text, separator) = (text(arguments[0])?, text(arguments[1])?);
    if separator.is_empty() {
        bounds::make(text.len(), context)?;
        return Some(Value::Array(vec![text.into()]));
    }
    bounds::walk(text.len(), context)?;
    bounds::list(text.matches(separator).count() + 1, context)?;
    Some(Value::Array(text.split(separator).map(Value::from).collect()))
}

#[cfg(test)]
mod tests {
    use crate::functions::context::{Context, Fault};
    use crate::functions::testing::{call_in, check};

    #[test]
    fn texts_are_put_together_and_taken_apart() {
        check(&[
            ("CONCAT", r#""Bolide", "-", "db""#, r#""Bolide-db""#),
            ("CONCAT", r#""", """#, r#""""#),
            ("CONCAT", r#""a", undefined"#, "undefined"),
            ("CONCAT", r#""a", "b", 1"#, "undefined"),
            ("CONCAT", r#"null, "b""#, "undefined"),
            ("STRINGJOIN", r#"["a","b","c"], " ""#, r#""a b c""#),
            ("STRINGJOIN", r#"["a","b"], """#, r#""ab""#),
            ("STRINGJOIN", r#"["a"], ", ""#, r#""a""#),
            ("STRINGJOIN", r#"[], ", ""#, r#""""#),
            ("STRINGJOIN", r#"["a",1], ",""#, "undefined"),
            ("STRINGJOIN", r#"["a"], undefined"#, "undefined"),
            ("STRINGJOIN", r#""a", ",""#, "undefined"),
            ("STRINGSPLIT", r#""one_two__three", "_""#, r#"["one","two","","three"]"#),
            ("STRINGSPLIT", r#""xenmoun mountain bike", "moun""#, r#"["xen"," ","tain bike"]"#),
            ("STRINGSPLIT", r#"",a,", ",""#, r#"["","a",""]"#),
            ("STRINGSPLIT", r#""a", ",""#, r#"["a"]"#),
            ("STRINGSPLIT", r#""Helmet", """#, r#"["Helmet"]"#),
            ("STRINGSPLIT", r#""", """#, r#"[""]"#),
            ("STRINGSPLIT", r#""", ",""#, r#"[""]"#),
            ("STRINGSPLIT", r#""a", undefined"#, "undefined"),
            ("STRINGSPLIT", r#"["a"], ",""#, "undefined"),
        ]);
    }

    #[test]
    fn parts_are_counted_in_units() {
        check(&[
            ("LENGTH", r#""abc""#, "3"),
            ("LENGTH", r#""""#, "0"),
            ("LENGTH", r#""né""#, "2"),
            ("LENGTH", r#""a😀""#, "3"),
            ("LENGTH", "5", "undefined"),
            ("LENGTH", "[1]", "undefined"),
            ("LENGTH", "undefined", "undefined"),
            ("LEFT", r#""Bolide", 3"#, r#""Bol""#),
            ("LEFT", r#""Bolide", 0"#, r#""""#),
            ("LEFT", r#""Bolide", -1"#, r#""""#),
            ("LEFT", r#""Bolide", 99"#, r#""Bolide""#),
            ("LEFT", r#""Bolide", 2.0"#, r#""Bo""#),
            ("LEFT", r#""Bolide", 2.5"#, "undefined"),
            ("LEFT", r#""Bolide", "2""#, "undefined"),
            ("LEFT", "7, 1", "undefined"),
            ("LEFT", r#""x😀y", 2"#, r#""x\ufffd""#),
            ("LEFT", r#""x😀y", 3"#, r#""x😀""#),
            ("RIGHT", r#""Bolide", 3"#, r#""ide""#),
            ("RIGHT", r#""Bolide", 0"#, r#""""#),
            ("RIGHT", r#""Bolide", -5"#, r#""""#),
            ("RIGHT", r#""Bolide", 99"#, r#""Bolide""#),
            ("RIGHT", r#""Bolide", -9223372036854775808"#, r#""""#),
            ("RIGHT", r#""Bolide", 1.5"#, "undefined"),
            ("RIGHT", r#""x😀y", 2"#, r#""\ufffdy""#),
            ("RIGHT", "undefined, 2", "undefined"),
            ("SUBSTRING", r#""AdventureWorks", 0, 9"#, r#""Adventure""#),
            ("SUBSTRING", r#""AdventureWorks", 9, 5"#, r#""Works""#),
            ("SUBSTRING", r#""AdventureWorks", 9, 500"#, r#""Works""#),
            ("SUBSTRING", r#""AdventureWorks", 0, -1"#, r#""""#),
            ("SUBSTRING", r#""AdventureWorks", -2, 4"#, r#""""#),
            ("SUBSTRING", r#""AdventureWorks", 14, 1"#, r#""""#),
            ("SUBSTRING", r#""AdventureWorks", 1, 9223372036854775807"#, r#""dventureWorks""#),
            ("SUBSTRING", r#""AdventureWorks", 0.5, 1"#, "undefined"),
            ("SUBSTRING", r#""AdventureWorks", 0, 1e300"#, "undefined"),
            ("SUBSTRING", r#""AdventureWorks", 0, null"#, "undefined"),
            ("SUBSTRING", r#""a😀b", 1, 2"#, r#""😀""#),
            ("SUBSTRING", r#""a😀b", 2, 2"#, r#""\ufffdb""#),
            ("SUBSTRING", r#""", 0, 3"#, r#""""#),
        ]);
    }

    #[test]
    fn letters_change_case_and_order() {
        check(&[
            ("LOWER", r#""AbC1""#, r#""abc1""#),
            ("LOWER", r#""ÀÉΣ""#, r#""àéσ""#),
            ("LOWER", "1", "undefined"),
            ("UPPER", r#""AbC1""#, r#""ABC1""#),
            ("UPPER", r#""àéß""#, r#""ÀÉß""#),
            ("UPPER", r#""""#, r#""""#),
            ("UPPER", "undefined", "undefined"),
            ("REVERSE", r#""Abc""#, r#""cbA""#),
            ("REVERSE", r#""a😀b""#, r#""b😀a""#),
            ("REVERSE", r#""""#, r#""""#),
            ("REVERSE", "null", "undefined"),
        ]);
    }

    #[test]
    fn trimming_takes_white_space_or_a_set_of_characters() {
        check(&[
            ("TRIM", r#""  a b\t\n""#, r#""a b""#),
            ("LTRIM", r#""  a ""#, r#""a ""#),
            ("RTRIM", r#""  a ""#, r#""  a""#),
            ("TRIM", r#""\u00a0a\u3000""#, r#""a""#),
            ("TRIM", r#""   ""#, r#""""#),
            ("TRIM", r#""---a---""#, r#""---a---""#),
            ("TRIM", r#""-_-a-_-", "-_""#, r#""a""#),
            ("TRIM", r#""-- a --", "-""#, r#"" a ""#),
            ("TRIM", r#""😀a😀", "😀""#, r#""a""#),
            ("LTRIM", r#""AdventureWorks", "Adventure""#, r#""Works""#),
            ("LTRIM", r#""AdventureWorks", "Works""#, r#""AdventureWorks""#),
            ("RTRIM", r#""AdventureWorks", "Works""#, r#""Adventure""#),
            ("RTRIM", r#""AdventureWorks", "AdventureWorks""#, r#""""#),
            ("LTRIM", r#"" a", """#, r#"" a""#),
            ("TRIM", r#"" a", undefined"#, "undefined"),
            ("TRIM", r#"" a", 1"#, "undefined"),
            ("TRIM", "1", "undefined"),
        ]);
    }

    #[test]
    fn texts_are_replaced_and_repeated_within_their_limits() {
        check(&[
            ("REPLACE", r#""AdventureWorksLT", "LT", "LT2""#, r#""AdventureWorksLT2""#),
            ("REPLACE", r#""aaaa", "aa", "a""#, r#""aa""#),
            ("REPLACE", r#""abc", "x", "y""#, r#""abc""#),
            ("REPLACE", r#""abc", "b", """#, r#""ac""#),
            ("REPLACE", r#""abc", "", "y""#, "undefined"),
            ("REPLACE", r#""abc", "b", 1"#, "undefined"),
            ("REPLACE", r#""abc", undefined, "b""#, "undefined"),
            ("REPLICATE", r#""ab", 3"#, r#""ababab""#),
            ("REPLICATE", r#""ab", 2.9"#, r#""abab""#),
            ("REPLICATE", r#""ab", 0"#, r#""""#),
            ("REPLICATE", r#""ab", -1"#, "undefined"),
            ("REPLICATE", r#""ab", -0.5"#, "undefined"),
            ("REPLICATE", r#""ab", 5001"#, "undefined"),
            ("REPLICATE", r#""ab", 1e308"#, "undefined"),
            ("REPLICATE", r#""", 1e308"#, r#""""#),
            ("REPLICATE", r#""ab", "2""#, "undefined"),
        ]);
        let most = call_in(&Context::new(0, 1), "REPLICATE", r#""😀", 5000"#);
        assert_eq!(most.unwrap().as_str().unwrap(), "😀".repeat(5000));
    }

    #[test]
    fn a_result_that_is_too_large_ends_the_query() {
        let long = format!(r#""{}""#, "a".repeat(super::bounds::TEXT_BYTES / 2 + 1));
        let refused = |name: &str, arguments: &str| {
            let context = Context::new(0, 1);
            assert_eq!(call_in(&context, name, arguments), None);
            assert!(matches!(context.fault(), Some(Fault::OutOfMemory { .. })), "{name}");
        };
        refused("CONCAT", &format!("{long},{long}"));
        refused("REPLACE", &format!(r#"{long},"a","aa""#));
        refused("STRINGJOIN", &format!("[{long},{long}],\"\""));
        refused("STRINGSPLIT", &format!(r#"{long},"a""#));

        let poor = Context::new(0, 1).with_budget(3);
        assert_eq!(call_in(&poor, "UPPER", &long), None);
        assert_eq!(poor.fault(), Some(Fault::OutOfBudget));
    }
}
