//! `count`.

use bson::{Document, Value};

use crate::call::Call;
use crate::catalog;
use crate::error::Result;
use crate::matching;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["count", "query", "limit", "skip", "hint", "collation", "fields"])?;
    let skip = fields.count("skip")?.unwrap_or(0);
    // A negative limit means the same as a positive one, as it did in the first protocol.
    let limit = fields.integer("limit")?.map(i64::unsigned_abs).filter(|limit| *limit > 0);
    let everything = fields.document("query")?.is_none_or(bson::DocumentRef::is_empty);
    let collection = call.engine.collection(&call.database, call.collection()?);
    let hinted = fields.value("hint").is_some();
    let whole = collection.filter(|it| everything && !hinted && catalog::view(it).is_none());
    let all = if let Some(collection) = whole {
        call.room.read(&[&collection], |reading| Ok(reading.usage(&collection)?.living.items))?
    } else {
        let mut count = 0;
        call.blocking(|| {
            matching::each(call, fields, "query", |_| {
                count += 1;
                Ok(())
            })
        })?;
        count
    };
    let counted = all.saturating_sub(skip).min(limit.unwrap_or(u64::MAX));
    let counted = i32::try_from(counted).map_or(Value::Int64(counted as i64), Value::Int32);
    Ok(Document::new().with("n", counted).into())
}
