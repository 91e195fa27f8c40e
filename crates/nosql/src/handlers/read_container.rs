//! `GET /dbs/{db}/colls/{coll}`, with quota figures and statistics if asked for.

use std::sync::Arc;

use document::Value;
use engine::{Charge, Container, Usage};
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::resources::{self, kilobytes};
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
    let (quota, statistics) = (call.head.flag(Flag::QuotaInfo)?, call.head.flag(Flag::PartitionStatistics)?);
    let mut value = resources::container(&container);
    let mut usage = None;
    if quota || statistics {
        usage = Some(figures(call, &container).await?);
    }
    if let (true, Some(usage), Some(members)) = (statistics, &usage, value.as_object_mut()) {
        members.insert("statistics", Value::Array(vec![resources::statistics(0, usage)]));
    }
    let mut reply = Reply::json(StatusCode::OK, value.to_json())
        .charged(Charge::CATALOG_READ)
        .etag(etag)
        .owned_by_database(&container.database)
        .number(Field::IndexProgress, call.engine().index_progress(&container).into());
    if let (true, Some(usage)) = (quota, &usage) {
        reply = reply.with(Field::ResourceQuota, QUOTA).with(Field::ResourceUsage, usage_text(usage));
    }
    Ok(reply)
}

/// Item and container sizes in kilobytes; -1 is "no limit".
const QUOTA: &str = "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;";

async fn figures(call: &Call, container: &Arc<Container>) -> Result<Usage, Error> {
    let handle = Arc::clone(container);
    call.blocking(move |engine| Ok(engine.usage(&handle)?)).await
}

fn usage_text(usage: &Usage) -> String {
    let size = kilobytes(usage.living.bytes);
    format!(
        "documentSize=0;documentsSize={size};documentsCount={};collectionSize={size};",
        usage.living.items
    )
}
