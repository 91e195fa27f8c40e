//! Languages of text indexes: names, stop words, and stemmers.
//!
//! The stemmers are those of the Snowball project, which MongoDB uses too. Terms lie on disk, so a stemmer that changes
//! would lose documents: the library is pinned, and a test holds a sample of its stems. The stop words are those that
//! MongoDB leaves out, except for the entries of its Hungarian, Russian and Turkish lists whose letters were lost in an
//! encoding: those entries match no word there either.

use std::collections::HashSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

use crate::porter::LONGEST_WORD;

/// The name of this set of stemmers and stop words, as stored text indexes carry it.
pub const SNOWBALL: &str = "snowball 1.2";

/// The language of a text, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Texts are only split into words.
    None,
    /// One of [`LANGUAGES`], by its index.
    Known(Known),
}

/// A known language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known(usize);

struct Row {
    name: &'static str,
    code: &'static str,
    algorithm: Algorithm,
    stop_words: &'static str,
}

macro_rules! row {
    ($name:literal, $code:literal, $algorithm:ident) => {
        Row {
            name: $name,
            code: $code,
            algorithm: Algorithm::$algorithm,
            stop_words: include_str!(concat!("stop_words/", $name, ".txt")),
        }
    };
}

const ENGLISH: usize = 0;
const TURKISH: usize = 14;

const LANGUAGES: [Row; 15] = [
    row!("english", "en", English),
    row!("danish", "da", Danish),
    row!("dutch", "nl", Dutch),
    row!("finnish", "fi", Finnish),
    row!("french", "fr", French),
    row!("german", "de", German),
    row!("hungarian", "hu", Hungarian),
    row!("italian", "it", Italian),
    row!("norwegian", "nb", Norwegian),
    row!("portuguese", "pt", Portuguese),
    row!("romanian", "ro", Romanian),
    row!("russian", "ru", Russian),
    row!("spanish", "es", Spanish),
    row!("swedish", "sv", Swedish),
    row!("turkish", "tr", Turkish),
];

static STOP_WORDS: LazyLock<Vec<HashSet<&'static str>>> =
    LazyLock::new(|| LANGUAGES.iter().map(|row| row.stop_words.split_whitespace().collect()).collect());

impl Language {
    /// English, the language of indexes that name none.
    pub const ENGLISH: Language = Language::Known(Known(ENGLISH));

    /// Returns the language with this name or code, in any case.
    pub fn named(name: &str) -> Option<Language> {
        let name = name.to_lowercase();
        if name == "none" {
            return Some(Language::None);
        }
        let place = LANGUAGES.iter().position(|row| row.name == name || row.code == name)?;
        Some(Language::Known(Known(place)))
    }

    /// Returns `true` if an apostrophe is a letter of its words, as in `don't`.
    pub fn has_apostrophes(self) -> bool {
        self == Language::ENGLISH
    }

    /// Returns `true` if `I` and `i` are two letters, of which each has its own counterpart (`ı`, `İ`).
    pub fn has_dotless_i(self) -> bool {
        self == Language::Known(Known(TURKISH))
    }

    /// Returns `true` if a word in lower case is too common to search for. Its diacritics count.
    pub fn is_stop_word(self, word: &str) -> bool {
        match self {
            Language::None => false,
            Language::Known(Known(place)) => STOP_WORDS[place].contains(word),
        }
    }

    /// Returns the stem of a word in lower case. Diacritics count.
    pub fn stem(self, word: &str) -> String {
        match self {
            Language::Known(Known(place)) if word.len() <= LONGEST_WORD => {
                Stemmer::create(LANGUAGES[place].algorithm).stem(word).into_owned()
            }
            _ => word.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(name: &str) -> Language {
        Language::named(name).expect(name)
    }

    #[test]
    fn languages_have_a_name_and_a_short_name() {
        for row in &LANGUAGES {
            assert_eq!(Language::named(row.name), Language::named(row.code), "{}", row.name);
            assert_eq!(Language::named(&row.name.to_uppercase()), Language::named(row.code), "{}", row.name);
            assert!(!row.stop_words.trim().is_empty(), "{}", row.name);
        }
        assert_eq!((LANGUAGES[ENGLISH].name, LANGUAGES[TURKISH].name), ("english", "turkish"));
        assert_eq!(Language::named("none"), Some(Language::None));
        assert_eq!(Language::named("klingon"), None);
    }

    #[test]
    fn stop_words_are_of_their_language() {
        for (name, word) in [
            ("en", "the"),
            ("da", "også"),
            ("nl", "zonder"),
            ("fi", "että"),
            ("fr", "où"),
            ("de", "über"),
            ("hu", "és"),
            ("it", "perché"),
            ("nb", "på"),
            ("pt", "à"),
            ("ro", "acesta"),
            ("ru", "когда"),
            ("es", "también"),
            ("sv", "från"),
            ("tr", "için"),
        ] {
            assert!(language(name).is_stop_word(word), "{word} in {name}");
            assert!(!Language::None.is_stop_word(word), "{word}");
        }
        assert!(!language("pt").is_stop_word("À"), "stop words are in lower case");
    }

    /// Stems that the Snowball project publishes beside its algorithms, and those by which its English stemmer differs from
    /// Porter's first one.
    #[test]
    fn stems_are_those_of_snowball() {
        for (name, words) in STEMS {
            for pair in words.split_whitespace() {
                let (word, stem) = pair.split_once(':').expect(pair);
                assert_eq!(language(name).stem(word), stem, "{word} in {name}");
            }
        }
        assert_eq!(Language::None.stem("running"), "running");
        let long = "ey".repeat(100_000);
        assert_eq!(language("en").stem(&long), long, "a word without end costs nothing");
    }

    const STEMS: &[(&str, &str)] = &[
        (
            "en",
            "running:run generously:generous generic:generic skies:sky dying:die happily:happili news:news \
             consigned:consign knightly:knight proceed:proceed fairly:fair dog's:dog 'quoted':quot coffee:coffe",
        ),
        ("da", "undersøgelser:undersøg husene:hus"),
        ("nl", "lichamelijkheden:licham opglimlachte:opglimlacht"),
        ("fi", "edeltäjien:edeltäj taloissa:talo"),
        ("fr", "continuellement:continuel majestueusement:majestu"),
        ("de", "aufeinanderfolgenden:aufeinanderfolg häuser:haus"),
        ("hu", "babakocsijáért:babakocs házakban:ház"),
        ("it", "abbandonata:abbandon pronuncerà:pronunc"),
        ("nb", "havnedistriktene:havnedistrikt"),
        ("pt", "quilométricas:quilométr médico:médic"),
        ("ro", "absurdităţii:absurd"),
        ("ru", "важнейшие:важн повадками:повадк"),
        ("es", "toreando:tor chicharrones:chicharron"),
        ("sv", "klostergården:klostergård jaktkarlarne:jaktkarl jaktkarlarnes:jaktkarlarn"),
        ("tr", "kitaplarımızdan:kitap"),
    ];
}
