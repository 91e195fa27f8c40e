//! Floors inside crates: a crate's rooms, which are its top-level modules, form layers, and an arrow (an import) points down only.
//!
//! Where [`FLOORS`] lists a crate's rooms from the lowest to the highest, a room may use those before it. In every other crate rooms
//! must form no circle. Arrows that break this today are listed in `circles.txt`; the list may only shrink.
//!
//! The folders inside a room, at every depth, must form no circle either; a file next to them may use them and be used by them.
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

/// From where to where an import points, and a file that has it.
type Arrow = ((String, String), String);

/// The rooms of a crate or the folders of a folder, and which others each of them uses.
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
        let modules = Modules::read(&source)?;
        let rooms = modules.rooms();
        let mut wrong = match FLOORS.iter().find(|(listed, _)| *listed == name) {
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
        wrong.extend(modules.nested().iter().flat_map(Rooms::in_circles));
        present.extend(wrong.into_iter().map(|((from, to), file)| (format!("{name}: {from} -> {to}"), file)));
    }
    for (arrow, file) in present.iter().filter(|(arrow, _)| !allowed.contains(arrow.as_str())) {
        offences.push(format!("{file}: a new arrow that points up or closes a circle: {arrow}"));
    }
    for arrow in allowed.iter().filter(|arrow| !present.contains_key(**arrow)) {
        offences.push(format!("{CIRCLES}: is over, and leaves the list: {arrow}"));
    }
    Ok(())
}

/// The modules of a crate outside of tests, and the definitions that each of them imports.
struct Modules {
    /// The module and the name of each file, with the paths of what it imports, re-exports looked through.
    files: Vec<(Vec<String>, String, BTreeSet<Vec<String>>)>,
}

impl Modules {
    fn read(source: &Path) -> Result<Modules> {
        let mut sources = BTreeMap::new();
        for path in paths::files(source, &["rs"]) {
            let module = module(path.strip_prefix(source)?);
            sources.insert((module, paths::shown(&path)), fs::read_to_string(&path)?);
        }
        Ok(Modules::of(&sources))
    }

    /// Returns the modules of a crate by the modules and names of its files, with their texts.
    fn of(sources: &BTreeMap<(Vec<String>, String), String>) -> Modules {
        let scanned: Vec<(&Vec<String>, &String, Imports)> =
            sources.iter().map(|((module, file), text)| (module, file, scan(text, module))).collect();
        let tests: BTreeSet<Vec<String>> = scanned
            .iter()
            .flat_map(|(module, _, found)| {
                found.test_modules.iter().map(|name| [module.as_slice(), std::slice::from_ref(name)].concat())
            })
            .collect();
        let is_test = |module: &[String]| (1..=module.len()).any(|length| tests.contains(&module[..length]));
        let product: Vec<_> = scanned.into_iter().filter(|(module, ..)| !is_test(module)).collect();
        let mut exports = Exports::default();
        for (module, _, found) in &product {
            for import in &found.imports {
                exports.add(module, import);
            }
        }
        let resolved = |(module, file, found): (&Vec<String>, &String, Imports)| {
            let imports = found.imports.iter().map(|import| exports.definition(&import.path)).collect();
            (module.clone(), file.clone(), imports)
        };
        Modules { files: product.into_iter().map(resolved).collect() }
    }

    /// Returns the crate's rooms.
    fn rooms(&self) -> Rooms {
        let rooms: BTreeSet<String> =
            self.files.iter().filter_map(|(module, ..)| module.first().cloned()).collect();
        let mut arrows = BTreeMap::new();
        for (module, file, imports) in &self.files {
            let Some(from) = module.first() else { continue };
            for path in imports {
                let to = path.first().filter(|first| rooms.contains(*first)).map_or(ROOT, String::as_str);
                if to != from {
                    arrows.entry((from.clone(), to.to_owned())).or_insert_with(|| file.clone());
                }
            }
        }
        Rooms { rooms, arrows }
    }

    /// Returns, for each folder that has folders, those and their arrows. Files are left out.
    fn nested(&self) -> Vec<Rooms> {
        let folders: BTreeSet<&[String]> =
            self.files.iter().flat_map(|(module, ..)| (1..module.len()).map(|end| &module[..end])).collect();
        let parents: BTreeSet<&[String]> = folders
            .iter()
            .filter(|folder| folder.len() > 1)
            .map(|folder| &folder[..folder.len() - 1])
            .collect();
        parents.into_iter().map(|parent| self.below(parent, &folders)).collect()
    }

    /// Returns the folders directly below a folder, and their arrows.
    fn below(&self, parent: &[String], folders: &BTreeSet<&[String]>) -> Rooms {
        let folder_of = |path: &[String]| {
            let folder = path.get(..=parent.len())?;
            (folder.starts_with(parent) && folders.contains(folder)).then(|| folder.join("/"))
        };
        let rooms = folders.iter().filter_map(|folder| folder_of(folder)).collect();
        let mut arrows = BTreeMap::new();
        for (module, file, imports) in &self.files {
            let Some(from) = folder_of(module) else { continue };
            for to in imports.iter().filter_map(|path| folder_of(path)).filter(|to| *to != from) {
                arrows.entry((from.clone(), to)).or_insert_with(|| file.clone());
            }
        }
        Rooms { rooms, arrows }
    }
}

impl Rooms {
    /// Returns the arrows that do not point to a lower floor.
    fn upward(&self, floors: &[&str]) -> Vec<Arrow> {
        let floor = |room: &str| floors.iter().position(|listed| *listed == room).unwrap_or(floors.len());
        self.arrows_that(|from, to| floor(to) >= floor(from))
    }

    /// Returns the arrows on a circle, and those to the root, which uses all rooms.
    fn in_circles(&self) -> Vec<Arrow> {
        self.arrows_that(|from, to| to == ROOT || self.reaches(to, from))
    }

    fn arrows_that(&self, is_wanted: impl Fn(&str, &str) -> bool) -> Vec<Arrow> {
        let wanted = self.arrows.iter().filter(|((from, to), _)| is_wanted(from, to));
        wanted.map(|(arrow, file)| (arrow.clone(), file.clone())).collect()
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

    /// Returns the path at which a name is defined.
    fn definition(&self, path: &[String]) -> Vec<String> {
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
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let entry =
            |(file, text): &(&str, &str)| ((module(Path::new(file)), (*file).to_owned()), (*text).to_owned());
        Modules::of(&files.iter().map(entry).collect())
    }

    fn rooms(files: &[(&str, &str)]) -> Rooms {
        modules(files).rooms()
    }

    fn shown(arrows: &[Arrow]) -> Vec<String> {
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
    fn a_circle_between_nested_folders_is_found_through_re_exports() {
        let modules = modules(&[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; mod c; mod d; mod file; pub use self::c::deep::Deep;"),
            ("a/file.rs", "use crate::a::b::one::One; use crate::a::c::Other;"),
            ("a/b/mod.rs", "mod one; mod inner;"),
            ("a/b/one.rs", "use crate::a::Deep; use crate::a::file::F;"),
            ("a/b/inner/mod.rs", "mod x; mod left; mod right;"),
            ("a/b/inner/left/x.rs", "use super::super::right::y::Y;"),
            ("a/b/inner/right/y.rs", "use crate::a::b::inner::left::x::X;"),
            ("a/c/mod.rs", "mod deep;"),
            ("a/c/deep.rs", "use super::super::b::one::One;"),
            ("a/d/mod.rs", "mod user; use super::b::one::One;"),
            ("a/d/user.rs", "use crate::a::c::deep::Deep;"),
        ]);
        let circles: Vec<Arrow> = modules.nested().iter().flat_map(Rooms::in_circles).collect();
        assert_eq!(
            shown(&circles),
            [
                "a/b -> a/c (a/b/one.rs)",
                "a/c -> a/b (a/c/deep.rs)",
                "a/b/inner/left -> a/b/inner/right (a/b/inner/left/x.rs)",
                "a/b/inner/right -> a/b/inner/left (a/b/inner/right/y.rs)",
            ]
        );
        assert_eq!(modules.rooms().in_circles(), []);
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
