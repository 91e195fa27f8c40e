//! The body of an answer: known as a whole, or made piece by piece while it is sent.
//!
//! Nearly every answer is known before its first byte leaves, and costs nothing more than its bytes. What may be as large as
//! the store is *streamed*: a blocking thread makes pieces and waits while the client has not taken those before, so that a
//! slow reader holds up its own answer and no memory. One who takes nothing at all for too long is cut off by the listener.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use engine::Engine;
use http_body_util::Full;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::call::Call;
use crate::error::Error;

/// Pieces that may wait for a client. The thread makes the next one meanwhile.
const WAITING_PIECES: usize = 2;

/// What is sent behind the head of an answer.
#[derive(Debug)]
pub(crate) enum Body {
    /// All of it.
    Whole(Full<Bytes>),
    /// As it is made.
    Streamed(mpsc::Receiver<Result<Bytes, Broken>>),
}

/// The rest cannot be made. The client sees that the answer ends before its end.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off: {0}")]
pub(crate) struct Broken(String);

/// Nobody takes the rest.
#[derive(Debug)]
pub(crate) struct ClientGone;

/// Where a blocking thread puts the pieces of a body.
pub(crate) struct Pieces(mpsc::Sender<Result<Bytes, Broken>>);

impl Pieces {
    /// Hands over a piece; waits while the client has not taken those before.
    pub(crate) fn put(&self, piece: Bytes) -> Result<(), ClientGone> {
        self.0.blocking_send(Ok(piece)).map_err(|_| ClientGone)
    }
}

impl Body {
    /// A body that `make` puts together on a thread of its own. What it fails with breaks the answer off.
    pub(crate) fn streamed(
        call: &Call,
        make: impl FnOnce(&Engine, &Pieces) -> Result<(), Error> + Send + 'static,
    ) -> Body {
        let (sender, receiver) = mpsc::channel(WAITING_PIECES);
        let engine = Arc::clone(call.engine());
        tokio::task::spawn_blocking(move || {
            let pieces = Pieces(sender);
            if let Err(error) = make(&engine, &pieces) {
                tracing::warn!("a streamed answer broke off: {error}");
                let _ = pieces.0.blocking_send(Err(Broken(error.to_string())));
            }
        });
        Body::Streamed(receiver)
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::Whole(Full::new(bytes))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Body::Whole(whole) => Pin::new(whole).poll_frame(context).map_err(|never| match never {}),
            Body::Streamed(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(whole) => whole.is_end_stream(),
            Body::Streamed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(whole) => hyper::body::Body::size_hint(whole),
            Body::Streamed(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn pieces_come_in_order_and_a_failure_is_seen() {
        let (sender, receiver) = mpsc::channel(1);
        let pieces = Pieces(sender);
        let maker = tokio::task::spawn_blocking(move || {
            for piece in ["a", "b", "c"] {
                pieces.put(Bytes::from_static(piece.as_bytes())).expect("somebody reads");
            }
            pieces.0.blocking_send(Err(Broken("here".to_owned()))).expect("somebody reads");
        });
        let mut body = Body::Streamed(receiver);
        for piece in ["a", "b", "c"] {
            let frame = body.frame().await.expect("more").expect("whole");
            assert_eq!(frame.into_data().expect("data"), piece);
        }
        assert_eq!(
            body.frame().await.expect("more").expect_err("broken").to_string(),
            "the answer broke off: here"
        );
        maker.await.expect("no panic");
    }

    #[tokio::test]
    async fn who_makes_pieces_learns_that_the_client_is_gone() {
        let (sender, receiver) = mpsc::channel(1);
        drop(receiver);
        let put = tokio::task::spawn_blocking(move || Pieces(sender).put(Bytes::new()));
        assert!(put.await.expect("no panic").is_err());
    }
}
