//! Searching for words: what `$search` says, and whether a document has it.

use std::collections::BTreeSet;

use bson::DocumentRef;

use super::TextRules;
use super::words::{Language, fold, terms, without_diacritics, words, written_term};
use crate::context::Context;
use crate::error::Result;

/// A search, ready to be asked: words of which one is enough, phrases that all have to be there, and what must not be.
#[derive(Debug, Clone, PartialEq)]
pub struct TextQuery {
    terms: BTreeSet<String>,
    /// The words as written, without their endings, for a search that minds case or diacritics.
    written: Vec<String>,
    negated: BTreeSet<String>,
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
    language: Language,
    case_sensitive: bool,
    diacritic_sensitive: bool,
}

impl TextQuery {
    /// Reads a search text: words, `"phrases"`, and either of them after a `-`.
    pub fn parse(
        search: &str,
        language: Language,
        case_sensitive: bool,
        diacritic_sensitive: bool,
    ) -> TextQuery {
        let mut query = TextQuery {
            terms: BTreeSet::new(),
            written: Vec::new(),
            negated: BTreeSet::new(),
            phrases: Vec::new(),
            negated_phrases: Vec::new(),
            language,
            case_sensitive,
            diacritic_sensitive,
        };
        let mut before = "";
        for (part, text) in search.split('"').enumerate() {
            if part % 2 == 0 {
                query.add_words(text);
                before = text;
                continue;
            }
            // A minus sign directly before the quotation mark, and not as the end of a word.
            let negated =
                before.ends_with('-') && !before.trim_end_matches('-').ends_with(char::is_alphanumeric);
            if negated {
                query.negated_phrases.push(query.as_compared(text));
            } else {
                query.phrases.push(query.as_compared(text));
                query.add(text);
            }
        }
        query
    }

    /// The words of which a document needs one: what to look for in the index.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(String::as_str)
    }

    /// What a document is worth to the search; `None` if it does not match.
    pub fn score(
        &self,
        rules: &TextRules,
        document: DocumentRef<'_>,
        context: &Context,
    ) -> Result<Option<f64>> {
        let scores = rules.scores(document, context)?;
        let score: f64 = self.terms.iter().filter_map(|term| scores.get(term)).sum();
        if score <= 0.0 || self.negated.iter().any(|term| scores.contains_key(term)) {
            return Ok(None);
        }
        let exact = self.case_sensitive || self.diacritic_sensitive;
        if !exact && self.phrases.is_empty() && self.negated_phrases.is_empty() {
            return Ok(Some(score));
        }
        let mut texts = Vec::new();
        rules.texts(document, context, &mut |text, _, _| {
            texts.push(self.as_compared(text));
            Ok(())
        })?;
        let has_phrase = |phrase: &String| texts.iter().any(|text| text.contains(phrase.as_str()));
        let has_word = || {
            texts
                .iter()
                .flat_map(|text| words(text))
                .filter_map(|word| written_term(word, self.language))
                .any(|word| self.written.contains(&word))
        };
        let matches = self.phrases.iter().all(has_phrase)
            && !self.negated_phrases.iter().any(has_phrase)
            && (!exact || has_word());
        Ok(matches.then_some(score))
    }

    fn add_words(&mut self, text: &str) {
        for word in text.split_whitespace() {
            match word.strip_prefix('-') {
                Some(word) => self.negated.extend(terms(word, self.language)),
                None => self.add(word),
            }
        }
    }

    fn add(&mut self, text: &str) {
        self.terms.extend(terms(text, self.language));
        let written = |word| written_term(&self.as_compared(word), self.language);
        let written: Vec<String> = words(text).filter_map(written).collect();
        self.written.extend(written);
    }

    fn as_compared(&self, text: &str) -> String {
        match (self.case_sensitive, self.diacritic_sensitive) {
            (false, false) => fold(text),
            (true, false) => without_diacritics(text),
            (false, true) => text.to_lowercase(),
            (true, true) => text.to_owned(),
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
        let query = TextQuery::parse(search, Language::English, false, false);
        query.score(rules, document(stored).view(), &Context::at(0)).expect("a score")
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
        let exact = TextQuery::parse("café", Language::English, false, true);
        let spec = document(r#"{"key":{"t":"text"},"name":"x"}"#);
        let index = IndexSpec::parse(spec.view()).expect("an index");
        let found = |text: &str| {
            let stored = Document::new().with("t", Value::from(text));
            let rules = index.text_rules().expect("a text index");
            exact.score(rules, stored.view(), &Context::at(0)).expect("a score").is_some()
        };
        assert!(found("Café") && !found("Cafe"));
    }

    /// Words that say nothing do not make a document match, however they are written.
    #[test]
    fn a_search_that_minds_case_takes_endings_off() {
        let spec = document(r#"{"key":{"t":"text"},"name":"x"}"#);
        let index = IndexSpec::parse(spec.view()).expect("an index");
        let found = |search: &str, text: &str| {
            let query = TextQuery::parse(search, Language::English, true, false);
            let stored = Document::new().with("t", Value::from(text));
            let rules = index.text_rules().expect("a text index");
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
