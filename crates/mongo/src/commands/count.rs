//! `count`.

use bson::{Document, Value};

use crate::access::catalog;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::statements::matching;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["count", "query", "limit", "skip", "hint", "collation", "fields"])?;
    let skip = fields.count("skip")?.unwrap_or(0);
    // A negative limit means the same as a positive one, as it did in the first protocol.
    let limit = fields.integer("limit")?.map(i64::unsigned_abs).filter(|limit| *limit > 0);
    let everything = fields.document("query")?.is_none_or(bson::DocumentRef::is_empty);
    let collection = catalog::find(&call.engine, &call.database, call.collection()?)?;
    let hinted = fields.value("hint").is_some();
    let all = match collection.filter(|it| catalog::view(it).is_none()) {
        Some(collection) if everything && !hinted => {
            call.executor.read(&[&collection], |reading| Ok(reading.usage(&collection)?.living.items))?
        }
        // A scan offloads itself if it turns out long.
        Some(_) if !call.executor.is_transaction() => matching::count(call, fields, "query")?,
        _ => call.blocking(|| matching::count(call, fields, "query"))?,
    };
    let counted = all.saturating_sub(skip).min(limit.unwrap_or(u64::MAX));
    let counted = i32::try_from(counted).map_or(Value::Int64(counted as i64), Value::Int32);
    Ok(Document::new().with("n", counted).into())
}
