//! `listDatabases`.

use bson::{Document, Value};
use mql::filter::{Filter, Settings};

use crate::access::catalog;
use crate::protocol::error::Result;
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::rights::{Action, Privilege};
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["listDatabases", "nameOnly", "filter", "authorizedDatabases"])?;
    let name_only = fields.is_set("nameOnly")?;
    let none = Document::new();
    let filter = Filter::parse(fields.document("filter")?.unwrap_or(none.view()), &Settings::default())?;
    let (databases, total) = call.blocking(|| list(call, fields, &filter, name_only))?;
    let reply = Document::new().with("databases", databases);
    if name_only {
        return Ok(reply.into());
    }
    Ok(reply.with("totalSize", total as i64).with("totalSizeMb", (total >> 20) as i64).into())
}

/// Returns the databases that the client may see and that match its filter, and the bytes in them.
fn list(call: &Call, fields: Fields<'_>, filter: &Filter, name_only: bool) -> Result<(Vec<Value>, u64)> {
    let context = call.context();
    let (mut databases, mut total) = (Vec::new(), 0);
    // A client that may not see all of them sees those that it may read.
    let all = call.rights.allow(&Privilege::cluster(Action::ListDatabases))
        && !fields.is_set("authorizedDatabases")?;
    for database in call.engine.collection_databases() {
        if !all && !call.rights.allow(&Privilege::on(&database.name, Action::Find)) {
            continue;
        }
        let is_empty = call.engine.collections(&database.name).is_empty();
        let collections = catalog::readable(&call.engine, &database.name);
        let handles: Vec<_> = collections.iter().collect();
        let reading = call.engine.reading(&handles)?;
        let mut bytes = 0;
        for collection in &collections {
            bytes += reading.usage(collection)?.living.bytes;
        }
        let entry = Document::new()
            .with("name", database.name.as_str())
            .with("sizeOnDisk", bytes as i64)
            .with("empty", is_empty);
        if filter.matches(entry.view(), &context)? {
            total += bytes;
            let shown = if name_only { Document::new().with("name", database.name.as_str()) } else { entry };
            databases.push(Value::Document(shown));
        }
    }
    Ok((databases, total))
}
