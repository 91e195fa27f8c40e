//! Which files there are, and what is in them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::place::{Api, Place};

/// How items stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One a line.
    Lines,
    /// In a JSON array.
    Array,
    /// As BSON documents.
    Bson,
}

impl Form {
    /// The form of that name.
    pub(crate) fn named(word: &str) -> Form {
        match word {
            "json" => Form::Array,
            "bson" => Form::Bson,
            _ => Form::Lines,
        }
    }

    /// How names of such files end.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Form::Lines => "jsonl",
            Form::Array => "json",
            Form::Bson => "bson",
        }
    }

    /// The form that a file's name tells, and whether it is compressed.
    pub(crate) fn of(file: &Path) -> (Option<Form>, bool) {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (name, gzip) = name.strip_suffix(".gz").map_or((name.as_str(), false), |name| (name, true));
        let form = match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("jsonl" | "ndjson") => Some(Form::Lines),
            Some("json") => Some(Form::Array),
            Some("bson") => Some(Form::Bson),
            _ => None,
        };
        (form, gzip)
    }
}

/// What a container's definition is kept under,
const CONTAINER: &str = "container.json";
/// and what a collection's is.
const METADATA: &str = "metadata.json";

/// The files of a directory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) directory: PathBuf,
}

/// A container or collection that a directory has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) place: Place,
    /// Its items; none if there is only its definition, as of a view.
    pub(crate) items: Option<PathBuf>,
    /// Its definition, if there is one.
    pub(crate) definition: Option<PathBuf>,
}

impl Layout {
    /// The file of a place's items.
    pub(crate) fn items(&self, place: &Place, form: Form, gzip: bool) -> PathBuf {
        let name = format!("{}.{}{}", escaped(&place.name), form.extension(), if gzip { ".gz" } else { "" });
        self.directory.join(escaped(&place.database)).join(name)
    }

    /// The file of a place's definition.
    pub(crate) fn definition(&self, place: &Place) -> PathBuf {
        let ending = if place.api == Api::NoSql { CONTAINER } else { METADATA };
        self.directory.join(escaped(&place.database)).join(format!("{}.{ending}", escaped(&place.name)))
    }

    /// Everything that the directory has, in the order of names.
    pub(crate) fn kept(&self) -> Result<Vec<Kept>> {
        let mut all = Vec::new();
        for database in entries(&self.directory)?.into_iter().filter(|path| path.is_dir()) {
            let name = unescaped(&file_name(&database));
            all.extend(of_database(&name, &entries(&database)?)?);
        }
        Ok(all)
    }
}

/// What the files of one database make.
fn of_database(database: &str, files: &[PathBuf]) -> Result<Vec<Kept>> {
    let mut all: Vec<Kept> = Vec::new();
    let mut add = |api: Api, stem: &str, items: Option<PathBuf>, definition: Option<PathBuf>| -> Result<()> {
        let place = Place { api, database: database.to_owned(), name: unescaped(stem) };
        let at = all.iter().position(|kept| kept.place == place).unwrap_or_else(|| {
            all.push(Kept { place, items: None, definition: None });
            all.len() - 1
        });
        let known = &mut all[at];
        if let (Some(one), Some(two)) = (&known.items, &items) {
            bail!("'{}' and '{}' are the same container: keep one of them", one.display(), two.display());
        }
        known.items = known.items.take().or(items);
        known.definition = known.definition.take().or(definition);
        Ok(())
    };
    for file in files {
        let name = file_name(file);
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        if let Some(stem) = plain.strip_suffix(&format!(".{CONTAINER}")) {
            add(Api::NoSql, stem, None, Some(file.clone()))?;
        } else if let Some(stem) = plain.strip_suffix(&format!(".{METADATA}")) {
            add(Api::MongoDb, stem, None, Some(file.clone()))?;
        } else if let (Some(form), _) = Form::of(file) {
            let stem = plain.strip_suffix(&format!(".{}", form.extension())).unwrap_or(plain);
            let has_metadata = files.iter().any(|other| {
                let other = file_name(other);
                other.strip_suffix(".gz").unwrap_or(&other) == format!("{stem}.{METADATA}")
            });
            let api = if form == Form::Bson || has_metadata { Api::MongoDb } else { Api::NoSql };
            add(api, stem, Some(file.clone()), None)?;
        }
    }
    Ok(all)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
    };
    let mut all = read().with_context(|| format!("cannot read the directory '{}'", directory.display()))?;
    all.sort();
    Ok(all)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A name as that of a file: what no file's name can have, or what would make it another file's, is percent-encoded, as
/// mongodump does it.
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for (at, character) in name.char_indices() {
        let is_first_dot = at == 0 && character == '.';
        if matches!(character, '/' | '\\' | '%') || character.is_control() || is_first_dot {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                let _ = write!(text, "%{byte:02X}");
            }
        } else {
            text.push(character);
        }
    }
    text
}

fn unescaped(name: &str) -> String {
    percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(api: Api, database: &str, name: &str) -> Place {
        Place { api, database: database.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn a_directory_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout { directory: directory.path().to_owned() };
        let nosql = place(Api::NoSql, "shop", "orders");
        let odd = place(Api::MongoDb, "..", "a/b%c.d\n");
        let view = place(Api::MongoDb, "shop", "view");
        let plain = place(Api::MongoDb, "shop", "users");
        let write = |path: PathBuf| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        write(layout.items(&nosql, Form::Array, false));
        write(layout.definition(&nosql));
        write(layout.items(&odd, Form::Bson, true));
        write(layout.definition(&view));
        write(layout.items(&plain, Form::Lines, false));
        write(layout.definition(&plain));
        write(directory.path().join("shop/notes.txt"));
        let kept = layout.kept().unwrap();
        let shown: Vec<_> =
            kept.iter().map(|kept| (&kept.place, kept.items.is_some(), kept.definition.is_some())).collect();
        assert_eq!(
            shown,
            [(&odd, true, false), (&nosql, true, true), (&plain, true, true), (&view, false, true)]
        );
        assert_eq!(Form::of(kept[0].items.as_deref().unwrap()), (Some(Form::Bson), true));
        write(layout.items(&nosql, Form::Lines, false));
        assert!(layout.kept().unwrap_err().to_string().contains("keep one of them"));
    }
}
