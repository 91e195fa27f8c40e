//! Functions that look for one text in another. Arguments of another type give undefined; positions count UTF-16
//! units. Where case does not count, letters are compared as capitals.

use std::borrow::Cow;

use document::Value;

use super::string::{upper_character, upper_text};
use super::{Arg, Entry, bounds, text, utf16};
use crate::functions::context::Context;

/// The functions of this file. Those that take many texts are known under two spellings.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "CONTAINS", least: 2, most: 3, run: contains },
    Entry { name: "CONTAINS_ALL_CI", least: 2, most: usize::MAX, run: contains_all_any_case },
    Entry { name: "CONTAINSALLCI", least: 2, most: usize::MAX, run: contains_all_any_case },
    Entry { name: "CONTAINS_ALL_CS", least: 2, most: usize::MAX, run: contains_all },
    Entry { name: "CONTAINSALLCS", least: 2, most: usize::MAX, run: contains_all },
    Entry { name: "CONTAINS_ANY_CI", least: 2, most: usize::MAX, run: contains_any_any_case },
    Entry { name: "CONTAINSANYCI", least: 2, most: usize::MAX, run: contains_any_any_case },
    Entry { name: "CONTAINS_ANY_CS", least: 2, most: usize::MAX, run: contains_any },
    Entry { name: "CONTAINSANYCS", least: 2, most: usize::MAX, run: contains_any },
    Entry { name: "ENDSWITH", least: 2, most: 3, run: ends_with },
    Entry { name: "INDEX_OF", least: 2, most: 3, run: index_of },
    Entry { name: "LASTINDEXOF", least: 2, most: 3, run: last_index_of },
    Entry { name: "LASTSUBSTRINGAFTER", least: 2, most: 2, run: after_last },
    Entry { name: "LASTSUBSTRINGBEFORE", least: 2, most: 2, run: before_last },
    Entry { name: "STARTSWITH", least: 2, most: 3, run: starts_with },
    Entry { name: "STRINGEQUALS", least: 2, most: 3, run: equals },
    Entry { name: "SUBSTRINGAFTER", least: 2, most: 2, run: after_first },
    Entry { name: "SUBSTRINGBEFORE", least: 2, most: 2, run: before_first },
];

/// Whether the letters `a` and `A` are the same to a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Counts,
    Ignored,
}

/// Returns two texts to compare and, as an optional third argument, whether case is ignored.
fn compared<'a>(arguments: &[Arg<'a>], context: &Context) -> Option<(&'a str, &'a str, Case)> {
    let (whole, part) = (text(arguments[0])?, text(arguments[1])?);
    let ignored = arguments.get(2).map_or(Some(false), |flag| (*flag)?.as_bool())?;
    bounds::walk(whole.len() + part.len(), context)?;
    Some((whole, part, if ignored { Case::Ignored } else { Case::Counts }))
}

fn contains(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (whole, part, case) = compared(arguments, context)?;
    Some(Value::Bool(fold(whole, case).contains(&*fold(part, case))))
}

fn starts_with(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    Some(Value::Bool(match compared(arguments, context)? {
        (whole, part, Case::Counts) => whole.starts_with(part),
        (whole, part, Case::Ignored) => begins(whole.chars(), part.chars()),
    }))
}

fn ends_with(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    Some(Value::Bool(match compared(arguments, context)? {
        (whole, part, Case::Counts) => whole.ends_with(part),
        (whole, part, Case::Ignored) => begins(whole.chars().rev(), part.chars().rev()),
    }))
}

fn equals(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    Some(Value::Bool(match compared(arguments, context)? {
        (one, other, Case::Counts) => one == other,
        (one, other, Case::Ignored) => {
            one.chars().map(upper_character).eq(other.chars().map(upper_character))
        }
    }))
}

fn begins(mut whole: impl Iterator<Item = char>, mut part: impl Iterator<Item = char>) -> bool {
    part.all(|wanted| whole.next().is_some_and(|found| upper_character(found) == upper_character(wanted)))
}

fn contains_all(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    contains_each(arguments, context, Case::Counts, false)
}

fn contains_all_any_case(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    contains_each(arguments, context, Case::Ignored, false)
}

fn contains_any(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    contains_each(arguments, context, Case::Counts, true)
}

fn contains_any_any_case(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    contains_each(arguments, context, Case::Ignored, true)
}

/// Evaluates `CONTAINS` of each text, connected by AND or OR: `decisive` is the answer that wins over all others,
/// even over undefined.
fn contains_each(arguments: &[Arg<'_>], context: &Context, case: Case, decisive: bool) -> Option<Value> {
    let whole = text(arguments[0])?;
    bounds::walk(whole.len(), context)?;
    let whole = fold(whole, case);
    let mut result = Some(!decisive);
    for part in &arguments[1..] {
        let part = text(*part);
        bounds::walk(whole.len() + part.map_or(0, str::len), context)?;
        match part.map(|part| whole.contains(&*fold(part, case))) {
            Some(found) if found == decisive => return Some(Value::Bool(decisive)),
            Some(_) => {}
            None => result = None,
        }
    }
    result.map(Value::Bool)
}

fn fold(text: &str, case: Case) -> Cow<'_, str> {
    match case {
        Case::Counts => Cow::Borrowed(text),
        Case::Ignored => Cow::Owned(upper_text(text)),
    }
}

/// Finds the first occurrence from a start on. A start before the text is its beginning; one after its end finds
/// nothing.
fn index_of(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (whole, part) = (text(arguments[0])?, text(arguments[1])?);
    let start = arguments.get(2).map_or(Some(0), |start| (*start)?.as_i64())?.max(0) as usize;
    bounds::walk(whole.len(), context)?;
    if start > utf16::length(whole) {
        return Some(Value::Int(-1));
    }
    let skipped = utf16::byte_from(whole, start);
    Some(position(whole, whole[skipped..].find(part).map(|byte| skipped + byte)))
}

/// Finds the last occurrence that ends at the start or before it.
fn last_index_of(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (whole, part) = (text(arguments[0])?, text(arguments[1])?);
    let last = arguments.get(2).map_or(Some(i64::MAX), |last| (*last)?.as_i64())?;
    bounds::walk(whole.len(), context)?;
    let Ok(end) = usize::try_from(last) else { return Some(Value::Int(-1)) };
    let kept = utf16::byte_until(whole, end.saturating_add(1));
    Some(position(whole, whole[..kept].rfind(part)))
}

fn position(whole: &str, byte: Option<usize>) -> Value {
    Value::Int(byte.map_or(-1, |byte| utf16::length(&whole[..byte]) as i64))
}

fn before_first(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    part(arguments, context, |whole, separator| whole.split_once(separator).map(|(before, _)| before))
}

fn after_first(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    part(arguments, context, |whole, separator| whole.split_once(separator).map(|(_, after)| after))
}

fn before_last(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    part(arguments, context, |whole, separator| whole.rsplit_once(separator).map(|(before, _)| before))
}

fn after_last(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    part(arguments, context, |whole, separator| whole.rsplit_once(separator).map(|(_, after)| after))
}

/// Returns one side of a separator; undefined if the text does not have the separator, so that `??` can supply a default.
fn part(
    arguments: &[Arg<'_>],
    context: &Context,
    side: for<'a> fn(&'a str, &str) -> Option<&'a str>,
) -> Option<Value> {
    let (whole, separator) = (text(arguments[0])?, text(arguments[1])?);
    bounds::walk(whole.len(), context)?;
    side(whole, separator).map(Value::from)
}

#[cfg(test)]
mod tests {
    use crate::functions::testing::check;

    #[test]
    fn a_text_is_found_with_or_without_regard_to_case() {
        check(&[
            ("CONTAINS", r#""AdventureWorks", "Adventure""#, "true"),
            ("CONTAINS", r#""AdventureWorks", "adventure""#, "false"),
            ("CONTAINS", r#""AdventureWorks", "adventure", false"#, "false"),
            ("CONTAINS", r#""AdventureWorks", "works", true"#, "true"),
            ("CONTAINS", r#""crème brûlée", "BRÛL", true"#, "true"),
            ("CONTAINS", r#""abc", """#, "true"),
            ("CONTAINS", r#""", "a""#, "false"),
            ("CONTAINS", r#""abc", 1"#, "undefined"),
            ("CONTAINS", r#"undefined, "a""#, "undefined"),
            ("CONTAINS", r#"["a"], "a""#, "undefined"),
            ("CONTAINS", r#""abc", "a", "true""#, "undefined"),
            ("CONTAINS", r#""abc", "a", undefined"#, "undefined"),
            ("STARTSWITH", r#""AdventureWorks", "Adv""#, "true"),
            ("STARTSWITH", r#""AdventureWorks", "adv""#, "false"),
            ("STARTSWITH", r#""AdventureWorks", "aDV", true"#, "true"),
            ("STARTSWITH", r#""Adv", "Adventure", true"#, "false"),
            ("STARTSWITH", r#""Élan", "éL", true"#, "true"),
            ("STARTSWITH", r#""abc", """#, "true"),
            ("STARTSWITH", r#""abc", null"#, "undefined"),
            ("STARTSWITH", r#""abc", undefined"#, "undefined"),
            ("ENDSWITH", r#""AdventureWorks", "Works""#, "true"),
            ("ENDSWITH", r#""AdventureWorks", "works""#, "false"),
            ("ENDSWITH", r#""AdventureWorks", "wORKS", true"#, "true"),
            ("ENDSWITH", r#""orks", "works", true"#, "false"),
            ("ENDSWITH", r#""abc", "", true"#, "true"),
            ("ENDSWITH", r#"1, "1""#, "undefined"),
            ("STRINGEQUALS", r#""abc", "abc""#, "true"),
            ("STRINGEQUALS", r#""abc", "aBC""#, "false"),
            ("STRINGEQUALS", r#""abc", "aBC", true"#, "true"),
            ("STRINGEQUALS", r#""abc", "abcd", true"#, "false"),
            ("STRINGEQUALS", r#""", """#, "true"),
            ("STRINGEQUALS", r#""1", 1"#, "undefined"),
            ("STRINGEQUALS", r#""a", undefined, true"#, "undefined"),
        ]);
    }

    #[test]
    fn several_texts_are_tied_by_and_or_or() {
        check(&[
            ("CONTAINS_ALL_CI", r#""Have a nice day!", "HAVE", "NICE", "DAY!""#, "true"),
            ("CONTAINS_ALL_CI", r#""Have a nice day!", "had", "nice""#, "false"),
            ("CONTAINS_ALL_CI", r#""Have a nice day!", undefined, "nice""#, "undefined"),
            ("CONTAINS_ALL_CI", r#""Have a nice day!", undefined, "had""#, "false"),
            ("CONTAINS_ALL_CI", r#""Have a nice day!", 1, "nice""#, "undefined"),
            ("CONTAINS_ALL_CI", r#"undefined, "had""#, "undefined"),
            ("CONTAINS_ALL_CS", r#""Have a nice day!", "Have", "nice""#, "true"),
            ("CONTAINS_ALL_CS", r#""Have a nice day!", "HAVE", "nice""#, "false"),
            ("CONTAINS_ANY_CI", r#""Have a nice day!", "had", "NICE""#, "true"),
            ("CONTAINS_ANY_CI", r#""Have a nice day!", undefined, "nice""#, "true"),
            ("CONTAINS_ANY_CI", r#""Have a nice day!", undefined, "had""#, "undefined"),
            ("CONTAINS_ANY_CI", r#""Have a nice day!", "had""#, "false"),
            ("CONTAINS_ANY_CS", r#""Have a nice day!", "had", "nice""#, "true"),
            ("CONTAINS_ANY_CS", r#""Have a nice day!", "NICE", "DAY""#, "false"),
            ("CONTAINS_ANY_CS", r#"5, "5""#, "undefined"),
            ("ContainsAllCi", r#""Abc", "aB""#, "true"),
            ("ContainsAllCs", r#""Abc", "aB""#, "false"),
            ("ContainsAnyCi", r#""Abc", "x", "C""#, "true"),
            ("ContainsAnyCs", r#""Abc", "x", "C""#, "false"),
        ]);
    }

    #[test]
    fn positions_are_those_of_units() {
        check(&[
            ("INDEX_OF", r#""AdventureWorks", "A""#, "0"),
            ("INDEX_OF", r#""AdventureWorks", "tureW""#, "5"),
            ("INDEX_OF", r#""AdventureWorks", "aD""#, "-1"),
            ("INDEX_OF", r#""AdventureWorks", "Works", 5"#, "9"),
            ("INDEX_OF", r#""AdventureWorks", "Adventure", 5"#, "-1"),
            ("INDEX_OF", r#""AdventureWorks", "A", -3"#, "0"),
            ("INDEX_OF", r#""AdventureWorks", "", 14"#, "14"),
            ("INDEX_OF", r#""AdventureWorks", "", 15"#, "-1"),
            ("INDEX_OF", r#""abc", """#, "0"),
            ("INDEX_OF", r#""abc", "a", 0.5"#, "undefined"),
            ("INDEX_OF", r#""abc", "a", undefined"#, "undefined"),
            ("INDEX_OF", r#""abc", 1"#, "undefined"),
            ("INDEX_OF", r#""😀b😀b", "b""#, "2"),
            ("INDEX_OF", r#""😀b😀b", "b", 3"#, "5"),
            ("INDEX_OF", r#""😀b😀b", "😀", 1"#, "3"),
            ("LASTINDEXOF", r#""abcdeabc", "abc""#, "5"),
            ("LASTINDEXOF", r#""abcdeabc", "abc", 6"#, "0"),
            ("LASTINDEXOF", r#""abcdeabc", "abc", 7"#, "5"),
            ("LASTINDEXOF", r#""abcdeabc", "abc", 99"#, "5"),
            ("LASTINDEXOF", r#""abcdeabc", "abc", 1"#, "-1"),
            ("LASTINDEXOF", r#""abcdeabc", "abc", -1"#, "-1"),
            ("LASTINDEXOF", r#""abcdeabc", "fg""#, "-1"),
            ("LASTINDEXOF", r#""abc", """#, "3"),
            ("LASTINDEXOF", r#""a😀b😀", "😀""#, "4"),
            ("LASTINDEXOF", r#""a😀b😀", "😀", 4"#, "1"),
            ("LASTINDEXOF", r#""abc", "c", 1.5"#, "undefined"),
            ("LASTINDEXOF", r#"null, "c""#, "undefined"),
        ]);
    }

    #[test]
    fn a_separator_has_a_side_before_and_a_side_behind() {
        check(&[
            ("SUBSTRINGBEFORE", r#""bike::touring::frame", "::""#, r#""bike""#),
            ("SUBSTRINGAFTER", r#""bike::touring::frame", "::""#, r#""touring::frame""#),
            ("LASTSUBSTRINGBEFORE", r#""bike::touring::frame", "::""#, r#""bike::touring""#),
            ("LASTSUBSTRINGAFTER", r#""bike::touring::frame", "::""#, r#""frame""#),
            ("SUBSTRINGBEFORE", r#""/a", "/""#, r#""""#),
            ("SUBSTRINGAFTER", r#""a/", "/""#, r#""""#),
            ("LASTSUBSTRINGBEFORE", r#""/products/shoes", "/""#, r#""/products""#),
            ("LASTSUBSTRINGAFTER", r#""A-B-C", "-""#, r#""C""#),
            ("SUBSTRINGBEFORE", r#""abc", "/""#, "undefined"),
            ("SUBSTRINGAFTER", r#""abc", "/""#, "undefined"),
            ("LASTSUBSTRINGBEFORE", r#""abc", "/""#, "undefined"),
            ("LASTSUBSTRINGAFTER", r#""", "/""#, "undefined"),
            ("SUBSTRINGBEFORE", r#""abc", """#, r#""""#),
            ("LASTSUBSTRINGAFTER", r#""abc", """#, r#""""#),
            ("SUBSTRINGAFTER", r#""abc", 1"#, "undefined"),
            ("LASTSUBSTRINGBEFORE", r#"undefined, "/""#, "undefined"),
        ]);
    }
}
