//! `POST /dbs`.

use engine::Charge;
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::resources;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let body = json::parse_object(&call.body)?;
    let name = json::string_member(&body, "id")?.to_owned();
    let throughput = call.head.throughput()?;
    let database = call.blocking(move |engine| Ok(engine.create_database(&name, throughput)?)).await?;
    let body = resources::database(&database).to_json();
    Ok(Reply::json(StatusCode::CREATED, body).charged(Charge::CATALOG_WRITE).etag(database.etag()))
}
