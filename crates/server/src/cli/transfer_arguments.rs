//! What the arguments of `bolide export` and `bolide import` have in common.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::namespace::Namespace;
use crate::transfer::{Form, Layout};

/// The files of a transfer.
pub(super) enum Files<'a> {
    /// One container's; `-` is standard input or output.
    One(&'a Path),
    /// A directory of databases and containers.
    Directory(Layout),
}

/// Returns the files that `--file` and `--dir` name.
pub(super) fn files<'a>(file: Option<&'a PathBuf>, directory: Option<&PathBuf>) -> Result<Files<'a>> {
    match (file, directory) {
        (Some(file), _) => Ok(Files::One(file)),
        (None, Some(directory)) => Ok(Files::Directory(Layout { directory: directory.clone() })),
        (None, None) => bail!("name a directory with --dir, or a file with --file"),
    }
}

/// Returns the only name, which `--file` requires.
pub(super) fn only_name(names: &[String]) -> Result<&str> {
    match names {
        [name] => Ok(name),
        _ => bail!("--file requires one container, as DATABASE/NAME"),
    }
}

/// Returns the form and whether it is compressed: of `--format`, or by the file's extension, or JSON lines.
pub(super) fn form(format: Option<&str>, file: Option<&Path>) -> (Form, bool) {
    let (guessed, gzip) = file.map_or((None, false), Form::of);
    (format.map(Form::named).or(guessed).unwrap_or(Form::Lines), gzip)
}

/// Returns whether a namespace is of the API that `--api` names, if it names one.
pub(super) fn is_of_api(namespace: &Namespace, api: Option<&str>) -> bool {
    api.is_none_or(|api| api == namespace.api.word())
}

/// Returns whether `DATABASE` or `DATABASE/NAME` names a namespace.
pub(super) fn is_named(namespace: &Namespace, name: &str) -> bool {
    let (database, container) = name.split_once('/').map_or((name, None), |(a, b)| (a, Some(b)));
    namespace.database == database && container.is_none_or(|it| it == namespace.name)
}
