//! `find`, `ids`, `project`, `sort`: which documents match, their projections, their order.

use bson::{Document, RawDocument, Value};
use mql::filter::Filter;
use mql::projection::{Beside, Projection};
use mql::sort::Sort;

use super::{context, document, settings};
use crate::script::{Answer, State};

fn matching(state: &State, filter: &Document, options: &Document) -> mql::Result<Vec<RawDocument>> {
    let filter = Filter::parse(filter.view(), &settings(options))?;
    let context = context();
    let mut found = Vec::new();
    for document in &state.documents {
        let matches = filter.matches(document.view(), &context)?;
        let tree = document.to_document();
        assert_eq!(filter.matches(tree.view(), &context)?, matches, "bytes and tree: {document:?}");
        if matches {
            found.push(document.clone());
        }
    }
    Ok(found)
}

/// `find {filter} [{options}]`: the documents that match.
pub(crate) fn find(state: &mut State, arguments: &[Value]) -> Answer {
    let found = matching(state, &document(arguments, 0), &document(arguments, 1))?;
    Ok(found.iter().map(|document| Value::Document(document.to_document())).collect())
}

/// `ids {filter} [{options}]`: the ids of the documents that match, as one array.
pub(crate) fn ids(state: &mut State, arguments: &[Value]) -> Answer {
    let found = matching(state, &document(arguments, 0), &document(arguments, 1))?;
    Ok(vec![Value::Array(found.iter().map(id).collect())])
}

/// `project {projection} [{filter}] [{options}]`: the projections of the documents that match.
pub(crate) fn project(state: &mut State, arguments: &[Value]) -> Answer {
    let options = document(arguments, 2);
    let projection = Projection::parse(document(arguments, 0).view(), &settings(&options))?;
    let filter = Filter::parse(document(arguments, 1).view(), &settings(&options))?;
    let meta = options.get("meta").and_then(Value::as_document);
    let context = context();
    let mut shown = Vec::new();
    for document in &state.documents {
        if filter.matches(document.view(), &context)? {
            let beside = Beside { filter: Some(&filter), meta };
            shown.push(Value::Document(projection.apply(document.view(), beside, &context)?));
        }
    }
    Ok(shown)
}

/// `sort {sort} [{options}]`: the ids of all documents in that order, as one array.
pub(crate) fn sort(state: &mut State, arguments: &[Value]) -> Answer {
    let sort = Sort::parse(document(arguments, 0).view())?;
    let collation = settings(&document(arguments, 1)).collation;
    let context = context();
    let mut keyed = Vec::new();
    for document in &state.documents {
        // A document's own `meta` stands for its metadata.
        let tree = document.to_document();
        let meta = tree.get("meta").and_then(Value::as_document);
        keyed.push((sort.key(document.view(), &collation, meta, &context)?, id(document)));
    }
    keyed.sort_by(|(left, _), (right, _)| sort.compare(left, right));
    Ok(vec![Value::Array(keyed.into_iter().map(|(_, id)| id).collect())])
}

fn id(document: &RawDocument) -> Value {
    document.get("_id").map_or(Value::Null, bson::ValueRef::to_value)
}
