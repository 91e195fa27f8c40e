//! Deletes: of one document, or of all that match.

use std::sync::Arc;

use bson::{Document, RawDocument};
use engine::collection::{Collection, Decision, LivingDocument, Receipt, Target, Verdict};

use super::{ATTEMPTS_MAX, ContextSeed, Selection, recorded, too_many_attempts};
use crate::access::executor::Executor;
use crate::protocol::error::Result;

/// One statement of a `delete`, or a `findAndModify` that removes.
#[derive(Debug)]
pub(crate) struct DeleteStatement {
    pub(crate) selection: Selection,
    pub(crate) context_seed: ContextSeed,
}

/// What a statement did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deleted {
    pub(crate) count: u64,
    /// The document that is gone, for `findAndModify`.
    pub(crate) before: Option<RawDocument>,
}

impl DeleteStatement {
    /// Deletes the first document that matches.
    pub(crate) async fn one(
        self: &Arc<Self>,
        executor: &Executor,
        collection: &Arc<Collection>,
        receipt: Option<Receipt>,
    ) -> Result<Deleted> {
        for _ in 0..ATTEMPTS_MAX {
            // A repetition must be recognised even if nothing matches any more because the first run has deleted it: only
            // for that, a write asks the filter again, whatever its `_id`.
            let target = self.selection.target(executor, collection, &self.context_seed)?;
            let target = match (target, &receipt) {
                (Some(target), _) => target,
                (None, Some(_)) => Target::Id(bson::Value::MinKey),
                (None, None) => return Ok(Deleted::default()),
            };
            let (statement, tried) = (Arc::clone(self), target.clone());
            let decide = move |found: Option<&LivingDocument>, now: storage::Time| {
                statement.decide(found, now, &tried)
            };
            let modified = executor.modify(collection, target, decide, receipt.clone()).await?;
            if let Some(answer) = &modified.answer {
                let before =
                    answer.get("before").and_then(bson::ValueRef::as_document).map(RawDocument::from_view);
                return Ok(Deleted { count: recorded(answer, "n") as u64, before });
            }
        }
        Err(too_many_attempts())
    }

    /// Deletes every document that matches, each by itself.
    pub(crate) async fn all(
        self: &Arc<Self>,
        executor: &Executor,
        collection: &Arc<Collection>,
    ) -> Result<u64> {
        let mut count = 0;
        for target in self.selection.all(executor, collection, &self.context_seed)? {
            let (statement, tried) = (Arc::clone(self), target.clone());
            let decide = move |found: Option<&LivingDocument>, now: storage::Time| {
                statement.decide(found, now, &tried)
            };
            let modified = executor.modify(collection, target, decide, None).await?;
            count += u64::from(modified.before.is_some() && modified.after.is_none());
        }
        Ok(count)
    }

    /// Returns the verdict on the document that was found. A verdict without an answer says that it no longer is the one
    /// that was looked for.
    fn decide(
        &self,
        found: Option<&LivingDocument>,
        now: storage::Time,
        target: &Target,
    ) -> engine::Result<Verdict> {
        let context = self.context_seed.context(now);
        let record = |document: Option<&RawDocument>| {
            let mut answer = Document::new().with("n", i32::from(document.is_some()));
            if let Some(document) = document {
                answer.push("before", document.to_document());
            }
            Some(RawDocument::from_document(&answer))
        };
        match found {
            Some(found) if self.selection.filter.matches(found.document.view(), &context)? => {
                Ok(Verdict { decision: Decision::Delete, answer: record(Some(&found.document)) })
            }
            _ if matches!(target, Target::Id(_)) => {
                Ok(Verdict { decision: Decision::Keep, answer: record(None) })
            }
            _ => Ok(Decision::Keep.into()),
        }
    }
}
