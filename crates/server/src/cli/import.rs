//! `bolide import`: items out of files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::client::{Client, Endpoint};
use crate::figures;
use crate::place::{self, Api, Place, split};
use crate::settings::Settings;
use crate::transfer::{Form, Import, Imported, Kept, Layout, Mode, make, make_with_key};

/// What is imported, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// With --dir: the databases or containers of the directory that are meant, all without any. With --file: the container.
    #[arg(value_name = "DATABASE[/NAME]")]
    names: Vec<String>,
    /// Read DIR/DATABASE/NAME.jsonl and so on, as `bolide export` and mongodump write them.
    #[arg(long, value_name = "DIR", required_unless_present = "file")]
    dir: Option<PathBuf>,
    /// Read this file; '-' is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    file: Option<PathBuf>,
    /// jsonl: an item a line; json: an array; bson: as mongodump writes. Without it, the file's name tells.
    #[arg(long, value_name = "FORMAT", value_parser = ["jsonl", "json", "bson"])]
    format: Option<String>,
    /// Of which API the container of a lone file is; of a .bson file it is mongodb.
    #[arg(long, value_parser = ["nosql", "mongodb"])]
    api: Option<String>,
    /// Make the container of a lone file, unless it is there, with this partition key: /path, or several with commas.
    #[arg(long, value_name = "PATH")]
    partition_key: Option<String>,
    /// What becomes of an item whose id is there: upsert replaces it, insert refuses the new one.
    #[arg(long, value_name = "MODE", value_parser = ["upsert", "insert"], default_value = "upsert")]
    mode: String,
    /// Tell of items that are refused, and go on.
    #[arg(long)]
    continue_on_error: bool,
    /// Go on with an import that was interrupted.
    #[arg(long)]
    resume: bool,
}

/// Imports. Ends with 1 if items were refused and passed over.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    if request.resume && request.mode == "insert" {
        bail!(
            "--resume wants --mode upsert: the last page may be written twice, and an insert would refuse it"
        );
    }
    let mut client = Client::new(&Endpoint::from_settings(settings)?)?;
    let sum = match (&request.file, &request.dir) {
        (Some(file), _) => lone_file(request, &mut client, file)?,
        (None, Some(dir)) => directory(request, &mut client, &Layout { directory: dir.clone() })?,
        (None, None) => bail!("name a directory with --dir, or a file with --file"),
    };
    if sum.failed > 0 {
        eprintln!("{} written, {} refused", figures::counted(sum.items, "item"), figures::count(sum.failed));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn how(request: &Request, file: &Path) -> Import {
    let (guessed, gzip) = Form::of(file);
    let form = request.format.as_deref().map(Form::named).or(guessed).unwrap_or(Form::Lines);
    let mode = if request.mode == "insert" { Mode::Insert } else { Mode::Upsert };
    Import { form, gzip, mode, continue_on_error: request.continue_on_error, resume: request.resume }
}

fn lone_file(request: &Request, client: &mut Client, file: &Path) -> Result<Imported> {
    let [name] = request.names.as_slice() else { bail!("--file wants one container, as DATABASE/NAME") };
    let import = how(request, file);
    let (database, name) = split(name)?;
    let api = match request.api.as_deref() {
        Some(word) => Api::named(word),
        None if import.form == Form::Bson => Api::MongoDb,
        None => Api::NoSql,
    };
    let place = Place { api, database: database.to_owned(), name: name.to_owned() };
    match (&request.partition_key, api) {
        (Some(paths), Api::NoSql) => make_with_key(client, &place, paths)?,
        (Some(_), Api::MongoDb) => bail!("a collection has no partition key"),
        (None, Api::NoSql) if !place::all(client)?.contains(&place) => {
            bail!("the server has no container '{place}': --partition-key /path makes it")
        }
        (None, _) => {}
    }
    import.items(client, &place, file)
}

fn directory(request: &Request, client: &mut Client, layout: &Layout) -> Result<Imported> {
    if request.partition_key.is_some() {
        bail!("--partition-key is for a lone file: in a directory NAME.container.json tells it");
    }
    let kept = layout.kept()?;
    let is_meant = |kept: &&Kept| {
        let of_api = request.api.as_deref().is_none_or(|api| api == kept.place.api.word());
        let named = request.names.iter().any(|name| {
            let (database, container) =
                name.split_once('/').map_or((name.as_str(), None), |(a, b)| (a, Some(b)));
            kept.place.database == database && container.is_none_or(|it| it == kept.place.name)
        });
        of_api && (named || request.names.is_empty())
    };
    let meant: Vec<&Kept> = kept.iter().filter(is_meant).collect();
    if meant.is_empty() {
        bail!("'{}' has no export of that", layout.directory.display());
    }
    let mut sum = Imported::default();
    // Views last: what they look at must be there.
    let (with_items, views): (Vec<&Kept>, Vec<&Kept>) =
        meant.into_iter().partition(|kept| kept.items.is_some());
    for kept in with_items.into_iter().chain(views) {
        let Kept { place, items, definition } = kept;
        if place.api == Api::MongoDb && place.name.starts_with("system.") {
            eprintln!("{place}: passed over, it belongs to the system");
            continue;
        }
        match definition {
            Some(definition) => make(client, place, definition)?,
            None if place.api == Api::NoSql && !place::all(client)?.contains(place) => bail!(
                "the server has no container '{place}', and '{}' does not say how to make it",
                layout.definition(place).display()
            ),
            None => {}
        }
        if let Some(items) = items {
            let done = how(request, items).items(client, place, items)?;
            (sum.items, sum.failed) = (sum.items + done.items, sum.failed + done.failed);
        }
    }
    Ok(sum)
}
