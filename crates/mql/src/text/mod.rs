//! Text indexes: the words of a document, their weights, and searching for them.
//!
//! A word is compared without case, diacritics and endings, so that `running` finds `Runs`; words that are too common to search
//! for are left out. The language of a text determines these words and endings: see `analysis.rs`.

pub(crate) mod analysis;
mod legacy;
mod search;

use std::collections::BTreeMap;

use bson::{Document, DocumentRef, ValueRef};

use stemming::Language;

pub(crate) use search::TextOptions;
pub use search::TextQuery;

use analysis::{Edition, Sensitivity, StopWords};

use crate::context::Context;
use crate::error::{Error, Result};

/// The rules by which a text index reads documents.
#[derive(Debug, Clone, PartialEq)]
pub struct TextRules {
    /// The weight of each field by its path; `$**` stands for all fields.
    pub(crate) weights: BTreeMap<String, f64>,
    /// The weights as they are listed.
    pub(crate) listed: Document,
    pub(crate) default_language: String,
    pub(crate) language: Language,
    pub(crate) language_override: String,
    pub(crate) version: i32,
    pub(crate) edition: Edition,
}

const ALL_FIELDS: &str = "$**";

impl TextRules {
    /// Returns the names of the fields, in order.
    pub(crate) fn fields(&self) -> Vec<&str> {
        self.weights.keys().map(String::as_str).collect()
    }

    /// Returns the language of texts and searches that name none.
    pub fn default_language(&self) -> Language {
        self.language
    }

    /// Returns the words of a document with their scores.
    pub fn scores(&self, document: DocumentRef<'_>, context: &Context) -> Result<BTreeMap<String, f64>> {
        let mut scores = BTreeMap::new();
        self.texts(document, context, &mut |text, weight, language| {
            add_scores(self.edition, text, weight, language, &mut scores);
            Ok(())
        })?;
        Ok(scores)
    }

    /// Calls `found` with every text of the indexed fields.
    pub(crate) fn texts<'d>(
        &self,
        document: DocumentRef<'d>,
        context: &Context,
        found: &mut dyn FnMut(&'d str, f64, Language) -> Result<()>,
    ) -> Result<()> {
        let mut walk = TextTraversal { rules: self, context, path: String::new(), found };
        walk.document(document, self.language)
    }
}

/// Adds the scores of a text. Each further occurrence of a word counts half of the previous one; a word that is rare among
/// those of its field counts less, and one that is the whole field a little more.
fn add_scores(
    edition: Edition,
    text: &str,
    weight: f64,
    language: Language,
    scores: &mut BTreeMap<String, f64>,
) {
    struct Count {
        times: f64,
        worth: f64,
        next: f64,
    }
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut words = 0.0;
    for term in edition.terms(text, language, Sensitivity::default(), StopWords::Dropped) {
        let count = counts.entry(term).or_insert(Count { times: 0.0, worth: 0.0, next: 1.0 });
        count.times += 1.0;
        count.worth += count.next;
        count.next /= 2.0;
        words += 1.0;
    }
    for (term, count) in counts {
        let share = 0.5 * count.times / words + 0.5;
        let whole = if text.eq_ignore_ascii_case(&term) { 1.1 } else { 1.0 };
        *scores.entry(term).or_insert(0.0) += weight * count.worth * share * whole;
    }
}

struct TextTraversal<'w, 'd> {
    rules: &'w TextRules,
    context: &'w Context,
    path: String,
    found: &'w mut dyn FnMut(&'d str, f64, Language) -> Result<()>,
}

impl<'d> TextTraversal<'_, 'd> {
    fn document(&mut self, document: DocumentRef<'d>, language: Language) -> Result<()> {
        let language = match document.get(&self.rules.language_override) {
            Some(ValueRef::String(name)) => Language::named(name)
                .ok_or_else(|| Error::location(17262, format!("language override unsupported: {name}")))?,
            Some(_) if self.path.is_empty() => {
                let name = &self.rules.language_override;
                let message =
                    format!("found language override field in document with non-string type: {name}");
                return Err(Error::location(17261, message));
            }
            _ => language,
        };
        for (name, value) in document.iter() {
            self.context.spend(1)?;
            let length = self.path.len();
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            self.value(value, language)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn value(&mut self, value: ValueRef<'d>, language: Language) -> Result<()> {
        match value {
            ValueRef::String(text) => {
                let weights = &self.rules.weights;
                let weight = weights.get(&self.path).or_else(|| weights.get(ALL_FIELDS)).copied();
                self.context.spend(text.len() as u64 / 16)?;
                match weight {
                    Some(weight) => (self.found)(text, weight, language),
                    None => Ok(()),
                }
            }
            ValueRef::Document(document) => self.document(document, language),
            ValueRef::Array(items) => {
                for item in items.iter() {
                    self.context.spend(1)?;
                    if !matches!(item, ValueRef::Array(_)) {
                        self.value(item, language)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
