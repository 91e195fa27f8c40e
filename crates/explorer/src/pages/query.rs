//! The query page: SQL over containers, filter and sort over collections; rows, charge, statistics, and index usage.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bson::{Document, DocumentRef, Value, ValueRef};
use document::ItemRid;
use engine::{CancelOnDrop, Collection, Container, Engine, IndexUse, Owner, QueryPage, QueryRequest, Scope};
use maud::{Markup, html};
use tokio::time::timeout;

use crate::format;
use crate::json;
use crate::pages::container::partition_key;
use crate::visit::answer::{Answer, Fault, sentence};
use crate::visit::layout::csrf;
use crate::visit::{Visit, link};

/// The number of rows on a page.
const PAGE_ROWS: usize = 100;

/// The largest number of documents that a MongoDB query shows.
const LIMIT_MAX: i64 = 1000;

/// The time limit of a query.
const TIME_MS: u16 = 30_000;

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let inner = form(visit, &owner);
    visit.show(&format!("Query {}", owner.name()), Some(&owner), &inner).await
}

pub(crate) async fn run(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let results = match &owner {
        Owner::Container(container) => sql(visit, &owner, container).await,
        Owner::Collection(collection) => mongodb(visit, &owner, collection).await,
    };
    let inner = html! {
        (form(visit, &owner))
        @match results {
            Ok(results) => (results),
            Err(wrong) => p.refusal role="alert" { (wrong) },
        }
    };
    visit.show(&format!("Query {}", owner.name()), Some(&owner), &inner).await
}

fn form(visit: &Visit, owner: &Owner) -> Markup {
    let value = |name: &str, otherwise: &str| visit.form.text(name).unwrap_or(otherwise).to_owned();
    html! {
        form.editor.card method="post" action=(link(owner, "query")) {
            (csrf(visit))
            @match owner {
                Owner::Container(_) => {
                    label for="sql" { "SQL" }
                    textarea #sql name="sql" rows="4" spellcheck="false" data-focus="/" { "\n" (value("sql", "SELECT * FROM c")) }
                    label { "Partition key " span.faint { "(empty: all)" }
                        input type="text" name="key" value=(value("key", "")) spellcheck="false"; }
                }
                Owner::Collection(_) => {
                    label for="filter" { "Filter" }
                    textarea #filter name="filter" rows="4" spellcheck="false" data-focus="/" { "\n" (value("filter", "{}")) }
                    div.fields {
                        label { "Sort" input type="text" name="sort" value=(value("sort", "")) placeholder="{\"price\": -1}" spellcheck="false"; }
                        label { "Projection" input type="text" name="projection" value=(value("projection", "")) spellcheck="false"; }
                        label { "Limit" input type="number" name="limit" min="1" max=(LIMIT_MAX) value=(value("limit", "50")); }
                        label { "Skip" input type="number" name="skip" min="0" value=(value("skip", "0")); }
                    }
                }
            }
            div.row { button.primary type="submit" { "Run" } span.faint.small { kbd { "Ctrl" } " " kbd { "Enter" } } }
        }
    }
}

async fn sql(visit: &Visit, owner: &Owner, container: &Arc<Container>) -> Result<Markup, String> {
    let text = visit.form.text("sql").unwrap_or_default().to_owned();
    let key = visit.form.filled("key").map(partition_key).transpose().map_err(|fault| fault.text)?;
    let continuation = visit.form.filled("continuation").map(str::to_owned);
    let query = query::parse(&text, &[], &container.definition.dialect())
        .map_err(|error| sentence(&error.to_string()))?;
    let (of, started) = (Arc::clone(container), tokio::time::Instant::now());
    let left = Arc::<AtomicBool>::default();
    let _when_left = CancelOnDrop(Arc::clone(&left));
    let answer = visit.engine(move |engine: &Engine| {
        let scope = Scope { key, range: None };
        let request =
            QueryRequest { scope, continuation, cancel: left, ..QueryRequest::new(Some(&query), PAGE_ROWS) };
        engine.query(&of, &request)
    });
    let page = timeout(Duration::from_millis(TIME_MS.into()), answer)
        .await
        .map_err(|_| format!("The query took longer than {} seconds.", TIME_MS / 1000))?
        .map_err(|fault| fault.text)?;
    let millis = started.elapsed().as_secs_f64() * 1000.0;
    Ok(html! {
        (figures(&page, millis))
        (index_use(&page.index))
        (rows(owner, page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned())))
        @if let Some(token) = &page.continuation {
            form.pager method="post" action=(link(owner, "query")) {
                (csrf(visit))
                input type="hidden" name="sql" value=(text);
                input type="hidden" name="key" value=(visit.form.text("key").unwrap_or_default());
                input type="hidden" name="continuation" value=(token);
                button type="submit" { "Next page" }
            }
        }
    })
}

fn figures(page: &QueryPage, millis: f64) -> Markup {
    let metrics = &page.metrics;
    html! {
        dl.measures {
            div { dt { "Rows" } dd { (format::count(page.rows.len() as u64)) @if page.continuation.is_some() { " of more" } } }
            div { dt { "Charge" } dd { (page.charge) " RU" } }
            div { dt { "Time" } dd { (format!("{millis:.1}")) " ms" } }
            div { dt { "Items loaded" } dd { (format::count(metrics.loaded_items)) " · " (format::bytes(metrics.loaded_bytes)) } }
            div { dt { "Index entries" } dd { (format::count(metrics.index_entries)) } }
            div { dt { "Shown" } dd { (format::bytes(metrics.output_bytes)) } }
        }
    }
}

fn index_use(index: &IndexUse) -> Markup {
    let list = |name: &str, class: &str, paths: Vec<String>| {
        html! {
            @if !paths.is_empty() { p { (name) " " @for path in paths { code.(class) { (path) } " " } } }
        }
    };
    let composite = |all: &[Vec<String>]| all.iter().map(|paths| paths.join(", ")).collect::<Vec<_>>();
    let used = [index.utilized_single.clone(), composite(&index.utilized_composite)].concat();
    let wanted = [index.potential_single.clone(), composite(&index.potential_composite)].concat();
    html! {
        div.plan {
            @if used.is_empty() && wanted.is_empty() { p.faint { "No index helped, and none would have." } }
            (list("Index used:", "used", used))
            (list("An index would help:", "wanted", wanted))
        }
    }
}

async fn mongodb(visit: &Visit, owner: &Owner, collection: &Arc<Collection>) -> Result<Markup, String> {
    let find = find(visit, collection)?;
    let answer = visit.command(&collection.database, find.clone()).await?;
    let explain = Document::new().with("explain", asked(&find)).with("verbosity", "executionStats");
    let explained = visit.command(&collection.database, explain).await.ok();
    let cursor = answer.document.get("cursor").and_then(ValueRef::as_document);
    let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).and_then(ValueRef::as_array);
    let documents: Vec<String> = batch
        .map(|batch| batch.iter().map(|document| bson::to_extended_json(document, true)).collect())
        .unwrap_or_default();
    Ok(html! {
        dl.measures {
            div { dt { "Documents" } dd { (format::count(documents.len() as u64)) } }
            div { dt { "Charge" } dd { (format!("{:.2}", answer.request_units)) " RU" } }
            @if let Some(reply) = &explained { (execution(reply.document.view())) }
        }
        (rows(owner, documents.into_iter()))
        @if let Some(reply) = &explained {
            details.plan { summary { "Plan" } (json::coloured(&winning_plan(reply.document.view()))) }
        }
    })
}

/// Returns the query as a `find` of one batch.
fn find(visit: &Visit, collection: &Collection) -> Result<Document, String> {
    let mut find = Document::new().with("find", collection.name.as_str());
    for name in ["filter", "sort", "projection"] {
        let Some(text) = visit.form.filled(name) else { continue };
        let value = json::parse_extended(text).map_err(|mistake| match mistake.place {
            Some((line, column)) => format!("The {name}, line {line}, column {column}: {}", mistake.text),
            None => format!("The {name}: {}", mistake.text),
        })?;
        let Value::Document(document) = value else {
            return Err(format!("The {name} must be a JSON object."));
        };
        find.push(name, document);
    }
    let number = |name: &str, otherwise: i64| match visit.form.filled(name) {
        None => Ok(otherwise),
        Some(text) => text.parse::<i64>().map_err(|_| format!("The {name} must be a whole number.")),
    };
    let limit = number("limit", 50)?.clamp(1, LIMIT_MAX);
    find.push("limit", Value::Int64(limit));
    find.push("skip", Value::Int64(number("skip", 0)?.max(0)));
    find.push("batchSize", Value::Int64(limit));
    find.push("singleBatch", true);
    find.push("maxTimeMS", i32::from(TIME_MS));
    Ok(find)
}

/// Returns the query without the members that `explain` does not accept.
fn asked(find: &Document) -> Document {
    let members = find.iter().filter(|(name, _)| *name != "maxTimeMS");
    members.map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

fn execution(explained: DocumentRef<'_>) -> Markup {
    let stats = explained.get("executionStats").and_then(ValueRef::as_document);
    let number = |name: &str| stats.and_then(|stats| stats.get(name)).and_then(whole);
    html! {
        @for (name, field) in [("Documents examined", "totalDocsExamined"), ("Keys examined", "totalKeysExamined"), ("Time, ms", "executionTimeMillis")] {
            @if let Some(number) = number(field) { div { dt { (name) } dd { (format::count(number)) } } }
        }
        @if let Some(way) = way(explained) { div { dt { "Way" } dd { (way) } } }
    }
}

fn whole(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Int32(number) => u64::try_from(number).ok(),
        ValueRef::Int64(number) => u64::try_from(number).ok(),
        ValueRef::Double(number) if number >= 0.0 => Some(number as u64),
        _ => None,
    }
}

/// Returns the innermost stage of the plan, and its index.
fn way(explained: DocumentRef<'_>) -> Option<String> {
    let planner = explained.get("queryPlanner")?.as_document()?;
    let mut stage = planner.get("winningPlan")?.as_document()?;
    while let Some(inner) = stage.get("inputStage").and_then(ValueRef::as_document) {
        stage = inner;
    }
    let name = stage.get("stage")?.as_str()?;
    Some(match stage.get("indexName").and_then(ValueRef::as_str) {
        Some(index) => format!("{name} {index}"),
        None => name.to_owned(),
    })
}

fn winning_plan(explained: DocumentRef<'_>) -> String {
    let planner = explained.get("queryPlanner").and_then(ValueRef::as_document);
    let plan = planner.and_then(|planner| planner.get("winningPlan"));
    plan.map(|plan| bson::to_extended_json(plan, true)).unwrap_or_default()
}

/// Formats the rows of an answer, with links to items.
fn rows(owner: &Owner, rows: impl Iterator<Item = String>) -> Markup {
    html! {
        ol.rows {
            @for row in rows {
                li data-row {
                    @if let Some(number) = number_of(owner, &row) {
                        a.open href=(link(owner, &format!("item/{number}"))) { "Open" }
                    }
                    (json::coloured(&row))
                }
            }
        }
    }
}

/// Returns the number of the item in a row, if the row is one.
fn number_of(owner: &Owner, row: &str) -> Option<u64> {
    let Owner::Container(container) = owner else { return None };
    let value = document::parse_json(row.as_bytes()).ok()?;
    let rid = value.get("_rid")?.as_str()?.parse::<ItemRid>().ok()?;
    (rid.container == container.rid).then_some(rid.number)
}
