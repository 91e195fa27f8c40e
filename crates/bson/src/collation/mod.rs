//! Collations: how strings compare where bytes are not what people mean.
//!
//! The order is our own, near to that of the Unicode root collation: base letters first, then diacritics, then case, lower
//! before upper. Tailorings of single languages (Swedish `å` behind `z`) are not made: all locales but `simple` have this one
//! order. An option that would change the order in another way is refused, not ignored.

mod weights;

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::order::compare_by;
use crate::value::Document;
use crate::view::{DocumentRef, ValueRef};

/// How strings compare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Collation(Option<Rules>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rules {
    locale: String,
    /// As it was given, 1 to 5; beyond 3 nothing changes.
    strength: u8,
    case_level: bool,
    numeric_ordering: bool,
}

/// The version that a listed collation carries: that of the collation data of the servers whose place we take.
const VERSION: &str = "57.1";

/// Languages that may be named. A territory or a script may follow.
const LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bo", "bs", "ca", "chr", "cs", "cy", "da", "de", "dsb",
    "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "ga", "gl", "gu", "ha", "haw",
    "he", "hi", "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka", "kk", "kl", "km", "kn", "ko",
    "kok", "ky", "lb", "li", "lkt", "ln", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb",
    "ne", "nl", "nn", "om", "or", "pa", "pl", "ps", "pt", "ro", "ru", "se", "si", "sk", "sl", "smn", "sq",
    "sr", "sv", "sw", "ta", "te", "th", "to", "tr", "ug", "uk", "ur", "vi", "wae", "yi", "yo", "zh", "zu",
];

impl Collation {
    /// Strings compare byte by byte.
    pub const fn simple() -> Collation {
        Collation(None)
    }

    /// Whether strings compare byte by byte.
    pub fn is_simple(&self) -> bool {
        self.0.is_none()
    }

    /// Reads `{locale: .., strength: .., ..}`.
    pub fn parse(document: DocumentRef<'_>) -> Result<Collation> {
        let mut rules =
            Rules { locale: String::new(), strength: 3, case_level: false, numeric_ordering: false };
        for (name, value) in document.iter() {
            match name {
                "locale" => text(name, value)?.clone_into(&mut rules.locale),
                "strength" => rules.strength = strength(value)?,
                "caseLevel" => rules.case_level = flag(name, value)?,
                "numericOrdering" => rules.numeric_ordering = flag(name, value)?,
                "caseFirst" => default_text(name, value, "off", &["upper", "lower"])?,
                "alternate" => default_text(name, value, "non-ignorable", &["shifted"])?,
                // Without `alternate: shifted` this says nothing, so both values are the same.
                "maxVariable" => match text(name, value)? {
                    "punct" | "space" => {}
                    other => return Err(wrong_value(name, other)),
                },
                // Strings are always normalised here: what this option would cost is paid anyway.
                "normalization" => drop(flag(name, value)?),
                "backwards" if flag(name, value)? => {
                    return Err(Error::Text("collation with backwards: true is not supported".into()));
                }
                "backwards" => {}
                "version" => drop(text(name, value)?),
                _ => return Err(Error::Text(format!("BSON field 'collation.{name}' is an unknown field."))),
            }
        }
        match rules.locale.as_str() {
            "" => Err(Error::Text("BSON field 'collation.locale' is missing but a required field".into())),
            "simple" if document.iter().all(|(name, _)| name == "locale" || name == "version") => {
                Ok(Collation::simple())
            }
            "simple" => Err(Error::Text("the simple locale takes no other collation options".into())),
            locale if known_locale(locale) => Ok(Collation(Some(rules))),
            locale => {
                Err(Error::Text(format!("unsupported collation locale: {}", crate::shell::shorten(locale))))
            }
        }
    }

    /// All options, as they are listed.
    pub fn to_document(&self) -> Document {
        let Some(rules) = &self.0 else { return Document::new().with("locale", "simple") };
        Document::new()
            .with("locale", rules.locale.as_str())
            .with("caseLevel", rules.case_level)
            .with("caseFirst", "off")
            .with("strength", i32::from(rules.strength))
            .with("numericOrdering", rules.numeric_ordering)
            .with("alternate", "non-ignorable")
            .with("maxVariable", "punct")
            .with("normalization", false)
            .with("backwards", false)
            .with("version", VERSION)
    }

    /// Compares two strings.
    pub fn compare(&self, left: &str, right: &str) -> Ordering {
        let Some(rules) = &self.0 else { return left.cmp(right) };
        if let Some(order) = weights::compare_ascii(rules, left, right) {
            return order;
        }
        let (mut left_key, mut right_key) = (Vec::new(), Vec::new());
        self.sort_key(left, &mut left_key);
        self.sort_key(right, &mut right_key);
        left_key.cmp(&right_key)
    }

    /// Appends bytes that sort as the strings do and are equal where the strings are.
    pub fn sort_key(&self, text: &str, out: &mut Vec<u8>) {
        match &self.0 {
            None => out.extend_from_slice(text.as_bytes()),
            Some(rules) => weights::sort_key(rules, text, out),
        }
    }

    /// Compares two values of any types, the strings in them by this collation.
    pub fn compare_values(&self, left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
        compare_by(left, right, &|left, right| self.compare(left, right))
    }
}

fn known_locale(locale: &str) -> bool {
    let mut parts = locale.split('_');
    parts.next().is_some_and(|language| LANGUAGES.contains(&language))
        && parts
            .all(|part| (2..=5).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

fn wrong_type(name: &str, value: ValueRef<'_>, wanted: &str) -> Error {
    let kind = value.kind().alias();
    Error::Text(format!("BSON field 'collation.{name}' is the wrong type '{kind}', expected type '{wanted}'"))
}

fn wrong_value(name: &str, value: &str) -> Error {
    let value = crate::shell::shorten(value);
    Error::Text(format!("Enumeration value '{value}' for field 'collation.{name}' is not a valid value."))
}

fn text<'a>(name: &str, value: ValueRef<'a>) -> Result<&'a str> {
    value.as_str().ok_or_else(|| wrong_type(name, value, "string"))
}

fn flag(name: &str, value: ValueRef<'_>) -> Result<bool> {
    value.as_bool().ok_or_else(|| wrong_type(name, value, "bool"))
}

fn default_text(name: &str, value: ValueRef<'_>, default: &str, others: &[&str]) -> Result<()> {
    match text(name, value)? {
        text if text == default => Ok(()),
        text if others.contains(&text) => {
            Err(Error::Text(format!("collation with {name}: \"{text}\" is not supported")))
        }
        text => Err(wrong_value(name, text)),
    }
}

fn strength(value: ValueRef<'_>) -> Result<u8> {
    let number = match value {
        ValueRef::Int32(number) => i64::from(number),
        ValueRef::Int64(number) => number,
        ValueRef::Double(number) if number.fract() == 0.0 => number as i64,
        _ => return Err(wrong_type("strength", value, "int")),
    };
    match number {
        1..=5 => Ok(number as u8),
        _ => Err(Error::Text(format!(
            "BSON field 'collation.strength' value must be between 1 and 5, actual value '{number}'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_extended_json;

    fn collation(text: &str) -> Result<Collation> {
        let value = parse_extended_json(text).expect(text);
        Collation::parse(value.as_document().expect("a document").view())
    }

    fn sorted(options: &str, words: &[&str]) -> String {
        let collation = collation(options).expect(options);
        let mut words: Vec<&str> = words.to_vec();
        words.sort_by(|left, right| collation.compare(left, right));
        words.join(" ")
    }

    #[test]
    fn options_are_read_and_listed() {
        assert!(collation(r#"{"locale":"simple"}"#).expect("simple").is_simple());
        let read =
            collation(r#"{"locale":"en_US","strength":2,"numericOrdering":true}"#).expect("a collation");
        let listed = read.to_document();
        assert_eq!(listed.get("strength"), Some(&crate::Value::Int32(2)));
        assert_eq!(Collation::parse(listed.view()), Ok(read));
        for wrong in [
            "{}",
            r#"{"strength":2}"#,
            r#"{"locale":"xx"}"#,
            r#"{"locale":"en@collation=search"}"#,
            r#"{"locale":5}"#,
            r#"{"locale":"simple","strength":2}"#,
            r#"{"locale":"en","strength":0}"#,
            r#"{"locale":"en","strength":"2"}"#,
            r#"{"locale":"en","caseFirst":"upper"}"#,
            r#"{"locale":"en","alternate":"shifted"}"#,
            r#"{"locale":"fr","backwards":true}"#,
            r#"{"locale":"en","other":true}"#,
        ] {
            assert!(collation(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn strength_says_what_counts() {
        let equal = |options: &str, left: &str, right: &str| {
            collation(options).expect(options).compare(left, right) == Ordering::Equal
        };
        let strength = |level: u8| format!(r#"{{"locale":"en","strength":{level}}}"#);
        for (left, right, equal_at) in [
            ("resume", "résumé", 1),
            ("résumé", "RÉSUMÉ", 2),
            ("é", "e\u{301}", 3),
            ("straße", "STRASSE", 1),
            ("Ærø", "aero", 1),
            ("Σ", "ς", 2),
            ("ﬁ", "fi", 2),
            ("a", "b", 0),
            ("", "\u{1}", 3),
        ] {
            for level in 1..=5 {
                let expected = level <= equal_at || equal_at == 3;
                assert_eq!(equal(&strength(level), left, right), expected, "{left} {right} {level}");
            }
        }
        let with_case = r#"{"locale":"en","strength":1,"caseLevel":true}"#;
        assert!(equal(with_case, "resume", "résumé"));
        assert!(!equal(with_case, "resume", "Resume"));
    }

    #[test]
    fn words_come_in_order() {
        let words = ["b", "A", "á", "B", "a", "_x", "10", "9", "ab", "Z", "я", "é", "f", "ä"];
        assert_eq!(sorted(r#"{"locale":"en"}"#, &words), "_x 10 9 a A á ä ab b B é f Z я");
        assert_eq!(
            sorted(
                r#"{"locale":"en","numericOrdering":true}"#,
                &["a10", "a9", "a009b", "a", "a10b", "b1", "a2"]
            ),
            "a a2 a9 a009b a10 a10b b1"
        );
        assert_eq!(sorted(r#"{"locale":"simple"}"#, &["b", "A", "á", "a"]), "A a b á");
    }
}
