//! `PUT /dbs/{db}/colls/{coll}`: a whole new definition; settings that it omits are reset.

use engine::{Charge, Engine};
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::container_body;
use crate::handlers::quota::Quota;
use crate::handlers::resources;
use crate::message::fields::Field;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let (container, quota) = (call.container()?, Quota::of(call)?);
    let definition = container_body::of_replacement(call, &container.definition)?;
    let (precondition, consent) = (call.head.precondition(), call.head.consent()?);
    let replace = move |engine: &Engine| {
        Ok(engine.replace_container_with(&container, definition, &precondition, consent)?)
    };
    let container = call.blocking(replace).await?;
    let body = resources::container(&container).to_json();
    let mut reply = Reply::json(StatusCode::OK, body)
        .charged(Charge::CATALOG_WRITE)
        .etag(container.etag())
        .owned_by_database(&container.database);
    if quota == Quota::Wanted {
        let progress = call.engine().index_progress(&container);
        reply = quota.add(call, &container, reply).await.number(Field::IndexProgress, progress.into());
    }
    Ok(reply)
}
