//! `PUT /offers/{rid}`: changes the throughput, optionally on a condition.

use engine::Charge;

use super::read_offer;
use crate::handlers::call::Call;
use crate::http::response::Reply;
use crate::http::throughput::{self, Migration};
use crate::protocol::error::Error;
use crate::protocol::headers;
use crate::protocol::json;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let current = read_offer::find(call)?;
    let migration =
        match (call.head.flag(&headers::MIGRATE_TO_MANUAL)?, call.head.flag(&headers::MIGRATE_TO_AUTOSCALE)?)
        {
            (false, false) => Migration::None,
            (true, false) => Migration::ToManual,
            (false, true) => Migration::ToAutoscale,
            (true, true) => {
                return Err(Error::BadRequest("An offer cannot migrate both ways at once.".to_owned()));
            }
        };
    let (rid, precondition) = (current.rid, call.head.precondition());
    let wanted = throughput::from_offer(&json::parse_object(&call.body)?, current.throughput, migration)?;
    let offer = call.blocking(move |engine| Ok(engine.replace_offer(rid, wanted, &precondition)?)).await?;
    Ok(throughput::offer_reply(&offer, Charge::CATALOG_WRITE))
}
