//! A stream between two requests of its cursor.

use std::collections::VecDeque;
use std::sync::Arc;

use bson::{Document, RawDocument, ValueRef};
use engine::{Engine, Position, Watch, WatchEvent, Watched};
use mql::pipeline::{ChangeStream, Following};
use mql::{Code, Context};
use storage::Time;

use super::NON_RESUMABLE;
use super::event::{describe, invalidate};
use super::token::Token;
use crate::error::{Error, Result};
use crate::room::Room;

/// How many events are read at once.
const PAGE: usize = 1000;
/// The largest batch, in bytes.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Expiries come without a commit: after so long it is looked for them.
const LOOK_AGAIN_MS: u64 = 250;

/// A `$changeStream` at work.
pub(crate) struct Stream {
    pub(super) watch: Watch,
    pub(super) wish: Arc<ChangeStream>,
    pub(super) following: Following,
    /// Where a client that has seen everything up to now goes on.
    pub(super) token: Token,
    /// Events that were read and not given yet.
    waiting: VecDeque<WatchEvent>,
    /// Everything up to here was read.
    read_to: Position,
    /// Whether what stands at the position from which the stream goes on may have ended it.
    may_have_ended: bool,
    /// The event that has ended the stream was given, or is not for the client to see.
    ended: bool,
    /// The last commit and the time when it was looked for events.
    looked: (u64, Time),
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
            wish,
            following,
            token,
            waiting: VecDeque::new(),
            read_to: token.position,
            may_have_ended,
            ended: false,
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
        let (mut documents, mut bytes) = (Vec::new(), 0);
        loop {
            while !self.ended && !self.waiting.is_empty() {
                if size.is_some_and(|size| documents.len() >= size) || bytes >= BATCH_BYTES_MAX {
                    return Ok(self.told(documents));
                }
                let Some(event) = self.waiting.pop_front() else { break };
                for document in self.give(event, room, context)? {
                    bytes += document.as_bytes().len();
                    documents.push(document);
                }
            }
            if self.ended {
                return Ok(self.told(documents));
            }
            if self.read_to >= barrier.position() {
                self.token = self.token.max(Token::at(self.read_to));
                return Ok(self.told(documents));
            }
            context.spend(1)?;
            let page = engine.watch_page(&self.watch, &barrier, self.read_to, PAGE)?;
            if std::mem::take(&mut self.may_have_ended)
                && page.before.as_ref().is_some_and(|event| self.ends_with(event))
            {
                documents.extend(self.end(self.read_to, context)?);
            }
            self.read_to = page.next;
            self.waiting.extend(page.events);
        }
    }

    fn told(&self, documents: Vec<RawDocument>) -> ChangeBatch {
        ChangeBatch { documents, token: self.token.to_document(), finished: self.ended }
    }

    /// The documents of an event: its own, and that of the stream's end if it brings it.
    fn give(&mut self, event: WatchEvent, room: &Room, context: &Context) -> Result<Vec<RawDocument>> {
        let (position, ends) = (event.position, self.ends_with(&event));
        let mut documents = Vec::new();
        if let Some(document) = describe(event, &self.wish, room)? {
            documents.extend(self.pass(document, Token::at(position), context)?);
        }
        self.token = Token::at(position);
        if ends {
            documents.extend(self.end(position, context)?);
        }
        Ok(documents)
    }

    fn end(&mut self, position: Position, context: &Context) -> Result<Option<RawDocument>> {
        self.ended = true;
        self.token = Token { position, invalidates: true };
        self.pass(invalidate(self.token), self.token, context)
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
            let id = passed.get("_id").and_then(ValueRef::as_document);
            if id.map(bson::DocumentRef::to_document) != Some(token.to_document()) {
                let text = "Encountered an event whose _id field, which contains the resume token, was modified by the \
                            pipeline. Only transformations that retain the unmodified _id field are allowed.";
                return Err(Error::new(Code::CHANGE_STREAM_FATAL_ERROR, text).with_label(NON_RESUMABLE));
            }
        }
        Ok(passed)
    }

    /// Whether it is worth to look again.
    pub(crate) fn has_news(&self, engine: &Engine) -> Result<bool> {
        let (sequence, time) = self.looked;
        Ok(engine.last_sequence() != sequence || engine.now()? >= time.plus_millis(LOOK_AGAIN_MS))
    }
}
