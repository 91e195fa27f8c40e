//! The socket of a connection: limits what is read of it and when, and how long its client may take.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use telemetry::FrontEnd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use transport::{Held, Peer, Stream, WRITE_STEP_BYTES};

use crate::http::framing::Framing;
use crate::message::unread::Unread;
use crate::protocol::limits::{
    HEADER_BYTES, UNAUTHENTICATED_PIECE_BYTES, UNAUTHENTICATED_READ_BYTES, UNAUTHENTICATED_READ_PAUSE,
};

/// The length of the HTTP/2 preface, which is shorter than any complete HTTP/1.1 request head.
const FIRST_BYTES: usize = 24;

/// Reads an unauthenticated connection in small pieces, and slower while enough requests are in progress.
pub(crate) struct UnauthenticatedReader {
    peer: Arc<Peer>,
    unread: Arc<Unread>,
    /// Set whenever the connection is polled, which happens before it begins each request: so there is one read for each
    /// poll, and the requests in it are begun, and counted, before the next read.
    may_read: Arc<AtomicBool>,
    /// Set while answers wait for the peer.
    pause: Option<Pin<Box<Sleep>>>,
    unfinished: UnfinishedHead,
}

/// What was read of a connection since its last request began, which waits in the protocol's buffers. It is counted in
/// whole pieces: the rest belongs to what every connection takes.
struct UnfinishedHead {
    /// How many requests have begun on the connection,
    requests: Arc<AtomicUsize>,
    /// and how many of them the count knows.
    begun: usize,
    bytes: usize,
    held: Vec<Held>,
}

impl UnfinishedHead {
    /// Forgets what belongs to requests that have begun: these are counted by themselves.
    fn settle(&mut self) {
        let begun = self.requests.load(Ordering::Relaxed);
        if begun != self.begun {
            (self.begun, self.bytes) = (begun, 0);
            self.held = Vec::new();
        }
    }

    /// Counts bytes that were read; fails if the connection holds too much. A head beyond its limit is refused, so more than
    /// that does not wait for one.
    fn add(&mut self, bytes: usize, peer: &Arc<Peer>) -> io::Result<()> {
        self.bytes = (self.bytes + bytes).min(HEADER_BYTES);
        while (self.held.len() + 1) * UNAUTHENTICATED_PIECE_BYTES <= self.bytes {
            let held = peer.begin(UNAUTHENTICATED_PIECE_BYTES);
            let Some(held) = held.map_err(|_| io::ErrorKind::ConnectionAborted)? else { break };
            self.held.push(held);
        }
        Ok(())
    }
}

impl UnauthenticatedReader {
    pub(crate) fn new(
        peer: &Arc<Peer>,
        unread: &Arc<Unread>,
        may_read: &Arc<AtomicBool>,
        requests: &Arc<AtomicUsize>,
    ) -> UnauthenticatedReader {
        let (peer, unread, may_read) = (Arc::clone(peer), Arc::clone(unread), Arc::clone(may_read));
        let requests = Arc::clone(requests);
        let unfinished = UnfinishedHead { requests, begun: 0, bytes: 0, held: Vec::new() };
        UnauthenticatedReader { peer, unread, may_read, pause: None, unfinished }
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
        let mut bytes = [0; UNAUTHENTICATED_READ_BYTES];
        let length = bytes.len().min(buffer.remaining());
        let mut little = ReadBuf::new(&mut bytes[..length]);
        self.unfinished.settle();
        ready!(Pin::new(stream).poll_read(context, &mut little))?;
        self.unfinished.add(little.filled().len(), &self.peer)?;
        buffer.put_slice(little.filled());
        self.may_read.store(false, Ordering::Relaxed);
        self.pause = None;
        Poll::Ready(Ok(()))
    }

    /// Ready while few requests are in progress. If that does not change because the client grants no window, the
    /// connection is read now and then all the same: the window arrives after everything sent before it. Requests among
    /// that are counted as usual.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.unread.poll_unauthenticated(context).is_ready() {
            return Poll::Ready(());
        }
        if self.unread.waiting_bytes() == 0 {
            return Poll::Pending;
        }
        self.pause.get_or_insert_with(|| Box::pin(sleep(UNAUTHENTICATED_READ_PAUSE))).as_mut().poll(context)
    }
}

/// A socket whose client must send something within its deadline, and must read what it is sent. Only the first bytes
/// received are watched here; then the protocol's own timers apply. Writes are watched only here.
pub(crate) struct WatchedSocket {
    stream: Stream,
    /// Set until a request is authenticated.
    pub(crate) unauthenticated: Option<UnauthenticatedReader>,
    /// Counts the bytes in both directions.
    front_end: Arc<FrontEnd>,
    deadline: Option<Pin<Box<Sleep>>>,
    seen: usize,
    pub(crate) framing: Framing,
    write_pause: Duration,
    /// Set while the client does not read the bytes that wait for it.
    write_deadline: Option<Pin<Box<Sleep>>>,
    /// The bytes that it has read since then.
    taken: usize,
    /// The waker to call when the client has read that, to read more of an unauthenticated connection.
    reader: Option<Waker>,
}

impl WatchedSocket {
    pub(crate) fn new(
        stream: Stream,
        deadline: Instant,
        write_pause: Duration,
        front_end: Arc<FrontEnd>,
    ) -> Self {
        let deadline = Some(Box::pin(sleep_until(deadline)));
        let framing = Framing::default();
        Self {
            stream,
            unauthenticated: None,
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
        if let Some(unauthenticated) = &self.unauthenticated {
            // Before the check, so that an authentication in between is not missed.
            unauthenticated.peer.wake_when_authenticated(context.waker());
            if unauthenticated.peer.tenant().is_some() {
                self.unauthenticated = None;
            }
        }
        match &mut self.unauthenticated {
            // Heads of answers without a body wait uncounted in the protocol's buffers.
            Some(_) if self.write_deadline.is_some() => {
                self.reader = Some(context.waker().clone());
                Poll::Pending
            }
            Some(unauthenticated) => unauthenticated.poll_read(&mut self.stream, context, buffer),
            None => Pin::new(&mut self.stream).poll_read(context, buffer),
        }
    }

    /// Passes on the result of a write of this many bytes; fails if progress was too slow for too long.
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

impl AsyncRead for WatchedSocket {
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

impl AsyncWrite for WatchedSocket {
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
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    use telemetry::Registry;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;
    use transport::{Admission, Api};

    use super::*;

    const MAX_WAIT: Duration = Duration::from_mins(1);

    /// Returns the server's side of an unauthenticated connection, and the client's.
    async fn unauthenticated(
        admission: &Admission,
        requests: &Arc<AtomicUsize>,
    ) -> (WatchedSocket, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (peer, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let stream = Stream::Plain(accepted.unwrap().0);
        let front_end = Registry::default().register("nosql", []);
        let mut socket = WatchedSocket::new(stream, Instant::now() + 2 * MAX_WAIT, MAX_WAIT, front_end);
        let standing = admission.peer(Api::Nosql, address.ip());
        let (unread, may_read) = (Unread::new(MAX_WAIT), Arc::new(AtomicBool::new(true)));
        let reader = UnauthenticatedReader::new(&standing, &unread, &may_read, requests);
        socket.unauthenticated = Some(reader);
        (socket, peer.unwrap())
    }

    #[tokio::test]
    async fn an_unauthenticated_client_is_not_read_while_it_does_not_take_what_is_sent_to_it() {
        let (mut socket, mut peer) = unauthenticated(&Admission::default(), &Arc::default()).await;
        let mut sent = 0;
        let piece = vec![7; 1 << 16];
        while socket.write_deadline.is_none() {
            let write = poll_fn(|context| Poll::Ready(Pin::new(&mut socket).poll_write(context, &piece)));
            if let Poll::Ready(count) = write.await {
                sent += count.unwrap();
            }
        }
        peer.write_all(b"request").await.unwrap();
        if let Stream::Plain(socket) = &socket.stream {
            socket.readable().await.unwrap();
        }
        let mut bytes = [0; 7];
        let read = poll_fn(|context| {
            Poll::Ready(Pin::new(&mut socket).poll_read(context, &mut ReadBuf::new(&mut bytes)))
        });
        assert!(read.await.is_pending(), "it is there and is not read");
        let (mut reader, mut writer) = tokio::io::split(socket);
        let read = tokio::spawn(async move { reader.read_exact(&mut bytes).await.map(|_| bytes) });
        let taken = tokio::spawn(async move {
            let mut all = vec![0; sent + piece.len()];
            peer.read_exact(&mut all).await.map(|_| peer)
        });
        timeout(MAX_WAIT, writer.write_all(&vec![7; 1 << 16])).await.expect("the peer takes it").unwrap();
        let read = timeout(MAX_WAIT, read).await.expect("the reader is woken").unwrap();
        assert_eq!(&read.unwrap(), b"request");
        drop(taken.await.unwrap().unwrap());
    }

    /// Reads the next piece, as a connection does whenever it is polled.
    async fn read_piece(socket: &mut WatchedSocket) -> io::Result<usize> {
        if let Some(reader) = &socket.unauthenticated {
            reader.may_read.store(true, Ordering::Relaxed);
        }
        socket.read(&mut [0; UNAUTHENTICATED_READ_BYTES]).await
    }

    #[tokio::test]
    async fn what_was_read_of_a_head_counts_until_its_request_begins() {
        let (admission, requests) = (Admission::default(), Arc::default());
        let (mut socket, mut peer) = unauthenticated(&admission, &requests).await;
        let counted = || admission.unauthenticated().bytes;
        let mut read = 0;
        for step in 1..=20 {
            peer.write_all(&[b'a'; UNAUTHENTICATED_PIECE_BYTES]).await.unwrap();
            while read < step * UNAUTHENTICATED_PIECE_BYTES {
                read += read_piece(&mut socket).await.unwrap();
            }
            assert_eq!(counted(), (step * UNAUTHENTICATED_PIECE_BYTES).min(HEADER_BYTES));
        }
        requests.fetch_add(1, Ordering::Relaxed);
        peer.write_all(b"a").await.unwrap();
        read_piece(&mut socket).await.unwrap();
        assert_eq!(counted(), 0, "a request that has begun is counted by itself");
        peer.write_all(&[b'a'; UNAUTHENTICATED_PIECE_BYTES]).await.unwrap();
        for _ in 0..UNAUTHENTICATED_PIECE_BYTES.div_ceil(UNAUTHENTICATED_READ_BYTES) {
            read_piece(&mut socket).await.unwrap();
        }
        assert_eq!(counted(), UNAUTHENTICATED_PIECE_BYTES);
        socket.unauthenticated = None;
        assert_eq!(counted(), 0);
    }

    #[tokio::test]
    async fn heads_that_do_not_end_stay_within_the_budget() {
        const TOO_MANY: usize = 20;
        let (admission, requests) = (Admission::default(), Arc::default());
        let mut open = Vec::new();
        for _ in 0..transport::UNAUTHENTICATED_BYTES / HEADER_BYTES + TOO_MANY {
            let (mut socket, mut peer) = unauthenticated(&admission, &requests).await;
            peer.write_all(&vec![b'a'; HEADER_BYTES]).await.unwrap();
            let mut read = 0;
            while read < HEADER_BYTES {
                read += read_piece(&mut socket).await.expect("it is not the newcomer that ends");
            }
            assert!(admission.unauthenticated().bytes <= transport::UNAUTHENTICATED_BYTES);
            open.push((socket, peer));
        }
        assert_eq!(admission.unauthenticated().cut_off, TOO_MANY as u64);
    }
}
