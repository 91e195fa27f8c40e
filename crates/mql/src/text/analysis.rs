//! Splits texts into terms: which characters separate words, which form of a word is compared, which words are left out.
//!
//! ```text
//! text -> words -> lower case -> stop words left out -> stems -> diacritics removed
//! ```
//!
//! A search that is sensitive to case or diacritics leaves out the step that would remove them. Terms are on disk, so every
//! index keeps the [`Edition`] of the rules that it was made with.

use std::borrow::Cow;
use std::sync::LazyLock;

use stemming::Language;
use unicode_normalization::UnicodeNormalization as _;

use super::legacy;

/// The rules of an index's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edition {
    /// The rules of indexes made before file format 10.
    Legacy,
    /// `textIndexVersion` 1 and 2: characters beyond ASCII are letters as they are written.
    Ascii,
    /// `textIndexVersion` 3.
    Unicode,
}

/// The sensitivity of a search. A text index has neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sensitivity {
    pub(super) case: bool,
    pub(super) diacritics: bool,
}

/// Whether words that are too common to search for become terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopWords {
    Dropped,
    Kept,
}

impl Edition {
    /// Returns the terms of a text, in its order.
    pub(super) fn terms<'t>(
        self,
        text: &'t str,
        language: Language,
        sensitivity: Sensitivity,
        stop_words: StopWords,
    ) -> Box<dyn Iterator<Item = String> + 't> {
        if self == Edition::Legacy {
            return Box::new(legacy::terms(text, language, sensitivity, stop_words));
        }
        let words = text.split(move |char| self.parts_words(char, language)).filter(|word| !word.is_empty());
        Box::new(words.filter_map(move |word| {
            let lower = self.lower(word, language);
            if stop_words == StopWords::Dropped && language.is_stop_word(&lower) {
                return None;
            }
            let stem = language.stem(if sensitivity.case { word } else { &lower });
            let keeps = self == Edition::Ascii || sensitivity.diacritics;
            Some(if keeps { stem } else { without_diacritics(&stem) })
        }))
    }

    /// Returns a text of a language in the form in which phrases are searched.
    pub(super) fn compared(self, text: &str, language: Language, sensitivity: Sensitivity) -> String {
        if self == Edition::Legacy {
            return legacy::compared(text, sensitivity);
        }
        let lower = if sensitivity.case { Cow::Borrowed(text) } else { self.lower(text, language) };
        if self == Edition::Ascii || sensitivity.diacritics {
            lower.into_owned()
        } else {
            without_diacritics(&lower)
        }
    }

    fn parts_words(self, char: char, language: Language) -> bool {
        match char {
            '\'' => !language.has_apostrophes(),
            '_' => false,
            _ if char.is_ascii() => {
                char.is_ascii_punctuation() || char.is_ascii_whitespace() || char == '\x0b'
            }
            _ => self == Edition::Unicode && DELIMITERS.contains(char),
        }
    }

    fn lower(self, text: &str, language: Language) -> Cow<'_, str> {
        if text.is_ascii() && !language.has_dotless_i() || self == Edition::Ascii {
            return Cow::Owned(text.to_ascii_lowercase());
        }
        // Letter by letter: a sigma at the end of a word is the same letter as within it.
        let mut lower = String::with_capacity(text.len());
        for char in text.chars() {
            match char {
                'I' if language.has_dotless_i() => lower.push('ı'),
                'İ' if language.has_dotless_i() => lower.push('i'),
                'ς' => lower.push('σ'),
                _ => lower.extend(char.to_lowercase()),
            }
        }
        Cow::Owned(lower)
    }
}

/// Returns the text without characters that Unicode calls diacritics, alone or as part of a letter.
pub(super) fn without_diacritics(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    text.nfd().filter(|char| char.is_ascii() || !DIACRITICS.contains(*char)).nfc().collect()
}

/// Characters beyond ASCII that part words: those with one of Unicode's properties `White_Space`, `Dash`, `Hyphen`, `Quotation_Mark`,
/// `Terminal_Punctuation`, `Sentence_Terminal` and `Pattern_Syntax`.
static DELIMITERS: LazyLock<Characters> = LazyLock::new(|| Characters::read(include_str!("delimiters.txt")));
/// Characters beyond ASCII with Unicode's property Diacritic.
static DIACRITICS: LazyLock<Characters> = LazyLock::new(|| Characters::read(include_str!("diacritics.txt")));

/// A set of characters, as ranges in order. A table of our own, because another version of Unicode would change stored terms.
struct Characters(Vec<(u32, u32)>);

impl Characters {
    /// Reads numbers and ranges of numbers, hexadecimal.
    fn read(table: &str) -> Characters {
        let number = |text: &str| u32::from_str_radix(text, 16).expect("the tables have hexadecimal numbers");
        let range = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            (number(first), number(last))
        };
        Characters(table.split_whitespace().map(range).collect())
    }

    fn contains(&self, char: char) -> bool {
        let char = char as u32;
        let behind = self.0.partition_point(|(first, _)| *first <= char);
        behind > 0 && self.0[behind - 1].1 >= char
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Sensitivity = Sensitivity { case: false, diacritics: false };

    fn terms(edition: Edition, language: &str, text: &str) -> String {
        let language = Language::named(language).expect(language);
        edition.terms(text, language, ANY, StopWords::Dropped).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn texts_become_terms_as_in_each_version() {
        use Edition::{Ascii, Legacy, Unicode};
        for (edition, language, text, expected) in [
            (Legacy, "en", "The QUICK, brown-foxes (don't) jump!", "quick brown fox jump"),
            (Legacy, "en", "Cafés & résumés", "cafe resum"),
            (Legacy, "en", "'quoted' dog's 3rd", "quot dog 3rd"),
            (Legacy, "none", "The foxes", "the foxes"),
            (Legacy, "fr", "Les continuellement", "les continuellement"),
            (Unicode, "en", "The QUICK, brown-foxes (don't) jump!", "quick brown fox jump"),
            (Unicode, "en", "Cafés & résumés", "cafe resume"),
            (Unicode, "en", "'quoted' dog's 3rd", "quot dog 3rd"),
            (Unicode, "none", "The foxes", "the foxes"),
            (Unicode, "fr", "L'homme où continuellement", "homm continuel"),
            (Unicode, "pt", "À noite o Médico", "noit medic"),
            // Without its accent it is another word, and found as such.
            (Unicode, "pt", "ate até", "ate"),
            (Unicode, "tr", "ISI İstanbul", "ıs istanbul"),
            (Unicode, "none", "5€ 🎉 a、b“c”", "5€ 🎉 a b c"),
            (Unicode, "none", "ΣΟΦΟΣ σοφος σοφός", "σοφοσ σοφοσ σοφοσ"),
            // Vowel signs are no diacritics.
            (Unicode, "none", "हिन्दी", "हिनदी"),
            (Ascii, "pt", "À noite, Médico médico", "À noit médic médic"),
            (Ascii, "none", "ÉTÉ Été a、b", "ÉtÉ Été a、b"),
            (Unicode, "en", "", ""),
            (Unicode, "en", " -- ", ""),
        ] {
            assert_eq!(terms(edition, language, text), expected, "{edition:?} {language} {text}");
        }
    }

    /// Lower case and decomposition come from libraries, so samples of both stand here: terms lie on disk, and a version of
    /// Unicode that made others would lose documents (decision 0052).
    #[test]
    fn lower_case_and_decomposition_are_those_of_stored_terms() {
        for (text, expected) in [
            ("ÀÉÎÕÜ Çñ", "aeiou cn"),
            ("ẞß ŁŁ ØÆ ÐÞ", "ßß łł øæ ðþ"),
            ("ǅ Ǆ ﬁ Ω K Å", "ǆ ǆ ﬁ ω k a"),
            ("Ấ Ự Ṩ Ǖ", "a u s u"),
            ("ЁЙ Ї ӁҐ", "еи і жґ"),
            ("ΆΈΪ ΐ ΰ ᾳ ᾼ", "αει ι υ α α"),
            ("Ա Ⴀ Ა Ꭰ", "ա ⴀ ა ꭰ"),
            ("Ⅷ Ⓐ Ａ 𐐀 𞤀", "ⅷ ⓐ ａ 𐐨 𞤢"),
            ("한국 が パ", "한국 か ハ"),
            ("İ I i̇", "i i i"),
        ] {
            assert_eq!(terms(Edition::Unicode, "none", text), expected, "{text}");
        }
    }

    #[test]
    fn the_tables_are_in_order() {
        for table in [&DELIMITERS, &DIACRITICS] {
            assert!(table.0.iter().all(|(first, last)| first <= last));
            assert!(table.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
        assert!(DELIMITERS.contains('¿') && DELIMITERS.contains('　') && !DELIMITERS.contains('ä'));
        assert!(DIACRITICS.contains('\u{301}') && !DIACRITICS.contains('\u{940}'));
    }
}
