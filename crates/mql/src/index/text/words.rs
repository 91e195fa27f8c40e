//! Texts into words.

use std::collections::HashSet;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use words::stem;

/// How the words of a text are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Words that say nothing are left out, endings are taken off.
    English,
    /// Only split into words: `none`, and the languages whose endings are not known here.
    Plain,
}

/// Languages that may be named, with their short names.
const NAMES: &[&str] = &[
    "none",
    "danish",
    "da",
    "dutch",
    "nl",
    "finnish",
    "fi",
    "french",
    "fr",
    "german",
    "de",
    "hungarian",
    "hu",
    "italian",
    "it",
    "norwegian",
    "nb",
    "portuguese",
    "pt",
    "romanian",
    "ro",
    "russian",
    "ru",
    "spanish",
    "es",
    "swedish",
    "sv",
    "turkish",
    "tr",
];

/// English words that say nothing by themselves.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "above",
    "after",
    "again",
    "against",
    "all",
    "am",
    "an",
    "and",
    "any",
    "are",
    "aren't",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "below",
    "between",
    "both",
    "but",
    "by",
    "can't",
    "cannot",
    "could",
    "couldn't",
    "did",
    "didn't",
    "do",
    "does",
    "doesn't",
    "doing",
    "don't",
    "down",
    "during",
    "each",
    "few",
    "for",
    "from",
    "further",
    "had",
    "hadn't",
    "has",
    "hasn't",
    "have",
    "haven't",
    "having",
    "he",
    "he'd",
    "he'll",
    "he's",
    "her",
    "here",
    "here's",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "how's",
    "i",
    "i'd",
    "i'll",
    "i'm",
    "i've",
    "if",
    "in",
    "into",
    "is",
    "isn't",
    "it",
    "it's",
    "its",
    "itself",
    "let's",
    "me",
    "more",
    "most",
    "mustn't",
    "my",
    "myself",
    "no",
    "nor",
    "not",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "ought",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "same",
    "shan't",
    "she",
    "she'd",
    "she'll",
    "she's",
    "should",
    "shouldn't",
    "so",
    "some",
    "such",
    "than",
    "that",
    "that's",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "there's",
    "these",
    "they",
    "they'd",
    "they'll",
    "they're",
    "they've",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "very",
    "was",
    "wasn't",
    "we",
    "we'd",
    "we'll",
    "we're",
    "we've",
    "were",
    "weren't",
    "what",
    "what's",
    "when",
    "when's",
    "where",
    "where's",
    "which",
    "while",
    "who",
    "who's",
    "whom",
    "why",
    "why's",
    "with",
    "won't",
    "would",
    "wouldn't",
    "you",
    "you'd",
    "you'll",
    "you're",
    "you've",
    "your",
    "yours",
    "yourself",
    "yourselves",
];

static IGNORED: LazyLock<HashSet<&'static str>> = LazyLock::new(|| STOP_WORDS.iter().copied().collect());

impl Language {
    /// The language of that name, in any case.
    pub fn named(name: &str) -> Option<Language> {
        let name = name.to_lowercase();
        match name.as_str() {
            "english" | "en" => Some(Language::English),
            name if NAMES.contains(&name) => Some(Language::Plain),
            _ => None,
        }
    }

    /// The term that a word stands for; `None` if it says nothing. The word is in lower case.
    pub(super) fn term(self, word: &str) -> Option<String> {
        match self {
            Language::Plain => Some(word.to_owned()),
            Language::English if IGNORED.contains(word) => None,
            Language::English => Some(stem(word)),
        }
    }
}

/// The terms of a text, in its order: folded, without words that say nothing, without endings.
pub fn terms(text: &str, language: Language) -> impl Iterator<Item = String> {
    words(text).filter_map(move |word| language.term(&fold(word)))
}

/// A word as a search compares it that minds case or diacritics: as it is written, without its ending. `None` if it says
/// nothing.
pub(super) fn written_term(word: &str, language: Language) -> Option<String> {
    let term = language.term(&fold(word))?;
    if language == Language::Plain {
        return Some(word.to_owned());
    }
    let mut written = word.chars();
    let as_written = |sign: char| match written.next() {
        Some(other) if fold(other.encode_utf8(&mut [0; 4])) == sign.to_string() => other,
        _ => sign,
    };
    Some(term.chars().map(as_written).collect())
}

/// The words of a text as they are written. An apostrophe within a word belongs to it.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !is_word(char) && !is_apostrophe(char))
        .map(|word| word.trim_matches(is_apostrophe))
        .filter(|word| !word.is_empty())
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || is_combining_mark(char) || char == '_'
}

fn is_apostrophe(char: char) -> bool {
    matches!(char, '\'' | '’')
}

/// Without case and diacritics.
pub(super) fn fold(text: &str) -> String {
    without_diacritics(text).to_lowercase().replace('’', "'")
}

pub(super) fn without_diacritics(text: &str) -> String {
    if text.is_ascii() {
        text.to_owned()
    } else {
        text.nfd().filter(|char| !is_combining_mark(*char)).nfc().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_stemmed() {
        let found = |text: &str, language| terms(text, language).collect::<Vec<_>>().join(" ");
        assert_eq!(found("The QUICK, brown-foxes (don't) jump!", Language::English), "quick brown fox jump");
        assert_eq!(found("Cafés & résumés", Language::English), "cafe resum");
        assert_eq!(found("The foxes", Language::Plain), "the foxes");
        assert_eq!(found("'quoted' dog's 3rd", Language::English), "quot dog 3rd");
        assert_eq!(found("", Language::English), "");
        assert_eq!(Language::named("EN"), Some(Language::English));
        assert_eq!(Language::named("klingon"), None);
    }
}
