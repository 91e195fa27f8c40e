//! Checks whether a directory may be a store's: that of an existing store, or an empty one for a new store.
//!
//! A mistyped path may be a user's home directory. A new store is made only in a directory without other files, except
//! those that file systems put into their roots, names that begin with a dot, and what the server keeps beside its
//! store. The check runs before anything is written.

use super::database::Database;
use super::marker;
use crate::{Error, Result};
use std::path::Path;
use std::{fs, io};

/// Files that the server keeps beside the store, and may have made before it.
const ALLOWED_NAMES: [&str; 2] = ["keys.json", "tls"];

/// The prefix of the store's own file names.
const OWN: &str = "bolide.";

/// Refuses a path that is not a directory, and a directory without a store that holds other files.
pub(super) fn check(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => {
            return Err(Error::NotADirectory { path: path.display().to_string() });
        }
        Ok(_) if path.join(marker::FILE).exists() || Database::exists(path) => return Ok(()),
        Ok(_) => {}
        // Creating it follows, and reports what is wrong.
        Err(_) => return Ok(()),
    }
    let names = || {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(path)?.map(name).collect::<io::Result<Vec<String>>>()
    };
    let names = names().map_err(|error| Error::io("list the data directory", &error))?;
    match names.into_iter().filter(|name| !is_allowed(name)).min() {
        None => Ok(()),
        Some(found) => Err(Error::NotOurs { path: path.display().to_string(), found }),
    }
}

fn is_allowed(name: &str) -> bool {
    name == "lost+found" || name.starts_with('.') || name.starts_with(OWN) || ALLOWED_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::Error;

    #[test]
    fn a_new_store_is_made_only_where_nothing_else_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(check(&path.join("new")), Ok(()));
        assert_eq!(check(path), Ok(()));
        for name in [".snapshot", ".cache", "keys.json", "bolide.lock"] {
            std::fs::write(path.join(name), "").unwrap();
        }
        for name in ["lost+found", "tls"] {
            std::fs::create_dir(path.join(name)).unwrap();
        }
        assert_eq!(check(path), Ok(()));
        std::fs::write(path.join("thesis.tex"), "").unwrap();
        std::fs::create_dir(path.join("photos")).unwrap();
        let shown = path.display().to_string();
        let found = "photos".to_owned();
        assert_eq!(check(path), Err(Error::NotOurs { path: shown.clone(), found }));
        let file = path.join("thesis.tex");
        assert_eq!(check(&file), Err(Error::NotADirectory { path: file.display().to_string() }));
        // An existing store is opened whatever lies beside it.
        std::fs::write(path.join("bolide.store"), "").unwrap();
        assert_eq!(check(path), Ok(()));
    }
}
