//! Connections: accept, bound, serve, drain.
//!
//! HTTP/1.1 and HTTP/2 with prior knowledge share the port, plain and inside TLS; the first bytes tell. Every connection has
//! a deadline for its first bytes, for a handshake, for each request head and for each piece of an answer, so that peers
//! who dribble, fall silent or do not listen do not keep their place, and there is a cap on connections so that those who
//! do not cannot take all of it.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use hyper::service::service_fn;
use hyper::{Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use telemetry::FrontEnd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout, timeout_at};
use transport::{Api, Complaints, CutOff, Peer, Stream, WRITE_STEP_BYTES};

use crate::body::Body;
use crate::framing::{Ambiguous, Framing};
use crate::limits::{
    H2_CONNECTION_WINDOW, H2_PING, H2_PING_TIMEOUT, H2_STREAM_WINDOW, H2_STREAMS, Limits, REQUEST_BYTES,
    STRANGER_READ_BYTES, STRANGER_READ_PAUSE,
};
use crate::request::Channel;
use crate::service::Service;
use crate::unread::Unread;

/// How long accepting rests after it failed, for want of file descriptors as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The HTTP/2 preface, and less than any whole HTTP/1.1 request head.
const FIRST_BYTES: usize = 24;

/// Serves until `shutdown` ends, then lets requests in flight finish and returns.
pub async fn serve(listener: TcpListener, service: Arc<Service>, shutdown: impl Future<Output = ()>) {
    let limits = *service.limits();
    let builder = Arc::new(builder(&limits));
    let places = Arc::new(Semaphore::new(limits.connections));
    let (stop, stopped) = watch::channel(false);
    let mut shutdown = std::pin::pin!(shutdown);
    // One kind must not keep the other from being said.
    let (mut failures, mut refusals) = (Complaints::default(), Complaints::default());
    loop {
        let (stream, address) = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    failures.warn(&format!("cannot accept a connection: {error}"));
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let place = Arc::clone(&places).try_acquire_owned().ok();
        let place = place.zip(service.admission().connect(Api::Nosql, address.ip()));
        let Some((place, (peer, permit))) = place else {
            service.admission().make_room(Api::Nosql);
            service.front_end().refused_connection();
            let open = service.front_end().connections_open();
            refusals.warn(&format!("closed a new connection: {open} are open already, and no more may be"));
            continue;
        };
        let (builder, service, stopped) = (Arc::clone(&builder), Arc::clone(&service), stopped.clone());
        let counted = service.front_end().connected();
        tokio::spawn(async move {
            connection(stream, &builder, service, peer, stopped, &limits).await;
            drop((counted, place, permit));
        });
    }
    drop(listener);
    drop(stopped);
    let _ = stop.send(true);
    if timeout(limits.drain_timeout, stop.closed()).await.is_err() {
        tracing::warn!("requests were still in flight {:?} after the shutdown began", limits.drain_timeout);
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.header_bytes);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(H2_PING)
        .keep_alive_timeout(H2_PING_TIMEOUT)
        .max_concurrent_streams(H2_STREAMS)
        .initial_stream_window_size(H2_STREAM_WINDOW)
        .initial_connection_window_size(H2_CONNECTION_WINDOW)
        .max_header_list_size(limits.header_bytes as u32);
    builder
}

async fn connection(
    socket: TcpStream,
    builder: &Builder<TokioExecutor>,
    service: Arc<Service>,
    standing: Arc<Peer>,
    mut stopped: watch::Receiver<bool>,
    limits: &Limits,
) {
    let _ = socket.set_nodelay(true);
    let Ok(peer) = socket.peer_addr() else { return };
    let deadline = Instant::now() + limits.head_timeout;
    let stream = match open(socket, &service, &standing, &mut stopped, deadline).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!("no connection with {peer}: {error}"),
    };
    let channel = Channel { peer, secure: stream.is_secure() };
    let front_end = Arc::clone(service.front_end());
    let unread = Unread::new(limits.write_pause_timeout);
    let (watched, known) = (Arc::clone(&unread), Arc::clone(&standing));
    let mut patient = Patient::new(stream, deadline, limits.write_pause_timeout, front_end);
    let may_read = Arc::new(AtomicBool::new(false));
    patient.stranger = Some(Stranger::new(&standing, &unread, &may_read));
    let (ambiguity, requests) = (patient.framing.ambiguity(), AtomicUsize::new(0));
    let answer = service_fn(move |mut request| {
        let service = Arc::clone(&service);
        if ambiguity.is_in(requests.fetch_add(1, Ordering::Relaxed)) {
            request.extensions_mut().insert(Ambiguous);
        }
        let held = known.begin(REQUEST_BYTES);
        request.extensions_mut().insert(channel);
        request.extensions_mut().insert(Arc::clone(&known));
        let in_progress = if request.version() == Version::HTTP_2 {
            request.extensions_mut().insert(Arc::clone(&watched));
            Some(watched.begin())
        } else {
            watched.is_watched_elsewhere();
            None
        };
        // On the heap: a stream that waits for its peer keeps the room of its future, though the future has ended.
        Box::pin(async move {
            let answer = match &held {
                Ok(_) => service.respond(request).await,
                Err(CutOff) => Response::new(Body::Refused),
            };
            drop((held, in_progress));
            Ok::<_, std::convert::Infallible>(answer)
        })
    });
    let connection = builder.serve_connection(TokioIo::new(patient), answer);
    let mut connection = std::pin::pin!(connection);
    let (mut is_idle, mut drained_by) = (false, None);
    let ended = loop {
        let turn = poll_fn(|context| {
            may_read.store(true, Ordering::Relaxed);
            connection.as_mut().poll(context)
        });
        tokio::select! {
            ended = turn => break ended,
            () = unread.too_long() => return tracing::debug!("{peer} left answers unread"),
            () = standing.cut_off() => return tracing::debug!("{peer} held too much, or strangers were too many"),
            () = until(drained_by) => return tracing::debug!("{peer} did not end its connection"),
            () = until_stopped(&mut stopped), if drained_by.is_none() => {
                drained_by = Some(Instant::now() + limits.drain_timeout);
            }
            () = unread.idle_for(limits.head_timeout), if !is_idle => is_idle = true,
            // Unless there was a request under way, which is answered however long it takes.
            () = unread.idle_for(limits.head_timeout + limits.drain_timeout) => {
                return tracing::debug!("{peer} did not end its idle connection");
            }
        }
        connection.as_mut().graceful_shutdown();
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended: {error}");
    }
}

/// Waits until the peer has said how it speaks.
async fn open(
    socket: TcpStream,
    service: &Service,
    standing: &Peer,
    stopped: &mut watch::Receiver<bool>,
    deadline: Instant,
) -> io::Result<Stream> {
    let opening = transport::open(socket, service.tls(), service.limits().handshake_timeout);
    tokio::select! {
        opened = timeout_at(deadline, opening) => opened.map_err(|_| io::Error::other("it said nothing"))?,
        () = standing.cut_off() => Err(io::Error::other("it was cut off before it said anything")),
        () = until_stopped(stopped) => Err(io::Error::other("the server stops")),
    }
}

/// Ends at that time; never without one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn until_stopped(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// A peer of which little is read at once, and less while enough is under way.
struct Stranger {
    peer: Arc<Peer>,
    unread: Arc<Unread>,
    /// Set whenever the connection is polled, which reads before it begins each request: so there is one read for each time, and
    /// what was read is begun, and counted, before the next.
    may_read: Arc<AtomicBool>,
    /// Set while answers wait for the peer.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Stranger {
    fn new(peer: &Arc<Peer>, unread: &Arc<Unread>, may_read: &Arc<AtomicBool>) -> Stranger {
        let (peer, unread, may_read) = (Arc::clone(peer), Arc::clone(unread), Arc::clone(may_read));
        Stranger { peer, unread, may_read, pause: None }
    }

    fn poll_read(
        &mut self,
        stream: &mut Stream,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.may_read.load(Ordering::Relaxed) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.poll_room(context));
        let mut bytes = [0; STRANGER_READ_BYTES];
        let length = bytes.len().min(buffer.remaining());
        let mut little = ReadBuf::new(&mut bytes[..length]);
        ready!(Pin::new(stream).poll_read(context, &mut little))?;
        buffer.put_slice(little.filled());
        self.may_read.store(false, Ordering::Relaxed);
        self.pause = None;
        Poll::Ready(Ok(()))
    }

    /// Ready while little is under way. If that does not change because the peer grants no window, it is read now and then all the
    /// same: the window comes behind whatever was sent before it. Requests among that are counted as all are.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.unread.poll_stranger(context).is_ready() {
            return Poll::Ready(());
        }
        if self.unread.waiting_bytes() == 0 {
            return Poll::Pending;
        }
        self.pause.get_or_insert_with(|| Box::pin(sleep(STRANGER_READ_PAUSE))).as_mut().poll(context)
    }
}

/// A socket whose peer must say something within its deadline, and must take what it is sent. Of reading, only the
/// first bytes are watched here; from there on the protocol's own timers watch. Nobody else watches writing.
struct Patient {
    stream: Stream,
    /// Until something was authenticated.
    stranger: Option<Stranger>,
    /// Counts what comes and goes.
    front_end: Arc<FrontEnd>,
    deadline: Option<Pin<Box<Sleep>>>,
    seen: usize,
    framing: Framing,
    write_pause: Duration,
    /// Set while the peer does not take what waits for it.
    write_deadline: Option<Pin<Box<Sleep>>>,
    /// What it has taken since then.
    taken: usize,
    /// Who waits until the peer has taken that, to read more of a stranger.
    reader: Option<Waker>,
}

impl Patient {
    fn new(stream: Stream, deadline: Instant, write_pause: Duration, front_end: Arc<FrontEnd>) -> Self {
        let deadline = Some(Box::pin(sleep_until(deadline)));
        let framing = Framing::default();
        Self {
            stream,
            stranger: None,
            front_end,
            deadline,
            seen: 0,
            framing,
            write_pause,
            write_deadline: None,
            taken: 0,
            reader: None,
        }
    }

    fn poll_stream(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(stranger) = &self.stranger {
            // Before it is looked: who is authenticated meanwhile is not missed.
            stranger.peer.wake_when_known(context.waker());
            if stranger.peer.tenant().is_some() {
                self.stranger = None;
            }
        }
        match &mut self.stranger {
            // Heads of answers without a body wait uncounted in the protocol's buffers.
            Some(_) if self.write_deadline.is_some() => {
                self.reader = Some(context.waker().clone());
                Poll::Pending
            }
            Some(stranger) => stranger.poll_read(&mut self.stream, context, buffer),
            None => Pin::new(&mut self.stream).poll_read(context, buffer),
        }
    }

    /// Passes on what became of a write of so many bytes; one that has made too little progress for too long fails.
    fn watch_write(
        &mut self,
        context: &mut Context<'_>,
        offered: usize,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(result) = &written {
            let bytes = *result.as_ref().unwrap_or(&0);
            self.front_end.sent(bytes);
            self.taken += bytes;
            if bytes == offered || self.taken >= WRITE_STEP_BYTES {
                self.write_deadline = None;
                self.taken = 0;
                if let Some(reader) = self.reader.take() {
                    reader.wake();
                }
            }
            return written;
        }
        let deadline = self.write_deadline.get_or_insert_with(|| Box::pin(sleep(self.write_pause)));
        deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.poll_stream(context, buffer);
        let count = buffer.filled().len() - before;
        self.front_end.received(count);
        self.framing.follow(&buffer.filled()[before..]);
        let Some(deadline) = &mut self.deadline else { return read };
        if read.is_pending() {
            return deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        self.seen += count;
        if self.seen >= FIRST_BYTES {
            self.deadline = None;
        }
        read
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch_write(context, bytes.len(), written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch_write(context, slices.iter().map(|slice| slice.len()).sum(), written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use telemetry::Registry;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use transport::Admission;

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    /// The server's side of a connection of a stranger, and the peer's.
    async fn stranger() -> (Patient, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (peer, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let stream = Stream::Plain(accepted.unwrap().0);
        let front_end = Registry::default().register("nosql", []);
        let mut patient = Patient::new(stream, Instant::now() + 2 * PATIENCE, PATIENCE, front_end);
        let (standing, _permit) = Admission::default().connect(Api::Nosql, address.ip()).unwrap();
        let (unread, may_read) = (Unread::new(PATIENCE), Arc::new(AtomicBool::new(true)));
        patient.stranger = Some(Stranger::new(&standing, &unread, &may_read));
        (patient, peer.unwrap())
    }

    #[tokio::test]
    async fn a_stranger_is_not_read_while_it_does_not_take_what_is_sent_to_it() {
        let (mut patient, mut peer) = stranger().await;
        let mut sent = 0;
        let piece = vec![7; 1 << 16];
        while patient.write_deadline.is_none() {
            let write = poll_fn(|context| Poll::Ready(Pin::new(&mut patient).poll_write(context, &piece)));
            if let Poll::Ready(count) = write.await {
                sent += count.unwrap();
            }
        }
        peer.write_all(b"request").await.unwrap();
        if let Stream::Plain(socket) = &patient.stream {
            socket.readable().await.unwrap();
        }
        let mut bytes = [0; 7];
        let read = poll_fn(|context| {
            Poll::Ready(Pin::new(&mut patient).poll_read(context, &mut ReadBuf::new(&mut bytes)))
        });
        assert!(read.await.is_pending(), "it is there and is not read");
        let (mut reader, mut writer) = tokio::io::split(patient);
        let read = tokio::spawn(async move { reader.read_exact(&mut bytes).await.map(|_| bytes) });
        let taken = tokio::spawn(async move {
            let mut all = vec![0; sent + piece.len()];
            peer.read_exact(&mut all).await.map(|_| peer)
        });
        timeout(PATIENCE, writer.write_all(&vec![7; 1 << 16])).await.expect("the peer takes it").unwrap();
        let read = timeout(PATIENCE, read).await.expect("the reader is woken").unwrap();
        assert_eq!(&read.unwrap(), b"request");
        drop(taken.await.unwrap().unwrap());
    }
}
