//! The stages behind a `$changeStream`: each makes of an event another document, or nothing, and looks at nothing else.

use bson::{Document, RawDocument};
use std::sync::Arc;

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::filter::Filter;
use crate::index::TextRules;
use crate::pipeline::chain::{Chain, Flow, Step, World};
use crate::pipeline::merge::Merge;
use crate::pipeline::row::Row;
use crate::pipeline::source::{Description, Namespace, Order, Scan, ScanId, Source};

/// Stages that events are put through. It rests in a cursor between two requests.
pub struct Following {
    chain: Chain,
}

impl std::fmt::Debug for Following {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Following").finish_non_exhaustive()
    }
}

impl Following {
    pub(super) fn new(chain: Chain) -> Following {
        Following { chain }
    }

    /// What becomes of an event; none if it is left out.
    pub fn pass(&mut self, event: Document, context: &Context) -> Result<Option<RawDocument>> {
        let mut nowhere = Nowhere;
        let mut world = World { source: &mut nowhere, context };
        // Rows are pushed only into steps that want one.
        if let Flow::Wanting = self.chain.pop(&mut world)? {
            self.chain.push(Row::from(event), &mut world)?;
        }
        match self.chain.pop(&mut world)? {
            Flow::Row(row) => Ok(Some(row.body.into_raw())),
            Flow::Wanting | Flow::End => Ok(None),
        }
    }
}

/// No collection: what may stand behind a `$changeStream` reads none.
struct Nowhere;

impl Nowhere {
    fn refuse<T>() -> Result<T> {
        Err(Error::new(
            Code::ILLEGAL_OPERATION,
            "a stage behind $changeStream cannot read or write collections",
        ))
    }
}

impl Source for Nowhere {
    fn open(&mut self, _: &Scan) -> Result<(ScanId, Order)> {
        Nowhere::refuse()
    }

    fn next(&mut self, _: ScanId) -> Result<Option<Row>> {
        Nowhere::refuse()
    }

    fn close(&mut self, _: ScanId) {}

    fn is_served(&mut self, _: &Namespace, _: &Filter) -> Result<bool> {
        Nowhere::refuse()
    }

    fn geospatial_field(&mut self, _: &Namespace) -> Result<String> {
        Nowhere::refuse()
    }

    fn text_rules(&mut self, _: &Namespace) -> Result<Option<Arc<TextRules>>> {
        Nowhere::refuse()
    }

    fn describe(&mut self, _: &Namespace, _: &Description) -> Result<Vec<Document>> {
        Nowhere::refuse()
    }

    fn stage_documents(&mut self, _: &Namespace, _: Vec<RawDocument>) -> Result<()> {
        Nowhere::refuse()
    }

    fn replace_collection(&mut self, _: &Namespace) -> Result<()> {
        Nowhere::refuse()
    }

    fn merge(&mut self, _: &Arc<Merge>, _: RawDocument, _: &Context) -> Result<()> {
        Nowhere::refuse()
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
        let (_, mut following) = pipeline.follow().expect("a change stream");
        let context = Context::at(0);
        for (event, expected) in
            [(r#"{"n": 1}"#, None), (r#"{"n": 2}"#, Some(r#"{"n": 2, "m": 3}"#)), (r#"{"n": 0}"#, None)]
        {
            let passed = following.pass(document(event), &context).expect("no error");
            assert_eq!(passed.map(|it| it.to_document()), expected.map(document));
        }
    }
}
