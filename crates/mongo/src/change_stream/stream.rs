//! A stream between two requests of its cursor.

use std::collections::VecDeque;
use std::sync::Arc;

use bson::{Document, RawDocument, Timestamp, ValueRef};
use engine::{Engine, Position, Watch, WatchEvent, Watched};
use mql::pipeline::{ChangeStream, Following};
use mql::{Code, Context};
use storage::Time;

use super::NON_RESUMABLE;
use super::event::{describe, invalidate};
use super::token::Token;
use crate::error::{Error, Result};
use crate::filling::{Filling, check_size};
use crate::operation_time::cluster_time;
use crate::room::Room;

/// How many events are read at once.
const PAGE: usize = 1000;
/// Expiries come without a commit: after so long it is looked for them.
const LOOK_AGAIN_MS: u64 = 250;

/// A `$changeStream` at work.
pub(crate) struct Stream {
    pub(super) watch: Watch,
    pub(super) wish: Arc<ChangeStream>,
    pub(super) following: Following,
    /// Where a client that has seen everything up to now goes on.
    pub(super) token: Token,
    /// Events before this time are passed over: `startAtOperationTime`.
    not_before: Option<Timestamp>,
    /// Events that were read and not looked at yet.
    waiting: VecDeque<WatchEvent>,
    /// What the event before them came to, as far as it was not given yet.
    steps: VecDeque<Step>,
    /// Everything up to here was read.
    read_to: Position,
    /// Whether what stands at the position from which the stream goes on may have ended it.
    may_have_ended: bool,
    /// The last commit and the time when it was looked for events.
    looked: (u64, Time),
}

/// One step of a client: what it is shown, if anything, and where it goes on behind.
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
        wish: Arc<ChangeStream>,
        following: Following,
        token: Token,
        may_have_ended: bool,
    ) -> Stream {
        Stream {
            watch,
            not_before: wish.start_at,
            wish,
            following,
            token,
            waiting: VecDeque::new(),
            steps: VecDeque::new(),
            read_to: token.position,
            may_have_ended,
            looked: (0, Time::from_millis(0)),
        }
    }

    /// The next documents, without waiting for any.
    pub(crate) fn batch(
        &mut self,
        room: &Room,
        context: &Context,
        size: Option<usize>,
    ) -> Result<ChangeBatch> {
        let engine = room.engine();
        self.looked = (engine.last_sequence(), engine.now()?);
        engine.watch(&self.watch)?;
        let barrier = engine.barrier()?;
        let mut filling = Filling::new(size);
        loop {
            if self.is_filled(&mut filling, room, context)? || self.has_ended() {
                return Ok(self.told(filling));
            }
            if self.read_to >= barrier.position() {
                self.token = self.token.max(Token::at(self.read_to));
                return Ok(self.told(filling));
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
            let is_told =
                |event: &WatchEvent| start.is_none_or(|start| cluster_time(event.position) >= start);
            self.waiting.extend(page.events.into_iter().filter(is_told));
        }
    }

    fn told(&self, filling: Filling) -> ChangeBatch {
        let (documents, finished) = (filling.documents, self.has_ended());
        ChangeBatch { documents, token: self.token.to_document(), finished }
    }

    /// Whether the event that has ended the stream was given, or is not for the client to see.
    fn has_ended(&self) -> bool {
        self.token.invalidates
    }

    /// Gives what was read, as much as fits; whether there is more of it.
    fn is_filled(&mut self, filling: &mut Filling, room: &Room, context: &Context) -> Result<bool> {
        while !self.has_ended() {
            if self.steps.is_empty() && self.waiting.is_empty() {
                return Ok(false);
            }
            if filling.is_complete() {
                return Ok(true);
            }
            let Some(Step { document, token }) = self.steps.pop_front() else {
                if let Some(event) = self.waiting.pop_front() {
                    self.take_up(event, room, context)?;
                }
                continue;
            };
            if let Some(document) = document
                && let Err(document) = filling.add(document)
            {
                self.steps.push_front(Step { document: Some(document), token });
                return Ok(true);
            }
            self.token = token;
        }
        Ok(false)
    }

    /// Makes steps of an event: its own, and that of the stream's end if it brings it.
    fn take_up(&mut self, event: WatchEvent, room: &Room, context: &Context) -> Result<()> {
        let (position, ends) = (event.position, self.ends_with(&event));
        let token = Token::at(position);
        let document = match describe(event, &self.wish, room)? {
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

    /// What the client's stages make of an event. They must leave its token alone.
    fn pass(&mut self, event: Document, token: Token, context: &Context) -> Result<Option<RawDocument>> {
        let passed = self.following.pass(event, context)?;
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

    /// How many bytes it holds between two requests, roughly: the events that were read and not shown yet.
    pub(crate) fn bytes(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(WatchEvent::bytes).sum();
        let steps = self.steps.iter().filter_map(|step| step.document.as_ref());
        waiting + steps.map(|document| document.as_bytes().len()).sum::<usize>()
    }

    /// Whether it is worth to look again.
    pub(crate) fn has_news(&self, engine: &Engine) -> Result<bool> {
        let (sequence, time) = self.looked;
        Ok(engine.last_sequence() != sequence || engine.now()? >= time.plus_millis(LOOK_AGAIN_MS))
    }
}
