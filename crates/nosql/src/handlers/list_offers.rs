//! `GET /offers`, and queries over offers: how SDKs read a resource's throughput.

use crate::handlers::call::Call;
use crate::handlers::feed;
use crate::message::reply::Reply;
use crate::message::throughput;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let offers = call.engine().offers().iter().map(throughput::offer_json).collect();
    feed::reply(call, "", "Offers", offers)
}
