//! The paths of its own crate that a Rust source names: a scanner for `use` trees and paths, not a parser of Rust.
//!
//! Items behind `#[cfg(test)]` are left out: tests may use code above the code that they test.

use std::collections::BTreeSet;

/// A path that begins in the file's own crate, its segments from the crate's root on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name under which a re-export publishes it, `*` for all names.
    pub(super) exported_as: Option<String>,
}

/// The imports of a source.
#[derive(Debug, Default)]
pub(super) struct Imports {
    pub(super) imports: BTreeSet<Import>,
    /// Modules that exist only in tests.
    pub(super) test_modules: BTreeSet<String>,
}

/// Returns the imports of the module at `module`, a path from the crate's root.
pub(super) fn scan(text: &str, module: &[String]) -> Imports {
    let mut scanner = Scanner {
        tokens: tokens(text),
        at: 0,
        module: module.to_vec(),
        inner: Vec::new(),
        depth: 0,
        found: Imports::default(),
    };
    scanner.run();
    scanner.found
}

/// Returns identifiers and single signs, `::` as one. Comments, lifetimes and literals are left out.
fn tokens(text: &str) -> Vec<String> {
    let signs: Vec<char> = text.chars().collect();
    let (mut tokens, mut at) = (Vec::new(), 0);
    let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
    let starts =
        |at: usize, what: &str| what.chars().enumerate().all(|(n, sign)| signs.get(at + n) == Some(&sign));
    while let Some(&sign) = signs.get(at) {
        if starts(at, "//") {
            at = (at..signs.len()).find(|&end| signs[end] == '\n').unwrap_or(signs.len());
        } else if starts(at, "/*") {
            at = (at + 2..signs.len()).find(|&end| starts(end, "*/")).map_or(signs.len(), |end| end + 2);
        } else if let Some(end) = raw_string_end(&signs, at).or_else(|| string_end(&signs, at)) {
            at = end;
        } else if sign == '\'' {
            // A character, or a lifetime, whose name then follows as a word without meaning here.
            let escaped = signs.get(at + 1) == Some(&'\\');
            let close = (at + if escaped { 3 } else { 2 }..(at + 12).min(signs.len()))
                .find(|&end| signs[end] == '\'');
            at = match close {
                Some(end) if escaped || end == at + 2 => end + 1,
                _ => (at + 1..signs.len()).find(|&end| !is_word(signs[end])).unwrap_or(signs.len()),
            };
        } else if is_word(sign) {
            let end = (at..signs.len()).find(|&end| !is_word(signs[end])).unwrap_or(signs.len());
            tokens.push(signs[at..end].iter().collect());
            at = end;
        } else if starts(at, "::") {
            tokens.push("::".to_owned());
            at += 2;
        } else {
            if !sign.is_whitespace() {
                tokens.push(sign.to_string());
            }
            at += 1;
        }
    }
    tokens
}

/// Returns the end of a string that begins at `at`, if one does.
fn string_end(signs: &[char], at: usize) -> Option<usize> {
    let open = if signs[at] == 'b' { at + 1 } else { at };
    if signs.get(open) != Some(&'"') {
        return None;
    }
    let mut end = open + 1;
    while let Some(&sign) = signs.get(end) {
        match sign {
            '\\' => end += 2,
            '"' => return Some(end + 1),
            _ => end += 1,
        }
    }
    Some(signs.len())
}

/// Returns the end of a raw string that begins at `at`, if one does.
fn raw_string_end(signs: &[char], at: usize) -> Option<usize> {
    let raw = if signs[at] == 'b' { at + 1 } else { at };
    if signs.get(raw) != Some(&'r') {
        return None;
    }
    let hashes = signs[raw + 1..].iter().take_while(|sign| **sign == '#').count();
    let open = raw + 1 + hashes;
    if signs.get(open) != Some(&'"') {
        return None;
    }
    let closes = |end: &usize| {
        signs[*end] == '"'
            && signs[end + 1..].iter().take(hashes).filter(|sign| **sign == '#').count() == hashes
    };
    Some((open + 1..signs.len()).find(closes).map_or(signs.len(), |end| end + 1 + hashes))
}

struct Scanner {
    tokens: Vec<String>,
    at: usize,
    /// The module of the file.
    module: Vec<String>,
    /// The inner modules around the scanner's position, with the depth of their braces.
    inner: Vec<(String, usize)>,
    depth: usize,
    found: Imports,
}

impl Scanner {
    fn run(&mut self) {
        while let Some(token) = self.tokens.get(self.at) {
            match token.as_str() {
                "#" if self.is_at(&["#", "[", "cfg", "(", "test", ")", "]"]) => {
                    self.at += 7;
                    self.skip_test_item();
                }
                "mod" if self.token(2) == "{" => {
                    self.depth += 1;
                    self.inner.push((self.token(1).to_owned(), self.depth));
                    self.at += 3;
                }
                "{" => {
                    self.depth += 1;
                    self.at += 1;
                }
                "}" => {
                    if self.inner.last().is_some_and(|(_, depth)| *depth == self.depth) {
                        self.inner.pop();
                    }
                    self.depth = self.depth.saturating_sub(1);
                    self.at += 1;
                }
                // Except the captures of a type (`use<'a>`).
                "use" if self.token(1) != "<" => {
                    let is_exported = self.is_exported();
                    self.at += 1;
                    self.use_tree(&mut Vec::new(), is_exported);
                }
                "crate" | "super" | "self" if self.token(1) == "::" && self.token_before() != "::" => {
                    let path = self.path();
                    self.add(&path, None);
                }
                _ => self.at += 1,
            }
        }
    }

    fn token(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    fn token_before(&self) -> &str {
        self.at.checked_sub(1).map_or("", |before| &self.tokens[before])
    }

    fn is_at(&self, expected: &[&str]) -> bool {
        expected.iter().enumerate().all(|(ahead, token)| self.token(ahead) == *token)
    }

    /// Whether the current `use` has a visibility.
    fn is_exported(&self) -> bool {
        let before = self.token_before();
        before == "pub"
            || (before == ")" && self.tokens[..self.at].iter().rev().take(5).any(|token| token == "pub"))
    }

    /// Skips the item behind `#[cfg(test)]`: to its semicolon, or to the end of its braces.
    fn skip_test_item(&mut self) {
        let item = self.tokens[self.at..].iter().position(|token| token == "mod");
        if let Some(item) = item.filter(|item| *item <= 4)
            && self.token(item + 2) == ";"
        {
            self.found.test_modules.insert(self.token(item + 1).to_owned());
        }
        let (mut depth, mut is_open) = (0_usize, false);
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token.as_str() {
                "{" => (depth, is_open) = (depth + 1, true),
                "}" => depth = depth.saturating_sub(1),
                ";" if depth == 0 => return,
                _ => {}
            }
            if is_open && depth == 0 {
                return;
            }
        }
    }

    /// Reads one tree of a `use`, behind `prefix`, to its end.
    fn use_tree(&mut self, prefix: &mut Vec<String>, is_exported: bool) {
        let length = prefix.len();
        loop {
            match self.token(0).to_owned().as_str() {
                "{" => {
                    self.at += 1;
                    while !["}", ";", ""].contains(&self.token(0)) {
                        self.use_tree(prefix, is_exported);
                        if self.token(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                "::" => self.at += 1,
                "," | ";" | "}" | "" => {
                    let name = prefix.last().cloned();
                    self.add(&prefix.clone(), name.filter(|_| is_exported));
                    break;
                }
                "as" => {
                    let name = self.token(1).to_owned();
                    self.at += 2;
                    self.add(&prefix.clone(), Some(name).filter(|_| is_exported));
                    break;
                }
                word => {
                    prefix.push(word.to_owned());
                    self.at += 1;
                }
            }
        }
        prefix.truncate(length);
    }

    /// Reads the current path, outside of a `use`.
    fn path(&mut self) -> Vec<String> {
        let mut path = vec![self.token(0).to_owned()];
        self.at += 1;
        while self.token(0) == "::"
            && self.token(1).starts_with(|sign: char| sign.is_alphanumeric() || sign == '_')
        {
            path.push(self.token(1).to_owned());
            self.at += 2;
        }
        path
    }

    /// Adds a path if it lies in this crate.
    fn add(&mut self, path: &[String], exported_as: Option<String>) {
        let here = || self.module.iter().chain(self.inner.iter().map(|(name, _)| name)).cloned();
        let leading =
            path.iter().take_while(|segment| ["crate", "self", "super"].contains(&segment.as_str())).count();
        let mut full: Vec<String> = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => here().collect(),
            // A child, or another crate: the caller knows the children.
            Some(_) if exported_as.is_some() => here().collect(),
            _ => return,
        };
        for _ in path[..leading].iter().filter(|segment| *segment == "super") {
            full.pop();
        }
        full.extend(path[leading..].iter().filter(|segment| *segment != "self").cloned());
        self.found.imports.insert(Import { path: full, exported_as });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str, module: &[&str]) -> Vec<String> {
        let module: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
        scan(text, &module).imports.iter().map(|import| import.path.join("::")).collect()
    }

    #[test]
    fn every_spelling_of_a_path_in_the_own_crate_is_found() {
        for (text, expected) in [
            ("use crate::gate::Gate;", &["gate::Gate"][..]),
            ("use crate::{a::B, c::{self, D as E}};", &["a::B", "c", "c::D"]),
            ("use super::{f, g::H};", &["purge::f", "purge::g::H"]),
            ("use super::super::top;", &["top"]),
            ("use self::child::X;", &["purge::sweep::child::X"]),
            ("fn f() { crate::keys::encode(); super::other(); }", &["keys::encode", "purge::other"]),
            ("use storage::Read; use std::sync::Arc;", &[]),
            ("fn f<'a>(x: &'a X) -> impl T + use<'a> { a; b; }", &[]),
            ("mod inner { use super::X; } use super::Y;", &["purge::Y", "purge::sweep::X"]),
        ] {
            assert_eq!(paths(text, &["purge", "sweep"]), expected, "{text}");
        }
    }

    #[test]
    fn tests_comments_and_strings_are_passed() {
        let text = r##"
            // use crate::comment;
            /* use crate::block; */
            const TEXT: &str = "use crate::string; \" ";
            const RAW: &str = r#"use crate::raw;"#;
            fn f<'a>(c: char) -> bool { c == '"' || c == '\'' || c == '{' }
            #[cfg(test)]
            use crate::tested;
            #[cfg(test)]
            pub(crate) mod scripts;
            #[cfg(test)]
            mod tests { use crate::inside; fn g() { { } } }
            use crate::seen;
        "##;
        assert_eq!(paths(text, &[]), ["seen"]);
        assert_eq!(scan(text, &[]).test_modules, ["scripts".to_owned()].into());
    }

    #[test]
    fn what_is_made_known_is_told_with_its_name() {
        let found =
            scan("pub use error::{Error, Result as R}; pub(crate) use crate::a::*; use crate::b::C;", &[]);
        let exported: Vec<(String, Option<&str>)> = found
            .imports
            .iter()
            .map(|import| (import.path.join("::"), import.exported_as.as_deref()))
            .collect();
        assert_eq!(
            exported,
            [
                ("a::*".to_owned(), Some("*")),
                ("b::C".to_owned(), None),
                ("error::Error".to_owned(), Some("Error")),
                ("error::Result".to_owned(), Some("R")),
            ]
        );
    }
}
