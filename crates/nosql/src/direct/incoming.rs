//! The frames in the bytes of a connection.
//!
//! A refused payload is not kept, and no announced length is trusted: memory grows with the bytes that arrive.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rntbd::{Broken, HEAD_BYTES, PAYLOAD_LENGTH_BYTES, RequestHead, payload_bytes};
use telemetry::FrontEnd;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::protocol::limits::COUNTED_BYTES;

/// The bytes to read at once from an authenticated client.
const READ_BYTES: usize = 16 * 1024;

/// The least room for reading.
const SPARE_BYTES: usize = 1024;

/// The bytes of a connection that were received and not used yet.
#[derive(Debug)]
pub(crate) struct Incoming<R> {
    reader: R,
    /// Counts the bytes.
    front_end: Arc<FrontEnd>,
    bytes: BytesMut,
    /// The bytes to read at once.
    read_bytes: usize,
    /// How long a client may pause within a frame or a payload.
    pause: Duration,
}

/// A frame, without a payload.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) head: RequestHead,
    /// The bytes of its tokens.
    pub(crate) tokens: Bytes,
}

/// Why nothing more can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    /// The client has ended the connection between two frames.
    #[error("the client ended it")]
    Finished,
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are not frames.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The rest of a frame or a payload does not arrive in time.
    #[error("its request did not arrive in time")]
    Late,
    /// The client does something that no correct client does.
    #[error("{0}")]
    Unexpected(&'static str),
}

impl Ended {
    /// Returns whether the client has left, and waits for no answer.
    pub(crate) fn is_of_client(&self) -> bool {
        match self {
            Ended::Finished | Ended::Io(_) => true,
            Ended::Broken(_) | Ended::Late | Ended::Unexpected(_) => false,
        }
    }
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(crate) fn new(reader: R, front_end: Arc<FrontEnd>, pause: Duration) -> Self {
        Self { reader, front_end, bytes: BytesMut::new(), read_bytes: SPARE_BYTES, pause }
    }

    /// Reads larger pieces from now on: the client is authenticated. An unauthenticated client is charged for little more
    /// than one frame.
    pub(crate) fn widen(&mut self) {
        self.read_bytes = READ_BYTES;
    }

    /// Waits for the first byte of the next frame.
    pub(crate) async fn begin(&mut self) -> Result<(), Ended> {
        while self.bytes.is_empty() {
            self.more().await?;
        }
        Ok(())
    }

    /// Waits for the head of the next frame, which may have at most `limit` bytes.
    pub(crate) async fn head(&mut self, limit: usize) -> Result<RequestHead, Ended> {
        loop {
            match RequestHead::parse(&self.bytes, limit)? {
                Some(head) => return Ok(head),
                None => self.rest().await?,
            }
        }
    }

    /// Returns the frame with this head.
    pub(crate) async fn frame(&mut self, head: RequestHead) -> Result<Frame, Ended> {
        let mut frame = self.take(head.frame_bytes).await?;
        let tokens = frame.split_off(HEAD_BYTES);
        Ok(Frame { head, tokens })
    }

    /// Returns the length of a payload, which may be at most `limit`.
    pub(crate) async fn payload_length(&mut self, limit: usize) -> Result<usize, Ended> {
        let length = self.take(PAYLOAD_LENGTH_BYTES).await?;
        Ok(payload_bytes(&length, limit)?.unwrap_or_default())
    }

    /// Returns that many bytes, when all of them have arrived.
    pub(crate) async fn take(&mut self, count: usize) -> Result<Bytes, Ended> {
        // Of an unauthenticated client nothing is kept beyond the bytes it is charged for.
        let is_apart = count >= COUNTED_BYTES || self.read_bytes < READ_BYTES;
        if is_apart {
            // Memory for it was granted. Growing with what arrives would take up to twice as much.
            self.bytes.reserve(count.saturating_sub(self.bytes.len()) + SPARE_BYTES);
        }
        while self.bytes.len() < count {
            self.rest().await?;
        }
        if !is_apart {
            return Ok(self.bytes.split_to(count).freeze());
        }
        // The bytes behind it get memory of their own, or the connection would keep the memory of its largest payload.
        let rest = BytesMut::from(&self.bytes[count..]);
        let mut whole = std::mem::replace(&mut self.bytes, rest);
        whole.truncate(count);
        Ok(whole.freeze())
    }

    /// Discards that many bytes as they arrive.
    pub(crate) async fn skip(&mut self, mut count: usize) -> Result<(), Ended> {
        loop {
            let here = count.min(self.bytes.len());
            drop(self.bytes.split_to(here));
            count -= here;
            if count == 0 {
                return Ok(());
            }
            self.rest().await?;
        }
    }

    /// Completes when the client ends the connection. Keeps the bytes that arrive before; where they are more than it reads
    /// at once, it does not notice the end.
    pub(crate) async fn ended(&mut self) -> Ended {
        while self.bytes.len() < self.read_bytes {
            if let Err(ended) = self.more().await {
                return ended;
            }
        }
        std::future::pending().await
    }

    /// Discards arriving bytes until the connection ends.
    pub(crate) async fn discard(&mut self) {
        loop {
            self.bytes.clear();
            if self.more().await.is_err() {
                return;
            }
        }
    }

    /// Waits for the rest of a frame or payload that has begun.
    async fn rest(&mut self) -> Result<(), Ended> {
        timeout(self.pause, self.more()).await.unwrap_or(Err(Ended::Late))
    }

    /// Waits for more bytes. No byte is lost if the caller stops waiting.
    async fn more(&mut self) -> Result<(), Ended> {
        if self.bytes.capacity() - self.bytes.len() < SPARE_BYTES {
            self.bytes.reserve(self.read_bytes);
        }
        let count = self.reader.read_buf(&mut self.bytes).await?;
        self.front_end.received(count);
        if count > 0 {
            return Ok(());
        }
        if self.bytes.is_empty() {
            return Err(Ended::Finished);
        }
        Err(Ended::Io(io::ErrorKind::UnexpectedEof.into()))
    }
}

#[cfg(test)]
mod tests {
    use rntbd::{ActivityId, ContextRequest};
    use telemetry::Registry;
    use tokio::io::AsyncWriteExt;

    use super::*;

    const PAUSE: Duration = Duration::from_secs(15);

    fn incoming<R: AsyncRead + Unpin>(reader: R) -> Incoming<R> {
        Incoming::new(reader, Registry::default().register("nosql", []), PAUSE)
    }

    async fn whole<R: AsyncRead + Unpin>(incoming: &mut Incoming<R>) -> Result<Frame, Ended> {
        let head = incoming.head(100).await?;
        incoming.frame(head).await
    }

    fn frame() -> Vec<u8> {
        let mut bytes = Vec::new();
        let context = ContextRequest { user_agent: Some("test"), ..ContextRequest::default() };
        context.encode(ActivityId([7; 16]), &mut bytes).unwrap();
        bytes
    }

    #[tokio::test]
    async fn frames_and_payloads_are_found_whatever_the_pieces() {
        let mut bytes = frame();
        bytes.extend([3, 0, 0, 0, b'a', b'b', b'c']);
        bytes.extend([9, 0, 0, 0]);
        bytes.extend([0; 9]);
        bytes.extend(frame());
        for piece in [1, 2, 3, 5, 1000] {
            let mut reader = in_pieces(&bytes, piece);
            let mut incoming = incoming(&mut reader);
            incoming.begin().await.unwrap();
            assert_eq!(whole(&mut incoming).await.unwrap().head.activity_id, ActivityId([7; 16]));
            assert_eq!(incoming.payload_length(3).await.unwrap(), 3);
            assert_eq!(incoming.take(3).await.unwrap(), "abc");
            let length = incoming.payload_length(100).await.unwrap();
            incoming.skip(length).await.unwrap();
            whole(&mut incoming).await.unwrap();
            assert!(matches!(incoming.begin().await, Err(Ended::Finished)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_begun_may_pause_for_so_long_and_what_has_not_for_ever() {
        let (mut client, server) = tokio::io::duplex(1000);
        let mut incoming = incoming(server);
        let begun = tokio::time::Instant::now();
        assert!(timeout(100 * PAUSE, incoming.begin()).await.is_err(), "between frames there is no limit");
        let half = frame().len() / 2;
        client.write_all(&frame()[..half]).await.unwrap();
        tokio::spawn(async move {
            tokio::time::sleep(PAUSE * 9 / 10).await;
            client.write_all(&frame()[half..]).await.unwrap();
            client.write_all(&[7; 10]).await.unwrap();
            std::future::pending::<()>().await;
        });
        whole(&mut incoming).await.unwrap();
        assert!(matches!(incoming.take(11).await, Err(Ended::Late)));
        assert_eq!(begun.elapsed(), 100 * PAUSE + PAUSE * 9 / 10 + PAUSE);
        assert_eq!(incoming.take(10).await.unwrap(), vec![7; 10], "nothing is lost");
    }

    #[tokio::test]
    async fn the_end_of_a_connection_shows_behind_a_few_frames_that_are_kept() {
        let bytes = frame();
        let mut reader = in_pieces(&bytes, 1000);
        let mut incoming = incoming(&mut reader);
        incoming.begin().await.unwrap();
        assert!(incoming.ended().await.is_of_client());
        assert_eq!(whole(&mut incoming).await.unwrap().head.activity_id, ActivityId([7; 16]));
    }

    #[tokio::test]
    async fn a_connection_does_not_keep_the_memory_of_a_large_payload() {
        let bytes = vec![7; 1_000_000 + 10];
        let mut reader = in_pieces(&bytes, 1 << 16);
        let mut incoming = incoming(&mut reader);
        let payload = incoming.take(1_000_000).await.unwrap();
        assert!(payload.len() == 1_000_000 && incoming.bytes.capacity() <= 2 * READ_BYTES);
        drop(payload);
        assert_eq!(incoming.take(10).await.unwrap(), vec![7; 10]);
        assert!(incoming.bytes.capacity() <= 2 * READ_BYTES, "{}", incoming.bytes.capacity());
    }

    #[tokio::test]
    async fn an_unauthenticated_client_has_room_for_its_frame_and_little_more() {
        let mut announced = frame()[..HEAD_BYTES].to_vec();
        announced[..4].copy_from_slice(&16_000_u32.to_le_bytes());
        announced.resize(16_000, 7);
        let announced = announced.repeat(4);
        let mut incoming = incoming(&announced[..]);
        for _ in 0..3 {
            let head = incoming.head(16_000).await.unwrap();
            assert!(incoming.bytes.capacity() <= 2 * SPARE_BYTES, "its length is not charged yet");
            let frame = incoming.frame(head).await.unwrap();
            assert_eq!(HEAD_BYTES + frame.tokens.len(), 16_000);
            assert!(timeout(Duration::ZERO, incoming.ended()).await.is_err(), "more waits");
            assert!(incoming.bytes.capacity() <= 2 * SPARE_BYTES, "{}", incoming.bytes.capacity());
            assert!(frame.tokens.try_into_mut().is_ok(), "nothing else keeps its memory");
        }
    }

    #[tokio::test]
    async fn lengths_are_refused_before_their_bytes_arrive() {
        let bytes = frame();
        let mut long = incoming(&bytes[..4]);
        assert!(matches!(long.head(bytes.len() - 1).await, Err(Ended::Broken(Broken::FrameTooLong { .. }))));
        let mut cut = incoming(&bytes[..bytes.len() - 1]);
        assert!(matches!(whole(&mut cut).await, Err(Ended::Io(_))));
        let mut payload = incoming(&[0xFF; 4][..]);
        assert!(matches!(payload.payload_length(100).await, Err(Ended::Broken(_))));
    }

    /// Reads bytes in pieces of that size.
    fn in_pieces(bytes: &[u8], piece: usize) -> tokio::io::DuplexStream {
        let (mut client, server) = tokio::io::duplex(piece);
        let bytes = bytes.to_vec();
        tokio::spawn(async move {
            client.write_all(&bytes).await.unwrap();
        });
        server
    }
}
