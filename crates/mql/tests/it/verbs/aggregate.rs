//! `aggregate [stages] [{options}]`: the rows of a pipeline. `collection "name"`: the current contents of a collection.

use bson::{Document, Value};
use mql::pipeline::Settings;

use super::{context, document};
use crate::pipeline::{LEADING, run, settings};
use crate::script::{Answer, State};

/// The documents of `docs` blocks are the leading collection, those of `docs name` blocks others.
pub(crate) fn aggregate(state: &mut State, arguments: &[Value]) -> Answer {
    let Some(Value::Array(stages)) = arguments.first() else { panic!("no pipeline") };
    let stages: Vec<Document> = stages.iter().map(|stage| stage.as_document().unwrap().clone()).collect();
    let options = document(arguments, 1);
    let read = super::settings(&options);
    let mut settings =
        Settings { collation: read.collation, variables: read.variables, text: read.text, ..settings() };
    state.memory.text.clone_from(&settings.text);
    if options.contains("collectionless") {
        settings.collection = None;
    }
    state.memory.collections.insert(LEADING.to_owned(), state.documents.clone());
    let mut served = state.memory.clone();
    served.serves_sorts = true;
    let rows = run(&stages, &settings, &mut state.memory, &context());
    if settings.collation.is_simple() {
        let also = run(&stages, &settings, &mut served, &context());
        assert_eq!(rows.is_err(), also.is_err(), "with an index for the sort");
    }
    Ok(rows?.into_iter().map(|row| Value::Document(row.body.into_tree())).collect())
}

#[expect(clippy::unnecessary_wraps, reason = "the verbs have one signature")]
pub(crate) fn collection(state: &mut State, arguments: &[Value]) -> Answer {
    let name = arguments[0].as_str().unwrap();
    let documents = state.memory.collections.get(name).cloned().unwrap_or_default();
    Ok(documents.iter().map(|document| Value::Document(document.to_document())).collect())
}
