//! `bolide import`: reads items from files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

use super::transfer_arguments::{Files, files, form, is_named, is_of_api, only_name};
use crate::client::{Client, Endpoint};
use crate::format;
use crate::namespace::{self, Api, Namespace, split};
use crate::settings::Settings;
use crate::transfer::{Form, Import, Imported, Layout, Mode, StoredNamespace, make, make_with_key};

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// With --dir: the databases or containers of the directory to import. Default: all of them. With --file: the
    /// container
    #[arg(value_name = "DATABASE[/NAME]")]
    names: Vec<String>,
    /// Read DIR/DATABASE/NAME.jsonl and so on, as written by `bolide export` and mongodump
    #[arg(long, value_name = "DIR", required_unless_present = "file")]
    dir: Option<PathBuf>,
    /// Read this file; '-' is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    file: Option<PathBuf>,
    /// jsonl: one item per line; json: an array; bson: as written by mongodump. Default: by the file's extension
    #[arg(long, value_name = "FORMAT", value_parser = ["jsonl", "json", "bson"])]
    format: Option<String>,
    /// The API of the container for --file. Default: mongodb for .bson files
    #[arg(long, value_parser = ["nosql", "mongodb"])]
    api: Option<String>,
    /// Create the container for --file, if it does not exist, with this partition key: /path, or several separated by
    /// commas
    #[arg(long, value_name = "PATH")]
    partition_key: Option<String>,
    /// What to do with an item whose id exists: upsert replaces it, insert refuses the new one
    #[arg(long, value_name = "MODE", value_parser = ["upsert", "insert"], default_value = "upsert")]
    mode: String,
    /// Report refused items and continue
    #[arg(long)]
    continue_on_error: bool,
    /// Resume an interrupted import
    #[arg(long)]
    resume: bool,
}

/// Runs the import. Exits with status 1 if items were refused and skipped.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    if request.resume && request.mode == "insert" {
        bail!(
            "--resume requires --mode upsert: the last page may be written twice, which an insert would refuse"
        );
    }
    let mut client = Client::new(&Endpoint::from_settings(settings)?)?;
    let sum = match files(request.file.as_ref(), request.dir.as_ref())? {
        Files::One(file) => lone_file(request, &mut client, file)?,
        Files::Directory(layout) => directory(request, &mut client, &layout)?,
    };
    if sum.failed > 0 {
        eprintln!("{} written, {} refused", format::counted(sum.items, "item"), format::count(sum.failed));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn how(request: &Request, file: &Path) -> Import {
    let (form, gzip) = form(request.format.as_deref(), Some(file));
    let mode = if request.mode == "insert" { Mode::Insert } else { Mode::Upsert };
    Import { form, gzip, mode, continue_on_error: request.continue_on_error, resume: request.resume }
}

fn lone_file(request: &Request, client: &mut Client, file: &Path) -> Result<Imported> {
    let (database, name) = split(only_name(&request.names)?)?;
    let import = how(request, file);
    let api = match request.api.as_deref() {
        Some(word) => Api::named(word),
        None if import.form == Form::Bson => Api::MongoDb,
        None => Api::NoSql,
    };
    let namespace = Namespace { api, database: database.to_owned(), name: name.to_owned() };
    match (&request.partition_key, api) {
        (Some(paths), Api::NoSql) => make_with_key(client, &namespace, paths)?,
        (Some(_), Api::MongoDb) => bail!("a collection has no partition key"),
        (None, Api::NoSql) if !namespace::all(client)?.contains(&namespace) => {
            bail!("the server has no container '{namespace}': create it with --partition-key /path")
        }
        (None, _) => {}
    }
    import.items(client, &namespace, file)
}

fn directory(request: &Request, client: &mut Client, layout: &Layout) -> Result<Imported> {
    if request.partition_key.is_some() {
        bail!("--partition-key requires --file: in a directory NAME.container.json defines it");
    }
    let kept = layout.namespaces()?;
    let is_meant = |kept: &&StoredNamespace| {
        let of_api = is_of_api(&kept.namespace, request.api.as_deref());
        let named = request.names.iter().any(|name| is_named(&kept.namespace, name));
        of_api && (named || request.names.is_empty())
    };
    let meant: Vec<&StoredNamespace> = kept.iter().filter(is_meant).collect();
    if meant.is_empty() {
        bail!("'{}' has no export of that", layout.directory.display());
    }
    let mut sum = Imported::default();
    // Views last: the collections that they read must exist.
    let (with_items, views): (Vec<&StoredNamespace>, Vec<&StoredNamespace>) =
        meant.into_iter().partition(|kept| kept.items.is_some());
    for kept in with_items.into_iter().chain(views) {
        let StoredNamespace { namespace, items, definition } = kept;
        if namespace.api == Api::MongoDb && namespace.name.starts_with("system.") {
            eprintln!("{namespace}: skipped, it is a system collection");
            continue;
        }
        match definition {
            Some(definition) => make(client, namespace, definition)?,
            None if namespace.api == Api::NoSql && !namespace::all(client)?.contains(namespace) => bail!(
                "the server has no container '{namespace}', and '{}' has no definition to create it from",
                layout.definition(namespace).display()
            ),
            None => {}
        }
        if let Some(items) = items {
            let done = how(request, items).items(client, namespace, items)?;
            (sum.items, sum.failed) = (sum.items + done.items, sum.failed + done.failed);
        }
    }
    Ok(sum)
}
