//! The two directions of a connection inside TLS, so that one task can wait for both.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::Secure;

/// The direction from the client.
#[derive(Debug)]
pub struct Reader(Arc<Mutex<Secure>>);

/// The direction to the client.
#[derive(Debug)]
pub struct Writer(Arc<Mutex<Secure>>);

/// Returns the directions of a connection.
pub fn halves(stream: Secure) -> (Reader, Writer) {
    let shared = Arc::new(Mutex::new(stream));
    (Reader(Arc::clone(&shared)), Writer(shared))
}

impl Writer {
    /// See [`Secure::put`].
    pub fn put(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.lock().put(slices)
    }

    /// Sends what was put.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_flush(context)
    }

    /// Tells the client that nothing more is sent.
    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_shutdown(context)
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_read(context, buffer)
    }
}
