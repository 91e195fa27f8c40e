//! Terms of text indexes made before file format 10: English by Porter's first stemmer, other languages only split into words.
//!
//! Diacritics are removed before stop words and endings.

use stemming::{Language, stem};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::analysis::{Sensitivity, StopWords};

/// Returns the terms of a text, in its order.
pub(super) fn terms(
    text: &str,
    language: Language,
    sensitivity: Sensitivity,
    stop_words: StopWords,
) -> impl Iterator<Item = String> {
    words(text).filter_map(move |word| {
        let folded = fold(word);
        if stop_words == StopWords::Dropped && language == Language::ENGLISH && language.is_stop_word(&folded)
        {
            return None;
        }
        if sensitivity == Sensitivity::default() {
            return Some(term(&folded, language));
        }
        Some(written_term(&compared(word, sensitivity), language))
    })
}

/// Returns a text in the form in which phrases are searched.
pub(super) fn compared(text: &str, sensitivity: Sensitivity) -> String {
    match (sensitivity.case, sensitivity.diacritics) {
        (false, false) => fold(text),
        (true, false) => without_combining_marks(text),
        (false, true) => text.to_lowercase(),
        (true, true) => text.to_owned(),
    }
}

fn term(folded: &str, language: Language) -> String {
    if language == Language::ENGLISH { stem(folded) } else { folded.to_owned() }
}

/// Returns a word as it is written, without its ending.
fn written_term(word: &str, language: Language) -> String {
    if language != Language::ENGLISH {
        return word.to_owned();
    }
    let mut written = word.chars();
    let as_written = |sign: char| match written.next() {
        Some(other) if fold(other.encode_utf8(&mut [0; 4])) == sign.to_string() => other,
        _ => sign,
    };
    term(&fold(word), language).chars().map(as_written).collect()
}

/// Returns the words of a text as they are written. An apostrophe within a word belongs to it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |char: char| char.is_alphanumeric() || is_combining_mark(char) || char == '_';
    text.split(move |char: char| !is_word(char) && !is_apostrophe(char))
        .map(|word| word.trim_matches(is_apostrophe))
        .filter(|word| !word.is_empty())
}

fn is_apostrophe(char: char) -> bool {
    matches!(char, '\'' | '’')
}

/// Without case and diacritics.
fn fold(text: &str) -> String {
    without_combining_marks(text).to_lowercase().replace('’', "'")
}

fn without_combining_marks(text: &str) -> String {
    if text.is_ascii() {
        text.to_owned()
    } else {
        text.nfd().filter(|char| !is_combining_mark(*char)).nfc().collect()
    }
}
