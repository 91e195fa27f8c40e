//! `POST /dbs/{db}/colls`.

use engine::{Charge, ContainerDefinition, Throughput};
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::resources;
use crate::message::fields::Field;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let database = call.owner_database()?;
    let body = json::parse_object(&call.body)?;
    let definition = ContainerDefinition::from_value(&body).map_err(engine::Error::from)?;
    let mut throughput = call.head.throughput()?;
    let shared = call.engine().offers().iter().any(|offer| offer.resource == database.self_link());
    if throughput.is_none() && !shared {
        throughput = Some(Throughput::DEFAULT);
    }
    let name = database.name.clone();
    let container =
        call.blocking(move |engine| Ok(engine.create_container(&database, definition, throughput)?)).await?;
    let body = resources::container(&container).to_json();
    let reply = Reply::json(StatusCode::CREATED, body)
        .charged(Charge::CATALOG_WRITE)
        .etag(container.etag())
        .owned_by_database(&name);
    Ok(reply.number(Field::IndexProgress, 100))
}
