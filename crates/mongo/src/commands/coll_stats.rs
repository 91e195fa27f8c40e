//! `collStats`: sizes of a collection, of living documents only (T18).

use bson::Document;

use crate::access::catalog;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::statements::describe::storage_figures;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["collStats", "collstats", "scale", "waitForLock", "numericOnly"])?;
    let namespace = call.namespace()?;
    let scale = fields.integer("scale")?.unwrap_or(1);
    if scale < 1 {
        return Err(Error::location(
            51024,
            format!("BSON field 'scale' value must be >= 1, actual value '{scale}'"),
        ));
    }
    let reply = Document::new().with("ns", namespace.as_str());
    let Some(collection) = catalog::find(&call.engine, &call.database, call.collection()?)? else {
        return Ok(append(reply, empty(scale)).into());
    };
    catalog::refuse_view(&collection)?;
    let figures = call.blocking(|| {
        call.executor.read(&[&collection], |reading| storage_figures(reading, &collection, scale))
    })?;
    Ok(append(reply, figures).into())
}

fn append(mut reply: Document, figures: Document) -> Document {
    reply.fields_mut().extend(figures);
    reply
}

/// Returns the figures of a collection that does not exist.
fn empty(scale: i64) -> Document {
    let mut figures = Document::new();
    for name in
        ["size", "count", "numOrphanDocs", "storageSize", "freeStorageSize", "totalIndexSize", "totalSize"]
    {
        figures.push(name, 0);
    }
    figures
        .with("capped", false)
        .with("nindexes", 0)
        .with("indexSizes", Document::new())
        .with("scaleFactor", scale as i32)
}
