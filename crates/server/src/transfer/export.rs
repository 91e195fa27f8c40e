//! Exports from the server to a file.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use bson::{RawDocument, ValueRef};
use bytes::Bytes;
use document::Value;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::Method;

use super::collections;
use super::files::Form;
use super::meter::{Meter, Unit};
use super::progress::{Direction, Progress, ProgressFile};
use crate::client::{Client, Payload};
use crate::files::{create_private, create_private_directory, make_private, private};
use crate::format;
use crate::namespace::{Api, Namespace};

/// The options of an export.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Export {
    pub(crate) form: Form,
    pub(crate) gzip: bool,
    /// Whether items keep their system properties.
    pub(crate) system: bool,
    pub(crate) begun: ExistingFile,
}

/// What happens to an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExistingFile {
    /// It stays, and nothing is exported.
    Keep,
    /// An interrupted export into it is resumed.
    Resume,
    /// It is overwritten.
    Overwrite,
}

impl Export {
    /// Returns whether the export into a file was interrupted.
    pub(crate) fn is_interrupted(file: &Path) -> bool {
        ProgressFile::new(file, Direction::Export, String::new()).exists()
    }

    /// Writes all items of a namespace that have not expired to a file; to standard output if there is none.
    pub(crate) fn items(
        self,
        client: &mut Client,
        namespace: &Namespace,
        file: Option<&Path>,
    ) -> Result<u64> {
        if self.form == Form::Bson && namespace.api == Api::NoSql {
            bail!(
                "BSON is for collections of the MongoDB API; '{namespace}' is a container: use jsonl or json"
            );
        }
        let entry = client.get_json(&namespace.path("ttl"))?;
        let living = entry.get("living").and_then(|living| living.get("items")).and_then(Value::as_i64);
        let mut meter = Meter::new(&namespace.to_string(), Unit::Items, living.map(i64::unsigned_abs));
        let mut sink = match file {
            Some(file) => Sink::open(self, client.url(), namespace, file)?,
            None => Sink { out: Out::Standard(std::io::stdout()), progress: Progress::default() },
        };
        loop {
            let page = self.page(client, namespace, sink.progress.token.as_deref())?;
            let text = self.text(page.body, namespace.api, &mut sink.progress)?;
            sink.progress.token.clone_from(&page.next);
            sink.put(&self.packed(&text)?, page.next.is_some())?;
            meter.at(sink.progress.items, "");
            if page.next.is_none() {
                break;
            }
        }
        let items = sink.progress.items;
        if self.form == Form::Array {
            let end: &[u8] = if items == 0 { b"[]\n" } else { b"\n]\n" };
            sink.put(&self.packed(end)?, false)?;
        }
        sink.end()?;
        meter.end(&format::counted(items, "item"));
        Ok(items)
    }

    fn page(self, client: &mut Client, namespace: &Namespace, after: Option<&str>) -> Result<Page> {
        let after = after.map(|token| format!("&after={token}")).unwrap_or_default();
        let path = format!("{}&system={}{after}", namespace.path("export"), self.system);
        let answer = client.with_retries(|client| client.call(&Method::GET, &path, Payload::Nothing))?;
        let next = answer.header("x-bolide-export-next").map(str::to_owned);
        Ok(Page { body: answer.body, next })
    }

    /// Converts a page to the format of the file.
    fn text(self, page: Bytes, api: Api, progress: &mut Progress) -> Result<Vec<u8>> {
        let items: Vec<Vec<u8>> = match api {
            Api::NoSql => page
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
                .map(<[u8]>::to_vec)
                .collect(),
            Api::MongoDb => documents(page, self.form)?,
        };
        let mut text = Vec::new();
        for item in items {
            match (self.form, progress.items) {
                (Form::Array, 0) => text.extend_from_slice(b"[\n"),
                (Form::Array, _) => text.extend_from_slice(b",\n"),
                (Form::Lines | Form::Bson, _) => {}
            }
            text.extend_from_slice(&item);
            if self.form == Form::Lines {
                text.push(b'\n');
            }
            progress.items += 1;
        }
        Ok(text)
    }

    /// Compresses bytes if required. Each piece is compressed separately, so that the file can be cut between any two.
    fn packed(self, text: &[u8]) -> Result<Vec<u8>> {
        if !self.gzip || text.is_empty() {
            return Ok(text.to_vec());
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text)?;
        Ok(packed.finish()?)
    }

    /// Writes the definition of a namespace.
    pub(crate) fn definition(client: &mut Client, namespace: &Namespace, file: &Path) -> Result<Kind> {
        let (text, kind) = match namespace.api {
            Api::NoSql => (client.get_json(&namespace.path("container"))?.to_json() + "\n", Kind::HasItems),
            Api::MongoDb => {
                let description = collections::describe(client, namespace)?;
                let kind = description.get("type").and_then(bson::Value::as_str) == Some("view");
                let text = bson::to_extended_json(ValueRef::Document(description.view()), false);
                (text + "\n", if kind { Kind::View } else { Kind::HasItems })
            }
        };
        let parent = file.parent().unwrap_or(Path::new("."));
        create_private_directory(parent)
            .with_context(|| format!("cannot create the directory '{}'", parent.display()))?;
        let write = || create_private(file)?.write_all(text.as_bytes());
        write().with_context(|| format!("cannot write '{}'", file.display()))?;
        Ok(kind)
    }
}

/// Whether a namespace has items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    HasItems,
    View,
}

struct Page {
    body: Bytes,
    next: Option<String>,
}

/// Converts the documents of a page to BSON, or to Extended JSON that preserves every type.
fn documents(mut page: Bytes, form: Form) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    while !page.is_empty() {
        let document =
            RawDocument::split_from(&mut page).context("the server returned data that is not BSON")?;
        all.push(match form {
            Form::Bson => document.as_bytes().to_vec(),
            Form::Lines | Form::Array => {
                bson::to_extended_json(ValueRef::Document(document.view()), false).into_bytes()
            }
        });
    }
    Ok(all)
}

/// The destination of an export.
struct Sink {
    out: Out,
    progress: Progress,
}

enum Out {
    Standard(std::io::Stdout),
    File { file: File, progress_file: ProgressFile, name: String },
}

impl Sink {
    fn open(export: Export, url: &str, namespace: &Namespace, path: &Path) -> Result<Sink> {
        let name = path.display().to_string();
        let system = if export.system { " with system properties" } else { "" };
        let progress_file =
            ProgressFile::new(path, Direction::Export, format!("{namespace} of {url}{system}"));
        let progress = if export.begun == ExistingFile::Resume { progress_file.read()? } else { None };
        match export.begun {
            ExistingFile::Resume if progress.is_none() && path.exists() => {
                bail!("'{name}' is complete: there is nothing to resume; --overwrite starts over")
            }
            ExistingFile::Keep if path.exists() => {
                bail!("'{name}' exists: --resume continues an interrupted export, --overwrite starts over")
            }
            ExistingFile::Keep | ExistingFile::Resume | ExistingFile::Overwrite => {}
        }
        let progress = progress.unwrap_or_default();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        create_private_directory(parent)
            .with_context(|| format!("cannot create the directory '{}'", parent.display()))?;
        // The progress file comes first: a file without one is complete.
        progress_file.write(&progress)?;
        let open = || -> std::io::Result<File> {
            let mut file = private().write(true).create(true).truncate(false).open(path)?;
            make_private(&file)?;
            file.set_len(progress.bytes)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().with_context(|| format!("cannot write '{name}'"))?;
        if file.metadata().is_ok_and(|known| known.len() != progress.bytes) {
            bail!("'{name}' is shorter than its progress file says: start over with --overwrite");
        }
        Ok(Sink { out: Out::File { file, progress_file, name }, progress })
    }

    /// Writes a piece, and records the progress if the export may be resumed after it.
    fn put(&mut self, bytes: &[u8], more: bool) -> Result<()> {
        match &mut self.out {
            Out::Standard(out) => out.write_all(bytes).context("cannot write to standard output"),
            Out::File { file, progress_file, name } => {
                file.write_all(bytes).with_context(|| format!("cannot write '{name}'"))?;
                self.progress.bytes += bytes.len() as u64;
                if more {
                    file.sync_data().with_context(|| format!("cannot write '{name}'"))?;
                    progress_file.write(&self.progress)?;
                }
                Ok(())
            }
        }
    }

    fn end(self) -> Result<()> {
        match self.out {
            Out::Standard(mut out) => out.flush().context("cannot write to standard output"),
            Out::File { file, progress_file, name } => {
                file.sync_all().with_context(|| format!("cannot write '{name}'"))?;
                progress_file.remove()
            }
        }
    }
}
