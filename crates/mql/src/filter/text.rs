//! `$text`: full-text search in the fields of a text index.
//!
//! The index's fields, weights and language come with the settings; without them a search can be parsed, but not evaluated.

use std::sync::Arc;

use bson::{DocumentRef, ValueRef};
use stemming::Language;

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::text::{TextOptions, TextQuery, TextRules};

/// A search for words.
#[derive(Debug, Clone)]
pub struct TextSearch {
    search: String,
    language: Option<Language>,
    case_sensitive: bool,
    diacritic_sensitive: bool,
    prepared: Option<Prepared>,
}

#[derive(Debug, Clone)]
struct Prepared {
    rules: Arc<TextRules>,
    query: TextQuery,
}

impl TextSearch {
    /// Reads the operand of `$text`.
    pub(super) fn parse(operand: ValueRef<'_>, rules: Option<&Arc<TextRules>>) -> Result<TextSearch> {
        let Some(operand) = operand.as_document() else {
            return Err(Error::bad_value("$text expects an object"));
        };
        let search = match operand.get("$search") {
            None => return Err(Error::location(4, "Missing expected field \"$search\"")),
            Some(value) => text("$search", value)?.to_owned(),
        };
        let language = operand.get("$language").map(|value| text("$language", value)).transpose()?;
        let language = language.map(|name| {
            let message = format!("unsupported language: \"{name}\" for text index version 3");
            Language::named(name).ok_or_else(|| Error::bad_value(message))
        });
        if let Some((name, _)) = operand.iter().find(|(name, _)| !FIELDS.contains(name)) {
            return Err(Error::bad_value(format!("extra fields in $text: {name}")));
        }
        let mut parsed = TextSearch {
            search,
            language: language.transpose()?,
            case_sensitive: flag(operand, "$caseSensitive")?,
            diacritic_sensitive: flag(operand, "$diacriticSensitive")?,
            prepared: None,
        };
        parsed.prepared =
            rules.map(|rules| Prepared { rules: Arc::clone(rules), query: parsed.query(rules) });
        Ok(parsed)
    }

    /// Returns `true` if the search has the rules of its index.
    pub(crate) fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// Returns the search text as written.
    pub fn search(&self) -> &str {
        &self.search
    }

    /// Returns the search as an index with these rules answers it.
    pub fn query(&self, rules: &TextRules) -> TextQuery {
        let language = self.language.unwrap_or_else(|| rules.default_language());
        let options = TextOptions {
            language,
            case_sensitive: self.case_sensitive,
            diacritic_sensitive: self.diacritic_sensitive,
        };
        TextQuery::parse(&self.search, rules, options)
    }

    /// Returns the score of a document: `{$meta: "textScore"}`. `None` if it does not match.
    pub fn score(&self, document: DocumentRef<'_>, context: &Context) -> Result<Option<f64>> {
        let Some(Prepared { rules, query }) = &self.prepared else {
            return Err(Error::new(Code::INDEX_NOT_FOUND, "text index required for $text query"));
        };
        query.score(rules, document, context)
    }
}

const FIELDS: [&str; 4] = ["$search", "$language", "$caseSensitive", "$diacriticSensitive"];

fn text<'a>(name: &str, value: ValueRef<'a>) -> Result<&'a str> {
    value.as_str().ok_or_else(|| wrong_type(name, "string", value))
}

fn flag(operand: DocumentRef<'_>, name: &str) -> Result<bool> {
    operand
        .get(name)
        .map_or(Ok(false), |value| value.as_bool().ok_or_else(|| wrong_type(name, "bool", value)))
}

fn wrong_type(name: &str, wanted: &str, value: ValueRef<'_>) -> Error {
    let kind = value.kind().alias();
    Error::type_mismatch(format!("\"{name}\" had the wrong type. Expected {wanted}, found {kind}"))
}
