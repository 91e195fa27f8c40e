//! `GET /offers/{rid}`.

use engine::{Charge, Offer};
use hyper::StatusCode;

use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;
use crate::throughput;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let offer = find(call)?;
    Ok(Reply::json(StatusCode::OK, throughput::offer_json(&offer).to_json())
        .charged(Charge::CATALOG_READ)
        .etag(offer.etag))
}

/// The offer that the path names.
pub(crate) fn find(call: &Call) -> Result<Offer, Error> {
    let name = call.head.path.at(1);
    let offer = call.engine().offers().into_iter().find(|offer| offer.rid.to_string() == name);
    offer.ok_or_else(|| engine::Error::NotFound { what: format!("offer '{name}'") }.into())
}
