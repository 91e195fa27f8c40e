//! `distinct`.

use std::collections::BTreeMap;

use bson::{Document, RawDocument, Value, ValueRef};
use mql::Code;
use mql::path::{Arrays, FieldPath};

use crate::access::catalog;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::statements;
use crate::statements::matching;

/// The largest answer: it is one document.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["distinct", "key", "query", "collation", "hint"])?;
    let path = FieldPath::parse(fields.required("key", fields.text("key")?)?)?;
    let name = call.collection()?;
    let collection = catalog::find(&call.engine, &call.database, name)?;
    let settings = statements::language(call, fields, name, collection.as_deref())?;
    // By their ordered keys, so that numbers of different types that are equal, and strings that the collation calls equal,
    // are one.
    let context = call.context();
    let (mut values, mut bytes) = (BTreeMap::<Vec<u8>, Value>::new(), 0);
    call.blocking(|| {
        matching::each(call, fields, "query", |document| {
            let mut found = Vec::new();
            path.any(document, Arrays::Whole, &context, &mut |leaf| {
                match leaf.value {
                    Some(ValueRef::Array(items)) => found.extend(items.iter()),
                    value => found.extend(value),
                }
                Ok(false)
            })?;
            for value in found {
                let mut key = Vec::new();
                bson::encode_key(value, &settings.collation, &mut key);
                if values.contains_key(&key) {
                    continue;
                }
                // A long key is cut, so the value decides how long the answer grows.
                let shown = RawDocument::from_document(&Document::new().with("value", value.to_value()));
                bytes += shown.as_bytes().len();
                if bytes > ANSWER_BYTES_MAX {
                    let text = "distinct too big, 16mb cap";
                    return Err(Error::new(Code(17217), text));
                }
                values.insert(key, value.to_value());
            }
            Ok(())
        })
    })?;
    Ok(Document::new().with("values", values.into_values().collect::<Vec<_>>()).into())
}
