//! Imports from a file into the server.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bson::RawDocument;
use bytes::Bytes;
use document::{Object, Value};
use flate2::read::MultiGzDecoder;
use hyper::Method;

use super::collections;
use super::files::Form;
use super::meter::{Meter, Unit};
use super::progress::{Direction, Progress, ProgressFile};
use super::records::{ReadError, Record, Records, form_of};
use crate::client::{Client, Payload};
use crate::format;
use crate::namespace::{Api, Namespace};

/// The largest size of a page, unless it is a single item.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// The largest number of items in a page.
const PAGE_ITEMS: usize = 1000;

/// The largest definition that is read.
const DEFINITION_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What happens to items whose ids exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The new item is refused.
    Insert,
    /// The old item is replaced.
    Upsert,
}

/// The options of an import.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Import {
    pub(crate) form: Form,
    pub(crate) gzip: bool,
    pub(crate) mode: Mode,
    /// Whether refused items are reported and skipped.
    pub(crate) continue_on_error: bool,
    /// Whether an interrupted import is resumed.
    pub(crate) resume: bool,
}

/// The result of an import.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Imported {
    pub(crate) items: u64,
    pub(crate) failed: u64,
}

impl Import {
    /// Writes all items of a file to a namespace; `-` is standard input.
    pub(crate) fn items(self, client: &mut Client, namespace: &Namespace, path: &Path) -> Result<Imported> {
        let name = path.display().to_string();
        let form = self.settled_form(path)?;
        if form == Form::Bson && namespace.api == Api::NoSql {
            bail!("'{name}' is BSON, which is for collections of the MongoDB API: add --api mongodb");
        }
        let is_file = path != Path::new("-");
        let progress_file =
            ProgressFile::new(path, Direction::Import, format!("{namespace} of {}", client.url()));
        let noted = if is_file { progress_file.read()? } else { None };
        let progress = match (noted, self.resume) {
            (Some(progress), true) => progress,
            (Some(_), false) => {
                bail!(
                    "the import of '{name}' was interrupted: resume it with --resume, or delete '{name}.progress' to start over"
                )
            }
            (None, _) => Progress::default(),
        };
        let total = std::fs::metadata(path).ok().filter(|_| is_file && !self.gzip).map(|known| known.len());
        let source =
            open(path, self.gzip, progress.bytes).with_context(|| format!("cannot read '{name}'"))?;
        let mut run = Run {
            import: self,
            namespace,
            name: &name,
            meter: Meter::new(&namespace.to_string(), Unit::Bytes, total),
            progress,
            page: Vec::new(),
        };
        let mut records = Records::new(source, form, (run.progress.bytes, run.progress.lines));
        let progress_file = is_file.then_some(&progress_file);
        let outcome = run.all(client, &mut records, progress_file);
        let Run { meter, progress, .. } = run;
        let failed = if progress.failed == 0 {
            String::new()
        } else {
            format!(", {} refused", format::count(progress.failed))
        };
        meter.end(&format!("{}{failed}", format::counted(progress.items, "item")));
        outcome?;
        progress_file.map_or(Ok(()), ProgressFile::remove)?;
        Ok(Imported { items: progress.items, failed: progress.failed })
    }

    /// Determines the actual format: many tools use `.json` for lines, too.
    fn settled_form(self, path: &Path) -> Result<Form> {
        if self.form == Form::Bson || path == Path::new("-") {
            return Ok(self.form);
        }
        let mut beginning = Vec::new();
        let source = open(path, self.gzip, 0).with_context(|| format!("cannot read '{}'", path.display()))?;
        source
            .take(4096)
            .read_to_end(&mut beginning)
            .with_context(|| format!("cannot read '{}'", path.display()))?;
        Ok(form_of(&beginning))
    }
}

/// Opens a file at an offset, decompressed.
#[expect(clippy::disallowed_methods, reason = "the server accesses files")]
fn open(path: &Path, gzip: bool, from: u64) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let mut file = File::open(path)?;
    if !gzip {
        file.seek(SeekFrom::Start(from))?;
        return Ok(Box::new(file));
    }
    let mut unpacked = MultiGzDecoder::new(io::BufReader::new(file));
    io::copy(&mut unpacked.by_ref().take(from), &mut io::sink())?;
    Ok(Box::new(unpacked))
}

/// A running import.
struct Run<'a> {
    import: Import,
    namespace: &'a Namespace,
    name: &'a str,
    meter: Meter,
    progress: Progress,
    page: Vec<Record>,
}

impl Run<'_> {
    fn all<R: Read>(
        &mut self,
        client: &mut Client,
        records: &mut Records<R>,
        progress_file: Option<&ProgressFile>,
    ) -> Result<()> {
        let mut bytes = 0;
        loop {
            let record = match records.next() {
                Ok(record) => record,
                Err(broken) => return self.broken(client, progress_file, &broken),
            };
            let Some(record) = record else { return self.send(client, progress_file) };
            let size = record.bytes.len();
            if bytes + size > PAGE_BYTES || self.page.len() >= PAGE_ITEMS {
                self.send(client, progress_file)?;
                bytes = 0;
            }
            bytes += size;
            self.page.push(record);
        }
    }

    /// Items before the error are still written.
    fn broken(
        &mut self,
        client: &mut Client,
        progress_file: Option<&ProgressFile>,
        broken: &ReadError,
    ) -> Result<()> {
        self.send(client, progress_file)?;
        Err(anyhow!("'{}', {broken}", self.name))
    }

    /// Sends a page, reports the refused items, and records the progress.
    fn send(&mut self, client: &mut Client, progress_file: Option<&ProgressFile>) -> Result<()> {
        let page = std::mem::take(&mut self.page);
        let Some(last) = page.last() else { return Ok(()) };
        let (bytes, lines) = last.end;
        let (written, refused) = match self.namespace.api {
            Api::NoSql => self.send_items(client, &page)?,
            Api::MongoDb => self.send_documents(client, &page)?,
        };
        self.progress.items += written;
        self.progress.failed += refused.len() as u64;
        for words in &refused {
            self.meter.say(&format!("{}, {words}", self.name));
        }
        if !refused.is_empty() && !self.import.continue_on_error {
            bail!(
                "{} refused; the others of the page are written. --continue-on-error passes over such items",
                if refused.len() == 1 {
                    "an item was".to_owned()
                } else {
                    format!("{} items were", refused.len())
                }
            );
        }
        (self.progress.bytes, self.progress.lines) = (bytes, lines);
        self.meter.at(bytes, &format::counted(self.progress.items, "item"));
        progress_file.map_or(Ok(()), |progress_file| progress_file.write(&self.progress))
    }

    fn send_items(&self, client: &mut Client, page: &[Record]) -> Result<(u64, Vec<String>)> {
        let mode = match self.import.mode {
            Mode::Insert => "insert",
            Mode::Upsert => "upsert",
        };
        let path = format!("{}&mode={mode}", self.namespace.path("import"));
        let (mut written, mut refused, mut first) = (0, Vec::new(), 0);
        while first < page.len() {
            let mut body = Vec::new();
            for record in &page[first..] {
                body.extend_from_slice(&record.clone().into_line());
                body.push(b'\n');
            }
            let payload = || Payload::Bytes("application/x-ndjson", Bytes::from(body.clone()));
            let answer = client.with_retries(|client| client.call(&Method::POST, &path, payload()))?;
            let report =
                document::parse_json(&answer.body).context("the server returned data that is not JSON")?;
            let number =
                |value: &Value, name| value.get(name).and_then(Value::as_i64).map_or(0, i64::unsigned_abs);
            written += number(&report, "created") + number(&report, "replaced");
            for failure in report.get("failed").and_then(Value::as_array).unwrap_or_default() {
                let at = first + (number(failure, "line") as usize).saturating_sub(1);
                let words = failure.get("error").and_then(Value::as_str).unwrap_or_default();
                let position =
                    page.get(at).map(|record| match failure.get("column").and_then(Value::as_i64) {
                        Some(column) => record.column(column.unsigned_abs()),
                        None => record.position,
                    });
                refused.push(
                    position.map_or_else(|| words.to_owned(), |position| format!("{position}: {words}")),
                );
            }
            match report.get("retryAfterMs").and_then(Value::as_i64) {
                Some(wait) => {
                    first += number(&report, "lines") as usize;
                    client.pause(Duration::from_millis(wait.unsigned_abs()));
                }
                None => break,
            }
        }
        Ok((written, refused))
    }

    fn send_documents(&self, client: &mut Client, page: &[Record]) -> Result<(u64, Vec<String>)> {
        let (mut documents, mut spots, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for record in page {
            match document_of(record) {
                Ok(document) => {
                    documents.push(document);
                    spots.push(record.position);
                }
                Err(words) => refused.push(format!("{}: {words}", record.position)),
            }
        }
        let done = collections::write(client, self.namespace, self.import.mode, &documents)?;
        refused.extend(done.failed.iter().map(|(position, words)| format!("{}: {words}", spots[*position])));
        Ok((done.created + done.replaced, refused))
    }
}

/// Parses a document from BSON or Extended JSON.
fn document_of(record: &Record) -> Result<RawDocument, String> {
    if matches!(record.position, super::records::Position::Document { .. }) {
        return RawDocument::parse(record.bytes.clone().into()).map_err(|error| error.to_string());
    }
    let text = std::str::from_utf8(&record.bytes).map_err(|_| "this is not UTF-8".to_owned())?;
    match bson::parse_extended_json(text) {
        Ok(bson::Value::Document(document)) => Ok(RawDocument::from_document(&document)),
        Ok(other) => Err(format!("a document must be an object, this is {}", other.kind().alias())),
        Err(error) => Err(error.to_string()),
    }
}

/// Creates what a definition describes, unless it exists.
pub(crate) fn make(client: &mut Client, namespace: &Namespace, file: &Path) -> Result<()> {
    let name = file.display();
    let mut text = Vec::new();
    let (_, gzip) = Form::of(file);
    let source = open(file, gzip, 0).with_context(|| format!("cannot read '{name}'"))?;
    source
        .take(DEFINITION_BYTES_MAX)
        .read_to_end(&mut text)
        .with_context(|| format!("cannot read '{name}'"))?;
    match namespace.api {
        Api::NoSql => {
            let definition = document::parse_json(&text).with_context(|| format!("in '{name}'"))?;
            make_container(client, namespace, &definition).with_context(|| format!("from '{name}'"))
        }
        Api::MongoDb => {
            let text = String::from_utf8(text).with_context(|| format!("'{name}' is not UTF-8"))?;
            let description =
                bson::parse_extended_json(&text).map_err(|error| anyhow!("in '{name}': {error}"))?;
            let bson::Value::Document(description) = description else { bail!("'{name}' is not an object") };
            collections::make(client, namespace, &description)
        }
    }
}

/// Creates a container with this partition key and default settings, unless it exists.
pub(crate) fn make_with_key(client: &mut Client, namespace: &Namespace, paths: &str) -> Result<()> {
    let paths: Vec<Value> = paths.split(',').map(|path| Value::String(path.trim().to_owned())).collect();
    let mut key = Object::new();
    key.insert("kind", if paths.len() > 1 { "MultiHash" } else { "Hash" });
    key.insert("version", 2_i64);
    key.insert("paths", Value::Array(paths));
    let mut definition = Object::new();
    definition.insert("partitionKey", Value::Object(key));
    let mut body = Object::new();
    body.insert("definition", Value::Object(definition));
    make_container(client, namespace, &Value::Object(body))
}

fn make_container(client: &mut Client, namespace: &Namespace, body: &Value) -> Result<()> {
    let made = client.send_json(&Method::PUT, &namespace.path("container"), body)?;
    let key = |value: &Value| {
        value.get("definition").and_then(|it| it.get("partitionKey")).and_then(|it| it.get("paths")).cloned()
    };
    let (wanted, there) = (key(body), key(&made));
    if wanted.is_some() && wanted != there {
        let shown = |paths: Option<Value>| paths.map_or_else(|| "none".to_owned(), |paths| paths.to_json());
        bail!(
            "'{namespace}' is there with another partition key: {} instead of {}",
            shown(there),
            shown(wanted)
        );
    }
    Ok(())
}
