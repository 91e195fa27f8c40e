//! `PUT /offers/{rid}`: another throughput, on condition if the client wants one.

use engine::Charge;
use hyper::StatusCode;

use super::read_offer;
use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;
use crate::{json, throughput};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let rid = read_offer::find(call)?.rid;
    let wanted = throughput::from_offer(&json::parse_object(&call.body)?)?;
    let precondition = call.head.precondition();
    let offer = call.blocking(move |engine| Ok(engine.replace_offer(rid, wanted, &precondition)?)).await?;
    Ok(Reply::json(StatusCode::OK, throughput::offer_json(&offer).to_json())
        .charged(Charge::CATALOG_WRITE)
        .etag(offer.etag))
}
