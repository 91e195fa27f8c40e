//! The options of a collation: as a client sends them, and with the defaults of their locale filled in.

use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};

use super::locale;
use crate::error::{Error, Result};
use crate::value::Document;
use crate::value::view::{DocumentRef, ValueRef};

/// All options, with every default filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are MongoDB's options, each true or false there")]
pub(super) struct Options {
    locale: String,
    /// 1 to 5.
    pub(super) strength: u8,
    pub(super) case_level: bool,
    case_first: &'static str,
    pub(super) numeric_ordering: bool,
    alternate: &'static str,
    max_variable: &'static str,
    /// Listed as given. Strings are always normalized here.
    normalization: bool,
    backwards: bool,
}

impl Options {
    /// Returns the options as they are listed, without the version.
    pub(super) fn to_document(&self) -> Document {
        Document::new()
            .with("locale", self.locale.as_str())
            .with("caseLevel", self.case_level)
            .with("caseFirst", self.case_first)
            .with("strength", i32::from(self.strength))
            .with("numericOrdering", self.numeric_ordering)
            .with("alternate", self.alternate)
            .with("maxVariable", self.max_variable)
            .with("normalization", self.normalization)
            .with("backwards", self.backwards)
    }
}

/// Options as a client sends them. Absent options follow the locale: Danish puts upper case first, Canadian French
/// compares accents from the end, Thai ignores punctuation.
#[derive(Debug, Default)]
pub(super) struct RequestedOptions {
    locale: String,
    strength: Option<u8>,
    case_level: Option<bool>,
    case_first: Option<&'static str>,
    numeric_ordering: Option<bool>,
    alternate: Option<&'static str>,
    max_variable: Option<&'static str>,
    normalization: bool,
    backwards: Option<bool>,
}

impl RequestedOptions {
    /// Reads a document of options; `None` is the simple collation.
    pub(super) fn parse(document: DocumentRef<'_>) -> Result<Option<RequestedOptions>> {
        let mut given = RequestedOptions::default();
        for (name, value) in document.iter() {
            match name {
                "locale" => text(name, value)?.clone_into(&mut given.locale),
                "strength" => given.strength = Some(strength(value)?),
                "caseLevel" => given.case_level = Some(flag(name, value)?),
                "caseFirst" => given.case_first = Some(one_of(name, value, &["off", "upper", "lower"])?),
                "numericOrdering" => given.numeric_ordering = Some(flag(name, value)?),
                "alternate" => given.alternate = Some(one_of(name, value, &["non-ignorable", "shifted"])?),
                "maxVariable" => given.max_variable = Some(one_of(name, value, &["punct", "space"])?),
                "normalization" => given.normalization = flag(name, value)?,
                "backwards" => given.backwards = Some(flag(name, value)?),
                "version" => drop(text(name, value)?),
                _ => return Err(Error::Text(format!("BSON field 'collation.{name}' is an unknown field."))),
            }
        }
        match given.locale.as_str() {
            "" => Err(Error::Text("BSON field 'collation.locale' is missing but a required field".into())),
            "simple" if document.iter().all(|(name, _)| name == "locale" || name == "version") => Ok(None),
            "simple" => Err(Error::Text("the simple locale takes no other collation options".into())),
            _ => Ok(Some(given)),
        }
    }

    /// Fills in the defaults of the locale and creates the collator.
    pub(super) fn resolve(self) -> Result<(Options, CollatorBorrowed<'static>)> {
        let locale = locale::parse(&self.locale)?;
        let is_canadian_french = self.locale == "fr_CA";
        if self.backwards.is_some_and(|backwards| backwards != is_canadian_french) {
            let text = "collation with 'backwards' other than the locale's own is not supported: it is true for fr_CA, false for all others";
            return Err(Error::Text(text.into()));
        }
        let collator = Collator::try_new(self.preferences(&locale), self.collator_options())
            .map_err(|error| Error::Text(format!("no collation for locale '{}': {error}", self.locale)))?;
        let resolved = collator.resolved_options();
        let options = Options {
            // The number of the highest strength is not next to the others in ICU4X.
            strength: self.strength.unwrap_or(resolved.strength as u8 + 1).min(5),
            case_level: resolved.case_level == CaseLevel::On,
            case_first: match resolved.case_first {
                CollationCaseFirst::Upper => "upper",
                CollationCaseFirst::Lower => "lower",
                _ => "off",
            },
            numeric_ordering: resolved.numeric == CollationNumericOrdering::True,
            alternate: match resolved.alternate_handling {
                AlternateHandling::Shifted => "shifted",
                _ => "non-ignorable",
            },
            max_variable: match resolved.max_variable {
                MaxVariable::Space => "space",
                _ => "punct",
            },
            normalization: self.normalization,
            backwards: is_canadian_french,
            locale: self.locale,
        };
        Ok((options, collator))
    }

    /// Returns the options of a store before format 9: those it knew, all others at the defaults it listed.
    pub(super) fn legacy(self) -> Options {
        Options {
            locale: self.locale,
            strength: self.strength.unwrap_or(3),
            case_level: self.case_level.unwrap_or(false),
            case_first: "off",
            numeric_ordering: self.numeric_ordering.unwrap_or(false),
            alternate: "non-ignorable",
            max_variable: "punct",
            normalization: false,
            backwards: false,
        }
    }

    fn preferences(&self, locale: &icu_locale_core::Locale) -> CollatorPreferences {
        let mut preferences = CollatorPreferences::from(locale);
        if let Some(case_first) = self.case_first {
            preferences.case_first = Some(match case_first {
                "upper" => CollationCaseFirst::Upper,
                "lower" => CollationCaseFirst::Lower,
                _ => CollationCaseFirst::False,
            });
        }
        if let Some(numeric) = self.numeric_ordering {
            let numeric =
                if numeric { CollationNumericOrdering::True } else { CollationNumericOrdering::False };
            preferences.numeric_ordering = Some(numeric);
        }
        preferences
    }

    fn collator_options(&self) -> CollatorOptions {
        let mut options = CollatorOptions::default();
        options.strength = self.strength.map(|strength| match strength {
            1 => Strength::Primary,
            2 => Strength::Secondary,
            3 => Strength::Tertiary,
            4 => Strength::Quaternary,
            _ => Strength::Identical,
        });
        options.case_level = self.case_level.map(|on| if on { CaseLevel::On } else { CaseLevel::Off });
        options.alternate_handling = self.alternate.map(|alternate| match alternate {
            "shifted" => AlternateHandling::Shifted,
            _ => AlternateHandling::NonIgnorable,
        });
        options.max_variable = self.max_variable.map(|variable| match variable {
            "space" => MaxVariable::Space,
            _ => MaxVariable::Punctuation,
        });
        options
    }
}

fn wrong_type(name: &str, value: ValueRef<'_>, wanted: &str) -> Error {
    let kind = value.kind().alias();
    Error::Text(format!("BSON field 'collation.{name}' is the wrong type '{kind}', expected type '{wanted}'"))
}

fn text<'a>(name: &str, value: ValueRef<'a>) -> Result<&'a str> {
    value.as_str().ok_or_else(|| wrong_type(name, value, "string"))
}

fn flag(name: &str, value: ValueRef<'_>) -> Result<bool> {
    value.as_bool().ok_or_else(|| wrong_type(name, value, "bool"))
}

fn one_of(name: &str, value: ValueRef<'_>, accepted: &[&'static str]) -> Result<&'static str> {
    let text = text(name, value)?;
    accepted.iter().copied().find(|accepted| *accepted == text).ok_or_else(|| {
        let value = crate::shorten::shorten(text);
        Error::Text(format!("Enumeration value '{value}' for field 'collation.{name}' is not a valid value."))
    })
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
