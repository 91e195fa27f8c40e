//! One item: seen, changed, made, deleted.
//!
//! Whatever goes wrong, the text that was typed comes back with what is wrong with it. A save names the version that it was
//! made from: if somebody was faster, both versions are shown and nothing is lost.

use std::sync::Arc;

use bson::{Document, RawDocument, Value};
use document::ItemNumber;
use engine::{
    Browsed, Collection, Container, Count, Holder, ItemAddress, ItemName, Operation, Precondition, Seen,
    SeenBody, Tally,
};
use hyper::StatusCode;
use maud::{Markup, html};

use crate::answer::{Answer, Fault, sentence};
use crate::confirm::{Question, are};
use crate::format;
use crate::json::{self, Mistake};
use crate::layout::{self, csrf};
use crate::pages::container::{name, shown_key, text};
use crate::pages::holds;
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
    let holder = visit.holder()?;
    let seen = look(visit, &holder).await?;
    let Some(item) = seen.items.first() else { return Err(Fault::not_found("The item")) };
    let inner = page(visit, &holder, item, &seen, &json::pretty(&text(item)), None);
    visit.show(&name(item), Some(&holder), &inner).await
}

async fn look(visit: &Visit, holder: &Holder) -> Result<Browsed, Fault> {
    let number = visit.path.get(5).and_then(|text| text.parse().ok()).map(ItemNumber);
    let number = number.ok_or_else(|| Fault::not_found("The item"))?;
    let of = holder.clone();
    visit.engine(move |engine| engine.look_at(&of, &[number])).await
}

/// The item with its editor; `typed` stands in it.
fn page(
    visit: &Visit,
    holder: &Holder,
    item: &Seen,
    seen: &Browsed,
    typed: &str,
    mistake: Option<&Mistake>,
) -> Markup {
    let here = link(holder, &format!("item/{}", item.number.0));
    html! {
        div.row data-now=(seen.now.millis()) {
            h2 { (json::preview(&name(item), 120)) }
            (format::countdown(item.ts, item.death, item.held, seen.now))
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
                @if item.held { p { "Held: it does not die and cannot be changed." } (holds::lift(visit, holder, &item.address)) }
                @else { (holds::hold(visit, holder, &item.address)) }
            }
        }
    }
}

fn facts(item: &Seen) -> Markup {
    html! {
        dl.facts {
            @if let ItemAddress::Id(key, _) = &item.address { dt { "Partition key" } dd { code { (shown_key(key)) } } }
            dt { "Last write" } dd { (format::utc(storage::Time::from_seconds(item.ts))) " UTC" }
            dt { "Dies" } dd {
                @match item.death {
                    Some(death) => { (format::utc(death)) " UTC" }
                    None => { @if item.held { "not while it is held" } @else { "never, as rules stand" } }
                }
            }
            dt { "Size" } dd { (format::bytes(item.bytes() as u64)) }
            @if let SeenBody::Json(json) = &item.body {
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

/// Stores what was typed in the place of a version.
pub(crate) async fn save(visit: &Visit) -> Result<Answer, Fault> {
    let holder = visit.holder()?;
    let typed = visit.form.text("text").unwrap_or_default();
    let version = visit.form.text("version").unwrap_or_default();
    let seen = look(visit, &holder).await?;
    let Some(item) = seen.items.first() else { return gone(visit, &holder, typed).await };
    let saved = if item.etag() == version {
        replace(visit, &holder, item, typed).await
    } else {
        Err(Refusal::Conflict)
    };
    match saved {
        Ok(()) => Ok(Answer::See(link(&holder, &format!("item/{}?said=saved", item.number.0)))),
        Err(Refusal::Gone) => gone(visit, &holder, typed).await,
        Err(Refusal::Text(mistake)) => {
            let inner = page(visit, &holder, item, &seen, typed, Some(&mistake));
            refused(visit, &holder, StatusCode::BAD_REQUEST, &name(item), &inner).await
        }
        Err(Refusal::Conflict) => conflict(visit, &holder, typed).await,
    }
}

async fn replace(visit: &Visit, holder: &Holder, item: &Seen, typed: &str) -> Result<(), Refusal> {
    match (holder, &item.address) {
        (Holder::Container(container), ItemAddress::Id(key, id)) => {
            let body = document::Document::from_json(typed.as_bytes())
                .map_err(|error| Refusal::Text(Mistake::in_json(&error)))?;
            let (name, precondition) = (ItemName::Id(id.clone()), Precondition::IfMatch(item.etag()));
            let operation = Operation::Replace { name, body, precondition };
            write(visit, container, Some(key.clone()), operation).await
        }
        (Holder::Collection(collection), ItemAddress::DocumentId(id)) => {
            let body = document_of(typed)?;
            let SeenBody::Bson(old) = &item.body else { return Err(Refusal::Gone) };
            // The version is the document itself, so that nobody's change is lost between the look and the write.
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

/// The filter of a document as it was seen.
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

/// Both versions, and the typed one to go on with.
async fn conflict(visit: &Visit, holder: &Holder, typed: &str) -> Result<Answer, Fault> {
    let seen = look(visit, holder).await?;
    let Some(item) = seen.items.first() else { return gone(visit, holder, typed).await };
    let here = link(holder, &format!("item/{}", item.number.0));
    let inner = html! {
        section.card.warn {
            h2 { "Somebody was faster" }
            p { "The item was changed while you worked on it. Nothing was stored. Yours is on the left; saving it now puts it in the place of theirs." }
        }
        div.versions {
            section { h2 { "Yours" } (editor(visit, &here, typed, Some(&item.etag()), None, "Save mine over theirs")) }
            section { h2 { "Theirs" } (json::coloured(&text(item))) p { a.button href=(here) { "Take theirs" } } }
        }
    };
    refused(visit, holder, StatusCode::CONFLICT, &name(item), &inner).await
}

/// The item has gone; what was typed is kept.
async fn gone(visit: &Visit, holder: &Holder, typed: &str) -> Result<Answer, Fault> {
    let inner = html! {
        section.card.warn {
            h2 { "The item is gone" }
            p { "It has expired or was deleted while you worked on it, and does not come back. Your text is kept: you can make a new item of it." }
        }
        (editor(visit, &link(holder, "new"), typed, None, None, "Create as a new item"))
    };
    refused(visit, holder, StatusCode::NOT_FOUND, "Gone", &inner).await
}

async fn refused(
    visit: &Visit,
    holder: &Holder,
    status: StatusCode,
    title: &str,
    inner: &Markup,
) -> Result<Answer, Fault> {
    let markup = layout::frame(visit, title, Some(holder), inner).await?;
    Ok(Answer::Page { status, markup })
}

/// An empty editor.
pub(crate) async fn blank(visit: &Visit) -> Result<Answer, Fault> {
    let holder = visit.holder()?;
    let inner = new_page(visit, &holder, &template(&holder), None);
    visit.show("New item", Some(&holder), &inner).await
}

fn new_page(visit: &Visit, holder: &Holder, typed: &str, mistake: Option<&Mistake>) -> Markup {
    html! {
        h2 { "New item" }
        @if visit.may_write() { (editor(visit, &link(holder, "new"), typed, None, mistake, "Create")) }
        @else { p.faint { "You are signed in with a read-only key." } }
        p.faint {
            "A " code { "ttl" } " in seconds at the root gives the item a time to live of its own, "
            "as long as the container's is not off."
        }
    }
}

/// What a new item needs: an id, and its partition key.
fn template(holder: &Holder) -> String {
    let mut members = document::Object::new();
    match holder {
        Holder::Collection(_) => {
            members.insert("name", "");
        }
        Holder::Container(container) => {
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
    let holder = visit.holder()?;
    let typed = visit.form.text("text").unwrap_or_default();
    match insert(visit, &holder, typed).await {
        Ok(()) => Ok(Answer::See(link(&holder, "?said=created"))),
        Err(refusal) => {
            let mistake = match refusal {
                Refusal::Text(mistake) => mistake,
                Refusal::Conflict | Refusal::Gone => Mistake::of("It was not stored."),
            };
            let inner = new_page(visit, &holder, typed, Some(&mistake));
            refused(visit, &holder, StatusCode::BAD_REQUEST, "New item", &inner).await
        }
    }
}

async fn insert(visit: &Visit, holder: &Holder, typed: &str) -> Result<(), Refusal> {
    match holder {
        Holder::Container(container) => {
            let body = document::Document::from_json(typed.as_bytes())
                .map_err(|error| Refusal::Text(Mistake::in_json(&error)))?;
            write(visit, container, None, Operation::Create { body }).await
        }
        Holder::Collection(collection) => {
            let command = Document::new()
                .with("insert", collection.name.as_str())
                .with("documents", Value::Array(vec![document_of(typed)?.into()]));
            let reply = visit.command(&collection.database, command).await;
            reply.map(drop).map_err(|text| Refusal::Text(Mistake::of(text)))
        }
    }
}

/// Asks whether the item is to be deleted; none if it was answered.
async fn ask(visit: &Visit, holder: &Holder, item: &Seen) -> Result<Option<Answer>, Fault> {
    let tally = Tally { items: 1, bytes: item.bytes() as u64 };
    let effect = are(Count { tally, exact: true }, ["is deleted", "are deleted"]);
    let question = Question {
        title: format!("Delete {}", json::preview(&name(item), 120)),
        effects: vec![format!("{effect} at once.")],
        number: Some(1),
        button: "Delete",
        back: link(holder, &format!("item/{}", item.number.0)),
    };
    question.ask(visit, Some(holder)).await
}

/// Deletes the version that was seen.
pub(crate) async fn delete(visit: &Visit) -> Result<Answer, Fault> {
    let holder = visit.holder()?;
    let seen = look(visit, &holder).await?;
    let Some(item) = seen.items.first() else { return Ok(Answer::See(link(&holder, "?said=gone"))) };
    if visit.form.text("version") != Some(item.etag().as_str()) {
        return Err(Fault::wrong(
            "The item was changed since you looked at it. Look again before you delete it.",
        ));
    }
    if let Some(page) = ask(visit, &holder, item).await? {
        return Ok(page);
    }
    let deleted = match (&holder, &item.address) {
        (Holder::Container(container), ItemAddress::Id(key, id)) => {
            let (name, precondition) = (ItemName::Id(id.clone()), Precondition::IfMatch(item.etag()));
            write(visit, container, Some(key.clone()), Operation::Delete { name, precondition }).await
        }
        (Holder::Collection(collection), ItemAddress::DocumentId(id)) => {
            let SeenBody::Bson(old) = &item.body else { return Err(Fault::not_found("The item")) };
            let statement = Document::new().with("q", same_version(id, old)).with("limit", 1);
            let command = Document::new()
                .with("delete", collection.name.as_str())
                .with("deletes", Value::Array(vec![statement.into()]));
            changed_one(visit, collection, command).await
        }
        _ => Err(Refusal::Gone),
    };
    match deleted {
        Ok(()) => Ok(Answer::See(link(&holder, "?said=deleted"))),
        Err(Refusal::Gone) => Ok(Answer::See(link(&holder, "?said=gone"))),
        Err(Refusal::Conflict) => {
            Err(Fault::wrong("The item was changed since you looked at it. Look again before you delete it."))
        }
        Err(Refusal::Text(mistake)) => Err(Fault::wrong(mistake.text)),
    }
}
