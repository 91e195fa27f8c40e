//! `GET /offers/{rid}`.

use engine::{Charge, Offer};

use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::message::throughput;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    Ok(throughput::offer_reply(&find(call)?, Charge::CATALOG_READ))
}

/// Returns the offer that the path names.
pub(crate) fn find(call: &Call) -> Result<Offer, Error> {
    let name = call.head.path.at(1);
    let offer = call.engine().offers().into_iter().find(|offer| offer.rid.to_string() == name);
    offer.ok_or_else(|| engine::Error::NotFound { what: format!("offer '{name}'") }.into())
}
