//! `update <filter> <update> [<array filters>]`: each matching document after the update; `"same"` if nothing changes.
//! `upsert <filter> <update> [<array filters>]`: the document inserted if none matches.

use bson::{DocumentRef, ObjectId, Value};
use mql::filter::{Filter, Settings};
use mql::update::{Update, upsert_document};
use mql::{Error, Result};

use crate::script::{Answer, State};
use crate::verbs::context;

pub(crate) fn update(state: &mut State, arguments: &[Value]) -> Answer {
    let (filter, update) = parse(arguments)?;
    let mut answers = Vec::new();
    for document in &state.documents {
        let context = context();
        if filter.matches(document.view(), &context)? {
            answers.push(match update.apply(document, Some(&filter), false, &context)? {
                Some(after) => Value::Document(after.to_document()),
                None => "same".into(),
            });
        }
    }
    Ok(answers)
}

pub(crate) fn upsert(_: &mut State, arguments: &[Value]) -> Answer {
    let (filter, update) = parse(arguments)?;
    let mut ids = 0;
    let mut make_id = || {
        ids += 1;
        ObjectId::from_parts(0, [0; 5], ids)
    };
    let document = upsert_document(&filter, &update, &context(), &mut make_id)?;
    Ok(vec![Value::Document(document.to_document())])
}

fn parse(arguments: &[Value]) -> Result<(Filter, Update)> {
    let [filter, update, array_filters @ ..] = arguments else {
        return Err(Error::bad_value("a filter and an update are needed"));
    };
    let filter = filter.as_document().ok_or_else(|| Error::bad_value("the filter is no document"))?;
    let array_filters = array_filters.first().and_then(Value::as_array).unwrap_or_default();
    let array_filters: Vec<DocumentRef<'_>> =
        array_filters.iter().filter_map(|filter| filter.view().as_document()).collect();
    let settings = Settings::default();
    Ok((Filter::parse(filter.view(), &settings)?, Update::parse(update.view(), &array_filters, &settings)?))
}
