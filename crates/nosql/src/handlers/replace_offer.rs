//! `PUT /offers/{rid}`: changes the throughput, optionally on a condition.

use engine::Charge;

use super::read_offer;
use crate::handlers::call::Call;
use crate::message::options::Flag;
use crate::message::reply::Reply;
use crate::message::throughput::{self, Migration};
use crate::protocol::error::Error;
use crate::protocol::json;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let current = read_offer::find(call)?;
    let migration = match (call.head.flag(Flag::MigrateToManual)?, call.head.flag(Flag::MigrateToAutoscale)?)
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
