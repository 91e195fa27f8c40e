//! A stream between two requests of its cursor.

use std::collections::VecDeque;
use std::sync::Arc;

use bson::{Document, RawDocument, Timestamp, ValueRef};
use engine::{Engine, Position, Watch, WatchEvent, Watched};
use mql::pipeline::{ChangeStream, EventPipeline};
use mql::{Code, Context};
use storage::Time;

use super::NON_RESUMABLE;
use super::event::{describe, invalidate};
use super::token::Token;
use crate::access::executor::Executor;
use crate::protocol::batch_builder::{BatchBuilder, check_size};
use crate::protocol::error::{Error, Result};
use crate::protocol::operation_time::cluster_time;

/// How many events are read at once.
const PAGE: usize = 1000;
/// Expiries come without a commit: the stream looks for them again after this time.
const RECHECK_MS: u64 = 250;

/// A running `$changeStream`.
pub(crate) struct Stream {
    pub(super) watch: Watch,
    pub(super) options: Arc<ChangeStream>,
    pub(super) later_stages: EventPipeline,
    /// The resume token of a client that has seen everything so far.
    pub(super) token: Token,
    /// Events before this time are passed over: `startAtOperationTime`.
    not_before: Option<Timestamp>,
    /// Events that were read and not processed yet.
    waiting: VecDeque<WatchEvent>,
    /// Steps of the event before them that the client has not been given yet.
    steps: VecDeque<Step>,
    /// The position up to which events were read.
    read_to: Position,
    /// Whether the event at the position from which the stream continues may have ended it.
    may_have_ended: bool,
    /// The last commit and the time of the last look for events.
    last_look: (u64, Time),
}

/// One step of a client: the document to show, if any, and the token to continue after it.
struct Step {
    document: Option<RawDocument>,
    token: Token,
}

/// Some documents of a stream.
pub(crate) struct ChangeBatch {
    pub(crate) documents: Vec<RawDocument>,
    /// `postBatchResumeToken`.
    pub(crate) token: Document,
    /// Whether the stream has ended.
    pub(crate) finished: bool,
}

impl Stream {
    pub(super) fn new(
        watch: Watch,
        options: Arc<ChangeStream>,
        later_stages: EventPipeline,
        token: Token,
        may_have_ended: bool,
    ) -> Stream {
        Stream {
            watch,
            not_before: options.start_at,
            options,
            later_stages,
            token,
            waiting: VecDeque::new(),
            steps: VecDeque::new(),
            read_to: token.position,
            may_have_ended,
            last_look: (0, Time::from_millis(0)),
        }
    }

    /// Returns the next documents, without waiting for any.
    pub(crate) fn batch(
        &mut self,
        executor: &Executor,
        context: &Context,
        size: Option<usize>,
    ) -> Result<ChangeBatch> {
        let engine = executor.engine();
        self.last_look = (engine.last_sequence(), engine.now()?);
        engine.watch(&self.watch)?;
        let barrier = engine.barrier()?;
        let mut batch_builder = BatchBuilder::new(size);
        loop {
            if self.is_filled(&mut batch_builder, executor, context)? || self.has_ended() {
                return Ok(self.finish(batch_builder));
            }
            if self.read_to >= barrier.position() {
                self.token = self.token.max(Token::at(self.read_to));
                return Ok(self.finish(batch_builder));
            }
            context.spend(1)?;
            let page = engine.watch_page(&self.watch, &barrier, self.read_to, PAGE)?;
            if std::mem::take(&mut self.may_have_ended)
                && page.before.as_ref().is_some_and(|event| self.ends_with(event))
            {
                self.end(self.read_to, context)?;
            }
            self.read_to = page.next;
            let start = self.not_before;
            let is_shown =
                |event: &WatchEvent| start.is_none_or(|start| cluster_time(event.position) >= start);
            self.waiting.extend(page.events.into_iter().filter(is_shown));
        }
    }

    fn finish(&self, batch_builder: BatchBuilder) -> ChangeBatch {
        let (documents, finished) = (batch_builder.documents, self.has_ended());
        ChangeBatch { documents, token: self.token.to_document(), finished }
    }

    /// Whether the stream has passed the event that ends it, whether or not the client was shown that event.
    fn has_ended(&self) -> bool {
        self.token.invalidates
    }

    /// Adds the events that were read, as many as fit; returns whether there are more.
    fn is_filled(
        &mut self,
        batch_builder: &mut BatchBuilder,
        executor: &Executor,
        context: &Context,
    ) -> Result<bool> {
        while !self.has_ended() {
            if self.steps.is_empty() && self.waiting.is_empty() {
                return Ok(false);
            }
            if batch_builder.is_complete() {
                return Ok(true);
            }
            let Some(Step { document, token }) = self.steps.pop_front() else {
                if let Some(event) = self.waiting.pop_front() {
                    self.take_up(event, executor, context)?;
                }
                continue;
            };
            if let Some(document) = document
                && let Err(document) = batch_builder.add(document)
            {
                self.steps.push_front(Step { document: Some(document), token });
                return Ok(true);
            }
            self.token = token;
        }
        Ok(false)
    }

    /// Turns an event into steps: its own, and the end of the stream if the event ends it.
    fn take_up(&mut self, event: WatchEvent, executor: &Executor, context: &Context) -> Result<()> {
        let (position, ends) = (event.position, self.ends_with(&event));
        let token = Token::at(position);
        let document = match describe(event, &self.options, executor)? {
            Some(document) => self.pass(document, token, context)?,
            None => None,
        };
        self.steps.push_back(Step { document, token });
        if ends {
            self.end(position, context)?;
        }
        Ok(())
    }

    fn end(&mut self, position: Position, context: &Context) -> Result<()> {
        let token = Token { position, invalidates: true };
        let document = self.pass(invalidate(token), token, context)?;
        self.steps.push_back(Step { document, token });
        Ok(())
    }

    /// Whether the stream ends with an event.
    fn ends_with(&self, event: &WatchEvent) -> bool {
        match (&self.watch, &event.what) {
            (Watch::Collection { .. }, Watched::Dropped | Watched::Renamed { .. })
            | (Watch::Database(_), Watched::DatabaseDropped) => true,
            (
                Watch::Deployment | Watch::Database(_) | Watch::Collection { .. },
                Watched::Item(..)
                | Watched::Created
                | Watched::Dropped
                | Watched::Renamed { .. }
                | Watched::DatabaseDropped,
            ) => false,
        }
    }

    /// Returns the event as the client's stages make it. They must leave its token alone.
    fn pass(&mut self, event: Document, token: Token, context: &Context) -> Result<Option<RawDocument>> {
        let passed = self.later_stages.pass(event, context)?;
        if let Some(passed) = &passed {
            check_size(passed)?;
            let id = passed.get("_id").and_then(ValueRef::as_document);
            if id.map(bson::DocumentRef::to_document) != Some(token.to_document()) {
                let text = "Encountered an event whose _id field, which contains the resume token, was modified by the \
                            pipeline. Only transformations that retain the unmodified _id field are allowed.";
                return Err(Error::new(Code::CHANGE_STREAM_FATAL_ERROR, text).with_label(NON_RESUMABLE));
            }
        }
        Ok(passed)
    }

    /// Returns how many bytes it holds between two requests, roughly: the events that were read and not shown yet.
    pub(crate) fn bytes(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(WatchEvent::bytes).sum();
        let steps = self.steps.iter().filter_map(|step| step.document.as_ref());
        waiting + steps.map(|document| document.as_bytes().len()).sum::<usize>()
    }

    /// Whether there may be new events.
    pub(crate) fn has_news(&self, engine: &Engine) -> Result<bool> {
        let (sequence, time) = self.last_look;
        Ok(engine.last_sequence() != sequence || engine.now()? >= time.plus_millis(RECHECK_MS))
    }
}
