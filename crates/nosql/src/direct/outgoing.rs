//! The answers of a connection until they are sent.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::Buf;
use telemetry::FrontEnd;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use transport::Held;

use crate::direct::answer::Encoded;
use crate::message::unread::Mark;

/// The slices that are written at once.
const SLICES: usize = 32;

/// An answer that waits to be sent. What it holds is given back when its last byte is written.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) encoded: Encoded,
    /// The memory that it is charged for.
    pub(crate) _held: Option<Held>,
    /// Its mark among the unread answers.
    pub(crate) _mark: Mark,
    /// The turn of its request.
    pub(crate) _turn: OwnedSemaphorePermit,
}

/// Sends answers in the order in which they come, until there are no more senders; then says goodbye.
pub(crate) async fn send(
    mut queue: mpsc::UnboundedReceiver<Pending>,
    mut writer: impl AsyncWrite + Unpin,
    front_end: &FrontEnd,
    on_sent: impl Fn(),
) -> io::Result<()> {
    let mut waiting = VecDeque::new();
    while let Some(next) = queue.recv().await {
        waiting.push_back(next);
        while !waiting.is_empty() {
            while let Ok(next) = queue.try_recv() {
                waiting.push_back(next);
            }
            let written = writer.write_vectored(&slices(&waiting)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            front_end.sent(written);
            advance(&mut waiting, written);
            on_sent();
        }
        writer.flush().await?;
    }
    writer.shutdown().await
}

/// Returns what is to be written next.
fn slices(waiting: &VecDeque<Pending>) -> Vec<IoSlice<'_>> {
    let parts = waiting.iter().flat_map(|it| [&it.encoded.frame, &it.encoded.payload]);
    parts.filter(|part| !part.is_empty()).take(SLICES).map(|part| IoSlice::new(part)).collect()
}

/// Removes that many bytes from the beginning.
fn advance(waiting: &mut VecDeque<Pending>, mut count: usize) {
    while let Some(Pending { encoded: Encoded { frame, payload }, .. }) = waiting.front_mut() {
        for part in [&mut *frame, &mut *payload] {
            let taken = count.min(part.len());
            part.advance(taken);
            count -= taken;
        }
        if !(frame.is_empty() && payload.is_empty()) {
            return;
        }
        waiting.pop_front();
    }
}
