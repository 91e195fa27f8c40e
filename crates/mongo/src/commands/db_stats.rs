//! `dbStats`: sizes of a database, of living documents only (T18).

use std::sync::Arc;

use bson::Document;
use engine::collection::Collection;

use crate::access::catalog;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["dbStats", "dbstats", "scale", "freeStorage"])?;
    let scale = fields.integer("scale")?.unwrap_or(1);
    if scale < 1 {
        return Err(Error::location(
            51024,
            format!("BSON field 'scale' value must be >= 1, actual value '{scale}'"),
        ));
    }
    let (views, collections): (Vec<_>, Vec<_>) = catalog::readable(&call.engine, &call.database)
        .into_iter()
        .partition(|it| catalog::view(it).is_some());
    let handles: Vec<&Arc<Collection>> = collections.iter().collect();
    let (mut items, mut bytes, mut indexes, mut index_bytes) = (0, 0, 0, 0);
    call.blocking(|| {
        call.executor.read(&handles, |reading| {
            for collection in &collections {
                let living = reading.usage(collection)?.living;
                items += living.items;
                bytes += living.bytes;
                for usage in reading.index_usage(collection)? {
                    indexes += 1;
                    index_bytes += usage.bytes;
                }
            }
            Ok(())
        })
    })?;
    let scaled = |bytes: u64| bytes as f64 / scale as f64;
    let average = if items == 0 { 0.0 } else { bytes as f64 / items as f64 };
    Ok(Document::new()
        .with("db", call.database.as_str())
        .with("collections", collections.len() as i64)
        .with("views", views.len() as i64)
        .with("objects", items as i64)
        .with("avgObjSize", average)
        .with("dataSize", scaled(bytes))
        .with("storageSize", scaled(bytes))
        .with("freeStorageSize", 0.0)
        .with("indexes", i64::from(indexes))
        .with("indexSize", scaled(index_bytes))
        .with("indexFreeStorageSize", 0.0)
        .with("totalSize", scaled(bytes + index_bytes))
        .with("totalFreeStorageSize", 0.0)
        .with("scaleFactor", scale)
        .with("fsUsedSize", scaled(bytes + index_bytes))
        .with("fsTotalSize", scaled(bytes + index_bytes))
        .into())
}
