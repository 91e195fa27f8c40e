//! The files of an export, and their formats.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::namespace::{Api, Namespace};

/// The format of items in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One per line.
    Lines,
    /// In a JSON array.
    Array,
    /// BSON documents.
    Bson,
}

impl Form {
    /// Returns the format with this name.
    pub(crate) fn named(word: &str) -> Form {
        match word {
            "json" => Form::Array,
            "bson" => Form::Bson,
            _ => Form::Lines,
        }
    }

    /// Returns the file extension.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Form::Lines => "jsonl",
            Form::Array => "json",
            Form::Bson => "bson",
        }
    }

    /// Returns the format by a file's extension, and whether it is compressed.
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

/// The suffix of a container's definition.
const CONTAINER: &str = "container.json";
/// The suffix of a collection's definition.
const METADATA: &str = "metadata.json";

/// The file layout of a directory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) directory: PathBuf,
}

/// A container or collection in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredNamespace {
    pub(crate) namespace: Namespace,
    /// Its items; `None` if there is only a definition, as of a view.
    pub(crate) items: Option<PathBuf>,
    /// Its definition, if there is one.
    pub(crate) definition: Option<PathBuf>,
}

impl Layout {
    /// Returns the file for the items of a namespace.
    pub(crate) fn items(&self, namespace: &Namespace, form: Form, gzip: bool) -> PathBuf {
        let name =
            format!("{}.{}{}", escaped(&namespace.name), form.extension(), if gzip { ".gz" } else { "" });
        self.directory.join(escaped(&namespace.database)).join(name)
    }

    /// Returns the file for the definition of a namespace.
    pub(crate) fn definition(&self, namespace: &Namespace) -> PathBuf {
        let ending = if namespace.api == Api::NoSql { CONTAINER } else { METADATA };
        self.directory
            .join(escaped(&namespace.database))
            .join(format!("{}.{ending}", escaped(&namespace.name)))
    }

    /// Lists everything in the directory, in the order of names.
    pub(crate) fn namespaces(&self) -> Result<Vec<StoredNamespace>> {
        let mut all = Vec::new();
        for database in entries(&self.directory)?.into_iter().filter(|path| path.is_dir()) {
            let name = unescaped(&file_name(&database));
            all.extend(of_database(&name, &entries(&database)?)?);
        }
        Ok(all)
    }
}

/// Lists the namespaces in the files of one database.
fn of_database(database: &str, files: &[PathBuf]) -> Result<Vec<StoredNamespace>> {
    let mut all: Vec<StoredNamespace> = Vec::new();
    let mut add = |api: Api, stem: &str, items: Option<PathBuf>, definition: Option<PathBuf>| -> Result<()> {
        let namespace = Namespace { api, database: database.to_owned(), name: unescaped(stem) };
        let at = all.iter().position(|kept| kept.namespace == namespace).unwrap_or_else(|| {
            all.push(StoredNamespace { namespace, items: None, definition: None });
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

/// Escapes a name for a file: characters that a file name cannot contain, or that would make it ambiguous, are
/// percent-encoded as by mongodump.
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

    fn namespace(api: Api, database: &str, name: &str) -> Namespace {
        Namespace { api, database: database.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn a_directory_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout { directory: directory.path().to_owned() };
        let nosql = namespace(Api::NoSql, "shop", "orders");
        let odd = namespace(Api::MongoDb, "..", "a/b%c.d\n");
        let view = namespace(Api::MongoDb, "shop", "view");
        let plain = namespace(Api::MongoDb, "shop", "users");
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
        let kept = layout.namespaces().unwrap();
        let shown: Vec<_> = kept
            .iter()
            .map(|kept| (&kept.namespace, kept.items.is_some(), kept.definition.is_some()))
            .collect();
        assert_eq!(
            shown,
            [(&odd, true, false), (&nosql, true, true), (&plain, true, true), (&view, false, true)]
        );
        assert_eq!(Form::of(kept[0].items.as_deref().unwrap()), (Some(Form::Bson), true));
        write(layout.items(&nosql, Form::Lines, false));
        assert!(layout.namespaces().unwrap_err().to_string().contains("keep one of them"));
    }
}
