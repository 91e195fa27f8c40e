//! Checks the pages that name code: every path and type in ARCHITECTURE.md and in the glossary exists, the tables of crates
//! and folders agree with the code, and no page links to a missing file.
//!
//! A path is found from the root, from `crates/`, from the folder that its section is about, or from a folder or file named
//! before it in the same paragraph, list item or table row.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};

use super::floors::FLOORS;
use super::{ARROWS, FOR_TESTS, backticked, is_rule, last_cell};
use crate::paths;

const MAP: &str = "ARCHITECTURE.md";
const GLOSSARY: &str = "docs/glossary.md";

/// Endings by which a name without a folder is a file.
const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".txt"];

/// Checks the two pages, and the links of all pages.
pub(super) fn check(offences: &mut Vec<String>) -> Result<()> {
    let root = paths::root();
    let read =
        |page: &str| fs::read_to_string(root.join(page)).with_context(|| format!("cannot read {page}"));
    let is_there = |path: &str| root.join(path).exists();
    let (map, code) = (read(MAP)?, Code::read()?);
    offences.extend(missing_paths(MAP, &map, is_there));
    offences.extend(missing_items(MAP, &map, &code));
    offences.extend(wrong_crates(&map));
    offences.extend(wrong_folders(&map));
    offences.extend(wrong_terms(&read(GLOSSARY)?, &code));
    for page in paths::files(&root, &["md"]) {
        let shown = paths::shown(&page);
        let text = fs::read_to_string(&page)?;
        // Folders and pictures have no headings.
        let linked = |path: &str| {
            let path = root.join(path);
            path.exists().then(|| fs::read_to_string(path).unwrap_or_default())
        };
        offences.extend(broken_links(&shown, &text, linked));
    }
    Ok(())
}

/// Returns the lines of a page outside of code blocks, with their numbers.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

fn missing_paths(page: &str, text: &str, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let mut missing = Vec::new();
    let (mut section, mut named): (Option<String>, Vec<String>) = (None, Vec::new());
    for (number, line) in prose(text) {
        let begins = ["#", "|", "- "].iter().any(|start| line.starts_with(start));
        if begins || line.is_empty() || line.starts_with(|sign: char| sign.is_ascii_digit()) {
            named.clear();
        }
        let is_heading = line.starts_with('#');
        if is_heading {
            section = None;
        }
        for path in backticked(line).into_iter().filter(|text| is_path(text)) {
            let bases = named.iter().rev().chain(&section).map(String::as_str).chain(["", "crates/"]);
            let path = path.trim_end_matches('/');
            let Some(found) = bases.map(|base| format!("{base}{path}")).find(|candidate| is_there(candidate))
            else {
                missing.push(format!("{page}:{number}: there is no `{path}`"));
                continue;
            };
            if is_heading || line.contains(&format!("relative to `{path}`")) {
                section = Some(format!("{found}/"));
            }
            let is_file = ENDINGS.iter().any(|ending| found.ends_with(ending));
            match found.rsplit_once('/') {
                Some((folder, _)) if is_file => named.push(format!("{folder}/")),
                _ => named.extend([format!("{found}/"), format!("{found}/src/")]),
            }
        }
    }
    missing
}

/// Whether a text in backticks is the path of a file or folder, and not of a page on the wire.
fn is_path(text: &str) -> bool {
    let is_name =
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    is_name
        && !text.starts_with('/')
        && (text.contains('/') || ENDINGS.iter().any(|ending| text.ends_with(ending)))
}

fn missing_items(page: &str, text: &str, code: &Code) -> Vec<String> {
    let lines =
        prose(text).flat_map(|(number, line)| backticked(line).into_iter().map(move |item| (number, item)));
    let items = lines.filter(|(_, text)| is_item(text));
    items
        .filter(|(_, item)| !code.defines(item))
        .map(|(number, item)| format!("{page}:{number}: the code defines no `{item}`"))
        .collect()
}

/// Whether a text in backticks is a type, or the path of an item in the code.
fn is_item(text: &str) -> bool {
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte));
    is_name && (text.contains("::") || is_type(text))
}

fn is_type(name: &str) -> bool {
    name.starts_with(|sign: char| sign.is_ascii_uppercase())
        && name.contains(|sign: char| sign.is_ascii_lowercase())
}

/// Compares the second column of the table of crates with the table of crate arrows, without the crates that only tests may
/// use.
fn wrong_crates(text: &str) -> Vec<String> {
    let rows = prose(text).filter_map(|(number, line)| {
        let name = line.strip_prefix("| `crates/")?.split('`').next()?;
        let uses = line.split('|').nth(2)?.split(',').map(str::trim).filter(|name| !name.is_empty());
        Some((name, (number, uses.collect::<BTreeSet<_>>())))
    });
    let rows: BTreeMap<_, _> = rows.collect();
    let mut wrong = Vec::new();
    for (name, allowed) in ARROWS {
        let allowed: BTreeSet<_> = allowed.iter().copied().filter(|name| !FOR_TESTS.contains(name)).collect();
        match rows.get(name) {
            None => wrong.push(format!("{MAP}: the table of crates has no row for crates/{name}")),
            Some((number, uses)) if *uses != allowed => {
                let allowed: Vec<_> = allowed.into_iter().collect();
                wrong.push(format!("{MAP}:{number}: {name} may use: {}", allowed.join(", ")));
            }
            Some(_) => {}
        }
    }
    wrong
}

/// Compares the rows below a heading that names a crate's source with the folders of that crate, from the lowest to the
/// highest.
fn wrong_folders(text: &str) -> Vec<String> {
    let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut table = None;
    for (_, line) in prose(text) {
        if line.starts_with('#') {
            let source = backticked(line).into_iter().next();
            table = source.and_then(|source| source.strip_prefix("crates/")?.strip_suffix("/src"));
        } else if let (Some(name), Some(row)) = (table, line.strip_prefix("| `")) {
            tables.entry(name).or_default().extend(row.split_once("/`").map(|(folder, _)| folder));
        }
    }
    let mut wrong = Vec::new();
    for (name, floors) in FLOORS {
        let floors: Vec<_> = floors.iter().copied().filter(|floor| *floor != super::floors::ROOT).collect();
        if tables.get(name) != Some(&floors) {
            wrong.push(format!(
                "{MAP}: the folders of crates/{name}/src are, in this order: {}",
                floors.join(", ")
            ));
        }
    }
    wrong
}

/// Returns the terms whose last column names nothing in the code.
fn wrong_terms(text: &str, code: &Code) -> Vec<String> {
    let mut wrong = Vec::new();
    let lines: Vec<_> = prose(text).collect();
    for (position, (number, line)) in lines.iter().enumerate() {
        let is_head = lines.get(position + 1).is_some_and(|(_, next)| is_rule(next));
        if !line.starts_with('|') || is_rule(line) || is_head {
            continue;
        }
        let carriers = backticked(last_cell(line));
        if carriers.is_empty() {
            wrong.push(format!("{GLOSSARY}:{number}: the row names no type or module"));
        }
        let missing = carriers.into_iter().filter(|item| !code.defines(item));
        wrong.extend(missing.map(|item| format!("{GLOSSARY}:{number}: the code defines no `{item}`")));
    }
    wrong
}

/// Returns the links to missing files, and to missing headings of pages.
fn broken_links(page: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut broken = Vec::new();
    for (number, line) in prose(text) {
        for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = format!("{folder}/{file}");
            let linked =
                if file.is_empty() { Some(text.to_owned()) } else { read(path.trim_start_matches('/')) };
            let leads_there =
                linked.is_some_and(|linked| heading.is_empty() || has_heading(&linked, heading));
            if !leads_there {
                broken.push(format!("{page}:{number}: the link '{target}' leads nowhere"));
            }
        }
    }
    broken
}

fn has_heading(text: &str, heading: &str) -> bool {
    prose(text).any(|(_, line)| line.starts_with('#') && anchor(line) == heading)
}

/// Returns the name by which a page links to a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let signs = text.chars().filter(|sign| sign.is_alphanumeric() || " -_".contains(*sign));
    signs.map(|sign| if sign == ' ' { '-' } else { sign }).collect()
}

/// The definitions of the crates.
#[derive(Debug, Default)]
struct Code {
    crates: BTreeSet<String>,
    /// Modules as `crate/folder/file`.
    modules: BTreeSet<String>,
    /// Types and functions by name, each with the module that defines it.
    types: BTreeMap<String, BTreeSet<String>>,
    functions: BTreeMap<String, BTreeSet<String>>,
}

impl Code {
    fn read() -> Result<Code> {
        let mut code = Code::default();
        for path in paths::files(&paths::root().join("crates"), &["rs"]) {
            code.add(&paths::shown(&path), &fs::read_to_string(&path)?);
        }
        Ok(code)
    }

    /// Adds a source file, by its path from the root.
    fn add(&mut self, file: &str, text: &str) {
        let parts: Vec<_> = file.trim_end_matches(".rs").split('/').collect();
        let ["crates", name, "src", inside @ ..] = parts.as_slice() else { return };
        let is_folder = inside.last().is_some_and(|last| ["lib", "main", "mod"].contains(last));
        let inside = &inside[..inside.len() - usize::from(is_folder)];
        let module = [&[*name][..], inside].concat().join("/");
        self.crates.insert((*name).to_owned());
        for line in text.lines() {
            let Some((kind, name)) = definition(line) else { continue };
            let table = if kind == "fn" { &mut self.functions } else { &mut self.types };
            table.entry(name.to_owned()).or_default().insert(module.clone());
        }
        self.modules.insert(module);
    }

    /// Whether a crate, module, type or function of that name exists: `storage`, `engine::access::gate`, `engine::Item`,
    /// `storage::transact`, `Policy::is_expired`. A type may be defined below the module that is named.
    fn defines(&self, item: &str) -> bool {
        let segments: Vec<_> = item.split("::").collect();
        let of_crate = self.crates.contains(segments[0]);
        let count = segments.iter().take_while(|segment| !is_type(segment)).count();
        let (modules, rest) = segments.split_at(count);
        if !of_crate && count > 0 {
            return false;
        }
        let place = modules.join("/");
        let is_below = |module: &&String| {
            place.is_empty() || **module == place || module.starts_with(&format!("{place}/"))
        };
        match rest {
            [] if self.modules.iter().any(|module| is_below(&module)) => true,
            [] => place.rsplit_once('/').is_some_and(|(place, function)| {
                let mut defined = self.functions.get(function).into_iter().flatten();
                defined.any(|module| format!("{module}/").starts_with(&format!("{place}/")))
            }),
            [name] => self.types.get(*name).into_iter().flatten().any(|module| is_below(&module)),
            [name, function] => {
                let crate_of = |module: &String| module.split('/').next().map(str::to_owned);
                let defined = self.types.get(*name).into_iter().flatten().filter(is_below);
                let crates: BTreeSet<_> = defined.map(crate_of).collect();
                self.functions
                    .get(*function)
                    .into_iter()
                    .flatten()
                    .any(|module| crates.contains(&crate_of(module)))
            }
            _ => false,
        }
    }
}

/// Returns the kind and the name of the definition that begins in a line of source.
fn definition(line: &str) -> Option<(&str, &str)> {
    let mut rest = line.trim_start();
    if let Some(visible) = rest.strip_prefix("pub(") {
        rest = visible.split_once(") ")?.1;
    }
    while let Some(next) =
        ["pub ", "async ", "const ", "unsafe "].iter().find_map(|word| rest.strip_prefix(word))
    {
        rest = next;
    }
    let (kind, rest) = rest.split_once(' ')?;
    let end = rest.find(|sign: char| !(sign.is_alphanumeric() || sign == '_')).unwrap_or(rest.len());
    let is_kind = ["struct", "enum", "trait", "type", "fn"].contains(&kind);
    (is_kind && end > 0).then_some((kind, &rest[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code() -> Code {
        let mut code = Code::default();
        code.add("crates/a/src/lib.rs", "pub fn open() {}\npub struct Thing;");
        code.add("crates/a/src/deep/mod.rs", "mod inner;");
        code.add(
            "crates/a/src/deep/inner.rs",
            "pub(crate) enum Inner<'a> {\n    pub(super) const fn act() {}",
        );
        code.add("crates/b/src/lib.rs", "pub trait Other {\n    fn act();");
        code
    }

    #[test]
    fn a_path_that_is_not_there_is_reported_with_its_line() {
        let there = ["crates/a/src", "crates/a/src/lib.rs", "docs/x.md"];
        let text = "# Map\n`docs/x.md`, `a/src/lib.rs`, `/_pages/`, `FROM a`\n\n`docs/gone.md`, `b/src`\n```\n`no/path`\n```\n";
        let missing = missing_paths("MAP", text, |path| there.contains(&path));
        assert_eq!(missing, ["MAP:4: there is no `docs/gone.md`", "MAP:4: there is no `b/src`"]);
    }

    #[test]
    fn a_file_name_is_looked_for_where_the_line_and_its_section_are() {
        let there = [
            "crates/a",
            "crates/a/src/lib.rs",
            "crates/a/src",
            "crates/a/src/deep",
            "crates/a/src/deep/inner.rs",
        ];
        let text = "| `crates/a` | `lib.rs` |\n| `lib.rs` |\n\n## Of `crates/a/src`\n- `deep/` has\n  `inner.rs`\n- `inner.rs`\n";
        let missing = missing_paths("MAP", text, |path| there.contains(&path));
        assert_eq!(missing, ["MAP:2: there is no `lib.rs`", "MAP:7: there is no `inner.rs`"]);
    }

    #[test]
    fn items_are_found_by_crate_module_type_and_function() {
        let code = code();
        for item in [
            "Thing",
            "a",
            "a::open",
            "a::Thing",
            "a::deep",
            "a::deep::Inner",
            "a::Inner",
            "Inner::act",
            "a::deep::act",
        ] {
            assert!(code.defines(item), "{item}");
        }
        for item in [
            "Gone",
            "gone",
            "b::Thing",
            "a::gone",
            "a::other::Inner",
            "Thing::gone",
            "Other::open",
            "x::Thing",
        ] {
            assert!(!code.defines(item), "{item}");
        }
        let text = "`Thing`, `gone`, `Gone`, `ALL_CAPS`, `Some text`, `Thing::gone`";
        let missing = missing_items("MAP", text, &code);
        assert_eq!(
            missing,
            ["MAP:1: the code defines no `Gone`", "MAP:1: the code defines no `Thing::gone`"]
        );
    }

    #[test]
    fn a_term_without_a_type_and_one_with_a_missing_type_are_reported() {
        let text = "| Term | Meaning | Carried by |\n|---|---|---|\n| a | `Gone` | `a::Thing` |\n| b | | `Gone` |\n| c | | c |\n";
        let wrong = wrong_terms(text, &code());
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].ends_with(":4: the code defines no `Gone`"), "{wrong:?}");
        assert!(wrong[1].ends_with(":5: the row names no type or module"), "{wrong:?}");
    }

    #[test]
    fn a_crate_without_a_row_and_one_with_a_false_row_are_reported() {
        let row = |(name, allowed): &(&str, &[&str])| {
            let uses: Vec<_> = allowed.iter().copied().filter(|name| !FOR_TESTS.contains(name)).collect();
            format!("| `crates/{name}` | {} | purpose |\n", uses.join(", "))
        };
        let text: String = ARROWS.iter().map(row).collect();
        assert_eq!(wrong_crates(&text), [""; 0]);
        let missing =
            wrong_crates(&text.replace("| `crates/bson` | calendar |", "| `crates/bison` | calendar |"));
        assert_eq!(missing, ["ARCHITECTURE.md: the table of crates has no row for crates/bson"]);
        let wrong =
            wrong_crates(&text.replace("| `crates/bson` | calendar |", "| `crates/bson` | document |"));
        assert!(wrong.len() == 1 && wrong[0].ends_with("bson may use: calendar"), "{wrong:?}");
    }

    #[test]
    fn folders_in_another_order_than_the_floors_are_reported() {
        let table = |(name, floors): &(&str, &[&str])| {
            let rows = floors.iter().filter(|floor| **floor != super::super::floors::ROOT);
            let rows: Vec<String> = rows.map(|floor| format!("| `{floor}/` | what it has |\n")).collect();
            let rows = rows.concat();
            format!("## Folders of `crates/{name}/src`\n{rows}\n")
        };
        let text: String = FLOORS.iter().map(table).collect();
        assert_eq!(wrong_folders(&text), [""; 0]);
        let wrong = wrong_folders(&text.replacen("| `types/` | what it has |\n", "", 1));
        assert!(
            wrong.len() == 1 && wrong[0].contains("crates/engine/src are, in this order: types, "),
            "{wrong:?}"
        );
    }

    #[test]
    fn links_to_missing_files_and_headings_are_reported() {
        let text = "# The `first` part, I\n[a](x.md#any) [b](../y.md) [c](#the-first-part-i) [d](#gone) \
                    [e](https://z.org/) [f](x.md#none)\n";
        let read = |path: &str| (path == "docs/x.md").then(|| "## Any\n".to_owned());
        let broken = broken_links("docs/page.md", text, read);
        let nowhere = |target: &str| format!("docs/page.md:2: the link '{target}' leads nowhere");
        assert_eq!(broken, ["../y.md", "#gone", "x.md#none"].map(nowhere));
    }
}
