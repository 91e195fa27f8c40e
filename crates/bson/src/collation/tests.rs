//! Tables of options, orders and keys.

use std::cmp::Ordering;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::*;
use crate::parse_extended_json;

fn document(text: &str) -> Document {
    let value = parse_extended_json(text).expect(text);
    value.as_document().expect("a document").clone()
}

fn collation(text: &str) -> Result<Collation> {
    Collation::parse(document(text).view())
}

/// Returns a collation as a store before format 9 has it.
fn legacy(options: &str) -> Collation {
    let stored = document(options).with("version", LISTED_VERSION);
    Collation::parse_stored(stored.view()).expect(options)
}

fn sorted(collation: &Collation, words: &str) -> String {
    let mut words: Vec<&str> = words.split(' ').collect();
    words.sort_by(|left, right| collation.compare(left, right));
    words.join(" ")
}

/// Asserts that two strings are equal up to a strength and differ beyond it.
fn assert_equal_up_to(strength: u8, left: &str, right: &str, read: impl Fn(&str) -> Collation) {
    for level in 1..=5 {
        let order = read(&format!(r#"{{"locale":"en","strength":{level}}}"#)).compare(left, right);
        assert_eq!(order == Ordering::Equal, level <= strength, "{left} {right} {level}");
    }
}

#[test]
fn options_are_read_and_listed() {
    assert!(collation(r#"{"locale":"simple"}"#).expect("simple").is_simple());
    let read = collation(r#"{"locale":"en_US","strength":2,"numericOrdering":true}"#).expect("a collation");
    let listed = read.to_document();
    assert_eq!(listed.get("strength"), Some(&crate::Value::Int32(2)));
    assert_eq!(Collation::parse(listed.view()), Ok(read));
    for wrong in [
        "{}",
        r#"{"strength":2}"#,
        r#"{"locale":"xx"}"#,
        r#"{"locale":"bo"}"#,
        r#"{"locale":"en_"}"#,
        r#"{"locale":"en_US_"}"#,
        r#"{"locale":"en@collation=search"}"#,
        r#"{"locale":"en@collation=phonebook"}"#,
        r#"{"locale":"zh@collation=big5han"}"#,
        r#"{"locale":5}"#,
        r#"{"locale":"simple","strength":2}"#,
        r#"{"locale":"en","strength":0}"#,
        r#"{"locale":"en","strength":"2"}"#,
        r#"{"locale":"en","caseFirst":"middle"}"#,
        r#"{"locale":"en","alternate":"blanked"}"#,
        r#"{"locale":"fr","backwards":true}"#,
        r#"{"locale":"fr_CA","backwards":false}"#,
        r#"{"locale":"en","other":true}"#,
    ] {
        assert!(collation(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_absent_follows_the_locale() {
    for (options, name, expected) in [
        (r#"{"locale":"en"}"#, "strength", "3"),
        (r#"{"locale":"en","strength":5}"#, "strength", "5"),
        (r#"{"locale":"en"}"#, "caseFirst", "\"off\""),
        (r#"{"locale":"da"}"#, "caseFirst", "\"upper\""),
        (r#"{"locale":"da","caseFirst":"off"}"#, "caseFirst", "\"off\""),
        (r#"{"locale":"th"}"#, "alternate", "\"shifted\""),
        (r#"{"locale":"fr_CA"}"#, "backwards", "true"),
        (r#"{"locale":"en","alternate":"shifted","maxVariable":"space"}"#, "maxVariable", "\"space\""),
        (r#"{"locale":"en","normalization":true}"#, "normalization", "true"),
    ] {
        let listed = collation(options).expect(options).to_document();
        let value = listed.get(name).expect(name).view();
        assert_eq!(crate::shell_text(value), expected, "{options} {name}");
    }
}

#[test]
fn strength_says_what_counts() {
    let equal = |options: &str, left: &str, right: &str| {
        collation(options).expect(options).compare(left, right) == Ordering::Equal
    };
    for (left, right, equal_to) in [
        ("resume", "résumé", 1),
        ("résumé", "RÉSUMÉ", 2),
        ("é", "e\u{301}", 5),
        ("straße", "STRASSE", 1),
        ("Σ", "ς", 2),
        ("ﬁ", "fi", 2),
        ("a", "b", 0),
        ("", "\u{1}", 4),
    ] {
        assert_equal_up_to(equal_to, left, right, |options| collation(options).expect(options));
    }
    let with_case = r#"{"locale":"en","strength":1,"caseLevel":true}"#;
    assert!(equal(with_case, "resume", "résumé"));
    assert!(!equal(with_case, "resume", "Resume"));
}

#[test]
fn words_come_in_the_order_of_their_language() {
    for (options, words) in [
        (r#"{"locale":"en"}"#, "_x 10 9 a A á ä ab b B é f Z я"),
        (r#"{"locale":"en","caseFirst":"upper"}"#, "A a B b"),
        (r#"{"locale":"en","numericOrdering":true}"#, "a a2 a9 a009b a10 a10b b1"),
        (r#"{"locale":"en","alternate":"shifted"}"#, "dea deb de-c ded"),
        (r#"{"locale":"simple"}"#, "A a b á"),
        (r#"{"locale":"sv"}"#, "a o z å ä ö"),
        (r#"{"locale":"de"}"#, "a ä o ö z"),
        (r#"{"locale":"de"}"#, "Ad Äd Af Äf"),
        (r#"{"locale":"de@collation=phonebook"}"#, "Ad Äd Äf Af"),
        (r#"{"locale":"da"}"#, "A a Z z æ ø å"),
        (r#"{"locale":"nb"}"#, "a z æ ø å"),
        (r#"{"locale":"et"}"#, "s š z ž t õ ä ö ü"),
        (r#"{"locale":"cs"}"#, "c č d h ch i"),
        (r#"{"locale":"es"}"#, "cg ch ci n ñ o"),
        (r#"{"locale":"es@collation=traditional"}"#, "cg ci ch d lz ll m"),
        (r#"{"locale":"fr"}"#, "cote coté côte côté"),
        (r#"{"locale":"fr_CA"}"#, "cote côte coté côté"),
        (r#"{"locale":"tr"}"#, "h ı i j o ö p"),
        (r#"{"locale":"ru"}"#, "а б я z"),
        (r#"{"locale":"zh"}"#, "阿 八 中"),
        (r#"{"locale":"zh@collation=stroke"}"#, "八 中 阿"),
    ] {
        let collation = collation(options).expect(options);
        let turned: Vec<&str> = words.split(' ').rev().collect();
        assert_eq!(sorted(&collation, &turned.join(" ")), words, "{options}");
    }
}

/// Keys on disk depend on every byte here. If this fails after an update of `icu_collator`, the update changes
/// the order or the form of keys: it needs another [`STORED_VERSION`], another format version, and an answer to what
/// becomes of collections that have the order of before.
#[test]
fn sort_keys_stay_as_they_are_on_disk() {
    let words = [
        "",
        "a",
        "A",
        "á",
        "ab",
        "Straße",
        "10",
        "9",
        "a-b",
        "ab c",
        "č",
        "ch",
        "ll",
        "ñ",
        "Ångström",
        "Øre",
        "ﬁ",
        "ı",
        "я",
        "ж",
        "λόγος",
        "שלום",
        "سلام",
        "ไทย",
        "हिन्दी",
        "中文",
        "阿",
        "日本語",
        "カタカナ",
        "かな",
        "한국어",
        "e\u{301}\u{323}",
        "\u{1}",
        "😀",
        "\u{10FFFF}",
    ];
    let mut sample = String::new();
    for locale in
        ["en", "sv", "de@collation=phonebook", "da", "fr_CA", "th", "ja", "ko", "zh", "zh_Hant", "ar"]
    {
        for rest in ["", r#","strength":1"#, r#","strength":5,"numericOrdering":true,"caseLevel":true"#] {
            let collation = collation(&format!(r#"{{"locale":"{locale}"{rest}}}"#)).expect(locale);
            for word in words {
                let mut key = Vec::new();
                collation.sort_key(word, &mut key);
                writeln!(sample, "{key:02x?}").expect("a string takes it");
            }
        }
    }
    let hash = Sha256::digest(sample);
    let begins = [0x31, 0x80, 0x70, 0x0d, 0x72, 0xb6, 0x40, 0xe8];
    assert_eq!((STORED_VERSION, &hash[..8]), ("icu4x 2.4.0", &begins[..]));
}

#[test]
fn a_stored_collation_keeps_the_order_its_keys_are_in() {
    let swedish = collation(r#"{"locale":"sv"}"#).expect("Swedish");
    assert_eq!(Collation::parse_stored(swedish.to_stored().view()), Ok(swedish.clone()));
    let before = legacy(r#"{"locale":"sv"}"#);
    assert_eq!(Collation::parse_stored(before.to_stored().view()), Ok(before.clone()));
    assert_ne!(before, swedish, "an index in one order does not serve a query in the other");
    assert_eq!(before.to_document(), swedish.to_document());
    assert_eq!(sorted(&swedish, "z å a"), "a z å");
    assert_eq!(sorted(&before, "z å a"), "a å z");
    let mut unknown = swedish.to_stored();
    unknown.insert("version", "icu4x 99");
    assert!(Collation::parse_stored(unknown.view()).is_err());
}

#[test]
fn the_order_of_before_is_as_it_was() {
    let words = "_x 10 9 a A á ä ab b B é f Z я";
    assert_eq!(sorted(&legacy(r#"{"locale":"en"}"#), words), words);
    let numbers = "a a2 a9 a009b a10 a10b b1";
    assert_eq!(sorted(&legacy(r#"{"locale":"bo","numericOrdering":true}"#), numbers), numbers);
    for (left, right, equal_to) in [
        ("resume", "résumé", 1),
        ("résumé", "RÉSUMÉ", 2),
        ("é", "e\u{301}", 5),
        ("Ærø", "aero", 1),
        ("ﬁ", "fi", 2),
    ] {
        assert_equal_up_to(equal_to, left, right, legacy);
    }
}
