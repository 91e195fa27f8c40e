//! Words in texts: the functions of full-text search and the score that ranks by it.
//!
//! A text becomes words (letters and digits in a row, lower-cased; an ideograph is a word of its own), English stop
//! words are left out, and English words are stemmed, all as the service documents it; sought values are treated
//! alike. A phrase is found where its words follow each other, not counting stop words. A phrase of stop words alone
//! is never found.
//!
//! A sought value may also be an object `{"term": "red", "distance": 1}`: then up to two letters of a word may
//! differ.
//!
//! The score is BM25 with the usual constants. Its statistics over all items come from outside: the executor collects
//! them, or a client does and passes them to `_FULLTEXTSCORE`.

use document::{Value, ValueRef};
use stemming::{LONGEST_WORD, stem};

use super::stop_words::is_stop_word;
use super::{Arg, Entry, bounds, number, text};
use crate::functions::context::Context;

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "FULLTEXTCONTAINS", least: 2, most: 2, run: contains_all },
    Entry { name: "FULLTEXTCONTAINSALL", least: 2, most: usize::MAX, run: contains_all },
    Entry { name: "FULLTEXTCONTAINSANY", least: 2, most: usize::MAX, run: contains_any },
    Entry { name: "_FULLTEXTSCORE", least: 5, most: 5, run: full_text_score },
    Entry { name: "_FULLTEXTWORDCOUNT", least: 1, most: 1, run: full_text_word_count },
];

/// BM25's `k1`: how soon repetitions of a word stop to count.
const SATURATION: f64 = 1.2;
/// BM25's `b`: how much the length of a text counts.
const LENGTH_WEIGHT: f64 = 0.75;
/// The most letters that a word may differ in.
const MOST_EDITS: usize = 2;

/// Returns the terms of a text: lower case, without stop words, stemmed.
pub fn tokens(text: &str) -> impl Iterator<Item = String> {
    words(text).filter_map(|word| {
        let word = word.to_lowercase().replace('\u{2019}', "'");
        (!is_stop_word(&word)).then(|| stem(&word))
    })
}

/// Returns the words of a text as they are written.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let end = word_length(rest);
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// Returns how many bytes the word at the beginning has. An apostrophe between letters belongs to it, a point or comma between
/// digits likewise.
fn word_length(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    let Some((_, mut before)) = characters.next() else { return 0 };
    if stands_alone(before) {
        return before.len_utf8();
    }
    while let Some((at, c)) = characters.next() {
        let joins = match (c, characters.peek()) {
            ('\'' | '\u{2019}', Some((_, after))) => before.is_alphabetic() && after.is_alphabetic(),
            ('.' | ',', Some((_, after))) => before.is_numeric() && after.is_numeric(),
            _ => false,
        };
        // Accents may follow their letter as separate characters.
        let continues = c.is_alphanumeric() || ('\u{300}'..='\u{36F}').contains(&c);
        if !joins && (!continues || stands_alone(c)) {
            return at;
        }
        before = c;
    }
    text.len()
}

/// Returns `true` if a character is of a writing without spaces between words.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// A sought phrase: words that follow each other, with letters that may differ.
#[derive(Debug)]
pub(crate) struct Phrase {
    tokens: Vec<String>,
    edits: usize,
}

impl Phrase {
    /// Reads a text or an object of term and distance.
    pub(crate) fn read(value: ValueRef<'_>) -> Option<Phrase> {
        let (term, edits) = match value {
            ValueRef::String(term) => (term, 0),
            ValueRef::Object(members) => {
                let edits = members.get("distance").map_or(Some(0), ValueRef::as_i64)?;
                (
                    members.get("term")?.as_str()?,
                    usize::try_from(edits).ok().filter(|edits| *edits <= MOST_EDITS)?,
                )
            }
            _ => return None,
        };
        Some(Phrase { tokens: tokens(term).collect(), edits })
    }

    /// Returns how often the phrase occurs.
    pub(crate) fn count(&self, words: &[String]) -> usize {
        if self.tokens.is_empty() {
            return 0;
        }
        let fits = |window: &&[String]| window.iter().zip(&self.tokens).all(|(a, b)| alike(a, b, self.edits));
        words.windows(self.tokens.len()).filter(fits).count()
    }
}

/// Returns `true` if one word becomes the other by that many letters put in, left out or replaced.
fn alike(a: &str, b: &str, edits: usize) -> bool {
    if edits == 0 || a == b || a.len().max(b.len()) > LONGEST_WORD {
        return a == b;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > edits {
        return false;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()] <= edits
}

/// Statistics of all texts together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Corpus {
    /// How many texts there are.
    pub(crate) documents: f64,
    /// How many words they have together.
    pub(crate) words: f64,
}

/// Returns the score of a text of `words` words. `sought` has for each phrase how often it occurs in the text, and in how many
/// texts it occurs.
pub(crate) fn bm25(corpus: Corpus, words: f64, sought: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let average = corpus.words / corpus.documents;
    let relative_length = if average > 0.0 { words / average } else { 1.0 };
    let damping = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * relative_length);
    let score = |(times, documents): (f64, f64)| {
        let without = (corpus.documents - documents).max(0.0);
        let rarity = (1.0 + (without + 0.5) / (documents + 0.5)).ln();
        if times > 0.0 { rarity * times * (SATURATION + 1.0) / (times + damping) } else { 0.0 }
    };
    sought.into_iter().map(score).sum()
}

/// Returns the words of an argument, after charging their analysis.
fn analyzed(argument: Arg<'_>, context: &Context) -> Option<Vec<String>> {
    let text = text(argument)?;
    // Analysis allocates each word, which costs more than a walk.
    bounds::walk(text.len().saturating_mul(8), context)?;
    Some(tokens(text).collect())
}

/// Returns how often each of the sought values occurs.
fn counts(words: &[String], sought: &[Phrase], context: &Context) -> Option<Vec<usize>> {
    let work = sought.iter().map(|phrase| (phrase.tokens.len() + 1) * if phrase.edits > 0 { 64 } else { 4 });
    bounds::walk(words.len().saturating_mul(work.sum()), context)?;
    Some(sought.iter().map(|phrase| phrase.count(words)).collect())
}

/// Returns how often each argument after the first, which is the text, occurs.
fn arguments_found(arguments: &[Arg<'_>], context: &Context) -> Option<Vec<usize>> {
    let sought: Vec<Phrase> =
        arguments[1..].iter().map(|sought| Phrase::read((*sought)?)).collect::<Option<_>>()?;
    counts(&analyzed(arguments[0], context)?, &sought, context)
}

fn contains_all(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    Some(Value::Bool(arguments_found(arguments, context)?.iter().all(|count| *count > 0)))
}

fn contains_any(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    Some(Value::Bool(arguments_found(arguments, context)?.iter().any(|count| *count > 0)))
}

fn full_text_word_count(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    Some(Value::Int(analyzed(arguments[0], context)?.len() as i64))
}

/// Computes the score. The arguments: the text, an array of sought values, the number of texts, the number of words
/// in them, an array of the numbers of texts with each sought value.
fn full_text_score(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let sought: Vec<Phrase> = arguments[1]?.as_array()?.iter().map(Phrase::read).collect::<Option<_>>()?;
    let corpus = Corpus { documents: arguments[2]?.as_f64()?, words: arguments[3]?.as_f64()? };
    let hits: Vec<f64> = arguments[4]?.as_array()?.iter().map(ValueRef::as_f64).collect::<Option<_>>()?;
    if hits.len() != sought.len() {
        return None;
    }
    let words = analyzed(arguments[0], context)?;
    let counts = counts(&words, &sought, context)?;
    let times = counts.into_iter().map(|count| count as f64);
    number(bm25(corpus, words.len() as f64, times.zip(hits)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, call_in, check};
    use super::*;
    use crate::functions::context::Fault;

    fn all(text: &str) -> Vec<String> {
        tokens(text).collect()
    }

    #[test]
    fn words_of_texts() {
        assert_eq!(
            words("Don't  stop: 3.14, x_y (naïve) e\u{301}te").collect::<Vec<_>>(),
            ["Don't", "stop", "3.14", "x", "y", "naïve", "e\u{301}te"]
        );
        assert_eq!(words("東京 tower 5th'").collect::<Vec<_>>(), ["東", "京", "tower", "5th"]);
        assert_eq!(words("rock'n'roll ' 'a' 1,").collect::<Vec<_>>(), ["rock'n'roll", "a", "1"]);
        assert_eq!(words("... ---").count() + words("").count(), 0);
    }

    #[test]
    fn common_words_and_endings_do_not_count() {
        assert_eq!(all("The Swimmers were SWIMMING in the pools"), ["swimmer", "swim", "pool"]);
        assert_eq!(all("don\u{2019}t it's the cat's"), ["cat"]);
        assert_eq!(all("Straße ÉTÉ"), ["straße", "été"]);
    }

    #[test]
    fn what_texts_contain() {
        check(&[
            ("FULLTEXTCONTAINS", r#""A red bicycle, and mountains", "Bicycles""#, "true"),
            ("FULLTEXTCONTAINS", r#""A red bicycle, and mountains", "red bicycle""#, "true"),
            ("FULLTEXTCONTAINS", r#""A red bicycle, and mountains", "bicycle mountain""#, "true"),
            ("FULLTEXTCONTAINS", r#""A red bicycle, and mountains", "red mountain""#, "false"),
            ("FULLTEXTCONTAINS", r#""A red bicycle", "bicycle red""#, "false"),
            ("FULLTEXTCONTAINS", r#""A red bicycle", "the""#, "false"),
            ("FULLTEXTCONTAINS", r#""A red bicycle", """#, "false"),
            ("FULLTEXTCONTAINS", r#""A red bicycle", "cycle""#, "false"),
            ("FULLTEXTCONTAINS", r#""東京都", "京都""#, "true"),
            ("FULLTEXTCONTAINS", r#""A rad bicycle", {"term": "red", "distance": 1}"#, "true"),
            ("FULLTEXTCONTAINS", r#""A rad bicycle", {"term": "red"}"#, "false"),
            ("FULLTEXTCONTAINS", r#""A bicylce", {"term": "bicycle", "distance": 2}"#, "true"),
            ("FULLTEXTCONTAINS", r#""A rad bicycle", {"term": "red", "distance": 3}"#, "undefined"),
            ("FULLTEXTCONTAINS", r#""A red bicycle", 1"#, "undefined"),
            ("FULLTEXTCONTAINS", r#"1, "red""#, "undefined"),
            ("FULLTEXTCONTAINS", r#"undefined, "red""#, "undefined"),
            ("FULLTEXTCONTAINSALL", r#""A red bicycle", "red", "bicycle""#, "true"),
            ("FULLTEXTCONTAINSALL", r#""A red bicycle", "red", "skateboard""#, "false"),
            ("FULLTEXTCONTAINSALL", r#""A red bicycle", "red", undefined"#, "undefined"),
            ("FULLTEXTCONTAINSANY", r#""A red bicycle", "skateboard", "bicycle""#, "true"),
            ("FULLTEXTCONTAINSANY", r#""A red bicycle", "skateboard""#, "false"),
            ("FULLTEXTCONTAINSANY", r#""A red bicycle", null"#, "undefined"),
            ("_FULLTEXTWORDCOUNT", r#""A red bicycle, and mountains""#, "3"),
            ("_FULLTEXTWORDCOUNT", r#""""#, "0"),
            ("_FULLTEXTWORDCOUNT", "5", "undefined"),
        ]);
    }

    #[test]
    fn rare_words_and_short_texts_score_higher() {
        let score =
            |arguments: &str| call("_FULLTEXTSCORE", arguments).and_then(|score| score.as_f64()).unwrap();
        // ln(1 + 8.5 / 2.5) * 1 * 2.2 / (1 + 1.2) with a text of average length.
        assert!((score(r#""swim lake", ["swim"], 10, 20, [2]"#) - 4.4_f64.ln()).abs() < 1e-12);
        assert!(
            score(r#""swim lake", ["swim"], 10, 20, [9]"#) < score(r#""swim lake", ["swim"], 10, 20, [2]"#)
        );
        assert!(
            score(r#""swim lake boat tree", ["swim"], 10, 20, [2]"#)
                < score(r#""swim lake", ["swim"], 10, 20, [2]"#)
        );
        // Stop words do not make a text longer.
        let (plain, padded) =
            (r#""swim lake", ["swim"], 10, 20, [2]"#, r#""to swim in the lake", ["swim"], 10, 20, [2]"#);
        assert!((score(plain) - score(padded)).abs() < 1e-12);
        assert!(
            score(r#""swim lake", ["swim", "lake"], 10, 20, [2, 2]"#)
                > score(r#""swim lake", ["swim"], 10, 20, [2]"#)
        );
        check(&[
            ("_FULLTEXTSCORE", r#""swim lake", ["boat"], 10, 20, [2]"#, "0"),
            ("_FULLTEXTSCORE", r#""swim lake", [], 10, 20, []"#, "0"),
            ("_FULLTEXTSCORE", r#""swim lake", ["boat"], 0, 0, [0]"#, "0"),
            ("_FULLTEXTSCORE", r#""swim lake", ["boat"], 10, 20, []"#, "undefined"),
            ("_FULLTEXTSCORE", r#""swim lake", "boat", 10, 20, [2]"#, "undefined"),
            ("_FULLTEXTSCORE", r#"undefined, ["boat"], 10, 20, [2]"#, "undefined"),
        ]);
    }

    #[test]
    fn searching_is_paid_for() {
        let context = Context::new(0, 1).with_budget(1_000);
        let arguments = format!(r#""{}", "swim""#, "lake ".repeat(10_000));
        assert_eq!(call_in(&context, "FULLTEXTCONTAINS", &arguments), None);
        assert_eq!(context.fault(), Some(Fault::OutOfBudget));
    }
}
