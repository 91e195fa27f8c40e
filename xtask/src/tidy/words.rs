//! Retired words: words for which the field has other names.
//!
//! They are searched in identifiers, comments and strings of Rust sources and in pages outside of code, as whole parts of
//! `snake_case` and `CamelCase` names, in any case. Crates and folders that still use retired words are listed in
//! `retired_words.txt`; the list may only shrink. Where a word must stay, [`ALLOWED`] has it with the reason.
//!
//! Names of crates and files are not searched, nor are tests in other languages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::map::prose;
use crate::paths;

/// Crates and folders that are not yet clean.
const EXEMPT: &str = "xtask/src/tidy/retired_words.txt";

/// Words that are retired everywhere, and their replacements.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("anybody", "the actor: any client, an unauthenticated client"),
    ("belongings", "subresources"),
    ("burial", "removal"),
    ("dead", "expired"),
    ("death", "expiry"),
    ("deaths", "expiries"),
    ("die", "expire"),
    ("died", "expired"),
    ("dies", "expires"),
    ("dying", "expiring"),
    ("everybody", "the actor: every client, every user"),
    ("immortal", "without expiry"),
    ("mortal", "expiring"),
    ("mortals", "expiring items"),
    ("nobody", "the actor: no caller, no other transaction"),
    ("obituary", "expiry record"),
    ("patience", "max_wait, or what the time bounds"),
    ("somebody", "the actor: the caller, another process"),
    ("stranger", "unauthenticated client"),
    ("strangers", "unauthenticated clients"),
    ("undertaker", "item remover"),
    ("whoever", "the actor: the caller, the operator, a transaction"),
    ("wish", "a setting, a plan or a query"),
    ("wished", "set, wanted"),
    ("wishes", "lifecycle settings"),
];

/// Words that are retired in identifiers alone: elsewhere they have their ordinary meaning.
const IDENTIFIERS: &[(&str, &str)] = &[
    ("bell", "a wakeup, or a signal named after its receiver"),
    ("deed", "AuditedAction"),
    ("desk", "WriteContext"),
    ("doors", "AdminHooks or Backends"),
    ("forgetful", "NoKeyStore"),
    ("planter", "Seeder"),
    ("shelf", "Subresources"),
];

/// The compiler's name of what is not used.
const DEAD_CODE: &str = "the compiler's lint `dead_code`";
/// Files, the words that they may use, and the reasons.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    ("README.md", &["die"], TAG_LINE),
    ("crates/explorer/src/pages/sign_in.rs", &["die"], TAG_LINE),
    ("bench/src/peer/postgres/mod.rs", &["dead"], "PostgreSQL's column `n_dead_tup`"),
    ("crates/engine/src/tests/mod.rs", &["dead"], DEAD_CODE),
    ("crates/mongo/src/session/mod.rs", &["dead"], DEAD_CODE),
    ("crates/nosql/src/admin/ttl.rs", &["dying", "wishes"], FORMER_NAME),
    ("crates/nosql/tests/it/admin.rs", &["dying", "wishes"], FORMER_NAME),
    ("crates/server/src/admission_metrics.rs", &["strangers"], FORMER_NAME),
    ("crates/server/src/cli/mod.rs", &["strangers"], FORMER_NAME),
    ("crates/server/src/settings/mod.rs", &["strangers"], FORMER_NAME),
    ("crates/server/src/settings/table.rs", &["strangers"], FORMER_NAME),
    (
        "crates/query/src/functions/stop_words.rs",
        &["anybody", "everybody", "nobody", "somebody", "whoever", "wish"],
        "English words that full-text search leaves out",
    ),
    ("crates/stemming/src/language.rs", &["die", "dying"], "English words of a test of the stemmer"),
];
const TAG_LINE: &str = "the tag line";
const FORMER_NAME: &str = "a former name on the wire, which remains for one version";

/// This file, which lists the words.
const SELF: &str = "xtask/src/tidy/words.rs";

/// Adds every retired word outside of the exempt folders, and every exemption that is no longer needed.
pub(super) fn check(offences: &mut Vec<String>) -> Result<()> {
    let list = fs::read_to_string(paths::root().join(EXEMPT))?;
    let exempt = list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut texts = BTreeMap::new();
    for path in paths::files(&paths::root(), &["rs", "md"]) {
        texts.insert(paths::shown(&path), fs::read_to_string(path)?);
    }
    texts.remove(SELF);
    offences.extend(offences_in(&texts, &exempt.collect(), ALLOWED));
    Ok(())
}

fn offences_in(
    texts: &BTreeMap<String, String>,
    exempt: &BTreeSet<&str>,
    allowed: &[(&str, &[&str], &str)],
) -> Vec<String> {
    let (mut offences, mut needed, mut used) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (file, text) in texts {
        let is_page = Path::new(file).extension().is_some_and(|end| end == "md");
        let mut found = if is_page { retired_in_page(text) } else { retired(text) };
        let kept = allowed.iter().filter(|(allowed, ..)| allowed == file).flat_map(|(_, words, _)| *words);
        for word in kept {
            let before = found.len();
            found.retain(|(_, found, _)| found != word);
            if found.len() < before {
                used.insert((file.as_str(), *word));
            }
        }
        let folder = exempt.iter().find(|folder| is_below(file, folder));
        match folder {
            Some(folder) if !found.is_empty() => drop(needed.insert(*folder)),
            Some(_) => {}
            None => offences.extend(found.into_iter().map(|(line, word, better)| {
                format!("{file}:{line}: '{word}' is a retired word: write {better}")
            })),
        }
    }
    let unneeded = exempt.difference(&needed);
    offences.extend(unneeded.map(|folder| format!("{EXEMPT}: {folder} is clean: remove the line")));
    for (file, words, _) in allowed {
        let unused = words.iter().filter(|word| !used.contains(&(*file, **word)));
        offences.extend(unused.map(|word| format!("{SELF}: {file} does not use '{word}': remove it")));
    }
    offences
}

fn is_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the retired words of a source, with their line and the replacement.
fn retired(text: &str) -> Vec<Retired> {
    let mut found = Vec::new();
    for Part { line, kind, text } in parts(text) {
        let lists = match kind {
            Kind::Code => [WORDS, IDENTIFIERS].as_slice(),
            Kind::Comment | Kind::Text => &[WORDS],
        };
        for (offset, name) in words(text) {
            let line = line + text[..offset].matches('\n').count();
            found.extend(retired_in_name(name, lists).map(|(word, better)| (line, word, better)));
        }
    }
    found
}

/// Returns the retired words of a page outside of code, with their line and the replacement.
fn retired_in_page(text: &str) -> Vec<Retired> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for part in line.split('`').step_by(2) {
            let words = words(part).flat_map(|(_, name)| retired_in_name(name, &[WORDS]));
            found.extend(words.map(|(word, better)| (number, word, better)));
        }
    }
    found
}

/// The line, the word, and its replacement.
type Retired = (usize, &'static str, &'static str);

/// Returns the retired words among the parts of a name, with their replacements.
fn retired_in_name(
    name: &str,
    lists: &'static [&'static [(&'static str, &'static str)]],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts: Vec<&str> = name_parts(name).collect();
    let entries = lists.iter().copied().flatten();
    entries.filter(move |(word, _)| parts.iter().any(|part| part.eq_ignore_ascii_case(word))).copied()
}

/// Splits a name in `snake_case`, `CamelCase` or `UPPER_CASE` into its parts.
fn name_parts(name: &str) -> impl Iterator<Item = &str> {
    let signs: Vec<(usize, char)> = name.char_indices().collect();
    let begins = |at: usize| {
        let sign = signs[at].1;
        let (before, after) = (at.checked_sub(1).map(|at| signs[at].1), signs.get(at + 1).map(|sign| sign.1));
        let Some(before) = before else { return false };
        before.is_alphabetic() != sign.is_alphabetic()
            || sign.is_uppercase() && (before.is_lowercase() || after.is_some_and(char::is_lowercase))
    };
    let mut ends: Vec<usize> = (0..signs.len()).filter(|at| begins(*at)).map(|at| signs[at].0).collect();
    ends.push(name.len());
    let mut start = 0;
    ends.into_iter().map(move |end| &name[std::mem::replace(&mut start, end)..end])
}

/// Returns the words of a text, with their offsets.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_sign = |sign: char| !(sign.is_alphanumeric() || sign == '_');
    let mut offset = 0;
    text.split_inclusive(is_sign).map(move |piece| {
        let start = offset;
        offset += piece.len();
        (start, piece.trim_end_matches(is_sign))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Text,
}

/// A part of a source, with the number of its first line.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    line: usize,
    kind: Kind,
    text: &'a str,
}

/// Splits a source into code, comments and strings.
fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut line, mut rest) = (Vec::new(), 1, text);
    while !rest.is_empty() {
        let (kind, bytes) = match other_than_code(rest) {
            Some(found) => found,
            None => (Kind::Code, code_bytes(rest)),
        };
        let (part, behind) = rest.split_at(bytes);
        parts.push(Part { line, kind, text: part });
        line += part.matches('\n').count();
        rest = behind;
    }
    parts
}

/// Returns the length of the code before the next comment or string.
fn code_bytes(text: &str) -> usize {
    let mut end = 0;
    while let Some(sign) = text[end..].chars().next() {
        // The quote of a character literal opens no string, and a raw string begins with a word of its own.
        let literal =
            ["'\"'", "'\\\"'", "b'\"'"].into_iter().find(|literal| text[end..].starts_with(literal));
        let word = text[end..].chars().take_while(|sign| sign.is_alphanumeric() || *sign == '_');
        let word_bytes: usize = word.map(char::len_utf8).sum();
        match literal {
            Some(literal) => end += literal.len(),
            None if end > 0 && other_than_code(&text[end..]).is_some() => break,
            None => end += word_bytes.max(sign.len_utf8()),
        }
    }
    end
}

/// Returns the kind and the length of the comment or string that a text begins with.
fn other_than_code(text: &str) -> Option<(Kind, usize)> {
    if text.starts_with("//") {
        return Some((Kind::Comment, text.find('\n').unwrap_or(text.len())));
    }
    if text.starts_with("/*") {
        return Some((Kind::Comment, text.find("*/").map_or(text.len(), |end| end + 2)));
    }
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| text.starts_with(prefix));
    let raw = prefix.map(|prefix| &text[prefix.len()..]).unwrap_or_default();
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    if let Some(prefix) = prefix.filter(|_| raw[hashes..].starts_with('"')) {
        let start = prefix.len() + hashes + 1;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = text[start..].find(&close).map_or(text.len(), |end| start + end + close.len());
        return Some((Kind::Text, end));
    }
    let start = ["b\"", "c\"", "\""].into_iter().find(|start| text.starts_with(start))?.len();
    let mut is_escaped = false;
    for (position, sign) in text[start..].char_indices() {
        match sign {
            '"' if !is_escaped => return Some((Kind::Text, start + position + 1)),
            _ => is_escaped = sign == '\\' && !is_escaped,
        }
    }
    Some((Kind::Text, text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
    }

    fn found(text: &str) -> Vec<(usize, &'static str)> {
        retired(text).iter().map(|(line, word, _)| (*line, *word)).collect()
    }

    #[test]
    fn every_planted_word_is_found_as_a_part_of_names_in_comments_and_in_strings() {
        for (word, _) in WORDS.iter().chain(IDENTIFIERS) {
            let camel = format!("{}{}", word[..1].to_uppercase(), &word[1..]);
            for name in [
                (*word).to_owned(),
                format!("has_{word}_at"),
                format!("{word}2"),
                format!("Some{camel}List"),
                format!("HTTP{camel}"),
                word.to_uppercase(),
                format!("MAX_{}", word.to_uppercase()),
            ] {
                assert_eq!(found(&format!("fn f() {{\n    let {name} = 1;\n}}")), [(2, *word)], "{name}");
                let in_prose =
                    if WORDS.iter().any(|(other, _)| other == word) { vec![(1, *word)] } else { vec![] };
                for prose in [
                    format!("// The {name}."),
                    format!("/// `{name}`"),
                    format!("bail!(\"no {name}: {{x}}\")"),
                ] {
                    assert_eq!(found(&prose), in_prose, "{prose}");
                }
            }
        }
    }

    #[test]
    fn the_line_is_that_of_the_word() {
        let planted = "struct Shelf;\n// For\n/// whoever asks.\nfn f() { let wishes = 1; } // Nobody\n";
        assert_eq!(found(planted), [(1, "shelf"), (3, "whoever"), (4, "wishes"), (4, "nobody")]);
        assert_eq!(found("const HELP: &str = \"one \\\n two: whoever\";"), [(2, "whoever")]);
        assert_eq!(found("let text = r#\"\" // \n wished\"#; let next = b\"\\\"nobody\";").len(), 2);
    }

    #[test]
    fn longer_words_are_no_offence() {
        for text in [
            "let deadline = Deadline::new(bodies, studies, remedies);",
            "let (quote, wishing) = ('\"', Shelves); let is_quote = '\\\"';",
            "// A deadlock of mortality: indoors, bellows.",
            "fn f<'a>(r: &'a str) -> &'a str { r }",
            "// On the shelf stands a desk, and a bell.",
        ] {
            assert_eq!(retired(text), [], "{text}");
        }
    }

    #[test]
    fn words_of_pages_are_found_outside_of_code() {
        let page = "# Nobody\n`whoever`, nobodys\n```\nwishes\n```\n| for everybody |\n";
        let found = retired_in_page(page);
        let found: Vec<_> = found.iter().map(|(line, word, _)| (*line, *word)).collect();
        assert_eq!(found, [(1, "nobody"), (6, "everybody")]);
    }

    #[test]
    fn an_exempt_folder_may_offend_and_must() {
        let texts = texts(&[
            ("crates/a/src/lib.rs", "// nobody"),
            ("crates/ab/src/lib.rs", "// somebody"),
            ("crates/b/src/lib.rs", "// Clean."),
        ]);
        let offences = offences_in(&texts, &["crates/a", "crates/b"].into(), &[]);
        assert_eq!(offences.len(), 2, "{offences:?}");
        assert!(
            offences[0].starts_with("crates/ab/src/lib.rs:1: 'somebody' is a retired word"),
            "{offences:?}"
        );
        assert!(offences[1].ends_with("crates/b is clean: remove the line"), "{offences:?}");
    }

    #[test]
    fn an_allowed_word_may_be_used_in_its_file_alone_and_must() {
        let texts = texts(&[("a.rs", "// die, dead"), ("b.md", "die")]);
        let offences = offences_in(
            &texts,
            &BTreeSet::new(),
            &[("a.rs", &["die", "died"], "a test"), ("c.rs", &["die"], "")],
        );
        assert_eq!(offences.len(), 4, "{offences:?}");
        assert!(offences[0].starts_with("a.rs:1: 'dead'"), "{offences:?}");
        assert!(offences[1].starts_with("b.md:1: 'die'"), "{offences:?}");
        assert!(offences[2].ends_with("a.rs does not use 'died': remove it"), "{offences:?}");
        assert!(offences[3].ends_with("c.rs does not use 'die': remove it"), "{offences:?}");
    }
}
