//! Text search: parsing of `$search`, and matching documents.

use std::collections::BTreeSet;

use bson::DocumentRef;
use stemming::Language;

use super::TextRules;
use super::analysis::{Edition, Sensitivity, StopWords};
use crate::context::Context;
use crate::error::Result;

/// A parsed search: words of which one is enough, phrases that are all required, and excluded words and phrases.
#[derive(Debug, Clone, PartialEq)]
pub struct TextQuery {
    edition: Edition,
    sensitivity: Sensitivity,
    /// The terms of which a document needs one, as the index has them.
    terms: BTreeSet<String>,
    /// The same terms with the case and the diacritics to which the search is sensitive.
    exact: BTreeSet<String>,
    /// Terms that a document must not have, with the same sensitivity.
    negated: BTreeSet<String>,
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
}

/// The options of a `$text` beside the search text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextOptions {
    pub(crate) language: Language,
    pub(crate) case_sensitive: bool,
    pub(crate) diacritic_sensitive: bool,
}

impl TextQuery {
    /// Reads a search text for an index with these rules: words, `"phrases"`, and either of them after a `-`.
    pub(crate) fn parse(search: &str, rules: &TextRules, options: TextOptions) -> TextQuery {
        let mut query = TextQuery {
            edition: rules.edition,
            sensitivity: Sensitivity {
                case: options.case_sensitive,
                diacritics: options.diacritic_sensitive,
            },
            terms: BTreeSet::new(),
            exact: BTreeSet::new(),
            negated: BTreeSet::new(),
            phrases: Vec::new(),
            negated_phrases: Vec::new(),
        };
        let parts = SearchParts::read(search);
        let terms = |text: &str, sensitivity| {
            query.edition.terms(text, options.language, sensitivity, StopWords::Dropped).collect()
        };
        let insensitive = terms(&parts.words, Sensitivity::default());
        let (exact, negated) =
            (terms(&parts.words, query.sensitivity), terms(&parts.negated, query.sensitivity));
        (query.terms, query.exact, query.negated) = (insensitive, exact, negated);
        (query.phrases, query.negated_phrases) = (parts.phrases, parts.negated_phrases);
        query
    }

    /// Returns the words of which a document needs one, to look up in the index.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(String::as_str)
    }

    /// Returns the score of a document; `None` if it does not match.
    pub fn score(
        &self,
        rules: &TextRules,
        document: DocumentRef<'_>,
        context: &Context,
    ) -> Result<Option<f64>> {
        let scores = rules.scores(document, context)?;
        let score: f64 = self.terms.iter().filter_map(|term| scores.get(term)).sum();
        if score <= 0.0 {
            return Ok(None);
        }
        let exact = self.sensitivity != Sensitivity::default();
        if !exact && self.negated.is_empty() && self.phrases.is_empty() && self.negated_phrases.is_empty() {
            return Ok(Some(score));
        }
        let mut texts = Vec::new();
        rules.texts(document, context, &mut |text, _, language| {
            texts.push((text, language));
            Ok(())
        })?;
        let matches = (!exact || self.has_term(&texts, &self.exact))
            && !self.has_term(&texts, &self.negated)
            && self.phrases.iter().all(|phrase| self.has_phrase(&texts, phrase))
            && !self.negated_phrases.iter().any(|phrase| self.has_phrase(&texts, phrase));
        Ok(matches.then_some(score))
    }

    fn has_term(&self, texts: &[(&str, Language)], terms: &BTreeSet<String>) -> bool {
        let found = |(text, language): &(&str, Language)| {
            self.edition
                .terms(text, *language, self.sensitivity, StopWords::Kept)
                .any(|term| terms.contains(&term))
        };
        !terms.is_empty() && texts.iter().any(found)
    }

    fn has_phrase(&self, texts: &[(&str, Language)], phrase: &str) -> bool {
        texts.iter().any(|(text, language)| {
            let compared = |text| self.edition.compared(text, *language, self.sensitivity);
            compared(text).contains(&compared(phrase))
        })
    }
}

/// The parts of a search text.
#[derive(Debug, Default, PartialEq)]
struct SearchParts {
    /// Words that count, those of phrases included.
    words: String,
    negated: String,
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
}

impl SearchParts {
    /// Parses a search text. A `-` after white space negates the words and phrases up to the next white space; within
    /// a phrase it is ignored. A quotation mark without its partner begins no phrase, but what follows it cannot be
    /// negated.
    fn read(search: &str) -> SearchParts {
        let mut parts = SearchParts::default();
        let (mut negating, mut after_space) = (false, true);
        let mut phrase: Option<usize> = None;
        for (at, char) in search.char_indices() {
            match char {
                ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' => {
                    negating &= phrase.is_some();
                    parts.push(' ', negating, phrase.is_some());
                    after_space = true;
                    continue;
                }
                '-' => negating |= phrase.is_none() && after_space,
                '"' => match phrase.take() {
                    Some(start) if negating => parts.negated_phrases.push(search[start..at].to_owned()),
                    Some(start) => parts.phrases.push(search[start..at].to_owned()),
                    None => phrase = Some(at + 1),
                },
                _ => {}
            }
            let separates = matches!(char, '-' | '"');
            parts.push(if separates { ' ' } else { char }, negating, phrase.is_some());
            after_space = false;
        }
        parts
    }

    fn push(&mut self, char: char, negating: bool, in_phrase: bool) {
        match (negating, in_phrase) {
            (false, _) => self.words.push(char),
            (true, false) => self.negated.push(char),
            // The words of an excluded phrase may occur separately.
            (true, true) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::{Document, Value, parse_extended_json};

    use super::*;
    use crate::index::IndexSpec;

    fn document(json: &str) -> Document {
        parse_extended_json(json).expect(json).as_document().expect("a document").clone()
    }

    fn score(search: &str, stored: &str) -> Option<f64> {
        let spec = document(r#"{"key":{"t":"text","s":"text"},"name":"x","weights":{"s":3}}"#);
        let index = IndexSpec::parse(spec.view()).expect("an index");
        let rules = index.text_rules().expect("a text index");
        let query = TextQuery::parse(search, rules, options(false, false));
        query.score(rules, document(stored).view(), &Context::at(0)).expect("a score")
    }

    fn options(case_sensitive: bool, diacritic_sensitive: bool) -> TextOptions {
        TextOptions { language: Language::ENGLISH, case_sensitive, diacritic_sensitive }
    }

    fn is(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-9)
    }

    #[test]
    fn scores_are_those_that_clients_know() {
        assert!(is(score("dog", r#"{"t":"Dog"}"#), 1.1));
        assert!(is(score("coffee", r#"{"t":"coffee"}"#), 1.0), "the stem is not the text");
        assert!(is(score("coffee", r#"{"t":"Coffee Shopping"}"#), 0.75));
        assert!(is(score("coffee", r#"{"s":"Coffee Shopping"}"#), 2.25));
        assert!(is(score("coffee shop", r#"{"t":"Coffee Shopping"}"#), 1.5));
        assert!(is(score("coffee", r#"{"t":"coffee coffee"}"#), 1.5));
        assert!(is(score("coffee", r#"{"t":["coffee","coffee"]}"#), 2.0));
    }

    #[test]
    fn words_phrases_and_negations() {
        let stored = r#"{"t":"Bake a Coffee Cake in the Café"}"#;
        for (search, found) in [
            ("cakes", true),
            ("tea cake", true),
            ("tea", false),
            ("cafe", true),
            ("\"coffee cake\"", true),
            ("\"cake coffee\"", false),
            ("\"coffee cake\" tea", true),
            ("cake -tea", true),
            ("cake -coffee", false),
            ("cake -\"coffee cake\"", false),
            ("cake -\"cake coffee\"", true),
            ("-tea", false),
            ("the", false),
            ("", false),
            ("\"", false),
        ] {
            assert_eq!(score(search, stored).is_some(), found, "{search}");
        }
        let spec = document(r#"{"key":{"t":"text"},"name":"x"}"#);
        let index = IndexSpec::parse(spec.view()).expect("an index");
        let found = |text: &str| {
            let stored = Document::new().with("t", Value::from(text));
            let rules = index.text_rules().expect("a text index");
            let exact = TextQuery::parse("café", rules, options(false, true));
            exact.score(rules, stored.view(), &Context::at(0)).expect("a score").is_some()
        };
        assert!(found("Café") && !found("Cafe"));
    }

    /// Stop words do not make a document match, in any spelling.
    #[test]
    fn a_search_that_minds_case_takes_endings_off() {
        let spec = document(r#"{"key":{"t":"text"},"name":"x"}"#);
        let index = IndexSpec::parse(spec.view()).expect("an index");
        let found = |search: &str, text: &str| {
            let stored = Document::new().with("t", Value::from(text));
            let rules = index.text_rules().expect("a text index");
            let query = TextQuery::parse(search, rules, options(true, false));
            query.score(rules, stored.view(), &Context::at(0)).expect("a score").is_some()
        };
        for (search, text, expected) in [
            ("Jumped", "the fox Jumps", true),
            ("Jumped", "the fox jumps", false),
            ("jumping", "the fox Jumps", false),
            ("Happily", "Happily", true),
            ("The Fox", "The fox", false),
            ("The Fox", "the Fox", true),
        ] {
            assert_eq!(found(search, text), expected, "{search} in {text}");
        }
    }
}
