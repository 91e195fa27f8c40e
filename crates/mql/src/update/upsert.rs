//! The document that an upsert inserts when its filter finds none.
//!
//! It begins with the values that the filter requires by equality, so that the filter would have found the new document,
//! and is then updated like any other. A replacement takes only the `_id` from the filter.

use bson::{Document, ObjectId, RawDocument, Value, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::filter::Filter;
use crate::path::FieldPath;
use crate::update::Update;
use crate::update::document::{check_depth, check_id, check_size, with_id_first};

/// Returns the document to insert, `_id` first.
pub fn upsert_document(
    filter: &Filter,
    update: &Update,
    context: &Context,
    make_id: &mut dyn FnMut() -> ObjectId,
) -> Result<RawDocument> {
    let mut equalities = distinct(filter.equalities(), context)?;
    if update.is_replacement() {
        equalities.retain(|(path, _)| path.len() == 1 && path.first() == "_id");
    }
    let mut seed = Document::new();
    for (path, value) in equalities {
        let names: Vec<&str> = path.names().collect();
        put(&mut seed, &names, value);
    }
    for (_, value) in seed.iter() {
        check_depth(value.view())?;
    }
    let seed = RawDocument::from_document(&seed);
    let document = update.apply(&seed, None, true, context)?.unwrap_or(seed);
    let document = with_id_first(&document, make_id, None)?;
    document.get("_id").map_or(Ok(()), check_id)?;
    check_size(&document, true)?;
    Ok(document)
}

/// Returns the equalities without repetitions; an error if two of them require different values of one field.
fn distinct<'f>(
    mut equalities: Vec<(&'f FieldPath, ValueRef<'f>)>,
    context: &Context,
) -> Result<Vec<(&'f FieldPath, ValueRef<'f>)>> {
    context.spend(equalities.len() as u64)?;
    let conflict = |message: String| {
        Err(Error::new(Code::NOT_SINGLE_VALUE_FIELD, format!("cannot infer query fields to set, {message}")))
    };
    // In the order of paths, conflicting ones are neighbours: a path comes right before those below it.
    let mut order: Vec<usize> = (0..equalities.len()).collect();
    order.sort_by_key(|position| equalities[*position].0);
    let mut keep = vec![true; equalities.len()];
    for pair in order.windows(2) {
        let ((one, value), (other, other_value)) = (equalities[pair[0]], equalities[pair[1]]);
        if one == other {
            if !bson::equal(value, other_value) {
                return conflict(format!("path '{one}' is matched twice"));
            }
            keep[pair[1]] = false;
        } else if one.is_prefix_of(other) {
            return conflict(format!("both paths '{one}' and '{other}' are matched"));
        }
    }
    let mut keep = keep.into_iter();
    equalities.retain(|_| keep.next().unwrap_or(true));
    Ok(equalities)
}

/// Sets a value at a path, and creates the documents on the way. There can be nothing but documents on it.
fn put(document: &mut Document, names: &[&str], value: ValueRef<'_>) {
    let Some((name, rest)) = names.split_first() else { return };
    if rest.is_empty() {
        document.push(*name, value.to_value());
        return;
    }
    if !document.contains(name) {
        document.push(*name, Document::new());
    }
    if let Some(Value::Document(inner)) = document.get_mut(name) {
        put(inner, rest, value);
    }
}
