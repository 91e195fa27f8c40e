//! `GET /_bolide/backup`: the whole store at one instant, as a stream that `bolide restore` reads.
//!
//! Everything else continues meanwhile. The snapshot behind the backup holds back data removed since, so a scrub (T24)
//! waits for it, even if its reader is slow.

use crate::handlers::call::Call;
use crate::message::body::Body;
use crate::message::fields::Field;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

const CONTENT_TYPE: &str = "application/vnd.bolide.backup";

pub(super) async fn stream(call: &Call) -> Result<Reply, Error> {
    let mut backup = call.blocking(|engine| Ok(engine.backup()?)).await?;
    let (time, sequence) = (backup.info().time.seconds(), backup.info().sequence);
    let body = Body::streamed(call.engine(), move |_, pieces| {
        while let Some(piece) = backup.next_piece().map_err(engine::Error::from)? {
            if pieces.put(piece).is_err() {
                tracing::info!("a backup was given up by its reader");
                break;
            }
        }
        Ok(())
    });
    let reply = Reply::streamed(CONTENT_TYPE, body);
    Ok(reply.with(Field::BackupTime, time).with(Field::BackupSequence, sequence))
}
