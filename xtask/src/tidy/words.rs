//! Retired words: identifiers, and words in comments, help and pages, for which the field has other names.
//!
//! Strings are not checked, except the help in [`HELP`]: texts on the wire and test data may contain any word. Nor are names of
//! crates and files, and code on pages. Crates and folders that still use retired words are listed in `retired_words.txt`; the
//! list may only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::Result;

use super::map::prose;
use crate::paths;

/// Crates and folders that are not yet clean.
const EXEMPT: &str = "xtask/src/tidy/retired_words.txt";

/// Identifiers, and their replacements.
const IDENTIFIERS: &[(&str, &str)] = &[
    ("Bell", "Wakeup, or a signal named after its receiver"),
    ("Deed", "AuditedAction"),
    ("Desk", "WriteContext"),
    ("Doors", "AdminHooks or Backends"),
    ("Forgetful", "NoKeyStore"),
    ("Planter", "Seeder"),
    ("Shelf", "Subresources"),
    ("Undertaker", "ItemRemover"),
    ("Wish", "a setting, a plan or a query"),
    ("belongings", "subresources"),
    ("burial", "removal"),
    ("doors", "hooks or backends"),
    ("obituary", "expiry_record"),
    ("undertaker", "item_remover"),
    ("wishes", "lifecycle"),
];

/// Words in comments, help and pages, and their replacements.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("anybody", "the actor: any client, an unauthenticated client"),
    ("belongings", "subresources"),
    ("burial", "removal"),
    ("everybody", "the actor: every client, every user"),
    ("nobody", "the actor: no caller, no other transaction"),
    ("obituary", "expiry record"),
    ("somebody", "the actor: the caller, another process"),
    ("undertaker", "item remover"),
    ("whoever", "the actor: the caller, the operator, a transaction"),
    ("wishes", "lifecycle settings"),
];

/// Sources whose strings are help.
const HELP: &[&str] = &["crates/server/src/cli/mod.rs", "crates/server/src/settings/table.rs"];

/// Adds every retired word outside of the exempt folders, and every exemption that is no longer needed.
pub(super) fn check(offences: &mut Vec<String>) -> Result<()> {
    let list = fs::read_to_string(paths::root().join(EXEMPT))?;
    let exempt = list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut sources = BTreeMap::new();
    for path in paths::files(&paths::root(), &["rs"]) {
        sources.insert(paths::shown(&path), fs::read_to_string(path)?);
    }
    offences.extend(offences_in(&sources, &exempt.collect()));
    for page in paths::files(&paths::root(), &["md"]) {
        let (shown, text) = (paths::shown(&page), fs::read_to_string(&page)?);
        offences.extend(retired_in_page(&text).into_iter().map(|(line, word, better)| {
            format!("{shown}:{line}: '{word}' is a retired word: write {better}")
        }));
    }
    Ok(())
}

fn offences_in(sources: &BTreeMap<String, String>, exempt: &BTreeSet<&str>) -> Vec<String> {
    let (mut offences, mut needed) = (Vec::new(), BTreeSet::new());
    for (file, text) in sources {
        let found = retired(text, HELP.contains(&file.as_str()));
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
    offences
}

fn is_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the retired words of a source, with their line and the replacement.
fn retired(text: &str, is_help: bool) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    for Part { line, kind, text } in parts(text) {
        let list = match kind {
            Kind::Code => IDENTIFIERS,
            Kind::Comment => WORDS,
            Kind::Text if is_help => WORDS,
            Kind::Text => continue,
        };
        for (offset, word) in words(text) {
            let same = |retired: &str| match kind {
                Kind::Code => retired == word,
                Kind::Comment | Kind::Text => retired.eq_ignore_ascii_case(word),
            };
            if let Some((retired, better)) = list.iter().find(|(retired, _)| same(retired)) {
                let line = line + text[..offset].matches('\n').count();
                found.push((line, *retired, *better));
            }
        }
    }
    found
}

/// Returns the retired words of a page outside of code, with their line and the replacement.
fn retired_in_page(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for part in line.split('`').step_by(2) {
            let retired = |word: &str| WORDS.iter().find(|(retired, _)| retired.eq_ignore_ascii_case(word));
            let words = words(part).filter_map(|(_, word)| retired(word));
            found.extend(words.map(|(word, better)| (number, *word, *better)));
        }
    }
    found
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

    fn sources(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn planted_words_are_found_in_code_comments_and_help() {
        let planted = "struct Shelf;\n// For\n/// whoever asks.\nfn f() { let wishes = 1; } // Nobody\n";
        let found = retired(planted, false);
        let found: Vec<_> = found.iter().map(|(line, word, _)| (*line, *word)).collect();
        assert_eq!(found, [(1, "Shelf"), (3, "whoever"), (4, "wishes"), (4, "nobody")]);
        let help = "const HELP: &str = \"one \\\n two: whoever\";";
        assert_eq!(retired(help, true).iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn strings_longer_words_and_test_data_are_no_offence() {
        for text in [
            "let text = \"whoever // wishes\";",
            "let text = r#\"whoever \" // wishes\"#; let next = b\"\\\"nobody\";",
            "let (quote, wished) = ('\"', Shelves); let is_nobody = '\\\"';",
            "fn nobody_waits() { member(\"wishes\") }",
            "use words::Words; // A list of words.",
            "fn f<'a>(r: &'a str) -> &'a str { r }",
        ] {
            assert_eq!(retired(text, false), [], "{text}");
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
        let sources = sources(&[
            ("crates/a/src/lib.rs", "// nobody"),
            ("crates/ab/src/lib.rs", "// somebody"),
            ("crates/b/src/lib.rs", "// Clean."),
        ]);
        let offences = offences_in(&sources, &["crates/a", "crates/b"].into());
        assert_eq!(offences.len(), 2, "{offences:?}");
        assert!(
            offences[0].starts_with("crates/ab/src/lib.rs:1: 'somebody' is a retired word"),
            "{offences:?}"
        );
        assert!(offences[1].ends_with("crates/b is clean: remove the line"), "{offences:?}");
    }
}
