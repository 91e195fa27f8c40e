//! The stages after a `$changeStream`: each maps an event to a document or drops it.

use bson::{Document, RawDocument};
use std::sync::Arc;

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::filter::Filter;
use crate::pipeline::chain::{Chain, ExecutionContext, Flow, Step};
use crate::pipeline::merge::Merge;
use crate::pipeline::row::Row;
use crate::pipeline::source::{Description, Namespace, Order, Scan, ScanId, Source};
use crate::text::TextRules;

/// The stages that process the events of a change stream. It is kept in a cursor between two requests.
pub struct EventPipeline {
    chain: Chain,
}

impl std::fmt::Debug for EventPipeline {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("EventPipeline").finish_non_exhaustive()
    }
}

impl EventPipeline {
    pub(super) fn new(chain: Chain) -> EventPipeline {
        EventPipeline { chain }
    }

    /// Processes an event; returns none if a stage drops it.
    pub fn pass(&mut self, event: Document, context: &Context) -> Result<Option<RawDocument>> {
        let mut nowhere = NoSource;
        let mut execution = ExecutionContext { source: &mut nowhere, context };
        // Rows are pushed only into steps that want one.
        if let Flow::Wanting = self.chain.pop(&mut execution)? {
            self.chain.push(Row::from(event), &mut execution)?;
        }
        match self.chain.pop(&mut execution)? {
            Flow::Row(row) => Ok(Some(row.body.into_raw())),
            Flow::Wanting | Flow::End => Ok(None),
        }
    }
}

/// A source without collections: the stages after a `$changeStream` read none.
struct NoSource;

impl NoSource {
    fn refuse<T>() -> Result<T> {
        Err(Error::new(
            Code::ILLEGAL_OPERATION,
            "a stage behind $changeStream cannot read or write collections",
        ))
    }
}

impl Source for NoSource {
    fn open(&mut self, _: &Scan) -> Result<(ScanId, Order)> {
        NoSource::refuse()
    }

    fn next(&mut self, _: ScanId) -> Result<Option<Row>> {
        NoSource::refuse()
    }

    fn close(&mut self, _: ScanId) {}

    fn is_served(&mut self, _: &Namespace, _: &Filter) -> Result<bool> {
        NoSource::refuse()
    }

    fn geospatial_field(&mut self, _: &Namespace) -> Result<String> {
        NoSource::refuse()
    }

    fn text_rules(&mut self, _: &Namespace) -> Result<Option<Arc<TextRules>>> {
        NoSource::refuse()
    }

    fn describe(&mut self, _: &Namespace, _: &Description) -> Result<Vec<Document>> {
        NoSource::refuse()
    }

    fn stage_documents(&mut self, _: &Namespace, _: Vec<RawDocument>) -> Result<()> {
        NoSource::refuse()
    }

    fn replace_collection(&mut self, _: &Namespace) -> Result<()> {
        NoSource::refuse()
    }

    fn merge(&mut self, _: &Arc<Merge>, _: RawDocument, _: &Context) -> Result<()> {
        NoSource::refuse()
    }
}

#[cfg(test)]
mod tests {
    use crate::context::Context;
    use crate::pipeline::{Pipeline, Settings};

    #[test]
    fn events_pass_one_by_one_and_some_are_left_out() {
        let document = |text: &str| {
            let value = bson::parse_extended_json(text).expect("extended JSON");
            value.as_document().expect("a document").clone()
        };
        let stages = [
            document(r#"{"$changeStream": {}}"#),
            document(r#"{"$match": {"n": {"$gt": 1}}}"#),
            document(r#"{"$addFields": {"m": {"$add": ["$n", 1]}}}"#),
        ];
        let views: Vec<_> = stages.iter().map(bson::Document::view).collect();
        let settings = Settings { database: "db".into(), ..Settings::default() };
        let pipeline = Pipeline::parse(&views, &settings).expect("a pipeline");
        let (_, mut event_pipeline) = pipeline.follow().expect("a change stream");
        let context = Context::at(0);
        for (event, expected) in
            [(r#"{"n": 1}"#, None), (r#"{"n": 2}"#, Some(r#"{"n": 2, "m": 3}"#)), (r#"{"n": 0}"#, None)]
        {
            let passed = event_pipeline.pass(document(event), &context).expect("no error");
            assert_eq!(passed.map(|it| it.to_document()), expected.map(document));
        }
    }
}
