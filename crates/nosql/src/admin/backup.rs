//! `GET /_bolide/backup`: the whole store at one instant, as a stream that `bolide restore` reads.
//!
//! It goes on beside everything else. The snapshot that it is made from holds back what was removed since, so a scrub (T24)
//! waits for it, and so does a slow reader's.

use crate::body::Body;
use crate::call::Call;
use crate::error::Error;
use crate::headers;
use crate::response::Reply;

const CONTENT_TYPE: &str = "application/vnd.bolide.backup";

pub(super) async fn stream(call: &Call) -> Result<Reply, Error> {
    let mut backup = call.blocking(|engine| Ok(engine.backup()?)).await?;
    let (time, sequence) = (backup.info().time.seconds(), backup.info().sequence);
    let body = Body::streamed(call, move |_, pieces| {
        while let Some(piece) = backup.next_piece().map_err(engine::Error::from)? {
            if pieces.put(piece).is_err() {
                tracing::info!("a backup was given up by its reader");
                break;
            }
        }
        Ok(())
    });
    let reply = Reply::streamed(CONTENT_TYPE, body);
    Ok(reply.with(headers::BACKUP_TIME, time).with(headers::BACKUP_SEQUENCE, sequence))
}
