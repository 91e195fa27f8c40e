//! `listIndexes`.

use bson::{Document, RawDocument};

use crate::access::catalog;
use crate::protocol::error::Result;
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::statements::cursor_reply::{self, Opening};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["listIndexes", "cursor", "includeBuildUUIDs", "includeIndexBuildInfo"])?;
    let namespace = call.namespace()?;
    let collection = catalog::existing(&call.engine, &call.database, call.collection()?)?;
    catalog::refuse_view(&collection)?;
    let entries = collection
        .indexes()
        .iter()
        .map(|index| RawDocument::from_document(&index.spec.to_document()))
        .collect();
    let none = Document::new();
    let cursor = fields.document("cursor")?.unwrap_or(none.view());
    let size = Fields::new("listIndexes.cursor", cursor).count("batchSize")?;
    let opening = Opening {
        namespace: &namespace,
        batch_size: size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)),
        single_batch: false,
        keep: false,
    };
    cursor_reply::list(call, entries, &opening)
}
