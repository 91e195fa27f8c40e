//! The items of a container or collection, page by page, each with its countdown.

use document::{ItemNumber, ItemRid, PartitionKey, Value};
use engine::{Browsed, BrowsedBody, BrowsedItem, Container, Engine, ItemAddress, Owner, QueryRequest, Scope};
use maud::{Markup, html};

use crate::fields;
use crate::format;
use crate::json;
use crate::visit::answer::{Answer, Fault};
use crate::visit::{Visit, link};

/// The number of items on a page.
const PAGE_ITEMS: usize = 50;

/// How many characters of an item a list shows.
const PREVIEW: usize = 160;

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let page = page(visit, &owner).await;
    let (page, wrong) = match page {
        Ok(page) => (Some(page), None),
        Err(fault) => (None, Some(fault.text)),
    };
    let filtered = visit.query.filled("id").is_some() || visit.query.filled("key").is_some();
    let inner = html! {
        div.row {
            (filter(visit, &owner))
            @if visit.may_write() { a.button.primary href=(link(&owner, "new")) data-key="a" { "New item" } }
        }
        @if let Some(wrong) = wrong { p.refusal role="alert" { (wrong) } }
        @if let Some(page) = &page {
            @if page.seen.items.is_empty() { (nothing(&owner, filtered)) } @else { (table(&owner, &page.seen)) }
            (pager(visit, &owner, page))
        }
    };
    visit.show(owner.name(), Some(&owner), &inner).await
}

/// A page of a list, and the position of the next one.
struct Page {
    seen: Browsed,
    next: Option<String>,
}

async fn page(visit: &Visit, owner: &Owner) -> Result<Page, Fault> {
    let after = visit.query.filled("after").map(str::to_owned);
    let id = visit.query.filled("id").map(str::to_owned);
    let key = visit.query.filled("key").map(partition_key).transpose()?;
    let owner = owner.clone();
    let look = move |engine: &Engine| match (&owner, id, key) {
        (_, None, None) => {
            let after = after.map(|text| text.parse()).transpose()?;
            let seen = engine.browse(&owner, after, PAGE_ITEMS)?;
            let next = seen.next.map(|place| place.to_string());
            Ok(Page { seen, next })
        }
        (Owner::Container(container), id, key) => filtered(engine, &owner, container, id, key, after),
        (Owner::Collection(_), id, _) => by_document_id(engine, &owner, id.as_deref().unwrap_or_default()),
    };
    visit.engine(look).await
}

/// Returns items by a partition key or the beginning of their id.
fn filtered(
    engine: &Engine,
    owner: &Owner,
    container: &Container,
    id: Option<String>,
    key: Option<PartitionKey>,
    continuation: Option<String>,
) -> engine::Result<Page> {
    let text = match &id {
        Some(_) => "SELECT VALUE c._rid FROM c WHERE STARTSWITH(c.id, @id)",
        None => "SELECT VALUE c._rid FROM c",
    };
    let parameters: Vec<_> = id.map(|id| ("@id".to_owned(), Value::String(id))).into_iter().collect();
    let query = query::parse(text, &parameters, &container.definition.dialect())?;
    let scope = Scope { key, range: None };
    let request = QueryRequest { scope, continuation, ..QueryRequest::new(Some(&query), PAGE_ITEMS) };
    let rows = engine.query(container, &request)?;
    let number = |row: &Vec<u8>| {
        let rid = document::parse_json(row).ok()?;
        Some(rid.as_str()?.parse::<ItemRid>().ok()?.item_number())
    };
    let numbers: Vec<ItemNumber> = rows.rows.iter().filter_map(number).collect();
    Ok(Page { seen: engine.look_at(owner, &numbers)?, next: rows.continuation })
}

/// Returns the document whose `_id` the text may be: as Extended JSON, as an object id, or as a plain string.
fn by_document_id(engine: &Engine, owner: &Owner, text: &str) -> engine::Result<Page> {
    let mut numbers = Vec::new();
    if let Owner::Collection(collection) = owner {
        let reading = engine.reading(&[collection])?;
        let hex = text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let object_id = hex.then(|| format!("{{\"$oid\":\"{text}\"}}"));
        let readings = object_id.into_iter().chain([text.to_owned()]);
        let mut meant: Vec<bson::Value> =
            readings.filter_map(|text| bson::parse_extended_json(&text).ok()).collect();
        meant.push(bson::Value::String(text.to_owned()));
        for id in meant {
            numbers.extend(reading.by_id(collection, id.view())?.map(|found| found.number));
        }
    }
    Ok(Page { seen: engine.look_at(owner, &numbers)?, next: None })
}

/// Parses a partition key as typed: JSON, or otherwise a plain string.
pub(crate) fn partition_key(text: &str) -> Result<PartitionKey, Fault> {
    let value = document::parse_json(text.as_bytes()).unwrap_or_else(|_| Value::String(text.to_owned()));
    let parts = if value.as_array().is_some() { value.to_json() } else { format!("[{}]", value.to_json()) };
    PartitionKey::from_header(&parts).map_err(|error| Fault::wrong(error.to_string()))
}

fn filter(visit: &Visit, owner: &Owner) -> Markup {
    let value = |name| visit.query.text(name).unwrap_or_default();
    html! {
        form.filter method="get" action=(link(owner, "")) role="search" {
            @match owner {
                Owner::Container(_) => {
                    input type="search" name="id" value=(value("id")) placeholder="id begins with" aria-label="Id begins with" data-focus="/";
                    input type="search" name="key" value=(value("key")) placeholder="partition key, as eu or [\"eu\", 7]" aria-label="Partition key";
                }
                Owner::Collection(_) => {
                    input type="search" name="id" value=(value("id")) placeholder="_id, as text or Extended JSON" aria-label="The document's _id" data-focus="/";
                }
            }
            button type="submit" { "Filter" }
        }
    }
}

fn nothing(owner: &Owner, filtered: bool) -> Markup {
    html! {
        section.card.empty {
            @if filtered {
                h2 { "No match" }
                p { "No living item matches the filter. " a href=(link(owner, "")) { "Show all" } }
            } @else {
                h2 { "Nothing lives here" }
                p { "What has expired is not shown, whether or not it was purged." }
            }
        }
    }
}

/// Formats a list of items.
pub(crate) fn table(owner: &Owner, seen: &Browsed) -> Markup {
    let keyed = matches!(owner, Owner::Container(_));
    html! {
        section.card {
            table.list.items data-now=(seen.now.millis()) {
                thead { tr {
                    th { @if keyed { "id" } @else { "_id" } }
                    @if keyed { th { "Partition key" } }
                    th { "Content" } th.number { "Size" } th { "Last write (UTC)" } th { "Expires in" }
                } }
                tbody { @for item in &seen.items { (row(owner, item, seen)) } }
            }
        }
    }
}

fn row(owner: &Owner, item: &BrowsedItem, seen: &Browsed) -> Markup {
    let to = link(owner, &format!("item/{}", item.number.0));
    html! {
        tr data-row {
            @match &item.address {
                ItemAddress::Id(key, id) => {
                    td.id { a href=(to) { (json::preview(id, 60)) } @if item.held { " " span.badge.warn { "held" } } }
                    td.key { code { (json::preview(&shown_key(key), 60)) } }
                }
                ItemAddress::DocumentId(_) => {
                    td.id { a href=(to) { (json::preview(&name(item), 60)) } @if item.held { " " span.badge.warn { "held" } } }
                }
            }
            td.content { code { (json::preview(&text(item), PREVIEW)) } }
            td.number { (format::bytes(item.bytes() as u64)) }
            td { (format::utc(storage::Time::from_seconds(item.ts))) }
            td { (format::countdown(item.ts, item.expiry, item.held, seen.now)) }
        }
    }
}

/// Returns the name of an item: its id, or its `_id`.
pub(crate) fn name(item: &BrowsedItem) -> String {
    match &item.address {
        ItemAddress::Id(_, id) | ItemAddress::DocumentId(bson::Value::String(id)) => id.clone(),
        ItemAddress::DocumentId(bson::Value::ObjectId(id)) => id.to_string(),
        address @ ItemAddress::DocumentId(_) => address.to_extended_json().unwrap_or_default(),
    }
}

/// Formats a partition key: one part as it is, several in brackets.
pub(crate) fn shown_key(key: &PartitionKey) -> String {
    let text = key.to_json();
    match key.parts() {
        [_] => text.trim_start_matches('[').trim_end_matches(']').to_owned(),
        _ => text,
    }
}

/// Returns the stored item as JSON text.
pub(crate) fn text(item: &BrowsedItem) -> String {
    match &item.body {
        BrowsedBody::Json(item) => {
            let mut out = Vec::new();
            document::write_json(item.body.root(), &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
        BrowsedBody::Bson(body) => bson::to_extended_json(bson::ValueRef::Document(body.view()), true),
    }
}

fn pager(visit: &Visit, owner: &Owner, page: &Page) -> Markup {
    let first = visit.query.filled("after").is_none();
    let to = |after: Option<&str>| {
        let mut parts = Vec::new();
        for name in ["id", "key"] {
            parts.extend(visit.query.filled(name).map(|value| format!("{name}={}", fields::encode(value))));
        }
        parts.extend(after.map(|after| format!("after={}", fields::encode(after))));
        format!("{}?{}", link(owner, ""), parts.join("&"))
    };
    html! {
        nav.pager aria-label="Pages" {
            @if !first { a.button href=(to(None)) rel="first" data-key="p" { "First page" } }
            @if let Some(next) = &page.next { a.button href=(to(Some(next))) rel="next" data-key="n" { "Next page" } }
        }
    }
}
