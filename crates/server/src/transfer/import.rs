//! From a file into the server.

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
use super::progress::{Note, Progress, Way};
use super::records::{Broken, Record, Records, form_of};
use crate::client::{Client, Payload};
use crate::figures;
use crate::place::{Api, Place};

/// A page has so many bytes, unless it is a single item,
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// and so many items.
const PAGE_ITEMS: usize = 1000;

/// The largest definition that is read.
const DEFINITION_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What becomes of items whose names are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The new one is refused.
    Insert,
    /// The old one is replaced.
    Upsert,
}

/// How an import is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Import {
    pub(crate) form: Form,
    pub(crate) gzip: bool,
    pub(crate) mode: Mode,
    /// Whether items that are refused are told and passed over.
    pub(crate) continue_on_error: bool,
    /// Whether one that was interrupted goes on.
    pub(crate) resume: bool,
}

/// What an import did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Imported {
    pub(crate) items: u64,
    pub(crate) failed: u64,
}

impl Import {
    /// Writes all items of a file into a place; `-` is standard input.
    pub(crate) fn items(self, client: &mut Client, place: &Place, path: &Path) -> Result<Imported> {
        let name = path.display().to_string();
        let form = self.settled_form(path)?;
        if form == Form::Bson && place.api == Api::NoSql {
            bail!("'{name}' is BSON, which is for collections of the MongoDB API: add --api mongodb");
        }
        let is_file = path != Path::new("-");
        let note = Note::new(path, Way::Import, format!("{place} of {}", client.url()));
        let noted = if is_file { note.read()? } else { None };
        let progress = match (noted, self.resume) {
            (Some(progress), true) => progress,
            (Some(_), false) => {
                bail!(
                    "the import of '{name}' was interrupted: --resume goes on with it; delete '{name}.progress' to begin anew"
                )
            }
            (None, _) => Progress::default(),
        };
        let total = std::fs::metadata(path).ok().filter(|_| is_file && !self.gzip).map(|known| known.len());
        let source =
            open(path, self.gzip, progress.bytes).with_context(|| format!("cannot read '{name}'"))?;
        let mut run = Run {
            import: self,
            place,
            name: &name,
            meter: Meter::new(&place.to_string(), Unit::Bytes, total),
            progress,
            page: Vec::new(),
        };
        let mut records = Records::new(source, form, (run.progress.bytes, run.progress.lines));
        let note = is_file.then_some(&note);
        let outcome = run.all(client, &mut records, note);
        let Run { meter, progress, .. } = run;
        let failed = if progress.failed == 0 {
            String::new()
        } else {
            format!(", {} refused", figures::count(progress.failed))
        };
        meter.end(&format!("{}{failed}", figures::counted(progress.items, "item")));
        outcome?;
        note.map_or(Ok(()), Note::remove)?;
        Ok(Imported { items: progress.items, failed: progress.failed })
    }

    /// The form that the file really has: many tools call lines `.json`, too.
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

/// A file from a place on, unpacked.
#[expect(clippy::disallowed_methods, reason = "the server is a door to files")]
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

/// One import under way.
struct Run<'a> {
    import: Import,
    place: &'a Place,
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
        note: Option<&Note>,
    ) -> Result<()> {
        let mut bytes = 0;
        loop {
            let record = match records.next() {
                Ok(record) => record,
                Err(broken) => return self.broken(client, note, &broken),
            };
            let Some(record) = record else { return self.send(client, note) };
            let size = record.bytes.len();
            if bytes + size > PAGE_BYTES || self.page.len() >= PAGE_ITEMS {
                self.send(client, note)?;
                bytes = 0;
            }
            bytes += size;
            self.page.push(record);
        }
    }

    /// What stands before the break is still written.
    fn broken(&mut self, client: &mut Client, note: Option<&Note>, broken: &Broken) -> Result<()> {
        self.send(client, note)?;
        Err(anyhow!("'{}', {broken}", self.name))
    }

    /// Sends a page, tells what was refused of it, and notes that it is done.
    fn send(&mut self, client: &mut Client, note: Option<&Note>) -> Result<()> {
        let page = std::mem::take(&mut self.page);
        let Some(last) = page.last() else { return Ok(()) };
        let (bytes, lines) = last.end;
        let (written, refused) = match self.place.api {
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
        self.meter.at(bytes, &figures::counted(self.progress.items, "item"));
        note.map_or(Ok(()), |note| note.write(&self.progress))
    }

    fn send_items(&self, client: &mut Client, page: &[Record]) -> Result<(u64, Vec<String>)> {
        let mode = match self.import.mode {
            Mode::Insert => "insert",
            Mode::Upsert => "upsert",
        };
        let path = format!("{}&mode={mode}", self.place.path("import"));
        let (mut written, mut refused, mut first) = (0, Vec::new(), 0);
        while first < page.len() {
            let mut body = Vec::new();
            for record in &page[first..] {
                body.extend_from_slice(&record.clone().into_line());
                body.push(b'\n');
            }
            let payload = || Payload::Bytes("application/x-ndjson", Bytes::from(body.clone()));
            let answer = client.patiently(|client| client.call(&Method::POST, &path, payload()))?;
            let report = document::parse_json(&answer.body).context("the server answers what is not JSON")?;
            let number =
                |value: &Value, name| value.get(name).and_then(Value::as_i64).map_or(0, i64::unsigned_abs);
            written += number(&report, "created") + number(&report, "replaced");
            for failure in report.get("failed").and_then(Value::as_array).unwrap_or_default() {
                let at = first + (number(failure, "line") as usize).saturating_sub(1);
                let words = failure.get("error").and_then(Value::as_str).unwrap_or_default();
                let spot = page.get(at).map(|record| match failure.get("column").and_then(Value::as_i64) {
                    Some(column) => record.column(column.unsigned_abs()),
                    None => record.spot,
                });
                refused.push(spot.map_or_else(|| words.to_owned(), |spot| format!("{spot}: {words}")));
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
                    spots.push(record.spot);
                }
                Err(words) => refused.push(format!("{}: {words}", record.spot)),
            }
        }
        let done = collections::write(client, self.place, self.import.mode, &documents)?;
        refused.extend(done.failed.iter().map(|(position, words)| format!("{}: {words}", spots[*position])));
        Ok((done.created + done.replaced, refused))
    }
}

/// A document out of BSON or of Extended JSON.
fn document_of(record: &Record) -> Result<RawDocument, String> {
    if matches!(record.spot, super::records::Spot::Document { .. }) {
        return RawDocument::parse(record.bytes.clone().into()).map_err(|error| error.to_string());
    }
    let text = std::str::from_utf8(&record.bytes).map_err(|_| "this is not UTF-8".to_owned())?;
    match bson::parse_extended_json(text) {
        Ok(bson::Value::Document(document)) => Ok(RawDocument::from_document(&document)),
        Ok(other) => Err(format!("a document must be an object, this is {}", other.kind().alias())),
        Err(error) => Err(error.to_string()),
    }
}

/// Makes what a definition defines, unless it is there.
pub(crate) fn make(client: &mut Client, place: &Place, file: &Path) -> Result<()> {
    let name = file.display();
    let mut text = Vec::new();
    let (_, gzip) = Form::of(file);
    let source = open(file, gzip, 0).with_context(|| format!("cannot read '{name}'"))?;
    source
        .take(DEFINITION_BYTES_MAX)
        .read_to_end(&mut text)
        .with_context(|| format!("cannot read '{name}'"))?;
    match place.api {
        Api::NoSql => {
            let definition = document::parse_json(&text).with_context(|| format!("in '{name}'"))?;
            make_container(client, place, &definition).with_context(|| format!("from '{name}'"))
        }
        Api::MongoDb => {
            let text = String::from_utf8(text).with_context(|| format!("'{name}' is not UTF-8"))?;
            let description =
                bson::parse_extended_json(&text).map_err(|error| anyhow!("in '{name}': {error}"))?;
            let bson::Value::Document(description) = description else { bail!("'{name}' is not an object") };
            collections::make(client, place, &description)
        }
    }
}

/// Makes a container with that partition key and defaults for the rest, unless it is there.
pub(crate) fn make_with_key(client: &mut Client, place: &Place, paths: &str) -> Result<()> {
    let paths: Vec<Value> = paths.split(',').map(|path| Value::String(path.trim().to_owned())).collect();
    let mut key = Object::new();
    key.insert("kind", if paths.len() > 1 { "MultiHash" } else { "Hash" });
    key.insert("version", 2_i64);
    key.insert("paths", Value::Array(paths));
    let mut definition = Object::new();
    definition.insert("partitionKey", Value::Object(key));
    let mut body = Object::new();
    body.insert("definition", Value::Object(definition));
    make_container(client, place, &Value::Object(body))
}

fn make_container(client: &mut Client, place: &Place, body: &Value) -> Result<()> {
    let made = client.send_json(&Method::PUT, &place.path("container"), body)?;
    let key = |value: &Value| {
        value.get("definition").and_then(|it| it.get("partitionKey")).and_then(|it| it.get("paths")).cloned()
    };
    let (wanted, there) = (key(body), key(&made));
    if wanted.is_some() && wanted != there {
        let shown = |paths: Option<Value>| paths.map_or_else(|| "none".to_owned(), |paths| paths.to_json());
        bail!("'{place}' is there with another partition key: {} instead of {}", shown(there), shown(wanted));
    }
    Ok(())
}
