//! `PUT /dbs/{db}/colls/{coll}`: a whole new definition; what it leaves out is reset.

use engine::{Charge, ContainerDefinition, Engine};
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::resources;
use crate::message::fields::Field;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.container()?;
    let body = json::parse_object(&call.body)?;
    let definition = ContainerDefinition::from_value(&body).map_err(engine::Error::from)?;
    let (precondition, consent) = (call.head.precondition(), call.head.consent()?);
    let replace = move |engine: &Engine| {
        Ok(engine.replace_container_with(&container, definition, &precondition, consent)?)
    };
    let container = call.blocking(replace).await?;
    let body = resources::container(&container).to_json();
    let reply = Reply::json(StatusCode::OK, body)
        .charged(Charge::CATALOG_WRITE)
        .etag(container.etag())
        .owned_by_database(&container.database);
    Ok(reply.number(Field::IndexProgress, call.engine().index_progress(&container).into()))
}
