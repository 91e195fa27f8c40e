//! `/_bolide/export/{db}/{coll}`: all items that have not expired, page by page, as stored: JSON lines of a container,
//! concatenated BSON documents of a collection. The server keeps no state between two pages; a header names where the
//! next begins.

use document::Document;
use engine::{ExportPage, Exported};

use super::{flag, ttl};
use crate::handlers::call::Call;
use crate::message::fields::Field;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::limits::{EXPORT_BYTES_DEFAULT, EXPORT_BYTES_MAX};

/// Returns one page. `after` is where it begins, `maxBytes` about how large it is, `system=true` keeps the system
/// properties.
pub(super) async fn page(call: &Call) -> Result<Reply, Error> {
    let owner = ttl::owner(call)?;
    let after = call.head.parameter("after").map(str::to_owned);
    let (max_bytes, with_system) = (max_bytes(call)?, flag(call, "system")?);
    let read = move |engine: &engine::Engine| {
        let ExportPage { living, next, charge } = engine.export_page(&owner, after.as_deref(), max_bytes)?;
        let (count, body, kind) = write(living, with_system);
        Ok((count, body, kind, next, charge))
    };
    let (count, body, kind, next, charge) = call.blocking(read).await?;
    let reply = Reply::bytes(kind, body).charged(charge).with(Field::ExportCount, count);
    Ok(match next {
        Some(next) => reply.with(Field::ExportNext, next),
        None => reply,
    })
}

fn max_bytes(call: &Call) -> Result<usize, Error> {
    let Some(text) = call.head.parameter("maxBytes") else { return Ok(EXPORT_BYTES_DEFAULT) };
    let wrong = || Error::BadRequest(format!("'maxBytes' must be a number from 1 to {EXPORT_BYTES_MAX}."));
    text.parse().ok().filter(|bytes| (1..=EXPORT_BYTES_MAX).contains(bytes)).ok_or_else(wrong)
}

/// Encodes a page: the number of items, their bytes and the content type.
fn write(living: Exported, with_system: bool) -> (usize, Vec<u8>, &'static str) {
    let mut out = Vec::new();
    match living {
        Exported::Items(items) => {
            for item in &items {
                if with_system {
                    item.write_json(&mut out);
                } else {
                    document::write_json(Document::root(&item.body), &mut out);
                }
                out.push(b'\n');
            }
            (items.len(), out, "application/x-ndjson")
        }
        Exported::Documents(documents) => {
            for document in &documents {
                out.extend_from_slice(document.as_bytes());
            }
            (documents.len(), out, "application/bson")
        }
    }
}
