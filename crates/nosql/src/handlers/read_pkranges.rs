//! `GET /pkranges`: the physical partitions.
//!
//! Python and Rust read this feed again and again until they get 304 for its etag, so the etag changes only when the ranges
//! do.

use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::feed;
use crate::handlers::resources;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let etag = format!("\"{}-{}\"", container.rid, container.partitions.len());
    if call.head.if_none_match() == Some(etag.as_str()) {
        return Ok(Reply::empty(StatusCode::NOT_MODIFIED).etag(etag).item_count(0));
    }
    let mut body = Vec::new();
    feed::open(&mut body, &container.rid.to_string(), "PartitionKeyRanges");
    for (index, partition) in container.partitions.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        document::write_json(resources::range(&container, partition, &etag).view(), &mut body);
    }
    feed::close(&mut body, container.partitions.len());
    Ok(Reply::json(StatusCode::OK, body).etag(etag).item_count(container.partitions.len()))
}
