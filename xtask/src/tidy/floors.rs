//! Floors inside crates: a crate's rooms, which are its top-level modules, form layers, and an arrow (an import) points down only.
//!
//! Where [`FLOORS`] lists a crate's rooms from the lowest to the highest, a room may use those before it. In every other crate rooms
//! must form no circle. Arrows that break this today are listed in `circles.txt`; the list may only shrink.
//!
//! A room may be one file. The crate's root (`lib.rs`, `main.rs`) may use every room; a room that uses something defined in
//! the root points up, unless the list says from which floor on it may. An arrow follows re-exports to the room in which a
//! name is defined.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::imports::{Import, Imports, scan};
use crate::paths;

/// The rooms of crates from the lowest to the highest.
pub(super) const FLOORS: &[(&str, &[&str])] = &[
    (
        "engine",
        &[
            "types",
            "expiry",
            "definition",
            "keys",
            "entries",
            "index",
            // The engine itself, to which the folders from here on add methods.
            ROOT,
            "catalog",
            "access",
            "feed",
            "evidence",
            "schema",
            "write",
            "collection",
            "query",
            "maintenance",
        ],
    ),
    ("nosql", &["protocol", "message", "http", "direct", "auth", "handlers", "admin", "service"]),
    (
        "mongo",
        &[
            "protocol",
            "wire",
            "diagnostics",
            "rights",
            "access",
            "change_stream",
            "session",
            "auth",
            "service",
            "statements",
            "commands",
            "dispatch",
        ],
    ),
];

/// The list of forbidden arrows that still exist.
const CIRCLES: &str = "xtask/src/tidy/circles.txt";

/// The room of everything that is defined in the crate's root.
pub(super) const ROOT: &str = "the root";

/// The rooms of a crate, and which others each of them uses.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rooms {
    rooms: BTreeSet<String>,
    /// The arrows, each with a file that has it.
    arrows: BTreeMap<(String, String), String>,
}

/// Checks the floors of all crates.
pub(super) fn check(offences: &mut Vec<String>) -> Result<()> {
    let text =
        fs::read_to_string(paths::root().join(CIRCLES)).with_context(|| format!("cannot read {CIRCLES}"))?;
    let allowed: BTreeSet<&str> =
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut present = BTreeMap::new();
    for name in super::folders(&paths::root().join("crates")) {
        let source = paths::root().join("crates").join(&name).join("src");
        let rooms = Rooms::read(&source)?;
        let wrong = match FLOORS.iter().find(|(listed, _)| *listed == name) {
            Some((_, floors)) => {
                for room in rooms.rooms.iter().filter(|room| !floors.contains(&room.as_str())) {
                    offences.push(format!(
                        "crates/{name}/src/{room}: unknown to the floors in xtask/src/tidy/floors.rs"
                    ));
                }
                rooms.upward(floors)
            }
            None => rooms.in_circles(),
        };
        present.extend(
            wrong.into_iter().map(|((from, to), file)| (format!("{name}: {from} -> {to}"), file.clone())),
        );
    }
    for (arrow, file) in present.iter().filter(|(arrow, _)| !allowed.contains(arrow.as_str())) {
        offences.push(format!("{file}: a new arrow that points up or closes a circle: {arrow}"));
    }
    for arrow in allowed.iter().filter(|arrow| !present.contains_key(**arrow)) {
        offences.push(format!("{CIRCLES}: is over, and leaves the list: {arrow}"));
    }
    Ok(())
}

impl Rooms {
    fn read(source: &Path) -> Result<Rooms> {
        let mut sources = BTreeMap::new();
        for path in paths::files(source, &["rs"]) {
            let module = module(path.strip_prefix(source)?);
            sources.insert((module, paths::shown(&path)), fs::read_to_string(&path)?);
        }
        Ok(Rooms::of(&sources))
    }

    /// Returns the rooms of a crate by the modules and names of its files, with their texts.
    fn of(sources: &BTreeMap<(Vec<String>, String), String>) -> Rooms {
        let scanned: Vec<(&Vec<String>, &String, Imports)> =
            sources.iter().map(|((module, file), text)| (module, file, scan(text, module))).collect();
        let tests: BTreeSet<Vec<String>> = scanned
            .iter()
            .flat_map(|(module, _, found)| {
                found.test_modules.iter().map(|name| [module.as_slice(), std::slice::from_ref(name)].concat())
            })
            .collect();
        let is_test = |module: &[String]| (1..=module.len()).any(|length| tests.contains(&module[..length]));
        let product: Vec<_> = scanned.iter().filter(|(module, ..)| !is_test(module)).collect();
        let rooms: BTreeSet<String> =
            product.iter().filter_map(|(module, ..)| module.first().cloned()).collect();
        let mut exports = Exports::default();
        for (module, _, found) in &product {
            for import in &found.imports {
                exports.add(module, import);
            }
        }
        let mut arrows = BTreeMap::new();
        for (module, file, found) in &product {
            let Some(from) = module.first() else { continue };
            for Import { path, .. } in &found.imports {
                let to = exports.room_of(path, &rooms);
                if to != *from {
                    arrows.entry((from.clone(), to)).or_insert_with(|| (*file).clone());
                }
            }
        }
        Rooms { rooms, arrows }
    }

    /// Returns the arrows that do not point to a lower floor.
    fn upward(&self, floors: &[&str]) -> Vec<(&(String, String), &String)> {
        let floor = |room: &str| floors.iter().position(|listed| *listed == room).unwrap_or(floors.len());
        self.arrows.iter().filter(|((from, to), _)| floor(to) >= floor(from)).collect()
    }

    /// Returns the arrows on a circle, and those to the root, which uses all rooms.
    fn in_circles(&self) -> Vec<(&(String, String), &String)> {
        self.arrows.iter().filter(|((from, to), _)| to == ROOT || self.reaches(to, from)).collect()
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let (mut seen, mut waiting) = (BTreeSet::from([from]), vec![from]);
        while let Some(room) = waiting.pop() {
            if room == to {
                return true;
            }
            let next = self.arrows.keys().filter(|(start, _)| start == room).map(|(_, end)| end.as_str());
            waiting.extend(next.filter(|end| seen.insert(end)).collect::<Vec<_>>());
        }
        false
    }
}

/// Returns the module of a file.
fn module(path: &Path) -> Vec<String> {
    let mut module: Vec<String> = path
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// The re-exports of modules: the module and the name, and the path of the definition.
#[derive(Default)]
struct Exports {
    names: BTreeMap<Vec<String>, Vec<String>>,
}

impl Exports {
    fn add(&mut self, module: &[String], Import { path, exported_as }: &Import) {
        let Some(name) = exported_as else { return };
        let known = [module, std::slice::from_ref(name)].concat();
        if known != *path {
            self.names.insert(known, path.clone());
        }
    }

    /// Returns the room in which a path ends.
    fn room_of(&self, path: &[String], rooms: &BTreeSet<String>) -> String {
        let mut path = path.to_vec();
        // Re-exports of re-exports end somewhere; a circle of them would not compile.
        for _ in 0..16 {
            let target = (1..=path.len()).find_map(|length| {
                let defined = self.names.get(&path[..length])?;
                Some([defined.as_slice(), &path[length..]].concat())
            });
            match target {
                Some(next) => path = next,
                None => break,
            }
        }
        path.first().filter(|first| rooms.contains(*first)).cloned().unwrap_or_else(|| ROOT.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(files: &[(&str, &str)]) -> Rooms {
        let entry =
            |(file, text): &(&str, &str)| ((module(Path::new(file)), (*file).to_owned()), (*text).to_owned());
        Rooms::of(&files.iter().map(entry).collect())
    }

    fn shown(arrows: &[(&(String, String), &String)]) -> Vec<String> {
        arrows.iter().map(|((from, to), file)| format!("{from} -> {to} ({file})")).collect()
    }

    #[test]
    fn a_circle_between_rooms_is_found_and_what_only_uses_it_is_not_in_it() {
        let rooms = rooms(&[
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "mod deep;"),
            ("b/deep.rs", "use crate::c::C;"),
            ("c.rs", "fn f() { crate::a::g() }"),
            ("d.rs", "use crate::a::A;"),
        ]);
        assert_eq!(shown(&rooms.in_circles()), ["a -> b (a.rs)", "b -> c (b/deep.rs)", "c -> a (c.rs)"]);
        assert_eq!(shown(&rooms.upward(&["c", "b", "a", "d"])), ["c -> a (c.rs)"]);
    }

    #[test]
    fn re_exports_are_looked_through_and_the_root_is_above_all() {
        let rooms = rooms(&[
            ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use c::inner::Deep as D; pub struct Engine;"),
            ("a.rs", "pub use crate::c::Other;"),
            ("b.rs", "use crate::{A, D, Engine}; use crate::a::Other;"),
            ("c/mod.rs", "pub mod inner;"),
            ("c/inner.rs", "pub struct Deep;"),
        ]);
        let arrows: Vec<String> = rooms.arrows.keys().map(|(from, to)| format!("{from} -> {to}")).collect();
        assert_eq!(arrows, ["a -> c", "b -> a", "b -> c", "b -> the root"]);
        assert_eq!(shown(&rooms.in_circles()), ["b -> the root (b.rs)"]);
    }

    #[test]
    fn modules_of_tests_are_no_rooms() {
        let rooms = rooms(&[
            ("lib.rs", "mod a; #[cfg(test)] mod scripts;"),
            ("a.rs", "struct A;"),
            ("scripts.rs", "use crate::a::A;"),
        ]);
        assert_eq!((rooms.rooms.len(), rooms.arrows.len()), (1, 0));
    }
}
