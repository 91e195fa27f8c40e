//! `dropIndexes`.

use bson::{Document, ValueRef};
use engine::collection::{CollectionIndex, IndexList};
use mql::Code;

use crate::access::catalog;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["dropIndexes", "deleteIndexes", "index"])?;
    let name = call.collection()?;
    catalog::refuse_system(&call.database, name)?;
    let Some(collection) = catalog::find(&call.engine, &call.database, name)? else {
        let text = format!("ns not found {}.{name}", call.database);
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, text));
    };
    catalog::refuse_view(&collection)?;
    let list = collection.indexes();
    let killed = killed(&list, fields.required("index", fields.value("index"))?)?;
    let before = list.iter().count();
    call.engine.drop_indexes(&collection, &killed)?;
    let reply = Document::new().with("nIndexesWas", before as i32);
    if matches!(fields.value("index"), Some(ValueRef::String("*"))) {
        return Ok(reply.with("msg", "non-_id indexes dropped for collection").into());
    }
    Ok(reply.into())
}

/// Returns the numbers of the indexes that are meant.
fn killed(list: &IndexList, which: ValueRef<'_>) -> Result<Vec<u32>> {
    match which {
        ValueRef::String("*") => {
            Ok(list.iter().filter(|index| !index.spec.is_id()).map(|index| index.number).collect())
        }
        ValueRef::String(name) => Ok(vec![droppable(named(list, name)?)?]),
        ValueRef::Document(key) => Ok(vec![droppable(by_key(list, key)?)?]),
        ValueRef::Array(names) => names
            .iter()
            .map(|name| match name {
                ValueRef::String(name) => droppable(named(list, name)?),
                _ => {
                    Err(Error::new(Code::TYPE_MISMATCH, "dropIndexes takes the names of indexes as strings"))
                }
            })
            .collect(),
        other => Err(Error::new(
            Code::TYPE_MISMATCH,
            format!("dropIndexes takes a name, a key or a list of names, not {}", other.kind().alias()),
        )),
    }
}

fn droppable(index: &CollectionIndex) -> Result<u32> {
    if index.spec.is_id() {
        return Err(Error::new(Code::INVALID_OPTIONS, "cannot drop _id index"));
    }
    Ok(index.number)
}

fn named<'a>(list: &'a IndexList, name: &str) -> Result<&'a CollectionIndex> {
    list.named(name)
        .ok_or_else(|| Error::new(Code::INDEX_NOT_FOUND, format!("index not found with name [{name}]")))
}

/// Returns the one index with that key.
pub(super) fn by_key<'a>(list: &'a IndexList, key: bson::DocumentRef<'_>) -> Result<&'a CollectionIndex> {
    let wanted = ValueRef::Document(key);
    let mut found =
        list.iter().filter(|index| bson::equal(ValueRef::Document(index.spec.key_pattern().view()), wanted));
    let shown = || bson::shell_text(wanted);
    let first = found.next().ok_or_else(|| {
        Error::new(Code::INDEX_NOT_FOUND, format!("can't find index with key: {}", shown()))
    })?;
    if found.next().is_some() {
        let text = format!("{} matches several indexes; use the name of one", shown());
        return Err(Error::new(Code::AMBIGUOUS_INDEX_KEY_PATTERN, text));
    }
    Ok(first)
}
