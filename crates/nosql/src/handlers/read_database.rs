//! `GET /dbs/{db}`.

use engine::Charge;
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::resources;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let database = call.database()?;
    let etag = database.etag().to_string();
    if call.head.if_none_match() == Some(etag.as_str()) {
        return Ok(Reply::empty(StatusCode::NOT_MODIFIED).etag(etag));
    }
    Ok(Reply::json(StatusCode::OK, resources::database(&database).to_json())
        .charged(Charge::CATALOG_READ)
        .etag(etag))
}
