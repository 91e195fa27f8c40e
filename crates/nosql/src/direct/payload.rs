//! The payload of an admitted request.

use bytes::Bytes;
use tokio::sync::oneshot;

/// The payload of an admitted request.
pub(crate) enum Payload {
    /// It has arrived.
    Whole(Bytes),
    /// It is too large to keep without a reservation: the connection reads it when there is memory for it.
    Asked {
        bytes: usize,
        /// Signals that there is memory; dropped, that there is none.
        ask: oneshot::Sender<()>,
        /// Dropped if the payload does not arrive.
        body: oneshot::Receiver<Bytes>,
    },
}

impl Payload {
    /// Returns a payload to ask for, the receiver of the request for it, and the sender of its bytes.
    pub(crate) fn asked(bytes: usize) -> (Payload, oneshot::Receiver<()>, oneshot::Sender<Bytes>) {
        let ((ask, asked), (give, body)) = (oneshot::channel(), oneshot::channel());
        (Payload::Asked { bytes, ask, body }, asked, give)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Payload::Whole(body) => body.len(),
            Payload::Asked { bytes, .. } => *bytes,
        }
    }

    /// Returns the bytes, for which the caller has memory now; `None` if they do not arrive.
    pub(crate) async fn receive(self) -> Option<Bytes> {
        match self {
            Payload::Whole(body) => Some(body),
            Payload::Asked { ask, body, .. } => {
                let _ = ask.send(());
                body.await.ok()
            }
        }
    }
}
