//! A connection's bytes, plain or inside TLS, which the first three bytes decide.
//!
//! A TLS handshake begins `16 03 01` to `16 03 04`. No line of HTTP does, nor does the preface of HTTP/2. Read as the
//! length of a MongoDB message that would be at least 66,326 bytes, and no hello is that long.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{AlertDescription, Error, ServerConfig};
use tokio_rustls::server::TlsStream;

/// The pause between two peeks at a client that has sent only one or two bytes.
const PEEK_INTERVAL: Duration = Duration::from_millis(5);

/// A connection's bytes.
#[derive(Debug)]
pub enum Stream {
    /// Unencrypted.
    Plain(TcpStream),
    /// Inside TLS.
    Tls(Box<Secure>),
}

/// A connection inside TLS.
#[derive(Debug)]
pub struct Secure {
    stream: TlsStream<TcpStream>,
    /// The bytes that were read to see what the client speaks.
    first: Vec<u8>,
}

/// Detects whether the client speaks TLS, and performs the handshake. The caller limits how long a client may send
/// nothing at all; a handshake that has begun must complete in time.
pub async fn open(
    socket: TcpStream,
    tls: Option<&Arc<ServerConfig>>,
    handshake_timeout: Duration,
) -> io::Result<Stream> {
    if !wants_tls(&socket).await? {
        return Ok(Stream::Plain(socket));
    }
    let config = tls.ok_or_else(|| io::Error::other("the client requested TLS, which is not configured"))?;
    let handshake = TlsAcceptor::from(Arc::clone(config)).accept(socket);
    let stream = timeout(handshake_timeout, handshake).await??;
    Ok(Stream::Tls(Box::new(Secure { stream, first: Vec::new() })))
}

async fn wants_tls(socket: &TcpStream) -> io::Result<bool> {
    let mut bytes = [0; 3];
    loop {
        match (socket.peek(&mut bytes).await?, bytes) {
            (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
            (1, [0x16, ..]) | (2, [0x16, 0x03, _]) => tokio::time::sleep(PEEK_INTERVAL).await,
            (3, [0x16, 0x03, 1..=4]) => return Ok(true),
            _ => return Ok(false),
        }
    }
}

/// Returns whether a handshake failed because the client does not trust the server's certificate.
pub fn is_distrust(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    matches!(
        inner,
        Some(Error::AlertReceived(
            AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnsupportedCertificate
        ))
    )
}

/// Lets the operating system find out whether the client of an idle connection is still there.
pub fn keep_alive(socket: &TcpStream, idle: Duration, interval: Duration) -> io::Result<()> {
    SockRef::from(socket).set_tcp_keepalive(&TcpKeepalive::new().with_time(idle).with_interval(interval))
}

impl Stream {
    /// Returns whether the connection is encrypted.
    pub fn is_secure(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }

    /// Waits for the first bytes inside TLS and returns them; they stay there to be read. Fewer are returned if the client
    /// sends no more.
    pub async fn first_bytes<const N: usize>(&mut self) -> io::Result<Vec<u8>> {
        let Stream::Tls(secure) = self else { return Ok(Vec::new()) };
        let mut bytes = [0; N];
        while secure.first.len() < N {
            let missing = N - secure.first.len();
            let count = secure.stream.read(&mut bytes[..missing]).await?;
            if count == 0 {
                break;
            }
            secure.first.extend_from_slice(&bytes[..count]);
        }
        Ok(secure.first.clone())
    }

    /// Returns the server name that the client sent in its TLS handshake.
    pub fn server_name(&self) -> Option<String> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(secure) => secure.stream.get_ref().1.server_name().map(str::to_owned),
        }
    }
}

impl Secure {
    /// Encrypts bytes as TLS records of their own, which the next flush sends together with those before them. Returns how
    /// many it took; none if the bytes that wait to be sent have reached their limit.
    pub fn put(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.stream.get_mut().1.writer().write_vectored(slices)
    }
}

impl AsyncRead for Secure {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Secure { stream, first } = self.get_mut();
        if first.is_empty() {
            return Pin::new(stream).poll_read(context, buffer);
        }
        let count = first.len().min(buffer.remaining());
        buffer.put_slice(&first[..count]);
        first.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(secure) => Pin::new(&mut **secure).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Secure {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(secure) => Pin::new(&mut **secure).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Tls(secure) => Pin::new(&mut **secure).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(secure) => secure.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(secure) => Pin::new(&mut **secure).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(secure) => Pin::new(&mut **secure).poll_shutdown(context),
        }
    }
}
