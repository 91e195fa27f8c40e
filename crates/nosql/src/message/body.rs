//! The body of an answer: complete, or produced while it is sent.
//!
//! Nearly every answer is complete before its first byte is sent, and costs no more than its bytes. Answers that may be
//! as large as the store are *streamed*: a blocking thread produces pieces and waits until the client has received the
//! earlier ones, so that a slow reader delays its own answer and uses no memory. The listener closes the connection of
//! a client that reads nothing for too long; [`unread`](crate::message::unread) detects such clients of HTTP/2.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use engine::Engine;
use hyper::Version;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;
use transport::Held;

use crate::message::payer::Payer;
use crate::message::unread::Mark;
use crate::protocol::error::Error;
use crate::protocol::limits::{COUNTED_BYTES, STREAM_BYTES};

/// The number of pieces that may wait for a client while the thread produces the next one.
const WAITING_PIECES: usize = 2;

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Body {
    /// All bytes, until they are taken.
    Whole(Option<Bytes>),
    /// Bytes shared by all answers, so that one more of them costs nothing.
    Shared(Option<Bytes>),
    /// None, for lack of memory. The client sees a truncated answer.
    Refused,
    /// Produced piece by piece; with a mark while the client leaves no window for the next piece.
    Streamed(mpsc::Receiver<Result<Bytes, Broken>>, Option<Mark>),
}

/// The rest cannot be produced. The client sees a truncated answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off: {0}")]
pub(crate) struct Broken(String);

/// The client no longer reads the answer.
#[derive(Debug)]
pub(crate) struct ClientGone;

/// The destination of a blocking thread's pieces.
pub(crate) struct Pieces(mpsc::Sender<Result<Bytes, Broken>>);

impl Pieces {
    /// Sends a piece; waits until the client has received the earlier ones.
    pub(crate) fn put(&self, piece: Bytes) -> Result<(), ClientGone> {
        self.0.blocking_send(Ok(piece)).map_err(|_| ClientGone)
    }
}

impl Body {
    /// Creates a body that `make` produces on a thread of its own. An error truncates the answer.
    pub(crate) fn streamed(
        engine: &Arc<Engine>,
        make: impl FnOnce(&Engine, &Pieces) -> Result<(), Error> + Send + 'static,
    ) -> Body {
        let (sender, receiver) = mpsc::channel(WAITING_PIECES);
        let engine = Arc::clone(engine);
        tokio::task::spawn_blocking(move || {
            let pieces = Pieces(sender);
            if let Err(error) = make(&engine, &pieces) {
                tracing::warn!("a streamed answer broke off: {error}");
                let _ = pieces.0.blocking_send(Err(Broken(error.to_string())));
            }
        });
        Body::Streamed(receiver, None)
    }

    /// Returns all bytes of a body that is complete; none of one that is produced while it is sent.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            Body::Whole(bytes) | Body::Shared(bytes) => bytes.unwrap_or_default(),
            Body::Refused | Body::Streamed(..) => Bytes::new(),
        }
    }

    /// Returns the bytes to charge for the body: none if it is small and no other answer may wait on its connection.
    pub(crate) fn held_bytes(&self, version: Version) -> usize {
        let own = match self {
            Body::Whole(Some(bytes)) => bytes.len(),
            Body::Shared(Some(_)) => 0,
            Body::Whole(None) | Body::Shared(None) | Body::Refused | Body::Streamed(..) => return 0,
        };
        match version {
            Version::HTTP_2 => own + STREAM_BYTES,
            _ if own >= COUNTED_BYTES => own,
            _ => 0,
        }
    }

    /// Charges the [held bytes](Body::held_bytes) until the last of them is sent; until then the answer is also marked
    /// as unread on its connection, if that is watched. If there is no memory, the answer is dropped and the connection
    /// closed.
    pub(crate) fn counted(self, version: Version, payer: Payer) -> Body {
        let (size, unread) = (self.held_bytes(version), payer.unread.clone());
        match self {
            Body::Whole(Some(bytes)) | Body::Shared(Some(bytes)) if size > 0 => {
                let Ok(held) = payer.hold(size) else { return Body::Refused };
                let mark = unread.map(|unread| unread.mark(bytes.len()));
                Body::Whole(Some(Bytes::from_owner(Counted { bytes, _held: held, _mark: mark })))
            }
            Body::Streamed(pieces, _) => Body::Streamed(pieces, unread.map(|unread| unread.mark(0))),
            other @ (Body::Whole(_) | Body::Shared(_) | Body::Refused) => other,
        }
    }
}

/// Bytes that are charged or marked as long as they exist, above all in the protocol's own buffers.
struct Counted {
    bytes: Bytes,
    _held: Option<Held>,
    _mark: Option<Mark>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::Whole(Some(bytes).filter(|bytes| !bytes.is_empty()))
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
            Body::Whole(whole) | Body::Shared(whole) => {
                Poll::Ready(whole.take().map(|bytes| Ok(Frame::data(bytes))))
            }
            Body::Refused => Poll::Ready(Some(Err(Broken("there is no room to hold it".to_owned())))),
            Body::Streamed(pieces, mark) => {
                let piece = pieces.poll_recv(context);
                match (&piece, &mark) {
                    (Poll::Ready(Some(_)), Some(mark)) => mark.waits(0),
                    (_, Some(mark)) => mark.rests(),
                    (_, None) => {}
                }
                let frame = |bytes: Bytes| match mark {
                    Some(mark) => {
                        let mark = Some(mark.beside(bytes.len()));
                        Frame::data(Bytes::from_owner(Counted { bytes, _held: None, _mark: mark }))
                    }
                    None => Frame::data(bytes),
                };
                piece.map(|piece| piece.map(|piece| piece.map(frame)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(whole) | Body::Shared(whole) => whole.is_none(),
            Body::Refused | Body::Streamed(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(whole) | Body::Shared(whole) => {
                SizeHint::with_exact(whole.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Body::Refused | Body::Streamed(..) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use http_body_util::BodyExt;
    use hyper::body::Body as _;
    use tokio::time::timeout;
    use transport::{Admission, Api, Bounds, Peer, Tenant};

    use super::*;
    use crate::message::unread::Unread;

    #[tokio::test]
    async fn pieces_come_in_order_and_a_failure_is_seen() {
        let (sender, receiver) = mpsc::channel(1);
        let pieces = Pieces(sender);
        let maker = tokio::task::spawn_blocking(move || {
            for piece in ["a", "b", "c"] {
                pieces.put(Bytes::from_static(piece.as_bytes())).expect("the reader exists");
            }
            pieces.0.blocking_send(Err(Broken("here".to_owned()))).expect("the reader exists");
        });
        let mut body = Body::Streamed(receiver, None);
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

    fn peer(admission: &Admission) -> Arc<Peer> {
        admission.peer(Api::Nosql, Ipv4Addr::LOCALHOST.into())
    }

    fn payer(peer: &Arc<Peer>, unread: Option<&Arc<Unread>>) -> Payer {
        Payer::new(Some(Arc::clone(peer)), unread.cloned())
    }

    #[tokio::test]
    async fn bytes_are_counted_until_the_last_of_them_has_left() {
        let load = Admission::default();
        let peer = peer(&load);
        peer.authenticate(Tenant::new(Api::Nosql, "key"));
        let large = || Body::from(Bytes::from(vec![7; COUNTED_BYTES]));
        let mut body = large().counted(Version::HTTP_11, payer(&peer, None));
        assert_eq!(body.size_hint().exact(), Some(COUNTED_BYTES as u64));
        let sent = body.frame().await.expect("one").expect("whole").into_data().expect("data");
        assert!(body.is_end_stream() && body.frame().await.is_none());
        drop(body);
        assert_eq!((sent.len(), load.held_bytes()), (COUNTED_BYTES, COUNTED_BYTES));
        drop(sent);
        let small = || Body::from(Bytes::from_static(b"small"));
        let uncounted = small().counted(Version::HTTP_11, payer(&peer, None));
        assert_eq!(load.held_bytes(), 0);
        let stream = small().counted(Version::HTTP_2, payer(&peer, None));
        assert_eq!(load.held_bytes(), STREAM_BYTES + 5);
        drop((uncounted, stream));
        assert_eq!(load.held_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unauthenticated_client_is_charged_apart_and_pays_nothing_for_bytes_that_all_answers_share() {
        let load = Admission::default();
        let peer = peer(&load);
        let shared = || Body::Shared(Some(Bytes::from(vec![7; 100_000])));
        let page = || Body::from(Bytes::from(vec![7; 10_000]));
        let held = [shared(), page()].map(|body| body.counted(Version::HTTP_2, payer(&peer, None)));
        assert_eq!((load.held_bytes(), load.unauthenticated().bytes), (0, 2 * STREAM_BYTES + 10_000));
        let mut more = Vec::new();
        let refused = loop {
            match page().counted(Version::HTTP_2, payer(&peer, None)) {
                Body::Refused => break Body::Refused,
                body => more.push(body),
            }
        };
        let left = transport::UNAUTHENTICATED_CONNECTION_BYTES - (2 * STREAM_BYTES + 10_000);
        assert_eq!(more.len(), left / (STREAM_BYTES + 10_000));
        assert!(refused.boxed().frame().await.expect("one").is_err(), "the answer breaks off");
        timeout(Duration::from_secs(1), peer.cut_off()).await.expect("the connection ends");
        drop((held, more));
    }

    #[tokio::test(start_paused = true)]
    async fn a_known_peer_without_room_hears_small_refusals_until_it_stops_reading_them() {
        let load = Admission::new(Bounds { held_bytes: 1000, ..Bounds::default() });
        let (peer, unread) = (peer(&load), Unread::new(Duration::from_mins(1)));
        peer.authenticate(Tenant::new(Api::Nosql, "key"));
        let _full = peer.hold(500).expect("all there is");
        let refusal = || Body::from(Bytes::from(vec![7; 1000]));
        let answer = || refusal().counted(Version::HTTP_2, payer(&peer, Some(&unread)));
        for _ in 0..100 {
            assert!(matches!(answer(), Body::Whole(_)), "what is taken at once makes room");
        }
        let mut unread_ones = Vec::new();
        while let body @ Body::Whole(_) = answer() {
            unread_ones.push(body);
        }
        assert!((8..16).contains(&unread_ones.len()), "{}", unread_ones.len());
        timeout(Duration::from_secs(1), peer.cut_off()).await.expect("the connection ends");
    }

    #[tokio::test(start_paused = true)]
    async fn a_streamed_answer_waits_for_its_peer_until_its_last_byte_and_not_for_who_makes_it() {
        const STEP: Duration = Duration::from_mins(1);
        let unread = Unread::new(STEP);
        let is_unread = || async { timeout(2 * STEP, unread.too_long()).await.is_ok() };
        let (sender, receiver) = mpsc::channel(1);
        let mut body = Body::Streamed(receiver, None)
            .counted(Version::HTTP_2, Payer::new(None, Some(Arc::clone(&unread))));
        assert!(is_unread().await, "there is no room for the first piece");
        assert!(timeout(STEP, body.frame()).await.is_err());
        assert!(!is_unread().await, "it is not made yet");
        sender.send(Ok(Bytes::from_static(b"piece"))).await.expect("the reader exists");
        let piece = body.frame().await.expect("one").expect("whole").into_data().expect("data");
        drop((sender, body));
        assert!(is_unread().await, "the last piece is still here");
        drop(piece);
        assert!(!is_unread().await);
    }

    #[tokio::test]
    async fn the_producer_of_pieces_learns_that_the_client_is_gone() {
        let (sender, receiver) = mpsc::channel(1);
        drop(receiver);
        let put = tokio::task::spawn_blocking(move || Pieces(sender).put(Bytes::new()));
        assert!(put.await.expect("no panic").is_err());
    }
}
