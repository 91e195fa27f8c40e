//! Connections: opened, served, drained.
//!
//! HTTP/1.1 and HTTP/2 with prior knowledge share the port, plain and inside TLS, and inside TLS also direct mode; the first
//! bytes decide. Every
//! connection has a deadline for its first bytes, for a handshake, for each request head and for each piece of an
//! answer, so that clients that send or read too slowly lose their connection, and the number of connections is
//! limited, so that the others cannot take all of them.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hyper::service::service_fn;
use hyper::{Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rntbd::Protocol;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use transport::{Accepted, Acceptor, Api, CutOff, Peer, Stream};

use crate::http::framing::Ambiguous;
use crate::http::socket::{UnauthenticatedReader, WatchedSocket};
use crate::message::body::Body;
use crate::message::request::Channel;
use crate::message::unread::Unread;
use crate::protocol::limits::direct::KEEP_ALIVE;
use crate::protocol::limits::{
    H2_CONNECTION_WINDOW, H2_PING, H2_PING_TIMEOUT, H2_STREAM_WINDOW, H2_STREAMS, Limits, REQUEST_BYTES,
};
use crate::service::{Service, over_direct};

/// The bytes that distinguish HTTP from direct mode.
const FIRST_BYTES: usize = 4;

/// Serves until `shutdown` ends, then lets requests in flight finish and returns.
pub async fn serve(listener: TcpListener, service: Arc<Service>, shutdown: impl Future<Output = ()>) {
    let limits = *service.limits();
    let builder = Arc::new(builder(&limits));
    let acceptor = Acceptor {
        api: Api::Nosql,
        admission: Arc::clone(service.admission()),
        front_end: Arc::clone(service.front_end()),
        connections: limits.connections,
        drain_timeout: limits.drain_timeout,
    };
    let serve = |accepted| connection(accepted, Arc::clone(&builder), Arc::clone(&service));
    acceptor.run(listener, shutdown, serve).await;
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
    Accepted { socket, peer: standing, mut stopped }: Accepted,
    builder: Arc<Builder<TokioExecutor>>,
    service: Arc<Service>,
) {
    let deadline = Instant::now() + service.limits().head_timeout;
    let _ = socket.set_nodelay(true);
    let Ok(peer) = socket.peer_addr() else { return };
    let _ = transport::keep_alive(&socket, KEEP_ALIVE.0, KEEP_ALIVE.1);
    let (stream, protocol) = match open(socket, &service, &standing, &mut stopped, deadline).await {
        Ok(opened) => opened,
        Err(error) => {
            if transport::is_distrust(&error) {
                service.direct().trust.ended_silently(peer.ip());
            }
            return tracing::debug!("no connection with {peer}: {error}");
        }
    };
    let channel = Channel { peer, secure: stream.is_secure() };
    match (protocol, stream) {
        // On the heap: connections of HTTP need no memory for it.
        (Protocol::Rntbd, Stream::Tls(stream)) => {
            Box::pin(over_direct::serve(*stream, channel, service, standing, stopped)).await;
        }
        (_, stream) => over_http(stream, channel, standing, stopped, builder, service, deadline).await,
    }
}

async fn over_http(
    stream: Stream,
    channel: Channel,
    standing: Arc<Peer>,
    mut stopped: watch::Receiver<bool>,
    builder: Arc<Builder<TokioExecutor>>,
    service: Arc<Service>,
    deadline: Instant,
) {
    let (peer, limits) = (channel.peer, *service.limits());
    let front_end = Arc::clone(service.front_end());
    let unread = Unread::new(limits.write_pause_timeout);
    let (watched, known) = (Arc::clone(&unread), Arc::clone(&standing));
    let mut watched_socket = WatchedSocket::new(stream, deadline, limits.write_pause_timeout, front_end);
    let may_read = Arc::new(AtomicBool::new(false));
    let requests = Arc::new(AtomicUsize::new(0));
    let reader = UnauthenticatedReader::new(&standing, &unread, &may_read, &requests);
    watched_socket.unauthenticated = Some(reader);
    let ambiguity = watched_socket.framing.ambiguity();
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
        // On the heap: a stream that waits for its client keeps the memory of its future, though the future has ended.
        Box::pin(async move {
            let answer = match &held {
                Ok(_) => service.respond(request).await,
                Err(CutOff) => Response::new(Body::Refused),
            };
            drop((held, in_progress));
            Ok::<_, std::convert::Infallible>(answer)
        })
    });
    let connection = builder.serve_connection(TokioIo::new(watched_socket), answer);
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
            () = standing.cut_off() => return tracing::debug!("{peer} held too much, or unauthenticated connections were too many"),
            () = until(drained_by) => return tracing::debug!("{peer} did not end its connection"),
            () = until_stopped(&mut stopped), if drained_by.is_none() => {
                drained_by = Some(Instant::now() + limits.drain_timeout);
            }
            () = unread.idle_for(limits.head_timeout), if !is_idle => is_idle = true,
            // Except while a request is in progress, which is answered however long it takes.
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

/// Waits until the client's protocol is known: HTTP, or inside TLS also that of direct mode.
async fn open(
    socket: TcpStream,
    service: &Service,
    standing: &Peer,
    stopped: &mut watch::Receiver<bool>,
    deadline: Instant,
) -> io::Result<(Stream, Protocol)> {
    let address = socket.peer_addr()?.ip();
    let opening = async {
        let mut stream = transport::open(socket, service.tls(), service.limits().handshake_timeout).await?;
        if !stream.is_secure() || service.direct().settings.is_off {
            return Ok((stream, Protocol::Http));
        }
        let first = stream.first_bytes::<FIRST_BYTES>().await;
        // A clean end makes no difference.
        if first.as_ref().map_or(true, Vec::is_empty) {
            service.direct().trust.ended_silently(address);
        }
        Ok((stream, Protocol::of(&first?).unwrap_or(Protocol::Http)))
    };
    tokio::select! {
        opened = timeout_at(deadline, opening) => opened.map_err(|_| io::Error::other("it said nothing"))?,
        () = standing.cut_off() => Err(io::Error::other("it was cut off before it said anything")),
        () = until_stopped(stopped) => Err(io::Error::other("the server stops")),
    }
}

/// Completes at that time; never without one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn until_stopped(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}
