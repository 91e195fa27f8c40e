//! The supported locales and their names in Unicode's notation.

use icu_locale_core::Locale;

use crate::error::{Error, Result};

/// The supported languages; a script or a territory may follow. Each has a tailoring in the data of ICU4X, or the root
/// order in that of Unicode. Northern Sami, Tibetan and a few more have one in Unicode's data that is not in ICU4X's: those
/// are refused, because their order would be wrong.
const LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bs", "ca", "ceb", "chr", "cs", "cy", "da", "de", "dsb",
    "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "ga", "gl", "gu", "ha", "he", "hi",
    "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka", "kk", "km", "kn", "ko", "kok", "ky", "lb",
    "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "no", "om", "or",
    "pa", "pl", "ps", "pt", "ro", "ru", "si", "sk", "sl", "sq", "sr", "sv", "sw", "ta", "te", "th", "to",
    "tr", "ug", "uk", "ur", "vi", "xh", "yo", "zh", "zu",
];

/// Alternative orders of a language: MongoDB's name, Unicode's name, and the languages that have it.
const VARIANTS: &[(&str, &str, &[&str])] = &[
    ("standard", "standard", LANGUAGES),
    ("eor", "eor", LANGUAGES),
    ("emoji", "emoji", LANGUAGES),
    ("compat", "compat", &["ar"]),
    ("dictionary", "dict", &["si"]),
    ("phonebook", "phonebk", &["de"]),
    ("pinyin", "pinyin", &["zh"]),
    ("stroke", "stroke", &["zh"]),
    ("traditional", "trad", &["bn", "es", "fi", "kn", "sv", "vi"]),
    ("unihan", "unihan", &["ja", "ko", "zh"]),
    ("zhuyin", "zhuyin", &["zh"]),
];

/// Reads `sv`, `zh_Hant`, `en_US_POSIX`, `de_AT@collation=phonebook`.
pub(super) fn parse(name: &str) -> Result<Locale> {
    let unsupported = || {
        Error::Unsupported(format!(
            "Field 'locale' is invalid in: {{ locale: \"{}\" }}",
            crate::shorten::shorten(name)
        ))
    };
    let (base, variant) = match name.split_once("@collation=") {
        Some((base, variant)) => (base, Some(variant)),
        None => (name, None),
    };
    let language = base.split('_').next().unwrap_or_default();
    if !LANGUAGES.contains(&language) {
        return Err(unsupported());
    }
    let variant = match variant {
        None => String::new(),
        Some(variant) => {
            let known = VARIANTS
                .iter()
                .find(|(name, _, languages)| *name == variant && languages.contains(&language));
            let (_, unicode, _) = known.ok_or_else(unsupported)?;
            format!("-u-co-{unicode}")
        }
    };
    let tag = match base {
        "en_US_POSIX" if variant.is_empty() => "en-US-u-va-posix".to_owned(),
        _ if base.split('_').skip(1).all(is_script_or_territory) => base.replace('_', "-") + &variant,
        _ => return Err(unsupported()),
    };
    Locale::try_from_str(&tag).map_err(|_| unsupported())
}

fn is_script_or_territory(part: &str) -> bool {
    matches!(part.len(), 2 | 4) && part.bytes().all(|byte| byte.is_ascii_alphabetic())
        || part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit())
}
