//! Creates a container or collection, and its database if it does not exist.

use bson::{Document, Value};
use engine::{ContainerDefinition, DefaultTtl, Engine, Error};
use hyper::StatusCode;
use maud::{Markup, html};

use crate::fields::{Fields, encode};
use crate::pages::ttl_fields;
use crate::visit::Visit;
use crate::visit::answer::{Answer, Fault};
use crate::visit::layout::{self, csrf};

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let inner = form(visit, &Fields::default(), DefaultTtl::Seconds(3600), None);
    visit.show("New container", None, &inner).await
}

fn form(visit: &Visit, typed: &Fields, ttl: DefaultTtl, wrong: Option<&str>) -> Markup {
    let value = |name: &str| typed.text(name).unwrap_or_default().to_owned();
    let databases =
        visit.backends.engine.databases().into_iter().chain(visit.backends.engine.collection_databases());
    let is_mongodb = typed.text("api") == Some("mongodb");
    html! {
        h1 { "New container" }
        @if let Some(wrong) = wrong { p.refusal role="alert" { (wrong) } }
        @if !visit.may_write() { p.faint { "You are signed in with a read-only key." } }
        form.card.stack method="post" {
            (csrf(visit))
            fieldset {
                legend { "API" }
                label { input type="radio" name="api" value="nosql" checked[!is_mongodb]; " NoSQL container" }
                label { input type="radio" name="api" value="mongodb" checked[is_mongodb] disabled[visit.backends.shell.is_none()]; " MongoDB collection" }
            }
            label { "Database" input type="text" name="database" required value=(value("database")) list="databases" autofocus spellcheck="false"; }
            datalist #databases { @for database in databases { option value=(database.name) {} } }
            label { "Name" input type="text" name="name" required value=(value("name")) spellcheck="false"; }
            label { "Partition key path " span.faint { "(NoSQL)" }
                input type="text" name="key" value=(typed.text("key").unwrap_or("/id")) spellcheck="false"; }
            (ttl_fields::fields(ttl))
            label { "Keep all versions and deletes for " span.faint { "(minutes; empty keeps the latest versions only)" }
                input type="number" name="history" min="1" max="1440" value=(value("history")); }
            div.row { button.primary type="submit" { "Create" } }
        }
    }
}

pub(crate) async fn create(visit: &Visit) -> Result<Answer, Fault> {
    let made = match ttl_fields::read(&visit.form) {
        Ok(ttl) if visit.form.text("api") == Some("mongodb") => {
            collection(visit, ttl).await.map(|()| "mongodb")
        }
        Ok(ttl) => container(visit, ttl).await.map(|()| "nosql"),
        Err(text) => Err(text),
    };
    let text = |name| visit.form.filled(name).unwrap_or_default();
    match made {
        Ok(api) => {
            let (database, name) = (encode(text("database")), encode(text("name")));
            Ok(Answer::See(format!("/_explorer/c/{api}/{database}/{name}?said=created")))
        }
        Err(wrong) => {
            let ttl = ttl_fields::read(&visit.form).unwrap_or_default();
            let inner = form(visit, &visit.form, ttl, Some(&wrong));
            let markup = layout::frame(visit, "New container", None, &inner).await?;
            Ok(Answer::Page { status: StatusCode::BAD_REQUEST, markup })
        }
    }
}

/// Returns the settings of a new container, for the audit log.
pub(crate) fn settings(form: &Fields) -> document::Object {
    let mut settings = ttl_fields::settings(form);
    if let Some(minutes) = history(form).ok().flatten() {
        settings.insert("historyMinutes", minutes);
    }
    settings
}

fn history(form: &Fields) -> Result<Option<i64>, String> {
    let minutes =
        form.filled("history").map(|text| text.parse::<i64>().ok().filter(|it| (1..=1440).contains(it)));
    match minutes {
        None => Ok(None),
        Some(None) => Err("All versions are kept for 1 to 1440 minutes.".to_owned()),
        Some(minutes) => Ok(minutes),
    }
}

async fn container(visit: &Visit, ttl: DefaultTtl) -> Result<(), String> {
    let text = |name| visit.form.filled(name).unwrap_or_default();
    let mut definition = document::Object::new();
    definition.insert("id", text("name"));
    let paths = text("key")
        .split(',')
        .map(|path| document::Value::String(path.trim().to_owned()))
        .collect::<Vec<_>>();
    let mut key = document::Object::new();
    key.insert("kind", if paths.len() > 1 { "MultiHash" } else { "Hash" });
    key.insert("version", document::Value::Int(2));
    key.insert("paths", document::Value::Array(paths));
    definition.insert("partitionKey", document::Value::Object(key));
    if let Some(ttl) = ttl.to_member() {
        definition.insert("defaultTtl", ttl);
    }
    if let Some(minutes) = history(&visit.form)? {
        let mut policy = document::Object::new();
        policy.insert("retentionDuration", document::Value::Int(minutes));
        definition.insert("changeFeedPolicy", document::Value::Object(policy));
    }
    let definition = ContainerDefinition::from_value(&document::Value::Object(definition))
        .map_err(|error| error.to_string())?;
    let database = text("database").to_owned();
    let make = move |engine: &Engine| {
        let database = match engine.create_database(&database, None) {
            Err(Error::Exists { .. }) => engine.database(&database)?,
            made => made?,
        };
        engine.create_container(&database, definition, None)
    };
    visit.engine(make).await.map(drop).map_err(|fault| fault.text)
}

async fn collection(visit: &Visit, ttl: DefaultTtl) -> Result<(), String> {
    let text = |name| visit.form.filled(name).unwrap_or_default().to_owned();
    let (database, name) = (text("database"), text("name"));
    let minutes = history(&visit.form)?;
    visit.command(&database, Document::new().with("create", name.as_str())).await?;
    set_ttl(visit, &database, &name, DefaultTtl::Off, ttl, false).await?;
    if let Some(minutes) = minutes {
        let keep = move |engine: &Engine| {
            let owner = engine.owner(engine::Api::MongoDb, &database, &name)?;
            let minutes = u32::try_from(minutes).ok();
            engine.change_lifecycle(&owner, |lifecycle| lifecycle.history_minutes = minutes)
        };
        visit.engine(keep).await.map_err(|fault| fault.text)?;
    }
    Ok(())
}

/// Sets the default time to live of a collection: the TTL index on `_ts` (T26).
pub(crate) async fn set_ttl(
    visit: &Visit,
    database: &str,
    name: &str,
    from: DefaultTtl,
    to: DefaultTtl,
    consent: bool,
) -> Result<(), String> {
    let key = || Document::new().with("_ts", 1);
    let seconds = match to {
        DefaultTtl::Off => None,
        DefaultTtl::Never => Some(Value::Int32(-1)),
        DefaultTtl::Seconds(seconds) => Some(Value::Int64(seconds.into())),
    };
    let mut command = match (from, seconds) {
        (DefaultTtl::Off, None) => return Ok(()),
        (_, None) => Document::new().with("dropIndexes", name).with("index", key()),
        (DefaultTtl::Off, Some(seconds)) => {
            let index =
                Document::new().with("key", key()).with("name", "_ts_1").with("expireAfterSeconds", seconds);
            Document::new().with("createIndexes", name).with("indexes", Value::Array(vec![index.into()]))
        }
        (_, Some(seconds)) => {
            let index = Document::new().with("keyPattern", key()).with("expireAfterSeconds", seconds);
            Document::new().with("collMod", name).with("index", index)
        }
    };
    if consent && to != DefaultTtl::Off {
        command.push("bolideConfirmExpiry", true);
    }
    visit.command(database, command).await.map(drop)
}
