//! The page of one item: view, change, create, delete.
//!
//! On any error the typed text comes back with an explanation. A save names the version that was edited: if another
//! client has changed the item, both versions are shown and nothing is lost.

use std::sync::Arc;

use bson::{Document, RawDocument, Value};
use document::ItemNumber;
use engine::{
    Browsed, BrowsedBody, BrowsedItem, Collection, Container, Count, ItemAddress, ItemName, Operation, Owner,
    Precondition, Tally,
};
use hyper::StatusCode;
use maud::{Markup, html};

use crate::confirm::{Question, are};
use crate::format;
use crate::json::{self, Mistake};
use crate::pages::container::{name, shown_key, text};
use crate::pages::holds;
use crate::visit::answer::{Answer, Fault, sentence};
use crate::visit::layout::{self, csrf};
use crate::visit::{Visit, link};

/// Why a text was not stored.
enum Refusal {
    /// The text is wrong.
    Text(Mistake),
    /// The item has another version by now.
    Conflict,
    /// The item is gone.
    Gone,
}

impl From<engine::Error> for Refusal {
    fn from(error: engine::Error) -> Refusal {
        match error {
            engine::Error::PreconditionFailed { .. } => Refusal::Conflict,
            engine::Error::NotFound { .. } => Refusal::Gone,
            other => Refusal::Text(Mistake::of(sentence(&Fault::from(other).text))),
        }
    }
}

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let seen = look(visit, &owner).await?;
    let Some(item) = seen.items.first() else { return Err(Fault::not_found("The item")) };
    let inner = page(visit, &owner, item, &seen, &json::pretty(&text(item)), None);
    visit.show(&name(item), Some(&owner), &inner).await
}

async fn look(visit: &Visit, owner: &Owner) -> Result<Browsed, Fault> {
    let number = visit.path.get(5).and_then(|text| text.parse().ok()).map(ItemNumber);
    let number = number.ok_or_else(|| Fault::not_found("The item"))?;
    let of = owner.clone();
    visit.engine(move |engine| engine.look_at(&of, &[number])).await
}

/// Returns the page of the item with its editor, which contains `typed`.
fn page(
    visit: &Visit,
    owner: &Owner,
    item: &BrowsedItem,
    seen: &Browsed,
    typed: &str,
    mistake: Option<&Mistake>,
) -> Markup {
    let here = link(owner, &format!("item/{}", item.number.0));
    html! {
        div.row data-now=(seen.now.millis()) {
            h2 { (json::preview(&name(item), 120)) }
            (format::countdown(item.ts, item.expiry, item.held, seen.now))
        }
        (facts(item))
        @if visit.may_write() && !item.held {
            (editor(visit, &here, typed, Some(&item.etag()), mistake, "Save"))
            details.danger {
                summary { "Delete this item" }
                form method="post" action={ (here) "/delete" } {
                    (csrf(visit))
                    input type="hidden" name="version" value=(item.etag());
                    button.danger type="submit" { "Delete" }
                }
            }
        } @else { section.card { (json::coloured(&text(item))) } }
        @if visit.may_write() {
            section.card {
                h2 { "Legal hold" }
                @if item.held { p { "Held: the item does not expire and cannot be changed." } (holds::lift(visit, owner, &item.address)) }
                @else { (holds::hold(visit, owner, &item.address)) }
            }
        }
    }
}

fn facts(item: &BrowsedItem) -> Markup {
    html! {
        dl.facts {
            @if let ItemAddress::Id(key, _) = &item.address { dt { "Partition key" } dd { code { (shown_key(key)) } } }
            dt { "Last write" } dd { (format::utc(storage::Time::from_seconds(item.ts))) " UTC" }
            dt { "Expires" } dd {
                @match item.expiry {
                    Some(expiry) => { (format::utc(expiry)) " UTC" }
                    None => { @if item.held { "not while it is held" } @else { "never, under the current rules" } }
                }
            }
            dt { "Size" } dd { (format::bytes(item.bytes() as u64)) }
            @if let BrowsedBody::Json(json) = &item.body {
                dt { "Resource id" } dd { code { (json.rid) } }
                dt { "Version" } dd { code { (item.etag()) } }
            }
        }
    }
}

fn editor(
    visit: &Visit,
    action: &str,
    typed: &str,
    version: Option<&str>,
    mistake: Option<&Mistake>,
    button: &str,
) -> Markup {
    let lines = typed.lines().count().clamp(8, 32);
    html! {
        form.editor method="post" action=(action) {
            (csrf(visit))
            @if let Some(version) = version { input type="hidden" name="version" value=(version); }
            label.visually-hidden for="text" { "The item as JSON" }
            textarea #text name="text" rows=(lines) spellcheck="false" autocomplete="off" data-json
                data-line=[mistake.and_then(|it| it.place).map(|place| place.0)]
                data-column=[mistake.and_then(|it| it.place).map(|place| place.1)]
                aria-invalid=[mistake.map(|_| "true")] aria-describedby="mistake" { "\n" (typed) }
            p #mistake .refusal role="alert" {
                @if let Some(Mistake { text, place }) = mistake {
                    @if let Some((line, column)) = place { b { "Line " (line) ", column " (column) ": " } }
                    (text)
                }
            }
            div.row { button.primary type="submit" { (button) } }
        }
    }
}

/// Stores the typed text in place of a version.
pub(crate) async fn save(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let typed = visit.form.text("text").unwrap_or_default();
    let version = visit.form.text("version").unwrap_or_default();
    let seen = look(visit, &owner).await?;
    let Some(item) = seen.items.first() else { return gone(visit, &owner, typed).await };
    let saved = if item.etag() == version {
        replace(visit, &owner, item, typed).await
    } else {
        Err(Refusal::Conflict)
    };
    match saved {
        Ok(()) => Ok(Answer::See(link(&owner, &format!("item/{}?said=saved", item.number.0)))),
        Err(Refusal::Gone) => gone(visit, &owner, typed).await,
        Err(Refusal::Text(mistake)) => {
            let inner = page(visit, &owner, item, &seen, typed, Some(&mistake));
            refused(visit, &owner, StatusCode::BAD_REQUEST, &name(item), &inner).await
        }
        Err(Refusal::Conflict) => conflict(visit, &owner, typed).await,
    }
}

async fn replace(visit: &Visit, owner: &Owner, item: &BrowsedItem, typed: &str) -> Result<(), Refusal> {
    match (owner, &item.address) {
        (Owner::Container(container), ItemAddress::Id(key, id)) => {
            let body = document::Document::from_json(typed.as_bytes())
                .map_err(|error| Refusal::Text(Mistake::in_json(&error)))?;
            let (name, precondition) = (ItemName::Id(id.clone()), Precondition::IfMatch(item.etag()));
            let operation = Operation::Replace { name, body, precondition };
            write(visit, container, Some(key.clone()), operation).await
        }
        (Owner::Collection(collection), ItemAddress::DocumentId(id)) => {
            let body = document_of(typed)?;
            let BrowsedBody::Bson(old) = &item.body else { return Err(Refusal::Gone) };
            // The version is the document itself, so that no concurrent change is overwritten.
            let update = Document::new()
                .with("q", same_version(id, old))
                .with("u", body)
                .with("upsert", false)
                .with("multi", false);
            let command = Document::new()
                .with("update", collection.name.as_str())
                .with("updates", Value::Array(vec![update.into()]));
            changed_one(visit, collection, command).await
        }
        _ => Err(Refusal::Gone),
    }
}

/// Returns a filter for the version of a document that was shown.
fn same_version(id: &Value, old: &RawDocument) -> Document {
    let seen = Document::new().with("$literal", old.to_document());
    let same = Document::new().with("$eq", Value::Array(vec!["$$ROOT".into(), seen.into()]));
    Document::new().with("_id", id.clone()).with("$expr", same)
}

/// Runs an update or delete of one document; a conflict if there was none.
async fn changed_one(visit: &Visit, collection: &Collection, command: Document) -> Result<(), Refusal> {
    let reply = visit.command(&collection.database, command).await;
    let reply = reply.map_err(|text| Refusal::Text(Mistake::of(text)))?;
    match reply.document.get("n") {
        Some(bson::ValueRef::Int32(1)) => Ok(()),
        _ => Err(Refusal::Conflict),
    }
}

fn document_of(typed: &str) -> Result<Document, Refusal> {
    match json::parse_extended(typed).map_err(Refusal::Text)? {
        Value::Document(document) => Ok(document),
        _ => Err(Refusal::Text(Mistake::of("A document must be a JSON object."))),
    }
}

async fn write(
    visit: &Visit,
    container: &Arc<Container>,
    key: Option<document::PartitionKey>,
    operation: Operation,
) -> Result<(), Refusal> {
    let container = Arc::clone(container);
    let written =
        visit.blocking(move |engine| engine.write(&container, key, operation).wait().map(drop)).await;
    written.map_err(|fault| Refusal::Text(Mistake::of(fault.text)))?.map_err(Refusal::from)
}

/// Returns a page with both versions, and the typed one to continue with.
async fn conflict(visit: &Visit, owner: &Owner, typed: &str) -> Result<Answer, Fault> {
    let seen = look(visit, owner).await?;
    let Some(item) = seen.items.first() else { return gone(visit, owner, typed).await };
    let here = link(owner, &format!("item/{}", item.number.0));
    let inner = html! {
        section.card.warn {
            h2 { "The item has changed" }
            p { "Another client changed the item while you edited it. Nothing was stored. Your version is on the left; saving it now replaces the other one." }
        }
        div.versions {
            section { h2 { "Yours" } (editor(visit, &here, typed, Some(&item.etag()), None, "Save mine over theirs")) }
            section { h2 { "Theirs" } (json::coloured(&text(item))) p { a.button href=(here) { "Take theirs" } } }
        }
    };
    refused(visit, owner, StatusCode::CONFLICT, &name(item), &inner).await
}

/// Returns a page for an item that no longer exists; the typed text is kept.
async fn gone(visit: &Visit, owner: &Owner, typed: &str) -> Result<Answer, Fault> {
    let inner = html! {
        section.card.warn {
            h2 { "The item is gone" }
            p { "It expired or was deleted while you edited it, and does not come back. Your text is kept: you can create a new item from it." }
        }
        (editor(visit, &link(owner, "new"), typed, None, None, "Create as a new item"))
    };
    refused(visit, owner, StatusCode::NOT_FOUND, "Gone", &inner).await
}

async fn refused(
    visit: &Visit,
    owner: &Owner,
    status: StatusCode,
    title: &str,
    inner: &Markup,
) -> Result<Answer, Fault> {
    let markup = layout::frame(visit, title, Some(owner), inner).await?;
    Ok(Answer::Page { status, markup })
}

/// Returns an empty editor.
pub(crate) async fn blank(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let inner = new_page(visit, &owner, &template(&owner), None);
    visit.show("New item", Some(&owner), &inner).await
}

fn new_page(visit: &Visit, owner: &Owner, typed: &str, mistake: Option<&Mistake>) -> Markup {
    html! {
        h2 { "New item" }
        @if visit.may_write() { (editor(visit, &link(owner, "new"), typed, None, mistake, "Create")) }
        @else { p.faint { "You are signed in with a read-only key." } }
        p.faint {
            "A " code { "ttl" } " in seconds at the root gives the item a time to live of its own, "
            "as long as the container's is not off."
        }
    }
}

/// Returns the template of a new item: an id, and its partition key.
fn template(owner: &Owner) -> String {
    let mut members = document::Object::new();
    match owner {
        Owner::Collection(_) => {
            members.insert("name", "");
        }
        Owner::Container(container) => {
            members.insert("id", "");
            let paths = container.definition.partition_key.to_value();
            let paths = paths.get("paths").and_then(document::Value::as_array).unwrap_or_default().to_vec();
            for path in paths.iter().filter_map(document::Value::as_str) {
                let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
                let [first, rest @ ..] = names.as_slice() else { continue };
                let inner = rest.iter().rev().fold(document::Value::String(String::new()), |inner, name| {
                    let mut outer = document::Object::new();
                    outer.insert(*name, inner);
                    outer.into()
                });
                if !members.contains(first) {
                    members.insert(*first, inner);
                }
            }
        }
    }
    json::pretty(&document::Value::Object(members).to_json())
}

/// Stores a new item.
pub(crate) async fn create(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let typed = visit.form.text("text").unwrap_or_default();
    match insert(visit, &owner, typed).await {
        Ok(()) => Ok(Answer::See(link(&owner, "?said=created"))),
        Err(refusal) => {
            let mistake = match refusal {
                Refusal::Text(mistake) => mistake,
                Refusal::Conflict | Refusal::Gone => Mistake::of("It was not stored."),
            };
            let inner = new_page(visit, &owner, typed, Some(&mistake));
            refused(visit, &owner, StatusCode::BAD_REQUEST, "New item", &inner).await
        }
    }
}

async fn insert(visit: &Visit, owner: &Owner, typed: &str) -> Result<(), Refusal> {
    match owner {
        Owner::Container(container) => {
            let body = document::Document::from_json(typed.as_bytes())
                .map_err(|error| Refusal::Text(Mistake::in_json(&error)))?;
            write(visit, container, None, Operation::Create { body }).await
        }
        Owner::Collection(collection) => {
            let command = Document::new()
                .with("insert", collection.name.as_str())
                .with("documents", Value::Array(vec![document_of(typed)?.into()]));
            let reply = visit.command(&collection.database, command).await;
            reply.map(drop).map_err(|text| Refusal::Text(Mistake::of(text)))
        }
    }
}

/// Asks whether the item is to be deleted; `None` if the visitor has confirmed it.
async fn ask(visit: &Visit, owner: &Owner, item: &BrowsedItem) -> Result<Option<Answer>, Fault> {
    let tally = Tally { items: 1, bytes: item.bytes() as u64 };
    let effect = are(Count { tally, exact: true }, ["is deleted", "are deleted"]);
    let question = Question {
        title: format!("Delete {}", json::preview(&name(item), 120)),
        effects: vec![format!("{effect} at once.")],
        number: Some(1),
        button: "Delete",
        back: link(owner, &format!("item/{}", item.number.0)),
    };
    question.ask(visit, Some(owner)).await
}

/// Deletes the version that the visitor saw.
pub(crate) async fn delete(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let seen = look(visit, &owner).await?;
    let Some(item) = seen.items.first() else { return Ok(Answer::See(link(&owner, "?said=gone"))) };
    if visit.form.text("version") != Some(item.etag().as_str()) {
        return Err(Fault::wrong(
            "The item was changed since you looked at it. Look again before you delete it.",
        ));
    }
    if let Some(page) = ask(visit, &owner, item).await? {
        return Ok(page);
    }
    let deleted = match (&owner, &item.address) {
        (Owner::Container(container), ItemAddress::Id(key, id)) => {
            let (name, precondition) = (ItemName::Id(id.clone()), Precondition::IfMatch(item.etag()));
            write(visit, container, Some(key.clone()), Operation::Delete { name, precondition }).await
        }
        (Owner::Collection(collection), ItemAddress::DocumentId(id)) => {
            let BrowsedBody::Bson(old) = &item.body else { return Err(Fault::not_found("The item")) };
            let statement = Document::new().with("q", same_version(id, old)).with("limit", 1);
            let command = Document::new()
                .with("delete", collection.name.as_str())
                .with("deletes", Value::Array(vec![statement.into()]));
            changed_one(visit, collection, command).await
        }
        _ => Err(Refusal::Gone),
    };
    match deleted {
        Ok(()) => Ok(Answer::See(link(&owner, "?said=deleted"))),
        Err(Refusal::Gone) => Ok(Answer::See(link(&owner, "?said=gone"))),
        Err(Refusal::Conflict) => {
            Err(Fault::wrong("The item was changed since you looked at it. Look again before you delete it."))
        }
        Err(Refusal::Text(mistake)) => Err(Fault::wrong(mistake.text)),
    }
}
