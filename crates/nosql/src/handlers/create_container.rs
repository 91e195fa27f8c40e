//! `POST /dbs/{db}/colls`.

use engine::{Charge, Throughput};
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::container_body;
use crate::handlers::quota::Quota;
use crate::handlers::resources;
use crate::message::fields::Field;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let database = call.owner_database()?;
    let definition = container_body::of_new(call)?;
    let mut throughput = call.head.throughput()?;
    let quota = Quota::of(call)?;
    let shared = call.engine().offers().iter().any(|offer| offer.resource == database.self_link());
    let uses_shared = shared && throughput.is_none();
    if throughput.is_none() && !shared {
        throughput = Some(Throughput::DEFAULT);
    }
    let name = database.name.clone();
    let container =
        call.blocking(move |engine| Ok(engine.create_container(&database, definition, throughput)?)).await?;
    let body = resources::container(&container).to_json();
    let mut reply = Reply::json(StatusCode::CREATED, body)
        .charged(Charge::CATALOG_WRITE)
        .etag(container.etag())
        .owned_by_database(&name);
    if uses_shared {
        reply = reply.with(Field::ShareThroughput, true);
    }
    if quota == Quota::Wanted {
        reply = quota.add(call, &container, reply).await.number(Field::IndexProgress, 100);
    }
    Ok(reply)
}
