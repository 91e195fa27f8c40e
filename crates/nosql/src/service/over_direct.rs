//! Requests in direct mode: a connection of frames, many requests at once, answers in any order.
//!
//! Each request is signed, so each is admitted when its tokens have arrived, before a byte of its payload is kept. The
//! payload of a refused request is read and discarded, so that the reader finds the next frame.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use hyper::{StatusCode, Version};
use parking_lot::Mutex;
use rntbd::{ContextAnswer, ContextRequest, RequestTokens, ResourceType};
use tokio::io::AsyncRead;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use transport::{CatchPanic, CutOff, Held, Peer, Secure, Writer};

use crate::direct::answer::{self, Echo};
use crate::direct::incoming::{Ended, Frame, Incoming};
use crate::direct::outgoing::{self, Answers, Pending};
use crate::direct::payload::Payload;
use crate::direct::request;
use crate::direct::working::Working;
use crate::message::payer::Payer;
use crate::message::reply::{Reply, finish, refusal};
use crate::message::request::{Channel, Verb};
use crate::message::unread::Unread;
use crate::protocol::error::Error;
use crate::protocol::limits::direct::{
    FRAME_BYTES, LINGER, PAYLOAD_WAIT, QUIET, REQUESTS_IN_FLIGHT, UNAUTHENTICATED_FRAME_BYTES,
    UNAUTHENTICATED_REFUSALS, UNAUTHENTICATED_TIMEOUT, UNREAD_BYTES,
};
use crate::protocol::limits::{COUNTED_BYTES, DRAIN_BYTES, REQUEST_BYTES};
use crate::service::record::Record;
use crate::service::{Admitted, Service, tell_refusal};

/// The server's name and version, which clients require.
const SERVER_AGENT: &str = "Bolide";
const SERVER_VERSION: &str = concat!("version=", env!("CARGO_PKG_VERSION"));

/// Serves a connection in direct mode until one side ends it.
pub(crate) async fn serve(
    stream: Secure,
    channel: Channel,
    service: Arc<Service>,
    peer: Arc<Peer>,
    stopped: watch::Receiver<bool>,
) {
    let unread = Unread::new(service.limits().write_pause_timeout);
    let drain_timeout = service.limits().drain_timeout;
    let _counted = service.connections().in_direct_mode();
    let connection = Arc::new(Connection {
        service,
        peer: Arc::clone(&peer),
        channel,
        unread: Arc::clone(&unread),
        turns: Arc::new(Semaphore::new(REQUESTS_IN_FLIGHT as usize)),
        sent: Arc::default(),
        answers: Answers::default(),
        api_version: OnceLock::new(),
        stopped: stopped.clone(),
        last_arrival: Mutex::new(Instant::now()),
    });
    let address = channel.peer;
    tokio::select! {
        ended = connection.talk(stream) => match ended {
            Ok(()) | Err(Ended::Finished) => {}
            Err(ended) => tracing::debug!("the connection with {address} in direct mode ended: {ended}"),
        },
        () = unread.too_long() => tracing::debug!("{address} left answers unread"),
        () = peer.cut_off() => tracing::debug!("{address} held too much, or unauthenticated connections were too many"),
        () = stays_unauthenticated(&peer) => tracing::debug!("{address} sent no valid request"),
        () = drained(stopped, drain_timeout) => tracing::debug!("{address} did not end its connection"),
    }
}

/// Completes if nothing on the connection is authenticated in time.
async fn stays_unauthenticated(peer: &Peer) {
    sleep(UNAUTHENTICATED_TIMEOUT).await;
    if peer.tenant().is_some() {
        std::future::pending::<()>().await;
    }
}

/// Completes when the time is over that connections have to finish after the server was told to stop.
async fn drained(mut stopped: watch::Receiver<bool>, limit: Duration) {
    let _ = stopped.wait_for(|stop| *stop).await;
    sleep(limit).await;
}

/// The state of a connection that its requests share.
struct Connection {
    service: Arc<Service>,
    peer: Arc<Peer>,
    channel: Channel,
    unread: Arc<Unread>,
    /// The permits of requests in flight: each is released when its answer is sent.
    turns: Arc<Semaphore>,
    /// Signals that bytes were sent.
    sent: Arc<Notify>,
    answers: Answers,
    /// The version of the protocol that the client speaks, if it said so in its context request.
    api_version: OnceLock<Box<str>>,
    stopped: watch::Receiver<bool>,
    last_arrival: Mutex<Instant>,
}

/// A request that must be answered.
struct Owed {
    echo: Echo,
    record: Record,
    payer: Payer,
    turn: OwnedSemaphorePermit,
    /// The memory of a request on an unauthenticated connection.
    _held: Option<Held>,
}

/// The decision on a request when its tokens have arrived.
enum Decision {
    CarryOut(Box<Admitted>),
    /// Answered without its payload.
    Answer(Reply),
}

impl Connection {
    /// Exchanges contexts, then receives requests and sends answers until there are no more of either.
    async fn talk(self: Arc<Self>, stream: Secure) -> Result<(), Ended> {
        let (reader, mut writer) = transport::halves(stream);
        let front_end = Arc::clone(self.service.front_end());
        let pause = self.service.limits().body_pause_timeout;
        let mut incoming = Incoming::new(reader, Arc::clone(&front_end), pause);
        self.greet(&mut incoming, &mut writer).await?;
        let mut working = Working::default();
        let mut sending =
            pin!(outgoing::send(&self.answers, &mut writer, &front_end, || self.sent.notify_one()));
        tokio::select! {
            // Receiving comes first: its answers are then sent at once.
            biased;
            received = self.receive_all(&mut incoming, &mut working) => {
                self.answers.close();
                sending.await?;
                // A connection that is closed with unread bytes, or to which its client still sends, is reset, and its
                // client would lose the last answers.
                let _ = timeout(LINGER, incoming.discard()).await;
                received
            }
            sent = &mut sending => {
                // Its client is gone.
                self.answers.discard();
                self.finish(&mut working).await;
                Ok(sent?)
            }
        }
    }

    /// Answers the context request, the first frame of a connection.
    async fn greet<R: AsyncRead + Unpin>(
        &self,
        incoming: &mut Incoming<R>,
        writer: &mut Writer,
    ) -> Result<(), Ended> {
        let (Frame { head, tokens }, _held) = self.frame(incoming).await?;
        let context = ContextRequest::decode(&tokens).ok().filter(|_| head.is_context());
        let Some(context) = context else {
            return Err(Ended::Unexpected("it does not begin with a context request"));
        };
        if let Some(version) = context.client_version {
            let _ = self.api_version.set(version.into());
        }
        self.service.direct().trust.context_came(self.channel.peer.ip());
        let answer = ContextAnswer {
            protocol_version: Some(1),
            client_version: Some("1.0"),
            server_agent: Some(SERVER_AGENT),
            server_version: Some(SERVER_VERSION),
            ..ContextAnswer::default()
        };
        let mut bytes = Vec::new();
        answer.encode(head.activity_id, &mut bytes).expect("all of it is short");
        outgoing::put(writer, &mut &bytes[..], self.service.front_end())?;
        Ok(poll_fn(|context| writer.poll_flush(context)).await?)
    }

    /// Receives and runs requests until the connection ends; then finishes those that have begun.
    async fn receive_all<R: AsyncRead + Unpin>(
        self: &Arc<Self>,
        incoming: &mut Incoming<R>,
        working: &mut Working,
    ) -> Result<(), Ended> {
        let ended = tokio::select! {
            Err(ended) = self.receive(incoming, working) => ended,
            () = self.is_quiet_after_stop() => Ended::Finished,
        };
        if !ended.is_of_client() {
            tokio::select! {
                biased;
                _all = self.turns.acquire_many(REQUESTS_IN_FLIGHT) => return Err(ended),
                // Its client has left meanwhile.
                () = incoming.discard() => {}
            }
        }
        self.finish(working).await;
        match ended {
            Ended::Finished => Ok(()),
            ended => Err(ended),
        }
    }

    /// Waits until the writes that have begun are done: no client waits for the reads.
    async fn finish(&self, working: &mut Working) {
        working.abandon_reads();
        let _all = self.turns.acquire_many(REQUESTS_IN_FLIGHT).await;
    }

    async fn receive<R: AsyncRead + Unpin>(
        self: &Arc<Self>,
        incoming: &mut Incoming<R>,
        working: &mut Working,
    ) -> Result<Infallible, Ended> {
        let mut refused = 0;
        loop {
            incoming.begin().await?;
            *self.last_arrival.lock() = Instant::now();
            self.receive_one(incoming, working).await?;
            working.clear_ended();
            if self.peer.tenant().is_some() {
                incoming.widen();
            } else {
                refused += 1;
            }
            if refused >= UNAUTHENTICATED_REFUSALS {
                return Err(Ended::Unexpected("too many of its requests were refused, and none was valid"));
            }
        }
    }

    /// Receives a frame, for which an unauthenticated connection is charged before it gets memory.
    async fn frame<R: AsyncRead + Unpin>(
        &self,
        incoming: &mut Incoming<R>,
    ) -> Result<(Frame, Option<Held>), Ended> {
        let is_authenticated = self.peer.tenant().is_some();
        let limit = if is_authenticated { FRAME_BYTES } else { UNAUTHENTICATED_FRAME_BYTES };
        let head = incoming.head(limit).await?;
        let charged = self.peer.begin(REQUEST_BYTES + head.frame_bytes);
        let charged = charged.map_err(|CutOff| Ended::Unexpected("there is no memory for its requests"))?;
        Ok((incoming.frame(head).await?, charged))
    }

    /// Receives one request and its payload.
    async fn receive_one<R: AsyncRead + Unpin>(
        self: &Arc<Self>,
        incoming: &mut Incoming<R>,
        working: &mut Working,
    ) -> Result<(), Ended> {
        let turn = self.turn(incoming).await?;
        let (frame, held) = self.in_time(self.frame(incoming)).await?;
        let mut owed = self.owed(&frame, turn, held);
        let (decision, has_payload) = self.decide(&frame, &mut owed)?;
        drop(frame);
        let payload_bytes =
            if has_payload { self.in_time(incoming.payload_length(DRAIN_BYTES)).await } else { Ok(0) };
        let payload_bytes = match (decision, payload_bytes) {
            (Decision::Answer(reply), payload_bytes) => {
                self.answer(owed, reply);
                payload_bytes?
            }
            (Decision::CarryOut(admitted), Ok(bytes)) if bytes > self.service.body_limit(&admitted) => {
                self.refuse(&admitted, owed, Error::BodyTooLarge);
                bytes
            }
            (Decision::CarryOut(admitted), Ok(bytes)) => {
                return self.receive_payload(incoming, working, admitted, owed, bytes).await;
            }
            (Decision::CarryOut(admitted), Err(ended)) => return Err(self.give_up(&admitted, owed, ended)),
        };
        self.in_time(incoming.skip(payload_bytes)).await
    }

    /// Runs a request with its payload. A large payload is read when there is memory for it, and this waits until then: the
    /// frames behind it come after it.
    async fn receive_payload<R: AsyncRead + Unpin>(
        self: &Arc<Self>,
        incoming: &mut Incoming<R>,
        working: &mut Working,
        admitted: Box<Admitted>,
        owed: Owed,
        bytes: usize,
    ) -> Result<(), Ended> {
        let verb = admitted.route.verb;
        if bytes < COUNTED_BYTES {
            let body = match self.in_time(incoming.take(bytes)).await {
                Ok(body) => Payload::Whole(body),
                Err(ended) => return Err(self.give_up(&admitted, owed, ended)),
            };
            self.begin(working, verb, Arc::clone(self).carry_out(admitted, owed, body)).await;
            return Ok(());
        }
        let (payload, asked, give) = Payload::asked(bytes);
        self.begin(working, verb, Arc::clone(self).carry_out(admitted, owed, payload)).await;
        if asked.await.is_err() {
            return self.in_time(incoming.skip(bytes)).await;
        }
        let _ = give.send(self.in_time(incoming.take(bytes)).await?);
        Ok(())
    }

    /// Answers a request whose payload does not arrive in time, and returns why the connection ends.
    fn give_up(&self, admitted: &Admitted, owed: Owed, ended: Ended) -> Ended {
        if let Ended::Late = ended {
            self.refuse(admitted, owed, Error::BodyTimeout);
        }
        ended
    }

    fn refuse(&self, admitted: &Admitted, owed: Owed, error: Error) {
        let reply = self.service.refuse(&admitted.head, error, &owed.activity());
        self.answer(owed, reply);
    }

    fn owed(&self, frame: &Frame, turn: OwnedSemaphorePermit, held: Option<Held>) -> Owed {
        Owed {
            echo: Echo {
                activity_id: frame.head.activity_id,
                transport_request_id: None,
                correlated_activity_id: None,
                method: None,
            },
            record: Record::new(&self.service.traffic),
            payer: Payer::new(Some(Arc::clone(&self.peer)), Some(Arc::clone(&self.unread))),
            turn,
            _held: held,
        }
    }

    /// Decides on a request by its tokens, and returns whether a payload follows.
    fn decide(&self, frame: &Frame, owed: &mut Owed) -> Result<(Decision, bool), Ended> {
        if frame.head.is_context() {
            return Err(Ended::Unexpected("it sends a second context request"));
        }
        let tokens = match RequestTokens::decode(&frame.tokens) {
            Ok(tokens) => tokens,
            Err(rntbd::Error::Broken(broken)) => return Err(broken.into()),
            Err(rntbd::Error::Refused(refused)) => {
                owed.echo.transport_request_id = refused.transport_request_id;
                let error = Error::BadRequest(refused.refusal.to_string());
                return Ok((Decision::Answer(refusal(&error, &owed.activity())), refused.has_payload));
            }
        };
        owed.echo.transport_request_id = tokens.transport_request_id;
        owed.echo.correlated_activity_id = tokens.correlated_activity_id;
        let decision = if *self.stopped.borrow() {
            // Nothing was done, so clients may send the request to another server, or to this one when it is back.
            Decision::Answer(Reply::empty(StatusCode::GONE))
        } else if frame.head.resource_type() == Ok(ResourceType::TransportControlCommand) {
            Decision::Answer(Reply::empty(StatusCode::OK))
        } else {
            match self.admit(frame, &tokens, owed) {
                Ok(admitted) => Decision::CarryOut(Box::new(admitted)),
                Err(error) => Decision::Answer(refusal(&error, &owed.activity())),
            }
        };
        Ok((decision, tokens.has_payload()))
    }

    fn admit(&self, frame: &Frame, tokens: &RequestTokens<'_>, owed: &mut Owed) -> Result<Admitted, Error> {
        let mut head =
            request::head(&frame.head, tokens, self.api_version.get().map(|it| &**it), self.channel)?;
        owed.echo.method = Some(head.method.clone());
        match self.service.admit(&mut head, &mut owed.record) {
            Ok((route, pass)) => {
                owed.payer.authenticate(pass.tenant());
                // The first valid request holds all permits. Those that follow need not wait for its answer.
                drop(owed.turn.split(REQUESTS_IN_FLIGHT as usize - 1));
                Ok(Admitted { route, pass, head })
            }
            Err(refusal) => {
                tell_refusal(&mut owed.record, &head, &refusal);
                Err(refusal.error)
            }
        }
    }

    /// Runs a request and sends its answer; there always is one.
    async fn carry_out(self: Arc<Self>, admitted: Box<Admitted>, mut owed: Owed, payload: Payload) {
        let activity = owed.activity();
        let reply = CatchPanic::new(pin!(self.reply(admitted, payload, &activity, &mut owed))).await;
        let reply = reply.unwrap_or_else(|_| finish(Err(Error::Panicked), &activity, None));
        self.answer(owed, reply);
    }

    /// Returns the answer to a request, for which there may be no memory.
    async fn reply(
        &self,
        admitted: Box<Admitted>,
        payload: Payload,
        activity: &str,
        Owed { payer, record, .. }: &mut Owed,
    ) -> Reply {
        let _room = match self.service.find_room(&admitted, payload.len(), PAYLOAD_WAIT).await {
            Ok(room) => room,
            Err(error) => return self.service.refuse(&admitted.head, error, activity),
        };
        match payload.receive().await {
            Some(body) => self.service.run(*admitted, body, activity, payer, record).await,
            None => self.service.refuse(&admitted.head, Error::BodyTimeout, activity),
        }
    }

    /// Runs work at once as far as it goes without waiting, and the rest in a task. Most reads never wait.
    async fn begin(
        self: &Arc<Self>,
        working: &mut Working,
        verb: Verb,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut work = CatchPanic::new(Box::pin(work));
        match poll_fn(|context| Poll::Ready(Pin::new(&mut work).poll(context))).await {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => self.peer.close(),
            Poll::Pending => {
                let connection = Arc::clone(self);
                working.spawn(verb, async move {
                    // Otherwise the client would wait for an answer that cannot be sent.
                    if work.await.is_err() {
                        connection.peer.close();
                    }
                    connection.answers.wake();
                });
            }
        }
    }

    /// Sends the answer to a request.
    fn answer(&self, owed: Owed, reply: Reply) {
        let activity = owed.activity();
        let Owed { echo, record, payer, turn, _held } = owed;
        let duration = record.end(reply.status(), &activity);
        self.peer.answered();
        let Some((reply, held)) = self.charged(payer, reply) else { return };
        let encoded =
            answer::encode(reply, &echo, self.service.authenticator.engine().last_sequence(), duration);
        let mark = self.unread.mark(encoded.frame.len() + encoded.payload.len());
        self.answers.push(Pending { encoded, _held: held, _mark: mark, _turn: turn });
    }

    /// Charges an answer to its payer. Without memory for it an authenticated client receives it without its payload: status
    /// and tokens tell what a write has done, and reads have reserved the memory. Any other connection is closed.
    fn charged(&self, mut payer: Payer, reply: Reply) -> Option<(Reply, Option<Held>)> {
        match payer.charge(reply.held_bytes(Version::HTTP_2)) {
            Ok(held) => Some((reply, held)),
            Err(CutOff) if self.peer.tenant().is_some() => Some((reply.without_body(), None)),
            Err(CutOff) => {
                self.peer.close();
                None
            }
        }
    }

    /// Returns a permit for one more request, unless the client ends the connection first.
    async fn turn<R: AsyncRead + Unpin>(
        &self,
        incoming: &mut Incoming<R>,
    ) -> Result<OwnedSemaphorePermit, Ended> {
        tokio::select! {
            biased;
            turn = self.free_turn() => Ok(turn),
            ended = incoming.ended() => Err(ended),
        }
    }

    /// Returns a permit when there is one, and few answers are unread. An unauthenticated connection has only one permit.
    async fn free_turn(&self) -> OwnedSemaphorePermit {
        while self.unread.waiting_bytes() >= UNREAD_BYTES {
            self.sent.notified().await;
        }
        let count = if self.peer.tenant().is_some() { 1 } else { REQUESTS_IN_FLIGHT };
        let turn = Arc::clone(&self.turns).acquire_many_owned(count).await;
        turn.expect("the turns are never closed")
    }

    /// Limits how long the rest of a frame or payload may take to arrive.
    async fn in_time<T>(&self, arriving: impl Future<Output = Result<T, Ended>>) -> Result<T, Ended> {
        let limit = self.service.limits().body_timeout;
        timeout(limit, arriving).await.unwrap_or(Err(Ended::Late))
    }

    /// Completes when the server was told to stop, nothing is in flight, and nothing has arrived for a while: a client that
    /// has sent something without an answer then knows that it was not done.
    async fn is_quiet_after_stop(&self) {
        let _ = self.stopped.clone().wait_for(|stop| *stop).await;
        sleep(QUIET).await;
        // Waiting for the permits would delay the requests that still arrive.
        while self.turns.available_permits() < REQUESTS_IN_FLIGHT as usize
            || self.last_arrival.lock().elapsed() < QUIET
        {
            sleep(QUIET / 25).await;
        }
    }
}

impl Owed {
    fn activity(&self) -> String {
        self.echo.activity_id.to_string()
    }
}
