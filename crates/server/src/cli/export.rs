//! `bolide export`: writes items that have not expired to files.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use super::transfer_arguments::{Files, files, form, is_named, is_of_api, only_name};
use crate::client::{Client, Endpoint};
use crate::namespace::{self, Api, Namespace, NamespaceArguments};
use crate::settings::Settings;
use crate::transfer::{ExistingFile, Export, Form, Kind, Layout};

/// Arguments of the command.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is on or off")]
pub(crate) struct Request {
    /// Databases, and containers or collections as DATABASE/NAME. Default: all of them
    #[arg(value_name = "DATABASE[/NAME]")]
    names: Vec<String>,
    /// Write DIR/DATABASE/NAME.jsonl and so on, each with its definition beside it
    #[arg(long, value_name = "DIR", required_unless_present = "file")]
    dir: Option<PathBuf>,
    /// Write the items of one container to this file; '-' is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    file: Option<PathBuf>,
    /// jsonl: one item per line; json: an array; bson: as mongodump, collections only
    #[arg(long, value_name = "FORMAT", value_parser = ["jsonl", "json", "bson"])]
    format: Option<String>,
    /// Export only containers (nosql), or only collections (mongodb)
    #[arg(long, value_parser = ["nosql", "mongodb"])]
    api: Option<String>,
    /// Compress the files
    #[arg(long)]
    gzip: bool,
    /// Keep the system properties: _rid, _self, _etag, _attachments, _ts
    #[arg(long)]
    system: bool,
    /// Resume an interrupted export
    #[arg(long)]
    resume: bool,
    /// Overwrite existing files
    #[arg(long, conflicts_with = "resume")]
    overwrite: bool,
}

/// Runs the export.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    let mut client = Client::new(&Endpoint::from_settings(settings)?)?;
    let (form, gzip) = form(request.format.as_deref(), request.file.as_deref());
    let export = Export {
        form,
        gzip: request.gzip || gzip,
        system: request.system,
        begun: match (request.resume, request.overwrite) {
            (true, _) => ExistingFile::Resume,
            (_, true) => ExistingFile::Overwrite,
            (false, false) => ExistingFile::Keep,
        },
    };
    match files(request.file.as_ref(), request.dir.as_ref())? {
        Files::One(file) => {
            let name = only_name(&request.names)?.to_owned();
            let namespace = NamespaceArguments { name, api: request.api.clone() }.find(&mut client)?;
            let is_standard = file.as_os_str() == "-";
            export.items(&mut client, &namespace, (!is_standard).then_some(file))?;
        }
        Files::Directory(layout) => into_directory(request, export, &mut client, &layout)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn into_directory(request: &Request, export: Export, client: &mut Client, layout: &Layout) -> Result<()> {
    let places = chosen(request, export.form, client)?;
    for namespace in &places {
        let items = layout.items(namespace, export.form, export.gzip);
        // Files that an interrupted export has completed stay.
        let is_done = request.resume && items.exists() && !Export::is_interrupted(&items);
        if is_done {
            continue;
        }
        if Export::definition(client, namespace, &layout.definition(namespace))? == Kind::HasItems {
            export.items(client, namespace, Some(&items))?;
        }
    }
    eprintln!(
        "{} in '{}'",
        crate::format::counted(places.len() as u64, "container"),
        layout.directory.display()
    );
    Ok(())
}

/// Resolves the names on this server.
fn chosen(request: &Request, form: Form, client: &mut Client) -> Result<Vec<Namespace>> {
    let all = namespace::all(client)?;
    let is_meant = |namespace: &&Namespace| {
        let of_api = is_of_api(namespace, request.api.as_deref());
        let is_system = namespace.api == Api::MongoDb && namespace.name.starts_with("system.");
        let has_form = form != Form::Bson || namespace.api == Api::MongoDb;
        of_api && !is_system && has_form
    };
    let all: Vec<&Namespace> = all.iter().filter(is_meant).collect();
    let mut chosen: Vec<Namespace> = Vec::new();
    for name in &request.names {
        let before = chosen.len();
        let named = all.iter().filter(|namespace| is_named(namespace, name));
        chosen.extend(named.map(|namespace| (**namespace).clone()));
        if chosen.len() == before {
            bail!("the server has nothing named '{name}' that can be exported in this format");
        }
    }
    if request.names.is_empty() {
        chosen = all.into_iter().cloned().collect();
    }
    for (at, namespace) in chosen.iter().enumerate() {
        if chosen[..at].iter().any(|other| other.to_string() == namespace.to_string()) {
            bail!("'{namespace}' is named twice, or exists in both APIs: export them separately with --api");
        }
    }
    Ok(chosen)
}
