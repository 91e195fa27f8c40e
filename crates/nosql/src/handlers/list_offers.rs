//! `GET /offers`, and queries over offers: how SDKs read a resource's throughput.

use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;
use crate::{feed, throughput};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let offers = call.engine().offers().iter().map(throughput::offer_json).collect();
    feed::reply(call, "", "Offers", offers)
}
