//! `PUT /offers/{rid}`: changes the throughput, optionally on a condition.

use document::Value;
use engine::{Charge, Engine, Offer};

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
    let body = json::parse_object(&call.body)?;
    check_rid(&body, &current)?;
    let wanted = throughput::from_offer(&body, current.throughput, migration)?;
    let level = throughput::level(&body)?;
    let replace = move |engine: &Engine| Ok(engine.replace_offer(rid, wanted, level, &precondition)?);
    let offer = call.blocking(replace).await?;
    Ok(throughput::offer_reply(&offer, Charge::CATALOG_WRITE))
}

/// Refuses the body of another offer: its client has mixed up two of them.
fn check_rid(body: &Value, offer: &Offer) -> Result<(), Error> {
    let given = body.get("_rid").filter(|given| !given.is_null());
    let rid = offer.rid.to_string();
    match given {
        Some(given) if given.as_str() != Some(rid.as_str()) => Err(Error::BadRequest(format!(
            "The offer's '_rid' is {}, but the request is for the offer '{rid}'.",
            given.to_json()
        ))),
        _ => Ok(()),
    }
}
