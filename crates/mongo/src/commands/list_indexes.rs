//! `listIndexes`.

use bson::{Document, RawDocument};

use crate::call::Call;
use crate::catalog;
use crate::cursor_reply::{self, Opening};
use crate::error::Result;
use crate::fields::Fields;
use crate::reply::Reply;

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
