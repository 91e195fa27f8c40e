//! `bulkWrite`: inserts, updates and deletes on several collections in one command.
//!
//! Neighbouring inserts into one collection are stored together; everything else runs as the single commands run it.

use std::ops::AddAssign;

use bson::{Document, RawDocument, Value, ValueRef};
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::protocol::write_errors::{TextBudget, is_fatal};
use crate::service::call::{Call, check_collection, check_database};
use crate::statements::check_batch;
use crate::statements::cursor_reply::{self, Opening};

use super::insert::Batch;

const KNOWN: &[&str] = &[
    "bulkWrite",
    "ops",
    "nsInfo",
    "ordered",
    "errorsOnly",
    "let",
    "bypassDocumentValidation",
    "bypassEmptyTsReplacement",
    "cursor",
];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(KNOWN)?;
    let ordered = fields.boolean("ordered")?.unwrap_or(true);
    let errors_only = fields.is_set("errorsOnly")?;
    let operations = call.documents("ops")?;
    let operations = fields.required("ops", operations)?;
    check_batch(operations.len())?;
    let namespaces = call.documents("nsInfo")?;
    let namespaces = namespaces_of(&fields.required("nsInfo", namespaces)?)?;
    let operations = read(&operations, namespaces.len())?;
    let none = Document::new();
    let cursor = fields.document("cursor")?.unwrap_or(none.view());
    let size = Fields::new("bulkWrite.cursor", cursor).count("batchSize")?;

    let done = work(call, &operations, &namespaces, ordered).await?;
    let shown = done.entries.into_iter().filter(|(ok, _)| !(*ok && errors_only));
    let shown = shown.map(|(_, entry)| RawDocument::from_document(&entry)).collect();
    let opening = Opening {
        namespace: "admin.$cmd.bulkWrite",
        batch_size: size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)),
        single_batch: false,
        keep: false,
    };
    cursor_reply::list_beside(call, shown, &opening, &done.counts.to_document())
}

/// Returns the collections that operations name by position.
fn namespaces_of(list: &[RawDocument]) -> Result<Vec<(String, String)>> {
    let target = |entry: &RawDocument| {
        let fields = Fields::new("bulkWrite.nsInfo", entry.view());
        fields.only(&["ns", "collectionUUID", "encryptionInformation"])?;
        let namespace = fields.required("ns", fields.text("ns")?)?;
        let (database, name) = namespace.split_once('.').ok_or_else(|| {
            let text = format!("Invalid namespace specified for bulkWrite: '{namespace}'");
            Error::new(Code::INVALID_NAMESPACE, text)
        })?;
        Ok((check_database(database)?.to_owned(), check_collection(database, name)?.to_owned()))
    };
    list.iter().map(target).collect()
}

/// One operation, read and checked.
struct Operation {
    /// Which collection.
    target: usize,
    action: Action,
}

enum Action {
    Insert(RawDocument),
    /// As a statement of `update`.
    Update(RawDocument),
    /// As a statement of `delete`.
    Delete(RawDocument),
}

/// Reads all operations before the first one runs.
fn read(operations: &[RawDocument], namespaces: usize) -> Result<Vec<Operation>> {
    let read = |(at, operation): (usize, &RawDocument)| {
        let fields = Fields::new("bulkWrite.ops", operation.view());
        let (kind, _) = operation.view().iter().next().unwrap_or(("", ValueRef::Null));
        let action = match kind {
            "insert" => insertion(fields)?,
            "update" => update(fields)?,
            "delete" => deletion(fields)?,
            other => {
                let text = format!("BulkWrite ops entry {at} has an unknown operation '{other}'");
                return Err(Error::new(Code::FAILED_TO_PARSE, text));
            }
        };
        let target = fields.required(kind, fields.count(kind)?)?;
        let target = usize::try_from(target).ok().filter(|target| *target < namespaces).ok_or_else(|| {
            Error::bad_value(format!("BulkWrite ops entry {at} has an invalid nsInfo index."))
        })?;
        Ok(Operation { target, action })
    };
    operations.iter().enumerate().map(read).collect()
}

fn insertion(fields: Fields<'_>) -> Result<Action> {
    fields.only(&["insert", "document"])?;
    let document = fields.required("document", fields.document("document")?)?;
    Ok(Action::Insert(RawDocument::from_view(document)))
}

fn update(fields: Fields<'_>) -> Result<Action> {
    fields.only(&[
        "update",
        "filter",
        "updateMods",
        "multi",
        "upsert",
        "upsertSupplied",
        "arrayFilters",
        "hint",
        "collation",
        "sort",
        "constants",
    ])?;
    let filter = fields.required("filter", fields.document("filter")?)?;
    let change = fields.required("updateMods", fields.document.get("updateMods"))?;
    let mut statement = Document::new().with("q", filter.to_document()).with("u", change.to_value());
    copy(fields, &["multi", "upsert", "arrayFilters", "hint", "collation", "sort"], &mut statement);
    if let Some(constants) = fields.document("constants")? {
        statement.push("c", constants.to_document());
    }
    Ok(Action::Update(RawDocument::from_document(&statement)))
}

fn deletion(fields: Fields<'_>) -> Result<Action> {
    fields.only(&["delete", "filter", "multi", "hint", "collation"])?;
    let filter = fields.required("filter", fields.document("filter")?)?;
    let limit = i32::from(!fields.is_set("multi")?);
    let mut statement = Document::new().with("q", filter.to_document()).with("limit", limit);
    copy(fields, &["hint", "collation"], &mut statement);
    Ok(Action::Delete(RawDocument::from_document(&statement)))
}

fn copy(fields: Fields<'_>, names: &[&str], statement: &mut Document) {
    for name in names {
        if let Some(value) = fields.value(name) {
            statement.push(*name, value.to_value());
        }
    }
}

/// What all operations came to.
#[derive(Default)]
struct Done {
    counts: Counts,
    /// The result of each operation, and whether it succeeded.
    entries: Vec<(bool, Document)>,
    text_budget: TextBudget,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    errors: u64,
    inserted: u64,
    matched: u64,
    modified: u64,
    upserted: u64,
    deleted: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.errors += other.errors;
        self.inserted += other.inserted;
        self.matched += other.matched;
        self.modified += other.modified;
        self.upserted += other.upserted;
        self.deleted += other.deleted;
    }
}

impl Counts {
    fn to_document(self) -> Document {
        let number = |count: u64| i32::try_from(count).unwrap_or(i32::MAX);
        Document::new()
            .with("nErrors", number(self.errors))
            .with("nInserted", number(self.inserted))
            .with("nMatched", number(self.matched))
            .with("nModified", number(self.modified))
            .with("nUpserted", number(self.upserted))
            .with("nDeleted", number(self.deleted))
    }
}

impl Done {
    fn succeeds(&mut self, at: usize, counts: Counts, entry: Document) {
        self.counts += counts;
        let mut result = Document::new().with("ok", 1.0).with("idx", at as i32);
        result.fields_mut().extend(entry);
        self.entries.push((true, result));
    }

    fn fails(&mut self, at: usize, error: Error) {
        self.counts.errors += 1;
        let error = self.text_budget.fit(error);
        let mut result = Document::new()
            .with("ok", 0.0)
            .with("idx", at as i32)
            .with("code", error.code.0)
            .with("codeName", error.code.name())
            .with("errmsg", error.message.as_str())
            .with("n", 0);
        result.fields_mut().extend(error.extra);
        self.entries.push((false, result));
    }
}

async fn work(
    call: &Call,
    operations: &[Operation],
    namespaces: &[(String, String)],
    ordered: bool,
) -> Result<Done> {
    let mut done = Done::default();
    // A transaction ends with the first operation that fails.
    let stops = ordered || call.executor.is_transaction();
    let mut at = 0;
    while at < operations.len() && !(stops && done.counts.errors > 0) {
        let Operation { target, action } = &operations[at];
        let (database, name) = &namespaces[*target];
        match action {
            Action::Insert(_) => {
                let documents = neighbours(operations, at);
                let batch = Batch { database, name, first: at, ordered: stops };
                insert(call, &batch, &documents, &mut done).await?;
                at += documents.len();
            }
            Action::Update(statement) => {
                let updated = super::update::one(call, (database, name), statement, at).await;
                record(
                    call,
                    &mut done,
                    at,
                    updated.map(|updated| {
                        let (matched, modified) = (updated.matched, updated.modified);
                        let upserted = u64::from(updated.upserted.is_some());
                        let mut entry = Document::new()
                            .with("n", (matched + upserted) as i32)
                            .with("nModified", modified as i32);
                        if let Some(id) = updated.upserted {
                            entry.push("upserted", Document::new().with("_id", id));
                        }
                        (Counts { matched, modified, upserted, ..Counts::default() }, entry)
                    }),
                )?;
                at += 1;
            }
            Action::Delete(statement) => {
                let deleted = super::delete::one(call, (database, name), statement, at).await;
                record(
                    call,
                    &mut done,
                    at,
                    deleted.map(|deleted| {
                        let entry = Document::new().with("n", deleted as i32);
                        (Counts { deleted, ..Counts::default() }, entry)
                    }),
                )?;
                at += 1;
            }
        }
    }
    if done.counts.errors > 0 {
        call.abort_transaction();
    }
    Ok(done)
}

fn record(call: &Call, done: &mut Done, at: usize, outcome: Result<(Counts, Document)>) -> Result<()> {
    match outcome {
        Ok((counts, entry)) => done.succeeds(at, counts, entry),
        Err(error) if is_fatal(&error, call.executor.is_transaction()) => return Err(error),
        Err(error) => done.fails(at, error),
    }
    Ok(())
}

/// Returns the documents of the inserts into one collection that begin here.
fn neighbours(operations: &[Operation], at: usize) -> Vec<RawDocument> {
    let target = operations[at].target;
    let documents = operations[at..].iter().map_while(|operation| match &operation.action {
        Action::Insert(document) if operation.target == target => Some(document.clone()),
        _ => None,
    });
    documents.collect()
}

async fn insert(call: &Call, batch: &Batch<'_>, documents: &[RawDocument], done: &mut Done) -> Result<()> {
    let failures = match super::insert::insert(call, batch, documents).await {
        Ok((_, failures)) => failures.into_vec(),
        Err(error) if is_fatal(&error, call.executor.is_transaction()) => return Err(error),
        // What is wrong with the collection is wrong with every insert into it.
        Err(error) => (batch.first..batch.first + documents.len()).map(|at| (at, error.clone())).collect(),
    };
    let mut failures = failures.into_iter().peekable();
    for at in batch.first..batch.first + documents.len() {
        if let Some((_, error)) = failures.next_if(|(failed, _)| *failed == at) {
            done.fails(at, error);
            if batch.ordered {
                break;
            }
        } else {
            let entry = Document::new().with("n", Value::Int32(1));
            done.succeeds(at, Counts { inserted: 1, ..Counts::default() }, entry);
        }
    }
    Ok(())
}
