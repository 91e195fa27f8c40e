//! One connection: reads a message, runs it, writes the answer, until either side closes.
//!
//! A command runs as a task of its own, so that a panic is that command's error alone, and so that the connection
//! can listen meanwhile: a client that hangs up stops its command.

use std::sync::Arc;
use std::time::Duration;

use bson::{Document, RawDocument};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use transport::{Accepted, Held, Peer, Permit, Stream, WRITE_STEP_BYTES};

use crate::dispatch::{self, Answer};
use crate::protocol::cancellation::{CancelReason, Cancellation};
use crate::protocol::error::Error;
use crate::protocol::limits::{
    COUNTED_REPLY_BYTES, SMALL_MESSAGE_BYTES, UNAUTHENTICATED_MESSAGE_BYTES, WRONG_PROOFS,
};
use crate::protocol::offload::offload;
use crate::service::Service;
use crate::service::connection::Connection;
use crate::wire::{self, Form, MessageSize, Request, Style, WireError};

/// How much is read at once while nothing is known about the next message.
const READ_AHEAD_BYTES: usize = 4096;
/// How fast the buffer grows for a large message: with the bytes received, not with the announced length.
const GROWTH_BYTES: usize = 1024 * 1024;

/// Serves a connection to its end.
pub(crate) async fn serve(accepted: Accepted, service: Arc<Service>) {
    let Accepted { socket, peer: standing, mut stopped } = accepted;
    let (Ok(peer), Ok(local)) = (socket.peer_addr(), socket.local_addr()) else { return };
    let _ = socket.set_nodelay(true);
    let max_wait = service.settings.limits.handshake_timeout;
    let deadline = Instant::now() + max_wait;
    let opening = transport::open(socket, service.settings.tls.as_ref(), max_wait);
    let opened = tokio::select! {
        opened = timeout_at(deadline, opening) => opened,
        () = standing.cut_off() => return tracing::debug!("{peer} was cut off before its handshake"),
    };
    let stream = match opened {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!("no connection with {peer}: {error}"),
        Err(_) => return tracing::debug!("no connection with {peer}: no handshake in time"),
    };
    let server_name = stream.server_name();
    let connection = Arc::new(Connection {
        id: service.next_connection(),
        peer,
        local,
        server_name,
        client: Mutex::default(),
    });
    let peer_state = Arc::clone(&standing);
    let (buffer, kept) = (BytesMut::new(), Kept::default());
    let mut talk = ConnectionLoop { stream, buffer, service, connection, standing, kept, replies: 0 };
    let ended = tokio::select! {
        ended = talk.run(deadline, &mut stopped) => ended,
        () = peer_state.cut_off() => Err(WireError::broken("it held too much memory, or too many clients had not authenticated")),
    };
    match ended {
        Ok(()) => tracing::debug!("{peer} has disconnected"),
        Err(error) => tracing::debug!("connection with {peer} closed: {error}"),
    }
}

/// The two sides of a connection, and what has been read ahead.
struct ConnectionLoop {
    stream: Stream,
    buffer: BytesMut,
    service: Arc<Service>,
    connection: Arc<Connection>,
    standing: Arc<Peer>,
    /// What the connection keeps between messages of a client that has not authenticated.
    kept: Kept,
    replies: i32,
}

/// Bytes that count between messages.
#[derive(Default)]
struct Kept {
    bytes: usize,
    _held: Option<Held>,
}

/// What a message counts for while it is being handled.
struct Counted<'a> {
    _permit: Option<Permit<'a>>,
    _held: Option<Held>,
}

/// Whether the connection continues.
#[derive(PartialEq, Eq)]
enum Next {
    Listen,
    Close,
}

impl ConnectionLoop {
    async fn run(&mut self, first: Instant, stopped: &mut watch::Receiver<bool>) -> Result<(), WireError> {
        let mut deadline = first;
        loop {
            // A shutdown ends the connection between two messages; a message that has begun is still read and answered.
            let waiting = self.first_bytes();
            let arrived = tokio::select! {
                arrived = timeout_at(deadline, waiting) => arrived,
                _ = stopped.wait_for(|stop| *stop) => return Ok(()),
            };
            match arrived {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return Ok(()),
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(WireError::broken("idle for too long")),
            }
            let limits = self.service.settings.limits;
            let service = Arc::clone(&self.service);
            let whole = timeout(limits.message_timeout, self.message(&service)).await;
            let (message, permit) =
                whole.map_err(|_| WireError::broken("a message took too long to arrive"))??;
            if self.exchange(message).await? == Next::Close || *stopped.borrow() {
                return self.say_goodbye().await;
            }
            drop(permit);
            deadline = Instant::now() + limits.idle_timeout;
        }
    }

    /// Waits for the next message to begin; false if the client has left.
    async fn first_bytes(&mut self) -> Result<bool, WireError> {
        if self.buffer.is_empty() {
            // Gives back the memory of a large message.
            self.buffer = BytesMut::with_capacity(READ_AHEAD_BYTES);
            return Ok(self.read_some().await? > 0);
        }
        Ok(true)
    }

    /// Returns the whole message that has begun, and the permit for its memory. An announced length takes no memory before
    /// the beginning of the message has come. Then a large message gets all of its memory before more is read: large
    /// messages with a part each, waiting for the rest, would wait for each other.
    async fn message<'a>(&mut self, service: &'a Service) -> Result<(Bytes, Counted<'a>), WireError> {
        let pause = service.settings.limits.read_pause_timeout;
        let extent = loop {
            if let Some(extent) = MessageSize::announced(&self.buffer)? {
                break extent;
            }
            self.read_on(pause).await?;
        };
        if extent.largest() > UNAUTHENTICATED_MESSAGE_BYTES && !self.is_trusted() {
            return Err(WireError::broken("a large message from a client that has not authenticated"));
        }
        let length = extent.length;
        self.fill(length.min(READ_AHEAD_BYTES), pause).await?;
        let held = if self.is_trusted() || extent.whole() <= READ_AHEAD_BYTES {
            None
        } else {
            Some(self.standing.hold(extent.whole()).map_err(|_| no_room())?)
        };
        self.fill(length.min(SMALL_MESSAGE_BYTES), pause).await?;
        let permit = if extent.whole() > SMALL_MESSAGE_BYTES {
            let tenant = self.connection.tenant();
            service.settings.admission.receive_unbounded(tenant, extent.whole()).await
        } else {
            None
        };
        self.fill(length, pause).await?;
        service.metrics.front_end.received(length);
        let message = self.buffer.split_to(length).freeze();
        Ok((message, Counted { _permit: permit, _held: held }))
    }

    /// Reads until that many bytes are there, in a buffer that grows with the bytes received.
    async fn fill(&mut self, length: usize, pause: Duration) -> Result<(), WireError> {
        while self.buffer.len() < length {
            self.buffer.reserve((length - self.buffer.len()).min(GROWTH_BYTES.max(self.buffer.len())));
            self.read_on(pause).await?;
        }
        Ok(())
    }

    /// Tells admission control of a client that has authenticated, or that need not and has sent a command.
    fn settle_standing(&self) {
        self.standing.answered();
        if self.is_trusted() {
            let tenant = self.connection.tenant();
            if self.standing.tenant() != Some(tenant) {
                self.standing.authenticate(tenant);
            }
        }
    }

    /// Counts what the connection keeps of an authentication that has begun, until the client has authenticated.
    fn count_kept(&mut self) -> Result<(), WireError> {
        let bytes = if self.is_trusted() { 0 } else { self.connection.authentication_bytes() };
        if bytes != self.kept.bytes {
            self.kept = Kept::default();
            let held = (bytes > 0).then(|| self.standing.hold(bytes)).transpose().map_err(|_| no_room())?;
            self.kept = Kept { bytes, _held: held };
        }
        Ok(())
    }

    fn is_trusted(&self) -> bool {
        !self.service.requires_authentication() || self.connection.is_authenticated()
    }

    async fn read_on(&mut self, pause: Duration) -> Result<(), WireError> {
        match timeout(pause, self.read_some()).await {
            Ok(Ok(0)) => Err(WireError::broken("the client disconnected within a message")),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(WireError::broken("no bytes for too long within a message")),
        }
    }

    async fn read_some(&mut self) -> Result<usize, WireError> {
        self.stream.read_buf(&mut self.buffer).await.map_err(|error| WireError::broken(error.to_string()))
    }

    /// Runs the command in a message and answers it.
    async fn exchange(&mut self, message: Bytes) -> Result<Next, WireError> {
        self.service.statistics.requests.add(1);
        let bytes = MessageSize::announced(&message)?.map_or(0, MessageSize::whole);
        let request = match offload(bytes, || wire::read(message)) {
            Ok(request) => request,
            Err(WireError::Refused { id, style, error, close }) => {
                let reply = Error::from(error).finish(&Document::new());
                self.reply(&reply, id, style).await?;
                return Ok(if close { Next::Close } else { Next::Listen });
            }
            Err(broken) => return Err(broken),
        };
        let (id, style) = (request.id, request.style);
        let answer = self.perform(request).await;
        self.settle_standing();
        self.count_kept()?;
        let is_last = self.pause_after_wrong_proof().await;
        if let Some(reply) = &answer.reply {
            self.reply(reply, id, style).await?;
        }
        Ok(if answer.close || is_last { Next::Close } else { Next::Listen })
    }

    /// Delays the answer to a wrong password, also if the client has left meanwhile: a shorter time would reveal a right
    /// one. No other client waits, and the command has released its permit. Returns whether the client has tried too many.
    async fn pause_after_wrong_proof(&self) -> bool {
        let tried = {
            let mut client = self.connection.client.lock();
            std::mem::take(&mut client.was_wrong).then_some(client.wrong_proofs)
        };
        let Some(tried) = tried else { return false };
        let pause = self.service.settings.limits.wrong_proof_pause;
        sleep(pause.saturating_mul(1 << tried.saturating_sub(1).min(8))).await;
        tried >= WRONG_PROOFS
    }

    /// Runs a command, listening meanwhile for a client that hangs up.
    async fn perform(&mut self, request: Request) -> Answer {
        let cancellation = Cancellation::default();
        let (service, connection) = (Arc::clone(&self.service), Arc::clone(&self.connection));
        let work = dispatch::answer(service, connection, request, cancellation.clone());
        let mut work = tokio::spawn(work);
        let mut listen = true;
        loop {
            let has_space = self.buffer.len() < READ_AHEAD_BYTES;
            tokio::select! {
                biased;
                done = &mut work => return done.unwrap_or_else(|_| panicked(&self.service)),
                read = self.stream.read_buf(&mut self.buffer), if listen && has_space => match read {
                    Ok(0) | Err(_) => {
                        cancellation.cancel(CancelReason::Abandoned);
                        listen = false;
                    }
                    Ok(_) => {}
                },
            }
        }
    }

    async fn reply(&mut self, reply: &RawDocument, request: i32, style: Style) -> Result<(), WireError> {
        if style.form == Form::OneWay {
            return Ok(());
        }
        self.replies = self.replies.wrapping_add(1);
        let bytes = offload(reply.as_bytes().len(), || wire::write(reply, request, self.replies, style));
        self.service.metrics.front_end.sent(bytes.len());
        let _held = self.hold_reply(bytes.len())?;
        let pause = self.service.settings.limits.write_pause_timeout;
        let mut rest = bytes.as_slice();
        let (mut deadline, mut taken) = (Instant::now() + pause, 0);
        while !rest.is_empty() {
            match timeout_at(deadline, self.stream.write(rest)).await {
                Ok(Ok(0)) => return Err(WireError::broken("the client does not accept its answer")),
                Ok(Ok(written)) => {
                    rest = &rest[written..];
                    taken += written;
                    if taken >= WRITE_STEP_BYTES {
                        (deadline, taken) = (Instant::now() + pause, 0);
                    }
                }
                Ok(Err(error)) => return Err(WireError::broken(error.to_string())),
                Err(_) => return Err(WireError::broken("the client does not read its answer")),
            }
        }
        match timeout(pause, self.stream.flush()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(WireError::broken(error.to_string())),
            Err(_) => Err(WireError::broken("the client does not read its answer")),
        }
    }

    /// Counts a reply. A small reply to an authenticated client is always sent: the number of connections bounds those.
    fn hold_reply(&self, bytes: usize) -> Result<Option<Held>, WireError> {
        match self.standing.hold(bytes) {
            Ok(held) => Ok(Some(held)),
            Err(_) if bytes < COUNTED_REPLY_BYTES && self.standing.tenant().is_some() => Ok(None),
            Err(_) => Err(no_room()),
        }
    }

    async fn say_goodbye(&mut self) -> Result<(), WireError> {
        let pause = self.service.settings.limits.write_pause_timeout;
        let _ = timeout(pause, self.stream.shutdown()).await;
        Ok(())
    }
}

fn no_room() -> WireError {
    WireError::broken("there is no memory left to hold the message or its answer")
}

fn panicked(service: &Service) -> Answer {
    service.metrics.panicked();
    Answer { reply: Some(Error::panicked().finish(&Document::new())), close: false }
}
