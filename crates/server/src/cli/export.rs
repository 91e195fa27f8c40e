//! `bolide export`: living items into files.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::client::{Client, Endpoint};
use crate::place::{self, Api, Named, Place};
use crate::settings::Settings;
use crate::transfer::{Begun, Export, Form, Kind, Layout};

/// What is exported, and how.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is on or off")]
pub(crate) struct Request {
    /// Databases, and containers or collections as DATABASE/NAME; without any, all there are.
    #[arg(value_name = "DATABASE[/NAME]")]
    names: Vec<String>,
    /// Write DIR/DATABASE/NAME.jsonl and so on, each with its definition beside it.
    #[arg(long, value_name = "DIR", required_unless_present = "file")]
    dir: Option<PathBuf>,
    /// Write the items of one container into this file; '-' is standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    file: Option<PathBuf>,
    /// jsonl: an item a line; json: an array; bson: as mongodump, collections only.
    #[arg(long, value_name = "FORMAT", value_parser = ["jsonl", "json", "bson"])]
    format: Option<String>,
    /// Only containers (nosql), or only collections (mongodb).
    #[arg(long, value_parser = ["nosql", "mongodb"])]
    api: Option<String>,
    /// Compress the files.
    #[arg(long)]
    gzip: bool,
    /// Keep the properties that the system owns: _rid, _self, _etag, _attachments, _ts.
    #[arg(long)]
    system: bool,
    /// Go on with an export that was interrupted.
    #[arg(long)]
    resume: bool,
    /// Lose files that are there.
    #[arg(long, conflicts_with = "resume")]
    overwrite: bool,
}

/// Exports.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    let mut client = Client::new(&Endpoint::from_settings(settings)?)?;
    let guessed = request.file.as_deref().map(Form::of);
    let form = request.format.as_deref().map(Form::named).or(guessed.and_then(|(form, _)| form));
    let export = Export {
        form: form.unwrap_or(Form::Lines),
        gzip: request.gzip || guessed.is_some_and(|(_, gzip)| gzip),
        system: request.system,
        begun: match (request.resume, request.overwrite) {
            (true, _) => Begun::GoesOn,
            (_, true) => Begun::Lost,
            (false, false) => Begun::Stays,
        },
    };
    match (&request.file, &request.dir) {
        (Some(file), _) => {
            let [name] = request.names.as_slice() else {
                bail!("--file wants one container, as DATABASE/NAME")
            };
            let place = Named { name: name.clone(), api: request.api.clone() }.find(&mut client)?;
            let is_standard = file.as_os_str() == "-";
            export.items(&mut client, &place, (!is_standard).then_some(file.as_path()))?;
        }
        (None, Some(dir)) => {
            into_directory(request, export, &mut client, &Layout { directory: dir.clone() })?;
        }
        (None, None) => bail!("name a directory with --dir, or a file with --file"),
    }
    Ok(ExitCode::SUCCESS)
}

fn into_directory(request: &Request, export: Export, client: &mut Client, layout: &Layout) -> Result<()> {
    let places = chosen(request, export.form, client)?;
    for place in &places {
        let items = layout.items(place, export.form, export.gzip);
        // What an interrupted export has brought home already stays.
        let is_done = request.resume && items.exists() && !Export::is_interrupted(&items);
        if is_done {
            continue;
        }
        if Export::definition(client, place, &layout.definition(place))? == Kind::HasItems {
            export.items(client, place, Some(&items))?;
        }
    }
    eprintln!(
        "{} in '{}'",
        crate::figures::counted(places.len() as u64, "container"),
        layout.directory.display()
    );
    Ok(())
}

/// What the names mean on this server.
fn chosen(request: &Request, form: Form, client: &mut Client) -> Result<Vec<Place>> {
    let all = place::all(client)?;
    let is_meant = |place: &&Place| {
        let of_api = request.api.as_deref().is_none_or(|api| api == place.api.word());
        let is_system = place.api == Api::MongoDb && place.name.starts_with("system.");
        let has_form = form != Form::Bson || place.api == Api::MongoDb;
        of_api && !is_system && has_form
    };
    let all: Vec<&Place> = all.iter().filter(is_meant).collect();
    let mut chosen: Vec<Place> = Vec::new();
    for name in &request.names {
        let (database, container) = name.split_once('/').map_or((name.as_str(), None), |(a, b)| (a, Some(b)));
        let before = chosen.len();
        let fits =
            |place: &&&Place| place.database == database && container.is_none_or(|it| it == place.name);
        chosen.extend(all.iter().filter(fits).map(|place| (**place).clone()));
        if chosen.len() == before {
            bail!("the server has nothing named '{name}' that could be exported so");
        }
    }
    if request.names.is_empty() {
        chosen = all.into_iter().cloned().collect();
    }
    for (at, place) in chosen.iter().enumerate() {
        if chosen[..at].iter().any(|other| other.to_string() == place.to_string()) {
            bail!("'{place}' is meant twice, or both APIs have one: export them apart with --api");
        }
    }
    Ok(chosen)
}
