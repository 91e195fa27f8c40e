//! `GET /dbs/{db}/colls/{coll}`, with quota figures and statistics if asked for.

use document::Value;
use engine::Charge;
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::quota::{self, Quota};
use crate::handlers::resources;
use crate::message::fields::Field;
use crate::message::options::Flag;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.container()?;
    let etag = container.etag().to_string();
    if call.head.if_none_match() == Some(etag.as_str()) {
        return Ok(Reply::empty(StatusCode::NOT_MODIFIED).etag(etag));
    }
    let (quota, statistics) = (Quota::of(call)?, call.head.flag(Flag::PartitionStatistics)?);
    let mut value = resources::container(&container);
    let mut usage = None;
    if quota == Quota::Wanted || statistics {
        usage = Some(quota::usage(call, &container).await?);
    }
    if let (true, Some(usage), Some(members)) = (statistics, &usage, value.as_object_mut()) {
        members.insert("statistics", Value::Array(vec![resources::statistics(0, usage)]));
    }
    let mut reply = Reply::json(StatusCode::OK, value.to_json())
        .charged(Charge::CATALOG_READ)
        .etag(etag)
        .owned_by_database(&container.database);
    if let (Quota::Wanted, Some(usage)) = (quota, &usage) {
        let progress = call.engine().index_progress(&container);
        reply = quota::with(reply, usage).number(Field::IndexProgress, progress.into());
    }
    Ok(reply)
}
