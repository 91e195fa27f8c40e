//! `listCollections`.

use bson::{Document, RawDocument};
use mql::filter::{Filter, Settings};

use crate::access::catalog;
use crate::protocol::error::Result;
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::statements::cursor_reply::{self, Opening};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&[
        "listCollections",
        "filter",
        "nameOnly",
        "authorizedCollections",
        "cursor",
        "includePendingDrops",
    ])?;
    let none = Document::new();
    let filter = Filter::parse(fields.document("filter")?.unwrap_or(none.view()), &Settings::default())?;
    let name_only = fields.is_set("nameOnly")?;
    let entries = call.blocking(|| entries(call, &filter, name_only))?;
    let cursor = fields.document("cursor")?.unwrap_or(none.view());
    let size = Fields::new("listCollections.cursor", cursor).count("batchSize")?;
    let namespace = format!("{}.$cmd.listCollections", call.database);
    let opening = Opening {
        namespace: &namespace,
        batch_size: size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)),
        single_batch: false,
        keep: false,
    };
    cursor_reply::list(call, entries, &opening)
}

/// Returns the collections that match a filter. It may ask for what `nameOnly` leaves out.
fn entries(call: &Call, filter: &Filter, name_only: bool) -> Result<Vec<RawDocument>> {
    let context = call.context();
    let mut entries = Vec::new();
    for collection in call.engine.collections(&call.database) {
        if filter.matches(catalog::describe(&collection, false).view(), &context)? {
            entries.push(RawDocument::from_document(&catalog::describe(&collection, name_only)));
        }
    }
    Ok(entries)
}
