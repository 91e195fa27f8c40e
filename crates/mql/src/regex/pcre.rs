//! Rewrites the parts of patterns that PCRE spells differently from the engine that runs here, before they are compiled.
//!
//! Without `(*UCP)`, PCRE's `\d`, `\w` and `\s` mean ASCII; a brace that counts nothing is a literal, and so is an opening
//! bracket within a class; any punctuation may be escaped; `\Q...\E` quotes. Everything else is unchanged. Of PCRE's verbs,
//! only `(*UCP)`, `(*UTF)` and `(*UTF8)` at the start are known; the others are refused by name.

use std::fmt::Write;

/// Digits, letters and the like as the inside of a class.
const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r" \t\n\x0B\f\r";

/// Rewrites a pattern. Other errors in it stay.
///
/// # Errors
///
/// Why a pattern with a verb such as `(*LF)` is refused.
pub(super) fn translate(pattern: &str, extended: bool) -> Result<String, String> {
    let mut rest = pattern;
    let mut unicode = false;
    while let Some(verb) = ["(*UCP)", "(*UTF8)", "(*UTF)"].into_iter().find(|verb| rest.starts_with(verb)) {
        unicode |= verb == "(*UCP)";
        rest = &rest[verb.len()..];
    }
    let mut out = String::with_capacity(rest.len() + 16);
    let mut class = false;
    let mut comment = false;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        rest = after;
        match letter {
            _ if comment => {
                comment = letter != '\n';
                out.push(letter);
            }
            '\\' => rest = escape(after, class, unicode, &mut out),
            '[' if class => match after.find(":]").filter(|_| after.starts_with(':')) {
                Some(end) => {
                    out.push('[');
                    out.push_str(&after[..end + 2]);
                    rest = &after[end + 2..];
                }
                None => out.push_str("\\["),
            },
            '[' => {
                class = true;
                rest = open_class(after, &mut out);
            }
            ']' if class => {
                class = false;
                out.push(']');
            }
            '&' | '~' if class => {
                out.push('\\');
                out.push(letter);
            }
            '{' if !class && !is_count(after) => out.push_str("\\{"),
            '(' if !class && is_verb(after) => return Err(refusal(after)),
            '#' if extended && !class => {
                comment = true;
                out.push('#');
            }
            _ => out.push(letter),
        }
    }
    Ok(out)
}

/// Returns `true` if the text after an opening bracket makes a verb: `(*SKIP)`, or `(*:name)`.
fn is_verb(after: &str) -> bool {
    let name = after.strip_prefix('*').and_then(|name| name.chars().next());
    name.is_some_and(|letter| letter.is_ascii_alphabetic() || letter == ':')
}

/// Names the verb after an opening bracket, without what its argument is.
fn refusal(after: &str) -> String {
    let name = after.get(1..).unwrap_or_default();
    let end =
        name.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(name.len());
    format!("the verb (*{}) is not supported", &name[..end])
}

/// Begins a class, in which a closing bracket that comes first is a literal; returns the rest.
fn open_class<'p>(after: &'p str, out: &mut String) -> &'p str {
    out.push('[');
    let mut rest = after;
    if let Some(negated) = rest.strip_prefix('^') {
        out.push('^');
        rest = negated;
    }
    if let Some(behind) = rest.strip_prefix(']') {
        out.push_str("\\]");
        rest = behind;
    }
    rest
}

/// Returns `true` if the text after a brace counts repetitions: `{2}`, `{2,}`, `{2,3}`.
fn is_count(after: &str) -> bool {
    let Some(end) = after.find('}') else { return false };
    let (least, most) = after[..end].split_once(',').unwrap_or((&after[..end], ""));
    !least.is_empty() && [least, most].iter().all(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Rewrites the text after a backslash; returns the rest.
fn escape<'p>(after: &'p str, class: bool, unicode: bool, out: &mut String) -> &'p str {
    let Some(letter) = after.chars().next() else {
        out.push('\\');
        return after;
    };
    let rest = &after[letter.len_utf8()..];
    let ranges = match letter {
        'd' | 'D' => DIGIT,
        'w' | 'W' => WORD,
        's' | 'S' => SPACE,
        'h' => r" \t",
        _ => "",
    };
    match letter {
        'Q' => {
            let end = rest.find("\\E");
            for quoted in rest[..end.unwrap_or(rest.len())].chars() {
                literal(quoted, out);
            }
            return end.map_or("", |end| &rest[end + 2..]);
        }
        'e' => out.push_str(r"\x1B"),
        'd' | 'w' | 's' | 'D' | 'W' | 'S' if unicode => {
            out.push('\\');
            out.push(letter);
        }
        'd' | 'w' | 's' | 'h' if class => out.push_str(ranges),
        'd' | 'w' | 's' | 'h' => {
            let _ = write!(out, "[{ranges}]");
        }
        'D' | 'W' | 'S' => {
            let _ = write!(out, "[^{ranges}]");
        }
        _ if letter.is_ascii_punctuation() || letter == ' ' => literal(letter, out),
        _ => {
            out.push('\\');
            out.push(letter);
        }
    }
    rest
}

/// Appends a letter that stands for itself, anywhere in a pattern.
fn literal(letter: char, out: &mut String) {
    if letter.is_alphanumeric() || letter == '_' {
        out.push(letter);
    } else {
        let _ = write!(out, "\\x{{{:X}}}", u32::from(letter));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_rewritten() {
        for (pattern, expected) in [
            ("^ab.*$", "^ab.*$"),
            (r"\d+", "[0-9]+"),
            (r"[\d.-]", "[0-9.-]"),
            (r"[^\w]", "[^0-9A-Za-z_]"),
            ("a{2,3}{x", r"a{2,3}\{x"),
            ("[]a]", r"[\]a]"),
            ("[[:alpha:][]", r"[[:alpha:]\[]"),
            (r"a\.b", r"a\x{2E}b"),
            (r"\1\bé", r"\1\bé"),
            ("a\\", "a\\"),
        ] {
            assert_eq!(translate(pattern, false).as_deref(), Ok(expected), "{pattern}");
        }
        assert_eq!(translate("a # [\nb", true).as_deref(), Ok("a # [\nb"));
    }

    #[test]
    fn a_verb_is_refused_wherever_it_is_one() {
        for pattern in ["(*LF)a", "(*UCP)(*LF)a", "a(*LF)", "(a|(*LF))", "(*LF=7)", "(*LF:name)", "(*LF"] {
            let refused = translate(pattern, false);
            assert_eq!(refused.unwrap_err(), "the verb (*LF) is not supported", "{pattern}");
        }
        for pattern in ["[(*LF)]", r"\(*LF\)", r"\Q(*LF)\E", "(*)", "a # (*LF)"] {
            assert!(translate(pattern, true).is_ok(), "{pattern}");
        }
    }
}
